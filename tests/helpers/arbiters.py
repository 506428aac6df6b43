"""Who decides what is published, in tests that kill: the database of a store, or nobody."""

import os
from pathlib import Path

from helpers import delivered, naive_operators

import dpfast as dp
from dpfast.releases.arbiters import private_connection
from dpfast.releases.store import release_store, witness
from dpfast.releases.stream import Stream

# Each call of these is two points, before it and behind it.
STORE = ((release_store.ReleaseStore, "append"), (witness.Witness, "write"), (Stream, "push"))
FILES = (
    (os, "fsync"),
    (Path, "replace"),
    (Path, "hardlink_to"),
    (Path, "unlink"),
    (Path, "mkdir"),
)


class Folder:
    """SQLite, in a private folder."""

    name = "SQLite"
    calls = (
        (private_connection.PrivateConnection, "execute"),  # statements one by one, COMMIT among them
        (private_connection.PrivateConnection, "executemany"),
        (private_connection.PrivateConnection, "close"),
        *FILES,
        *STORE,
    )

    def __init__(self, folder):
        self.place, self.public = folder / "store", folder / "published"

    def open(self, replay_steps):
        return dp.open_stream(delivered.plan(), self.place, published=self.public, replay_steps=replay_steps)

    def read(self):
        """The v of all that is published (streams, steps)."""
        return dp.read_release(self.place, published=self.public).privatized


class Nobody:
    """Noise inside the operator."""

    name = "none"
    calls = ((naive_operators.NaiveOperator, "push"), *FILES)

    def __init__(self, folder):
        """It needs nothing."""

    def open(self, replay_steps):
        return naive_operators.NaiveOperator()

    def read(self):
        return None
