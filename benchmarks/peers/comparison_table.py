"""The comparison with peers as tables: docs/measurements/compare.md, compare/compare.json, and blocks of the README.

    python -m benchmarks.peers.comparison_table SPEED.json ROWS.json ...

`data` has every figure; the tables are made of it alone.
"""

import json
import math
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks.harness.markdown_tables import markdown, write_blocks
from benchmarks.harness.results_table import ROOT, conditions
from benchmarks.peers import targets
from benchmarks.peers.cases import CHUNK, EXACT_STD
from dpfast.simulation.intervals import rmse_interval

COMMAND = "nox -s compare"
OURS = "dpfast", "literature, in dpfast"
PEERS = "jax-privacy", "opendp"
BEHIND = tuple(f"{x}, behind our receiver" for x in PEERS)  # of the model, at lag 0 or 5
CONSTANT = "constant"  # of ours: publishes the mean
CONFIDENCE = 0.95
LEVEL = 0.005  # of the lesser error: what is called level
DIGITS = 5
CURVES = (
    ("literature, in dpfast", "tree, plain"),
    ("literature, in dpfast", "tree, Honaker"),
    ("literature, in dpfast", "square root"),
    ("jax-privacy", "BLT, mean"),
    ("dpfast", "optimal factorization"),
    ("dpfast", "optimal factorization, model"),
    ("dpfast", "optimal factorization, model, lag 5"),
)
CURVES_OF = "running sum"
KNOWN = {"no input": set(), "model": {"model"}, "lag": {"model", "lag 5"}}


# --- figures --------------------------------------------------------------------------------------


def rounded(x):
    return None if x is None else float(f"{x:.6g}")


def figures(row):
    """What the tables show of a row: predicted, largest and simulated RMSE, with its interval."""
    steps, streams = row["step_mse"], row["stream_mse"]
    kept = {name: row[name] for name in ("level", "by", "mechanism", "target", "needs", "note", "missing")}
    found = {"seconds": row["seconds"], "steps": None, "predicted": None, "largest": None, "simulated": None}
    interval = None
    if steps is not None:
        found |= {"steps": len(steps), "predicted": math.sqrt(np.mean(steps)), "largest": math.sqrt(max(steps))}
    if streams is not None:
        mse = np.asarray(streams)
        found["simulated"] = math.sqrt(mse.mean())
        interval = [rounded(x) for x in rmse_interval(mse, CONFIDENCE)]
    return kept | {name: rounded(x) for name, x in found.items()} | {"interval": interval}


def curves(rows):
    """RMSE of every step of some mechanisms on one target, at the first level of privacy."""
    first = [x for x in rows if x["level"] == rows[0]["level"] and x["target"] == CURVES_OF]
    chosen = [x for x in first if (x["by"], x["mechanism"]) in CURVES and x["step_mse"]]
    return [
        {"by": x["by"], "mechanism": x["mechanism"], "rmse": [float(f"{math.sqrt(y):.4g}") for y in x["step_mse"]]}
        for x in chosen
    ]


def data(parts, speed, where):
    """Everything that is shown."""
    rows = [row for part in parts for row in part["rows"]]
    return {
        "command": COMMAND,
        "conditions": where,
        "horizon": targets.HORIZON,
        "accounting": {
            x["rows"][0]["by"]: {level: rounded(std) for level, std in x["facts"]["noise_multiplier"].items()}
            for x in parts
            if x["facts"]
        },
        "rows": [figures(x) for x in rows],
        "curves": curves(rows),
        "races": {name: speed[name] for name in ("filters", "noise", "designs")},
    }


# --- utility --------------------------------------------------------------------------------------


def error(row):
    """The RMSE that is compared: predicted, or simulated where there is no prediction."""
    return row["simulated"] if row["predicted"] is None else row["predicted"]


def shown_error(row):
    """Simulated ones have a tilde."""
    return f"{'~' if row['predicted'] is None else ''}{digits(error(row))}"


def digits(x):
    return f"{x:#.4g}".rstrip(".")


def least(rows, by, needs):
    """The row of least error over the whole horizon among those of `by` that need no more than this.

    The constant is none of them.
    """
    allowed = [
        x
        for x in rows
        if x["by"] in by
        and x["mechanism"] != CONSTANT
        and not x["missing"]
        and set(filter(None, x["needs"].split(", "))) <= needs
        and is_whole(x)
    ]
    return min(allowed, key=error, default=None)


def is_whole(row):
    return row["steps"] in {None, targets.HORIZON}


def best(rows, by):
    """By what is known: nothing of the input, its model, its model and five steps more."""
    return {name: least(rows, by, needs) for name, needs in KNOWN.items()}


def verdict(own, peer, name):
    """Who errs less, and by how much."""
    if abs(own / peer - 1) <= LEVEL:
        return "level"
    first, part = ("dpfast", 1 - own / peer) if own < peer else (name, 1 - peer / own)
    return f"**{first}** by {100 * part:.2g} %"


def summary_line(target, rows):
    """The best of the peers, alone and behind our receivers, and ours beside those that know as much."""
    mean = spread(rows)
    peer = least(rows, PEERS, {"the whole horizon"})
    theirs = best(rows, BEHIND) | {"no input": peer}
    cells = [digits(mean) if mean else "–"]
    for known, own in best(rows, OURS).items():
        other = theirs[known]
        cells.append(f"{shown_error(other)}{part(other, mean)}, {name(other)}" if other else "–")
        cells.append(beside(own, other or peer, mean) if own else "–")
    return [target, *cells]


def beside(row, peer, mean):
    return f"{shown_error(row)}{part(row, mean)}, {short(row)}: {verdict(error(row), error(peer), package(peer))}"


def name(row):
    return f"{package(row)}: {row['mechanism']}"


def package(row):
    """Without what stands behind it."""
    return row["by"].removesuffix(", behind our receiver")


def spread(rows):
    """RMSE of the constant: the standard deviation of the true output, over the horizon; None where it did not run."""
    return next((error(x) for x in rows if x["mechanism"] == CONSTANT), None)


def explained(row, mean):
    """1 - MSE/variance of the true output, the latter under the model."""
    return 1 - (error(row) / mean) ** 2 if mean and is_whole(row) else None


def part(row, mean):
    """What is explained, in parentheses."""
    found = explained(row, mean)
    return "" if found is None else f" ({fraction(found)})"


def fraction(x):
    return f"{x:z.2f}" if x > -10 else f"{x:.3g}"


def short(row):
    return row["mechanism"] if row["by"] == "dpfast" else f"{row['mechanism']} ({row['by'].split(',')[0]})"


def summary(data):
    """A table for each level of privacy."""
    nothing = "best of the peers", "dpfast, nothing known of u"
    known = "peers' noise behind our receiver, the model of u known", "dpfast, the model known"
    later = "peers' behind it, 5 steps later", "dpfast, the model known, 5 steps later"
    return "\n\n".join(
        markdown(
            [level, "constant", *nothing, *known, *later],
            [summary_line(name, x) for name, x in by_target(rows).items()],
        )
        for level, rows in by_level(data).items()
    )


def by_level(data):
    return grouped(data["rows"], "level")


def by_target(rows):
    return grouped(rows, "target")


def grouped(rows, name):
    """Rows by one of their fields, in order."""
    return {value: [x for x in rows if x[name] == value] for value in dict.fromkeys(x[name] for x in rows)}


def target_table(rows):
    """Every mechanism, least error first; those that do not run last, with the reason."""
    run = sorted((x for x in rows if not x["missing"]), key=lambda x: (not is_whole(x), error(x)))
    first, mean = error(run[0]), spread(rows)
    lines = []
    for x in run:
        low, high = x["interval"]
        simulated = f"{digits(x['simulated'])} ({digits(low)} … {digits(high)})"
        cells = [dash(x["predicted"]), simulated, dash(x["largest"]), f"{error(x) / first:.3g}" if is_whole(x) else "–"]
        cells.append(dash(explained(x, mean), fraction))
        lines.append([x["by"], x["mechanism"], x["needs"], *cells, dash(x["seconds"], "{:.2g}".format), x["note"]])
    lines += [[x["by"], x["mechanism"], x["needs"], *["–"] * 6, x["missing"]] for x in rows if x["missing"]]
    head = ["by", "mechanism", "needs", "predicted", "simulated", "largest step", "of the least", "explained"]
    head += ["design, s", ""]
    return markdown(head, lines)


def dash(x, form=None):
    return "–" if x is None else (form or digits)(x)


# --- speed ----------------------------------------------------------------------------------------


def contestants(races):
    return list(dict.fromkeys(name for race in races for name in race["seconds"]))


def race_table(races, unit, per_second, *, spread=False):
    """Medians in a unit, the fastest in bold, and how far dpfast is from the fastest of the others."""
    names = contestants(races)
    lines = []
    for race in races:
        medians = {name: x[1] for name, x in race["seconds"].items()}
        fastest = min(medians, key=medians.get)
        cells = [
            timed(race["seconds"].get(name), per_second, spread=spread, bold=name == fastest and len(medians) > 1)
            for name in names
        ]
        lines.append([race["what"], *cells, times(medians)])
    return markdown([unit, *names, ""], lines)


def timed(quartiles, per_second, *, spread, bold):
    if quartiles is None:
        return "–"
    low, middle, high = (f"{x * per_second:.3g}" for x in quartiles)
    text = f"**{middle}**" if bold else middle
    return f"{text} ({low} … {high})" if spread else text


def times(medians):
    others = {name: x for name, x in medians.items() if name != "dpfast"}
    if "dpfast" not in medians:
        return "dpfast has none"
    peer = min(others, key=others.get)
    ratio = others[peer] / medians["dpfast"]
    first, times = ("dpfast", ratio) if ratio >= 1 else (peer, 1 / ratio)
    return f"{first} {times:.3g} × as fast"


def race_tables(data, *, spread):
    races = data["races"]
    return "\n\n".join(
        [
            race_table(races["filters"], "ns a sample", 1e9, spread=spread),
            race_table(races["noise"], "ns a sample", 1e9, spread=spread),
            race_table(races["designs"], "seconds a design", 1, spread=spread),
        ]
    )


def design_errors(races):
    """Mean and largest error of a prefix sum a unit of noise: how good a design is that took so long."""
    names = contestants(races)
    lines = [
        [race["what"], *(" / ".join(map(digits, race["checks"].get(name, []))) or "–" for name in names)]
        for race in races
    ]
    return markdown(["RMSE a unit of noise, mean / largest", *names], lines)


# --- pages ----------------------------------------------------------------------------------------

NOTES = (
    "`~`: simulated, as there is no prediction. In parentheses what is explained of the variance of the true output, "
    "under the model of u: 0 for the constant, which publishes the mean. Each of ours is compared with the peers' "
    "beside it. Behind the peers' noise is the linear receiver of least error; a posterior mean is not linear."
)
DENSE = "dense, the whole horizon"
SHOWN_LEVEL = "ε = 1, δ = 10⁻⁶"
SHOWN_TARGETS = "running sum", "moving average of 12"
SHOWN_KNOWN = {
    "no input": ("best of the peers", "dpfast, nothing known of u"),
    "model": ("peers' noise, our receiver, model known", "dpfast, model known"),
    "lag": ("", "dpfast, model known, 5 steps later"),
}
SHOWN_RACES = {
    "step by step, 1000 streams": ("ns a sample", 1e9),
    "as one batch, 1000 streams": ("ns a sample", 1e9),
    "exact discrete Gaussian": ("ns a sample", 1e9),
    "BLT of 3 buffers, n = 1024": ("seconds a design", 1),
}
MORE_ERRORS = (
    "peers are jax-privacy and OpenDP, u is the input. `~`: simulated. [All targets](docs/measurements/compare.md)."
)
MORE_SPEED = "[All races](docs/measurements/compare.md#speed), [goals and bars](docs/measurements/performance.md)."


def dense(data):
    """On which targets jax-privacy's dense optimiser ran at the whole horizon."""
    on = dict.fromkeys(x["target"] for x in data["rows"] if x["mechanism"] == DENSE and not x["missing"])
    where = f"it had ten on the {', '.join(on)}, and is left out on the others" if on else "it is left out"
    return (
        f"jax-privacy's dense optimiser takes minutes a target at {data['horizon']} steps: {where}; it comes no lower "
        "than our optimal factorization, which is certified to be the least behind Gaussian noise."
    )


PAGE = """# Side by side with peers

What `{command}` measured on {conditions}.

All packages publish the same targets for n = {horizon} steps from t = 0, under the same (ε, δ): {levels}; for
events of size 1; u is a ±1/2 Markov chain that stays with probability 3/4. Figures are root mean square errors over
the horizon. *Predicted* ones come from each package's own formulas. *Simulated* ones, with 95 % intervals over
streams, come from noise that ran through each package's own filters. If δ is not 0, each package computes how much
Gaussian noise a unit of sensitivity needs: {accounting}. The
least is exact; OpenDP computes it through zCDP, which is looser.
The tables say what a mechanism *needs* beyond u up to now: the model of u, later steps, or all of the horizon. Designs
were timed on a machine that others use too. If a package does not have a mechanism, or refuses a target, a row says
why. Post-processing is free, so peers' noise is also shown *behind our receiver*, the linear one of least error for the
same model, of lag 0 or 5. So one sees what the mechanism gains and what the receiver gains. The *constant* publishes
the mean of the true output and costs no privacy. *Explained* is 1 − MSE/variance of the true output, over the horizon,
the latter under the model: it is 0 for the constant, and below 0 for what errs more than that.

## Who errs less

{summary}

{notes} *Level*: within {level} %. Peers know no model of u; what they do with the
whole horizon counts for them. {dense}

![RMSE relative to the least of every target](compare/dots.png)

![RMSE of every step of the running sum](compare/steps.png)

## Every mechanism

{targets}

## Speed

All run on one processor and one thread, in float64, and take turns round by round. The tables have medians of processor
time with quartiles. The filter is the noise-shaping C⁻¹ of a BLT of three buffers (three poles), on the same numbers;
outputs agree to 1e-9 before times are taken. Arrays are (streams, time). For jax-privacy, which takes a step at a time,
they are (time, streams); JAX is compiled, compiling is not counted, and it waits only at the end of a run. *Step by
step* calls a function for each step of all streams with the state it gave before, *in chunks* for each {chunk} steps.
*Noise drawn and shaped* is in dpfast a whole simulation (input, noise, three filters, error), in jax-privacy the
noise alone. The exact noise has a standard deviation of {exact}. Designs are of prefix sums, and minimise the
largest error; those that are called *dense* minimise the mean. jax-privacy's square root is the closed series of prefix
sums, and that of dpfast takes any target.

{races}

{designs}
"""


def listed(texts, comma=", "):
    """One after the other, as in a sentence."""
    *first, last = texts
    return f"{comma.join(first)} and {last}" if first else last


def page(data):
    tables = [
        f"### {name}, {level}\n\n{target_table(rows)}"
        for level, whole in by_level(data).items()
        for name, rows in by_target(whole).items()
    ]
    return PAGE.format(
        command=data["command"],
        conditions=data["conditions"],
        horizon=data["horizon"],
        accounting=", ".join(f"{by} {listed(map(digits, x.values()))}" for by, x in data["accounting"].items()),
        levels=listed(by_level(data), "; "),
        summary=summary(data),
        level=100 * LEVEL,
        notes=NOTES,
        dense=dense(data),
        targets="\n\n".join(tables),
        chunk=CHUNK,
        exact=EXACT_STD,
        races=race_tables(data, spread=True),
        designs=design_errors(data["races"]["designs"]),
    )


def blocks(data):
    """Of the README, by the names of their markers: some lines of the page."""
    return {
        "errors": f"{short_errors(data)}\n\n`{data['command']}` made this; {MORE_ERRORS}",
        "speed": f"{short_speed(data)}\n\n`{data['command']}` made this, one thread each, in turns. {MORE_SPEED}",
    }


def short_errors(data):
    """A row for what is known, a pair of columns for each target: RMSE, with who errs less, and what is explained."""
    found = [by_target(by_level(data)[SHOWN_LEVEL])[target] for target in SHOWN_TARGETS]
    columns = [errors_of(rows) for rows in found]
    head = [SHOWN_LEVEL, *(text for target in SHOWN_TARGETS for text in (target, "explained"))]
    return markdown(head, [[what, *(cell for x in columns for cell in x[what])] for what in columns[0]])


def errors_of(rows):
    """For what is known: the RMSE, with a verdict where peers stand beside it, and what is explained."""
    mean, own = spread(rows), best(rows, OURS)
    theirs = best(rows, BEHIND) | {"no input": least(rows, PEERS, {"the whole horizon"})}
    lines = {"*constant*: publish the mean": (digits(mean), fraction(0.0))}
    for known, (peers_know, we_know) in SHOWN_KNOWN.items():
        for words, row, other in ((peers_know, theirs[known], None), (we_know, own[known], theirs[known])):
            if words:
                said = "" if other is None else f", {verdict(error(row), error(other), package(other))}"
                lines[words] = (f"{shown_error(row)}{said}", dash(explained(row, mean), fraction))
    return lines


def short_speed(data):
    """A row for each of some races: dpfast, the fastest of the others, and how far they are apart."""
    races = {x["what"]: x["seconds"] for kind in data["races"].values() for x in kind}
    lines = []
    for what, (unit, per_second) in SHOWN_RACES.items():
        medians = {name: x[1] for name, x in races[what].items()}
        peer = min((x for x in medians if x != "dpfast"), key=medians.get)
        figures = (f"{medians[x] * per_second:.3g}" for x in ("dpfast", peer))
        ours, others = figures
        lines.append([f"{what}, {unit}", ours, f"{others}, {peer}", times(medians)])
    return markdown(["", "dpfast", "fastest of the others", ""], lines)


def machine(versions):
    """As pytest-benchmark describes it, with the versions of what ran."""
    from pytest_benchmark.plugin import pytest_benchmark_generate_machine_info as generate

    from benchmarks.conftest import pytest_benchmark_update_machine_info as update

    info = generate()
    update(None, info)
    info["versions"] = versions
    return info


def main(speed_path, *paths, root=ROOT):
    speed, *parts = (json.loads(Path(path).read_text(encoding="utf-8")) for path in (speed_path, *paths))
    ours_last = speed, *reversed(parts)
    versions = {name: x for part in ours_last for name, x in part["versions"].items() if name != "Python"}
    where = conditions({"machine_info": machine(versions), "datetime": datetime.now(UTC).isoformat()})
    found = data(parts, speed, where)
    folder = root / "docs/measurements"
    (folder / "compare").mkdir(exist_ok=True)
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":")).replace('{"by"', '\n{"by"')
    (folder / "compare/compare.json").write_text(text + "\n", encoding="utf-8")
    (folder / "compare.md").write_text(page(found), encoding="utf-8")
    write_blocks(root / "README.md", blocks(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
