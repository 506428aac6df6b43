"""The operator that everybody writes first: noise that is drawn where values pass, and drawn again on replay."""

from typing import Any, NamedTuple

from helpers import delivered

from dpfast.releases.noise import NoiseOfLaws


class Noisy(NamedTuple):
    first: int
    privatized: Any


class NaiveOperator:
    """Adds exact noise of the right law to what the filter makes of each piece. It remembers nothing."""

    position = 0

    def __init__(self):
        self._noise = NoiseOfLaws.of(delivered.plan().drawn_laws)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def push(self, chunk, *, first):
        plan = delivered.plan()
        x, needed = plan.inputs.integers(chunk), plan.needed(first)
        draws = plan.n_draws(first, x.shape[1])
        self._noise.ready(len(x), draws)
        noise = self._noise.take(len(x), draws)
        return Noisy(first, plan.privatize(delivered.integers(first - needed, needed), x, noise, position=first))
