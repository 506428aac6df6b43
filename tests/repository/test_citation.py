"""How dpfast is cited: what a tool that reads CITATION.cff makes of it has a title, a year and a version."""

import datetime
import re
import tomllib
from pathlib import Path

import yaml

import dpfast as dp

ROOT = Path(__file__).parents[2]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_citation_is_of_this_version():
    assert CITATION["version"] == dp.__version__
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION["keywords"] == PROJECT["keywords"]
    assert [x["name"] for x in CITATION["authors"]] == [x["name"] for x in PROJECT["authors"]]


def test_it_has_what_an_entry_of_a_bibliography_needs():
    assert {"cff-version", "message", "type", "title", "abstract", "authors", "version", "license"} <= set(CITATION)
    assert isinstance(CITATION["date-released"], datetime.date)
    dated = re.search(
        rf"^## \[{re.escape(CITATION['version'])}\] - (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M
    )
    assert dated[1] in ("Unreleased", str(CITATION["date-released"]))
    (paper,) = CITATION["references"]
    assert (paper["year"], paper["doi"]) == (2013, "10.1109/CDC.2013.6760417")
