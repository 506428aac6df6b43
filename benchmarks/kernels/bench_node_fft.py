"""The transforms that designs of several streams are made of, beside those of NumPy."""

import numpy as np
import pytest

from benchmarks.harness.race import Contestant, race_on_one_core
from dpfast._kernels.matrix_tiles import aligned, make_room
from dpfast._kernels.node_fft import Turns, to_nodes, to_taps

ROWS = 36  # entries of a product of six streams and six outputs


@pytest.mark.parametrize("size", [1024, 4096, 16384])
@pytest.mark.benchmark(group="several streams")
def bench_node_fft(benchmark, size):
    """Forth from causal taps, and back; NumPy writes into arrays that it is given."""
    turns, taps, nodes = Turns(size), aligned((ROWS, 2, size // 4)), make_room(ROWS, 1, size // 2 + 1)
    taps[...] = np.random.default_rng(0).standard_normal(taps.shape)
    padded, spectra = np.zeros((ROWS, size)), np.empty((ROWS, size // 2 + 1), complex)
    padded[:, : size // 2] = np.moveaxis(taps, 1, 2).reshape(ROWS, -1)
    back = np.empty_like(padded)

    def subject():
        for _ in range(10):
            to_nodes(taps, turns.cuts, turns.of_cuts, turns.forth, 0, ROWS, nodes)
            to_taps(nodes, turns.cuts, turns.of_cuts, turns.back, 0, ROWS)

    def numpy_fft():
        for _ in range(10):
            np.fft.rfft(padded, out=spectra)
            np.fft.irfft(spectra, out=back)

    subject()
    numpy_fft()
    np.testing.assert_allclose(nodes[:, 0, : size // 2], back[:, ::2], atol=1e-13)
    samples = 10 * ROWS * size
    references = {"numpy": Contestant(numpy_fft, samples)}
    race_on_one_core(benchmark, f"transforms of {size}", np.float64, Contestant(subject, samples), references)
