"""mechanisms/receivers."""
