"""The error of a stationary mechanism while it starts: exact, step by step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast import _validate
from dpfast._validate import Array
from dpfast.mechanism import Mechanism
from dpfast.models import Model, autocovariance, check_model
from dpfast.receivers import LinearReceiver, Smoother
from dpfast.toeplitz import MAX_HORIZON, convolved


class _Responses(NamedTuple):
    """Impulse responses on n + D samples: of the receiver, and of the target D samples late less all that runs."""

    receiver: Array
    residual: Array


def step_mse(mechanism: Mechanism, n: int, model: Model | None = None) -> Array | None:
    r"""E|ŷ_t - y_t|² of a mechanism that starts at step 0, for t = 0 ... n - 1.

    All filters start at rest, and the input is stationary from step 0: what a study without a burn-in simulates. With
    q = z^{-D} f - h∗g, ŷ_t the estimate that comes at t + D, and T = t + D:

        σ² Σ_{k ≤ T} h_k² + V_T + ((mean - assumed mean) Σ_{k ≤ T} q_k)²,
        V_T - V_{T-1} = q_T² R_0 + 2 q_T Σ_{k < T} q_k R_{T-k}.

    Exact but for rounding; for a smoother, whose D is where its backward filter has decayed, to 1e-11 besides. It
    tends to :meth:`Mechanism.predict`.

    Parameters
    ----------
    mechanism : Mechanism
    n : int
        Steps, at least 1.
    model : Model, optional
        Of the input; by default the one of the design.

    Returns
    -------
    array, (n,), or None
        None where only a simulation tells: for decision feedback, and without a model where the mechanism distorts.

    Examples
    --------
    >>> from dpfast import Filter, Privacy, input_perturbation
    >>> step_mse(input_perturbation(Filter([1, 2]), Privacy.from_gdp(1, 1e-6)), 3).round(6)
    array([1., 5., 5.])
    """
    n = _validate.integer("n", n, 1, MAX_HORIZON)
    model = mechanism.model if model is None else model
    if model is not None:
        check_model(model)
    receiver = mechanism.receiver
    if not isinstance(receiver, LinearReceiver | Smoother):
        return None
    h, q = _responses(mechanism, receiver, n)
    noise = mechanism.noise_std**2 * np.cumsum(h**2)
    if model is None:
        return None if mechanism.predicted_distortion_mse != 0.0 else noise[-n:]
    bias = (model.mean - receiver.mean) * np.cumsum(q)
    return np.asarray(noise + _variances(q, autocovariance(model, len(q))) + bias**2)[-n:]


def _responses(mechanism: Mechanism, receiver: LinearReceiver | Smoother, n: int) -> _Responses:
    """As if the receiver were causal: a smoother waits until its backward filter has decayed."""
    if isinstance(receiver, LinearReceiver):
        forward, ahead, late = receiver.filter, np.ones(1), receiver.lag
    else:
        late = receiver.compiled().lookahead
        forward, ahead = receiver.forward, receiver.backward.impulse(late + 1)[::-1]
    size = n + late
    taps = np.zeros(size)
    taps[: len(ahead)] = ahead
    h, passed = (convolved(taps, x.impulse(size)) for x in (forward, forward * mechanism.prefilter))
    wanted = np.zeros(size)
    wanted[late:] = mechanism.target.impulse(n)
    return _Responses(h, wanted - passed)


def _variances(q: Array, r: Array) -> Array:
    """Of Σ_{k ≤ t} q_k u_{t-k} for t = 0, 1, ..., where u has the autocovariance r."""
    past = convolved(q, r) - r[0] * q
    return np.cumsum(q * (r[0] * q + 2 * past))
