"""How many rows a release has of inputs, of what is published, and of estimates: its configuration says it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self


class RowCounts(NamedTuple):
    """Count the rows of a release; where each stream is published and estimated by itself all are its streams.

    Attributes
    ----------
    inputs : int
        Streams of inputs.
    published : int
        Channels of v.
    estimated : int
        Outputs.
    """

    inputs: int
    published: int
    estimated: int

    @classmethod
    def of(cls, configuration: Mapping[str, Any], streams: int) -> Self:
        """Return those of a mechanism for so many streams.

        Examples
        --------
        >>> RowCounts.of({}, 3)
        RowCounts(inputs=3, published=3, estimated=3)
        """
        rows = configuration.get("rows", {})
        return cls(streams, int(rows.get("published", streams)), int(rows.get("estimated", streams)))
