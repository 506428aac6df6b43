"""Links between pages, and pages that the code names, lead to files and headings that exist."""

import os
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
MADE = ("docs/pages/", "docs/reference/api", "docs/reference/commands", "docs/reference/objects/")  # by the build
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(r"(?<![\w/.-])docs/[\w./-]+\.(?:md|json|png)")


def without_code(text):
    return re.sub(r"^( *)(```+|~~~+).*?^\1\2 *$", "", text, flags=re.DOTALL | re.MULTILINE)


def slug(heading):
    """The anchor of a heading, as repositories' sites and MyST make it."""
    shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")


def anchors(text):
    """A heading that stands there again has a number behind its anchor."""
    seen, found = Counter(), set()
    for heading in re.findall(r"^#{1,6} +(.+?)#* *$", without_code(text), re.MULTILINE):
        name = slug(heading)
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found


def dead_links(page, text, root):
    """Relative links of a page that lead to no file in the repository, or to no heading of another page."""
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", without_code(text))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = Path(os.path.normpath(page.parent / path)) if path else page
        there = target.exists() and target.is_relative_to(root)
        if not there or (anchor and anchor not in anchors(target.read_text(encoding="utf-8"))):
            yield link


def test_links_between_pages_lead_to_files_and_headings():
    pages = {page: page.read_text(encoding="utf-8") for page in PAGES}
    assert sum(len(LINK.findall(text)) for text in pages.values()) > 150
    dead = {str(page.relative_to(ROOT)): list(dead_links(page, text, ROOT)) for page, text in pages.items()}
    assert {page: links for page, links in dead.items() if links} == {}


def test_pages_that_the_code_names_are_there():
    files = [*(x for y in ("dpfast", "examples", "benchmarks") for x in (ROOT / y).rglob("*.py"))]
    files += [ROOT / "noxfile.py", ROOT / "CITATION.cff"]
    named = {(str(x.relative_to(ROOT)), name) for x in files for name in NAMED.findall(x.read_text(encoding="utf-8"))}
    assert len(named) > 15
    assert {(x, name) for x, name in named if not (ROOT / name).is_file() and not name.startswith(MADE)} == set()


@pytest.mark.parametrize(
    ("link", "is_dead"),
    [
        ("b.md", False),
        ("b.md#one-two-", False),
        ("b.md#over-ε-and-δ-1", False),
        ("#here", False),
        ("https://a.org/c.md", False),
        ("c.md", True),
        ("b.md#not-a-heading", True),
        ("b.md#no", True),
        ("../away.md", True),
    ],
)
def test_dead_links_are_found(tmp_path, link, is_dead):
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "away.md").write_text("# Away\n")
    other = "# `One` two?!-\n\n## Over ε and δ\n\n```sh\n# not a heading\n```\n\n## Over ε and δ\n"
    (root / "b.md").write_text(other, encoding="utf-8")
    page, text = root / "a.md", f"# Here\n\n```\n[no](none.md)\n```\n\n`[no](none.md)` [x]({link})\n"
    page.write_text(text, encoding="utf-8")
    assert list(dead_links(page, text, root)) == [link] * is_dead


def listed_pages():
    """What lists of pages have in them, without what the build makes."""
    for page in (ROOT / "docs").rglob("*.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for entry in block.split("\n\n", 1)[1].split():
                found = os.path.relpath(page.parent / entry, ROOT)
                if not found.startswith(MADE):
                    yield f"{found}.md"


def test_tables_of_two_columns_have_two_heads():
    heads = re.compile(r"^(\|[^|\n]+\|[^|\n]*\|)\n\|[ :-]+\|[ :-]+\|$", re.MULTILINE)
    found = [(x.name, y) for x in PAGES for y in heads.findall(without_code(x.read_text(encoding="utf-8")))]
    assert len(found) > 30
    assert [(name, head) for name, head in found if not head.split("|")[2].strip()] == []


def test_pages_lie_in_the_folder_of_their_kind():
    assert [x.name for x in (ROOT / "docs").glob("*.md")] == ["index.md"]


def test_every_page_is_in_one_list_of_pages():
    """The site is not built otherwise."""
    pages = {str(x.relative_to(ROOT)) for x in (ROOT / "docs").rglob("*.md")} - {"docs/index.md"}
    assert Counter(listed_pages()) == Counter({x for x in pages if not x.startswith(MADE)})


SWALLOWED = re.compile(r"(?<=[\w)⁻¹½′])(?<!\\)\*(?=[\w(])|(?<=′)_")  # which begins something in italics in a formula


def swallowed_marks(text):
    """Stars and underscores of formulas, outside of code, that a page would take for the beginning of italics."""
    prose = re.sub(r"^ {4}.*$", "", without_code(text), flags=re.MULTILINE)
    return SWALLOWED.findall(re.sub(r"`[^`]*`", "", prose))


def test_formulas_keep_their_stars():
    """On the site G*G K*Y was G K Y with a part in italics: the adjoint of G was gone."""
    assert [x.name for x in PAGES if swallowed_marks(x.read_text(encoding="utf-8"))] == []
    assert swallowed_marks("P = B*G*G B, F(G*G)") == ["*"] * 3
    assert swallowed_marks("a′_t, of `G*G`, a G\\*G, *all* of K* and\n\n    G*G\n") == ["_"]
