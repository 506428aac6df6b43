"""Pictures of the comparison with peers: errors over time, and relative to the least.

python -m benchmarks.peers.pictures docs/measurements/compare/compare.json FOLDER
"""

import json
import sys
from pathlib import Path

import numpy as np

from benchmarks.peers.comparison_table import BEHIND, CONSTANT, CURVES_OF, by_level, by_target, error, is_whole
from dpfast.reports.matplotlib_helpers import (
    PAGE,
    SMALL,
    add_legend,
    label_axes,
    make_figure,
    plot_lines,
    render_png,
    set_logarithmic,
)
from dpfast.reports.mechanism_styles import GREY, Style, choose_styles

PEERS = {"jax-privacy": Style("#D55E00", marker="s"), "opendp": Style("#0072B2", marker="^")}
KINDS = {  # of dots: which rows, what they are called, their style
    "dpfast, nothing known of u": (lambda x: x["by"] == "dpfast" and not x["needs"], Style("#009E73", marker="o")),
    "dpfast, model of u": (
        lambda x: x["by"] == "dpfast" and x["needs"] == "model" and x["mechanism"] != CONSTANT,
        Style("#56B4E9", marker="D"),
    ),
    "dpfast, model and later steps": (
        lambda x: x["by"] == "dpfast" and x["needs"].startswith("model, "),
        Style("#CC79A7", marker="v"),
    ),
    "literature, in dpfast": (lambda x: x["by"] == "literature, in dpfast", Style(GREY, marker="x")),
    **{by: (lambda x, by=by: x["by"] == by, style) for by, style in PEERS.items()},
    "peers' noise behind our receiver": (lambda x: x["by"] in BEHIND, Style("#E69F00", marker="P")),
    "constant": (lambda x: x["mechanism"] == CONSTANT, Style("#000000", marker="|")),
}
MOST = 30  # times the least error, beyond which dots are left out
ROW = 0.5  # inches


def draw_steps(data):
    """RMSE of every step of the running sum."""
    curves = {f"{x['by']}: {x['mechanism']}": x["rmse"] for x in data["curves"]}
    looks = choose_styles(dict.fromkeys(curves))
    drawn, axes = make_figure(1, 1, height=3.2, width=PAGE)
    ax = axes[0, 0]
    for name, y in curves.items():
        plot_lines(ax, np.arange(1, len(y) + 1), {name: y}, {name: looks[name]._replace(marker="", width=1.0)})
    set_logarithmic(ax, "x")
    label_axes(ax, x="step", y=f"RMSE of the {CURVES_OF}")
    add_legend(drawn, ax, columns=2)
    return drawn


def draw_dots(data):
    """Every mechanism that runs over the whole horizon, relative to the least error of its target."""
    levels = by_level(data)
    n_targets = max(len(by_target(rows)) for rows in levels.values())
    drawn, axes = make_figure(len(levels), 1, height=ROW * n_targets + 0.4, width=PAGE)
    for ax, (level, rows) in zip(axes[:, 0], levels.items(), strict=True):
        above = draw_targets(ax, by_target(rows))
        more = f"; {above} further ones are above {MOST}" if above else ""
        label_axes(ax, x=f"RMSE, relative to the least of the target; {level}{more}")
        ax.tick_params(labelsize=SMALL)
    add_legend(drawn, axes[0, 0])
    return drawn


def draw_targets(ax, targets):
    """A line of dots for each target; how many were left out."""
    above = 0
    for y, rows in enumerate(targets.values()):
        run = [x for x in rows if not x["missing"] and is_whole(x)]
        first = min(error(x) for x in run)
        for i, (kind, (belongs, look)) in enumerate(KINDS.items()):
            ratios = [error(x) / first for x in run if belongs(x)]
            above += sum(x > MOST for x in ratios)
            near = [x for x in ratios if x <= MOST]
            place = y + 0.12 * (i - (len(KINDS) - 1) / 2)
            label = kind if y == 0 else None
            dots = {"color": look.colour, "marker": look.marker, "markersize": 4, "linestyle": ""}
            ax.plot(near, [place] * len(near), label=label, **dots)
    ax.set_ylim(len(targets) - 0.5, -0.5)
    ax.set_yticks(range(len(targets)), list(targets), parse_math=False)
    set_logarithmic(ax, "x")
    return above


def main(path, folder):
    data = json.loads(Path(path).read_text(encoding="utf-8"))
    for name, draw in {"steps": draw_steps, "dots": draw_dots}.items():
        Path(folder, f"{name}.png").write_bytes(render_png(draw(data)))


if __name__ == "__main__":
    main(*sys.argv[1:])
