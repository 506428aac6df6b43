"""The error of a stationary mechanism while it starts: exact, step by step."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import convolve_series
from dpfast.signals.model import Model, autocovariance
from dpfast.signals.output_variance import variances_by_step


class CausalForm(NamedTuple):
    """A linear receiver that runs `late` samples late: a filter, and behind it a few taps."""

    filter: Filter
    taps: Array
    late: int


class HasCausalForm(Protocol):
    """A linear receiver, as far as the errors of the first steps ask for it."""

    @property
    def mean(self) -> float:
        """The mean that it takes u to have."""

    def causal_form(self) -> CausalForm:
        """Return the receiver as a filter and taps that run late enough to be causal."""


class _Responses(NamedTuple):
    """Impulse responses on n + D samples: of the receiver, and of the target D samples late less all that runs."""

    receiver: Array
    residual: Array


def step_errors(
    target: Filter,
    prefilter: Filter,
    noise_std: float,
    receiver: HasCausalForm,
    model: Model | None,
    n: int,
) -> Array:
    r"""Return the MSE of each of the first n steps, all from rest; the noise's part alone without a model.

    With q = z^{-D} f - h∗g, ŷ_t the estimate that comes at t + D, and T = t + D:

        σ² Σ_{k ≤ T} h_k² + V_T + ((mean - assumed mean) Σ_{k ≤ T} q_k)²,
        V_T - V_{T-1} = q_T² R_0 + 2 q_T Σ_{k < T} q_k R_{T-k}.

    Exact but for rounding; for a smoother, whose D is where its backward filter has decayed, to 1e-11 besides.
    """
    h, q = _find_responses(target, prefilter, receiver, n)
    noise = noise_std**2 * np.cumsum(h**2)
    if model is None:
        return noise[-n:]
    bias = (model.mean - receiver.mean) * np.cumsum(q)
    return np.asarray(noise + variances_by_step(q, autocovariance(model, len(q))) + bias**2)[-n:]


def _find_responses(target: Filter, prefilter: Filter, receiver: HasCausalForm, n: int) -> _Responses:
    """Return the responses as if the receiver were causal: a smoother waits until its backward filter has decayed."""
    forward, ahead, late = receiver.causal_form()
    size = n + late
    taps = np.zeros(size)
    taps[: len(ahead)] = ahead
    h, passed = (convolve_series(taps, x.impulse(size)) for x in (forward, forward * prefilter))
    wanted = np.zeros(size)
    wanted[late:] = target.impulse(n)
    return _Responses(h, wanted - passed)
