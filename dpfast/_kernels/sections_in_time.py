"""Second-order sections run along time here: for arrays (streams, time), of one stream or many, untransposed.

Lanes are sections, skewed in time: a lane works some samples behind the one that feeds it, so that all sections of a
cascade run at once, each with the operations of ``fir_and_sections`` in their order, and so with its bits::

                  lane 2          lane 1          lane 0
    x ──────► first section ──► second one ──► last one ──────► y        cascades of more than four: in several passes
    samples      8 ... 11         4 ... 7        0 ... 3

From one sample of a section to the next there are three multiply-adds in two samples to wait for. Two streams at once
fill that time; with three or four the rows of outputs no longer fit into registers, and nothing is gained.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel, part
from dpfast._kernels.denormals import flush, restore
from dpfast._kernels.fir_and_sections import SECTION
from dpfast._kernels.simd import Row, fma, load_run, permute, store_each, store_run, traced

Array = NDArray[Any]

LANES = 4  # sections at once
STREAMS = 2  # at once; what is left of them runs by itself
SKEW = 4  # samples
_CHUNK = 4096  # samples that all groups take before the next
_ROWS = SECTION + 1  # of a group of sections: coefficients, and the number of the section in a lane
_NEVER = -1e6  # the number of a section that no lane has


class SectionsPlan(NamedTuple):
    """Sections laid out for :func:`filter_streams`: rows b0 c1 c2 a1 a2 and numbers for every group of them."""

    c: Array
    n_sections: int

    def memory(self) -> Array:
        """Return memory for the states of as many streams as run at once."""
        return np.zeros((len(self.c) // _ROWS * STREAMS * 2, LANES), self.c.dtype)


def plan_sections(sections: Array, dtype: np.dtype[Any]) -> SectionsPlan:
    """Lay folded sections out, the first of a group in its highest lane."""
    n_groups = -(-len(sections) // LANES)
    c = np.zeros((n_groups, _ROWS, LANES), dtype)
    c[:, SECTION] = _NEVER
    for i, row in enumerate(sections):
        group, place = divmod(i, LANES)
        lane = min(LANES, len(sections) - group * LANES) - 1 - place
        c[group, :, lane] = [*row, place]
    return SectionsPlan(c.reshape(-1, LANES), len(sections))


class Passage(NamedTuple):
    """The place of a pass: the first stream, the samples of a stream, the sections of the group, and its rows."""

    first: int
    n_samples: int
    n_sections: int
    c: int
    memory: int


@traced
def begin(c: Array, memory: Array, at: Passage, n: int, skew: int) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Load coefficients; then zeros for what is found, of each of n streams the states, and zeros for its outputs."""
    coefficients = tuple(load_run(c, (at.c + j, 0), 1, LANES) for j in range(_ROWS))
    zero = np.full_like(coefficients[0], 0)
    rows = [zero]
    for i in range(n):
        rows += [load_run(memory, (at.memory + 2 * i + j, 0), 1, LANES) for j in range(2)] + [zero] * skew
    return coefficients, tuple(rows)


@traced
def end(memory: Array, at: Passage, rows: tuple[Row, ...], n: int, skew: int) -> Any:
    """Keep the states; tell whether anything was found."""
    for i in range(n):
        for j in range(2):
            store_run(memory, (at.memory + 2 * i + j, 0), 1, rows[1 + i * (2 + skew) + j])
    return np.any(rows[0] > 0)


@traced
def advance(
    c: tuple[Row, ...],
    rows: tuple[Row, ...],
    at: Passage,
    x: Array,
    t: int,
    y: Array,
    to: int,
    limit: float,
    low: float,
    high: float,
    n: int,
    skew: int,
    some: int,
) -> tuple[Row, ...]:
    """Run every lane over its next samples; only states of the sections from low to high go on, if not of all.

    The first row remembers whether a sample was beyond the limit.

    Samples t ... of x enter, and to ... of y leave; what leaves a last section that does not go on is written over
    later.
    """
    b0, c1, c2, a1, a2, number = c
    is_first, goes_on = (number >= 0) & (number <= 0), (number >= low) & (number <= high)
    above, found, result = [*range(1, LANES), LANES - 1], rows[0], []
    for i in range(n):
        stream = (at.first + i) * at.n_samples
        looked_at = load_run(x, (stream + t,), 0, skew) if skew > 1 else x[stream + t]
        found = np.where((looked_at <= limit) & (looked_at >= -limit), found, 1)
        s_before, z_before, *given = rows[1 + i * (2 + skew) : 1 + (i + 1) * (2 + skew)]
        s, z, outputs = s_before, z_before, []
        for r in range(skew):
            value = np.where(is_first, x[stream + t + r], permute(given[r], above))
            outputs.append(fma(b0, value, s))
            s, z = fma(-a1, s, fma(c1, value, z)), fma(-a2, s, c2 * value)
        for r, value in enumerate(outputs):
            store_each(y, [(stream + to + r,)], value)
        if some:
            s, z = np.where(goes_on, s, s_before), np.where(goes_on, z, z_before)
        result += [s, z, *outputs]
    return (found, *result)


@part
def run_blocks(
    c: Array, memory: Array, at: Passage, x: Array, y: Array, start: int, n_blocks: int, limit: float, n: int
) -> bool:
    """Run a group of sections over so many blocks of samples of n streams, from sample `start` on."""
    coefficients, rows = begin(c, memory, at, n, SKEW)
    behind, last = at.n_sections - 1, n_blocks - 1
    for w in range(n_blocks + behind):
        t, to = start + min(w, last) * SKEW, start + max(0, w - behind) * SKEW
        if behind <= w < n_blocks:
            rows = advance(coefficients, rows, at, x, t, y, to, limit, 0.0, 0.0, n, SKEW, 0)
        else:
            rows = advance(coefficients, rows, at, x, t, y, to, limit, float(w - last), float(w), n, SKEW, 1)
    found: bool = end(memory, at, rows, n, SKEW)
    return found


@part
def run_single_samples(
    c: Array, memory: Array, at: Passage, x: Array, y: Array, start: int, n_samples: int, limit: float, n: int
) -> bool:
    """Run a group of sections over the few samples that fill no block."""
    coefficients, rows = begin(c, memory, at, n, 1)
    behind, last = at.n_sections - 1, n_samples - 1
    for w in range(n_samples + behind):
        t, to = start + min(w, last), start + max(0, w - behind)
        rows = advance(coefficients, rows, at, x, t, y, to, limit, float(w - last), float(w), n, 1, 1)
    found: bool = end(memory, at, rows, n, 1)
    return found


@part
def run_sections(
    c: Array, n_sections: int, memory: Array, x: Array, y: Array, first: int, n_samples: int, limit: float, n: int
) -> bool:
    """Run all sections, a group at a time, on n streams."""
    n_groups, found = len(c) // _ROWS, False
    chunk = n_samples if n_groups == 1 else _CHUNK
    for start in range(0, n_samples, chunk):
        size = min(chunk, n_samples - start)
        n_left = size % SKEW
        for group in range(n_groups):
            n_here = min(LANES, n_sections - group * LANES)
            at = Passage(first, n_samples, n_here, group * _ROWS, group * STREAMS * 2)
            source, bound = (x, limit) if group == 0 else (y, np.inf)
            if size > n_left:
                found |= run_blocks(c, memory, at, source, y, start, size // SKEW, bound, n)
            if n_left > 0:
                found |= run_single_samples(c, memory, at, source, y, start + size - n_left, n_left, bound, n)
    return found


@kernel
def exchange_states(states: Array, column: int, memory: Array, n_sections: int, first: int, n: int, back: int) -> None:
    """Bring the states of n streams to their lanes, or back."""
    for section in range(n_sections):
        group, place = section // LANES, section % LANES
        lane = min(LANES, n_sections - group * LANES) - 1 - place
        for i in range(n):
            for j in range(2):
                row, number = (group * STREAMS + i) * 2 + j, column + 2 * section + j
                if back:
                    states[first + i, number] = memory[row, lane]
                else:
                    memory[row, lane] = states[first + i, number]


@kernel
def run_streams(
    c: Array, n_sections: int, memory: Array, limit: float, states: Array, column: int, x: Array, y: Array
) -> bool:
    """Run flat streams of equal length through sections, whose states begin at a column of `states`.

    Tell whether a sample is beyond the limits; nobody may want the outputs then. Those may take the place of inputs.
    """
    before, found, stream, n_streams = flush(), False, 0, len(states)
    n_samples = len(x) // n_streams
    while stream < n_streams:
        n = STREAMS if stream + STREAMS <= n_streams else 1
        exchange_states(states, column, memory, n_sections, stream, n, 0)
        if n == STREAMS:
            found |= run_sections(c, n_sections, memory, x, y, stream, n_samples, limit, STREAMS)
        else:
            found |= run_sections(c, n_sections, memory, x, y, stream, n_samples, limit, 1)
        exchange_states(states, column, memory, n_sections, stream, n, 1)
        stream += n
    restore(before)
    return found
