"""Bounds on what one person contributes, which a release enforces."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dpfast.privacy.privacy import Privacy
from dpfast.releases.integer.inputs import Inputs


@dataclass(frozen=True)
class PersonBounds:
    """Declare at most m events of a person, b steps apart, in each of at most k streams, in each span of time.

    Attributes
    ----------
    max_events : int
        m, in each span and stream.
    min_separation : int
        b, steps between two kept events of a person in one stream and span; none across the end of a span.
    streams_per_person : int
        k, in each span.
    n_streams : int
    span_steps : int or None
        Steps of a span, the first of which begins at step 0; None where all time is one span.
    """

    max_events: int
    min_separation: int
    streams_per_person: int
    n_streams: int
    span_steps: int | None

    @classmethod
    def of(cls, privacy: Privacy, inputs: Inputs, span_steps: int | None) -> PersonBounds:
        """Take the bounds for which a mechanism has its noise."""
        reached = streams_reached(privacy, inputs)
        return cls(privacy.max_events, privacy.min_separation, reached, inputs.n_streams, span_steps)

    def terms(self) -> dict[str, Any]:
        """Return them as JSON holds them."""
        return asdict(self)

    def span_of(self, step: int) -> int:
        """Return the number of the span in which a step is."""
        return 0 if self.span_steps is None else step // self.span_steps

    def count_spans(self, first: int, n: int) -> int:
        """Return in how many spans some steps are."""
        return self.span_of(first + n - 1) - self.span_of(first) + 1 if n else 0


def streams_reached(privacy: Privacy, inputs: Inputs) -> int:
    """Return in how many streams one person may be."""
    if privacy.adjacency is None:
        return inputs.streams_per_person
    return 1 if privacy.adjacency == "one_input" else inputs.n_streams
