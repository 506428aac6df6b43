"""Periodic linear strategies with white noise, and the error of the best linear receiver behind them: dense, naive.

Nothing here is of the package: covariances are given as arrays, and every matrix is written out.
"""

import numpy as np
from scipy import linalg


def norms(rows):
    """The norm of what an input leaves in v by its phase, for v_t = Σ_k rows[t mod T, k] u_{t-k}."""
    period, taps = rows.shape
    return [sum(rows[(phase + k) % period, k] ** 2 for k in range(taps)) ** 0.5 for phase in range(period)]


def periodic_mse(rows, variance, autocovariance, impulse, lag):
    """The mean MSE of the best linear estimates of y_{t-lag} from v_s, s ≤ t, over a late period of a long window.

    The noise is white, and its variance is as given for a strategy of which no column is longer than 1. Estimates see a
    window alone: their errors are those of an endless past, or more.
    """
    n, period = len(autocovariance), len(rows)
    strategy = np.zeros((n, n))
    for t in range(n):
        for k in range(min(rows.shape[1], t + 1)):
            strategy[t, t - k] = rows[t % period, k]
    target = linalg.toeplitz(impulse, np.zeros(n))
    r = linalg.toeplitz(autocovariance)
    noise = variance * max(norms(rows)) ** 2
    root = linalg.cholesky(strategy @ r @ strategy.T + noise * np.eye(n), lower=True)
    gains = linalg.solve_triangular(root, strategy @ r @ target.T, lower=True)
    seen = np.cumsum(gains**2, axis=0)
    whole = np.einsum("ij,ji->i", target @ r, target.T)
    last = n - 1 - lag - np.arange(period)
    return float(np.mean(whole[last] - seen[last + lag, last]))
