"""The compiled loop over bundles, chunks and stages."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from dpfast._kernels import chain_program as kinds
from dpfast._kernels import tiles
from dpfast._kernels._jit import kernel, part
from dpfast._kernels.chain_program import BundleMemory, ChainProgram, Records, Streams, Work
from dpfast._kernels.denormals import flush, restore
from dpfast._kernels.kernel_calls import call
from dpfast._kernels.tiles import ROWS
from dpfast._kernels.transposition import give, take

Array = NDArray[Any]


@part
def prepare(program: ChainProgram, memory: BundleMemory, streams: Streams, first: int) -> None:
    """Bring a bundle to time zero."""
    rows, words = memory.rows, memory.words
    for i in range(len(program.signals)):
        signal = program.signals[i]
        tiles.fill(rows, signal.row - signal.history, signal.history, 0.0)
        memory.now[i] = signal.row
    tiles.fill(rows, program.first_state, program.n_rows - program.first_state, 0.0)
    for i in range(len(memory.totals)):
        for lane in range(rows.shape[1]):  # not by rows of float64: beside rows of float32 these are twice as wide
            memory.totals[i, lane] = 0.0
    for i in range(len(words)):
        take(streams.words, first, i, words, i, rows)
    for i in range(len(program.begin)):
        take(streams.begin, first, i, rows, program.begin[i], rows)


@part
def finish(program: ChainProgram, memory: BundleMemory, streams: Streams, first: int) -> None:
    """Hand over the states and the sums that are asked for."""
    for i in range(len(program.end)):
        give(memory.rows, program.end[i], streams.end, 0, first, i, memory.rows)
    for i in range(len(memory.totals) - 1):
        give(memory.totals, i, streams.totals, 0, first, i, memory.rows)


@part
def advance(program: ChainProgram, memory: BundleMemory) -> None:
    """Go to the next chunk; where a signal has come to its end, its last rows become the history."""
    for i in range(len(program.signals)):
        signal = program.signals[i]
        if signal.length > 0:
            memory.now[i] += program.chunk
            if memory.now[i] == signal.row + signal.length:
                past = memory.now[i] - signal.history
                tiles.copy(memory.rows, past, 1, signal.row - signal.history, signal.history)
                memory.now[i] = signal.row


@part
def row_at(now: Array, signals: Records, signal: int, back: int) -> Any:
    """Find the row where a signal was some rows of time ago."""
    return now[signal] - back * (signals[signal].length > 0)


@part
def run_stage(
    address: Any, program: ChainProgram, stage: Records, memory: BundleMemory, streams: Streams, first: int, time: int
) -> None:
    """Run one pass of a stage from `time` on."""
    copies, n = stage.kind == kinds.READ or stage.kind == kinds.WRITE, stage.n
    if n == 0:
        n = min(program.chunk, program.n_samples - time)
        if len(program.end) == 0 and not copies:
            n += -n % ROWS  # whole tiles, where nobody asks for the state behind the last sample
    now, signals, back = memory.now, program.signals, (stage.period - 1) * program.chunk
    x, out = row_at(now, signals, stage.x, back), row_at(now, signals, stage.out, back)
    minus, plus = row_at(now, signals, stage.minus, back), row_at(now, signals, stage.plus, back)
    states, past = program.first_state + stage.place, streams.past
    numbers, of_bundle = (program.coefficients, program.table), (memory.rows, memory.words, memory.totals)
    work = Work(x, out, minus, plus, states, first, time, past, n, *numbers, *of_bundle, streams.x, streams.out)
    call(address, (stage, work))


@kernel
def run_chunks(
    addresses: Any, program: ChainProgram, memory: BundleMemory, streams: Streams, n_bundles: int, start: int, stop: int
) -> None:
    """Run the chunks start ... stop - 1 of a number of bundles; `addresses` are those of the kernels of stages.

    Work may stop after any chunk and go on later: with one bundle only, of which all is in `memory`.
    """
    before = flush()
    chunk = program.chunk
    for bundle in range(n_bundles):
        first = bundle * memory.rows.shape[1]
        if start == 0:
            prepare(program, memory, streams, first)
        for c in range(start, stop):
            if c > 0:  # not behind the last chunk: its states may still be in the history
                advance(program, memory)
            for i in range(len(program.stages)):
                stage = program.stages[i]
                if (c + 1) % stage.period == 0:
                    run_stage(addresses[i], program, stage, memory, streams, first, (c + 1 - stage.period) * chunk)
        if stop * chunk >= program.n_samples:
            finish(program, memory, streams, first)
    restore(before)
