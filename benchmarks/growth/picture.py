"""A picture of what grows: time and memory over samples, streams, order and taps.

python -m benchmarks.growth.picture docs/measurements/performance/growth.json docs/measurements/performance
"""

import json
import sys
from pathlib import Path

from dpfast.reports.matplotlib_helpers import (
    PAGE,
    SMALL,
    label_axes,
    make_figure,
    plot_lines,
    render_png,
    set_logarithmic,
)
from dpfast.reports.mechanism_styles import GREY, Style

LABELS = {
    "samples": "samples of a call",
    "streams": "streams of a step",
    "order": "order of the filter",
    "taps": "taps of the filter",
}
TICKS = {
    "samples": {10**3: "10³", 10**5: "10⁵", 10**7: "10⁷", 10**9: "10⁹"},
    "streams": {1: "1", 10**2: "10²", 10**4: "10⁴", 10**6: "10⁶"},
    "order": {1: "1", 4: "4", 16: "16", 64: "64"},
    "taps": {1: "1", 16: "16", 256: "256", 4096: "4096"},
}
OURS = [Style("#0072B2", marker="o"), Style("#009E73", marker="s")]
SCIPY = [Style(GREY, line="--", marker="."), Style(GREY, line=":", marker="x")]
LEAST = 0.001  # MB: what is less is nothing


def is_peer(name):
    return name.startswith(("sosfilt", "lfilter", "oaconvolve"))


def draw(rows):
    """A column for what grows; above the time of a sample, below the memory of a call."""
    drawn, axes = make_figure(2, len(LABELS), height=2.2, width=1.6 * PAGE, sharex="col")
    for column, (group, label) in enumerate(LABELS.items()):
        here = [x for x in rows if x["group"] == group]
        looks = choose(dict.fromkeys(x["name"] for x in here))
        for ax, figure, least in ((axes[0, column], "ns", 0), (axes[1, column], "MB", LEAST)):
            for name, look in looks.items():
                points = [(x["n"], max(x[figure], least)) for x in here if x["name"] == name]
                plot_lines(ax, [x for x, _ in points], {name: [y for _, y in points]}, {name: look}, markersize=3)
            set_logarithmic(ax, "xy")
            ax.set_xticks(list(TICKS[group]), list(TICKS[group].values()))
        axes[0, column].legend(fontsize=SMALL, frameon=False)
        label_axes(axes[1, column], x=label)
    label_axes(axes[0, 0], y="ns a sample")
    label_axes(axes[1, 0], y="MB beside the arrays")
    return drawn


def choose(names):
    """Colours for what is ours, grey for scipy."""
    ours, scipy = iter(OURS), iter(SCIPY)
    return {name: next(scipy if is_peer(name) else ours) for name in names}


def main(arguments):
    rows, folder = json.loads(Path(arguments[0]).read_text(encoding="utf-8")), Path(arguments[1])
    (folder / "growth.png").write_bytes(render_png(draw(rows)))


if __name__ == "__main__":
    main(sys.argv[1:])
