"""An equaliser that decides between levels, and the target behind it."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np

from dpfast._kernels import compiled_receivers, simulation
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.equalizer import Equalizer
from dpfast._support import thread_count, validation
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.mechanisms.receivers.base import CausalReceiver
from dpfast.mechanisms.serialization.json_fields import Fields

Decision = Literal["sign", "quantizer", "soft"]
DECISIONS: tuple[Decision, ...] = ("sign", "quantizer", "soft")
_ARRAYS = ("forward", "feedback", "levels", "probabilities")
_NO_INFORMATION = 1e-12
_ROUNDING = 1e-9  # of the sum of probabilities in a file


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
    kind: ClassVar[str] = "decision-feedback"
    assumption: ClassVar[str] = "error-free decisions"

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            own = validation.array(name, getattr(self, name), ndim=1)  # a copy, which nobody else can write to
            object.__setattr__(self, name, validation.freeze(own))

    @property
    def decision_kind(self) -> Decision:
        """The kind of its decisions."""
        return self.decision

    def filters(self) -> tuple[Filter, ...]:
        """Return the forward filter."""
        return (Filter(self.forward),)

    @functools.cached_property
    def _live_chain(self) -> Chain:
        return simulation.build_live_chain(self.compiled())

    @property
    def _n_running(self) -> int:
        return len(self._live_chain.end)

    def _go_on(self, v: Array, states: Array, past: int) -> tuple[Array, Array, Array]:
        """Run the chain of decisions and target on the next piece."""
        n_threads = thread_count.n_threads(None)
        (estimate, decisions), after = simulation.continue_chain(self._live_chain, v, states, past, n_threads)
        return estimate, decisions, after

    def compiled(self) -> compiled_receivers.CompiledDecisionFeedback:
        """Return the compiled form, which studies run."""
        centred = self.levels - self.mean
        # Without information ũ = 0 whatever u is, and the decision is the level nearest to the mean.
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
        return compiled_receivers.CompiledDecisionFeedback(equalizer, self.target.factors, self.mean)

    def scaled(self, gain: float) -> Self:
        """Return a receiver that makes the same decisions from v that is smaller by this factor."""
        return replace(self, forward=self.forward * gain)

    def size_text(self) -> str:
        """Say how many taps it has, forward and back."""
        return f"{len(self.forward)} + {len(self.feedback)} taps"

    def to_fields(self) -> dict[str, Any]:
        """Return all of it but the target as JSON holds it."""
        numbers = ("mean", "shrinkage", "error_variance", "decision", "lag")
        return {x: getattr(self, x).tolist() for x in _ARRAYS} | {x: getattr(self, x) for x in numbers}

    @classmethod
    def from_fields(cls, fields: Fields, target: Filter) -> Self:
        """Take a receiver out of fields that :meth:`to_fields` has made; refuse levels that are no distribution."""
        mean = fields.number("mean")
        levels, probabilities = fields.array("levels"), fields.array("probabilities")
        if len(levels) != len(probabilities) or (np.diff(levels) <= 0).any():
            raise ValueError(f"{fields.path('levels')} must grow, with a probability each")
        if (probabilities < 0).any() or abs(probabilities.sum() - 1) > _ROUNDING:
            raise ValueError(f"{fields.path('probabilities')} must be non-negative and sum to one")
        return cls(
            forward=fields.array("forward"),
            feedback=fields.array("feedback", empty=True),
            levels=levels,
            probabilities=probabilities,
            shrinkage=fields.number("shrinkage"),
            error_variance=fields.number("error_variance", above=0),
            decision=cast("Decision", fields.choice("decision", DECISIONS)),
            target=target,
            mean=mean,
            lag=fields.lag(),
        )
