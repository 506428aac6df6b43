"""An output folder, which gets all of its files or none."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from dpfast._support.errors import DataError


class OutputFolder:
    """A folder for the files of a command: checked at once, made and written at the end, all files or none."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._files: dict[str, bytes] = {}
        there = next(x for x in (self.path, *self.path.absolute().parents) if x.exists())
        try:
            with tempfile.TemporaryFile(dir=there):
                pass
        except OSError as error:
            raise self._make_error(error) from None

    def _make_error(self, error: OSError) -> DataError:
        return DataError(f"cannot write to the folder {self.path}: {error.strerror}; choose another one")

    def add(self, name: str, content: str | bytes) -> None:
        """Add text or bytes under a file name."""
        self._files[name] = content.encode() if isinstance(content, str) else content

    def write(self) -> list[Path]:
        """Write all files and return their paths."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # It is on the same file system, where a rename is one step; nothing is renamed before all is written.
            with tempfile.TemporaryDirectory(dir=self.path) as name:
                for file, content in self._files.items():
                    (Path(name) / file).write_bytes(content)
                    there = self.path / file
                    if there.is_symlink() or (there.exists() and not there.is_file()):
                        raise FileExistsError(errno.EEXIST, f"{file} is there, and no regular file")
                return [(Path(name) / file).replace(self.path / file) for file in self._files]
        except OSError as error:
            raise self._make_error(error) from None
