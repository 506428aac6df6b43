"""Posterior means of filtered chains of levels, in plain NumPy: all paths at once, and the recursion of the formula."""

import itertools

import numpy as np


def enumerate_paths(transition, start, n):
    """All paths (paths, n) of a chain from the step behind a start, and their probabilities."""
    paths = np.array(list(itertools.product(range(len(transition)), repeat=n)))
    chance = (start @ transition)[paths[:, 0]]
    for before, behind in itertools.pairwise(paths.T):
        chance = chance * transition[before, behind]
    return paths, chance


def means_over_paths(paths, chance, inputs, impulse, lag, likelihoods):
    """E[y_{t-lag} | what is known at t] for each t, zero before there is any y.

    Parameters
    ----------
    paths, chance : of :func:`enumerate_paths`
    inputs : (levels,)
        About the mean.
    impulse : (n,)
        Of the target.
    likelihoods : mapping from a time to (paths,)
        How likely what is published then is on each path; what is impossible on all tells nothing.
    """
    u, n = inputs[paths], paths.shape[1]
    y = np.array([u[:, : t + 1] @ impulse[t::-1] for t in range(n)])
    found, weights = np.zeros(n), chance
    for t in range(n):
        if t in likelihoods and (weights * likelihoods[t]).sum() > 0:
            weights = weights * likelihoods[t]
        if t >= lag:
            found[t] = weights @ y[t - lag] / weights.sum()
    return found


def means_by_recursion(transition, start, steps, inputs, b, a, lag, length, phase, probability, released):
    """The same of IIR targets b/a by P(level, sum | v) and E[past f; level, sum | v], over any number of steps.

    Parameters
    ----------
    steps : (levels,) of int
        Levels above the lowest one.
    inputs : (levels,)
        About the mean.
    probability : callable
        P(N = n) of integers.
    released : (time,) of int
        Noisy sums of steps where a block ends.
    """
    k, p = len(steps), max(len(a) - 1, len(b) + lag, 1)
    top = length * max(steps) + 1
    chance, past = np.zeros((k, top)), np.zeros((k, top, p))
    chance[:, 0] = start
    h = np.zeros(p)
    h[lag : lag + len(b)] = b
    feedback = np.zeros(p)
    feedback[: len(a) - 1] = a[1:]
    found = np.zeros(len(released))
    for t, v in enumerate(released):
        before, register, chance, past = chance, past, np.zeros((k, top)), np.zeros((k, top, p))
        for level, step in enumerate(steps):
            mixed, moved = transition[:, level] @ before, np.einsum("i,ijk->jk", transition[:, level], register)
            chance[level, step:] = mixed[: top - step]
            moved = np.column_stack([inputs[level] * mixed - moved @ feedback, moved[:, :-1]])
            past[level, step:] = moved[: top - step]
        if (t + 1 + phase) % length == 0:
            weights = probability(v - np.arange(top))
            if (chance * weights).sum() > 0:
                chance, past = chance * weights, past * weights[:, None]
            total = chance.sum()
            ended = chance.sum(axis=1) / total, past.sum(axis=1) / total
            chance, past = np.zeros((k, top)), np.zeros((k, top, p))
            chance[:, 0], past[:, 0] = ended
        if t >= lag:
            found[t] = past.sum(axis=(0, 1)) @ h
    return found
