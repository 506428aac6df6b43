"""Styles of mechanisms, the same in every picture: each family as the catalogue has it, and what stands beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import cycle
from typing import Any, NamedTuple

from dpfast.design import catalogue
from dpfast.design.catalogue import family_of

TRUTH, GREY = "#000000", catalogue.GREY


class Style(NamedTuple):
    """A style of a line: colour, dashes, width, opacity and marker."""

    colour: str
    line: Any = "-"  # as matplotlib has it: a word, or lengths of dashes and gaps
    width: float = 1.2
    alpha: float = 1.0
    marker: str = ""


_DASH_DOT, _DOTTED, _LONG = (0, (6, 1.5, 1.2, 1.5)), (0, (1.2, 1.5)), (0, (9, 2.5))
_TWO_DOTS, _SHORT, _FAR = (0, (6, 1.5, 1.2, 1.5, 1.2, 1.5)), (0, (2.5, 1.5)), (0, (1.2, 4))
FAMILIES = {name: Style(x.color, x.line, marker=x.marker) for name, x in catalogue.FAMILIES.items()}
BOUND = Style("#E6D200", "-", 5.0, 0.55)  # neither the grey of intervals, nor the colour of a family
ADDITIVE_BOUND = Style("#A89400", (0, (2.5, 1)), 3.0, 0.6)  # a bound too, for noise of any law
CONSTANT = Style(GREY, _FAR, 1.2)  # what publishes the mean
# These are for the further ones of a family, and for mechanisms of no known family.
_LINES = ("-", _DOTTED, _SHORT, _LONG, _DASH_DOT, _TWO_DOTS)
_MARKERS = ("p", "*", "h", "<", ">", "d")
_SHADES = (-0.45, 0.4, -0.7, 0.2, -0.25)  # parts of black, where negative, or of white


def choose_styles(names: Iterable[str] | Mapping[str, str | None]) -> dict[str, Style]:
    """Choose a style for each mechanism of a picture: a shade of its family's colour, and another line and marker.

    Families are those that a mapping says, or else what the names tell. Mechanisms of no known family get the colours
    of families, while these are not in the picture.
    """
    families = dict(names) if isinstance(names, Mapping) else {name: family_of(name) for name in names}
    taken = {FAMILIES[x].colour for x in families.values() if x is not None}
    free = cycle([x for x in FAMILIES.values() if x.colour not in taken] or [Style(GREY)])
    own: dict[str, Style] = {}
    others: dict[str | None, Iterator[tuple[Any, str]]] = {}
    n_before: dict[str | None, int] = {}
    for name, known in families.items():
        base = next(free) if known is None else FAMILIES[known]
        if known not in others:
            others[known] = cycle(
                (line, mark)
                for line, mark in zip(_LINES, _MARKERS, strict=True)
                if line != base.line and mark != base.marker
            )
            own[name] = base
        else:
            line, marker = next(others[known])
            n_before[known] = n_before.get(known, 0) + 1
            own[name] = base._replace(colour=_shade(base.colour, n_before[known]), line=line, marker=marker)
    return own


def _shade(colour: str, i: int) -> str:
    """Darken or lighten the colour of a family for its further members, by turns and ever more."""
    part = _SHADES[(i - 1) % len(_SHADES)]
    channels = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    mixed = (round(x + part * (255 - x) if part > 0 else x * (1 + part)) for x in channels)
    return "#" + "".join(f"{x:02X}" for x in mixed)


def lighten(colour: str, white: float) -> tuple[float, ...]:
    """Mix a colour with a part of white, as red, green and blue; 0 leaves it.

    Examples
    --------
    >>> lighten("#0000FF", 0.5)
    (0.5, 0.5, 1.0)
    """
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(white + (1 - white) * x for x in parts)
