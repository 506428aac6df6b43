"""Few of many combinations: every value of one axis meets every value of every other axis."""

import itertools

import pytest


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


def long_but(cases, kept):
    """Return the cases for a parametrisation, all but the kept ones marked for the long session.

    Of a dictionary the kept ones are names, and each value is a case that has its name.
    """
    assert all(x in cases for x in kept), [x for x in kept if x not in cases]
    marks = [() if x in kept else pytest.mark.long for x in cases]
    named = cases.items() if isinstance(cases, dict) else ((None, x) for x in cases)
    return [
        pytest.param(*(x if isinstance(x, tuple) else (x,)), marks=mark, id=name)
        for (name, x), mark in zip(named, marks, strict=True)
    ]
