"""What a guarantee per person and span is over several spans."""

from __future__ import annotations

from dataclasses import dataclass

from dpfast.privacy.composition import Loss
from dpfast.privacy.discrete_gaussian_accounting import Shift
from dpfast.releases.persons.person_bounds import PersonBounds


@dataclass(frozen=True)
class PersonSpans:
    """Name the spans of time of a guarantee per person.

    Attributes
    ----------
    span_steps : int or None
        Steps of a span; None where all steps of the store are one.
    n_spans : int or None
        Spans in which the release has steps; None for a stream that has no declared end.
    joined : bool
        Whether some number that is published depends on inputs of two spans, as behind a filter with memory.
    """

    span_steps: int | None
    n_spans: int | None
    joined: bool

    @property
    def is_one(self) -> bool:
        """Tell whether the release has steps in one span alone: then a person in it is a person."""
        return self.n_spans == 1 or self.span_steps is None

    @property
    def in_span(self) -> str:
        """Say that it is about one span, where spans are declared."""
        return "" if self.span_steps is None else " in one span"

    @classmethod
    def of(cls, bounds: PersonBounds, memory: int, first: int, n: int | None) -> PersonSpans:
        """Return those of a release of so many steps, behind a prefilter that needs so many earlier inputs."""
        return cls(bounds.span_steps, None if n is None else bounds.count_spans(first, n), memory > 0)

    def over(self, loss: Loss, n_spans: int) -> Loss:
        """Return what releases of such a loss cost a person with events in several spans.

        The changes of the spans add up, as those of a group of so many persons. Where none of the published numbers is
        in two of them, they are orthogonal, and their squares add up.
        """
        if self.joined:
            return loss.of_group(n_spans)
        shifts = (Shift(n_spans * x.squared_sensitivity, x.sigma, n_spans * x.n_coordinates) for x in loss.shifts)
        return Loss(tuple(shifts), tuple(n_spans * x for x in loss.pure), loss.approximate * n_spans)
