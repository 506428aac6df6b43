"""Few of many combinations: every value of one axis meets every value of every other axis."""

import itertools


def pairwise(*axes):
    """Return combinations that have every pair of values of any two axes, always the same ones.

    Each is one that has the most pairs that are not there yet.
    """
    every = list(itertools.product(*(range(len(axis)) for axis in axes)))
    pairs = {x: {(i, j, x[i], x[j]) for i, j in itertools.combinations(range(len(axes)), 2)} for x in every}
    missing, chosen = set().union(*pairs.values()), []
    while missing:
        chosen.append(max(every, key=lambda x: len(pairs[x] & missing)))
        missing -= pairs[chosen[-1]]
    return [tuple(axis[i] for axis, i in zip(axes, x, strict=True)) for x in chosen]
