"""Files that are there as a whole or not at all."""

from __future__ import annotations

import os
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


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file as a whole: at every moment the old content is there or the new one, on the disk too."""
    new = path.with_name(f".{path.name}.new")
    with new.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
