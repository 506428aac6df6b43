"""Realised prefilters: within their tolerance for every target, of few states, and stable with their inverse."""

import functools
import itertools
import math
import warnings

import numpy as np
import pytest
from helpers.covers import long_but, pairwise
from scipy import optimize, signal

from dpfast import ARMA, Filter, MarkovChain, Privacy, ToleranceWarning, UnstableFilterError
from dpfast.design.prefilter import objectives, order_selection, rational_fit, short_fir, water_filling
from dpfast.design.prefilter.short_fir import ideal_impulse_response, truncate_impulse_response
from dpfast.filters.filter import MAX_POLE_RADIUS


def resonator(radius, angle):
    return Filter([1], [1, -2 * radius * math.cos(angle), radius**2])


TARGETS = {
    "one": Filter([1]),
    "delay": Filter([0, 0, 1]),
    "example": Filter([1, 0.995], [1, -0.995]),
    "moving average of 3": Filter(np.ones(3) / 3),
    "moving average of 10": Filter(np.ones(10) / 10),
    "moving average of 12": Filter(np.ones(12) / 12),
    "moving average of 50": Filter(np.ones(50) / 50),
    "difference": Filter([1, -1]),
    "second difference": Filter([1, -2, 1]),
    "sum of two": Filter([1, 1]),
    "not minimum phase": Filter([1, -2]),
    "resonator .97": resonator(0.97, 1),
    "resonator .999": resonator(0.999, 0.5),
    "Butterworth": Filter.from_sos(signal.butter(4, 0.1, output="sos")),
    "narrow Butterworth": Filter.from_sos(signal.butter(8, 0.02, output="sos")),
    "elliptic": Filter.from_sos(signal.ellip(5, 0.5, 40, 0.3, output="sos")),
    "high-pass": Filter.from_sos(signal.butter(3, 0.3, "high", output="sos")),
    "notch": Filter(*signal.iirnotch(0.3, 30)),
    "pole .9999": Filter([1], [1, -0.9999]),
    "pole at the limit": Filter([1], [1, -MAX_POLE_RADIUS]),
    "near-coincident poles": Filter.from_zpk([], [0.9999, 0.99985], 1.0),
    "zero almost on the circle": Filter([1, -0.99999]),
    "comb": Filter([1] + [0] * 9 + [-1]),
    "long denominator": Filter([1], [1] + [0] * 39 + [-0.5]),
}
LONG_FIR = {"moving average of 12", "moving average of 50", "comb", "long denominator"}
MODEL = MarkovChain([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5])
QUICK = [
    *("one", "delay", "example", "moving average of 12", "second difference", "not minimum phase"),
    *("resonator .97", "near-coincident poles", "zero almost on the circle"),
]
every_target = pytest.mark.parametrize("name", long_but([*TARGETS], QUICK))


def problem(target, model=None):
    return objectives.Problem(target, model, Privacy(math.log(3), 0.05, calibration="paper").noise_multiplier ** 2)


def zero_forcing(target):
    return objectives.zero_forcing_objective(problem(target))


def smoother(target, model=MODEL):
    p = problem(target, model)
    return objectives.smoother_objective(p, water_filling.smoother_water_filling(p))


def feedback(target, model=MODEL):
    p = problem(target, model)
    return objectives.feedback_objective(p, water_filling.feedback_water_filling(p))


@functools.cache
def realized(name):
    return order_selection.realize(zero_forcing(TARGETS[name]), tolerance=1e-3)


def mean(function, roots, degree):
    """<f> by Gauss-Legendre on panels between angles that crowd around each root; not the package's grid."""
    edges = [np.linspace(0, np.pi, 65 + degree)]
    for root in roots:
        offsets = np.geomspace(max(abs(math.log(abs(root))), 1e-9) / 4, 4, 90)
        edges += [abs(np.angle(root)) + np.concatenate([-offsets, [0], offsets])]
    edges = np.unique(np.clip(np.concatenate(edges), 0, np.pi))
    x, w = np.polynomial.legendre.leggauss(10)
    half = np.diff(edges)[:, None] / 2
    omega = (edges[:-1, None] + half * (1 + x)).ravel()
    return float((half * w).ravel() @ function(omega)) / np.pi


def zero_forcing_excess(target, g):
    """<|G|²><|F|²/|G|²>/<|F|>² - 1, from the definitions."""
    roots = np.concatenate([target.poles, target.zeros, g.poles, [] if g.order > 50 else g.zeros])
    degree = target.order + g.order

    def gain(omega):
        return np.abs(target.response(omega))

    def power(omega):
        return np.abs(g.response(omega)) ** 2

    product = mean(power, roots, degree) * mean(lambda w: gain(w) ** 2 / power(w), roots, degree)
    return product / mean(gain, roots, degree) ** 2 - 1


# --- the fit --------------------------------------------------------------------------------------


FITS = [zero_forcing, smoother, feedback], ["example", "moving average of 3", "resonator .97", "elliptic"], [1, 2, 5]


@pytest.mark.parametrize(("objective", "name", "order"), long_but([*itertools.product(*FITS)], pairwise(*FITS)))
def test_gradient_of_the_fit_is_that_of_finite_differences(objective, name, order):
    fit = rational_fit._Fit(*rational_fit._resolve(objective(TARGETS[name])))
    start = np.random.default_rng(order).uniform(-0.8, 0.8, 2 * order)
    value, gradient = fit(start)
    assert math.isfinite(value)
    numeric = optimize.approx_fprime(start, lambda x: fit(x)[0], 1e-6)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=3e-6 * max(1, np.abs(gradient).max()))


@pytest.mark.parametrize("objective", [zero_forcing, smoother, feedback])
def test_loss_of_the_ideal_shape_is_the_ideal_and_stationary(objective):
    o = objective(TARGETS["example"])
    grid, loss = o.resolve(np.empty(0), 0)
    shape = np.maximum(o.shape(grid.omega), 1e-12)
    value, slope = loss(shape)
    assert value == pytest.approx(o.ideal, rel=1e-6)
    assert np.abs(slope[shape > 1e-6]).max() <= 1e-6 * value


@pytest.mark.parametrize("objective", [zero_forcing, smoother, feedback])
def test_loss_does_not_depend_on_the_gain(objective):
    o = objective(TARGETS["example"])
    g = Filter([1, 0.5], [1, -0.9])
    assert o.excess(g * 7) == pytest.approx(o.excess(g), rel=1e-9)
    assert o.excess(g) >= 0


# --- what is realised -----------------------------------------------------------------------------


@every_target
def test_excess_is_within_the_tolerance(name):
    excess = zero_forcing_excess(TARGETS[name], realized(name))
    assert -1e-9 <= excess <= 1.02e-3


@every_target
def test_realised_filters_are_stable_minimum_phase_and_of_unit_norm(name):
    g = realized(name)
    assert (np.abs(g.poles) <= MAX_POLE_RADIUS).all()
    assert (np.abs(g.zeros) <= MAX_POLE_RADIUS + 1e-9).all()
    assert g.h2_norm() == pytest.approx(1, rel=1e-9)
    slow = np.abs(g.poles).max(initial=0) > 0.999
    assert np.linalg.norm(g.impulse(2_000_000 if slow else 50_000)) == pytest.approx(1, rel=1e-8)


@every_target
def test_realised_filters_can_be_inverted(name):
    g = realized(name)
    x = np.random.default_rng(0).standard_normal(300)
    there = signal.lfilter(g.b, g.a, x) if g.is_fir else signal.sosfilt(g.sos.copy(), x)
    inverse = g.inverse()
    back = signal.lfilter(inverse.b, inverse.a, there) if g.is_fir else signal.sosfilt(inverse.sos.copy(), there)
    np.testing.assert_allclose(back, x, atol=1e-7)


@every_target
def test_short_fir_is_chosen_where_it_is_cheaper(name):
    g = realized(name)
    if name in LONG_FIR:
        assert g.is_fir
        assert 8 <= len(g.b) <= 512
    else:
        assert g.order <= 14


def test_a_few_taps_are_chosen_where_they_are_cheaper_than_the_states():
    """1 + z⁻⁷/2 takes seven states; √(1 + z⁻⁷/2) ≈ 1 + z⁻⁷/4 - z⁻¹⁴/32 has as many taps as six of them cost."""
    target = Filter([1, 0, 0, 0, 0, 0, 0, 0.5])
    g = order_selection.realize(zero_forcing(target), tolerance=1e-3)
    assert g.is_fir
    assert len(g.b) <= 17
    assert zero_forcing_excess(target, g) <= 1e-3


def test_example_takes_four_states_and_its_smoother_five():
    assert realized("example").order <= 4
    assert order_selection.realize(smoother(TARGETS["example"]), tolerance=1e-3).order <= 5


def test_a_constant_needs_no_states():
    assert realized("one") == Filter([1])
    assert realized("delay").order == 0


def test_a_pole_at_minus_the_limit_is_realised_as_one_at_plus_the_limit_is():
    target = Filter([1], [1, MAX_POLE_RADIUS])
    g = order_selection.realize(zero_forcing(target), tolerance=1e-3)
    assert zero_forcing_excess(target, g) <= 1.02e-3
    assert g.order <= 9


@pytest.mark.parametrize(("angle", "tolerance"), long_but([(0.3, 1e-3), (2.0, 1e-3), (2.0, 1e-2)], [(2.0, 1e-2)]))
def test_a_resonator_at_the_limit_is_realised_or_warned_about(angle, tolerance):
    target = resonator(MAX_POLE_RADIUS, angle)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        g = order_selection.realize(zero_forcing(target), tolerance=tolerance)
    excess = zero_forcing_excess(target, g)
    assert excess <= (0.05 if caught else 1.02 * tolerance)
    assert all(w.category is ToleranceWarning for w in caught)


@pytest.mark.parametrize(
    "name",
    long_but(["example", "moving average of 3", "resonator .97", "pole .9999"], ["moving average of 3"]),
)
def test_a_tighter_tolerance_loses_no_more(name):
    o = zero_forcing(TARGETS[name])
    made = {1e-3: realized(name)} | {t: order_selection.realize(o, tolerance=t) for t in (0.1, 1e-2, 1e-4)}
    found = [o.excess(made[t]) for t in (0.1, 1e-2, 1e-3, 1e-4)]
    assert (np.diff(found) <= 1e-12).all()
    assert (np.array(found) <= [0.1, 1e-2, 1e-3, 1e-4]).all()


OTHERS = [smoother, feedback], ["chain", "AR(2)"], ["example", "moving average of 12"]
FEW_OTHERS = [(smoother, "chain", "example"), (feedback, "AR(2)", "moving average of 12")]


@pytest.mark.parametrize(("objective", "model", "name"), long_but([*itertools.product(*OTHERS)], FEW_OTHERS))
def test_other_objectives_are_realised(objective, model, name):
    o = objective(TARGETS[name], MODEL if model == "chain" else ARMA([1], [1, -1.2, 0.72]))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        g = order_selection.realize(o, tolerance=1e-2)
    assert not caught
    assert -1e-9 <= o.excess(g) <= 1e-2
    assert g.h2_norm() == pytest.approx(1, rel=1e-9)
    assert (np.abs(np.concatenate([g.poles, g.zeros])) < 1).all()


def test_tolerance_that_cannot_be_reached_is_warned_about(monkeypatch):
    for module in (order_selection, short_fir):
        monkeypatch.setattr(module, "MAX_TAPS", 32)
    for module in (order_selection, rational_fit):
        monkeypatch.setattr(module, "MAX_ORDER", 3)
    o = zero_forcing(TARGETS["moving average of 12"])
    with pytest.warns(
        ToleranceWarning, match=r"tolerance is 1e-12: no order up to 3 and no FIR up to 32 taps .* raise tolerance"
    ):
        g = order_selection.realize(o, tolerance=1e-12)
    assert 1e-12 < o.excess(g) < 0.1


def test_a_given_excess_decides(monkeypatch):
    for module in (order_selection, rational_fit):
        monkeypatch.setattr(module, "MAX_ORDER", 3)
    o = zero_forcing(TARGETS["example"])
    seen = []

    def measure(g):
        seen.append(g.order)
        return 0.0 if g.order == 2 else 1.0

    assert order_selection.realize(o, tolerance=1e-3, excess=measure).order == 2
    assert seen == [0, 1, 2, 4]  # last the five taps that cost as much as two states


def test_inverse_of_a_prefilter_with_a_zero_on_the_circle_is_refused():
    # what realise avoids by keeping zeros inside
    with pytest.raises(UnstableFilterError):
        TARGETS["difference"].inverse()


@pytest.mark.parametrize("n", [8, 13, 32, 128])
def test_a_short_response_can_be_inverted(n):
    """Of |1 + z⁻¹ + ... + z⁻¹¹|², whose zeros are on the circle."""
    average = Filter(np.ones(12) / 12)
    ideal = ideal_impulse_response(lambda omega: np.abs(average.response(omega)) ** 2)
    found = truncate_impulse_response(ideal, n, lambda g: 0.0)[1]
    assert np.abs(found.zeros).max() <= MAX_POLE_RADIUS
    assert found.inverse().is_fir is False
