"""The receivers with the least error behind any prefilters of streams that may be correlated: Kalman filters."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array
from dpfast.filters.conversion import StateSpace
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.riccati import Predictor, find_predictor
from dpfast.filters.state_space import balance_states, gramian_root
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


class KalmanReceivers:
    r"""The linear receivers with the least mean square error behind a prefilter, one for each lag, in state space.

    With ŝ⁺ = A ŝ + K ε, ε = v - C ŝ of covariance S, the Kalman predictor of the states of streams, prefilter and
    target (Anderson and Moore, Optimal Filtering, 1979, 4.1 and 7.3), the estimate of y_{t-D} at t is

    .. math:: E ŝ_{t-D} + \sum_{k=0}^{D} L_k ε_{t-D+k}, \quad L_k = \mathrm{Cov}(y_t, ε_{t+k}) S^{-1},

    with L_0 S = E P Cᵀ + J Dᵀ, and L_k S = N_k Cᵀ of N_1 = E P(A - KC)ᵀ + J(B - KD)ᵀ, N_{k+1} = N_k (A - KC)ᵀ. A delay
    line of D vectors keeps the sums that are not complete. Each ε, which is white, takes tr L_k S L_kᵀ off the error.

    Parameters
    ----------
    target : FilterMatrix
    model : VectorARMA
        Of all inputs.
    prefilter : FilterMatrix
    noise_std : float
        Of the noise on each of its outputs.
    """

    def __init__(self, target: FilterMatrix, model: VectorARMA, prefilter: FilterMatrix, noise_std: float) -> None:
        self._joint, self._variance = _join(target, model, prefilter), noise_std**2

    @property
    def n_states(self) -> int:
        """The states of streams, prefilter and target together."""
        return len(self._joint.a)

    def at_lag(self, lag: int) -> FilterMatrix:
        """Return the receiver of a lag.

        Raises
        ------
        ValueError
            Where that takes more than 1000 states.
        """
        self.check(lag)
        joint, found, stays = self._joint, self._predictor, self._stays
        seen, later = [self._seen], self._later
        for _ in range(lag):
            seen.append(later @ joint.c.T)
            later = later @ stays.T
        gains = linalg.solve(found.innovation, np.vstack(seen).T, assume_a="pos").T
        return FilterMatrix.from_state_space(*_delay_estimates(stays, found.gain, joint, gains))

    def excess(self, lag: int) -> float:
        """Return by how much the receiver of a lag errs more than a smoother, relatively, without making it.

        It is Σ over k > D of tr L_k S L_kᵀ, a Gramian, with nothing taken off; 0 where the smoother's own error, of
        which it is a share, is lost in rounding.

        Raises
        ------
        ValueError
            As for :meth:`at_lag`.
        """
        self.check(lag)
        later = self._later @ np.linalg.matrix_power(self._stays.T, lag)
        more, smoothed = float(((later @ self._told.T) ** 2).sum()), self._smoothed
        return more / smoothed if smoothed > 0 else 0.0

    def check(self, lag: int) -> None:
        """Refuse a lag that takes too many states."""
        (p, n), limit = self._joint.e.shape, _MOST_STATES
        if n + p * lag > limit:
            raise ValueError(
                f"lag must be at most {max(0, limit - n) // p} here, got {lag}: the receiver of correlated streams has "
                f"{n} states and {p} for each sample of the lag, {limit} at most"
            )

    @cached_property
    def _predictor(self) -> Predictor:
        joint = self._joint
        return find_predictor(joint.a, joint.b, joint.c, joint.d, self._variance)

    @cached_property
    def _stays(self) -> Array:
        """A - KC, by which errors of predicted states go on from step to step."""
        return self._joint.a - self._predictor.gain @ self._joint.c

    @cached_property
    def _seen(self) -> Array:
        """L_0 S, the covariance of what is wanted with the present ε."""
        joint = self._joint
        return np.asarray(joint.e @ self._predictor.covariance @ joint.c.T + joint.j @ joint.d.T)

    @cached_property
    def _later(self) -> Array:
        """N_1, the covariance of what is wanted with the next error of predicted states."""
        joint, found = self._joint, self._predictor
        unseen = joint.j @ (joint.b - found.gain @ joint.d).T
        return np.asarray(joint.e @ found.covariance @ self._stays.T + unseen)

    @cached_property
    def _told(self) -> Array:
        """R with RᵀR = Σ (A - KC)ᵏᵀ Cᵀ S⁻¹ C (A - KC)ᵏ: what all later v tell of the errors of states."""
        root = linalg.cholesky(self._predictor.innovation, lower=True)
        return gramian_root(self._stays.T, linalg.solve_triangular(root, self._joint.c, lower=True).T)

    @cached_property
    def _smoothed(self) -> float:
        """The error of a smoother: that of a prediction, less what the present ε and all later ones tell."""
        joint, found = self._joint, self._predictor
        predicted = np.trace(joint.e @ found.covariance @ joint.e.T) + (joint.j**2).sum()
        now = (linalg.solve(found.innovation, self._seen.T, assume_a="pos") * self._seen.T).sum()
        return float(predicted - now - ((self._later @ self._told.T) ** 2).sum())


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
