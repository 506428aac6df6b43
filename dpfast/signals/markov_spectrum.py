"""Finite Markov chains: their stationary distribution, and a filter that shapes white noise to their spectrum."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.sections import make_sections
from dpfast.filters.state_space import balance_states

_NOTHING = 1e-9  # a mode so small, or so fast, is none
_EXACT = 1e-13  # what fewer states may cost the factor, relative
_SPECTRUM_ERROR = 1e-8  # of the largest value of the spectrum
_RAREST = 1e-200
_TELLING = 8  # poles around which a spectrum is looked at
_MAX_DOUBLINGS = 60
_LARGEST_STACK = 2**22  # elements of the matrices that are solved together
_SETTLED = 1e-16
_NEARLY = 1e-6


def shaping_filter(p: Array, pi: Array, centred: Array) -> Filter:
    """Compute the minimum-phase factor of the spectrum of a chain, as poles and zeros.

    r(τ) = bᵀ Sᵗ b with S = Π^½ (P - 1πᵀ) Π^-½ and b = Π^½ c; in the Krylov space of b, where modes that b does not
    excite are gone, it is σ² e₁ᵀ Aᵗ e₁, and the spectrum is σ² Re e₁ᵀ (I + Az)(I - Az)⁻¹ e₁, z = e^{-iω}. The factor
    is (1 + e₁ᵀ (z⁻¹ - A)⁻¹ K) times a constant, K the gain of the innovations form, with as few states as show: poles
    are the eigenvalues of A, zeros those of A - K e₁ᵀ, and neither polynomial is ever formed.
    """
    if pi.min() < _RAREST:
        raise DesignError(
            f"transition must give every state a probability above {_RAREST:g}, "
            f"got {np.count_nonzero(pi < _RAREST)} rarer ones: leave them out"
        )
    root, variance = np.sqrt(pi), float(pi @ centred**2)
    full = _krylov(root[:, None] * (p - pi) / root, root * centred)
    gain, output = _innovations_gain(full), np.eye(1, len(full))[0]
    into, out = balance_states(full, gain[:, None], output[None], _EXACT)
    a, gain, output = into @ full @ out, into @ gain, output @ out
    poles, zeros = (np.asarray(linalg.eigvals(x), dtype=np.complex128) for x in (a, a - np.outer(gain, output)))
    zeros /= np.maximum(np.abs(zeros), 1)
    for roots in (poles, zeros):
        roots[np.abs(roots) < _NOTHING] = 0
    shape = Filter.from_factors(sections=make_sections(zeros, poles, 1.0))
    shape = shape * (math.sqrt(variance) / shape.h2_norm())
    omega = _telling_angles(poles)
    expected = variance * _resolvent(full, omega)
    error = float(np.abs(np.abs(shape.response(omega)) ** 2 - expected).max() / expected.max())
    if error > _SPECTRUM_ERROR:
        raise DesignError(
            f"the spectrum of this chain of {len(p)} states could not be factored: it is off by {error:.1e} of its "
            "largest value; merge levels, or fit an ARMA model to a sample"
        )
    return shape


def _telling_angles(poles: NDArray[np.complexfloating]) -> Array:
    """Choose angles around those of the poles, at their distances from the circle, and all over."""
    slow = poles[np.argsort(-np.abs(poles))[:_TELLING]]
    around = np.abs(np.angle(slow))[:, None] + np.log(np.maximum(np.abs(slow), 0.1))[:, None] * np.linspace(-4, 4, 9)
    return np.concatenate([np.linspace(0, np.pi, 65), np.clip(around, 0, np.pi).ravel()])


def _innovations_gain(a: Array) -> Array:
    """Compute K of the innovations form of r(τ) = e₁ᵀ Aᵗ e₁, by structured doubling (Chu, Fan, Lin and Wang 2004).

    With N = A e₁ the state covariance is the least solution of P = A P Aᵀ + (N - A P e₁)(N - A P e₁)ᵀ/(1 - P₁₁).
    """
    n = a[:, 0]
    f, g, h = a.T.copy(), np.zeros_like(a), np.outer(n, n)
    f[0] -= n
    g[0, 0] = -1.0
    change = np.inf
    for _ in range(_MAX_DOUBLINGS):
        w = np.linalg.inv(np.eye(len(a)) + g @ h)
        step, before = f.T @ h @ w @ f, change
        change = float(np.abs(step).max() / max(np.abs(h + step).max(), _RAREST))
        if change >= before and change < _NEARLY:  # a zero on the circle: from here on it is rounding that grows
            break
        f, g, h = f @ w @ f, g + f @ w @ g @ f.T, h + (step + step.T) / 2
        if change <= _SETTLED:
            break
    return np.asarray((n - a @ h[:, 0]) / (1 - h[0, 0]))


def _krylov(s: Array, b: Array) -> Array:
    """Write the matrix S in an orthonormal basis of b, Sb, S²b, ... (Arnoldi), b the first vector."""
    basis = [b / linalg.norm(b)]
    while len(basis) < len(s):
        v = s @ basis[-1]
        for _ in range(2):  # twice is enough (Kahan)
            v = v - np.array(basis).T @ (np.array(basis) @ v)
        if linalg.norm(v) < _NOTHING:
            break
        basis.append(v / linalg.norm(v))
    q = np.array(basis)
    return np.asarray(q @ s @ q.T)


def _resolvent(a: Array, omega: Array) -> Array:
    """Evaluate Re e₁ᵀ (I + Az)(I - Az)⁻¹ e₁ at z = e^{-iω}."""
    identity, values = np.eye(len(a)), []
    for part in np.array_split(omega, 1 + len(omega) * a.size // _LARGEST_STACK):
        z = np.exp(-1j * part)[:, None, None]
        solved = np.linalg.solve(identity - a * z, np.broadcast_to(identity[:, :1], (len(part), len(a), 1)))
        values.append(((identity + a * z)[:, :1] @ solved).real.ravel())
    return np.concatenate(values)
