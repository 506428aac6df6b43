"""Design block sums whose partition reacts to what was published: the threshold at which a block ends."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from dpfast._kernels import simulation
from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast.design.argument_checks import check_name
from dpfast.design.block_problem import LONGEST, BlockProblem
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.adaptive_mechanism import AdaptiveBlockMechanism
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.chain_law import TAKE_BLOCK_SUMS, chain_of
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.privacy.integer_noise.choice import integer_noise
from dpfast.privacy.integer_noise.law import IntegerKind
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model, check_model

THRESHOLDS = (0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.4, 0.55, 0.75, 1.0, 1.4, 2.0)  # that are tried, of the noise variance
_SEED, _SAMPLES = 18, 2**13  # of the trial, and of each of its streams without a horizon
_ALL_SAMPLES, _LEAST_STREAMS = 2**19, 4
_OPERATIONS = 2**31  # multiply-adds of the trial, some seconds: of fewer samples where each costs many
_SETTLED = 1e-2  # amplitude of a start when errors begin to count
_TIMES, _LEAST = 4, 12  # the longest block: so many times the best fixed one, and at least so many steps


@public_design
def adaptive_blocks(
    target: Filter | Toeplitz,
    privacy: Privacy,
    model: Model,
    *,
    lag: Lag = 0,
    threshold: float | None = None,
    longest: int | None = None,
    noise: IntegerKind | Literal["best"] = "best",
    name: str | None = None,
) -> AdaptiveBlockMechanism:
    r"""Publish the sum of a block of inputs with integer noise when what was published leaves enough of it unknown.

    Use it for a chain that mostly stays where it is and a target of about its memory, at ε ≥ 2: there it erred 3 to 4 %
    less than blocks of the best one length with the same receiver (``block_sums(..., receiver="bayes")``), and 0 to 3 %
    at ε = 1. For a chain that soon forgets it gained at most 1 %, and erred up to 2 % more where the target's memory is
    long.

    Parameters
    ----------
    target : Filter or Toeplitz
        F. Over a horizon one that has a recursion: of a filter (``Toeplitz.of(filter, n)``) or a running sum.
    privacy : Privacy
        δ may be zero. For several events of a person the noise is that of group privacy, wherever they fall.
    model : MarkovChain or IndependentLevels
        Its levels are whole multiples of one distance apart. The guarantee does not depend on its being right.
    lag : int or "smoother"
        D ≥ 0: the estimate at t is of the output at t - D. The smoother, which None is too, waits as long as it gains
        anything behind blocks of one length.
    threshold : float, optional
        θ > 0: a block ends with the first step at which Var(sum so far | v) is θ times the variance of the noise, v
        being all that was published before. By default that of twelve from .03 to 2 which errs least in a simulation
        of the model, of 2¹⁹ steps, or fewer where a step costs much, from a fixed seed, at a lag that is no longer
        than gains, all on the same inputs and noise: no data are seen.
    longest : int, optional
        The steps of a block that ends anyway, 1 to 16,384; by default four times the best fixed length, and at least
        12.
    noise : {"best", "geometric", "canonical", "staircase"}
        The law of the integer noise; "best" is the one of least variance that serves.
    name : str, optional
        What tables and pictures call it; by default its family and lag.

    Returns
    -------
    AdaptiveBlockMechanism
        Without a prediction: only simulation tells (:func:`monte_carlo`).

    Raises
    ------
    ValueError
        For arguments out of range, levels or a max_change that are no whole multiples of the unit, and noise that does
        not serve; for a longest block whose tables would take too much memory or time.
    DesignError
        For a target over a horizon without a recursion, and a model that is no chain of levels.

    Notes
    -----
    Inside a block nothing is published, so that P(memory | v) at its beginning tells how long it will be: the least L
    with Σ_m P(m | v) E[S_L² | m] - (Σ_m P(m | v) E[S_L | m])² ≥ θ V. Who publishes and who estimates follow the same
    recursion, as :func:`block_sums` describes it, with a table for each length: their numbers, multiply-adds and limits
    are the sum of those over all lengths.

    *Privacy.* The partition is a function of earlier v alone and each block has fresh noise: an event changes one
    published value by at most max_change (adaptive composition over disjoint blocks), also where inputs react to v.
    The time of a release is public, and known when the block begins; that nothing comes earlier tells nothing about
    the inputs. Threshold and longest depend on the arguments alone, which must not depend on the data.

    Examples
    --------
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.99, 0.01], [0.01, 0.99]], levels=[0, 1])
    >>> mechanism = adaptive_blocks(dp.Filter([0.1], [1, -0.9]), dp.Privacy(3), chain)
    >>> mechanism.threshold, mechanism.longest
    (0.1, 16)
    """
    check_model(model)
    chain_of(model, TAKE_BLOCK_SUMS)
    problem = BlockProblem.check(target, privacy, model, lag, None)
    law = integer_noise(noise, privacy, problem.lattice.steps)
    delay = check_lag(lag)
    if threshold is not None:
        threshold = validation.number("threshold", threshold, above=0)
    if longest is not None:
        longest = validation.integer("longest", longest, 1, LONGEST)
    options: dict[str, Option] = {"lag": delay, "noise": noise}
    options |= {} if threshold is None else {"threshold": threshold}
    options |= {} if longest is None else {"longest": longest}
    if delay is None or longest is None or threshold is None:
        problem, plan = problem.plan_sums(None, (law.variance,), waits=delay is None)
        trial_lag = problem.wait_no_longer(plan, (law.variance,)).lag  # as waiting costs time, gain or no gain
        longest = max(_LEAST, _TIMES * plan.schedule.lengths[0]) if longest is None else longest
    mechanism = AdaptiveBlockMechanism(
        check_name(name, f"block sums adaptive {'smoother' if delay is None else f'lag {delay}'}"),
        target,
        privacy,
        model,
        THRESHOLDS[0] if threshold is None else threshold,
        longest if problem.horizon is None else min(longest, problem.horizon),
        problem.lag,
        law.kind,
        tuple(options.items()),
    )
    return mechanism if threshold is not None else replace(mechanism, threshold=_find_threshold(mechanism, trial_lag))


def _find_threshold(mechanism: AdaptiveBlockMechanism, lag: int) -> float:
    """Find the threshold of least error in a trial with a lag, all on the same inputs and noise."""
    tried = [replace(mechanism, threshold=x, lag=lag) for x in THRESHOLDS]
    burn_in, n_samples = mechanism.settling_time(_SETTLED), mechanism.horizon or _SAMPLES
    source = chain_of(mechanism.model)
    study = simulation.CompiledStudy(source, tuple(x.compiled() for x in tried), burn_in, n_samples)
    most = min(_ALL_SAMPLES, int(_OPERATIONS / len(tried) / mechanism.operations_for_a_sample(lag)))
    n_streams = max(_LEAST_STREAMS, most // n_samples)
    errors = simulation.squared_errors(study, n_streams, _SEED, 1).mean(axis=0)
    return THRESHOLDS[int(errors.argmin())]
