"""What exact forms share that publish a filtered input step by step: a receiver fitted to v may run behind it."""

from __future__ import annotations

import abc
from dataclasses import replace
from typing import Any, Self

import numpy as np

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.design.wiener import wiener_receiver
from dpfast.filters.filter import Filter
from dpfast.mechanisms.linear_channel import LinearChannel
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.receivers.base import LinearMap, Receiver
from dpfast.privacy.provenance import Provenance
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.inputs import Integers
from dpfast.signals.model import Model


class ExactFilters(ExactBase):
    """Relate integers to v = G (u - mean) + n in the units of a receiver, n white.

    Attributes
    ----------
    mechanism : Mechanism
        The design.
    receiver : Receiver
        Of v.
    """

    mechanism: Mechanism
    receiver: Receiver

    @property
    @abc.abstractmethod
    def prefilter(self) -> Filter:
        """Return G on the signal in its own units, as it runs."""

    @property
    @abc.abstractmethod
    def noise_std(self) -> float:
        """Return the standard deviation of n, as it is drawn."""

    @abc.abstractmethod
    def centred(self, privatized: Integers) -> Array:
        """Return G (u - mean) + n from all of v (streams, time); the mean is that of the receiver."""

    def linear_channel(self) -> LinearChannel | None:
        """Return what v goes through as it runs, not as it was designed; None where the receiver is not linear."""
        receiver = self.receiver.as_linear()
        if receiver is None:
            return None
        design = self.mechanism
        return LinearChannel(design.name, design.target, design.model, self.prefilter, self.noise_std, receiver)

    def receiver_input(self, v: Array) -> Array:
        """Return G (u - mean) + n of the integers v (streams, time) that were published.

        Raises
        ------
        ValueError
            For v that does not hold integers, and for integers that are never published.
        """
        if v.dtype.kind not in "iu":
            raise ValueError(f"v must hold the integers that were published, got dtype {v.dtype}: give privatized")
        validation.samples("v", v)
        return self.centred(v.astype(np.int64))

    def adapted_to(self, model: Model, receiver: LinearMap, **sources: Provenance) -> Self:
        """Return the same integers and noise with a receiver that was designed for another model.

        Parameters
        ----------
        model : Model
        receiver : LinearReceiver or Smoother
            Designed for the model, and for prefilter and noise as they are, in the units of the signal.
        **sources : {"public", "assumed", "fitted-from-private"}
            As of :meth:`Mechanism.with_sources`.
        """
        channel = self.mechanism.linear_channel()
        assert channel is not None
        behind_the_design = wiener_receiver(channel.target, model, channel.prefilter, channel.noise_std, receiver.lag)
        adapted = self.mechanism.adapted_to(model, behind_the_design, **sources)
        made: Any = self  # every exact form is a dataclass
        result: Self = replace(made, mechanism=adapted, receiver=receiver)
        return result
