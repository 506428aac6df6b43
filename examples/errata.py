"""Recompute the figures of Le Ny 2013, Section VI, from its formulas: NumPy and SciPy alone, nothing of dpfast.

Run it by `python examples/errata.py`; docs/explanation/errata.md says what each line shows.
"""

import math

import numpy as np
from scipy import integrate, optimize, special

EPSILON, DELTA = math.log(3), 0.05
PRINTED, CHAIN = 3 / 4, 3 / 16  # numerators of the spectrum


def gain(omega):
    """|F| of the example."""
    return abs((1 + 0.995 * np.exp(-1j * omega)) / (1 - 0.995 * np.exp(-1j * omega)))


def spectrum(omega, numerator):
    return numerator / abs(1 - 0.5 * np.exp(-1j * omega)) ** 2


def mean(function):
    """<f>: the mean over the unit circle, to 1e-10, by adaptive quadrature."""
    return (
        integrate.quad(function, 0, math.pi, epsabs=1e-11, epsrel=1e-11, limit=500, points=[0.005, 0.05, 0.5])[0]
        / math.pi
    )


def noise_multiplier():
    """κ of the paper's Theorem 2."""
    k = special.ndtri(1 - DELTA)
    return (k + math.sqrt(k * k + 2 * EPSILON)) / (2 * EPSILON)


def true_delta(kappa):
    """The δ that Gaussian noise of this multiplier really gives at ε (Balle and Wang 2018, Theorem 8)."""
    a, b = 1 / (2 * kappa), EPSILON * kappa
    return special.ndtr(a - b) - math.exp(EPSILON) * special.ndtr(-a - b)


def zero_forcing():
    """The least RMSE of zero forcing, κ <|F|>: the bound of the paper's theorem on it, which is attained."""
    return noise_multiplier() * mean(gain)


def trapezoid(n):
    """The same with <|F|> by n equal intervals, which do not resolve the pole at .995."""
    omega = np.linspace(0, math.pi, n + 1)
    return noise_multiplier() * np.trapezoid(gain(omega), omega) / math.pi


def smoother(numerator):
    """The least RMSE of the LMMSE smoother: water-filling |K| = (|F| − κ² m / P_u)₊ with m = <|K|>."""
    c2 = noise_multiplier() ** 2

    def cut(omega, m):
        return max(gain(omega) - c2 * m / spectrum(omega, numerator), 0.0)

    m = optimize.brentq(lambda m: mean(lambda omega: cut(omega, m)) - m, 1e-6, 10)
    distortion = mean(lambda omega: spectrum(omega, numerator) * (gain(omega) - cut(omega, m)) ** 2)
    return math.sqrt(distortion + c2 * m * m)


def main():
    kappa = noise_multiplier()
    print(f"variance of the printed spectrum             {mean(lambda x: spectrum(x, PRINTED)):.4f}")
    print(f"variance of a stream of ±1/2                 {mean(lambda x: spectrum(x, CHAIN)):.4f}")
    print(f"LZF, RMSE                                    {zero_forcing():.4f}")
    print(f"LZF, 98 intervals of the trapezoidal rule    {trapezoid(98):.4f}")
    print(f"LMMSE, RMSE, printed spectrum                {smoother(PRINTED):.4f}")
    print(f"LMMSE, RMSE, spectrum of the chain           {smoother(CHAIN):.4f}")
    print(f"κ of the paper                               {kappa:.4f}")
    print(f"δ that it gives, of the {DELTA} asked for        {true_delta(kappa):.5f}")


if __name__ == "__main__":
    main()
