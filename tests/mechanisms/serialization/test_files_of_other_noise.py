"""Saved mechanisms with other noise than Gaussian: the same bits come back, and what a forger changes is refused."""

import copy
import dataclasses
import pickle
from pathlib import Path

import numpy as np
import pytest
from helpers.designs import MadeOnce
from helpers.mechanism_files import documents, forged, through, written
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dp
from dpfast.mechanisms.serialization.mechanism_file import to_text

TARGET, SUM = dp.Filter([1, 0.5], [1, -0.8]), dp.running_sum(9)
CHAIN = dp.MarkovChain([[0.8, 0.2], [0.4, 0.6]], [0.0, 1.0], source="public")
REAL = dp.ARMA([1], [1, -0.5], mean=3)
PURE, SMALL = dp.Privacy(1), dp.Privacy(1, 1e-3)
FOUR = {"length": 4, "phase": 3}
NESTED = {"length": (2, 6), "shares": (0.75, 0.25)}
SIGNS = ((1, 0), (0, -1), (0, 0), (0, 1))
MADE = {
    "blocks": lambda: dp.block_sums(TARGET, PURE, CHAIN, lag=2, **FOUR),
    "nested": lambda: dp.block_sums(TARGET, SMALL, CHAIN, lag=5, **NESTED),
    "horizon": lambda: dp.block_sums(dp.running_sum(10), PURE, REAL, length=(2, 4)),
    "rounded": lambda: dp.block_sums(TARGET, dp.Privacy(2), REAL, unit=0.25, length=3),
    "smoother": lambda: dp.block_sums(TARGET, PURE, CHAIN, lag="smoother", length=2),
    "signed": lambda: dp.block_sums(TARGET, SMALL, CHAIN, lag=2, weights=SIGNS, phase=2),
    "signed in turn": lambda: dp.block_sums(TARGET, PURE, REAL, lag=5, weights=SIGNS, releases=(2, 4), unit=0.5),
    "signed horizon": lambda: dp.block_sums(dp.Toeplitz.of(TARGET, 10), PURE, CHAIN, weights=SIGNS, releases=(4, 3)),
    "response": lambda: dp.randomized_response(TARGET, SMALL, CHAIN, lag=2),
    "late response": lambda: dp.randomized_response(TARGET, PURE, CHAIN, lag=None),
    "geometric": lambda: dp.input_perturbation(TARGET, PURE, noise="geometric"),
    "canonical": lambda: dp.input_perturbation(TARGET, SMALL, noise="canonical"),
    "staircase": lambda: dp.input_perturbation(TARGET, dp.Privacy(3, max_change=4), noise="staircase"),
    "Laplace": lambda: dp.input_perturbation(TARGET, PURE, noise="laplace"),
    "rounded input": lambda: dp.input_perturbation(TARGET, dp.Privacy(3), noise="best", unit=0.25),
    "geometric horizon": lambda: dp.input_perturbation(SUM, PURE, noise="geometric"),
    "canonical horizon": lambda: dp.input_perturbation(SUM, SMALL, noise="canonical"),
    "staircase horizon": lambda: dp.input_perturbation(SUM, dp.Privacy(3), noise="staircase", unit=0.25),
    "Laplace horizon": lambda: dp.input_perturbation(SUM, PURE, noise="laplace"),
    "causal tree": lambda: dp.tree(SUM, PURE, branching=3, levels=2),
    "whole tree": lambda: dp.tree(SUM, PURE, branching=3, subtraction=True, noise="geometric"),
    "tree of a decay": lambda: dp.tree(0.8 ** np.arange(9), PURE, branching=2, subtraction=True),
    "whole numbers": lambda: dp.optimal_factorization(SUM, PURE, CHAIN, lag=2, noise="geometric", strategy_unit=0.125),
    "shared horizon": lambda: dp.shared_noise(SUM, PURE, group=(2, 3), slack=(2, 3)),
    "shared, rounded": lambda: dp.shared_noise(SUM, dp.Privacy(3), group=4, slack=2, unit=0.5),
    "shared, received": lambda: dp.shared_noise(SUM, PURE, group=(2, 2), slack=(2, 3)).with_receiver(CHAIN, lag=2),
    "factors": lambda: dp.optimal_factorization(SUM, PURE, noise="laplace", strategy="dense"),
}
EXAMPLES = MadeOnce(MADE)
VERSIONS = dict.fromkeys(["Laplace horizon", "factors"], 2)  # there were such before
VERSIONS |= dict.fromkeys(["causal tree", "whole tree", "tree of a decay", "whole numbers"], 4)
VERSIONS |= dict.fromkeys(["shared horizon", "shared, rounded", "shared, received"], 4)
VERSIONS |= dict.fromkeys(["signed", "signed in turn", "signed horizon"], 4)


def assert_same(mechanism, other):
    """The same bits in simulation, figures and words."""
    u = np.random.default_rng(0).integers(0, 2, (3, mechanism.horizon or 40)) * 1.0
    for before, after in zip(mechanism.simulate(u, seed=5), other.simulate(u, seed=5), strict=True):
        np.testing.assert_array_equal(before, after)
    assert (type(other), repr(other)) == (type(mechanism), repr(mechanism))
    assert (other.summary(), other.sources) == (mechanism.summary(), mechanism.sources)
    for name in ("noise_std", "predicted_mse", "ideal_mse", "lower_bound_mse", "lag", "horizon", "options"):
        assert getattr(other, name) == getattr(mechanism, name)
    assert [other.predict(x) for x in (CHAIN, REAL)] == [mechanism.predict(x) for x in (CHAIN, REAL)]


# --- there and back -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MADE)
def test_a_mechanism_comes_back_to_the_bit(name, tmp_path):
    mechanism = EXAMPLES[name].with_sources(target="public")
    loaded = through(mechanism, tmp_path)
    assert_same(mechanism, loaded)
    assert to_text(loaded) == to_text(mechanism)
    document = documents(mechanism, tmp_path)
    assert document["version"] == VERSIONS.get(name, 3)


@pytest.mark.parametrize("name", MADE)
def test_copies_and_pickles_are_the_same_and_as_frozen(name):
    for other in (pickle.loads(pickle.dumps(EXAMPLES[name])), copy.deepcopy(EXAMPLES[name])):
        assert_same(EXAMPLES[name], other)
        arrays = [x for x in vars(getattr(other, "receiver", other)).values() if isinstance(x, np.ndarray)]
        assert not any(x.flags.writeable for x in arrays)


poles, levels = st.floats(-0.95, 0.95), st.sampled_from([[0, 1], [0, 2], [-0.5, 0.5]])
coins = st.builds(lambda p, x: dp.MarkovChain([[1 - p, p], [0.3, 0.7]], x), st.floats(0.05, 0.95), levels)
chains = st.floats(0.1, 0.5).map(
    lambda p: dp.MarkovChain([[1 - p, p, 0], [0.2, 0.5, 0.3], [p / 2, p / 2, 1 - p]], [0, 1, 3])
)
counts = st.builds(lambda a, mean: dp.ARMA([1], [1, -a], mean=mean), poles, st.floats(-5, 5))
targets = st.builds(lambda b, a: dp.Filter([1, b], [1, -a]), poles, poles)


privacies = st.builds(
    dp.Privacy,
    st.floats(0.05, 8),
    st.sampled_from([0, 1e-9, 0.01]),
    max_change=st.just(6),
    max_events=st.integers(1, 3),
)
noises = st.sampled_from(["best", "geometric", "staircase"])


@st.composite
def perturbed(draw, target, privacy):
    """Noise on inputs."""
    noise, unit = draw(st.one_of(noises, st.just("laplace"))), draw(st.sampled_from([None, 0.25, 0.7]))
    return dp.input_perturbation(target, privacy, noise=noise, unit=None if noise == "laplace" else unit)


@st.composite
def summed(draw, target, privacy, model):
    """Sums of blocks, of one level or two."""
    first = draw(st.integers(1, 5))
    given = {"length": first, "lag": draw(st.integers(0, 9)), "noise": draw(noises)}
    if draw(st.booleans()):
        given["length"] = first, first * draw(st.integers(2, 4))
        given["shares"] = draw(st.sampled_from([None, (0.5, 0.5), (0.1, 0.9)]))
    if target.horizon is None:
        given["phase"] = draw(st.integers(0, first - 1))
    if model.levels is None:
        given["unit"] = draw(st.sampled_from([None, 0.5]))
    return dp.block_sums(target, privacy, model, **given)


@st.composite
def mechanisms(draw):
    target, privacy = draw(st.one_of(targets, targets.map(lambda x: dp.Toeplitz.of(x, 20)))), draw(privacies)
    kind = draw(st.sampled_from(["perturbed", "summed", "response"]))
    if kind == "perturbed":
        return draw(perturbed(target, privacy))
    if kind == "response":
        return dp.randomized_response(draw(targets), privacy, draw(coins), lag=draw(st.sampled_from([None, 0, 4])))
    return draw(summed(target, privacy, draw(st.one_of(coins, chains, counts))))


# Units are drawn without a look at the model
COARSE = pytest.mark.filterwarnings("ignore:the prediction takes .* for white noise:dpfast.AccuracyWarning")


@COARSE
@settings(max_examples=8)
@given(mechanisms())
def test_any_mechanism_comes_back_to_the_bit(tmp_path_factory, mechanism):
    assert_same(mechanism, through(mechanism, tmp_path_factory.mktemp("files")))


@COARSE
@pytest.mark.long
@settings(max_examples=300)
@given(mechanisms())
def test_many_mechanisms_come_back_to_the_bit(tmp_path_factory, mechanism):
    assert_same(mechanism, through(mechanism, tmp_path_factory.mktemp("files")))


def every_field(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from every_field(inner)


@pytest.mark.parametrize("name", MADE)
def test_every_field_is_in_the_page_on_the_format(name, tmp_path):
    page = (Path(__file__).parents[3] / "docs/reference/mechanism-file.md").read_text(encoding="utf-8")
    content = documents(EXAMPLES[name], tmp_path)
    of_blocks, of_strategies = {"lag", "length", "shares", "noise", "unit", "phase"}, {"strategy", "strategy_unit"}
    known = of_blocks | of_strategies | {"weights", "releases"} | {"branching", "levels", "subtraction"}
    known |= {"group", "slack"}
    assert {*content["mechanism"].pop("options")} <= known
    del content["mechanism"]["sources"]  # names of inputs
    assert [x for x in every_field(content) if f"`{x}`" not in page] == []


# --- forged ---------------------------------------------------------------------------------------


def twice(rows):
    return [[2 * x for x in row] for row in rows]


SPENT = "blocks cannot be used: shares must be above 0, at most 1 together, and as many as noise_kinds and lengths"
WEAK = "noise_std must be .*, as the sensitivity of the .* makes it, got .*, below what the guarantee takes"
FORGED = [
    # less noise than the guarantee takes
    ("blocks", {"noise_std": 0.1}, WEAK),
    ("blocks", {"privacy.epsilon": 0.5}, WEAK),
    ("blocks", {"privacy.max_change": 2.0}, WEAK),
    ("blocks", {"privacy.max_events": 2}, WEAK),
    ("rounded", {"blocks.unit": 0.5}, WEAK),
    ("response", {"privacy.epsilon": 0.5}, WEAK),
    ("response", {"noise.levels": [0.0, 2.0]}, WEAK),
    ("geometric", {"noise.unit": 0.5}, WEAK),
    ("staircase", {"noise.kind": "geometric"}, WEAK),
    ("geometric horizon", {"unit": 0.5}, WEAK),
    ("geometric horizon", {"noise": "laplace"}, WEAK),
    ("shared horizon", {"slacks": [0, 3]}, "noise_std must be"),
    ("shared horizon", {"slacks": [2, 3, 2]}, "slacks must be as many as groups, 2, got 3"),
    ("shared horizon", {"groups": [2, 1]}, "groups must be an integer, at least 2"),
    ("shared horizon", {"groups": [2.5, 3]}, "groups must be an array of integers"),
    ("shared horizon", {"noise": "geometric"}, r"groups and slacks must be \(\) with geometric noise"),
    ("canonical", {"privacy.delta": 0}, "noise must not be 'canonical' here: it needs a delta above 0"),
    ("canonical", {"privacy.max_change": 2}, "noise must not be 'canonical' here: it hides a change of one unit"),
    ("canonical horizon", {"privacy.delta": 0.0}, "noise must not be 'canonical' here"),
    ("geometric", {"prefilter.taps": [0.5]}, "prefilter must be 1 with geometric noise, which is on the inputs"),
    ("response", {"prefilter.taps": [1.0, 0.5]}, "prefilter must be 1 with randomised response"),
    # shares of more than there is
    ("nested", {"blocks.shares": [0.75, 0.75]}, f"{SPENT}, 2, got .*0.75, 0.75"),
    ("nested", {"blocks.shares": [0.75, 0.2500001]}, SPENT),
    ("nested", {"blocks.shares": [1.0, 0.0]}, SPENT),
    ("nested", {"blocks.shares": [1.5, -0.5]}, SPENT),
    ("blocks", {"blocks.shares": [2.0]}, SPENT),
    ("blocks", {"blocks.shares": [0.5, 0.5]}, SPENT),
    ("blocks", {"blocks.shares": []}, "blocks.shares must not be empty"),
    ("blocks", {"blocks.kinds": "geometric geometric"}, SPENT),
    ("blocks", {"blocks.kinds": ""}, SPENT),
    # sums that an event would change two of, and others than were designed
    ("signed", {"blocks.signs": [[1, 1], [0, -1], [0, 0], [0, 1]]}, "at most one number other than 0 in a row"),
    ("signed", {"blocks.signs": [[2, 0], [0, -1], [0, 0], [0, 1]]}, "weights must be numbers 0, 1 or -1"),
    ("signed", {"blocks.signs": [[1, 0], [0, -1], [0, 0], [0.5, 0]]}, "weights must be numbers 0, 1 or -1"),
    ("signed", {"blocks.signs": [[1, 0], [-1, 0], [0, 0], [1, 0]]}, "not 0 in each column"),
    ("signed", {"blocks.signs": [[1, 0], [0, -1], [0, 1]]}, r"of the lengths \[4, 4\], got a shape \(3, 2\)"),
    ("signed", {"blocks.signs": [[1], [-1], [0], [1]]}, r"of the lengths \[4, 4\], got a shape \(4, 1\)"),
    ("signed", {"blocks.signs": [1, 0, 0, 1]}, "blocks.signs must have 2 dimensions"),
    ("signed", {"blocks.signs": [[1, 0], [0, 1], [0, 0], [0, 1]]}, "predicted_mse must be"),
    ("signed", {"blocks.signs": [[1] + [0] * 16] * 4}, "blocks.signs must have at most 4,096 rows of 16 numbers"),
    ("signed", {"blocks.shares": [0.5, 0.5]}, SPENT),
    ("signed", {"privacy.epsilon": 0.5}, WEAK),
    ("blocks", {"blocks.signs": [[1, 0], [0, -1], [0, 0], [0, 1]]}, r"of the lengths \[4\], got a shape"),
    ("blocks", {"blocks.offsets": [1]}, "blocks"),
    ("signed in turn", {"blocks.offsets": [0, 2]}, "predicted_mse must be"),
    ("signed in turn", {"blocks.offsets": [2, 4]}, r"blocks.offsets must be 2 from 0 to 3, got"),
    ("signed in turn", {"blocks.offsets": [-1, 0]}, r"blocks.offsets must be 2 from 0 to 3, got"),
    ("signed in turn", {"blocks.offsets": [0, 0]}, r"blocks.offsets must be 2 from 0 to 3, got"),
    ("signed in turn", {"blocks.offsets": [2]}, r"blocks.offsets must be 2 from 0 to 3, got"),
    ("signed in turn", {"blocks.offsets": [2, 1]}, "blocks.weights must be"),
    # other words
    ("blocks", {"blocks.kinds": "gaussian"}, "blocks.kinds must be one of 'geometric', 'canonical', 'staircase'"),
    ("blocks", {"blocks.kinds": 3}, "blocks.kinds must be text"),
    ("geometric", {"noise.kind": "gaussian"}, "noise.kind must be one of 'laplace', 'geometric'"),
    ("geometric", {"noise.kind": "randomised response"}, "noise.levels must be two that grow"),
    ("geometric", {"noise.levels": [0.0, 1.0]}, "noise.levels must be two that grow for randomised response, and none"),
    ("response", {"noise.levels": [1.0, 0.0]}, "noise.levels must be two that grow"),
    ("response", {"noise.levels": [0.0, 0.0]}, "noise.levels must be two that grow"),
    ("response", {"noise.levels": []}, "noise.levels must be two that grow"),
    ("response", {"noise.unit": 0.5}, "noise.unit must be null for noise that is not on the integers"),
    ("Laplace", {"noise.unit": 0.5}, "noise.unit must be null for noise that is not on the integers"),
    ("geometric", {"noise.unit": "1"}, "noise.unit must be a finite number above 0"),
    ("blocks", {"blocks.unit": -1}, "blocks.unit must be a finite number above 0"),
    ("blocks", {"blocks.unit": True}, "blocks.unit must be a finite number above 0"),
    ("geometric horizon", {"unit": 0}, "mechanism.unit must be a finite number above 0"),
    ("blocks", {"blocks.unit": 0.3}, "unit must divide all differences of the model's levels"),
    ("blocks", {"model.levels": [0.0, 0.37]}, "max_change must be a multiple of 0.37"),
    ("blocks", {"model": None}, "mechanism.model must be there with blocks"),
    ("blocks", {"blocks.more": 1}, "field mechanism.blocks.more must not be there"),
    # blocks that do not fit
    ("nested", {"blocks.lengths": [2, 5]}, r"blocks.lengths must be nested, .* got \[2, 5\]"),
    ("nested", {"blocks.lengths": [6, 2]}, "blocks.lengths must be nested"),
    ("nested", {"blocks.lengths": [2, 2]}, "blocks.lengths must be nested"),
    ("nested", {"blocks.lengths": [0, 6]}, "blocks.lengths must be of as many levels as there are gains for"),
    ("nested", {"blocks.lengths": [2, 12]}, "blocks.weights must be as many as whole blocks of 12 samples have"),
    ("blocks", {"blocks.lengths": [5]}, "blocks.weights must be a row for each sample of the cycle of the gains"),
    ("blocks", {"blocks.lengths": [2**40]}, "blocks.weights must be a row for each sample"),
    ("blocks", {"blocks.lengths": [2.5]}, "blocks.lengths must be an array of integers"),
    ("blocks", {"blocks.gains": lambda x: 2 * x}, "blocks.weights must be a row for each sample of the cycle"),
    ("blocks", {"blocks.gains": twice}, "predicted_mse must be .* error of these blocks"),
    ("blocks", {"blocks.weights": lambda x: x[:-1]}, "blocks.weights must be a row for each sample of the cycle"),
    ("blocks", {"blocks.advance": [[1.0]]}, "blocks.weights must be rows of 2 numbers, for 1 states"),
    ("blocks", {"blocks.advance": [[1.0] * 1001]}, "blocks.advance must have at most 65,536 rows of 1,000 numbers"),
    ("blocks", {"blocks.advance": twice}, "predicted_mse must be"),
    ("blocks", {"blocks.phase": 4}, "blocks.phase must be an integer, at least 0 and at most 3"),
    ("horizon", {"blocks.phase": 1}, "blocks must be for all 10 steps from the first on"),
    ("horizon", {"target.coefficients": [1.0] * 12}, "blocks must be for all 12 steps from the first on"),
    ("horizon", {"target.coefficients": [1.0] * 9 + [2.0]}, "target cannot be used: factors must be of a filter"),
    ("horizon", {"target.recursion.recursion": [1.0, -2.0]}, "target cannot be used: factors must be of a filter"),
    ("blocks", {"blocks.lag": 1}, "blocks.weights must be 0 of what is released when an estimate is out already"),
    ("blocks", {"blocks.lag": 9}, "blocks.weights must be rows of"),
    ("blocks", {"blocks.lag": 10**6}, "blocks.lag must be an integer"),
    ("blocks", {"blocks.mean": 9.0}, "predicted_mse must be"),
    ("blocks", {"predicted_mse": 0.1}, "predicted_mse must be .* error of these blocks"),
    ("blocks", {"ideal_mse": 0.1}, "field mechanism.ideal_mse must be"),
    ("blocks", {"lower_bound_mse": 0.1}, "field mechanism.lower_bound_mse must be"),
    ("blocks", {"target.taps": [1.0] * 15_000}, "target and model must have at most 8,192 states together"),
    ("blocks", {"blocks.mean": float("nan")}, "numbers must be finite, got NaN"),
    ("nested", {"blocks.shares": [0.75, float("nan")]}, "numbers must be finite, got NaN"),
]


@pytest.mark.parametrize(("name", "changes", "message"), FORGED, ids=[f"{x[0]}-{'-'.join(x[1])}" for x in FORGED])
def test_what_is_forged_is_refused_with_its_field(name, changes, message, tmp_path):
    document = forged(documents(EXAMPLES[name], tmp_path), changes)
    with pytest.raises(dp.DataError, match=message) as error:
        dp.load(written(document, tmp_path))
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["blocks", "geometric", "geometric horizon", "shared horizon"])
def test_every_field_of_noise_is_needed(name, tmp_path):
    document = documents(EXAMPLES[name], tmp_path)
    inside = {"blocks": "blocks", "geometric": "noise"}.get(name)
    for field in document["mechanism"][inside] if inside else ["noise"]:
        changed = forged(document, {})
        del (changed["mechanism"][inside] if inside else changed["mechanism"])[field]
        with pytest.raises(dp.DataError, match=f"{field} must be there"):
            dp.load(written(forged(changed, {}), tmp_path))


def test_shares_are_checked_wherever_they_come_from():
    with pytest.raises(ValueError, match="shares must be above 0, at most 1 together"):
        dataclasses.replace(EXAMPLES["nested"], shares=(1.0, 1.0))


def test_blocks_too_long_for_their_states_are_refused_before_memory_is_asked_for():
    with pytest.raises(ValueError, match=r"length must be at most 32 .* of 1002 states together, got 5,000: take sho"):
        dp.block_sums(dp.Filter(np.ones(1000) / 1000), PURE, REAL, length=5000)
    with pytest.raises(
        ValueError, match=r"target and model must have at most 8,192 states together .*, got 15,005: ta"
    ):
        dp.block_sums(dp.Filter(np.ones(15_000) / 15_000), PURE, REAL, length=1)
