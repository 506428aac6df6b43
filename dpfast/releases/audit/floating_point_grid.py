"""The attack on floating-point noise: a published value lies on a grid of its own for every input.

The noise of a simulation is a float32 number n times σ, so that few of the float64 numbers can come from a given input:
v = round(σ n + (G u)_t), and a neighbouring input would have led elsewhere (Mironov 2012, of Laplace noise).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.mechanism_kinds import check_of_filters
from dpfast.releases.integer.releasable import check_releasable

Booleans = NDArray[np.bool_]
_SPLITTER = 2.0**29 + 1  # leaves 24 bits to a factor, so that its products with float32 numbers are exact


def evidence(mechanism: Mechanism, v: ArrayLike, candidates: ArrayLike) -> Booleans:
    r"""Tell which inputs a simulated value can have come from, as an attacker who knows the code does in one step.

    An input is possible where some float32 number n has round(σ n + (G (u - mean))_t) = v_t. The true one always is.

    Parameters
    ----------
    mechanism : Mechanism
        The public design; its prefilter starts from rest, as in :meth:`Mechanism.simulate`.
    v : array_like, (..., time)
        Published values.
    candidates : array_like, (n_candidates, time)
        Inputs.

    Returns
    -------
    array of bool, (n_candidates, ..., time)

    Notes
    -----
    *Privacy.* This is why `simulate` gives no privacy guarantee. Integers with exact noise, as a release publishes, are
    possible or not with nearly the same probabilities for all inputs.

    Examples
    --------
    >>> from dpfast import Filter, Privacy, input_perturbation
    >>> mechanism = input_perturbation(Filter([1]), Privacy(1, 1e-6))
    >>> v = mechanism.simulate([3.0], seed=1).privatized
    >>> evidence(mechanism, v, np.arange(6)[:, None]).ravel().tolist()
    [False, False, False, True, False, False]
    """
    why = "the grids of its values are not those of a prefilter; take input_perturbation(Filter([1]), privacy)"
    check_of_filters(mechanism, why)
    validation.instance("mechanism", mechanism, Mechanism, "a Mechanism")
    check_releasable(mechanism)  # grids of other noise are others
    values, inputs = validation.samples("v", v), validation.samples("candidates", candidates)
    if inputs.ndim != 2 or inputs.shape[1] != values.shape[-1]:
        raise ValueError(
            f"candidates must be (n_candidates, time) with the time of v, got shapes {inputs.shape} and {values.shape}"
        )
    responses = mechanism.prefilter.filter(inputs - mechanism.receiver.mean).y
    return np.stack([is_possible(values, response, mechanism.noise_std) for response in responses])


def is_possible(v: Array, response: Array | float, noise_std: float, slack: Array | float = 0.0) -> Booleans:
    """Tell whether v is a float32 number times `noise_std`, plus a response, but for rounding a product and a sum.

    A further slack is left too: 1/2, where v was rounded to an integer.

    That holds whether or not the processor rounds once. The difference is found without rounding errors that matter.
    """
    shift, lost_of_shift = _difference(v, response)
    noise = (shift / noise_std).astype(np.float32).astype(np.float64)  # the nearest; any other is farther off
    product, lost_of_product = _product(noise, noise_std)
    remaining = (product - shift) + (lost_of_product - lost_of_shift)
    rounding = np.spacing(np.abs(v)) + np.spacing(np.abs(product))
    return np.asarray(2 * np.abs(remaining) <= rounding + 2 * slack)


def _difference(a: Array, b: Array | float) -> tuple[Array, Array]:
    """Return a - b exactly, as s + e with s the rounded difference (Knuth's TwoSum)."""
    s = a - b
    t = s - a
    return s, (a - (s - t)) - (b + t)


def _product(single: Array, double: float) -> tuple[Array, Array]:
    """Return the product of float32 numbers and a float64 number exactly, as p + e (Dekker 1971)."""
    p = single * double
    high = _SPLITTER * double - (_SPLITTER * double - double)
    return p, (single * high - p) + single * (double - high)
