"""Design block sums: the length of blocks, the noise, and the Kalman filter behind them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast.design.block_plan import LARGEST_TREE, GroupSearch, Plan
from dpfast.design.block_problem import LONGEST, BlockProblem
from dpfast.design.block_signs import Signs
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.mechanisms.block_weights import check_weights
from dpfast.mechanisms.chain_law import chain_of
from dpfast.mechanisms.group_levels import check_levels, given_levels
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.mechanisms.posterior_blocks import PosteriorBlockMechanism
from dpfast.privacy.integer_noise.choice import integer_noise, shared_noise
from dpfast.privacy.integer_noise.law import IntegerKind
from dpfast.privacy.integer_noise.shared import LARGEST_GROUP
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model

BEST = "best"  # weights
_SAME_SHARES = 1e-12


def block_sums(
    target: Filter | Toeplitz,
    privacy: Privacy,
    model: Model,
    *,
    lag: Lag = 0,
    length: int | Sequence[int] | None = None,
    shares: Sequence[float] | None = None,
    noise: IntegerKind | Literal["best"] = "best",
    unit: float | None = None,
    phase: int = 0,
    weights: ArrayLike | Literal["best"] | None = None,
    releases: Sequence[int] | None = None,
    group: int | Sequence[int] | Literal["best"] | None = None,
    slack: int | Sequence[int] | None = None,
    receiver: Literal["linear", "bayes"] = "linear",
    name: str | None = None,
) -> BlockMechanism:
    r"""Publish the sum of every B inputs with integer noise, and estimate the target's output in between from them.

    Use it where δ is small or zero: an event touches one published value, so that pure ε costs little. Behind the sums
    is the periodic Kalman filter, which no linear receiver beats where the model holds; or, for a chain of levels and
    with ``receiver="bayes"``, the posterior mean, which no receiver beats at all.

    Parameters
    ----------
    target : Filter or Toeplitz
        F. Over a horizon one that has a recursion: of a filter (``Toeplitz.of(filter, n)``) or a running sum.
    privacy : Privacy
        δ may be zero. For several events of a person the noise is that of group privacy, wherever they fall.
    model : Model
        Mean and spectrum of u; of levels, these lie on a lattice. The guarantee does not depend on its being right.
    lag : int or "smoother"
        D ≥ 0: the estimate at t is of the output at t - D. The smoother, which None is too, waits as long as that gains
        anything: its lag is that of the mechanism.
    length : int or sequence of int, optional
        B, or of several levels the lengths, each a multiple of the one before, with shares of ε for each. By default
        the one length of least predicted error: all are tried up to 96, beyond that about every 25th part of itself,
        until 60 further ones gain nothing.
    shares : sequence of float, optional
        Of ε and δ for each level, which sum to one; equal by default.
    noise : {"best", "geometric", "canonical", "staircase"}
        Of the integers; "best" is the law of least variance that serves.
    unit : float, optional
        The lattice that real inputs are rounded to; their sensitivity is then the integer part of max_change/unit, and
        one more. Without it inputs of a model without levels are counts, which are integers. What is predicted takes
        the error of rounding for white noise of variance unit²/12, as it nearly is where the part of an input that its
        past does not tell has a standard deviation of at least half a unit.
    phase : int
        Samples that the first block is shorter, 0 ... B - 1: it shifts the times of release. Zero over a horizon.
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
        :class:`SharedGeometric` and of :class:`NestedGeometric`; by default the best.
    receiver : {"linear", "bayes"}
        "bayes" is the exact posterior mean E[y_{t-D} | v] for a :class:`MarkovChain` or :class:`IndependentLevels`, of
        any number of levels, behind plain sums of one length. It errs 0.2 to 20 % less than the linear one, most where
        ε is large, and has no prediction: only simulation tells (:func:`monte_carlo`, where the linear one is its
        control). By default its length is the best of the linear receiver or a shorter one: where the posterior mean
        errs least on a few streams of a fixed seed; it is shortened until that gains nothing twice.
    name : str, optional

    Returns
    -------
    BlockMechanism

    Raises
    ------
    ValueError
        For arguments out of range, levels or a max_change off the lattice, and noise that does not serve; for a
        posterior mean that would take too much memory or time.
    DesignError
        For a target over a horizon without a recursion, and a posterior mean of a model that is no chain of levels.

    Notes
    -----
    The posterior mean follows P(memory | v) and E[states of the target; memory | v], the memory being what the last
    level tells of the next, by a table with a row for each sum that may be published. With k levels in a range of R
    steps of the lattice, and p states of the target and outputs that the lag asks for, it takes k²p/B multiply-adds for
    a sample, and k²p(BR + 1)² and k³pB(BR + 1) once to make the table; more than 2²² numbers in it, 2³⁰ multiply-adds
    for it or 10⁵ for a sample are refused. Where a published value has probability zero, as bounded noise and a wrong
    model may have it, it tells nothing.

    *Privacy.* Partition, weights, phase and noise depend on the arguments alone, which must not depend on the data. An
    event changes one published value by at most max_change whatever the weights are.

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
    problem = BlockProblem.check(target, privacy, model, lag, unit)
    delay = check_lag(lag)
    made = _check_receiver(receiver, model, weights)
    if length is None and shares is not None:
        raise ValueError("shares must not be given without the lengths that they are for: give length=")
    given = None if length is None else check_lengths(length, problem.horizon)
    signs = check_signs(weights, releases, given, problem.horizon)
    if isinstance(signs, Signs) and signs.is_plain:
        given, signs = (len(signs.weights),), None
    search = check_group(group, slack, privacy, problem.lattice.steps)
    if search is not None:
        _check_alone(noise=noise, weights=weights, shares=shares, receiver=receiver, length=given)
    parts, steps = check_shares(shares, 1 if given is None else len(given)), problem.lattice.steps
    if search is not None:
        alone = (integer_noise("geometric", privacy, steps).variance,)
        found_problem, found_plan = problem.plan_groups(given, search, alone, waits=delay is None)
        if found_plan.noise is None:  # sharing gains nothing, so that any other noise serves as well
            search = None
        else:
            noise = "geometric"
    laws = tuple(integer_noise(noise, privacy, steps, part) for part in parts)
    variances = tuple(x.variance for x in laws)
    if search is not None:
        problem, plan = found_problem, found_plan
    elif isinstance(signs, str):
        problem, plan = problem.plan_best(given, variances, waits=delay is None)
    elif signs is not None:
        plan = Plan.of(signs)
        problem = problem.wait_longer(plan, variances) if delay is None else problem
    else:
        problem, plan = problem.plan_sums(given, variances, waits=delay is None)
    phase = _check_phase(phase, plan.schedule.lengths[0], problem.horizon)
    options: dict[str, Option] = {"lag": delay, "noise": noise}
    options |= {} if given is None else {"length": given[0] if len(given) == 1 else _listed(given)}
    options |= {} if shares is None else {"shares": _listed(parts)}
    options |= {} if unit is None else {"unit": unit}
    options |= {} if phase == 0 else {"phase": phase}
    options |= {} if signs is None else {"weights": signs if isinstance(signs, str) else "given"}
    options |= {} if releases is None else {"releases": _listed(releases)}
    options |= {} if receiver == "linear" else {"receiver": receiver}
    options |= {} if group is None else {"group": _option(group)}
    options |= {} if slack is None else {"slack": _option(slack)}
    kind = "block sums" if plan.signs is None else "signed block sums"
    kind += "" if receiver == "linear" else " Bayes"
    kind += "" if plan.noise is None else " of shared noise"

    def build(plan: Plan) -> Any:
        return made(
            name or f"{kind} {'smoother' if delay is None else f'lag {delay}'}",
            target,
            privacy,
            model,
            problem.receiver(plan, variances, phase),
            tuple(x.kind for x in laws),
            parts,
            unit,
            plan.signs,
            given_levels(plan.slacks),
            tuple(options.items()),
        )

    made_of_plan: BlockMechanism = build(plan)
    if receiver == "bayes" and given is None:
        made_of_plan = _shorten(made_of_plan, build, phase)
    return made_of_plan


_SHORTER = 10  # per cent of a length, that others are shorter


def _shorten(first: Any, build: Callable[[Plan], Any], phase: int) -> Any:
    """Return the posterior mean that errs least: behind blocks of the length that is there, or of shorter ones.

    Only simulation tells, on streams of a fixed seed. It ends where two lengths, one after the other, err no less.
    """
    length, best, least, without_gain = first.lengths[0], first, first.simulated_mse(), 0
    step = max(1, round(length * _SHORTER / 100))
    while length - step > phase and without_gain < 2:
        length -= step
        made = build(Plan.sums(length))
        mse, without_gain = made.simulated_mse(), without_gain + 1
        if mse < least:
            best, least, without_gain = made, mse, 0
    return best


def _is_several(value: object) -> bool:
    return isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str)


def check_lengths(length: int | Sequence[int], horizon: int | None) -> tuple[int, ...]:
    """Return the lengths of the levels; refuse those that are not nested."""
    given = tuple(length) if _is_several(length) else (length,)  # type: ignore[arg-type]
    if not given:
        raise validation.fail("length", "an integer, or as many as there are levels", length)
    lengths = tuple(validation.integer("length", x, 1, horizon or LONGEST) for x in given)
    for shorter, longer in itertools.pairwise(lengths):
        if longer % shorter or longer == shorter:
            raise ValueError(
                f"length must be of nested blocks, each a multiple of the one before, got {longer} after {shorter}"
            )
    return lengths


def check_shares(shares: Sequence[float] | None, n: int) -> tuple[float, ...]:
    """Return the shares of ε of the levels, by default equal ones."""
    if shares is None:
        return (1.0 / n,) * n
    if not _is_several(shares):
        raise validation.fail("shares", "as many numbers as there are levels", shares)
    parts = tuple(validation.number("shares", x, above=0) for x in shares)
    if len(parts) != n or not math.isclose(math.fsum(parts), 1.0, rel_tol=_SAME_SHARES):
        raise ValueError(f"shares must be as many as lengths, {n}, and sum to 1, got {list(parts)}")
    while math.fsum(parts) > 1:  # by rounding: never more than there is
        parts = tuple(math.nextafter(x, 0.0) for x in parts)
    return parts


def check_signs(
    weights: ArrayLike | Literal["best"] | None,
    releases: Sequence[int] | None,
    lengths: tuple[int, ...] | None,
    horizon: int | None,
) -> Signs | Literal["best"] | None:
    """Return the signs of inputs that are given, or the word; refuse other words, and what does not go with signs."""
    if releases is not None and (weights is None or isinstance(weights, str)):
        raise ValueError("releases must not be given without the weights of the sums that are released: give weights=")
    if weights is None:
        return None
    if lengths is not None and len(lengths) > 1:
        raise ValueError("weights must not be given with several lengths: signed sums have one level")
    if isinstance(weights, str):
        validation.choice("weights", weights, [BEST])
        return "best"
    signs = check_weights(weights)
    if lengths not in (None, (len(signs),)):
        raise ValueError(
            f"weights must have a row for each of the {lengths[0]} inputs of a block, got {len(signs)} rows"
        )
    if horizon is not None and len(signs) > horizon:
        raise ValueError(f"weights must have at most {horizon} rows, the steps of the horizon, got {len(signs)}")
    return Signs(signs, _check_releases(releases, *signs.shape))


def _check_releases(releases: Sequence[int] | None, length: int, n_sums: int) -> tuple[int, ...]:
    """Return the steps after the end of a block at which each sum is released; none where all are at its end."""
    if releases is None:
        return ()
    if not _is_several(releases) or len(releases) != n_sums:
        raise validation.fail("releases", f"as many integers as there are sums, {n_sums}", releases)
    offsets = tuple(validation.integer("releases", x, 1, length) % length for x in releases)
    return offsets if any(offsets) else ()


def check_group(
    group: int | Sequence[int] | Literal["best"] | None, slack: int | Sequence[int] | None, privacy: Privacy, steps: int
) -> GroupSearch | None:
    """Return the search for groups of blocks that share noise, or None where none is asked for."""
    if group is None:
        if slack is not None:
            raise ValueError('slack must not be given without the blocks that share noise: give group=, or "best"')
        return None
    if isinstance(group, str):
        validation.choice("group", group, [BEST])
    groups = None if isinstance(group, str) else check_levels("group", group, 2, LARGEST_GROUP)
    slacks = None if slack is None else check_levels("slack", slack, 0)
    if groups is not None and math.prod(groups) > LARGEST_TREE:
        raise validation.fail("group", f"of at most {LARGEST_TREE} blocks in all", group)
    n = 1 if groups is None else len(groups)
    if slacks is not None and len(slacks) != n:
        raise validation.fail("slack", f"as many integers as there are levels of groups, {n}", slack)
    changes = steps * privacy.max_events
    if groups is not None:
        shared_noise(privacy.epsilon, changes, groups, slacks or (0,) * n)  # refuses what is too large
    return GroupSearch(privacy.epsilon, changes, groups, slacks)


def _check_alone(**given: object) -> None:
    """Refuse what does not go with noise that blocks share."""
    alone = {"noise": ("best", "geometric"), "weights": (None,), "shares": (None,), "receiver": ("linear",)}
    for name, values in alone.items():
        if given[name] not in values:
            raise ValueError(
                f"{name} must be {values[-1]!r} where blocks share noise, got {given[name]!r}: leave it or group out"
            )
    if given["length"] is not None and len(given["length"]) > 1:  # type: ignore[arg-type]
        raise ValueError("length must be one where blocks share noise, got several levels: leave group out")


def _check_receiver(receiver: object, model: Model, weights: object) -> type[BlockMechanism]:
    """Return the kind of mechanism that has a receiver; refuse a posterior mean of what it cannot follow."""
    if validation.choice("receiver", receiver, ("linear", "bayes")) == "linear":
        return BlockMechanism
    chain_of(model)
    if weights is not None:
        raise ValueError('weights must not be given with receiver="bayes", which follows plain sums: leave one out')
    return PosteriorBlockMechanism


def _option(value: int | Sequence[int] | str) -> Option:
    """Write an integer or a word as it is, and several integers as one word."""
    return _listed(value) if _is_several(value) else value  # type: ignore[arg-type,return-value]


def _listed(numbers: Sequence[float]) -> str:
    """Write several numbers as the one word that options have."""
    return ", ".join(f"{x:.17g}" for x in numbers)


def _check_phase(phase: int, length: int, horizon: int | None) -> int:
    """Return by how much the first block is shorter; none over a horizon."""
    phase = validation.integer("phase", phase, 0, length - 1)
    if phase and horizon is not None:
        raise ValueError(f"phase must be 0 over a horizon, whose first step counts, got {phase}")
    return phase
