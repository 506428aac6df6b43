"""What an audit found."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass

from dpfast import markup
from dpfast.report.table import Table

_WIDTH = 110
COLUMNS = ("target", "attack", "runs", "hits", "false alarms", "ε at least", "could show", "ε claimed", "verdict")


@dataclass(frozen=True)
class Finding:
    """One attack, and what it says of a claim.

    Attributes
    ----------
    target : {"simulate", "release"}
        What was attacked.
    attack : str
        What was tried.
    runs : int
        Judged runs with the events, and as many without.
    hits, false_alarms : int
        How often the chosen rule spoke: of the runs for which it should, and of those for which it should not.
    epsilon : float
        ε is at least this, at the claimed δ and the audit's confidence.
    reachable : float or None
        What so many runs would show at expected counts, with Gaussian noise of the stated size.
    claim : float or None
        ε as claimed; None where nothing is.
    delta : float or None
        δ is at least this, whatever ε: where the rule says what cannot be under the other input.
    """

    target: str
    attack: str
    runs: int
    hits: int
    false_alarms: int
    epsilon: float
    reachable: float | None = None
    claim: float | None = None
    delta: float | None = None

    @property
    def violated(self) -> bool:
        """Whether what was found contradicts what is claimed."""
        return self.claim is not None and self.epsilon > self.claim

    @property
    def verdict(self) -> str:
        """In a word or two."""
        if self.claim is not None:
            return "VIOLATED" if self.violated else "no contradiction"
        return "broken, as expected" if self.epsilon > 0 else "not broken"

    @property
    def row(self) -> tuple[str | int | float | None, ...]:
        """As in a table."""
        rates = self.hits / self.runs, self.false_alarms / self.runs
        return (self.target, self.attack, self.runs, *rates, self.epsilon, self.reachable, self.claim, self.verdict)


@dataclass(frozen=True)
class Audit:
    """Findings, printable: a line for each attack, and sentences.

    Attributes
    ----------
    name : str
        Of the mechanism.
    delta : float
        As claimed.
    confidence : float
        That none of the bounds is above the truth, all together.
    findings : tuple of Finding
    """

    name: str
    delta: float
    confidence: float
    findings: tuple[Finding, ...]

    @property
    def violated(self) -> bool:
        """Whether any claim is contradicted."""
        return any(x.violated for x in self.findings)

    @property
    def table(self) -> Table:
        """A line for each attack."""
        return Table(COLUMNS, tuple(x.row for x in self.findings))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What it means."""
        said = [_broken(x, self.confidence) for x in self.findings if x.claim is None]
        said += [
            f"The claim ε = {x.claim:.6g} is VIOLATED: {x.attack}: ε ≥ {x.epsilon:.4g} at δ = {self.delta:g}, "
            f"with confidence {self.confidence:g}. Do not publish with this version."
            for x in self.findings
            if x.violated
        ]
        if not self.violated:
            said.append(
                "Nothing that was tried contradicts what a release claims. An audit finds faults; it proves nothing: "
                "bounds below the claim are what few runs can show: the column “could show” is what they show on "
                "average where the noise is as stated."
            )
        return tuple(said)

    def __str__(self) -> str:
        said = (textwrap.fill(x, _WIDTH) for x in self.sentences)
        return "\n\n".join([f"{self._head()}\n\n{self.table.text()}", *said])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table = self.table
        shown = markup.table(table.columns, table.shown(), table.numeric(), n_headers=2, caption=self._head())
        return markup.notebook(shown, *map(markup.paragraphs, self.sentences))

    def _head(self) -> str:
        return f"audit of {self.name!r}: δ = {self.delta:g}, all bounds with confidence {self.confidence:g}"


def _broken(x: Finding, confidence: float) -> str:
    if x.delta is None:
        return f"{x.target}: {x.attack} did not tell two inputs apart here; {x.target} claims nothing even so."
    return (
        f"{x.target} claims nothing, and keeps nothing: in {x.hits:,} of {x.runs:,} runs one published number "
        f"could not have come from the other input, whatever the noise. No (ε, δ) with δ below {_down(x.delta)} holds "
        f"(confidence {confidence:g}). It is for studies: publish by a release."
    )


def _down(delta: float) -> str:
    return f"{math.floor(delta * 1e5) / 1e5:g}"
