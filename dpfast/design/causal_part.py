"""The causal part of a two-sided response: its samples, then a state space, and a filter of few states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike
from scipy import linalg

from dpfast._support.validation import Array, Complex
from dpfast.filters.fft_grid import fft_angles
from dpfast.filters.filter import MAX_POLE_RADIUS, Filter, filter_from_rest, ratio
from dpfast.filters.roots import pair_roots
from dpfast.filters.state_space import balance_states

_NO_STATE = 1e-15  # what a state may contribute and still be left out
_FEW_STATES = 32  # whose dense solves take no time
_IN_CACHE = 1024  # points
_INFINITE = 1e-13  # inverse of a zero that is none


class CausalPart(NamedTuple):
    """The causal part X = [z^{-D} B(1/z) S(z)]₊ = R/D: samples x_0 ... x_T, which C A^j ξ continues."""

    samples: Array
    a: Array
    b: Array
    c: Array
    state: Array  # ξ
    denominator: Filter

    def balance(self) -> CausalPart:
        """Return the same X in balanced coordinates, in which slow poles that are close together keep their digits."""
        into, out = balance_states(self.a, self.b, self.c[None], _NO_STATE)
        return self._replace(a=into @ self.a @ out, b=into @ self.b, c=self.c @ out, state=into @ self.state)

    def reduce(self, negligible: float) -> CausalPart:
        """Return X in the fewest states that change it by at most `negligible`; D keeps their poles alone."""
        scale = float(np.linalg.norm(self.c)) or 1.0  # so that the Hankel values sum to about one
        into, out = balance_states(self.a, self.state[:, None], self.c[None] / scale, negligible / scale)
        a, state = into @ self.a @ out, into @ self.state
        poles = pair_roots(np.asarray(linalg.eigvals(a), dtype=np.complex128))
        poles *= np.minimum(1, MAX_POLE_RADIUS / np.maximum(np.abs(poles), MAX_POLE_RADIUS))  # rounding moves them
        denominator = Filter.from_zpk(poles, np.zeros(len(poles)), 1.0)
        return CausalPart(self.samples, a, state[:, None], self.c @ out, state, denominator)

    def filter(self) -> Filter:
        """Return X as the filter R/D, from its zeros and poles."""
        return ratio((self.numerator(),), (self.denominator,))

    def state_space(self) -> tuple[Array, Array, Array, float]:
        """Return A, B, C and D of X: the states are the last T inputs, and those that ξ starts."""
        last, n = len(self.samples) - 1, len(self.a)
        a, b = np.zeros((last + n, last + n)), np.zeros(last + n)
        a[:last, :last] = np.eye(last, k=-1)
        a[last:, last:] = self.a
        if last:
            a[last:, last - 1], b[0] = self.state, 1.0
        else:
            b[:] = self.state  # with no past inputs it is the input itself
        return a, b, np.concatenate([self.samples[1:], self.c]), float(self.samples[0])

    def numerator(self) -> Filter:
        """Return R by its zeros, those of the state space: coefficients would lose the digits of clustered roots."""
        a, b, c, d = self.state_space()
        pencil = np.block([[a, b[:, None]], [c, d]])
        identity = np.diag(np.append(np.ones(len(a)), 0.0))
        above, below = linalg.eigvals(pencil, identity, homogeneous_eigvals=True)
        finite = np.abs(below) > _INFINITE * np.abs(above)
        zeros = pair_roots(above[finite] / below[finite])
        delay = np.append(np.zeros(len(a) - len(zeros)), 1.0)
        monic = Filter.from_zpk(zeros, np.zeros(len(zeros)), 1.0) * Filter(delay)
        loudest = fft_angles(1024)[np.argmax(np.abs(self.response(fft_angles(1024))))]
        gain = self.response(loudest) * self.denominator.response(loudest) / monic.response(loudest)
        return monic * float(gain.item().real)

    def response(self, omega: ArrayLike) -> Complex:
        """Return X at the given angles."""
        z = np.exp(1j * np.atleast_1d(omega))
        resolvent = _solve_each if len(self.a) <= _FEW_STATES else _solve_triangles
        later = resolvent(z, self.a, self.state, self.c)
        return np.asarray(polyval(1 / z, self.samples) + later * z ** (1 - len(self.samples)))


def _solve_each(z: Complex, a: Array, state: Array, c: Array) -> Complex:
    """Return C (zI - A)⁻¹ ξ at points."""
    right = np.broadcast_to(state[:, None], (len(z), len(a), 1))
    return np.asarray(np.linalg.solve(z[:, None, None] * np.eye(len(a)) - a, right)[:, :, 0] @ c)


def _solve_triangles(z: Complex, a: Array, state: Array, c: Array) -> Complex:
    """Return the same, after one Schur form A = U T U*: n² for a point, not n³."""
    triangle, vectors = linalg.schur(a, output="complex")
    right, left, found = vectors.conj().T @ state, c @ vectors, []
    for some in np.array_split(z, 1 + len(z) // _IN_CACHE):
        solution = np.empty((len(a), len(some)), dtype=np.complex128)
        for k in reversed(range(len(a))):
            solution[k] = (right[k] + triangle[k, k + 1 :] @ solution[k + 1 :]) / (some - triangle[k, k])
        found.append(left @ solution)
    return np.concatenate(found)


def causal_part(signal: Filter, backward: Filter, lag: int) -> CausalPart:
    """Run the two-sided sequence of B and the taps of S through the rest of S: X is what comes from time 0 on."""
    taps, sections, recursion = signal.factors
    rest = Filter.from_factors(sections=sections, recursion=recursion)
    b = backward.impulse(backward.settling_time(1e-18) + lag)
    sequence = np.convolve(b[::-1], taps)
    start = lag - len(b) + 1  # its time; never after 0, as b is longer than the lag
    a, inputs, c, _ = rest.state_space()
    samples, state = filter_from_rest(rest, sequence)
    return CausalPart(samples[-start:], a, inputs, c[0], state, rest.denominator)


def causal_energy(values: Complex, lag: int) -> tuple[float, float]:
    """Return the energy of a two-sided impulse response at times ≥ -lag, and before.

    Parameters
    ----------
    values : array of complex
        Frequency response at the angles of :func:`fft_angles`.
    """
    x = np.fft.irfft(values)
    n = len(x)
    before = x[n // 2 : max(n // 2, n - lag)]
    past = float(before @ before)
    return float(x @ x) - past, past
