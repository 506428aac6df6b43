"""Receivers: what turns v into an estimate. They see v, and have no argument through which u could reach them."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels import simulation
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.equalizer import Equalizer
from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter

Decision = Literal["sign", "quantizer", "soft"]
DECISIONS: tuple[Decision, ...] = ("sign", "quantizer", "soft")
_CUT = 1e-11
_NO_INFORMATION = 1e-12


class Receiver(Protocol):
    """Post-filter: turns the privatized signal v into an estimate of the target's output."""

    @property
    def lag(self) -> int | None:
        """Samples by which the estimate is late; None for a smoother."""

    def estimate(self, v: Array) -> tuple[Array, Array | None]:
        """Estimate, and decisions if any, from v (streams, time)."""

    def response(self, omega: ArrayLike) -> NDArray[np.complex128] | None:
        """H(ω), None where it is not linear."""

    def filters(self) -> tuple[Filter, ...]:
        """The linear filters inside."""

    def compiled(self) -> simulation.CompiledReceiver:
        """What the Monte Carlo chain runs."""

    def as_linear(self) -> LinearReceiver | Smoother | None:
        """Give the receiver itself where it is linear; None where it decides."""


class CausalReceiver(validation.Frozen, ABC):
    """A receiver that can also run piece by piece.

    Its state is that of its filters and decisions, and, the same for all streams, the samples seen, counted up to the
    lag: before it there are no decisions, and no mean.
    """

    lag: int

    @abstractmethod
    def compiled(self) -> simulation.CompiledLinearReceiver | simulation.CompiledDecisionFeedback:
        """What the Monte Carlo chain runs."""

    def estimate(self, v: Array) -> tuple[Array, Array | None]:
        """Estimate, and decisions if any, from v (streams, time)."""
        return _paths(simulation.estimate(self.compiled(), v, validation.n_threads(None)))

    def continued(self, v: Array, state: Array | None) -> tuple[Array, Array | None, Array]:
        """Estimate, and decisions if any, from the next piece of v, and the state behind it.

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
            For a state that is none of this receiver on these streams.

        Examples
        --------
        >>> receiver = LinearReceiver(Filter([1], [1, -0.5]), Filter([1]), mean=0.25, lag=1)
        >>> y, _, state = receiver.continued(np.array([[1.0, 0.0]]), None)
        >>> y.tolist(), receiver.continued(np.array([[0.0]]), state)[0].tolist()
        ([[1.0, 0.75]], [[0.5]])
        """
        before = np.zeros((len(v), self.n_states)) if state is None else state
        past = self._samples_seen(before, len(v))
        after, n_threads = np.empty_like(before), validation.n_threads(None)
        paths, after[:, :-1] = simulation.continue_chain(self._live_chain, v, before[:, :-1], past, n_threads)
        after[:, -1] = min(past + v.shape[1], self.lag)
        return *_paths(paths), after

    @property
    def n_states(self) -> int:
        """Numbers that the running receiver remembers of a stream."""
        return len(self._live_chain.end) + 1

    def _samples_seen(self, state: Array, n_streams: int) -> int:
        """Up to the lag."""
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

    @functools.cached_property
    def _live_chain(self) -> Chain:
        return simulation.build_live_chain(self.compiled())


def _paths(paths: Array) -> tuple[Array, Array | None]:
    """Estimate, and decisions if any."""
    return paths[0], paths[1] if len(paths) > 1 else None


@dataclass(frozen=True)
class LinearReceiver(CausalReceiver):
    """ŷ_t = (H v)_t + mean · (step response of the target)_{t - lag}."""

    filter: Filter
    target: Filter
    mean: float
    lag: int

    def response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """H(ω)."""
        return self.filter.response(omega)

    def filters(self) -> tuple[Filter, ...]:
        """H alone."""
        return (self.filter,)

    def as_linear(self) -> LinearReceiver:
        """Give the receiver itself, which is linear."""
        return self

    def compiled(self) -> simulation.CompiledLinearReceiver:
        """What the Monte Carlo chain runs."""
        return simulation.CompiledLinearReceiver(self.filter.factors, self.target.factors, self.mean, self.lag)


@dataclass(frozen=True)
class Smoother:
    """Two-sided ŷ = B(1/z) A(z) v + mean · step response of the target: forward through A, then backward through B.

    For batches only. Samples outside of an array count as zero.
    """

    forward: Filter
    backward: Filter
    target: Filter
    mean: float
    lag: None = field(default=None, init=False)

    def estimate(self, v: Array) -> tuple[Array, Array | None]:
        """Estimate from v (streams, time)."""
        return simulation.estimate(self.compiled(), v, validation.n_threads(None))[0], None

    def response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """H(ω) = A(ω) B(ω)*."""
        return np.asarray(self.forward.response(omega) * self.backward.response(omega).conj())

    def filters(self) -> tuple[Filter, ...]:
        """A and B."""
        return self.forward, self.backward

    def as_linear(self) -> Smoother:
        """Give the receiver itself, which is linear."""
        return self

    def compiled(self) -> simulation.CompiledSmoother:
        """What the Monte Carlo chain runs; B is cut where it has decayed to 1e-11."""
        return simulation.CompiledSmoother(
            self.forward.factors,
            self.backward.factors,
            self.target.factors,
            self.mean,
            self.backward.settling_time(_CUT),
        )


@dataclass(frozen=True, eq=False)
class DecisionFeedback(CausalReceiver):
    r"""FIR decision-feedback equaliser in front of the target (Voois 1996; Le Ny 2013, Section V).

    ũ_t = Σ_i forward[i] v_{t-i} + Σ_{j≥1} feedback[j-1] û_{t-j}, û_t = decision(ũ_t) an estimate of u_{t-lag},
    ŷ = F û. All on the centred input. E[ũ | u] = shrinkage · u, and the error around it has the variance
    shrinkage · error_variance.
    """

    forward: Array
    feedback: Array
    levels: Array
    probabilities: Array
    shrinkage: float
    error_variance: float
    decision: Decision
    target: Filter
    mean: float
    lag: int

    def __post_init__(self) -> None:
        for name in ("forward", "feedback", "levels", "probabilities"):
            own = validation.array(name, getattr(self, name), ndim=1)  # a copy, which nobody else can write to
            object.__setattr__(self, name, validation.freeze(own))

    def response(self, omega: ArrayLike) -> None:
        """None: a decision is not linear."""

    def filters(self) -> tuple[Filter, ...]:
        """The forward filter."""
        return (Filter(self.forward),)

    def as_linear(self) -> None:
        """None: a decision is not linear."""

    def compiled(self) -> simulation.CompiledDecisionFeedback:
        """What the Monte Carlo chain runs."""
        centred = self.levels - self.mean
        # without information ũ = 0 whatever u is: the level nearest to the mean
        scale = self.shrinkage if self.shrinkage > _NO_INFORMATION else 1.0
        with np.errstate(divide="ignore"):
            prior = np.log(self.probabilities)
        equalizer = Equalizer(
            forward=self.forward,
            feedback=self.feedback,
            levels=centred,
            thresholds=scale * (centred[1:] + centred[:-1]) / 2,
            slopes=centred / self.error_variance,
            offsets=prior - self.shrinkage * centred**2 / (2 * self.error_variance),
            soft=self.decision == "soft",
            lag=self.lag,
        )
        return simulation.CompiledDecisionFeedback(equalizer, self.target.factors, self.mean)
