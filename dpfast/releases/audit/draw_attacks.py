"""Attacks on mechanisms whose noise is drawn once for each value: block sums, G = 1 with integer noise, answers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dpfast.privacy.composition import Loss
from dpfast.releases.audit.confidence_bounds import epsilon_at, judge_rule
from dpfast.releases.audit.draw_canary import DrawCanary, ratios, reachable_ratio
from dpfast.releases.audit.findings import Finding
from dpfast.releases.audit.planned_attacks import Advance, Canaries, PlannedAttack, plan_attacks
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.noise import NoiseOfLaws

_VALUES = 20_000


class DrawStage(NamedTuple):
    """Attack a mechanism; this holds it, and what all attacks on it share."""

    plan: ExactBase
    rng: np.random.Generator
    miss: float  # probability that the bound of one attack fails

    def attacks(self, runs: int | None) -> list[PlannedAttack]:
        """Plan canaries: alone, and twice with opposite events."""
        up, down = (DrawCanary.place(self.plan, self.rng, sign) for sign in (1, -1))
        return plan_attacks(up, down, runs, self.on_release)

    def before(self) -> list[Finding]:
        """Find what is no integer."""
        canary, noise = DrawCanary.place(self.plan, self.rng), NoiseOfLaws.of(self.plan.drawn_laws)
        broken = trials = 0
        while trials < _VALUES:
            v = canary.published(max(1, _VALUES // canary.size), noise)
            values = v.astype(np.float64)
            broken += len(v) if v.dtype.kind != "i" else int(np.count_nonzero(values != np.rint(values)))
            trials += len(v)
        share = broken / trials
        return [
            Finding(target="release", attack="no integers", trials=trials, quantity="share", found=share, claim=0.0)
        ]

    def on_release(self, attack: Canaries[DrawCanary], advance: Advance) -> list[Finding]:
        """Attack releases with canaries, and judge them by ε."""
        without, with_ = (
            ratios(attack.canaries, attack.runs, present=present, apart=attack.apart, advance=advance)
            for present in (False, True)
        )
        n = len(attack.canaries)
        privacy = self.plan.mechanism.privacy
        loss = sum([self.plan.terms(privacy, self.plan.inputs).loss] * n, Loss())
        delta = n * privacy.delta
        found = judge_rule(without, with_, epsilon_at(delta), self.miss)
        return [
            Finding(
                target="release",
                attack=attack.name,
                trials=found.trials,
                quantity="ε at least",
                found=found.bound,
                hits=found.hits,
                false_alarms=found.false_alarms,
                reachable=reachable_ratio(attack.canaries, attack.runs, epsilon_at(delta), self.miss),
                claim=loss.epsilon(delta),
                delta=delta,
            )
        ]
