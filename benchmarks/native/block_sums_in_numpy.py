"""A study of block sums as one writes it in NumPy: a loop over time, arrays over streams."""

import numpy as np


def simulate(mechanism, levels, stay, n_streams, n_samples, seed):
    """Return the mean squared error of a mechanism of one level of blocks, on a symmetric chain of two levels."""
    receiver, rng = mechanism.receiver, np.random.default_rng(seed)
    step, gain = receiver.advance, receiver.gains[0, 0]
    length, lag, n = receiver.lengths[0], receiver.lag, len(step)
    weights, n_later = receiver.weights, receiver.weights.shape[1] - n
    (b, a), ratio = (mechanism.target.b, mechanism.target.a), np.exp(-mechanism.privacy.epsilon)
    n_kept = n_later + 1
    states, innovations = np.zeros((n_kept, n, n_streams)), np.zeros((2 * n_kept, n_streams))
    u = levels[rng.integers(2, size=n_streams)]
    before, y = np.zeros(n_streams), np.zeros((lag + 1, n_streams))
    total, squares = np.zeros(n_streams), 0.0
    for t in range(n_samples + lag):
        u = np.where(rng.random(n_streams) < stay, u, levels.sum() - u)
        y[t % (lag + 1)] = b[0] * u + b[1] * before - a[1] * y[(t - 1) % (lag + 1)]
        before = u
        total += u
        if (t + 1) % length == 0:
            noise = rng.geometric(1 - ratio, n_streams) - rng.geometric(1 - ratio, n_streams)
            kept = (t + 1) // length % n_kept
            predicted = step @ states[kept - 1]
            innovation = total + noise - predicted[-1]
            states[kept] = predicted + gain[:, None] * innovation
            states[kept, -1] = 0.0
            innovations[[kept, kept + n_kept]] = innovation
            total[:] = 0.0
        passed = t - lag + 1
        kept, row = passed // length % n_kept, weights[passed % len(weights)]
        estimate = row[:n] @ states[kept] + row[n:] @ innovations[kept + 1 : kept + 1 + n_later]
        if t >= lag:
            squares += float(((estimate - y[(t - lag) % (lag + 1)]) ** 2).mean())
    return squares / n_samples
