"""FFTs that leave nodes where butterflies do, against those of NumPy; and their place in a circle."""

import numpy as np
import pytest

from dpfast._kernels.matrix_tiles import aligned
from dpfast._kernels.node_fft import FEWEST_STEPS, Turns, node_order, to_nodes, to_taps

sizes = pytest.mark.parametrize("size", [FEWEST_STEPS, 256, 512, 1024, 2048])


def apart(taps):
    """Even taps and odd ones."""
    return np.ascontiguousarray(np.stack([taps[:, ::2], taps[:, 1::2]], axis=1))


def forth(taps, size, first=0, count=None):
    turns, nodes = Turns(size), np.full((len(taps), 2, size // 2 + 3), np.nan)
    count = len(taps) if count is None else count
    to_nodes(apart(taps), turns.cuts, turns.of_cuts, turns.forth, first, count, nodes)
    return nodes


@sizes
def test_each_node_is_at_one_place(size):
    order = node_order(size)
    assert sorted(order) == list(range(size // 2 + 1))
    assert (order[0], order[-1]) == (0, size // 2)


@sizes
@pytest.mark.parametrize("share", [1, 2, 4])
def test_nodes_are_those_of_another_transform(size, share):
    """Also of fewer taps, behind which there is nothing."""
    taps = np.random.default_rng(size).standard_normal((3, size // share))
    nodes = forth(taps, size)
    found = (nodes[:, 0] + 1j * nodes[:, 1])[:, : size // 2 + 1]
    expected = np.fft.rfft(taps, size)[:, node_order(size)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-15 * np.abs(expected).max())
    assert not nodes[:, :, size // 2 + 1 :].any()


@sizes
def test_taps_of_any_nodes_are_those_of_another_transform(size):
    """The first and the last are taken as real."""
    rng, n = np.random.default_rng(size), size // 2
    nodes, turns = rng.standard_normal((3, 2, n + 2)), Turns(size)
    expected = np.zeros((3, n + 1), complex)
    expected[:, node_order(size)] = (nodes[:, 0] + 1j * nodes[:, 1])[:, : n + 1]
    to_taps(nodes, turns.cuts, turns.of_cuts, turns.back, 0, 3)
    np.testing.assert_allclose(nodes[:, :, :n], apart(np.fft.irfft(expected)), rtol=0, atol=1e-15)


def test_rows_that_others_do_are_left_alone():
    taps = np.random.default_rng(1).standard_normal((5, 128))
    nodes, every = forth(taps, 128, 1, 2), forth(taps, 128)
    np.testing.assert_array_equal(nodes[1:3], every[1:3])
    assert np.isnan(nodes[[0, 3, 4]]).all()
    turns, before = Turns(128), every.copy()
    to_taps(every, turns.cuts, turns.of_cuts, turns.back, 3, 1)
    np.testing.assert_array_equal(every[[0, 1, 2, 4]], before[[0, 1, 2, 4]])
    np.testing.assert_allclose(every[3, :, :64], apart(taps)[3], rtol=0, atol=1e-15)


@pytest.mark.parametrize("shape", [(3,), (2, 5), (4, 2, 7)])
def test_arrays_begin_with_a_cache_line(shape):
    rooms = [aligned(shape) for _ in range(20)]
    assert all(x.ctypes.data % 64 == 0 and x.shape == shape and x.flags.c_contiguous for x in rooms)
    for number, x in enumerate(rooms):
        x[...] = number
    assert all((x == number).all() for number, x in enumerate(rooms))
