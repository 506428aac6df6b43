"""The table of docs/measurements/kills.md, of what the tests of `nox -s engines` have counted.

    python -m benchmarks.harness.kills_table REPORT.xml …

prints it and writes it between the markers of the page. It exits with 1 where a reader saw what must not be.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from benchmarks.harness.markdown_tables import markdown, write_blocks
from benchmarks.harness.results_table import ROOT

COUNTED = ("times", "steps", "seen", "twice", "lost", "disordered")
HEAD = ["what happened", "arbiter", "engine", "delivered again", "times", "steps", "shown"]
HEAD += ["with two values", "lost", "out of order"]
NAIVE = "none"  # the arbiter of an operator that draws noise itself


class Row(NamedTuple):
    """What was counted over all depths of one kind of fault."""

    what: str
    arbiter: str
    engine: str
    depths: list[int]
    counts: dict[str, int]

    @property
    def failed(self):
        return any(self.counts[name] for name in ("twice", "lost", "disordered"))

    def cells(self):
        low, high = min(self.depths), max(self.depths)
        depth = f"{low} step{'s' * (low != 1)}" if low == high else f"{low} to {high} steps"
        arbiter = "*none: noise in the operator*" if self.arbiter == NAIVE else self.arbiter
        shown = {name: f"{n:,}" for name, n in self.counts.items()}
        if self.arbiter == NAIVE:
            shown["twice"] = f"**{shown['twice']}**"
        return [self.what, arbiter, self.engine, depth, *shown.values()]


def read(reports):
    """The rows that tests have entered in reports of pytest, those of equal kind as one."""
    rows = {}
    for entry in (entry for report in reports for entry in ElementTree.parse(report).iter("property")):
        if entry.get("name") == "engines":
            noted = json.loads(entry.get("value"))
            key = noted["what"], noted["arbiter"], noted["engine"]
            row = rows.setdefault(key, Row(*key, [], dict.fromkeys(COUNTED, 0)))
            row.depths.append(noted["depth"])
            for name in COUNTED:
                row.counts[name] += noted[name]
    return sorted(rows.values(), key=lambda row: row.arbiter == NAIVE)


def failures(rows):
    """What is wrong: steps that are not as they must be, or an operator that must fail and did not."""
    for row in rows:
        if row.failed is not (row.arbiter == NAIVE):
            yield f"{row.what}, {row.arbiter}, {row.engine}: {row.counts}"


def main(arguments=None, page=ROOT / "docs/measurements/kills.md"):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.harness.kills_table", description=__doc__.splitlines()[0]
    )
    parser.add_argument("reports", type=Path, nargs="+", help="XML of pytest")
    rows = read(parser.parse_args(arguments).reports)
    table = markdown(HEAD, [row.cells() for row in rows])
    print(table)
    if wrong := list(failures(rows)):
        print(*wrong, sep="\n", file=sys.stderr)
        return 1
    write_blocks(page, {"kills": table})
    return 0


if __name__ == "__main__":
    sys.exit(main())
