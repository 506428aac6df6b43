"""What many streams a minute need, computed from the figures of docs/measurements: a table of docs/explanation."""

from benchmarks.harness.markdown_tables import markdown, shown
from dpfast.signals.events.declared_counts import MAX_GROUPS

PAGE = "docs/explanation/capacity.md"
STREAMS, PERIOD, DAY = 10**9, 60, 86_400  # of which each has a step in a period, in seconds
SHARD = 10**6  # streams of a shard, as they were measured
CORES, MEMORY, DISK, NETWORK = 16, 64e9, 0.5e9, 5e9  # of a machine, as much as one plans with: half of what it has
STEP, ENGINE = "a step of 1000000 streams, ", "a shard of 100000 streams, "
FSYNC = "durable push of 1 × 3: ms of an fsync"


def needs(figures):
    """Numbers of what is needed, by what they are; each with its unit and the figures that it comes from."""
    step = {name.removeprefix(STEP): value for name, value in figures.items() if name.startswith(STEP)}
    engine = {name.removeprefix(ENGINE): value for name, value in figures.items() if name.startswith(ENGINE)}
    shards, stages = STREAMS / SHARD, list(engine)[:3]
    values = STREAMS / PERIOD  # a second
    bare, whole = values * step["s of the processor"] / 1e6, values * sum(engine[x] for x in stages) / 1e6
    piece, row = "bytes of it in a piece", "bytes of its row of the table"
    memory = shards * step["MB of memory"] * 1e6
    written, wires = values * step["bytes written for a value"], 8 * values * (engine[piece] + engine[row])
    machines = {"cores": whole / CORES, "memory": memory / MEMORY, "disks": written / DISK, "network": wires / NETWORK}
    return {
        "declarations of shards, each of at most a million groups": (STREAMS / MAX_GROUPS, "", []),
        "shards of a million streams": (shards, "", []),
        "cores for the stores alone": (bare, "", [STEP + "s of the processor"]),
        "cores with pieces and tables, one event in each stream": (whole, "", [ENGINE + x for x in stages]),
        "part of its period that a shard's step takes": (100 * step["s"] / PERIOD, "%", [STEP + "s"]),
        "commits": (shards / PERIOD, "a second", []),
        "part of the time in which they wait for a disk": (
            100 * shards / PERIOD * figures[FSYNC] / 1e3,
            "% of one disk",
            [FSYNC],
        ),
        "memory of all stores, open": (memory / 1e9, "GB", [STEP + "MB of memory"]),
        "opening the shards of a core again": (shards / whole * step["s to open"], "s", [STEP + "s to open"]),
        "kept on disks": (STREAMS * step["bytes of a value"] / 1e9, "GB a period", [STEP + "bytes of a value"]),
        "the same in a day, if no history is pruned": (
            values * DAY * step["bytes of a value"] / 1e12,
            "TB",
            [STEP + "bytes of a value"],
        ),
        "written to disks": (written / 1e9, "GB/s", [STEP + "bytes written for a value"]),
        "network, pieces in": (8 * values * engine[piece] / 1e9, "Gbit/s", [ENGINE + piece]),
        "network, tables out": (8 * values * engine[row] / 1e9, "Gbit/s", [ENGINE + row]),
        **{f"machines, by their {name}": (n, "", []) for name, n in machines.items()},
    }


def table(figures):
    """The needs as a table."""
    lines = [
        [what, f"{shown(value)} {unit}".strip(), "; ".join(f"`{x}` ({shown(figures[x])})" for x in sources)]
        for what, (value, unit, sources) in needs(figures).items()
    ]
    return markdown(["", "needed", "from the figure"], lines)
