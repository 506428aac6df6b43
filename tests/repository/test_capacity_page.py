"""The page of capacity: its table is computed from the figures that are published, and its words hold for them."""

import json

import pytest

from benchmarks.harness import capacity
from benchmarks.harness.results_table import ROOT

FIGURES = json.loads((ROOT / "docs/measurements/performance.json").read_text(encoding="utf-8"))["figures"]
TEXT = (ROOT / capacity.PAGE).read_text(encoding="utf-8")
NEEDS = {what: value for what, (value, _, _) in capacity.needs(FIGURES).items()}


def test_the_page_has_the_table_of_the_published_figures():
    assert f"<!-- capacity -->\n{capacity.table(FIGURES)}\n<!-- end capacity -->" in TEXT


def test_each_need_is_what_its_figures_multiply_to():
    """By hand: 10⁹ values a minute, in 1,000 shards of 10⁶."""
    step = {x.removeprefix("a step of 1000000 streams, "): y for x, y in FIGURES.items()}
    shard = {x.removeprefix("a shard of 100000 streams, "): y for x, y in FIGURES.items()}
    cut, read = shard["µs to close a value in a piece"], shard["µs to read it there"]
    publish, piece = shard["µs to publish it with a row of the table"], shard["bytes of it in a piece"]
    cores, row = 1000 * (cut + read + publish) / 60, shard["bytes of its row of the table"]
    assert list(NEEDS.values()) == pytest.approx(
        [
            1000,
            1000,
            1000 * step["s of the processor"] / 60,
            cores,
            step["s"] / 60 * 100,
            1000 / 60,
            1000 / 60 * FIGURES["durable push of 1 × 3: ms of an fsync"] / 1000 * 100,
            step["MB of memory"],  # in GB, as there are 1,000 shards
            step["s to open"] * 1000 / cores,
            step["bytes of a value"],
            step["bytes of a value"] * 1440 / 1000,
            step["bytes written for a value"] / 60,
            piece * 8 / 60,
            row * 8 / 60,
            cores / 16,
            step["MB of memory"] / 64,
            step["bytes written for a value"] / 60 / 0.5,
            (piece + row) * 8 / 60 / 5,
        ]
    )


def test_every_need_that_is_measured_names_its_figures():
    for what, (_, _, sources) in capacity.needs(FIGURES).items():
        assert set(sources) <= set(FIGURES), what
        assert sources or what.startswith(("declarations", "shards", "commits", "machines")), what


def test_what_the_page_says_of_a_machine_and_of_what_decides_holds():
    machine = f"of {2 * capacity.CORES} cores, {2e-9 * capacity.MEMORY:.0f} GB of memory, disks that take"
    wires = f"{2e-9 * capacity.DISK:.0f} GB/s, and a network of\n{2e-9 * capacity.NETWORK:.0f} Gbit/s"
    assert f"{machine} {wires}" in TEXT
    machines = {what: n for what, n in NEEDS.items() if what.startswith("machines")}
    assert max(machines, key=machines.__getitem__) == "machines, by their memory"
    assert FIGURES["a step of 1000000 streams, s to open"] > FIGURES["a step of 1000000 streams, s"]
    assert NEEDS["cores with pieces and tables, one event in each stream"] > 2 * NEEDS["cores for the stores alone"]
    assert (
        FIGURES["a step of 1000000 streams, bytes written for a value"]
        > FIGURES["a step of 1000000 streams, bytes of a value"]
    )
