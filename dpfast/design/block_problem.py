"""The problem of block sums: which lengths, signs and lag err least, and the Kalman filter behind them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import numpy as np

from dpfast._kernels.factors import Factors
from dpfast._support import validation
from dpfast._support.errors import DesignError, ToleranceWarning, warn
from dpfast._support.validation import Array
from dpfast.design.argument_checks import check_target
from dpfast.design.block_plan import GroupSearch, Plan
from dpfast.design.block_signs import find_carrier, find_signs
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.block_dynamics import (
    BlockSystem,
    Stretch,
    build_system,
    check_stretch,
    find_stretches,
)
from dpfast.mechanisms.block_kalman import find_cycle, least_mse, run_over_horizon
from dpfast.mechanisms.block_noise import common_variances, own_variances
from dpfast.mechanisms.block_weights import LONGEST_PATTERN
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.mechanisms.receivers.periodic_kalman import PeriodicKalman
from dpfast.mechanisms.rounding import warn_of_rounding
from dpfast.privacy.integer_noise.shared import SharedGeometric
from dpfast.privacy.lattice import Lattice, find_lattice
from dpfast.privacy.privacy import Privacy, check_privacy
from dpfast.signals.model import Model, check_model

LONGEST = 2**14  # a block
LONGEST_LAG = 10**4
_MOST_NUMBERS = 2**24  # in the powers of a system over the steps of a block
_EVERY = 96  # up to here every length is tried, beyond it one in so many per cent
_RATIO = 1.04
_PATIENCE, _FARTHER = 60, 1.5  # lengths without a gain behind the best, and times the best, after which the scan ends
_FORGOTTEN = 1e-2  # of the largest response
_GAIN = 1e-9  # of an MSE: waiting for less is waiting for nothing


class BlockProblem(NamedTuple):
    """The arguments of a design, checked, and the searches that they ask for."""

    target: Factors
    horizon: int | None
    model: Model
    lattice: Lattice
    lag: int

    @classmethod
    def check(cls, target: Filter | Toeplitz, privacy: Privacy, model: Model, lag: Lag, unit: float | None) -> Self:
        """Refuse what no block sums are designed for."""
        check_target(target)
        factors = target.factors
        if factors is None:
            raise DesignError(
                "target must have a recursion for block sums, got a Toeplitz of coefficients alone: make it of a "
                "Filter, by Toeplitz.of(filter, n), or take running_sum(n)"
            )
        check_privacy(privacy)
        check_model(model)
        delay = check_lag(lag)
        if delay is not None:
            validation.integer("lag", delay, 0, LONGEST_LAG)
        lattice = find_lattice(privacy, model.levels, unit)
        warn_of_rounding(lattice, model)
        return cls(factors, target.horizon, model, lattice, _smoother_lag(target) if delay is None else delay)

    def system(self, n_levels: int, signs: Array | None = None, noise: SharedGeometric | None = None) -> BlockSystem:
        """Return signal, target and sums as one system, with what shared noises have in common."""
        shared = () if noise is None else common_variances(noise, self.lattice.unit)
        shaping, rounding = self.model.shaping.factors, self.lattice.rounding_variance
        return build_system(shaping, self.target, n_levels, rounding, signs, shared)

    def mse(self, plan: Plan, variances: tuple[float, ...]) -> float:
        """Return the mean MSE of a plan."""
        system = self.system(len(plan.schedule.lengths), plan.signs, plan.noise)
        return self.errors(system, find_stretches(system, plan.schedule), plan, variances)

    def errors(
        self, system: BlockSystem, stretches: Sequence[Stretch], plan: Plan, variances: tuple[float, ...]
    ) -> float:
        """Return the mean MSE of a plan, with the stretches of its slots."""
        return least_mse(system, stretches, plan.schedule, self._noise(plan, variances), self.lag, self.horizon)

    def find_length(self, variance: float) -> int:
        """Find the length of blocks of the least predicted error."""
        return LengthTrials((self,)).find(variance)

    def plan_sums(
        self, given: tuple[int, ...] | None, variances: tuple[float, ...], *, waits: bool
    ) -> tuple[BlockProblem, Plan]:
        """Plan plain sums, of given lengths or of the best one, and the lag if they wait as long as it gains."""

        def plan(problem: BlockProblem) -> Plan:
            return Plan.sums(*(given or (problem.find_length(variances[0]),)))

        return self._settle(plan, variances, waits)

    def plan_best(
        self, given: tuple[int, ...] | None, variances: tuple[float, ...], *, waits: bool
    ) -> tuple[BlockProblem, Plan]:
        """Plan plain or signed sums, whichever err less; of a given length or of the best one."""
        plain = self.plan_sums(given, variances, waits=waits)
        carrier = find_carrier(self.target, self.model.shaping.factors, self.horizon)
        if carrier == 0.0:
            return plain

        def plan(problem: BlockProblem) -> Plan:
            most = max(1, _MOST_NUMBERS // problem.system(2).size ** 2)
            longest = min(LONGEST_PATTERN, problem.horizon or LONGEST_PATTERN, most)
            length = None if given is None else given[0]
            signs = find_signs(lambda x: problem.mse(Plan.of(x), variances), carrier, longest, length)
            return Plan.of(signs)

        signed = self._settle(plan, variances, waits)
        return min(plain, signed, key=lambda x: x[0].mse(x[1], variances))

    def plan_groups(
        self, given: tuple[int, ...] | None, search: GroupSearch, variances: tuple[float, ...], *, waits: bool
    ) -> tuple[BlockProblem, Plan]:
        """Plan sums that share noise in groups; of a given length or of the best one."""

        def plan(problem: BlockProblem) -> Plan:
            start = problem.find_length(variances[0]) if given is None else given[0]
            most = max(1, _MOST_NUMBERS // problem.system(1).size ** 2)
            longest = min(LONGEST, problem.horizon or LONGEST, most)
            return search.find(lambda x: problem.mse(x, variances), start, longest if given is None else None)

        return self._settle(plan, variances, waits)

    def _settle(
        self, find: Callable[[BlockProblem], Plan], variances: tuple[float, ...], waits: bool
    ) -> tuple[BlockProblem, Plan]:
        """Plan; then wait longer and plan again, in turn: who waits longer may take other blocks."""
        problem, plan = self, find(self)
        before = None
        while waits and plan.schedule != before:
            problem = problem.wait_longer(plan, variances)
            before, plan = plan.schedule, find(problem)
        return problem, plan

    def wait_longer(self, plan: Plan, variances: tuple[float, ...]) -> BlockProblem:
        """Return the problem with a lag beyond which waiting gains nothing, behind these sums."""
        schedule, problem = plan.schedule, self
        system = self.system(len(schedule.lengths), plan.signs, plan.noise)
        stretches = find_stretches(system, schedule)
        mse = self.errors(system, stretches, plan, variances)
        while problem.lag < LONGEST_LAG:
            longer = problem._replace(lag=min(LONGEST_LAG, 2 * problem.lag + 8))
            before, mse = mse, longer.errors(system, stretches, plan, variances)
            if mse >= before * (1 - _GAIN):
                break
            problem = longer
        return problem

    def wait_no_longer(self, plan: Plan, variances: tuple[float, ...]) -> BlockProblem:
        """Return the problem with the lag or, where that gains nothing behind these sums, with a shorter one."""
        shorter = self._replace(lag=0).wait_longer(plan, variances)
        return shorter if shorter.lag < self.lag else self

    def receiver(self, plan: Plan, variances: tuple[float, ...], phase: int) -> PeriodicKalman:
        """Design the Kalman filter behind these sums."""
        schedule = plan.schedule
        system = self.system(len(schedule.lengths), plan.signs, plan.noise)
        noise = self._noise(plan, variances)
        # as errors with this filter are asked for
        check_stretch(schedule.lengths[0], system.size, n_beside=system.size + 1)
        stretches = find_stretches(system, schedule)
        if self.horizon is None:
            cycle = find_cycle(system, stretches, schedule, noise)
            gains, weights = cycle.gains, cycle.errors(system, stretches, self.lag).weights
        else:
            run = run_over_horizon(system, stretches, schedule, noise, self.horizon, self.lag)
            gains, weights = run.gains, run.errors.weights
        # what is wanted does not depend on the sums, so that the steps of any slot will do
        states = np.tile(system.output @ stretches[0].steps[:-1], (len(weights) // schedule.slot, 1))
        both = np.hstack([states, weights.reshape(len(weights), -1)])
        steps = np.array([x.arrival @ x.steps[-1] for x in stretches])
        advance = steps if schedule.offsets else steps[0]
        if schedule.groups:
            advance, gains = np.tile(steps, (schedule.n_slots, 1, 1)), gains.copy()
            for i in range(schedule.n_slots):  # behind a group nothing is kept of what its noises have in common
                ended = system.common_states(schedule.n_ended((i + 1) * schedule.slot))
                advance[i, ended] = 0.0
                gains[i :: schedule.n_slots, :, ended] = 0.0
        return PeriodicKalman(
            *(advance, gains, both, schedule.lengths, phase, self.model.mean),
            *(self.lag, schedule.offsets, schedule.groups),
        )

    def _noise(self, plan: Plan, variances: tuple[float, ...]) -> tuple[float, ...]:
        """Return the variance of the noise of each sum: of each level its own, of signed sums the same for all.

        Of noise that is shared it is what each has for itself.
        """
        several = variances * len(plan.schedule.lengths) if len(variances) == 1 else variances
        if plan.noise is not None:
            return own_variances((plan.noise,), self.lattice.unit)
        return tuple(self.lattice.unit**2 * x for x in several)


class LengthTrials:
    """Errors of blocks of any length, of all outputs that want something of the one input that is summed.

    Parameters
    ----------
    problems : sequence of BlockProblem
        One for each output, of the same model and unit.
    """

    def __init__(self, problems: Sequence[BlockProblem]) -> None:
        self.problems, self._systems = problems, [x.system(1) for x in problems]
        self.size = max(x.size for x in self._systems)
        self.most = min(LONGEST, problems[0].horizon or LONGEST)
        self.longest = min(self.most, max(1, _MOST_NUMBERS // self.size**2))
        self._wholes = [Stretch.of(x, min(self.longest, _EVERY)) for x in self._systems]

    def mse(self, length: int, variance: float) -> float:
        """Return the error of all outputs together, with blocks of a length and noise of a variance."""
        if length > self._wholes[0].length:
            self._wholes = [Stretch.of(x, min(self.longest, 2 * length)) for x in self._systems]
        plan, every = Plan.sums(length), zip(self.problems, self._systems, self._wholes, strict=True)
        return sum(x.errors(system, (whole.first(length),), plan, (variance,)) for x, system, whole in every)

    def find(self, variance: float) -> int:
        """Find the length of the least error."""
        tried, longest = dict[int, float](), self.longest

        def attempt(length: int) -> None:
            if length not in tried:
                tried[length] = self.mse(length, variance)

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
        if best == longest < self.most:
            warn(
                f"block sums were tried up to {longest} steps only, as target and model have {self.size} states "
                "together: longer ones may err less; give length=, or take a shorter target",
                ToleranceWarning,
            )
        return best


def _smoother_lag(target: Filter | Toeplitz) -> int:
    """Return a lag to begin with: by then what is wanted has forgotten nearly all of an input."""
    f = np.abs(target.impulse(target.horizon or target.settling_time(_FORGOTTEN)))  # type: ignore[union-attr]
    return min(LONGEST_LAG, len(f))
