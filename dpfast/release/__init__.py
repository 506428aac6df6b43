"""The exact path for real data: integers, exact discrete Gaussian noise, a durable stream."""
