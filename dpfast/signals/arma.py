"""Models of the private stream: its spectrum, for design, and samples of it, for simulation."""

from __future__ import annotations

import abc
import functools
import math
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from dpfast._kernels import simulation
from dpfast._support import validation
from dpfast._support.dataframes import unwrap
from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.filters.filter import MAX_POLE_RADIUS, Filter
from dpfast.filters.state_space import stationary_root
from dpfast.privacy.provenance import FITTED, Source, check_source
from dpfast.signals.markov_spectrum import shaping_filter, stationary_distribution

_SLACK = 1e-9
_SETTLED = 1e-13  # where an impulse response is cut


@runtime_checkable
class Model(Protocol):
    """What a design and a simulation need of a stationary stream."""

    @property
    def mean(self) -> float:
        """E[u_t]."""

    @property
    def variance(self) -> float:
        """Var(u_t)."""

    @property
    def levels(self) -> Array | None:
        """The sorted values that u_t takes, None where they are not finitely many."""

    @property
    def probabilities(self) -> Array | None:
        """Their stationary probabilities."""

    @property
    def shaping(self) -> Filter:
        """A filter with |shaping|² the spectrum of the centred stream."""

    @property
    def source(self) -> Source:
        """Where the model comes from: "public", "assumed" or "fitted-from-private"."""

    def psd(self, omega: ArrayLike) -> Array:
        """Power spectral density of the centred stream."""

    def sample(self, n_streams: int, n_samples: int, *, seed: Any) -> Array:
        """Independent streams (n_streams, n_samples)."""

    def compiled(self) -> simulation.Source:
        """What the compiled simulation draws from."""


def check_model(model: Any) -> None:
    """A model of this package or of the user's own."""
    if not isinstance(model, Model):
        raise validation.fail("model", "a MarkovChain, IndependentLevels or ARMA", model)
    check_source("model.source", model.source)


def autocovariance(model: Model, n: int) -> Array:
    """R_0 ... R_{n-1} of the centred signal, from its shaping filter's impulse response."""
    response = model.shaping.impulse(model.shaping.settling_time(_SETTLED) + 1)
    size = 1 << (len(response) + n).bit_length()
    r = np.fft.irfft(np.abs(np.fft.rfft(response, size)) ** 2, size)[:n]
    return np.where(np.arange(n) < len(response), r, 0.0)


class _Shaped(validation.Frozen, abc.ABC):
    """What follows from the shaping filter and the compiled source of samples."""

    shaping: Filter

    def psd(self, omega: ArrayLike) -> Array:
        """Power spectral density of the centred stream at the angles `omega`; its mean is the variance."""
        return np.asarray(np.abs(self.shaping.response(omega)) ** 2)

    @abc.abstractmethod
    def compiled(self) -> simulation.Source:
        """What the compiled simulation draws from."""

    def sample(self, n_streams: int, n_samples: int, *, seed: Any) -> Array:
        """Independent stationary streams (n_streams, n_samples); stream i depends on (seed, i) alone."""
        shape = validation.integer("n_streams", n_streams, 0), validation.integer("n_samples", n_samples, 0)
        out = np.empty(shape)
        simulation.sample(self.compiled(), validation.seed(seed), out, validation.n_threads(None))
        return out


@dataclass(frozen=True, eq=False)
class MarkovChain(_Shaped):
    r"""Stationary Markov chain over finitely many levels.

    Parameters
    ----------
    transition : array_like, (k, k)
        ``transition[i, j]`` is the probability of level j after level i. Rows sum to one; every level can be reached
        from every other, without a period.
    levels : array_like, (k,)
        The values of the states, not all equal.
    source : {"assumed", "public", "fitted-from-private"}
        Where the chain comes from. Numbers that were found from private data make the design depend on them.

    Examples
    --------
    >>> chain = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> chain.variance
    0.25
    >>> chain.shaping.b.round(6).tolist(), chain.shaping.a.round(6).tolist()
    ([0.433013], [1.0, -0.5])
    """

    transition: Array
    states: Array
    mean: float
    variance: float
    shaping: Filter
    source: Source
    _stationary: Array

    def __init__(self, transition: ArrayLike, levels: ArrayLike, *, source: Source = "assumed") -> None:
        p = validation.array("transition", transition, ndim=2, empty=False)
        states = validation.array("levels", levels, ndim=1, empty=False)
        if p.shape != (len(states), len(states)):
            raise ValueError(
                f"transition must have a row and a column for each of the {len(states)} levels, got shape {p.shape}"
            )
        if (p < 0).any() or np.abs(p.sum(axis=1) - 1).max() > 1e-9:
            worst = int(np.argmax(np.abs(p.sum(axis=1) - 1)))
            raise ValueError(
                "transition must be stochastic (no negative entries, rows that sum to one), "
                f"got row {worst} with sum {p[worst].sum():.9g} and smallest entry {p.min():.9g}"
            )
        p = _normalized(p)
        pi = stationary_distribution(p)
        _check_spread(states)
        mean, centred = _centred(pi, states)
        variance = float(pi @ centred**2)
        _set(
            self,
            transition=validation.frozen(p),
            states=validation.frozen(states),
            mean=mean,
            variance=variance,
            source=check_source("source", source),
        )
        _set(self, shaping=shaping_filter(p, pi, centred), _stationary=validation.frozen(pi))

    @functools.cached_property
    def levels(self) -> Array:
        """The distinct values, sorted."""
        return validation.frozen(np.unique(self.states))

    @functools.cached_property
    def probabilities(self) -> Array:
        """Stationary probabilities of the distinct values."""
        index = np.searchsorted(self.levels, self.states)
        return validation.frozen(np.bincount(index, self._stationary))

    def compiled(self) -> simulation.Source:
        """What the compiled simulation draws from."""
        return simulation.LevelSource(np.cumsum(self._stationary), np.cumsum(self.transition, axis=1), self.states)


@dataclass(frozen=True, eq=False)
class IndependentLevels(_Shaped):
    """Independent draws from finitely many levels.

    Parameters
    ----------
    levels : array_like, (k,)
        Distinct values.
    probabilities : array_like, (k,)
        Their probabilities, summing to one.
    source : {"assumed", "public", "fitted-from-private"}
        Where they come from. Numbers that were found from private data make the design depend on them.

    Examples
    --------
    >>> coin = IndependentLevels([0, 1], [0.75, 0.25])
    >>> coin.mean, coin.variance
    (0.25, 0.1875)
    """

    levels: Array
    probabilities: Array
    mean: float
    variance: float
    shaping: Filter
    source: Source

    def __init__(self, levels: ArrayLike, probabilities: ArrayLike, *, source: Source = "assumed") -> None:
        x = validation.array("levels", levels, ndim=1, empty=False)
        p = validation.array("probabilities", probabilities, ndim=1, empty=False)
        if len(x) != len(p) or len(np.unique(x)) != len(x):
            raise ValueError(f"levels must be distinct, one for each of the {len(p)} probabilities, got {len(x)}")
        if (p < 0).any() or abs(p.sum() - 1) > 1e-9:
            raise ValueError(f"probabilities must be non-negative and sum to one, got a sum of {p.sum():.9g}")
        order = np.argsort(x)
        x, p = x[order], _normalized(p[order])
        mean, centred = _centred(p, x)
        variance = float(p @ centred**2)
        if variance <= 0:
            raise ValueError("probabilities must not all fall on one level: a constant stream needs no publication")
        _set(self, levels=validation.frozen(x), probabilities=validation.frozen(p))
        _set(self, mean=mean, variance=variance, shaping=Filter([math.sqrt(variance)]))
        _set(self, source=check_source("source", source))

    def compiled(self) -> simulation.Source:
        """What the compiled simulation draws from."""
        cumulative = np.cumsum(self.probabilities)
        return simulation.LevelSource(cumulative, cumulative[None], self.levels)


@dataclass(frozen=True, eq=False)
class ARMA(_Shaped):
    r"""Gaussian stream with a rational spectrum: u = mean + (b/a) w, w white of standard deviation `innovation_std`.

    Parameters
    ----------
    b, a : array_like
        Coefficients in powers of z⁻¹, as for :class:`Filter`.
    innovation_std : float
        Above 0.
    mean : float
    levels : array_like, optional
        The values that the real stream takes, for decision feedback. Samples are then rounded to the nearest level,
        which makes the spectrum of the *samples* approximate; the design uses the given spectrum as it is.
    source : {"assumed", "public", "fitted-from-private"}
        Where all of this comes from. Numbers that were found from private data make the design depend on them.

    Attributes
    ----------
    fitted_order : int or None
        The order that :meth:`fit` was given; None for a model given by hand.

    Raises
    ------
    DesignError
        Where no stream on these levels has this mean and variance: (max - mean)(mean - min) is the largest there is.

    Examples
    --------
    >>> round(ARMA([np.sqrt(3) / 4], [1, -0.5]).variance, 12)
    0.25
    """

    shaping: Filter
    mean: float
    variance: float
    levels: Array | None
    source: Source
    fitted_order: int | None

    def __init__(
        self,
        b: ArrayLike,
        a: ArrayLike = (1.0,),
        *,
        innovation_std: float = 1.0,
        mean: float = 0.0,
        levels: ArrayLike | None = None,
        source: Source = "assumed",
    ) -> None:
        shaping = Filter(b, a) * validation.number("innovation_std", innovation_std, above=0)
        self._complete(shaping, mean, levels, source, None)

    def _complete(
        self, shaping: Filter, mean: float, levels: ArrayLike | None, source: Source, fitted_order: int | None
    ) -> None:
        """Set all attributes from the shaping filter and the rest."""
        variance = shaping.h2_norm() ** 2
        if variance == 0:
            raise ValueError("b must not be all zeros")
        mean = validation.number("mean", mean)
        alphabet = None if levels is None else np.unique(validation.array("levels", levels, ndim=1, empty=False))
        if alphabet is not None:
            _check_alphabet(alphabet, mean, variance)
            validation.frozen(alphabet)
        _set(self, shaping=shaping, mean=mean, variance=variance, levels=alphabet)
        _set(self, source=check_source("source", source), fitted_order=fitted_order)

    @classmethod
    def from_shaping(
        cls,
        shaping: Filter,
        *,
        mean: float = 0.0,
        levels: ArrayLike | None = None,
        source: Source = "assumed",
        fitted_order: int | None = None,
    ) -> Self:
        """Model with the spectrum |shaping|², its factors kept as they are.

        Parameters
        ----------
        shaping : Filter
            Filter that turns white noise of variance one into the centred stream.
        mean, levels, source
            As for the class.
        fitted_order : int, optional
            Of the fit that the filter comes from.

        Examples
        --------
        >>> ARMA.from_shaping(Filter([3, 4])).variance
        25.0
        """
        order = None if fitted_order is None else validation.integer("fitted_order", fitted_order, 0)
        validation.instance("shaping", shaping, Filter, "a Filter")
        self = cls.__new__(cls)
        self._complete(shaping, mean, levels, source, order)
        return self

    @classmethod
    def fit(cls, u: ArrayLike, order: int, *, levels: ArrayLike | None = None, source: Source = FITTED) -> Self:
        """Autoregression of the given order through the sample autocovariances (Yule-Walker).

        Always stable; poles of a trend or a sine, nearer to the circle than a filter may have, are moved to the limit.

        Parameters
        ----------
        u : array_like, (time,) or (streams, time), or Series, DataFrame or DataArray
            Observations; streams share one mean and one spectrum. Rows of a pandas DataFrame are times and columns
            streams; an xarray DataArray has a dimension "time". Times must be equally spaced.
        order : int
            Number of past samples in the regression, below the number of samples.
        levels : array_like, optional
            As for the class.
        source : {"fitted-from-private", "public", "assumed"}
            "public" where u is public: data that anybody may see, or that nobody's privacy depends on.

        Raises
        ------
        ValueError
            Where the observations are constant or too few.

        Notes
        -----
        *Privacy.* A model that was fitted to private data makes the design depend on them, and the guarantee does not
        cover that: fit public data, or historical data that one may look at, and say so by ``source="public"``.
        """
        x = np.atleast_2d(validation.array("u", unwrap("u", u)[0], empty=False))
        order = validation.integer("order", order, 0)
        if x.ndim != 2 or x.shape[1] <= order:
            raise ValueError(f"u must be (time,) or (streams, time) with more than {order} samples, got {np.shape(u)}")
        if x.min() == x.max():
            raise ValueError("u must not be constant: a constant stream needs no publication")
        if np.ptp(x) < validation.SMALLEST:
            raise ValueError(f"u must vary by more than {validation.SMALLEST:g}: scale it")
        mean = float(x.mean())
        x = x - mean
        n = x.shape[1]
        size = 1 << (2 * n - 1).bit_length()
        power = (np.abs(np.fft.rfft(x, size)) ** 2).mean(axis=0)
        r = np.fft.irfft(power)[: order + 1] / n
        a = np.concatenate([[1.0], -linalg.solve_toeplitz(r[:-1], r[1:])]) if order else np.ones(1)
        slowest = np.abs(np.roots(a)).max(initial=0.0)
        if slowest > MAX_POLE_RADIUS:  # a trend or a sine: the poles are moved to the limit
            a *= (MAX_POLE_RADIUS / slowest) ** np.arange(len(a))
        innovation_std = math.sqrt(float(r[0])) / Filter([1.0], a).h2_norm()
        model = cls([1.0], a, innovation_std=innovation_std, mean=mean, levels=levels, source=source)
        _set(model, fitted_order=order)
        return model

    @functools.cached_property
    def probabilities(self) -> Array | None:
        """A Gaussian of this mean and variance on the levels, None without levels."""
        if self.levels is None:
            return None
        exponents = -((self.levels - self.mean) ** 2) / (2 * self.variance)
        weights = np.exp(exponents - exponents.max())
        return validation.frozen(weights / weights.sum())

    def compiled(self) -> simulation.Source:
        """What the compiled simulation draws from."""
        a, b, _, _ = self.shaping.state_space()
        root = stationary_root(a, b) if len(a) else np.zeros((0, 0))
        return simulation.GaussianSource(self.shaping.factors, root, self.mean, self.levels)


def _normalized(probabilities: Array) -> Array:
    """Rows that sum to one; those that do, up to rounding, stay as they are, so that doing it twice changes nothing."""
    total = probabilities.sum(axis=-1, keepdims=True)
    rounding = probabilities.shape[-1] * np.finfo(float).eps
    return np.where(np.abs(total - 1) <= rounding, probabilities, probabilities / total)


def _check_spread(levels: Array) -> None:
    if levels.min() == levels.max():
        raise ValueError("levels must not all be equal: a constant stream needs no publication")
    if np.ptp(levels) < validation.SMALLEST:
        raise ValueError(f"levels must differ by more than {validation.SMALLEST:g}: scale them")


def _centred(probabilities: Array, levels: Array) -> tuple[float, Array]:
    """Mean, and levels about it: from differences, which are exact for levels far from zero."""
    above = levels - levels[0]
    step = float(probabilities @ above)
    return float(levels[0]) + step, above - step


def _check_alphabet(levels: Array, mean: float, variance: float) -> None:
    largest = (levels[-1] - mean) * (mean - levels[0])
    if variance > largest * (1 + _SLACK):
        raise DesignError(
            f"levels from {levels[0]:g} to {levels[-1]:g} with mean {mean:g} must have a variance of at most "
            f"{max(largest, 0):g}, got a spectrum with variance {variance:g}: scale the spectrum or widen the levels"
        )


def _set(instance: object, **attributes: object) -> None:
    """Set attributes of a frozen instance while it is made."""
    for name, value in attributes.items():
        object.__setattr__(instance, name, value)
