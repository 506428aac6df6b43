"""Mechanisms from a target, a privacy demand and a model of the signal."""
