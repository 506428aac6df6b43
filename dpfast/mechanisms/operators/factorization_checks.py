"""Check that a strategy and a reconstruction serve together over a horizon."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support import validation
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.operators.operator_protocol import NotLinearError, Operator

_SAME = 1e-9  # of what the entries could add up to
_LEAST = 1e-100  # norms of columns, of which squares are not lost


def check_shapes(strategy: Operator, reconstruction: Operator, horizon: int) -> None:
    """Check that the shapes fit, and that the strategy is linear and not too small."""
    rows, columns = strategy.shape
    if columns != horizon or reconstruction.shape != (columns, rows):
        raise ValueError(
            f"strategy and reconstruction must be (m, {horizon}) and ({horizon}, m), as the horizon is {horizon}, got "
            f"{strategy.shape} and {reconstruction.shape}"
        )
    try:
        size = strategy.largest_l1()
    except NotLinearError:
        raise validation.fail("strategy", "linear, as a Dense is", type(strategy)) from None
    if not _LEAST < size < math.inf:
        raise ValueError(f"strategy must have a column of an l1 norm above {_LEAST:g}, got {size:g}: scale it")


def check_unbiased(strategy: Operator, reconstruction: Operator, target: Toeplitz) -> None:
    """Check on one input that the reconstruction of the strategy is the target."""
    try:
        rows = reconstruction.squared_rows()
    except NotLinearError:
        raise ValueError("unbiased must be False with a reconstruction that is not linear, got True") from None
    probe = np.cos(np.arange(target.horizon) ** 2.0)
    wanted = target.apply(probe)
    missed = np.abs(reconstruction.apply(strategy.apply(probe)) - wanted)
    entries = np.sqrt(rows * strategy.products()[0]) * np.linalg.norm(probe)
    if not (missed <= _SAME * (entries + np.abs(wanted).max())).all():
        raise ValueError("unbiased must be False here: the reconstruction of the strategy is not the target")


def check_identity(strategy: Operator) -> None:
    """Check that a strategy publishes the inputs themselves."""
    c = getattr(strategy, "coefficients", np.zeros(1))
    if c[0] != 1 or c[1:].any():
        raise ValueError("strategy must be 1 with noise on the integers, which is on the inputs: take Laplace noise")
