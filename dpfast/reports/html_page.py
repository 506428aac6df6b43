"""Pages: HTML in one file, with nothing from elsewhere, for screens of any width, light or dark, and for paper.

A page runs nothing, or where it has tables to sort or points with values the one script of ``page_script``: its policy
names that by its SHA-256, and allows no other, and nothing to be loaded. Without scripts all of a page is there.

Parts of a page (paragraphs, tables, pictures, …) are made from plain text, which is escaped in `markup`.
"""

from __future__ import annotations

import base64
import importlib.metadata
import platform
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dpfast._support import html_fragments as html
from dpfast._support.html_fragments import Html, escape, paragraphs
from dpfast._support.text_table import Estimate, Table
from dpfast.reports import page_script
from dpfast.reports.hover_points import overlay
from dpfast.reports.matplotlib_helpers import render_png

MOST_ROWS = 200  # of a table
_SCALE = 140  # pixels of CSS for an inch: letters of a picture come near those of the text
_IN_BOX = 15  # rows that a box shows at once
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?(?= … |$)")  # a text that is one, or begins an interval
_PACKAGES = ("numpy", "scipy", "numba", "matplotlib")

_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --text: #1b1f24; --quiet: #57606a; --line: #d0d7de; --box: #f6f8fa;
  --warn: #9a3412; --warn-box: #fff4ed; --link: #0550ae; }
@media (prefers-color-scheme: dark) { :root { --ground: #14181d; --text: #e6e9ed; --quiet: #a3adb8; --line: #3a434d;
  --box: #1d232a; --warn: #fdba8c; --warn-box: #3a2013; --link: #7cb7ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text); font: 1rem/1.55 system-ui, sans-serif;
  overflow-wrap: break-word; }
main { max-width: 70rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .6rem; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 2.4rem 0 .7rem; padding-bottom: .3rem;
  border-bottom: 1px solid var(--line); }
p, li { max-width: 46rem; margin: 0 0 .7rem; }
ul { margin: 0 0 .7rem; padding-left: 1.3rem; }
nav ul { display: flex; flex-wrap: wrap; gap: .1rem 1.2rem; list-style: none; padding: 0; margin: 1rem 0 0; }
nav li { margin: 0; font-size: .9rem; }
a { color: var(--link); }
.banner { border-left: .3rem solid var(--warn); background: var(--warn-box); color: var(--warn); padding: .7rem 1rem;
  margin: 0 0 1.2rem; font-weight: 600; }
.banner p { margin: 0; max-width: none; }
dl { display: grid; grid-template-columns: minmax(7rem, max-content) 1fr; gap: .3rem 1.4rem; margin: 0 0 .7rem; }
dt { color: var(--quiet); }
dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
pre { background: var(--box); border: 1px solid var(--line); border-radius: .4rem; padding: .7rem .9rem;
  margin: 0 0 .7rem; font: .82rem/1.5 ui-monospace, monospace; overflow-x: auto; }
.scroll { max-width: 100%; width: fit-content; max-height: 34rem; overflow: auto; border: 1px solid var(--line);
  border-radius: .4rem; margin-bottom: .7rem; }
.scroll:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: separate; border-spacing: 0; font-size: .86rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .65rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
.long { white-space: normal; min-width: 16rem; overflow-wrap: anywhere; }
thead th { position: sticky; top: 0; background: var(--box); vertical-align: bottom; }
tbody th { font-weight: 500; }
tbody tr:last-child > * { border-bottom: 0; }
.number { text-align: right; }
.note { color: var(--quiet); font-size: .86rem; margin: .4rem 0 1rem; }
figure { margin: 0 0 1.6rem; width: fit-content; max-width: 100%; }
.frame { position: relative; background: #fff; border: 1px solid var(--line); border-radius: .4rem; padding: .5rem; }
.frame img { display: block; max-width: 100%; height: auto; }
.points { position: absolute; inset: .5rem; width: calc(100% - 1rem); height: calc(100% - 1rem); }
.points:focus-visible { outline: 2px solid #0550ae; }
.points circle { fill: transparent; }
.points .on { stroke: #000; stroke-width: 2px; }
.tip { position: absolute; z-index: 1; width: max-content; max-width: 100%; padding: .2rem .5rem; pointer-events: none;
  background: #1b1f24; color: #fff; border-radius: .3rem; font-size: .8rem; line-height: 1.35; }
.sort { all: unset; cursor: pointer; }
.sort:focus-visible { outline: 2px solid var(--link); }
.sort:hover { text-decoration: underline; }
[aria-sort] > .sort::after { content: "\\a0↕"; color: var(--line); }
[aria-sort="ascending"] > .sort::after { content: "\\a0↑"; color: var(--text); }
[aria-sort="descending"] > .sort::after { content: "\\a0↓"; color: var(--text); }
figcaption { color: var(--quiet); font-size: .86rem; margin-top: .4rem; max-width: 46rem; }
@media (max-width: 34rem) {
  h1 { font-size: 1.4rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; }
  th, td { padding: .25rem .5rem; }
}
@media print {
  :root { --ground: #fff; --text: #000; --quiet: #444; --line: #bbb; --box: #f4f4f4; --warn: #7c2d12;
    --warn-box: #fff; }
  body { font-size: 9pt; line-height: 1.35; }
  main { max-width: none; padding: 0; }
  nav { display: none; }
  p, li { max-width: none; margin-bottom: .35rem; orphans: 3; widows: 3; }
  h2 { margin: 1.2rem 0 .4rem; }
  dl { gap: .1rem 1.2rem; }
  h2, thead { break-after: avoid; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  figure, tr, .banner { break-inside: avoid; }
  figure img { max-height: 22cm; width: auto; }
  .points, .tip, .sort::after { display: none; }
  .scroll { max-height: none; overflow: visible; border: 0; }
  table { font-size: 7.5pt; }
  th, td { padding: .15rem .4rem; white-space: normal; }
  thead th { position: static; }
}
"""


def page(
    title: str,
    sections: Mapping[str, Sequence[Html]],
    *,
    lead: str | None = None,
    banner: str = "",
    style: str = "",
    generator: str = "",
) -> str:
    """Make a whole page; sections without parts are left out.

    Parameters
    ----------
    title : str
    sections : mapping
        Parts under each heading.
    lead : str or None
        Paragraphs below the title.
    banner : str
        What must be read before all else.
    style : str
        Rules of CSS that this page has beside those of all pages.
    generator : str
        Name of what made it, for programs that must know.

    Examples
    --------
    >>> page("1 < 2", {"Why": [paragraphs("It is so.")]}).splitlines()[-8:-2]
    ['<h1>1 &lt; 2</h1>', '</header>', '<section>', '<h2 id="why">Why</h2>', '<p>It is so.</p>', '</section>']
    """
    filled = {heading: parts for heading, parts in sections.items() if parts}
    shown = [_section(heading, parts) for heading, parts in filled.items()]
    runs = any(map(page_script.has_use, shown))
    policy = page_script.POLICY if runs else page_script.NOTHING
    head = [
        '<meta charset="utf-8">',
        f'<meta name="generator" content="{escape(generator)}">' if generator else "",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}{style}</style>",
    ]
    body = [
        f'<div class="banner" role="note">{paragraphs(banner)}</div>' if banner else "",
        f"<header>\n<h1>{escape(title)}</h1>",
        paragraphs(lead or ""),
        _link_sections(filled),
        "</header>",
        *shown,
    ]
    end = ["</main>", *([f"<script>{page_script.SCRIPT}</script>"] if runs else []), "</body></html>"]
    lines = ["<!doctype html>", '<html lang="en">', "<head>", *head, "</head>", "<body>", "<main>", *body]
    return "\n".join([*(x for x in lines if x), *end]) + "\n"


def _link_sections(headings: Iterable[str]) -> str:
    """Return links to the sections, where there are several."""
    links = [f'<li><a href="#{_anchor(x)}">{escape(x)}</a></li>' for x in headings]
    return f'<nav aria-label="Sections"><ul>{"".join(links)}</ul></nav>' if len(links) > 1 else ""


def _section(heading: str, parts: Sequence[Html]) -> str:
    return "\n".join(
        ["<section>", f'<h2 id="{_anchor(heading)}">{escape(heading)}</h2>', *filter(None, parts), "</section>"]
    )


def _anchor(heading: str) -> str:
    return re.sub(r"\W+", "-", heading.lower()).strip("-")


# --- parts ----------------------------------------------------------------------------------------


def code(text: str) -> Html:
    """Show lines as they are."""
    return Html(f'<pre tabindex="0"><code>{escape(text)}</code></pre>')


def facts(pairs: Mapping[str, str]) -> Html:
    """List names, and what they stand for."""
    return Html("<dl>\n" + "\n".join(f"<dt>{escape(x)}</dt><dd>{escape(y)}</dd>" for x, y in pairs.items()) + "\n</dl>")


def table(content: Table, name: str, *, where: str, n_headers: int = 1) -> Html:
    """Show a table in a box that scrolls, and that can be sorted; of many rows the first ones, and the file with all.

    Parameters
    ----------
    content : Table
    name : str
        What it shows, for those who hear it.
    where : str
        The file that has all rows.
    n_headers : int
        Columns, from the first, that say of what a row is.
    """
    first = content.first(MOST_ROWS)
    cells = [
        (*_write_labels(row[:n_headers]), *shown[n_headers:])
        for row, shown in zip(first.rows, first.cells(), strict=True)
    ]
    lines = [
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(name)}">',
        html.table(content.columns, cells, content.numeric(), n_headers=n_headers, values=_read_values(first)),
        "</div>",
    ]
    return Html("\n".join([*lines, *_note_size(len(cells), len(content.rows), where)]))


def _read_values(content: Table) -> list[list[str | None]]:
    """Return what a machine reads of each cell: numbers in full, also of text; nothing, or None for other text."""
    return [[_read_value(x) for x in row] for row in content.rows]


def _read_value(x: Any) -> str | None:
    if x is None or x != x or x == "":
        return ""
    if isinstance(x, Estimate):
        return _read_value(x.value)
    if isinstance(x, (int, float)) and not isinstance(x, bool):
        return str(x).replace("inf", "Infinity")
    number = _NUMBER.match(str(x))
    return None if number is None else number[0]


def _note_size(shown: int, total: int, where: str) -> list[str]:
    """Note how long a table is that its box does not show whole."""
    if shown == total <= _IN_BOX:
        return []
    text = f"{total} rows." if shown == total else f"The first {shown} of {total} rows: all are in {where}."
    return [f'<p class="note">{escape(text)}</p>']


def _write_labels(row: Iterable[Any]) -> list[str]:
    """Write labels as they were given: 0.5, where a figure is 0.50000."""
    return ["–" if x is None else f"{x:g}" if isinstance(x, float) else str(x) for x in row]


def picture(figure: Any, alt: str, caption: str = "") -> Html:
    """Show a matplotlib figure somewhat larger than on paper, or as wide as the screen, with values of its points.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    alt : str
        What it shows, for those who do not see it.
    caption : str
        Below it; by default the same.
    """
    width, height = (round(_SCALE * x) for x in figure.get_size_inches())
    data = base64.b64encode(render_png(figure)).decode()
    image = f'<img src="data:image/png;base64,{data}" width="{width}" height="{height}" alt="{escape(alt)}">'
    lines = ["<figure>", '<div class="frame">', image, overlay(figure, width, height), "</div>"]
    return Html("\n".join([*filter(None, lines), f"<figcaption>{escape(caption or alt)}</figcaption>", "</figure>"]))


# --- what all pages end with ----------------------------------------------------------------------


def closing_sections(command: str) -> dict[str, list[Html]]:
    """Return the last sections: the command that makes the page again, and the versions of what made it."""
    return {"How to repeat it": [code(command)], "Versions": [facts(list_versions())]}


def list_versions(packages: Sequence[str] = _PACKAGES) -> dict[str, str]:
    """Return the versions of the package, and of others that figures depend on."""
    from dpfast._support.version import __version__

    python = f"{platform.python_version()} ({sys.implementation.name})"
    return {
        "dpfast": __version__,
        "Python": python,
        **{name: importlib.metadata.version(name) for name in packages},
        "platform": f"{platform.system()} {platform.machine()}",
    }
