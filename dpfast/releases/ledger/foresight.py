"""What a ledger would say of a release that nobody has entered: a dry run asks before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpfast.releases.guarantee import Guarantee
from dpfast.releases.ledger.account import Home, make_entry
from dpfast.releases.ledger.cap import Cap
from dpfast.releases.ledger.ledger import Ledger
from dpfast.releases.rounded_numbers import format_rounded_up

_ADDING = Cap(Fraction(0))  # adds up ε and δ where no cap is set: its limit is not looked at
_DIGITS = 6


def foresee_release(
    ledger: Ledger,
    path: Path,
    declared: Mapping[str, Any],
    guarantee: Guarantee,
    *,
    first: int,
    count: int,
    name: str | None,
) -> str:
    """Say what sums a release would bring a ledger to, and whether its cap would refuse it; enter nothing.

    What its store has published without the ledger is not in the sums, as no store is opened.

    Parameters
    ----------
    ledger : Ledger
    path : Path
        Of the store, whose id the ledger knows where it has entered a release before.
    declared : mapping
        What the store declares.
    guarantee : Guarantee
        Of the release alone.
    first, count : int
        Its steps.
    name : str or None
        Of the release.

    Returns
    -------
    str
    """
    entries = [line.entry for line in ledger.lines]
    here = [entry for entry in entries if entry.path == str(path)]
    home = Home(here[-1].store if here else "", str(path), declared)
    entry = make_entry(home, guarantee, len(here) + 1, first, count, name=name)
    if any(entry.is_same_release(x) for x in here):
        return "it has this release already: publishing it spends nothing more"
    cap = _ADDING if ledger.cap is None else ledger.cap
    (now, now_delta), (then, then_delta) = cap.spent(entries), cap.spent([*entries, entry])
    sums = (
        _say_sum(ledger.cap, cap.name, now, then, cap.limit),
        _say_sum(ledger.cap, "delta", now_delta, then_delta, cap.delta),
    )
    if ledger.cap is None:
        return f"{'; '.join(sums)}; it has no cap"
    holds = "within the cap" if cap.holds([*entries, entry]) else "refused, beyond the cap"
    return f"{'; '.join(sums)}: {holds}"


def _say_sum(cap: Cap | None, name: str, now: Fraction, then: Fraction, limit: Fraction) -> str:
    may = "" if cap is None else f" may be {float(limit):g},"
    return (
        f"the sum of {name}{may} is {format_rounded_up(now, _DIGITS)} and would be {format_rounded_up(then, _DIGITS)}"
    )
