"""design/prefilter."""
