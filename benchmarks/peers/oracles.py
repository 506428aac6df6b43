"""What several packages compute must agree, and every prediction with its simulation: or the comparison is wrong.

python -m benchmarks.peers.oracles ROWS.json ...
"""

import json
import math
import sys
from pathlib import Path

import numpy as np

SUM = "running sum"
LITERATURE = "literature, in dpfast"
LEAST = "optimal factorization, 256 steps"
EQUAL = {  # on the running sum: pairs of rows whose predicted errors are the same, and how nearly
    ((LITERATURE, "square root"), ("jax-privacy", "square root")): 1e-6,
    ((LITERATURE, "BLT, max"), ("jax-privacy", "BLT, max")): 1e-3,
    ((LITERATURE, "BLT, mean"), ("jax-privacy", "BLT, mean")): 1e-3,
    ((LITERATURE, "input perturbation, Laplace"), ("opendp", "Laplace noise on u")): 1e-3,
}
NOT_ABOVE = (("dpfast", "integer noise on u"), ("opendp", "geometric noise on u"))  # on all: the least of more laws
BEHIND = (("dpfast", "Laplace noise on u, LMMSE"), ("opendp, behind our receiver", "Laplace noise on u"))  # on all
DENSE = 5e-3  # relative: how far a dense optimiser may stop above the least error; nobody is below it
ROUNDING = 1e-6
ALARM = 6.0  # standard errors of a simulated MSE


def failures(parts):
    """In words; none where all is well."""
    rows = {(x["level"], x["target"], x["by"], x["mechanism"]): x for part in parts for x in part["rows"]}
    levels = dict.fromkeys(level for level, *_ in rows)
    found = [*multipliers(parts)]
    for level in levels:
        for (first, second), tolerance in EQUAL.items():
            found += apart(rows, (level, SUM, *first), (level, SUM, *second), -tolerance, tolerance)
    for level, target in dict.fromkeys(key[:2] for key in rows):
        least = level, target, "dpfast", LEAST
        found += apart(rows, (level, target, "jax-privacy", "dense"), least, -ROUNDING, DENSE)
        found += apart(rows, *((level, target, *x) for x in BEHIND), -ROUNDING, ROUNDING)
        found += apart(rows, *((level, target, *x) for x in NOT_ABOVE), -1, ROUNDING)
    return found + [text for key, row in rows.items() for text in off(key, row)]


def multipliers(parts):
    """The noise for a unit of sensitivity, by dp-accounting and by dpfast."""
    known = {x["rows"][0]["by"]: x["facts"]["noise_multiplier"] for x in parts if x["facts"]}
    for level, ours in known["dpfast"].items():
        theirs = known["jax-privacy"][level]
        if not math.isclose(ours, theirs, rel_tol=ROUNDING):
            yield f"{level}: the noise multiplier must be that of dp-accounting, {theirs}, got {ours}"


def apart(rows, first, second, low, high):
    """Where the first error, relative to the second, is not within bounds; or one of them has none."""
    if all(rows[key]["missing"] for key in (first, second)):
        return
    for key in (first, second):
        if rows[key]["missing"]:
            yield f"{', '.join(key)}: must have an error beside that of the other, got none: {rows[key]['missing']}"
            return
    one, other = (predicted(rows[key]) for key in (first, second))
    if not low <= one / other - 1 <= high:
        yield f"{', '.join(first)}: {one} must be {other}, that of {', '.join(second[2:])}, to {low:+g} ... {high:+g}"


def predicted(row):
    return math.sqrt(np.mean(row["step_mse"]))


def off(key, row):
    """Where a simulation is not what was predicted."""
    if row["step_mse"] is None or row["stream_mse"] is None:
        return
    streams = np.asarray(row["stream_mse"])
    error = (streams.mean() - np.mean(row["step_mse"])) / (streams.std(ddof=1) / math.sqrt(len(streams)))
    if not abs(error) <= ALARM:
        yield f"{', '.join(key)}: the simulated MSE must be the predicted one, got one {error:.1f} standard errors off"


def main(*paths):
    found = failures([json.loads(Path(path).read_text(encoding="utf-8")) for path in paths])
    print(*found or ["predictions, simulations and peers agree"], sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
