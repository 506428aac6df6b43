"""Laws that noise is expected to have, as tests of it need them: moments, probabilities and ratios of these, in floats.

Whatever the law, a test asks for its standard deviation and its fourth moment, the probability of nothing, the values
that may come where these are few, and cells that are about equally full.
"""

from __future__ import annotations

import abc
import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from dpfast._support.validation import Array
from dpfast.privacy.discrete_gaussian_accounting import Sigma
from dpfast.privacy.geometric_rate import GeometricRate
from dpfast.privacy.table_law import TableLaw
from dpfast.releases.integer.inputs import Integers
from dpfast.releases.noise import NoiseLaw

_FINE = 1000.0  # a larger σ has the density of a continuous law between integers, and equally many of all residues
_CELLS = 64


@dataclass(frozen=True)
class ExpectedLaw(abc.ABC):
    """Say what law of integers noise should have."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Say what to call it in a sentence."""

    @property
    @abc.abstractmethod
    def std(self) -> float:
        """Return the standard deviation."""

    @property
    def mean(self) -> float:
        """Return the mean: it is 0 but for answers."""
        return 0.0

    @property
    @abc.abstractmethod
    def spread(self) -> float:
        """Return the standard deviation of (N - E N)² in Var N: it is √2 of a Gaussian."""

    @property
    @abc.abstractmethod
    def zero(self) -> float:
        """Return P(N = 0)."""

    @property
    @abc.abstractmethod
    def few_values(self) -> tuple[Integers, Array]:
        """Return the values that may come, but for the rarest, and their probabilities; none where they are many."""

    @abc.abstractmethod
    def log_probability(self, n: Integers) -> Array:
        """Return ln P(N = n) up to a constant."""

    @abc.abstractmethod
    def _quantiles(self, levels: Array) -> tuple[Integers, Array]:
        """Return integers near the quantiles and P(N ≤ n) of each, of a law of many values."""

    def cells(self) -> tuple[Integers, Array]:
        """Return the last values of cells that are about equally full, but for the last cell, and P(N ≤ n) of each."""
        levels = np.arange(1, _CELLS) / _CELLS
        values, probabilities = self.few_values
        if not len(values):
            return self._quantiles(levels)
        sums = np.cumsum(probabilities)
        places = np.unique(np.minimum(np.searchsorted(sums, levels), len(values) - 1))
        return values[places], sums[places]

    def std_bound(self, noise: Integers, miss: float) -> float:
        """Bound σ from above, but for a probability `miss`, by the second moment, as normal as its mean is.

        Squares are skewed upwards, so that a sum of them is too small less often than a normal variable.
        """
        square = float(((noise - self.mean) ** 2).mean())
        left = 1 + self.spread * float(special.ndtri(miss)) / math.sqrt(noise.size)
        return math.sqrt(square / left) if left > 0 else math.inf

    def largest_lack(self, n_values: int, miss: float, power: float) -> float:
        """Return by how much, relative, σ is too small where `std_bound` finds that with a probability `power`."""
        low, usual = (1 + self.spread * float(special.ndtri(p)) / math.sqrt(n_values) for p in (miss, power))
        return 1 - math.sqrt(max(low, 0.0) / usual)


@dataclass(frozen=True)
class ExpectedGaussian(ExpectedLaw):
    """Expect the discrete Gaussian."""

    sigma: Sigma
    name = "discrete Gaussian"
    spread = math.sqrt(2)

    @property
    def std(self) -> float:
        """See :class:`ExpectedLaw`."""
        return self.sigma.std

    @property
    def zero(self) -> float:
        """See :class:`ExpectedLaw`; the normaliser, but for one part in 1e34."""
        return 1 / (self.std * math.sqrt(2 * math.pi))

    @functools.cached_property
    def few_values(self) -> tuple[Integers, Array]:
        """See :class:`ExpectedLaw`."""
        return _tabulate(self, 12.0)

    def log_probability(self, n: Integers) -> Array:
        """See :class:`ExpectedLaw`."""
        return np.asarray(-0.5 * (n / self.std) ** 2)

    def _quantiles(self, levels: Array) -> tuple[Integers, Array]:
        ends = np.floor(self.std * special.ndtri(levels)).astype(np.int64)
        return ends, special.ndtr((ends + 0.5) / self.std)

    def std_bound(self, noise: Integers, miss: float) -> float:
        """See :class:`ExpectedLaw`; the second moment is a chi-squared variable for that σ."""
        square = float((noise.astype(np.float64) ** 2).sum())
        return math.sqrt(square / float(special.chdtri(noise.size, 1 - miss)))

    def largest_lack(self, n_values: int, miss: float, power: float) -> float:
        """See :class:`ExpectedLaw`."""
        usual, low = (float(special.chdtri(n_values, 1 - p)) for p in (power, miss))
        return 1 - math.sqrt(low / usual)


@dataclass(frozen=True)
class ExpectedGeometric(ExpectedLaw):
    """Expect the two-sided geometric."""

    rate: GeometricRate
    name = "two-sided geometric"

    @property
    def _r(self) -> float:
        return float(self.rate.per_step)

    @property
    def std(self) -> float:
        """See :class:`ExpectedLaw`."""
        return math.sqrt(self.rate.variance)

    @property
    def spread(self) -> float:
        """Return the root from E N⁴ = 2q(1 + 10q + q²)/(1 - q)⁴ and Var N = 2q/(1 - q)²."""
        q = math.exp(-self._r)
        return math.sqrt((1 + 10 * q + q * q) / (2 * q) - 1)

    @property
    def zero(self) -> float:
        """See :class:`ExpectedLaw`."""
        return math.tanh(self._r / 2)

    @functools.cached_property
    def few_values(self) -> tuple[Integers, Array]:
        """See :class:`ExpectedLaw`."""
        return _tabulate(self, 40 / (self._r * self.std))

    def log_probability(self, n: Integers) -> Array:
        """See :class:`ExpectedLaw`."""
        return np.asarray(-self._r * np.abs(n))

    def _quantiles(self, levels: Array) -> tuple[Integers, Array]:
        sides = np.where(levels < 0.5, np.log(2 * levels), -np.log(2 * (1 - levels)))
        ends = np.floor(sides / self._r).astype(np.int64)
        small = np.exp(-self._r * np.where(ends >= 0, ends + 1.0, -ends)) / (1 + math.exp(-self._r))
        return ends, np.where(ends >= 0, 1 - small, small)


@dataclass(frozen=True)
class ExpectedTable(ExpectedLaw):
    """Expect a table of values; a response's are its answers."""

    law: TableLaw
    name = "tabulated"

    @functools.cached_property
    def few_values(self) -> tuple[Integers, Array]:
        """See :class:`ExpectedLaw`."""
        return np.array(self.law.values, np.int64), np.array([float(p) for p in self.law.probabilities])

    @property
    def mean(self) -> float:
        """See :class:`ExpectedLaw`."""
        return self._moment(1, 0.0)

    @property
    def std(self) -> float:
        """See :class:`ExpectedLaw`."""
        return math.sqrt(self._moment(2, self.mean))

    @property
    def spread(self) -> float:
        """See :class:`ExpectedLaw`."""
        return math.sqrt(self._moment(4, self.mean) / self._moment(2, self.mean) ** 2 - 1)

    @property
    def zero(self) -> float:
        """See :class:`ExpectedLaw`."""
        return float(dict(zip(self.law.values, self.law.probabilities, strict=True)).get(0, 0.0))

    def log_probability(self, n: Integers) -> Array:
        """See :class:`ExpectedLaw`; minus infinity for what never comes."""
        values, probabilities = self.few_values
        place = np.minimum(np.searchsorted(values, n), len(values) - 1)
        with np.errstate(divide="ignore"):
            return np.where(values[place] == n, np.log(probabilities)[place], -np.inf)

    def _moment(self, power: int, about: float) -> float:
        values, probabilities = self.few_values
        return float(probabilities @ (values - about) ** power)

    def _quantiles(self, levels: Array) -> tuple[Integers, Array]:
        raise AssertionError("a table has few values")


def expect(law: NoiseLaw) -> ExpectedLaw:
    """Return what tests need to know of the law of a noise."""
    if isinstance(law, TableLaw):
        return ExpectedTable(law)
    return ExpectedGeometric(law) if isinstance(law, GeometricRate) else ExpectedGaussian(law)


def _tabulate(law: ExpectedLaw, widest: float) -> tuple[Integers, Array]:
    """Return values up to so many standard deviations, if that is not too many, and their probabilities."""
    if law.std > _FINE:
        return np.zeros(0, np.int64), np.zeros(0)
    most = math.ceil(widest * law.std)
    values = np.arange(-most, most + 1)
    weights = np.exp(law.log_probability(values))
    return values, weights / weights.sum()
