"""A posterior mean behind block sums as one writes it in NumPy: a loop over time, arrays over streams."""

import numpy as np


def simulate(mechanism, transition, levels, n_streams, n_samples, seed):
    """Return the mean squared error for a filter of one pole on a chain of levels that are one apart."""
    rng, length = np.random.default_rng(seed), mechanism.lengths[0]
    (b, a), ratio = (mechanism.target.b, mechanism.target.a), np.exp(-mechanism.privacy.epsilon)
    k, sums = len(levels), np.arange(length * (len(levels) - 1) + 1)
    chance, past = np.zeros((k, len(sums), n_streams)), np.zeros((2, k, len(sums), n_streams))
    chance[:, 0] = 1 / k
    state = rng.integers(k, size=n_streams)
    before, y, total, squares = np.zeros(n_streams), np.zeros(n_streams), np.zeros(n_streams), 0.0
    for t in range(n_samples):
        state = (rng.random(n_streams)[:, None] > np.cumsum(transition, axis=1)[state]).sum(axis=1)
        y = b[0] * levels[state] + b[1] * before - a[1] * y
        before = levels[state]
        total += state
        mixed, moved = (
            np.tensordot(transition.T, chance, 1),
            np.moveaxis(np.tensordot(transition.T, past, (1, 1)), 0, 1),
        )
        chance, past = np.zeros_like(chance), np.zeros_like(past)
        for level in range(k):
            stop = len(sums) - level
            chance[level, level:] = mixed[level, :stop]
            past[0, level, level:] = levels[level] * mixed[level, :stop] - a[1] * moved[0, level, :stop]
            past[1, level, level:] = moved[0, level, :stop]
        if (t + 1) % length == 0:
            v = total + rng.geometric(1 - ratio, n_streams) - rng.geometric(1 - ratio, n_streams)
            weights = ratio ** np.abs(v - sums[:, None])
            weights /= (weights * chance.sum(axis=0)).sum(axis=0)
            ended = (chance * weights).sum(axis=1), (past * weights).sum(axis=2)
            chance[:], past[:] = 0.0, 0.0
            chance[:, 0], past[:, :, 0] = ended
            total[:] = 0.0
        estimate = b[0] * past[0].sum(axis=(0, 1)) + b[1] * past[1].sum(axis=(0, 1))
        squares += float(((estimate - y) ** 2).mean())
    return squares / n_samples
