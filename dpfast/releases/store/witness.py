"""The witness: a public file that knows how far a store has come, so that an older store is recognised."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from dpfast._support.atomic_files import replace_file, sync_folder
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters.place import Place, Postgres
from dpfast.releases.arbiters.private_files import make_folders, waiting_for_folder

FORMAT = 1
NO_FILES: Mapping[str, str] = MappingProxyType({})
_KINDS = {"format": int, "store": str, "position": int, "steps": int, "sha256": str}


class Attestation(NamedTuple):
    """The word of a witness about a store: how far it has come.

    Attributes
    ----------
    store : str
        The id of the store.
    position : int
        The pushes in it.
    steps : int
        The time steps of all of them together.
    sha256 : str
        The last link of the chain over what was published.
    """

    store: str
    position: int
    steps: int
    sha256: str


class Witness:
    """A JSON file beside what is published; nothing in it is private. A second one is a file in another folder.

    Parameters
    ----------
    folder : Path
        Made when something is written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = self.place = folder / "witness.json"

    def read(self) -> Attestation | None:
        """Return what the witness says; None where there is no file."""
        try:
            return self._read()
        except OSError as error:
            raise ReleaseError(f"cannot read the witness {self.path}: {error.strerror}") from None

    def _read(self) -> Attestation | None:
        try:
            content = json.loads(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict) or content.keys() != _KINDS.keys() or not _is_sound(content):
            raise ReleaseError(
                f"the witness {self.path} is damaged, or no file of this format. Put a copy of it back that is as new "
                "as what was published last; without one nobody can tell whether the store is complete: begin anew"
            )
        return Attestation(*(content[name] for name in Attestation._fields))

    def write(self, attestation: Attestation, files: Mapping[str, str] = NO_FILES) -> None:
        """Replace what the witness says. The rename is not synced: a loss of power may leave it behind, as a crash may.

        The first one is synced: a witness that is missing is not one that is behind. One that knows more already stays,
        as where a writer comes late that another one has taken over from; and so do the files.

        Parameters
        ----------
        attestation : Attestation
        files : mapping, optional
            Texts of other files beside it, by their names.

        Raises
        ------
        ReleaseError
            Where another process has the folder for too long.
        """
        make_folders(self.path.parent)
        with waiting_for_folder(self.path.parent):
            known = self._read()
            if known is not None and known.store == attestation.store and known.position > attestation.position:
                return
            for name, text in files.items():
                replace_file(self.path.with_name(name), text)
            if known != attestation:
                replace_file(self.path, json.dumps({"format": FORMAT, **attestation._asdict()}, indent=2) + "\n")
            if known is None:
                sync_folder(self.path.parent)


def default_folder(store: Place) -> Path:
    """Return where the witness of a store is, if nobody says.

    It is beside the store; or where the command keeps it, in OUT for a store OUT-private; or in the store, where a
    version before has put it.
    """
    if isinstance(store, Postgres):
        raise ValueError(
            f"published must be given for the store {store}: the folder of the guarantee and of the witness, which "
            "tells whether the database was set back, and so must be outside of it"
        )
    folders = [store.with_name(f"{store.name}-published"), store / "published"]
    if out := store.name.removesuffix("-private"):
        folders.insert(1, store.with_name(out))
    return next((x for x in folders if os.path.lexists(Witness(x).path)), folders[0])


def _is_sound(content: dict[str, object]) -> bool:
    if content["format"] != FORMAT or any(type(content[name]) is not kind for name, kind in _KINDS.items()):
        return False
    digest = str(content["sha256"])
    return len(digest) == 64 and set(digest) <= set("0123456789abcdef")
