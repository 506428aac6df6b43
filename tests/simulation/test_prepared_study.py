"""What is kept from one study to the next changes no result."""

import gc
import weakref

import numpy as np
import pytest

import dpfast as dp
from dpfast._support import errors
from dpfast.simulation import prepared_study

TARGET, PRIVACY = dp.Filter([1, 0.5], [1, -0.8]), dp.Privacy(1.0, 0.05)
MODEL = dp.MarkovChain([[0.8, 0.2], [0.4, 0.6]], levels=[0.0, 1.0])
MECHANISMS = [
    dp.zero_forcing(TARGET, PRIVACY, tolerance=0.1),
    dp.lmmse(TARGET, PRIVACY, MODEL, lag=2),
    dp.decision_feedback(TARGET, PRIVACY, MODEL, lag=1),
    dp.block_sums(TARGET, dp.Privacy(1.0), MODEL, length=3, receiver="bayes", lag=2),
]


def run(mechanisms, model=MODEL, **options):
    return dp.monte_carlo(mechanisms, model, **({"n_streams": 6, "n_samples": 40, "seed": 1} | options))


def figures(study):
    return [
        (x.name, x.predicted_rmse, x.variance, x.sizes, x.interval, x.stream_mse.tobytes(), x.values.tobytes())
        for x in study
    ]


@pytest.fixture
def forgetful(monkeypatch):
    """Prepare every study anew."""
    monkeypatch.setattr(prepared_study, "_prepare_once", prepared_study._prepare)


CALLS = [
    {"seed": 1},
    {"seed": 2},
    {"n_streams": 40},
    {"n_samples": 41},
    {"burn_in": 0},
    {"burn_in": 7},
    {"dtype": np.float32},
    {"n_threads": 2},
    {"confidence": 0.5},
]


def all_figures(order):
    return [figures(run(MECHANISMS, **CALLS[i])) for i in order]


def test_what_was_prepared_for_another_call_changes_no_result(request):
    order = np.random.default_rng(1).permutation(2 * len(CALLS)) % len(CALLS)
    kept = all_figures(order)
    request.getfixturevalue("forgetful")
    assert kept == all_figures(order)


def test_the_order_of_mechanisms_is_another_study():
    forward, backward = run(MECHANISMS[:2]), run(MECHANISMS[1::-1])
    assert figures(forward) == figures(backward)[::-1]


def test_a_study_keeps_neither_its_mechanisms_nor_its_model_alive():
    model = dp.IndependentLevels([0, 1], [0.5, 0.5])
    mechanism = dp.zero_forcing(TARGET, PRIVACY)
    for dtype in (np.float64, np.float32):
        run(mechanism, model, dtype=dtype)
    gone = [weakref.ref(model), weakref.ref(mechanism)]
    del model, mechanism
    gc.collect()
    assert [x() for x in gone] == [None, None]


class Volatile:
    """A model of a user's own, which changes."""

    def __init__(self, now):
        self.now = now


for each in ("mean", "variance", "levels", "probabilities", "shaping", "source", "psd", "sample", "compiled"):
    setattr(Volatile, each, property(lambda self, name=each: getattr(self.now, name)))


def test_nothing_is_kept_of_a_model_that_may_change():
    model = Volatile(dp.IndependentLevels([0, 1], [0.5, 0.5]))
    before = run(MECHANISMS[1], model)["LMMSE lag 2"]
    model.now = dp.IndependentLevels([0, 2], [0.5, 0.5])
    after = run(MECHANISMS[1], model)["LMMSE lag 2"]
    assert after.variance == pytest.approx(4 * before.variance)
    assert after.mse > before.mse


def test_every_study_says_what_is_to_be_said_of_its_prediction():
    """Not only the first one."""
    mechanism = dp.input_perturbation(TARGET, dp.Privacy(1.0), noise="geometric", unit=1.0)
    model = dp.MarkovChain([[0.8, 0.2], [0.4, 0.6]], levels=[0.0, 0.7])  # which rounding to the unit changes
    for _ in range(3):
        with pytest.warns(dp.AccuracyWarning, match="the error of rounding") as caught:
            run(mechanism, model)
        assert [x.filename for x in caught] == [__file__]


def test_a_study_that_fails_swallows_no_later_warning(monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(prepared_study, "predicted_mse", fail)
        with pytest.raises(ZeroDivisionError):
            run(MECHANISMS[0], dp.IndependentLevels([0, 1], [0.5, 0.5]))
    with pytest.warns(UserWarning, match="heard"):
        errors.warn("heard", UserWarning)
