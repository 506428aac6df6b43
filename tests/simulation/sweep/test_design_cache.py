import dataclasses

import numpy as np
import pytest

import dpfast as dp
from dpfast.design.catalogue import FAMILIES
from dpfast.simulation.prepared_study import default_burn_in
from dpfast.simulation.sweep.design_cache import DesignCache
from dpfast.simulation.sweep.design_task import make_design
from dpfast.simulation.sweep.grid import ParameterGrid
from dpfast.simulation.sweep.several_streams import build_models
from dpfast.simulation.sweep.sweep_store import SweepStore

CHAIN = "markov:0.7,0.3;0.2,0.8@-0.5,2"  # its mean is not zero
THREE = dp.IndependentLevels([0, 1, 3], [0.5, 0.5, 0.0])  # one of them never: its log-probability is -inf
PLAIN = {"target": "ba:1,0.9/1,-0.9", "model": CHAIN, "epsilon": 1, "delta": 1e-3}
BASE = PLAIN | {"tolerance": 0.3}
NO_MODEL = {name: x for name, x in BASE.items() if name != "model"} | {"mechanism": "zero_forcing"}
GRIDS = {
    "linear": {"mechanism": ["zero_forcing", "lmmse"], "lag": 2},
    "robust": {"mechanism": "robust", "lag": 2, "mean_square": 3},
    "optimal": {"mechanism": "optimal", "lag": 2},
    "smoother": {"mechanism": "lmmse", "lag": "smoother"},
    "decisions": {"mechanism": "decision_feedback", "decision": ["sign", "quantizer", "soft"], "n_forward": 8},
    "no feedback": {"mechanism": "decision_feedback", "n_feedback": 0, "prefilter": {"b": [1, 0.5]}},
    "impossible level": {"mechanism": "decision_feedback", "model": THREE, "prefilter": "zero-forcing"},
    "finite": {
        "mechanism": ["output_perturbation", "lmmse"],
        "target": "moving-average:40",
        "model": "arma:1/1,-0.5@3",
    },
    "long recursion": {"mechanism": "input_perturbation", "target": dp.Filter([1], [1, *[0] * 39, -0.5])},
}


def made(grid, store=None):
    """All designs of a grid, by a store."""
    found = DesignCache(store or SweepStore(None), grid)
    for task in found.missing_tasks():
        found.add(task, make_design(task))
    return found.load()


def direct(grid, case):
    """The mechanism of a case by a call of its design function."""
    given = {name: x.given for name, x in case._given}
    return getattr(dp, case.family)(**given)


def assert_same_bits(a, b):
    assert type(a) is type(b)
    if isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same_bits(x, y)
    elif isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()
    else:
        assert a == b


LONG = {"optimal", "robust"}  # kept like all that is linear, and designed for longer


@pytest.fixture(params=[pytest.param(x, marks=[pytest.mark.long] * (x in LONG)) for x in GRIDS])
def grid(request):
    return ParameterGrid((PLAIN if request.param == "long recursion" else BASE) | GRIDS[request.param])


def test_a_design_is_that_of_the_design_function_to_the_bit(grid):
    for case, design in zip(grid.cases, made(grid), strict=True):
        expected = direct(grid, case)
        assert_same_bits(design.compiled, expected.compiled())
        assert (design.error, design.notes) == (None, ())
        assert (design.name, design.lag, design.noise_std) == (expected.name, expected.lag, expected.noise_std)
        assert design.ideal_mse == expected.ideal_mse
        # that of a robust design is for its worst input
        bound = expected.lower_bound_mse if expected.mean_square is None else None
        assert design.lower_bound(case.stream) == bound
        assert design.lower_bound("another") == (bound if expected.model is None else None)
        assert design.settling == default_burn_in([expected])
        stream = build_models(grid.models[case.stream])
        assert design.predicted[case.stream] == expected.predict(stream)
        assert_same_bits(design.mechanism().compiled(), expected.compiled())
        assert design.mechanism().summary() == expected.summary()


# --- what is kept ---------------------------------------------------------------------------------


def test_a_design_is_made_once_for_all_sweeps_of_a_store(tmp_path):
    definition = PLAIN | {"mechanism": "input_perturbation"}
    with SweepStore(tmp_path / "study.sqlite") as store:
        made(ParameterGrid(definition), store)
        assert DesignCache(store, ParameterGrid(definition)).missing_tasks() == []
    with SweepStore(tmp_path / "study.sqlite") as store:
        more = DesignCache(store, ParameterGrid(definition | {"epsilon": [1, 2]}))
        assert [x.arguments["privacy"]["epsilon"] for x in more.missing_tasks()] == [2.0]


def test_a_design_that_is_known_gets_the_missing_predictions_only(monkeypatch):
    store = SweepStore(None)
    (first,) = made(ParameterGrid(NO_MODEL | {"stream": "arma:1"}), store)
    grid = ParameterGrid(NO_MODEL | {"stream": ["arma:1", "arma:2/1,-0.5"]})
    (task,) = DesignCache(store, grid).missing_tasks()
    assert list(task.streams) == [grid.cases[1].stream]

    def designed_again(**_):
        raise AssertionError

    monkeypatch.setitem(FAMILIES, "zero_forcing", FAMILIES["zero_forcing"]._replace(design=designed_again))
    one, two = made(grid, store)
    assert_same_bits(one.compiled, two.compiled)
    assert [one.predicted[x.stream] for x in grid.cases] == [
        first.mechanism().predict(dp.ARMA([1])),
        first.mechanism().predict(dp.ARMA([2], [1, -0.5])),
    ]
    assert_same_bits(one.compiled, first.compiled)


def test_a_case_with_several_streams_is_one_task():
    grid = ParameterGrid(NO_MODEL | {"stream": ["arma:1", "arma:2"]})
    (task,) = DesignCache(SweepStore(None), grid).missing_tasks()
    assert list(task.streams) == sorted(x.stream for x in grid.cases)


def test_predictions_of_two_sweeps_at_once_are_not_lost():
    store, grids = SweepStore(None), [ParameterGrid(NO_MODEL | {"stream": x}) for x in ("arma:1", "arma:2")]
    both = [(DesignCache(store, grid), DesignCache(store, grid).missing_tasks()[0]) for grid in grids]
    answers = [make_design(task) for _, task in both]
    both[0][0].add(both[0][1], answers[0])
    store.add_designs({grids[0].cases[0].key: answers[1].to_text()})  # the other one did not see it
    (found,) = both[0][0].load()
    assert found.predicted[grids[0].cases[0].stream] == found.mechanism().predict(dp.ARMA([1]))
    assert DesignCache(store, grids[1]).missing_tasks() == []


def test_a_mechanism_that_is_there_already_is_kept_likewise():
    mechanism = dp.lmmse(dp.Filter([1], [1, -0.5]), dp.Privacy(1, 1e-3), dp.ARMA([1]), lag=1, name="mine")
    (design,) = made(ParameterGrid({"mechanism": mechanism, "stream": "arma:2"}))
    assert_same_bits(design.compiled, mechanism.compiled())
    assert (design.name, design.lag, design.settling) == ("mine", 1, default_burn_in([mechanism]))


def test_a_design_that_was_not_made_is_a_key_error():
    grid = ParameterGrid(BASE | {"mechanism": "zero_forcing"})
    with pytest.raises(KeyError):
        DesignCache(SweepStore(None), grid).load()


# --- what goes wrong ------------------------------------------------------------------------------


def test_a_design_that_there_cannot_be_is_kept_as_its_message():
    grid, store = ParameterGrid(BASE | {"mechanism": "decision_feedback", "model": "arma:1/1,-0.5"}), SweepStore(None)
    (design,) = made(grid, store)
    assert design.error.startswith("model must have the values that the stream takes, among which decision feedback")
    assert DesignCache(store, grid).missing_tasks() == []


def test_an_answer_of_another_version_is_refused():
    found = DesignCache(SweepStore(None), ParameterGrid(BASE | {"mechanism": "zero_forcing"}))
    (task,) = found.missing_tasks()
    answer = dataclasses.replace(make_design(task), version="0.0.1")
    with pytest.raises(dp.DataError, match=r"designs must be made by dpfast .*, got one of 0\.0\.1: install the"):
        found.add(task, answer)
