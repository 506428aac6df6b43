"""The best mechanism of all families: by prediction and, where only simulation tells, by paired comparison.

It is in this room, and not among the designs, as it may simulate; what it does without is in the rooms before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast._support.progress import progress_bar
from dpfast.design.best_conclusion import conclude
from dpfast.design.best_demand import Demand, Minimize, check_demand
from dpfast.design.best_ranking import Ranking, rank, split_candidates
from dpfast.design.mimo.best_channels import AnyChannels, best_of_channels
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.lags import Lag
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.privacy.privacy import Privacy
from dpfast.signals.channel_models import ChannelModels
from dpfast.signals.model import Model
from dpfast.simulation.best_simulated import judge_simulated

_PATIENCE = 2.0  # seconds without a bar


@overload
def best(
    target: Filter | Toeplitz,
    privacy: Privacy,
    model: Model | None = ...,
    *,
    lag: Lag = ...,
    minimize: Minimize = ...,
    online: bool = ...,
    simulate: bool = ...,
    releasable: bool = ...,
    unit: float | None = ...,
    tolerance: float = ...,
    seed: Any = ...,
    progress: bool = ...,
) -> AnyMechanism: ...


@overload
def best(
    target: FilterMatrix,
    privacy: Privacy,
    model: ChannelModels | Sequence[Model] | None = ...,
    *,
    lag: int = ...,
    releasable: bool = ...,
    unit: float | None = ...,
    tolerance: float = ...,
    progress: bool = ...,
) -> AnyChannels: ...


@public_design
def best(
    target: Filter | Toeplitz | FilterMatrix,
    privacy: Privacy,
    model: Any = None,
    *,
    lag: Lag = 0,
    minimize: Minimize = "mean",
    online: bool = True,
    simulate: bool = False,
    releasable: bool = False,
    unit: float | None = None,
    tolerance: float = 1e-3,
    seed: Any = 0,
    progress: bool = False,
) -> AnyMechanism | AnyChannels:
    r"""Design every family of mechanisms that can serve, and return the one of the least error.

    No family wins everywhere: Gaussian filters where δ is large and memory is long, block sums where δ is small,
    randomised response where ε is large or memory short. What comes back says how it compares: print its ``choice``.

    Parameters
    ----------
    target : Filter, Toeplitz or FilterMatrix
        F, whose output should be published; over a horizon A.
    privacy : Privacy
        δ may be zero: families that need one are left out then. With an adjacency, for several inputs.
    model : Model, or sequence of Model, optional
        Mean and spectrum of u, and its levels if it has any. The guarantee does not depend on whether they are right,
        but the error does. Without a model the unbiased families are designed: zero forcing, noise on inputs or
        outputs, and over a horizon factorizations and trees. For a FilterMatrix a model for each input.
    lag : int or "smoother"
        D: by how many samples an estimate may come late. "smoother", or None, needs ``online=False``.
    minimize : {"mean", "worst_step"}
        The mean square error over time, or that of the worst step. For a FilterMatrix the mean, of all outputs
        together, at a lag.
    online : bool
        False for a batch: what waits for the whole input may serve too, such as smoothers. Over a horizon estimates
        then use all that is published, whatever the lag.
    simulate : bool
        True also tries what only simulation tells, such as decision feedback. It is chosen only where a paired
        comparison with the best predicted mechanism favours it: a one-sided test, all of them together at level 1e-3.
        What is not decided is listed as such, with its interval.
    releasable : bool
        True leaves out what :func:`dpfast.release` cannot publish so far, and takes integer noise that can be drawn
        exactly: geometric noise where staircase noise, which cannot, has less variance. By default all are compared,
        as in a study, and the sentence says which of them is to be taken for real data.
    unit : float, optional
        The unit whose multiples real inputs are rounded to before noise on the integers; without it inputs are counts,
        or lie on the levels of the model.
    tolerance : float
        Accept this relative increase of the MSE in exchange for filters of lower order.
    seed : int or numpy.random.Generator
        The seed of the first simulation; further ones take the next integers.
    progress : bool
        Show a bar (tqdm, extra ``progress``), where it takes more than two seconds.

    Returns
    -------
    Mechanism, BlockMechanism, MatrixMechanism, ChannelsMechanism or BlockChannelsMechanism
        With ``choice`` (:class:`Choice`): a sentence, a row for each mechanism, bounds, and the reasons of families
        that cannot serve; and ``alternatives``, the other mechanisms in order. No predicted one errs less by more than
        1e-9 of the error. Whether even this is worse than publishing the mean, the sentence says.

    Raises
    ------
    ValueError
        For arguments out of range; for a smoother online; for `simulate` with the worst step, which is not simulated.
    DesignError
        Where no family can serve; it says what would have to change.

    Notes
    -----
    *Privacy.* Each mechanism has its own guarantee, pure ε or (ε, δ), which its row names. The choice rests on the
    arguments alone: where these were found by looking at the data, so was the choice.

    Examples
    --------
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> mechanism = dp.best(dp.Filter([0.1], [1, -0.9]), dp.Privacy(1, 1e-6), chain, lag=5, tolerance=0.1)
    >>> mechanism.lengths, [row.name for row in mechanism.choice.rows[:3]]
    ((7,), ['block sums (shared noise)', 'block sums', 'randomised response'])
    >>> mechanism.choice.sentence.split(", 32 %")[0]
    'Use block sums of 7 samples, with noise shared by 2 of them: RMSE 0.109 (explains 66 %)'
    >>> counts, one_of_two = dp.ARMA([1.2], [1, -0.9], mean=5), dp.Privacy(1, 1e-6, adjacency="one_input")
    >>> several = dp.best(dp.total(2) * dp.Filter([0.1], [1, -0.9]), one_of_two, [counts, counts], tolerance=0.1)
    >>> several.choice.sentence
    'Use block sums: RMSE 0.348 of all outputs together (explains 98 %), 32 % below optimal, general.'
    """
    given: dict[str, Any] = {"lag": lag, "releasable": releasable, "unit": unit, "tolerance": tolerance}
    if isinstance(target, FilterMatrix):
        _check_for_channels(minimize=(minimize, "mean"), online=(online, True), simulate=(simulate, False))
        return best_of_channels(target, privacy, model, progress=progress, **given)
    task = check_demand(target, privacy, model, minimize=minimize, online=online, **given)
    check_simulate(simulate, task)
    options: dict[str, Any] = {"seed": validation.seed(seed), "progress": progress, "patience": _PATIENCE}
    return find_best(task, simulate=simulate, list_all=False, **options)[1]


def _check_for_channels(**given: tuple[Any, Any]) -> None:
    """Refuse what there is for one stream alone."""
    for name, (value, only) in given.items():
        if value is not only and value != only:
            raise ValueError(f"{name} must be {only!r} for a FilterMatrix, got {value!r}: leave it out")


def check_simulate(simulate: Any, task: Demand) -> None:
    """Refuse to simulate where that does not tell the error that is to be the least."""
    validation.instance("simulate", simulate, bool, "True or False")
    if simulate and task.minimize != "mean":
        raise ValueError(f"simulate must be False with minimize={task.minimize!r}: only the mean error is simulated")


def find_best(
    task: Demand, *, simulate: bool, list_all: bool, seed: int, progress: bool, patience: float
) -> tuple[Ranking, AnyMechanism]:
    """Return all that can serve a task, and the best of it.

    Parameters
    ----------
    task : Demand
    simulate : bool
    list_all : bool
        Design what only simulation tells also where there is none.
    seed : int
    progress : bool
    patience : float
        Seconds without a bar.
    """
    total = len(split_candidates(task)[0])
    with progress_bar(progress, total, "designing", unit="design", delay=patience) as advance:
        ranking = rank(task, advance, unpredicted=simulate or list_all)
    judged, trial = judge_simulated(ranking, seed, progress) if simulate else ((), "")
    return ranking, conclude(ranking, judged, trial)
