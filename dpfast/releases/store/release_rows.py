"""Records of a store: rows of its database, and the chain over all that was published."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._support import checksums
from dpfast._support.validation import Array
from dpfast.releases.arbiters.arbiter import Arbiter
from dpfast.releases.store import release_schema
from dpfast.releases.store.declaration import Declaration
from dpfast.releases.store.earlier_releases import Earlier, StorableGuarantee
from dpfast.releases.store.packed_integers import pack, unpack
from dpfast.releases.store.row_counts import RowCounts
from dpfast.releases.store.witness import Attestation

Integers = NDArray[np.int64]
_WITH_PERSONS, _PACKED = 3, 4  # formats
_RELEASE = "id, kind, configuration, guarantee, guarantee_json, streams, first"


class PartState(NamedTuple):
    """Hold the state of the receiver of some of the streams: the number of the part, its next step, its state."""

    part: int
    position: int
    state: bytes


class _Pruned(NamedTuple):
    """Hold where the history of a stream begins: its next step, and the chain over all that was pruned."""

    release: int
    next: int
    push: int
    steps: int
    chain: bytes


class Memory(NamedTuple):
    """The memory of a stream that goes on: its next step, and the inputs (n_streams, n) before it."""

    position: int
    inputs: Integers

    def __repr__(self) -> str:
        """Show it without the inputs."""
        return f"<Memory at step {self.position}, of {self.inputs.shape[1]} inputs>"


@dataclass(frozen=True, repr=False)
class PersonState:
    """Hold what a store knows of persons in the present span, or what is new of that; it is private.

    Attributes
    ----------
    terms : dict
        The bounds.
    span : int
        The number of the span.
    key_check : bytes
        The check value of the key of the pseudonyms.
    kept : tuple of (bytes, int, int)
        Pseudonym, stream and step of every kept event.
    forget : bool
        Whether those before are forgotten, as their span has ended.
    """

    terms: dict[str, Any]
    span: int
    key_check: bytes
    kept: tuple[tuple[bytes, int, int], ...]
    forget: bool = False


class Records:
    """The rows of a database. Whoever writes them begins and ends the transaction.

    Parameters
    ----------
    arbiter : Arbiter
    """

    def __init__(self, arbiter: Arbiter) -> None:
        self._arbiter = arbiter
        self._counts: dict[int, RowCounts] = {}  # of releases that are there; a configuration is never changed
        meta = self._only(self._fetch("SELECT id, format, inode, path FROM meta"))
        self.store_id: str = meta[0]
        _, self.version, inode, path = meta
        self.place = inode, path

    def _fetch(self, query: str, *values: Any) -> list[Any]:
        with self._arbiter.explaining():
            return self._arbiter.execute(query, values).fetchall()

    def _only(self, rows: list[Any]) -> Any:
        if len(rows) != 1:
            raise self._arbiter.damage_error()
        return rows[0]

    def _fetch_sealed(self, query: str, *values: Any) -> list[Any]:
        """Return rows without their seals, and refuse a row that is not as it was sealed."""
        return [self._unseal(row) for row in self._fetch(query, *values)]

    def _unseal(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        if not checksums.is_sealed(row):
            raise self._arbiter.damage_error()
        return row[:-1]

    # --- reading ----------------------------------------------------------------------------------

    def releases(self) -> list[Earlier]:
        """Return all releases, in the order in which they began."""
        names = {} if self.version == 1 else dict(self._fetch_sealed("SELECT release, name, seal FROM names"))
        rows = self._fetch_sealed(f"SELECT {_RELEASE}, seal FROM releases ORDER BY id")
        return [self._release(row, names.get(row[0])) for row in rows]

    def _release(self, row: tuple[Any, ...], name: str | None) -> Earlier:
        id, kind, configuration, guarantee, guarantee_json, streams, first = row
        _, _, count, closed, *_ = self._progress(id)
        texts = guarantee, guarantee_json
        return Earlier(id, kind, json.loads(configuration), *texts, streams, first, count, bool(closed), name)

    def _progress(self, release: int) -> Any:
        """Return release, position, count and closed, behind which stores of formats before have a receiver."""
        return self._only(self._fetch_sealed("SELECT * FROM progress WHERE release = ?", release))

    def declaration(self) -> Declaration | None:
        """Return what the store declares; None where nothing is declared."""
        _, content = self._only(self._fetch_sealed("SELECT id, content, seal FROM declaration"))
        return None if json.loads(content) is None else Declaration.from_json(content)

    def persons(self) -> PersonState | None:
        """Return what the store knows of persons; None where it protects events."""
        rows = self._fetch_sealed("SELECT id, terms, span, key_check, count, seal FROM persons")
        if not rows:
            return None
        _, terms, span, key_check, count = self._only(rows)
        kept = self._fetch_sealed("SELECT person, stream, step, seal FROM kept")
        if len(kept) != count:
            raise self._arbiter.damage_error()
        return PersonState(json.loads(terms), span, key_check, tuple(kept))

    def memory(self, release: int) -> Memory:
        """Return what a stream needs to go on, and all other inputs that are stored."""
        _, position, _, _ = self._progress(release)
        ((stored,),) = self._fetch("SELECT count(*) FROM inputs WHERE release = ?", release)
        return Memory(position, self.inputs(release, position - stored, stored))

    def inputs(self, release: int, first: int, n: int) -> Integers:
        """Return the stored inputs of n steps (n_streams, n), all of which are there."""
        rows = self._fetch_sealed(
            "SELECT release, step, x, seal FROM inputs WHERE release = ? AND step >= ? AND step < ? ORDER BY step",
            *(release, first, first + n),
        )
        found = np.empty((self._rows(release).inputs, n), np.int64)
        if [step for _, step, _ in rows] != list(range(first, first + n)):
            raise self._arbiter.damage_error()
        for i, (*_, content) in enumerate(rows):
            x = self._unpack(content)
            if len(x) != len(found):
                raise self._arbiter.damage_error()
            found[:, i] = x
        return found

    def receivers(self, release: int) -> Iterator[PartState]:
        """Yield states of parts, one after the other as all are large; a part without one begins at the first step."""
        for (part,) in self._fetch("SELECT part FROM receivers WHERE release = ? ORDER BY part", release):
            rows = self._fetch_sealed("SELECT * FROM receivers WHERE release = ? AND part = ?", release, part)
            _, *row = self._only(rows)
            yield PartState(*row)

    def _unpack(self, content: bytes) -> Integers:
        try:
            return np.frombuffer(content, "<i8") if self.version < _PACKED else unpack(content)
        except ValueError:
            raise self._arbiter.damage_error() from None

    def length(self, release: int) -> int:
        """Return how many steps of a release are published."""
        ((first,),) = self._fetch("SELECT first FROM releases WHERE id = ?", release)
        return int(self._progress(release)[1] - first)

    def read(self, release: int, first: int, count: int, *, estimates: bool = True) -> tuple[Integers, Array]:
        """Return what was published of some steps: v (rows, count), and the estimate of those that have one (rows, n).

        Of a mechanism that publishes several numbers at a step v is (rows, numbers, count). Where estimates are
        not asked for there are none.
        """
        estimate = "estimate" if estimates else "NULL"
        rows = self._fetch(
            f"SELECT first, privatized, {estimate}, count FROM pushes WHERE release = ? AND first < ? AND first >= "
            "(SELECT max(first) FROM pushes WHERE release = ? AND first <= ?) ORDER BY first",
            *(release, first + count, release, first),
        )
        offset, counts = first - rows[0][0] if rows else 0, self._rows(release)
        streams, published = counts.published, [self._unpack(v) for _, v, *_ in rows]
        per_step = published[0].size // (streams * rows[0][3]) if rows else 1

        def join(pieces: list[NDArray[Any]], dtype: Any, *shape: int) -> NDArray[Any]:
            whole = [np.empty((*shape, 0), dtype), *(x.reshape(*shape, -1) for x in pieces)]
            return np.concatenate(whole, axis=-1, dtype=dtype)[..., offset : offset + count]

        v = join(published, np.int64, *((streams,) if per_step == 1 else (streams, per_step)))
        return v, join([np.frombuffer(found or b"", "<f8") for *_, found, _ in rows], np.float64, counts.estimated)

    def first_kept(self, release: int) -> int:
        """Return the first step of a release that was not pruned."""
        pruned = self._pruned(release)
        ((first,),) = self._fetch("SELECT first FROM releases WHERE id = ?", release)
        return int(first) if pruned is None else pruned.next

    def _pruned(self, release: int) -> _Pruned | None:
        rows = [] if self.version < _PACKED else self._fetch_sealed("SELECT * FROM pruned WHERE release = ?", release)
        return _Pruned(*rows[0]) if rows else None

    def _rows(self, release: int) -> RowCounts:
        if release not in self._counts:
            row = self._only(self._fetch("SELECT configuration, streams FROM releases WHERE id = ?", release))
            self._counts[release] = RowCounts.of(json.loads(row[0]), row[1])
        return self._counts[release]

    def chain(self) -> Iterator[Attestation]:
        """Yield what a witness says of the store before the first push, and behind each; refuse a damaged one."""
        releases = {entry.id: entry for entry in self.releases()}
        ends = {id: entry.first for id, entry in releases.items()}
        counts = {id: RowCounts.of(entry.configuration, entry.streams) for id, entry in releases.items()}
        last = Attestation(self.store_id, 0, 0, hashlib.sha256(self.store_id.encode()).hexdigest())
        for pruned in filter(None, map(self._pruned, releases)):
            ends[pruned.release] = pruned.next
            last = Attestation(self.store_id, pruned.push, pruned.steps, pruned.chain.hex())
        yield last
        pushes = self._arbiter.stream("SELECT * FROM pushes ORDER BY id")
        for id, release, first, count, v, estimate, chain in map(self._unseal, pushes):
            entry = releases.get(release)
            if entry is None or first != ends[release]:
                raise self._arbiter.damage_error()
            columns = count
            if entry.kind == "batch":  # whose estimates are cut to its inputs
                columns = min(count, max(0, entry.first + entry.count - first))
            rows = counts[release]
            published, size = self._unpack(v), rows.published * count  # of one number a step; there may be several
            per_step = published.size // size if size else 1
            whole = 0 < per_step * size == published.size or published.size == size == 0
            whole &= len(estimate) == 8 * rows.estimated * columns
            last = _link(last, release, first, count, published)
            if not whole or (id, chain) != (last.position, bytes.fromhex(last.sha256)):
                raise self._arbiter.damage_error()
            ends[release] = first + count
            yield last
        for id, end in ends.items():
            if self._progress(id)[1] != end:  # pages of two times, as a log of another one leaves them
                raise self._arbiter.damage_error()

    def second_witness(self) -> str | None:
        """Return where the store has a second witness; None where it has none."""
        rows = [] if self.version < _PACKED else self._fetch_sealed("SELECT id, place, seal FROM second_witness")
        return self._only(rows)[1] if rows else None

    # --- writing ----------------------------------------------------------------------------------

    def move(self, place: tuple[str, str]) -> None:
        """Enter where the database is now."""
        self._arbiter.execute("UPDATE meta SET inode = ?, path = ?", place)
        self.place = place

    def upgrade(self, declaration: Declaration | None, restated: StorableGuarantee | None) -> None:
        """Bring a store to this format; one of format 1 with a declaration, and what its last release must promise."""
        if self.version == 1:
            release_schema.add_format_2(self._arbiter)
        if declaration is not None:
            self.declare(declaration)
        if restated is not None:
            *_, (*row, _, _, streams, first) = self._fetch_sealed(f"SELECT {_RELEASE}, seal FROM releases ORDER BY id")
            self._insert("releases", *row, str(restated), restated.to_json(), streams, first)
        if self.version < _WITH_PERSONS:
            release_schema.add_format_3(self._arbiter)
        self._pack_all()
        self._arbiter.execute("UPDATE meta SET format = ?", (release_schema.FORMAT,))
        self.version = release_schema.FORMAT

    def _pack_all(self) -> None:
        """Pack the integers of a store of a format before; its receivers begin at the first step, which is there."""
        progress = self._fetch_sealed("SELECT * FROM progress")
        inputs = self._fetch_sealed("SELECT * FROM inputs")
        release_schema.add_format_4(self._arbiter)
        for *row, _ in progress:
            self._insert("progress", *row)
        for *row, x in inputs:
            self._insert("inputs", *row, pack(self._unpack(x)))
        for (id,) in self._fetch("SELECT id FROM pushes"):
            ((*row, v, estimate, chain),) = self._fetch_sealed("SELECT * FROM pushes WHERE id = ?", id)
            self._insert("pushes", *row, pack(self._unpack(v)), estimate, chain)

    def keep_second_witness(self, place: str) -> None:
        """Enter where the store has a second witness."""
        self._insert("second_witness", 1, place)

    def declare(self, declaration: Declaration) -> None:
        """Enter what the store declares."""
        self._insert("declaration", 1, declaration.to_json())

    def begin(
        self,
        kind: str,
        configuration: Mapping[str, Any],
        guarantee: StorableGuarantee,
        streams: int,
        first: int,
    ) -> int:
        """Enter a release without pushes, and return its id."""
        content = json.dumps(configuration, sort_keys=True, allow_nan=False)
        release = len(self._fetch("SELECT id FROM releases")) + 1
        self._counts.pop(release, None)  # of one whose transaction failed
        row = release, kind, content, str(guarantee), guarantee.to_json(), streams, first
        self._insert("releases", *row)
        self._insert("progress", release, first, 0, 0)
        return release

    def name(self, release: int, name: str) -> None:
        """Give a release a name."""
        self._insert("names", release, name)

    def _insert(self, table: str, *row: Any) -> None:
        self._arbiter.put(table, checksums.seal_row(*row))

    def push(self, last: Attestation, release: int, first: int, v: Integers, estimate: Array) -> Attestation:
        """Enter what is published behind the last push."""
        count = v.shape[-1]
        now = _link(last, release, first, count, v)
        estimates, chain = estimate.astype("<f8").tobytes(), bytes.fromhex(now.sha256)
        row = now.position, release, first, count, pack(v), estimates, chain
        self._arbiter.add("pushes", checksums.seal_row(*row))  # never in place of another
        return now

    def prune(self, release: int, before: int) -> None:
        """Delete what was published in pushes that end at a step or earlier, but for the last link of their chain."""
        query = "SELECT id, first + count, chain FROM pushes WHERE release = ? AND first + count <= ? ORDER BY id DESC"
        rows = self._fetch(f"{query} LIMIT 1", release, before)
        for push, end, chain in rows:
            known = self._pruned(release)
            ((steps,),) = self._fetch("SELECT CAST(sum(count) AS BIGINT) FROM pushes WHERE id <= ?", push)
            self._insert("pruned", release, end, push, steps + (0 if known is None else known.steps), chain)
            self._arbiter.execute("DELETE FROM pushes WHERE id <= ?", (push,))

    def remember(self, release: int, position: int, x: Integers, memory: int) -> None:
        """Keep, of all inputs up to a position, the last ones; x are those just before it."""
        oldest, n = position - memory, x.shape[1]
        for step in range(max(position - n, oldest), position):
            self._insert("inputs", release, step, pack(x[:, step - position]))
        self._arbiter.execute("DELETE FROM inputs WHERE release = ? AND step < ?", (release, oldest))

    def keep_persons(self, change: PersonState) -> None:
        """Enter the bounds on persons, and further kept events; those so far are forgotten with their span."""
        if change.forget:
            self._arbiter.execute("DELETE FROM kept")
        for row in change.kept:
            self._insert("kept", *row)
        ((count,),) = self._fetch("SELECT count(*) FROM kept")
        terms = json.dumps(change.terms, sort_keys=True)
        self._insert("persons", 1, terms, change.span, change.key_check, count)

    def progress(self, release: int, position: int, count: int, *, closed: bool) -> None:
        """Enter how far a release has come: the next step, and the steps with inputs."""
        self._insert("progress", release, position, count, int(closed))

    def keep_receivers(self, release: int, receivers: Sequence[PartState]) -> None:
        """Enter the states of some parts of the receiver."""
        for part, position, state in receivers:
            self._insert("receivers", release, part, position, state)

    def forget_receivers(self, release: int) -> None:
        """Delete the states of the receiver of a stream that is over."""
        self._arbiter.execute("DELETE FROM receivers WHERE release = ?", (release,))


def _link(last: Attestation, release: int, first: int, count: int, v: Integers) -> Attestation:
    digest = hashlib.sha256(bytes.fromhex(last.sha256) + struct.pack("<qqq", release, first, count))
    digest.update(np.ascontiguousarray(v, "<i8").data)
    return Attestation(last.store, last.position + 1, last.steps + count, digest.hexdigest())
