"""The exact path for real data: integers, discrete Gaussian noise, streams that survive a crash."""
