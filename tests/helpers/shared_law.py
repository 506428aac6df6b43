"""Noise that the blocks of a group share, in exact rationals and by listing: nothing from the package."""

import itertools
from fractions import Fraction

SEEN = 14  # largest noise that is listed


def size(x, slack):
    """What the law punishes: max(|sum|, sum of sizes - slack)."""
    return max(abs(sum(x)), sum(map(abs, x)) - slack)


def weights(group, slack, odds, seen=SEEN):
    """odds^-size of all noises of a group up to `seen`, as fractions."""
    listed = itertools.product(range(-seen, seen + 1), repeat=group)
    return {x: Fraction(1, odds ** size(x, slack)) for x in listed}


def moments(group, slack, odds, seen=SEEN):
    """(total weight, variance of one, covariance of two), as floats."""
    law = weights(group, slack, odds, seen)
    total = sum(law.values())
    variance = sum(w * x[0] ** 2 for x, w in law.items()) / total
    covariance = sum(w * x[0] * x[-1] for x, w in law.items()) / total
    return float(total), float(variance), float(covariance)
