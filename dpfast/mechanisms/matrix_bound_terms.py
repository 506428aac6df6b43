"""Tell what a strategy and its reconstruction are like, for bounds of errors."""

from __future__ import annotations

import numpy as np

from dpfast.mechanisms.bound import BoundTerms
from dpfast.mechanisms.operators.operator_protocol import NotLinearError, Operator

_ZERO = 1e-9  # of the largest entry: rounding


def matrix_bound_terms(
    strategy: Operator, reconstruction: Operator, lag: int | None, *, unbiased: bool, gaussian: bool
) -> BoundTerms:
    """Tell whether the reconstruction is linear, and how far ahead it really looks, whatever lag is given for it."""
    try:
        reconstruction.squared_rows()
    except NotLinearError:
        return BoundTerms(lag, gaussian=gaussian)
    if lag is not None and not unbiased:
        made = np.abs(reconstruction.matrix() @ strategy.matrix())
        if np.triu(made, lag + 1).max() > _ZERO * made.max():
            lag = None
    return BoundTerms(lag, additive=True, linear_mean=True, undistorted=unbiased, gaussian=gaussian)
