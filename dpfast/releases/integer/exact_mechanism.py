"""Filters in integers: all that a release does is decided and known before any data are seen."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from dpfast._kernels.integer_fir import add_filtered
from dpfast._support import html_fragments as html
from dpfast._support import validation
from dpfast.filters.filter import Filter
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.receivers.base import Receiver
from dpfast.mechanisms.serialization.json_fields import Fields
from dpfast.mechanisms.serialization.mechanism_file import mechanism_content, read_mechanism
from dpfast.mechanisms.serialization.parts import read_receiver, receiver_content
from dpfast.privacy.discrete_gaussian_accounting import Shift, Sigma
from dpfast.privacy.privacy import Privacy
from dpfast.releases.guarantee_terms import ReleaseTerms, gaussian_terms
from dpfast.releases.integer.exact_base import check_mechanism
from dpfast.releases.integer.exact_filters import ExactFilters
from dpfast.releases.integer.fft_error import predicted_mse
from dpfast.releases.integer.inputs import Inputs, Integers
from dpfast.releases.integer.integer_taps import MAX_TAPS, check_sizes, filter_of_signal
from dpfast.releases.integer.live_receiver import LiveReceiver, causal_receiver, center_integers, estimate
from dpfast.releases.integer.noise_calibration import check_epsilon, privacy_shift
from dpfast.releases.integer.releasable import check_releasable
from dpfast.releases.integer.tap_search import round_to_integers
from dpfast.releases.model_check.channel_check import FilteredValues, filter_with_normal_noise

_VALUES = 2**16  # that are filtered at once: they stay in a cache


@dataclass(frozen=True, eq=False)
class ExactMechanism(ExactFilters):
    r"""Publish filtered integers with exact integer noise, and estimate the target's output from them.

    v_t = Σ_k g_k x_{t-k} + n_t of integers x, with integer taps g and discrete Gaussian n; behind it a receiver.

    :func:`exact` makes it. Everything in it is public. Whatever makes it, it keeps what its mechanism demands.

    Attributes
    ----------
    mechanism : Mechanism
        The design.
    inputs : Inputs
        What is declared of the data.
    tolerance : float
        Accept this relative increase of the MSE for taps that are integers.
    taps : array of int64
        g, of at most 65,536 integers whose squares sum to less than 2^62; a copy, which nobody can write to.
    sigma : Sigma
        P(n) ∝ exp(-n²/2σ²), σ = a/2^j.
    receiver : LinearReceiver, Smoother or DecisionFeedback
        Designed for g and this noise, in the units of the signal.

    Raises
    ------
    ReleaseError
        For a design with fitted-from-private inputs.
    DesignError
        Where sums would not fit into 64 bits, and for noise that is less than the mechanism's privacy takes.

    Notes
    -----
    *Privacy.* `guarantee` says what a release of it promises. :meth:`privatize` is the only function that sees inputs.
    """

    kind: ClassVar[str] = "filters"
    mechanism: Mechanism
    inputs: Inputs
    tolerance: float
    taps: Integers
    sigma: Sigma
    receiver: Receiver

    def __post_init__(self) -> None:
        check_mechanism(self.mechanism)
        object.__setattr__(self, "taps", _own_taps(self.taps))
        check_sizes(self.taps[np.newaxis], self.inputs, self.sigma)
        check_epsilon(self.guarantee.epsilon, self.mechanism.privacy, self.sigma)

    def __reduce__(self) -> tuple[type[ExactMechanism], tuple[Any, ...]]:
        # made and checked anew: taps that come out of a pickle can be written to, and a kept guarantee would not follow
        return ExactMechanism, tuple(getattr(self, x.name) for x in fields(self))

    @classmethod
    def make(cls, mechanism: Mechanism, inputs: Inputs, tolerance: float) -> ExactMechanism:
        """Make the exact form of a design for such inputs: the fewest taps and bits within the tolerance."""
        return cls(mechanism, inputs, tolerance, *round_to_integers(mechanism, inputs, tolerance))

    @property
    def lag(self) -> int | None:
        """The samples by which the estimate is late; None for a smoother."""
        return self.receiver.lag

    @property
    def laws(self) -> tuple[Sigma]:
        """Return the law of the noise: its σ."""
        return (self.sigma,)

    @property
    def memory(self) -> int:
        """The number of past inputs that the prefilter needs."""
        return len(self.taps) - 1

    @property
    def prefilter(self) -> Filter:
        """The filter G on the signal in its own units: the integer taps over the unit."""
        return filter_of_signal(self.taps, self.inputs)

    @property
    def noise_std(self) -> float:
        """The standard deviation of the noise, in the units of the taps on integers."""
        return self.sigma.std

    @functools.cached_property
    def shift(self) -> Shift:
        """The change that one person makes at most, and the noise, as the accounting takes them."""
        return privacy_shift(self.mechanism.privacy, self.inputs, self.taps, self.sigma)

    @functools.cached_property
    def predicted_mse(self) -> float | None:
        """The exact stationary error, as that of the mechanism; None where only simulation tells."""
        return predicted_mse(self.mechanism, self.prefilter, self.sigma.std, self.receiver)

    def terms(self, privacy: Privacy, inputs: Inputs) -> ReleaseTerms:
        """Say what it costs a person of some bounds, and what a guarantee says of it."""
        return gaussian_terms(self.taps, privacy_shift(privacy, inputs, self.taps, self.sigma))

    def privatize(
        self, history: Integers, x: Integers, noise: Integers, position: int = 0, end: int | None = None
    ) -> Integers:
        """Return v (streams, n) of the integers x (streams, n), behind `memory` earlier ones, oldest first.

        No sum overflows: the range of x, the taps and the largest noise were checked at design. Declared zeros at the
        end are published like any other input.
        """
        v, missing = noise.copy(), self.memory - history.shape[1]
        at_once = max(1, _VALUES // max(1, self.memory + x.shape[1]))
        for first in range(0, len(x), at_once):
            rows = slice(first, first + at_once)
            before = np.zeros((len(x[rows]), missing), np.int64)
            add_filtered(self.taps, np.concatenate([before, history[rows], x[rows]], axis=1), v[rows])
        return v

    def live(self, n_streams: int | None = None) -> LiveReceiver:
        """Return the receiver as it is at the beginning of a stream.

        Raises
        ------
        ReleaseError
            For a smoother.
        """
        receiver = causal_receiver(self.receiver, self.mechanism.name)
        return LiveReceiver(receiver, self.taps, self._shift_of_mean, n_streams or self.inputs.n_streams)

    def estimate(self, privatized: Integers, end: int | None = None) -> validation.Array:
        """Return all estimates from all of v (streams, time), at t that of t - lag."""
        return estimate(self.receiver, self.taps, self._shift_of_mean, privatized)

    def centred(self, privatized: Integers) -> validation.Array:
        """Return G (u - mean) + n from all of v (streams, time), in its units; the mean is that of the receiver."""
        return center_integers(self.taps, self._shift_of_mean, privatized)

    def evidence(self, privatized: Integers, end: int) -> FilteredValues:
        """Return what v from its first step on tells of the model and of the error."""
        model, channel = self.mechanism.model, self.linear_channel()
        centred = self.centred(privatized[:, :end])
        publish = filter_with_normal_noise(self.prefilter, self.sigma.std)
        return FilteredValues(model, self.prefilter, self.sigma.std, self.receiver.mean, centred, channel, publish)

    @property
    def _shift_of_mean(self) -> float:
        """The mean of x as the receiver takes it."""
        return (self.receiver.mean - float(self.inputs.centre)) / float(self.inputs.unit)

    @property
    def configuration(self) -> dict[str, Any]:
        """The whole mechanism, as JSON holds it."""
        return {
            "mechanism": mechanism_content(self.mechanism),
            "inputs": self.inputs.public(),
            "tolerance": self.tolerance,
            "taps": self.taps.tolist(),
            "sigma": list(self.sigma),
            "receiver": receiver_content(self.receiver),
        }

    @classmethod
    def from_configuration(cls, given: Mapping[str, Any]) -> ExactMechanism:
        """Make the same mechanism to the last bit, though another machine would have designed another."""
        mechanism = check_releasable(read_mechanism(given["mechanism"]))
        return cls(
            mechanism=mechanism,
            inputs=Inputs.from_public(given["inputs"]),
            tolerance=given["tolerance"],
            taps=np.array(given["taps"], dtype=np.int64),
            sigma=Sigma(*given["sigma"]),
            receiver=read_receiver(Fields(given["receiver"], "receiver"), mechanism.target),
        )

    def __repr__(self) -> str:
        return f"<ExactMechanism {self.mechanism.name!r}: {len(self.taps)} taps, predicted RMSE {self.error_text}>"

    def _repr_html_(self) -> str:
        shown = {
            "integer taps": str(len(self.taps)),
            "noise": f"discrete Gaussian, σ = {self.sigma.std:.6g}",
            "lag": self.lag_text,
            "predicted RMSE": self.error_text,
        }
        return html.notebook(html.facts(shown, caption=self.mechanism.name), *self.guarantee.shown())


def _own_taps(taps: Any) -> Integers:
    """Copy taps so that nobody can write to them, as the guarantee is computed from them once."""
    given = np.asarray(taps)
    if given.dtype.kind not in "iu" or given.ndim != 1 or not 1 <= len(given) <= MAX_TAPS:
        must_be = f"an array of 1 to {MAX_TAPS:,} integers"
        raise ValueError(f"taps must be {must_be}, got dtype {given.dtype} and shape {given.shape}: make it by exact")
    return validation.freeze(np.array(given, dtype=np.int64))
