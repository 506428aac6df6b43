"""Files that may be packed: what they are is told by their content, as names may lie."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from dpfast._support import validation
from dpfast._support.errors import DataError

PARQUET = "Parquet"
# bzip2: as its first block begins, or its end where it is empty.
_BEGINNINGS = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "bzip2": re.compile(rb"BZh[1-9](?:\x31\x41\x59\x26\x53\x59|\x17\x72\x45\x38\x50\x90)"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
    PARQUET: re.compile(rb"PAR1[^\r\n,]"),
}
_PARQUET_SUFFIXES = (".parquet", ".pq", ".parq")


@contextlib.contextmanager
def open_content(file: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Open a file, and give what it is, "gzip", "bzip2", "zstd", "Parquet" or "plain", and its content, unpacked.

    Raises
    ------
    DataError
        Where it cannot be opened or unpacked, also while it is read; where its name says Parquet and it is none.
    """
    kind = "plain"
    try:
        with file.open("rb") as raw:
            kind = _tell_kind(raw)
            if kind != PARQUET and file.suffix.lower() in _PARQUET_SUFFIXES:
                raise DataError(f"{file} must be a Parquet file, as its name says, got something else: rename it")
            yield kind, _unpack(kind, raw)
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise _damage_error(file, kind) from None
    except OSError as error:
        if error.strerror is None:  # of a codec
            raise _damage_error(file, kind) from None
        raise DataError(f"{file} must be a readable file: {error.strerror}") from None


def _damage_error(file: Path, kind: str) -> DataError:
    return DataError(f"{file} must be a whole {kind} file, got a damaged or truncated one")


def _tell_kind(raw: Any) -> str:
    beginning = raw.peek(16)[:16]
    return next((kind for kind, pattern in _BEGINNINGS.items() if pattern.match(beginning)), "plain")


def _unpack(kind: str, raw: Any) -> Any:
    if kind == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if kind == "bzip2":
        return bz2.BZ2File(raw)
    if kind == "zstd":
        arrow = validation.optional("pyarrow", "parquet")
        return arrow.CompressedInputStream(arrow.PythonFile(raw, "r"), "zstd")
    return raw
