"""Simulate the mechanisms of which only simulation tells the error, beside the best of which it is predicted."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpfast._support.validation import Array
from dpfast.design.best_conclusion import SimulatedDesign, Verdict
from dpfast.design.best_ranking import Designed, Ranking
from dpfast.simulation.intervals import difference_interval, rmse_interval
from dpfast.simulation.monte_carlo import monte_carlo
from dpfast.simulation.prepared_study import default_burn_in
from dpfast.simulation.study import Result

LEVEL = 1e-3  # of the one-sided tests together that a simulated mechanism errs less
CONFIDENCE = 0.95  # of the intervals that are shown
STAGES = 64, 192, 768  # streams that come to those before, as long as something is undecided
_LEAST, _MOST = 4000, 50_000  # samples of a stream
_MEMORIES = 4  # samples of a stream, in settling times


def judge_simulated(ranking: Ranking, seed: int, progress: bool) -> tuple[tuple[SimulatedDesign, ...], str]:
    """Compare each mechanism without a prediction with the best that has one, on the same inputs and unit noise.

    There is a look at the results after each stage. All tests of all looks together find an improvement where there is
    none with a probability of at most `LEVEL`: each is at `LEVEL` over their number (Bonferroni).

    Returns
    -------
    tuple of SimulatedDesign, and what was done, in words
    """
    task, first = ranking.task, ranking.ranked[0]
    tried = [first, *ranking.unpredicted]
    if len(tried) == 1:
        return (), ""
    assert task.model is not None  # as without one there is nothing that only simulation tells
    mechanisms = [replace(x.mechanism, name=x.label) for x in tried]
    n_samples = task.horizon or int(np.clip(_MEMORIES * default_burn_in(mechanisms), _LEAST, _MOST))
    level = LEVEL / (len(STAGES) * len(ranking.unpredicted))
    found: dict[str, list[Result]] = {x.label: [] for x in tried}
    verdicts: dict[str, Verdict] = {}
    for stage, n_streams in enumerate(STAGES):
        study = monte_carlo(
            mechanisms, task.model, n_streams=n_streams, n_samples=n_samples, seed=seed + stage, progress=progress
        )
        for x in tried:
            found[x.label].append(study[x.label])
        verdicts = {x.label: _verdict(found[x.label], found[first.label], level) for x in ranking.unpredicted}
        if "undecided" not in verdicts.values():
            break
    judged = tuple(_judged(x, found[x.label], verdicts[x.label]) for x in ranking.unpredicted)
    n_streams, n_seeds = len(_errors(found[first.label])), len(found[first.label])
    seeds = f"seed {seed}" if n_seeds == 1 else f"seeds {seed} to {seed + n_seeds - 1}"
    return judged, (
        f"Simulated: {n_streams} streams of {n_samples} samples, {seeds}; what only simulation tells is chosen where "
        f"it errs less than {first.label} in a paired one-sided test, all tests together at level {LEVEL:g}; "
        f"intervals of {100 * CONFIDENCE:g} %."
    )


def _errors(results: list[Result]) -> Array:
    return np.concatenate([x.stream_mse for x in results])


def _verdict(results: list[Result], others: list[Result], level: float) -> Verdict:
    """Tell whether the mean error is below that of the other, each side at a level.

    A posterior mean has an exact error less what is simulated, a control variate, which is compared with the exact
    error of the other; anything else is compared by squared errors on the same streams, which vary together.
    """
    first, predicted = results[0], others[0].predicted_rmse
    if first.controlled_mse is not None and predicted is not None:
        values = np.concatenate([x.values for x in results])
        low, high = difference_interval(values, np.full(len(values), predicted**2), 2 * level)
    else:
        low, high = difference_interval(_errors(results), _errors(others), 2 * level, (first.sizes, others[0].sizes))
    return "better" if high < 0 else "worse" if low > 0 else "undecided"


def _judged(x: Designed, results: list[Result], verdict: Verdict) -> SimulatedDesign:
    values = np.concatenate([x.values for x in results])
    rmse = math.sqrt(max(0.0, float(values.mean())))
    return SimulatedDesign(x, rmse, rmse_interval(values, CONFIDENCE, results[0].sizes), verdict)
