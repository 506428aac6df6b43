"""All attacks on a mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpfast import _validate
from dpfast._validate import Array
from dpfast.audit.bounds import clopper_pearson, judge, reachable_epsilon
from dpfast.audit.canary import Canary, statistics
from dpfast.audit.grid import evidence, possible
from dpfast.audit.result import Audit, Finding
from dpfast.bars import bar
from dpfast.mechanism import Mechanism
from dpfast.release.accountant import epsilon
from dpfast.release.batch import as_exact
from dpfast.release.exact import ExactMechanism
from dpfast.release.inputs import Inputs
from dpfast.release.noise import Noise

_FEWEST, _MOST = 1000, 1_200_000
_WORK = 14_000_000  # numbers that an attack draws, where the number of runs is not given
_TAPS = 250  # take as long as drawing
_GRID_RUNS = 20_000
_BEFORE = 8  # steps of the stream before the event, in a simulation
_N_ATTACKS = 5


def audit(
    mechanism: Mechanism | ExactMechanism,
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
    Clopper and Pearson (1934); so Jagielski, Ullman and Oprea (2020). Alone, and twice, with opposite events in two
    pushes and in two releases, where noise that is used again would cancel.

    Parameters
    ----------
    mechanism : Mechanism or ExactMechanism
    inputs : Inputs
        What is declared of the data; with an ExactMechanism its own.
    n_runs : int, optional
        Runs of every attack on a release with the events, and as many without; at least 1000. By default as many as
        take a few seconds, at most 1,200,000.
    confidence : float
        That no bound is above the truth, all together: a sound mechanism is found violated with a probability of at
        most 1 - confidence.
    seed : int or numpy.random.Generator
        Of the place of the events and of the other values, and of what is simulated. The noise of releases is the
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
        For arguments out of range.

    Notes
    -----
    *Privacy.* No data are needed: the signals are made here. What is found is a lower bound of ε; that a claim is not
    contradicted proves nothing.

    Examples
    --------
    >>> import dpfast as dp
    >>> mechanism = dp.input_perturbation(dp.Filter([1]), dp.Privacy(1, 1e-6))
    >>> result = dp.audit(mechanism, dp.Inputs(0, 20), n_runs=2000)
    >>> result.violated, result.findings[0].verdict
    (False, 'broken, as expected')
    """
    plan = as_exact(mechanism, inputs, tolerance)
    runs = None if n_runs is None else _validate.integer("n_runs", n_runs, _FEWEST)
    confidence = _validate.number("confidence", confidence, above=0, below=1)
    rng = np.random.default_rng(_validate.seed(seed))
    stage = _Stage(plan, rng, (1 - confidence) / _N_ATTACKS)
    attacks = _canaries(stage, runs)
    with bar(progress, 2 * sum(x.runs for x in attacks), "auditing", unit="run") as advance:
        grid = stage.on_simulation(), stage.on_value()
        findings = *grid, *(stage.on_release(x, advance) for x in attacks)
    return Audit(plan.mechanism.name, plan.mechanism.privacy.delta, confidence, findings)


class _Canaries(NamedTuple):
    name: str
    canaries: tuple[Canary, ...]
    apart: bool
    runs: int


def _canaries(stage: _Stage, runs: int | None) -> list[_Canaries]:
    """Alone, and twice with opposite events."""
    up, down = (Canary.of(stage.plan, stage.rng, sign) for sign in (1, -1))
    result = []
    for name, canaries, apart in (
        ("canary, all steps", (up,), False),
        ("opposite canaries, two pushes", (up, down), False),
        ("opposite canaries, two releases", (up, down), True),
    ):
        work = 2 * sum(x.size for x in canaries) * (1 + len(stage.plan.taps) / _TAPS)
        result.append(_Canaries(name, canaries, apart, runs or min(_MOST, max(_FEWEST, int(_WORK / work)))))
    return result


class _Stage(NamedTuple):
    """What all attacks share."""

    plan: ExactMechanism
    rng: np.random.Generator
    miss: float  # probability that the bound of one attack fails

    def on_simulation(self) -> Finding:
        """The grid attack: the stream without the events is impossible, or it is not."""
        mechanism, canary = self.plan.mechanism, Canary.of(self.plan, self.rng)
        memory = self.plan.memory
        step = _loudest(canary)
        streams = np.stack([u[0, max(0, memory - _BEFORE) : memory + step + 1] for u in canary.u]).astype(np.float64)
        seen = []
        for u in streams:
            paths = mechanism.simulate(np.tile(u, (_GRID_RUNS, 1)), seed=self.rng)
            seen.append(evidence(mechanism, paths.privatized, streams)[:, :, -1])
        hits = int(np.count_nonzero(~seen[1][0] & seen[1][1]))
        false_alarms = int(np.count_nonzero(~seen[0][0]))  # never, as a true input is possible
        broken = hits > 0 and false_alarms == 0
        delta = float(clopper_pearson(hits, _GRID_RUNS, self.miss).low) if broken else None
        bound = math.inf if delta and delta > mechanism.privacy.delta else 0.0
        return Finding("simulate", "floating-point grid, one value", _GRID_RUNS, hits, false_alarms, bound, delta=delta)

    def on_value(self) -> Finding:
        """The same on one value of a release."""
        canary = Canary.of(self.plan, self.rng)
        step, noise, values = _loudest(canary), Noise(self.plan.sigma), []
        responses = canary.expected[0, step], canary.expected[0, step] + canary.change[0, step]
        for x in canary.x:
            before = np.tile(x[:1, step : self.plan.memory + step], (_GRID_RUNS, 1))
            now = np.full((_GRID_RUNS, 1), x[0, self.plan.memory + step])
            noise.ready(_GRID_RUNS)
            v = self.plan.privatize(before, now, noise.take(_GRID_RUNS)[:, None]).ravel().astype(np.float64)
            seen = [possible(v, float(r), self.plan.sigma.std).astype(np.float64) for r in responses]
            values.append(seen[1] - seen[0])
        return self._finding("floating-point grid, one value", values, 1, None)

    def on_release(self, attack: _Canaries, advance: Callable[[int], object]) -> Finding:
        """Canaries."""
        values = [
            statistics(self.plan, attack.canaries, attack.runs, present=present, apart=attack.apart, advance=advance)
            for present in (False, True)
        ]
        mu = math.sqrt(sum(x.squared_change for x in attack.canaries)) / self.plan.sigma.std
        could = reachable_epsilon(mu, attack.runs, self.plan.mechanism.privacy.delta, self.miss)
        return self._finding(attack.name, values, len(attack.canaries), could)

    def _finding(self, name: str, values: Sequence[Array], n_releases: int, reachable: float | None) -> Finding:
        delta = self.plan.mechanism.privacy.delta
        found = judge(values[0], values[1], delta, self.miss)
        claim = epsilon([self.plan.shift] * n_releases, delta)
        counts = found.trials, found.hits, found.false_alarms
        return Finding("release", name, *counts, found.epsilon, reachable, claim)


def _loudest(canary: Canary) -> int:
    """The step at which the events change most in the first stream."""
    return int(np.abs(canary.change[0]).argmax())
