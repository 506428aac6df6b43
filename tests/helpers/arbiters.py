"""Who decides what is published, in tests that kill: the database of a store, or nobody."""

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from helpers import delivered, naive_operators

import dpfast as dp
from dpfast._support import postgres
from dpfast.releases.arbiters import private_connection
from dpfast.releases.store import release_store, witness
from dpfast.releases.stream import Stream

# Each call of these is two points, before it and behind it. Statements come one by one, COMMIT among them.
STORE = ((release_store.ReleaseStore, "append"), (witness.Witness, "write"), (Stream, "push"))
FILES = (
    (os, "fsync"),
    (Path, "replace"),
    (Path, "hardlink_to"),
    (Path, "unlink"),
    (Path, "mkdir"),
)


class Arbiter:
    """Opens the stream of a folder, which publishes, and reads what it has published."""

    def open(self, folder, replay_steps):
        return dp.open_stream(
            delivered.plan(), self.place(folder), published=folder / "published", replay_steps=replay_steps
        )

    def read(self, folder):
        """The v of all that is published (streams, steps)."""
        return dp.read_release(self.place(folder), published=folder / "published").privatized


@dataclass(frozen=True)
class Folder(Arbiter):
    """SQLite, in a private folder."""

    name = "SQLite"
    calls = (
        (private_connection.PrivateConnection, "execute"),
        (private_connection.PrivateConnection, "executemany"),
        (private_connection.PrivateConnection, "close"),
        *FILES,
        *STORE,
    )

    def place(self, folder):
        return folder / "store"


@dataclass(frozen=True)
class Database(Arbiter):
    """PostgreSQL, a server for all."""

    address: str = field(repr=False)
    name = "PostgreSQL"
    calls = (
        (postgres.PostgresConnection, "execute"),
        (postgres.PostgresConnection, "close"),
        *FILES,
        *STORE,
    )

    def place(self, folder):
        return dp.Postgres(self.address, f"store-{hashlib.sha256(str(folder).encode()).hexdigest()[:20]}")


@dataclass(frozen=True)
class Nobody:
    """Noise inside the operator."""

    name = "none"
    calls = ((naive_operators.NaiveOperator, "push"), *FILES)

    def open(self, folder, replay_steps):
        return naive_operators.NaiveOperator()

    def read(self, folder):
        return None
