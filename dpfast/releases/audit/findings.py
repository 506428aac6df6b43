"""Findings of an audit, as a table and in sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dpfast._support import html_fragments as html
from dpfast._support.text_table import Table
from dpfast._support.wrapped_text import wrap_paragraph

N_TESTS = 15  # that share the probability of a false alarm
SURELY = 0.99
COLUMNS = ("target", "attack", "trials", "hits", "false alarms", "tested", "found", "could show", "claimed", "verdict")
_ASIDE = "trials", "hits", "false alarms"  # what print leaves out first where there is no room
Quantity = Literal["ε at least", "μ at least", "δ at least", "σ at most", "p-value", "share"]
_HIGH = "ε at least", "μ at least", "share"  # that contradict a claim where they are above it; the others below


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The finding of one attack, and what it says of a claim.

    Attributes
    ----------
    target : {"simulate", "release"}
        What was attacked.
    attack : str
        What was tried.
    trials : int
        Judged runs with the events, and as many without; or published values that were looked at.
    hits, false_alarms : int or None
        How often the chosen rule spoke: of the runs for which it should, and of those for which it should not. None
        where no rule is chosen.
    quantity : {"ε at least", "μ at least", "δ at least", "σ at most", "p-value", "share"}
        What `found` and `claim` are: bounds of ε at the claimed δ, of μ of Gaussian differential privacy, of δ whatever
        ε, and of the standard deviation of the noise, each at the audit's confidence; the probability that noise as
        stated would look so, or worse; or a share of the values.
    found : float
    reachable : float or None
        What so many trials would show on average, with noise of the stated size; None where that says nothing.
    claim : float or None
        What a sound release is not above, or for σ and p-values not below; None where nothing is claimed.
    lack : float or None
        By how much, relative, σ is too small where that is found with a probability of 99 %.
    delta : float or None
        The δ at which ε is found, where it is not the claimed one: that of several releases together.
    """

    target: str
    attack: str
    trials: int
    quantity: Quantity
    found: float
    hits: int | None = None
    false_alarms: int | None = None
    reachable: float | None = None
    claim: float | None = None
    lack: float | None = None
    delta: float | None = None

    @property
    def violated(self) -> bool:
        """True where what was found contradicts what is claimed."""
        if self.claim is None:
            return False
        return self.found > self.claim if self.quantity in _HIGH else self.found < self.claim

    @property
    def verdict(self) -> str:
        """The verdict in a word or two."""
        if self.claim is not None:
            return "VIOLATED" if self.violated else "no contradiction"
        return "broken, as expected" if self.found > 0 else "not broken"

    @property
    def row(self) -> tuple[str | int | float | None, ...]:
        """The finding as a row of the table."""
        rates = (None if x is None else x / self.trials for x in (self.hits, self.false_alarms))
        shown = self.quantity, self.found, self.reachable, self.claim, self.verdict
        return (self.target, self.attack, self.trials, *rates, *shown)


@dataclass(frozen=True)
class Audit:
    """Read what an audit has found about a mechanism; `print` gives sentences, and a line for each attack.

    Attributes
    ----------
    name : str
        The name of the mechanism.
    delta : float
        As claimed.
    confidence : float
        The probability that a sound mechanism is not found violated, by all attacks together.
    findings : tuple of Finding
    noise : str
        The law that the noise should have, in words.
    """

    name: str
    delta: float
    confidence: float
    findings: tuple[Finding, ...]
    noise: str = "discrete Gaussian"

    @property
    def violated(self) -> bool:
        """True where any claim is contradicted."""
        return any(x.violated for x in self.findings)

    @property
    def table(self) -> Table:
        """The findings as a table, with a line for each attack."""
        return Table(COLUMNS, tuple(x.row for x in self.findings))

    @property
    def sentences(self) -> tuple[str, ...]:
        """The findings in sentences, which say what they mean."""
        said = [self._contradiction_text(x) for x in self.findings if x.violated]
        if not self.violated:
            said.append(
                f"Nothing that was tried contradicts what a release claims.{self._shown_text()} "
                "An audit finds faults; it proves nothing: "
                "bounds of ε and μ below the claim are what few runs can show: the column “could show” is what they "
                f"show on average where the noise is as stated.{self._power_text()}"
            )
        return *said, *(_broken_text(x, self.confidence) for x in self.findings if x.claim is None)

    def _contradiction_text(self, x: Finding) -> str:
        """Say of a finding how it contradicts a claim."""
        rest = f"with confidence {_format_confidence(self.confidence)}. Do not publish with this version."
        if x.quantity == "ε at least":
            delta = self.delta if x.delta is None else x.delta
            return f"The claim ε = {x.claim:.6g} is VIOLATED: {x.attack}: ε ≥ {x.found:.4g} at δ = {delta:g}, {rest}"
        if x.quantity == "μ at least":
            return f"The claim μ = {x.claim:.6g} is VIOLATED: {x.attack}: μ ≥ {x.found:.4g}, {rest}"
        if x.quantity == "σ at most":
            return f"The claim σ = {x.claim:.6g} is VIOLATED: {x.attack}: σ ≤ {x.found:.6g}, {rest}"
        if x.quantity == "share":
            return f"The claim of integers is VIOLATED: {x.found:.2%} of the values are none, {rest}"
        chance = f"{x.found:.2g}" if x.found else "less than 1e-300"
        return (
            f"The claim of independent {self.noise} noise is VIOLATED: {x.attack}: such noise, or worse, comes by "
            f"chance with a probability of {chance}, {rest}"
        )

    def _shown_text(self) -> str:
        """Say the most that attacks have shown of ε, beside the claim."""
        bounds = [x for x in self.findings if x.quantity == "ε at least" and x.claim is not None and x.delta is None]
        if not bounds:
            return ""
        most = max(bounds, key=lambda x: x.found)
        return (
            f" The most that was shown of ε is {most.found:.4g}, and {most.claim:.6g} is claimed (δ = {self.delta:g})."
        )

    def _power_text(self) -> str:
        """Say how small a fault of σ would have been found."""
        lack = next((x.lack for x in self.findings if x.lack is not None), None)
        if lack is None:
            return ""
        return f" A σ that is {lack:.2%} too small is found with a probability of {SURELY:.0%}."

    def __str__(self) -> str:
        table = self.table.text(aside=_ASIDE, rest="The table of these findings")
        return "\n\n".join([*map(wrap_paragraph, (self._headline(), *self.sentences)), table])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        table = self.table
        shown = html.table(table.columns, table.cells(), table.numeric(), n_headers=2, caption=self._headline())
        return html.notebook(*map(html.paragraphs, self.sentences), shown)

    def _headline(self) -> str:
        how = f"all attacks together with confidence {_format_confidence(self.confidence)}"
        return f"audit of {self.name!r}: δ = {self.delta:g}, {how}"


def _broken_text(x: Finding, confidence: float) -> str:
    if x.found == 0:
        return f"{x.target}: {x.attack} did not tell two inputs apart here; {x.target} claims nothing even so."
    return (
        f"{x.target} claims nothing, and keeps nothing: in {x.hits:,} of {x.trials:,} runs one published number "
        "could not have come from the other input, whatever the noise. No (ε, δ) with δ below "
        f"{_round_down(x.found)} holds (confidence {_format_confidence(confidence)}). It is for studies: publish by a "
        "release."
    )


def _format_confidence(confidence: float) -> str:
    """Write all digits of a confidence: 1 - 1e-9 is not 1."""
    return f"{confidence:.15g}"


def _round_down(delta: float) -> str:
    return f"{math.floor(delta * 1e5) / 1e5:g}"
