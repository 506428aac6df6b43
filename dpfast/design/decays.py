"""Decayed sums from dyadic nodes with noise of their level's own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast._validate import Array
from dpfast.design.trees import Index, level_sizes, n_levels, node_rows, prefixes, tree_strategy
from dpfast.errors import DesignError
from dpfast.operators import Sparse

_SAME_RATIO = 1e-12  # relative to f_0: how far coefficients may be from a geometric sequence
MOST_ENTRIES = 10**7  # of a reconstruction


class Cover(NamedTuple):
    """Steps as weighted sums of nodes, all in one list."""

    steps: Index
    levels: Index
    nodes: Index
    weights: Array


def decayed_factors(f: Array, noise: str) -> tuple[Sparse, Sparse]:
    """Strategy and reconstruction of y_t = Σ f_k u_{t-k}, with the best noise for every level."""
    ratio = geometric_ratio(f)
    cover = window_cover(f) if ratio is None else geometric_cover(float(f[0]), ratio, len(f))
    shares = level_shares(cover, len(f), noise)
    return _strategy(len(f), shares, 1.0 if ratio is None else ratio), _reconstruction(cover, len(f), shares)


def geometric_ratio(f: Array) -> float | None:
    """ρ where f_k = f_0 ρ^k, 0 < |ρ| ≤ 1; None for other sequences."""
    if len(f) == 1 or not 0 < abs(f[1]) <= abs(f[0]):
        return None
    ratio = float(f[1] / f[0])
    apart = np.abs(f - f[0] * ratio ** np.arange(len(f), dtype=float)).max()
    return ratio if apart <= _SAME_RATIO * abs(f[0]) else None


def geometric_cover(gain: float, ratio: float, horizon: int) -> Cover:
    """The nodes of a prefix, each decayed by the steps since its end."""
    found = prefixes(horizon)
    since = found.steps + 1 - ((found.nodes + 1) << found.levels)
    return Cover(*found, gain * ratio ** since.astype(float))


def window_cover(f: Array) -> Cover:
    """Every window [s, t + 1) with the weight f_{t-s} - f_{t-s+1}, in its fewest dyadic nodes, all of a step together.

    Such a window takes an odd node j of level l on its left if (j - 1) 2^l < s ≤ j 2^l: summed over s that is
    f_x - f_{x + 2^l}, x = t - j 2^l. On its right it takes the node of a digit l of t + 1, if it begins at that node or
    before: summed f_x, x = t - (the node's begin).
    """
    n = len(f)
    found = prefixes(n)
    right = Cover(*found, f[found.steps - (found.nodes << found.levels)])
    parts = [right, *(_left_nodes(f, level) for level in range(n_levels(n) - 1))]
    if sum(len(part.steps) for part in parts) > MOST_ENTRIES:
        raise DesignError(_too_many(n))
    return Cover(*(np.concatenate(x) for x in zip(*parts, strict=True)))


def _left_nodes(f: Array, level: int) -> Cover:
    n, length = len(f), 1 << level
    ages = np.arange(length - 1, n - length)
    weights = f[ages] - f[ages + length]
    ages, weights = ages[weights != 0], weights[weights != 0]
    # odd nodes j for which t = x + j 2^l is inside the horizon
    counts = ((n - 1 - ages) // length + 1) // 2
    if counts.sum() > MOST_ENTRIES:
        raise DesignError(_too_many(n))
    nodes = 2 * (np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)) + 1
    steps = np.repeat(ages, counts) + nodes * length
    return Cover(steps, np.full(len(steps), level), nodes, np.repeat(weights, counts))


def _too_many(horizon: int) -> str:
    return (
        f"horizon must be shorter for a decay that is neither geometric nor a short window, got {horizon}: the "
        f"reconstruction has more than {MOST_ENTRIES:.0e} entries from about 4400 steps on; use square_root or "
        "buffered_toeplitz"
    )


def level_shares(cover: Cover, horizon: int, noise: str) -> Array:
    """What the sums of a level are multiplied by, for the least mean error; zero where no step needs the level.

    With E_l the squared weights of a level, as the mean over the steps, the error Σ a_l² · Σ E_l/a_l² of Gaussian noise
    is least, (Σ √E_l)², for a_l ∝ E_l^{1/4}; that of Laplace noise, (Σ a_l)² · Σ E_l/a_l², is (Σ E_l^{1/3})³ for
    a_l ∝ E_l^{1/3}.
    """
    scale = np.abs(cover.weights).max()
    energies = np.bincount(cover.levels, (cover.weights / scale) ** 2, n_levels(horizon)) / horizon
    if noise == "laplace":
        shares = np.cbrt(energies)
        return shares / shares.sum()
    shares = energies**0.25
    return shares / np.sqrt(shares @ shares)


def _strategy(horizon: int, shares: Array, ratio: float) -> Sparse:
    """The levels that are needed, times their shares."""
    whole = tree_strategy(horizon, ratio)
    sizes = level_sizes(horizon)
    kept = np.repeat(shares > 0, sizes)
    lengths = np.diff(whole.indptr)
    entries = np.repeat(kept, lengths)
    data = (whole.data * np.repeat(np.repeat(shares, sizes), lengths))[entries]
    indptr = np.concatenate([[0], np.cumsum(lengths[kept])])
    return Sparse(data, whole.indices[entries], indptr, horizon)


def _reconstruction(cover: Cover, horizon: int, shares: Array) -> Sparse:
    """The cover of every step, over the shares; with a zero in every row, as none may be empty."""
    from scipy.sparse import coo_array

    kept = shares[cover.levels] > 0
    rows_kept = np.repeat(shares > 0, level_sizes(horizon))
    renumbered = np.cumsum(rows_kept) - 1
    columns = renumbered[node_rows(horizon, cover.levels[kept], cover.nodes[kept])]
    data = cover.weights[kept] / shares[cover.levels[kept]]
    steps, zeros = np.arange(horizon), np.zeros(horizon)
    entries = np.concatenate([data, zeros])
    places = np.concatenate([cover.steps[kept], steps]), np.concatenate([columns, zeros.astype(int)])
    return Sparse.of(coo_array((entries, places), shape=(horizon, int(rows_kept.sum()))))
