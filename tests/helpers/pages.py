"""What must hold of every page: whole, nothing from elsewhere, readable by ear."""

import base64
import functools
import hashlib
import io
import re
from html.parser import HTMLParser

import pytest

from dpfast.reports import html_page, page_script
from dpfast.reports.matplotlib_helpers import render_png

VOID = {"meta", "img", "br", "hr", "link", "input"}
NOTHING = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


class Page(HTMLParser):
    """Elements that are opened and closed, the text, and what is asked for."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.headings, self.text = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in {"style", "script"}:
            return
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)
        self.text.append(data)

    def all(self, tag):
        """Attributes of all elements of this name."""
        return [attributes for name, attributes in self.tags if name == tag]


def checked(text):
    """The page, if it is balanced, asks for nothing, runs at most one known script, and names pictures and tables."""
    page = Page(text)
    assert text.startswith("<!doctype html>")
    assert page.open == []
    check_scripts(page, text)
    assert not {"link", "iframe", "object", "base", "form"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "srcset", "action", "style"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/png;base64,"))
    (style,) = text.split("<style>")[1:]
    assert "url(" not in style.split("</style>")[0]
    assert "@import" not in style.split("</style>")[0]
    assert all(x["alt"] for x in page.all("img"))
    assert all(x["scope"] in {"col", "row"} for x in page.all("th"))
    anchors = [x["id"] for _, x in page.tags if "id" in x]
    assert len(anchors) == len(set(anchors))
    assert {x["href"][1:] for x in page.all("a")} <= set(anchors)
    return page


def check_scripts(page, text):
    """No script, or the constant one, without data, which the policy names by its hash; never one that is not used."""
    (policy,) = [x["content"] for x in page.all("meta") if x.get("http-equiv") == "Content-Security-Policy"]
    used = any(x.get("class") in {"sortable", "points"} for _, x in page.tags)
    scripts = re.findall("<script([^>]*)>(.*?)</script>", text, re.DOTALL | re.IGNORECASE)
    assert len(scripts) == len(page.all("script")) == used
    if not used:
        assert policy == NOTHING
        return
    assert scripts == [("", page_script.SCRIPT)]
    digest = base64.b64encode(hashlib.sha256(scripts[0][1].encode()).digest()).decode()
    assert policy == f"{NOTHING}; script-src 'sha256-{digest}'"


def render_coarsely(figure):
    """The PNG of a figure without the search for room for all texts, which takes longer than everything else."""
    figure.set_layout_engine("none")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=20)
    return buffer.getvalue()


RENDERINGS = [pytest.param(render_coarsely, id="coarse"), pytest.param(render_png, id="whole", marks=pytest.mark.long)]


def render_once(patch, *modules, render=render_coarsely):
    """A figure of these modules is rendered once, for its file and for the page."""
    once = functools.cache(render)
    for module in (html_page, *modules):
        patch.setattr(module, "render_png", once)
