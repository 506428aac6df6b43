"""Mechanisms at the joint optimum of several streams: a prefilter of few states near to it, and a Kalman filter."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any

import numpy as np

from dpfast._support.errors import ConvergenceWarning, DesignError, PaleyWienerError, ToleranceWarning, warn
from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_designs import check_channels
from dpfast.design.mimo.channel_weights import DiagonalWeights, SampledChannels, are_loud
from dpfast.design.mimo.channels_smoother import NEXT_TO_NOTHING, smooth_channels
from dpfast.design.mimo.circle_taps import at_nodes, causal_taps
from dpfast.design.mimo.error_behind import has_many_states, least_error, smoothed_error
from dpfast.design.mimo.event_atoms import atoms_at_once
from dpfast.design.mimo.joint_channels import ChannelsOptimum, channels_optimum
from dpfast.design.mimo.joint_smoother import smooth_jointly, smoother_circle
from dpfast.design.mimo.kalman_receiver import KalmanReceivers
from dpfast.design.mimo.limited_changes import limit_changes
from dpfast.design.mimo.mixing_optimum import mixing_optimum
from dpfast.design.mimo.mixing_prefilter import MixingPrefilter
from dpfast.design.mimo.mixing_smoother import mixing_smoother, spread_nodes
from dpfast.design.mimo.prefilter_states import JointForm, PrefilterStates, fewest_states
from dpfast.filters.conversion import StateSpace
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.state_space import frequency_response
from dpfast.filters.warped_circle import WarpedCircle, choose_steps, make_circle
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.mechanisms.lags import check_lag
from dpfast.privacy.privacy import Privacy
from dpfast.signals.channel_models import ChannelModels, check_channel_models, joint_model
from dpfast.signals.vector_arma import VectorARMA

_GOAL, _GOAL_MIXING = 9.5e-7, 1e-5  # of the gap, relative, of a prefilter for each input, and of one that mixes them
_BELOW, _MOST_LEFT = 0.25, 2.5e-3  # of the tolerance, but no more: a gap where events may be at different times
_LARGEST_GAP = 1e-4  # a larger one is warned of
_ROUGH = 1e-3  # the gap of a prefilter for each input beside one that mixes them and is not found
_TOLD_BY_SMOOTHER = 1e-2  # a still larger one is compared with the smoother's bound
_TOLD_ROUGHLY = 0.05  # of that gap: the smoother's own, as what is nearer would hardly be seen
_FEWEST_NODES = 256
_LATEST = 256  # steps that a lag may take where time is warped most
_NOT_RESOLVED, _LONGEST_RESOLVED = 1e-2, 2**16  # of the tolerance: what a circle may lose of loud streams; its steps
_RAISED = 0.05  # of the tolerance: how much of every direction is added before a factor is taken
_OPENED, _OPENED_OF_ALL = 0.3, 0.9  # of the tolerance: so much, and of all inputs together, where G*G is singular
_NODES_OF_FACTORS = 2**13
_NODES_OF_STATES = 2**12  # of a circle that resolves prefilters of few states, where poles and the lag do not need more
_FEW_NODES = 2**10  # of a circle that rejects prefilters
_ROUNDED, _ASTRAY = 2.0, 10.0  # times that or the tolerance, or more: a receiver that is rounded, or lost
_SHORTER = 4  # times fewer taps than a circle tells, from which states are made as well
_SAME = 1e-9  # of a response, for each input: what is another form of the same
_REJECTED = 1.2  # times the tolerance: the excess that it rejects


def estimate_jointly(
    target: FilterMatrix,
    privacy: Privacy,
    models: Any,
    lag: Any,
    form: JointForm,
    tolerance: float,
    name: str | None,
) -> ChannelsMechanism:
    """Design the joint optimum for any streams, by a prefilter for each input or by one that mixes them."""
    used, several = check_channels(target, privacy), target.shape[1]
    checked, delay = check_channel_models("model", models, several), check_lag(lag)
    try:
        return _estimate(target, privacy, checked, used, delay, form, tolerance, name)
    except (np.linalg.LinAlgError, PaleyWienerError) as error:
        loudness = np.sqrt(np.diagonal(joint_model(checked).covariance)) / privacy.changes(several)
        raise DesignError(
            "streams of the model must not be so loud beside max_change, got standard deviations from "
            f"{loudness.min():g} to {loudness.max():g} times that: a prefilter of all of them takes more digits than "
            "numbers have; leave out the loudest, or those of which nothing can be told; or take a larger epsilon, "
            "where noise hides all of them"
        ) from error


def _estimate(
    target: FilterMatrix,
    privacy: Privacy,
    checked: ChannelModels,
    used: list[int],
    delay: int | None,
    form: JointForm,
    tolerance: float,
    name: str | None,
) -> ChannelsMechanism:
    model, inputs = joint_model(checked), _moving_inputs(checked, used)
    problem = _JointProblem(target, privacy, model, inputs, delay, form)
    goal = problem.goal(tolerance)
    found, usual = problem.solve(goal), max(_LARGEST_GAP, goal)
    if delay is not None and found.gap > max(usual, _TOLD_BY_SMOOTHER):  # whose bound may be larger at long lags
        enough = max(goal, _TOLD_ROUGHLY * found.gap)
        below = _JointProblem(target, privacy, model, inputs, None, form).solve(enough).lower_bound
        found = found._replace(lower_bound=min(found.mse, max(found.lower_bound, below)))
    if found.gap > usual:
        of_lag, shorter = ("the smoother", "") if delay is None else (f"lag {delay}", " or take a shorter lag")
        warn(
            f"the optimum of {of_lag} is certified to a relative gap of {found.gap:.1e} only, {usual:g} is "
            f"usual: it is at least lower_bound_mse; smooth the target{shorter}",
            ConvergenceWarning,
        )
    prefilter, reached = problem.realize(found, tolerance)
    options = (("lag", delay), ("prefilter", form), ("tolerance", tolerance))
    receivers = KalmanReceivers(target, model, prefilter, privacy.noise_std(prefilter))

    def complete(late: int) -> ChannelsMechanism:
        receiver = receivers.at_lag(late)
        known = name or f"optimal {'smoother' if delay is None else f'lag {late}'}"
        bounds = found.mse, found.lower_bound
        return ChannelsMechanism(known, target, privacy, prefilter, receiver, *bounds, options, checked, late)

    made = smooth_channels(complete, receivers.excess) if delay is None else complete(delay)
    _check_rounding(made.predicted_mse / found.mse - 1, max(reached, tolerance))
    return replace(made, ideal_mse=max(found.lower_bound, min(found.mse, made.predicted_mse)))


def _check_rounding(excess: float, reached: float) -> None:
    """Warn of a receiver that errs much more than the nodes of a circle tell; fail where it is lost."""
    if excess > _ASTRAY:
        raise np.linalg.LinAlgError("the receiver is lost in rounding")
    if excess > _ROUNDED * reached:
        warn(
            f"the mechanism has an MSE {excess:.2g} (relative) above the ideal, {reached:.2g} was found before its "
            "receiver was rounded: streams so different in size take more digits than numbers have; leave out the "
            "loudest, or those of which nothing can be told",
            ToleranceWarning,
        )


def _moving_inputs(models: ChannelModels, used: list[int]) -> list[int]:
    """Return the inputs that may tell of the outputs: those of dependent streams, too, that outputs do not see."""
    if not isinstance(models, VectorARMA):
        return used
    moving = np.diagonal(models.covariance) > 0
    if not moving[used].any():
        raise DesignError(
            "target must use an input that is not constant in the model, got one of constant inputs: they need no "
            "publication, and their outputs are known"
        )
    return np.flatnonzero(moving).tolist()


class _JointProblem:
    """The task, of the inputs that are published."""

    def __init__(
        self,
        target: FilterMatrix,
        privacy: Privacy,
        model: VectorARMA,
        inputs: list[int],
        lag: int | None,
        form: JointForm,
    ) -> None:
        self._target, self._inputs, self._lag, self._form, self._model = target, inputs, lag, form, model
        self._noise = privacy.noise_multiplier * privacy.max_events
        self._adjacency = privacy.adjacency or "one_input"
        limited = limit_changes(target, privacy, model, mixed=form == "general")
        given, raised = (x.changes(target.shape[1])[inputs] for x in (privacy, limited.raised))
        # In units of what is hidden of each input, streams are alike whatever they are measured in.
        self._units: Array = np.minimum(raised, limited.most[inputs])
        self._given, self._changes = given / self._units, raised / self._units

    def goal(self, tolerance: float) -> float:
        """Return the gap that is small enough.

        Events at different times are many: there it is a part of the tolerance, as less is of no use.
        """
        if self._form == "diagonal":
            return _GOAL
        apart = self._adjacency == "each_input"
        return max(_GOAL_MIXING, min(_MOST_LEFT, _BELOW * tolerance)) if apart else _GOAL_MIXING

    def solve(self, goal: float) -> ChannelsOptimum:
        """Find the joint optimum of these inputs, with the kind of prefilter and the lag that were asked for.

        It is that of changes which are neither next to nothing nor beyond hope; its bound is of those that are given.
        """
        found = self._solve_limited(goal)
        told = np.where(self._changes > 1, 0.0, found.product)
        problem = found.weights.problem._replace(changes=self._changes)
        noise = self._noise * float((self._changes - self._given) @ problem.mean(np.linalg.norm(told, axis=1)))
        bound = max(0.0, found.lower_bound - noise * (2 * math.sqrt(found.mse) + noise))
        return found._replace(weights=_with_problem(found.weights, problem), product=told, lower_bound=bound)

    def _solve_limited(self, goal: float) -> ChannelsOptimum:
        """Find the same of changes that are limited."""
        if self._form == "diagonal":
            return self._solve_unmixed(goal)
        warp, size = choose_steps(*self._details(), size=_FEWEST_NODES)
        atoms = atoms_at_once(np.ones(len(self._units)), self._adjacency)
        find = mixing_smoother if self._lag is None else mixing_optimum
        mixed = find(self._sample, atoms, warp, size, goal)
        if mixed.gap <= max(_LARGEST_GAP, goal):
            return mixed
        unmixed = self._solve_unmixed(_ROUGH)  # which is one of those that may mix, and soon found
        return unmixed._replace(lower_bound=mixed.lower_bound) if unmixed.mse < mixed.mse else mixed

    def _details(self) -> tuple[Array, int]:
        """Return the poles that a circle must resolve, and how many taps."""
        poles = np.concatenate([self._target.poles, self._model.poles])
        return poles, max(self._lag or 0, self._target.order if not self._target.shares_states else 0)

    def _solve_unmixed(self, goal: float) -> ChannelsOptimum:
        """Find that with a prefilter for each input."""
        if self._lag is None:
            return smooth_jointly(self._sample(smoother_circle(self._target, self._model)))
        poles, taps = self._details()
        warp, size = choose_steps(poles, taps, size=_FEWEST_NODES)
        finer, _ = choose_steps(poles, size=_FEWEST_NODES)  # where gains have kinks, which take most steps
        if taps * (1 + abs(finer)) <= _LATEST * (1 - abs(finer)):
            warp = finer
        return channels_optimum(self._sample, warp, size, goal)

    def _sample(self, circle: WarpedCircle) -> SampledChannels:
        return self._sample_quiet(circle)._replace(loud=self._loud)

    def _sample_quiet(self, circle: WarpedCircle) -> SampledChannels:
        omega, late = circle.grid.omega, circle.z[:, None, None] ** -(self._lag or 0)
        wanted = late * self._target.response(omega)[:, :, self._inputs] * self._units
        psd = self._model.psd(omega)[:, self._inputs][:, :, self._inputs] / self._units[:, None] / self._units
        return SampledChannels(circle, wanted, psd, self._noise, np.ones(len(self._units)), self._adjacency)

    @functools.cached_property
    def _loud(self) -> bool:
        """It is true of streams that are loud, on all circles."""
        return are_loud(self._sample_quiet(make_circle(*choose_steps(*self._details(), size=_FEW_NODES))))

    def realize(self, found: ChannelsOptimum, tolerance: float) -> tuple[FilterMatrix, float]:
        """Return the prefilter of fewest states whose error is within the tolerance; else the best, and warn.

        Return also how far its error is above the ideal, as the nodes of a circle tell.
        """
        problem, ideals = self._ideals(found, tolerance)
        form: JointForm = "diagonal" if isinstance(found.weights, DiagonalWeights) else "general"
        counts = self._tap_counts(found, problem.circle)
        kinds = [PrefilterStates(problem.circle, x, form, self._changes, n) for x in ideals for n in counts]
        resolved, rejected = self._resolve(problem, tolerance * found.mse), _REJECTED * tolerance
        coarse = self._coarsen(resolved)

        def excess_of(system: StateSpace) -> float:
            """The coarse circle rejects most of them, and the other one judges."""
            try:
                excess = self._error_behind(system, coarse) / found.mse - 1
                done = excess > rejected or coarse is resolved
                return excess if done else self._error_behind(system, resolved) / found.mse - 1
            except (np.linalg.LinAlgError, PaleyWienerError):
                return math.inf

        # What a smoother errs more for its lag is a part of the tolerance, too.
        within = tolerance if self._lag is not None else max(tolerance / 2, tolerance - NEXT_TO_NOTHING)
        least, best = fewest_states(kinds, excess_of, within)
        if least == math.inf:
            raise np.linalg.LinAlgError("no prefilter has an error that is not lost in rounding")
        if least > within:
            warn(
                f"the realised prefilter has an MSE {least:.2g} (relative) above the ideal, tolerance is "
                f"{tolerance:g}: no prefilter of up to {max(x.most for x in kinds)} states was found that reaches it; "
                f"raise tolerance, smooth the target{'' if self._lag is None else ', or take a shorter lag'}",
                ToleranceWarning,
            )
        return self._place(best, problem.circle), least

    @property
    def _streams(self) -> StateSpace:
        """The model of these inputs, in their units."""
        a, b, c, d = self._model.a, self._model.b, self._model.c, self._model.d
        units = self._units[:, None]
        return a, b, c[self._inputs] / units, d[self._inputs] / units

    def _error_behind(self, prefilter: StateSpace, nodes: SampledChannels) -> float:
        """Return what the best receiver errs behind a prefilter, as the nodes of a circle tell."""
        if self._lag is None:
            return smoothed_error(nodes, frequency_response(*prefilter, nodes.circle.grid.omega))
        return least_error(nodes, self._streams, prefilter)

    def _ideals(self, found: ChannelsOptimum, tolerance: float) -> tuple[SampledChannels, list[Complex]]:
        """Return prefilters at the nodes of a problem, behind which the error is the least but for a part of tolerance.

        Of fewer outputs than inputs and with a late K, the one in as many channels as outputs is as late as K; then
        another one, of minimum phase, may take much fewer states.
        """
        opened = tolerance * min(_OPENED, _OPENED_OF_ALL / len(self._inputs))
        raised = opened if self._lag is None else _RAISED * tolerance
        if isinstance(found.weights, DiagonalWeights):
            seen = self._refine(found) if self._lag is None else self._thin_out(found)
            return seen.weights.problem, [seen.weights.prefilter(seen.product, raised)]
        seen, (p, m) = self._refine(found), found.product.shape[1:]
        ideals = [seen.weights.prefilter(seen.product, raised)]
        if self._lag is None:
            return seen.weights.problem, ideals
        if p < m and isinstance(seen.weights, MixingPrefilter):
            ideals.append(seen.weights._replace(causal=False).prefilter(seen.product, opened))
        circle, size = seen.weights.problem.circle, min(found.weights.problem.circle.size, self._nodes_of_states)
        return self._sample_raised(make_circle(circle.warp, size)), [x[:: circle.size // size] for x in ideals]

    def _tap_counts(self, found: ChannelsOptimum, circle: WarpedCircle) -> list[int]:
        """Return of how many taps of an ideal on a circle states are made.

        A smoother that mixes was found at fewer nodes, and put on lines between them: what it has of taps beyond half
        of its own circle are images of the others. Where gains have kinks, fewer of the others may take fewer states.
        """
        if self._lag is not None or isinstance(found.weights, DiagonalWeights):
            return [circle.size // 2]
        told = found.weights.problem.circle.size // 2
        return [told, told // _SHORTER]

    def _resolve(self, problem: SampledChannels, negligible: float) -> SampledChannels:
        """Return the problem on a circle with taps for all of what is wanted, where streams are loud.

        What a receiver at nodes has no taps for is left out, and may be as loud as everything there is to err.
        """
        while problem.loud and self._lag is not None and problem.circle.size < _LONGEST_RESOLVED:
            beside = problem.wanted - problem.causal_part(problem.wanted)
            if problem.mean_power(beside) <= _NOT_RESOLVED * negligible:
                break
            problem = self._sample_raised(make_circle(problem.circle.warp, 2 * problem.circle.size))
        return problem

    def _coarsen(self, problem: SampledChannels) -> SampledChannels:
        """Return the problem on a circle of fewer steps, which resolves any but prefilters with gains near to kinks."""
        if self._lag is not None and (has_many_states(self._streams) or problem.loud):
            return problem
        circle, (_, few) = problem.circle, choose_steps(*self._details(), size=_FEW_NODES)
        return problem if few >= circle.size else self._sample_raised(make_circle(circle.warp, few))

    def _refine(self, found: ChannelsOptimum) -> ChannelsOptimum:
        """Return the optimum on a circle that resolves factors of G*G, which is singular nearly."""
        circle = found.weights.problem.circle
        finer = make_circle(circle.warp, max(_NODES_OF_FACTORS, circle.size))
        if self._lag is None:
            product = spread_nodes(found.product, finer.size)
        else:  # whose K has no taps but the first half
            product = at_nodes(finer, causal_taps(circle, found.product))
        return found._replace(weights=_with_problem(found.weights, self._sample_raised(finer)), product=product)

    def _thin_out(self, found: ChannelsOptimum) -> ChannelsOptimum:
        """Return the optimum at fewer nodes: a prefilter of few states does not follow the kinks that need all."""
        circle = found.weights.problem.circle
        every = circle.size // self._nodes_of_states
        if every <= 1:
            return found
        problem = self._sample_raised(make_circle(circle.warp, circle.size // every))
        return found._replace(weights=_with_problem(found.weights, problem), product=found.product[::every])

    @property
    def _nodes_of_states(self) -> int:
        return choose_steps(*self._details(), size=_NODES_OF_STATES)[1]

    def _sample_raised(self, circle: WarpedCircle) -> SampledChannels:
        """Return the problem of the changes that are hidden in the end."""
        return self._sample(circle)._replace(changes=self._changes)

    def _place(self, system: StateSpace, circle: WarpedCircle) -> FilterMatrix:
        """Return a prefilter of all inputs in their own units, which does not see those that are not published.

        One for each input is made of its entries, but where poles lie so close that these are not what the states are.
        """
        a, b, c, d = system
        places = np.eye(self._target.shape[1])[self._inputs] / self._units[:, None]
        if len(a) == 0:
            return FilterMatrix([[Filter.from_factors([x]) for x in row] for row in d @ places])
        placed = FilterMatrix.from_state_space(a, b @ places, c, d @ places)
        if self._form == "general":
            return placed
        alone, omega = FilterMatrix(placed.rows), circle.grid.omega
        whole = placed.response(omega)
        lost, sizes = (np.abs(x).max(axis=(0, 1)) for x in (alone.response(omega) - whole, whole))
        return alone if (lost <= _SAME * sizes).all() else placed


def _with_problem(
    weights: DiagonalWeights | MixingPrefilter, problem: SampledChannels
) -> DiagonalWeights | MixingPrefilter:
    return DiagonalWeights(problem) if isinstance(weights, DiagonalWeights) else weights._replace(problem=problem)
