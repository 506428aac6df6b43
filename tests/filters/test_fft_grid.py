"""How fine a grid for an FFT is."""

import math

from dpfast.filters.fft_grid import fft_length


def test_fft_length_covers_the_decay():
    for slowest in (0.0, 0.5, 0.99, 0.9999):
        n = fft_length(slowest)
        assert slowest**n <= math.exp(-39.9)
        assert n & (n - 1) == 0
