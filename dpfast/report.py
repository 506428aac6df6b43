"""Tables, pictures, and how they reach a folder: all of them or none."""

from __future__ import annotations

import csv
import errno
import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dpfast import _validate
from dpfast._validate import Array
from dpfast.errors import DataError

# Okabe and Ito (2008): told apart by colour-blind readers
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
TRUTH = "#000000"
_DPI = 150
_DECADE, _FEW_DECADES = 10, 300


@dataclass(frozen=True)
class Table:
    """Rows of text and numbers under named columns; numbers are shown with five digits, None as a dash."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def _shown(self) -> list[list[str]]:
        return [[_cell(x) for x in row] for row in self.rows]

    def text(self) -> str:
        """For a terminal: numbers to the right."""
        cells = [list(self.columns), *self._shown()]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.columns))]
        right = [any(isinstance(row[i], (int, float)) for row in self.rows) for i in range(len(widths))]
        lines = [
            "  ".join(x.rjust(w) if r else x.ljust(w) for x, w, r in zip(row, widths, right, strict=True)).rstrip()
            for row in cells
        ]
        return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])

    def markdown(self) -> str:
        """A Markdown table."""
        head = [list(self.columns), ["---"] * len(self.columns)]
        rows = [[cell.replace("|", "\\|") for cell in row] for row in [*head, *self._shown()]]
        return "\n".join("| " + " | ".join(row) + " |" for row in rows)

    def csv(self, header: Sequence[str] = ()) -> str:
        """Comma-separated values in full precision, after header lines that start with a hash."""
        out = io.StringIO()
        out.writelines(f"# {line}\n" for line in header)
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([["" if x is None else x for x in row] for row in self.rows])
        return out.getvalue()


def _cell(x: Any) -> str:
    if x is None:
        return "–"
    return f"{x:#.5g}".rstrip(".") if isinstance(x, float) else str(x)


# --- files ----------------------------------------------------------------------------------------


class Folder:
    """An output folder: checked at once, made and written at the end, all files or none."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._files: dict[str, bytes] = {}
        there = next(x for x in (self.path, *self.path.absolute().parents) if x.exists())
        try:
            with tempfile.TemporaryFile(dir=there):
                pass
        except OSError as error:
            raise self._refused(error) from None

    def _refused(self, error: OSError) -> DataError:
        return DataError(f"cannot write to the folder {self.path}: {error.strerror}; choose another one")

    def add(self, name: str, content: str | bytes) -> None:
        """Text or bytes, under a file name."""
        self._files[name] = content.encode() if isinstance(content, str) else content

    def write(self) -> list[Path]:
        """Write all files and return their paths."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            # on the same file system, where a rename is one step; nothing is renamed before all is written
            with tempfile.TemporaryDirectory(dir=self.path) as name:
                for file, content in self._files.items():
                    (Path(name) / file).write_bytes(content)
                    there = self.path / file
                    if there.is_symlink() or (there.exists() and not there.is_file()):
                        raise FileExistsError(errno.EEXIST, f"{file} is there, and no regular file")
                return [(Path(name) / file).replace(self.path / file) for file in self._files]
        except OSError as error:
            raise self._refused(error) from None


# --- pictures -------------------------------------------------------------------------------------


def png(figure: Any) -> bytes:
    """A matplotlib figure as a picture."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()


def figure(rows: int, columns: int = 1, *, height: float = 2.0, sharex: bool = False) -> tuple[Any, Any]:
    """A figure without pyplot (no global state, no display), and its axes (rows, columns)."""
    module = _validate.optional("matplotlib.figure", "plot")
    result = module.Figure(figsize=(max(6, 4.5 * columns), height * rows + 0.5), layout="constrained")
    axes = result.subplots(rows, columns, squeeze=False, sharex=sharex)
    for ax in axes.ravel():
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(alpha=0.25, linewidth=0.5)
        ax.tick_params(labelsize=8)
    return result, axes


def plot_path(ax: Any, time: Any, truth: Array, estimates: dict[str, Array], title: str) -> None:
    """True output, thick and black, under the estimates; with a legend where there are several."""
    ax.plot(time, truth, color=TRUTH, linewidth=2.2, alpha=0.75, label="true output")
    for colour, (name, estimate) in zip(COLOURS, estimates.items(), strict=False):
        ax.plot(time, estimate, color=colour, linewidth=0.9, label=name)
    ax.set_title(title, fontsize=9, loc="left", parse_math=False)
    if len(estimates) > 1:
        above = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
        ax.legend(fontsize=7, ncols=1 + len(estimates), frameon=False, **above)


def plot_magnitudes(ax: Any, omega: Array, curves: dict[str, Array], title: str) -> None:
    """Magnitudes of prefilters of unit norm over a logarithmic frequency axis; the first one dashed."""
    for style, colour, (name, magnitude) in zip(("--", "-"), COLOURS, curves.items(), strict=False):
        ax.semilogx(omega, magnitude, color=colour, linewidth=1.2, linestyle=style, label=name)
    ax.set_title(title, fontsize=9, loc="left", parse_math=False)
    ax.set_xlabel("ω (radians per sample)", fontsize=8)
    ax.set_ylabel("|G|, ‖G‖₂ = 1", fontsize=8)
    ax.legend(fontsize=7, frameon=False)


class Style(NamedTuple):
    """How a line is drawn."""

    colour: str
    line: str = "-"
    width: float = 1.2
    alpha: float = 1.0


def plot_lines(ax: Any, x: Any, curves: Mapping[str, Any], styles: Mapping[str, Style], *, title: str) -> None:
    """Named curves over x, each in its own style; the legend is the figure's."""
    for name, y in curves.items():
        colour, line, width, alpha = styles[name]
        ax.plot(x, y, color=colour, linestyle=line, linewidth=width, alpha=alpha, label=name)
    ax.set_title(title, fontsize=9, loc="left", parse_math=False)


def logarithmic(ax: Any, directions: str) -> None:
    """Logarithmic "x", "y" or "xy", with plain numbers: the more, the fewer decades there are."""
    ticker = _validate.optional("matplotlib.ticker", "plot")
    for direction in directions:
        getattr(ax, f"set_{direction}scale")("log")
        axis = getattr(ax, f"{direction}axis")
        low, high = axis.get_view_interval()
        axis.set_major_locator(ticker.LogLocator(subs=_digits(high / low)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(ticker.NullFormatter())


def _digits(ratio: float) -> Sequence[int]:
    """First digits of the ticks of an axis whose ends have this ratio."""
    if ratio < _DECADE:
        return range(1, 10)
    return (1, 2, 5) if ratio < _FEW_DECADES else (1,)
