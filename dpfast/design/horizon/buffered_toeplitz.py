"""Buffered linear Toeplitz strategies: few decaying exponentials, fitted to a target."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast._support.validation import Array
from dpfast.design.argument_checks import Target, target_over_horizon
from dpfast.filters.filter import MAX_POLE_RADIUS
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.operators.buffered_toeplitz import BufferedToeplitz, cascade
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.privacy.privacy import Privacy

MAX_BUFFERS = 12
_LITTLE = 0.99  # another buffer must bring the mean squared error below this part of it
_PART = 4096  # steps of the target on which starts are compared
_NEAREST = (0.0, 0.05)  # distances of the starts from the unit circle, and at least one over the horizon
_BLOCK = 256  # powers that are computed at a time


@public_design
def buffered_toeplitz(
    target: Target,
    privacy: Privacy,
    *,
    horizon: int | None = None,
    n_buffers: int | None = None,
    error: str = "mean",
    name: str = "BLT",
) -> MatrixMechanism:
    r"""Fit a buffered linear Toeplitz mechanism (BLT), a strategy of few decaying exponentials, to the target.

    Model
    -----
    C(z) = Π (1 - p_i z⁻¹)/(1 - q_i z⁻¹), p and q real and inside of the unit circle, B = F/C. With Gaussian noise of
    standard deviation κ d‖c‖₂ the squared error of step t is κ² d² ‖c‖₂² Σ_{k ≤ t} b_k², b = f/c; its mean or its
    largest over the horizon is minimised by BFGS from several starts (Dvijotham, McMahan, Pillutla, Steinke and
    Thakurta 2024; McMahan, Xu and Zhang 2024, who fit the running sum). It is fitted for one event a person; the noise
    is that of as many as `privacy` says. Targets with complex zeros or poles near the circle need more exponentials
    than real ones can be; `square_root` is better there.

    ``mechanism.strategy.filter()`` gives C as a stable :class:`Filter` with a state for every buffer, which runs step
    by step.

    Parameters
    ----------
    target : Filter, Toeplitz or sequence of float
        f, whose output should be published.
    privacy : Privacy
        The guarantee that is asked for.
    horizon : int, optional
        n, the number of steps; a Filter needs it.
    n_buffers : int, optional
        Exponentials, 1 to 12. By default they are added, one or two at a time, while that reduces the mean squared
        error by 1 % or more.
    error : {"mean", "max"}
        Minimise the mean error over the steps, or the largest.
    name : str
        What tables and pictures call it.

    Returns
    -------
    MatrixMechanism
        Its predicted error is exact; that its parameters are the best is not certified.

    Notes
    -----
    *Privacy.* The noise is that of the largest column of C; see :class:`MatrixMechanism`. To several events it is exact
    where c is non-negative and non-increasing, as for the running sum.

    Examples
    --------
    >>> import math
    >>> import dpfast as dp
    >>> mechanism = dp.buffered_toeplitz(dp.running_sum(64), dp.Privacy.from_gdp(1, 1e-6), error="max")
    >>> round(math.sqrt(mechanism.max_mse), 4), len(mechanism.strategy.poles)
    (2.3913, 2)
    """
    whole = target_over_horizon(target, privacy, horizon)
    if n_buffers is not None:
        n_buffers = validation.integer("n_buffers", n_buffers, 1, MAX_BUFFERS)
    error = validation.choice("error", error, ("mean", "max"))
    strategy = fit_strategy(whole.coefficients, error, n_buffers)
    reconstruction = Convolution(cascade(strategy.poles, strategy.zeros, whole.coefficients))
    options = (("n_buffers", n_buffers), ("error", error))
    return MatrixMechanism(name, whole, privacy, strategy, reconstruction, options=options)


class FitProblem(NamedTuple):
    """A target, and the weight of each coefficient of the reconstruction in the error that a fit minimises."""

    f: Array
    weights: Array

    @classmethod
    def from_target(cls, f: Array, error: str) -> FitProblem:
        """Weigh b_k by its rows, n - k of n, for the mean error; alike for the largest, that of the last step."""
        n = len(f)
        return cls(f / np.abs(f).max(), np.ones(n) if error == "max" else np.arange(n, 0, -1) / n)

    def loss(self, parameters: Array) -> tuple[float, Array]:
        """Return ln(‖c‖² Σ w_k b_k²), b = f/c, and its gradient.

        ∂ ln c/∂p = -z/(1 - p z), and so Σ c ∂c/∂p = -Σ_{k ≥ 1} p^{k-1} r(k), r the autocorrelation; of a pole, and of
        b, likewise with the other sign.
        """
        roots = _roots_from_parameters(parameters)
        poles, zeros = roots[0::2], roots[1::2]
        impulse = np.zeros(len(self.f))
        impulse[0] = 1.0
        c, b = cascade(zeros, poles, impulse), cascade(poles, zeros, self.f)
        weighted = self.weights * b
        energy, error = _dot(c, c), _dot(weighted, b)
        if not 0 < error < math.inf:
            return math.inf, np.zeros(len(roots))
        r = _correlations((c / energy, c), (-weighted / error, b))
        signs = np.tile([2.0, -2.0], len(poles))
        inner = MAX_POLE_RADIUS * (1 - np.tanh(parameters) ** 2)
        return math.log(energy) + math.log(error), signs * _power_sums(r[1:], roots) * inner


def fit_strategy(f: Array, error: str, n_buffers: int | None) -> BufferedToeplitz:
    """Return the best strategy of so many buffers that is found.

    For None, buffers are added, one or two at a time, while that reduces the mean squared error by 1 % or more.
    """
    if n_buffers is not None:
        return _make_strategy(_fit_from_best_start(f, error, n_buffers), len(f))
    best = _fit_from_best_start(f, error, 1)
    for more in range(2, MAX_BUFFERS + 1):
        larger = _fit_from_best_start(f, error, more)
        if larger.fun <= best.fun + math.log(_LITTLE):
            best = larger
        elif more > len(best.x) // 2 + 1:  # a single one may gain nothing, where two do
            break
    return _make_strategy(best, len(f))


def _make_strategy(best: Any, horizon: int) -> BufferedToeplitz:
    roots = _roots_from_parameters(best.x)
    return BufferedToeplitz(roots[1::2], roots[0::2], horizon)


def _fit_from_best_start(f: Array, error: str, n_buffers: int) -> Any:
    """Fit from several starts; for a long horizon a part of it tells which start is best."""
    part = f[: int(np.argmax(f != 0)) + _PART]
    starts = list(itertools.product(sorted({0, n_buffers // 2, n_buffers}), _NEAREST))
    trials = [_fit_from_start(part, error, n_buffers, *start) for start in starts]
    best = int(np.argmin([round(float(trial.fun), 6) for trial in trials]))  # of equals the first
    return trials[best] if len(part) == len(f) else _fit_from_start(f, error, n_buffers, *starts[best])


def _fit_from_start(f: Array, error: str, n_buffers: int, n_negative: int, nearest: float) -> Any:
    """Fit from poles and zeros that alternate at geometrically growing distances from 1, n_negative pairs from -1."""
    from scipy.optimize import minimize

    nearest = max(nearest, 1 / (len(f) + 1))
    sides = [1 - np.geomspace(nearest, 0.8, 2 * pairs) for pairs in (n_buffers - n_negative, n_negative)]
    start = np.arctanh(np.concatenate([sides[0], -sides[1]]))
    loss: Any = FitProblem.from_target(f, error).loss
    return minimize(loss, start, jac=True, method="BFGS", options={"maxiter": 1000, "gtol": 1e-7})


def _roots_from_parameters(parameters: Array) -> Array:
    """Return poles and zeros in turn, as near to the circle as a Filter allows at the most."""
    return np.asarray(MAX_POLE_RADIUS * np.tanh(parameters))


def _dot(x: Array, y: Array) -> float:
    """Multiply by NumPy's own loop: threads of a BLAS cost ten times as much for vectors as short as these."""
    return float(np.einsum("i,i->", x, y))


def _correlations(*pairs: tuple[Array, Array]) -> Array:
    """Return the sum over the pairs of Σ_t x_{t+k} y_t, k = 0, ..., n - 1."""
    from scipy import fft

    n = len(pairs[0][0])
    size = fft.next_fast_len(2 * n, real=True)
    spectrum: Any = sum(fft.rfft(x, size) * fft.rfft(y, size).conj() for x, y in pairs)
    return np.asarray(fft.irfft(spectrum, size)[:n])


def _power_sums(r: Array, roots: Array) -> Array:
    """Return Σ_k r_k x^k for every root x, by blocks, so that few powers are needed."""
    blocks = np.zeros((-(-len(r) // _BLOCK), _BLOCK))
    blocks.reshape(-1)[: len(r)] = r
    inside = roots ** np.arange(_BLOCK)[:, None]
    between = roots ** (_BLOCK * np.arange(len(blocks))[:, None])
    return np.asarray(np.einsum("ij,jk,ik->k", blocks, inside, between, optimize=False))
