"""Bytewax carries pieces to the stores of shards: a source of their files, and a sink that publishes them."""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any

from dpfast._support import validation
from dpfast._support.errors import DataError
from dpfast.releases.engines.pieces import list_pieces, parse_path, shard_name
from dpfast.releases.engines.shards import Shards

_WAIT = datetime.timedelta(milliseconds=200)  # between two looks for a piece that is not there so far


def bytewax_source(shards: Shards, folder: str | os.PathLike[str], *, wait: bool = True) -> Any:
    """Return a source of Bytewax that reads the pieces of a folder, as they are closed; each shard is a partition.

    It gives pairs of the name of a shard and the path of a piece, in order, and goes on from Bytewax's recovery store:
    what that has forgotten is delivered again.

    Parameters
    ----------
    shards : Shards
        The ones whose streams the steps are for.
    folder : path-like
        Where :func:`cut_pieces` and :func:`close_bins` write, which every worker sees.
    wait : bool
        Wait for pieces that are not there so far, up to the end of the declared span; otherwise end where there are no
        more.

    Raises
    ------
    MissingExtraError
        Without the extra ``dpfast[bytewax]``.
    """
    validation.instance("shards", shards, Shards, "a Shards")
    inputs = validation.optional("bytewax.inputs", "bytewax")
    there = validation.path("folder", folder)

    class Pieces(inputs.StatefulSourcePartition):  # type: ignore[misc, name-defined]
        """The pieces of a shard, from a step on."""

        def __init__(self, shard: int, position: int) -> None:
            self._shard, self._position, self._awake = shard, position, datetime.datetime.now(datetime.UTC)

        def next_batch(self) -> list[tuple[str, str]]:
            if self._position == shards.span.n_bins:
                raise StopIteration
            found = _piece_from(there, self._shard, self._position)
            if found is None:
                if not wait:
                    raise StopIteration
                self._awake = datetime.datetime.now(datetime.UTC) + _WAIT
                return []
            self._position = parse_path(found)[2]
            return [(shard_name(self._shard), str(found))]

        def next_awake(self) -> datetime.datetime:
            return self._awake

        def snapshot(self) -> int:
            return self._position

    class Source(inputs.FixedPartitionedSource):  # type: ignore[misc, name-defined]
        """One partition a shard."""

        def list_parts(self) -> list[str]:
            return [shard_name(i) for i in range(shards.n_shards)]

        def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> Pieces:
            return Pieces(_number(for_part), resume_state or 0)

    return Source()


def bytewax_sink(shards: Shards) -> Any:
    """Return a sink of Bytewax that publishes the pieces of :func:`bytewax_source`; each shard is a partition.

    Whatever Bytewax delivers again after a crash is published once: the store of the shard decides, not Bytewax. The
    public table of each shard is in its folder of what is public.

    Parameters
    ----------
    shards : Shards
        The ones whose streams the steps are for.

    Raises
    ------
    MissingExtraError
        Without the extra ``dpfast[bytewax]``.
    """
    validation.instance("shards", shards, Shards, "a Shards")
    outputs = validation.optional("bytewax.outputs", "bytewax")

    class Publisher(outputs.StatefulSinkPartition):  # type: ignore[misc, name-defined]
        """A shard that is open."""

        def __init__(self, shard: int) -> None:
            self._shard = shards.open(shard)

        def write_batch(self, values: list[str]) -> None:
            for path in values:
                self._shard.publish(path)

        def snapshot(self) -> int:
            return self._shard.position

        def close(self) -> None:
            self._shard.close()

    class Sink(outputs.FixedPartitionedSink):  # type: ignore[misc, name-defined]
        """One partition a shard."""

        def list_parts(self) -> list[str]:
            return [shard_name(i) for i in range(shards.n_shards)]

        def part_fn(self, item_key: str) -> int:
            return _number(item_key)

        def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> Publisher:
            return Publisher(_number(for_part))

    return Sink()


def _number(name: str) -> int:
    return int(name.removeprefix("shard-"))


def _piece_from(folder: Path, shard: int, position: int) -> Path | None:
    """Return the piece that begins at a step; None where it is not there so far.

    Where all before the first one are deleted, that is the next: the store of the shard refuses it unless it has
    published what was before.

    Raises
    ------
    DataError
        Where it should be there, as later ones are; where one begins before that step and ends behind it.
    """
    pieces = list_pieces(folder, shard)
    for k, path in enumerate(pieces):
        _, first, end = parse_path(path)
        if end <= position:
            continue
        if first == position or (k == 0 and first > position):
            return path
        raise DataError(
            f"{folder / shard_name(shard)} must have a piece that begins at step {position}, got {path.name} as the "
            "next one: put the pieces back as they were closed"
        )
    return None
