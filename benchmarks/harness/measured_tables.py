"""The tables of the paper's example and of the historical log in docs/measurements, from what two commands wrote.

python -m benchmarks.harness.measured_tables EXAMPLE_FOLDER EVALUATION_FOLDER
"""

import csv
import sys
from pathlib import Path

from benchmarks.harness.markdown_tables import markdown, write_blocks
from benchmarks.harness.results_table import ROOT
from dpfast._support.text_table import Table

NOTES = """\
ᵃ assumes error-free decisions. Ideal and predicted errors are for the paper's κ. Intervals are of 95 %; that of input
perturbation is wide because its error changes slowly. *Explained* (κ of the paper, exact κ) is 1 − simulated
MSE/variance of the true output, the latter under the model; the *constant* publishes the mean, at no cost of privacy.
The optimum's ideal error is also the lower bound for its lag, to within 1e-7. LMMSE at a finite lag is the paper's
two-step design, which a prefilter of low order may beat."""


def read(path):
    """Rows of a table, by column; lines with a hash are its header."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def shown(text):
    """A number as the package's tables show it."""
    return Table(("",), ((float(text) if text else None,),)).cells()[0][0]


def simulated(row):
    return f"{shown(row['simulated'])} ({shown(row['low'])} … {shown(row['high'])})"


def explained(row):
    """Of the variance of the true output; three decimals."""
    return f"{float(row['explained']):z.3f}"


def example_block(rows):
    """Both calibrations side by side, without the designs for the printed spectrum; what has no noise, in both."""
    of = {"paper": [], "exact": []}
    for row in rows:
        if row["designed for"] != "printed":
            for kind in of if row["κ"] == "any" else [row["κ"]]:
                of[kind].append(row)
    lines = []
    for paper, exact in zip(*of.values(), strict=True):
        family = f"{paper['mechanism']}, {paper['decision']}" if paper["decision"] else paper["mechanism"]
        assumes = " ᵃ" if paper["decision"] else ""
        ideal = shown(paper["ideal RMSE"]) + assumes
        figures = [ideal, shown(paper["predicted"]), simulated(paper), simulated(exact)]
        figures.append(f"{explained(paper)}, {explained(exact)}")
        lines.append([family, paper["prefilter"], paper["lag"], *figures])
    head = ["mechanism", "prefilter", "lag", "ideal", "predicted", "simulated, κ of the paper", "simulated, exact κ"]
    head.append("explained")
    return f"{markdown(head, lines)}\n\n{NOTES}"


def evaluate_block(rows):
    """RMSE of every mechanism on every series, and what it explains of the variance of the true output there."""
    series = list(dict.fromkeys(x["series"] for x in rows))
    errors = {(x["mechanism"], x["series"]): f"{shown(x['RMSE'])} ({explained(x)})" for x in rows}
    spreads = {x["series"]: shown(x["spread of true output"]) for x in rows}
    lines = [[name, *(errors[name, x] for x in series)] for name in dict.fromkeys(x["mechanism"] for x in rows)]
    lines.append(["*spread of the true output*", *(f"*{spreads[x]}*" for x in series)])
    return markdown(["RMSE (explained)", *series], lines)


def main(example, evaluation, pages=ROOT / "docs/measurements"):
    write_blocks(pages / "example.md", {"example": example_block(read(Path(example, "example.csv")))})
    write_blocks(pages / "departures.md", {"evaluate": evaluate_block(read(Path(evaluation, "evaluation.csv")))})


if __name__ == "__main__":
    main(*sys.argv[1:])
