"""The receiver with the least error behind any prefilters of streams that may be correlated: a Kalman filter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array
from dpfast.filters.conversion import StateSpace
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.riccati import find_predictor
from dpfast.filters.state_space import balance_states
from dpfast.signals.vector_arma import VectorARMA

_NEGLIGIBLE = 1e-14  # of a target: states that are rounding
_MOST_STATES = 1000  # of a receiver: its response takes the cube of that


class JointSystem(NamedTuple):
    """A system of what is seen and what is wanted: s⁺ = A s + B w, v = C s + D w + noise, y = E s + J w."""

    a: Array
    b: Array
    c: Array
    d: Array
    e: Array
    j: Array


def kalman_receiver(
    target: FilterMatrix, model: VectorARMA, prefilter: FilterMatrix, noise_std: float, lag: int
) -> FilterMatrix:
    r"""Return the linear receiver with the least mean square error behind a prefilter, in state space.

    With ŝ⁺ = A ŝ + K ε, ε = v - C ŝ of covariance S, the Kalman predictor of the states of streams, prefilter and
    target (Anderson and Moore, Optimal Filtering, 1979, 4.1 and 7.3), the estimate of y_{t-D} at t is

    .. math:: E ŝ_{t-D} + \sum_{k=0}^{D} L_k ε_{t-D+k}, \quad L_k = \mathrm{Cov}(y_t, ε_{t+k}) S^{-1},

    with L_0 S = E P Cᵀ + J Dᵀ, and L_k S = N_k Cᵀ of N_1 = E P(A - KC)ᵀ + J(B - KD)ᵀ, N_{k+1} = N_k (A - KC)ᵀ. A delay
    line of D vectors keeps the sums that are not complete.

    Raises
    ------
    ValueError
        Where that takes more than 1000 states.
    """
    joint = _join(target, model, prefilter)
    (p, n), limit = joint.e.shape, _MOST_STATES
    if n + p * lag > limit:
        raise ValueError(
            f"lag must be at most {max(0, limit - n) // p} here, got {lag}: the receiver of correlated streams has {n} "
            f"states and {p} for each sample of the lag, {limit} at most"
        )
    found = find_predictor(joint.a, joint.b, joint.c, joint.d, noise_std**2)
    stays = joint.a - found.gain @ joint.c
    seen = [joint.e @ found.covariance @ joint.c.T + joint.j @ joint.d.T]
    later = joint.e @ found.covariance @ stays.T + joint.j @ (joint.b - found.gain @ joint.d).T
    for _ in range(lag):
        seen.append(later @ joint.c.T)
        later = later @ stays.T
    gains = linalg.solve(found.innovation, np.vstack(seen).T, assume_a="pos").T
    return FilterMatrix.from_state_space(*_delay_estimates(stays, found.gain, joint, gains))


def _join(target: FilterMatrix, model: VectorARMA, prefilter: FilterMatrix) -> JointSystem:
    """Return the states of streams, prefilter and target, as one system."""
    (ag, bg, cg, dg), (af, bf, cf, df) = prefilter.state_space(), _few_states(target)
    m, g, f = len(model.a), len(ag), len(af)
    zero = np.zeros
    a = np.block(
        [
            [model.a, zero((m, g + f))],
            [bg @ model.c, ag, zero((g, f))],
            [bf @ model.c, zero((f, g)), af],
        ]
    )
    b = np.vstack([model.b, bg @ model.d, bf @ model.d])
    c, e = np.hstack([dg @ model.c, cg, zero((len(dg), f))]), np.hstack([df @ model.c, zero((len(df), g)), cf])
    return JointSystem(a, b, c, dg @ model.d, e, df @ model.d)


def _few_states(target: FilterMatrix) -> StateSpace:
    """Return a target's state space without those states that entries have in common."""
    a, b, c, d = target.state_space()
    scale = target.h2_norm()
    into, out = balance_states(a, b, c / scale, _NEGLIGIBLE)
    return into @ a @ out, into @ b, c @ out, d


def _delay_estimates(stays: Array, gain: Array, joint: JointSystem, gains: Array) -> StateSpace:
    """Return the predictor, and behind it the delay line to which each ε adds what it says of the last outputs.

    gains : L_0 ... L_D below one another.
    """
    (p, n), late = joint.e.shape, len(gains) - len(joint.e)
    a = np.zeros((n + late, n + late))
    a[:n, :n] = stays
    a[n:, :n] = -gains[:late] @ joint.c
    a[n:, n:] = np.eye(late, k=-p)
    first = np.vstack([joint.e, np.zeros((late, n))])  # E ŝ enters the line, or is the estimate
    a[n:, :n] += first[:late]
    c = np.hstack([first[late:] - gains[late:] @ joint.c, np.eye(p, late, k=late - p)])
    return a, np.vstack([gain, gains[:late]]), c, gains[late:]
