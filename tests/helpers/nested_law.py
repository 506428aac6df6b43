"""Noise of a tree of groups, by listing and in exact rationals: nothing from the package."""

import itertools
from fractions import Fraction


def size(x, branches, slacks):
    """What the law punishes, node by node."""
    nodes = [(abs(a), a) for a in x]
    for k, c in zip(branches, slacks, strict=True):
        groups = [nodes[i : i + k] for i in range(0, len(nodes), k)]
        sums = [sum(s for _, s in group) for group in groups]
        nodes = [(max(abs(s), sum(phi for phi, _ in g) - c), s) for s, g in zip(sums, groups, strict=True)]
    ((root, _),) = nodes
    return root


def count_leaves(branches):
    """The noises of one draw."""
    n = 1
    for k in branches:
        n *= k
    return n


def weights(branches, slacks, odds, seen):
    """odds^-size of all noises up to `seen`, as fractions."""
    listed = itertools.product(range(-seen, seen + 1), repeat=count_leaves(branches))
    return {x: Fraction(1, odds ** size(x, branches, slacks)) for x in listed}


def moments(branches, slacks, odds, seen):
    """(total weight, variance, covariances by the level of the lowest common node), exactly, as floats."""
    first = [1]
    for k in branches:
        first.append(first[-1] * k)
    total, products = 0, [0] * (len(branches) + 1)
    sizes = {
        x: size(x, branches, slacks) for x in itertools.product(range(-seen, seen + 1), repeat=count_leaves(branches))
    }
    top = max(sizes.values())
    powers = [odds ** (top - i) for i in range(top + 1)]
    partners = [0, *(n for n in first[:-1])]  # one whose lowest common node with the first is of level l
    for x, phi in sizes.items():
        total += powers[phi]
        for level, other in enumerate(partners):
            products[level] += powers[phi] * x[0] * x[other]
    return float(Fraction(total, powers[0])), [float(Fraction(p, total)) for p in products]
