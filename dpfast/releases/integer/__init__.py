"""releases/integer."""
