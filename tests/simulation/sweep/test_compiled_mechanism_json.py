"""What the simulation runs of mechanisms, in the JSON of stores and back, to the bit."""

import itertools
import json

import numpy as np
import pytest

import dpfast as dp
from dpfast.mechanisms.compiled_matrix_mechanism import CompiledMatrixMechanism
from dpfast.mechanisms.serialization.parts import OPERATORS
from dpfast.simulation.sweep import compiled_mechanism_json as module
from dpfast.simulation.sweep.compiled_mechanism_json import compiled_content, read_compiled


def same(a, b):
    if isinstance(a, tuple):
        return type(a) is type(b) and all(map(same, a, b))
    return np.array_equal(a, b) and np.shape(a) == np.shape(b) if isinstance(a, np.ndarray) else a == b


@pytest.mark.parametrize(
    ("design", "noise"),
    [
        *itertools.product(["binary_tree", "decayed_sum", "compressive"], ["gaussian", "laplace"]),
        *(("buffered_toeplitz", "gaussian"), ("square_root", "gaussian")),
    ],
)
def test_links_are_kept_to_the_bit(design, noise):
    options = {"n_measurements": 3} if design == "compressive" else {}
    options |= {"noise": noise} if noise != "gaussian" else {}
    mechanism = getattr(dp, design)(dp.running_sum(8), dp.Privacy(1, 1e-6), **options)
    link = mechanism.compiled()
    there = read_compiled(json.loads(json.dumps(compiled_content(link))))
    assert isinstance(there, CompiledMatrixMechanism)
    assert same(there, link)
    u = np.random.default_rng(1).normal(size=(8, 8))
    for a, b in zip(there.run(u, 3, 0), link.run(u, 3, 0), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_names_in_stores_are_those_of_all_stores_before():
    """A class may be renamed; what a store has written stays readable."""
    names = "Link LinearReceiver SmootherReceiver FeedbackReceiver Equalizer Factors MatrixLink Convolution Dense"
    names = [*names.split(), "Sparse", "BufferedToeplitz", "DecayedPrefixes", "TreeEstimator", "SparseDecoder"]
    assert list(module._KINDS) == names
    assert set(OPERATORS.values()) < set(module._KINDS.values())
