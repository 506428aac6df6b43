"""Values of estimates for those who point at them: circles without ink over the drawing of a group.

Circles are placed in parts of the width, as curves are stretched to that of the screen, and stay round. Each has its
values as a title, which browsers show by themselves; the script of pages shows it at once, and by arrow keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dpfast._support.html_fragments import Html, escape
from dpfast.reports.page_script import HOVERED

_RADIUS = 7  # pixels around a point that belong to it
_MOST, _MOST_OF_GROUP = 1_500, 100  # points of a page, and of a group, from all along it
StepNames = Callable[[int], str]


def choose_columns(n_columns: int, n_groups: int) -> list[int]:
    """Choose the columns of a group that have a point: all, or so many from all along it.

    Examples
    --------
    >>> choose_columns(5, 3), choose_columns(600, 1)[:3]
    ([0, 1, 2, 3, 4], [0, 6, 12])
    """
    most = max(2, min(_MOST_OF_GROUP, _MOST // n_groups))
    kept: list[int] = np.unique(np.linspace(0, n_columns - 1, min(most, n_columns)).round().astype(int)).tolist()
    return kept


def say_values(when: str, low: float, high: float, half_width: float | None) -> str:
    """Say what was published at a point: one value with its band, or the least and the largest of a stretch.

    Examples
    --------
    >>> say_values("step 7", 2.0, 2.0, 0.5), say_values("from step 7", 1.0, 2.5, None)
    ('step 7: 2 ± 0.5', 'from step 7: 1 to 2.5')
    """
    values = f"{low:.5g}" if low == high else f"{low:.5g} to {high:.5g}"
    return f"{when}: {values}" + ("" if half_width is None else f" ± {half_width:.3g}")


def lay_points(points: Sequence[tuple[float, float, str]], height: int, of: str) -> Html:
    """Lay points over a drawing of a group.

    Parameters
    ----------
    points : sequence of tuple
        Of each point its place from the left, as a part of the width, from the top, in pixels, and what is said of it.
    height : int
        Of the drawing, in pixels.
    of : str
        Of whom the values are.
    """
    circles = "\n".join(
        f'<circle cx="{100 * x:.2f}%" cy="{y:.0f}" r="{_RADIUS}"><title>{escape(text)}</title></circle>'
        for x, y, text in points
    )
    heard = escape(f"{len(points)} values of {of}, by arrow keys")
    return Html(
        f'<svg {HOVERED} width="100%" height="{height}" role="img" aria-label="{heard}">\n<g>{circles}</g>\n</svg>'
    )
