"""What must hold of every page: whole, nothing from elsewhere, readable by ear."""

import functools
import io
from html.parser import HTMLParser

import pytest

from dpfast.reports import html_page
from dpfast.reports.matplotlib_helpers import render_png

VOID = {"meta", "img", "br", "hr", "link", "input"}


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
    """The page, if it is balanced, asks for nothing, runs nothing, and has words for pictures and tables."""
    page = Page(text)
    assert text.startswith("<!doctype html>")
    assert page.open == []
    assert not {"script", "link", "iframe", "object", "base", "form"} & {tag for tag, _ in page.tags}
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
