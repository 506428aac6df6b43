"""Running sums without a horizon by others' methods, and what is best where it is known; variances over (κ d)²."""

import itertools

import numpy as np
from scipy import integrate


def square_root_energies(n):
    """S_1, ..., S_n: sums of squares of the coefficients of (1 - z)^(-1/2)."""
    return np.cumsum(np.cumprod(np.append(1.0, 1 - 0.5 / np.arange(1, n))) ** 2)


def trace_norm_bound(n):
    """The least mean variance of n steps, and the least largest: the mean singular value of the sum's matrix, squared.

    ‖B‖_F ‖C‖_F ≥ ‖B C‖_1, the sum of the singular values 1/(2 sin((2j - 1) π/(4n + 2))) (Mathias 1993).
    """
    total = sum(
        (0.5 / np.sin((2 * np.arange(first, min(first + 2**20, n + 1)) - 1) * np.pi / (4 * n + 2))).sum()
        for first in range(1, n + 1, 2**20)
    )
    return (total / n) ** 2


def jacobsen_fawaz(n, gamma, delta):
    """Variances of n steps with the strategy of Jacobsen and Fawaz 2025, for exponents γ and δ of its logarithms.

    C has the series f = (1 - z)^(-1/2) L^γ (2 ln(L)/z)^δ, L = -ln(1 - z)/z, and B that of 1/((1 - z) f): variances are
    ‖f‖² times the sums of the squares of the latter, found by Cauchy's integral near to the unit circle.
    """
    size = 4 * n
    radius = 10 ** (-14 / size)
    z = radius * np.exp(-2j * np.pi / size * np.arange(size // 2 + 1))
    values = np.log1p(-z)
    values /= -z
    logs = np.log(values)
    inverse = gamma * logs
    if delta:
        logs *= 2 / z
        inverse += delta * np.log(logs)
    inverse += 0.5 * np.log1p(-z)
    del logs, values, z
    series = np.fft.irfft(np.exp(-inverse), size)[:n]
    series *= radius ** -np.arange(float(n))
    return whole_norm(gamma, delta) * np.cumsum(series**2)


def whole_norm(gamma, delta):
    """‖f‖² over all coefficients, an integral over the circle: in s = -ln(2 sin(θ/2)), and in ln s beyond 1."""

    def squared(theta):
        z = np.exp(1j * theta)
        log = (-np.log(2 * np.sin(theta / 2)) + 0.5j * (np.pi - theta)) / z
        return abs(log) ** (2 * gamma) * (abs(2 * np.log(log) / z) ** (2 * delta) if delta else 1.0)

    def of_log(y):
        s = np.exp(min(y, 300.0))
        if y < 6:
            theta = 2 * np.arcsin(np.exp(-s) / 2)
            return s * squared(theta) / np.sqrt(1 - np.exp(-2 * s) / 4)
        turned = 1 + 0.5j * np.pi / s  # θ is 0 there but for rounding
        size = np.exp((1 + 2 * gamma) * y) * abs(turned) ** (2 * gamma)
        return size * (abs(2 * (y + np.log(turned))) ** (2 * delta) if delta else 1.0)

    whole = integrate.quad(lambda x: squared(x) / (2 * np.sin(x / 2)), 2 * np.arcsin(np.exp(-1) / 2), np.pi)[0]
    ends = np.concatenate([np.arange(8.0), 8 * 1.2 ** np.arange(40)])
    return (whole + sum(integrate.quad(of_log, x, y)[0] for x, y in itertools.pairwise(ends))) / np.pi


def fresh_square_roots(n):
    """Variance of step n = 2^k where each block [2^i, 2^(i+1)) has a square root of its own, whose last sum is kept."""
    return 1 + sum(square_root_energies(2**i)[-1] ** 2 for i in range(n.bit_length() - 1))


def hybrid(n, share):
    """The same, and each whole block's sum once more, with a share of 1/σ² (Chan, Shi and Song 2011)."""
    blocks = [square_root_energies(2**i)[-1] ** 2 for i in range(n.bit_length() - 1)]
    sums = [1 / (share + (1 - share) / x) for x in [1.0, *blocks[:-1]]]
    return sum(sums) + (blocks[-1] / (1 - share) if blocks else 0.0) if blocks else 1.0
