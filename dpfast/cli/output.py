"""The files that a command leaves in its folder."""

from __future__ import annotations

from dpfast._support import validation
from dpfast._support.output_folder import OutputFolder
from dpfast._support.wrapped_text import wrap_paragraph

PAGE = "report.html"


def require_matplotlib() -> None:
    """Refuse to begin without matplotlib: a command must not fail when all is computed."""
    validation.optional("matplotlib.figure", "cli")


def write_files(folder: OutputFolder, text: str) -> str:
    """Write the files of the folder, and return the text that is printed, with their paths, and where to begin."""
    paths = folder.write()
    pages = [path for path in paths if path.name == PAGE]
    begin = [f"Begin with {path}, in a browser: it explains the tables and the pictures." for path in pages]
    written = [f"Written: {', '.join(map(str, paths))}", *begin]
    return "\n".join([text, "", *map(wrap_paragraph, written)])
