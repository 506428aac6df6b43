"""Adapting to unknown statistics: what a receiver learns from v alone, and what it never costs.

    python examples/adapting.py [--out DIR]

The paper's example, designed for a wrong model of its input, at lag 5. `dp.adapt` sees nothing but v; its receiver is
compared with the one that was told the statistics, behind the same prefilter and noise. Where the input is none of the
kind that is fitted, the errors are those on the stream itself.
"""

import argparse
import math
from pathlib import Path

import numpy as np

import dpfast as dp
from dpfast._support.output_folder import OutputFolder
from dpfast._support.text_table import Table
from dpfast.reports.matplotlib_helpers import label_axes, make_figure, render_png, set_logarithmic
from dpfast.reports.mechanism_styles import FAMILIES, GREY

TARGET = dp.Filter([1, 0.995], [1, -0.995])
PRIVACY = dp.Privacy(epsilon=math.log(3), delta=0.05)
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
GUESSES = {
    "white, 4 × the variance": dp.ARMA([1.0]),
    "white, right variance": dp.ARMA([0.5]),
    "the truth": CHAIN,
}
LAG = 5
LENGTHS = (1000, 3000, 10_000, 30_000)
SEEDS = range(24)
N_UNFITTED, N_SAMPLES = 12, 10_000
TICKS = (0, 0.1, 0.3, 1, 3, 10)


def known(mechanism):
    """The receiver that was told the statistics, behind the same prefilter."""
    return dp.lmmse(TARGET, PRIVACY, CHAIN, lag=LAG, prefilter=mechanism.prefilter)


def excess(mechanism, best):
    """How far the RMSE on the chain is above that of the receiver that was told, exactly; in percent."""
    return 100 * (math.sqrt(mechanism.predict(CHAIN) / best.predict(CHAIN)) - 1)


def learning():
    """Excess of the RMSE over the length of v: of the given receiver, and of the adapted one for every seed."""
    rows = []
    for name, guess in GUESSES.items():
        given = dp.lmmse(TARGET, PRIVACY, guess, lag=LAG)
        best = known(given)
        for n in LENGTHS:
            u = CHAIN.sample(len(SEEDS), n, seed=n)
            found = [dp.adapt(given, given.simulate(u[i], seed=i).privatized) for i in SEEDS]
            worse = np.array([excess(x.mechanism, best) for x in found])
            share = sum(x.taken for x in found) / len(found)
            figures = excess(given, best), float(np.median(worse)), float(worse.max()), 100 * share
            rows.append((name, n, *figures))
    columns = ("designed for", "samples of v", "given, % above", "adapted: median", "largest", "taken, %")
    return Table(columns, tuple(rows))


def unfitted():
    """Inputs that no low-order autoregression describes: RMSE on the stream, adapted over given."""
    time = np.arange(N_SAMPLES)
    inputs = {
        "a day of 24 samples": lambda i: (
            0.25 * np.sin(2 * math.pi * (time + i) / 24) + dp.ARMA([0.3]).sample(1, N_SAMPLES, seed=i)[0]
        ),
        "statistics that change half-way": lambda i: np.concatenate(
            [
                dp.ARMA([0.5]).sample(1, N_SAMPLES // 2, seed=i)[0],
                dp.ARMA([0.05], [1, -0.99]).sample(1, N_SAMPLES // 2, seed=1000 + i)[0],
            ]
        ),
        "a resonance": lambda i: dp.ARMA([0.1], [1, -1.6, 0.9]).sample(1, N_SAMPLES, seed=i)[0],
    }
    rows = []
    for name, draw in inputs.items():
        for label, guess in list(GUESSES.items())[:2]:
            given, ratios, taken = dp.lmmse(TARGET, PRIVACY, guess, lag=LAG), [], 0
            for i in range(N_UNFITTED):
                u = draw(i)
                paths = given.simulate(u, seed=i)
                found = dp.adapt(given, paths.privatized)
                truth = TARGET.filter(u).y[: N_SAMPLES - LAG]
                errors = [
                    np.sqrt(np.mean((x[LAG:] - truth) ** 2)) for x in (paths.estimate, found.estimate(paths.privatized))
                ]
                ratios.append(100 * (errors[1] / errors[0] - 1))
                taken += found.taken
            figures = float(np.median(ratios)), float(max(ratios)), 100 * taken / N_UNFITTED
            rows.append((name, label, *figures))
    columns = ("input", "designed for", "adapted, % above given: median", "largest", "taken, %")
    return Table(columns, tuple(rows))


def picture(table):
    """Excess over the length of v."""
    drawn, axes = make_figure(1, len(GUESSES), height=2.4, sharex=True, sharey=True)
    style = FAMILIES["lmmse"]
    for ax, name in zip(axes[0], GUESSES, strict=True):
        rows = np.array([row[1:5] for row in table.rows if row[0] == name], dtype=float)
        ax.plot(rows[:, 0], rows[:, 1], color=GREY, linestyle="--", label="as given")
        ax.plot(rows[:, 0], rows[:, 2], color=style.colour, marker=style.marker, markersize=4, label="adapted: median")
        ax.fill_between(rows[:, 0], rows[:, 2], rows[:, 3], color=style.colour, alpha=0.2, label="up to the largest")
        set_logarithmic(ax, "x")
        ax.set_yscale("symlog", linthresh=0.1, linscale=0.3)
        ax.set_yticks(TICKS, [f"{x:g}" for x in TICKS])
        ax.set_ylim(0, TICKS[-1])
        label_axes(ax, name, "samples of v")
    label_axes(axes[0, 0], y="RMSE, % above that of the\nreceiver that was told")
    axes[0, -1].legend(fontsize=7, frameon=False)
    drawn.suptitle("The paper's example at lag 5, designed for another input", fontsize=9)
    return drawn


def main():
    parser = argparse.ArgumentParser(description="Adapting to unknown statistics")
    parser.add_argument("--out", default="adapting", help="folder for the files (%(default)s)")
    folder = OutputFolder(Path(parser.parse_args().out))
    fitted, others = learning(), unfitted()
    text = f"{fitted.markdown()}\n\n{others.markdown()}\n"
    folder.add("adapting.md", f"# Adapting to unknown statistics\n\n{text}")
    folder.add("adapting.png", render_png(picture(fitted)))
    print(f"{fitted.text()}\n\n{others.text()}\n")
    print("Written:", *folder.write())


if __name__ == "__main__":
    main()
