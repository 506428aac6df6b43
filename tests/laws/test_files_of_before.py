"""Files and stores that an earlier version wrote are read to the same bits: tests/data/of_0_1_0/README.md."""

import importlib.util
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import dpfast as dp
from dpfast._support import version
from dpfast.mechanisms.serialization.mechanism_file import COMPUTED, mechanism_content
from dpfast.mechanisms.serialization.parts import OPERATORS
from dpfast.simulation.sweep import compiled_mechanism_json
from dpfast.simulation.sweep.executors import ThisProcess
from dpfast.simulation.sweep.sweep_store import SweepStore

FOLDER = Path(__file__).parents[1] / "data" / "of_0_1_0"
COMPUTED_BEFORE = json.loads((FOLDER / "computed.json").read_text())
NAMES = sorted(COMPUTED_BEFORE["mechanisms"])


def how_it_was_made():
    spec = importlib.util.spec_from_file_location("made_of_0_1_0", FOLDER / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MADE = how_it_was_made()


def stored(name):
    return json.loads((FOLDER / f"{name}.json").read_text())["mechanism"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_holds_the_same_mechanism_to_the_bit(name):
    before, now = stored(name), mechanism_content(dp.load(FOLDER / f"{name}.json"))
    assert list(before) == list(now)
    for field, value in before.items():
        if field in COMPUTED and value is not None:  # anew, in sums that depend on a machine's libraries
            assert now[field] == pytest.approx(value, rel=1e-12)
        else:
            assert now[field] == value


@pytest.mark.parametrize("name", NAMES)
def test_a_file_gives_the_same_paths(name):
    mechanism, before = dp.load(FOLDER / f"{name}.json"), COMPUTED_BEFORE["mechanisms"][name]["paths"]
    if stored(name).get("noise_std", mechanism.noise_std) != mechanism.noise_std:
        pytest.skip("the libraries of this machine round the noise otherwise")
    for was, now in zip(before, MADE.paths(mechanism), strict=True):
        if isinstance(was, list):  # of matrices: up to the rounding of a machine's libraries
            np.testing.assert_allclose(now, was, rtol=1e-12, atol=1e-12 * np.abs(was).max())
        else:
            assert now == was


@pytest.mark.parametrize("name", NAMES)
def test_a_file_predicts_the_same_errors(name):
    before = COMPUTED_BEFORE["mechanisms"][name]
    for figure, value in MADE.figures(dp.load(FOLDER / f"{name}.json")).items():
        assert value == (before[figure] if before[figure] is None else pytest.approx(before[figure], rel=1e-12))


@pytest.mark.parametrize("name", sorted(COMPUTED_BEFORE["exact"]))
def test_an_exact_form_is_the_same_to_the_bit(name):
    before = COMPUTED_BEFORE["exact"][name]
    made = dp.ExactMechanism.from_configuration(before["configuration"])
    now, was = made.configuration, before["configuration"]
    for field in COMPUTED:  # anew, in sums that depend on a machine's libraries
        value = now["mechanism"][field]
        assert value == was["mechanism"][field] or value == pytest.approx(was["mechanism"][field], rel=1e-12)
        now["mechanism"][field] = was["mechanism"][field]
    assert now == was
    if made.configuration == was:
        assert made.digest == before["digest"]
    v = np.random.default_rng(6).integers(-9999, 9999, size=(2, 60))
    assert MADE.digest(made.estimate(v)) == before["estimate"]


NEWER = {"causal-tree", "tree-least-squares", "growing-strategy", "growing-reconstruction"}


def test_the_files_hold_every_kind():
    found = [stored(name) for name in NAMES]
    receivers = {x["receiver"]["kind"] for x in found if "receiver" in x}
    models = {x["model"]["kind"] for x in found if x["model"] is not None}
    operators = {x[part]["kind"] for x in found if "strategy" in x for part in ("strategy", "reconstruction")}
    assert receivers == {"linear", "smoother", "decision-feedback"}
    assert models == {"markov-chain", "independent-levels", "arma"}
    assert operators == set(OPERATORS) - NEWER
    assert {source for x in found for source in x["sources"].values()} == {"public", "assumed", "fitted-from-private"}


# --- a store of sweeps ----------------------------------------------------------------------------


class Idle(ThisProcess):
    """An engine that is given nothing to do."""

    def run(self, function, items):
        assert list(items) == []
        yield from ()


@pytest.fixture
def store(tmp_path):
    return shutil.copy(FOLDER / "sweep.db", tmp_path)


def test_a_store_goes_on_without_designing_or_simulating(store, monkeypatch):
    monkeypatch.setattr(version, "__version__", "0.1.0")  # another version would be another sweep
    found = dp.sweep(MADE.GRID, store=store, executor=Idle(1), **(MADE.OPTIONS | {"n_threads": None}))
    assert MADE.rows(found) == COMPUTED_BEFORE["sweep"]


# What stores hold of mechanisms that there were none of before
SINCE = {"BlockLink", "LatticeLink", "LaplaceLink", "ResponseLink", "Block", "KalmanReceiver", "Response", "tuple"}
SINCE |= {
    "SharedNoise",
    "TreeNoise",
    "PosteriorReceiver",
    "Posterior",
    "PosteriorTable",
    "CausalTree",
    "TreeLeastSquares",
}
SINCE |= {"GrowingStrategy", "GrowingReconstruction", "AdaptiveLink", "FollowerReceiver", "Partition"}
SINCE |= {"ChannelsLink", "BlockChannelsLink", "StateSpace"}  # of several streams


def links(value):
    """The names of all that a stored link is made of."""
    if isinstance(value, list) and value and isinstance(value[0], str):
        yield value[0]
        for x in value[1:]:
            yield from links(x)


def test_links_of_a_store_are_the_same_to_the_bit(store):
    contents = designs(store)
    names = {name for content in contents for name in links(content["link"])}
    assert names == set(compiled_mechanism_json._KINDS) - SINCE
    for content in contents:
        assert (
            compiled_mechanism_json.compiled_content(compiled_mechanism_json.read_compiled(content["link"]))
            == content["link"]
        )


def designs(store):
    with SweepStore(store) as opened:
        keys = [key for (key,) in opened._connection.execute("SELECT key FROM designs")]
        return [json.loads(text) for _, text in opened.designs(keys)]
