"""A picture of stores over streams and over steps, and their tables in docs/measurements/performance.md.

python -m benchmarks.growth.stores_picture docs/measurements/performance/stores.json docs/measurements/performance
"""

import json
import sys
from pathlib import Path

from benchmarks.growth.picture import OURS
from benchmarks.growth.stores import KEPT
from benchmarks.harness.markdown_tables import write_blocks
from benchmarks.harness.stores_table import tables
from dpfast.reports.matplotlib_helpers import (
    PAGE,
    SMALL,
    label_axes,
    make_figure,
    plot_lines,
    render_png,
    set_logarithmic,
)

TICKS = {1: "1", 10**2: "10²", 10**4: "10⁴", 10**6: "10⁶"}
OVER_STREAMS = {  # what is drawn, of a row
    "ns a value": lambda x: 1e9 * x["processor"] / x["n"],
    "bytes of a value": lambda x: x["bytes"],
    "MB": lambda x: x["MB"],
    "s to open, by the clock": lambda x: x["opening"],
}
OVER_STEPS = {"µs a push": lambda x: x["push"], "ms to open": lambda x: 1e3 * x["opening"]}


def draw(rows):
    """Four panels over streams, two over steps."""
    drawn, axes = make_figure(2, 3, height=2.2, width=1.4 * PAGE)
    panels = iter(axes.flat)
    streams = [x for x in rows if x["group"] == "streams"]
    for (what, value), ax in zip(OVER_STREAMS.items(), panels, strict=False):
        plot_lines(ax, [x["n"] for x in streams], {what: [value(x) for x in streams]}, {what: OURS[0]}, markersize=3)
        dress(ax, "streams", what)
    for (what, value), ax in zip(OVER_STEPS.items(), list(axes.flat)[len(OVER_STREAMS) :], strict=True):
        for kept, look in zip(KEPT, OURS, strict=True):
            here = [x for x in rows if x.get("kept") == kept]
            name = f"{kept} kept"
            plot_lines(ax, [x["n"] for x in here], {name: [value(x) for x in here]}, {name: look}, markersize=3)
        dress(ax, "steps of one stream", what)
        ax.legend(fontsize=SMALL, frameon=False)
    return drawn


def dress(ax, over, what):
    """Logarithmic axes that begin at a round number, so that what is flat looks flat."""
    set_logarithmic(ax, "xy")
    low, high = ax.get_ylim()
    ax.set_ylim(low / 2, high * 2)
    ax.set_xticks(list(TICKS), list(TICKS.values()))
    label_axes(ax, x=over, y=what)


def main(arguments):
    rows, folder = json.loads(Path(arguments[0]).read_text(encoding="utf-8")), Path(arguments[1])
    (folder / "stores.png").write_bytes(render_png(draw(rows)))
    write_blocks(folder.parent / "performance.md", {"stores": tables(rows)})


if __name__ == "__main__":
    main(sys.argv[1:])
