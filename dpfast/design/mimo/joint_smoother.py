r"""The joint optimum of smoothers of streams that may depend on one another, with a prefilter for each input.

No causality is asked: J = min over K of ‖(F - K)Ω‖² + κ²γ(K)², γ as in ``channel_weights``. No lag goes below it. It is
found as the optimum of a lag is (``joint_channels``), with K at the nodes of a circle in place of taps: nothing but the
mean gains that γ is made of couples frequencies, so that a step takes few products. Of ψ in the bound nothing is free:
it is (F - K)P, no column of which is longer anywhere than where its input is published.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.mimo.channel_weights import DiagonalWeights, SampledChannels, are_loud
from dpfast.design.mimo.joint_channels import ChannelsJudgement, ChannelsOptimum, ChannelsSearch
from dpfast.design.mimo.merged_streams import MergedStreams
from dpfast.design.mimo.newton_step import NewtonSteps
from dpfast.design.mimo.node_transforms import NodesAlone
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.warped_circle import WarpedCircle, choose_circle
from dpfast.privacy.privacy import Privacy
from dpfast.signals.vector_arma import VectorARMA

_NODES = 1024  # of the circle, at the least: gains have kinks
_GOAL = 8e-7  # of the gap, relative
_MOST_STAGES = 14
_ACCURATE = 0.03  # of the residual of conjugate gradients, which take few steps here


def smoother_bound(target: FilterMatrix, privacy: Privacy, model: VectorARMA, inputs: Sequence[int]) -> float:
    """Return what no receiver behind a prefilter for each of these inputs goes below, at any lag; near to the best.

    Parameters
    ----------
    target : FilterMatrix
        F, whose output should be published.
    privacy : Privacy
        The guarantee that is asked for.
    model : VectorARMA
        Of all inputs of the target.
    inputs : sequence of int
        Those that are published; others are nothing in the model.
    """
    circle = smoother_circle(target, model)
    omega = circle.grid.omega
    problem = SampledChannels(
        circle,
        target.response(omega)[:, :, inputs],
        model.psd(omega)[:, inputs][:, :, inputs],
        privacy.noise_multiplier * privacy.max_events,
        privacy.changes(target.shape[1])[inputs],
        privacy.adjacency or "one_input",
    )
    return smooth_jointly(problem._replace(loud=are_loud(problem))).lower_bound


def smoother_circle(target: FilterMatrix, model: VectorARMA) -> WarpedCircle:
    """Return a circle that resolves what a smoother does."""
    taps = 0 if target.shares_states else target.order
    return choose_circle(np.concatenate([target.poles, model.poles]), taps, size=_NODES)


def smooth_jointly(problem: SampledChannels) -> ChannelsOptimum:
    """Return the joint optimum without causality, of a problem that is not late.

    Streams that are multiples of one another are one meanwhile.
    """
    streams = MergedStreams.of(problem.psd)
    search = SmootherSearch(streams.merge(problem))
    stage, best = search.begin(), None
    for _ in range(_MOST_STAGES):
        stage, found = search.settle(stage)
        best = found if best is None else _better(best, found)
        if best.gap <= _GOAL:
            break
        stage = stage.go_on(stage.centre)  # directions are soon known without a better one
    assert best is not None
    k = streams.spread(best.point.norm.k, problem)
    return ChannelsOptimum(DiagonalWeights(problem), k, best.mse, max(0.0, min(best.mse, best.lower_bound)))


def _better(a: ChannelsJudgement, b: ChannelsJudgement) -> ChannelsJudgement:
    """Return the one of less error, with the higher of both bounds."""
    least = a if a.mse <= b.mse else b
    return least._replace(lower_bound=max(a.lower_bound, b.lower_bound))


class SmootherSearch(ChannelsSearch):
    """The problem on one circle, at each node without those around it.

    Parameters
    ----------
    problem : SampledChannels
    """

    _settled = _settled_late = 0.1
    _damped = 1.0

    def __init__(self, problem: SampledChannels) -> None:
        super().__init__(lambda _: problem, problem.circle)
        _, p, m = problem.wanted.shape
        self._alone, self._unit = NodesAlone(p, m, self.size), problem.circle.unit[:, None, None]

    def taps(self, values: Complex) -> Array:
        """Return parts of values at nodes (2 nodes, p, m), for taps."""
        return self._alone.parts(values * self._unit)

    def values(self, taps: Array) -> Complex:
        """Return what these are parts of."""
        return self._alone.values(taps) / self._unit

    @functools.cached_property
    def _steps(self) -> NewtonSteps:
        return NewtonSteps(self.problem, self._alone, _ACCURATE)
