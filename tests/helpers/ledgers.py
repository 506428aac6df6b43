"""Entries of a ledger, made as they are needed."""

from fractions import Fraction

from dpfast.privacy.composition import Loss
from dpfast.releases.ledger.entry import Entry

DAY = 86_400_000_000
DEFAULTS = {
    "store": "a",
    "path": "/stores/a",
    "release": 1,
    "name": None,
    "kind": "batch",
    "unit": "event",
    "max_events": 1,
    "streams_per_person": 1,
    "first": 0,
    "count": 10,
    "start": None,
    "end": None,
    "clock": None,
    "column": None,
    "groups": None,
    "bounding": None,
    "size": 1,
    "series": None,
    "delta": Fraction(0),
    "loss": Loss(pure=(Fraction(1),)),
}


def entry(**given):
    """An entry, by default of one pure release of epsilon 1, over steps of no declared time."""
    if "epsilon" in given:
        given["loss"] = Loss(pure=(Fraction(given.pop("epsilon")),))
    return Entry(**DEFAULTS | given)


def dated(first_day, last_day, **given):
    """An entry over days that are declared; the last one is not in it, and None is no end."""
    end = None if last_day is None else last_day * DAY
    return entry(**{"start": first_day * DAY, "end": end, "clock": ("when", "null", "UTC")} | given)
