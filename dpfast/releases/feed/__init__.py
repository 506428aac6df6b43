"""releases/feed."""
