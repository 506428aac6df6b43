"""Bound from below the error over a horizon of any strategy together with any linear receiver."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from dpfast._support.progress import report_step
from dpfast._support.validation import Array
from dpfast.design.horizon.joint_problem import BestReceiver, FactorizationProblem
from dpfast.design.horizon.unbiased_factorization import lower_triangular_root

_SMALL_GAP = 5e-5  # relative: a certificate as near as that is good enough
_NEARER = 0.9  # times the gap: what a pass must come down to for a further one
_MARGIN = 1e-12  # beside the variance: so much white noise keeps a covariance positive definite
_UNWEIGHTED = 1e-4  # beside the largest weight: the least of a column
_SPREADS = (1e-8, 1e-6)  # white parts of CᵀC, until the bound is near
_PASSES = 10  # at the most
_NEARLY_ONE = (0.9, 0.99, 1.0)  # from where on a singular value counts as T


def factorization_lower_bound(joint: FactorizationProblem, c: Array) -> float:
    r"""Return a bound that no strategy with any receiver goes below; the nearer C is to the optimum, the tighter.

    For any v with Σv = 1, Φ, T ≥ ‖Φ V^{-1/2}‖ and τ, as K = B C reaches as far as M does,

        ‖(A - K) R^{1/2}‖² + σ²‖K V^{1/2}‖_*² ≥ 2τσ²⟨A, Φ⟩ - τ²(σ²T² + σ⁴‖M ∘ (M ∘ Φ) Γ⁻ᵀ‖²),    R = Γ Γᵀ.

    Equality at the optimum for Φ = K X⁻¹, X = CᵀC, v ∝ diag(Kᵀ Φ) and T = ‖K V^{1/2}‖_*. There M ∘ Φ is
    M ∘ (A - K) R/σ², and the singular values of Φ V^{-1/2} are T, or less where K is zero: near the optimum both are
    made so in turn. X gets a little of every direction: with less than the optimum, singular values exceed T.
    """
    extra = _MARGIN * float(joint.covariance[0, 0])
    whitening = linalg.cholesky(joint.covariance + extra * np.eye(len(c)), lower=True, check_finite=False)
    bound = 0.0
    for spread in _SPREADS:
        root = lower_triangular_root((c.T @ c + spread * np.eye(len(c))) / (1 + spread))
        best = joint.best_receiver(root)
        lost = extra * float(((joint.a - best.through) ** 2).sum())
        bound = max(bound, _bound_behind(joint, root, best, whitening) - lost)
        if best.error <= bound * (1 + _SMALL_GAP):
            break
    return bound


def _bound_behind(joint: FactorizationProblem, c: Array, best: BestReceiver, whitening: Array) -> float:
    k, residual = best.through, best.residual / joint.noise_variance
    phi = linalg.solve_triangular(c, best.receiver.T, lower=True, check_finite=False).T
    weights = (k * residual).sum(axis=0)
    if not weights.max() > 0:  # with hardly any noise they are rounding
        return 0.0
    weights = np.maximum(weights, _UNWEIGHTED * weights.max())
    scale = np.sqrt(weights / weights.sum())
    norm, bound, gap = _nuclear_norm(k * scale), 0.0, np.inf
    for count in range(_PASSES):
        report_step(f"bound, pass {count + 1}")
        phi = np.where(joint.kept, residual, phi)
        left, sizes, right = linalg.svd(phi / scale, check_finite=False)
        bound = max(bound, _dual_bound(joint, whitening, phi, float(sizes[0])))
        for level in _NEARLY_ONE:
            phi = (left * np.where(sizes > level * norm, norm, sizes)) @ right * scale
            bound = max(bound, _dual_bound(joint, whitening, phi, norm))
        before, gap = gap, best.error - bound
        if gap <= _SMALL_GAP * bound or gap > _NEARER * before:
            break
    return bound


def _nuclear_norm(k: Array) -> float:
    """Return the sum of the singular values, by their squares: any number near to it serves."""
    return float(np.sqrt(np.maximum(linalg.eigvalsh(k.T @ k, check_finite=False), 0.0)).sum())


def _dual_bound(joint: FactorizationProblem, whitening: Array, phi: Array, norm: float) -> float:
    """Return the bound for the best τ."""
    noise = joint.noise_variance
    seen = (joint.kept * phi).T
    rest = linalg.solve_triangular(whitening, seen, lower=True, check_finite=False).T * joint.kept
    linear, square = noise * float((joint.a * phi).sum()), float((rest**2).sum())
    return linear**2 / (noise * norm**2 + noise**2 * square) if linear > 0 else 0.0
