"""What the simulation runs of a matrix mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpfast._kernels import compiled_mechanisms, signal_sources, simulation, threads
from dpfast._support.validation import Array
from dpfast.filters.toeplitz import convolve_series
from dpfast.mechanisms.operators.operator_protocol import Operator

GROUP = 8  # streams that are computed at once, whatever the threads: how a product sums may depend on its size


class CompiledMatrixMechanism(NamedTuple):
    """A matrix mechanism as a study runs it, beside compiled mechanisms of filters."""

    target: Array
    centre: float
    strategy: Operator
    noise: str | compiled_mechanisms.CompiledBlock  # a law on the integers is its table
    scale: float
    reconstruction: Operator
    rounding: float = 0.0  # the unit that inputs are rounded to

    @property
    def horizon(self) -> int:
        """The steps that it runs."""
        return len(self.target)

    def as_chain(self) -> None:
        """Return None, as it is no chain of filters."""

    def as_matrices(self) -> CompiledMatrixMechanism:
        """Return the mechanism itself, as it is one of matrices."""
        return self

    @property
    def noise_steps(self) -> compiled_mechanisms.NoiseSteps | None:
        """Tell how often noise on the integers is not zero, and how large it is then; None of other noise."""
        return self.noise.steps(self.scale) if isinstance(self.noise, tuple) else None

    @property
    def noise_std(self) -> float:
        """The standard deviation of a component of the noise, of rounding too."""
        if isinstance(self.noise, tuple):
            odd = 2 * np.arange(len(self.noise.tails)) + 1
            steps = 2 * float(odd @ self.noise.tails) * self.noise.step**2
            return math.sqrt(self.scale**2 * steps + self.rounding**2 / 12)
        return self.scale * (math.sqrt(2) if self.noise == "laplace" else 1.0)

    def run(self, u: Array, seed: int, first: int) -> tuple[Array, Array]:
        """Simulate v and the estimates of the streams first, first + 1, ... of a group."""
        if self.rounding:
            u = self.rounding * np.rint(u / self.rounding)
        v = self.strategy.apply(u - self.centre) + self.scale * self._unit_noise(seed, first, len(u))
        estimate = self.reconstruction.apply(v)
        return v, estimate if self.centre == 0.0 else estimate + self.centre * np.cumsum(self.target)

    def _unit_noise(self, seed: int, first: int, count: int) -> Array:
        """Draw normals, those of all mechanisms; Laplace noise, a normal by the length of two more; or integers."""
        n = self.strategy.shape[0]
        if isinstance(self.noise, tuple):
            return simulation.draw_integers(self.noise, seed, first, count, n)
        if self.noise == "gaussian":
            return simulation.draw_unit_noise(seed, first, count, n)
        x, y, z = simulation.draw_unit_noise(seed, first, count, 3 * n).reshape(count, n, 3).transpose(2, 0, 1)
        return np.hypot(x, y) * z


def squared_errors(
    source: signal_sources.SignalSource,
    mechanisms: tuple[CompiledMatrixMechanism, ...],
    n_streams: int,
    seed: int,
    n_threads: int,
    advance: Callable[[int], None] | None = None,
    first: int = 0,
) -> Array:
    """Simulate the mean squared errors (streams, mechanisms) over the horizon, of streams from the first on."""
    n = len(mechanisms[0].target)
    n_groups = -(-n_streams // GROUP)
    errors = np.empty((n_groups * GROUP, len(mechanisms)))

    def some(start: int, count: int, check: Callable[[], None]) -> None:
        for group in range(start, start + count):
            check()
            here, u = group * GROUP, np.empty((GROUP, n))
            simulation.sample(source, seed, u, 1, first + here)
            for i, mechanism in enumerate(mechanisms):
                error = mechanism.run(u, seed, first + here)[1] - convolve_series(mechanism.target, u)
                errors[here : here + GROUP, i] = np.einsum("ij,ij->i", error, error) / n
            if advance is not None:
                advance(min(GROUP, n_streams - here) * n * len(mechanisms))

    threads.for_ranges(some, n_groups, 1, n_threads)
    return errors[:n_streams]
