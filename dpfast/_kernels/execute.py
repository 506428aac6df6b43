"""A chain on many streams: bundles for every thread, in slices short enough to stop between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import chain, threads
from dpfast._kernels.builder import Chain
from dpfast._kernels.program import Program, Streams
from dpfast._kernels.simd import lanes

Array = NDArray[Any]

_SLICE = 5e7  # multiply-adds on a row, about 15 ms: no longer between two looks at whether to stop


class Result(NamedTuple):
    """What is asked for beside the arrays."""

    states: Array  # (streams, states) at the end
    totals: Array  # (streams, totals)


def execute(
    built: Chain,
    n_streams: int,
    n_samples: int,
    *,
    seed: int = 0,
    first: int = 0,
    x: Array | None = None,
    out: Array | None = None,
    n_threads: int | None = None,
    advance: Callable[[int], None] | None = None,
) -> Result:
    """Run all stages of a chain on the streams first, first + 1, ... .

    x : (streams, time), what the chain reads; out : (arrays, streams, time), what it writes. Of its type, in any memory
    order. `advance` hears of the samples that are done.
    """
    program, width = built.compile(n_samples), lanes(built.dtype)
    result = Result(np.empty((n_streams, len(program.end)), built.dtype), np.empty((n_streams, built.n_totals)))
    n_bundles = -(-n_streams // width)
    per_chunk = program.chunk * sum(int(n) for n in 4 + program.stages.n_a + program.stages.n_b)
    per_bundle = max(1, per_chunk * program.n_chunks)
    n_chunks = max(1, int(_SLICE / per_chunk))

    def task(bundle: int, count: int, check: Callable[[], None]) -> None:
        streams = slice(bundle * width, min((bundle + count) * width, n_streams))
        memory, selected = built.memory(program), _select(built, streams, seed, first, x, out, result)
        if count > 1:
            _slice(program, memory, selected, 0, program.n_chunks, check, advance)
            return
        for start in range(0, program.n_chunks, n_chunks):
            _slice(program, memory, selected, start, min(start + n_chunks, program.n_chunks), check, advance)

    if n_samples > 0:
        size = max(1, min(int(_SLICE / per_bundle), threads.share(n_bundles, n_threads)))
        threads.for_ranges(task, n_bundles, size, n_threads)
    return result


def _slice(
    program: Program,
    memory: Any,
    streams: Streams,
    start: int,
    stop: int,
    check: Callable[[], None],
    advance: Callable[[int], None] | None,
) -> None:
    check()
    n_streams = len(streams.begin)
    chain.run(program, memory, streams, 0, n_streams, start, stop)
    if advance is not None:
        advance(n_streams * (min(stop * program.chunk, program.n_samples) - start * program.chunk))


def _select(
    built: Chain, streams: slice, seed: int, offset: int, x: Array | None, out: Array | None, result: Result
) -> Streams:
    """Everything that belongs to a range of streams."""
    first, count = offset + streams.start, streams.stop - streams.start
    nothing = np.empty((1, 1), built.dtype)
    begin = [np.empty((count, 0)), *(states(seed, first, count) for states in built.first_states)]
    words = [np.empty((0, count)), *(np.atleast_2d(part(seed, first, count)) for part in built.words)]
    return Streams(
        x=any_order(nothing if x is None else x[streams], writeable=False),
        out=any_order(nothing[None] if out is None else out[:, streams], writeable=True),
        begin=np.concatenate(begin, axis=1).astype(built.dtype),
        end=result.states[streams],
        words=np.concatenate(words).astype(np.uint32),
        totals=result.totals[streams],
    )


def any_order(x: Array, *, writeable: bool) -> Array:
    """A view with a last axis of stride zero: of one type for Numba, whatever the memory order."""
    return np.lib.stride_tricks.as_strided(x[..., None], (*x.shape, 2), (*x.strides, 0), writeable=writeable)
