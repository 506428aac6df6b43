"""Noise other than Gaussian that a mechanism puts on its inputs: on the integers, Laplace, randomised response."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from dpfast._kernels import compiled_mechanisms, compiled_receivers
from dpfast._kernels.randomized_response import TwoLevelResponse
from dpfast._support.safe_rounding import round_up
from dpfast.mechanisms.base import NO_EXACT_DRAW
from dpfast.mechanisms.rounding import rounding_variance, warn_of_rounding
from dpfast.privacy.integer_noise.choice import integer_noise
from dpfast.privacy.integer_noise.law import IntegerNoise
from dpfast.privacy.lattice import Lattice, find_lattice
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.randomized_response import RandomizedResponse
from dpfast.signals.model import Model


class LatticeNoise(NamedTuple):
    """Integer noise on every input, in the units that inputs are multiples of, or are rounded to."""

    law: IntegerNoise
    lattice: Lattice

    @property
    def std(self) -> float:
        """The standard deviation of all that is added to an input, rounding included."""
        return math.sqrt(self.lattice.unit**2 * self.law.variance + self.lattice.rounding_variance)

    def std_on(self, model: Model) -> float:
        """Return `std` on inputs of a model, which rounding may leave as they are; warn where it is far from white."""
        warn_of_rounding(self.lattice, model)
        return math.sqrt(self.lattice.unit**2 * self.law.variance + rounding_variance(self.lattice, model))

    @property
    def delta(self) -> float:
        """The δ that it needs."""
        return self.law.delta

    @property
    def name(self) -> str:
        """Name the noise in words."""
        return f"{self.law.kind} noise"

    @property
    def condition(self) -> str:
        """The sentence on which inputs its guarantee holds for."""
        return self.lattice.condition

    def compile(
        self, centre: float, receiver: compiled_receivers.CompiledReceiver
    ) -> compiled_mechanisms.CompiledLatticeMechanism:
        """Return the compiled form of a mechanism with this noise, which studies run."""
        unit, offset, _, rounds = self.lattice
        block = compiled_mechanisms.CompiledBlock(1, *self.law.tails())
        return compiled_mechanisms.CompiledLatticeMechanism(centre, block, offset, unit, rounds, receiver)


class LaplaceNoise(NamedTuple):
    """Laplace noise on every input: pure ε at the scale Δ₁/ε, whatever the inputs are."""

    scale: float

    @property
    def std(self) -> float:
        """The standard deviation of what is added to an input."""
        return self.scale * math.sqrt(2)

    @property
    def delta(self) -> float:
        """Zero, as it gives pure ε."""
        return 0.0

    @property
    def name(self) -> str:
        """Name the noise in words."""
        return "Laplace noise"

    @property
    def condition(self) -> str:
        """Nothing, as it holds for all inputs."""
        return ""

    def compile(
        self, centre: float, receiver: compiled_receivers.CompiledReceiver
    ) -> compiled_mechanisms.CompiledLaplaceMechanism:
        """Return the compiled form of a mechanism with this noise, which studies run."""
        return compiled_mechanisms.CompiledLaplaceMechanism(centre, self.scale, receiver)


class ResponseNoise(NamedTuple):
    """Randomised response to every input, scaled so that what is published is the input plus white noise."""

    response: RandomizedResponse

    @property
    def std(self) -> float:
        """The standard deviation of what is published about the input."""
        return math.sqrt(self.response.variance)

    @property
    def delta(self) -> float:
        """The δ that it needs."""
        return self.response.delta

    @property
    def name(self) -> str:
        """Name the noise in words."""
        return "randomised response"

    @property
    def condition(self) -> str:
        """Nothing, as it holds for all inputs: each counts as the nearer level."""
        return ""

    @property
    def chance(self) -> str:
        """Say in words what is drawn."""
        certain = f" (shown to be true with probability {self.delta:.3g})" if self.delta else ""
        return (
            f"randomised response: of each input the nearer of two levels is told truly with probability "
            f"{self.response.truth:.6g}{certain}, and else the other one, by a draw that is made anew at every step, "
            "once, and kept secret"
        )

    def compile(
        self, centre: float, receiver: compiled_receivers.CompiledReceiver
    ) -> compiled_mechanisms.CompiledResponseMechanism:
        """Return the compiled form of a mechanism with this noise, which studies run."""
        x = self.response
        size = x.span / (2 * x.shown)
        middle = (x.low + x.high) / 2
        told = TwoLevelResponse(middle, x.delta, x.truth, size, size * x.trust, middle)
        return compiled_mechanisms.CompiledResponseMechanism(centre, told, receiver)


_SAME = 1e-9  # levels that are the same but for rounding
InputLaw = LatticeNoise | LaplaceNoise | ResponseNoise
Kind = Literal["laplace", "geometric", "canonical", "staircase", "randomised response"]


class InputNoise(NamedTuple):
    """The noise that is on inputs: all but the privacy, from which its law follows.

    Attributes
    ----------
    kind : str
    unit : float or None
        The unit whose multiples real inputs are rounded to before noise on the integers; None where they are counts.
    levels : tuple of float or None
        The two levels of randomised response.
    """

    kind: Kind
    unit: float | None = None
    levels: tuple[float, float] | None = None

    def is_white_on(self, model: Model) -> bool:
        """Tell whether it is white noise of one variance on inputs of a model: a response is so on its two levels."""
        if self.levels is None:
            return True
        return model.levels is not None and all(min(abs(x - y) for y in self.levels) <= _SAME for x in model.levels)

    @property
    def is_white_on_all(self) -> bool:
        """Tell whether it is so on any input: not where inputs are rounded, or told apart by two levels."""
        return self.levels is None and self.unit is None

    @property
    def release_hindrance(self) -> str:
        """Say why the exact path cannot draw it, and what to do instead; nothing where it can."""
        if self.kind == "laplace":
            return f'Laplace noise {NO_EXACT_DRAW} with noise="geometric", and a unit for real inputs'
        return f'staircase noise {NO_EXACT_DRAW} with noise="geometric"' if self.kind == "staircase" else ""

    @property
    def exact_kind(self) -> str:
        """Name the kind of the exact form that a release runs."""
        return "input noise" if self.levels is None else "randomised response"

    def law(self, privacy: Privacy) -> InputLaw:
        """Return the law that hides a person's events in the inputs themselves."""
        if self.kind == "laplace":
            return LaplaceNoise(round_up(privacy.max_change * privacy.max_events / privacy.epsilon))
        if self.kind == "randomised response":
            m = privacy.max_events
            assert self.levels is not None  # it has them, by design and in files
            return ResponseNoise(RandomizedResponse(privacy.epsilon / m, privacy.delta / m, *self.levels))
        lattice = find_lattice(privacy, None, self.unit)
        return LatticeNoise(integer_noise(self.kind, privacy, lattice.steps), lattice)
