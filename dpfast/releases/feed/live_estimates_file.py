"""The file of estimates that a live release appends to, bin by bin; it never holds a true value."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from dpfast._support.csv_cells import unescape
from dpfast._support.errors import DataError
from dpfast._support.validation import Array
from dpfast.releases.arbiters import private_files
from dpfast.releases.estimates_layout import COLUMNS, HEADER, Layout

# of earlier versions: a file that was begun under this header goes on under it
_EARLIER = ("time", "group", "estimate", "standard_error")


class Journal:
    """A CSV file that grows by whole bins: what was appended stays, and after a crash it goes on behind the last one.

    Several processes may append to it, such as a writer that was replaced and does not know it so far: each sees what
    the others have appended, and adds what is missing.

    Parameters
    ----------
    path : Path
        Made where there is none. A bin that was written in part is cut off, and is to be appended again. A file whose
        last column is called "standard_error", as an earlier version named it, goes on under that header.
    layout : Layout

    Attributes
    ----------
    position : int
        The next bin.

    Raises
    ------
    DataError
        For a file that holds something else than the first bins of this layout.
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        self._path, self._layout = path, layout
        self._file: BinaryIO | None = None
        self._left: tuple[int, ...] | None = None  # the file as this journal left it
        with self._alone():
            self._look()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Have the folder to oneself: a writer that was replaced may still be about to write."""
        try:
            with private_files.waiting_for_folder(self._path.parent):
                yield
        except OSError as error:
            raise DataError(f"cannot write to {self._path}: {error.strerror}; choose another folder") from None

    def _look(self) -> None:
        """Read the file, at first and where another writer has changed it since."""
        if self._file is not None and self._state() == self._left:
            return
        self._close()
        self._file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
        try:
            self.position = self._resume(self._path)
        except BaseException:
            self._close()
            raise

    def _state(self) -> tuple[int, ...] | None:
        """Return which file is there, and how long it is."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino, found.st_size

    def _resume(self, path: Path) -> int:
        assert self._file is not None
        there = self._file.read().splitlines(keepends=True)
        if there and not there[-1].endswith(b"\n"):
            there.pop()
        n_names = len(self._layout.names)
        position = max(0, len(there) - 1) // n_names
        kept = b"".join(there[: 1 + position * n_names]) or HEADER.encode()
        header, *rows = csv.reader(kept.decode(errors="replace").splitlines())
        found, wanted = [tuple(map(unescape, row[:2])) for row in rows], list(self._layout.labels(0, position))
        if tuple(header) not in (COLUMNS, _EARLIER) or found != wanted:
            raise DataError(
                f"{path} must hold the first bins of this release, got something else: choose another folder"
            )
        self._file.seek(0)
        self._write(kept)
        return position

    def refresh(self) -> int:
        """Return the next bin, of the file as it is now: another writer may have gone on with it."""
        with self._alone():
            self._look()
        return self.position

    def leave_out_errors(self, first: int) -> None:
        """State no predicted error in rows of bins from `first` on that are still to come: v contradicts its model."""
        self._layout = dataclasses.replace(self._layout, contradicted_from=max(first, 0))

    def append(self, first: int, estimate: Array) -> None:
        """Write the estimates (names, n) of bins from `first` on, on the disk when this returns.

        Those outside of the span, and those that are there already, by whomever, are left out.
        """
        last = min(first + estimate.shape[1], self._layout.span.n_bins)
        with self._alone():
            self._look()
            if last > self.position:
                if first > self.position:
                    raise DataError(
                        f"{self._path} must hold the {first} bins before these, got {self.position}: somebody has cut "
                        "it off, or put another one there; begin again, which completes it from the store"
                    )
                self._write(self._layout.csv(self.position, estimate[:, self.position - first : last - first]).encode())
                self.position = last

    def _write(self, content: bytes) -> None:
        """Write, and cut off what is behind it."""
        assert self._file is not None
        self._file.write(content)
        self._file.truncate()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._left = self._state()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()
