"""Attacks on what is published, by someone who knows the code and nearly all of the data."""
