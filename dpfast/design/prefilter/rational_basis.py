r"""Orthonormal causal rational functions, for convex programs over a response.

The basis is that of Takenaka and Malmquist: powers of z⁻¹, then for every pair of poles (two real, or conjugate) with
D = 1 + c₁z⁻¹ + c₂z⁻² the functions √((1 - c₂) D(±1)/2) (1 ± z⁻¹)/D, behind the delays and the all-pass
(c₂ + c₁z⁻¹ + z⁻²)/D of every pair before. It is orthonormal in H2 whatever the poles, however close together.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from dpfast._support.errors import DesignError
from dpfast._support.validation import Array, Complex
from dpfast.design.causal_part import CausalPart
from dpfast.design.prefilter.design_problem import Problem
from dpfast.filters.filter import MAX_POLE_RADIUS, Filter
from dpfast.filters.quadrature import ON_CIRCLE, graded_grid
from dpfast.filters.roots import pair_roots
from dpfast.filters.sections import cascade_response, powers, section_roots

_NEGLIGIBLE = (1e-8, 1e-9, 1e-10, 1e-12, 1e-7)  # of the largest gain: bounds of what is left out of a filter
_INFINITE = 1e-13  # inverse of a zero that is none
_ACCURACY, _INACCURATE = 1e-8, 1e-6  # of a filter, relative to its largest gain: what is aimed at, what is refused
_DENSITY = 3.0  # poles (pairs, off the real axis) for every halving of the distance to the circle
_WIDEST = 0.5  # a root further from the circle needs no poles of its own
_CLOSEST = 1 - MAX_POLE_RADIUS  # of a pole to the circle
_PER_KINK = 3.0
_SPARE_TAPS = 8
_TAPS_PER_TAP = 2.5


@dataclass(frozen=True, eq=False)
class Basis:
    """Orthonormal causal functions: `taps` powers of z⁻¹, then two functions for every row (c₁, c₂) of `pairs`."""

    taps: int
    pairs: Array  # (n, 2)

    @property
    def size(self) -> int:
        """The number of functions."""
        return self.taps + 2 * len(self.pairs)

    @property
    def poles(self) -> Complex:
        """The poles of all functions, without those at zero."""
        return section_roots(np.column_stack([np.ones(len(self.pairs)), self.pairs]))

    def response(self, omega: Array) -> Complex:
        """Return the values of all functions at angles, (angles, size)."""
        z = np.exp(-1j * omega)
        z_powers = powers(z, self.taps + 1)
        columns, before = [*z_powers[:-1]], z_powers[-1]
        for c1, c2 in self.pairs:
            for sign, norm in zip((1, -1), _norms(c1, c2), strict=True):
                columns.append(before * cascade_response(np.array([[norm, sign * norm, 0, 1, c1, c2]]), z))
            before = before * cascade_response(np.array([[c2, c1, 1, 1, c1, c2]]), z)
        return np.column_stack(columns)

    def with_poles(self, poles: Complex) -> Basis:
        """Return the basis with two more functions for every pair of given poles."""
        real = poles[poles.imag == 0].real
        couples = np.append(real, np.zeros(len(real) % 2)).reshape(-1, 2)
        above = poles[poles.imag > 0]
        more = [*np.column_stack([-couples.sum(axis=1), couples.prod(axis=1)])]
        more += [*np.column_stack([-2 * above.real, np.abs(above) ** 2])]
        return Basis(self.taps, np.array([*self.pairs, *more]))

    def filter(self, coefficients: Array) -> Filter:
        """Return a filter for these coefficients, in so few states that it differs by about 1e-8 of its largest gain.

        The difference is measured, as reduction may leave a pole too near to the circle, and many poles lose digits.

        Raises
        ------
        DesignError
            Where it differs by more than 1e-6.
        """
        if len(self.pairs) == 0:
            return Filter(coefficients)
        omega = graded_grid(self.poles, degree=self.taps).omega
        wanted = self.response(omega) @ coefficients
        size, part = float(np.abs(wanted).max()), self._causal_part(coefficients)
        found, least = Filter([0.0]), 1.0
        for negligible in _NEGLIGIBLE:
            candidate = part.reduce(negligible * size).filter()
            error = float(np.abs(candidate.response(omega) - wanted).max()) / size
            if error < least:
                found, least = candidate, error
            if least <= _ACCURACY:
                break
        if least > _INACCURATE:
            raise DesignError(
                f"target and model must have a filter of few states for their optimum, and the best that was found is "
                f"{least:.1g} of its size off: give a larger tolerance, or another prefilter"
            )
        return found

    def root_filter(self, coefficients: Array) -> Filter:
        """Return the spectral factor of a positive real part: the minimum-phase R with |R|² = Re X.

        X is the response of these coefficients. R has the poles of the basis, and the zeros of X(z) + X(1/z) inside of
        the circle, found from a state space.
        """
        a, b, c, d = self._causal_part(coefficients).state_space()
        n = len(a)
        now, later = np.zeros((2 * n + 1, 2 * n + 1)), np.zeros((2 * n + 1, 2 * n + 1))
        now[:n, :n], now[:n, -1], later[:n, :n] = a, b, np.eye(n)
        now[n:-1, n:-1], now[n:-1, -1], later[n:-1, n:-1] = np.eye(n), -c, a.T
        now[-1, :n], now[-1, -1], later[-1, n:-1] = c, 2 * d, -b
        above, below = linalg.eigvals(now, later, homogeneous_eigvals=True)
        inside = np.argsort(np.abs(above) / np.maximum(np.abs(below), _INFINITE * np.abs(above)))[:n]
        zeros = pair_roots(above[inside] / below[inside])
        if len(zeros) and np.abs(zeros).max() > 1:
            raise DesignError(
                "target and model must leave the optimum some gain in most of the band, and no filter was found for "
                "it: give a larger tolerance, or another prefilter"
            )
        filter = Filter.from_zpk(zeros, np.append(self.poles, np.zeros(n - len(self.poles))), 1.0)
        omega = np.array([0.0, np.pi / 2, np.pi])
        power = (self.response(omega) @ coefficients).real
        best = int(np.argmax(power))
        return filter * math.sqrt(power[best] / np.abs(filter.response(omega[best])) ** 2)

    def _causal_part(self, coefficients: Array) -> CausalPart:
        a, b = self.state_space()
        return CausalPart(coefficients[: self.taps], a, b[:, None], coefficients[self.taps :], b, Filter([1.0]))

    def state_space(self) -> tuple[Array, Array]:
        """Return A and B of a cascade of all-passes: (zI - A)⁻¹B is z⁻¹ times the functions of the pairs.

        As AAᵀ + BBᵀ = I, the controllability Gramian is the identity.
        """
        a, b = np.zeros((0, 0)), np.zeros(0)
        c, d = np.zeros(0), 1.0  # of the cascade up to here
        for c1, c2 in self.pairs:
            plus, minus = _norms(c1, c2)
            at_one, at_minus_one = 1 + c1 + c2, 1 - c1 + c2
            cross = math.sqrt(at_one * at_minus_one) / 2
            block = np.array([[1 - at_one / 2, cross], [-cross, at_minus_one / 2 - 1]])
            a = np.block([[a, np.zeros((len(a), 2))], [np.outer([plus, minus], c), block]])
            b = np.append(b, [plus * d, minus * d])
            c, d = np.append(c2 * c, [plus, -minus]), c2 * d
        return a, b


def _norms(c1: float, c2: float) -> tuple[float, float]:
    """Return the factors that give the functions (1 ± z⁻¹)/D unit norm."""
    return math.sqrt((1 - c2) * (1 + c1 + c2) / 2), math.sqrt((1 - c2) * (1 - c1 + c2) / 2)


def basis_for(problem: Problem, lag: int, richness: float = 1.0, kinks: tuple[float, ...] = ()) -> Basis:
    """Choose the functions for an optimal response of a lag: at richness 1 they cost about 1e-6 of its error.

    Taps: the lag, and two and a half for every tap of the target, whose zeros on the circle make a response decay
    slowly. Poles: on a ladder from every pole of the target and every root of the spectrum into the disk, three of them
    for every octave of the distance to the circle. `richness` multiplies both numbers. At the angles of kinks: n pairs
    down to exp(-π√n) of the widest distance, as for the best rational approximation of |x| (Newman 1964, Stahl 1993).
    """
    taps = lag + math.ceil(richness * (_TAPS_PER_TAP * len(problem.target.b) + _SPARE_TAPS))
    roots = problem.target.poles
    if problem.model is not None:
        roots = np.concatenate([roots, problem.model.shaping.poles, problem.model.shaping.zeros])
    per_kink = math.ceil(richness * _PER_KINK)
    ladders = [_ladder(*end, math.ceil(-richness * _DENSITY * math.log2(end[1]))) for end in _ladder_ends(roots)]
    narrow = math.exp(-math.pi * math.sqrt(per_kink))
    for angle in kinks:
        widest = max(min(angle, math.pi - angle, 1.0), 2 * _CLOSEST)
        ladders.append(_ladder(angle, max(widest * narrow, _CLOSEST), per_kink, widest))
    return Basis(taps, np.array(list(itertools.chain(*ladders))))


def _ladder_ends(roots: Complex) -> list[tuple[float, float]]:
    """Return where ladders start, as angles in [0, π] and distances: of close roots at that nearest to the circle."""
    inside = np.where(np.abs(roots) > 1, 1 / np.where(roots == 0, 1, roots).conj(), roots)
    inside = inside[(inside.imag >= 0) & (1 - _WIDEST < np.abs(inside)) & (np.abs(inside) < 1 - ON_CIRCLE)]
    found: list[tuple[float, float]] = []
    for root in [*inside[np.argsort(-np.abs(inside))], 1 - _WIDEST]:
        angle, distance = abs(float(np.angle(root))), max(1 - float(abs(root)), _CLOSEST)
        side = 0.0 if angle < math.pi / 2 else math.pi
        angle = side if abs(angle - side) <= distance else angle
        if all(abs(angle - other) > distance for other, _ in found):
            found.append((angle, distance))
    return found


def _ladder(angle: float, distance: float, n: int, widest: float = 1.0) -> list[tuple[float, float]]:
    """Return pairs (c₁, c₂) for n poles at distances up to the widest; at the angles 0 and π two real ones a pair."""
    side = math.cos(angle)
    if abs(side) == 1:
        radius = side * (1 - np.geomspace(distance, widest, n + n % 2))
        return [(-(p + q), p * q) for p, q in zip(radius[::2], radius[1::2], strict=True)]
    return [(-2 * r * side, r * r) for r in 1 - np.geomspace(distance, widest, n, endpoint=False)]
