"""Factor a target into a strategy and an unbiased receiver with the least mean error."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import linalg

from dpfast._support.progress import report_step
from dpfast._support.validation import Array
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.operators.convolution import Convolution

LARGEST_UNBIASED_GAP = 1e-6  # relative, between an unbiased optimum and its bound
_MAX_STEPS = 200
_OVER = 1.8  # over-relaxation of the fixed point
_MEMORY = 6  # steps that are extrapolated
_INDEPENDENT = 1e-8  # of the largest singular value of their differences: a smaller one is not used
_FLOOR = 1e-14  # of the eigenvalues of a Gramian, beside the largest


class Factorization(NamedTuple):
    """A strategy with columns of norm one, its receiver, and a bound on the sum of squared errors of any."""

    strategy: Array
    receiver: Array
    lower_bound: float


def factorize_after_delay(target: Toeplitz) -> Factorization:
    """Factor a target whose first coefficients may be zero: only those after them and the inputs they reach count."""
    f = target.coefficients
    delay = int(np.flatnonzero(f)[0])
    best = unbiased_factorization(Convolution(f[delay:]).matrix())
    return best._replace(
        strategy=np.pad(best.strategy, ((0, 0), (0, delay))), receiver=np.pad(best.receiver, ((delay, 0), (0, 0)))
    )


def unbiased_factorization(a: Array) -> Factorization:
    """Return the best unbiased factorization for noise of variance one; A must have no zero on its diagonal.

    The bound is that of the dual, the maximum over v of (tr N)²/Σv with N the root of V^{1/2} AᵀA V^{1/2}. There v is
    the diagonal of N, up to a factor: a fixed point in ln v, found by over-relaxed steps that are extrapolated.
    """
    gram, log_weights, bound, past = a.T @ a, np.zeros(len(a)), 0.0, list[_Step]()
    for step in range(_MAX_STEPS):
        report_step(f"step {step + 1}")
        weights = np.exp(log_weights)
        root, trace = symmetric_root(gram, weights)
        value = trace**2 / float(weights.sum())
        if value < bound:
            past.clear()  # an extrapolation went too far; plain steps do not
        bound = max(bound, value)
        strategy = lower_triangular_root(scale_to_unit_diagonal(root))
        receiver = linalg.solve_triangular(strategy, a.T, lower=True, trans=1).T
        if (receiver**2).sum() <= bound * (1 + LARGEST_UNBIASED_GAP / 2):
            break
        length = _OVER * np.log(root.diagonal() / weights)
        past = [*past[1 - _MEMORY :], _Step(log_weights, length - length.mean())]
        log_weights = _extrapolate(past)
    return Factorization(strategy, receiver, bound)


class _Step(NamedTuple):
    start: Array
    length: Array


def _extrapolate(past: list[_Step]) -> Array:
    """Return where the step would vanish if it were linear between the last points (Anderson 1965)."""
    last = past[-1]
    starts, lengths = (np.diff(np.array(x), axis=0).T for x in zip(*past, strict=True))
    shares = np.linalg.lstsq(lengths, last.length, rcond=_INDEPENDENT)[0]
    return np.asarray(last.start + last.length - (starts + lengths) @ shares)


def symmetric_root(gram: Array, weights: Array) -> tuple[Array, float]:
    """Return the positive definite root of V^{1/2} gram V^{1/2}, gram a Gramian, and its trace, rounded down.

    The eigenvalues have a floor: of a target such as 1 - 2z⁻¹ one is smaller than rounding can tell, and no estimate
    depends on it.
    """
    scale = np.sqrt(weights)
    values, vectors = linalg.eigh(scale[:, None] * gram * scale, driver="evd", check_finite=False)
    floor = _FLOOR * values[-1]
    half = vectors * np.maximum(values, floor) ** 0.25
    return half @ half.T, float(np.sqrt(np.maximum(values - floor, 0.0)).sum())


def scale_to_unit_diagonal(gram: Array) -> Array:
    """Scale rows and columns of a Gramian alike so that its diagonal is one."""
    return np.asarray(gram / np.sqrt(np.outer(gram.diagonal(), gram.diagonal())))


def lower_triangular_root(gram: Array) -> Array:
    """Return the lower-triangular C with CᵀC = gram."""
    return np.ascontiguousarray(linalg.cholesky(gram[::-1, ::-1])[::-1, ::-1])
