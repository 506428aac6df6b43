"""Randomised response to every input of two levels, drawn exactly: the receiver alone filters."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast._support.safe_rounding import decimal_below
from dpfast._support.validation import Array
from dpfast.design.catalogue import redesign_receiver
from dpfast.filters.filter import Filter
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.receivers.base import Receiver
from dpfast.privacy.composition import Loss
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.response_table import CERTAIN, FALSELY, ResponseTable, response_table
from dpfast.releases.guarantee_terms import ReleaseTerms
from dpfast.releases.integer.exact_base import LiveEstimator, check_mechanism
from dpfast.releases.integer.exact_drawn import ExactDrawn
from dpfast.releases.integer.exact_filters import ExactFilters
from dpfast.releases.integer.fft_error import predicted_mse
from dpfast.releases.integer.inputs import Inputs, Integers
from dpfast.releases.integer.lattice_noise import check_cost, law_terms
from dpfast.releases.integer.live_receiver import LiveResponse, causal_receiver
from dpfast.releases.model_check.channel_check import FilteredValues
from dpfast.releases.model_check.noise_imitation import excess_of_table, imitate_noise

_ONE = Filter([1.0])
_MOST = 2  # what is told for certain
_SAME = 1e-6  # of a standard deviation: answers for which the receiver of the design will do
_NEAR = 1e-9  # of the distance of the levels


@dataclass(frozen=True, eq=False, repr=False)
class ExactResponse(ExactFilters, ExactDrawn):
    r"""Publish by randomised response v_t = ±2 (the level, for certain) or ±1 (perhaps the other one), and filter that.

    :func:`exact` makes it of :func:`randomized_response`. The sign tells the upper level from the lower one. All of it
    is public.

    Attributes
    ----------
    mechanism : Mechanism
        The design.
    inputs : Inputs
        What is declared of the data: the two levels are the ends of the range, and one unit apart.
    tolerance : float
        As :func:`exact` was given it; integers cost nothing here.
    noise : ResponseTable
        The probabilities with which a level is told for certain, truly and falsely: fractions of 2^62.
    receiver : LinearReceiver or Smoother
        Designed for these answers.

    Raises
    ------
    ReleaseError
        For a design with fitted-from-private inputs.
    DesignError
        For inputs that are not declared on the two levels, and answers that tell more than the privacy allows.

    Notes
    -----
    *Privacy.* Each event changes one answer, whatever its size, and the events of a person are at times of their own:
    what they cost adds up (docs/explanation/release-proofs.md). :meth:`privatize` is the only function that sees
    inputs.

    Examples
    --------
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
    >>> plan = dp.exact(dp.randomized_response(dp.Filter([1, -2]), dp.Privacy(1), chain), dp.Inputs(0, 1))
    >>> plan.guarantee.delta, plan.guarantee.epsilon <= 1
    (0.0, True)
    """

    kind: ClassVar[str] = "randomised response"
    mechanism: Mechanism
    inputs: Inputs
    tolerance: float
    noise: ResponseTable
    receiver: Receiver

    def __post_init__(self) -> None:
        check_mechanism(self.mechanism)
        _check_levels(self.mechanism, self.inputs)
        check_cost(self.terms(self.mechanism.privacy, self.inputs).loss, self.mechanism.privacy)

    @classmethod
    def make(cls, mechanism: Mechanism, inputs: Inputs, tolerance: float) -> ExactResponse:
        """Make the exact form of a design: the answers that the declared inputs take, and a receiver of them."""
        _check_levels(mechanism, inputs)
        privacy, n = mechanism.privacy, mechanism.privacy.max_events * inputs.streams_per_person
        try:
            table = response_table(decimal_below(privacy.epsilon) / n, decimal_below(privacy.delta) / n)
        except ValueError as error:
            raise DesignError(f"{error}; it is for each of {n} events of a person") from None
        std = _std(inputs, table)
        designed = abs(std / mechanism.noise_std - 1) <= _SAME
        receiver = mechanism.receiver if designed else redesign_receiver(mechanism, _ONE, std)
        return cls(mechanism, inputs, tolerance, table, receiver)

    @property
    def memory(self) -> int:
        """Return 0: each answer depends on one input."""
        return 0

    def privatize(
        self, history: Integers, x: Integers, noise: Integers, position: int = 0, end: int | None = None
    ) -> Integers:
        """Return the answers; declared zeros at the end are answered like any other input."""
        level = np.where(x == self.inputs.range[1], 1, -1)
        told = np.where(noise == FALSELY, -level, level)
        return np.where(noise == CERTAIN, 2 * level, told).astype(np.int64)

    @functools.cached_property
    def _values(self) -> Array:
        """Return what the answers -2 ... 2 stand for, about the mean of the receiver."""
        low, high = float(self.inputs.low), float(self.inputs.high)
        trust, shown = float(self.noise.trust), float(self.noise.shown)
        told = np.array([-1.0, -trust, 0.0, trust, 1.0])
        return np.asarray((low + high) / 2 - self.receiver.mean + (high - low) / (2 * shown) * told)

    def live(self, n_streams: int | None = None) -> LiveEstimator:
        """Return the receiver as it is at the beginning of a stream."""
        return LiveResponse(
            causal_receiver(self.receiver, self.mechanism.name), self._values, n_streams or self.inputs.n_streams
        )

    def estimate(self, privatized: Integers, end: int | None = None) -> Array:
        """Return all estimates from all of v, at t that of t - lag."""
        return self.receiver.estimate(self._values[privatized + _MOST])[0]

    @property
    def prefilter(self) -> Filter:
        """Return G: each answer stands for its own input."""
        return _ONE

    @property
    def noise_std(self) -> float:
        """Return the standard deviation of what the answers stand for about the input."""
        return _std(self.inputs, self.noise)

    @functools.cached_property
    def predicted_mse(self) -> float | None:
        """Return the exact stationary error on the two levels, as the mechanism's, with the answers that are drawn."""
        return self.mse_behind(self.receiver)

    def mse_behind(self, receiver: Receiver) -> float | None:
        """Return the exact stationary error of a receiver of the answers that are drawn; None where none is known."""
        return predicted_mse(self.mechanism, _ONE, self.noise_std, receiver)

    def centred(self, privatized: Integers) -> Array:
        """Return what all answers (streams, time) stand for, about the mean of the receiver."""
        if privatized.size and not -_MOST <= privatized.min() <= privatized.max() <= _MOST:
            raise validation.fail("v", f"answers from {-_MOST} to {_MOST}", privatized)
        return np.asarray(self._values[privatized + _MOST])

    def evidence(self, privatized: Integers, end: int) -> FilteredValues:
        """Return what v from its first step on tells of the model and of the error."""
        model, channel, centred = self.mechanism.model, self.linear_channel(), self.centred(privatized[:, :end])
        trust, shown = float(self.noise.trust), float(self.noise.shown)
        errors = np.array([1, trust, -trust]) / shown - 1  # of the answers about the upper level, in half distances
        kurtosis = excess_of_table(errors, np.array([float(x) for x in self.noise.probabilities]))
        return FilteredValues(
            model, _ONE, self.noise_std, self.receiver.mean, centred, channel, self._publish, kurtosis
        )

    def _publish(self, about: Array, rng: np.random.Generator) -> Array:
        """Imitate what would be published of signals about the mean: what the answers stand for, about it."""
        low, high = float(self.inputs.low), float(self.inputs.high)
        above = about + self.receiver.mean > (low + high) / 2
        x = np.where(above, *self.inputs.range[::-1])
        drawn = imitate_noise(self.noise, rng, about.shape).astype(np.int64)
        return np.asarray(self._values[self.privatize(x, x, drawn) + _MOST])

    def terms(self, privacy: Privacy, inputs: Inputs) -> ReleaseTerms:
        """Say what it costs a person of some bounds, and what a guarantee says of it."""
        n, epsilon, delta = privacy.max_events * inputs.streams_per_person, self.noise.epsilon, self.noise.delta
        loss = Loss(approximate=((n * epsilon, min(Fraction(1), n * delta)),)) if delta else Loss(pure=(n * epsilon,))
        return law_terms(self.laws, loss, "an answer to every input, which of two levels it is", "step", {})


def _check_levels(mechanism: Mechanism, inputs: Inputs) -> None:
    """Refuse declared inputs that are not on the two levels of the design."""
    assert mechanism.noise is not None
    assert mechanism.noise.levels is not None
    low, high = mechanism.noise.levels
    span, unit = high - low, float(inputs.unit)
    off = max(abs(float(inputs.low) - low), abs(float(inputs.high) - high), abs(unit - span))
    if off > _NEAR * span:
        raise DesignError(
            f"inputs must be declared on the two levels of the design, Inputs({low:g}, {high:g}, unit={span:g}, "
            f"centre={low:g}), got low {inputs.low}, high {inputs.high} and the unit {inputs.unit}: others count as "
            "the nearer level"
        )


def _std(inputs: Inputs, table: ResponseTable) -> float:
    """Return the standard deviation of what the answers stand for about the input."""
    return float(inputs.high - inputs.low) * math.sqrt(float(table.variance))
