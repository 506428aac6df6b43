"""Files of what v tells: whether it agrees with the model, and the estimates of a receiver that was fitted to it.

They are made of the store alone, at any time, and cost nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dpfast._support.atomic_files import replace_file
from dpfast._support.errors import DataError
from dpfast._support.wrapped_text import wrap_paragraph
from dpfast.releases.batch import Release
from dpfast.releases.batch_estimates_file import estimates_pieces
from dpfast.releases.estimates_layout import HEADER
from dpfast.releases.reading import read_entry
from dpfast.releases.store.earlier_releases import Earlier
from dpfast.releases.store.release_store import ReleaseStore

_MARK = '{\n  "model_check_of_release": '
_BEGINNINGS = {"json": _MARK.encode(), "csv": HEADER.encode(), "parquet": b"PAR1"}


class Checked(NamedTuple):
    """Hold what was found, in paragraphs for a terminal, and the files that have it."""

    text: str
    files: tuple[Path, ...]


def write_model_check(
    store: ReleaseStore, entry: Earlier, declared: Mapping[str, Any], kind: str, *, adapt: bool
) -> Checked:
    """Write `model-check.json` of a release and, where that is asked for, the estimates of an adapted receiver.

    Parameters
    ----------
    store : ReleaseStore
    entry : Earlier
    declared : mapping
        What the store declares.
    kind : str
        "csv" or "parquet".
    adapt : bool

    Raises
    ------
    DataError
        Where something else is there, and where a file cannot be written.
    """
    result = read_entry(store, entry, adapt=adapt)
    name = "" if entry.name is None else f"-{entry.name}"
    files = [_replace(store, store.published / f"model-check{name}.json", _content(result), "json")]
    if result.adapted is not None:
        file = store.published / f"adapted-estimates{name}.{kind}"  # no name of a release makes it that of another
        estimate, error = result.adapted.estimate, result.adapted.predicted_rmse
        of_design = result.model_check.agrees is False and not result.adapted.taken
        files.append(_replace(store, file, estimates_pieces(entry, declared, estimate, error, kind, of_design), kind))
    said = [wrap_paragraph(str(x)) for x in (result.model_check, result.adapted) if x is not None]
    return Checked("\n\n".join(said), tuple(files))


def _content(result: Release) -> bytes:
    """Write what was found as JSON."""
    content = {
        "model_check_of_release": result.number,
        "predicted_rmse_if_model_holds": result.predicted_rmse_if_model_holds,
        "verdict": result.model_check.verdict_text() or None,
        **result.model_check.content(),
        "adapted": None if result.adapted is None else result.adapted.content(),
    }
    return (json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _replace(store: ReleaseStore, file: Path, content: bytes | Iterable[bytes], kind: str) -> Path:
    """Write a file over an earlier one of its kind, and over nothing else."""
    try:
        if os.path.lexists(file) and not (file.is_file() and file.read_bytes().startswith(_BEGINNINGS[kind])):
            raise DataError(
                f"{file} is there, and is none that this command writes: move it away and run the same command again, "
                "which publishes nothing more"
            )
        replace_file(file, content)
    except OSError as error:
        raise DataError(
            f"cannot write to {file}: {error.strerror}; what was released is in the store {store.path}: put that right "
            "and run the same command again, which publishes nothing more"
        ) from None
    return file
