"""Exact noise on the integers for a design: which law hides a person, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpfast._support.errors import DesignError
from dpfast._support.exact_numbers import meant_number, write_in_python, write_number
from dpfast._support.safe_rounding import decimal_below
from dpfast.privacy.canonical_table import LEAST_DELTA, CanonicalTable, canonical_table
from dpfast.privacy.composition import Loss
from dpfast.privacy.geometric_rate import GeometricRate
from dpfast.privacy.lattice import Lattice
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.response_table import OUTCOMES, ResponseTable
from dpfast.releases.guarantee_terms import ReleaseTerms, loss_words
from dpfast.releases.integer.inputs import Inputs

LatticeLaw = GeometricRate | CanonicalTable
DrawnLaw = LatticeLaw | ResponseTable
_SAME = 1e-9  # of a unit
_WHOLE = Fraction(1)
_ROUNDED = Fraction(1, 2**40)  # of shares that are parts of a whole
LARGEST_NOISE = 2**50  # of a rate of at least 2^-40, behind which the sampler never goes


def exact_shares(shares: Sequence[float]) -> tuple[Fraction, ...]:
    """Return shares as fractions of at most 1 together: where they are 1 but for rounding, as parts of the whole."""
    given = [decimal_below(x) for x in shares]
    total = sum(given, Fraction(0))
    return tuple(x / (total if abs(total - 1) <= _ROUNDED else 1) for x in given)


def find_law(kind: str, privacy: Privacy, inputs: Inputs, share: Fraction = _WHOLE) -> LatticeLaw:
    """Return the law of each draw, of which an event touches one, for so large a share of ε and δ.

    Canonical noise of a δ below 1/1000 for one event is not worth a table: geometric noise takes its place, whose δ is
    0 and whose variance is at most 4 % larger there, and 2e-4 at a δ of 1e-6.
    """
    change, events = inputs.change(privacy.max_change), privacy.max_events * inputs.streams_per_person
    epsilon = decimal_below(privacy.epsilon) * share
    if kind == "canonical" and change == 1:
        delta = _delta_of_one(epsilon, decimal_below(privacy.delta) * share, events)
        if delta >= LEAST_DELTA:
            return canonical_table(epsilon / events, delta)
    try:
        return GeometricRate.below(epsilon, change * events)
    except ValueError as error:
        raise DesignError(f"{error}: take a larger epsilon, a coarser unit, or fewer events of a person") from None


def _delta_of_one(epsilon: Fraction, delta: Fraction, events: int) -> Fraction:
    """Return a δ for one of several events whose δ(1 + e^{ε/m} + ... + e^{(m-1)ε/m}) is below that of all."""
    if events == 1:
        return delta
    each = float(epsilon) / events
    factor = math.fsum(math.exp(i * each) for i in range(events)) if events * each < 700 else math.inf
    return Fraction(0) if math.isinf(factor) else delta / Fraction(factor * (1 + 1e-9))


def loss_of(laws: Sequence[LatticeLaw], privacy: Privacy, inputs: Inputs) -> Loss:
    """Return what draws cost a person: each unit that each event moves a value, one value of each law.

    The changes of all draws add up, wherever the events fall: with geometric noise their rates, with tables as those
    of a group.
    """
    steps = inputs.change(privacy.max_change) * privacy.max_events * inputs.streams_per_person
    rates = [x.epsilon(steps) for x in laws if isinstance(x, GeometricRate)]
    tables = [(x.epsilon, x.delta) for x in laws if isinstance(x, CanonicalTable)]
    return Loss(pure=(sum(rates, Fraction(0)),) if rates else ()) + Loss(approximate=tuple(tables)).of_group(steps)


def law_terms(
    laws: Sequence[DrawnLaw], loss: Loss, what: str, drawn: str, content: Mapping[str, Any], of_each: Sequence[str] = ()
) -> ReleaseTerms:
    """Say in a guarantee what is drawn, and what it costs.

    of_each : where several laws may differ, what each of them is drawn for.
    """
    if len(set(laws)) == 1:
        names = law_words(laws[0])
    else:
        names = "; ".join(f"{each}: {law_words(law)}" for each, law in zip(of_each, laws, strict=True))
    return ReleaseTerms(
        loss,
        {"noise": f"{names}, drawn exactly, once for every {drawn}"},
        f"{loss_words(loss)} exactly",
        {"published": what},
        {"published": what, "noise": laws_content(laws), **content},
    )


def law_words(law: DrawnLaw) -> str:
    """Name a law, with its numbers."""
    if isinstance(law, GeometricRate):
        deviation = math.sqrt(law.variance)
        return f"two-sided geometric, rate {law.s}/2^{law.j} (standard deviation about {deviation:.4g} units)"
    if isinstance(law, ResponseTable):
        chances = law.certain, law.truly, law.falsely
        certain, truly, falsely = (f"{float(x):.4g}" for x in chances)
        return (
            f"randomised response: told for certain with a chance of about {certain}, truly of {truly}, falsely of "
            f"{falsely} (exactly {', '.join(map(str, chances))})"
        )
    return f"canonical, from a table of {len(law.values)} probabilities"


def laws_content(laws: Sequence[DrawnLaw]) -> dict[str, Any] | list[dict[str, Any]]:
    """Return laws as JSON holds them: one law where all are the same, otherwise all of them."""
    return law_content(laws[0]) if len(set(laws)) == 1 else [law_content(x) for x in laws]


def read_laws(given: Mapping[str, Any] | Sequence[Mapping[str, Any]], n: int) -> tuple[LatticeLaw, ...]:
    """Read the laws of n values that :func:`laws_content` gave."""
    found: Any = (read_law(given),) * n if isinstance(given, Mapping) else tuple(map(read_law, given))
    if len(found) != n or not all(isinstance(x, GeometricRate | CanonicalTable) for x in found):
        raise ValueError(f"law must be one law of integer noise, or {n} of them, got {len(found)}")
    laws: tuple[LatticeLaw, ...] = found
    return laws


def law_content(law: DrawnLaw) -> dict[str, Any]:
    """Return a law as JSON holds it."""
    if isinstance(law, GeometricRate):
        return {"kind": "geometric", "rate": list(law)}
    kind = "response" if isinstance(law, ResponseTable) else "canonical"
    return {"kind": kind, "weights": list(law.weights), "epsilon": str(law.epsilon)}


def read_law(given: Mapping[str, Any]) -> DrawnLaw:
    """Read what :func:`law_content` gave."""
    if given["kind"] == "geometric":
        return GeometricRate(*given["rate"])
    weights = tuple(given["weights"])
    if given["kind"] == "response":
        return ResponseTable(OUTCOMES, weights, Fraction(given["epsilon"]))
    largest = len(weights) // 2
    return CanonicalTable(tuple(range(-largest, largest + 1)), weights, Fraction(given["epsilon"]))


def check_lattice(lattice: Lattice, inputs: Inputs) -> None:
    """Refuse declared inputs in another unit than that of the design: the sums, and the noise, are in units.

    Raises
    ------
    DesignError
        Naming the unit of the design.
    """
    unit, centre = float(inputs.unit), float(inputs.centre)
    off = (centre - lattice.offset) / lattice.unit
    same = abs(unit / lattice.unit - 1) <= _SAME and abs(off - round(off)) <= _SAME * max(1.0, abs(off))
    if not same:
        offset, step = meant_number(lattice.offset), meant_number(lattice.unit)
        start = f"{write_number(offset)} plus " if offset else ""
        raise DesignError(
            f"inputs must be in the units of the design, {start}multiples of {write_number(step)}, got the unit "
            f"{inputs.unit} and the centre {inputs.centre}: declare Inputs(low, high, unit={write_in_python(step)}"
            + (f", centre={write_in_python(offset)})" if offset else ")")
        )
    if inputs.multiples == lattice.rounds:
        what = "real numbers, which it rounds to its unit" if lattice.rounds else "multiples of its unit"
        how = "without a unit, as for the counts of dpfast release" if lattice.rounds else "with a unit"
        raise DesignError(
            f"inputs must have multiples={not lattice.rounds}, as the design takes values for {what}: declare that, or "
            f"design it {how}"
        )


def check_cost(loss: Loss, privacy: Privacy) -> None:
    """Refuse noise that costs a person more than the design demands."""
    proven, demanded = loss.epsilon(privacy.delta if loss.approximate else 0.0), privacy.epsilon
    if proven > demanded:
        raise DesignError(f"noise must cost a person at most epsilon {demanded:g}, got {proven:g}: make it by exact")
