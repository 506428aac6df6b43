"""The matrix mechanism with the least mean error over a horizon: unbiased, or together with its receiver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpfast._support import validation
from dpfast._support.errors import ConvergenceWarning, DesignError, warn
from dpfast._support.validation import Array
from dpfast.design.arguments import Target
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.mechanisms.least_squares import Innovations, in_time, innovations
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.operators.operators import Convolution, Dense
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model, autocovariance, check_model

LONGEST = 2048  # steps, as all matrices are dense
_GAP = 1e-6  # relative, of the unbiased optimum
_MAX_STEPS = 200
_OVER = 1.8  # over-relaxation of the fixed point
_FLOOR = 1e-14  # of the eigenvalues of a Gram matrix, beside the largest
_DECREASE = 3e-8  # of the error, beside that of the start, in the last step of a search
_MAX_EVALUATIONS = 1000
_MARGIN = 1e-12  # beside the variance: so much white noise keeps a covariance positive definite
_UNWEIGHTED = 1e-4  # beside the largest weight: the least of a column
_UNUSED = 1e-12  # eigenvalues of CᵀC below it belong to what the receiver does not use
_PASSES = 10  # of a certificate at the most
_NEARLY_ONE = (0.9, 0.99, 1.0)  # from where on a singular value counts as T
_SMALL_GAP, _LARGEST_GAP = 5e-5, 1e-2  # relative, of the optimum with a receiver


def optimal_factorization(
    target: Target,
    privacy: Privacy,
    model: Model | None = None,
    *,
    horizon: int | None = None,
    lag: Lag = 0,
    name: str | None = None,
) -> MatrixMechanism:
    r"""Design the matrix mechanism with the least mean square error over a horizon.

    Model
    -----
    v = C (u - centre) + n with C lower triangular, its columns of norm one; ŷ = B v + A centre.

    Without a model: B C = A, and C minimises the mean ‖B‖_F²/n, a convex problem in X = CᵀC. With the fixed point
    v = diag (V^{1/2} AᵀA V^{1/2})^{1/2} of its dual, X = V^{-1/2} (V^{1/2} AᵀA V^{1/2})^{1/2} V^{-1/2} (Denisov,
    McMahan, Rush, Smith and Thakurta 2022).

    With a model: C and the linear receiver of this lag with the least mean square error, together. Behind C that error
    is [tr(A R Aᵀ) - ‖M ∘ W‖²]/n with W = A R Cᵀ L⁻ᵀ, L Lᵀ = C R Cᵀ + σ² I, R the covariance of u and M the mask of what
    is there t + D steps after the start; it is minimised over C by L-BFGS. It is the least over K = B C of the convex
    ‖(A - K) R^{1/2}‖² + σ² max_v ‖K V^{1/2}‖_*² (v ≥ 0, Σv = 1, nuclear norm), which gives the lower bound: what
    :func:`optimal` does for all time, over a horizon, where a target such as the running sum is allowed.

    Parameters
    ----------
    target : Filter, Toeplitz or sequence of float
        A, as its impulse response. It may have zeros anywhere, and begin with a delay.
    privacy : Privacy
        C is that for one event a person; the noise is for all of them.
    model : Model, optional
        Mean and spectrum of u, stationary from step 0; the guarantee does not depend on their being right, the error
        does. Without one the error is the same for every input.
    horizon : int, optional
        Steps, at most 2048: time grows as their third power. At 1024 steps a core takes ten seconds without a model and
        a minute or so with one. By default those of the target; it must be given for a Filter.
    lag : int or "smoother"
        D: the estimate of y_t uses what is published up to t + D; that of the smoother, or None, all of it. Without
        a model it must be 0, as an unbiased receiver gains nothing by waiting.
    name : str, optional

    Returns
    -------
    MatrixMechanism
        ``predicted_mse`` is at most 1e-6 above ``lower_bound_mse``, relatively, without a model. With one the search
        ends about 1e-5 above the optimum, and the bound is mostly less than 1e-3 below; more where the receiver uses
        little of the strategy: loud noise, spectra that are all but zero in a band. The bound holds, to rounding, for
        all lower-triangular strategies with linear receivers of this lag; without a model for those with B C = A.

    Raises
    ------
    ValueError
        For lag < 0, and a lag without a model.
    DesignError
        For a horizon of more than 2048 steps.

    Warns
    -----
    ConvergenceWarning
        Where the gap is larger; the bound still holds. For several events, which it does not account for, there
        is no warning.

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of C as it is, to as many events as `privacy` says. The model must
    not be fitted to the data that are to be released.

    Examples
    --------
    >>> import math
    >>> import dpfast as dp
    >>> mechanism = dp.optimal_factorization(dp.running_sum(64), dp.Privacy.from_gdp(1, 1e-6))
    >>> round(mechanism.predicted_rmse, 4), round(math.sqrt(mechanism.lower_bound_mse), 4)
    (2.0999, 2.0999)
    """
    y = Toeplitz.of(target, horizon)
    validation.instance("privacy", privacy, Privacy, "a Privacy")
    delay = check_lag(lag)
    if y.horizon > LONGEST:
        raise DesignError(
            f"horizon must be at most {LONGEST} steps here, where all is dense, got {y.horizon}: take a shorter one, "
            "or square_root or buffered_toeplitz"
        )
    if model is not None:
        check_model(model)
        return _joint_mechanism(y, privacy, model, delay, name)
    if delay != 0:
        raise ValueError(f"lag must be 0 without a model, got {lag!r}: an unbiased receiver gains nothing by waiting")
    return _unbiased_mechanism(y, privacy, name)


def _unbiased_mechanism(target: Toeplitz, privacy: Privacy, name: str | None) -> MatrixMechanism:
    best = _factorization_after_delay(target)
    strategy, receiver = (Dense(validation.freeze(x)) for x in (best.strategy, best.receiver))
    found = MatrixMechanism(name or "optimal factorization", target, privacy, strategy, receiver)
    return _with_lower_bound(found, best.lower_bound * _noise_variance(privacy), _GAP)


def _joint_mechanism(
    target: Toeplitz, privacy: Privacy, model: Model, lag: int | None, name: str | None
) -> MatrixMechanism:
    name = name or f"optimal factorization {'smoother' if lag is None else f'lag {lag}'}"
    n, a = target.horizon, Convolution(target.coefficients).matrix()
    kept = in_time(np.arange(n), n, lag)
    joint = JointFactorization(a, linalg.toeplitz(autocovariance(model, n)), _noise_variance(privacy), kept)
    best = joint_factorization(joint)
    strategy, silent = Dense(validation.freeze(best.strategy)), Dense(np.zeros((n, n)))
    found = MatrixMechanism(name, target, privacy, strategy, silent, unbiased=False)
    # the receiver for the noise that it really has, which several events make larger
    return _with_lower_bound(found.with_receiver(model, lag=lag, name=name), best.lower_bound, _LARGEST_GAP)


def _noise_variance(privacy: Privacy) -> float:
    """Return the variance of the noise behind columns of norm one, for one event."""
    return (privacy.noise_multiplier * privacy.max_change) ** 2


def _with_lower_bound(found: MatrixMechanism, bound: float, largest: float) -> MatrixMechanism:
    """Attach a bound on the sum of squared errors; warn if, for one event, it is further off than usual."""
    bound /= found.horizon
    mse = found.predicted_mse
    if found.privacy.max_events == 1 and mse is not None and mse > bound * (1 + largest):
        warn(
            f"the optimum is certified to a relative gap of {mse / bound - 1:.1e} only, {largest:g} is usual: it is at "
            "least lower_bound_mse, and may be near to what was found; take a model with more power where it has least",
            ConvergenceWarning,
        )
    return replace(found, lower_bound_mse=bound)


class Factorization(NamedTuple):
    """A strategy with columns of norm one, its receiver, and a bound on the sum of squared errors of any."""

    strategy: Array
    receiver: Array
    lower_bound: float


# --- unbiased -------------------------------------------------------------------------------------


def _factorization_after_delay(target: Toeplitz) -> Factorization:
    """Factor a target whose first coefficients may be zero: only those after them and the inputs they reach count."""
    f = target.coefficients
    delay = int(np.flatnonzero(f)[0])
    best = unbiased_factorization(Convolution(f[delay:]).matrix())
    return best._replace(
        strategy=np.pad(best.strategy, ((0, 0), (0, delay))), receiver=np.pad(best.receiver, ((delay, 0), (0, 0)))
    )


def unbiased_factorization(a: Array) -> Factorization:
    """Return the best unbiased factorization for noise of variance one; A must have no zero on its diagonal.

    The bound is that of the dual, the maximum over v of (tr N)²/Σv with N the root of V^{1/2} AᵀA V^{1/2}.
    """
    gram, weights, bound = a.T @ a, np.ones(len(a)), 0.0
    for _ in range(_MAX_STEPS):
        root, trace = _symmetric_root(gram, weights)
        bound = max(bound, trace**2 / float(weights.sum()))
        strategy = _lower_triangular_root(_with_unit_diagonal(root))
        receiver = linalg.solve_triangular(strategy, a.T, lower=True, trans=1).T
        if (receiver**2).sum() <= bound * (1 + _GAP / 2):
            break
        weights = weights * (root.diagonal() / weights) ** _OVER
    return Factorization(strategy, receiver, bound)


def _symmetric_root(gram: Array, weights: Array) -> tuple[Array, float]:
    """Return the positive definite root of V^{1/2} gram V^{1/2}, gram a Gramian, and its trace, rounded down.

    The eigenvalues have a floor: of a target such as 1 - 2z⁻¹ one is smaller than rounding can tell, and no estimate
    depends on it.
    """
    scale = np.sqrt(weights)
    values, vectors = linalg.eigh(scale[:, None] * gram * scale, driver="evd", check_finite=False)
    floor = _FLOOR * values[-1]
    root = np.asarray((vectors * np.sqrt(np.maximum(values, floor))) @ vectors.T)
    return root, float(np.sqrt(np.maximum(values - floor, 0.0)).sum())


def _with_unit_diagonal(gram: Array) -> Array:
    return np.asarray(gram / np.sqrt(np.outer(gram.diagonal(), gram.diagonal())))


def _lower_triangular_root(gram: Array) -> Array:
    """Return the lower-triangular C with CᵀC = gram."""
    return np.ascontiguousarray(linalg.cholesky(gram[::-1, ::-1])[::-1, ::-1])


# --- with a receiver ------------------------------------------------------------------------------


class JointFactorization:
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
        """Return the sum of the squared errors, and its gradient.

        With P the lower half of (M ∘ W)ᵀ W, half of its diagonal: -2 L⁻ᵀ [(M ∘ W)ᵀ A R - (P + Pᵀ) L⁻¹ C R] for C as it
        is, less the part along its columns.
        """
        c, norms = self.strategy(entries)
        found = self.innovations(c)
        used = found.gains * self.kept
        lower = np.tril(used.T @ found.gains, -1)
        inner = lower + lower.T + np.diag(np.einsum("ij,ij->j", used, found.gains))
        slope = used.T @ self.cross - inner @ found.signal
        slope = -2 * linalg.solve_triangular(found.root, slope, lower=True, trans=1, check_finite=False)
        slope = (slope - c * (c * slope).sum(axis=0)) / norms
        return self.total - float((used**2).sum()), slope[self.places]


def joint_factorization(joint: JointFactorization, start: Array | None = None) -> Factorization:
    """Search for the best strategy by L-BFGS.

    It starts halfway between the identity and the first step towards the unbiased optimum, where C has full rank.
    """
    from scipy import optimize  # late: it takes a fifth as long to import as all of dpfast

    n = len(joint.a)
    if start is None:
        first = _with_unit_diagonal(_symmetric_root(joint.a.T @ joint.a, np.ones(n))[0])
        start = _lower_triangular_root((first + np.eye(n)) / 2)
    unit = joint.error(start[joint.places])[0]

    def relative(entries: Array) -> tuple[float, Array]:
        error, slope = joint.error(entries)
        return error / unit, slope / unit

    minimize: Any = optimize.minimize
    options = {"ftol": _DECREASE, "gtol": 0.0, "maxfun": _MAX_EVALUATIONS, "maxiter": _MAX_EVALUATIONS}
    found = minimize(relative, start[joint.places], jac=True, method="L-BFGS-B", options=options)
    c, _ = joint.strategy(found.x)
    b = joint.innovations(c).receiver(joint.kept)
    return Factorization(c, b, factorization_lower_bound(joint, c, b))


def factorization_lower_bound(joint: JointFactorization, c: Array, b: Array) -> float:
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


def _dual_bound(joint: JointFactorization, root: Array, phi: Array, norm: float) -> float:
    """Return the bound for the best τ."""
    noise = joint.noise_variance
    rest = linalg.solve_triangular(root, (joint.kept * phi).T, lower=True).T * joint.kept
    linear, square = noise * float((joint.a * phi).sum()), float((rest**2).sum())
    return linear**2 / (noise * norm**2 + noise**2 * square) if linear > 0 else 0.0
