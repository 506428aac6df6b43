"""Design by convex programs, which take further constraints."""
