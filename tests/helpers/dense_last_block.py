"""Block sums and their best linear estimates as one large matrix: nothing of it is from the package."""

import numpy as np


def sum_rows(lengths, lates, phase, weights, n, *, publish):
    """The rows (level, step, weights of n inputs) of all sums of n steps, in the order of release.

    `weights` are those of the inputs of a block in each sum, by place in the block of time; None for ones.
    """
    rows = []
    for level, (length, late) in enumerate(zip(lengths, lates, strict=True)):
        row = np.zeros(n)
        for t in range(n):
            row[t] = 1 if weights is None else weights[(t + phase) % length][level]
            if (t + 1 + phase - late) % length == 0 or (publish and t == n - 1):
                rows.append((t, level, row))
                row = np.zeros(n)
    return sorted(rows, key=lambda x: x[:2])


def best_estimates(rows, variances, covariance, response, lag, first=0):
    """The matrix (steps, sums) of the best linear estimates of the centred output, and their mean squared errors.

    The estimate of a step waits for the sums of `lag` further steps. `response` is the impulse response of the target.
    Nothing is estimated before the step `first`. `variances` are those of the noise of each level.
    """
    n, noise = len(covariance), np.array([variances[level] for _, level, _ in rows])
    output = sum(np.diag(np.full(n - k, response[k]), -k) for k in range(n))
    steps, sums = np.array([t for t, _, _ in rows]), np.array([row for _, _, row in rows]).reshape(-1, n)
    found, errors = np.zeros((n, len(rows))), np.zeros(n)
    for t in range(first, n):
        known = steps <= t + lag
        seen, wanted = sums[known], output[t]
        of_sums = seen @ covariance @ seen.T + np.diag(noise[known])
        cross = seen @ covariance @ wanted
        found[t, known] = np.linalg.solve(of_sums, cross)
        errors[t] = wanted @ covariance @ wanted - cross @ found[t, known]
    return found, errors
