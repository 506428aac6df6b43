"""A filter of v that looks both ways."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import compiled_receivers, simulation
from dpfast._support import thread_count
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.mechanisms.receivers.base import LinearMap
from dpfast.mechanisms.serialization.json_fields import Fields, filter_content
from dpfast.mechanisms.transient_error import CausalForm

_CUT = 1e-11


@dataclass(frozen=True)
class Smoother(LinearMap):
    """Two-sided ŷ = B(1/z) A(z) v + mean · step response of the target: forward through A, then backward through B.

    For batches only. Samples outside of an array count as zero.
    """

    forward: Filter
    backward: Filter
    target: Filter
    mean: float
    lag: None = field(default=None, init=False)
    kind: ClassVar[str] = "smoother"

    def estimate(self, v: Array) -> tuple[Array, Array | None]:
        """Return the estimate from v (streams, time)."""
        return simulation.estimate(self.compiled(), v, thread_count.n_threads(None))[0], None

    def response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """Return H(ω) = A(ω) B(ω)*."""
        return np.asarray(self.forward.response(omega) * self.backward.response(omega).conj())

    def causal_form(self) -> CausalForm:
        """Return A, and the taps of B reversed in time: it waits until B has decayed."""
        late = self.compiled().lookahead
        return CausalForm(self.forward, self.backward.impulse(late + 1)[::-1], late)

    def filters(self) -> tuple[Filter, ...]:
        """Return A and B."""
        return self.forward, self.backward

    def compiled(self) -> compiled_receivers.CompiledSmoother:
        """Return the compiled form, which studies run; B is cut where it has decayed to 1e-11."""
        return compiled_receivers.CompiledSmoother(
            self.forward.factors,
            self.backward.factors,
            self.target.factors,
            self.mean,
            self.backward.settling_time(_CUT),
        )

    def scaled(self, gain: float) -> Self:
        """Return a receiver that makes the same estimates from v that is smaller by this factor."""
        return replace(self, forward=self.forward * gain)

    def size_text(self) -> str:
        """Say how large A and B are, in words."""
        return f"{self.forward.size_text()}, back {self.backward.size_text()}"

    def to_fields(self) -> dict[str, Any]:
        """Return all of it but the target as JSON holds it."""
        filters = {"forward": filter_content(self.forward), "backward": filter_content(self.backward)}
        return {**filters, "mean": self.mean}

    @classmethod
    def from_fields(cls, fields: Fields, target: Filter) -> Self:
        """Take a receiver out of fields that :meth:`to_fields` has made."""
        mean = fields.number("mean")
        return cls(fields.filter("forward"), fields.filter("backward"), target, mean)
