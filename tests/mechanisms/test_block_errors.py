"""Errors of block sums where the signal is a thousand times as large as what is not known of it."""

import functools

import mpmath
import numpy as np
import pytest

import dpfast as dp

SLOW = np.poly([0.99, 0.98, 0.5])
TARGET = dp.Filter([0.05], [1, -0.95])


@functools.cache
def exact_error(variance):
    """By a Kalman filter in 60 digits over blocks of two steps, its states u_t, u_{t-1}, u_{t-2}, y_t and their sum."""
    with mpmath.workdps(60):
        a1, a2, a3 = (-mpmath.mpf(float(x)) for x in SLOW[1:])
        into = mpmath.matrix([1, 0, 0, mpmath.mpf(0.05), 1])
        step = mpmath.matrix(
            [[0] * 5, [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, mpmath.mpf(0.95), 0], [0, 0, 0, 0, 1]]
        )
        step += into * mpmath.matrix([[a1, a2, a3, 0, 0]])
        p, errors = mpmath.zeros(5), [0.0]
        while errors[-1] not in errors[:-1]:  # until nothing is left of the start
            first = step * p * step.T + into * into.T
            p = step * first * step.T + into * into.T
            p -= p[:, 4] * p[:, 4].T / (p[4, 4] + mpmath.mpf(variance))
            p[4, :], p[:, 4] = mpmath.zeros(1, 5), mpmath.zeros(5, 1)
            errors.append(float((first[3, 3] + p[3, 3]) / 2))
        return errors[-1]


@pytest.mark.parametrize("model", [dp.ARMA([1], SLOW), dp.VectorARMA(-SLOW[1:, None, None]).channel(0)])
def test_the_error_is_right_to_ten_digits_beside_a_large_signal(model):
    """It is ten million times as small as the variance of the stream, of which differences would leave seven digits."""
    made = dp.block_sums(TARGET, dp.Privacy(1), model, length=2)
    assert model.variance > 1e7 * made.predicted_mse
    assert made.predicted_mse == pytest.approx(exact_error(made.noise[0].variance), rel=1e-10)


def test_a_stream_from_rest_settles_to_that_error_though_its_signal_is_large():
    made = dp.block_sums(TARGET, dp.Privacy(1), dp.ARMA([1], SLOW), length=2)
    steps = made.step_mse(400)
    np.testing.assert_allclose(np.sort(steps[-2:]), np.sort(made.phase_mse), rtol=1e-9)
    assert steps[0] > 1e3 * steps[-1]


def test_a_filter_for_another_stream_of_as_many_states_errs_as_it_does_for_one_of_more():
    """Whether or not its states are those of the signal: a factor that cancels adds one that is not the filter's."""
    made = dp.block_sums(TARGET, dp.Privacy(1), dp.ARMA([1], [1, -0.9]), length=3, lag=4)
    same = dp.ARMA([1], [1, -0.7], mean=0.5)
    more = dp.ARMA.from_shaping(dp.Filter([1], [1, -0.7]) * dp.Filter([1, -0.3], [1, -0.3]), mean=0.5)
    assert made.predict(more) == pytest.approx(made.predict(same), rel=1e-12)
    assert made.predict(same) > made.predicted_mse / 2
