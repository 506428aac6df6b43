"""Feedback of outputs: the FIR decision-feedback equaliser (Voois 1996), and recursions of many poles.

    y[t] = rule(sum_k forward[k] x[t - k] + sum_{j > 0} feedback[j] y[t - j])

A rule is a NamedTuple with a method ``decide``: Numba compiles the loop once for each type of rule.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import part
from dpfast._kernels.fir_and_sections import Taps, convolve, input_tile
from dpfast._kernels.simd import Row, fma, load, repeat, store, traced
from dpfast._kernels.tiles import ROWS, Rows

Array = NDArray[Any]


class Equalizer(NamedTuple):
    """An equaliser û_t = decision(Σ forward[i] v[t - i] + Σ feedback[j] û[t - 1 - j]), which estimates u[t - lag].

    Hard decisions take levels[j] where `thresholds` (between neighbours) say so; soft ones the mean of the levels
    with weights exp(offsets + slopes · ũ).
    """

    forward: NDArray[np.float64]
    feedback: NDArray[np.float64]
    levels: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    slopes: NDArray[np.float64]
    offsets: NDArray[np.float64]
    soft: bool
    lag: int


def pad_feedback_taps(taps: Array) -> Array:
    """Pad taps with zeros to those that fall into a tile."""
    return np.concatenate([taps, np.zeros(max(0, ROWS - 1 - len(taps)))])


# --- rules ----------------------------------------------------------------------------------------
# Their numbers begin at c[at]: levels first.


class Nearest(NamedTuple):
    """The rule that takes one of sorted levels, by the thresholds between them.

    Without levels it takes the value itself: a linear recursion.
    """

    c: Array
    at: int
    n_levels: int

    def decide(self, value: Row) -> Row:
        """Take the level in whose interval the value lies."""

        def lowest(_: Any, value: Row) -> tuple[Row]:
            return (np.full_like(value, self.c[self.at]),)

        def climb(j: Any, nearest: Row) -> tuple[Row]:
            level, threshold = self.c[self.at + j + 1], self.c[self.at + self.n_levels + j]
            return (np.where(value > threshold, np.full_like(value, level), nearest),)

        return repeat(self.n_levels - 1, climb, *repeat(self.n_levels > 0, lowest, value))[0]


class Soft(NamedTuple):
    """The rule that takes the mean of the levels with weights exp(offsets + slopes · value); slopes, then offsets."""

    c: Array
    at: int
    n_levels: int

    def decide(self, value: Row) -> Row:
        """Take the mean, of two levels with one exponential."""
        is_pair = self.n_levels < 3
        return repeat(is_pair, self.mean_of_pair, *repeat(self.n_levels > 2, self.mean_of_many, value))[0]

    def mean_of_pair(self, _: Any, value: Row) -> tuple[Row]:
        """Return (low + high r) / (1 + r), r the ratio of the weights."""
        low, high, *terms = (self.c[self.at + j] for j in range(6))
        slope, offset = terms[1] - terms[0], terms[3] - terms[2]
        largest = -_EXP[value.dtype.itemsize][4] / 2  # beyond, the lower level counts for nothing
        ratio = exp(np.fmin(fma(slope, value, np.full_like(value, offset)), largest))
        return (fma(ratio, high, np.full_like(value, low)) / (ratio + 1),)

    def mean_of_many(self, _: Any, value: Row) -> tuple[Row]:
        """Return the mean of many levels, exponents taken from the largest."""

        def exponent(j: Any) -> Row:
            slope = self.at + self.n_levels + j
            return fma(self.c[slope], value, np.full_like(value, self.c[slope + self.n_levels]))

        def climb(j: Any, largest: Row) -> tuple[Row]:
            return (np.fmax(largest, exponent(j)),)

        def add(j: Any, total: Row, weighted: Row) -> tuple[Row, Row]:
            weight = exp(exponent(j) - largest)
            return total + weight, fma(weight, np.full_like(value, self.c[self.at + j]), weighted)

        zero = np.full_like(value, 0)
        (largest,) = repeat(self.n_levels, climb, np.full_like(value, -np.inf))
        total, weighted = repeat(self.n_levels, add, zero, zero)
        return (weighted / total,)


# exp(x) = 2^n exp(r), |r| <= log(2) / 2: for each type of float what rounds to an integer and leaves its bits, the two
# parts of log 2, the coefficients of exp(r) (Taylor), and where it counts as zero.
# fmt: off
_EXP = {
    8: (1.5 * 2.0**52, 0.6931471803691238, 1.9082149292705877e-10, 13, -708.0, np.int64, 1023, 52),
    4: (1.5 * 2.0**23, 0.693145751953125, 1.428606765330187e-06, 7, -87.0, np.int32, 127, 23),
}
# fmt: on


def exp(x: Row) -> Row:
    """Compute e^x to the last bit or two, for x up to half of minus the smallest; below it, that of the smallest."""
    magic, high, low, degree, smallest, integer, bias, bits = _EXP[x.dtype.itemsize]
    x = np.fmax(x, smallest)
    shifted = fma(x, 1.4426950408889634, np.full_like(x, magic))
    n = shifted - magic
    r = fma(n, -low, fma(n, -high, x))
    coefficients = [1.0]
    for k in range(1, degree + 1):
        coefficients.append(coefficients[-1] / k)
    power = ((shifted.view(integer) + bias) << bits).view(x.dtype)
    return estrin(coefficients, r) * power


def estrin(coefficients: list[float], x: Row) -> Row:
    """Evaluate a polynomial, lowest power first, by halves: a third of the waiting of Horner's rule."""
    terms: list[Any] = [np.full_like(x, c) for c in coefficients]
    while len(terms) > 1:
        odd = terms[len(terms) // 2 * 2 :]
        terms = [fma(x, b, a) for a, b in zip(terms[::2], terms[1::2], strict=False)] + odd
        x = x * x
    return terms[0]


# --- the loop -------------------------------------------------------------------------------------


class Feedback(NamedTuple):
    """The taps of an equaliser among coefficients; without forward ones the input itself."""

    forward: Taps
    recent: int  # where the feedback of y[t - 1] ... y[t - 5] begins
    older: Taps  # of y[t - 6] ...


@traced
def decide_tile(c: Array, taps: Feedback, rule: Any, x: Rows, row: int, out: int) -> None:
    """Decide the rows of a tile in turn: each adds what the ROWS - 1 decisions before it feed back."""
    tile = convolve(input_tile(c, taps.forward, x, row, ROWS), c, taps.older, x, out - ROWS)
    past = {r: load(x, out + r) for r in range(1 - ROWS, 0)}
    for r, value in enumerate(tile):
        for j in reversed(range(1, ROWS)):
            value = fma(c[taps.recent + j - 1], past[r - j], value)
        past[r] = rule.decide(value)
        store(x, out + r, past[r])


@part
def decide_rows(c: Array, taps: Feedback, rule: Any, x: Rows, row: int, out: int, n: int) -> None:
    """Decide on n rows and up to five beyond, their past above `out`."""
    for t in range(0, n, ROWS):
        decide_tile(c, taps, rule, x, row + t, out + t)
