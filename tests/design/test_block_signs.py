"""Signs of block sums that are designed: against a recursion of covariances in plain NumPy, and all patterns."""

import itertools
import math

import numpy as np
import pytest

from dpfast import ARMA, Filter, IndependentLevels, MarkovChain, Privacy, Toeplitz, block_sums, running_sum
from dpfast.design.block_signs import find_carrier

CHAIN = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
COIN = IndependentLevels([-0.5, 0.5], [0.5, 0.5])


def resonator(radius, degrees):
    return Filter([1], [1, -2 * radius * math.cos(math.radians(degrees)), radius**2])


PAPER, AT_NYQUIST = Filter([1, 0.995], [1, -0.995]), Filter([1, -0.995], [1, 0.995])
# (target, model, epsilon, lag): RMSE of plain sums of the best length, and of the best signed ones by a script that has
# no code in common with the package: the quadratures of the carrier released together, or in turn where that is less
FOUND = [
    (resonator(0.98, 60), CHAIN, 1, 0, 1.9187, 0.886),
    (resonator(0.99, 90), CHAIN, 1, 5, 1.8838, 0.771),
    (resonator(0.98, 60), CHAIN, 3, 0, 1.1501, 0.862),
    (resonator(0.99, 30), CHAIN, 3, 5, 2.4200, 0.893),
    (AT_NYQUIST, CHAIN, 1, 0, 5.6374, 0.687),
    (AT_NYQUIST, COIN, 3, 5, 5.5187, 0.431),
]


@pytest.mark.parametrize(("target", "model", "epsilon", "lag", "plain", "ratio"), FOUND)
def test_signs_gain_where_plain_sums_cancel_what_is_wanted(target, model, epsilon, lag, plain, ratio):
    privacy = Privacy(epsilon, 1e-6)
    sums = block_sums(target, privacy, model, lag=lag, noise="canonical")
    signed = block_sums(target, privacy, model, lag=lag, noise="canonical", weights="best")
    assert sums.predicted_rmse == pytest.approx(plain, rel=1e-4)
    assert signed.predicted_rmse / sums.predicted_rmse <= ratio + 0.003  # the scan does not try all
    assert signed.predicted_rmse / sums.predicted_rmse > ratio - 0.01
    again = block_sums(
        target,
        privacy,
        model,
        lag=lag,
        noise="canonical",
        weights=signed.weights,
        releases=[x or len(signed.weights) for x in signed.receiver.offsets] or None,
    )
    assert again.predicted_mse == signed.predicted_mse
    assert (signed.lag, signed.ideal_mse) == (lag, pytest.approx(signed.predicted_mse, rel=1e-12))


@pytest.mark.parametrize(
    ("target", "model"),
    [(PAPER, CHAIN), (Filter(np.ones(12) / 12), CHAIN), (Filter([1, -2]), CHAIN), (running_sum(64), CHAIN)],
    ids=["paper", "MA12", "1-2z", "running sum"],
)
def test_plain_sums_stay_where_signs_gain_nothing(target, model):
    plain, best = (block_sums(target, Privacy(1), model, weights=x) for x in (None, "best"))
    assert (best.weights, best.lengths, best.name) == (None, plain.lengths, plain.name)
    assert best.predicted_mse == plain.predicted_mse
    assert dict(best.options)["weights"] == "best"


def test_a_length_that_is_given_is_kept():
    target = resonator(0.98, 60)
    signed, plain = (block_sums(target, Privacy(1), CHAIN, length=n, weights="best") for n in (9, 1))
    assert (signed.lengths, plain.lengths, plain.weights) == ((9, 9), (1,), None)


def test_signs_over_a_horizon_and_without_a_lag():
    growing = Toeplitz.of(resonator(0.999, 90), 60)
    made = {x: block_sums(growing, Privacy(1), COIN, weights=x) for x in (None, "best")}
    assert made["best"].predicted_rmse < 0.85 * made[None].predicted_rmse
    assert made["best"].step_mse().mean() == pytest.approx(made["best"].ideal_mse, rel=1e-12)
    smoother = block_sums(resonator(0.98, 90), Privacy(3), CHAIN, lag="smoother", weights="best")
    late = block_sums(resonator(0.98, 90), Privacy(3), CHAIN, lag=5, weights="best")
    assert smoother.lag > 20
    assert smoother.predicted_rmse < 0.97 * late.predicted_rmse
    given = block_sums(resonator(0.98, 90), Privacy(3), CHAIN, lag="smoother", weights=smoother.weights)
    assert given.predicted_mse == pytest.approx(smoother.predicted_mse, rel=1e-8)


@pytest.mark.parametrize("degrees", [0, 45, 90, 180])
@pytest.mark.parametrize("damped", [None, 50])
def test_the_carrier_is_where_the_output_has_the_most_power(degrees, damped):
    target, model = resonator(0.999, degrees), ARMA([1], [1, -0.3])
    omega = np.linspace(0, np.pi, 200_001)
    radius = 1.0 if damped is None else math.exp(-1 / damped)
    z = radius * np.exp(-1j * omega)
    power = np.abs(1 / np.polyval(target.a[::-1], z)) ** 2 * model.psd(omega)
    found = find_carrier(target.factors, model.shaping.factors, damped)
    assert found == pytest.approx(omega[np.argmax(power)], abs=2e-5)


@pytest.mark.parametrize(("degrees", "epsilon", "length"), [(90, 1.0, 4), (60, 3.0, 4), (150, 1.0, 4)])
def test_no_other_signs_of_a_short_block_gain_much(degrees, epsilon, length):
    """All assignments to two sums that are released together: the first input enters the first one as it is."""
    target = resonator(0.98, degrees)
    least = min(
        block_sums(target, Privacy(epsilon), COIN, weights=np.array([(1, 0), *rows])).ideal_mse
        for rows in itertools.product([(1, 0), (-1, 0), (0, 1), (0, -1)], repeat=length - 1)
        if any(x[1] for x in rows)
    )
    best = block_sums(target, Privacy(epsilon), COIN, weights="best", length=length)
    assert best.predicted_rmse <= 1.005 * math.sqrt(least)
