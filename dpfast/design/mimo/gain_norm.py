r"""How much noise behind K = H G costs, G a prefilter for each input: the norm, smoothed, and its slope.

K is given at the nodes of a circle. γ of ``channel_weights`` has a kink wherever a column of K vanishes. Smoothed it is
that of (|K_i + θ_i c_i|₂² + θ_i²)^½ - θ_i((|c_i|₂² + 1)^½ - 1): convex, with a slope and a curvature everywhere. Those
are all right if centres c_i of the directions at the optimum are known, whatever θ: directions that are found by one
smoothing are the centres of the next, by the method of multipliers (Rockafellar, Math. Oper. Res. 1, 1976).

The curvature changes quickly where gains nearly vanish. Newton's method takes fewer steps where the directions, K_i +
θ_i c_i over the first root, g_i, are unknowns of their own, the duals, with K_i + θ_i c_i = g_i times them as further
equations (Chan, Golub and Mulet, SIAM J. Sci. Comput. 20, 1999).
"""

from __future__ import annotations

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import SampledChannels

_LENGTH_LEFT = 0.1  # of directions at a centre: (1 - |k|₂²)^½, at least
_LEAST = 1e-3  # of θ: a mean gain, which a step so long that it turns all gains round would make negative


def centre_at(directions: Complex) -> Complex:
    """Return the centre k/(1 - |k|₂²)^½ of directions (nodes, p, m).

    Where they are nearly as long as 1, gains do not vanish: a centre that is not as far serves them better.
    """
    left = np.sqrt(np.maximum(0.0, 1 - np.linalg.norm(directions, axis=1) ** 2))
    return np.asarray(directions / np.maximum(_LENGTH_LEFT, left)[:, None])


class GainPoint:
    """γ² at a K, smoothed.

    Parameters
    ----------
    problem : SampledChannels
    k : array, (nodes, p, m)
    soft : array, (m,)
        θ.
    centre : array, (nodes, p, m)
        c.

    Attributes
    ----------
    gains : array, (nodes, m)
        g.
    levels : array, (m,)
        Half of what γ² changes by with a smoothed gain: d_i² times its mean, or d_i Σ d_j times all means where one
        person may be at all inputs.
    directions : array, (nodes, p, m)
        The columns (K_i + θ_i c_i)/g_i, nowhere as long as 1.
    value : float
        γ².
    slope : array, (nodes, p, m)
        Half the slope of γ² in K: the columns levels_i times the directions, which are nowhere as long as levels_i.
    """

    def __init__(self, problem: SampledChannels, k: Complex, soft: Array, centre: Complex) -> None:
        self.k, self.soft = k, soft
        moved = k + soft * centre
        self.gains: Array = np.hypot(np.linalg.norm(moved, axis=1), soft)
        self.directions = moved / self.gains[:, None, :]
        further = np.hypot(np.linalg.norm(centre, axis=1), 1.0) - 1
        means: Array = np.maximum(_LEAST * soft, problem.mean(self.gains - soft * further))
        alone, changes = problem.adjacency == "one_input", problem.changes
        total = float(changes @ means)
        self.levels: Array = changes**2 * means if alone else changes * total
        self.value = float((changes * means) @ (changes * means)) if alone else total**2
        self.slope: Complex = self.levels * self.directions

    def move_duals(self, e: Complex, duals: Complex) -> Complex:
        """Return the duals after a step E of K, by Newton's method, and nowhere longer than 1."""
        moved = self.directions + (e - duals * _along(self.directions, e)[:, None]) / self.gains[:, None]
        return np.asarray(moved / np.maximum(1.0, np.linalg.norm(moved, axis=1))[:, None])


def _along(directions: Complex, e: Complex) -> Array:
    """Return how much longer columns in these directions get, (nodes, m): Re k*e, of real and imaginary parts."""
    parts = (_parts(directions) * _parts(e)).sum(axis=1)
    return np.asarray(parts[:, ::2] + parts[:, 1::2])


def _parts(x: Complex) -> Array:
    return np.ascontiguousarray(x).view(np.float64)
