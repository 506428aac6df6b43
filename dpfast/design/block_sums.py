"""Design block sums: the length of blocks, the noise, and the Kalman filter behind them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, Self

import numpy as np

from dpfast._kernels.fir_and_sections import Factors
from dpfast._support import validation
from dpfast._support.errors import DesignError, ToleranceWarning, warn
from dpfast.design.argument_checks import check_filter, toeplitz_or_none
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.block_dynamics import BlockSystem, Stretch, build_system, check_stretch
from dpfast.mechanisms.block_kalman import find_cycle, least_mse, run_over_horizon
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.mechanisms.receivers.periodic_kalman import PeriodicKalman
from dpfast.mechanisms.rounding import warn_of_rounding
from dpfast.privacy.integer_noise.choice import integer_noise
from dpfast.privacy.integer_noise.law import IntegerKind
from dpfast.privacy.lattice import Lattice, find_lattice
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model, check_model

LONGEST = 2**14  # a block
LONGEST_LAG = 10**4
_MOST_NUMBERS = 2**24  # in the powers of a system over the steps of a block
_EVERY = 96  # up to here every length is tried, beyond it one in so many per cent
_RATIO = 1.04
_PATIENCE, _FARTHER = 60, 1.5  # lengths without a gain behind the best, and times the best, after which the scan ends
_SAME_SHARES = 1e-12
_FORGOTTEN = 1e-2  # of the largest response
_GAIN = 1e-9  # of an MSE: waiting for less is waiting for nothing


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
    name: str | None = None,
) -> BlockMechanism:
    r"""Publish the sum of every B inputs with integer noise, and estimate the target's output in between from them.

    Use it where δ is small or zero: an event touches one published value, so that pure ε costs little. Behind the sums
    is the periodic Kalman filter, which no linear receiver beats where the model holds.

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
    name : str, optional

    Returns
    -------
    BlockMechanism

    Raises
    ------
    ValueError
        For arguments out of range, levels or a max_change off the lattice, and noise that does not serve.
    DesignError
        For a target over a horizon without a recursion.

    Notes
    -----
    *Privacy.* Partition, phase and noise depend on the arguments alone, which must not depend on the data.

    Examples
    --------
    >>> import dpfast as dp
    >>> counts = dp.ARMA([1.2], [1, -0.9], mean=5)
    >>> mechanism = block_sums(dp.Filter([0.1], [1, -0.9]), dp.Privacy(1), counts)
    >>> mechanism.lengths, round(mechanism.predicted_rmse, 4)
    ((2,), 0.246)
    """
    problem = _Problem.check(target, privacy, model, lag, unit)
    delay = check_lag(lag)
    if length is None and shares is not None:
        raise ValueError("shares must not be given without the lengths that they are for: give length=")
    given = None if length is None else check_lengths(length, problem.horizon)
    parts = check_shares(shares, 1 if given is None else len(given))
    laws = tuple(integer_noise(noise, privacy, problem.lattice.steps, part) for part in parts)
    lengths = (problem.find_length(laws[0].variance),) if given is None else given
    if delay is None and given is None:
        problem, lengths = problem.wait_and_lengthen(lengths[0], laws[0].variance)
    elif delay is None:
        problem = problem.wait_longer(lengths, tuple(x.variance for x in laws))
    phase = _check_phase(phase, lengths[0], problem.horizon)
    receiver = problem.receiver(lengths, tuple(x.variance for x in laws), phase)
    options: dict[str, Option] = {"lag": delay, "noise": noise}
    options |= {} if given is None else {"length": given[0] if len(given) == 1 else _listed(given)}
    options |= {} if shares is None else {"shares": _listed(parts)}
    options |= {} if unit is None else {"unit": unit}
    options |= {} if phase == 0 else {"phase": phase}
    return BlockMechanism(
        name or f"block sums {'smoother' if delay is None else f'lag {delay}'}",
        target,
        privacy,
        model,
        receiver,
        tuple(x.kind for x in laws),
        parts,
        unit,
        tuple(options.items()),
    )


class _Problem(NamedTuple):
    """The arguments of a design, checked, and the searches that they ask for."""

    target: Factors
    horizon: int | None
    model: Model
    lattice: Lattice
    lag: int

    @classmethod
    def check(cls, target: Filter | Toeplitz, privacy: Privacy, model: Model, lag: Lag, unit: float | None) -> Self:
        """Refuse what no block sums are designed for."""
        if toeplitz_or_none(target) is None:
            check_filter("target", target)
        factors = target.factors
        if factors is None:
            raise DesignError(
                "target must have a recursion for block sums, got a Toeplitz of coefficients alone: make it of a "
                "Filter, by Toeplitz.of(filter, n), or take running_sum(n)"
            )
        validation.instance("privacy", privacy, Privacy, "a Privacy")
        check_model(model)
        delay = check_lag(lag)
        if delay is not None:
            validation.integer("lag", delay, 0, LONGEST_LAG)
        lattice = find_lattice(privacy, model.levels, unit)
        warn_of_rounding(lattice, model)
        return cls(factors, target.horizon, model, lattice, _smoother_lag(target) if delay is None else delay)

    def system(self, n_levels: int) -> BlockSystem:
        """Return signal, target and sums as one system."""
        return build_system(self.model.shaping.factors, self.target, n_levels, self.lattice.rounding_variance)

    def errors(
        self, system: BlockSystem, stretch: Stretch, lengths: tuple[int, ...], variances: tuple[float, ...]
    ) -> float:
        """Return the mean MSE of blocks of these lengths, the shortest as long as the stretch."""
        noise = tuple(self.lattice.unit**2 * x for x in variances)
        return least_mse(system, stretch, lengths, noise, self.lag, self.horizon)

    def find_length(self, variance: float) -> int:
        """Find the length of blocks of the least predicted error."""
        system = self.system(1)
        longest = min(LONGEST, self.horizon or LONGEST, max(1, _MOST_NUMBERS // system.size**2))
        whole, tried = Stretch.of(system, min(longest, _EVERY)), dict[int, float]()

        def attempt(length: int) -> None:
            nonlocal whole
            if length > whole.length:
                whole = Stretch.of(system, min(longest, 2 * length))
            if length not in tried:
                tried[length] = self.errors(system, whole.first(length), (length,), (variance,))

        length = 1
        while length <= longest:
            attempt(length)
            best = min(tried, key=tried.__getitem__)
            if length >= best + _PATIENCE and length >= _FARTHER * best:
                break
            length = length + 1 if length < _EVERY else math.ceil(length * _RATIO)
        best = min(tried, key=tried.__getitem__)
        for length in range(math.floor(best / _RATIO), min(longest, math.ceil(best * _RATIO)) + 1):
            attempt(max(1, length))
        best = min(tried, key=tried.__getitem__)
        if best == longest < min(LONGEST, self.horizon or LONGEST):
            warn(
                f"block sums were tried up to {longest} steps only, as target and model have {system.size} states "
                "together: longer ones may err less; give length=, or take a shorter target",
                ToleranceWarning,
            )
        return best

    def wait_and_lengthen(self, length: int, variance: float) -> tuple[_Problem, tuple[int]]:
        """Wait longer and find the best length again, in turn: who waits longer may take other blocks."""
        problem, before = self, 0
        while length != before:
            problem = problem.wait_longer((length,), (variance,))
            before, length = length, problem.find_length(variance)
        return problem, (length,)

    def wait_longer(self, lengths: tuple[int, ...], variances: tuple[float, ...]) -> _Problem:
        """Return the problem with a lag beyond which waiting gains nothing, behind blocks of these lengths."""
        system = self.system(len(lengths))
        stretch, problem = Stretch.of(system, lengths[0]), self
        mse = self.errors(system, stretch, lengths, variances)
        while problem.lag < LONGEST_LAG:
            longer = problem._replace(lag=min(LONGEST_LAG, 2 * problem.lag + 8))
            before, mse = mse, longer.errors(system, stretch, lengths, variances)
            if mse >= before * (1 - _GAIN):
                break
            problem = longer
        return problem

    def receiver(self, lengths: tuple[int, ...], variances: tuple[float, ...], phase: int) -> PeriodicKalman:
        """Design the Kalman filter behind blocks of these lengths."""
        system = self.system(len(lengths))
        check_stretch(lengths[0], system.size, n_beside=system.size + 1)  # as errors with this filter are asked for
        stretch, noise = Stretch.of(system, lengths[0]), tuple(self.lattice.unit**2 * x for x in variances)
        if self.horizon is None:
            cycle = find_cycle(system, stretch, lengths, noise)
            gains, weights = cycle.gains, cycle.errors(system, stretch, self.lag).weights
        else:
            run = run_over_horizon(system, stretch, lengths, noise, self.horizon, self.lag)
            gains, weights = run.gains, run.errors.weights
        states = np.tile(system.output @ stretch.steps[:-1], (len(weights) // lengths[0], 1))
        both = np.hstack([states, weights.reshape(len(weights), -1)])
        return PeriodicKalman(stretch.steps[-1], gains, both, lengths, phase, self.model.mean, self.lag)


def _smoother_lag(target: Filter | Toeplitz) -> int:
    """Return a lag to begin with: by then what is wanted has forgotten nearly all of an input."""
    f = np.abs(target.impulse(target.horizon or target.settling_time(_FORGOTTEN)))  # type: ignore[union-attr]
    return min(LONGEST_LAG, len(f))


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


def _listed(numbers: Sequence[float]) -> str:
    """Write several numbers as the one word that options have."""
    return ", ".join(f"{x:.17g}" for x in numbers)


def _check_phase(phase: int, length: int, horizon: int | None) -> int:
    """Return by how much the first block is shorter; none over a horizon."""
    phase = validation.integer("phase", phase, 0, length - 1)
    if phase and horizon is not None:
        raise ValueError(f"phase must be 0 over a horizon, whose first step counts, got {phase}")
    return phase
