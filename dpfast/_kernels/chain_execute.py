"""Chains run on many streams here: bundles for every thread, in slices short enough to stop between them."""

from __future__ import annotations

import _thread
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import chain_loop, chain_stages, threads
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_program import BundleMemory, Streams
from dpfast._kernels.simd import lanes

Array = NDArray[Any]

_SLICE = 50_000_000  # multiply-adds on a row, about 15 ms: no longer between two looks at whether to stop
_WORTH_A_THREAD = 1_000_000  # less is done before another thread has started
_FEW = 4096  # streams that are prepared at once, before threads start: so short ranges cost little
_RANGES = 4  # of a thread then: whoever started late, or is slow, takes fewer


class ChainResult(NamedTuple):
    """The states and the sums that a chain ends with, beside the arrays that it writes."""

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
    states: Array | None = None,
    past: int = 0,
    out: Array | None = None,
    n_threads: int = 1,
    advance: Callable[[int], None] | None = None,
) -> ChainResult:
    """Run all stages of a chain on the streams first, first + 1, ... .

    x : (streams, time), or (arrays, streams, time), what the chain reads; out : (arrays, streams, time), what it
    writes. Of its type, in any memory order.
    states : (streams, states) before time zero, if not by the chain's own rule.
    past : samples before time zero, for steps and the lag of decisions; windows of squares begin at time zero.
    advance : hears of the samples that are done.
    """
    program, width = built.compile(n_samples), lanes(built.dtype)
    result = ChainResult(np.empty((n_streams, len(program.end)), built.dtype), np.empty((n_streams, built.n_totals)))
    if n_streams == 0 or n_samples == 0:
        return result
    n_bundles, work = -(-n_streams // width), program.work * program.n_chunks
    given = x[None] if x is not None and x.ndim == 2 else x

    def prepare(bundle: int, count: int) -> Streams:
        here = slice(bundle * width, min((bundle + count) * width, n_streams))
        which = seed, first + here.start, here.stop - here.start
        begin = built.states_before(*which) if states is None else states[here]
        return Streams(
            x=no_array(built.dtype, 3, writeable=False)
            if given is None
            else any_order(given[:, here], writeable=False),
            out=no_array(built.dtype, 3, writeable=True) if out is None else any_order(out[:, here], writeable=True),
            begin=any_order(np.ascontiguousarray(begin), writeable=False),
            end=any_order(result.states[None, here], writeable=True),
            words=any_order(built.first_words(*which), writeable=False),
            totals=any_order(result.totals[None, here], writeable=True),
            past=past,
        )

    def task(bundle: int, count: int, check: Callable[[], None]) -> None:
        streams, place = (prepare(bundle, count), 0) if all_streams is None else (all_streams, bundle)
        memory = memories.get(_thread.get_ident()) or memories.setdefault(_thread.get_ident(), built.memory(program))
        kernels = chain_stages.find_kernels(program, memory, streams)
        step = program.n_chunks if count > 1 else max(1, _SLICE // program.work)
        n_here = min((bundle + count) * width, n_streams) - bundle * width
        for start in range(0, program.n_chunks, step):
            check()
            stop = min(start + step, program.n_chunks)
            chain_loop.run_chunks(kernels, program, memory, streams, place, count, start, stop)
            if advance is not None:
                advance(n_here * (min(stop * program.chunk, n_samples) - start * program.chunk))

    memories: dict[int, BundleMemory] = {}  # of threads, each for all its ranges
    all_streams = prepare(0, n_bundles) if n_streams <= _FEW else None
    n_workers = max(1, min(n_threads, n_bundles * work // min(_WORTH_A_THREAD, _SLICE)))
    n_shares = n_workers * _RANGES if all_streams is not None and n_workers > 1 else n_workers
    size = threads.range_size(n_bundles, n_shares, max(1, _SLICE // work))
    threads.for_ranges(task, n_bundles, size, n_workers)
    return result


@functools.cache
def no_array(dtype: np.dtype[Any], ndim: int, *, writeable: bool) -> Array:
    """Return what stands for an array that a chain does not have."""
    return any_order(np.empty((0,) * ndim, dtype), writeable=writeable)


def any_order(x: Array, *, writeable: bool) -> Array:
    """Return a view with a last axis of stride zero: of one type for Numba, whatever the memory order."""
    if x.size == 0:
        x = np.empty((1,) * x.ndim, x.dtype)  # to Numba what is empty is contiguous, which would be another type
    shape, strides = (*x.shape, 2), (*x.strides, 0)
    buffer = x if x.flags.c_contiguous else x.T
    if not buffer.flags.c_contiguous:
        return np.lib.stride_tricks.as_strided(x[..., None], shape, strides, writeable=writeable)
    view = np.ndarray(shape, x.dtype, buffer, 0, strides)  # the same of what can be a buffer, in a fifth of the time
    view.setflags(write=writeable)
    return view
