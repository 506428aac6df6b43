"""All attacks on a mechanism, one after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dpfast._support import validation
from dpfast._support.progress import progress_bar
from dpfast._support.validation import Array
from dpfast.mechanisms.mechanism_kinds import AnyMechanism, refuse_channels
from dpfast.privacy.discrete_gaussian_accounting import Sigma, epsilon, gdp_mu
from dpfast.releases.audit.canary import Canary, statistics
from dpfast.releases.audit.confidence_bounds import clopper_pearson, epsilon_at, judge_rule, least_mu, reachable_bound
from dpfast.releases.audit.draw_attacks import DrawStage
from dpfast.releases.audit.expected_laws import expect
from dpfast.releases.audit.findings import N_TESTS, Audit, Finding
from dpfast.releases.audit.floating_point_grid import evidence, is_possible
from dpfast.releases.audit.noise_findings import examine_noise
from dpfast.releases.audit.planned_attacks import FEWEST_RUNS, Advance, Canaries, PlannedAttack, plan_attacks
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.exact_forms import as_exact, exact_or_none
from dpfast.releases.integer.exact_mechanism import ExactMechanism
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.noise import Noise

_TAPS = 250  # take as long as drawing
_GRID_RUNS = 20_000
_BEFORE = 8  # steps of the stream before the event, in a simulation
_SEVERAL = (
    "there are no attacks on several streams that are published together yet; audit the same design of one of them"
)


def audit(
    mechanism: AnyMechanism | ExactBase,
    inputs: Inputs | None = None,
    *,
    n_runs: int | None = None,
    confidence: float = 0.99,
    seed: Any = 0,
    tolerance: float = 1e-3,
    progress: bool = False,
) -> Audit:
    r"""Attack a mechanism, simulated and released, as someone would who knows all of it and nearly all of the data.

    *Floating-point grid*: which of two inputs can one published number have come from (see :func:`evidence`)? It tells
    simulated inputs apart in one step, and released ones no better than the guarantee allows.

    *Canaries*: the events of one person, of the largest change, are put into signals at the ends of the range (and
    beyond), in as many streams as one person may be in, by the functions that a release runs. The matched filter
    Σ change·(v - expected) over all steps that matter is the likelihood ratio's statistic. Half of the runs choose the
    best of all rules, the other half judges it: with p, q the rates with and without, ε ≥ ln((p - δ)/q) by bounds of
    Clopper and Pearson (1934); so Jagielski, Ullman and Oprea (2020). By the same bounds the same runs test the stated
    μ, μ ≥ Φ⁻¹(p) - Φ⁻¹(q), which sees much more (Nasr et al. 2023). Alone, and twice, with opposite events in two
    pushes and in two releases, where noise that is used again would cancel. Of block sums, of noise on the integers and
    of answers the statistic is the log-likelihood ratio of the draws that the events touch, which judges ε alone.

    *Known zeros*: what :func:`release` and :func:`open_stream` publish of the centre alone is noise. Its second moment
    bounds σ; its values must be integers, of all residues, with no more zeros and no other shape than such noise has,
    and uncorrelated at all distances in time, between streams and between releases.

    Parameters
    ----------
    mechanism : Mechanism, BlockMechanism or what exact makes of one
        What is attacked.
    inputs : Inputs
        What is declared of the data; with an exact mechanism its own.
    n_runs : int, optional
        How often every attack on a release runs with the events, and as often without; at least 1000. By default as
        often as takes a few seconds, at most 1,200,000 times.
    confidence : float
        All tests share 1 - confidence: a sound mechanism is found violated with a probability of at most that.
    seed : int or numpy.random.Generator
        Decides where the events are, what the other values are, and what is simulated. The noise of releases is the
        operating system's, and differs from call to call.
    tolerance : float
        As in :func:`exact`.
    progress : bool
        Show a bar (tqdm, extra ``progress``).

    Returns
    -------
    Audit

    Raises
    ------
    ReleaseError
        Where the design depends on private data.
    ValueError
        For arguments out of range, and for mechanisms of several streams, which there are no attacks on yet.

    Notes
    -----
    *Privacy.* No data are needed: the signals are made here. That a claim is not contradicted proves nothing.

    The releases of known zeros are made in a temporary folder, and deleted.

    Examples
    --------
    >>> import dpfast as dp
    >>> mechanism = dp.input_perturbation(dp.Filter([1]), dp.Privacy(1, 1e-6))
    >>> result = dp.audit(mechanism, dp.Inputs(0, 20), n_runs=2000, confidence=1 - 1e-9)
    >>> result.violated, result.findings[0].verdict
    (False, 'broken, as expected')
    """
    known = exact_or_none(mechanism)
    refuse_channels(mechanism if known is None else known.mechanism, _SEVERAL)
    plan = as_exact(mechanism, inputs, tolerance)
    runs = None if n_runs is None else validation.integer("n_runs", n_runs, FEWEST_RUNS)
    confidence = validation.number("confidence", confidence, above=0, below=1)
    rng = np.random.default_rng(validation.seed(seed))
    miss = (1 - confidence) / N_TESTS
    stage = _plan_attacks(plan, rng, miss)
    attacks = stage.attacks(runs)
    with progress_bar(progress, 2 * sum(x.runs for x in attacks), "auditing", unit="run") as advance:
        findings = stage.before()
        for attack in attacks:
            findings += attack.find(advance)
        if not any(x.quantity == "share" and x.violated for x in findings):  # what is no integer is not released
            findings += examine_noise(plan, miss)
    name, delta = plan.mechanism.name, plan.mechanism.privacy.delta
    noise = " and ".join(dict.fromkeys(expect(x).name for x in plan.laws))
    return Audit(name, delta, confidence, tuple(findings), noise)


def _plan_attacks(plan: Any, rng: np.random.Generator, miss: float) -> _Stage | DrawStage:
    """Sum up the many values that an event moves behind Gaussian noise; else each draw tells by itself."""
    return _Stage(plan, rng, miss) if isinstance(plan.laws[0], Sigma) else DrawStage(plan, rng, miss)


class _Stage(NamedTuple):
    """The mechanism that is attacked, and what all attacks on it share."""

    plan: ExactMechanism
    rng: np.random.Generator
    miss: float  # probability that the bound of one attack fails

    def attacks(self, runs: int | None) -> list[PlannedAttack]:
        """Plan canaries: alone, and twice with opposite events."""
        up, down = (Canary.place(self.plan, self.rng, sign) for sign in (1, -1))
        return plan_attacks(up, down, runs, self.on_release, 1 + len(self.plan.taps) / _TAPS)

    def before(self) -> list[Finding]:
        """Attack single values of a simulation and of a release, before whole releases are attacked."""
        return [self.on_simulation(), *self.on_value()]

    def on_simulation(self) -> Finding:
        """Attack what is simulated by its grid: the stream without the events is impossible, or it is not."""
        mechanism, canary = self.plan.mechanism, Canary.place(self.plan, self.rng)
        memory = self.plan.memory
        step = _loudest(canary)
        streams = np.stack([u[0, max(0, memory - _BEFORE) : memory + step + 1] for u in canary.u]).astype(np.float64)
        seen = []
        for u in streams:
            paths = mechanism.simulate(np.tile(u, (_GRID_RUNS, 1)), seed=self.rng)
            seen.append(evidence(mechanism, paths.privatized, streams)[:, :, -1])
        hits = int(np.count_nonzero(~seen[1][0] & seen[1][1]))
        false_alarms = int(np.count_nonzero(~seen[0][0]))  # never, as a true input is possible
        delta = float(clopper_pearson(hits, _GRID_RUNS, self.miss).low) if hits > 0 and false_alarms == 0 else 0.0
        return Finding(
            target="simulate",
            attack="floating-point grid, one value",
            trials=_GRID_RUNS,
            quantity="δ at least",
            found=delta if delta > mechanism.privacy.delta else 0.0,
            hits=hits,
            false_alarms=false_alarms,
        )

    def on_value(self) -> list[Finding]:
        """Attack one value of a release by its grid, where integers may be rounded values; find what is no integer."""
        canary = Canary.place(self.plan, self.rng)
        step, noise, values, broken = _loudest(canary), Noise(self.plan.sigma), [], 0
        responses = canary.expected[0, step], canary.expected[0, step] + canary.change[0, step]
        for x in canary.x:
            before = np.tile(x[:1, step : self.plan.memory + step], (_GRID_RUNS, 1))
            now = np.full((_GRID_RUNS, 1), x[0, self.plan.memory + step])
            noise.ready(_GRID_RUNS)
            published = self.plan.privatize(before, now, noise.take(_GRID_RUNS)[:, None]).ravel()
            v = published.astype(np.float64)
            whole = v == np.rint(v)
            broken += len(v) if published.dtype.kind != "i" else int(np.count_nonzero(~whole))
            slack = np.where(whole, 0.5, 0.0)
            seen = [is_possible(v, float(r), self.plan.sigma.std, slack).astype(np.float64) for r in responses]
            values.append(seen[1] - seen[0])
        trials = 2 * _GRID_RUNS
        integers = Finding(
            target="release", attack="no integers", trials=trials, quantity="share", found=broken / trials, claim=0.0
        )
        return [integers, self._of_epsilon("floating-point grid, one value", values, 1, None)]

    def on_release(self, attack: Canaries[Canary], advance: Advance) -> list[Finding]:
        """Attack releases with canaries, and judge them by ε and by μ."""
        values = [
            statistics(self.plan, attack.canaries, attack.runs, present=present, apart=attack.apart, advance=advance)
            for present in (False, True)
        ]
        mu = math.sqrt(sum(x.squared_change for x in attack.canaries)) / self.plan.sigma.std
        n_releases = len(attack.canaries)
        found = judge_rule(values[0], values[1], least_mu, self.miss)
        of_mu = Finding(
            target="release",
            attack=attack.name,
            trials=found.trials,
            quantity="μ at least",
            found=found.bound,
            hits=found.hits,
            false_alarms=found.false_alarms,
            reachable=reachable_bound(mu, attack.runs, least_mu, self.miss),
            claim=gdp_mu([self.plan.shift] * n_releases),
        )
        could = reachable_bound(mu, attack.runs, epsilon_at(self.plan.mechanism.privacy.delta), self.miss)
        return [self._of_epsilon(attack.name, values, n_releases, could), of_mu]

    def _of_epsilon(self, name: str, values: Sequence[Array], n_releases: int, reachable: float | None) -> Finding:
        delta = self.plan.mechanism.privacy.delta
        found = judge_rule(values[0], values[1], epsilon_at(delta), self.miss)
        return Finding(
            target="release",
            attack=name,
            trials=found.trials,
            quantity="ε at least",
            found=found.bound,
            hits=found.hits,
            false_alarms=found.false_alarms,
            reachable=reachable,
            claim=epsilon([self.plan.shift] * n_releases, delta),
        )


def _loudest(canary: Canary) -> int:
    """Return the step at which the events change most in the first stream."""
    return int(np.abs(canary.change[0]).argmax())
