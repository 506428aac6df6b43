"""Pictures of objects, which `reports` draws: the one import from below that goes up, at the first picture."""

from __future__ import annotations

import base64
import importlib
from typing import Any

from dpfast._support.errors import MissingExtraError
from dpfast._support.html_fragments import Html, escape, paragraphs


def draw(x: Any, kind: str | None, ax: Any, **options: Any) -> Any:
    """Draw a picture of an object into matplotlib axes, or into new ones, and return them.

    Parameters
    ----------
    x : object
        Of a class that has a method ``plot``.
    kind : str or None
        Which of its pictures; None for the first one.
    ax : matplotlib.axes.Axes or None
    **options
        What the picture takes besides.
    """
    return importlib.import_module("dpfast.reports.objects.object_plots").draw_kind(x, kind, ax, **options)


def small_picture(x: Any) -> Html:
    """Draw what a notebook shows of an object; without matplotlib, say how to get a picture."""
    try:
        content, words = importlib.import_module("dpfast.reports.objects.object_plots").render_small(x)
    except MissingExtraError as error:
        return paragraphs(f"No picture: {error}")
    data = base64.b64encode(content).decode()
    return Html(f'<img alt="{escape(words)}" src="data:image/png;base64,{data}">') if content else Html("")
