r"""Fit rational prefilters of 0, 1, 2, ... states to an objective.

G = Π N_i / Π D_i of second-order sections in reflection coefficients (through tanh, so that it is always stable and
minimum phase) is fitted by BFGS on the *true* loss of the mechanism, not on a distance between curves.

The parameters are the reflection coefficients (before tanh) of the numerator, then those of the denominator. A
polynomial of degree n is n // 2 sections 1 + k1 (1 + k2) z^-1 + k2 z^-2, and for odd n a last one 1 + k z^-1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array, Complex
from dpfast.design.prefilter.objectives import Excess, Loss, Objective
from dpfast.design.prefilter.short_fir import MAX_ROOT_RADIUS, raise_to_floor
from dpfast.filters.fft_grid import fft_angles
from dpfast.filters.filter import Filter
from dpfast.filters.quadrature import QuadratureGrid
from dpfast.filters.sections import make_sections
from dpfast.filters.spectral_factor import minimum_phase
from dpfast.filters.warped_circle import allpass, choose_warp, warped_angles

Starts = Callable[[int], list[Array]]  # order → parameters to start fits from

MAX_ORDER = 16
GROWTH_STARTS = 2
_SLOPE, _ROUGH_SLOPE, _TRIAL_SLOPE = 1e-7, 1e-6, 1e-4  # of ln J, at which a search ends
_SAME = 1e-12  # of J: of searches whose ends differ by no more the first is taken, or rounding would choose
_SINGULAR = 1e-14  # ratio of the eigenvalues of a matrix that counts as singular
_LONG_FIT = 2**15  # nodes above which an evaluation takes long
_REDUCED_LENGTH = 256  # samples of the warped impulse response that is reduced to few states
_FLOOR = 1e-5  # of the largest value: it replaces zeros of the shape
_REACH = 1 - 1e-12  # largest reflection coefficient of a fit: no root is ever on the circle
_AT_THE_ENDS = 0.9  # a detail whose angle has a cosine above this counts as one at 0 or π
_FACTORS = 4  # of a product whose logarithm is taken
_CANCELLING = (0.8, 1.25)  # distances from the circle of a new zero and of its pole


class Measured(NamedTuple):
    """A filter and the excess of its loss."""

    excess: float
    filter: Filter


def rational_filters(
    objective: Objective, measure: Excess, doubtful: tuple[float, float] = (-math.inf, math.inf)
) -> Iterator[Measured]:
    """Yield the best filter found for 0, 1, 2, ... states, and its excess.

    Where there is a draft, fits start from its fits; from elsewhere too, where the excess is above the first number of
    `doubtful` and up to the second. If an evaluation of the objective takes long, the filters are those of the draft.
    """

    def measured(parameters: Array) -> Measured:
        g = _make_filter(parameters)
        return Measured(measure(g), g)

    yield measured(np.empty(0))
    draft = objective if objective.draft is None else objective.draft
    reduced = _starts_by_reduction(objective)
    drafts = _fits_from_scratch(_Fit(*_resolve(draft)), reduced, objective.detail)
    if objective.rough is None or len((resolved := _resolve(objective))[0].weights) > _LONG_FIT:
        yield from map(measured, drafts)
    else:
        fits = _FitsFromDrafts(_Fit(*resolved), _Fit(*objective.rough()), reduced, objective.detail)
        yield from fits.from_drafts(drafts, measured, doubtful)


def _resolve(objective: Objective) -> tuple[QuadratureGrid, Loss]:
    return objective.resolve(np.empty(0, dtype=np.complex128), 0)


def _fits_from_scratch(fit: _Fit, reduced: Starts, detail: complex) -> Iterator[Array]:
    """Yield the parameters of fits that start from reductions and from fits of fewer states."""
    best = [np.empty(0)]
    for order in range(1, MAX_ORDER + 1):
        starts = [*reduced(order), *_grown(fit, best, detail)]
        best.append(_first_of_least([_minimize(fit, start) for start in starts]).parameters)
        yield best[-1]


class _FitsFromDrafts(NamedTuple):
    """Fits that start from those of a draft: at first in few steps, then in as many as resolve the loss."""

    fit: _Fit
    rough: _Fit
    reduced: Starts
    detail: complex

    def from_drafts(
        self, drafts: Iterator[Array], measured: Callable[[Array], Measured], doubtful: tuple[float, float]
    ) -> Iterator[Measured]:
        """Yield measured fits; where the excess is doubtful, fits from other starts are tried in few steps too."""
        best = [np.empty(0)]
        for order, draft in enumerate(drafts, 1):
            first = _minimize(self.rough, draft, _ROUGH_SLOPE)
            found = self._refine(first)
            result = measured(found.parameters)
            if doubtful[0] < result.excess <= doubtful[1]:
                starts = [*self.reduced(order), *_grown(self.rough, best, self.detail)]
                other = _first_of_least([_minimize(self.rough, x, _TRIAL_SLOPE) for x in starts])
                if other.beats(first) and (refined := self._refine(other)).beats(found):
                    found, result = refined, measured(refined.parameters)
            best.append(found.parameters)
            yield result

    def _refine(self, found: _Minimum) -> _Minimum:
        return _minimize(self.fit, found.parameters, curvature=found.curvature)


def _grown(fit: _Fit, best: list[Array], detail: complex) -> list[Array]:
    """Return the best starts that add poles and zeros to fits of fewer states."""
    more = [x for fewer, x in ((1, _add_real_pair), (2, _add_complex_pair)) if fewer <= len(best)]
    grown = [start for i, grow in enumerate(more, 1) for start in grow(best[-i], detail)]
    return sorted(grown, key=lambda start: fit(start)[0])[:GROWTH_STARTS]


class _Minimum(NamedTuple):
    value: float
    parameters: Array
    curvature: Array | None  # an estimate of the inverse of the second derivatives, if it is positive definite

    def beats(self, other: _Minimum) -> bool:
        """Tell whether it is less by more than rounding."""
        return self.value < other.value - _SAME


def _first_of_least(found: list[_Minimum]) -> _Minimum:
    """Return the first that none beats."""
    least = min(found, key=lambda x: x.value)
    return next(x for x in found if not least.beats(x))


def _minimize(fit: _Fit, start: Array, slope: float = _SLOPE, *, curvature: Array | None = None) -> _Minimum:
    from scipy import optimize  # late: it takes a fifth as long to import as all of dpfast

    options: Any = {"maxiter": 120, "gtol": slope, "hess_inv0": curvature}
    found: Any = optimize.minimize(fit, start, jac=True, method="BFGS", options=options)
    inverse = (found.hess_inv + found.hess_inv.T) / 2
    eigenvalues = linalg.eigvalsh(inverse)
    usable = eigenvalues[0] > _SINGULAR * eigenvalues[-1]
    return _Minimum(float(found.fun), np.asarray(found.x), inverse if usable else None)


class _Fit:
    """The function that is minimised: parameters → ln J and its gradient.

    Numerator and denominator are evaluated together, in room that is kept: new arrays of this size would take longer
    than what is computed in them.
    """

    def __init__(self, grid: QuadratureGrid, loss: Loss) -> None:
        self.loss = loss
        self.weights = grid.weights
        self.cos, self.sin2 = np.cos(grid.omega), np.sin(grid.omega) ** 2
        self._room = np.empty((3, 2, 0, len(grid.omega)))

    def __call__(self, parameters: Array) -> tuple[float, Array]:
        k = _reflection(parameters.reshape(2, -1))
        c1, c2 = _coefficients(k)[..., None]
        if self._room.shape[2] != c1.shape[1]:
            self._room = np.empty((3, *c1.shape[:2], len(self.cos)))
        p, squared, room = self._room
        # |1 + c1 z + c2 z²|² = p² + q² sin² for each section
        q = 1 - c2
        np.multiply(1 + c2, self.cos, out=p)
        p += c1
        np.multiply(p, p, out=squared)
        squared += np.multiply(q * q, self.sin2, out=room)
        above, below = _log_products(squared, room)
        value, slope = self.loss(np.exp((above - below) - (above - below).mean()))
        # the gradient of <slope · ln of the product of the sections>
        ratio = np.divide(self.weights * slope / value, squared, out=squared)
        by_c1 = 2 * np.einsum("ijn,ijn->ij", ratio, p)
        p *= self.cos
        p -= np.multiply(q, self.sin2, out=room)
        by_c2 = 2 * np.einsum("ijn,ijn->ij", ratio, p)
        return math.log(value), _pull_back(k, by_c1, by_c2).ravel()


def _log_products(x: Array, room: Array) -> Array:
    """Return the logarithms of products over the second axis: of products of four, which are never too small."""
    n = x.shape[1]
    n_products = -(-n // _FACTORS)
    products = room[:, :n_products]
    products[...] = x[:, :n_products]
    for at in range(n_products, n, n_products):
        others = x[:, at : at + n_products]
        products[:, : others.shape[1]] *= others
    return np.asarray(np.log(products, out=products).sum(axis=1))


def _pull_back(k: Array, by_c1: Array, by_c2: Array) -> Array:
    """Return the gradient of the numerator and, negative, of the denominator in the raw parameters."""
    n = k.shape[1] // 2
    by_k = np.empty_like(k)
    by_k[:, 0 : 2 * n : 2] = by_c1[:, :n] * (1 + k[:, 1 : 2 * n : 2])
    by_k[:, 1 : 2 * n : 2] = by_c2[:, :n] + by_c1[:, :n] * k[:, 0 : 2 * n : 2]
    by_k[:, 2 * n :] = by_c1[:, n:]
    by_k *= _REACH - k * k / _REACH
    by_k[1] *= -1
    return by_k


def _reflection(raw: Array) -> Array:
    return np.asarray(_REACH * np.tanh(raw))


def _coefficients(k: Array) -> Array:
    """Return the coefficients of z⁻¹, and those of z⁻², of the sections with these reflection coefficients."""
    n = k.shape[-1] // 2
    result = np.zeros((2, *k.shape[:-1], k.shape[-1] - n))
    c1, c2 = result
    c2[..., :n] = k[..., 1 : 2 * n : 2]
    c1[..., :n] = k[..., 0 : 2 * n : 2] * (1 + c2[..., :n])
    c1[..., n:] = k[..., 2 * n :]
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
    return np.where(modulus > MAX_ROOT_RADIUS, roots * (MAX_ROOT_RADIUS / np.maximum(modulus, MAX_ROOT_RADIUS)), roots)


def _section_roots(raw: Array) -> Complex:
    n, k = len(raw) // 2, _reflection(raw)
    roots = [np.roots([1.0, *row]) for row in _coefficients(k).T[:n]]
    return np.concatenate([*roots, -k[2 * n :]]).astype(np.complex128)


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


def _starts_by_reduction(objective: Objective) -> Starts:
    """Return a function that starts fits of an order by balanced reduction of the ideal impulse response.

    The frequency is warped by an allpass, which keeps orders, stability and minimum phase: slow poles near 1 (or -1,
    with the frequency axis turned round) would otherwise need an impulse response of many thousands of samples.
    """
    at_an_end = abs(objective.detail.real) > _AT_THE_ENDS * abs(objective.detail)
    side = -1 if at_an_end and objective.detail.real < 0 else 1
    warp = choose_warp(1 - abs(objective.detail)) if at_an_end else 0.0
    angles = warped_angles(fft_angles(16 * _REDUCED_LENGTH), warp)
    h = np.fft.irfft(minimum_phase(raise_to_floor(objective.shape(angles if side > 0 else np.pi - angles), _FLOOR)))
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
