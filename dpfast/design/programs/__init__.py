"""design/programs."""
