"""Losses of several releases together, against sums over all outcomes in many digits, and dp-accounting."""

import itertools
import math
import random
import time
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpfast.privacy import discrete_gaussian_accounting as gaussian
from dpfast.privacy import loss_distribution, zcdp
from dpfast.privacy.composition import Loss
from dpfast.privacy.discrete_gaussian_accounting import Shift, Sigma
from dpfast.privacy.gaussian import log_delta_beyond, log_deltas_beyond
from dpfast.privacy.loss_distribution import Losses

LN3 = math.log(3)
NOISE = Shift(12, Sigma(4, 0), 3)  # μ = 1
WEAK = Shift(1, Sigma(40, 0), 1)


# --- the accountant of the tests ------------------------------------------------------------------


def hockey_stick(mu, x):
    """δ of a Gaussian pair at x of any sign, in many digits."""
    if mu == 0:
        return max(mpmath.mpf(0), 1 - mpmath.exp(x))
    t = x / mu - mu / 2
    first, second = (mpmath.erfc(y / mpmath.sqrt(2)) / 2 for y in (t, t + mu))
    return first - mpmath.exp(x) * second


def true_delta(loss, epsilon):
    """Sum over all outcomes of all responses, one after the other; the Gaussian parts are the continuous ones."""
    with mpmath.workdps(60):
        epsilons = [mpmath.mpf(x.numerator) / x.denominator for x in (*loss.pure, *(e for e, _ in loss.approximate))]
        told = 1 - mpmath.fprod(1 - mpmath.mpf(d.numerator) / d.denominator for _, d in loss.approximate)
        square = sum((s.squared_sensitivity / (s.sigma.variance - 4) for s in loss.shifts), Fraction(0))
        mu = mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator)
        total = mpmath.mpf(0)
        for signs in itertools.product((1, -1), repeat=len(epsilons)):
            p = mpmath.fprod(1 / (1 + mpmath.exp(-s * e)) for s, e in zip(signs, epsilons, strict=True))
            total += p * hockey_stick(mu, epsilon - mpmath.fsum(s * e for s, e in zip(signs, epsilons, strict=True)))
        return told + (1 - told) * total


fractions = st.builds(Fraction, st.integers(0, 300), st.integers(1, 100))
deltas = st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(1, 30), Fraction(1)])
# σ so large that zCDP of discrete noise cannot undercut the continuous noise that it is compared with
sigmas = st.builds(Sigma, st.integers(400, 4000), st.just(2))
shifts = st.builds(Shift, st.one_of(st.just(0), st.integers(1, 10**5)), sigmas, st.integers(1, 5))
losses = st.builds(
    Loss,
    st.lists(shifts, max_size=2).map(tuple),
    st.lists(fractions, max_size=3).map(tuple),
    st.lists(st.tuples(fractions, deltas), max_size=2).map(tuple),
)


@settings(max_examples=100)
@given(losses, st.floats(0, 12), st.sampled_from([1e-12, 1e-6, 0.05, 0.5]))
@example(Loss(pure=(Fraction(LN3),)), 0.3, 0.05)
@example(Loss((NOISE,), (Fraction(1, 3),) * 2, ((Fraction(1), Fraction(1, 100)),)), 0.0, 0.05)
def test_no_bound_is_below_the_truth_and_the_best_is_near_it(loss, epsilon, delta):
    truth, claimed = true_delta(loss, epsilon), loss.delta(epsilon)
    assert truth <= claimed * (1 + 1e-15)
    assert claimed <= truth * (1 + 1e-9) + 1e-280 or claimed <= truth + 1e-13  # what lies near a kink
    least = loss.epsilon(delta)
    if math.isinf(least):
        assert true_delta(loss, 1e5) >= delta * (1 - 1e-9)
    else:
        assert true_delta(loss, least) <= delta * (1 + 1e-15)
        lower = least * (1 - 1e-8) - 1e-12
        assert lower <= 0 or true_delta(loss, lower) >= delta * (1 - 1e-12) or loss.delta(lower) > delta


def random_loss(rng):
    """Of every kind of noise at any scale, such as stores and ledgers add up."""

    def fraction():
        return Fraction(10 ** rng.uniform(-6, 2)).limit_denominator(10**9)

    shifts = tuple(
        Shift(round(10 ** rng.uniform(0, 7)), Sigma(rng.randint(400, 4000), 2), rng.randint(1, 50))
        for _ in range(rng.randint(0, 2))
    )
    pure = tuple(fraction() for _ in range(rng.randint(0, 2)))
    approximate = tuple((fraction(), Fraction(10 ** rng.uniform(-12, -0.3))) for _ in range(rng.randint(0, 2)))
    if rng.random() < 0.5:  # the same again, as every month
        pure, approximate, shifts = pure * rng.randint(1, 2), approximate * rng.randint(1, 2), shifts * 2
    return Loss(shifts, pure, approximate)


@pytest.mark.parametrize("n", [25, pytest.param(2500, marks=pytest.mark.long)])
def test_in_thousands_of_mixtures_nothing_is_below_the_truth(n):
    rng = random.Random(7)
    for _ in range(n):
        loss = random_loss(rng)
        epsilon, delta = rng.choice([0.0, 10 ** rng.uniform(-6, 3)]), 10 ** rng.uniform(-15, -0.1)
        claimed = loss.delta(epsilon)
        truth = true_delta(loss, epsilon)
        assert truth <= claimed * (1 + 1e-15), loss
        assert claimed <= truth * (1 + 1e-8) + 1e-12, loss
        delta = loss.stated_delta(delta)
        least = loss.epsilon(delta)
        assert math.isinf(least) or true_delta(loss, least) <= delta * (1 + 1e-15), loss


@pytest.mark.parametrize("epsilon", [1e17, 1e300, 1.7e308])
def test_what_is_far_beyond_any_loss_has_no_delta(epsilon):
    weak = Loss((Shift(1, Sigma(2**39, 0), 1),), (Fraction(1),))
    assert weak.delta(epsilon) <= 1e-280


@pytest.mark.parametrize("mixed", [False, True])
def test_mixtures_with_gaussian_noise_are_those_of_dp_accounting(mixed):
    """Their curve is a proven upper bound on a grid of 1e-4; ours must be within what that grid can move it by."""
    theirs = pld.from_gaussian_mechanism(1.0, use_connect_dots=True)
    loss = Loss((NOISE,), (Fraction(1, 2),) * 4)
    response = pld.from_randomized_response(2 / (1 + math.exp(0.5)), 2)
    for _ in range(4):
        theirs = theirs.compose(response)
    if mixed:
        loss += Loss(pure=(Fraction(1, 5),), approximate=((Fraction(1, 4), Fraction(1, 1000)),))
        theirs = theirs.compose(pld.from_randomized_response(2 / (1 + math.exp(0.2)), 2))
        theirs = theirs.compose(pld.from_privacy_parameters(pld.common.DifferentialPrivacyParameters(0.25, 1e-3)))
    for delta in (2e-3, 1e-2, 0.1):
        assert loss.epsilon(delta) == pytest.approx(theirs.get_epsilon_for_delta(delta), abs=1e-3)


def test_laplace_noise_costs_no_more_than_its_epsilon_says():
    theirs = pld.from_laplace_mechanism(2.0).compose(pld.from_gaussian_mechanism(1.0))
    loss = Loss((NOISE,), (Fraction(1, 2),))
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        assert theirs.get_delta_for_epsilon(epsilon + 1e-3) <= loss.delta(epsilon)


@pytest.mark.parametrize(("demand", "delta"), [(1, 1e-6), (Fraction(LN3), 0.05), (Fraction(1, 10), 1e-6)])
def test_twelve_equal_months_of_geometric_noise_are_what_they_are_together(demand, delta):
    """Two-sided geometric noise and a change by 1 have the losses of randomised response: all of them are summed."""
    loss = Loss(pure=(Fraction(demand),)) + Loss(pure=(Fraction(demand),) * 11)
    with mpmath.workdps(60):
        e = mpmath.mpf(Fraction(demand).numerator) / Fraction(demand).denominator
        p = 1 / (1 + mpmath.exp(-e))

        def exact(epsilon):
            terms = (
                mpmath.binomial(12, k) * p**k * (1 - p) ** (12 - k) * max(0, 1 - mpmath.exp(epsilon - (2 * k - 12) * e))
                for k in range(13)
            )
            return mpmath.fsum(terms)

        claimed = loss.epsilon(delta)
        assert exact(claimed) <= delta
        assert exact(claimed * 0.99) > delta


def test_twelve_equal_months_of_gaussian_noise_are_what_they_are_together():
    """The loss of a discrete Gaussian at n, of a change by 1, is (1 - 2n)/2σ²; twelve are convolved."""
    std = 64
    loss = Loss((Shift(1, Sigma(std, 0), 1),) * 12)
    n = np.arange(-8 * std, 8 * std + 1)
    one = np.exp(-(n**2) / (2 * std**2))
    one /= one.sum()
    law = np.ones(1)
    for _ in range(12):
        law = np.convolve(law, one)
    total = (12 - 2 * (np.arange(len(law)) - 12 * 8 * std)) / (2 * std**2)
    claimed = loss.epsilon(1e-6)

    def exact(epsilon):
        return law @ -np.expm1(np.minimum(0, epsilon - total))

    assert exact(claimed) <= 1e-6 < exact(claimed * 0.99)


# --- its parts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [16, 40])
def test_many_different_epsilons_are_rounded_up_to_a_grid(monkeypatch, n):
    epsilons = [0.05 + 0.01 * math.sqrt(k) for k in range(n)]
    few = Losses.of_responses(epsilons[:12])
    monkeypatch.setattr(loss_distribution, "MOST_OUTCOMES", 2000)
    grid = Losses.of_responses(epsilons[:12])
    assert len(grid.losses) <= 2000 < len(few.losses)
    for mu in (0.0, 0.3):
        for epsilon in (0.0, 0.2, 0.5):
            exact, rounded = few.delta(epsilon, mu), grid.delta(epsilon, mu)
            assert exact <= rounded <= exact * 1.05
    assert math.fsum(Losses.of_responses(epsilons).probabilities) == pytest.approx(1, rel=1e-12)


def test_more_than_a_grid_holds_are_bounded_by_concentration():
    loss = Loss(pure=tuple(Fraction(1, 100 + k) for k in range(2001)))
    assert loss._responses is None
    rho = loss.zcdp()[0]
    assert loss.epsilon(1e-6) == pytest.approx(zcdp.epsilon_of_rho(float(rho), 1e-6), rel=1e-12)
    assert loss.delta(loss.epsilon(1e-6)) == pytest.approx(1e-6, rel=1e-6)


@pytest.mark.parametrize("mu", [1e-3, 0.5, 1.0, 1.5, 30.0])
def test_curves_of_many_thresholds_are_those_of_one(mu):
    thresholds = np.linspace(-mu / 2, 39, 200)
    one_by_one = [log_delta_beyond(float(x), mu) for x in thresholds]
    np.testing.assert_allclose(log_deltas_beyond(thresholds, mu), one_by_one, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("rho", [1e-9, 0.1, 3.0, 1e4])
@pytest.mark.parametrize("delta", [1e-300, 1e-6, 0.3])
def test_concentrated_losses_are_converted_by_the_best_alpha(rho, delta):
    with mpmath.workdps(50):

        def bound(x):
            alpha = 1 + mpmath.exp(x)
            logs = mpmath.log(1 / (mpmath.mpf(delta) * alpha))
            return alpha * mpmath.mpf(rho) + logs / (alpha - 1) + mpmath.log(1 - 1 / alpha)

        best = max(0, min(bound(mpmath.mpf(x) / 20) for x in range(-400, 1000)))
        found = zcdp.epsilon_of_rho(rho, delta)
        assert found <= float(best) * (1 + 1e-9) + 1e-12
        assert found >= float(best) * 0.995 - 1e-4
    assert zcdp.delta_of_rho(rho, found) <= delta * (1 + 1e-6) or found == 0


def test_what_costs_nothing_and_what_cannot_be_bounded():
    assert Loss().epsilon(0) == Loss().epsilon(0.1) == Loss().delta(0) == 0
    assert Loss((WEAK,)).epsilon(0) == math.inf
    assert Loss(pure=(Fraction(1, 3),)).epsilon(0) == pytest.approx(1 / 3, abs=1e-16)
    assert Fraction(Loss(pure=(Fraction(1, 3),)).epsilon(0)) >= Fraction(1, 3)
    told = Loss(approximate=((Fraction(1), Fraction(1e-6)),))
    assert told.epsilon(1e-7) == math.inf
    assert told.epsilon(1e-6) == 1
    assert told.delta(1) == told.delta(100) == 1e-6
    assert (told + Loss((WEAK,))).epsilon(1e-6) == math.inf
    assert Loss(pure=(Fraction(10**400),)).epsilon(1e-6) == math.inf
    assert Loss(pure=(Fraction(10**400),)).delta(3.0) == 1.0
    assert Loss(approximate=((Fraction(0), Fraction(1)),)).delta(5) == 1


@given(st.lists(shifts, max_size=3).map(tuple), st.sampled_from([1e-9, 0.05]))
def test_gaussian_noise_alone_is_what_its_own_accountant_says(shifts, delta):
    assert Loss(shifts).epsilon(delta) <= gaussian.epsilon(shifts, delta)
    assert Loss(shifts).zcdp() == (gaussian.zcdp_rho(shifts), 0)


@given(losses, losses, st.integers(1, 4))
def test_losses_add_up_and_go_through_text(first, second, size):
    both = first + second
    assert (both.shifts, both.pure) == (first.shifts + second.shifts, first.pure + second.pure)
    assert Loss.from_json(both.to_json()) == both
    assert both.zcdp()[0] == first.zcdp()[0] + second.zcdp()[0]
    assert both.of_group(1) == both
    group = both.of_group(size)
    assert group.pure == tuple(size * x for x in both.pure)
    for (epsilon, delta), (more, total) in zip(both.approximate, group.approximate, strict=True):
        least = sum(float(delta) * math.exp(k * epsilon) for k in range(size)) if epsilon < 100 else 1
        assert more == size * epsilon
        assert delta <= total <= 1
        assert float(total) == pytest.approx(min(1, least), rel=1e-12)


def test_large_groups():
    one = Loss(approximate=((Fraction(1, 1000), Fraction(1, 10**9)),))
    ((_, exact),) = one.of_group(1000).approximate
    assert exact >= sum(Fraction(math.exp(k / 1000)) for k in range(1000)) / 10**9 * (1 - Fraction(1, 10**13))
    assert one.of_group(1001).approximate[0][1] >= exact
    assert one.of_group(10**9).approximate[0][1] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pure": [Fraction(1)]}, "^pure must be a tuple"),
        ({"pure": (1.0,)}, "^pure must be of epsilons that are Fractions"),
        ({"pure": (Fraction(-1),)}, "^pure must be of epsilons"),
        ({"approximate": ((Fraction(1),),)}, "^approximate must be pairs"),
        ({"approximate": ((Fraction(1), Fraction(2)),)}, "^approximate must be of deltas"),
        ({"shifts": ((1, 2, 3),)}, "^shifts must be "),
    ],
)
def test_parts_that_are_none_are_refused_by_name(arguments, message):
    with pytest.raises(ValueError, match=message):
        Loss(**arguments)


NO_NUMBER = '{"shifts": [], "pure": ["1/0"], "approximate": []}'


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", NO_NUMBER, '{"shifts": [], "pure": [1.5], "approximate": []}', "[" * 10_000]
)
def test_texts_that_are_no_loss_are_refused(text):
    with pytest.raises(ValueError, match="the text must be a loss as to_json writes it"):
        Loss.from_json(text)


def test_arguments_out_of_range_are_refused_by_name():
    for delta in (-0.1, 1, math.nan, None):
        with pytest.raises(ValueError, match=r"^delta must be "):
            Loss().epsilon(delta)
    for epsilon in (-0.1, math.inf, None):
        with pytest.raises(ValueError, match=r"^epsilon must be "):
            Loss().delta(epsilon)
    with pytest.raises(ValueError, match=r"^size must be "):
        Loss().of_group(0)
    with pytest.raises(TypeError):
        Loss() + 1


def test_a_year_of_days_is_composed_at_once():
    day = Loss((WEAK,), (Fraction(1, 10),))
    year = sum([day] * 365, Loss())
    begin = time.process_time()
    assert 0 < year.epsilon(1e-6) < 365 / 10
    assert time.process_time() - begin < 1  # 15 ms; quadratic work would take minutes
