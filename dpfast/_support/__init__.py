"""_support."""
