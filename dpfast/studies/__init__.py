"""Sweeps: many cases, simulated on any engine until they are known well enough, kept in a store."""
