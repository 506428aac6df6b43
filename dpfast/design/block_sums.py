"""Design block sums: the length of blocks, the noise, and the Kalman filter behind them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast.design.argument_checks import check_name
from dpfast.design.block_arguments import RECEIVERS, BlockArguments, check_phase, listed
from dpfast.design.block_plan import Plan
from dpfast.design.block_problem import BlockProblem
from dpfast.design.mimo.channels_block_sums import sum_channels
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.block_channels_mechanism import BlockChannelsMechanism
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.mechanisms.chain_law import chain_of
from dpfast.mechanisms.group_levels import given_levels
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.mechanisms.posterior_blocks import PosteriorBlockMechanism
from dpfast.privacy.integer_noise.choice import integer_noise
from dpfast.privacy.integer_noise.law import IntegerKind, IntegerNoise
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model
from dpfast.signals.vector_arma import VectorARMA


@overload
def block_sums(
    target: Filter | Toeplitz,
    privacy: Privacy,
    model: Model,
    *,
    lag: Lag = ...,
    length: int | Sequence[int] | None = ...,
    shares: Sequence[float] | None = ...,
    noise: IntegerKind | Literal["best"] = ...,
    unit: float | None = ...,
    phase: int = ...,
    weights: ArrayLike | Literal["best"] | None = ...,
    releases: Sequence[int] | None = ...,
    group: int | Sequence[int] | Literal["best"] | None = ...,
    slack: int | Sequence[int] | None = ...,
    receiver: Literal["linear", "bayes"] = ...,
    name: str | None = ...,
) -> BlockMechanism: ...


@overload
def block_sums(
    target: FilterMatrix,
    privacy: Privacy,
    model: Sequence[Model],  # what grids take: a VectorARMA must be of one stream
    *,
    lag: int = ...,
    length: int | Sequence[int | None] | None = ...,
    shares: Sequence[float] | None = ...,
    noise: IntegerKind | Literal["best"] = ...,
    unit: float | Sequence[float | None] | None = ...,
    phase: int | Sequence[int] = ...,
    name: str | None = ...,
) -> BlockChannelsMechanism: ...


@public_design
def block_sums(
    target: Filter | Toeplitz | FilterMatrix,
    privacy: Privacy,
    model: Model | Sequence[Model] | VectorARMA,
    *,
    lag: Lag = 0,
    length: int | Sequence[int] | Sequence[int | None] | None = None,
    shares: Sequence[float] | None = None,
    noise: IntegerKind | Literal["best"] = "best",
    unit: float | Sequence[float | None] | None = None,
    phase: int | Sequence[int] = 0,
    weights: ArrayLike | Literal["best"] | None = None,
    releases: Sequence[int] | None = None,
    group: int | Sequence[int] | Literal["best"] | None = None,
    slack: int | Sequence[int] | None = None,
    receiver: Literal["linear", "bayes"] = "linear",
    name: str | None = None,
) -> BlockMechanism | BlockChannelsMechanism:
    r"""Publish the sum of every B inputs with integer noise, and estimate the target's output in between from them.

    Use it where δ is small or zero: an event touches one published value, so that pure ε costs little. Behind the sums
    is the periodic Kalman filter, which no linear receiver beats where the model holds; or, for a chain of levels and
    with ``receiver="bayes"``, the posterior mean, which no receiver beats at all.

    Parameters
    ----------
    target : Filter, Toeplitz or FilterMatrix
        F. Over a horizon one that has a recursion: of a filter (``Toeplitz.of(filter, n)``) or a running sum. Of a
        FilterMatrix each input has blocks of its own, with noise of its own.
    privacy : Privacy
        δ may be zero. For several events of a person the noise is that of group privacy, wherever they fall. For
        several inputs with an adjacency: where one event is at one of them, each has all of ε; else they share it.
    model : Model, sequence of Model, or VectorARMA
        Mean and spectrum of u; levels are whole multiples of one distance apart. The guarantee does not depend on its
        being right. For a FilterMatrix a model for each input; inputs are independent, so that a VectorARMA must be of
        one.
    lag : int or "smoother"
        D ≥ 0: the estimate at t is of the output at t - D. The smoother, which None is too, waits as long as that gains
        anything: its lag is that of the mechanism. For a FilterMatrix a number of samples.
    length : int or sequence of int, optional
        For a FilterMatrix one for all inputs, or one for each, None for the best; else:
        B, or of several levels the lengths, each a multiple of the one before, with shares of ε for each. By default
        the one length of least predicted error: all are tried up to 96, beyond that about every 25th part of itself,
        until 60 further ones gain nothing.
    shares : sequence of float, optional
        The shares of ε and δ of each level, which sum to one; equal by default. For a FilterMatrix whose inputs one
        event may all reach, of each input; by default those of least error, where an input may get nothing and is not
        published.
    noise : {"best", "geometric", "canonical", "staircase"}
        The law of the integer noise; "best" is the one of least variance that serves.
    unit : float, optional
        The unit whose multiples real inputs are rounded to; their sensitivity is then the integer part of
        max_change/unit, and one more. Without it inputs of a model without levels are counts, which are integers. What
        is predicted takes the error of rounding for white noise of variance unit²/12, as it nearly is where the part
        of an input that its past does not tell has a standard deviation of at least half a unit. For a FilterMatrix
        also one for each input.
    phase : int
        Samples that the first block is shorter, 0 ... B - 1: it shifts the times of release. Zero over a horizon.
        For a FilterMatrix also one for each input.
    weights : array_like or "best", optional
        Signs of the inputs of a block in its sums, (B, sums), for targets that pass something else than low
        frequencies: 0, 1 or -1, and at most one that is not 0 in a row, as an input may enter one sum only. "best"
        makes them: each input goes to the quadrature, of the frequency where the output has the most power, that is
        larger at its step, with its sign; where plain sums err less it leaves them. By default one sum of all inputs.
    releases : sequence of int, optional
        The steps of a block, 1 ... B, after which each of the sums with these weights is released, with all that came
        since its last release; by default after B, and for "best" the ones of least error.
    group : int or sequence of int or "best", optional
        The blocks, one after the other, that share noise, 2 to 64: it is larger on each sum and smaller on sums of
        blocks, which errs less where memory is long, and gives pure ε all the same. Several numbers are of groups of
        groups: (3, 4) for groups of 3 blocks, 4 of which share noise again. "best" finds how many, of one level or
        more, and the best length with them. By default the noise of every block is its own.
    slack : int or sequence of int, optional
        How much of the noise of a group may cancel at no cost, for each level of groups: c of
        :class:`SharedGeometric`; by default the best, or where errors fall for ever one that gains less than 1 % by
        doubling.
    receiver : {"linear", "bayes"}
        "bayes" is the exact posterior mean E[y_{t-D} | v] for a :class:`MarkovChain` or :class:`IndependentLevels`, of
        any number of levels, behind plain sums of one length. It errs 0.2 to 20 % less than the linear one, most where
        ε is large, and has no prediction: only simulation tells (:func:`monte_carlo`, where the linear one is its
        control). By default its length is the best of the linear receiver or a shorter one: where the posterior mean
        errs least on a few streams of a fixed seed, of fewer where a sample costs much, and at a lag that is no longer
        than gains; it is shortened until that gains nothing twice.
    name : str, optional
        What tables and pictures call it; by default its family and lag.

    Returns
    -------
    BlockMechanism or BlockChannelsMechanism
        The latter for a FilterMatrix, of plain sums: it takes no weights, releases, group and slack, and the linear
        receiver.

    Raises
    ------
    ValueError
        For arguments out of range, groups and slacks whose noise would need too large tables, levels or a max_change
        off the lattice, and noise that does not serve; for a
        posterior mean that would take too much memory or time.
    DesignError
        For a target over a horizon without a recursion, and a posterior mean of a model that is no chain of levels.

    Notes
    -----
    The posterior mean follows P(memory | v) and E[states of the target; memory | v], the memory being what the last
    level tells of the next, by a table with a row for each sum that may be published. With k levels in a range of R
    units, and p states of the target and outputs that the lag asks for, it takes k²p/B multiply-adds for
    a sample, and k²p(BR + 1)² and k³pB(BR + 1) once to make the table; more than 2²² numbers in it, 2³⁰ multiply-adds
    for it or 10⁵ for a sample are refused. Where a published value has probability zero, as bounded noise and a wrong
    model may have it, it tells nothing.

    *Privacy.* Partition, weights, phase and noise depend on the arguments alone, which must not depend on the data. An
    event changes one published value by at most max_change whatever the weights are. Of several inputs it changes one
    of each that it is at: their ε and δ add up to those of `privacy` where it may be at all (basic composition).

    Examples
    --------
    >>> import dpfast as dp
    >>> counts = dp.ARMA([1.2], [1, -0.9], mean=5)
    >>> mechanism = block_sums(dp.Filter([0.1], [1, -0.9]), dp.Privacy(1), counts)
    >>> mechanism.lengths, round(mechanism.predicted_rmse, 4)
    ((2,), 0.246)
    >>> resonator = dp.Filter([1], [1, 0, 0.98])
    >>> for weights in None, "best":
    ...     mechanism = block_sums(resonator, dp.Privacy(1), counts, weights=weights)
    ...     print(mechanism.lengths, round(mechanism.predicted_rmse, 3))
    (1,) 3.782
    (18, 18) 2.955
    """
    if isinstance(target, FilterMatrix):
        _check_for_channels(weights=weights, releases=releases, group=group, slack=slack, receiver=receiver)
        asked_for: dict[str, Any] = {"length": length, "shares": shares, "noise": noise, "unit": unit, "phase": phase}
        return sum_channels(target, privacy, model, lag, **asked_for, name=name)
    return _sum_stream(
        *(target, privacy, model, lag, length, shares, noise, unit, phase),
        *(weights, releases, group, slack, receiver, name),
    )


def _check_for_channels(receiver: str, **others: object) -> None:
    """Refuse what there is for one stream alone."""
    for key, value in others.items():
        if value is not None:
            raise ValueError(f"{key} must not be given for a FilterMatrix, whose blocks are plain sums: leave it out")
    if validation.choice("receiver", receiver, RECEIVERS) != "linear":
        raise ValueError(f"receiver must be 'linear' for a FilterMatrix, got {receiver!r}: leave it out")


def _sum_stream(
    target: Filter | Toeplitz,
    privacy: Privacy,
    model: Any,
    lag: Lag,
    length: Any,
    shares: Sequence[float] | None,
    noise: IntegerKind | Literal["best"],
    unit: Any,
    phase: Any,
    weights: ArrayLike | Literal["best"] | None,
    releases: Sequence[int] | None,
    group: int | Sequence[int] | Literal["best"] | None,
    slack: int | Sequence[int] | None,
    receiver: Literal["linear", "bayes"],
    name: str | None,
) -> BlockMechanism:
    """Design block sums of one stream."""
    problem = BlockProblem.check(target, privacy, model, lag, unit)
    delay = check_lag(lag)
    made = _find_kind(receiver, model, weights)
    asked = BlockArguments.check(
        problem, privacy, length, shares, noise, weights, releases, group, slack, receiver=receiver
    )
    found = _find_sums(problem, asked, privacy, waits=delay is None)
    phase = check_phase(phase, found.plan.schedule.lengths[0], problem.horizon)
    options = _note_options(
        lag=delay,
        noise="geometric" if found.plan.noise else noise,
        length=None if asked.lengths is None else given_levels(asked.lengths),
        shares=None if shares is None else asked.shares,
        unit=None if unit is None else problem.lattice.unit,
        phase=phase or None,
        weights=asked.signs if asked.signs is None or isinstance(asked.signs, str) else "given",
        releases=releases,
        receiver=None if receiver == "linear" else receiver,
        group=group,
        slack=slack,
    )
    title = check_name(name, _title(found.plan, receiver, delay))

    def build(problem: BlockProblem, plan: Plan) -> Any:
        kalman = problem.receiver(plan, found.variances, phase)
        kinds, multiple = tuple(x.kind for x in found.laws), None if unit is None else problem.lattice.unit
        slacks = given_levels(plan.slacks)
        return made(title, target, privacy, model, kalman, kinds, asked.shares, multiple, plan.signs, slacks, options)

    mechanism: BlockMechanism = build(
        found.problem, found.plan
    )  # where it takes too much that is said before any trial
    if receiver == "bayes" and asked.lengths is None:
        trial = functools.partial(build, found.problem.wait_no_longer(found.plan, found.variances))  # as waiting costs
        return build(found.problem, _shorten(found.plan, trial, phase))  # type: ignore[no-any-return]
    return mechanism


class _Found(NamedTuple):
    """The sums of least error, the problem with the lag for which they are, and the laws of noise of their own."""

    problem: BlockProblem
    plan: Plan
    laws: tuple[IntegerNoise, ...]

    @property
    def variances(self) -> tuple[float, ...]:
        return tuple(x.variance for x in self.laws)


def _find_sums(problem: BlockProblem, asked: BlockArguments, privacy: Privacy, *, waits: bool) -> _Found:
    """Find the sums of least error among those that were asked for; and their lag, if they wait as long as it gains."""

    def laws_of(kind: IntegerKind | Literal["best"]) -> tuple[tuple[IntegerNoise, ...], tuple[float, ...]]:
        laws = tuple(integer_noise(kind, privacy, problem.lattice.steps, part) for part in asked.shares)
        return laws, tuple(x.variance for x in laws)

    if asked.search is not None:
        laws, variances = laws_of("geometric")
        found = _Found(*problem.plan_groups(asked.lengths, asked.search, variances, waits=waits), laws)
        if found.plan.noise is not None:
            return found  # else sharing gains nothing, so that any other noise serves as well
    laws, variances = laws_of(asked.noise)
    if isinstance(asked.signs, str):
        return _Found(*problem.plan_best(asked.lengths, variances, waits=waits), laws)
    if asked.signs is None:
        return _Found(*problem.plan_sums(asked.lengths, variances, waits=waits), laws)
    plan = Plan.of(asked.signs)
    return _Found(problem.wait_longer(plan, variances) if waits else problem, plan, laws)


def _title(plan: Plan, receiver: str, lag: int | None) -> str:
    """Name a design by what it is."""
    sums = "block sums" if plan.signs is None else "signed block sums"
    how = ("" if receiver == "linear" else " Bayes") + ("" if plan.noise is None else " of shared noise")
    return f"{sums}{how} {'smoother' if lag is None else f'lag {lag}'}"


def _note_options(lag: int | None, noise: str, **others: Any) -> tuple[tuple[str, Option], ...]:
    """Note what a design was given: always lag and noise, others where they were given; several numbers as one word."""
    given = ((key, _option(value)) for key, value in others.items() if value is not None)
    return ("lag", lag), ("noise", noise), *given


def _option(value: Any) -> Option:
    if validation.is_several(value):
        return listed(value)
    return int(value) if isinstance(value, np.ndarray) else value  # of an array without dimensions


def _find_kind(receiver: object, model: Model, weights: object) -> type[BlockMechanism]:
    """Return the kind of mechanism that has a receiver; refuse a posterior mean of what it cannot follow."""
    if validation.choice("receiver", receiver, RECEIVERS) == "linear":
        return BlockMechanism
    chain_of(model)
    if weights is not None:
        raise ValueError('weights must not be given with receiver="bayes", which follows plain sums: leave one out')
    return PosteriorBlockMechanism


_SHORTER = 10  # per cent of a length, that others are shorter


def _shorten(first: Plan, build: Callable[[Plan], Any], phase: int) -> Plan:
    """Return the plan whose posterior mean errs least: blocks of the length that is there, or of shorter ones.

    Only simulation tells, on streams of a fixed seed. It ends where two lengths, one after the other, err no less.
    """
    length, best, least, without_gain = first.schedule.lengths[0], first, build(first).simulated_mse(), 0
    step = max(1, round(length * _SHORTER / 100))
    while length - step > phase and without_gain < 2:
        length -= step
        plan = Plan.sums(length)
        mse, without_gain = build(plan).simulated_mse(), without_gain + 1
        if mse < least:
            best, least, without_gain = plan, mse, 0
    return best
