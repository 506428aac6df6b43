"""releases/audit."""
