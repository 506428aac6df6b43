"""Binary trees of partial sums, for running sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.design.argument_checks import Target, check_real_noise, target_over_horizon
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism, Noise
from dpfast.mechanisms.operators import trees
from dpfast.mechanisms.operators.operator_protocol import Operator
from dpfast.mechanisms.operators.sparse import Sparse
from dpfast.mechanisms.operators.trees import level_sizes
from dpfast.privacy.privacy import Privacy


@public_design
def binary_tree(
    target: Target,
    privacy: Privacy,
    *,
    horizon: int | None = None,
    estimator: str = "honaker",
    noise: Noise = "gaussian",
    name: str | None = None,
) -> MatrixMechanism:
    r"""Design a binary tree mechanism for running sums: noise on the sums of dyadic nodes.

    Model
    -----
    v are the sums over the nodes [j 2^l, (j + 1) 2^l) inside of [0, n), each with noise; every step is in at most
    L = ⌊log₂ n⌋ + 1 of them, so that Δ₂ = d√L and Δ₁ = d L (Dwork, Naor, Pitassi and Rothblum 2010; Chan, Shi and Song
    2011). Plain: the sum of t + 1 steps is that of its nodes, one for each digit 1 of t + 1 in base two, with the
    squared error σ² popcount(t + 1). Honaker (2015), bottom up: a node of level l is estimated from its whole subtree,
    with the variance σ² v_l, v_l = 1/(1 + 1/(2 v_{l-1})), v_0 = 1, which tends to σ²/2; still causal.

    Parameters
    ----------
    target : Toeplitz or sequence of float
        A running sum, times a gain: all coefficients alike.
    privacy : Privacy
        The guarantee that is asked for.
    horizon : int, optional
        n, by default that of the target.
    estimator : {"honaker", "plain"}
        How the prefixes are estimated: from all nodes below each, with less error, or from their own nodes alone.
    noise : {"gaussian", "laplace"}
        Laplace noise of scale Δ₁/ε is private with δ = 0.
    name : str, optional
        What tables and pictures call it; by default its family.

    Returns
    -------
    MatrixMechanism
        ``ideal_mse`` is σ² times the mean of the sum of v_l (plain: 1) over the digits 1 of 1, ..., n, in closed form.

    Raises
    ------
    DesignError
        For other targets.

    Notes
    -----
    *Privacy.* The noise is that of the largest column of the tree; see :class:`MatrixMechanism`.

    Examples
    --------
    >>> import math
    >>> import dpfast as dp
    >>> mechanism = dp.binary_tree(dp.running_sum(1024), dp.Privacy.from_gdp(1, 1e-6), estimator="plain")
    >>> round(mechanism.predicted_rmse, 3), round(math.sqrt(mechanism.max_mse), 3)
    (7.417, 10.488)
    """
    whole = target_over_horizon(target, privacy, horizon)
    check_real_noise(noise)
    estimator = validation.choice("estimator", estimator, ("honaker", "plain"))
    n, gain = whole.horizon, float(whole.coefficients[0])
    if not (whole.coefficients == gain).all():
        raise DesignError(
            "target must be a running sum, all of its coefficients alike: use decayed_sum, which has trees for others, "
            "or square_root"
        )
    alike = np.ones(trees.n_levels(n))
    reconstruction: Operator
    if estimator == "honaker":
        reconstruction, variances = trees.TreeEstimator(n, gain), trees.honaker_variances(n)
    else:
        reconstruction, variances = trees.DecayedPrefixes(n, alike, 1.0, gain), alike
    if name is None:
        name = f"binary tree ({estimator}{', Laplace' * (noise == 'laplace')})"
    options = (("estimator", estimator),)
    strategy = tree_strategy(n, alike)
    mechanism = MatrixMechanism(name, whole, privacy, strategy, reconstruction, noise=noise, options=options)
    ideal = (mechanism.noise_std * gain) ** 2 * mean_prefix_variance(variances, n)
    return replace(mechanism, ideal_mse=ideal)


def tree_strategy(horizon: int, shares: Array, ratio: float = 1.0) -> Sparse:
    """Return the strategy of sums over nodes, each times the share of its level.

    An input k steps before the end of its node counts ratio^k.

    Every step is in at most one node of a level, and the first step of the horizon is in one of each: with ratio 1 the
    largest column has Δ₂² = Σ shares², Δ₁ = Σ shares.
    """
    levels = np.flatnonzero(shares)
    sizes = level_sizes(horizon)[levels]
    rows = [shares[level] * ratio ** np.arange((1 << level) - 1, -1, -1.0) for level in levels]
    data = np.concatenate([np.tile(row, size) for row, size in zip(rows, sizes, strict=True)])
    columns = np.concatenate([np.arange(size << level) for level, size in zip(levels, sizes, strict=True)])
    ends = np.cumsum(np.repeat(1 << levels, sizes))
    return Sparse(data, columns, np.concatenate([[0], ends]), horizon)


def mean_prefix_variance(variances: Array, horizon: int) -> float:
    """Return the mean of the variance of the prefixes 1, ..., n, in closed form.

    Numbers below n + 1 that share the digits of n + 1 above position a, where it has a one and they have a zero, have
    the variances of those digits and, on average, half of each variance below.
    """
    ones = [level for level in reversed(range((horizon + 1).bit_length())) if (horizon + 1) >> level & 1]
    above, total = 0.0, 0.0
    for level in ones:
        total += (above + variances[:level].sum() / 2) * 2.0**level
        above += variances[level] if level < len(variances) else 0.0
    return total / horizon
