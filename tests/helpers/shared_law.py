"""Noise that values share in groups or trees of groups, listed and in exact integers: nothing from the package."""

import itertools
from fractions import Fraction

import numpy as np
from scipy import stats


def sizes(x, branches, slacks):
    """What the law punishes, node by node, of noises (..., leaves)."""
    nodes = [(abs(a), a) for a in np.moveaxis(np.asarray(x), -1, 0)]
    for k, c in zip(branches, slacks, strict=True):
        groups = [nodes[i : i + k] for i in range(0, len(nodes), k)]
        sums = [sum(s for _, s in group) for group in groups]
        nodes = [(np.maximum(abs(s), sum(phi for phi, _ in g) - c), s) for s, g in zip(sums, groups, strict=True)]
    ((root, _),) = nodes
    return root


def listed(n, seen):
    """All noises up to `seen`, (how many, n)."""
    return np.indices((2 * seen + 1,) * n).reshape(n, -1).T - seen


def weights(branches, slacks, odds, seen):
    """odds^-size of all noises up to `seen`, as fractions."""
    noises = listed(np.prod(branches), seen)
    found = sizes(noises, branches, slacks).tolist()
    return {tuple(x): Fraction(1, odds**phi) for x, phi in zip(noises.tolist(), found, strict=True)}


def moments(branches, slacks, odds, seen):
    """(total weight, variance and covariances by the level of the lowest common node), summed exactly, as floats."""
    x = listed(np.prod(branches), seen)
    phi = sizes(x, branches, slacks)
    partners = [0, 1, *np.cumprod(branches)[:-1]]  # one whose lowest common node with the first is of level l
    counts = [_by_size(phi, factor) for factor in (np.ones(len(x), int), *(x[:, 0] * x[:, i] for i in partners))]
    total, *products = (sum(Fraction(n, odds**i) for i, n in enumerate(count)) for count in counts)
    return float(total), [float(p / total) for p in products]


def _by_size(phi, factor):
    found = np.zeros(phi.max() + 1, int)
    np.add.at(found, phi, factor)
    return found.tolist()


def misfit(noise, branches, slacks, odds, seen):
    """(p-value, number of cells) of a chi-square test of draws (n, leaves): all noises that are expected ten times."""
    law = listed(noise.shape[-1], seen)
    weight = float(odds) ** -sizes(law, branches, slacks)
    expected = len(noise) * weight / weight.sum()
    width = 2 * max(seen, int(abs(noise).max())) + 1
    place = width ** np.arange(noise.shape[-1])
    drawn = dict(zip(*np.unique(noise.astype(int) @ place, return_counts=True), strict=True))
    pairs = [(drawn.get(x, 0), n) for x, n in zip(law @ place, expected, strict=True) if n > 10]
    pairs.append((len(noise) - sum(x for x, _ in pairs), len(noise) - sum(n for _, n in pairs)))
    return stats.chisquare(*np.array(pairs, float).T, sum_check=False).pvalue, len(pairs)


def largest_cost(branches, slacks, n_changes, rng, seen=2, largest_input=3):
    """The largest |ln P(v) - ln P'(v)|, in ε, of values v of one draw up to `seen`: an integer, and exact.

    The input at each place is any function of what was published before it. Two neighbours have the same functions but
    for `n_changes` places, where they differ by one.
    """
    n = int(np.prod(branches))
    v, largest = listed(n, seen), 0
    for _ in range(3):
        tables = [rng.integers(-largest_input, largest_input + 1, (2 * seen + 1,) * j) for j in range(n)]
        noise = v - np.stack([np.broadcast_to(t[tuple(v[:, :j].T + seen)], len(v)) for j, t in enumerate(tables)], 1)
        cost = sizes(noise, branches, slacks)
        for places in itertools.combinations(range(n), n_changes):
            change = rng.choice([-1, 1], n) * np.isin(np.arange(n), places)
            largest = max(largest, int(abs(sizes(noise - change, branches, slacks) - cost).max()))
    return largest
