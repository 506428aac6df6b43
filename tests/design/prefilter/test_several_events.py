"""Designs for users who contribute several events: what is ideal, and what is realised."""

import itertools
import math
import warnings

import numpy as np
import pytest
from helpers.covers import long_but
from helpers.designs import designed

from dpfast import ARMA, ConvergenceWarning, Filter, MarkovChain, Privacy, lmmse, optimal, zero_forcing
from dpfast.design.prefilter.several_events import ONE_EVENT, Mixture

EXAMPLE = Filter([1, 0.995], [1, -0.995])
CHAIN = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
ON_THE_CIRCLE = ARMA([1, 1], [1, -0.5])


def paper(max_events, min_separation):
    return Privacy(math.log(3), 0.05, max_events=max_events, min_separation=min_separation, calibration="paper")


def per_kappa(mse, privacy):
    return math.sqrt(mse) / privacy.noise_multiplier


# RMSE/κ on the example at m = 2: the ideal, and the plain LZF prefilter with the sensitivity to two events
TWO_EVENTS = [(1, 8.117, 8.184), (10, 7.023, 7.283), (50, 6.430, 6.673), (200, 6.062, 6.202)]


@pytest.mark.parametrize(
    ("min_separation", "ideal", "plain"),
    long_but(TWO_EVENTS, TWO_EVENTS[:1]),
)
def test_zero_forcing_for_two_events(min_separation, ideal, plain):
    privacy = paper(2, min_separation)
    mechanism = designed(zero_forcing, EXAMPLE, privacy)
    assert per_kappa(mechanism.ideal_mse, privacy) == pytest.approx(ideal, rel=1e-3)
    assert 0 <= mechanism.ideal_mse / mechanism.lower_bound_mse - 1 <= 2e-4
    assert mechanism.lower_bound_mse * (1 - 1e-9) <= mechanism.predicted_mse <= mechanism.ideal_mse * (1 + 1e-3)
    assert per_kappa(mechanism.predicted_mse, privacy) < plain
    assert mechanism.noise_std == privacy.noise_std(mechanism.prefilter)


@pytest.mark.parametrize(("min_separation", "plain"), [(b, plain) for b, _, plain in TWO_EVENTS])
def test_the_plain_prefilter_for_two_events(min_separation, plain):
    # the oracle of the comparison: the noise of |G|² ∝ |F| with the sensitivity to two events
    privacy = paper(2, min_separation)
    single = designed(zero_forcing, EXAMPLE, paper(1, 1), tolerance=1e-4)
    noise = privacy.noise_std(single.prefilter) / single.noise_std
    assert per_kappa(single.predicted_mse * noise**2, privacy) == pytest.approx(plain, rel=1e-3)


SOURCES = {"chain": CHAIN, "zero on the circle": ON_THE_CIRCLE}


@pytest.mark.parametrize(
    ("design", "lag", "name"),
    long_but(
        [*itertools.product([lmmse, optimal], [0, 5, None], SOURCES)],
        [(optimal, 0, "chain")],
    ),
)
def test_two_events(design, lag, name):
    model = SOURCES[name]
    privacy = paper(2, 1)
    # what is fitted are the mixed times, not the worst ones of the fit: they may differ by more than 1e-3
    mechanism = design(EXAMPLE, privacy, model, lag=lag, tolerance=3e-3)
    assert mechanism.noise_std == privacy.noise_std(mechanism.prefilter)
    assert mechanism.predicted_mse <= mechanism.ideal_mse * (1 + 3.001e-3)
    given = lmmse(EXAMPLE, privacy, model, lag=lag, prefilter=mechanism.prefilter)
    assert given.predicted_mse == pytest.approx(mechanism.predicted_mse, rel=1e-9)
    one = designed(optimal, EXAMPLE, paper(1, 1), model, lag=lag, tolerance=0.1)
    assert one.lower_bound_mse < mechanism.predicted_mse <= designed(zero_forcing, EXAMPLE, privacy).predicted_mse
    if mechanism.lower_bound_mse is not None:
        assert 0 <= mechanism.ideal_mse / mechanism.lower_bound_mse - 1 <= 2e-4
        assert mechanism.predicted_mse >= mechanism.lower_bound_mse * (1 - 1e-9)


ALTERNATING = {"slow": Filter([1], [1, 0.7]), "difference": Filter([1, -1]), "comb": Filter([1, 0, 0, -0.9])}


@pytest.mark.parametrize(
    ("name", "lags", "tolerance"),
    long_but(
        [("comb", (None,), 0.05), *((name, (0, 2, 7, None), 1e-3) for name in ALTERNATING)], [("comb", (None,), 0.05)]
    ),
)
def test_two_events_behind_filters_that_alternate(name, lags, tolerance):
    target, errors = ALTERNATING[name], []
    for lag in lags:
        mechanism = optimal(target, paper(2, 1), CHAIN, lag=lag, tolerance=tolerance)
        assert mechanism.lower_bound_mse <= mechanism.ideal_mse <= mechanism.lower_bound_mse * (1 + 2e-3)
        assert (
            mechanism.ideal_mse * (1 - 1e-9) <= mechanism.predicted_mse <= mechanism.ideal_mse * (1 + 1.001 * tolerance)
        )
        errors.append(mechanism.ideal_mse)
    assert all(late <= early * (1 + 2e-3) for early, late in itertools.pairwise(errors))


@pytest.mark.long
def test_the_joint_optimum_is_below_the_two_step_design_for_two_events():
    joint, two_step = (design(EXAMPLE, paper(2, 10), CHAIN, lag=5) for design in (optimal, lmmse))
    assert joint.predicted_mse < two_step.predicted_mse


MANY = {"slow": EXAMPLE, "sum": Filter([1, 1])}
COUNTS = [(3, 3), (5, 50), (5, 3), (200, 1), (10**6, 1)]  # how many, and how far apart


@pytest.mark.parametrize(
    ("name", "max_events", "min_separation"),
    long_but(
        [(name, *count) for name in MANY for count in COUNTS],
        [("sum", 5, 3)],
    ),
)
def test_many_events(name, max_events, min_separation):
    target = MANY[name]
    privacy = paper(max_events, min_separation)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mechanism = zero_forcing(target, privacy)
    assert mechanism.noise_std == privacy.noise_std(mechanism.prefilter)
    single = designed(zero_forcing, target, paper(1, 1))
    plain = single.predicted_mse * (privacy.noise_std(single.prefilter) / single.noise_std) ** 2
    assert mechanism.lower_bound_mse == pytest.approx(max_events * single.ideal_mse, rel=1e-9)  # events far apart
    assert mechanism.lower_bound_mse * (1 - 1e-9) <= mechanism.predicted_mse <= plain * (1 + 1e-9)
    for other in (
        Filter([1]),
        Filter([1, 0.99]),
        Filter([1], [1, -0.5]),
        Filter([1], [1, 0.5]),
        Filter([1, 0, 0, 0.5]),
    ):
        error = (privacy.noise_std(other) * (target * other.inverse()).h2_norm()) ** 2
        assert mechanism.lower_bound_mse <= error * (1 + 1e-9)


def test_a_design_that_may_not_be_the_best_is_told():
    with pytest.warns(ConvergenceWarning, match=r"times of 100 events may have an MSE 0\.\d+ \(relative\) above"):
        zero_forcing(Filter([1, -1]), paper(100, 1))


# --- the mixture ----------------------------------------------------------------------------------


SHORT = {
    "alternating decay": (-0.7) ** np.arange(12),
    "alternating": np.array([1.0, -1, 1, -1]),
    "sum": np.array([1.0, 1, 1]),
    "mixed": np.array([1.0, 0.5, -2, 0, 1]),
    "comb": np.array([1.0, 0, 0, -1, 0, 0, 1]),
}


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize(("events", "apart"), [(2, 1), (3, 2), (5, 3), (40, 1)])
def test_worst_times_are_the_first_bound_of_the_sensitivity(name, events, apart):
    g, privacy = SHORT[name], Privacy(1, 1e-6, max_events=events, min_separation=apart)
    mixture = Mixture(privacy, 2**12)
    power = np.abs(Filter(g).response(mixture.grid.omega)) ** 2
    r = np.abs(np.correlate(g, g, "full")[len(g) - 1 :])
    beyond = [r[min(lag, len(r)) :].max(initial=0.0) for lag in range(events * apart + 1)]
    bound = events * r[0] + 2 * sum((events - k) * beyond[k * apart] for k in range(1, events))
    bound = min(bound, events * power.max())
    assert events * mixture.squared_sensitivity(power) == pytest.approx(bound, rel=1e-12)


def test_a_mixture_ascends_and_stays_a_weight():
    mixture = Mixture(paper(5, 3), 2**13)
    size = np.abs(EXAMPLE.response(mixture.grid.omega))
    values = []
    for _ in range(20):
        weight = mixture.contributions().weight(mixture.grid.omega)
        assert (weight > 0).all()
        assert mixture.grid.mean(weight**2) == pytest.approx(1, rel=1e-3)
        values.append(mixture.grid.mean(weight * size))
        mixture.ascend(size, 1.0)
    assert values[-1] > values[0]
    np.testing.assert_allclose(mixture.probabilities.sum(axis=(0, 2)), 1, rtol=1e-12)


def test_one_event_has_no_weight():
    np.testing.assert_array_equal(ONE_EVENT.weight(np.linspace(0, np.pi, 5)), 1)


@pytest.mark.parametrize("angle", [0.0, 1.0, np.pi / 2, np.pi])
@pytest.mark.parametrize("width", [np.pi / 2**12, np.pi / 2**20, np.pi / 2**40])
def test_a_band_narrower_than_a_step_counts_with_its_width(angle, width):
    mixture = Mixture(paper(2, 1), 2**10)
    sampled = mixture.sample(lambda omega: 1.0 * (np.abs(omega - angle) > width), [np.exp(1j * angle), 0.5])
    lost = width / np.pi * (1 if angle in (0, np.pi) else 2)
    assert 1 - mixture.grid.mean(sampled) == pytest.approx(lost, rel=1e-9, abs=1e-15)


SEASONS = {1: ARMA([1, -1]), 4: ARMA([1, 0, 0, 0, -1])}


SEASONAL = [(4, 3e-4, 1), (1, 1e-7, 4), (4, 1e-9, 1), (1, 1.0, 1)]


@pytest.mark.parametrize(
    ("season", "noise", "min_separation", "tolerance"),
    long_but([(*x, y) for x in SEASONAL for y in (5e-2, 1e-2)], [(*SEASONAL[0], 5e-2)]),
)
def test_bounds_for_two_events_are_below_ideals_and_ideals_below_what_is_reached(
    season, noise, min_separation, tolerance
):
    """Also where the spectrum vanishes at some frequencies, and only bands beside them let nothing pass."""
    privacy = Privacy(1, 1e-6, max_change=noise, max_events=2, min_separation=min_separation)
    mechanism = lmmse(Filter([1], [1, -0.9]), privacy, SEASONS[season], tolerance=tolerance)
    assert mechanism.lower_bound_mse <= mechanism.ideal_mse <= mechanism.lower_bound_mse * (1 + 1e-3)
    assert mechanism.ideal_mse * (1 - 1e-12) <= mechanism.predicted_mse <= mechanism.ideal_mse * (1 + tolerance)
