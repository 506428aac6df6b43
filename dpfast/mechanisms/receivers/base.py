"""What every receiver answers for itself. Receivers see v, and have no argument through which u could reach them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import compiled_receivers, simulation
from dpfast._support import thread_count, validation
from dpfast._support.validation import Array, Complex
from dpfast.filters.fft_grid import fft_angles
from dpfast.filters.filter import Filter
from dpfast.mechanisms.serialization.json_fields import Fields
from dpfast.mechanisms.steady_error import Errors, linear_errors, worst_errors
from dpfast.mechanisms.transient_error import CausalForm, step_errors
from dpfast.signals.model import Model


class Receiver(validation.Frozen, ABC):
    """A post-filter, which turns the privatized signal v into an estimate of the target's output.

    Mechanisms, designs, studies, releases and files ask a receiver what is below; users ask its mechanism.

    Attributes
    ----------
    kind : str
        Its name in files, which a renamed class keeps.
    target : Filter
    mean : float
        That it takes u to have.
    lag : int or None
        Samples by which the estimate is late; None for a smoother.
    assumption : str
        What the ideal error of its mechanisms assumes, empty for nothing.
    """

    kind: ClassVar[str]
    assumption: ClassVar[str] = ""
    target: Filter
    mean: float
    lag: int | None

    # --- what runs --------------------------------------------------------------------------------

    @abstractmethod
    def estimate(self, v: Array) -> tuple[Array, Array | None]:
        """Return the estimate, and decisions if any, from v (streams, time)."""

    @abstractmethod
    def compiled(self) -> compiled_receivers.CompiledReceiver:
        """Return the compiled form, which studies run."""

    @abstractmethod
    def filters(self) -> tuple[Filter, ...]:
        """Return the linear filters inside."""

    @abstractmethod
    def scaled(self, gain: float) -> Self:
        """Return a receiver that makes the same estimates from v that is smaller by this factor."""

    @abstractmethod
    def size_text(self) -> str:
        """Say how large it is, in words."""

    @property
    def decision_kind(self) -> str | None:
        """The kind of its decisions; None where it makes none."""
        return None

    def as_linear(self) -> LinearMap | None:
        """Return the receiver itself where it is linear, and None where it is not."""
        return None

    def as_causal(self) -> CausalReceiver | None:
        """Return the receiver itself where it runs piece by piece, and None where it needs all of v."""
        return None

    # --- errors, each None where only simulation tells --------------------------------------------

    def response(self, omega: ArrayLike) -> NDArray[np.complex128] | None:
        """Return the frequency response H(ω) of the receiver."""
        return None

    def predicted_errors(self, target: Filter, prefilter: Filter, noise_std: float, model: Model) -> Errors | None:
        """Return the stationary errors behind a prefilter and noise, on a model."""
        return None

    def worst_errors(self, target: Filter, prefilter: Filter, noise_std: float, mean_square: float) -> Errors | None:
        """Return the stationary errors on the worst input of a mean square about the mean."""
        return None

    def step_errors(
        self, target: Filter, prefilter: Filter, noise_std: float, model: Model | None, n: int
    ) -> Array | None:
        """Return the mean squared errors of the first n steps; those of the noise alone without a model."""
        return None

    # --- files ------------------------------------------------------------------------------------

    @abstractmethod
    def to_fields(self) -> dict[str, Any]:
        """Return all of it but the target as JSON holds it, in the order of files, without the kind."""

    @classmethod
    @abstractmethod
    def from_fields(cls, fields: Fields, target: Filter) -> Self:
        """Take a receiver out of fields that :meth:`to_fields` has made."""


class LinearMap(Receiver):
    """A receiver that is linear but for the mean, so that its response tells its errors."""

    def as_linear(self) -> Self:
        """Return the receiver itself."""
        return self

    @abstractmethod
    def response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """Return the frequency response H(ω) of the receiver."""

    def response_on_circle(self, n: int) -> Complex:
        """Return H at the n/2 + 1 angles of an FFT of length n."""
        return self.response(fft_angles(n))

    @abstractmethod
    def causal_form(self) -> CausalForm:
        """Return the receiver as a filter and taps that run late enough to be causal."""

    def predicted_errors(self, target: Filter, prefilter: Filter, noise_std: float, model: Model) -> Errors:
        """Return the stationary errors behind a prefilter and noise, on a model; the bias of the mean distorts."""
        gain = target.response(0.0) - self.response(0.0) * prefilter.response(0.0)
        bias = (model.mean - self.mean) * float(gain.real)
        errors = linear_errors(target, model, prefilter, noise_std, self)
        return errors._replace(distortion=errors.distortion + bias**2)

    def worst_errors(self, target: Filter, prefilter: Filter, noise_std: float, mean_square: float) -> Errors:
        """Return the stationary errors on the worst input of a mean square about the mean."""
        return worst_errors(target, mean_square, prefilter, noise_std, self)

    def step_errors(self, target: Filter, prefilter: Filter, noise_std: float, model: Model | None, n: int) -> Array:
        """Return the mean squared errors of the first n steps; those of the noise alone without a model."""
        return step_errors(target, prefilter, noise_std, self, model, n)


class CausalReceiver(Receiver):
    """A receiver that also runs piece by piece.

    Its state is that of its filters and decisions, and, the same for all streams, the samples seen, counted up to the
    lag: before it there are no decisions, and no mean.
    """

    lag: int

    @abstractmethod
    def compiled(self) -> compiled_receivers.CompiledLinearReceiver | compiled_receivers.CompiledDecisionFeedback:
        """Return the compiled form, which studies run."""

    def as_causal(self) -> Self:
        """Return the receiver itself."""
        return self

    def estimate(self, v: Array) -> tuple[Array, Array | None]:
        """Return the estimate, and decisions if any, from v (streams, time)."""
        return split_paths(simulation.estimate(self.compiled(), v, thread_count.n_threads(None)))

    def continued(self, v: Array, state: Array | None) -> tuple[Array, Array | None, Array]:
        """Return the estimate, and decisions if any, of the next piece of v, and the state behind it.

        Parameters
        ----------
        v : array, (streams, time)
            As many samples as there are, or none.
        state : array, (streams, n_states), or None
            As the call before gave it; None at the start of the streams.

        Returns
        -------
        estimate : array, (streams, time)
            With the bits of :meth:`estimate` on the whole, however it is cut.
        decisions : array, (streams, time), or None
        state : array, (streams, n_states)

        Raises
        ------
        ValueError
            For v that is not finite, or too large, and for a state that is none of this receiver on these streams.

        Examples
        --------
        >>> from dpfast.mechanisms.receivers.linear import LinearReceiver
        >>> receiver = LinearReceiver(Filter([1], [1, -0.5]), Filter([1]), mean=0.25, lag=1)
        >>> y, _, state = receiver.continued(np.array([[1.0, 0.0]]), None)
        >>> y.tolist(), receiver.continued(np.array([[0.0]]), state)[0].tolist()
        ([[1.0, 0.75]], [[0.5]])
        """
        validation.check_size("v", v)
        before = np.zeros((len(v), self.n_states)) if state is None else state
        past = self._samples_seen(before, len(v))
        estimate, decisions, states = self._go_on(v, before[:, :-1], past)
        seen = np.full((len(v), 1), min(past + v.shape[1], self.lag), np.float64)
        return estimate, decisions, np.concatenate([states, seen], axis=1)

    @abstractmethod
    def _go_on(self, v: Array, states: Array, past: int) -> tuple[Array, Array | None, Array]:
        """Return estimate, decisions if any, and states at the end of a piece, from states behind `past` samples."""

    @property
    def n_states(self) -> int:
        """The count of numbers that the running receiver remembers of a stream."""
        return self._n_running + 1

    @property
    @abstractmethod
    def _n_running(self) -> int:
        """The count of states of its filters and decisions."""

    @property
    def own_states(self) -> slice:
        """The places of those numbers of a state that differ between streams; the others are the same for all."""
        return slice(self._n_of_mean, -1)

    @property
    def _n_of_mean(self) -> int:
        """The count of states that only the mean passes, which are the first."""
        return 0

    def _samples_seen(self, state: Array, n_streams: int) -> int:
        """Return how many samples a state has seen, up to the lag; refuse what is no state."""
        shape = (n_streams, self.n_states)
        if state.shape != shape:
            raise ValueError(f"state must have the shape {shape} (streams, n_states), got {state.shape}")
        seen = state[:, -1]
        if n_streams == 0:
            return 0
        if not (0 <= seen[0] <= self.lag and seen[0].is_integer() and (seen == seen[0]).all()):
            raise ValueError(
                "state must be what the call before gave: its last column is the number of samples that were seen, at "
                f"most {self.lag}, the same for all streams"
            )
        return int(seen[0])


def split_paths(paths: Array) -> tuple[Array, Array | None]:
    """Tell the estimate from the decisions, if there are any."""
    return paths[0], paths[1] if len(paths) > 1 else None
