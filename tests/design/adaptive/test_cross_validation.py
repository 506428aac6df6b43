"""Held-out errors against exact ones: predictions, rational Wiener filters, simulation."""

import math

import numpy as np
import pytest
from helpers.covers import long_but

import dpfast as dp
from dpfast.design.adaptive.cross_validation import Channel, _Trial, _variance, cross_validate
from dpfast.design.adaptive.input_spectrum import Periodogram, join_periodograms
from dpfast.design.wiener import wiener_receiver

LENGTH = 1000
TARGET = dp.Filter([1, 0.9], [1, -0.9])
PRIVACY = dp.Privacy(math.log(3), 0.05)
LAGS = pytest.mark.parametrize("lag", [0, 5, None])


def mechanism(lag, scale=4.0, mean=0.0):
    model = dp.ARMA([scale], [1, -0.2], mean=mean)
    return dp.lmmse(TARGET, PRIVACY, model, lag=lag, prefilter=dp.Filter([1, 0.3], [1, -0.6]))


def channel(m, length=LENGTH):
    return Channel(m.target, m.prefilter, m.noise_std, m.receiver, length)


def truth(mean=0.0):
    return dp.ARMA([2.0], [1, -0.7], mean=mean, source="public")


def foreseen(m, model):
    """The periodogram of v that is expected, the mean of u in front."""
    through = channel(m)
    spectrum = model.psd(through.circle.grid.omega) * np.abs(through.gain) ** 2 + through.noise
    ordinates = through.expected_ordinates(spectrum)
    shift = (model.mean - m.receiver.mean) * through.steady
    ordinates[0] += LENGTH * shift**2
    return Periodogram(ordinates, shift, LENGTH, 1)


@LAGS
def test_the_best_response_is_the_wiener_filter(lag):
    m = mechanism(lag)
    through = channel(m)
    rational = wiener_receiver(m.target, truth(), m.prefilter, m.noise_std, lag)
    np.testing.assert_allclose(
        through.best_response(truth()).h, rational.response(through.circle.grid.omega), atol=1e-9
    )


@LAGS
@pytest.mark.parametrize("mean", [0.0, 0.6])
def test_on_the_spectrum_of_the_model_the_error_is_the_predicted_one(lag, mean):
    m, model = mechanism(lag, mean=0.2), truth(mean)
    through = channel(m)
    trial = _Trial(through, foreseen(m, model), model)
    assert trial.mse(through.given) == pytest.approx(m.predict(model), rel=1e-9)
    receiver = wiener_receiver(m.target, model, m.prefilter, m.noise_std, lag)
    adapted = dp.lmmse(TARGET, PRIVACY, model, lag=lag, prefilter=m.prefilter)
    assert trial.mse(through.best_response(model)) == pytest.approx(adapted.predict(model), rel=1e-7)
    assert receiver.mean == mean


@LAGS
def test_the_error_is_right_though_the_model_is_wrong(lag):
    """Where v shows the signal: the difference of two receivers needs no model."""
    m, wrong = mechanism(lag), dp.ARMA([1.0], [1, 0.3], mean=0.4, source="public")
    through = channel(m)
    trial = _Trial(through, foreseen(m, truth(0.3)), wrong)
    other = through.best_response(wrong)
    adapted = dp.lmmse(TARGET, PRIVACY, wrong, lag=lag, prefilter=m.prefilter)
    exact = m.predict(truth(0.3)) - adapted.predict(truth(0.3))
    on_model = through.given, other
    assert trial.mse(through.given) - trial.mse(other) == pytest.approx(exact, rel=0.02)
    assert abs(trial.mse_on_model(on_model[0]) - trial.mse_on_model(on_model[1]) - exact) > 0.2 * abs(exact)


@pytest.mark.parametrize(
    ("lag", "mean", "n_runs"),
    long_but([(0, 2.0, 40), *((lag, mean, 60) for lag in (0, 5, None) for mean in (0.1, 2.0))], [(0, 2.0, 40)]),
)
def test_gain_and_standard_error_are_those_of_many_runs(lag, mean, n_runs):
    m, model = mechanism(lag), truth(mean)
    u = model.sample(n_runs, 5100, seed=11)
    v = m.simulate(u, seed=12).privatized[:, 100:]
    through, scores = channel(m), []
    on_truth = _Trial(through, foreseen(m, model), model)
    for one in v:
        parts = Periodogram.from_parts(one[None], 5)
        whole = join_periodograms(parts)
        fit = through.likelihood(whole).fit_orders(1)[1]
        fitted = through.fitted_model(whole, fit)
        exact = 1 - on_truth.mse_on_model(through.best_response(fitted)) / m.predict(model)
        gain = cross_validate(through, parts, fit)
        assert np.mean(gain.of_parts) == pytest.approx(gain.relative)
        scores.append((gain.relative - exact) / gain.standard_error)
    # standard normal scores, but for a bias of fits to four fifths: 5 standard errors either way
    assert abs(np.mean(scores)) < 5 / math.sqrt(n_runs)
    assert np.std(scores) == pytest.approx(1, abs=5 / math.sqrt(2 * n_runs))


@pytest.mark.parametrize("slope", [0.0, 3.0])
def test_the_variance_of_an_error_is_that_of_many_segments(slope):
    n, power, weights = 20_000, 2.0, np.random.default_rng(0).uniform(0, 4, 17)
    white = math.sqrt(power) * np.random.default_rng(1).standard_normal((1, n * 32))
    segments = Periodogram.from_parts(white, n)
    errors = [x.average(weights * x.ordinates) + slope * x.mean for x in segments]
    claimed = _variance(join_periodograms(segments), power, weights, slope, 1)
    # the variance of n numbers is off by √(2/n) for normals, here by less than .02: 5 of these
    assert np.var(errors) == pytest.approx(claimed, rel=0.1)
