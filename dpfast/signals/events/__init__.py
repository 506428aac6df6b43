"""signals/events."""
