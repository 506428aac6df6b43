"""Stores as versions before wrote them, made of those of today."""

import contextlib
import sqlite3
import zlib

import numpy as np
from helpers.fakes import unpacked

PROGRESS = """CREATE TABLE progress (
    release INTEGER PRIMARY KEY, position INTEGER NOT NULL, count INTEGER NOT NULL, closed INTEGER NOT NULL,
    receiver BLOB NOT NULL, seal INTEGER NOT NULL
)"""


def sealed(*row):
    return *row, zlib.crc32(b"\0".join(x if isinstance(x, bytes) else repr(x).encode() for x in row))


def raw(content):
    return np.array(unpacked(content), "<i8").tobytes()


def bring_back(folder, version, receiver=b""):
    """Makes a store of format 4 one of an earlier format: 1 knew no declarations and names, 2 no persons."""
    with contextlib.closing(sqlite3.connect(folder / "store.sqlite")) as connection, connection:
        for name, column in (("pushes", 4), ("inputs", 2)):
            for row in connection.execute(f"SELECT * FROM {name}").fetchall():
                content = sealed(*row[:column], raw(row[column]), *row[column + 1 : -1])
                connection.execute(f"INSERT OR REPLACE INTO {name} VALUES ({', '.join('?' * len(row))})", content)
        progress = connection.execute("SELECT * FROM progress").fetchall()
        for statement in (
            "DROP TABLE progress",
            PROGRESS,
            *(f"DROP TABLE {x}" for x in ("receivers", "pruned", "writers", "second_witness")),
            *(f"DROP TABLE {x}" for x in ("persons", "kept") if version < 3),
            *(f"DROP TABLE {x}" for x in ("names", "declaration", "mark") if version < 2),
        ):
            connection.execute(statement)
        for row in progress:
            connection.execute("INSERT INTO progress VALUES (?, ?, ?, ?, ?, ?)", sealed(*row[:-1], receiver))
        connection.execute("UPDATE meta SET format = ?", (version,))
