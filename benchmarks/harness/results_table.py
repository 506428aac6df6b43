"""The table of the benchmarks: what was measured beside the goals and bars of bars.toml.

    python -m benchmarks.harness.results_table RESULTS.json [--partial]

prints it and exits with 1 where a figure is worse than its bar, or was not measured without a reason given. Of a whole
run it also writes performance.json and performance.md in docs/measurements; `--partial` is for a part of it.
"""

import argparse
import json
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import capacity, stores_table
from benchmarks.harness.markdown_tables import markdown, shown, write_blocks

ROOT = Path(__file__).parents[2]
BARS = Path(__file__).with_name("bars.toml")
COMMAND = "nox -s bench"


class Figure(NamedTuple):
    """A measured value, or why there is none, beside its goal and its bar."""

    name: str
    goal: float
    bar: float
    value: float | None
    missing: str | None


class Row(NamedTuple):
    """Figures that belong together; `sign` is ≥ where more is better, ≤ where less is."""

    what: str
    sign: str
    unit: str
    figures: tuple[Figure, ...]

    def misses(self, value, limit):
        return not (value >= limit if self.sign == "≥" else value <= limit)  # so is what is no number

    def failures(self):
        """What is wrong with each figure that fails."""
        for x in self.figures:
            if x.value is not None and self.misses(x.value, x.bar):
                yield f"{x.name}: {shown(x.value)}{self.unit}, the bar is {self.sign} {shown(x.bar)}{self.unit}"

    def unmeasured(self):
        return [f"{x.name}: not measured" for x in self.figures if x.value is None and not x.missing]

    def measured(self, figure):
        if figure.value is None:
            return f"– ({figure.missing})" if figure.missing else "–"
        text = shown(figure.value)
        return f"*{text}*" if self.misses(figure.value, figure.goal) else text

    def cells(self):
        goals, bars = joined(x.goal for x in self.figures), joined(x.bar for x in self.figures)
        values = " / ".join(self.measured(x) for x in self.figures)
        return [self.what, f"{self.sign} {goals}{self.unit}", values + self.unit, f"{self.sign} {bars}{self.unit}"]


def joined(limits):
    """Limits of a row's figures, once where they are equal."""
    texts = [shown(x) for x in limits]
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


def read(results):
    """Figures, and why some are missing, of all benchmarks."""
    figures, missing = {}, {}
    for benchmark in results["benchmarks"]:
        for name, value in benchmark["extra_info"].get("figures", {}).items():
            if name in figures:
                raise ValueError(f"two benchmarks give the figure {name!r}")
            figures[name] = value
        missing |= benchmark["extra_info"].get("missing", {})
    return figures, missing


def rows(bars, results):
    """The rows of bars.toml, with what was measured."""
    measured, missing = read(results)
    table = []
    for row in bars["rows"]:
        names = row["figures"]
        goals, limits = ([row[x]] * len(names) if isinstance(row[x], int | float) else row[x] for x in ("goal", "bar"))
        values = [measured.get(name) for name in names]
        if row.get("inverse"):
            values = [None if x is None else 1 / x for x in values]
        figures = zip(names, goals, limits, values, map(missing.get, names), strict=True)
        unit = f" {row['unit']}" if "unit" in row else ""
        table.append(Row(row["what"], row["sign"], unit, tuple(Figure(*x) for x in figures)))
    return table


# --- Markdown -------------------------------------------------------------------------------------


def goals_table(table):
    return markdown(["", "goal", "measured", "bar"], [row.cells() for row in table])


def races_table(results):
    """Every race, fastest contestants first."""
    lines = []
    for benchmark in results["benchmarks"]:
        if race := benchmark["extra_info"].get("race"):
            peers = sorted(race["ratios"].items(), key=lambda item: item[1])
            faster = [f"{shown(ratio)} × {name} ({shown(race['reference_ns'][name])} ns)" for name, ratio in peers]
            lines.append([race["what"], race["dtype"], shown(race["ns"]), limit_share(race), "; ".join(faster)])
    return markdown(["", "type", "ns a sample", "of the limit", "times as fast as"], lines)


def limit_share(race):
    """The part of what the processor can do at most, by the limit that is nearest."""
    nearest = max(race["limits"], key=race["limits"].__getitem__, default=None)
    return "" if nearest is None else f"{shown(race['limits'][nearest])} ({nearest})"


def others_table(results):
    """Figures that are not of races."""
    infos = [x["extra_info"] for x in results["benchmarks"]]
    figures = [item for info in infos if "race" not in info for item in info.get("figures", {}).items()]
    return markdown(["", "measured"], [[name, shown(value)] for name, value in figures])


def conditions(results):
    """Machine and versions, for people."""
    machine = results["machine_info"]
    versions = {"Python": machine["python_version"]} | {k: v for k, v in machine["versions"].items() if v}
    cpu = machine["cpu"]
    return (
        f"{cpu['brand_raw']}, {cpu['count']} processors, vectors of {machine['vector_bits']} bits; "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + f"; {results['datetime'][:10]}"
    )


PAGE = """# Performance

What `{command}` measured on {conditions}.

The table compares times with goals. Those who are compared take turns on one processor, round by round, in processor
time. A ratio is the median of the ratios of the rounds (with threads, the ratio of the fastest rounds). A *limit* is
what the machine can do at most: the peak of fused multiply-adds in registers, their latency if each waits for the one
before, a copy of rows through the cache, operations on integers in registers, the call of a compiled function that does
nothing, or the random words of the operating system. Limits are measured in the same rounds, and the nearest one is
shown. For the chain only the multiply-adds of its difference equations count, and for normals those of their
polynomials. For block sums and posterior means only the target, the error and the integers that levels are drawn by
count, as nobody knows the least work of their receivers. *Slanted* figures fall short of their goal. A run fails if a
figure is worse than its bar, which leaves room for the noise of a shared machine. The size of an array is its
streams × samples.

{goals}

## Growth

The pictures are made by `nox -s growth`. Each point is the fastest call of a process of its own, in processor time, on
one thread. Memory is the most that a call holds beside the arrays that it is given; scipy makes a new array for its
output. From some hundred taps on FFTs take less time than sums over all taps, but their bits depend on how the signal
is cut into pieces.

![Time of a sample, and memory of a call, over samples, streams, order and taps](performance/growth.png)

The same command measures stores of releases: a step of so many streams, and single pushes of one stream that has
published so many steps. Times are processor times, unless the table says otherwise. Receivers of up to 10⁴ streams are
stored at every step, and those of more streams by turns. Opening reads all that is kept, and checks it.

![Stores over streams and steps](performance/stores.png)

<!-- stores -->
{stores}
<!-- end stores -->

## All figures

{races}

{others}
"""


# --- the command ----------------------------------------------------------------------------------


def write(table, results, root):
    """The figures and their page in docs/measurements: performance.json and performance.md."""
    folder = root / "docs/measurements"
    data = {
        "command": COMMAND,
        "conditions": conditions(results),
        "rows": [
            {"what": x.what, "sign": x.sign, "unit": x.unit.strip(), "figures": [f._asdict() for f in x.figures]}
            for x in table
        ],
        "races": [x["extra_info"]["race"] for x in results["benchmarks"] if "race" in x["extra_info"]],
        "figures": read(results)[0],
    }
    (folder / "performance.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    page = {"goals": goals_table(table), "races": races_table(results), "others": others_table(results)}
    page["stores"] = stores_table.read_tables(root)
    text = PAGE.format(command=COMMAND, conditions=conditions(results), **page)
    (folder / "performance.md").write_text(text, encoding="utf-8")
    if (root / capacity.PAGE).exists():
        write_blocks(root / capacity.PAGE, {"capacity": capacity.table(data["figures"])})


def main(arguments=None, bars=BARS, root=ROOT):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.harness.results_table", description=__doc__.splitlines()[0]
    )
    parser.add_argument("results", type=Path, help="JSON of pytest-benchmark")
    parser.add_argument("--partial", action="store_true", help="not all benchmarks were run: write nothing")
    options = parser.parse_args(arguments)
    results = json.loads(options.results.read_text(encoding="utf-8"))
    table = rows(tomllib.loads(bars.read_text(encoding="utf-8")), results)
    shown_rows = [
        row for row in table if not options.partial or any(x.value is not None or x.missing for x in row.figures)
    ]
    print(goals_table(shown_rows), races_table(results), others_table(results), conditions(results), sep="\n\n")
    failures = [x for row in table for x in row.failures()]
    if not options.partial:
        write(table, results, root)
        failures += [x for row in table for x in row.unmeasured()]
    print(*failures, sep="\n", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
