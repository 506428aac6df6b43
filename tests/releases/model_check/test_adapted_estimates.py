"""Receivers fitted to v behind randomised response and integer noise on inputs: beside the truth, and refused."""

import functools
import json

import numpy as np
import pytest
from helpers.drawn_noise import drawn, published
from helpers.seeded_noise import seed_noise
from scipy import signal

import dpfast as dp
from dpfast.releases.integer.exact_forms import load_exact
from dpfast.releases.model_check.adapted_estimates import adapt_estimates
from dpfast.releases.model_check.verdict import check_whole

TARGET = dp.Filter(np.ones(12) / 12)
LAWS = ("response", "geometric", "canonical")


@functools.cache
def plan_of(law, n_streams=1, lag=3):
    if law == "response":
        coin = dp.IndependentLevels([0, 1], [0.5, 0.5])
        return dp.exact(
            dp.randomized_response(TARGET, dp.Privacy(1.5, 0.01), coin, lag=lag), dp.Inputs(0, 1, n_streams=n_streams)
        )
    mechanism = dp.input_perturbation(TARGET, dp.Privacy(0.7, 0.05), noise=law)
    return dp.exact(mechanism, dp.Inputs(-400, 400, centre=2, n_streams=n_streams))


def levels(chance):
    """Inputs of two levels whose chance of the upper one changes in time."""
    return lambda rng, shape: rng.random(shape) < chance(rng, shape)


def slow(rng, shape):
    """A chain that stays for 25 steps on the average."""
    return np.cumsum(rng.random(shape) < 0.04, axis=1) % 2


def of_a_day(rng, shape):
    return 0.5 + 0.4 * np.sin(2 * np.pi * (np.arange(shape[1]) + rng.integers(48, size=(shape[0], 1))) / 48)


INPUTS = {
    "response": {
        "wrong mean": levels(lambda rng, shape: np.full(shape, 0.9)),
        "correlation": slow,
        "daily cycle": levels(of_a_day),
        "level shift": levels(
            lambda rng, shape: np.where(np.arange(shape[1]) < shape[1] // 2, 0.2, 0.8) + np.zeros(shape)
        ),
        "as the model says": levels(lambda rng, shape: np.full(shape, 0.5)),
    }
}
COUNTS = {
    "poisson": lambda rng, shape: rng.poisson(5.9, shape),
    "correlation": lambda rng, shape: np.rint(5 + correlated(rng, shape, 0.87)),
    "daily cycle": lambda rng, shape: np.rint(5 + correlated(rng, shape, 0.5) + 3 * (of_a_day(rng, shape) - 0.5) / 0.4),
    "level shift": lambda rng, shape: np.rint(
        2 + correlated(rng, shape, 0.5) + 4 * (np.arange(shape[1]) >= shape[1] // 2)
    ),
    "heavy tails": lambda rng, shape: np.rint(2 + 1.2 * rng.standard_t(2.5, shape)),
}
INPUTS |= {"geometric": COUNTS, "canonical": COUNTS}


def correlated(rng, shape, pole):
    white = rng.normal(size=(shape[0], shape[1] + 300)) * (4 / 3 * (1 - pole**2)) ** 0.5
    return signal.lfilter([1], [1, -pole], white)[:, 300:]


def errors_of(estimate, u):
    y = signal.lfilter(TARGET.b, [1], u)
    return estimate - y[:, : estimate.shape[1]]


@pytest.mark.parametrize("law", LAWS)
def test_what_is_adapted_errs_less_and_says_by_how_much(law, tmp_path, monkeypatch):
    seed_noise(monkeypatch, 3)
    u = INPUTS[law]["correlation"](np.random.default_rng(1), (2, 4000)).astype(int)
    plan = plan_of(law, 2)
    result = dp.release(plan, u, tmp_path / "store", adapt=True)
    adapted = result.adapted
    assert adapted.taken
    given, new = (errors_of(x, u) for x in (result.estimate, adapted.estimate))
    assert (new**2).mean() < 0.9 * (given**2).mean()
    assert adapted.estimated_rmse == pytest.approx((new**2).mean() ** 0.5, rel=0.1)
    assert adapted.predicted_rmse == pytest.approx(adapted.estimated_rmse, rel=0.1)
    figure = f"RMSE estimated from what was published: {adapted.estimated_rmse:.4g}"
    doubt = (
        "which is too low by a little, and has no interval, as the receiver was fitted to the same published numbers"
    )
    assert str(adapted).endswith(f"{figure}, {doubt}.")
    assert (np.abs(new) <= adapted.band[:, np.newaxis]).mean() > 0.9
    np.testing.assert_array_equal(plan.estimate(result.privatized)[:, plan.lag :], result.estimate)  # as without
    again = dp.read_release(tmp_path / "store", adapt=True)
    np.testing.assert_array_equal(again.adapted.estimate, adapted.estimate)
    assert json.loads(json.dumps(again.adapted.content())) == adapted.content()


@pytest.mark.parametrize("law", LAWS)
def test_only_the_receiver_is_another_one(law):
    plan, rng = plan_of(law), np.random.default_rng(2)
    v = published(plan, INPUTS[law]["correlation"](rng, (1, 4000)), rng)
    found = dp.adapt(plan, v)
    assert found.taken
    assert (found.mechanism.noise, found.mechanism.guarantee) == (plan.noise, plan.guarantee)
    assert found.mechanism.noise_std == plan.noise_std
    np.testing.assert_allclose(found.estimate(v), found.mechanism.estimate(v), rtol=1e-9, atol=1e-9)
    same = load_exact(json.loads(json.dumps(found.mechanism.configuration)))
    assert same.digest == found.mechanism.digest
    np.testing.assert_array_equal(same.estimate(v), found.mechanism.estimate(v))


def test_a_unit_is_that_of_the_signal():
    """v counts halves that real inputs are rounded to: what is adapted is in the units of the signal all the same."""
    mechanism = dp.input_perturbation(TARGET, dp.Privacy(2), noise="geometric", unit=0.5)
    plan, rng = dp.exact(mechanism, dp.Inputs(-40, 40, unit=0.5, centre=1, multiples=False)), np.random.default_rng(4)
    u = 3 + correlated(rng, (1, 4000), 0.87)
    x = np.rint(2 * (u - 1)).astype(np.int64)
    v = plan.privatize(x[:, :0], x, drawn(plan, rng, x.shape))
    found = dp.adapt(plan, v)
    assert found.taken
    assert found.model.mean == pytest.approx(u.mean(), abs=0.3)
    assert found.mechanism.evidence(v, 4000).estimate_error(contradicted=False).mse == pytest.approx(
        (errors_of(found.estimate(v), u) ** 2).mean(), rel=0.2
    )


def test_a_smoother_of_answers_stays_one():
    plan, rng = plan_of("response", lag=None), np.random.default_rng(3)
    v = published(plan, slow(rng, (1, 4000)), rng)
    found = dp.adapt(plan, v)
    assert found.taken
    assert found.mechanism.lag is None


@pytest.mark.parametrize("law", LAWS)
def test_what_was_never_published_is_refused(law):
    plan = plan_of(law)
    with pytest.raises(ValueError, match="v must hold the integers that were published, got dtype float64"):
        dp.adapt(plan, np.zeros((1, 1000)))
    if law == "response":
        for answer in (3, -3, np.iinfo(np.int64).min):
            with pytest.raises(ValueError, match="v must be answers from -2 to 2"):
                dp.adapt(plan, np.full((1, 1000), answer))


def test_too_few_steps_are_refused_before_anything_is_published(tmp_path):
    with pytest.raises(ValueError, match=r"adapt must be False for fewer than \d+ steps"):
        dp.release(plan_of("response"), np.ones((1, 100), int), tmp_path / "store", adapt=True)
    assert not (tmp_path / "store").exists()


@pytest.mark.long
@pytest.mark.parametrize(("law", "name"), [(law, name) for law in LAWS for name in INPUTS[law]])
def test_bands_cover_the_truth_over_200_releases(law, name):
    """Of the receiver of the design, and of what is adapted."""
    plan, rng, rows, time = plan_of(law), np.random.default_rng(11), [], 1000
    lag = plan.lag
    for _ in range(200):
        u = INPUTS[law][name](rng, (1, time)).astype(np.int64)
        v = published(plan, u, rng)
        check = check_whole(plan.evidence(v, time))
        adapted = adapt_estimates(plan, v, time, check)
        for estimate, found in ((plan.estimate(v)[:, lag:], check), (adapted.estimate, adapted)):
            errors = errors_of(estimate, u)
            inside = np.abs(errors) <= found.band[:, np.newaxis]
            rows.append((inside.mean(), (errors**2).mean(), found.estimated_mse, adapted.taken))
    each = np.reshape(rows, (-1, 2, 4)).mean(axis=0)
    for who, (covered, true, estimated, taken) in zip(("design", "adapted"), each, strict=True):
        print(
            f"{law}, {name}, {who}: {covered:.3f} covered, RMSE {true**0.5:.4f}, from v {estimated**0.5:.4f}, "
            f"taken {taken:.2f}"
        )
        assert covered >= 0.9
        assert estimated**0.5 == pytest.approx(true**0.5, rel=0.15)
    assert each[1, 1] < 1.05 * each[0, 1]  # adapting costs nothing where the design is right
