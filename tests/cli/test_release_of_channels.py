"""``dpfast release`` of a mechanism of several streams: groups are its inputs, published are its outputs."""

import csv
import functools
import json
import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from helpers.commands import modify, parse, refusal
from helpers.designs import designed
from helpers.scripts import Script

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.cli import release
from dpfast.cli.main import main
from dpfast.releases.feed import clock
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.signals.events.declared_span import Span

pytestmark = pytest.mark.filterwarnings("ignore:What was published contradicts")  # counts are not what models say

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])
MODELS = [dp.ARMA([1], [1, -a], mean=mean) for a, mean in [(0.5, 3), (0.5, 2), (0.8, 1)]]
GROUPS, OUTPUTS = ("JFK", "LGA", "EWR"), ("JFK + LGA + EWR", "JFK - LGA")
WORDS = {"time": "t", "by": "g", "groups": GROUPS, "high": 30, "period": "1h", "quiet": True}
DAY = {"start": "2020-01-02T00:00Z", "end": "2020-01-02T12:00Z"}
ROWS = [  # hour, group, who
    *[(h, "JFK", f"a{h}{k}") for h in range(12) for k in range(h % 4)],
    *[(h, "LGA", f"b{h}{k}") for h in range(12) for k in range(h % 3)],
    *[(h, "EWR", f"c{h}") for h in range(0, 12, 5)],
    *[(2, "LGA", "ada"), (5, "JFK", "ada"), (7, "LGA", "ada"), (9, "EWR", "ada")],
]


def blocks(adjacency, **others):
    return dp.block_sums(TARGET, dp.Privacy(8, adjacency=adjacency), MODELS, length=[2, 3, 2], lag=1, **others)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    for adjacency in "one_input", "each_input_same_time", "each_input":
        dp.save(
            blocks(adjacency, **({} if adjacency == "one_input" else {"shares": [0.4, 0.3, 0.3]})), folder / adjacency
        )
    dp.save(dp.zero_forcing(TARGET, dp.Privacy(8, 1e-6, adjacency="one_input"), tolerance=0.1), folder / "filters")
    dp.save(dp.zero_forcing(QUICK, dp.Privacy(1, 1e-6)), folder / "one stream")
    return folder


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    rows = sorted(ROWS)
    path.write_text("t,g,who\n" + "".join(f"2020-01-02T{h:02}:30Z,{g},{who}\n" for h, g, who in rows))
    return path


@pytest.fixture
def options(saved, log, tmp_path, monkeypatch):
    """Exact forms are made once; of block sums, for somebody who is at one airport."""
    monkeypatch.setattr(release, "exact", functools.partial(designed, dp.exact))
    return parse("release", str(log), mechanism=saved / "one_input", out=tmp_path / "out", **WORDS, **DAY)


@pytest.fixture
def silent(monkeypatch):
    monkeypatch.setattr("dpfast.releases.noise.Noise.take", lambda self, n: np.zeros(n, np.int64))


def store_of(options):
    return f"{options.out}-private"


def read(options):
    return dp.read_release(store_of(options), published=options.out)


def counts(rows=ROWS):
    found = np.zeros((3, 12), np.int64)
    for h, g, _ in rows:
        found[GROUPS.index(g), h] += 1
    return found


def sums(u):
    """Sums of whole blocks of two, three and two hours at their ends, with the lag of one hour behind."""
    v = np.zeros((3, 13), np.int64)
    for row, x, length in zip(v, u, (2, 3, 2), strict=True):
        for end in range(length, 13, length):
            row[end - 1] = x[end - length : end].sum()
    return v


def rows_of(options, name="estimates.csv"):
    with Path(options.out, name).open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["time", "group", "estimate", "predicted_rmse_if_model_holds"]
    return rows


# --- what is published ----------------------------------------------------------------------------


def test_each_group_is_an_input_and_each_row_an_output(options, silent):
    text = release.run(options)
    result = read(options)
    np.testing.assert_array_equal(result.privatized, sums(counts()))
    assert (result.groups, result.channels, result.outputs) == (GROUPS, GROUPS, OUTPUTS)
    assert "one event of size at most 1 in one of the 3 streams" in text
    rows = rows_of(options)
    assert [x[:2] for x in rows[:3]] == [[f"2020-01-02T0{h}:00:00Z", OUTPUTS[k]] for h, k in [(0, 0), (0, 1), (1, 0)]]
    found = np.array([float(x[2]) for x in rows]).reshape(12, 2).T
    np.testing.assert_allclose(found, result.estimate, atol=0.01 * max(result.output_rmse_if_model_holds))
    errors = [float(x[3]) for x in rows[:2]]
    np.testing.assert_allclose(errors, result.output_rmse_if_model_holds, rtol=1e-5)
    assert errors[0] != errors[1]


def test_filters_that_mix_nothing_publish_a_channel_of_each_group_and_the_same_command_nothing_more(options, saved):
    filters = modify(options, mechanism=str(saved / "filters"))
    release.run(filters)
    before = read(filters)
    assert before.channels == GROUPS
    assert "nothing more was published" in release.run(filters)
    assert read(filters).digest == before.digest


def test_parquet_has_the_names_and_errors_of_the_outputs(options):
    parquet = pytest.importorskip("pyarrow.parquet")
    release.run(modify(options, format="parquet"))
    table = parquet.read_table(f"{options.out}/estimates.parquet").to_pydict()
    result = read(options)
    assert table["group"] == [*OUTPUTS] * 12
    assert table["estimate"] == result.estimate.T.ravel().tolist()
    assert table["predicted_rmse_if_model_holds"] == [*result.output_rmse_if_model_holds] * 12


def test_a_store_is_read_with_a_row_for_each_channel_and_each_output(options, capsys):
    release.run(options)
    assert main(["release", "--read", store_of(options)]) == 0
    result, table = read(options), [x.split(",") for x in capsys.readouterr().out.splitlines() if x.startswith("1,")]
    assert [x[3] for x in table] == [*GROUPS, *OUTPUTS] * 13
    shown = [[x[4] for x in table[k::5]] for k in range(5)]
    for k in range(3):
        v, there = result.privatized[k].tolist(), result.released[k].tolist()
        assert shown[k] == [str(x) if due else "" for x, due in zip(v, there, strict=True)]
        assert not any(x[5] or x[6] for x in table[k::5])
    for k in range(2):
        assert set(shown[3 + k]) == {""}
        assert [float(x[5]) for x in table[3 + k :: 5][:12]] == result.estimate[k].tolist()


def test_reports_and_tables_of_databases_name_the_outputs(options):
    release.run(options)
    content = Path(options.out, "report.html").read_text(encoding="utf-8")
    assert all(name in content for name in (*OUTPUTS, "2 outputs"))
    with sqlite3.connect(":memory:") as connection:
        assert dp.write_table(store_of(options), connection, shard="a", published=options.out) == 24
        rows = connection.execute("SELECT DISTINCT series FROM estimates").fetchall()
    assert {x for (x,) in rows} == {*OUTPUTS}


def test_bins_as_they_come_are_those_of_a_file_also_behind_an_interruption(options, silent, monkeypatch):
    release.run(options)
    monkeypatch.setattr(clock, "_LOOK", 600 * 10**6)  # of bins of an hour: in seconds, nothing is seen more often
    wanted, live = rows_of(options), modify(options, events="-", follow=True, out=f"{options.out}-live")
    span = Span.parse(options.start, options.end, options.period)
    arrivals = [(span.start - 10, b"t,g,who\n")]
    arrivals += [
        (span.start + (h * 3600 + 1800) * 10**6, f"2020-01-02T{h:02}:30Z,{g},{who}\n".encode()) for h, g, who in ROWS
    ]
    for interrupt in span.start + int(7.2 * 3600e6), None:
        script = Script(span.start - 20, list(arrivals), interrupt)
        try:
            release.run(live, source=script, clock=script)
        except KeyboardInterrupt:
            assert 0 < len(rows_of(live)) < len(wanted)
        finally:
            script.end()
    assert rows_of(live) == wanted


# --- what one person may change -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("adjacency", "kept"),
    [("one_input", [(1, 2)]), ("each_input", [(0, 5), (1, 2), (2, 9)])],
)
def test_what_one_person_may_reach_is_enforced(options, saved, silent, adjacency, kept):
    told = modify(options, mechanism=str(saved / adjacency), person="who", adjacency=adjacency)
    text = release.run(told)
    assert text.startswith("This guarantee is per person")
    assert ("in one stream" if adjacency == "one_input" else "in each of at most 3 streams") in text
    others = [x for x in ROWS if x[2] != "ada"]
    np.testing.assert_array_equal(
        read(told).privatized, sums(counts([*others, *((h, GROUPS[i], "") for i, h in kept)]))
    )
    with ReleaseStore.open(store_of(told), options.out) as store:
        by_person = [(person, stream) for person, stream, _ in store.persons().kept]
    assert len(by_person) == len(others) + len(kept)


def test_more_events_of_a_person_take_more_noise(options):
    with pytest.warns(dp.AccuracyWarning, match="was designed for one event of one person"):
        release.run(modify(options, person="who", max_events=3))
    guarantee = read(options).guarantee
    rate, exponent = re.search(r"geometric, rate (\d+)/2\^(\d+)", guarantee.items()["noise"]).groups()
    assert int(rate) / 2 ** int(exponent) == pytest.approx(8 / 3, rel=1e-6)
    assert 7.999 < guarantee.epsilon <= 8
    assert "at most 3 in one stream are kept, at least 1 steps apart" in guarantee.sentence


def test_events_of_one_bin_cannot_be_enforced(options, saved):
    with pytest.raises(ReleaseError, match="each_input_same_time"):
        release.run(modify(options, mechanism=str(saved / "each_input_same_time"), person="who"))


@pytest.mark.parametrize(
    ("mechanism", "words", "named"),
    [
        (
            "one_input",
            ["--groups", "JFK,LGA"],
            "groups must be 3, in the order of the inputs of the mechanism's target",
        ),
        (
            "one_input",
            ["--adjacency", "each-input"],
            "adjacency must be 'one_input', for which the mechanism was designed",
        ),
        ("each_input", ["--adjacency", "one-input"], "adjacency must be 'each_input', for which"),
        ("one_input", ["--streams-per-person", "2"], "streams_per_person must be left out with a mechanism of several"),
        ("one_input", ["--adapt"], "adapt must be False"),
        ("one stream", ["--adjacency", "one-input"], "adjacency must come with a mechanism of several streams"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_published(
    saved, log, tmp_path, capsys, mechanism, words, named
):
    given = WORDS | DAY | {"groups": ",".join(GROUPS), "mechanism": saved / mechanism, "out": tmp_path / "out"}
    line = [str(x) for name, value in given.items() if name != "quiet" for x in (f"--{name}", value)]
    assert named in refusal(["release", str(log), *line, *words], capsys)
    assert not (tmp_path / "out-private").exists()


def test_an_audit_is_refused_for_what_it_is(saved, capsys):
    words = ["audit", "--mechanism", str(saved / "one_input"), "--high", "30"]
    assert "mechanism must be of one stream, got the BlockChannelsMechanism" in refusal(words, capsys)


def test_a_file_of_settings_may_say_it(saved, log, tmp_path, capsys):
    settings = tmp_path / "release.toml"
    words = {"events": log, "mechanism": saved / "one_input", "out": tmp_path / "out", "time": "t", "by": "g"}
    words |= {"period": "1h", "adjacency": "one_input", **DAY}
    lines = [f'{name} = "{value}"\n' for name, value in words.items()]
    settings.write_text("".join([*lines, 'groups = ["JFK", "LGA", "EWR"]\nhigh = 30\nquiet = true\n']))
    assert main(["release", "--settings", str(settings)]) == 0
    assert "in one of the 3 streams" in capsys.readouterr().out


def test_estimates_state_no_error_that_v_contradicts(saved, tmp_path):
    """Of 600 hours with ten departures an hour, where the models say three, two and one."""
    rows = "".join(
        f"2020-01-{2 + h // 24:02}T{h % 24:02}:30Z,{g},\n" for h in range(600) for g in GROUPS for _ in range(10)
    )
    (tmp_path / "busy.csv").write_text(f"t,g,who\n{rows}")
    span = {"start": "2020-01-02T00:00Z", "end": "2020-01-27T00:00Z"}
    told = parse(
        "release", str(tmp_path / "busy.csv"), mechanism=saved / "one_input", out=tmp_path / "out", **WORDS, **span
    )
    release.run(told)
    assert {x[3] for x in rows_of(told)} == {""}
    content = json.loads((tmp_path / "out" / "model-check.json").read_text())
    assert (content["agrees"], content["contradicted_after"]) == (False, 600)
    assert any(x.startswith("of stream 1: the mean of the true values is about") for x in content["findings"])


def test_live_rows_state_no_error_from_the_bin_on_at_which_v_contradicts_the_models(tmp_path):
    """Of a hundred seconds with ten departures each, looked at behind the 64th, with a lag of two."""
    design = dp.lmmse(TARGET, dp.Privacy(8, 1e-3, adjacency="one_input"), MODELS, lag=2, tolerance=0.1)
    dp.save(design, tmp_path / "late")
    words = WORDS | {"start": "2020-01-02T00:00Z", "end": "2020-01-02T00:01:40Z", "period": "1s"}
    live = parse("release", "-", mechanism=tmp_path / "late", out=tmp_path / "out", follow=True, **words)
    span = Span.parse(live.start, live.end, live.period)
    came = [(span.start - 10, b"t,g\n")]
    for t in range(100):
        time = f"2020-01-02T00:{t // 60:02}:{t % 60:02}.5Z"
        came += [(span.start + t * 10**6 + 500_000, "".join(f"{time},{g}\n" * 10 for g in GROUPS).encode())]
    script = Script(span.start - 20, came, None)
    try:
        release.run(live, source=script, clock=script)
    finally:
        script.end()
    content = json.loads((tmp_path / "out" / "model-check.json").read_text())
    assert (content["agrees"], content["contradicted_after"]) == (False, 64)
    stated = [x[3] for x in rows_of(live)]
    errors = [f"{x:.6g}" for x in read(live).output_rmse_if_model_holds]
    assert stated == errors * 61 + [""] * (2 * 39)
