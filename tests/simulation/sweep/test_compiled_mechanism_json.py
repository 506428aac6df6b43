"""What the simulation runs of mechanisms, in the JSON of stores and back, to the bit."""

import functools
import itertools
import json

import numpy as np
import pytest

import dpfast as dp
from dpfast.mechanisms.compiled_matrix_mechanism import CompiledMatrixMechanism
from dpfast.mechanisms.serialization.parts import OPERATORS
from dpfast.simulation.mixed_study import MixedStudy
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


CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [0, 1])
F = dp.Filter([1], [1, -0.5])
OTHER_NOISE = {
    "blocks": lambda: dp.block_sums(F, dp.Privacy(1), CHAIN, lag=3),
    "levels": lambda: dp.block_sums(F, dp.Privacy(1), CHAIN, lag=3, length=[2, 4]),
    "blocks over a horizon": lambda: dp.block_sums(dp.running_sum(20), dp.Privacy(1), CHAIN),
    "posterior mean": lambda: dp.block_sums(F, dp.Privacy(1), CHAIN, length=3, receiver="bayes"),
    "posterior mean over a horizon": lambda: dp.block_sums(
        dp.running_sum(20), dp.Privacy(1), CHAIN, length=3, lag=2, receiver="bayes"
    ),
    "real": lambda: dp.block_sums(F, dp.Privacy(1), dp.ARMA([1], mean=3), unit=0.1),
    "response": lambda: dp.randomized_response(F, dp.Privacy(1), CHAIN),
    **{x: functools.partial(dp.input_perturbation, F, dp.Privacy(1, 0.01), noise=x) for x in ("laplace", "canonical")},
    "shared noise over a horizon": lambda: dp.shared_noise(
        dp.running_sum(20), dp.Privacy(2), group=(2, 2, 2), slack=(1, 2, 2)
    ),
    "integers over a horizon": lambda: dp.input_perturbation(dp.running_sum(20), dp.Privacy(1), noise="best", unit=0.5),
}


@pytest.mark.parametrize("name", OTHER_NOISE)
def test_links_with_other_noise_are_kept_to_the_bit(name):
    link = OTHER_NOISE[name]().compiled()
    there = read_compiled(json.loads(json.dumps(compiled_content(link))))
    assert same(there, link)
    errors = [MixedStudy(CHAIN.compiled(), (x,), 0, 20).squared_errors(4, 1, 1) for x in (link, there)]
    np.testing.assert_array_equal(*errors)


def test_a_posterior_mean_without_a_horizon_is_written_as_before_it_could_end():
    content = [compiled_content(OTHER_NOISE[f"posterior mean{x}"]().compiled()) for x in ("", " over a horizon")]
    receivers = [next(x for x in c if isinstance(x, list) and x[0] == "PosteriorReceiver") for c in content]
    assert [len(x[1]) for x in receivers] == [13, 14]
    assert receivers[1][1][-1] == 20


def test_the_names_in_stores_are_those_of_all_stores_before():
    """A class may be renamed; what a store has written stays readable."""
    names = "Link LinearReceiver SmootherReceiver FeedbackReceiver Equalizer Factors MatrixLink Convolution Dense"
    names = [*names.split(), "Sparse", "BufferedToeplitz", "DecayedPrefixes", "TreeEstimator", "SparseDecoder"]
    names += [
        "BlockLink",
        "LatticeLink",
        "LaplaceLink",
        "ResponseLink",
        "Block",
        "SharedNoise",
        "TreeNoise",
        "KalmanReceiver",
    ]
    names += [
        "Response",
        "PosteriorReceiver",
        "Posterior",
        "PosteriorTable",
        "AdaptiveLink",
        "FollowerReceiver",
        "Partition",
    ]
    names += ["CausalTree", "TreeLeastSquares", "GrowingStrategy", "GrowingReconstruction"]
    names += ["ChannelsLink", "BlockChannelsLink", "StateSpace", "tuple"]
    assert list(module._KINDS) == names
    assert set(OPERATORS.values()) < set(module._KINDS.values())
