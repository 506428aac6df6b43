"""Sweeps: designs made once, blocks simulated wherever there is room, until a rule says that it is enough."""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpfast._support import thread_count, validation
from dpfast._support.canonical_json import canonical, digest
from dpfast.simulation.prepared_study import check_window
from dpfast.simulation.sweep import stream_blocks as block
from dpfast.simulation.sweep.design_task import prediction_key, true_output_variances
from dpfast.simulation.sweep.executors import Engine, ExecutorEngine, Pool, ThisProcess
from dpfast.simulation.sweep.grid import Case, ParameterGrid
from dpfast.simulation.sweep.progress import Progress
from dpfast.simulation.sweep.result import Sweep
from dpfast.simulation.sweep.rows import Row, Stopped, group_cells
from dpfast.simulation.sweep.stopping_rule import Look, StoppingRule
from dpfast.simulation.sweep.sweep_stages import Frame, SweepRun
from dpfast.simulation.sweep.sweep_store import SweepStore

_N_SAMPLES = 10_000  # counted of each stream, if nothing is said
_MOST = 1e15  # samples of a case, weeks of a processor: the blocks of all cases must be an integer of 64 bits


def sweep(
    grid: Mapping[str, Any] | Sequence[Mapping[str, Any]] | ParameterGrid,
    *,
    seed: Any,
    store: str | os.PathLike[str] | None = None,
    n_samples: int | None = None,
    burn_in: int | None = None,
    width: float | None = 0.01,
    decide: str | Sequence[str] | None = None,
    budget: float = 1e8,
    confidence: float = 0.95,
    dtype: DTypeLike = np.float64,
    workers: int | None = None,
    executor: Executor | Engine | None = None,
    in_flight: int | None = None,
    n_threads: int | None = None,
    progress: bool = False,
) -> Sweep:
    r"""Design and simulate all mechanisms of a grid, each until its error is known well enough.

    All cases with one stream and one target see the same inputs and the same unit noise (common random numbers), over
    the same window of time. Streams are simulated in blocks of 128; a finished block is kept in the store, and a sweep
    can be interrupted and resumed, with bit-identical results, which are also those of any engine.

    Parameters
    ----------
    grid : mapping, sequence of mappings, or ParameterGrid
        Parameters and their values. A list, tuple, range or 1-D array is an axis, and so is a mapping from labels to
        values; all else is one value. Several mappings are put together.

        - ``mechanism``: "optimal", "lmmse", "zero_forcing", "decision_feedback", "input_perturbation",
          "output_perturbation", "robust", and for so many steps "optimal_factorization", "square_root",
          "buffered_toeplitz", "binary_tree", "tree", "decayed_sum", "fourier_perturbation", "compressive" (or
          these functions), or mechanisms that are there already.
        - ``target``, and ``model``, of the design; ``stream``, what is simulated (by default the model). Objects, or
          descriptions such as "moving-average:12", "levels:0,1@0.9,0.1".
        - ``privacy``, or its fields: ``epsilon``, ``delta``, ``max_change``, …
        - ``lag`` (None, or "smoother", is the smoother), and what else the design functions take.

        A mechanism drops what it does not take, and has no point where it cannot take a value.

        Of several streams, where the target is a FilterMatrix, ``model`` and ``stream`` are a VectorARMA or a model
        for each input as one value, ``[m1, m2]``; an axis of these is a list of such lists. ``adjacency`` must be
        given, or a ``privacy`` that has one; a ``max_change`` for each input is one value too, ``[[1, 2]]``.
        ``prefilter`` is a word, or for "lmmse" a FilterMatrix. Intervals and decisions are those of the sum of the MSE
        of all outputs; rows have each output by itself, too. A part of a grid is of one stream or of several.
    seed : int or numpy.random.Generator
        Stream i depends on (seed, i) alone. A Generator gives another seed each time, which is another sweep: to go on
        with one, give its number.
    store : path-like, optional
        An SQLite file, begun where there is none, on a disk of this machine; in memory by default. It keeps the designs
        of all its sweeps, and their blocks. Another grid, seed, n_samples, burn_in, dtype, or version of dpfast is
        another sweep. Several processes may use it at once.
    n_samples : int, optional
        Counted samples of each stream; by default 10,000, or the horizon of the matrix mechanisms.
    burn_in : int, optional
        Samples before errors count; by default the slowest pole of the cases of a stream and target has decayed to
        1e-3, so that it depends on the grid: give it where parts of one are swept alone and put together.
        With a matrix mechanism among these cases it is 0. Where it is 0 errors are predicted for the first
        n_samples steps, and there is no lower bound for filters, which begin with less error.
    width : float, optional
        Simulate a case until its interval for the RMSE, high - low, is at most `width` times the RMSE. None: not asked.
        A receiver that decides between levels, and has a wrong decision in fewer than 16 batches of 8 streams, goes on
        whatever the width is: its interval is a bound for rare errors then, and its row says so.
    decide : str or sequence of str, optional
        An axis, such as "mechanism", or several together: until it is decided which of their values errs least, for
        all values of the others, by paired comparisons on the same streams; or they are the same to the bit. The
        probability that the decision for one such cell is wrong is at most 1 - confidence, however often it was
        looked at. Where errors are too rare, only their bounds decide.
    budget : float
        Counted samples of a case, at most, below 1e15 (in whole blocks, at least one). All of it where neither width
        nor decide is given.
    confidence : float
        The confidence of intervals and decisions, strictly between 0 and 1.
    dtype : {numpy.float64, numpy.float32}
        As in :func:`monte_carlo`.
    workers : int, optional
        Processes of one thread each; one that dies is replaced and its task repeated. In a script the call must be
        under ``if __name__ == "__main__":``, as each worker imports it.
    executor : concurrent.futures.Executor, optional
        Anything with `submit`, such as ``distributed.Client(address).get_executor(pure=False)`` of Dask (extra
        ``dask``; the same version of dpfast on all machines), or that of mpi4py. By default all runs in this process.
    in_flight : int, optional
        Tasks, of about a second each, that an executor holds at once, at most; by default two for each worker.
    n_threads : int, optional
        The threads of this process, if neither workers nor executor are given.
    progress : bool
        Show a bar (tqdm, extra ``progress``). Details go to the logger "dpfast.studies".

    Returns
    -------
    Sweep

    Raises
    ------
    ValueError
        For arguments out of range, for models of other inputs than the target has, for several inputs without an
        adjacency, for n_samples that are not the horizon of a matrix mechanism, and where float32 would change a mean
        squared error by more than 1e-3 of it.
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

    The total of two streams, for somebody who is in one of them, or in both:

    >>> import dpfast as dp
    >>> calm = dp.ARMA([1], [1, -0.9])
    >>> found = sweep(
    ...     {
    ...         "mechanism": "optimal",
    ...         "target": dp.total(2) * dp.Filter([0.1], [1, -0.9]),
    ...         "model": [calm, calm],
    ...         "epsilon": 1,
    ...         "delta": 1e-6,
    ...         "adjacency": ["one_input", "each_input"],
    ...     },
    ...     seed=1,
    ...     n_samples=1000,
    ...     width=0.05,
    ... )
    >>> [(row.settings["adjacency"], round(row.predicted_rmse, 2)) for row in found]
    [('one_input', 0.64), ('each_input', 0.83)]
    """
    definition = grid if isinstance(grid, ParameterGrid) else ParameterGrid(grid)
    over_horizon = [(str(x.settings["mechanism"]), x.horizon) for x in definition.cases if x.horizon is not None]
    if n_samples is None:
        n_samples = next((horizon for _, horizon in over_horizon), _N_SAMPLES)
    frame = Frame(
        seed=validation.seed(seed),
        n_samples=validation.integer("n_samples", n_samples, 1),
        burn_in=None if burn_in is None else validation.integer("burn_in", burn_in, 0),
        dtype=validation.precision(dtype),
    )
    check_window(over_horizon, frame.n_samples, frame.burn_in)
    contest = [decide] if isinstance(decide, str) else decide
    contests = None if contest is None else _list_contests(definition, contest)
    budget = validation.number("budget", budget, above=0, below=_MOST)
    blocks = budget // (frame.n_samples * block.STREAMS)
    rule = StoppingRule(width, contests, int(max(1, blocks)), confidence)
    file = None if store is None else validation.path("store", store)
    engine = _choose_engine(workers, executor, in_flight, n_threads)
    ours = contextlib.nullcontext() if engine is executor else engine
    with ours, SweepStore(file) as kept, Progress(progress, len(definition.cases)) as bar:
        run = SweepRun(definition, frame, rule, kept, engine, bar)
        try:
            run.design()
            n, look = run.simulate()
            return _build_sweep(run, n, look, tuple(contest or ()), _describe_rule(width, contest, budget))
        except KeyboardInterrupt:
            go_on = (
                f"the same call with seed={frame.seed} goes on" if store is not None else "without a store, all is lost"
            )
            raise KeyboardInterrupt(f"{run.describe_state()}; {go_on}") from None


def _list_contests(grid: ParameterGrid, axes: Any) -> tuple[tuple[int, ...], ...]:
    """List the cells of a contest between the values of some axes, each within one group."""
    if not isinstance(axes, (list, tuple)) or not axes:
        raise validation.fail("decide", "an axis of the grid, or several", axes)
    for axis in axes:
        validation.choice("decide", axis, grid.axes)
    found = tuple(cases for _, cases in group_cells(grid.points, axes))
    if any(len({grid.cases[x].group for x in cases}) > 1 for cases in found):
        raise ValueError(
            f"decide must be of axes along which stream and target stay the same, got {', '.join(axes)}: only on the "
            "same inputs can cases be compared"
        )
    return found


def _describe_rule(width: float | None, contest: Sequence[str] | None, budget: float) -> str:
    """Say the rule in words."""
    asked = [f"interval of at most {100 * width:g}% of the RMSE"] if width is not None else []
    asked += [f"best {' and '.join(contest)} decided"] if contest is not None else []
    return f"until {' and '.join(asked)}, or {budget:g} samples" if asked else f"{budget:g} samples a case"


def _choose_engine(
    workers: int | None, executor: Executor | Engine | None, in_flight: int | None, n_threads: int | None
) -> Engine:
    if workers is not None and executor is not None:
        raise ValueError("workers and executor must not both be given: choose where to run")
    if in_flight is not None and executor is None:
        raise ValueError(
            "in_flight must be left out without an executor, which runs so many tasks at once: give executor=, or "
            "leave it out"
        )
    if n_threads is not None and (workers is not None or executor is not None):
        raise ValueError("n_threads must be left out with workers or an executor: a worker uses one thread")
    if workers is not None:
        return Pool(validation.integer("workers", workers, 1))
    if executor is None:
        return ThisProcess(thread_count.n_threads(n_threads))
    if isinstance(executor, Engine):
        if in_flight is not None:
            raise ValueError("in_flight must be left out with an engine of this package, which has its own")
        return executor
    if not callable(getattr(executor, "submit", None)):
        raise validation.fail("executor", "a concurrent.futures.Executor", executor)
    return ExecutorEngine(executor, None if in_flight is None else validation.integer("in_flight", in_flight, 1))


def _build_sweep(run: SweepRun, n: NDArray[np.int64], look: Look, contest: tuple[str, ...], rule: str) -> Sweep:
    """Build the sweep of a run that has ended, with all rows."""
    variances = functools.cache(
        lambda target, stream, n_first: true_output_variances(
            run.grid.targets[target], run.grid.models[stream], n_first
        )
    )
    rows = tuple(
        _build_row(run, x, int(n[x.number]), look.reasons[x.number], variances(x.target, x.stream, first))
        for x, first in zip(run.grid.cases, run.n_first, strict=True)
    )
    return Sweep(
        rows=rows,
        points=run.grid.points,
        axes=run.grid.axes,
        configuration=run.configuration,
        digest=digest(canonical(run.configuration)),
        seed=run.frame.seed,
        n_samples=run.frame.n_samples,
        confidence=run.rule.confidence,
        contest=contest,
        rule=rule,
        budget_blocks=run.rule.budget_blocks,
    )


def _build_row(run: SweepRun, case: Case, n_blocks: int, stopped: str | None, variances: tuple[float, ...]) -> Row:
    design = run.made[case.number]
    row = Row(
        number=case.number,
        group=case.group,
        settings=case.settings,
        family=case.family,
        mechanism_name=design.name or case.family,
        lag=design.lag,
        predicted_mse=design.predicted.get(prediction_key(case.stream, run.n_first[case.number])),
        ideal_mse=design.ideal_mse,
        lower_bound_mse=design.lower_bound(case.stream, run.n_first[case.number]),
        noise_std=design.noise_std,
        n_samples=run.frame.n_samples,
        confidence=run.rule.confidence,
        batch_means=validation.freeze(run.means[case.number].first(n_blocks).copy()),
        stopped=cast("Stopped", stopped or "failed"),
        sizes=run.error_sizes(case.number),
        error=design.error,
        notes=design.notes,
        packed=design.packed,
        variance=math.fsum(variances),
        has_own_stream=design.model == case.stream and run.n_first[case.number] is None,
    )
    return replace(row, outputs=_build_outputs(run, row, case, n_blocks, variances))


def _build_outputs(run: SweepRun, row: Row, case: Case, n_blocks: int, variances: tuple[float, ...]) -> tuple[Row, ...]:
    """Build a row for each output; none for one stream, and for a design that failed."""
    found = run.made[case.number].predicted_outputs
    if row.failed or not found:
        return ()
    means, sizes = run.means[case.number].outputs(n_blocks), run.output_sizes(case.number)
    predicted = found[prediction_key(case.stream, run.n_first[case.number])]
    mse = [None] * len(means) if predicted is None else predicted
    return tuple(
        replace(
            row,
            mechanism_name=f"{row.mechanism_name}, output {i}",
            predicted_mse=expected,
            batch_means=validation.freeze(values.copy()),
            sizes=size,
            variance=variance,
            ideal_mse=None,
            lower_bound_mse=None,
            packed=b"",
            has_own_stream=False,
        )
        for i, (expected, values, size, variance) in enumerate(zip(mse, means, sizes, variances, strict=True))
    )
