"""Errors of block sums that are estimated from what was published, beside the true ones."""

import functools
import warnings

import numpy as np
import pytest
from helpers import wrong_models
from helpers.seeded_noise import seed_noise
from scipy import signal

import dpfast as dp
from dpfast._support.errors import ModelWarning
from dpfast.releases.model_check.adapted_estimates import adapt_estimates
from dpfast.releases.model_check.verdict import check_whole


@functools.cache
def recipe(n_streams=1, **options):
    return wrong_models.block_recipe(n_streams, **options)


def measure(plan, name, time, runs, seed=11):
    """(share of estimates within the band, true RMSE, its estimate, share of runs that agree) over many releases."""
    rng, rows, n_streams = np.random.default_rng(seed), [], plan.inputs.n_streams
    for _ in range(runs):
        u = wrong_models.INPUTS.get(name, wrong_models.true_model)(rng, (n_streams, time))
        v = wrong_models.published_sums(plan, u, rng)
        errors = plan.estimate(v, end=time)[:, plan.lag :] - signal.lfilter(np.ones(12) / 12, [1], np.rint(u))
        found = check_whole(plan.evidence(v, time))
        inside = np.abs(errors) <= found.band[:, np.newaxis]
        rows.append((inside.mean(), (errors**2).mean(), found.estimated_mse, found.agrees))
    covered, true, estimated, agree = np.mean(rows, axis=0)
    return covered, true**0.5, estimated**0.5, agree


@pytest.mark.parametrize("name", ["poisson", "level shift"])
def test_the_estimated_error_is_near_the_truth_where_the_model_is_wrong(name):
    covered, true, estimated, agree = measure(recipe(), name, 1000, 3)
    assert covered > 0.9
    assert estimated == pytest.approx(true, rel=0.15)
    assert agree == 0
    assert true > 1.4 * recipe().predicted_rmse_if_model_holds


@pytest.mark.parametrize("options", [{"length": (2, 8)}, {"length": 5, "phase": 2}, {"weights": "best", "length": 4}])
def test_several_sums_of_a_cycle_tell_it_together(options):
    covered, true, estimated, _ = measure(recipe(2, **options), "variance", 1000, 2)
    assert covered > 0.9
    assert estimated == pytest.approx(true, rel=0.15)


def test_the_model_stands_in_where_sums_agree_with_it():
    _, true, estimated, agree = measure(recipe(), "as the model says", 1000, 3)
    assert agree == 1
    assert estimated == pytest.approx(true, rel=0.1)
    assert estimated == pytest.approx(recipe().predicted_rmse_if_model_holds, rel=0.1)


@pytest.mark.long
@pytest.mark.parametrize("name", [*wrong_models.INPUTS, "as the model says"])
@pytest.mark.parametrize(("n_streams", "time"), [(1, 1000), (3, 500), (1, 4000)])
def test_bands_cover_the_truth_over_200_releases(name, n_streams, time):
    covered, true, estimated, agree = measure(recipe(n_streams), name, time, 200)
    print(f"{name}, {n_streams} × {time}: {covered:.3f} covered, RMSE {true:.3f}, from v {estimated:.3f}, {agree:.2f}")
    assert covered >= 0.9
    assert estimated == pytest.approx(true, rel=0.15)
    if name == "poisson":
        assert agree == 0


def test_a_release_of_block_sums_warns_with_its_error(tmp_path, monkeypatch):
    seed_noise(monkeypatch, 1)
    u = np.random.default_rng(1).poisson(5.9, (1, 900))
    with pytest.warns(ModelWarning, match=r"contradicts the model.*RMSE estimated from what was published: 0\.[34]\d"):
        result = dp.release(recipe(), u, tmp_path / "store")
    y = np.convolve(u[0], np.ones(12) / 12)[:900]
    truth = ((result.estimate[0] - y) ** 2).mean() ** 0.5
    assert result.model_check.estimated_rmse == pytest.approx(truth, rel=0.15)
    low, high = np.sqrt(result.model_check.mse_interval)
    assert low < result.model_check.estimated_rmse < high
    assert 0 < result.model_check.noise_mse < result.model_check.estimated_mse
    again = dp.read_release(tmp_path / "store")
    assert again.model_check.content() == result.model_check.content()


def test_each_stream_has_a_band_of_its_own_where_they_differ():
    plan, rng, time = recipe(2), np.random.default_rng(2), 3000
    u = np.stack([wrong_models.true_model(rng, (1, time))[0], wrong_models.INPUTS["wrong mean"](rng, (1, time))[0]])
    v = wrong_models.published_sums(plan, u, rng)
    errors = plan.estimate(v, end=time)[:, plan.lag :] - signal.lfilter(np.ones(12) / 12, [1], np.rint(u))
    found = check_whole(plan.evidence(v, time))
    np.testing.assert_allclose(found.band / 1.96, (errors**2).mean(axis=1) ** 0.5, rtol=0.2)


def test_too_few_cycles_have_no_error():
    plan, rng = recipe(), np.random.default_rng(3)
    v = wrong_models.published_sums(plan, np.full((1, 39), 2), rng)
    found = check_whole(plan.evidence(v, 39))
    assert found.estimated_mse is None
    assert "fewer than 8 whole cycles" in found.reason
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_whole(plan.evidence(v, 40)).estimated_mse > 0


def test_an_adapted_receiver_is_beside_what_was_published(tmp_path, monkeypatch):
    seed_noise(monkeypatch, 2)
    u = np.random.default_rng(5).poisson(5.9, (1, 2500))
    with pytest.warns(ModelWarning) as warned:
        result = dp.release(recipe(), u, tmp_path / "store", adapt=True)
    assert "adapt=True" not in str(warned[0].message)
    y = np.convolve(u[0], np.ones(12) / 12)[:2500]
    given, new = (((x[0] - y) ** 2).mean() ** 0.5 for x in (result.estimate, result.adapted.estimate))
    assert result.adapted.taken
    assert new < 0.8 * given
    assert result.adapted.estimated_rmse == pytest.approx(new, rel=0.15)
    assert result.adapted.predicted_rmse == pytest.approx(new, rel=0.15)
    assert (np.abs(result.adapted.estimate - y) <= result.adapted.band[:, np.newaxis]).mean() > 0.9
    plain = recipe().estimate(result.privatized, end=2500)[:, 5:]
    np.testing.assert_array_equal(plain, result.estimate)  # as without
    again = dp.read_release(tmp_path / "store", adapt=True)
    np.testing.assert_array_equal(again.adapted.estimate, result.adapted.estimate)
    assert again.adapted.content() == result.adapted.content()


def test_too_few_steps_to_adapt_are_refused_before_anything_is_published(tmp_path):
    with pytest.raises(ValueError, match=r"adapt must be False for fewer than 210 steps"):
        dp.release(recipe(), np.full((1, 209), 2), tmp_path / "store", adapt=True)
    assert not (tmp_path / "store").exists()


def test_a_stream_of_several_levels_is_adapted_live(tmp_path, monkeypatch):
    seed_noise(monkeypatch, 3)
    plan = recipe(2, length=(2, 8))
    u = np.random.default_rng(6).poisson(5.9, (2, 1600))
    with dp.open_stream(plan, tmp_path / "store") as stream:
        stream.push(u)
        assert stream.model_check().agrees is False
        adapted = stream.adapted()
    assert adapted.taken
    assert adapted.estimate.shape == (2, 1595)


@pytest.mark.long
@pytest.mark.parametrize("name", [*wrong_models.INPUTS, "as the model says"])
def test_adapted_estimates_are_within_their_bands_over_50_releases(name):
    plan, rng, rows, time = recipe(), np.random.default_rng(12), [], 2000
    for _ in range(50):
        u = wrong_models.INPUTS.get(name, wrong_models.true_model)(rng, (1, time))
        v = wrong_models.published_sums(plan, u, rng)
        y = signal.lfilter(np.ones(12) / 12, [1], np.rint(u))
        found = adapt_estimates(plan, v, time, check_whole(plan.evidence(v, time)))
        given, errors = plan.estimate(v, end=time)[:, 5:] - y, found.estimate - y
        inside = (np.abs(errors) <= found.band[:, np.newaxis]).mean()
        rows.append((inside, (given**2).mean(), (errors**2).mean(), found.estimated_mse, found.taken))
    covered, before, true, estimated, taken = np.mean(rows, axis=0)
    print(
        f"{name}: {covered:.3f} covered, {before**0.5:.3f} to {true**0.5:.3f}, from v {estimated**0.5:.3f}, {taken:.2f}"
    )
    assert covered >= 0.9
    assert estimated**0.5 == pytest.approx(true**0.5, rel=0.15)
    assert true <= 1.02 * before
