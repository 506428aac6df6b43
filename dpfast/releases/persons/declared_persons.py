"""What is declared of persons in Python."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dpfast._support import validation
from dpfast.releases.arbiters.place import Place, Postgres
from dpfast.releases.store.push_limits import MAX_STEP


@dataclass(frozen=True)
class Persons:
    """Protect persons, not events: whoever has more events than is declared has the others left out.

    The bounds are those of the mechanism and the inputs: of the events of one person at most `max_events` are kept,
    `min_separation` steps apart, in each of at most `streams_per_person` streams; in each span. It is for
    :func:`release` and :func:`open_stream`, with :class:`Events`.

    Parameters
    ----------
    span : int, optional
        Steps of a span, counted from step 0; all steps of the store by default. With each span the bounds begin anew:
        the guarantee is per person and span, and is less for whoever has events in several.
    key : path-like, optional
        The file of the key under which the store knows persons; by default beside the store, its name with ".key". It
        is made with the first release, with mode 0600, and destroyed and made anew when a span has ended.

    Notes
    -----
    *Privacy.* The store remembers, of every person with kept events in the span, where they are, under a pseudonym
    (HMAC-SHA256 of the id). Whoever has the store and the key can test it against names: keep them apart. A person is
    forgotten when the span has ended, and not before.

    Examples
    --------
    >>> import dpfast as dp, tempfile
    >>> mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6, max_events=2, min_separation=3))
    >>> events = dp.Events(step=[0, 1, 3, 4], person=["ada", "ada", "ada", "bob"], n_steps=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = dp.release(mechanism, events, folder + "/store", dp.Inputs(0, 20), persons=dp.Persons())
    >>> result.estimate.shape  # of the three events of ada two are kept: 0 and 3
    (1, 5)
    """

    span: int | None = None
    key: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.span is not None:
            object.__setattr__(self, "span", validation.integer("span", self.span, 1, MAX_STEP))
        if self.key is not None:
            validation.path("key", self.key)

    def key_file(self, store: Place) -> Path:
        """Return where the key of a store is."""
        if self.key is not None:
            return validation.path("key", self.key).absolute()
        if isinstance(store, Postgres):
            raise ValueError(
                f"key of persons must be given for the store {store}: a file for its owner alone, which every machine "
                "that may take the store over has"
            )
        return store.with_name(f"{store.name}.key")
