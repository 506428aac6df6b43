r"""How much noise behind K = H G costs, G a prefilter for each input: the norm, smoothed, its slope and curvature.

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
from dpfast.design.mimo.channel_weights import SampledChannels, adjoint, invert

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
        self.k, self.soft, self._problem = k, soft, problem
        moved = k + soft * centre
        self._gains: Array = np.hypot(np.linalg.norm(moved, axis=1), soft)
        self.directions = moved / self._gains[:, None, :]
        further = np.hypot(np.linalg.norm(centre, axis=1), 1.0) - 1
        means: Array = np.maximum(_LEAST * soft, problem.mean(self._gains - soft * further))
        self._alone, changes = problem.adjacency == "one_input", problem.changes
        total = float(changes @ means)
        self.levels: Array = changes**2 * means if self._alone else changes * total
        self.value = float((changes * means) @ (changes * means)) if self._alone else total**2
        self.slope: Complex = self.levels * self.directions

    def curve(self, e: Complex, duals: Complex, damped: float = 0.0) -> Complex:
        """Return half of what the slope of γ² changes by along E (nodes, p, m), damped by a share of the largest.

        With duals that are not yet the directions it is what Newton's step of both takes it for, made symmetric.
        """
        along, beside = _along(self.directions, e), _along(duals, e)
        longer: Array = self._problem.changes * self._problem.mean(along)  # of the mean gains
        raised = longer if self._alone else np.full_like(longer, longer.sum())
        turned = (self.directions * beside[:, None] + duals * along[:, None]) / 2
        alone = ((1 + damped) * e - turned) * (self.levels / self._gains)[:, None]
        return np.asarray(alone + self.directions * (self._problem.changes * raised))

    def move_duals(self, e: Complex, duals: Complex) -> Complex:
        """Return the duals after a step E of K, by Newton's method, and nowhere longer than 1."""
        moved = self.directions + (e - duals * _along(self.directions, e)[:, None]) / self._gains[:, None]
        return np.asarray(moved / np.maximum(1.0, np.linalg.norm(moved, axis=1))[:, None])

    def divide(self, psd: Complex, noise: float, duals: Complex, damped: float = 0.0) -> GainDivision:
        """Return what divides by the curvature of distortion and noise at each frequency, mean gains as they are.

        With duals that are not yet the directions it is by a little less.
        """
        directions = (self.directions + duals) / 2
        weights = noise**2 * self.levels / self._gains
        inverse = invert(psd + weights[:, :, None] * np.eye(weights.shape[1]))
        # Along K_i the curvature is less than the weight by what is to be inverted here, as P⁻¹ would be of a kink.
        spread = (psd @ inverse) / weights[:, :, None]
        turned = adjoint(directions) @ directions
        left = (turned * np.swapaxes(spread, 1, 2)).real
        left = (left + np.swapaxes(left, 1, 2)) / 2
        short = np.maximum(0.0, 1 - np.linalg.norm(directions, axis=1) ** 2)
        left += ((short + damped) / weights)[:, :, None] * np.eye(weights.shape[1])
        return GainDivision(directions, inverse / (1 + damped), (1 + damped) * np.linalg.inv(left))


class GainDivision:
    """The inverse of the curvature of ‖(z^{-D}F - K)Ω‖²/2 + κ²γ²/2 at each frequency, mean gains as they are.

    That is E ↦ (1 + δ)E(P + N) - Σ N_i k_i Re k_i*E_i e_i*, N = κ² diag(levels_i/g_i), k_i = K_i/g_i or its mean with
    the dual, damped by δ, inverted by Woodbury's formula in sums of positive terms alone.
    """

    def __init__(self, directions: Complex, inverse: Complex, rest: Array) -> None:
        self._directions, self._inverse, self._rest = directions, inverse, rest

    def __call__(self, e: Complex) -> Complex:
        """Return E divided by it, (nodes, p, m)."""
        divided = e @ self._inverse
        missing = (self._rest @ _along(self._directions, divided)[:, :, None])[:, :, 0]
        return np.asarray(divided + (self._directions * missing[:, None]) @ self._inverse)


def _along(directions: Complex, e: Complex) -> Array:
    """Return how much longer columns in these directions get, (nodes, m): Re k*e, of real and imaginary parts."""
    parts = (_parts(directions) * _parts(e)).sum(axis=1)
    return np.asarray(parts[:, ::2] + parts[:, 1::2])


def _parts(x: Complex) -> Array:
    return np.ascontiguousarray(x).view(np.float64)
