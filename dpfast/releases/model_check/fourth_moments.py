"""Fourth moments of what a model describes, beyond those of a normal signal of the same spectrum."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array
from dpfast.signals.markov_chain import MarkovChain
from dpfast.signals.model import Model, autocovariance
from dpfast.signals.stationary_distribution import stationary_distribution


def excess_kurtosis(model: Model) -> float:
    """Return by how much levels widen the variance of powers, as an excess kurtosis of the innovations; at least 0.

    Of independent levels it is their own. Of a chain it is the larger one of Σ_k cum(u_0, u_0, u_k, u_k) / R_0², which
    of a linear process is the kurtosis of its innovations, and of the kurtosis of u_t - E[u_t | u_{t-1}], which is
    large where the chain seldom moves.
    """
    if isinstance(model, MarkovChain):
        probabilities = stationary_distribution(model.transition)
        about = model.states - model.mean
        return max(0.0, _of_powers(model, probabilities, about), _of_moves(model.transition, probabilities, about))
    if model.levels is None or model.probabilities is None:
        return 0.0
    return max(0.0, float(model.probabilities @ (model.levels - model.mean) ** 4) / model.variance**2 - 3)


def _of_powers(model: MarkovChain, probabilities: Array, about: Array) -> float:
    """Return Σ_k cum(u_0, u_0, u_k, u_k) / R_0²."""
    squares = about**2 - probabilities @ about**2
    ones = np.outer(np.ones(len(about)), probabilities)
    summed = 2 * linalg.solve(np.eye(len(about)) - model.transition + ones, squares) - squares
    normal = autocovariance(model, model.shaping.settling_time(1e-9) + 1)
    of_normal = 2 * (2 * float(normal @ normal) - normal[0] ** 2)
    return float(probabilities @ (squares * summed) - of_normal) / model.variance**2


def _of_moves(transition: Array, probabilities: Array, about: Array) -> float:
    """Return the excess kurtosis of u_t - E[u_t | u_{t-1}]."""
    moves = about - (transition @ about)[:, np.newaxis]
    weights = probabilities[:, np.newaxis] * transition
    second = float((weights * moves**2).sum())
    return float((weights * moves**4).sum()) / second**2 - 3 if second > 0 else 0.0
