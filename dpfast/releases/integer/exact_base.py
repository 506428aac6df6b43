"""What streams and batches need of a mechanism in integers, whatever its noise is."""

from __future__ import annotations

import abc
import functools
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpfast._support.errors import ReleaseError
from dpfast._support.validation import Array
from dpfast.design.low_accuracy_warning import warn_of_low_accuracy
from dpfast.mechanisms.block_channels_mechanism import BlockChannelsMechanism
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.mechanisms.serialization.channels_content import block_channels_content, channels_content
from dpfast.mechanisms.serialization.mechanism_file import COMPUTED, mechanism_content
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.provenance import fitted_inputs
from dpfast.releases.guarantee import Guarantee
from dpfast.releases.guarantee_terms import ReleaseTerms
from dpfast.releases.integer.inputs import Inputs, Integers
from dpfast.releases.integer.last_block import no_blocks
from dpfast.releases.integer.releasable import check_releasable
from dpfast.releases.model_check.verdict import Evidence
from dpfast.releases.noise import NoiseLaw
from dpfast.signals.model import Model
from dpfast.signals.output_variance import explained_share, output_variance


class LiveEstimator(Protocol):
    """Estimate from published integers, piece by piece, with a state that can be stored."""

    @property
    def position(self) -> int:
        """Return the number of the next step."""

    def push(self, v: Integers, end: int | None = None) -> Array:
        """Return the next estimates (n_streams, n); from the step `end` on there are no inputs any more."""

    def state(self) -> bytes:
        """Return all that the next push depends on."""

    def restore(self, state: bytes) -> None:
        """Go on from a state that :meth:`state` gave; refuse another one by a ValueError."""


class ExactBase(abc.ABC):
    """Say what a mechanism publishes of integer inputs, with which exact noise, and what it promises.

    Each kind of noise and of what it is added to is a class, which :func:`dpfast.exact` makes.

    Attributes
    ----------
    kind : str
        In configurations; filters with Gaussian noise have none there.
    mixes_streams : bool
        Estimates are of outputs of several streams, which have no labels of one.
    mechanism : Mechanism or BlockMechanism
        The design.
    inputs : Inputs
    tolerance : float
    """

    kind: ClassVar[str]
    mixes_streams: ClassVar[bool] = False
    mechanism: Any
    inputs: Inputs
    tolerance: float

    @classmethod
    @abc.abstractmethod
    def make(cls, mechanism: Any, inputs: Inputs, tolerance: float) -> Self:
        """Make the exact form of a design for such inputs."""

    # --- what runs --------------------------------------------------------------------------------

    @property
    def model(self) -> Model | None:
        """Return the model of the one stream that the design is for; None where there is none."""
        model: Model | None = self.mechanism.model
        return model

    def published_rows(self, n_streams: int) -> int:
        """Count the rows of v of so many streams of inputs."""
        return n_streams

    def noise_rows(self, n_streams: int) -> int:
        """Count the rows of noise, each of as many draws as `n_draws` says: one for each row of v.

        It is one for all of v where its rows are released at steps of their own.
        """
        return self.published_rows(n_streams)

    def estimated_rows(self, n_streams: int) -> int:
        """Count the rows of estimates of so many streams of inputs."""
        return n_streams

    def channel_names(self, groups: Sequence[str]) -> tuple[str, ...]:
        """Name the rows of v of streams that have names."""
        return tuple(groups)

    def output_names(self, groups: Sequence[str]) -> tuple[str, ...]:
        """Name the rows of estimates of streams that have names."""
        return tuple(groups)

    @property
    @abc.abstractmethod
    def laws(self) -> tuple[NoiseLaw, ...]:
        """Return the law of the noise on each of the integers that may be published at a step."""

    @property
    def stream_costs(self) -> tuple[object, ...]:
        """Return what decides the cost of an event in each stream alone, where streams that one person reaches differ.

        Nothing where all streams are the same.
        """
        return ()

    @property
    def drawn_laws(self) -> tuple[NoiseLaw, ...]:
        """Return these laws, each of them once: noise of each is drawn by itself."""
        return tuple(dict.fromkeys(self.laws))

    @property
    def lag(self) -> int | None:
        """Return the samples by which the estimate is late; None for a smoother."""
        lag: int | None = self.mechanism.lag
        return lag

    @property
    def per_step(self) -> int:
        """Count the integers that may be published of a stream at one step."""
        return 1

    @property
    @abc.abstractmethod
    def memory(self) -> int:
        """Count the most past inputs that what is published at a step depends on."""

    def needed(self, position: int) -> int:
        """Return how many of the inputs before a step are needed for what is published from it on."""
        return min(position, self.memory)

    def n_draws(self, position: int, n: int, end: int | None = None) -> tuple[int, ...]:
        """Count the draws of each law for n steps of a stream from a position on; no inputs come from `end` on."""
        return (n,)

    def released(self, first: int, n: int, end: int | None = None) -> NDArray[np.bool_]:
        """Tell at which of n steps an integer is published: (n,) or, with several at a step, (per_step, n).

        Where rows of v are released at steps of their own, it is (rows, n).

        Of a stream that is over, `end` is the number of steps with inputs. It is public, and fixed before any data.
        """
        return np.ones(n, np.bool_)

    @abc.abstractmethod
    def privatize(
        self, history: Integers, x: Integers, noise: Integers, position: int = 0, end: int | None = None
    ) -> Integers:
        """Return v of integers: the only function that sees them.

        Parameters
        ----------
        history : array of int64, (streams, at most memory)
            The inputs just before, oldest first; what is missing is zero.
        x : array of int64, (streams, n)
        noise : array of int64, (noise rows, draws)
            As many draws of each law as `n_draws` says, law by law.
        position : int
            Of the first step of x.
        end : int, optional
            From that step on x are declared zeros, which flush the receiver.

        Returns
        -------
        array of int64, (streams, n), or (streams, per_step, n) where that is more than one
            0 where nothing is published.
        """

    def shaped(self, v: Integers) -> Integers:
        """Return v that a store holds in its shape, also where it has no steps."""
        return v if self.per_step == 1 else v.reshape(len(v), self.per_step, -1)

    @abc.abstractmethod
    def live(self, n_streams: int | None = None) -> LiveEstimator:
        """Return the receiver as it is at the beginning of a stream, for all streams or for so many.

        Raises
        ------
        ReleaseError
            For a smoother.
        """

    @abc.abstractmethod
    def estimate(self, privatized: Integers, end: int | None = None) -> Array:
        """Return all estimates from all of v, at t that of t - lag; from the step `end` on there were no inputs."""

    def check_steps(self, end: int, *, whole: bool = False) -> None:
        """Refuse inputs beyond a horizon, and a whole signal that does not fill it."""
        horizon = self.mechanism.horizon
        if horizon is not None and (end > horizon or (whole and end < horizon)):
            raise ValueError(
                f"the mechanism is made for {horizon} steps, got {'a signal of' if whole else 'steps up to'} {end}: "
                "design it for as many as there are"
            )

    @property
    def n_steps(self) -> int | None:
        """Return the declared steps of the stream, where blocks that the last one leaves unfinished are published."""
        return None

    @property
    def fixed_steps(self) -> int | None:
        """Return how many steps every signal has, where that is fixed: by a horizon, or for the last block."""
        horizon: int | None = self.mechanism.horizon
        return self.n_steps or horizon

    def ending_after(self, n_steps: int) -> ExactBase:
        """Return the same with blocks that the last of so many steps leaves unfinished published there."""
        raise no_blocks(self.mechanism, "publish")

    # --- what it promises -------------------------------------------------------------------------

    @property
    @abc.abstractmethod
    def predicted_mse(self) -> float | None:
        """Return the exact error, as that of the mechanism; None where only simulation tells."""

    @property
    def predicted_rmse_if_model_holds(self) -> float | None:
        """Return the root of `predicted_mse`: what estimates err by if the data follow the model of the design."""
        return None if self.predicted_mse is None else math.sqrt(self.predicted_mse)

    @property
    def output_rmse_if_model_holds(self) -> tuple[float, ...] | None:
        """Return that of each output, where estimates are of outputs of several streams; None where each is of one."""
        return None

    @property
    def explained_if_model_holds(self) -> float | None:
        """Return the part of the variance of the true output that the estimates explain, both under the model."""
        return explained_share(self.predicted_mse, self._true_variance)

    @property
    def constant_rmse_if_model_holds(self) -> float | None:
        """Return what publishing the mean of the true output alone would err by under the model."""
        return None if self._true_variance is None else math.sqrt(self._true_variance)

    @functools.cached_property
    def _true_variance(self) -> float | None:
        """The variance of the true output under the model; None without one."""
        return None if self.model is None else output_variance(self.mechanism.target, self.model)

    def warn_if_inaccurate(self) -> None:
        """Warn where it explains less than half of the variance of the true output, and say what would help."""
        design = self.mechanism
        warn_of_low_accuracy(design.name, design.target, design.privacy, self.model, self.lag, self.predicted_mse)

    @abc.abstractmethod
    def terms(self, privacy: Privacy, inputs: Inputs) -> ReleaseTerms:
        """Say what it costs a person of some bounds, and what a guarantee says of it."""

    @functools.cached_property
    def guarantee(self) -> Guarantee:
        """State the guarantee of a release of this mechanism alone."""
        privacy, inputs = self.mechanism.privacy, self.inputs
        return Guarantee.of(privacy, inputs, self.terms(privacy, inputs))

    @abc.abstractmethod
    def evidence(self, privatized: Integers, end: int) -> Evidence:
        """Return what v from its first step on tells of the model and of the error; from `end` on were no inputs."""

    # --- as JSON holds it -------------------------------------------------------------------------

    @property
    def demand(self) -> dict[str, Any]:
        """Return the demand: all that decides the rest, but for the rounding of a machine."""
        return demand_content(self.mechanism, self.inputs, self.tolerance)

    @property
    @abc.abstractmethod
    def configuration(self) -> dict[str, Any]:
        """Return the whole mechanism, as JSON holds it."""

    @classmethod
    @abc.abstractmethod
    def from_configuration(cls, given: Mapping[str, Any]) -> Self:
        """Make the same mechanism to the last bit, though another machine would have designed another."""

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the configuration."""
        text = json.dumps(self.configuration, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def error_text(self) -> str:
        """Write the error that is predicted, or a dash."""
        return "-" if self.predicted_rmse_if_model_holds is None else f"{self.predicted_rmse_if_model_holds:.6g}"

    @property
    def lag_text(self) -> str:
        """Say the lag in words."""
        return "smoother (batch only)" if self.lag is None else str(self.lag)


def demand_content(mechanism: Any, inputs: Inputs, tolerance: float) -> dict[str, Any]:
    """Return what :attr:`ExactBase.demand` says."""
    if isinstance(mechanism, ChannelsMechanism):
        design = channels_content(mechanism)
    elif isinstance(mechanism, BlockChannelsMechanism):
        design = block_channels_content(mechanism, _demanded_content)
    else:
        design = _demanded_content(mechanism)
    return {"mechanism": design, "inputs": inputs.public(), "tolerance": tolerance}


def _demanded_content(mechanism: AnyMechanism) -> dict[str, Any]:
    """Return a design of one stream without what is computed anew when it is read."""
    return {name: value for name, value in mechanism_content(mechanism).items() if name not in COMPUTED}


def check_mechanism(mechanism: Any) -> None:
    """Refuse designs that depend on private data, and those that have no exact form."""
    if private := fitted_inputs(check_releasable(mechanism).sources):
        raise ReleaseError(
            f"mechanism must not depend on private data, got a design whose {', '.join(private)} "
            f"{'is' if len(private) == 1 else 'are'} fitted from private data: the guarantee would not hold; design "
            "from public data or assumptions"
        )
