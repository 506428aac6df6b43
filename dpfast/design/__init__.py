"""Design a mechanism for a target, a privacy demand and a model of the signal: a file for every mechanism."""
