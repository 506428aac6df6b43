r"""Accounting of discrete Gaussian noise: what is guaranteed is proven, and floats never round below the truth.

The noise N_Z(0, σ²) has P(k) ∝ exp(-k²/2σ²) on the integers; the mechanism adds it to integers of ℓ₂ sensitivity Δ.

*Lemma.* Let s² < σ², η = 2.01·e^{-2π²s²}, and let a change of a person's data reach at most n of the outputs. Where the
continuous Gaussian of variance σ² - s² is (ε, δ)-DP, the discrete one of variance σ² is (ε + n ln((1 + 3η)/(1 - 3η)),
δ(1 + 3η)ⁿ)-DP. Here s = 2: the terms with η are below n·1e-33.

*Proof.* Let Y ~ N(0, σ² - s²) and, given Y, Z = k with probability exp(-(k - Y)²/2s²)/S(Y). By Poisson summation
S(y) = s√2π·(1 + 2 Σ_{m≥1} e^{-2π²s²m²} cos 2πmy), within a factor 1 ± η of s√2π for s ≥ 1. So P(Z = k) is the density
of N(0, σ²) at k within a factor 1/(1 ± η), and so is that of N_Z(0, σ²), whose normaliser is the same series with σ for
s: their ratio is within 1 ± 3η. As x + Z(Y) and Z(x + Y) have one distribution for integers x, the mechanism with noise
Z is a randomised rounding of the continuous one, a post-processing. Exchanging the noise in n coordinates costs
(1 + 3η)ⁿ in one direction and (1 - 3η)⁻ⁿ in the other; where both inputs give the same output nothing is exchanged. ∎

*Several releases* compose before the rounding: continuous mechanisms make one of μ² = Σ Δ²/(σ² - 4), μ-Gaussian DP, and
the n add. Inputs may be chosen from earlier outputs: N(0, 1) steps with weights chosen from the past, of square sum μ²,
add up to N(0, μ²). The full proofs are in docs/explanation/release-proofs.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from dpfast._support import validation
from dpfast._support.safe_rounding import float_above
from dpfast.privacy.gaussian import LOG_DELTA_MARGIN, log_delta_beyond, threshold_above

_VARIANCE_OF_ROUNDING = 4  # s²
_THREE_ETA = Fraction(309, 10**36)  # η = 1.0297e-34
_LOSS = Fraction(618, 10**36)  # ln((1 + 3η)/(1 - 3η)) = 6.1778e-34
_BITS = 24  # of a, where σ is not a larger integer
_LARGEST_STD = 2**40
_LARGEST_J = 64
_MOST_COORDINATES = 10**30  # the terms with η stay below 1e-3


class Sigma(NamedTuple):
    """The standard deviation a/2^j of discrete Gaussian noise.

    Examples
    --------
    >>> Sigma(5, 1).std, Sigma(5, 1).variance
    (2.5, Fraction(25, 4))
    """

    a: int
    j: int

    @property
    def std(self) -> float:
        """σ as the nearest float."""
        return float(Fraction(self.a, 2**self.j))

    @property
    def variance(self) -> Fraction:
        """The variance σ², exactly."""
        return Fraction(self.a**2, 4**self.j)


class Shift(NamedTuple):
    """One release: what one person can change of its integers, and the noise.

    Parameters
    ----------
    squared_sensitivity : int
        Δ², the largest squared ℓ₂ norm of the change of the outputs before noise.
    sigma : Sigma
        The noise; σ above 2.
    n_coordinates : int
        Largest number of outputs that change.
    """

    squared_sensitivity: int
    sigma: Sigma
    n_coordinates: int


def smallest_sigma(noise_multiplier: float, squared_sensitivity: int) -> Sigma:
    """Return the smallest σ = a/2^j with σ² ≥ κ²Δ² + 4, a of 24 bits (j = 0 from 2^24 on).

    Parameters
    ----------
    noise_multiplier : float
        κ, above 0, taken as the rational that the float is.
    squared_sensitivity : int
        Δ², at least 1.

    Raises
    ------
    ValueError
        For arguments out of range, and for a σ of 2^40 or more.

    Notes
    -----
    *Privacy.* With the κ of a `Privacy`, `epsilon` at its delta is at most its epsilon: κ is rounded up by more than
    the terms with η.

    Examples
    --------
    >>> smallest_sigma(1.25592366674, 1)
    Sigma(a=9905437, j=22)
    """
    kappa = Fraction(validation.number("noise_multiplier", noise_multiplier, above=0))
    squared = validation.integer("squared_sensitivity", squared_sensitivity, 1)
    variance = kappa**2 * squared + _VARIANCE_OF_ROUNDING
    j = max(0, _BITS - math.isqrt(math.floor(variance)).bit_length())
    sigma = Sigma(math.isqrt(math.ceil(variance * 4**j) - 1) + 1, j)
    if sigma.a >= _LARGEST_STD << j:
        raise ValueError(
            "noise_multiplier * sqrt(squared_sensitivity) must be below 2**40, got about "
            f"2**{sigma.a.bit_length() - 1 - j}: take a coarser unit or a narrower range, or ask for less privacy"
        )
    return sigma


def epsilon(shifts: Sequence[Shift], delta: float) -> float:
    """Return the smallest epsilon proven for the composition at this delta; 0 where that is proven.

    Examples
    --------
    >>> round(epsilon([Shift(64, Sigma(16, 0), 1)], 0.05), 4)
    0.5212
    """
    target = validation.number("delta", delta, above=0, below=1)
    mu, n = gdp_mu(shifts), _count_coordinates(shifts)
    if _delta(mu, n, 0.0) <= target:
        return 0.0
    if math.isinf(mu):
        return mu
    # math.log rounds by less than one part in 1e15
    threshold = threshold_above(math.log(target) * (1 + 1e-15) - float_above(n * _THREE_ETA), mu)
    continuous = Fraction(mu) * (Fraction(threshold) + Fraction(mu) / 2)
    return float_above(max(continuous, Fraction(0)) + n * _LOSS)


def delta(shifts: Sequence[Shift], epsilon: float) -> float:
    """Return the smallest delta proven for the composition at this epsilon (at least 0).

    Examples
    --------
    >>> round(delta([Shift(64, Sigma(16, 0), 1)], 0.5212), 4)
    0.05
    """
    level = validation.number("epsilon", epsilon)
    if level < 0:
        raise validation.fail("epsilon", "a finite number, at least 0", epsilon)
    return _delta(gdp_mu(shifts), _count_coordinates(shifts), level)


def gdp_mu(shifts: Sequence[Shift]) -> float:
    """Return μ = √(Σ Δ²/(σ² - 4)) of the continuous mechanism that the composition is a rounding of.

    The composition itself is μ-Gaussian DP but for the terms with η of the lemma, below n·1e-33.

    Examples
    --------
    >>> gdp_mu([Shift(12, Sigma(4, 0), 1)])
    1.0
    """
    mu_squared = sum(
        (shift.squared_sensitivity / (shift.sigma.variance - _VARIANCE_OF_ROUNDING) for shift in check_shifts(shifts)),
        Fraction(0),
    )
    return _sqrt_up(mu_squared)


def zcdp_rho(shifts: Sequence[Shift]) -> Fraction:
    """Return ρ = Σ Δ²/2σ² of zero-concentrated DP, exactly (Canonne, Kamath and Steinke 2020).

    Examples
    --------
    >>> zcdp_rho([Shift(12, Sigma(4, 0), 1)])
    Fraction(3, 8)
    """
    return sum((shift.squared_sensitivity / shift.sigma.variance / 2 for shift in check_shifts(shifts)), Fraction(0))


def group_shifts(shifts: Sequence[Shift], size: int) -> tuple[Shift, ...]:
    """Return the shifts of a group of `size` people: Δ and the number of outputs reached, times `size`.

    Examples
    --------
    >>> group_shifts([Shift(12, Sigma(4, 0), 5)], 3)
    (Shift(squared_sensitivity=108, sigma=Sigma(a=4, j=0), n_coordinates=15),)
    """
    size = validation.integer("size", size, 1)
    return tuple(Shift(size**2 * squared, sigma, size * n) for squared, sigma, n in check_shifts(shifts))


def rounding_terms(shifts: Sequence[Shift]) -> tuple[Fraction, float]:
    """Return what the lemma adds to ε, and to ln δ, rounded up: so it does where there are other parts too."""
    n = _count_coordinates(shifts)
    return n * _LOSS, float_above(n * _THREE_ETA)


def check_shifts(shifts: Sequence[Shift]) -> list[Shift]:
    """Return shifts that are sound, and refuse others by the name of what is wrong."""
    result = []
    for shift in shifts:
        validation.instance("shifts", shift, Shift, "a sequence of Shift")
        squared = validation.integer("squared_sensitivity", shift.squared_sensitivity, 0)
        n = validation.integer("n_coordinates", shift.n_coordinates, 1 if squared else 0, _MOST_COORDINATES)
        a, j = shift.sigma
        sigma = Sigma(validation.integer("sigma.a", a, 1), validation.integer("sigma.j", j, 0, _LARGEST_J))
        if not _VARIANCE_OF_ROUNDING < sigma.variance < _LARGEST_STD**2:
            raise ValueError(f"sigma must be above 2 and below 2**40, got {a}/2**{j}: nothing is proven outside")
        result.append(Shift(squared, sigma, n))
    return result


def _delta(mu: float, n: int, epsilon: float) -> float:
    """Return δ of the lemma, behind a continuous mechanism that is `mu`-GDP."""
    if mu == 0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    threshold = (Fraction(epsilon) - n * _LOSS) / Fraction(mu) - Fraction(mu) / 2
    if threshold < -40:
        return 1.0
    below = math.nextafter(float(min(threshold, Fraction(1000))), -math.inf)
    log_delta = log_delta_beyond(below, mu) * (1 - LOG_DELTA_MARGIN) + float_above(n * _THREE_ETA)
    return min(1.0, math.nextafter(math.exp(min(log_delta, 0.0)), math.inf))


def _count_coordinates(shifts: Sequence[Shift]) -> int:
    return sum(shift.n_coordinates for shift in check_shifts(shifts) if shift.squared_sensitivity)


def _sqrt_up(square: Fraction) -> float:
    """Return the square root, rounded up."""
    p, q = square.as_integer_ratio()
    shift = max(0, 64 - (p.bit_length() - q.bit_length()) // 2)
    return float_above(Fraction(math.isqrt(-(-(p << 2 * shift) // q) - 1) + 1, 1 << shift)) if p else 0.0
