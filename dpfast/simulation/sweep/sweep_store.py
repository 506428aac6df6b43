"""A store: finished blocks of sweeps, and designs, in one SQLite file. It knows nothing of mechanisms."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpfast._support import checksums, validation
from dpfast._support.canonical_json import canonical, digest
from dpfast._support.errors import DataError
from dpfast._support.sqlite import Connection
from dpfast._support.validation import Array
from dpfast.simulation.sweep import sweep_connection, sweep_store_errors

T = TypeVar("T")
BlockRow = tuple[int, int, int, bytes, int]  # sweep, case, block, means, CRC
_CHUNK = 5000  # rows read at a time
_KEYS = 500  # keys of a query: SQLite takes 999 everywhere


class StoredSweep(NamedTuple):
    """A sweep in a store: what it is of, and how much of it is finished.

    Attributes
    ----------
    id : int
        The number of the sweep in this store.
    configuration : str
        The digest of its configuration.
    dpfast, seed, created : str
        Version that it is of, seed, and when it began (UTC, ISO 8601).
    n_cases, n_blocks : int
        Of which something is finished, and how much.
    """

    id: int
    configuration: str
    dpfast: str
    seed: str
    created: str
    n_cases: int
    n_blocks: int


class SweepStore:
    """A store in an SQLite file, which keeps designs, and the blocks of sweeps.

    A block is there as a whole or not at all, whenever the process is killed; a block, once there, never changes.
    Any number of processes may use one file at a time, each with an object of its own: of the process and the thread
    that opened it. A context manager that closes.

    Parameters
    ----------
    path : path-like, optional
        A file, begun where there is none, in a folder that is there; on a disk of this machine, as SQLite's log needs
        memory that its users share. In memory for None.

    Raises
    ------
    DataError
        Where the file cannot be written, is damaged, is not a store, or is one of another format; from every method,
        where the disk is full, or what is read is not what was written.

    Examples
    --------
    >>> with SweepStore() as store:
    ...     sweep = store.enter({"dpfast": "0.1.0", "seed": "1", "n_samples": 1000})
    ...     store.add(sweep, [(0, 0, np.ones(16)), (0, 1, np.zeros(16))])
    ...     store.counts(sweep), store.means(sweep, 0, 2).sum()
    ({0: 2}, np.float64(16.0))
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else validation.path("path", path).absolute()
        self._process = os.getpid()
        self._connection = sweep_connection.connect(self.path)

    def __enter__(self) -> SweepStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"SweepStore({str(self.path)!r})" if self.path else "SweepStore()"

    def close(self) -> None:
        """Let the file go; nothing in a forked child, which has no part in it."""
        if os.getpid() == self._process:
            self._connection.close()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Connection]:
        if os.getpid() != self._process:
            raise RuntimeError("a store is for the process that opened it: open it again in this one")
        with sweep_connection.explaining(self.path):
            yield self._connection

    def _write(self, action: Callable[[Connection], T]) -> T:
        with self._reading() as connection:
            return connection.write(lambda: action(connection))

    # --- designs ----------------------------------------------------------------------------------

    def add_designs(self, designs: Mapping[str, str]) -> None:
        """Keep texts by their keys, all or none; one that is there already is replaced."""
        rows = []
        for key, text in designs.items():
            content = zlib.compress(text.encode())
            rows.append((key, content, checksums.checksum(content, key)))
        self._write(lambda connection: connection.executemany("INSERT OR REPLACE INTO designs VALUES (?, ?, ?)", rows))

    def design(self, key: str) -> str | None:
        """Return the text of a key; None where there is none."""
        return next((text for _, text in self.designs([key])), None)

    def designs(self, keys: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield (key, text) of those keys that are there, in the order given."""
        remaining = iter(keys)
        while some := list(itertools.islice(remaining, _KEYS)):
            query = f"SELECT key, content, crc FROM designs WHERE key IN ({','.join('?' * len(some))})"
            with self._reading() as connection:
                found = {key: (content, crc) for key, content, crc in connection.execute(query, some)}
            for key in some:
                if key in found:
                    yield key, self._design(key, *found[key])

    def _design(self, key: str, content: bytes, crc: int) -> str:
        if not checksums.is_intact(crc, content, key):
            raise sweep_store_errors.damage_error(self.path, f"design {key}")
        return zlib.decompress(content).decode()

    # --- sweeps -----------------------------------------------------------------------------------

    def enter(self, configuration: Mapping[str, Any]) -> int:
        """Return the sweep of a configuration, which is begun where there is none.

        Parameters
        ----------
        configuration : mapping
            Everything that the results depend on, for JSON; among it "dpfast", the version, and "seed".

        Returns
        -------
        int
            The sweep, to which blocks belong: of another configuration it is another one.
        """
        name, content = digest(canonical(configuration)), zlib.compress(canonical(configuration).encode())
        row = (name, str(configuration["dpfast"]), str(configuration["seed"]), content, _utc_time())
        insert = (
            "INSERT INTO sweeps (configuration, dpfast, seed, content, created) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING"
        )
        self._write(lambda connection: connection.execute(insert, row))
        with self._reading() as connection:
            return int(connection.execute("SELECT id FROM sweeps WHERE configuration = ?", (name,)).fetchone()[0])

    def configuration(self, sweep: int) -> Any:
        """Return the configuration that a sweep was entered with."""
        with self._reading() as connection:
            query = "SELECT configuration, content FROM sweeps WHERE id = ?"
            name, content = connection.execute(query, (sweep,)).fetchone() or ("", b"")
        with contextlib.suppress(zlib.error, TypeError):
            text = zlib.decompress(content)
            if hashlib.sha256(text).hexdigest() == name:
                return json.loads(text)
        raise sweep_store_errors.damage_error(self.path, f"the configuration of sweep {sweep}")

    def sweeps(self) -> list[StoredSweep]:
        """List the sweeps in the store, the oldest first."""
        query = (
            "SELECT id, configuration, dpfast, seed, created, count(DISTINCT case_number), count(block) "
            "FROM sweeps LEFT JOIN blocks ON sweep = id GROUP BY id ORDER BY id"
        )
        with self._reading() as connection:
            return [StoredSweep(*row) for row in connection.execute(query)]

    # --- blocks -----------------------------------------------------------------------------------

    def add(self, sweep: int, rows: Iterable[tuple[int, int, Array]]) -> None:
        """Keep blocks, all or none.

        Parameters
        ----------
        sweep : int
        rows : iterable of (case, block, means)
            Number of the case, of the block, and its batch means: float64, (n_batches,), finite; of several outputs
            those of one behind those of the other.

        Raises
        ------
        DataError
            Where a block is there already with other numbers, if only by a bit. Nothing is kept then.
        """
        batch = list(rows)
        if not batch:
            return
        table = [np.asarray(means, dtype="<f8") for _, _, means in batch]
        unfit = sum(np.count_nonzero(~np.isfinite(x)) for x in table)
        shapes = {x.shape[:-1] if x.ndim else None for x in table}
        if shapes != {()} or unfit:
            raise ValueError(
                f"means must be finite and of shape (n_batches,), got {unfit} values that are not finite, and shape "
                f"{next((x.shape for x in table if x.ndim != 1), table[0].shape)}"
            )
        values = [
            _checked_row(sweep, int(x[0]), int(x[1]), means.tobytes()) for x, means in zip(batch, table, strict=True)
        ]
        self._write(lambda connection: self._insert(connection, values))

    def _insert(self, connection: Connection, rows: list[BlockRow]) -> None:
        insert = "INSERT INTO blocks VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        if connection.executemany(insert, rows).rowcount < len(rows):
            self._check_equal(connection, rows)

    def _check_equal(self, connection: Connection, rows: list[BlockRow]) -> None:
        """Refuse rows that differ from those that are there."""
        query = "SELECT * FROM blocks WHERE sweep = ? AND case_number = ? AND block = ?"
        for row in rows:
            there = connection.execute(query, row[:3]).fetchone()
            self._means(*there)
            if there != row:
                raise DataError(
                    f"the store {self.path} has other results for block {row[2]} of case {row[1]} of sweep {row[0]} "
                    "than those computed now: two machines, or two versions of NumPy, that do not compute alike. Use "
                    "another store"
                )

    def blocks(self, sweep: int) -> dict[int, NDArray[np.int64]]:
        """Return for each case that has any the numbers of its blocks, ascending."""
        query = "SELECT case_number, block FROM blocks WHERE sweep = ? ORDER BY case_number, block"
        with self._reading() as connection:
            rows = connection.execute(query, (sweep,))
            try:
                pairs = np.fromiter(rows, dtype=np.dtype((np.int64, 2)))
            except (TypeError, ValueError, OverflowError):  # no numbers
                raise sweep_store_errors.damage_error(self.path, f"a block of sweep {sweep}") from None
        cases, starts = np.unique(pairs[:, 0], return_index=True)
        parts = np.split(pairs[:, 1], starts[1:])
        return dict(zip(cases.tolist(), parts, strict=False))  # no cases: one part, empty

    def counts(self, sweep: int) -> dict[int, int]:
        """Count for each case that has any block those from 0 on without a gap."""
        found = self.blocks(sweep)
        return {case: int(np.argmin(np.append(x, -1) == np.arange(len(x) + 1))) for case, x in found.items()}

    def means(self, sweep: int, case: int, n_blocks: int) -> Array:
        """Return the batch means of the first blocks of a case, side by side: float64, (n_blocks · n_batches,).

        Raises
        ------
        ValueError
            Where the case has not so many blocks.
        """
        query = "SELECT * FROM blocks WHERE sweep = ? AND case_number = ? AND block < ? ORDER BY block"
        with self._reading() as connection:
            rows = connection.execute(query, (sweep, case, n_blocks)).fetchall()
        if len(rows) != n_blocks:
            raise ValueError(f"n_blocks must be at most the blocks of case {case}, {len(rows)} here, got {n_blocks}")
        return np.concatenate([np.empty(0), *(self._means(*row) for row in rows)])

    def all_means(self, sweep: int) -> Iterator[tuple[int, int, Array]]:
        """Yield (case, block, batch means) of a sweep, ascending; the arrays are read-only."""
        query = "SELECT * FROM blocks WHERE sweep = ? AND (case_number, block) > (?, ?) ORDER BY 2, 3 LIMIT ?"
        last = (-1, -1)
        # by chunks: an unfinished query would keep others from emptying the log
        while True:
            with self._reading() as connection:
                rows = connection.execute(query, (sweep, *last, _CHUNK)).fetchall()
            for row in rows:
                yield row[1], row[2], self._means(*row)
            if len(rows) < _CHUNK:
                return
            last = rows[-1][1:3]

    def _means(self, sweep: int, case: int, block: int, means: bytes, crc: int) -> Array:
        if not checksums.is_intact(crc, means, sweep, case, block):
            raise sweep_store_errors.damage_error(self.path, f"block {block} of case {case} of sweep {sweep}")
        return np.frombuffer(means, dtype="<f8").astype(np.float64, copy=False)


def _checked_row(sweep: int, case: int, block: int, means: bytes) -> BlockRow:
    return sweep, case, block, means, checksums.checksum(means, sweep, case, block)


def _utc_time() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
