"""At which times events, one at each input, change most what prefilters put out, from G*G at the nodes of a circle."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator

import numpy as np
from scipy import signal

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.event_atoms import EventAtoms
from dpfast.filters.warped_circle import WarpedCircle
from dpfast.privacy.placed_events import place_three

_DECAYED = 0.25  # of the time over which the steps of a circle see a mode decay: there it is below a thousandth
_MOST_TIMES, _MOST_HARMONICS = 1024, 1024
_MOST_SIGNED = 6  # inputs of which all signs and triples are begun with
_MOST_AT_ONCE = 8  # of events that are found
_SAME = 1e-12  # relative: no gain

IntArray = np.typing.NDArray[np.int64]


def placed_products(circle: WarpedCircle, gram: Complex) -> Array:
    """Return R_ij(τ) = <(G*G)_ij e^{iωτ}> at times from -T to T, (m, m, 2T + 1), T where nothing is left to meet."""
    powers = _delays(circle.warp, circle.size)
    density = np.abs(circle.unit)[:, None, None] ** 2
    h = np.fft.irfft(gram * density, axis=0)
    n = powers.shape[1]
    later, earlier = (np.tensordot(powers, x, axes=1) for x in (h[:n], np.concatenate([h[:1], h[:-n:-1]])))
    return np.moveaxis(np.concatenate([earlier[:0:-1], later]), 0, -1)


def worst_events(products: Array, changes: Array, least: float, close: float) -> EventAtoms:
    """Return events whose squared change is more than the least and, if there are any, those that come close to it.

    First are those that change most. One input after the other is placed where it changes most, from events at one time
    and from two inputs that change most; and if that finds nothing, from three. Those are found, too, from which one
    input has been moved.
    """
    reach = products.shape[2] // 2
    weighted = np.outer(changes, changes)[:, :, None] * products
    energy = float(np.trace(weighted[:, :, reach]))
    weighted[range(len(changes)), range(len(changes))] = 0.0
    search = _PlacedSearch(weighted)
    found: dict[tuple[float, ...], float] = {}
    for starts in (_start_with_few, _start_with_three):
        for signs, times in starts(weighted):
            search.climb(signs, times)
            for gained, placed, when in search.around(signs, times, least - energy, close - energy):
                found[(*(placed * placed[0]), *(when - when.min()))] = gained
        if max(found.values(), default=-math.inf) > least - energy:
            break
        found.clear()
    largest = sorted(found, key=lambda x: -found[x])[:_MOST_AT_ONCE]
    rows = np.reshape(largest, (-1, 2, len(changes)))
    return EventAtoms(rows[:, 0] * changes, rows[:, 1].astype(np.int64))


def _start_with_few(weighted: Array) -> Iterator[tuple[Array, IntArray]]:
    """Yield events at one time, and those of which two inputs change most."""
    m, reach = len(weighted), weighted.shape[2] // 2
    for later in itertools.product((1.0, -1.0), repeat=min(m, _MOST_SIGNED) - 1):
        yield np.array((1.0, *later, *np.ones(m - 1 - len(later)))), np.zeros(m, np.int64)
    for i, j in itertools.combinations(range(m), 2):
        times = np.zeros(m, np.int64)
        times[i] = np.abs(weighted[i, j]).argmax() - reach
        yield np.ones(m), times


def _start_with_three(weighted: Array) -> Iterator[tuple[Array, IntArray]]:
    """Yield events of which three inputs change most."""
    m = len(weighted)
    for i, j, k in itertools.combinations(range(min(m, _MOST_SIGNED)), 3):
        _, (a, b), _ = place_three(weighted[i, j], weighted[i, k], weighted[j, k])
        when = np.array([0, -a, -b])
        for later in itertools.product((1.0, -1.0), repeat=2):
            signs, times = np.ones(m), np.zeros(m, np.int64)
            signs[[i, j, k]], times[[i, j, k]] = (1.0, *later), when - (when.min() + when.max()) // 2
            yield signs, times


class _PlacedSearch:
    """Σ_{i≠j} s_i s_j R_ij(t_i - t_j) of products (m, m, 2T + 1) at times from -T to T."""

    def __init__(self, products: Array) -> None:
        self._reach = products.shape[2] // 2
        self._products = np.pad(products, ((0, 0), (0, 0), (self._reach, self._reach)))

    def climb(self, signs: Array, times: IntArray) -> None:
        """Place one input after the other at its best time, with its best sign, until none gains."""
        best = -math.inf
        while True:
            for j in range(len(signs)):
                pulled = self._pull(signs, times, j)
                place = int(np.abs(pulled).argmax())
                signs[j], times[j] = _sign(pulled[place]), place - self._reach
            gained = self._sum(signs, times)
            if gained <= best + _SAME * abs(best):
                return
            best = gained

    def around(
        self, signs: Array, times: IntArray, least: float, close: float
    ) -> Iterator[tuple[float, Array, IntArray]]:
        """Yield sums with signs and times, each input in turn moved to peaks above what is close to the least.

        The farthest above the least is one of them, as what decays has one peak.
        """
        whole = self._sum(signs, times)
        for j in range(len(signs)):
            pulled = self._pull(signs, times, j)
            rest = whole - 2 * float(signs[j] * pulled[times[j] + self._reach])
            sums = rest + 2 * np.abs(pulled)
            edged = np.pad(sums, 1, constant_values=-math.inf)
            moved_to = (sums > close) & (sums > edged[:-2]) & (sums >= edged[2:])
            if (moved_to & (sums > least)).any():
                moved_to[np.flatnonzero(sums > least)[[0, -1]]] = True
            for place in np.flatnonzero(moved_to):
                moved, when = signs.copy(), times.copy()
                moved[j], when[j] = _sign(pulled[place]), place - self._reach
                yield float(sums[place]), moved, when

    def _pull(self, signs: Array, times: IntArray, j: int) -> Array:
        """Return what an event of + at input j would add, at all times."""
        n = self._reach
        others = (signs[i] * self._products[i, j, times[i] + n : times[i] + 3 * n + 1] for i in range(len(signs)))
        return np.asarray(sum(others)[::-1])

    def _sum(self, signs: Array, times: IntArray) -> float:
        return sum(float(signs[j] * self._pull(signs, times, j)[times[j] + self._reach]) for j in range(len(signs)))


def _sign(value: float) -> float:
    return 1.0 if value >= 0 else -1.0


@functools.lru_cache(maxsize=8)
def _delays(warp: float, size: int) -> Array:
    """Return z^{-τ} as powers of the warped delay, (times, harmonics)."""
    n = min(size // 2, _MOST_HARMONICS)
    reach = min(_MOST_TIMES, max(1, round(_DECAYED * size * (1 + abs(warp)) / (1 - abs(warp)))))
    powers = np.zeros((reach + 1, n))
    powers[0, 0] = 1.0
    for t in range(reach):
        powers[t + 1] = signal.lfilter([warp, 1.0], [1.0, warp], powers[t])
    return powers
