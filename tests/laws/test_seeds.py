"""Seeds of all public functions: an integer, or a Generator of NumPy, which moves on."""

import inspect

import numpy as np
import pytest
from helpers import sweeps
from helpers.designs import designed

import dpfast as dp
from dpfast.mechanisms.operators.dense import Dense
from dpfast.releases.audit import known_zeros

PRIVACY = dp.Privacy(1, 1e-6)
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [0, 1])
LEVELS = dp.IndependentLevels([0, 1], [0.5, 0.5])
GAUSSIAN = dp.ARMA([1], [1, -0.5])


def mechanism():
    return designed(dp.zero_forcing, dp.Filter([1], [1, -0.9]), PRIVACY, tolerance=0.1)


def audited(seed):
    """What depends on the seed alone: the noise of releases is the operating system's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_zeros, "_VALUES", 2**13)
        return [x.hits for x in dp.audit(mechanism(), dp.Inputs(0, 20), n_runs=1000, seed=seed).findings[:1]]


COUNTER = dp.MatrixMechanism("counter", dp.running_sum(10), PRIVACY, *[Dense(np.tri(10)), Dense(np.eye(10))])
BLOCKS = dp.block_sums(dp.Filter([1]), PRIVACY, CHAIN, length=2)
COUNT = dp.unbounded_sum(PRIVACY)
CHANNELS = dp.input_perturbation(dp.total(2), dp.Privacy(1, 1e-6, adjacency="one_input"))
BLOCK_CHANNELS = dp.block_sums(dp.total(2), dp.Privacy(1, adjacency="one_input"), [CHAIN] * 2, length=2)
ADAPTIVE = dp.adaptive_blocks(dp.Filter([1]), PRIVACY, CHAIN, threshold=0.5)


DRAWN = {
    "BlockMechanism.simulate": lambda seed: BLOCKS.simulate(np.zeros((2, 10)), seed=seed).privatized,
    "MatrixMechanism.simulate": lambda seed: COUNTER.simulate(np.zeros((2, 10)), seed=seed).privatized,
    "UnboundedMechanism.simulate": lambda seed: COUNT.simulate(np.zeros((2, 10)), seed=seed).privatized,
    "AdaptiveBlockMechanism.simulate": lambda seed: ADAPTIVE.simulate(np.zeros((2, 10)), seed=seed).privatized,
    "ChannelsMechanism.simulate": lambda seed: CHANNELS.simulate(np.zeros((2, 10)), seed=seed).privatized,
    "BlockChannelsMechanism.simulate": lambda seed: BLOCK_CHANNELS.simulate(np.zeros((2, 10)), seed=seed).privatized,
    "Mechanism.simulate": lambda seed: mechanism().simulate(np.zeros((2, 10)), seed=seed).privatized,
    "MarkovChain.sample": lambda seed: CHAIN.sample(4, 50, seed=seed),
    "IndependentLevels.sample": lambda seed: LEVELS.sample(4, 50, seed=seed),
    "ARMA.sample": lambda seed: GAUSSIAN.sample(4, 50, seed=seed),
    "VectorARMA.sample": lambda seed: dp.VectorARMA([[[0.5, 0.2], [0, 0.8]]]).sample(4, 50, seed=seed),
    "monte_carlo": lambda seed: (
        dp.monte_carlo(mechanism(), CHAIN, n_streams=4, n_samples=20, seed=seed)["LZF"].stream_mse
    ),
    "evaluate": lambda seed: dp.evaluate(CHANNELS, np.zeros((2, 50)), seed=seed, draws=2).results[0].stream_mse,
    "sweep": lambda seed: [x.mse for x in sweeps.run(budget=1, seed=seed)],
    "audit": audited,
}
every_function = pytest.mark.parametrize("drawn", DRAWN.values(), ids=DRAWN)


def taking_seeds():
    """Names of all public functions and methods with an argument `seed`."""
    for name in dp.__all__:
        thing = getattr(dp, name)
        functions = inspect.getmembers(thing, inspect.isfunction) if inspect.isclass(thing) else [("", thing)]
        for inner, function in functions:
            if "seed" in inspect.signature(function).parameters and not inner.startswith("_"):
                yield f"{name}.{inner}".strip(".")


def test_no_function_that_takes_a_seed_is_left_out():
    drawn_by_none = {"Model.sample", "Constant.simulate"}  # a protocol; the same whatever the seed is
    drawn_by_none |= {"best"}  # which hands it to monte_carlo, and takes seconds
    assert set(taking_seeds()) - drawn_by_none == set(DRAWN)


@every_function
def test_a_generator_gives_one_seed_and_moves_on(drawn):
    rng = np.random.default_rng(5)
    first, then = drawn(rng), rng.bit_generator.state
    again = np.random.default_rng(5)
    np.testing.assert_array_equal(drawn(again), first)
    assert again.bit_generator.state == then
    one_number = np.random.default_rng(5)
    seed = int(one_number.integers(2**63))
    assert one_number.bit_generator.state == then
    np.testing.assert_array_equal(drawn(seed), first)


@pytest.mark.parametrize("drawn", [f for name, f in DRAWN.items() if name != "audit"], ids=[*DRAWN][:-1])
def test_another_seed_gives_other_numbers(drawn):
    rng = np.random.default_rng(5)
    assert not np.array_equal(drawn(rng), drawn(rng))
    assert not np.array_equal(drawn(1), drawn(2))
    np.testing.assert_array_equal(drawn(np.int64(1)), drawn(1))


@every_function
def test_other_seeds_are_refused_with_what_to_give(drawn):
    message = r"^seed must be an integer, at least 0, or a generator of numpy\.random\.default_rng, got "
    wrong = [None, -1, 1.0, "1", True, np.random.RandomState(1), np.random.SeedSequence(1), np.random, [1, 2]]
    for seed in wrong:
        with pytest.raises(ValueError, match=message):
            drawn(seed)
