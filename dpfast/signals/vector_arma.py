"""The model VectorARMA: several correlated streams with a rational matrix spectrum, white noises shaped together."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from dpfast._kernels import signal_sources, simulation
from dpfast._kernels.state_space_pass import StateSpace
from dpfast._support import thread_count, validation
from dpfast._support.validation import Array, Complex
from dpfast.filters.filter import MAX_POLE_RADIUS
from dpfast.filters.one_noise import shape_one_noise
from dpfast.filters.state_space import frequency_response, gramian_root
from dpfast.privacy.provenance import Provenance, check_source
from dpfast.signals.arma import ARMA
from dpfast.signals.model import Model, check_model, set_fields
from dpfast.signals.vector_yule_walker import Observations, fit_autoregression

_NEGATIVE = 1e-12  # of the largest eigenvalue: rounding


@dataclass(frozen=True, eq=False, repr=False)
class VectorARMA(validation.Frozen):
    r"""Assume that several streams are Gaussian with a rational matrix spectrum; they may be correlated.

    Model
    -----
    :math:`x_t = \sum_k A_k x_{t-k} + w_t + \sum_k B_k w_{t-k}`, u = mean + x, of m channels, with white noise w of the
    covariance Σ. Its spectrum is :math:`H Σ H^*` with
    :math:`H(z) = (I - \sum_k A_k z^{-k})^{-1} (I + \sum_k B_k z^{-k})` (Lütkepohl, New Introduction to Multiple Time
    Series Analysis, 2005, 11.3). It is kept as state space, :math:`s_{t+1} = A s_t + B e_t` and
    :math:`x_t = C s_t + D e_t`, with white noises e of variance one.

    Parameters
    ----------
    autoregression : array_like, (order, m, m)
        A_1, A_2, ...; with the stationary stream inside the limit that poles of a filter have.
    moving_average : array_like, (order, m, m), optional
        B_1, B_2, ...; none by default.
    innovation_covariance : array_like, (m, m), optional
        Σ, positive semidefinite, not zero; the identity by default.
    mean : float or array_like, (m,)
        What each stream varies about, or all of them.
    source : {"assumed", "public", "fitted-from-private"}
        Where all of this comes from. Numbers that were found from private data make the design depend on them.

    Attributes
    ----------
    a, b, c, d : array
        The state space: (n, n), (n, k), (m, n), (m, k).
    fitted_order : int or None
        The order that :meth:`fit` was given; None for a model given by hand.

    Raises
    ------
    ValueError
        For matrices of other shapes, a Σ that is not a covariance, and streams that are not stationary.

    Examples
    --------
    >>> model = VectorARMA([[[0.5, 0], [0, 0.8]]], innovation_covariance=[[1, 0.6], [0.6, 1]], mean=[2, 3])
    >>> model.covariance.round(4).tolist()
    [[1.3333, 1.0], [1.0, 2.7778]]
    >>> model.sample(5, 100, seed=1).shape
    (5, 2, 100)
    """

    a: Array
    b: Array
    c: Array
    d: Array
    mean: Array
    source: Provenance
    fitted_order: int | None

    def __init__(
        self,
        autoregression: ArrayLike,
        moving_average: ArrayLike | None = None,
        *,
        innovation_covariance: ArrayLike | None = None,
        mean: ArrayLike = 0.0,
        source: Provenance = "assumed",
    ) -> None:
        ar = _check_lags("autoregression", autoregression, None)
        m = ar.shape[1]
        ma = np.zeros((0, m, m)) if moving_average is None else _check_lags("moving_average", moving_average, m)
        root = np.eye(m) if innovation_covariance is None else _covariance_root(innovation_covariance, m)
        self._complete(*_observer_form(ar, ma, root), mean, source, None)

    def _complete(
        self, a: Array, b: Array, c: Array, d: Array, mean: ArrayLike, source: Provenance, fitted_order: int | None
    ) -> None:
        """Set all attributes from the state space and the rest."""
        radius = float(np.abs(np.linalg.eigvals(a)).max(initial=0.0))
        if radius > MAX_POLE_RADIUS:
            raise ValueError(
                f"the streams must be stationary, with poles of modulus at most {MAX_POLE_RADIUS:g}, got {radius:g}: "
                "make the autoregression (of a state space, a) smaller"
            )
        for name, value in {"a": a, "b": b, "c": c, "d": d, "mean": _check_mean(mean, len(c))}.items():
            set_fields(self, **{name: validation.freeze(np.ascontiguousarray(value))})
        set_fields(self, source=check_source("source", source), fitted_order=fitted_order)
        if not self.covariance.any():
            raise ValueError("the streams must not all be constant: a constant stream needs no publication")

    @classmethod
    def from_state_space(
        cls,
        a: ArrayLike,
        b: ArrayLike,
        c: ArrayLike,
        d: ArrayLike | None = None,
        *,
        mean: ArrayLike = 0.0,
        source: Provenance = "assumed",
        fitted_order: int | None = None,
    ) -> Self:
        """Make the model u = mean + C s + D e with the state s⁺ = A s + B e, and white noises e of variance one.

        Parameters
        ----------
        a, b, c : array_like, (n, n), (n, k), (m, n)
            Of s⁺ = a s + b e, x = c s + d e, with the poles of a inside the unit circle.
        d : array_like, (m, k), optional
            Zero by default.
        mean, source
            As for the class.
        fitted_order : int, optional
            Where it comes from a fit, the order of that.

        Raises
        ------
        ValueError
            For matrices whose shapes do not fit, and states that are not stable.

        Examples
        --------
        >>> VectorARMA.from_state_space([[0.5]], [[1]], [[1], [2]]).covariance.round(4).tolist()
        [[1.3333, 2.6667], [2.6667, 5.3333]]
        """
        x, y, z = (validation.array(name, value, ndim=2) for name, value in (("a", a), ("b", b), ("c", c)))
        direct = np.zeros((len(z), y.shape[1])) if d is None else validation.array("d", d, ndim=2)
        n, k, m = len(x), y.shape[1], len(z)
        shapes = x.shape, y.shape, z.shape, direct.shape
        if m == 0 or k == 0 or shapes != ((n, n), (n, k), (m, n), (m, k)):
            raise ValueError(f"a, b, c, d must have the shapes (n, n), (n, k), (m, n), (m, k), got {shapes}")
        order = None if fitted_order is None else validation.integer("fitted_order", fitted_order, 0)
        self = cls.__new__(cls)
        self._complete(x, y, z, direct, mean, source, order)
        return self

    @classmethod
    def independent(cls, models: Sequence[Model]) -> Self:
        """Make independent channels with the means and spectra of models of one stream.

        Samples are Gaussian, also where the models have levels. It is "fitted-from-private" if one of them is, and
        "public" if all are.

        Parameters
        ----------
        models : sequence of Model
            One for each stream.

        Examples
        --------
        >>> from dpfast import ARMA
        >>> VectorARMA.independent([ARMA([1]), ARMA([2], mean=3)]).covariance.tolist()
        [[1.0, 0.0], [0.0, 4.0]]
        """
        if not validation.is_several(models) or len(models) == 0:
            raise validation.fail("models", "a sequence of models, one for each channel", models)
        for model in models:
            check_model(model)
        a, b, c, d = (linalg.block_diag(*x) for x in zip(*(y.shaping.state_space() for y in models), strict=True))
        sources: set[Provenance] = {x.source for x in models}
        order: tuple[Provenance, ...] = ("fitted-from-private", "assumed", "public")
        self = cls.__new__(cls)
        self._complete(a, b, c, d, [x.mean for x in models], next(x for x in order if x in sources), None)
        return self

    @classmethod
    def fit(cls, u: Observations, order: int, *, source: Provenance = "fitted-from-private") -> Self:
        """Fit an autoregression of the given order through the sample autocovariances (Yule-Walker).

        Always stationary; poles of a trend or a sine, nearer to the circle than a filter may have, are moved to the
        limit.

        Parameters
        ----------
        u : array_like, (m, time) or (streams, m, time), or DataFrame or DataArray
            Observations; streams share one mean of each channel and one spectrum. Rows of a pandas DataFrame are times
            and columns channels. Times must be equally spaced.
        order : int
            Number of past samples in the regression, below the number of samples.
        source : {"fitted-from-private", "public", "assumed"}
            "public" where u is public: data that anybody may see, or that nobody's privacy depends on.

        Raises
        ------
        ValueError
            Where observations are too few, a channel is constant, or channels determine one another.

        Notes
        -----
        *Privacy.* A model that was fitted to private data makes the design depend on them, and the guarantee does not
        cover that: fit public data, or historical data that one may look at, and say so by ``source="public"``.

        Examples
        --------
        >>> data = VectorARMA([[[0.5, 0.2], [0, 0.8]]]).sample(1, 10_000, seed=3)
        >>> VectorARMA.fit(data, 1, source="public").a.round(1)[:, 1].tolist()
        [0.2, 0.8]
        """
        order = validation.integer("order", order, 0)
        fitted = fit_autoregression(u, order, MAX_POLE_RADIUS)
        root = _covariance_root(fitted.innovation_covariance, len(fitted.mean))
        no_lags = np.zeros((0, *root.shape))
        self = cls.__new__(cls)
        self._complete(*_observer_form(fitted.autoregression, no_lags, root), fitted.mean, source, order)
        return self

    def channel(self, i: int) -> ARMA:
        """Return the model of one stream alone, which has its mean and its spectrum.

        Parameters
        ----------
        i : int
            From 0 to m - 1.

        Raises
        ------
        ValueError
            Where the stream is constant.

        Examples
        --------
        >>> model = VectorARMA([[[0.5, 0.3], [0, 0.8]]], mean=[2, 3])
        >>> alone = model.channel(0)
        >>> alone.mean, round(alone.variance, 4), round(model.covariance[0, 0], 4).item()
        (2.0, 2.1111, 2.1111)
        """
        i = validation.integer("i", i, 0, self.n_channels - 1)
        variance = float(self.covariance[i, i])
        if variance == 0:
            raise ValueError(f"the stream of channel {i} is constant and has no model: leave it out")
        size = math.sqrt(variance)
        shaping = shape_one_noise(self.a, self.b, self.c[[i]] / size, self.d[[i]] / size) * size
        return ARMA.from_shaping(shaping, mean=float(self.mean[i]), source=self.source)

    @property
    def n_channels(self) -> int:
        """The number of streams, m."""
        return len(self.c)

    @property
    def poles(self) -> Complex:
        """The poles of the state space, those inside the circle of the spectrum among them."""
        return np.asarray(np.linalg.eigvals(self.a), dtype=np.complex128)

    @functools.cached_property
    def _state_root(self) -> Array:
        return gramian_root(self.a, self.b)

    @functools.cached_property
    def covariance(self) -> Array:
        """The covariance (m, m) of the channels at one time."""
        spread = self._state_root @ self.c.T
        return validation.freeze(np.asarray(spread.T @ spread + self.d @ self.d.T))

    @functools.cached_property
    def state_cross_covariance(self) -> Array:
        """The covariance E s_{t+1} x_tᵀ (n, m) of the next state with the centred streams."""
        state = self._state_root.T @ self._state_root
        return validation.freeze(self.a @ state @ self.c.T + self.b @ self.d.T)

    def response(self, omega: ArrayLike) -> Complex:
        """Return the response (..., m, k) from the white noises to the channels, at angles (...)."""
        return frequency_response(self.a, self.b, self.c, self.d, np.asarray(omega, dtype=np.float64))

    def psd(self, omega: ArrayLike) -> Complex:
        """Return the spectrum (..., m, m) of the centred streams, Hermitian; its mean is the covariance."""
        h = self.response(omega)
        return np.asarray(h @ np.swapaxes(h, -1, -2).conj())

    def sample(self, n_streams: int, n_samples: int, *, seed: Any) -> Array:
        """Draw independent stationary sets of streams (n_streams, m, n_samples); set i depends on (seed, i) alone."""
        count = validation.integer("n_streams", n_streams, 0)
        length = validation.integer("n_samples", n_samples, 0)
        out = np.empty((count, self.n_channels, length))
        drawn, n_threads = validation.seed(seed), thread_count.n_threads(None)
        simulation.sample_channels(self.compiled(), drawn, out.swapaxes(0, 1), n_threads)
        return out

    def compiled(self) -> signal_sources.CorrelatedSource:
        """Return the source that the compiled simulation draws from."""
        system = StateSpace(self.a, self.b, self.c, self.d)
        return signal_sources.CorrelatedSource(system, self._state_root, tuple(self.mean.tolist()))

    def _content(self) -> tuple[Any, ...]:
        arrays = self.a, self.b, self.c, self.d, self.mean
        return (*((x.shape, (x + 0.0).tobytes()) for x in arrays), self.source, self.fitted_order)

    def __eq__(self, other: object) -> bool:
        return self._content() == other._content() if isinstance(other, VectorARMA) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content())

    def __repr__(self) -> str:
        fitted = "" if self.fitted_order is None else f", fitted with order {self.fitted_order}"
        return f"<VectorARMA of {self.n_channels} channels, {len(self.a)} states, {self.source}{fitted}>"


def _check_lags(name: str, value: ArrayLike, m: int | None) -> Array:
    matrices = validation.array(name, value, ndim=3)
    channels = matrices.shape[1] if m is None else m
    if channels == 0 or matrices.shape[1:] != (channels, channels):
        wanted = "(order, m, m)" if m is None else f"(order, {m}, {m})"
        raise ValueError(f"{name} must have the shape {wanted}, a matrix for each lag, got {matrices.shape}")
    return matrices


def _check_mean(mean: ArrayLike, m: int) -> Array:
    given = validation.array("mean", mean)
    if given.shape not in ((), (m,)):
        raise ValueError(f"mean must be a number or have the shape ({m},), one for each channel, got {given.shape}")
    return np.array(np.broadcast_to(given, (m,)))


def _covariance_root(covariance: ArrayLike, m: int) -> Array:
    """Return L with L Lᵀ the covariance, which may be singular."""
    given = validation.array("innovation_covariance", covariance, ndim=2)
    if given.shape != (m, m):
        raise ValueError(f"innovation_covariance must have the shape ({m}, {m}), got {given.shape}")
    if not np.allclose(given, given.T, rtol=_NEGATIVE, atol=_NEGATIVE * np.abs(given).max()):
        raise ValueError("innovation_covariance must be symmetric, and is not: take (S + S.T) / 2")
    # In units near to their deviations, streams that are as different as numbers are keep all their digits.
    variances = np.diagonal(given)
    units = np.exp2(np.round(np.log2(np.where(variances > 0, variances, 1.0)) / 2))
    sizes, vectors = np.linalg.eigh((given + given.T) / 2 / units[:, None] / units)
    if sizes[0] < -_NEGATIVE * sizes[-1] or sizes[-1] <= 0:
        raise ValueError(
            f"innovation_covariance must be positive semidefinite and not zero, got eigenvalue {sizes[0]:g}"
        )
    return np.asarray(units[:, None] * (vectors * np.sqrt(np.maximum(sizes, 0)) @ vectors.T))


def _observer_form(ar: Array, ma: Array, root: Array) -> tuple[Array, Array, Array, Array]:
    """Return the state space of an ARMA of noise `root` e: s_k⁺ = s_{k+1} + A_k x + B_k w, x = s_1 + w."""
    m, order = len(root), max(len(ar), len(ma))
    if order == 0:
        return np.zeros((0, 0)), np.zeros((0, m)), np.zeros((m, 0)), root
    a, b = np.zeros((order * m, order * m)), np.zeros((order * m, m))
    a[: len(ar) * m, :m] = ar.reshape(-1, m)
    b[: len(ar) * m] += ar.reshape(-1, m)
    b[: len(ma) * m] += ma.reshape(-1, m)
    a += np.eye(order * m, k=m)
    return a, b @ root, np.eye(m, order * m), root
