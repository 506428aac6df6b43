"""The answer of ``dpfast design``, before all details: what to take, how much it errs, and how to release with it."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dpfast._support.html_fragments import Html, paragraphs
from dpfast._support.table_layout import display_width
from dpfast._support.wrapped_text import WIDTH, wrap_paragraph
from dpfast.reports.declared_inputs import COUNTS, DeclaredInputs
from dpfast.reports.html_page import code

DETAILS = "The details follow: all that was compared, what bounds there are, and what was assumed."
_NO_RELEASE = "It cannot be released: {}. It is for studies."
_AROUND = 4  # letters around a line of a command: an indent, and a backslash behind it
_FITTED = "its model was fitted to private data"
_BINS = "--time COLUMN", "--period LENGTH", "--start DAY", "--end DAY"
_IN_PYTHON = ", in Python (dp.release takes the same inputs, and missing is what a NaN counts as)"
_PROMISE = "what a release with it would promise and cost, before anything is published"
_KIND = "there is no exact release of its kind so far"


class DesignInShort(NamedTuple):
    """Hold what a reader wants to know of the mechanism that is saved.

    Attributes
    ----------
    name : str
        Of the mechanism.
    lag : int or None
    rmse : float or None
        Predicted, or simulated where there is an interval.
    constant : float or None
        The RMSE of publishing the mean alone, where a model tells it.
    releasable, fitted : bool
        Whether its kind can be released exactly, and whether private data are in its design.
    file : Path
        Where it is saved.
    streams : tuple of str
        Names of several streams that it is for together.
    inputs : DeclaredInputs
        What a release declares of its inputs.
    interval_text : str
        The interval of an RMSE that was simulated, to stand behind it.
    """

    name: str
    lag: int | None
    rmse: float | None
    constant: float | None
    releasable: bool
    fitted: bool
    file: Path
    streams: tuple[str, ...] = ()
    inputs: DeclaredInputs = COUNTS
    interval_text: str = ""

    def sentences(self) -> list[str]:
        """Say what to take, how much it errs, and how to release with it, a sentence or two each."""
        return [self._say_what(), self._say_error(), self._say_how()]

    def text(self) -> str:
        """Return the sentences as they are printed, with the command."""
        command = [] if self.command is None else [textwrap.indent(self.command, "  ")]
        return "\n".join([*map(wrap_paragraph, self.sentences()), *command, DETAILS])

    @property
    def command(self) -> str | None:
        """Return the command, or lines of Python where that takes no such inputs, that shows what a release promises.

        Neither publishes anything. There is None where it cannot be released.
        """
        if not self._can_be_released:
            return None
        if not self.inputs.options:
            lines = f"mechanism = dp.load({str(self.file)!r})", f"dp.exact(mechanism, {self.inputs.python}).guarantee"
            fractions = ["from fractions import Fraction"] if "Fraction(" in self.inputs.python else []
            return "\n".join([*fractions, "import dpfast as dp", lines[0], f"print({lines[1]})"])
        groups = ("--by COLUMN", f"--groups {shlex.quote(','.join(self.streams))}") if self.streams else ()
        source = "dpfast release EVENTS.csv", f"--mechanism {shlex.quote(str(self.file))}", *groups
        return _continue_lines([*source, *_BINS, *self.inputs.options, "--out FOLDER", "--dry-run"])

    @property
    def _can_be_released(self) -> bool:
        return self.releasable and not self.fitted and bool(self.inputs.python)

    def _say_what(self) -> str:
        when = {0: "come at once", 1: "come one step late", None: "wait for the whole input"}
        late = when.get(self.lag, f"come {self.lag} steps late")
        if self.rmse is not None and self.constant is not None and self.rmse >= self.constant:
            none = f"Take none: publishing the mean alone errs less. In {self.file} is {self.name}"
            return f"{none}, whose estimates {late}."
        return f"Take {self.name}, whose estimates {late}: it is in {self.file}."

    def _say_error(self) -> str:
        if self.rmse is None:
            return "No error is predicted of it: only simulation tells."
        of_all = " of all outputs together" if self.streams else ""
        error = f"{self.rmse:.4g}{self.interval_text}"
        if self.constant is None:
            return f"Its root mean square error{of_all} is {error}, in units of the target's output."
        return (
            f"Its root mean square error{of_all} is {error}, in units of the target's output, if the data "
            f"follow the model. Publishing the mean alone, which costs no privacy, errs by {self.constant:.4g}."
        )

    def _say_how(self) -> str:
        if self.fitted or not self.releasable:
            return _NO_RELEASE.format(_FITTED if self.fitted else _KIND)
        why = f"{self.inputs.why} " if self.inputs.why else ""
        if not self.inputs.python:
            return why.strip()
        return f"{why}To see {_PROMISE}{'' if self.inputs.options else _IN_PYTHON}:"


def _continue_lines(words: Sequence[str]) -> str:
    """Put the words of a command into lines for a terminal, which a backslash continues."""
    lines = [words[0]]
    for word in words[1:]:
        joined = f"{lines[-1]} {word}"
        if display_width(joined) + _AROUND <= WIDTH:
            lines[-1] = joined
        else:
            lines.append(f"    {word}")
    return " \\\n".join(lines)


def show_answer(answer: DesignInShort) -> list[Html]:
    """Return the answer as the first section of a page has it."""
    return [paragraphs("\n\n".join(answer.sentences())), *([] if answer.command is None else [code(answer.command)])]
