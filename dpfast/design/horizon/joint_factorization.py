"""Find a strategy together with the linear receiver behind it that has the least mean error, and bound that error."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpfast._support.progress import report_step
from dpfast._support.validation import Array
from dpfast.design.horizon.unbiased_factorization import (
    Factorization,
    lower_triangular_root,
    scale_to_unit_diagonal,
    symmetric_root,
)
from dpfast.mechanisms.least_squares import Innovations, innovations

LARGEST_JOINT_GAP = 1e-2  # relative, between an optimum with a receiver and its bound
_SMALL_GAP = 5e-5  # relative: a certificate as near as that is good enough
_DECREASE = 3e-8  # of the error, beside that of the start, in the last step of a search
_MAX_EVALUATIONS = 1000
_MARGIN = 1e-12  # beside the variance: so much white noise keeps a covariance positive definite
_UNWEIGHTED = 1e-4  # beside the largest weight: the least of a column
_UNUSED = 1e-12  # eigenvalues of CᵀC below it belong to what the receiver does not use
_ROUNDING = 2.0**-52  # of the error without any estimate: less of it cannot be told
_STRIP = 64  # rows or columns that are multiplied at once
_PASSES = 10  # of a certificate at the most
_NEARLY_ONE = (0.9, 0.99, 1.0)  # from where on a singular value counts as T


class FactorizationProblem:
    """Errors of the best receivers behind strategies, which are given by the entries on and below the diagonal."""

    def __init__(self, a: Array, covariance: Array, noise_variance: float, kept: NDArray[np.bool_]) -> None:
        self.a, self.covariance, self.noise_variance, self.kept = a, covariance, noise_variance, kept
        self.cross = a @ covariance
        self.total = float((self.cross * a).sum())
        self.places = np.tril_indices(len(a))

    def strategy(self, entries: Array) -> tuple[Array, Array]:
        """Return C with columns of norm one, and the norms by which they were divided."""
        c = np.zeros_like(self.a)
        c[self.places] = entries
        norms = np.sqrt((c**2).sum(axis=0))
        return c / norms, norms

    def innovations(self, c: Array) -> Innovations:
        """Return the innovations of what C and the noise let through."""
        return innovations(c, self.covariance, self.noise_variance, self.a)

    def error(self, entries: Array) -> tuple[float, Array]:
        """Return the sum of the squared errors of columns of norm one, and its gradient."""
        c, norms = self.strategy(entries)
        error, slope = self.error_behind_lower(c)
        return error, ((slope - c * (c * slope).sum(axis=0)) / norms)[self.places]

    def error_behind(self, c: Array) -> tuple[float, Array]:
        """Return the sum of the squared errors behind a strategy, of any rows if all are kept, and its gradient.

        With hardly any noise what is left of the difference is rounding, which may not look like an error of 0 or less.
        With P the lower half of (M ∘ W)ᵀ W, half of its diagonal: -2 L⁻ᵀ [(M ∘ W)ᵀ A R - (P + Pᵀ) L⁻¹ C R].
        """
        found = self.innovations(c)
        used = found.gains * self.kept
        lower = np.tril(used.T @ found.gains, -1)
        inner = lower + lower.T + np.diag(np.einsum("ij,ij->j", used, found.gains))
        slope = used.T @ self.cross - inner @ found.signal
        slope = -2 * linalg.solve_triangular(found.root, slope, lower=True, trans=1, check_finite=False)
        return max(self.total - float((used**2).sum()), _ROUNDING * self.total), slope

    def error_behind_lower(self, c: Array) -> tuple[float, Array]:
        """Return the same behind a lower-triangular strategy, the gradient on and below the diagonal only.

        Products are taken in strips, and leave out what is zero or not asked for: half of the multiplications.
        """
        n, strips = len(c), _strips(len(c))
        seen, power, gains = np.empty((n, n)), np.zeros((n, n)), np.empty((n, n))
        for i, j in strips:
            seen[i:j] = c[i:j, :j] @ self.covariance[:j]
            power[i:j, :j] = seen[i:j, :j] @ c[:j, :j].T
        root = linalg.cholesky(power + self.noise_variance * np.eye(n), lower=True, check_finite=False)
        signal = linalg.solve_triangular(root, seen, lower=True, check_finite=False)
        for i, j in strips:
            gains[i:j] = self.a[i:j, :j] @ signal.T[:j]
        used, lower, slope = gains * self.kept, np.zeros((n, n)), np.zeros((n, n))
        first = [int(np.argmax(self.kept[:, i:j].any(axis=1))) for i, j in strips]  # row that uses a strip
        for (i, j), k in zip(strips, first, strict=True):
            lower[i:j, :j] = used[k:, i:j].T @ gains[k:, :j]
            slope[i:j, :j] = used[k:, i:j].T @ self.cross[k:, :j]
        lower = np.tril(lower, -1)
        inner = lower + lower.T + np.diag(np.einsum("ij,ij->j", used, gains))
        for i, j in strips:
            slope[i:j, :j] -= inner[i:j] @ signal[:, :j]
        for i, j in strips:
            strip = linalg.solve_triangular(root[i:, i:], slope[i:, i:j], lower=True, trans=1, check_finite=False)
            slope[i:, i:j] = -2 * strip
        return max(self.total - float((used**2).sum()), _ROUNDING * self.total), slope


def _strips(n: int) -> list[tuple[int, int]]:
    return [(i, min(i + _STRIP, n)) for i in range(0, n, _STRIP)]


def joint_factorization(
    joint: FactorizationProblem, start: Array | None = None, decrease: float = _DECREASE
) -> Factorization:
    """Search for the best strategy by L-BFGS, until a step gains less than `decrease`, relatively.

    It starts halfway between the identity and the first step towards the unbiased optimum, where C has full rank.
    """
    from scipy import optimize  # late: it takes a fifth as long to import as all of dpfast

    n = len(joint.a)
    if start is None:
        first = scale_to_unit_diagonal(symmetric_root(joint.a.T @ joint.a, np.ones(n))[0])
        start = lower_triangular_root((first + np.eye(n)) / 2)
    unit = joint.error(start[joint.places])[0]

    evaluations = itertools.count(1)

    def relative(entries: Array) -> tuple[float, Array]:
        report_step(f"step {next(evaluations)}")
        error, slope = joint.error(entries)
        return error / unit, slope / unit

    minimize: Any = optimize.minimize
    options = {"ftol": decrease, "gtol": 0.0, "maxfun": _MAX_EVALUATIONS, "maxiter": _MAX_EVALUATIONS}
    found = minimize(relative, start[joint.places], jac=True, method="L-BFGS-B", options=options)
    c, _ = joint.strategy(found.x)
    b = joint.innovations(c).receiver(joint.kept)
    return Factorization(c, b, factorization_lower_bound(joint, c, b))


def factorization_lower_bound(joint: FactorizationProblem, c: Array, b: Array) -> float:
    r"""Return a bound that no strategy with any receiver goes below; the nearer C is to the optimum, the tighter.

    For any v with Σv = 1, Φ, T ≥ ‖Φ V^{-1/2}‖ and τ, as K = B C reaches as far as M does,

        ‖(A - K) R^{1/2}‖² + σ²‖K V^{1/2}‖_*² ≥ 2τσ²⟨A, Φ⟩ - τ²(σ²T² + σ⁴‖M ∘ (M ∘ Φ) Γ⁻ᵀ‖²),    R = Γ Γᵀ.

    Equality at the optimum for Φ = K X⁻¹, X = CᵀC, v ∝ diag(Kᵀ Φ) and T = ‖K V^{1/2}‖_*. There M ∘ Φ is
    M ∘ (A - K) R/σ², and the singular values of Φ V^{-1/2} are T, or less where K is zero: near the optimum both are
    made so in turn.
    """
    k = b @ c
    residual = (joint.cross - k @ joint.covariance) / joint.noise_variance
    weights = (k * residual).sum(axis=0)
    weights = np.maximum(weights, _UNWEIGHTED * weights.max())
    scale = np.sqrt(weights / weights.sum())
    norm = float(linalg.svdvals(k * scale).sum())
    error = float(((joint.cross - k @ joint.covariance) * (joint.a - k)).sum() + joint.noise_variance * (b**2).sum())
    extra = _MARGIN * float(joint.covariance[0, 0])
    root = linalg.cholesky(joint.covariance + extra * np.eye(len(c)), lower=True)
    phi = linalg.solve(c.T @ c + _UNUSED * np.eye(len(c)), k.T, assume_a="pos").T
    bound = 0.0
    for _ in range(_PASSES):
        left, sizes, right = linalg.svd(np.where(joint.kept, residual, phi) / scale)
        for level in _NEARLY_ONE:
            phi = (left * np.where(sizes > level * norm, norm, sizes)) @ right * scale
            bound = max(bound, _dual_bound(joint, root, phi, norm))
        if error <= bound * (1 + _SMALL_GAP):
            break
    return max(0.0, bound - extra * float(((joint.a - k) ** 2).sum()))


def _dual_bound(joint: FactorizationProblem, root: Array, phi: Array, norm: float) -> float:
    """Return the bound for the best τ."""
    noise = joint.noise_variance
    rest = linalg.solve_triangular(root, (joint.kept * phi).T, lower=True).T * joint.kept
    linear, square = noise * float((joint.a * phi).sum()), float((rest**2).sum())
    return linear**2 / (noise * norm**2 + noise**2 * square) if linear > 0 else 0.0
