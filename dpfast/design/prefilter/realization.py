r"""Realise a wanted magnitude as a minimum-phase filter of few states.

G = Π N_i / Π D_i of second-order sections in reflection coefficients (through tanh, so that it is always stable and
minimum phase) is fitted by BFGS on the *true* loss of the mechanism, not on a distance between curves. The order grows
until the loss is within the tolerance of the ideal. Where a target has many zeros on the circle a short FIR is cheaper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import linalg

from dpfast._support.errors import ToleranceWarning, warn
from dpfast._support.validation import Array, Complex
from dpfast.filters.filter import MAX_POLE_RADIUS, Filter
from dpfast.filters.quadrature import QuadratureGrid
from dpfast.filters.sections import make_sections
from dpfast.filters.spectral_factor import (
    Spectrum,
    allpass,
    choose_warp,
    fft_angles,
    fft_length,
    minimum_phase,
    warped_angles,
)

Loss = Callable[[Array], tuple[float, Array]]
Excess = Callable[[Filter], float]

MAX_ORDER = 16
MAX_TAPS = 4096
TAPS_PER_STATE = 2.5  # a state in sections takes as many multiply-adds as this many taps
PATIENCE = 9  # orders after which the trend decides whether more states are worth while
GROWTH_STARTS = 2
_LONG_FIT = 2**15  # nodes from which on an evaluation takes long
_REDUCED_LENGTH = 256  # samples of the warped impulse response that is reduced to few states
_FLOOR = 1e-5  # of the largest value: what stands for a zero of the shape
_INSIDE = MAX_POLE_RADIUS - 1e-6
_REACH = 1 - 1e-12  # largest reflection coefficient of a fit: no root is ever on the circle
_AT_THE_ENDS = 0.9  # a detail whose angle has a cosine above this counts as one at 0 or π
_CANCELLING = (0.8, 1.25)  # distances from the circle of a new zero and of its pole


class Objective(NamedTuple):
    """A loss J(G) to be made small.

    Attributes
    ----------
    resolve : callable
        (roots, degree) → a grid that resolves the target, the signal, those roots, and that many taps; and the loss on
        it: |G|² → (J, S) with dJ = <S · d ln|G|²>. J must not depend on the gain of G.
    shape : callable
        ω → the ideal |G|².
    ideal : float
        The loss of the ideal G.
    detail : complex
        Where the finest detail of the shape is: the root that is nearest to the circle.
    draft : Objective, optional
        One that is quick to evaluate and least for the same shape: fits start from its fits.
    """

    resolve: Callable[[Complex, int], tuple[QuadratureGrid, Loss]]
    shape: Spectrum
    ideal: float
    detail: complex
    draft: Objective | None = None

    def excess(self, g: Filter) -> float:
        """Return the relative excess of the loss of `g` over the ideal, on a grid that resolves `g` too."""
        grid, loss = self.resolve(np.concatenate([g.poles, np.empty(0) if g.is_fir else g.zeros]), g.order)
        return loss(np.abs(g.response(grid.omega)) ** 2)[0] / self.ideal - 1


def realize(objective: Objective, *, tolerance: float, excess: Excess | None = None) -> Filter:
    """Return a minimum-phase filter of unit H2 norm whose loss is within a relative `tolerance` of the ideal.

    It has the fewest states that reach the tolerance, or is a short FIR if that is cheaper.

    Parameters
    ----------
    objective : Objective
    tolerance : float
        Allowed relative excess of the loss.
    excess : callable, optional
        G → relative excess of the loss that decides; by default that of the objective.

    Warns
    -----
    ToleranceWarning
        Where neither 16 states nor 4096 taps reach the tolerance; the best filter found is returned.
    """
    measure = excess or objective.excess
    found, best = best_realization(objective, measure, tolerance)
    check_excess(found, tolerance)
    return best


def check_excess(excess: float, tolerance: float) -> None:
    """Warn where a realised prefilter does not reach its tolerance."""
    if excess > tolerance:
        warn(
            f"the realised prefilter has an MSE {excess:.2g} (relative) above the ideal, tolerance is {tolerance:g}: "
            f"no order up to {MAX_ORDER} and no FIR up to {MAX_TAPS} taps was found that reaches it; "
            "raise tolerance or smooth the target",
            ToleranceWarning,
        )


def best_realization(objective: Objective, measure: Excess, tolerance: float) -> tuple[float, Filter]:
    """Return the excess and the filter of :func:`realize`, without a warning."""
    found, best = math.inf, Filter([1.0])
    history: list[float] = []
    for candidate in _rational_filters(objective):
        history.append(measure(candidate))
        if history[-1] < found:
            found, best = history[-1], candidate
        if found <= tolerance or (len(history) > PATIENCE and not _worth_growing(history, tolerance)):
            break
    most = int(TAPS_PER_STATE * best.order) if found <= tolerance else MAX_TAPS
    if most > 0:
        taps_found, taps = _short_fir(objective.shape, measure, tolerance, most)
        if taps_found <= max(found, tolerance):
            found, best = taps_found, taps
    return found, best * (1 / best.h2_norm())


def _worth_growing(history: list[float], tolerance: float) -> bool:
    """Return whether the trend of the last orders reaches the tolerance within the largest order."""
    rate = math.log(max(history[-3], 1e-16) / max(history[-1], 1e-16)) / 2
    return rate > 0 and len(history) - 1 + math.log(history[-1] / tolerance) / rate <= MAX_ORDER


# --- short FIR ------------------------------------------------------------------------------------


def _short_fir(shape: Spectrum, measure: Excess, tolerance: float, most: int) -> tuple[float, Filter]:
    """Return the shortest truncation of the ideal impulse response within the tolerance, to an eighth of its length.

    If `most` taps are not enough, the result has so many.
    """
    ideal = ideal_impulse_response(shape)
    low, high = 0, min(8, most)
    while (result := truncate_impulse_response(ideal, high, measure))[0] > tolerance:
        if high == most:
            return result
        low, high = high, min(2 * high, most)
    while high - low > max(1, high // 8):
        middle = (low + high) // 2
        tried = truncate_impulse_response(ideal, middle, measure)
        if tried[0] <= tolerance:
            high, result = middle, tried
        else:
            low = middle
    return result


def ideal_impulse_response(shape: Spectrum) -> Array:
    """Return the impulse response of the minimum-phase filter with |G|² the shape, long enough for every FIR here."""
    n = 16 * MAX_TAPS
    return np.fft.irfft(minimum_phase(_raise_to_floor(shape(fft_angles(n)))))


def truncate_impulse_response(ideal: Array, n: int, measure: Excess) -> tuple[float, Filter]:
    """Return the first n taps, with zeros reflected into the circle and kept so far off it that 1/G is a filter."""
    taps = ideal[:n]
    size = fft_length(_INSIDE, decay=8.0)
    magnitude = np.abs(np.fft.rfft(taps, size)) ** 2
    reflected = Filter(np.fft.irfft(minimum_phase(_raise_to_floor(magnitude, 1e-14)))[:n])
    nearest = float(np.abs(reflected.zeros).max(initial=0.0))
    if nearest > _INSIDE:
        reflected = Filter(reflected.b * (_INSIDE / nearest) ** np.arange(len(reflected.b)))
    return measure(reflected), reflected


def _raise_to_floor(spectrum: Array, floor: float = 1e-9) -> Array:
    return np.asarray(np.maximum(spectrum, floor * spectrum.max()))


# --- rational filters -----------------------------------------------------------------------------
# Parameters: the reflection coefficients (before tanh) of the numerator, then those of the denominator. A polynomial of
# degree n is n // 2 sections 1 + k1 (1 + k2) z^-1 + k2 z^-2, and for odd n a last one 1 + k z^-1.


def _rational_filters(objective: Objective) -> Iterator[Filter]:
    """Yield the best filter found for 0, 1, 2, ... states."""
    return map(_make_filter, _fitted_parameters(objective))


def _fitted_parameters(objective: Objective) -> Iterator[Array]:
    """Yield the parameters of the best filters; if an evaluation takes long, those of the draft."""
    yield np.empty(0)
    drafts = iter(()) if objective.draft is None else _fitted_parameters(objective.draft)
    next(drafts, None)
    fit = _Fit(objective)
    if objective.draft is not None and len(fit.weights) > _LONG_FIT:
        yield from drafts
        return
    reduced = _starts_by_reduction(objective)
    best = [np.empty(0)]
    for order in range(1, MAX_ORDER + 1):
        drafted = next(drafts, None)
        more = [x for fewer, x in ((1, _add_real_pair), (2, _add_complex_pair)) if fewer <= order]
        grown = [start for i, grow in enumerate(more, 1) for start in grow(best[-i], objective.detail)]
        grown = sorted(grown, key=lambda start: fit(start)[0])
        starts = [*reduced(order), *grown[:GROWTH_STARTS], *([] if drafted is None else [drafted])]
        best.append(min((_minimize(fit, start) for start in starts), key=lambda x: x[0])[1])
        yield best[-1]


def _minimize(fit: _Fit, start: Array) -> tuple[float, Array]:
    from scipy import optimize  # late: it takes a fifth as long to import as all of dpfast

    result = optimize.minimize(fit, start, jac=True, method="BFGS", options={"maxiter": 120, "gtol": 1e-7})
    return float(result.fun), np.asarray(result.x)


class _Fit:
    """The function that is minimised: parameters → ln J and its gradient."""

    def __init__(self, objective: Objective) -> None:
        grid, self.loss = objective.resolve(np.empty(0, dtype=np.complex128), 0)
        self.weights = grid.weights
        self.cos, self.sin2 = np.cos(grid.omega), np.sin(grid.omega) ** 2

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        numerator, denominator = np.split(parameters, 2)
        above, below = self._sections(numerator), self._sections(denominator)
        log_gain = np.log(above[2]).sum(axis=0) - np.log(below[2]).sum(axis=0)
        value, slope = self.loss(np.exp(log_gain - log_gain.mean()))
        slope = self.weights * slope / value
        gradient = [self._pull_back(numerator, slope, *above), -self._pull_back(denominator, slope, *below)]
        return math.log(value), np.concatenate(gradient)

    def _sections(self, raw: Array) -> tuple[Array, Array, Array]:
        """Return p, q and |1 + c1 z + c2 z²|² = p² + q² sin² for each section."""
        c1, c2 = _polynomials(raw).T[:, :, None]
        p, q = c1 + (1 + c2) * self.cos, 1 - c2
        return p, q, p * p + q * q * self.sin2

    def _pull_back(self, raw: Array, slope: Array, p: Array, q: Array, squared: Array) -> Array:
        """Return the gradient of <slope · ln of the product of the sections> with respect to the raw parameters."""
        ratio = slope / squared
        by_c1 = 2 * (ratio * p).sum(axis=1)
        by_c2 = 2 * (ratio * (p * self.cos - q * self.sin2)).sum(axis=1)
        k, n = _reflection(raw), len(raw) // 2
        by_k = np.empty_like(raw)
        by_k[0 : 2 * n : 2] = by_c1[:n] * (1 + k[1 : 2 * n : 2])
        by_k[1 : 2 * n : 2] = by_c2[:n] + by_c1[:n] * k[0 : 2 * n : 2]
        by_k[2 * n :] = by_c1[n:]
        return np.asarray(by_k * (_REACH - k * k / _REACH))


def _reflection(raw: Array) -> Array:
    return np.asarray(_REACH * np.tanh(raw))


def _polynomials(raw: Array) -> Array:
    """Return the coefficients of z⁻¹ and z⁻², (sections, 2)."""
    k, n = _reflection(raw), len(raw) // 2
    result = np.zeros(((len(raw) + 1) // 2, 2))
    result[:n, 1] = k[1 : 2 * n : 2]
    result[:n, 0] = k[0 : 2 * n : 2] * (1 + result[:n, 1])
    result[n:, 0] = k[2 * n :]
    return result


def _parameters(roots: Complex) -> Array:
    """Return the raw parameters of the polynomial with these roots; those outside of the circle are reflected."""
    roots = _reflect_inside(roots)
    is_real = np.abs(roots.imag) <= 1e-12
    upper, real = roots[~is_real & (roots.imag > 0)], np.sort(roots[is_real].real)
    alone, real = real[: len(real) % 2], real[len(real) % 2 :]
    first, second = np.concatenate([upper, real[::2]]), np.concatenate([upper.conj(), real[1::2]])
    k2 = (first * second).real
    k1 = -(first + second).real / (1 + k2)
    k = np.concatenate([np.column_stack([k1, k2]).ravel(), -alone])
    return np.asarray(np.arctanh(np.clip(k / _REACH, -1 + 1e-15, 1 - 1e-15)))


def _reflect_inside(roots: Complex) -> Complex:
    """Reflect roots into the circle, and keep them off it."""
    roots = np.asarray(roots, dtype=np.complex128)
    modulus = np.abs(roots)
    outside = modulus > 1
    roots = np.where(outside, roots / np.where(outside, modulus, 1) ** 2, roots)
    modulus = np.abs(roots)
    return np.where(modulus > _INSIDE, roots * (_INSIDE / np.maximum(modulus, _INSIDE)), roots)


def _section_roots(raw: Array) -> Complex:
    n = len(raw) // 2
    roots = [np.roots([1.0, *row]) for row in _polynomials(raw)[:n]]
    return np.concatenate([*roots, -_reflection(raw[2 * n :])]).astype(np.complex128)


def _make_filter(parameters: Array) -> Filter:
    """Return the filter, its roots kept off the circle so that its inverse is stable too."""
    zeros, poles = (_reflect_inside(_section_roots(raw)) for raw in np.split(parameters, 2))
    return Filter.from_factors(sections=make_sections(zeros, poles, 1.0))


def _add_real_pair(parameters: Array, detail: complex) -> Iterator[Array]:
    """Add a real pole and a zero that nearly cancel, at distances from 1 down to the finest detail."""
    side = 1 if detail.real >= 0 else -1
    for distance in _pair_distances(detail):
        for sign in (side, -side) if distance > 0.3 else (side,):
            for ratio in _CANCELLING:
                yield _add_roots(parameters, [sign * (1 - ratio * distance)], [sign * (1 - distance)])


def _add_complex_pair(parameters: Array, detail: complex) -> Iterator[Array]:
    """Add pairs of poles and zeros that nearly cancel, at the angle of the finest detail, unless it is 0 or π."""
    if abs(detail.real) > _AT_THE_ENDS * abs(detail):
        return
    direction = detail / abs(detail)
    for distance in _pair_distances(detail):
        for ratio in _CANCELLING:
            zero, pole = ((1 - x * distance) * direction for x in (ratio, 1))
            yield _add_roots(parameters, [zero, zero.conjugate()], [pole, pole.conjugate()])


def _pair_distances(detail: complex) -> Array:
    return np.geomspace(min(1 - abs(detail), 0.5) / 2, 1, 6)


def _add_roots(parameters: Array, zeros: list[complex], poles: list[complex]) -> Array:
    old = (_section_roots(raw) for raw in np.split(parameters, 2))
    return np.concatenate([_parameters(np.append(x, new)) for x, new in zip(old, (zeros, poles), strict=True)])


def _starts_by_reduction(objective: Objective) -> Callable[[int], list[Array]]:
    """Return a function that starts fits of an order by balanced reduction of the ideal impulse response.

    The frequency is warped by an allpass, which keeps orders, stability and minimum phase: slow poles near 1 (or -1,
    with the frequency axis turned round) would otherwise need an impulse response of many thousands of samples.
    """
    at_an_end = abs(objective.detail.real) > _AT_THE_ENDS * abs(objective.detail)
    side = -1 if at_an_end and objective.detail.real < 0 else 1
    warp = choose_warp(1 - abs(objective.detail)) if at_an_end else 0.0
    angles = warped_angles(fft_angles(16 * _REDUCED_LENGTH), warp)
    h = np.fft.irfft(minimum_phase(_raise_to_floor(objective.shape(angles if side > 0 else np.pi - angles), _FLOOR)))
    n = _REDUCED_LENGTH
    value, vector = _leading_eigenpairs(linalg.hankel(h[1 : n + 1], h[n : 2 * n]), 2 * MAX_ORDER)
    rank = int(np.count_nonzero(np.abs(value) > 1e-13 * max(abs(value[0]), abs(h[0]))))

    def start(order: int) -> list[Array]:
        if order > rank:
            return []
        root, u = np.sqrt(np.abs(value[:order])), vector[:, :order]
        a = linalg.lstsq(u[:-1], u[1:])[0] * root / root[:, None]
        feedthrough = np.outer(np.sign(value[:order]) * root * u[0], u[0] * root) / h[0]
        unwarped = [side * allpass(linalg.eigvals(x), warp) for x in (a - feedthrough, a)]
        return [np.concatenate([_parameters(r) for r in unwarped])]

    return start


def _leading_eigenpairs(matrix: Array, n: int) -> tuple[Array, Array]:
    """Return about the n largest eigenvalues (by modulus) of a symmetric matrix of fast decay, and their vectors.

    They come from a projection on a random range (Halko, Martinsson and Tropp 2011), which unlike a full decomposition
    stays fast when many processes share the cores.
    """
    probe = np.random.default_rng(0).standard_normal((len(matrix), n))
    basis = linalg.qr(matrix @ (matrix @ probe), mode="economic")[0]
    value, vector = linalg.eigh(basis.T @ matrix @ basis)
    largest = np.argsort(-np.abs(value))
    return value[largest], basis @ vector[:, largest]
