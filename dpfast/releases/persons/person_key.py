"""The key of the pseudonyms of persons: a file of its own, which is never replaced within a span."""

from __future__ import annotations

import contextlib
import hmac
import os
import re
import secrets
from pathlib import Path

from dpfast._support import atomic_files
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters import private_files
from dpfast.releases.arbiters.place import Place

_FILE = re.compile(rb"dpfast person key of the store ([0-9a-f-]{36})\n([0-9a-f]{64})\n")


class PersonKey:
    """Turn ids into pseudonyms under a key.

    Parameters
    ----------
    secret : bytes
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.check = self._digest(b"\0check")

    def __repr__(self) -> str:
        return "<PersonKey>"

    def pseudonym(self, person: bytes) -> bytes:
        """Return the HMAC-SHA256 of an id."""
        return self._digest(b"\1" + person)

    def _digest(self, text: bytes) -> bytes:
        return hmac.digest(self._secret, text, "sha256")


class KeyFile:
    """Read, make and destroy the file of the key of a store.

    A span that ends takes its key along. The next key is made first, in a file beside; the store's transaction says
    that it is the key from now on; then the old one is overwritten. A crash at any point leaves one of the two files
    with the key that the store speaks of.

    Parameters
    ----------
    path : Path
    store : Place
        For messages.
    store_id : str
        The store whose key it is: one key for two would be destroyed by the first whose span ends.
    """

    def __init__(self, path: Path, store: Place, store_id: str) -> None:
        self._path, self._next = path, path.with_name(f"{path.name}.next")
        self._store, self._store_id = store, store_id

    def begin(self) -> PersonKey:
        """Return the key for a state that has none yet: a new one, or that of a run that was interrupted then."""
        if not os.path.lexists(self._path):
            try:
                self._make_next()
                self._path.hardlink_to(self._next)
            except OSError as error:  # also where another store has made its own there meanwhile
                raise ReleaseError(f"cannot write the key {self._path}: {error.strerror}") from None
            self._drop_next()
            atomic_files.sync_folder(self._path.parent)
        return self._read(self._path)

    def read(self, check: bytes) -> PersonKey:
        """Return the key with this check value, and finish what was interrupted when the last span ended.

        Raises
        ------
        ReleaseError
            Where it is not there: within a span no other can take its place.
        """
        for path in (self._path, self._next):  # either may have been cut short by a crash
            key = self._find(path) if os.path.lexists(path) else None
            if key is not None and key.check == check:
                if path == self._next:
                    self.put()
                else:
                    self._drop_next()
                return key
        lost = "is another one" if os.path.lexists(self._path) else "is missing"
        raise ReleaseError(
            f"the key under which the store {self._store} knows persons in this span {lost} (person_key, "
            f"{self._path}): without it nobody can tell what they have contributed already, and a new one would let "
            "them contribute once more. Put it back, or say where it is (--person-key, in Python dp.Persons(key=...))"
        )

    def prepare(self) -> PersonKey:
        """Make the key of the next span; what an interrupted step has left is no key of anything."""
        self._make_next()
        atomic_files.sync_folder(self._next.parent)
        return self._read(self._next)

    def put(self) -> None:
        """Destroy the key of the span that has ended, and put that of the next one in its place."""
        if os.path.lexists(self._path):
            private_files.overwrite(self._path)
        self._next.replace(self._path)
        atomic_files.sync_folder(self._path.parent)

    def _make_next(self) -> None:
        self._drop_next()
        private_files.make_file(self._next)
        with self._next.open("r+b") as file:
            file.write(f"dpfast person key of the store {self._store_id}\n{secrets.token_hex(32)}\n".encode())
            file.flush()
            os.fsync(file.fileno())

    def _drop_next(self) -> None:
        """Remove what an interrupted step has left: it is no key of anything."""
        with contextlib.suppress(FileNotFoundError):
            self._next.unlink()

    def _find(self, path: Path) -> PersonKey | None:
        """Return the key in a file; None where it holds no key of the store."""
        private_files.check_private(path)
        try:
            found = _FILE.fullmatch(path.read_bytes())
        except OSError as error:
            raise ReleaseError(f"cannot read the key {path}: {error.strerror}") from None
        return PersonKey(bytes.fromhex(found[2].decode())) if found and found[1].decode() == self._store_id else None

    def _read(self, path: Path) -> PersonKey:
        key = self._find(path)
        if key is None:
            raise ReleaseError(
                f"{path} holds no key of the store {self._store}, but something else, or that of another one: give the "
                "file that was made with the store, or, for a new one, the name of a file that is not there "
                "(--person-key, in Python dp.Persons(key=...))"
            )
        return key
