"""Sweeps: designs made once, blocks simulated wherever there is room, until a rule says that it is enough."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import astuple, dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpfast import _validate
from dpfast._kernels.study import Link, Source
from dpfast._validate import Array
from dpfast.errors import DesignError
from dpfast.files import canonical, digest
from dpfast.montecarlo import check_single, single_error
from dpfast.studies import block
from dpfast.studies.designs import Design, Designs, make, model_of
from dpfast.studies.engines import Engine, Here, Pool, Remote
from dpfast.studies.grid import Case, Grid
from dpfast.studies.progress import Progress
from dpfast.studies.result import Sweep
from dpfast.studies.rows import Row, Stopped, cells
from dpfast.studies.rule import Look, Rule
from dpfast.studies.store import Store

_FORMAT = 1  # of what blocks hold
_MOST = 1e15  # samples of a case, weeks of a processor: numbers of blocks, also of all cases, are integers of 64 bits


def sweep(
    grid: Mapping[str, Any] | Sequence[Mapping[str, Any]] | Grid,
    *,
    seed: Any,
    store: str | os.PathLike[str] | None = None,
    n_samples: int = 10_000,
    burn_in: int | None = None,
    width: float | None = 0.01,
    decide: str | Sequence[str] | None = None,
    budget: float = 1e8,
    confidence: float = 0.95,
    dtype: DTypeLike = np.float64,
    workers: int | None = None,
    executor: Executor | None = None,
    in_flight: int | None = None,
    n_threads: int | None = None,
    progress: bool = False,
) -> Sweep:
    r"""Design and simulate all mechanisms of a grid, each until its error is known well enough.

    All cases with one stream and one target see the same inputs and the same unit noise (common random numbers), over
    the same window of time. Streams are simulated in blocks of 128; a finished block is kept in the store, and a sweep
    that was stopped, however, goes on from there and ends with the same bits. They are the same for any engine.

    Parameters
    ----------
    grid : mapping, sequence of mappings, or Grid
        Parameters and their values. A list, tuple, range or 1-D array is an axis, and so is a mapping from labels to
        values; all else is one value. Several mappings are put together.

        - ``mechanism``: "optimal", "lmmse", "zero_forcing", "decision_feedback", "input_perturbation",
          "output_perturbation", "robust" (or these functions), or mechanisms that are there already.
        - ``target``, and ``model``, of the design; ``stream``, what is simulated (by default the model). Objects, or
          descriptions such as "moving-average:12", "levels:0,1@0.9,0.1".
        - ``privacy``, or its fields: ``epsilon``, ``delta``, ``max_change``, …
        - ``lag`` (None, or "smoother", is the smoother), and what else the design functions take.

        A mechanism drops what it does not take, and has no point where it cannot take a value.
    seed : int or numpy.random.Generator
        Stream i depends on (seed, i) alone. A Generator gives another seed each time, which is another sweep: to go on
        with one, give its number.
    store : path-like, optional
        An SQLite file, begun where there is none, on a disk of this machine; in memory by default. It keeps the designs
        of all its sweeps, and their blocks. Another grid, seed, n_samples, burn_in, dtype, or version of dpfast is
        another sweep. Several processes may use it at once.
    n_samples : int
        Counted samples of each stream.
    burn_in : int, optional
        Samples before errors count; by default the slowest pole of the cases of a stream and target has decayed to
        1e-3.
    width : float, optional
        Simulate a case until its interval for the RMSE, high - low, is at most `width` times the RMSE. None: not asked.
    decide : str or sequence of str, optional
        An axis, such as "mechanism", or several together: until it is decided which of their values errs least, for
        all values of the others, by paired comparisons on the same streams; or they are the same to the bit. The
        probability that the decision for one such cell is wrong is at most 1 - confidence, however often it was
        looked at.
    budget : float
        Counted samples of a case, at most, below 1e15 (in whole blocks, at least one). All of it where neither width
        nor decide is given.
    confidence : float
        Of intervals and decisions, strictly between 0 and 1.
    dtype : {numpy.float64, numpy.float32}
        As in :func:`monte_carlo`.
    workers : int, optional
        Processes of one thread each; one that dies is replaced and its task repeated.
    executor : concurrent.futures.Executor, optional
        Anything with `submit`, such as that of a Dask client, or of mpi4py. By default all runs in this process.
    in_flight : int, optional
        Tasks, of about a second each, that an executor holds at once, at most; by default two for each worker.
    n_threads : int, optional
        Of this process, where neither workers nor executor are given.
    progress : bool
        Show a bar (tqdm, extra ``progress``). Details go to the logger "dpfast.studies".

    Returns
    -------
    Sweep

    Raises
    ------
    ValueError
        For arguments out of range, and where float32 would change a mean squared error by more than 1e-3 of it.
    DesignError
        Where no case has a design. One that fails beside others is a row with the error.
    DataError
        Where the store cannot be used.
    EngineError
        Where workers are lost for good, or have another version of dpfast.

    Notes
    -----
    *Privacy.* None: simulations are reproducible. The store keeps models as numbers: those fitted to private data are
    as private as they.

    Examples
    --------
    >>> found = sweep(
    ...     {
    ...         "mechanism": ["zero_forcing", "lmmse"],
    ...         "target": "exponential:0.9",
    ...         "model": "levels:0,1@0.75,0.25",
    ...         "epsilon": [0.5, 2],
    ...         "delta": 1e-6,
    ...         "lag": 5,
    ...     },
    ...     seed=1,
    ...     n_samples=1000,
    ...     width=0.05,
    ... )
    >>> [(x.labels["epsilon"], x.best.family) for x in found.winners()]
    [(0.5, 'lmmse'), (2.0, 'lmmse')]
    """
    definition = grid if isinstance(grid, Grid) else Grid(grid)
    frame = _Frame(
        seed=_validate.seed(seed),
        n_samples=_validate.integer("n_samples", n_samples, 1),
        burn_in=None if burn_in is None else _validate.integer("burn_in", burn_in, 0),
        dtype=_validate.precision(dtype),
    )
    contest = [decide] if isinstance(decide, str) else decide
    contests = None if contest is None else _contests(definition, contest)
    budget = _validate.number("budget", budget, above=0, below=_MOST)
    blocks = budget // (frame.n_samples * block.STREAMS)
    rule = Rule(width, contests, int(max(1, blocks)), confidence)
    file = None if store is None else _validate.path("store", store)
    engine = _engine(workers, executor, in_flight, n_threads)
    with engine, Store(file) as kept, Progress(progress, len(definition.cases)) as bar:
        run = _Run(definition, frame, rule, kept, engine, bar)
        try:
            run.design()
            n, look = run.simulate()
            return run.sweep(n, look, tuple(contest or ()), _in_words(width, contest, budget))
        except KeyboardInterrupt:
            go_on = (
                f"the same call with seed={frame.seed} goes on" if store is not None else "without a store, all is lost"
            )
            raise KeyboardInterrupt(f"{run.told()}; {go_on}") from None


def _contests(grid: Grid, axes: Any) -> tuple[tuple[int, ...], ...]:
    """The cells of a contest between the values of some axes, each within one group."""
    if not isinstance(axes, (list, tuple)) or not axes:
        raise _validate.fail("decide", "an axis of the grid, or several", axes)
    for axis in axes:
        _validate.choice("decide", axis, grid.axes)
    found = tuple(cases for _, cases in cells(grid.points, axes))
    if any(len({grid.cases[x].group for x in cases}) > 1 for cases in found):
        raise ValueError(
            f"decide must be of axes along which stream and target stay the same, got {', '.join(axes)}: only on the "
            "same inputs can cases be compared"
        )
    return found


def _in_words(width: float | None, contest: Sequence[str] | None, budget: float) -> str:
    """The rule, for people."""
    asked = [f"interval of at most {100 * width:g}% of the RMSE"] if width is not None else []
    asked += [f"best {' and '.join(contest)} decided"] if contest is not None else []
    return f"until {' and '.join(asked)}, or {budget:g} samples" if asked else f"{budget:g} samples a case"


def _engine(workers: int | None, executor: Executor | None, in_flight: int | None, n_threads: int | None) -> Engine:
    if workers is not None and executor is not None:
        raise ValueError("workers and executor must not both be given: choose where to run")
    if in_flight is not None and executor is None:
        raise ValueError("in_flight must be left out without an executor")
    if n_threads is not None and (workers is not None or executor is not None):
        raise ValueError("n_threads must be left out with workers or an executor: a worker uses one thread")
    if workers is not None:
        return Pool(_validate.integer("workers", workers, 1))
    if executor is None:
        return Here(_validate.n_threads(n_threads))
    if isinstance(executor, Engine):
        if in_flight is not None:
            raise ValueError("in_flight must be left out with an engine of this package, which has its own")
        return executor
    if not callable(getattr(executor, "submit", None)):
        raise _validate.fail("executor", "a concurrent.futures.Executor", executor)
    return Remote(executor, None if in_flight is None else _validate.integer("in_flight", in_flight, 1))


@dataclass(frozen=True)
class _Frame:
    """What all blocks share."""

    seed: int
    n_samples: int
    burn_in: int | None
    dtype: np.dtype[Any]

    @property
    def per_block(self) -> int:
        """Counted samples of a block of one case."""
        return block.STREAMS * self.n_samples


@dataclass
class _State:
    """How far it is: counted samples, now and in the end as far as can be seen, and cases."""

    samples_done: int = 0
    samples_expected: int = 0
    cases_done: int = 0
    widest: float | None = None


class _Run:
    """A sweep under way."""

    def __init__(self, grid: Grid, frame: _Frame, rule: Rule, store: Store, engine: Engine, bar: Progress) -> None:
        self.grid, self.frame, self.rule = grid, frame, rule
        self.store, self.engine, self.bar = store, engine, bar
        self.designs = Designs(store, grid)
        self.means: list[dict[int, Array]] = [{} for _ in grid.cases]  # by the number of the block
        self.state = _State()
        self.n_stages = 0
        self._known: dict[int, tuple[Source, int]] = {}

    # --- designs ----------------------------------------------------------------------------------

    def design(self) -> None:
        """Make the designs that the store has not, and see which there are."""
        jobs = self.designs.missing()
        self.bar.designed(0, len(jobs))
        for done, (job, answer) in enumerate(self.engine.run(make, jobs), 1):
            self.designs.add(job, answer)
            self.bar.designed(done, len(jobs))
        self.made = self.designs.load()
        self.live = np.array([x.error is None for x in self.made])
        for case, design in zip(self.grid.cases, self.made, strict=True):
            if design.error is not None:
                self.bar.failed(", ".join(f"{name} {x}" for name, x in case.settings.items()), design.error)
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
                check_single(design.name, single_error(group.source, self._link(number), design.settling))

    def _link(self, case: int) -> Link:
        link = self.made[case].link
        assert link is not None, "of a live case"
        return link

    # --- blocks -----------------------------------------------------------------------------------

    def simulate(self) -> tuple[NDArray[np.int64], Look]:
        """Stages, until the rule wants no more: blocks of each case that count, and what they say."""
        for case, number, means in self.store.all_means(self.entry):
            self.means[case][number] = means
        n, pace = self.live.astype(np.int64), block.Pace()
        while True:
            self._stage(n, pace)
            look = self.rule.look(functools.partial(self._means, n), n)
            self._see(look)
            if (look.wanted == n).all():
                return n, look
            n = look.wanted

    def _means(self, n: NDArray[np.int64], case: int) -> Array:
        """Batch means of the blocks that count."""
        return np.concatenate([self.means[case][x] for x in range(n[case])])

    def _stage(self, wanted: NDArray[np.int64], pace: block.Pace) -> None:
        lacking = [[x for x in range(n) if x not in there] for n, there in zip(wanted, self.means, strict=True)]
        self._begin(int(wanted.sum()), lacking)
        run = functools.partial(block.run, n_threads=self.engine.n_threads)
        tasks = block.plan(
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
                rows = list(block.rows(task, answer))
                self.store.add(self.entry, rows)
                for case, number, means in rows:
                    self.means[case][number] = means
                pace.learn(task, answer)
                self.state.samples_done += block.counted(task)
                self._show()

    def _begin(self, wanted: int, lacking: Sequence[Sequence[int]]) -> None:
        """Say what a stage is to do; what the store has already counts as done."""
        n_lacking = sum(map(len, lacking))
        if n_lacking:
            self.n_stages += 1
            self.bar.stage(self.n_stages, sum(map(bool, lacking)), n_lacking * self.frame.per_block)
        self.state.samples_done = (wanted - n_lacking) * self.frame.per_block
        self.state.samples_expected = max(self.state.samples_expected, wanted * self.frame.per_block)
        self._show()

    def _groups(self, lacking: Sequence[Sequence[int]]) -> Iterator[block.Group]:
        """Blocks that cases lack, group after group."""
        for number, members in enumerate(self.grid.groups):
            here = {case: lacking[case] for case in members if lacking[case]}
            if here:
                yield block.Group(*self._shared(number), here)

    def _shared(self, group: int) -> tuple[Source, int]:
        """Source and burn-in of a group."""
        if group not in self._known:
            members = [x for x in self.grid.groups[group] if self.live[x]]
            burn_in = self.frame.burn_in
            if burn_in is None:
                burn_in = max(self.made[x].settling for x in members)
            model = model_of(self.grid.models[self.grid.cases[members[0]].stream])
            self._known[group] = model.compiled(), burn_in
        return self._known[group]

    def _see(self, look: Look) -> None:
        """What is known after a stage."""
        self.state.samples_expected = int(look.expected.sum()) * self.frame.per_block
        self.state.cases_done = sum(x is not None for x in look.reasons)
        self.state.widest = float(np.nanmax(look.widths))
        self._show()

    def _show(self) -> None:
        self.bar.update(*astuple(self.state))

    def told(self) -> str:
        """How far it is."""
        return f"{self.state.cases_done} of {len(self.grid.cases)} cases were finished"

    # --- the result -------------------------------------------------------------------------------

    def sweep(self, n: NDArray[np.int64], look: Look, contest: tuple[str, ...], rule: str) -> Sweep:
        """All rows."""
        rows = tuple(self._row(case, n, look) for case in self.grid.cases)
        return Sweep(
            rows=rows,
            points=self.grid.points,
            axes=self.grid.axes,
            configuration=self.configuration,
            digest=digest(canonical(self.configuration)),
            seed=self.frame.seed,
            n_samples=self.frame.n_samples,
            confidence=self.rule.confidence,
            contest=contest,
            rule=rule,
            budget_blocks=self.rule.budget_blocks,
        )

    def _row(self, case: Case, n: NDArray[np.int64], look: Look) -> Row:
        design = self.made[case.number]
        return Row(
            number=case.number,
            group=case.group,
            settings=case.settings,
            family=case.family,
            mechanism_name=design.name or case.family,
            lag=design.lag,
            predicted_mse=design.predicted.get(case.stream),
            ideal_mse=design.ideal_mse,
            # on another stream than it was designed for it bounds nothing
            lower_bound_mse=design.lower_bound_mse if case.model in (None, case.stream) else None,
            noise_std=design.noise_std,
            n_samples=self.frame.n_samples,
            confidence=self.rule.confidence,
            batch_means=_validate.frozen(self._means(n, case.number)) if self.live[case.number] else np.empty(0),
            stopped=cast("Stopped", look.reasons[case.number] or "failed"),
            error=design.error,
            notes=design.notes,
            packed=design.packed,
        )


def _configuration(grid: Grid, frame: _Frame, made: Sequence[Design]) -> dict[str, Any]:
    """All that decides what blocks hold; also the designs, as two machines may round them differently."""
    from dpfast import __version__

    return {
        "format": _FORMAT,
        "dpfast": __version__,
        "seed": frame.seed,
        "n_samples": frame.n_samples,
        "burn_in": frame.burn_in,
        "dtype": frame.dtype.name,
        "streams": block.STREAMS,
        "batches": block.BATCHES,
        "grid": grid.content,
        "designs": [x.digest for x in made],
    }
