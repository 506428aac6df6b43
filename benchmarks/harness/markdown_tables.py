"""Tables in Markdown, numbers in three digits, and blocks of pages between markers."""

import re


def shown(value):
    """Three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def markdown(header, lines):
    """A table, or nothing if it has no lines."""
    if not lines:
        return ""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, ["---"] * len(header), *lines])


def replace_block(text, name, block):
    """A page with another block between the markers of this name."""
    start, end = f"<!-- {name} -->", f"<!-- end {name} -->"
    replaced, n = re.subn(rf"({start}\n).*?({end})", lambda m: f"{m[1]}{block}\n{m[2]}", text, flags=re.S)
    if n != 1:
        raise ValueError(f"the page must have one block between {start} and {end}")
    return replaced


def write_blocks(page, blocks):
    """Put blocks, by the names of their markers, into a page."""
    text = page.read_text(encoding="utf-8")
    for name, block in blocks.items():
        text = replace_block(text, name, block)
    page.write_text(text, encoding="utf-8")
