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
from dpfast._kernels.tiles import ROWS, Rows
from dpfast._kernels.transposition import give, take

Array = NDArray[Any]


@part
def rewind(signals: Records, now: Array, rows: Rows, first_state: int) -> None:
    """Go to time zero: what was before is zero."""
    for i in range(len(signals)):
        signal = signals[i]
        for r in range(signal.row - signal.history, signal.row):
            tiles.set_row(rows, r, 0.0)
        now[i] = signal.row
    for r in range(first_state, len(rows)):
        tiles.set_row(rows, r, 0.0)


@part
def advance(signals: Records, now: Array, rows: Rows, chunk: int) -> None:
    """Go to the next chunk; where a signal has come to its end, its last rows become the history."""
    for i in range(len(signals)):
        signal = signals[i]
        if signal.length > 0:
            now[i] += chunk
            if now[i] == signal.row + signal.length:
                for r in range(-signal.history, 0):
                    tiles.copy_row(rows, now[i] + r, rows, signal.row + r)
                now[i] = signal.row


@part
def count_rows(stage: Records, chunk: int, n_left: int, whole_tiles: bool) -> Any:
    """Count the rows of a pass: its own, or those of a chunk, to the end of a tile where nobody asks for states."""
    n = stage.n
    if n == 0:
        n = min(chunk, n_left)
        if whole_tiles and stage.kind != kinds.READ and stage.kind != kinds.WRITE:
            n += -n % ROWS
    return n


@kernel
def run_chunks(
    addresses: Any,
    program: ChainProgram,
    memory: BundleMemory,
    streams: Streams,
    first_bundle: int,
    n_bundles: int,
    start: int,
    stop: int,
) -> None:
    """Run the chunks start ... stop - 1 of some bundles; `addresses` are those of the kernels of stages.

    Work may stop after any chunk and go on later: with one bundle only, of which all is in `memory`. It is one long
    function, as parts that get whole programs and memories take a fifth of the time of the compiler to hand them over.
    """
    before = flush()
    signals, begin, end, chunk = program.signals, program.begin, program.end, program.chunk
    now, rows, words, totals = memory.now, memory.rows, memory.words, memory.totals
    for bundle in range(first_bundle, first_bundle + n_bundles):
        first = bundle * rows.shape[1]
        if start == 0:
            rewind(signals, now, rows, program.first_state)
            for i in range(len(totals)):
                for lane in range(rows.shape[1]):  # not by rows of float64: beside float32 these are twice as wide
                    totals[i, lane] = 0.0
            for i in range(len(words)):
                take(streams.words, first, i, words, i, rows)
            for i in range(len(begin)):
                take(streams.begin, first, i, rows, begin[i], rows)
        for c in range(start, stop):
            if c > 0:  # not behind the last chunk: its states may still be in the history
                advance(signals, now, rows, chunk)
            for i in range(len(program.stages)):
                stage = program.stages[i]
                if (c + 1) % stage.period == 0:
                    back = (stage.period - 1) * chunk
                    time = c * chunk - back
                    work = Work(
                        now[stage.x] - back * (signals[stage.x].length > 0),
                        now[stage.out] - back * (signals[stage.out].length > 0),
                        now[stage.minus] - back * (signals[stage.minus].length > 0),
                        now[stage.plus] - back * (signals[stage.plus].length > 0),
                        program.first_state + stage.place,
                        first,
                        time,
                        streams.past,
                        count_rows(stage, chunk, program.n_samples - time, len(end) == 0),
                        program.coefficients,
                        program.table,
                        rows,
                        words,
                        totals,
                        streams.x,
                        streams.out,
                    )
                    call(addresses[i], (stage, work))
        if stop * chunk >= program.n_samples:
            for i in range(len(end)):
                give(rows, end[i], streams.end, 0, first, i, rows)
            for i in range(len(totals) - 1):
                give(totals, i, streams.totals, 0, first, i, rows)
    restore(before)
