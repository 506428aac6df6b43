"""Integer FIR filters against numpy.convolve, piece by piece."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpfast._kernels.integer_fir import add_filtered


@given(st.integers(1, 9), st.integers(1, 3), st.lists(st.integers(0, 700), min_size=1, max_size=3), st.integers(0, 99))
def test_pieces_are_the_convolution(n_taps, n_streams, lengths, seed):
    rng = np.random.default_rng(seed)
    taps = rng.integers(-(2**20), 2**20, n_taps)
    lengths = [n % 40 if n_taps > 2 else n for n in lengths]  # some of them longer than a block
    x, noise = (rng.integers(-(2**30), 2**30, (n_streams, sum(lengths))) for _ in range(2))
    whole = np.concatenate([np.zeros((n_streams, n_taps - 1), np.int64), x], axis=1)
    out, first = noise.copy(), 0
    for n in lengths:
        piece = out[:, first : first + n].copy()
        add_filtered(taps, whole[:, first : first + n + n_taps - 1].copy(), piece)
        out[:, first : first + n] = piece
        first += n
    expected = np.stack([np.convolve(taps, row)[: x.shape[1]] for row in x]) if x.shape[1] else x
    np.testing.assert_array_equal(out, expected + noise)
