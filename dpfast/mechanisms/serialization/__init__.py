"""mechanisms/serialization."""
