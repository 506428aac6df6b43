"""Trees of decayed sums, after Bolot et al. 2011, 2013."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.design.argument_checks import Target, check_real_noise, target_over_horizon
from dpfast.design.horizon.binary_tree import tree_strategy
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism, Noise
from dpfast.mechanisms.operators.operator_protocol import Operator
from dpfast.mechanisms.operators.sparse import Sparse
from dpfast.mechanisms.operators.trees import (
    DecayedPrefixes,
    Index,
    level_sizes,
    n_levels,
    node_ages,
    node_rows,
    prefixes,
)
from dpfast.privacy.privacy import Privacy

MOST_ENTRIES = 10**7  # the largest number of entries of a reconstruction
_SAME_RATIO = 1e-12  # relative to f_0: how far coefficients may be from a geometric sequence


@public_design
def decayed_sum(
    target: Target,
    privacy: Privacy,
    *,
    horizon: int | None = None,
    noise: Noise = "gaussian",
    name: str = "decayed sum",
) -> MatrixMechanism:
    r"""Design trees of decayed sums: for windows, exponential decay, and any other (Bolot et al. 2011, 2013).

    Model
    -----
    A tree of dyadic nodes with noise that differs from level to level. *Exponential*, f_k = f_0 ρ^k: a node holds the
    sum decayed to its own end, Σ ρ^{end-k} u_k; the sum at t is that of the nodes of [0, t + 1), each decayed since its
    end, with no level above the best one, at most about log₂ 1/(1 - ρ): what is older comes from all the nodes of that
    level. (Where the best one is that of the leaves, at about ρ < 0.95, this is input perturbation.) *Window of W
    steps*: the sum of the window's at most 2⌊log₂ W⌋ + 1 nodes, of ⌊log₂ W⌋ + 1 levels. *Any other f*: the windows
    [s, t + 1) of all lengths, with weights f_{t-s} - f_{t-s+1}, from the same nodes.

    With E_l the squared weights of level l in B before noise is shared out, averaged over the steps, the best shares
    give the mean squared errors κ² d² (Σ_l √E_l)² with Gaussian and 2 d²/ε² (Σ_l E_l^{1/3})³ with Laplace noise. For a
    window of W = 2^k steps, behind the first, E_l is 1 below the top and 1/W there, and the first is κ² d² (k + 1/√W)²:
    the error grows with log W and log 1/(1 - ρ), and not with the horizon.

    *As far as it is the paper's*: trees of decayed sums, windows as a suffix and a prefix of blocks, noise that differs
    between nodes, and other decays as sums of windows that run in parallel are, as its abstract and its patent (US
    9471791) describe them; it has pure ε (Laplace) alone. Here all windows share one tree; blocks are powers of two;
    the shares of the noise are the best for the mean error rather than those of a bound; and every step of a polynomial
    decay is a window, where the paper keeps few of them and has a relative error 1 ± β: here there is none.

    Parameters
    ----------
    target : Filter, Toeplitz or sequence of float
        f; any causal target, though the fewer and smaller its changes, the better.
    privacy : Privacy
        The guarantee that is asked for.
    horizon : int, optional
        n, the number of steps; a Filter needs it.
    noise : {"gaussian", "laplace"}
        Laplace noise of scale Δ₁/ε is private with δ = 0.
    name : str
        What tables and pictures call it.

    Returns
    -------
    MatrixMechanism
        Unbiased; its predicted error is exact.

    Raises
    ------
    DesignError
        Where the reconstruction would have more than 10⁷ entries: a decay that is neither exponential nor a short
        window takes n²/2 of them.

    Notes
    -----
    *Privacy.* The noise is that of the largest column of the tree; see :class:`MatrixMechanism`.

    Examples
    --------
    >>> import dpfast as dp
    >>> target, privacy = dp.Filter([1], [1, -0.9]), dp.Privacy.from_gdp(1, 1e-6)
    >>> [round(dp.decayed_sum(target, privacy, horizon=n).predicted_rmse, 3) for n in (1024, 4096)]
    [2.289, 2.293]
    >>> round(dp.decayed_sum([1] * 16, privacy, horizon=1024).predicted_rmse, 3)
    4.234
    """
    whole = target_over_horizon(target, privacy, horizon)
    check_real_noise(noise)
    validation.choice("noise", noise, ("gaussian", "laplace"))
    strategy, reconstruction = decayed_factorization(whole.coefficients, noise)
    return MatrixMechanism(name, whole, privacy, strategy, reconstruction, noise=noise)


class Cover(NamedTuple):
    """Steps as weighted sums of nodes, as one list over all steps."""

    steps: Index
    levels: Index
    nodes: Index
    weights: Array


def decayed_factorization(f: Array, noise: str) -> tuple[Sparse, Operator]:
    """Factor y_t = Σ f_k u_{t-k} into a strategy and a reconstruction, with the best noise for every level."""
    n, ratio = len(f), geometric_ratio(f)
    if ratio is not None:
        shares = level_shares(geometric_energies(ratio, n, noise), noise)
        return tree_strategy(n, shares, ratio), DecayedPrefixes(n, shares, ratio, float(f[0]))
    cover = window_cover(f)
    energies = np.bincount(cover.levels, (cover.weights / np.abs(f).max()) ** 2, n_levels(n)) / n
    shares = level_shares(energies, noise)
    return tree_strategy(n, shares), _reconstruction(cover, n, shares)


def geometric_ratio(f: Array) -> float | None:
    """Return ρ if f_k = f_0 ρ^k with 0 < |ρ| ≤ 1, else None."""
    if len(f) == 1 or not 0 < abs(f[1]) <= abs(f[0]):
        return None
    ratio = float(f[1] / f[0])
    apart = np.abs(f - f[0] * ratio ** np.arange(len(f), dtype=float)).max()
    return ratio if apart <= _SAME_RATIO * abs(f[0]) else None


# --- how the noise is shared out ------------------------------------------------------------------


def level_shares(energies: Array, noise: str) -> Array:
    """Return by what to multiply the sums of a level for the least mean error; zero where no step needs the level.

    With E_l the squared weights of a level, averaged over the steps, the error Σ a_l² · Σ E_l/a_l² of Gaussian noise
    is least for a_l ∝ E_l^{1/4}; that of Laplace noise, (Σ a_l)² · Σ E_l/a_l², for a_l ∝ E_l^{1/3}.
    """
    if noise == "laplace":
        shares = np.cbrt(energies)
        return np.asarray(shares / shares.sum())
    shares = energies**0.25
    return np.asarray(shares / np.sqrt(shares @ shares))


def least_error(energies: Array, noise: str) -> float:
    """Return the error with the best shares: (Σ √E_l)² for Gaussian, (Σ E_l^{1/3})³ for Laplace noise."""
    return float(np.cbrt(energies).sum() ** 3 if noise == "laplace" else np.sqrt(energies).sum() ** 2)


def geometric_energies(ratio: float, horizon: int, noise: str) -> Array:
    """Return the squared weights of the levels up to the highest that is used, chosen for the least error."""
    lengths = np.arange(1, horizon + 1)
    spent = np.cumsum(ratio ** (2.0 * (lengths - 1)))
    digits: list[float] = []
    found = []
    for level, size in enumerate(level_sizes(horizon)):
        # all the nodes of this level, each for the rest of the horizon
        found.append(np.array([*digits, spent[horizon - (np.arange(1, size + 1) << level)].sum() / horizon]))
        digits.append(float(((lengths >> level & 1) * ratio ** (2 * node_ages(lengths, level))).mean()))
    return min(found, key=lambda energies: least_error(energies, noise))


# --- windows --------------------------------------------------------------------------------------


def window_cover(f: Array) -> Cover:
    """Cover every window [s, t + 1), of weight f_{t-s} - f_{t-s+1}, by its fewest dyadic nodes, added up by step.

    Such a window takes an odd node j of level l on its left if (j - 1) 2^l < s ≤ j 2^l: summed over s that is
    f_x - f_{x + 2^l}, x = t - j 2^l. On its right it takes the node of a digit l of t + 1, if it begins at that node or
    before: summed f_x, x = t - (the node's begin).
    """
    n = len(f)
    found = prefixes(n)
    right = Cover(*found, f[found.steps - (found.nodes << found.levels)])
    parts = [right, *(_left_cover(f, level) for level in range(n_levels(n) - 1))]
    _check_entries(sum(len(part.steps) for part in parts), n)
    steps, levels, nodes, weights = zip(*parts, strict=True)
    return Cover(np.concatenate(steps), np.concatenate(levels), np.concatenate(nodes), np.concatenate(weights))


def _left_cover(f: Array, level: int) -> Cover:
    n, length = len(f), 1 << level
    ages = np.arange(length - 1, n - length)
    weights = f[ages] - f[ages + length]
    ages, weights = ages[weights != 0], weights[weights != 0]
    # odd nodes j for which t = x + j 2^l is inside the horizon
    counts = ((n - 1 - ages) // length + 1) // 2
    _check_entries(int(counts.sum()), n)
    nodes = 2 * (np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)) + 1
    steps = np.repeat(ages, counts) + nodes * length
    return Cover(steps, np.full(len(steps), level), nodes, np.repeat(weights, counts))


def _check_entries(count: int, horizon: int) -> None:
    if count > MOST_ENTRIES:
        raise DesignError(
            f"horizon must be shorter for this target, got {horizon}: the reconstruction has more than "
            f"{MOST_ENTRIES} entries; use square_root or buffered_toeplitz"
        )


def _reconstruction(cover: Cover, horizon: int, shares: Array) -> Sparse:
    """Return the reconstruction: the cover of every step, divided by the shares."""
    from scipy.sparse import coo_array

    kept = shares[cover.levels] > 0
    levels = cover.levels[kept]
    columns = node_rows(horizon, shares, levels, cover.nodes[kept])
    shape = horizon, int(level_sizes(horizon)[shares > 0].sum())
    return Sparse.of(coo_array((cover.weights[kept] / shares[levels], (cover.steps[kept], columns)), shape=shape))
