"""The stages of a chain, each a kernel of its own: what a chain does not need is not compiled for it.

The loop over stages calls them by their addresses, so that it knows none of them when it is compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import (
    block_sums,
    equalizer,
    fir_and_sections,
    first_pass,
    integer_draws,
    partition,
    posterior,
    randomized_response,
    shared_draws,
    simulated_noise,
    state_space_pass,
    tiles,
    transposition,
    tree_draws,
)
from dpfast._kernels import chain_program as kinds
from dpfast._kernels._jit import part, stage
from dpfast._kernels.chain_program import BundleMemory, ChainProgram, Records, Streams, Work
from dpfast._kernels.equalizer import Nearest, Soft
from dpfast._kernels.kernel_calls import find_address, list_addresses, type_like, type_of_record
from dpfast._kernels.tiles import ROWS

Array = NDArray[Any]


# --- signals that are given or drawn ---------------------------------------------------------------


@stage
def read(record: Records, work: Work) -> None:
    """Read one of the arrays that are given."""
    transposition.read(work.given, record.place, work.stream, work.time, work.rows, work.out, work.n)


@stage
def write(record: Records, work: Work) -> None:
    """Write a signal to one of the arrays that come out."""
    transposition.write(work.rows, work.x, work.made, record.place, work.stream, work.time, work.n)


@stage
def draw_two_levels(record: Records, work: Work) -> None:
    """Draw a Markov chain of two states."""
    levels = levels_at(record)
    simulated_noise.fill_two_levels(work.words, levels, work.table, work.c, work.rows, work.out, work.n)


@stage
def draw_many_levels(record: Records, work: Work) -> None:
    """Draw a Markov chain of any number of states."""
    levels = levels_at(record)
    simulated_noise.fill_many_levels(work.words, levels, work.table, work.c, work.rows, work.out, work.n)


@part
def levels_at(record: Records) -> Any:
    """Find the table of a Markov chain."""
    state, half = record.place + simulated_noise.STATE_WORDS, np.uint32(1 << max(0, record.n_levels - 1))
    return simulated_noise.Levels(
        record.place, state, record.a, record.a + record.n_a, record.levels, record.n_levels, half
    )


@stage
def draw_normals(record: Records, work: Work) -> None:
    """Draw independent standard normals."""
    simulated_noise.fill_normals(work.words, record.place, work.rows, work.out, work.n)


@stage
def draw_laplace(record: Records, work: Work) -> None:
    """Draw independent Laplace noise of scale one."""
    simulated_noise.fill_laplace(work.words, record.place, work.rows, work.out, work.n)


@stage
def step(record: Records, work: Work) -> None:
    """Make a signal that is zero, and a constant from a time on."""
    early = min(work.n, max(0, record.start - work.past - work.time))
    tiles.fill(work.rows, work.out, early, 0.0)
    tiles.fill(work.rows, work.out + early, work.n - early, record.scale)


# --- filters --------------------------------------------------------------------------------------


@stage
def filter_signal(record: Records, work: Work) -> None:
    """Run taps and sections, and what a pass does beside them."""
    n, n_sections, n_poles = work.n, record.n_b // fir_and_sections.SECTION, 0
    if n_sections > 0 and record.n_squares > 0:  # where the sign of zeros leaves no trace
        last = record.b + (n_sections - 1) * fir_and_sections.SECTION
        n_poles = int(work.c[last + 2] == 0 and work.c[last + 4] == 0)
    taps = fir_and_sections.taps_at(record.a, record.n_a)
    filter = fir_and_sections.Part(taps, record.b, n_sections - n_poles, work.states, n_poles)
    scale = float(record.scale)  # without the compiler, a number of NumPy would make float64 of float32
    added = fir_and_sections.Added(work.plus - record.late, record.n_plus, record.generator, record.n_noise, scale)
    # sums of squares: tiles begin at the same times whatever the chunk, so that the sums are the same to the bit
    start, stop = min(n, max(0, record.start - work.time)), min(n, max(0, record.stop - work.time))
    first = min(stop, -(-start // ROWS) * ROWS)
    bounds = (0, start, first, max(first, stop // ROWS * ROWS), stop, n)
    for i in range(5):
        total = record.total if 1 <= i <= 3 else len(work.totals) - 1  # a row that nobody reads
        terms = fir_and_sections.Terms(work.minus, record.n_minus, added, total, record.n_squares)
        row, begin, end = work.x - record.lag, bounds[i], bounds[i + 1]
        if begin < end:
            fir_and_sections.filter_rows(
                work.c, filter, terms, work.words, work.totals, work.rows, row, work.out, begin, end
            )


@stage
def run_first_pass(record: Records, work: Work) -> None:
    """Draw a Markov chain of two states, and what is released of it by sections and noise."""
    levels = simulated_noise.Levels(
        record.drawn, record.drawn + simulated_noise.STATE_WORDS, record.a, 0, record.levels, 0, np.uint32(0)
    )
    n_sections, noise_std = record.n_b // fir_and_sections.SECTION, float(record.scale)
    places = first_pass.FirstPass(levels, record.b, n_sections, work.states, record.generator, noise_std)
    first_pass.run_first_pass(work.words, places, work.table, work.c, work.rows, work.x, work.out, work.n)


@part
def feedback_at(record: Records) -> Any:
    """Find the taps of an equaliser."""
    n_recent = ROWS - 1
    older = fir_and_sections.taps_at(record.b + n_recent, record.n_b - n_recent)
    return equalizer.Feedback(fir_and_sections.taps_at(record.a, record.n_a), record.b, older)


@part
def skip_lag(record: Records, work: Work) -> Any:
    """Leave the rows zero of which nothing is to be decided yet, and count them."""
    early = min(work.n, max(0, record.lag - work.past - work.time))
    tiles.fill(work.rows, work.out, early, 0.0)
    return early


@stage
def decide(record: Records, work: Work) -> None:
    """Run a recursion, or decisions for the nearest level."""
    rule, early = Nearest(work.c, record.levels, record.n_levels), skip_lag(record, work)
    row, to, n = work.x + early, work.out + early, work.n - early
    equalizer.decide_rows(work.c, feedback_at(record), rule, work.rows, row, to, n)


@stage
def decide_softly(record: Records, work: Work) -> None:
    """Run decisions that are means of levels."""
    rule, early = Soft(work.c, record.levels, record.n_levels), skip_lag(record, work)
    row, to, n = work.x + early, work.out + early, work.n - early
    equalizer.decide_rows(work.c, feedback_at(record), rule, work.rows, row, to, n)


@stage
def reverse(record: Records, work: Work) -> None:
    """Turn a signal around in time."""
    tiles.copy(work.rows, work.x - record.lag + work.n - 1, -1, work.out, work.n)


@stage
def clear(record: Records, work: Work) -> None:
    """Put the states of a filter to zero."""
    tiles.fill(work.rows, work.states, record.n_a, 0.0)


@part
def group_at(record: Records, work: Work) -> Any:
    """Find the inputs and states of a system."""
    return state_space_pass.SignalGroup(work.x, work.plus - work.x, record.n_b)


@stage
def advance_states(record: Records, work: Work) -> None:
    """Compute the states of a system."""
    group = group_at(record, work)
    state_space_pass.advance_states(work.c, record.a, group, record.n_a, work.rows, work.states, work.n)


@stage
def mix_signals(record: Records, work: Work) -> None:
    """Compute an output of a system from its inputs and states."""
    state_space_pass.mix_signals(work.c, record.a, group_at(record, work), work.rows, work.out, work.n)


# --- releases other than by Gaussian noise, and what follows them -----------------------------------


@part
def draws_at(record: Records) -> Any:
    """Find the table of noise on the integers."""
    half, step_size = np.uint32(1 << max(0, record.n_levels - 1)), float(record.scale)
    return integer_draws.Draws(record.generator, record.a, record.n_a, record.n_levels, half, step_size)


@part
def blocks_at(record: Records, work: Work) -> Any:
    """Find what is summed in blocks."""
    c, numbers = work.c, record.b
    lattice = c[numbers], c[numbers + 1], c[numbers + 2], c[numbers + 3]
    weights = record.weights, record.n_weights
    return block_sums.Blocks(work.states, record.block, *lattice, record.rounds, *weights)


@part
def passed(record: Records, work: Work) -> Any:
    """Count the samples since the first block would have begun."""
    return work.past + work.time + record.phase


@stage
def release(record: Records, work: Work) -> None:
    """Sum blocks and release them with noise."""
    draws, blocks, past = draws_at(record), blocks_at(record, work), passed(record, work)
    block_sums.release_blocks(work.words, draws, work.table, work.c, blocks, work.rows, work.x, work.out, past, work.n)


@stage
def release_shared(record: Records, work: Work) -> None:
    """Sum blocks and release them with noise that those of a group share."""
    shared = shared_draws.SharedDraws(record.generator, record.levels, record.n_b, record.kept, work.states + 1)
    blocks, past = blocks_at(record, work), passed(record, work)
    block_sums.release_shared_blocks(work.words, shared, work.c, blocks, work.rows, work.x, work.out, past, work.n)


@stage
def release_tree(record: Records, work: Work) -> None:
    """Sum blocks and release them with noise that groups of groups share."""
    tree = tree_draws.TreeDraws(record.generator, record.levels, record.cycle, work.states + 1)
    blocks, past = blocks_at(record, work), passed(record, work)
    block_sums.release_tree_blocks(
        work.words, tree, record.kept, work.table, work.c, blocks, work.rows, work.x, work.out, past, work.n
    )


@stage
def estimate(record: Records, work: Work) -> None:
    """Run a periodic Kalman filter behind block sums."""
    kalman = block_sums.Kalman(
        record.n_a,
        record.n_levels,
        record.kept,
        -(-record.lag // record.block),
        record.a,
        record.n_b,
        record.b,
        record.weights,
        record.levels,
        work.states,
        work.states + record.n_a * record.kept,
    )
    schedule = block_sums.Schedule(record.block, record.phase, record.cycle, record.lag)
    stride, time = work.plus - work.x, work.past + work.time
    block_sums.estimate_between_releases(work.c, kalman, schedule, work.rows, work.x, stride, work.out, time, work.n)


@stage
def estimate_posterior(record: Records, work: Work) -> None:
    """Take a posterior mean behind blocks or responses."""
    levels, n_levels, n_boundaries = work.states, record.n_levels, record.n_b
    states = levels + n_levels + record.n_a
    slots = states + n_levels * record.n_a
    sizes = posterior.Sizes(
        n_levels,
        record.n_a,
        record.kept,
        record.lag,
        levels,
        states,
        slots,
        slots + n_levels * record.kept,
        record.weights,
        record.b,
        n_boundaries,
    )
    numbers = record.b + posterior.N_COMMON + n_boundaries
    first = posterior.table_at(work.c, work.table, record.levels, numbers)
    later = posterior.table_at(work.c, work.table, record.levels + posterior.N_WORDS, numbers + posterior.N_NUMBERS)
    where = work.rows, work.x, work.out, work.past + work.time
    posterior.estimate_posterior(work.c, sizes, first, later, record.block, record.phase, *where, work.n)


@stage
def publish(record: Records, work: Work) -> None:
    """Release sums of blocks whose partition reacts to what is released."""
    layout = partition.layout_at(work.c, work.table, record.levels, record.b)
    follower = partition.follower_at(layout, work.states)
    publisher = partition.Publisher(follower.behind + layout.n_memories, draws_at(record))
    where = work.rows, work.x, work.out, work.past + work.time
    partition.publish(work.words, work.table, work.c, layout, follower, publisher, *where, work.n)


@stage
def follow(record: Records, work: Work) -> None:
    """Take a posterior mean behind such blocks."""
    layout = partition.layout_at(work.c, work.table, record.levels, record.b)
    follower = partition.follower_at(layout, work.states)
    estimates = partition.estimates_at(layout, follower.behind + layout.n_memories)
    where = work.rows, work.x, work.out, work.past + work.time
    partition.estimate_adaptive(work.table, work.c, layout, follower, estimates, *where, work.n)


@stage
def respond(record: Records, work: Work) -> None:
    """Respond to a signal of two levels by chance."""
    numbers = record.b
    response = randomized_response.ResponseNumbers(
        record.generator, record.a, work.c[numbers], work.c[numbers + 1], work.c[numbers + 2], work.c[numbers + 3]
    )
    randomized_response.respond(work.words, response, work.table, work.rows, work.x, work.out, work.n)


# --- what a chain needs of them -------------------------------------------------------------------

KERNELS: dict[int, Any] = {
    kinds.READ: read,
    kinds.WRITE: write,
    kinds.TWO_LEVELS: draw_two_levels,
    kinds.MANY_LEVELS: draw_many_levels,
    kinds.NORMALS: draw_normals,
    kinds.LAPLACE: draw_laplace,
    kinds.STEP: step,
    kinds.FILTER: filter_signal,
    kinds.FEEDBACK: decide,
    kinds.SOFT_FEEDBACK: decide_softly,
    kinds.REVERSE: reverse,
    kinds.CLEAR: clear,
    kinds.RELEASE: release,
    kinds.RELEASE_SHARED: release_shared,
    kinds.RELEASE_TREE: release_tree,
    kinds.ESTIMATE: estimate,
    kinds.RESPOND: respond,
    kinds.POSTERIOR: estimate_posterior,
    kinds.PUBLISH: publish,
    kinds.FOLLOW: follow,
    kinds.ADVANCE: advance_states,
    kinds.MIX: mix_signals,
    kinds.FIRST_PASS: run_first_pass,
}
_FOUND: dict[tuple[int, np.dtype[Any]], Any] = {}


def find_kernels(program: ChainProgram, memory: BundleMemory, streams: Streams) -> Any:
    """List the kernels of the stages of a program, each compiled when it is first needed."""
    found = [_find(int(kind), program, memory, streams) for kind in program.stages["kind"]]
    return list_addresses(found)


def _find(kind: int, program: ChainProgram, memory: BundleMemory, streams: Streams) -> Any:
    key = kind, program.coefficients.dtype
    if key not in _FOUND:
        numbers = program.coefficients, program.table, memory.rows, memory.words, memory.totals
        work = Work(0, 0, 0, 0, 0, 0, 0, 0, 0, *numbers, streams.x, streams.out)
        _FOUND[key] = find_address(KERNELS[kind], type_of_record(program.stages), type_like(work))
    return _FOUND[key]
