"""The interface of a model of the private stream, what models share, and the autocovariance of any."""

from __future__ import annotations

import abc
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from dpfast._kernels import signal_sources, simulation
from dpfast._support import thread_count, validation
from dpfast._support.plotting import Drawn
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.privacy.provenance import Provenance, check_source

_SETTLED = 1e-13  # where an impulse response is cut


@runtime_checkable
class Model(Protocol):
    """Describe what is assumed of a stationary stream, as designs and simulations need it."""

    @property
    def mean(self) -> float:
        """The mean E[u_t]."""

    @property
    def variance(self) -> float:
        """The variance Var(u_t)."""

    @property
    def levels(self) -> Array | None:
        """The sorted values that u_t takes, None where they are not finitely many."""

    @property
    def probabilities(self) -> Array | None:
        """The stationary probabilities of the levels."""

    @property
    def shaping(self) -> Filter:
        """A filter with |shaping|² the spectrum of the centred stream."""

    @property
    def source(self) -> Provenance:
        """The provenance of the model: "public", "assumed" or "fitted-from-private"."""

    def psd(self, omega: ArrayLike) -> Array:
        """Return the power spectral density of the centred stream."""

    def sample(self, n_streams: int, n_samples: int, *, seed: Any) -> Array:
        """Draw independent streams (n_streams, n_samples)."""

    def compiled(self) -> signal_sources.SignalSource:
        """Return the source that the compiled simulation draws from."""


def check_model(model: Any) -> None:
    """Refuse what is neither a model of this package nor one of the user's own."""
    if not isinstance(model, ShapedModel) and not isinstance(model, Model):  # ours first: a protocol takes long
        if hasattr(model, "n_channels"):  # a VectorARMA, which is made of these models
            raise ValueError(
                f"model must be of one stream here, got {model!r}: take model.channel(i), which is that of stream i "
                "alone; for all of them together the target is a FilterMatrix"
            )
        raise validation.fail("model", "a MarkovChain, IndependentLevels or ARMA", model)
    check_source("model.source", model.source)


def autocovariance(model: Model, n: int) -> Array:
    """Return R_0 ... R_{n-1} of the centred signal, from its shaping filter's impulse response."""
    response = model.shaping.impulse(model.shaping.settling_time(_SETTLED) + 1)
    size = 1 << (len(response) + n).bit_length()
    r = np.fft.irfft(np.abs(np.fft.rfft(response, size)) ** 2, size)[:n]
    return np.where(np.arange(n) < len(response), r, 0.0)


class ShapedModel(validation.Frozen, Drawn, abc.ABC):
    """A model of which spectrum and samples follow from its shaping filter and its compiled source."""

    shaping: Filter
    source: Provenance

    def psd(self, omega: ArrayLike) -> Array:
        """Return the power spectral density of the centred stream at the angles `omega`; its mean is the variance."""
        return np.asarray(np.abs(self.shaping.response(omega)) ** 2)

    @abc.abstractmethod
    def compiled(self) -> signal_sources.SignalSource:
        """Return the source that the compiled simulation draws from."""

    def sample(self, n_streams: int, n_samples: int, *, seed: Any) -> Array:
        """Draw independent stationary streams (n_streams, n_samples); stream i depends on (seed, i) alone."""
        shape = validation.integer("n_streams", n_streams, 0), validation.integer("n_samples", n_samples, 0)
        out = np.empty(shape)
        simulation.sample(self.compiled(), validation.seed(seed), out, thread_count.n_threads(None))
        return out


def normalize_rows(probabilities: Array) -> Array:
    """Divide rows by their sums, except those that sum to one up to rounding: doing it twice changes nothing."""
    total = probabilities.sum(axis=-1, keepdims=True)
    rounding = probabilities.shape[-1] * np.finfo(float).eps
    return np.where(np.abs(total - 1) <= rounding, probabilities, probabilities / total)


def center_levels(probabilities: Array, levels: Array) -> tuple[float, Array]:
    """Return the mean, and the levels about it: from differences, which are exact for levels far from zero."""
    above = levels - levels[0]
    step = float(probabilities @ above)
    return float(levels[0]) + step, above - step


def set_fields(instance: object, **attributes: object) -> None:
    """Set attributes of a frozen instance while it is made."""
    for name, value in attributes.items():
        object.__setattr__(instance, name, value)
