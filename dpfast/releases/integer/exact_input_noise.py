"""Exact integer noise on every input, G = 1: the receiver alone filters."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.design.catalogue import redesign_receiver
from dpfast.filters.filter import Filter
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.receivers.base import Receiver
from dpfast.mechanisms.rounding import rounding_variance
from dpfast.privacy.lattice import Lattice
from dpfast.privacy.privacy import Privacy
from dpfast.releases.guarantee_terms import ReleaseTerms
from dpfast.releases.integer.exact_base import check_mechanism
from dpfast.releases.integer.exact_drawn import ExactDrawn
from dpfast.releases.integer.exact_filters import ExactFilters
from dpfast.releases.integer.fft_error import predicted_mse
from dpfast.releases.integer.inputs import Inputs, Integers
from dpfast.releases.integer.lattice_noise import (
    LARGEST_NOISE,
    LatticeLaw,
    check_cost,
    check_lattice,
    find_law,
    law_terms,
    loss_of,
)
from dpfast.releases.integer.live_receiver import (
    LiveReceiver,
    causal_receiver,
    center_integers,
    estimate,
)
from dpfast.releases.model_check.channel_check import FilteredValues
from dpfast.releases.model_check.noise_imitation import imitate_noise, noise_kurtosis

_LARGEST = 2**62
_ONE = np.ones(1, np.int64)
_SAME = 1e-6  # of a standard deviation: noise for which the receiver of the design will do


@dataclass(frozen=True, eq=False, repr=False)
class ExactInputNoise(ExactFilters, ExactDrawn):
    r"""Publish inputs with exact integer noise, v_t = x_t + n_t, and filter them by a receiver.

    :func:`exact` makes it of a design with ``noise="geometric"`` or ``"canonical"`` on its inputs. All of it is public.

    Attributes
    ----------
    mechanism : Mechanism
        The design.
    inputs : Inputs
        What is declared of the data, in the unit of the design.
    tolerance : float
        As :func:`exact` was given it; integers cost nothing here.
    noise : GeometricRate or CanonicalTable
        The law of each draw of the noise, in units.
    receiver : LinearReceiver, Smoother or DecisionFeedback
        Designed for this noise; it takes v in units.

    Raises
    ------
    ReleaseError
        For a design with fitted-from-private inputs.
    DesignError
        For inputs in another unit, and less noise than the privacy takes.

    Notes
    -----
    *Privacy.* An event of d steps changes one number by d at most, which geometric noise of rate r hides at r·d; the
    events of a person add up. :meth:`privatize` is the only function that sees inputs.

    Examples
    --------
    >>> import dpfast as dp
    >>> mechanism = dp.input_perturbation(dp.Filter([1], [1, -0.5]), dp.Privacy(1), noise="geometric")
    >>> plan = dp.exact(mechanism, dp.Inputs(0, 20))
    >>> plan.guarantee.delta, plan.guarantee.epsilon <= 1
    (0.0, True)
    """

    kind: ClassVar[str] = "input noise"
    mechanism: Mechanism
    inputs: Inputs
    tolerance: float
    noise: LatticeLaw
    receiver: Receiver

    def __post_init__(self) -> None:
        check_mechanism(self.mechanism)
        check_lattice(_lattice(self.mechanism), self.inputs)
        if max(map(abs, self.inputs.range)) + LARGEST_NOISE > _LARGEST:
            raise DesignError("inputs must have a smaller range or a larger unit: they must stay below 2**62")
        check_cost(self.terms(self.mechanism.privacy, self.inputs).loss, self.mechanism.privacy)

    @classmethod
    def make(cls, mechanism: Mechanism, inputs: Inputs, tolerance: float) -> ExactInputNoise:
        """Make the exact form of a design: the noise that the declared inputs take, and a receiver for it."""
        lattice = _lattice(mechanism)
        check_lattice(lattice, inputs)
        assert mechanism.noise is not None
        law = find_law(mechanism.noise.kind, mechanism.privacy, inputs)
        std, unit = _std(mechanism, law), float(inputs.unit)
        if abs(std * unit / mechanism.noise_std - 1) <= _SAME:
            receiver = mechanism.receiver.scaled(unit)
        else:
            receiver = redesign_receiver(mechanism, Filter([1 / unit]), std)
        return cls(mechanism, inputs, tolerance, law, receiver)

    @property
    def memory(self) -> int:
        """Return 0: each number depends on one input."""
        return 0

    def privatize(
        self, history: Integers, x: Integers, noise: Integers, position: int = 0, end: int | None = None
    ) -> Integers:
        """Return v = x + n; declared zeros at the end are published like any other input."""
        return x + noise

    @property
    def _shift(self) -> float:
        """Return the mean of x as the receiver takes it."""
        return (self.receiver.mean - float(self.inputs.centre)) / float(self.inputs.unit)

    def live(self, n_streams: int | None = None) -> LiveReceiver:
        """Return the receiver as it is at the beginning of a stream."""
        receiver = causal_receiver(self.receiver, self.mechanism.name)
        return LiveReceiver(receiver, _ONE, self._shift, n_streams or self.inputs.n_streams)

    def estimate(self, privatized: Integers, end: int | None = None) -> Array:
        """Return all estimates from all of v, at t that of t - lag."""
        return estimate(self.receiver, _ONE, self._shift, privatized)

    @property
    def prefilter(self) -> Filter:
        """Return G on the signal in its own units: v counts units."""
        return Filter([1 / float(self.inputs.unit)])

    @property
    def noise_std(self) -> float:
        """Return the standard deviation of noise and rounding, in units."""
        return _std(self.mechanism, self.noise)

    @functools.cached_property
    def predicted_mse(self) -> float | None:
        """Return the exact stationary error, as that of the mechanism, with the noise that runs."""
        return predicted_mse(self.mechanism, self.prefilter, self.noise_std, self.receiver)

    def centred(self, privatized: Integers) -> Array:
        """Return u - mean and the noise from all of v, in units; the mean is that of the receiver."""
        return center_integers(_ONE, self._shift, privatized)

    def evidence(self, privatized: Integers, end: int) -> FilteredValues:
        """Return what v from its first step on tells of the model and of the error."""
        model, channel, centred = self.mechanism.model, self.linear_channel(), self.centred(privatized[:, :end])
        known = self.prefilter, self.noise_std, self.receiver.mean
        return FilteredValues(model, *known, centred, channel, self._publish, noise_kurtosis(self.noise))

    def _publish(self, about: Array, rng: np.random.Generator) -> Array:
        """Imitate what would be published of signals about the mean, less what the mean comes to."""
        steps = np.floor(about / float(self.inputs.unit) + self._shift + 0.5)
        return np.clip(steps, *self.inputs.range) + imitate_noise(self.noise, rng, about.shape) - self._shift

    def terms(self, privacy: Privacy, inputs: Inputs) -> ReleaseTerms:
        """Say what it costs a person of some bounds, and what a guarantee says of it."""
        loss = loss_of((self.noise,), privacy, inputs)
        return law_terms(self.laws, loss, "every input, with noise of its own", "step", {})


def _lattice(mechanism: Mechanism) -> Lattice:
    """Return the units that the noise of a design is in."""
    assert mechanism.noise is not None
    law: Any = mechanism.noise.law(mechanism.privacy)
    lattice: Lattice = law.lattice
    return lattice


def _std(mechanism: Mechanism, law: LatticeLaw) -> float:
    """Return the standard deviation of noise and rounding, in units."""
    lattice = _lattice(mechanism)
    model = mechanism.model
    rounding = lattice.rounding_variance if model is None else rounding_variance(lattice, model)
    return math.sqrt(float(law.variance) + rounding / lattice.unit**2)
