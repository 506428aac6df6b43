"""The interface of all laws of integer noise: variance, probabilities, and the guarantee for a change."""

from __future__ import annotations

import abc
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._support import validation
from dpfast._support.validation import Array

IntegerKind = Literal["geometric", "canonical", "staircase"]
Integers = NDArray[np.int64]
_SEEN = 2.0**-33  # a probability that 32 random bits show
_MOST_TAILS = 2**16
SMALLEST_RATE = 1e-12  # of tails from one integer to the next: its noise stays below 2**53


class IntegerNoise(validation.Frozen, abc.ABC):
    """A symmetric law on the integers, of noise that hides a change of the input by a few steps.

    Attributes
    ----------
    kind : str
        Its name in arguments, grids and files.
    epsilon, delta : float
        What it guarantees for a change of at most `steps`.
    steps : int
        The largest change that it was made for, in units.
    """

    kind: ClassVar[IntegerKind]
    epsilon: float
    delta: float
    steps: int

    @property
    def largest(self) -> int | None:
        """The largest |n| that can be drawn; None where there is none."""
        return None

    @property
    def period(self) -> int:
        """The integers after which its tails are the same but for a factor, where they have no end."""
        return 1

    @property
    @abc.abstractmethod
    def variance(self) -> float:
        """The variance of one draw, in squared steps."""

    @abc.abstractmethod
    def log_probability(self, n: ArrayLike) -> Array:
        """Return ln P(N = n) of integers, minus infinity outside of the support."""

    @abc.abstractmethod
    def tail(self, n: ArrayLike) -> Array:
        """Return P(N ≥ n) of integers n ≥ 1."""

    @abc.abstractmethod
    def guarantee(self, change: int) -> tuple[float, float]:
        """Return an (ε, δ) that one draw guarantees where the input changes by so many steps.

        Parameters
        ----------
        change : int
            At least 0; may be more than `steps`.
        """

    @abc.abstractmethod
    def magnitude(self, uniform: Array) -> Array:
        """Return |N| as whole floats, from uniform numbers in (0, 1]: the largest k with ``uniform <= 2 P(N >= k)``."""

    def tails(self) -> tuple[Array, float]:
        """Return P(N ≥ 1), P(N ≥ 2), ..., all later ones that 32 random bits show, and 1: what studies draw from.

        Of a law with more than 65,536 of them, g neighbours each, an odd number, are drawn as the one in their middle:
        P(N ≥ (g + 1)/2), P(N ≥ (g + 1)/2 + g), ..., and g. Less than 1e-8 of the variance goes by.
        """
        largest, more = 0, 1 << 61
        while more:  # the largest integer that is seen
            if self.tail(np.array([largest + more]))[0] > _SEEN:
                largest += more
            more >>= 1
        largest = max(1, largest)
        group = -(-largest // _MOST_TAILS) | 1
        return self.tail(np.arange((group + 1) // 2, largest + 1, group)), float(group)

    def sample(self, shape: Any, *, seed: Any) -> Integers:
        """Draw noise in floating point: for studies, never for publication.

        Parameters
        ----------
        shape : int or tuple of int
        seed : int or numpy.random.Generator

        Returns
        -------
        array of int64
        """
        generator = np.random.default_rng(seed)
        size = 1.0 - generator.random(shape)
        sign = np.where(generator.random(shape) < 0.5, -1.0, 1.0)
        return (sign * self.magnitude(size)).astype(np.int64)


def check_rate(epsilon: float, steps: int) -> None:
    """Check that the noise is not too large for numbers that are whole in floating point."""
    rate = validation.number("epsilon", epsilon, above=0) / steps
    if rate < SMALLEST_RATE:
        raise ValueError(
            f"epsilon must be at least {SMALLEST_RATE:g} for each unit that max_change and max_events "
            f"make, got {epsilon:g} over {steps:,}: take a larger epsilon, or a coarser unit"
        )


def whole(name: str, n: ArrayLike) -> Integers:
    """Take an array of integers; refuse anything else."""
    values = np.asarray(n)
    if values.dtype.kind not in "iu":
        raise validation.fail(name, "integers", n)
    return values.astype(np.int64)
