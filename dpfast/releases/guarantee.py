"""The guarantee of a release, in words and in numbers."""

from __future__ import annotations

import functools
import json
import math
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numba
import numpy as np

from dpfast._support import html_fragments as html
from dpfast._support.safe_rounding import float_above
from dpfast._support.wrapped_text import wrap_facts, wrap_items, wrap_paragraph
from dpfast.privacy.composition import Loss
from dpfast.privacy.discrete_gaussian_accounting import Shift, Sigma, gdp_mu
from dpfast.privacy.privacy import Privacy
from dpfast.releases.contributions import (
    change_text,
    contribution_text,
    format_declared,
    kept_text,
    lattice_changes,
    streams_text,
)
from dpfast.releases.guarantee_terms import ReleaseTerms, loss_content, loss_words
from dpfast.releases.guarantee_words import explain_words, say_odds
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.persons.person_bounds import streams_reached
from dpfast.releases.persons.person_spans import PersonSpans
from dpfast.releases.rounded_numbers import format_factor, format_rounded_up
from dpfast.releases.store.declaration import unchecked_text
from dpfast.releases.uncovered_risks import list_uncovered, say_adjacency

GROUPS = (2, 5, 10)
_OF_STORE = (
    "of the store, at any steps, as its releases declare different persons, or have noise of different kinds: this is "
    "for one with the largest of all these bounds in each"
)


@dataclass(frozen=True)
class Guarantee:
    """State the promise of a release; `print` gives it in full.

    Attributes
    ----------
    privacy : Privacy
        What was demanded, and who counts as one person: `max_change`, `max_events`, `min_separation`.
    inputs : Inputs
        What is declared of the data.
    terms : ReleaseTerms
        What the release itself costs one person, and its noise in words.
    others : tuple of Loss
        What those cost that it is composed with.
    epsilon : float
        The ε of all that is promised, at `delta`; it is computed from the noise that runs, and rounded up.
    whole : bool
        It is that of all releases of its store together, at all their steps, for a person of the largest bounds of all:
        they declare different persons.
    unchecked : tuple of str
        What is declared of earlier releases by the operator's word alone.
    persons : PersonSpans, optional
        The spans of persons, if the release bounds what each person contributes: the guarantee is then per person and
        span. Without them it is per event.
    """

    privacy: Privacy
    inputs: Inputs
    terms: ReleaseTerms
    others: tuple[Loss, ...]
    epsilon: float
    whole: bool = False
    unchecked: tuple[str, ...] = ()
    persons: PersonSpans | None = None

    @classmethod
    def of(
        cls,
        privacy: Privacy,
        inputs: Inputs,
        terms: ReleaseTerms,
        others: Sequence[Loss] = (),
        *,
        whole: bool = False,
        unchecked: Sequence[str] = (),
        persons: PersonSpans | None = None,
    ) -> Guarantee:
        """Make the guarantee of a release, composed with what others cost."""
        loss = sum(others, terms.loss)
        proven = loss.epsilon(loss.stated_delta(privacy.delta))
        return cls(privacy, inputs, terms, tuple(others), proven, whole, tuple(unchecked), persons)

    @functools.cached_property
    def loss(self) -> Loss:
        """Return what the release, with those it is composed with, costs one person: it adds to other losses."""
        return sum(self.others, self.terms.loss)

    @property
    def shifts(self) -> tuple[Shift, ...]:
        """List squared sensitivity (an integer) and noise of all releases with Gaussian noise."""
        return self.loss.shifts

    @property
    def is_gaussian(self) -> bool:
        """Tell whether all of the noise is discrete Gaussian."""
        return not (self.loss.pure or self.loss.approximate)

    @property
    def squared_sensitivity(self) -> int:
        """Δ², the squared sensitivity of the prefilter's integers, over all streams that one person may be in."""
        return self.shifts[0].squared_sensitivity

    @property
    def sigma(self) -> Sigma:
        """σ = a/2^j, the standard deviation of the discrete Gaussian noise."""
        return self.shifts[0].sigma

    @property
    def prefilter(self) -> str:
        """Return SHA-256 of the integer taps, as 64-bit little-endian numbers."""
        return str(self.terms.content["prefilter"]["sha256"])

    @property
    def delta(self) -> float:
        """Return δ: 0 where all noise gives pure ε, and else what was demanded, or what parts with a δ add up to."""
        return self.loss.stated_delta(self.privacy.delta)

    @property
    def zcdp_rho(self) -> Fraction:
        """Return ρ of zero-concentrated privacy, exactly: Δ²/2σ² of Gaussian noise, ε²/2 of other noise."""
        return self.loss.zcdp()[0]

    @property
    def gdp_mu(self) -> float:
        """μ of the continuous Gaussian mechanism that the release follows from, but for 1e-30 of the probabilities."""
        return gdp_mu(self.shifts)

    @property
    def groups(self) -> dict[int, float]:
        """ε of groups of several people, by their size, at the same delta."""
        return {size: self.loss.of_group(size).epsilon(self.delta) for size in GROUPS}

    @property
    def sentence(self) -> str:
        """The guarantee for a reader without mathematics: it says no more than (ε, δ) does.

        It does not say that odds change by more than e^ε with a probability of at most δ: that one is larger, with
        Gaussian noise.
        """
        return (
            f"This guarantee is {self._protects}: it is about whether {self._contribution} in the data or not. "
            f"{self._of_persons}Anyone who sees all published values, whatever else they know, comes to any conclusion "
            f"with a probability that is at most {format_factor(self.epsilon)} times (e^ε) what it is in the other case"
            f"{f', plus {self._delta_text} (δ)' if self.delta else ', without exception (δ is 0)'}.{self._of_more}"
        )

    @property
    def _epsilon_text(self) -> str:
        """Write ε rounded up: from the fraction where it is one, as a float is rounded up already."""
        total = self.loss.sum_of_epsilons
        is_sum = not self.shifts and self.epsilon == float_above(total)
        return format_rounded_up(total if is_sum else self.epsilon, 9)

    @property
    def _delta_text(self) -> str:
        """Write δ as it was demanded; where parts with a δ add up to more, rounded up."""
        delta = self.delta
        return format_declared(delta) if delta in (0, self.privacy.delta) else format_rounded_up(delta, 6)

    @property
    def _protects(self) -> str:
        if self.persons is None:
            reach = streams_reached(self.privacy, self.inputs)
            return "per event" if self.privacy.adjacency is None or reach == 1 else "per event in every stream"
        return "per person" if self.persons.is_one else f"per person and span of {self.persons.span_steps} steps"

    @property
    def _of_persons(self) -> str:
        """Say which events of a person count, and what becomes of the others."""
        if self.persons is None:
            return ""
        kept = kept_text(self.privacy, self.inputs, " is kept" if self.privacy.max_events == 1 else " are kept")
        return (
            f"Of a person's events{self.persons.in_span}, {kept}; all others are left out before anything is computed. "
        )

    @property
    def _of_more(self) -> str:
        """Say what it is for somebody with more events than are protected."""
        if self.persons is not None:
            return ""
        n, epsilon = GROUPS[-1], self.groups[GROUPS[-1]]
        group = f"is protected less, as a group of {n} (ε = {_format_epsilon(epsilon)})"
        if epsilon == math.inf:
            group = "is not protected: at this δ there is no ε for so many"
        if self.privacy.max_events == 1:
            events = "events" if self.privacy.adjacency in (None, "one_input") else "events in each stream"
            return f" Somebody with {n} {events} {group}" + ("." if epsilon == math.inf else "; with more, less.")
        return (
            " Nothing makes sure that nobody has more, or nearer to one another: somebody with as many as "
            f"{n} such persons {group}."
        )

    @property
    def _contribution(self) -> str:
        return contribution_text(self.privacy, self.inputs, self.persons)

    @property
    def _protected(self) -> str:
        """Name what is protected, without a verb."""
        name = self._contribution.rpartition(" ")[0].rstrip(",")
        return name if self.persons is None else f"{name}: {kept_text(self.privacy, self.inputs)}"

    def items(self) -> dict[str, str]:
        """Return all that is promised, by name."""
        privacy, inputs = self.privacy, self.inputs
        low, high = inputs.range
        rounded = "; others are rounded" if inputs.multiples else ", by rounding"
        missing = "" if inputs.missing is None else f"; what is no number counts as {inputs.missing}"
        lines = {
            "protected": self._protected,
            "in odds": say_odds(self.epsilon, self.delta),
            "compared": say_adjacency(self.persons),
            "largest change": change_text(privacy, inputs),
            "events": f"{privacy.max_events}"
            + (f", at least {privacy.min_separation} steps apart" if privacy.max_events > 1 else ""),
            "streams per person": streams_text(privacy, inputs),
            "rounding": f"values are multiples of the unit {inputs.unit}{rounded}",
            "range": f"{inputs.low} to {inputs.high}; values outside are set to its nearer end (clamped), never refused"
            f"{missing}",
            "centre": f"{inputs.centre}, which is public; values are counted from it, in units from {low} to {high}",
            **self.terms.noise,
            "(ε, δ)": f"({self._epsilon_text}, {self._delta_text}), {self._proof}; "
            f"demanded: ({format_declared(privacy.epsilon)}, {format_declared(privacy.delta)})",
            "zCDP": self._zcdp_text,
            **({"Gaussian DP": f"μ = {format_rounded_up(self.gdp_mu, 6)}"} if self.is_gaussian else {}),
            "groups": "; ".join(f"{n} people: {self._pair_text(self.loss.of_group(n))}" for n in GROUPS),
            **self.terms.published,
        }
        if self.persons is not None:
            lines["spans"] = self._spans_text(self.persons)
        if self.others:
            others = ", ".join(map(loss_words, self.others))
            n = f"{len(self.others)} other release{'s' * (len(self.others) > 1)}"
            which = _OF_STORE if self.whole else "of the same data"
            of_all = "(ε, δ), ρ, μ and groups" if self.is_gaussian else "(ε, δ), ρ and groups"
            lines["composed"] = f"with {n} {which} ({others}): {of_all} are those of all of them together"
        if self.unchecked:
            lines["not checked"] = unchecked_text(self.unchecked)
        return lines

    def words(self) -> dict[str, str]:
        """Explain the words and letters that :meth:`items` uses."""
        return explain_words(self.items())

    @property
    def _proof(self) -> str:
        """Say how ε came about: of this release alone, or of all that it is composed with."""
        return (
            f"of all of them together, rounded up; of this one {self.terms.proof}" if self.others else self.terms.proof
        )

    @property
    def all_spans(self) -> Loss | None:
        """Return what it costs a person with events in all spans of the release; None without persons, or an end."""
        if self.persons is None or self.persons.n_spans is None:
            return None
        return self.persons.over(self.loss, max(1, self.persons.n_spans))

    def _spans_text(self, spans: PersonSpans) -> str:
        """Say what the guarantee is for somebody with events in several spans."""
        if spans.span_steps is None:
            return "all steps of the store are one span"
        each = f"of {spans.span_steps} steps, in each of which the bounds begin anew"
        how = (
            "s²ρ over s spans, as of a group of s such persons"
            if spans.joined
            else "sρ over s spans, as nothing that is published depends on two of them"
        )
        if (loss := self.all_spans) is None:
            several = ", ".join(f"{n}: {self._pair_text(spans.over(self.loss, n))}" for n in GROUPS)
            return f"{each}; for the events of a person in s spans together ρ is {how}: {several}"
        if spans.n_spans == 1:
            return f"{each}; this release has steps in one"
        total = f"{self._pair_text(loss)} and ρ = {loss.zcdp()[0]}"
        return (
            f"{each}; for the events of a person in all {spans.n_spans} spans of this release together {total} ({how})"
        )

    def _pair_text(self, loss: Loss) -> str:
        """Write ε of another loss, and its δ where that is another one."""
        delta = loss.stated_delta(self.privacy.delta)
        at = "" if delta == self.delta else f" at δ = {format_rounded_up(delta, 4)}"
        return f"ε = {_format_epsilon(loss.epsilon(delta))}{at}"

    @property
    def _zcdp_text(self) -> str:
        rho, delta = self.loss.zcdp()
        but = f", but for a δ of at most {format_rounded_up(delta, 6)}" if delta else ""
        return f"ρ = {rho} (at most {format_rounded_up(rho, 6)}){but}"

    @property
    def not_covered(self) -> tuple[str, ...]:
        """The risks that the guarantee does not cover, in words."""
        return list_uncovered(self.persons, whole=self.whole)

    def __str__(self) -> str:
        parts = (
            wrap_paragraph(self.sentence),
            wrap_facts(self.items()),
            f"What these words mean:\n{wrap_facts(self.words())}",
            f"Not covered:\n{wrap_items(self.not_covered)}",
            f"Versions: {_versions()}",
        )
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        return html.notebook(*self.shown())

    def shown(self) -> tuple[html.Html, ...]:
        """Return the guarantee as pieces of HTML."""
        return (
            html.paragraphs(self.sentence),
            html.facts(self.items(), caption="Guarantee"),
            html.facts(self.words(), caption="What these words mean"),
            html.paragraphs("Not covered:"),
            html.items(self.not_covered),
            html.paragraphs(f"Versions: {_versions()}"),
        )

    def to_json(self) -> str:
        """Return the guarantee for machines, with exact numbers as texts."""
        on_lattice = lattice_changes(self.privacy, self.inputs)
        content: dict[str, Any] = {
            "format": "dpfast-guarantee",
            "version": 1,
            "sentence": self.sentence,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "demanded": {"epsilon": self.privacy.epsilon, "delta": self.privacy.delta},
            "zcdp_rho": str(self.zcdp_rho),
            "gdp_mu": self.gdp_mu if self.is_gaussian else None,
            "groups": {str(n): _json_number(value) for n, value in self.groups.items()},
            "protects": "event" if self.persons is None else "person",
            "adjacency": say_adjacency(self.persons),
            "max_change": self.privacy.max_change,
            "max_events": self.privacy.max_events,
            "min_separation": self.privacy.min_separation,
            "inputs": self.inputs.public(),
            "change_on_lattice": on_lattice[0] if len(on_lattice) == 1 else on_lattice,
            "releases": [part for x in (self.terms.loss, *self.others) for part in loss_content(x)],
            **self.terms.content,
            "covers_store": self.whole,
            "not_checked": list(self.unchecked),
            "not_covered": list(self.not_covered),
            "versions": _versions(),
        }
        if self.privacy.adjacency is not None:
            content["one_event"] = self.privacy.adjacency
        if self.persons is not None:
            loss = self.all_spans
            together = None
            if loss is not None:
                delta = loss.stated_delta(self.privacy.delta)
                epsilon = _json_number(loss.epsilon(delta))
                together = {"epsilon": epsilon, "delta": delta, "zcdp_rho": str(loss.zcdp()[0])}
            content["persons"] = {
                "span_steps": self.persons.span_steps,
                "spans": self.persons.n_spans,
                "outputs_depend_on_two_spans": self.persons.joined,
                "all_spans": together,
            }
        return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _format_epsilon(value: float) -> str:
    return format_rounded_up(value, 4)


def _json_number(value: float) -> float | None:
    """Return a number as JSON has it, which knows no infinity: None where nothing is proven."""
    return None if value == math.inf else value


def _versions() -> str:
    """Name the versions that a release depends on."""
    from dpfast._support.version import __version__

    return (
        f"dpfast {__version__}, Python {platform.python_version()}, numpy {np.__version__}, numba {numba.__version__}"
    )
