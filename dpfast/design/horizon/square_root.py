"""The square root of the target as a strategy, and once more as the reconstruction."""

from __future__ import annotations

import math

import numpy as np

from dpfast._support.design_calls import public_design
from dpfast._support.errors import DesignError
from dpfast.design.argument_checks import Target, target_over_horizon
from dpfast.filters.toeplitz import square_root_series
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.privacy.privacy import Privacy

_LARGEST_GROWTH = 1e7  # beyond it rounding would spoil the first steps


@public_design
def square_root(
    target: Target, privacy: Privacy, *, horizon: int | None = None, name: str = "square root"
) -> MatrixMechanism:
    r"""Factor a Toeplitz target into square roots: C and B both have the power series of √f.

    Model
    -----
    c² = f as power series; with Gaussian noise of standard deviation κ d‖c‖₂ the squared error of step t is
    κ² d² ‖c‖₂² Σ_{k ≤ t} c_k². For the running sum c_k = Π_{j ≤ k} (1 - 1/2j), and no factorisation has a largest error
    smaller by more than a constant (Fichtenberger, Henzinger and Upadhyay 2023). Leading zeros of f and the sign of the
    first coefficient go to B.

    Parameters
    ----------
    target : Filter, Toeplitz or sequence of float
        f, whose output should be published.
    privacy : Privacy
        The guarantee that is asked for.
    horizon : int, optional
        n, the number of steps; a Filter needs it.
    name : str
        What tables and pictures call it.

    Returns
    -------
    MatrixMechanism
        Its predicted error is exact.

    Raises
    ------
    DesignError
        Where √f grows so much that rounding spoils the estimates: targets with a zero outside of the unit circle, where
        the error is useless long before. That of 1 - 2z⁻¹ is 9.6, 3.9e4 and 1.7e13 κ d over 8, 16 and 32 steps.

    Notes
    -----
    *Privacy.* The noise is that of the largest column of C; see :class:`MatrixMechanism`. To several events it is exact
    where no coefficient of √f is negative and none larger than the one before, as for the running sum.

    Examples
    --------
    >>> import math
    >>> import dpfast as dp
    >>> mechanism = dp.square_root(dp.running_sum(1024), dp.Privacy.from_gdp(1, 1e-6))
    >>> round(mechanism.predicted_rmse, 4), round(math.sqrt(mechanism.max_mse), 4)
    (3.1098, 3.2726)
    """
    whole = target_over_horizon(target, privacy, horizon)
    f = whole.coefficients
    delay = int(np.argmax(f != 0))
    sign = math.copysign(1.0, f[delay])
    with np.errstate(over="ignore", invalid="ignore"):
        root = square_root_series(sign * f[delay:])
        bounded = bool(root @ root <= (_LARGEST_GROWTH * root[0]) ** 2)
    if not bounded:
        raise DesignError(
            f"target must have a square root that grows to at most {_LARGEST_GROWTH:.0e} times its first coefficient "
            f"over the horizon, got {whole.horizon} steps: with a zero outside of the unit circle it grows "
            "geometrically, and so does the error; use zero_forcing, buffered_toeplitz or a short horizon"
        )
    strategy = Convolution(np.concatenate([root, np.zeros(delay)]))
    return MatrixMechanism(name, whole, privacy, strategy, Convolution(np.concatenate([np.zeros(delay), sign * root])))
