"""Pieces: the inputs of one shard for some steps, closed, durable, and the same whenever they are delivered again."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpfast._support.errors import DataError
from dpfast.releases.arbiters import private_files
from dpfast.releases.persons.person_events import Events

_HEADER = "dpfast piece 1"
_NAME = re.compile(r"steps-(\d{12})-(\d{12})\.piece")
_SHARD = re.compile(r"shard-(\d{4})")


@dataclass(frozen=True, repr=False)
class Piece:
    """The inputs of a shard at consecutive steps; they are private.

    Attributes
    ----------
    shard : int
    first : int
        The first of its steps.
    inputs : array of int64 (streams, n), or Events
        Of every stream of the shard and every step: zero where nothing came.
    """

    shard: int
    first: int
    inputs: NDArray[np.int64] | Events

    def __repr__(self) -> str:
        """Show it without the inputs."""
        return f"<Piece of shard {self.shard}, steps {self.first} to {self.end - 1}>"

    @property
    def end(self) -> int:
        """The step behind its last one."""
        return self.first + int(self.inputs.shape[1])

    def behind(self, step: int) -> Piece:
        """Return what is left of it from a step on."""
        n = min(max(0, step - self.first), self.end - self.first)
        rest = self.inputs.behind(n) if isinstance(self.inputs, Events) else self.inputs[:, n:]
        return Piece(self.shard, self.first + n, rest)


def shard_name(shard: int) -> str:
    """Return the name of a shard, of its folder and of what is published of it."""
    return f"shard-{shard:04}"


def piece_path(folder: Path, shard: int, first: int, end: int) -> Path:
    """Return where the piece of a shard is."""
    return folder / shard_name(shard) / f"steps-{first:012}-{end:012}.piece"


def parse_path(path: Path) -> tuple[int, int, int]:
    """Return the shard of a piece, its first step, and the one behind its last, from its name alone."""
    name, folder = _NAME.fullmatch(path.name), _SHARD.fullmatch(path.parent.name)
    if name is None or folder is None:
        raise DataError(f"{path} must be a piece, in a folder such as shard-0003 and named as pieces are, got another")
    return int(folder[1]), int(name[1]), int(name[2])


def list_pieces(folder: Path, shard: int) -> list[Path]:
    """Return the pieces of a shard that are there, in the order of their steps."""
    there = folder / shard_name(shard)
    return sorted(x for x in there.iterdir() if _NAME.fullmatch(x.name)) if there.is_dir() else []


def delete_pieces(folder: Path, shard: int, step: int) -> None:
    """Delete the pieces of a shard that end at a step or before it; the last one stays, which tells how far they go."""
    pieces = list_pieces(folder, shard)
    if not pieces:
        return
    with private_files.waiting_for_folder(pieces[0].parent):
        _delete_leftovers(pieces[0].parent)
        for path in pieces[:-1]:
            if parse_path(path)[2] <= step:
                path.unlink(missing_ok=True)  # a writer that was replaced may have been faster


def _delete_leftovers(folder: Path) -> None:
    """Delete what a crash has left of pieces that were being written: inputs are in it."""
    for path in folder.glob(".steps-*.piece.*"):
        path.unlink()


def write_piece(folder: Path, piece: Piece) -> Path:
    """Write the file of a piece, on the disk when this returns; it is there as a whole or not at all, and stays.

    The same once more changes nothing.

    Raises
    ------
    DataError
        Where the piece is there with other inputs, or some of its steps are in another piece.
    """
    path = piece_path(folder, piece.shard, piece.first, piece.end)
    private_files.make_folder(folder)
    there = private_files.make_folder(path.parent)
    with private_files.waiting_for_folder(there):
        _delete_leftovers(there)
        _check_overlap(path, list_pieces(folder, piece.shard))
        content = _to_bytes(piece)
        if private_files.write_once(path, content) != content:
            raise DataError(
                f"{path} is closed, with other inputs than these: what was handed over once is never changed. Give the "
                "file as it was then; only where no engine has had the piece yet, delete it and cut it again"
            )
    return path


def _check_overlap(path: Path, others: list[Path]) -> None:
    """Refuse a piece of which some steps are closed, in pieces that were cut otherwise."""
    shard, first, end = parse_path(path)
    for other in others:
        _, start, stop = parse_path(other)
        if start < end and first < stop and other.name != path.name:
            raise DataError(
                f"steps {first} to {end - 1} of shard {shard} must be in one piece, got {other}, which has "
                "some of them: cut the steps as they were cut before, or those behind them"
            )


def read_piece(path: Path, content: bytes | None = None) -> Piece:
    """Read the file of a piece, or its content where an engine has read it.

    Raises
    ------
    DataError
        For a file that is no piece, or is damaged; no message shows what is in it.
    """
    shard, first, end = parse_path(path)
    try:
        found = path.read_bytes() if content is None else content
    except OSError as error:
        raise DataError(f"cannot read the piece {path}: {error.strerror}") from None
    try:
        piece = _from_bytes(found, shard, first, end)
    except (ValueError, IndexError, UnicodeDecodeError):
        piece = None
    if piece is None:
        raise DataError(f"{path} is damaged, or no piece: put back the file that was written")
    return piece


def _to_bytes(piece: Piece) -> bytes:
    n_streams, n = piece.inputs.shape
    persons = isinstance(piece.inputs, Events)
    lines = [f"{_HEADER},{piece.shard},{piece.first},{n},{n_streams},{'persons' if persons else 'counts'}"]
    lines += _event_lines(piece.inputs) if isinstance(piece.inputs, Events) else _count_lines(piece.inputs)
    body = "".join(f"{line}\n" for line in lines)
    return f"{body}end,{zlib.crc32(body.encode()):08x}\n".encode()


def _count_lines(counts: NDArray[np.int64]) -> Iterator[str]:
    """Write step, stream and count where something came."""
    for stream, step in np.argwhere(counts.T).tolist():  # in the order of steps
        yield f"{stream},{step},{counts[step, stream]}"


def _event_lines(events: Events) -> Iterator[str]:
    """Write step, stream, value and person of each event, in the order in which they count."""
    for step, stream, value, person in events.rows():
        yield f"{step},{stream},{value},{person.hex()}"


def _from_bytes(content: bytes, shard: int, first: int, end: int) -> Piece | None:
    body, _, seal = content.decode("ascii").rpartition("end,")
    header, *lines = body.splitlines()
    name, *numbers, kind = header.split(",")
    n_streams = int(numbers[-1])
    known = [_HEADER, *map(str, (shard, first, end - first, n_streams))]
    if seal != f"{zlib.crc32(body.encode()):08x}\n" or [name, *numbers] != known or kind not in ("counts", "persons"):
        return None
    rows = [line.split(",") for line in lines]
    if kind == "counts":
        counts = np.zeros((n_streams, end - first), np.int64)
        for step, stream, count in rows:
            counts[int(stream), int(step)] = int(count)
        return Piece(shard, first, counts)
    steps, streams, values = (np.array([int(row[i]) for row in rows], np.int64) for i in range(3))
    persons = [bytes.fromhex(row[3]) for row in rows]
    events = Events(step=steps, stream=streams, value=values, person=persons, n_steps=end - first, n_streams=n_streams)
    return Piece(shard, first, events)
