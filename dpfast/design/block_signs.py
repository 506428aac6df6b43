"""Signs of inputs in block sums: what a target passes at a frequency of its own would cancel in a plain sum."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.polynomial.polynomial import polyval

from dpfast._kernels.factors import Factors
from dpfast._support.validation import Array, Complex
from dpfast.filters.sections import cascade_response

_GRID = 2**15  # frequencies that are looked at first
_ZOOM, _ZOOMS = 64, 4  # then so many between two of them, so many times
_EVERY, _RATIO = 24, 1.08  # lengths up to here are tried one by one, then one in so many per cent
_AT_LEAST = 120  # lengths, and
_PATIENCE, _FARTHER = 60, 1.5  # without a gain behind the best, and times the best, after which the scan ends
_BESIDE = 3  # lengths, or _RATIO, about the best that are tried again with all phases
_PHASES = (np.arange(8) + 0.5) * math.pi / 16
_LONGEST_IN_TURN, _GAIN = 32, 1e-6  # of an error, for which sums are released in turn
_FEW_IN_TURN = [((i + 0.5) * math.pi / 4, (k + 0.5) * math.pi / 4) for i in range(2) for k in range(4)]
_ALL_IN_TURN = [((i + 0.5) * math.pi / 8, (k + 0.5) * math.pi / 8) for i in range(8) for k in range(8)]


def find_carrier(target: Factors, shaping: Factors, horizon: int | None) -> float:
    """Find the frequency, in radians per sample, where a target's output has the most power.

    Over a horizon of n steps the response is that of the target with all its memory damped by e^(-1/n) in a step.
    """
    damping = 0.0 if horizon is None else 1.0 / horizon

    def power(omega: Array) -> Array:
        return np.asarray(_gain(target, np.exp(-damping - 1j * omega)) * _gain(shaping, np.exp(-1j * omega)))

    omega = np.linspace(0.0, math.pi, _GRID + 1)
    for _ in range(_ZOOMS):
        peak, width = omega[np.argmax(power(omega))], omega[1] - omega[0]
        omega = np.linspace(max(0.0, peak - width), min(math.pi, peak + width), 2 * _ZOOM + 1)
    return float(peak)


def _gain(factors: Factors, z: Complex) -> Array:
    ends = polyval(z, factors.taps) / polyval(z, factors.recursion)
    return np.asarray(np.abs(ends * cascade_response(factors.sections, z)) ** 2)


class Signs(NamedTuple):
    """Signs of inputs in the sums of a block, (block, sums), and the steps after its end at which each is released."""

    weights: Array
    offsets: tuple[int, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Tell whether they are one sum of all inputs of a block."""
        return self.weights.shape[1] == 1 and not self.offsets and bool((self.weights == 1).all())


def follow_carrier(carrier: float, phases: tuple[float, float], length: int, late: int = 0) -> Signs:
    """Give each input of a block to the wave of two that is larger then, with its sign.

    Parameters
    ----------
    carrier : float
        The frequency of both waves, in radians per sample.
    phases : tuple of float
        Of each wave where its sum begins.
    length : int
        Of the block.
    late : int
        Steps by which the second sum begins, and ends, later.

    Examples
    --------
    >>> follow_carrier(np.pi / 2, (0.1, 0.1 + np.pi / 2), 4).weights.T.astype(int).tolist()
    [[1, 0, -1, 0], [0, -1, 0, 1]]
    >>> follow_carrier(np.pi, (0.1, 0.1 + np.pi / 2), 4).weights.T.astype(int).tolist()
    [[1, -1, 1, -1]]
    """
    since = (np.arange(length)[:, None] - np.array([0, late])) % length
    waves = np.cos(carrier * since + np.array(phases))
    larger = np.argmax(np.abs(waves), axis=1)
    signs = np.where(np.arange(2) == larger[:, None], np.where(waves < 0, -1.0, 1.0), 0.0)
    used = signs.any(axis=0)
    return Signs(signs[:, used], (0, late) if late and used.all() else ())


def find_signs(mse_of: Callable[[Signs], float], carrier: float, longest: int, length: int | None = None) -> Signs:
    """Find the signs of least error of those that follow a carrier.

    Parameters
    ----------
    mse_of : callable
    carrier : float
        A frequency in radians per sample.
    longest : int
        A block.
    length : int, optional
        Of the blocks; by default the best one.

    Notes
    -----
    Two quadratures that are released together: with one phase all lengths are tried up to 24, then those that grow by
    8 per cent, until 60 further ones gain nothing; then eight phases with the lengths near the best. Two waves of any
    phases that are released in turn, half a block apart: all even lengths up to 32. Single flips behind either gained
    less than .1 per cent.
    """
    search = _SignSearch(mse_of, carrier)
    if length is not None:
        search.together([length], _PHASES)
        search.in_turn([length], _ALL_IN_TURN)
        return search.best()[1]
    n = 1
    while n <= longest and not (n > _AT_LEAST and n >= search.length() + _PATIENCE and n >= _FARTHER * search.length()):
        search.together([n], _PHASES[:1])
        n = n + 1 if n < _EVERY else math.ceil(n * _RATIO)
    beside = max(_BESIDE, round(search.length() * (_RATIO - 1)))
    search.together(range(max(1, search.length() - beside), min(longest, search.length() + beside) + 1), _PHASES)
    short = _SignSearch(mse_of, carrier)
    short.in_turn(range(2, min(longest, _LONGEST_IN_TURN) + 1, 2), _FEW_IN_TURN)
    if short.tried:
        short.in_turn(sorted(short.tried, key=lambda x: short.tried[x][0])[:2], _ALL_IN_TURN)
    together, in_turn = search.best(), short.best() if short.tried else search.best()
    return (in_turn if in_turn[0] < together[0] * (1 - _GAIN) else together)[1]


class _SignSearch:
    """The signs of least error that were tried of each length."""

    def __init__(self, mse_of: Callable[[Signs], float], carrier: float) -> None:
        self.mse_of, self.carrier = mse_of, carrier
        self.tried = dict[int, tuple[float, Signs]]()

    def together(self, lengths: Iterable[int], phases: Array) -> None:
        """Try two quadratures, both released at the end of a block."""
        for n in lengths:
            self._try(n, (follow_carrier(self.carrier, (x, x + math.pi / 2), n) for x in phases))

    def in_turn(self, lengths: Iterable[int], phases: list[tuple[float, float]]) -> None:
        """Try two waves, released half a block apart; of even lengths alone."""
        for n in lengths:
            if n % 2 == 0:
                self._try(n, (follow_carrier(self.carrier, x, n, late=n // 2) for x in phases))

    def _try(self, length: int, signs: Iterable[Signs]) -> None:
        different = {(x.weights.tobytes(), x.offsets): x for x in signs}
        found = [(self.mse_of(x), x) for x in different.values()]
        self.tried[length] = min([*found, *([self.tried[length]] if length in self.tried else [])], key=lambda x: x[0])

    def length(self) -> int:
        """Give the length of least error."""
        return min(self.tried, key=lambda n: self.tried[n][0])

    def best(self) -> tuple[float, Signs]:
        """Give the least error and its signs."""
        return self.tried[self.length()]
