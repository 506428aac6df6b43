"""The stages of a sweep: make designs that are not there, simulate blocks that are lacking, look at what they say."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import compiled_channels
from dpfast._kernels.signal_sources import ChannelSources, SignalSource
from dpfast._support import version
from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.simulation.intervals import ErrorSizes
from dpfast.simulation.prepared_channels import add_sizes, channels_precision_error, output_sizes
from dpfast.simulation.prepared_study import check_single_precision, single_precision_error
from dpfast.simulation.rare_error_sizes import error_sizes, input_range
from dpfast.simulation.sweep import several_streams, stream_blocks
from dpfast.simulation.sweep.compiled_mechanism_json import AnyCompiled
from dpfast.simulation.sweep.design_cache import Design, DesignCache
from dpfast.simulation.sweep.design_task import build_target, make_design
from dpfast.simulation.sweep.executors import Engine
from dpfast.simulation.sweep.grid import ParameterGrid
from dpfast.simulation.sweep.progress import Progress
from dpfast.simulation.sweep.stopping_rule import Look, StoppingRule
from dpfast.simulation.sweep.sweep_store import SweepStore

_FORMAT = 1  # of what blocks hold


class BatchMeans:
    """The batch means of a case as its blocks come in: the first ones in one array, others by the block's number.

    Of several streams they are those of each output, and the sum over outputs is what counts.
    """

    def __init__(self) -> None:
        self._first = np.empty((1, 0))
        self._rest: dict[int, Array] = {}

    @property
    def _n(self) -> int:
        return self._first.shape[1] // stream_blocks.BATCHES

    def put(self, number: int, means: Array) -> None:
        """Keep the batch means of a block that was lacking: those of one output behind those of the other."""
        self._rest[number] = means.reshape(-1, stream_blocks.BATCHES)

    def list_lacking(self, n: int) -> list[int]:
        """List those of the first n blocks that are not there."""
        return [x for x in range(self._n, n) if x not in self._rest]

    def outputs(self, n: int) -> Array:
        """Return the batch means (outputs, batches) of the first n blocks, side by side."""
        if n > self._n:
            there = [self._first] if self._n else []
            self._first = np.concatenate([*there, *(self._rest.pop(x) for x in range(self._n, n))], axis=1)
        return self._first[:, : n * stream_blocks.BATCHES]

    def first(self, n: int) -> Array:
        """Return the batch means of all outputs together, of the first n blocks, side by side."""
        total, *others = self.outputs(n)
        for x in others:  # one after the other: in an order that does not depend on how many batches there are
            total = total + x
        return np.asarray(total)


@dataclass(frozen=True)
class Frame:
    """The frame of a sweep, which all its blocks share: seed, window and precision."""

    seed: int
    n_samples: int
    burn_in: int | None
    dtype: np.dtype[Any]

    @property
    def per_block(self) -> int:
        """The counted samples of a block of one case."""
        return stream_blocks.STREAMS * self.n_samples


@dataclass
class _State:
    """The state of a sweep: counted samples, now and in the end as far as can be seen, and finished cases."""

    samples_done: int = 0
    samples_expected: int = 0
    cases_done: int = 0
    widest: float | None = None


class SweepRun:
    """A sweep under way: it designs, and then simulates in stages."""

    def __init__(
        self, grid: ParameterGrid, frame: Frame, rule: StoppingRule, store: SweepStore, engine: Engine, bar: Progress
    ) -> None:
        self.grid, self.frame, self.rule = grid, frame, rule
        self.store, self.engine, self.bar = store, engine, bar
        self.n_first = [frame.n_samples if self._burn_in(x.group) == 0 else None for x in grid.cases]
        self.designs = DesignCache(store, grid, self.n_first)
        self.means = [BatchMeans() for _ in grid.cases]
        self.state = _State()
        self.n_stages = 0
        self._known: dict[int, tuple[SignalSource | ChannelSources, int]] = {}

    # --- designs ----------------------------------------------------------------------------------

    def design(self) -> None:
        """Make the designs that the store has not, and enter the sweep of those that there are."""
        tasks = self.designs.missing_tasks()
        self.bar.report_designs(0, len(tasks))
        with contextlib.closing(self.engine.run(make_design, tasks)) as answers:
            for done, (task, answer) in enumerate(answers, 1):
                self.designs.add(task, answer)
                self.bar.report_designs(done, len(tasks))
        self.made = self.designs.load()
        self.live = np.array([x.error is None for x in self.made])
        for case, design in zip(self.grid.cases, self.made, strict=True):
            if design.error is not None:
                self.bar.report_failure(", ".join(f"{name} {x}" for name, x in case.settings.items()), design.error)
        if not self.live.any():
            raise DesignError(f"no case of the grid has a design; the first: {self.made[0].error}")
        self.configuration = _configuration(self.grid, self.frame, self.made)
        self.entry = self.store.enter(self.configuration)
        if self.frame.dtype == np.float32:
            self._check_single()

    def _check_single(self) -> None:
        for group in self._groups([[0] if x else [] for x in self.live]):
            for number in group.lacking:
                design = self.made[number]
                error = self._precision_error(group.source, self._link(number), design.settling)
                if error is not None:
                    check_single_precision(design.name, error)

    @staticmethod
    def _precision_error(source: SignalSource | ChannelSources, compiled: AnyCompiled, settling: int) -> float | None:
        """Measure what float32 changes; None for matrices, which are computed in float64."""
        if isinstance(source, ChannelSources):
            assert isinstance(compiled, compiled_channels.AnyCompiledChannels), "a group is of one or of several"
            return channels_precision_error(source, compiled, settling)
        assert not isinstance(compiled, compiled_channels.AnyCompiledChannels), "a group is of one or of several"
        chain = compiled.as_chain()
        return None if chain is None else single_precision_error(source, chain, settling)

    def _link(self, case: int) -> AnyCompiled:
        compiled = self.made[case].compiled
        assert compiled is not None, "of a live case"
        return compiled

    # --- blocks -----------------------------------------------------------------------------------

    def simulate(self) -> tuple[NDArray[np.int64], Look]:
        """Simulate in stages until the rule wants no more; return the blocks of each case, and the last look."""
        self._keep(self.store.all_means(self.entry))
        sizes = {x.number: size for x in self.grid.cases if (size := self.error_sizes(x.number)) is not None}
        rule = replace(self.rule, sizes=sizes)
        n, pace = self.live.astype(np.int64), stream_blocks.Pace()
        while True:
            self._stage(n, pace)
            look = rule.look(functools.partial(self._counted_means, n), n)
            self._report_look(look)
            if (look.wanted == n).all():
                return n, look
            n = look.wanted

    def error_sizes(self, case: int) -> ErrorSizes | None:
        """Return the sizes of errors that decisions make in a batch mean of a case; None without decisions."""
        return add_sizes(self.output_sizes(case)) if self.live[case] else None

    def output_sizes(self, case: int) -> list[ErrorSizes | None]:
        """Return the same of each output of a case that has a design."""
        source, _ = self._find_shared(self.grid.cases[case].group)
        compiled, n_samples = self._link(case), self.frame.n_samples
        n_streams = stream_blocks.STREAMS // stream_blocks.BATCHES
        if isinstance(compiled, compiled_channels.AnyCompiledChannels):
            target = build_target(self.grid.targets[self.grid.cases[case].target])
            return output_sizes(target, compiled, n_samples, n_streams)
        assert not isinstance(source, ChannelSources), "a group is of one or of several"
        return [error_sizes(compiled, input_range(source), n_samples, n_streams)]

    def _counted_means(self, n: NDArray[np.int64], case: int) -> Array:
        """Return the batch means of the blocks of a case that count."""
        return self.means[case].first(int(n[case]))

    def _keep(self, rows: Iterable[tuple[int, int, Array]]) -> None:
        for case, number, means in rows:
            self.means[case].put(number, means)

    def _stage(self, wanted: NDArray[np.int64], pace: stream_blocks.Pace) -> None:
        lacking = [means.list_lacking(n) for n, means in zip(wanted, self.means, strict=True)]
        self._begin(int(wanted.sum()), lacking)
        run = functools.partial(stream_blocks.run_task, n_threads=self.engine.n_threads)
        tasks = stream_blocks.plan_tasks(
            list(self._groups(lacking)),
            self._link,
            n_samples=self.frame.n_samples,
            seed=self.frame.seed,
            dtype=self.frame.dtype,
            pace=pace,
            in_flight=self.engine.in_flight,
        )
        with contextlib.closing(self.engine.run(run, tasks)) as answers:
            for task, answer in answers:
                rows = list(stream_blocks.iterate_rows(task, answer))
                self.store.add(self.entry, rows)
                self._keep(rows)
                pace.learn(task, answer)
                self.state.samples_done += stream_blocks.count_samples(task)
                self._show()

    def _begin(self, wanted: int, lacking: Sequence[Sequence[int]]) -> None:
        """Say what a stage is to do; what the store has already counts as done."""
        n_lacking = sum(map(len, lacking))
        if n_lacking:
            self.n_stages += 1
            self.bar.report_stage(self.n_stages, sum(map(bool, lacking)), n_lacking * self.frame.per_block)
        self.state.samples_done = (wanted - n_lacking) * self.frame.per_block
        self.state.samples_expected = max(self.state.samples_expected, wanted * self.frame.per_block)
        self._show()

    def _groups(self, lacking: Sequence[Sequence[int]]) -> Iterator[stream_blocks.Group]:
        """Yield the blocks that cases lack, group after group."""
        for number, members in enumerate(self.grid.groups):
            here = {case: lacking[case] for case in members if lacking[case]}
            if here:
                yield stream_blocks.Group(*self._find_shared(number), here)

    def _find_shared(self, group: int) -> tuple[SignalSource | ChannelSources, int]:
        """Return source and burn-in of a group."""
        if group not in self._known:
            members = [x for x in self.grid.groups[group] if self.live[x]]
            burn_in = self._burn_in(group)
            if burn_in is None:
                burn_in = max(self.made[x].settling for x in members)
            models = several_streams.build_models(self.grid.models[self.grid.cases[members[0]].stream])
            self._known[group] = several_streams.compile_streams(models), burn_in
        return self._known[group]

    def _burn_in(self, group: int) -> int | None:
        """Return that of the frame, 0 with a matrix mechanism, or None: until filters have settled."""
        over_horizon = any(self.grid.cases[x].horizon is not None for x in self.grid.groups[group])
        return 0 if self.frame.burn_in is None and over_horizon else self.frame.burn_in

    def _report_look(self, look: Look) -> None:
        """Show what is known after a stage."""
        self.state.samples_expected = int(look.expected.sum()) * self.frame.per_block
        self.state.cases_done = sum(x is not None for x in look.reasons)
        self.state.widest = float(np.nanmax(look.widths))
        self._show()

    def _show(self) -> None:
        self.bar.report_samples(*astuple(self.state))

    def describe_state(self) -> str:
        """Say how many cases are finished."""
        return f"{self.state.cases_done} of {len(self.grid.cases)} cases were finished"


def _configuration(grid: ParameterGrid, frame: Frame, made: Sequence[Design]) -> dict[str, Any]:
    """Collect all that decides what blocks hold; also the designs, as two machines may round them differently."""
    return {
        "format": _FORMAT,
        "dpfast": version.__version__,
        "seed": frame.seed,
        "n_samples": frame.n_samples,
        "burn_in": frame.burn_in,
        "dtype": frame.dtype.name,
        "streams": stream_blocks.STREAMS,
        "batches": stream_blocks.BATCHES,
        "grid": grid.content,
        "designs": [x.digest for x in made],
    }
