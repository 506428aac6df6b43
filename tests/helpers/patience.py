"""How long tests wait for what comes at once on a quiet machine: seconds that only something that hangs takes."""

PATIENCE = 240.0
