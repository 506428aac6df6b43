"""Mechanisms of several streams in files: there and back to the bit, and refused where they were changed."""

import json
import math

import numpy as np
import pytest
from helpers.mechanism_files import stamped, written

import dpfast as dp
from dpfast.mechanisms.guarantee_text import describe

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])
CHANGES = dp.Privacy(math.log(3), 0.05, adjacency="one_input", max_change=[1, 2, 3], max_events=2)
COUNTS = (
    dp.ARMA([1.2], [1, -0.9], mean=5),
    dp.ARMA([2.0], [1, -0.7], mean=3, source="public"),
    dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5]),
)
TOGETHER = dp.VectorARMA([np.diag([0.5, 0.5, 0.8])], mean=[1, -2, 0], source="public")
FITTED = dp.VectorARMA.fit(TOGETHER.sample(1, 500, seed=1), 2, source="public")
WHITE = dp.VectorARMA(np.zeros((0, 3, 3)), innovation_covariance=np.diag([1.0, 2.0, 3.0]))
LMMSE = dp.lmmse(TARGET, CHANGES, COUNTS, lag=3, tolerance=1e-2)


def shared(models):
    parts = (TARGET, LMMSE.prefilter, LMMSE.receiver)
    target, *filters = (dp.FilterMatrix.from_state_space(*x.state_space()) for x in parts)
    return dp.ChannelsMechanism("shared", target, CHANGES, *filters, models=models, lag=3)


def gains():
    """Without states, and in state space all the same."""
    one = dp.FilterMatrix.from_state_space(np.zeros((0, 0)), np.zeros((0, 3)), np.zeros((3, 0)), np.eye(3))
    return dp.ChannelsMechanism("gains", one, CHANGES, one, one)


MADE = {
    "zero forcing": lambda: dp.zero_forcing(TARGET, CHANGES),
    "LMMSE": lambda: LMMSE,
    "a shared state": lambda: shared(TOGETHER),
    "a fit": lambda: shared(FITTED),
    "white inputs": lambda: shared(WHITE),
    "gains": gains,
    "output perturbation": lambda: dp.output_perturbation(dp.total(2), dp.Privacy(1, 1e-6, adjacency="each_input")),
    "one input": lambda: dp.zero_forcing(dp.FilterMatrix([[SLOW], [QUICK]]), dp.Privacy(1, 1e-6)),
    "blocks": lambda: dp.block_sums(
        TARGET, dp.Privacy(1, adjacency="one_input"), COUNTS, lag=2, unit=[0.5, None, None]
    ),
    "blocks, an input left out": lambda: dp.block_sums(TARGET, dp.Privacy(1, adjacency="each_input"), COUNTS, lag=2),
}


def text_of(made, tmp_path):
    dp.save(made, tmp_path / "mechanism.json")
    return (tmp_path / "mechanism.json").read_text()


@pytest.mark.parametrize("name", MADE)
def test_what_is_loaded_is_what_was_saved(name, tmp_path):
    made = MADE[name]()
    text = text_of(made, tmp_path)
    loaded = dp.load(tmp_path / "mechanism.json")
    assert type(loaded) is type(made)
    assert json.loads(text)["version"] == 5
    for attribute in ("name", "target", "privacy", "lag", "options", "ideal_mse", "lower_bound_mse", "predicted_mse"):
        assert getattr(loaded, attribute) == getattr(made, attribute), attribute
    assert loaded.target.shares_states == made.target.shares_states
    if isinstance(made.models, dp.VectorARMA):
        assert loaded.models == made.models
    elif made.models is not None:
        assert [(x.mean, x.source, x.shaping) for x in loaded.models] == [
            (x.mean, x.source, x.shaping) for x in made.models
        ]
    assert loaded.summary() == made.summary()
    u = np.random.default_rng(0).standard_normal((2, made.target.shape[1], 50))
    here, there = made.simulate(u, seed=1), loaded.simulate(u, seed=1)
    np.testing.assert_array_equal(here.estimate, there.estimate)
    np.testing.assert_array_equal(here.privatized, there.privatized)
    assert text_of(loaded, tmp_path) == text


def changed(value, path, new):
    *above, last = path
    inner = value["mechanism"]
    for key in above:
        inner = inner[key]
    if new is None:
        del inner[last]
    else:
        inner[last] = new


OF_FILTERS = [
    (["noise_std"], 0.1, "field mechanism.noise_std must be .* as its filters or blocks make it, got 0.1"),
    (["predicted_mse"], 0.1, "field mechanism.predicted_mse must be .*: the file was changed; design and save anew"),
    (["predicted_mse"], None, "field mechanism.predicted_mse must be there"),
    (["privacy", "epsilon"], 9.0, "field mechanism.noise_std must be"),
    (["privacy", "adjacency"], "each_input", "field mechanism.noise_std must be"),
    (["privacy", "adjacency"], "nobody", "field mechanism.privacy cannot be used: adjacency must be"),
    (["privacy", "max_change"], [1, 2], "max_change must"),
    (["prefilter", "0,0", "taps"], [0.01], "field mechanism.predicted_mse must be"),
    (["prefilter", "0,0", "taps"], [9.0], "field mechanism.noise_std must be"),
    (["prefilter", "0,0", "taps"], ["x"], "field mechanism.prefilter.0,0.taps must hold real numbers"),
    (["prefilter", "7,0"], {}, "field mechanism.prefilter.7,0 must not be there"),
    (["target", "shape"], [2, 200], r"field mechanism.target.shape must be two integers from 1 to 100"),
    (["target", "shape"], [2], r"field mechanism.target.shape must be two integers from 1 to 100"),
    (["models", "2"], None, "models must be a sequence of 3 models"),
    (["models", "1", "kind"], "mine", "field mechanism.models.1.kind must be one of"),
    (["models", "0", "shaping", "recursion"], [1.0, -2.0], "field mechanism.models.0.shaping"),
    (["options", "tolerance"], [1], "field mechanism.options.tolerance must be a number, a word or null"),
    (["more"], 1, "field mechanism.more must not be there"),
    (["lag"], -1, "field mechanism.lag must be an integer, at least 0"),
]


def refused(made, field, new, tmp_path, words):
    value = json.loads(text_of(made, tmp_path))
    changed(value, field, new)
    path = written(stamped(value), tmp_path)
    with pytest.raises(dp.DataError, match=words):
        dp.load(path)


@pytest.mark.parametrize(("path", "new", "words"), OF_FILTERS)
def test_files_that_were_changed_are_refused(path, new, words, tmp_path):
    refused(LMMSE, path, new, tmp_path, words)


OF_BLOCKS = [
    (["predicted_mse"], 0.1, "field mechanism.predicted_mse must be"),
    (["entries", "0,0"], None, "field mechanism.predicted_mse must be|entries must"),
    (["entries", "0,0", "privacy", "epsilon"], 2.0, "field mechanism.entries.0,0 cannot be used: .*noise_std must be"),
    (["entries", "0,0", "noise_std"], 0.1, "field mechanism.entries.0,0 cannot be used: field mechanism.noise_std"),
    (["entries", "0,0", "target", "taps"], [0.1], "field mechanism.entries.0,0"),
    (["entries", "0,0", "model", "mean"], 6.0, "field mechanism.entries.0,0"),
    (["models", "0", "mean"], 6.0, "field mechanism.entries.0,0 must be block sums for the model of the input"),
    (["target", "0,0", "taps"], [0.1], "field mechanism.entries.0,0 must be block sums for the target's entry"),
    (["entries", "0,7"], {}, "field mechanism.entries.0,7 must not be there"),
    (["privacy", "epsilon"], 0.5, "entries must spend at most epsilon 0.5"),
    (["models"], {"kind": "vector-arma"}, "field mechanism.models.d must be there"),
]


@pytest.mark.parametrize(("path", "new", "words"), OF_BLOCKS)
def test_files_of_block_sums_that_were_changed_are_refused(path, new, words, tmp_path):
    refused(MADE["blocks"](), path, new, tmp_path, words)


def test_block_sums_have_a_model_for_each_input(tmp_path):
    value = json.loads(text_of(MADE["blocks"](), tmp_path))
    value["mechanism"]["models"] = json.loads(text_of(shared(TOGETHER), tmp_path))["mechanism"]["models"]
    path = written(stamped(value), tmp_path)
    with pytest.raises(dp.DataError, match=r"field mechanism\.models must be a model for each input with block sums"):
        dp.load(path)


@pytest.mark.parametrize("name", ["LMMSE", "blocks"])
def test_a_file_is_described_with_what_one_person_may_change(name, tmp_path):
    text_of(MADE[name](), tmp_path)
    text = " ".join(describe(dp.load(tmp_path / "mechanism.json")).split())
    assert "one event of a person is at one of the 3 inputs" in text
    assert f"of size at most {'1, 2, 3' if name == 'LMMSE' else '1'}." in text
