"""The statement of a ledger: what was lost at most, by whom, in all and in windows of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from dpfast._support import validation
from dpfast._support.text_table import Table
from dpfast._support.wrapped_text import wrap_facts, wrap_paragraph
from dpfast.privacy.composition import check_delta
from dpfast.releases.arbiters.place import Place
from dpfast.releases.contributions import format_declared
from dpfast.releases.guarantee_words import explain_words
from dpfast.releases.ledger.cap import Cap
from dpfast.releases.ledger.entry import UNITS, Entry, in_force
from dpfast.releases.ledger.ledger_database import Line
from dpfast.releases.ledger.together import Together, alternatives, loss_of, windows
from dpfast.releases.rounded_numbers import format_rounded_up
from dpfast.signals.events.periods import format_period, parse_period


@dataclass(frozen=True)
class Total:
    """Say what entries cost together, at most, one event or one person.

    Attributes
    ----------
    epsilon : float
        Of all together, at the δ of the statement: it holds if all releases were planned beforehand.
    sum_of_epsilons, sum_of_deltas : Fraction
        Of all releases, each as it was demanded: it holds whatever was chosen from what.
    rho : Fraction
        The sum of all ρ of zero-concentrated privacy, which holds likewise; but for the δ of releases that are known by
        (ε, δ) alone.
    n_entries : int
    """

    epsilon: float
    sum_of_epsilons: Fraction
    sum_of_deltas: Fraction
    rho: Fraction
    n_entries: int

    @classmethod
    def of(cls, entries: Sequence[Entry], delta: float) -> Self:
        """Return the total over the worst of all sets that one event or person may be in."""

        def measure(together: Together) -> tuple[float, Fraction, Fraction, Fraction]:
            loss = loss_of(together)
            sums = (sum((x.epsilon for x in together), Fraction(0)), sum((x.delta for x in together), Fraction(0)))
            return loss.epsilon(delta), *sums, loss.zcdp()[0]

        found = [measure(together) for together in alternatives(entries)]
        epsilon, epsilons, deltas, rho = zip(*found, strict=True)
        return cls(max(epsilon), max(epsilons), max(deltas), max(rho), len(entries))

    def __str__(self) -> str:
        return (
            f"epsilon {_show(self.epsilon)} together; the epsilons add up to {_show(self.sum_of_epsilons)}, with "
            f"deltas of {_show(self.sum_of_deltas)}, and rho to {_show(self.rho)}"
        )


@dataclass(frozen=True)
class Statement:
    """Say what a ledger holds; `print` gives it in full.

    Attributes
    ----------
    path : Path or Postgres
    population : str
    cap : Cap or None
    delta : float
        At which ε is stated.
    event, person : Total or None
        What one event has lost at most in releases that protect events, and one person in those that protect persons;
        None where there are none. They are never added up.
    stores : dict
        The total of each store, by its unit and path.
    window : str or None
    windows : dict
        The total of the worst window, and its first moment, by unit.
    lines : tuple of Line
    """

    path: Place
    population: str
    cap: Cap | None
    delta: float
    event: Total | None
    person: Total | None
    stores: dict[tuple[str, str], Total]
    window: str | None
    windows: dict[str, tuple[np.datetime64 | None, Total]]
    lines: tuple[Line, ...]

    @classmethod
    def of(
        cls,
        path: Place,
        population: str,
        cap: Cap | None,
        lines: Sequence[Line],
        *,
        delta: Any = None,
        window: Any = None,
    ) -> Self:
        """Make the statement of some lines; the arguments are those of `Ledger.statement`."""
        entries = in_force([line.entry for line in lines])
        level = _choose_delta(delta, cap, entries)
        length = None if window is None else parse_period(window if isinstance(window, str) else _as_text(window))
        by_unit = {unit: [x for x in entries if x.unit == unit] for unit in UNITS}
        event, person = (Total.of(x, level) if x else None for x in by_unit.values())
        stores = {(x.unit, x.path): [y for y in by_unit[x.unit] if y.path == x.path] for x in entries}
        worst = {unit: _worst_window(x, length, level) for unit, x in by_unit.items() if x and length is not None}
        of_stores = {key: Total.of(x, level) for key, x in stores.items()}
        text = None if length is None else format_period(length)
        return cls(path, population, cap, level, event, person, of_stores, text, worst, tuple(lines))

    @property
    def left(self) -> Fraction | None:
        """Return what is left of the cap on the sum of ε or of ρ; None without a cap."""
        if self.cap is None:
            return None
        return max(Fraction(0), self.cap.limit - self.cap.spent([x.entry for x in self.lines])[0])

    @property
    def summary(self) -> str:
        """Return what it says for readers of a release: the totals and the cap, without places."""
        n = count_words(len(self.lines), "entry", "entries")
        return " ".join([f"The ledger of {self.population!r} has {n}.", *self._totals(), *self._of_cap()])

    def __str__(self) -> str:
        n = count_words(len(self.lines), "entry", "entries")
        stores = count_words(len({line.entry.store for line in self.lines}), "store", "stores")
        text = [f"Ledger of {self.population!r}: {n} of {stores}, in {self.path}", ""]
        if self.lines:
            places = {f"store {i}": path for i, path in enumerate(self._paths, 1)}
            text += [self._table().text(), "", wrap_facts(places), ""]
        text += map(wrap_paragraph, [*self._totals(), *self._of_windows(), *self._of_cap()])
        if self.lines:
            words = wrap_facts(explain_words(dict.fromkeys(_WORDS, "")))
            text += ["", wrap_paragraph(_EXPLAINED), "", "What these words mean:", words]
        return "\n".join(text)

    @property
    def _paths(self) -> list[str]:
        """Return the stores, each once: their numbers stand in the table, as paths are long."""
        return list(dict.fromkeys(path for _, path in self.stores))

    def _table(self) -> Table:
        numbers = {path: str(i) for i, path in enumerate(self._paths, 1)}
        rows = [
            (
                numbers[path],
                unit,
                x.n_entries,
                _show(x.epsilon),
                _show(x.sum_of_epsilons),
                _show(x.sum_of_deltas),
                _show(x.rho),
            )
            for (unit, path), x in self.stores.items()
        ]
        together = f"epsilon at delta {format_declared(self.delta)}"
        columns = ("store", "per", "entries", together, "sum of epsilon", "sum of delta", "rho")
        return Table(columns, tuple(rows))

    def _totals(self) -> list[str]:
        if not self.lines:
            return ["Nothing was spent."]
        result = [
            f"All releases have cost one {unit} at most, at delta {format_declared(self.delta)}, {total}."
            for unit, total in (("event", self.event), ("person", self.person))
            if total is not None
        ]
        if self.event is not None:
            releases = count_words(self.event.n_entries, "release enforces", "releases enforce")
            result.append(
                f"There is no total per person, as {releases} no bound on what one person contributes. Somebody with "
                "several events loses more."
            )
        return result

    def _of_windows(self) -> list[str]:
        at = f"at most, at delta {format_declared(self.delta)}"
        return [
            f"The releases of any {self.window} have cost one {unit} {at}, {total}"
            + ("." if begin is None else f", such as those of the window from {_write_moment(begin)} on.")
            for unit, (begin, total) in self.windows.items()
        ]

    def _of_cap(self) -> list[str]:
        if self.cap is None:
            return ["No cap is set."]
        spent, delta = self.cap.spent([line.entry for line in self.lines])
        name, limit = self.cap.name, format_declared(float(self.cap.limit))
        left = format_rounded_up(-(self.left or Fraction(0)), 6).lstrip("-")  # never more than there is
        return [
            f"The cap allows a sum of {name} of {limit}, of which {_show(spent)} is spent and {left} is left.",
            f"It allows a sum of delta of {format_declared(float(self.cap.delta))}, of which {_show(delta)} is spent.",
        ]


_WORDS = ("(ε, δ)", "zCDP")  # as guarantees name them: epsilon and delta, rho
_EXPLAINED = (
    "What they cost together is by the exact composition of all losses, where that is least; it holds where all were "
    "planned beforehand. Where one was chosen by what others published, the sums hold: of epsilon, or of rho."
)


def _worst_window(entries: Sequence[Entry], length: np.timedelta64, delta: float) -> tuple[np.datetime64 | None, Total]:
    """Return the first moment and the total of the window in which most was lost."""
    found = [(begin, Total.of(inside, delta)) for begin, inside in windows(entries, int(length.astype(np.int64)))]
    begin, worst = max(found, key=lambda x: (x[1].epsilon, x[1].sum_of_epsilons))
    totals = [x for _, x in found]
    epsilons, deltas = max(x.sum_of_epsilons for x in totals), max(x.sum_of_deltas for x in totals)
    total = Total(worst.epsilon, epsilons, deltas, max(x.rho for x in totals), worst.n_entries)
    return None if begin is None else np.datetime64(begin, "us"), total


def _choose_delta(delta: Any, cap: Cap | None, entries: Sequence[Entry]) -> float:
    if delta is not None:
        return check_delta(delta)
    if cap is not None and cap.delta:
        return float(cap.delta)
    largest = max((float(x.delta) for x in entries if x.delta < 1), default=0.0)
    sets = (x for unit in UNITS for x in alternatives([entry for entry in entries if entry.unit == unit]))
    return max(loss_of(together).stated_delta(largest) for together in sets)


def _as_text(window: Any) -> str:
    if not isinstance(window, np.timedelta64):
        raise validation.fail("window", "a length such as '30d', or a timedelta64", window)
    return format_period(window)


def _write_moment(moment: np.datetime64) -> str:
    return str(np.datetime_as_string(moment, unit="auto"))


def count_words(n: int, one: str, several: str) -> str:
    """Write a number with what it counts."""
    return f"{n} {one if n == 1 else several}"


def _show(value: float | Fraction) -> str:
    """Write a number so that it is never below; 'unbounded' where nothing is proven."""
    if isinstance(value, float) and math.isinf(value):
        return "unbounded"
    return format_rounded_up(value, 6)
