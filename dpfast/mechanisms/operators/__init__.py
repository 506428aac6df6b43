"""mechanisms/operators."""
