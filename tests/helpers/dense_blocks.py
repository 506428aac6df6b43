"""Block sums by brute force, in plain NumPy: all covariances at once, no Kalman filter, nothing from the package."""

import numpy as np
from scipy import linalg


class DenseBlocks:
    """Inputs u_0 ... u_{n-1}, outputs y = F u from rest, and what blocks of sums of u release of them.

    Parameters
    ----------
    impulse : (n,)
        Of the target F.
    autocovariance : (n,)
        Of u, which is stationary from u_0 on.
    lengths, variances : sequences
        Of the levels: of their blocks, and of the noise on each sum.
    phase : int
        Steps that the first blocks are shorter.
    rounding : float
        The variance of white noise that is added to u before it is summed, the same for all levels.
    signs : (block, levels), optional
        Of each input of a block in the sum of each level, where all levels have the length of the block.
    lates : sequence of int, optional
        Steps after the end of a block at which each level releases.
    """

    def __init__(self, impulse, autocovariance, lengths, variances, phase=0, rounding=0.0, signs=None, lates=None):
        self.n, self.lengths, self.phase = len(autocovariance), lengths, phase
        self.f = linalg.toeplitz(impulse[: self.n], np.zeros(self.n))
        u = linalg.toeplitz(autocovariance)
        released = []  # (time, level, which steps are summed)
        for level, (length, late) in enumerate(zip(lengths, lates or [0] * len(lengths), strict=True)):
            for stop in range((late - phase - 1) % length + 1, self.n + 1, length):
                row, summed = np.zeros(self.n), np.arange(max(0, stop - length), stop)
                row[summed] = 1.0 if signs is None else signs[(summed + phase) % length, level]
                released.append((stop - 1, level, row))
        released.sort(key=lambda x: x[:2])
        self.times = np.array([x[0] for x in released])
        self.levels = np.array([x[1] for x in released])
        self.sums = np.array([x[2] for x in released])
        self.y = self.f @ u @ self.f.T
        self.yv = self.f @ u @ self.sums.T
        noisy = u + rounding * np.eye(self.n)
        self.v = self.sums @ noisy @ self.sums.T + np.diag(np.take(variances, self.levels))

    def best_weights(self, t, until):
        """The weights of all that is released up to a time in the best linear estimate of y_t."""
        n, weights = np.searchsorted(self.times, until, side="right"), np.zeros(len(self.times))
        if n:
            weights[:n] = linalg.solve(self.v[:n, :n], self.yv[t, :n], assume_a="pos")
        return weights

    def mse(self, t, weights, offset=0.0):
        """The MSE of an estimate of y_t, for inputs whose mean is `offset` more than is assumed."""
        bias = offset * (self.f[t].sum() - weights @ self.sums.sum(axis=1))
        return self.y[t, t] - 2 * weights @ self.yv[t] + weights @ self.v @ weights + bias**2

    def step_mse(self, lag):
        """The least MSE of each y_t from what is released up to t + lag."""
        return np.array([self.mse(t, self.best_weights(t, t + lag)) for t in range(self.n)])

    def last_cycle(self, lag):
        """(time, weights) of the best estimates that are made in the last whole cycle, from the end of a block on."""
        cycle = self.lengths[-1]
        last = (self.n + self.phase) // cycle * cycle - 1 - self.phase
        return [(t - lag, self.best_weights(t - lag, t)) for t in range(last - cycle, last)]


def arma_autocovariance(b, a, n, settled=4000):
    """r[k] of white noise of variance 1 through b/a, from its impulse response."""
    h = impulse_response(b, a, settled + n)
    return np.array([h[: settled + n - k] @ h[k:] for k in range(n)])


def chain_autocovariance(transition, levels, n):
    """r[k] of a stationary Markov chain, from the powers of its transition matrix."""
    p = np.array(transition, float)
    many = np.linalg.matrix_power(p, 2**40)
    pi = many[0] / many[0].sum()
    centred, found = np.array(levels, float) - pi @ levels, []
    ahead = centred.copy()
    for _ in range(n):
        found.append((pi * centred) @ ahead)
        ahead = p @ ahead
    return np.array(found)


def impulse_response(b, a, n):
    """The first n coefficients of b/a, by its recursion."""
    h = np.zeros(n)
    for t in range(n):
        h[t] = (b[t] if t < len(b) else 0.0) - sum(a[k] * h[t - k] for k in range(1, min(t + 1, len(a))))
        h[t] /= a[0]
    return h
