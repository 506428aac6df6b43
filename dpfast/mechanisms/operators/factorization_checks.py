"""Check that a strategy and a reconstruction serve together over a horizon."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support import validation
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.mechanisms.operators.operator_protocol import NotLinearError, Operator

_SAME = 1e-9  # of what the entries could add up to
_ROUNDING = 1e-15  # relative, of a coefficient that follows from the one before
_LARGEST_WHOLE = 2.0**53  # up to which sums of integers are exact
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
    """Check that the reconstruction of the strategy is the target, on one input; of roots of running sums all of it."""
    if _is_root_of_sum(strategy, reconstruction, target):
        return
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


def _is_root_of_sum(strategy: Operator, reconstruction: Operator, target: Toeplitz) -> bool:
    """Tell whether both factors of a running sum are its root, without FFTs, which would be most of a long design.

    Its coefficients are c_k = c_{k-1} (2k - 1) / 2k, with c_0² the step of the sum. As each follows from the one before
    to rounding, coefficient k of the product is right to 2k roundings.
    """
    if not (isinstance(strategy, Convolution) and isinstance(reconstruction, Convolution)):
        return False
    c, b, f = strategy.coefficients, reconstruction.coefficients, target.coefficients
    if not ((f == f[0]).all() and (b == math.copysign(1.0, f[0]) * c).all()):
        return False
    twice = 2.0 * np.arange(1, len(c))
    missed = np.abs(twice * c[1:] - (twice - 1) * c[:-1])
    return bool(abs(c[0] ** 2 - abs(f[0])) <= _ROUNDING * abs(f[0]) and (missed <= _ROUNDING * twice * c[1:]).all())


def is_identity(strategy: Operator) -> bool:
    """Tell whether a strategy publishes the inputs themselves."""
    c = getattr(strategy, "coefficients", np.zeros(1))
    return bool(c[0] == 1 and not c[1:].any())


def check_whole(strategy: Operator, noise: str, unit: float | None) -> None:
    """Check that what a strategy publishes of integers are integers, and that the noise hides all rows together.

    Geometric noise costs an event the sum of its changes of all rows, which is what a column adds up to; of other laws
    only those of one row are known.
    """
    if is_identity(strategy):
        return
    if noise != "geometric":
        raise ValueError(f"strategy must be 1 with {noise} noise, which is for one value: take geometric noise")
    if unit is not None:
        raise ValueError(f"unit must be None with a strategy other than 1, got {unit:g}: round the inputs before")
    entries = getattr(strategy, "entries", getattr(strategy, "data", None))  # of Dense and Sparse
    if entries is None or not (entries == np.rint(entries)).all() or np.abs(entries).sum() > _LARGEST_WHOLE:
        raise ValueError(
            "strategy must be a Dense or Sparse of integers that add up to at most 2**53 with geometric noise, as "
            "integer noise on other rows shows their fractional parts: round it to multiples of a public unit, or take "
            "Laplace noise"
        )
