"""The option --last-block of dpfast release: the last bin is declared, and so is what becomes of its block."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import modify, parse, refusal
from helpers.scripts import Script

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.cli import release
from dpfast.cli.main import main
from dpfast.signals.events.declared_span import Span

SPAN = Span.parse("2020-01-01T00:00Z", "2020-01-01T00:01:20Z", "10s")  # 8 bins
DUE = [False, False, True, False, False, True, False]
COUNTS = dp.ARMA([1], [1, -0.5], mean=2.0)
TARGET = dp.Filter(np.ones(3) / 3)


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "blocks.json"
    dp.save(dp.block_sums(TARGET, dp.Privacy(1), COUNTS, length=3, lag=1), path)
    return str(path)


@pytest.fixture
def options(saved, tmp_path):
    span = {"start": "2020-01-01T00:00Z", "end": "2020-01-01T00:01:20Z", "period": "10s"}
    words = {"time": "t", "high": 50, "last_block": "publish"}
    log = tmp_path / "log.csv"
    log.write_text("t\n" + "".join(f"2020-01-01T00:00:{s:02}Z\n" for s in range(0, 60, 3)))
    return parse("release", str(log), mechanism=saved, out=tmp_path / "out", **span, **words)


@pytest.fixture
def live(options):
    return modify(options, events="-", follow=True)


def at(seconds):
    return SPAN.start + int(seconds * 1e6)


def follow(options, interrupt=None):
    arrivals = [(at(-1), b"t\n"), *((at(t + 0.5), f"{at(t) // 10**6}\n".encode()) for t in range(80))]
    script = Script(at(-5), arrivals, interrupt)
    try:
        return release.run(options, source=script, clock=script)
    finally:
        script.end()


def store_of(options):
    return Path(options.out).with_name("out-private")


def test_a_file_publishes_the_block_that_its_last_bin_leaves_unfinished(options):
    text = release.run(options)
    assert "a block that the last of 8 steps leaves unfinished is published there" in " ".join(text.split())
    assert "a block that the last of 8 steps" in (Path(options.out) / "guarantee.txt").read_text()
    read = dp.read_release(store_of(options))
    assert read.released.tolist() == [*DUE, True, False]
    assert read.estimate.shape == (1, 8)


def test_the_same_command_again_publishes_nothing_and_another_last_block_is_refused(options):
    release.run(options)
    before = dp.read_release(store_of(options)).digest
    assert "was published by an earlier run" in release.run(options)
    for other in ("drop", None):
        with pytest.raises(ReleaseError, match=r"steps from .* are released already"):
            release.run(modify(options, last_block=other))
    assert dp.read_release(store_of(options)).digest == before


def test_bins_as_they_come_end_with_a_block_of_their_own(live):
    follow(live)
    read = dp.read_release(store_of(live))
    assert read.released.tolist() == [*DUE, True, False]
    assert json.loads(read.guarantee.to_json())["last_block"] == "publish"
    sums = np.array([30, 30, 20])
    assert np.abs(read.privatized[0, [2, 5, 7]] - sums).max() < 60


@pytest.mark.parametrize("interrupt", [15, 69, 79])
def test_who_is_interrupted_before_the_last_bin_has_published_nothing_of_it(live, interrupt):
    with pytest.raises(KeyboardInterrupt):
        follow(live, at(interrupt))
    read = dp.read_release(store_of(live))
    assert read.released.tolist() == DUE[: read.privatized.shape[-1]]
    with pytest.raises(ReleaseError, match="one that differs in last_block, n_steps"):
        follow(modify(live, last_block="drop"))
    follow(live)
    again = dp.read_release(store_of(live))
    assert again.released.tolist() == [*DUE, True, False]
    n = read.privatized.shape[-1]
    assert (again.privatized[:, :n] == read.privatized).all()


def test_a_mechanism_without_blocks_and_reading_a_store_take_no_last_block(options, tmp_path, capsys):
    file = tmp_path / "filter.json"
    dp.save(dp.zero_forcing(TARGET, dp.Privacy(1, 1e-6)), file)
    words = ["release", options.events, "--mechanism", str(file), "--out", options.out, "--time", "t", "--high", "50"]
    words += ["--start", options.start, "--end", options.end, "--period", options.period, "--last-block"]
    assert "last_block must be left out for a mechanism without blocks, got 'drop'" in refusal([*words, "drop"], capsys)
    assert not Path(options.out).exists()
    with pytest.raises(SystemExit):
        main([*words, "keep"])
    assert "invalid choice: 'keep'" in capsys.readouterr().err
    line = refusal(["release", "--read", str(tmp_path), "--last-block", "drop"], capsys)
    assert "read must come with --out, --adopt and --witness alone, got --last-block too" in line
