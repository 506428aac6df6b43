"""Mechanisms of several streams on a log: errors beside those that scipy computes from the same estimates."""

import dataclasses

import numpy as np
import pytest
from scipy import signal

import dpfast as dp
from dpfast.design.mimo.best_channels import CANDIDATES
from dpfast.signals.events.historical_counts import EventCounts
from dpfast.simulation import channels_evaluation
from dpfast.simulation.channels_evaluation import TOGETHER, evaluate_channels
from dpfast.simulation.evaluation import noise_seed

PRIVACY = dp.Privacy(2, 1e-4, adjacency="one_input")
SLOW = dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW], [1, -1]])
NAMES = (TOGETHER, "a + b", "a - b")


def log(n_bins=300, names=("a", "b")):
    """Two series, which are alike in half of their events, and more."""
    rng = np.random.default_rng(1)
    both = rng.poisson(4, n_bins)
    u = np.array([both + rng.poisson(4, n_bins) for _ in names])
    return EventCounts(u.astype(float), names, np.datetime64("2020-01-01T00:00"), np.timedelta64(5, "m"))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Few of the mechanisms, to a wide tolerance: with a model and a lag, for dependent streams, and without."""
    kept = [x for x in CANDIDATES if x.label in ("optimal", "LMMSE", "input perturbation")]
    monkeypatch.setattr(channels_evaluation, "CANDIDATES", kept)
    monkeypatch.setattr(channels_evaluation, "_TOLERANCE", 0.1)


def run(counts, target=TARGET, privacy=PRIVACY, **options):
    return evaluate_channels(counts, target, privacy, **({"order": 1, "draws": 3, "seed": 5} | options))


def outputs_by_scipy(u):
    slow = signal.lfilter([0.2], [1, -0.8], u.sum(axis=0))
    return np.array([slow, u[0] - u[1]])


def test_every_output_and_all_together_have_a_row_for_each_mechanism():
    counts = log()
    outputs, results, notes = run(counts)
    np.testing.assert_allclose(outputs, outputs_by_scipy(counts.counts))
    assert notes == ()
    names = [x.mechanism.name for x in results if x.series == TOGETHER]
    assert names == [
        *(f"optimal lag {lag}" for lag in (0, 5)),
        "input perturbation",
        *(f"{name} lag {lag}, correlated" for name in ("optimal", "LMMSE") for lag in (0, 5)),
        "constant",
    ]
    assert [(x.series, x.mechanism.name) for x in results] == [(series, name) for series in NAMES for name in names]
    by_name = {(x.series, x.mechanism.name): x for x in results}
    for name in names:
        whole, *parts = (by_name[series, name].result for series in NAMES)
        assert whole.mse == pytest.approx(sum(x.mse for x in parts))
        assert whole.predicted_rmse**2 == pytest.approx(sum(x.predicted_rmse**2 for x in parts))
        assert all(x.name == name for x in (whole, *parts))
        assert whole.interval[0] <= whole.rmse <= whole.interval[1]
    # streams that are alike are estimated the better by who knows it, from the sum as from the difference
    known, unknown = (by_name[TOGETHER, f"optimal lag 5{x}"].result for x in (", correlated", ""))
    assert known.rmse < unknown.rmse


def test_errors_are_those_of_the_estimates_over_all_bins_and_draws():
    """Of noise on the inputs, whose estimates are what scipy makes of the noisy inputs."""
    counts = log()
    mechanism = dp.input_perturbation(TARGET, PRIVACY)
    _, results, _ = run(counts)
    y = outputs_by_scipy(counts.counts)
    v = [mechanism.simulate(counts.counts, seed=noise_seed(5, i)).privatized for i in range(3)]
    expected = np.mean([((outputs_by_scipy(x) - y) ** 2).mean(axis=1) for x in v], axis=0)
    found = [x for x in results if x.mechanism.name == "input perturbation"]
    assert [x.result.mse for x in found[1:]] == pytest.approx(expected.tolist())
    np.testing.assert_allclose([x.estimate for x in found[1:]], outputs_by_scipy(v[0]))
    assert [x.spread for x in found[1:]] == pytest.approx(y.std(axis=1).tolist())


def test_estimates_that_are_late_are_of_the_bins_before():
    """Beside the true output of their bin they are nearer to it than to that of two bins before or behind."""
    counts = log()
    _, results, _ = run(counts)
    y = dict(zip(NAMES[1:], outputs_by_scipy(counts.counts), strict=True))
    late = [x for x in results if x.mechanism.lag == 5 and x.series != TOGETHER]
    assert len(late) == 6
    for x in late:
        assert np.isnan(x.estimate[-5:]).all()
        found = [
            ((x.estimate[20:-20] - y[x.series][20 + k : len(y[x.series]) - 20 + k]) ** 2).mean() for k in (-2, 0, 2)
        ]
        assert found[1] < min(found[0], found[2])


def test_the_constant_publishes_the_means_by_the_fitted_models():
    counts = log()
    _, results, _ = run(counts)
    u = counts.counts
    y, means = outputs_by_scipy(u), np.repeat(u.mean(axis=1)[:, None], 300, axis=1)
    expected = ((outputs_by_scipy(means) - y) ** 2).mean(axis=1)
    found = [x for x in results if x.mechanism.name == "constant"]
    assert [x.result.mse for x in found[1:]] == pytest.approx(expected.tolist())
    assert not any(x.mechanism.sees_data for x in found)
    # predicted by the model of both together: of counts of variance 8 each, of which 4 are shared, the sum has 24
    assert found[1].result.predicted_rmse == pytest.approx((24 * 0.2**2 / (1 - 0.8**2)) ** 0.5, rel=0.1)


def test_one_output_has_no_row_of_all_together_and_one_series_no_correlation():
    _, results, notes = run(log(), dp.total(2))
    assert {x.series for x in results} == {"a + b"}
    _, results, notes = run(log(names=("a",)), dp.FilterMatrix([[SLOW]]))
    assert {x.series for x in results} == {"a"}
    assert not any("correlated" in x.mechanism.name for x in results)
    assert len(notes) == 1
    assert notes[0].startswith("No LMMSE: it is for streams that depend on one another")


def test_what_cannot_be_designed_is_noted_with_the_reason():
    with pytest.raises(dp.DesignError, match=r"serves here\. No optimal: Gaussian noise needs a delta above 0\."):
        run(log(), privacy=dp.Privacy(1, adjacency="each_input"))
    _, results, notes = run(log(), order=25)
    assert not any("correlated" in x.mechanism.name for x in results)
    assert any("order times series must be at most 48 for it, got 25 times 2" in x for x in notes)
    alike = log()
    same = dataclasses.replace(alike, counts=np.repeat(alike.counts[:1], 2, axis=0))
    _, _, notes = run(same, dp.total(2))
    assert any(x.startswith("No mechanisms for streams that depend on one another: u must not have") for x in notes)


def test_a_saved_mechanism_is_tried_beside_the_others_under_a_name_of_its_own():
    saved = [
        dp.input_perturbation(TARGET, PRIVACY),
        dp.input_perturbation(TARGET, dp.Privacy(1, 1e-4, adjacency="each_input")),
    ]
    _, results, _ = run(log(), saved=saved)
    rmse = {x.mechanism.name: x.result.rmse for x in results if x.series == TOGETHER}
    assert rmse["saved 1: input perturbation"] == rmse["input perturbation"]
    assert rmse["saved 2: input perturbation (epsilon 1, delta 0.0001, each_input)"] > rmse["input perturbation"]
    for other in dp.total(2), dp.FilterMatrix([[SLOW, SLOW], [1, -0.9]]):
        with pytest.raises(dp.DataError, match="'input perturbation' must be for this target"):
            run(log(), other, saved=saved[:1])
