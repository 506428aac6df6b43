r"""The joint optimum of several streams with a prefilter that mixes them, for a receiver of finite lag.

It is min over causal K of ‖(z^{-D}F - K)Ω‖² + κ²γ(K)², P = ΩΩ*, smoothed less and less (``mixing_search``), on circles
of twice as many steps where those do not resolve it, with events at other times taken in as they change more.
"""

from __future__ import annotations

from collections.abc import Callable

from dpfast.design.mimo.channel_weights import SampledChannels
from dpfast.design.mimo.circle_taps import interpolate, twice_as_many
from dpfast.design.mimo.event_atoms import EventAtoms, even_mixture
from dpfast.design.mimo.joint_channels import ChannelsOptimum
from dpfast.design.mimo.mixing_search import ROUGH, MixingJudgement, MixingSearch, MixingStage
from dpfast.filters.warped_circle import WarpedCircle, make_circle

_RESOLVED = 2.0  # times the gap on a circle: what is left of the slope on one of twice as many steps at the most
_SHRINK, _LAST = 0.1, 1e-8  # how much is smoothed: from stage to stage, and at last
_ENOUGH = 0.5  # of the goal: the gap that the next stage is for, as gaps shrink with what is smoothed
_AMPLE = 0.8  # of the goal: the gap on a circle, with all events, that ends the search for more
_SHRINK_ROUGHLY = 0.5  # how much less is smoothed where a gap is rough
_NEARLY, _LARGE = 2.0, 2**12  # times the goal: a gap that is not worth a finer circle than that, as dear as all before
_FITTED = 0.2  # of the goal: what is left on a circle of twice as many steps where the gap is below it
SLACK = 0.3  # of what is smoothed: events that change the more are taken in
_LOST = 30.0  # times the best gap: rounding has taken over
_LONGEST = 2**14

SampleCircle = Callable[[WarpedCircle], SampledChannels]


def mixing_optimum(sample: SampleCircle, atoms: EventAtoms, warp: float, size: int, goal: float) -> ChannelsOptimum:
    """Smooth less and less, on circles of twice as many steps where those do not resolve it, until the gap is small.

    What is returned is of the circle of twice as many steps, with all events of a person; its bound is seen at twice as
    many nodes again.
    """
    search = MixingSearch(sample(make_circle(warp, size)), atoms)
    stage = search.start(even_mixture(atoms))
    best: ChannelsOptimum | None = None
    while True:
        stage, settled = _settle_events(search.problem, stage, goal)
        stage = search.count_certificate(stage)
        gap, (finer, finest) = settled.gap, (sample(make_circle(warp, x * search.size)) for x in (2, 4))
        padded, finer_search = stage._replace(taps=twice_as_many(stage.taps)), MixingSearch(finer, stage.mixture.atoms)
        slope = interpolate(search.problem.circle, finer.circle, settled.point.norm.slope)
        judged = finer_search.certify(finer_search.begin(padded), slope, finest, goal)
        found = judged.optimum()
        best = found if best is None or found.gap < best.gap else best
        lost = min(gap, found.gap) > _LOST * best.gap
        if best.gap <= goal or lost or stage.worked_off or stage.share < _LAST:
            return best
        between = _RESOLVED * gap if gap > goal else _FITTED * goal
        if min(judged.unsettled, found.gap) > between and 2 * finer.circle.size <= _LONGEST:
            if finer.circle.size >= _LARGE and best.gap <= _NEARLY * goal:
                return best
            search, stage = finer_search, padded
        elif not stage.has_time:
            return best
        else:
            search = MixingSearch(search.problem, stage.mixture.atoms)
            enough = _ENOUGH * min(1.0, goal / gap)
            shrink = _SHRINK if gap <= ROUGH else _SHRINK_ROUGHLY
            stage = search.soften(stage._replace(share=max(shrink, enough) * stage.share))


def _settle_events(problem: SampledChannels, stage: MixingStage, goal: float) -> tuple[MixingStage, MixingJudgement]:
    """Minimize with one smoothing, and take in events at other times that change more than the mixture.

    Return also the certificate without those that are left. It ends where with them the gap is below the goal, too, or
    where what work is left is needed to settle all on a circle that resolves it. A round that is cut as the work ends
    is lost, as nothing is settled by then: what is returned is of the one before.
    """
    before: tuple[MixingStage, MixingJudgement] | None = None
    while True:
        search = MixingSearch(problem, stage.mixture.atoms)
        stage, found = search.settle(stage)
        if stage.worked_off and before is not None and found.gap > before[1].gap:
            return before[0]._replace(spent=stage.spent), before[1]
        if found.gap > ROUGH:  # events would be those of what is smoothed, and too many
            return stage, found
        missed = found.weights.missed_events(found.point.norm.k, SLACK * stage.share)
        enough = len(missed.changes) and found.gap <= _AMPLE * goal and search.judge(found.point).gap <= _AMPLE * goal
        if not len(missed.changes) or enough or not stage.has_time:
            return stage, found
        before = stage, found
        stage = stage._replace(mixture=stage.mixture.extended(missed))
