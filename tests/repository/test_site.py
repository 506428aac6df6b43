"""What builds the site and checks it: links, docstrings as they are read there, a page for every public object."""

import ast
import importlib.util
import re
import sys
from pathlib import Path

import pytest

import dpfast as dp
from benchmarks.site import links

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted([*(ROOT / "docs/tutorials").glob("*.py"), *(ROOT / "docs/gallery").glob("*.py")])


def extension(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs/_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_object_has_a_page_and_every_command_its_options():
    pages = extension("reference_pages")
    listed = re.findall(r"^   (\w+)$", pages.api_page(), re.MULTILINE)
    assert sorted(listed) == dp.__all__
    commands = pages.commands_page()
    for command in ("design", "evaluate", "study", "release", "ledger", "audit", "show", "example"):
        assert f"## dpfast {command}\n\n```text\nusage: dpfast {command} [-h]" in commands


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("|G|² ∝ |F|", r"\|G\|² ∝ \|F\|"),
        ("*Privacy.* G* and `a | b*`, ``**c``", r"*Privacy.* G\* and `a | b*`, ``**c``"),
        ("**options", r"\*\*options"),
        ("V_* is least", r"V\_\* is least"),
        ("a_name of `b_`", "a_name of `b_`"),
        ("    F. Over a horizon", r"    F\. Over a horizon"),
        ("F.", r"F\."),
        ("e.g. F.x", "e.g. F.x"),
        (r":math:`\\sum_k |g_k|` is", r"``\\sum_k |g_k|`` is"),
    ],
)
def test_lines_of_docstrings_are_read_as_they_are_meant(line, shown):
    assert extension("docstring_text").escape_line(line) == shown


def test_models_are_shown_and_code_is_left_alone():
    lines = [
        "Sum.",
        "",
        ":math:`|v|` and more.",
        "",
        "Parameters",
        "----------",
        "a : |F|",
        "",
        "Model",
        "-----",
        "y = |F| u::",
        "",
        "    |x|",
        "",
    ]
    lines += ["Examples", "--------", ">>> |a|"]
    extension("docstring_text").process(None, "function", "f", None, None, lines)
    assert lines[2:6] == ["``|v|`` and more.", "", ".. rubric:: Model", ""]
    assert lines[6:10] == [r"y = \|F\| u::", "", "    |x|", ""]
    assert lines.index("Parameters") > 6
    assert lines[-1] == ">>> |a|"
    assert r"a : \|F\|" in lines


def test_dead_links_and_what_is_loaded_from_elsewhere_are_found(tmp_path):
    first = '<p id="x"><a href="b.html#y">b</a><a href="#x">x</a><img src="c.png"></p>'
    second = '<script src="https://example.org/x.js"></script><a href="https://a.org">a</a>'
    for name, text in {"a": first, "b": second}.items():
        (tmp_path / f"{name}.html").write_text(text, "utf-8")
    pages, problems = links.check(tmp_path.resolve())
    assert len(pages) == 2
    assert problems == [
        "a.html: no anchor b.html#y",
        "a.html: no c.png",
        "b.html: loads https://example.org/x.js from elsewhere",
    ]
    assert links.main(tmp_path) == 1
    (tmp_path / "b.html").write_text(f'<h1 id="y">{tmp_path.resolve().parent}/source/a.py</h1>', "utf-8")
    _, problems = links.check(tmp_path.resolve())
    assert problems[1:] == ["b.html: names the folder in which it was built"]
    (tmp_path / "b.html").write_text('<h1 id="y">y</h1>', "utf-8")
    (tmp_path / "c.png").write_bytes(b"")
    assert links.main(tmp_path) == 0


def test_there_are_three_tutorials_and_twelve_pictures_with_a_title_and_a_sentence():
    assert sorted(x.parent.name for x in PROGRAMS) == ["gallery"] * 12 + ["tutorials"] * 3
    for path in PROGRAMS:
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        title, line, _, words = text.split("\n", 3)
        assert (len(line), set(line)) == (len(title), {"="}), path
        assert len(words.split()) >= 8, path


@pytest.mark.slow_nojit
@pytest.mark.parametrize("name", ["plot_11_an_attack", "plot_01_the_idea"])
def test_pages_of_the_gallery_run(name, monkeypatch, capsys):
    import matplotlib.pyplot as plt

    monkeypatch.chdir(ROOT / "docs/gallery")
    text = (ROOT / f"docs/gallery/{name}.py").read_text(encoding="utf-8")
    exec(compile(text, name, "exec"), {})  # what is executed is in this repository
    assert plt.get_fignums()
    plt.close("all")
    assert capsys.readouterr().out
    assert "dpfast" in sys.modules
