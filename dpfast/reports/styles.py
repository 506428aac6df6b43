"""How each family of mechanisms is called and drawn, in every table and picture.

Colours are those of Okabe and Ito (2008), told apart by colour-blind readers; lines and markers tell families apart in
grey too. Designs of filters have each a colour of their own, and so have those over a horizon: there are not enough for
both, and only their lines and markers are others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import cycle
from typing import Any, NamedTuple

TRUTH, GREY = "#000000", "#777777"


class Style(NamedTuple):
    """How a line is drawn."""

    colour: str
    line: Any = "-"  # as matplotlib has it: a word, or lengths of dashes and gaps
    width: float = 1.2
    alpha: float = 1.0
    marker: str = ""


class Family(NamedTuple):
    """What a family of mechanisms is called, and its style."""

    label: str
    style: Style


_DASHED, _DASH_DOT, _DOTTED = (0, (5, 2)), (0, (6, 1.5, 1.2, 1.5)), (0, (1.2, 1.5))
_THREE_DOTS, _TWO_DASHES, _FAR = (0, (6, *(1.5, 1.2) * 3, 1.5)), (0, (6, 1.5, 6, 1.5, 1.2, 1.5)), (0, (1.2, 4))
_GAPS, _LONG_DOT, _EVEN, _LONG_SHORT = (0, (5, 5)), (0, (12, 2, 1.2, 2)), (0, (3, 3)), (0, (9, 2, 3, 2))
_LONG, _TWO_DOTS, _SHORT = (0, (9, 2.5)), (0, (6, 1.5, 1.2, 1.5, 1.2, 1.5)), (0, (2.5, 1.5))

# by the names of the design functions
FAMILIES = {
    "optimal": Family("optimal", Style("#009E73", "-", marker="o")),
    "lmmse": Family("LMMSE", Style("#D55E00", _DASHED, marker="^")),
    "zero_forcing": Family("LZF", Style("#0072B2", _DASH_DOT, marker="s")),
    "decision_feedback": Family("DFE", Style("#CC79A7", _TWO_DOTS, marker="D")),
    "robust": Family("robust", Style(GREY, _LONG, marker="v")),
    "input_perturbation": Family("input perturbation", Style("#56B4E9", _SHORT, marker="P")),
    "output_perturbation": Family("output perturbation", Style("#E69F00", _DOTTED, marker="X")),
    # over a horizon
    "optimal_factorization": Family("optimal factorization", Style("#009E73", _LONG_DOT, marker="p")),
    "square_root": Family("square root", Style("#0072B2", _TWO_DASHES, marker="*")),
    "buffered_toeplitz": Family("BLT", Style("#D55E00", _GAPS, marker="h")),
    "binary_tree": Family("binary tree", Style("#CC79A7", _THREE_DOTS, marker="<")),
    "decayed_sum": Family("decayed sum", Style("#56B4E9", _EVEN, marker=">")),
    "fourier_perturbation": Family("FPA", Style("#E69F00", _FAR, marker="d")),
    "compressive": Family("compressive", Style(GREY, _LONG_SHORT, marker="8")),
}
BOUND = Style(TRUTH, "-", 5.0, 0.22)
CONSTANT = Style(GREY, _FAR, 1.2)  # what publishes the mean
# for the further ones of a family, and for mechanisms of no known family
_LINES = ("-", _DOTTED, _SHORT, _LONG, _DASH_DOT, _TWO_DOTS)
_MARKERS = ("p", "*", "h", "<", ">", "d")


def label(family: str) -> str:
    """What a family is called; a name that is none stays."""
    return FAMILIES[family].label if family in FAMILIES else family


def family(name: str) -> str | None:
    """The family of a mechanism from its name, such as "LMMSE lag 5", or the family's own; None where it tells none.

    Examples
    --------
    >>> family("saved: LMMSE smoother"), family("DFE, soft"), family("zero_forcing"), family("mine")
    ('lmmse', 'decision_feedback', 'zero_forcing', None)
    """
    word = name.rpartition(": ")[2]
    if word in FAMILIES:
        return word
    titles = sorted(FAMILIES, key=lambda x: -len(FAMILIES[x].label))  # "optimal factorization" is not "optimal"
    return next((x for x in titles if re.match(rf"{FAMILIES[x].label}\b", word)), None)


def styles(names: Iterable[str] | Mapping[str, str | None]) -> dict[str, Style]:
    """A style for each mechanism of a picture: the colour of its family; within a family, lines and markers differ.

    Families are those that a mapping says, or else what the names tell. Mechanisms of no known family get the colours
    of families, while these are not in the picture.
    """
    families = dict(names) if isinstance(names, Mapping) else {name: family(name) for name in names}
    taken = {FAMILIES[x].style.colour for x in families.values() if x is not None}
    free = cycle([x.style for x in FAMILIES.values() if x.style.colour not in taken] or [Style(GREY)])
    own: dict[str, Style] = {}
    others: dict[str | None, Iterator[tuple[Any, str]]] = {}
    for name, known in families.items():
        base = next(free) if known is None else FAMILIES[known].style
        if known not in others:
            others[known] = cycle(
                (line, mark)
                for line, mark in zip(_LINES, _MARKERS, strict=True)
                if line != base.line and mark != base.marker
            )
            own[name] = base
        else:
            line, marker = next(others[known])
            own[name] = base._replace(line=line, marker=marker)
    return own


def lighter(colour: str, white: float) -> tuple[float, ...]:
    """A colour with a part of white, as red, green and blue; 0 leaves it.

    Examples
    --------
    >>> lighter("#0000FF", 0.5)
    (0.5, 0.5, 1.0)
    """
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return tuple(white + (1 - white) * x for x in parts)
