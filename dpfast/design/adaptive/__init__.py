"""design/adaptive."""
