"""Design matrix mechanisms for a target over a horizon: a file for every mechanism."""
