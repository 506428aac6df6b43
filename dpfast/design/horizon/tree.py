"""Trees with k branches, estimated by least squares: pure ε with Laplace or geometric noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast._support.errors import DesignError
from dpfast.design.argument_checks import Target, check_name, target_over_horizon
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.matrix_mechanism import LONGEST_DENSE, MatrixMechanism
from dpfast.mechanisms.operators.k_ary_trees import CausalTree, TreeLeastSquares, check_tree, k_ary_strategy
from dpfast.privacy.integer_noise.choice import integer_noise
from dpfast.privacy.lattice import TAKE_LAPLACE, find_lattice
from dpfast.privacy.privacy import Privacy

TreeNoise = Literal["laplace", "geometric", "gaussian"]
_WIDEST = 64  # branches that are tried: what is best grows like the logarithm of the horizon
_MANY = 4  # times as many nodes of the highest level as branches, at the most, where levels are chosen
_TRIED_STEPS = 64  # of which the errors choose the branches for targets that are no sum


@public_design
def tree(
    target: Target,
    privacy: Privacy,
    *,
    horizon: int | None = None,
    branching: int | None = None,
    levels: int | None = None,
    subtraction: bool = False,
    noise: TreeNoise = "laplace",
    name: str | None = None,
) -> MatrixMechanism:
    r"""Design a tree with k branches: noise on the sums over its nodes, and least squares for the estimates.

    Model
    -----
    v are the sums over the nodes [j kˡ, (j + 1) kˡ) of the levels l = 0, ..., L - 1, each with noise. Every step is in
    one node of a level: Δ₁ = d L, Δ₂ = d√L. A running sum needs about (k - 1)/2 nodes of each level, so that with noise
    of scale Δ₁/ε its error is least at k between 5 and 20 (Qardaji, Yang and Li 2013; Andersson, Pagh, Steiner and
    Torkamani, FORC 2025, arXiv:2408.07021).

    Without subtraction: the best linear unbiased estimate of every step from the nodes that end by then, each of them
    estimated from its subtree, as Honaker (2015) does for k = 2. With it: B = A C⁺ from all nodes. FORC 2025 writes a
    sum as nodes that are added and nodes that are subtracted, by digits from -(k - 1)/2 to (k - 1)/2, with a mean
    square error of k (1 - k⁻²) L³/(2ε²) for n = (kᴸ - 1)/2. Least squares finds the best weights of all nodes at once:
    no unbiased linear estimate from the same v errs less.

    Parameters
    ----------
    target : Filter, Toeplitz or sequence of float
        A; without subtraction a running sum, times a gain.
    privacy : Privacy
        The guarantee that is asked for.
    horizon : int, optional
        n, by default that of the target; needed for a Filter. With subtraction and a target that is no sum, at most
        4096, as the errors take n² operations.
    branching : int, optional
        k, at least 2; by default the best by predicted error, up to 64.
    levels : int, optional
        L; by default the best by predicted error.
    subtraction : bool
        Whether estimates use all nodes, also those that end later. Then nothing can be published from v before the
        horizon ends (the lag is None).
    noise : {"laplace", "geometric", "gaussian"}
        Laplace noise of scale Δ₁/ε: pure ε, δ is not used. Geometric noise, of that rate: pure ε for inputs that are
        integers, with less variance. Gaussian noise of standard deviation κΔ₂ needs a δ.
    name : str, optional
        What tables and pictures call it; by default its family.

    Returns
    -------
    MatrixMechanism

    Raises
    ------
    DesignError
        For another target without subtraction; for a horizon that is too long for it with.

    Notes
    -----
    *Privacy.* The noise is that of the largest column of the tree. Without subtraction the guarantee also holds where
    inputs react to what was published before; see :class:`MatrixMechanism`.

    Examples
    --------
    >>> import dpfast as dp
    >>> online = dp.tree(dp.running_sum(1024), dp.Privacy(1))
    >>> online.name, round(online.predicted_rmse, 2)
    ('tree (10-ary)', 15.11)
    >>> round(dp.tree(dp.running_sum(1024), dp.Privacy(1), subtraction=True).predicted_rmse, 2)
    10.86
    """
    whole = target_over_horizon(target, privacy, horizon)
    validation.choice("noise", noise, get_args(TreeNoise))
    validation.instance("subtraction", subtraction, bool, "True or False")
    _check_target(whole, subtraction)
    k, n_levels = _shape(whole, branching, levels, subtraction, _unit_variance(noise, privacy))
    words = {"laplace": "", "geometric": ", geometric", "gaussian": ", Gaussian"}
    return MatrixMechanism(
        check_name(name, f"tree ({k}-ary{', subtraction' * subtraction}{words[noise]})"),
        whole,
        privacy,
        k_ary_strategy(whole.horizon, k, n_levels, whole=not subtraction),
        _reconstruction(whole, k, n_levels, subtraction),
        noise=noise,
        lag=None if subtraction else 0,
        options=(("branching", k), ("levels", n_levels), ("subtraction", int(subtraction))),
    )


def _check_target(target: Toeplitz, subtraction: bool) -> None:
    if (target.coefficients == target.coefficients[0]).all():
        return
    if not subtraction:
        raise DesignError(
            "target must be a running sum, all of its coefficients alike, without subtraction: use subtraction=True, "
            'decayed_sum, or optimal_factorization(noise="laplace")'
        )
    if target.horizon > LONGEST_DENSE:
        raise DesignError(
            f"horizon must be at most {LONGEST_DENSE} steps for a target that is no running sum, got "
            f"{target.horizon}: its errors take n² operations; shorten it"
        )


def _reconstruction(target: Toeplitz, k: int, n_levels: int, subtraction: bool) -> CausalTree | TreeLeastSquares:
    if subtraction:
        return TreeLeastSquares(target.coefficients, k, n_levels)
    return CausalTree(target.horizon, k, n_levels, float(target.coefficients[0]))


def _shape(
    target: Toeplitz, branching: int | None, levels: int | None, subtraction: bool, variance: Callable[[int], float]
) -> tuple[int, int]:
    """Return the branches and levels of least predicted error, of those that are not given."""
    n = target.horizon
    if branching is not None:
        validation.integer("branching", branching, 2)
    if levels is not None:
        validation.integer("levels", levels, 1, n.bit_length() + 1)  # as many as two branches need
    shapes = [
        (k, n_levels)
        for k in ([branching] if branching is not None else range(2, max(3, min(_WIDEST, n) + 1)))
        for n_levels in ([levels] if levels is not None else _levels_of(n, k))
    ]
    if branching is not None and levels is not None:
        check_tree(n, branching, levels)
    possible = [x for x in shapes if x[1] == 1 or x[0] ** (x[1] - 2) < n]
    if not possible:
        raise ValueError(f"levels must be no more than make one node of {n} steps, got {levels}: take fewer")

    def error(shape: tuple[int, int]) -> float:
        return variance(shape[1]) * _mean_squared_row(_reconstruction(target, *shape, subtraction))

    return min(possible, key=error)


def _unit_variance(noise: TreeNoise, privacy: Privacy) -> Callable[[int], float]:
    """Return what the variance of the noise on a node is proportional to, for so many levels."""
    if noise == "geometric":
        steps = find_lattice(privacy, None, None, TAKE_LAPLACE).steps
        return lambda n_levels: integer_noise("geometric", privacy, n_levels * steps).variance
    return lambda n_levels: float(n_levels if noise == "gaussian" else n_levels**2)


def _levels_of(horizon: int, k: int) -> list[int]:
    """Return the numbers of levels that are worth a try: as few nodes of the highest as there are branches, or so."""
    n_levels, found = 1, []
    while k ** (n_levels - 1) < horizon:
        if horizon <= _MANY * k**n_levels:
            found.append(n_levels)
        n_levels += 1
    return found or [1]


def _mean_squared_row(reconstruction: CausalTree | TreeLeastSquares) -> float:
    n = reconstruction.shape[0]
    if isinstance(reconstruction, CausalTree) or (reconstruction.response == reconstruction.response[0]).all():
        return float(reconstruction.squared_rows().mean())
    steps = np.unique(np.linspace(0, n - 1, min(n, _TRIED_STEPS)).round().astype(np.int64))
    return float(reconstruction.squared_rows_at(steps).mean())
