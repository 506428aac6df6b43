"""Tell how :func:`dpfast.best` came to a choice: what each family reaches, why others cannot serve, and a sentence."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from dpfast._support import html_fragments as html
from dpfast._support.text_table import Table
from dpfast._support.wrapped_text import wrap_paragraph
from dpfast.mechanisms.lags import lag_text

CHOSEN, UNDECIDED, REFERENCE = "chosen", "undecided", "reference"
COLUMNS = (
    *("mechanism", "lag", "RMSE", "interval", "worst step", "explained", "seconds", "guarantee", "inputs may react"),
    *("exact release", "needs", "remark"),
)
_ASIDE = "seconds", "needs", "worst step", "explained"  # what print leaves out first where there is no room
NOTE = (
    "RMSE: predicted, or simulated where an interval is given. Worst step: the root of the largest mean square "
    "error of a step. Explained: 1 - MSE/variance of the true output. Seconds: what the design took. Inputs may "
    "react: the guarantee also holds where inputs depend on what was published before. Exact release: whether "
    "dp.release can publish it."
)


@dataclass(frozen=True)
class ChoiceRow:
    """Read what one of the compared mechanisms reaches, needs and guarantees.

    Attributes
    ----------
    name : str
        The family, and which of its kind.
    lag : int or None
        The samples by which the estimate is late; None for what waits for the whole input.
    rmse : float or None
        Predicted, or simulated where there is an interval; None where only simulation tells and there was none.
    interval : tuple of float or None
        The confidence interval (low, high) of a simulated RMSE.
    worst_step_rmse : float or None
        The root of the largest mean square error of a step, where it is predicted.
    explained : float or None
        1 - MSE/variance of the true output; None without a model.
    seconds : float
        What the design took.
    needs : tuple of str
        What it depends on: "model", "levels", "two levels", "horizon", "delta", or inputs in whole units.
    delta : float
        The δ of its guarantee; 0 for pure ε.
    reacts : bool
        Whether the guarantee is proven for inputs that react to what was published before.
    reacts_why : str
        By what, or why not.
    online : bool
        Whether estimates are published while the input goes on.
    releasable : bool
        Whether the exact path can release it so far.
    status : str
        "chosen"; "undecided" for a simulated one that was not shown to be better or worse than the best predicted one;
        "reference" for the constant; or nothing.
    """

    name: str
    lag: int | None
    rmse: float | None
    interval: tuple[float, float] | None
    worst_step_rmse: float | None
    explained: float | None
    seconds: float
    needs: tuple[str, ...]
    delta: float
    reacts: bool
    reacts_why: str
    online: bool
    releasable: bool
    status: str = ""

    @property
    def guarantee(self) -> str:
        """Name the guarantee: pure ε, or (ε, δ)."""
        return "(ε, δ)" if self.delta else "pure ε"

    @property
    def interval_text(self) -> str:
        """The interval of a simulated RMSE, as a sentence has it behind the figure; nothing for a predicted one."""
        return "" if self.interval is None else " (95 % interval {:.4g} to {:.4g})".format(*self.interval)

    def cells(self) -> tuple[Any, ...]:
        """Return the cells of the table, in the order of its columns."""
        interval = "" if self.interval is None else f"{self.interval[0]:.5g} … {self.interval[1]:.5g}"
        if self.status == REFERENCE:  # it publishes nothing of the data
            told: tuple[Any, ...] = ("", "", "", "")
        else:
            told = self.guarantee, _yes_or_no(self.reacts), _yes_or_no(self.releasable), ", ".join(self.needs)
        figures = self.rmse, interval, self.worst_step_rmse, self.explained, f"{self.seconds:.2f}"
        return self.name, lag_text(self.lag), *figures, *told, self.status


@dataclass(frozen=True)
class Choice:
    """Read all that :func:`dpfast.best` compared: the chosen mechanism first, then the others by their error.

    Printed it is a sentence, the table, the bounds and the reasons of the families that cannot serve.

    Attributes
    ----------
    sentence : str
        What to use, its error, how much better that is than the next kind, and what nothing goes below.
    rows : tuple of ChoiceRow
        The mechanism that was chosen, the others in order, and the constant.
    bounds : tuple of Bound
        What the chosen mechanism, or others of its kind, cannot go below.
    reasons : tuple of (name, reason)
        Families that do not serve here, and what would have to change.
    minimize : str
        "mean" or "worst_step".
    trial : str
        How simulated mechanisms were compared: seed, streams, samples and level; empty without simulation.
    alternatives : tuple of mechanisms
        The other mechanisms, in the order of the rows.
    """

    sentence: str
    rows: tuple[ChoiceRow, ...]
    bounds: tuple[Any, ...]
    reasons: tuple[tuple[str, str], ...]
    minimize: str
    trial: str = ""
    alternatives: tuple[Any, ...] = ()

    @functools.cached_property
    def table(self) -> Table:
        """The rows as a table, to print or to write as Markdown or CSV; columns without a cell are left out."""
        rows = [x.cells() for x in self.rows]
        kept = [i for i in range(len(COLUMNS)) if any(row[i] not in (None, "") for row in rows)]
        return Table(tuple(COLUMNS[i] for i in kept), tuple(tuple(row[i] for i in kept) for row in rows))

    def notes(self) -> list[str]:
        """Say how simulated mechanisms were compared, what bounds there are, and which families cannot serve, why."""
        bounds = [str(x) for x in self.bounds]
        return [*([self.trial] if self.trial else []), *bounds, *join_reasons(self.reasons)]

    def __str__(self) -> str:
        table = self.table.text(aside=_ASIDE, rest="The table of this choice")
        return "\n".join([wrap_paragraph(self.sentence), "", table, "", *map(wrap_paragraph, (NOTE, *self.notes()))])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table = html.table(self.table.columns, self.table.cells(), self.table.numeric())
        return html.notebook(html.paragraphs(self.sentence), table, html.items([NOTE, *self.notes()]))


class HasChoice:
    """An object that :func:`dpfast.best` may have come to."""

    @property
    def choice(self) -> Choice | None:
        """The way :func:`dpfast.best` came to it, with all that it was compared with; None where it was made otherwise.

        It is of this mechanism as it is: neither a changed one nor a file has it.
        """
        found: Choice | None = self.__dict__.get("_choice")
        return found

    @property
    def alternatives(self) -> tuple[Any, ...]:
        """The other mechanisms that :func:`dpfast.best` compared it with, in order."""
        return () if self.choice is None else self.choice.alternatives

    def with_choice(self, choice: Choice) -> Self:
        """Return the same mechanism, with how it was chosen."""
        same = copy.copy(self)
        object.__setattr__(same, "_choice", choice)
        return same


def say_what_can_be_released(rows: Sequence[ChoiceRow], error: Callable[[ChoiceRow], float]) -> str:
    """Say that the first row cannot be released, and which of the others can; nothing where the first can."""
    if rows[0].releasable:
        return ""
    text = f" There is no exact release of {rows[0].name} so far"
    others = [x for x in rows[1:] if x.releasable and x.status != REFERENCE]
    if not others:
        return f"{text}, nor of any other of these: ask by releasable=True for those with noise that can be drawn."
    best = next((x for x in others if x.status != UNDECIDED), None)
    if best is None:  # what was not shown to err less than a predicted one is not named as the best
        return text + "."
    figures = f"{error(best):.3g}{best.interval_text}"
    return f"{text}; of those that dp.release can publish (releasable=True) {best.name} errs least: {figures}."


def _yes_or_no(answer: bool) -> str:
    return "yes" if answer else "no"


def join_reasons(reasons: Iterable[tuple[str, str]]) -> list[str]:
    """Write each reason once, after the names of all that it holds for."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons:
        names.setdefault(reason, []).append(name)
    return [f"No {', '.join(several)}: {reason}." for reason, several in names.items()]
