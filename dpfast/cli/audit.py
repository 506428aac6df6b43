"""The command ``dpfast audit``: of a saved mechanism, or of counts behind no filter."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpfast.design.perturbation import input_perturbation
from dpfast.filters.filter import Filter
from dpfast.mechanisms.checks import releasable
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.serialization.mechanism_file import load
from dpfast.privacy.privacy import Privacy
from dpfast.releases.audit.attack import audit
from dpfast.releases.audit.findings import Audit
from dpfast.releases.integer.inputs import Inputs

_EXAMPLE = Fraction(20)  # the highest count


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for.

    Attributes
    ----------
    mechanism : str or None
        Path; None for input perturbation of counts (G = 1) with ε = 1, δ = 1e-6.
    high : Fraction or None
        Needed with a mechanism.
    low, unit, centre, streams_per_person
        As for :class:`Inputs`.
    tolerance, confidence, seed
        As for :func:`audit`.
    runs : int or None
        n_runs there.
    """

    mechanism: str | None
    high: Fraction | None
    low: Fraction
    unit: Fraction
    centre: Fraction
    streams_per_person: int
    tolerance: float
    runs: int | None
    confidence: float
    seed: int


def run(request: Request, *, progress: bool) -> Audit:
    """Audit what was asked for."""
    if request.mechanism is not None and request.high is None:
        raise ValueError("high must be given with --mechanism: the largest count, as declared for a release")
    inputs = Inputs.of_counts(
        request.low,
        _EXAMPLE if request.high is None else request.high,
        unit=request.unit,
        centre=request.centre,
        n_streams=request.streams_per_person,
        streams_per_person=request.streams_per_person,
    )
    mechanism = _example() if request.mechanism is None else releasable(load(request.mechanism))
    return audit(
        mechanism,
        inputs,
        n_runs=request.runs,
        confidence=request.confidence,
        seed=request.seed,
        tolerance=request.tolerance,
        progress=progress,
    )


def _example() -> Mechanism:
    return input_perturbation(Filter([1]), Privacy(1, 1e-6), name="counts with G = 1")
