"""simulation/sweep."""
