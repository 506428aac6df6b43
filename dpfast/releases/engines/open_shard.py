"""A shard that is open publishes its pieces, each once, and the table of its estimates."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from dpfast._support import validation
from dpfast._support.errors import DataError
from dpfast.releases.engines.declared_set import hold_pieces
from dpfast.releases.engines.pieces import Piece, delete_pieces, parse_path, read_piece
from dpfast.releases.estimates_layout import Layout
from dpfast.releases.feed.live_estimates_file import Journal
from dpfast.releases.stream import Stream


class Shard:
    """A shard that is open: what is published of it is published once. It is a context manager. :meth:`Shards.open`.

    Attributes
    ----------
    number : int
    stream : Stream
    """

    def __init__(
        self,
        stream: Stream,
        number: int,
        layout: Layout,
        published: Path,
        cut: Mapping[str, Any],
        deleted_behind: int | None,
    ) -> None:
        self.stream, self.number, self._layout, self._deleted_behind = stream, number, layout, deleted_behind
        self._cut, self._folder = cut, Path()
        self._table = Journal(published / "estimates.csv", layout)
        try:
            self._write_table()
        except BaseException:
            self._table.__exit__(None, None, None)
            raise

    def __enter__(self) -> Shard:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Shard {self.number}: next step {self.position}>"

    @property
    def position(self) -> int:
        """The next step that has inputs to come."""
        return min(self.stream.position, self._layout.span.n_bins)

    def publish(self, piece: Piece | str | os.PathLike[str]) -> int:
        """Publish a piece, and the rows of the public table that it completes; return the next step.

        What is published already is compared, or read back, as :meth:`Stream.push` does: deliver it as often as you
        like. The piece that ends the span ends the stream.

        Parameters
        ----------
        piece : Piece or path-like

        Raises
        ------
        ReleaseError
            As :meth:`Stream.push`; where a piece before it is missing.
        DataError
            For a piece of another shard or of other shards, or a damaged one.
        """
        path = None if isinstance(piece, Piece) else validation.path("piece", piece)
        if path is not None and self._is_deleted(path):
            return self.position
        if path is not None and path.parent.parent != self._folder:
            hold_pieces(path.parent.parent, self._cut)
            self._folder = path.parent.parent
        found = piece if isinstance(piece, Piece) else read_piece(Path(piece))
        if found.shard != self.number:
            raise DataError(f"piece must be of shard {self.number}, got one of shard {found.shard}")
        if found.end > self._layout.span.n_bins:
            raise DataError(f"piece must end at step {self._layout.span.n_bins} at most, got {found.end}")
        self.stream.push(found.inputs, first=found.first)
        if found.end == self._layout.span.n_bins:
            self.stream.close()
        self._write_table()
        if path is not None and self._deleted_behind is not None:
            delete_pieces(path.parent.parent, self.number, self.position - self._deleted_behind)
        return self.position

    def _is_deleted(self, path: Path) -> bool:
        """Tell whether the file of a piece is gone, and all of its steps are published."""
        return not path.exists() and parse_path(path)[2] <= self.position

    def _write_table(self) -> None:
        """Write the rows of the table that are published and not in it so far."""
        lag = self.stream.lag
        there = self._table.refresh()
        missing = self.stream.position - lag - there
        if missing > 0:
            result = self.stream.read(there + lag, missing)
            self._table.append(result.first - lag, result.estimate)

    def close(self) -> None:
        """Leave the shard, which any process may open again."""
        self._table.__exit__(None, None, None)
        self.stream.suspend()
