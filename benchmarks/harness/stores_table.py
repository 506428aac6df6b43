"""What grows with the streams and the steps of a store, as two tables."""

import json

from benchmarks.harness.markdown_tables import markdown, shown

FOUND = "docs/measurements/performance/stores.json"
UNITS = {"push": 1, "opening": 1e3, "bytes": 1e-3}  # of the table, in those of a row


def read_tables(root):
    """The tables of what was measured last; nothing where nothing was."""
    file = root / FOUND
    return tables(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else ""


def tables(rows):
    """Over streams, and over steps."""
    lines = [
        [
            f"{x['n']:,}",
            shown(1e9 * x["processor"] / x["n"]),
            *map(shown, (x["bytes"], x["written"], x["MB"], 1e3 * x["seconds"], 1e3 * x["opening"])),
        ]
        for x in rows
        if x["group"] == "streams"
    ]
    clock = "ms a step, by the clock", "ms to open, by the clock"
    header = ["streams", "ns a value", "bytes of a value", "bytes written for it", "MB", *clock]
    over_streams = markdown(header, lines)
    kept = {}
    for x in rows:
        if x["group"] == "steps":
            kept.setdefault(x["kept"], {})[x["n"]] = x
    header = ["steps", *(f"{what}, {steps} kept" for what in ("µs a push", "ms to open", "kB") for steps in kept)]
    lines = [
        [f"{n:,}", *(shown(x[n][what] * unit) for what, unit in UNITS.items() for x in kept.values())]
        for n in dict.fromkeys(x["n"] for x in rows if x["group"] == "steps")
    ]
    return f"{over_streams}\n\n{markdown(header, lines)}"
