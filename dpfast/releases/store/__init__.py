"""releases/store."""
