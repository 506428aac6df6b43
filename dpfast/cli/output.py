"""The files that a command leaves in its folder."""

from __future__ import annotations

from dpfast._support import validation
from dpfast._support.output_folder import OutputFolder


def require_matplotlib() -> None:
    """Refuse to begin without matplotlib: a command must not fail when all is computed."""
    validation.optional("matplotlib.figure", "cli")


def write_files(folder: OutputFolder, text: str) -> str:
    """Write the files of the folder, and return the text that is printed, with their paths."""
    return f"{text}\n\nWritten: " + ", ".join(str(path) for path in folder.write())
