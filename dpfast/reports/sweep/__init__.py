"""reports/sweep."""
