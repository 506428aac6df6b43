"""Blocks of streams: what is simulated at once, anywhere, and always with the same bits.

    case ──► mechanism ──┐
    case ──► mechanism ──┼─► block: 128 streams of up to 16 cases of a group ──► 16 batch means for each output
    case ──► mechanism ──┘
    block, block, ... ──► task: about a second, for one worker

Stream i of a case depends on (seed, i) alone, and block k holds the streams 128 k ... 128 k + 127. So the numbers of a
case depend neither on the cases beside it nor on where blocks run, in which order or how many at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from dpfast._kernels import compiled_channels, signal_sources, simulation, threads
from dpfast._support import version
from dpfast._support.errors import EngineError
from dpfast._support.validation import Array
from dpfast.mechanisms.operators.operator_protocol import NotLinearError, Operator
from dpfast.simulation.mixed_study import AnyCompiledMechanism, MixedStudy
from dpfast.simulation.sweep.compiled_mechanism_json import AnyCompiled

STREAMS = 128  # streams of a block
BATCHES = 16  # batches of a block; the mean of the streams of each is what is kept

_MOST_MECHANISMS = 16  # of a block: beyond, the source and noise that they share are no cost any more
_SECONDS = 1.0  # that a task should take
_TRANSFORM = 60  # multiply-adds that an operator costs besides, as with FFTs
_ITERATIONS = 500  # that a decoder takes, about


class Block(NamedTuple):
    """A block of 128 streams of some cases of one group: the streams 128 · number and those that follow."""

    source: signal_sources.SignalSource | signal_sources.ChannelSources
    mechanisms: tuple[AnyCompiled, ...]
    burn_in: int
    n_samples: int  # counted of each stream
    seed: int
    number: int
    dtype: DTypeLike = np.float64


def simulate_block(block: Block, n_threads: int = 1, advance: Callable[[int], None] | None = None) -> Array:
    """Simulate mean squared errors (mechanisms, batches), each of 8 streams; `advance` hears of the samples done.

    Of several streams, sets of these: for each mechanism the batches of the first output, behind them of the second, …
    """
    errors = _build_study(block).squared_errors(STREAMS, block.seed, n_threads, advance, STREAMS * block.number)
    # one stream after the other: how NumPy sums depends on the shape, and so on how many mechanisms there are
    batches = np.moveaxis(errors.reshape(BATCHES, -1, errors.shape[1]), 1, 0)
    return np.ascontiguousarray(np.asarray(sum(batches) / len(batches)).T).reshape(len(block.mechanisms), -1)


def _build_study(block: Block) -> MixedStudy | simulation.BuiltStudy:
    frame = block.burn_in, block.n_samples, block.dtype
    if isinstance(block.source, signal_sources.ChannelSources):
        several = tuple(x for x in block.mechanisms if isinstance(x, compiled_channels.AnyCompiledChannels))
        return simulation.CompiledChannelsStudy(block.source, several, *frame).build_chain()
    one = tuple(x for x in block.mechanisms if isinstance(x, AnyCompiledMechanism))
    return MixedStudy(block.source, one, *frame)


# --- tasks ----------------------------------------------------------------------------------------


class BlockTask(NamedTuple):
    """A task of one worker: some blocks to be simulated."""

    version: str  # of dpfast, which all workers must have
    blocks: tuple[Block, ...]
    cases: tuple[tuple[int, ...], ...]  # of each block, as its mechanisms
    work: float  # multiply-adds, about


class BlockAnswer(NamedTuple):
    """The batch means that a worker has made of a task, and the time that it took."""

    means: list[Array]  # (mechanisms, outputs · batches) of each block
    seconds: float
    version: str


def run_task(task: BlockTask, n_threads: int = 1) -> BlockAnswer:
    """Simulate the blocks of a task, as many at once as there are threads; these do not change the result.

    Raises
    ------
    EngineError
        Where this is another version of dpfast.
    """
    if task.version != version.__version__:
        raise EngineError(
            f"a worker has dpfast {version.__version__}, the sweep was started by {task.version}: install the same "
            "version everywhere and start again; what is finished is kept"
        )
    began, n_blocks = time.perf_counter(), len(task.blocks)
    means = [np.empty(0)] * n_blocks

    def simulate_some(first: int, count: int, check: Callable[[], None]) -> None:
        for i in range(first, first + count):
            means[i] = simulate_block(task.blocks[i], max(1, n_threads // n_blocks), lambda _: check())

    threads.for_ranges(simulate_some, n_blocks, 1, n_threads)
    return BlockAnswer(means, time.perf_counter() - began, task.version)


def iterate_rows(task: BlockTask, answer: BlockAnswer) -> Iterator[tuple[int, int, Array]]:
    """Yield (case, number of the block, batch means) of all that a task has given."""
    for block, cases, means in zip(task.blocks, task.cases, answer.means, strict=True):
        for case, row in zip(cases, means, strict=True):
            yield case, block.number, row


def count_samples(task: BlockTask) -> int:
    """Count the samples of a task, over all cases; those before errors count are left out."""
    return sum(STREAMS * block.n_samples * len(block.mechanisms) for block in task.blocks)


# --- planning -------------------------------------------------------------------------------------


class Group(NamedTuple):
    """A group of cases: the source and burn-in that they share, and the blocks that each of them lacks."""

    source: signal_sources.SignalSource | signal_sources.ChannelSources
    burn_in: int
    lacking: Mapping[int, Sequence[int]]


class Pace:
    """The pace of workers, in seconds for a multiply-add: unknown at first, learnt from answers."""

    def __init__(self) -> None:
        self.rate: float | None = None

    def learn(self, task: BlockTask, answer: BlockAnswer) -> None:
        """Go half the way to the pace of an answer: a first one is slow, as kernels are loaded, and workers differ."""
        rate = answer.seconds / task.work
        self.rate = rate if self.rate is None else (self.rate + rate) / 2

    def fits(self, work: float) -> bool:
        """Tell whether so much work takes no longer than a task should."""
        return self.rate is not None and self.rate * work <= _SECONDS


def plan_tasks(
    groups: Sequence[Group],
    compiled: Callable[[int], AnyCompiled],
    *,
    n_samples: int,
    seed: int,
    dtype: DTypeLike = np.float64,
    pace: Pace,
    in_flight: int = 1,
) -> Iterator[BlockTask]:
    """Plan tasks of about a second for all blocks that are lacking; nothing is made before it is asked for.

    Shorter ones towards the end, none more than its share of what is left, so that all of so many in flight end
    together. Until the pace is known a task is one block. What goes into which task does not change any number.
    """
    n_left = sum(len(numbers) for group in groups for numbers in group.lacking.values())
    pieces: list[_Piece] = []
    work, n_cases = 0.0, 0
    for piece in _plan_pieces(groups, compiled, (n_samples, seed, dtype), pace):
        work, n_cases = work + piece.work, n_cases + len(piece.cases)
        if pieces and not (pace.fits(work) and n_cases * in_flight <= n_left):
            yield _build_task(pieces)
            n_left -= n_cases - len(piece.cases)
            pieces, work, n_cases = [], piece.work, len(piece.cases)
        pieces.append(piece)
    if pieces:
        yield _build_task(pieces)


class _Piece(NamedTuple):
    """A block of a task, with the cases and the work in it."""

    block: Block
    cases: tuple[int, ...]
    work: float


def _build_task(pieces: list[_Piece]) -> BlockTask:
    blocks, cases, works = zip(*pieces, strict=True)
    return BlockTask(version.__version__, blocks, cases, sum(works))


def _plan_pieces(
    groups: Sequence[Group], compiled: Callable[[int], AnyCompiled], frame: tuple[int, int, Any], pace: Pace
) -> Iterator[_Piece]:
    """Yield all blocks that are lacking; the mechanisms of cases that share blocks are made once."""
    n_samples, seed, dtype = frame
    for group in groups:
        n_times = STREAMS * (group.burn_in + n_samples)
        for mechanisms, works in _split_cases(group.lacking, compiled, n_times, pace):
            for number, cases in _group_by_number(group.lacking, tuple(mechanisms)):
                here = tuple(mechanisms[case] for case in cases)
                block = Block(group.source, here, group.burn_in, n_samples, seed, number, dtype)
                yield _Piece(block, cases, sum(works[case] for case in cases))


def _split_cases(
    lacking: Mapping[int, Sequence[int]], compiled: Callable[[int], AnyCompiled], n_times: int, pace: Pace
) -> Iterator[tuple[dict[int, AnyCompiled], dict[int, float]]]:
    """Yield mechanisms and work of cases that fit into one block, those that lack equally much side by side."""
    mechanisms: dict[int, AnyCompiled] = {}
    works: dict[int, float] = {}
    for case in sorted((x for x in lacking if len(lacking[x])), key=lambda x: (len(lacking[x]), x)):
        new = compiled(case)
        work = n_times * estimate_cost(new)
        too_long = pace.rate is not None and not pace.fits(sum(works.values()) + work)
        if mechanisms and (len(mechanisms) == _MOST_MECHANISMS or too_long):
            yield mechanisms, works
            mechanisms, works = {}, {}
        mechanisms[case], works[case] = new, work
    if mechanisms:
        yield mechanisms, works


def _group_by_number(
    lacking: Mapping[int, Sequence[int]], cases: tuple[int, ...]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield for each block in turn the cases that lack it."""
    found: dict[int, list[int]] = {}
    for case in cases:
        for number in lacking[case]:
            found.setdefault(int(number), []).append(case)
    for number in sorted(found):
        yield number, tuple(found[number])


def estimate_cost(compiled: AnyCompiled) -> float:
    """Estimate the multiply-adds for a sample: the coefficients of the filters, and what their passes take."""
    if isinstance(compiled, compiled_channels.AnyCompiledChannels):
        return compiled.cost
    chain, matrices = compiled.as_chain(), compiled.as_matrices()
    if matrices is not None:
        return sum(_operator_cost(x, matrices.horizon) for x in (matrices.strategy, matrices.reconstruction))
    assert chain is not None, "of one kind or the other"
    return chain.cost


def _operator_cost(operator: Operator, horizon: int) -> int:
    """Estimate the multiply-adds for a sample by a matrix, or by a decoder, which multiplies by one over and over."""
    values: Any = operator
    n_entries = sum(x.size for x in values if isinstance(x, np.ndarray)) // horizon
    try:
        operator.squared_rows()
    except NotLinearError:
        n_entries *= _ITERATIONS
    return _TRANSFORM + n_entries
