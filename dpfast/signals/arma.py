"""The model ARMA: a stream with a rational spectrum, noise that a filter has shaped."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from dpfast._kernels import signal_sources
from dpfast._support import validation
from dpfast._support.dataframes import unwrap
from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.filters.filter import MAX_POLE_RADIUS, Filter
from dpfast.filters.state_space import gramian_root
from dpfast.privacy.provenance import FITTED, Provenance, check_source
from dpfast.signals.model import ShapedModel, set_fields

_SLACK = 1e-9  # of a variance that levels may just have: rounding


@dataclass(frozen=True, eq=False)
class ARMA(ShapedModel):
    r"""Assume that a stream is Gaussian with a rational spectrum: u = mean + (b/a) w, w white noise.

    The standard deviation of w is `innovation_std`.

    Parameters
    ----------
    b, a : array_like
        Coefficients in powers of z⁻¹, as for :class:`Filter`.
    innovation_std : float
        Above 0.
    mean : float
        What the stream varies about.
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
    source: Provenance
    fitted_order: int | None

    def __init__(
        self,
        b: ArrayLike,
        a: ArrayLike = (1.0,),
        *,
        innovation_std: float = 1.0,
        mean: float = 0.0,
        levels: ArrayLike | None = None,
        source: Provenance = "assumed",
    ) -> None:
        shaping = Filter(b, a) * validation.number("innovation_std", innovation_std, above=0)
        self._complete(shaping, mean, levels, source, None)

    def _complete(
        self, shaping: Filter, mean: float, levels: ArrayLike | None, source: Provenance, fitted_order: int | None
    ) -> None:
        """Set all attributes from the shaping filter and the rest."""
        variance = shaping.h2_norm() ** 2
        if variance == 0:
            raise ValueError("b must not be all zeros: a constant stream needs no publication")
        mean = validation.number("mean", mean)
        alphabet = None if levels is None else np.unique(validation.array("levels", levels, ndim=1, empty=False))
        if alphabet is not None:
            _check_alphabet(alphabet, mean, variance)
            validation.freeze(alphabet)
        set_fields(self, shaping=shaping, mean=mean, variance=variance, levels=alphabet)
        set_fields(self, source=check_source("source", source), fitted_order=fitted_order)

    @classmethod
    def from_shaping(
        cls,
        shaping: Filter,
        *,
        mean: float = 0.0,
        levels: ArrayLike | None = None,
        source: Provenance = "assumed",
        fitted_order: int | None = None,
    ) -> Self:
        """Make the model with the spectrum |shaping|², its factors kept as they are.

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
    def fit(cls, u: ArrayLike, order: int, *, levels: ArrayLike | None = None, source: Provenance = FITTED) -> Self:
        """Fit an autoregression of the given order through the sample autocovariances (Yule-Walker).

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
            raise ValueError(
                f"u must be (time,) or (streams, time) with more than {order} samples, got {np.shape(u)}: fit a lower "
                "order"
            )
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
        set_fields(model, fitted_order=order)
        return model

    @functools.cached_property
    def probabilities(self) -> Array | None:
        """The probabilities of the levels, by a Gaussian of this mean and variance; None without levels."""
        if self.levels is None:
            return None
        exponents = -((self.levels - self.mean) ** 2) / (2 * self.variance)
        weights = np.exp(exponents - exponents.max())
        return validation.freeze(weights / weights.sum())

    def compiled(self) -> signal_sources.SignalSource:
        """Return the source that the compiled simulation draws from."""
        a, b, _, _ = self.shaping.state_space()
        root = gramian_root(a, b)
        return signal_sources.GaussianSource(self.shaping.factors, root, self.mean, self.levels)


def _check_alphabet(levels: Array, mean: float, variance: float) -> None:
    largest = (levels[-1] - mean) * (mean - levels[0])
    if variance > largest * (1 + _SLACK):
        raise DesignError(
            f"levels from {levels[0]:g} to {levels[-1]:g} with mean {mean:g} must have a variance of at most "
            f"{max(largest, 0):g}, got a spectrum with variance {variance:g}: scale the spectrum or widen the levels"
        )
