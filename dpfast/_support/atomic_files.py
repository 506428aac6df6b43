"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

POSIX = os.name == "posix"


def sync_folder(path: Path) -> None:
    """Make the names in a folder last through a loss of power; Windows does that by itself."""
    if not POSIX:
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: str | bytes | Iterable[bytes]) -> None:
    """Write a file as a whole: at every moment the old content is there or the new one, on the disk too.

    Content may come in pieces, of which one at a time is in memory.
    """
    new = path.with_name(f".{path.name}.new")
    with new.open("wb") as file:
        whole = content.encode() if isinstance(content, str) else content
        file.writelines([whole] if isinstance(whole, bytes) else whole)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
