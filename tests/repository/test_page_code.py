"""What runs the code of pages finds what does not run, and what is shown otherwise."""

import pytest

from benchmarks.site import page_code

PAGE = """# A page

```python
x = 2
```

```pycon
>>> x, 0.30001
(2, 0.3)
>>> y = 3

```

```python
from pathlib import Path

Path("private/file").write_text(str(x + y))
```
"""


def problems(folder, monkeypatch, text):
    (folder / "page.md").write_text(text, encoding="utf-8")
    (folder / "private").mkdir(exist_ok=True)
    monkeypatch.chdir(folder)
    return page_code.run(folder / "page.md")


def test_blocks_run_one_after_the_other(tmp_path, monkeypatch):
    assert not problems(tmp_path, monkeypatch, PAGE)
    assert (tmp_path / "private/file").read_text() == "5"


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("x = 2", "x = 4", "block 2:"),
        ("(2, 0.3)", "(2, 0.31)", "block 2:"),
        ("x = 2", "x = z", "block 1: NameError: name 'z' is not defined"),
        ("str(x + y)", "x + y", "block 3: TypeError"),
        ("```python\nx = 2", "<!-- run by tests/no_such.py -->\n```python\nx = 2", "does not name the page"),
        (
            "```python\nx = 2",
            "<!-- run by tests/repository/test_kinds.py -->\n<!-- name -->\n```python\nx = 2",
            "does not name the page",
        ),
    ],
)
def test_what_does_not_hold_is_said(tmp_path, monkeypatch, right, wrong, words):
    assert right in PAGE
    assert words in "\n".join(problems(tmp_path, monkeypatch, PAGE.replace(right, wrong)))


def test_blocks_that_are_left_out_say_so(tmp_path, monkeypatch):
    text = "<!-- needs a server -->\n```python\n1 / 0\n```\n"
    assert not problems(tmp_path, monkeypatch, text)
    assert problems(tmp_path, monkeypatch, text.replace("needs", "wants"))


@pytest.mark.parametrize(
    ("text", "code"), [("```python\nx = 1\n```\n", None), ("```python\n1 / 0\n```\n", "ZeroDivisionError")]
)
def test_the_program_fails_where_a_page_does_and_nowhere_else(tmp_path, monkeypatch, text, code):
    (tmp_path / "page.md").write_text(text)
    monkeypatch.setattr("sys.argv", ["page_code", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        page_code.main()
    said = stopped.value.code  # what is not None is a failure
    assert said is None if code is None else code in said
