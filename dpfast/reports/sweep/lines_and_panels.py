"""Lines and panels of a sweep's pictures: a line for each mechanism, and a panel for each task."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeGuard, TypeVar

import numpy as np

from dpfast.design import catalogue
from dpfast.design.catalogue import GIVEN
from dpfast.mechanisms.lags import SMOOTHER
from dpfast.reports import mechanism_styles
from dpfast.reports.mechanism_styles import Style
from dpfast.reports.sweep.axis_titles import label_text
from dpfast.simulation.sweep.parameters import OF_PRIVACY, Label
from dpfast.simulation.sweep.result import Sweep
from dpfast.simulation.sweep.rows import Row

# All other parameters tell apart mechanisms of one task.
TASK = frozenset({*OF_PRIVACY, "privacy", "target", "model", "stream", "lag", "mean_square"})
T = TypeVar("T")
_Members = dict[tuple[str, ...], dict[tuple[Label, ...], list[int]]]  # places of rows
MAX_PANELS = 12
_MOST_VARIANTS = 6  # of a mechanism, as lines of one panel; more are panels


class Panel(NamedTuple):
    """A task with its labels, and the rows that belong to it."""

    labels: dict[str, Label]
    rows: tuple[Row, ...]

    def title(self) -> str:
        """Return the labels, in words, of axes that some of its rows depend on."""
        own = {axis: x for axis, x in self.labels.items() if any(axis in row.settings for row in self.rows)}
        return ", ".join(label_text(axis, x) for axis, x in own.items())


def variant_axes(sweep: Sweep) -> tuple[str, ...]:
    """Return the axes that tell mechanisms of one task apart."""
    return tuple(x for x in sweep.axes if x not in TASK)


def line_axes(sweep: Sweep, *without: str) -> tuple[str, ...]:
    """Return those of the variant axes whose values are lines of one panel."""
    few = [x for x in variant_axes(sweep) if x == "mechanism" or len(sweep.axes[x]) <= _MOST_VARIANTS]
    return tuple(x for x in few if x not in without)


def row_name(row: Row, axes: Sequence[str]) -> str:
    """Name a mechanism beside others that differ from it by the values of some axes."""
    given = str(row.settings["mechanism"])
    title = catalogue.family_label(row.family) if given == row.family else given
    others = [x for x in axes if x != "mechanism" and x in row.settings]
    kind = [label_text(x, row.settings[x]) for x in others if x not in TASK]
    return ", ".join([" ".join([title, *kind]), *(label_text(x, row.settings[x]) for x in others if x in TASK)])


def ordered_axes(sweep: Sweep) -> tuple[str, ...]:
    """Return all axes, first those that tell mechanisms of a task apart."""
    return tuple(dict.fromkeys([*variant_axes(sweep), *sweep.axes]))


def row_styles(sweep: Sweep, axes: Sequence[str]) -> dict[str, Style]:
    """Return the style of each mechanism, the same in all pictures of a sweep."""
    return mechanism_styles.choose_styles({row_name(x, axes): row_family(x) for x in sweep.rows})


def row_base_colours(sweep: Sweep, axes: Sequence[str]) -> dict[str, str]:
    """Return for each mechanism the colour of the first one of its family."""
    families = {row_name(x, axes): row_family(x) for x in sweep.rows}
    first: dict[str, str] = {}
    found = {}
    for name, look in row_styles(sweep, axes).items():
        found[name] = first.setdefault(families[name] or name, look.colour)
    return found


def row_family(row: Row) -> str | None:
    """Return the family of the design; of a mechanism that was there already, the family that its name tells."""
    return catalogue.family_of(row.mechanism_name) if row.family == GIVEN else row.family


def axis_values(rows: Sequence[Row], axis: str) -> list[Label]:
    """List the values of an axis in rows: numbers in order, behind them the smoother or None; words as they come."""
    found = dict.fromkeys(x.settings[axis] for x in rows if axis in x.settings)
    if all(is_number(x) or is_last(axis, x) for x in found):
        return sorted(found, key=lambda x: float(x) if is_number(x) else math.inf)
    return list(found)


def is_last(axis: str, label: Label) -> bool:
    """Tell whether a label is behind all numbers: the smoother waits longest."""
    return label is None or (axis == "lag" and label == SMOOTHER)


def is_number(label: Label) -> TypeGuard[int | float]:
    """Tell whether a label has a place on an axis of numbers."""
    return isinstance(label, (int, float)) and not isinstance(label, bool)


def is_numeric(sweep: Sweep, axis: str) -> bool:
    """Tell whether an axis has several places, all of them numbers; the lag has one for the smoother."""
    found = axis_values(sweep.rows, axis)
    return len(found) > 1 and all(is_number(x) or (axis == "lag" and x == SMOOTHER) for x in found)


def task_panels(sweep: Sweep, axes: Sequence[str]) -> list[Panel]:
    """Make a panel for each combination of labels; a row that does not depend on an axis is in all panels of it."""
    order = {axis: {x: i for i, x in enumerate(axis_values(sweep.rows, axis))} for axis in axes}
    taken = [tuple(x for x in axes if x in row.settings) for row in sweep.rows]
    found: dict[tuple[Label, ...], None] = {}
    seen: set[tuple[tuple[str, Label], ...]] = set()
    # Rows that depend on most axes come first: the others are in their panels.
    for row, own in sorted(zip(sweep.rows, taken, strict=True), key=lambda x: -len(x[1])):
        if tuple((x, row.settings[x]) for x in own) not in seen:
            labels = tuple(row.settings.get(x) for x in axes)
            found[labels] = None
            seen |= {_restrict(axes, labels, some) for some in set(taken)}
    places = {labels: tuple(order[x].get(y, -1) for x, y in zip(axes, labels, strict=True)) for labels in found}
    several = [dict(zip(axes, labels, strict=True)) for labels in sorted(found, key=lambda x: places[x])]
    members = _group_rows(sweep.rows, taken)
    return [Panel(x, _rows_with_labels(sweep.rows, members, x)) for x in several]


def _group_rows(rows: Sequence[Row], taken: Sequence[tuple[str, ...]]) -> _Members:
    """Group the places of rows by the axes that they depend on, and by their labels on those."""
    members: _Members = {}
    for i, (row, own) in enumerate(zip(rows, taken, strict=True)):
        members.setdefault(own, {}).setdefault(tuple(row.settings[x] for x in own), []).append(i)
    return members


def _rows_with_labels(rows: Sequence[Row], members: _Members, labels: Mapping[str, Label]) -> tuple[Row, ...]:
    """Return the rows that have these labels as far as they depend on them, in their order: no search through all."""
    parts = (some.get(tuple(labels[x] for x in own), ()) for own, some in members.items())
    return tuple(rows[i] for i in sorted(chain.from_iterable(parts)))


def _restrict(axes: Sequence[str], labels: Sequence[Label], some: Sequence[str]) -> tuple[tuple[str, Label], ...]:
    return tuple((axis, label) for axis, label in zip(axes, labels, strict=True) if axis in some)


def lower_bound(sweep: Sweep, row: Row) -> float | None:
    """Return the lower bound of the RMSE of linear mechanisms of the lag with Gaussian noise; None without one.

    Those of zero forcing, and of factorisations without a model, are for their kind: mechanisms that do not distort.
    """
    grid = sweep.configuration["grid"]
    _, given, _ = grid["cases"][row.number]
    content = grid["contents"][given["mechanism"]] if row.family == GIVEN else given
    designed_for = content.get("model", content.get("models"))  # a file of several streams has the latter
    return row.lower_bound_rmse if designed_for is not None else None


# --- what is shown of many ------------------------------------------------------------------------


def thin_out(found: Sequence[T], most: int = MAX_PANELS) -> list[T]:
    """Keep at most so many of a sequence, from all over it."""
    return [found[i] for i in np.unique(np.linspace(0, len(found) - 1, min(most, len(found))).round().astype(int))]


def note_left_out(total: int, shown: int, what: str = "panels") -> str:
    """Note that some are not shown."""
    return f"{shown} of {total} {what} are shown, from all over the grid" if shown < total else ""


def note_failed(sweep: Sweep) -> str:
    """Note how many cases have no design."""
    n = sum(x.failed for x in sweep.rows)
    return f"{n} case{'s have' if n > 1 else ' has'} no design" if n else ""


def note_rare(sweep: Sweep) -> str:
    """Note how many cases have no interval that is drawn."""
    n = sum(x.is_rare for x in sweep.rows)
    return f"without a band: {n} case{'s' if n > 1 else ''} in which errors are too rare for one" if n else ""
