import numpy as np
import pytest
from helpers.designs import to_a_wide_tolerance
from scipy import signal

import dpfast as dp
from dpfast.design.catalogue import filter_families
from dpfast.simulation import evaluation

PRIVACY = dp.Privacy(1, 1e-6)
TARGET = dp.Filter(np.full(4, 0.25))


@pytest.fixture(autouse=True)
def widely(monkeypatch):
    """Designs are to a wide tolerance: what they do is looked at, and not how well."""
    wide = [x._replace(design=to_a_wide_tolerance(x.design)) for x in filter_families()]
    monkeypatch.setattr(evaluation, "filter_families", lambda: wide)


def poisson(n_series, n_bins):
    return np.random.default_rng(1).poisson(3.0, (n_series, n_bins))


def test_errors_are_those_of_the_estimates_against_the_true_output():
    u = poisson(1, 400)[0].astype(float)
    y = signal.lfilter(TARGET.b, 1, u)
    model = dp.ARMA.fit(u, 2)
    designs = evaluation.design_mechanisms(u, TARGET, PRIVACY, model)
    for outcome in evaluation.evaluate_series("all", u, y, model, designs, draws=3, seed=5):
        lag = outcome.mechanism.lag or 0
        draws = outcome.mechanism.simulate(np.stack([u] * 3), seed=5).estimate
        error = draws[:, lag:] - y[: len(y) - lag]
        np.testing.assert_allclose(outcome.result.stream_mse, (error**2).mean(axis=1), rtol=1e-12)
        np.testing.assert_allclose(outcome.result.rmse, np.sqrt((error**2).mean()), rtol=1e-12)
        np.testing.assert_array_equal(outcome.estimate[: len(y) - lag], draws[0, lag:])
        assert np.isnan(outcome.estimate[len(y) - lag :]).all()


def test_linear_mechanisms_do_as_predicted_on_data_like_the_model():
    u = poisson(1, 20_000)[0].astype(float)
    y = signal.lfilter(TARGET.b, 1, u)
    model = dp.ARMA.fit(u, 1)
    designs = [x for x in evaluation.design_mechanisms(u, TARGET, PRIVACY, model) if x.predicted_rmse is not None]
    assert len(designs) == 8
    for outcome in evaluation.evaluate_series("all", u, y, model, designs, draws=8, seed=1):
        assert outcome.result.rmse == pytest.approx(outcome.mechanism.predicted_rmse, rel=0.05)


def test_errors_too_rare_for_their_spread_are_bounded():
    """So little noise that no decision is wrong."""
    u = (np.arange(60) % 7 == 0) * 1.0
    target, model = dp.Filter([0.5, 0.5]), dp.IndependentLevels([0, 1], [6 / 7, 1 / 7])
    design = dp.decision_feedback(target, dp.Privacy(200, 0.05), model, lag=1, decision="quantizer")
    designs = [design, dp.input_perturbation(target, dp.Privacy(1, 1e-6))]
    rare, plain = (
        x.result for x in evaluation.evaluate_series("all", u, target.filter(u).y, model, designs, draws=4, seed=5)
    )
    assert rare.rmse == 0
    assert (rare.error_events, rare.is_rare, plain.is_rare) == (0, True, False)
    assert 0.5 < rare.interval[1] < 1
