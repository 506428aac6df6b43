"""Find the prefilter with the least error, and realise it as a filter of few states."""
