"""The compiled loop over bundles, chunks and kinds of stages."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import (
    block_sums,
    equalizer,
    fir_and_sections,
    integer_draws,
    partition,
    posterior,
    randomized_response,
    shared_draws,
    simulated_noise,
    tiles,
    transposition,
    tree_draws,
)
from dpfast._kernels import chain_program as kinds
from dpfast._kernels._jit import kernel, part
from dpfast._kernels.chain_program import BundleMemory, ChainProgram, Records, Streams
from dpfast._kernels.denormals import flush, restore
from dpfast._kernels.equalizer import Nearest, Soft
from dpfast._kernels.tiles import ROWS, Rows
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
def run_filter_stage(
    program: ChainProgram, stage: Records, memory: BundleMemory, x: int, out: int, time: int, n: int
) -> None:
    """Run taps and sections, and what a pass does beside them."""
    now, signals, back = memory.now, program.signals, (stage.period - 1) * program.chunk
    minus, plus = row_at(now, signals, stage.minus, back), row_at(now, signals, stage.plus, back) - stage.late
    state = program.first_state + stage.place
    filter = fir_and_sections.Part(
        fir_and_sections.taps_at(stage.a, stage.n_a), stage.b, stage.n_b // fir_and_sections.SECTION, state
    )
    scale = float(stage.scale)  # without the compiler, a number of NumPy would make float64 of float32
    # sums of squares: tiles begin at the same times whatever the chunk, so that the sums are the same to the bit
    start, stop = min(n, max(0, stage.start - time)), min(n, max(0, stage.stop - time))
    first = min(stop, -(-start // ROWS) * ROWS)
    bounds = (0, start, first, max(first, stop // ROWS * ROWS), stop, n)
    for i in range(5):
        total = stage.total if 1 <= i <= 3 else len(memory.totals) - 1  # a row that nobody reads
        added = fir_and_sections.Added(plus, stage.n_plus, stage.generator, stage.n_noise, scale)
        terms = fir_and_sections.Terms(minus, stage.n_minus, added, total, stage.n_squares)
        where = memory.words, memory.totals, memory.rows
        if bounds[i] < bounds[i + 1]:
            fir_and_sections.filter_rows(
                program.coefficients, filter, terms, *where, x - stage.lag, out, bounds[i], bounds[i + 1]
            )


@part
def decide(c: Array, stage: Records, rows: Rows, x: int, out: int, n: int) -> None:
    """Run recursions and decisions."""
    n_recent = ROWS - 1
    older = fir_and_sections.taps_at(stage.b + n_recent, stage.n_b - n_recent)
    taps = equalizer.Feedback(fir_and_sections.taps_at(stage.a, stage.n_a), stage.b, older)
    if stage.soft > 0:
        equalizer.decide_rows(c, taps, Soft(c, stage.levels, stage.n_levels), rows, x, out, n)
    else:
        equalizer.decide_rows(c, taps, Nearest(c, stage.levels, stage.n_levels), rows, x, out, n)


@part
def draw_levels(c: Array, table: Array, stage: Records, memory: BundleMemory, out: int, n: int) -> None:
    """Draw the levels of a Markov chain."""
    state, half = stage.place + simulated_noise.STATE_WORDS, np.uint32(1 << max(0, stage.n_levels - 1))
    levels = simulated_noise.Levels(
        stage.place, state, stage.a, stage.a + stage.n_a, stage.levels, stage.n_levels, half
    )
    if stage.kind == kinds.TWO_LEVELS:
        simulated_noise.fill_two_levels(memory.words, levels, table, c, memory.rows, out, n)
    else:
        simulated_noise.fill_many_levels(memory.words, levels, table, c, memory.rows, out, n)


@part
def release(program: ChainProgram, stage: Records, memory: BundleMemory, x: int, out: int, passed: int, n: int) -> None:
    """Sum blocks and release them with noise."""
    c, place = program.coefficients, stage.b
    blocks = block_sums.Blocks(
        program.first_state + stage.place,
        stage.block,
        c[place],
        c[place + 1],
        c[place + 2],
        c[place + 3],
        stage.soft,
        stage.weights,
        stage.n_weights,
    )
    half, step = np.uint32(1 << max(0, stage.n_levels - 1)), float(stage.scale)
    draws = integer_draws.Draws(stage.generator, stage.a, stage.n_a, stage.n_levels, half, step)
    sums = program.first_state + stage.place
    shared = shared_draws.SharedDraws(stage.generator, stage.levels, stage.n_b, stage.kept, sums + 1)
    tree = tree_draws.TreeDraws(stage.generator, stage.levels, stage.cycle, sums + 1)
    past = passed + stage.phase
    block_sums.release_blocks(memory.words, draws, shared, tree, program.table, c, blocks, memory.rows, x, out, past, n)


@part
def estimate(
    program: ChainProgram, stage: Records, memory: BundleMemory, x: int, stride: int, out: int, time: int, n: int
) -> None:
    """Run a periodic Kalman filter behind block sums."""
    states = program.first_state + stage.place
    kalman = block_sums.Kalman(
        stage.n_a,
        stage.n_levels,
        stage.kept,
        -(-stage.lag // stage.block),
        stage.a,
        stage.n_b,
        stage.b,
        stage.weights,
        stage.levels,
        states,
        states + stage.n_a * stage.kept,
    )
    schedule = block_sums.Schedule(stage.block, stage.phase, stage.cycle, stage.lag)
    block_sums.estimate_between_releases(program.coefficients, kalman, schedule, memory.rows, x, stride, out, time, n)


@part
def estimate_posterior(
    program: ChainProgram, stage: Records, memory: BundleMemory, x: int, out: int, time: int, n: int
) -> None:
    """Take a posterior mean behind blocks or responses."""
    c, words = program.coefficients, program.table
    levels, n_levels, n_boundaries = program.first_state + stage.place, stage.n_levels, stage.n_b
    states = levels + n_levels + stage.n_a
    slots = states + n_levels * stage.n_a
    sizes = posterior.Sizes(
        n_levels,
        stage.n_a,
        stage.kept,
        stage.lag,
        levels,
        states,
        slots,
        slots + n_levels * stage.kept,
        stage.weights,
        stage.b,
        n_boundaries,
    )
    numbers = stage.b + posterior.N_COMMON + n_boundaries
    first = posterior.table_at(c, words, stage.levels, numbers)
    table = posterior.table_at(c, words, stage.levels + posterior.N_WORDS, numbers + posterior.N_NUMBERS)
    posterior.estimate_posterior(c, sizes, first, table, stage.block, stage.phase, memory.rows, x, out, time, n)


@part
def publish(program: ChainProgram, stage: Records, memory: BundleMemory, x: int, out: int, time: int, n: int) -> None:
    """Release sums of blocks whose partition reacts to what is released."""
    c, words, place = program.coefficients, program.table, program.first_state + stage.place
    layout = partition.layout_at(c, words, stage.levels, stage.b)
    follower = partition.follower_at(layout, place)
    half, step = np.uint32(1 << max(0, stage.n_levels - 1)), float(stage.scale)
    draws = integer_draws.Draws(stage.generator, stage.a, stage.n_a, stage.n_levels, half, step)
    publisher = partition.Publisher(follower.behind + layout.n_memories, draws)
    partition.publish(memory.words, words, c, layout, follower, publisher, memory.rows, x, out, time, n)


@part
def follow(program: ChainProgram, stage: Records, memory: BundleMemory, x: int, out: int, time: int, n: int) -> None:
    """Take a posterior mean behind such blocks."""
    c, words, place = program.coefficients, program.table, program.first_state + stage.place
    layout = partition.layout_at(c, words, stage.levels, stage.b)
    follower = partition.follower_at(layout, place)
    rows = partition.estimates_at(layout, follower.behind + layout.n_memories)
    partition.estimate_adaptive(words, c, layout, follower, rows, memory.rows, x, out, time, n)


@part
def run_stage(
    program: ChainProgram, stage: Records, memory: BundleMemory, streams: Streams, first: int, time: int
) -> None:
    """Run one pass of a stage from `time` on."""
    rows, n = memory.rows, stage.n
    if n == 0:
        n = min(program.chunk, program.n_samples - time)
        if len(program.end) == 0 and stage.kind != kinds.READ and stage.kind != kinds.WRITE:
            n += -n % ROWS  # whole tiles, where nobody asks for the state behind the last sample
    now, signals, back = memory.now, program.signals, (stage.period - 1) * program.chunk
    x, out = row_at(now, signals, stage.x, back), row_at(now, signals, stage.out, back)
    if stage.kind == kinds.READ:
        transposition.read(streams.x, first, time, rows, out, n)
    elif stage.kind == kinds.WRITE:
        transposition.write(rows, x, streams.out, stage.place, first, time, n)
    elif stage.kind in (kinds.TWO_LEVELS, kinds.MANY_LEVELS):
        draw_levels(program.coefficients, program.table, stage, memory, out, n)
    elif stage.kind == kinds.NORMALS:
        simulated_noise.fill_normals(memory.words, stage.place, rows, out, n)
    elif stage.kind == kinds.LAPLACE:
        simulated_noise.fill_laplace(memory.words, stage.place, rows, out, n)
    elif stage.kind == kinds.STEP:
        early = min(n, max(0, stage.start - streams.past - time))
        tiles.fill(rows, out, early, 0.0)
        tiles.fill(rows, out + early, n - early, stage.scale)
    elif stage.kind == kinds.FILTER:
        run_filter_stage(program, stage, memory, x, out, time, n)
    elif stage.kind == kinds.FEEDBACK:
        early = min(n, max(0, stage.lag - streams.past - time))
        tiles.fill(rows, out, early, 0.0)
        decide(program.coefficients, stage, rows, x + early, out + early, n - early)
    elif stage.kind == kinds.RELEASE:
        release(program, stage, memory, x, out, streams.past + time, n)
    elif stage.kind == kinds.ESTIMATE:
        stride = 0 if stage.n_levels == 1 else row_at(now, signals, stage.x + 1, back) - x
        estimate(program, stage, memory, x, stride, out, streams.past + time, n)
    elif stage.kind == kinds.POSTERIOR:
        estimate_posterior(program, stage, memory, x, out, streams.past + time, n)
    elif stage.kind == kinds.PUBLISH:
        publish(program, stage, memory, x, out, streams.past + time, n)
    elif stage.kind == kinds.FOLLOW:
        follow(program, stage, memory, x, out, streams.past + time, n)
    elif stage.kind == kinds.RESPOND:
        c, place = program.coefficients, stage.b
        response = randomized_response.ResponseNumbers(
            stage.generator, stage.a, c[place], c[place + 1], c[place + 2], c[place + 3]
        )
        randomized_response.respond(memory.words, response, program.table, rows, x, out, n)
    elif stage.kind == kinds.REVERSE:
        tiles.copy(rows, x - stage.lag + n - 1, -1, out, n)
    else:
        tiles.fill(rows, program.first_state + stage.place, stage.n_a, 0.0)


@kernel
def run_chunks(
    program: ChainProgram, memory: BundleMemory, streams: Streams, n_bundles: int, start: int, stop: int
) -> None:
    """Run the chunks start ... stop - 1 of a number of bundles.

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
                    run_stage(program, stage, memory, streams, first, (c + 1 - stage.period) * chunk)
        if stop * chunk >= program.n_samples:
            finish(program, memory, streams, first)
    restore(before)
