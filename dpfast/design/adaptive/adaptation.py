"""Receivers that were fitted to what was published, and whether they are taken."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import html_fragments as html
from dpfast._support import validation
from dpfast._support.dataframes import unwrap
from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast._support.wrapped_text import wrap_paragraph
from dpfast.design.adaptive.cross_validation import Gain
from dpfast.design.adaptive.published_sums import PublishedSums
from dpfast.design.adaptive.sum_errors import ErrorResponses
from dpfast.filters.filter import Filter
from dpfast.mechanisms.linear_channel import LinearChannel
from dpfast.mechanisms.receivers.base import LinearMap, Receiver
from dpfast.privacy.provenance import Provenance
from dpfast.signals.arma import ARMA
from dpfast.signals.model import Model

_NEGLIGIBLE = 0.005  # of the MSE: a loss that does not count where the fit is in no doubt
_SURE = 1.644854  # standard errors: 95 %, one-sided
_CLEAR = 3.0  # standard errors that a gain must have where it is
SURPRISE = 3.0  # standard errors by which a gain is below what the fit promises
CONFIDENCE = 1.959964  # of the interval: 95 %
_PRIVACY = (
    "Privacy: none was spent. Only v was read, which is private already, and what is computed from v alone is as "
    "private as v. Prefilter and noise are as they were."
)


@runtime_checkable
class Adaptable(Protocol):
    """A Mechanism, or its exact form: it makes v by a prefilter and noise, and may have another receiver."""

    @property
    def lag(self) -> int | None:
        """The samples by which the estimate is late; None for a smoother."""

    @property
    def prefilter(self) -> Filter:
        """The prefilter G, as it runs."""

    @property
    def receiver(self) -> Receiver:
        """The receiver that there is."""

    def linear_channel(self) -> LinearChannel | None:
        """Return what v goes through and the linear receiver behind it; None where the receiver is not linear."""

    def receiver_input(self, v: Array) -> Array:
        """Return G (u - mean) + n of v (streams, time)."""

    def adapted_to(self, model: Model, receiver: LinearMap, **sources: Provenance) -> Self:
        """Return the same prefilter and noise with a receiver that was designed for another model."""


@runtime_checkable
class AdaptableSums(Protocol):
    """The exact form of block sums: it publishes sums of blocks, and may have another receiver behind them."""

    @property
    def lag(self) -> int | None:
        """Return the samples by which the estimate is late."""

    @property
    def mechanism(self) -> Any:
        """Return the design."""

    def published_sums(self, privatized: Array, end: int) -> PublishedSums | None:
        """Return the sums of whole cycles of v before a step; None where there are too few."""

    def respond(self) -> ErrorResponses | str:
        """Return how estimates err, or say why that is not known."""

    def redesigned_for(self, model: Model) -> Self:
        """Return the same sums and noise with a receiver that was designed for another model."""

    def receiver_sums(self, v: Array) -> Array:
        """Return v as it estimates from it, of all streams; refuse what was not published."""

    def estimate(self, privatized: Any, end: int | None = None) -> Array:
        """Return all estimates from all of v."""


M = TypeVar("M", bound=Adaptable | AdaptableSums)


@dataclass(frozen=True, eq=False)
class Adaptation(Generic[M]):
    """Inspect and save what :func:`adapt` has found. Print it for a summary.

    Attributes
    ----------
    mechanism : Mechanism, or the exact form of one
        With the adapted receiver, or the given one where that was not taken.
    taken : bool
        Whether the adapted receiver is the one in `mechanism`.
    given : Mechanism, or the exact form of one
        What was adapted.
    model : ARMA
        The input as fitted to v. Its source is "public", as v is.
    order : int
        The order of the autoregression.
    gain : float or None
        Relative MSE that adapting saves, from parts of v that were held out; below 0 for a loss. None where it did not
        come to that.
    interval : (float, float) or None
        95 % interval of `gain`: asymptotic, as if v were Gaussian.
    reason : str
        Why it was taken or not.

    Notes
    -----
    *Privacy.* All of it is post-processing of v.
    """

    mechanism: M
    taken: bool
    given: M
    model: ARMA
    order: int
    gain: float | None
    interval: tuple[float, float] | None
    reason: str

    def estimate(self, v: ArrayLike) -> Any:
        """Estimate from v of the *given* mechanism, such as the one that was adapted to.

        Parameters
        ----------
        v : array_like, (..., time), or Series, DataFrame or DataArray
            From the start of the streams on. Integers for an exact mechanism.

        Returns
        -------
        array, (..., time), or of the kind of v
            At t of the target's output at t - lag; at t for a smoother.

        Notes
        -----
        *Privacy.* Post-processing of v.
        """
        values, wrap = unwrap("v", v)
        given, receiver = _of_filters(self.given), _of_filters(self.mechanism).receiver
        streams, centred = receiver_inputs(given, values)
        rise = given.prefilter.filter(np.ones(centred.shape[1])).y
        moved = centred - (receiver.mean - given.receiver.mean) * rise
        return wrap(receiver.estimate(moved)[0].reshape(streams))

    def __str__(self) -> str:
        texts = [
            self._title(),
            *(f"  {name:<15} {value}" for name, value in self._facts().items()),
            *(wrap_paragraph(x, 2) for x in (self.reason, _PRIVACY)),
        ]
        return "\n".join(texts)

    def _repr_html_(self) -> str:
        said = map(html.paragraphs, (self.reason, _PRIVACY))
        return html.notebook(html.facts(self._facts(), caption=self._title()), *said)

    def _name(self) -> str:
        """Return the name of the design."""
        return check_linear(_of_filters(self.given)).name

    def _title(self) -> str:
        return f"{self._name()!r}: the adapted receiver is {'taken' if self.taken else 'not taken'}"

    def _facts(self) -> dict[str, str]:
        return {
            "order": f"{self.order} (autoregression)",
            "fitted input": f"mean {self.model.mean:.6g}, variance {self.model.variance:.6g}",
            "gain in MSE": self._gain_text(),
        }

    def _gain_text(self) -> str:
        if self.gain is None or self.interval is None:
            return "not estimated"
        return "{:.2%}, 95 % interval {:.2%} to {:.2%} (on held-out v)".format(self.gain, *self.interval)

    def __repr__(self) -> str:
        return f"<Adaptation of {self._name()!r}: {'taken' if self.taken else 'not taken'}>"


class SumAdaptation(Adaptation[M]):
    """The result of :func:`adapt` for block sums. Print it for a summary.

    It has all that an :class:`Adaptation` has; the design in `mechanism` is the given one, and its receiver is another.
    """

    def estimate(self, v: ArrayLike, end: int | None = None) -> Array:
        """Estimate from v of the *given* mechanism, such as the one that was adapted to.

        Parameters
        ----------
        v : array_like, (streams, time) or (streams, levels, time)
            The integers that were published, from the start of the streams on.
        end : int, optional
            The steps with inputs, of streams that are over: nothing was released behind them.

        Returns
        -------
        array, (streams, time)
            At t of the target's output at t - lag.

        Notes
        -----
        *Privacy.* Post-processing of v.
        """
        plan: Any = self.mechanism
        end = None if end is None else validation.integer("end", end, 0)
        return np.asarray(plan.estimate(plan.receiver_sums(np.asarray(v)), end))

    def _name(self) -> str:
        given: Any = self.given
        name: str = given.mechanism.name
        return name


def _of_filters(mechanism: Any) -> Adaptable:
    adaptable: Adaptable = mechanism
    return adaptable


def check_linear(mechanism: Adaptable) -> LinearChannel:
    """Return F, G, σ and H; refuse a receiver that is not linear."""
    channel = mechanism.linear_channel()
    if channel is None:
        raise DesignError(
            "mechanism must have a linear receiver, got decision feedback, which the spectrum of v does not determine: "
            "adapt lmmse(target, privacy, model, lag=..., prefilter=mechanism.prefilter), which makes the same v"
        )
    return channel


def receiver_inputs(mechanism: Adaptable, v: ArrayLike) -> tuple[tuple[int, ...], Array]:
    """Return the shape of v, and G (u - receiver.mean) + n of all streams (streams, time)."""
    shape = validation.samples("v", v).shape
    return shape, mechanism.receiver_input(np.asarray(v).reshape(math.prod(shape[:-1]), shape[-1]))


def decide(gain: Gain, doubts: tuple[str, ...]) -> tuple[bool, str]:
    """Decide whether to take the adapted receiver, and say why."""
    change = f"the adapted receiver's MSE is {abs(gain.relative):.2%} {'lower' if gain.relative > 0 else 'higher'}"
    if not doubts:
        least = gain.relative - _SURE * gain.standard_error
        if least > -_NEGLIGIBLE:
            return True, f"On held-out v {change}."
        return False, f"On held-out v {change}, and may be {-least:.2%} higher, so the given one stays."
    doubt = f"The fit is in doubt ({'; '.join(doubts)})"
    if gain.relative < _CLEAR * gain.standard_error:
        return False, f"{doubt}, and there is no clear gain: on held-out v {change}."
    if min(gain.of_parts) < 0:
        return False, f"{doubt}, and adapting loses on a part of v, though on all of held-out v {change}."
    return True, f"{doubt}, but on held-out v {change}, and lower on every part."
