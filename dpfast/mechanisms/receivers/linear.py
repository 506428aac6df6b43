"""A filter of v."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import compiled_receivers
from dpfast._support.validation import Array, Complex
from dpfast.filters.fft_grid import circle_response
from dpfast.filters.filter import Filter
from dpfast.mechanisms.receivers.base import CausalReceiver, LinearMap
from dpfast.mechanisms.serialization.json_fields import Fields, filter_content
from dpfast.mechanisms.transient_error import CausalForm


@dataclass(frozen=True)
class LinearReceiver(CausalReceiver, LinearMap):
    """ŷ_t = (H v)_t + mean · (step response of the target)_{t - lag}."""

    filter: Filter
    target: Filter
    mean: float
    lag: int
    kind: ClassVar[str] = "linear"

    def response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """Return the frequency response H(ω) of the receiver."""
        return self.filter.response(omega)

    def response_on_circle(self, n: int) -> Complex:
        """Return H at the angles of an FFT."""
        return circle_response(self.filter, n)

    def causal_form(self) -> CausalForm:
        """Return H as it is."""
        return CausalForm(self.filter, np.ones(1), self.lag)

    def filters(self) -> tuple[Filter, ...]:
        """Return the filter H, the only one that runs."""
        return (self.filter,)

    def compiled(self) -> compiled_receivers.CompiledLinearReceiver:
        """Return the compiled form, which studies run."""
        return compiled_receivers.CompiledLinearReceiver(self.filter.factors, self.target.factors, self.mean, self.lag)

    @property
    def _n_running(self) -> int:
        """The states of the target, which the mean passes, and of H."""
        return self._n_of_mean + self.filter.n_states

    @property
    def _n_of_mean(self) -> int:
        """The states of the target where there is a mean."""
        return self.target.n_states if self.mean else 0

    def _go_on(self, v: Array, states: Array, past: int) -> tuple[Array, None, Array]:
        """Filter the next piece; what the mean comes to is the same for all streams."""
        of_mean, of_filter = np.split(states, [self._n_of_mean], axis=1)
        estimate, after = self.filter.filter(v, of_filter)
        if not self.mean or not estimate.size:
            return estimate, None, np.concatenate([of_mean, after], axis=1)
        mean = np.where(past + np.arange(v.shape[1]) >= self.lag, self.mean, 0.0)
        offset, of_mean_after = self.target.filter(mean, of_mean[0])
        estimate += offset
        return estimate, None, np.concatenate([np.broadcast_to(of_mean_after, of_mean.shape), after], axis=1)

    def scaled(self, gain: float) -> Self:
        """Return a receiver that makes the same estimates from v that is smaller by this factor."""
        return replace(self, filter=self.filter * gain)

    def size_text(self) -> str:
        """Say how large H is, in words."""
        return self.filter.size_text()

    def to_fields(self) -> dict[str, Any]:
        """Return all of it but the target as JSON holds it."""
        return {"filter": filter_content(self.filter), "lag": self.lag, "mean": self.mean}

    @classmethod
    def from_fields(cls, fields: Fields, target: Filter) -> Self:
        """Take a receiver out of fields that :meth:`to_fields` has made."""
        mean = fields.number("mean")
        return cls(fields.filter("filter"), target, mean, fields.lag())
