import contextlib
import csv
import functools
import gzip
import io
import sys
from fractions import Fraction

import numpy as np
import pytest
from helpers.commands import parse, refusal
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.cli import release
from dpfast.cli.main import main
from dpfast.releases import batch_estimates_file
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.signals.events.declared_counts import count_events
from dpfast.signals.events.declared_span import Span

LOG = "when,place,many\n" + "".join(
    f"2020-01-0{d}T{h:02}:{m:02},{'abc'[(h + m) % 3]},{1 + m % 2}\n"
    for d in (1, 2, 3)
    for h in range(24)
    for m in range(0, 60, 7 + h % 5)
)
DAY = {"--time": "when", "--start": "2020-01-02", "--end": "2020-01-03", "--period": "1h", "--high": "50"}


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """A mechanism of lag 2, saved."""
    path = tmp_path_factory.mktemp("saved") / "mechanism.json"
    model = dp.ARMA([1], [1, -0.5], mean=2.0)
    target = dp.Filter(np.ones(3) / 3)
    dp.save(dp.lmmse(target, dp.Privacy(5, 1e-6), model, lag=2, prefilter=dp.Filter([1, 0.5])), path)
    return str(path)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(LOG)
    return str(path)


def arguments(events, saved, out, *flags, **change):
    words = DAY | {f"--{name.replace('_', '-')}": value for name, value in change.items()}
    pairs = [word for pair in words.items() for word in pair]
    return ["release", str(events), "--mechanism", str(saved), "--out", str(out), *pairs, *flags]


def test_what_has_no_exact_form_is_refused_by_name(log, tmp_path, capsys):
    model, file = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [0, 1]), tmp_path / "blocks.json"
    dp.save(dp.block_sums(dp.Filter([0.5, 0.5]), dp.Privacy(1), model, length=2, noise="staircase"), file)
    line = refusal(arguments(log, file, tmp_path / "out"), capsys)
    assert "got the BlockMechanism 'block sums lag 0': staircase noise cannot be drawn exactly so far" in line
    assert not (tmp_path / "out").exists()


def beside(out):
    """The private store of a published folder."""
    return out.absolute().with_name(f"{out.name}-private")


def failing(given_arguments, capsys):
    assert main(given_arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    *private, error = captured.err.splitlines()
    assert all(line.startswith("PRIVATE ") for line in private)
    assert error.startswith("dpfast: error: ")
    return error


def rows(out):
    with (out / "estimates.csv").open() as file:
        return list(csv.reader(file))


# --- a file


def test_a_log_is_published(log, saved, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(arguments(log, saved, out, by="place", groups="c,nobody,a")) == 0
    printed = capsys.readouterr().out
    assert "(ε, δ)" in printed
    files = ", ".join(str(out / x) for x in ("estimates.csv", "report.html", "model-check.json"))
    assert " ".join(printed.split()).endswith(f"Written: {files} Private store: {beside(out)}")
    header, *body = rows(out)
    assert header == ["time", "group", "estimate", "predicted_rmse_if_model_holds"]
    assert [row[:2] for row in body] == [
        [f"2020-01-02T{h:02}:00:00", g] for h in range(24) for g in ("c", "nobody", "a")
    ]
    with ReleaseStore.open(beside(out), out) as store:
        (entry,) = store.releases()
        _, estimate = store.read(entry.id, entry.first, 24)
    largest = np.abs([float(row[2]) for row in body] - estimate.T.ravel()).max()
    assert largest <= 1.05 * dp.load(saved).predicted_rmse / 199  # the file has none where v contradicts the model
    assert (entry.first, entry.count) == (24 * 18263, 24)  # hours from 1970 to 2020-01-02


def test_only_declared_counts_reach_the_release(log, saved, tmp_path, monkeypatch):
    seen = {}

    def spy(plan, u, first, *, compose, name, persons):
        seen.update(u=u, inputs=plan.inputs, first=first, compose=compose)

    def opened(path, published, *, adopt, witness):
        seen.update(path=path, published=published, adopt=adopt)
        raise ReleaseError("enough")

    monkeypatch.setattr(release, "Batch", spy)
    monkeypatch.setattr(release.ReleaseStore, "open", opened)
    out = tmp_path / "out"
    change = {"by": "place", "groups": 'a,"b"', "count": "many", "centre": "2", "unit": "2", "low": "0", "high": "20"}
    assert main(arguments(log, saved, out, "--compose", "--adopt", streams_per_person="2", **change)) == 2
    span = Span.parse("2020-01-02", "2020-01-03", "1h")
    log = count_events(log, span, ("a", "b"), time="when", by="place", count="many", largest=1)
    np.testing.assert_array_equal(seen["u"], log.counts)
    inputs = seen["inputs"]
    assert (inputs.low, inputs.high, inputs.unit, inputs.centre) == (0, 20, 2, 2)
    assert (inputs.n_streams, inputs.streams_per_person, inputs.multiples) == (2, 2, False)
    assert (seen["first"], seen["compose"], seen["adopt"]) == (24 * 18263, True, True)
    assert (seen["path"], seen["published"]) == (beside(out), out)


def test_counts_are_multiples_of_a_unit_that_divides_one(log, saved, tmp_path, monkeypatch):
    def spy(plan, u, first, *, compose, name, persons):
        raise ReleaseError(f"multiples: {plan.inputs.multiples}")

    monkeypatch.setattr(release, "Batch", spy)
    for unit, expected in (("1", True), ("0.5", True), ("1/3", True), ("2", False), ("2/3", False), ("0.4", False)):
        options = parse(
            "release", *arguments(log, saved, tmp_path / "out", unit=unit, high=str(Fraction(unit) * 60))[1:]
        )
        with pytest.raises(ReleaseError, match=f"multiples: {expected}"):
            release.run(options)


def test_estimates_are_those_of_the_counts(log, tmp_path):
    """With little noise they are the target's output, but for 9 standard deviations: 1e-17 for all together."""
    path, out = tmp_path / "mechanism.json", tmp_path / "out"
    dp.save(dp.zero_forcing(dp.Filter([0.5, 0.5]), dp.Privacy(50, 0.1)), path)
    assert main(arguments(log, path, out)) == 0
    u = count_events(log, Span.parse("2020-01-02", "2020-01-03", "1h"), ("all",), time="when").counts[0]
    y = np.convolve(u, [0.5, 0.5])[:24]
    body = rows(out)[1:]
    assert np.abs([float(row[2]) for row in body] - y).max() < 9 * float(body[0][3])
    assert 0 < float(body[0][3]) < 0.5


def test_parquet(log, saved, tmp_path):
    from pyarrow import parquet

    assert main(arguments(log, saved, tmp_path / "out", format="parquet")) == 0
    table = parquet.read_table(tmp_path / "out" / "estimates.parquet")
    assert table.num_rows == 24
    assert not (tmp_path / "out" / "estimates.csv").exists()


def test_a_missing_extra_is_told_before_anything_is_released(log, saved, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert "pip install" in failing(arguments(log, saved, tmp_path / "out", format="parquet"), capsys)
    assert not (tmp_path / "out").exists()


def test_a_store_may_be_elsewhere_and_goes_on(log, saved, tmp_path, capsys):
    out, store = tmp_path / "out", str(tmp_path / "private")
    assert main(arguments(log, saved, out, store=store)) == 0
    first = (out / "estimates.csv").read_bytes()
    again = arguments(log, saved, out, store=store)
    next_day = {"start": "2020-01-03", "end": "2020-01-04", "store": store}
    capsys.readouterr()
    assert "move it away" in failing(arguments(log, saved, out, **next_day), capsys)
    (out / "estimates.csv").rename(out / "first.csv")
    assert main(arguments(log, saved, out, **next_day)) == 0
    assert main(arguments(log, saved, tmp_path / "other", **next_day)) == 2
    (out / "estimates.csv").unlink()
    assert main(again) == 0
    assert (out / "estimates.csv").read_bytes() == first
    capsys.readouterr()
    assert main([*again, "--compose", "--name", "again"]) == 0
    assert "composed" in capsys.readouterr().out
    assert (out / "estimates-again.csv").read_bytes() != first


@pytest.mark.parametrize("store", ["out", "out/private", "out/../out/deep/private", "link/private"])
def test_a_store_in_the_folder_of_what_is_public_is_refused(log, saved, tmp_path, capsys, store):
    """Whoever copied that folder would copy the last inputs."""
    (tmp_path / "link").symlink_to("out")
    message = failing(arguments(log, saved, tmp_path / "out", store=str(tmp_path / store)), capsys)
    assert "store must not lie in the folder of what is public" in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("out", ["..", "out/.."])
def test_the_store_lies_beside_what_is_published_however_that_is_called(log, saved, tmp_path, monkeypatch, out):
    """And not in it, with a name such as `..-private`."""
    here = tmp_path / "public" / "here"
    (here / "out").mkdir(parents=True)
    monkeypatch.chdir(here)
    folder = (here / out).resolve()
    assert main(arguments(log, saved, out)) == 0
    assert (beside(folder) / "store.sqlite").is_file()
    assert [*folder.rglob("*.sqlite")] == []
    assert main(arguments(log, saved, folder)) == 0
    assert main(["release", "--read", str(beside(folder))]) == 0


def test_beside_the_root_folder_there_is_no_place_for_a_store(log, saved, capsys, monkeypatch):
    monkeypatch.setattr(release, "OutputFolder", lambda *_: None)  # not everybody may write there
    assert "store must be given where out is /" in failing(arguments(log, saved, "/"), capsys)


def test_what_could_not_be_written_is_in_the_store(log, saved, tmp_path, capsys, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(batch_estimates_file, "replace_file", full)
        message = failing(arguments(log, saved, tmp_path / "out"), capsys)
    assert "No space left on device; what was released is in the store" in message
    assert "run the same command again, which publishes nothing more" in message
    assert main(arguments(log, saved, tmp_path / "out")) == 0
    assert len(rows(tmp_path / "out")) == 25


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"time": "nowhen"}, "'nowhen'"),
        ({"by": "place"}, "groups must be declared"),
        ({"groups": "a"}, "groups must come with by"),
        ({"by": "place", "groups": "a,a"}, "distinct"),
        ({"by": "place", "groups": ""}, "distinct"),
        ({"start": "2020-01-02T00:30"}, "end must be a whole number of periods"),
        ({"start": "2020-01-02T00:30", "end": "2020-01-02T02:30"}, "such as 2020-01-02T00:00"),
        ({"start": "1969-01-02", "end": "1969-01-03"}, "start must be a whole number of periods after 1970"),
        ({"start": "2020-01-02T00:00Z"}, "end must be with a UTC offset"),
        ({"start": "2020-01-02T00:00Z", "end": "2020-01-03T00:00Z"}, "must hold timestamps with a UTC offset"),
        ({"period": "1month"}, "period must be"),
        ({"time_format": "when"}, "time_format must be"),
        ({"high": "0"}, "low must be below high"),
        ({"high": "1/3"}, "high must be a multiple of the unit"),
        ({"unit": "0"}, "unit must be from 1e-50"),
        ({"centre": "60"}, "centre must be in the range"),
        ({"streams_per_person": "2"}, "streams_per_person must be"),
        ({"tolerance": "0"}, "tolerance must be"),
        ({"grace": "1s"}, "grace must come with --follow"),
        ({"keep_steps": "5"}, "keep_steps must come with --follow"),
        ({"count": "place"}, "whole numbers"),
        ({"time": "caf\udce9"}, "time must be text"),
        ({"by": "caf\udce9", "groups": "a"}, "by must be text"),
    ],
)
def test_bad_declarations_are_one_line_and_nothing_is_written(log, saved, tmp_path, capsys, change, message):
    assert message in failing(arguments(log, saved, tmp_path / "out", **change), capsys)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "change", [{"high": "3/0"}, {"high": "many"}, {"streams_per_person": "0"}, {"format": "xls"}, {"groups": '"a'}]
)
def test_usage_errors_end_with_2(log, saved, tmp_path, change):
    with pytest.raises(SystemExit) as ended:
        main(arguments(log, saved, tmp_path / "out", **change))
    assert ended.value.code == 2


def test_designs_from_private_data_are_refused(log, tmp_path, capsys):
    model = dp.ARMA([1], [1, -0.5], source="fitted-from-private")
    dp.save(dp.lmmse(dp.Filter([1.0]), dp.Privacy(1, 1e-6), model, lag=0), tmp_path / "m.json")
    assert "private data" in failing(arguments(log, tmp_path / "m.json", tmp_path / "out"), capsys)
    assert not (tmp_path / "out").exists()


def test_other_files_and_folders_are_refused(log, saved, tmp_path, capsys):
    assert "cannot be used" in failing(arguments(log, log, tmp_path / "out"), capsys)
    assert "cannot write" in failing(arguments(log, saved, log), capsys)
    assert "none.csv" in failing(arguments(tmp_path / "none.csv", saved, tmp_path / "out"), capsys)
    assert "events must be -" in failing(arguments("-", saved, tmp_path / "out"), capsys)
    assert not (tmp_path / "out").exists()


# --- unsound files: refused as a whole, without a word of what they hold

SECRET = "Zq7Zq7"
WHOLE = LOG.encode()
PACKED = gzip.compress(WHOLE, mtime=0)
unsound = st.one_of(
    st.binary(max_size=200),
    st.binary(min_size=1, max_size=40).map(lambda x: WHOLE + b"\n\xff" + x),
    st.integers(1, len(PACKED) - 1).map(lambda n: PACKED[:n]),
    st.sampled_from(["-1", "1e30", "0.5", "nan", "", SECRET]).map(lambda n: f"{LOG}2020-01-02,{SECRET},{n}\n".encode()),
    st.sampled_from([f"{SECRET},a,1", f"2020-01-02,{SECRET}", f"2020-01-02,a,1,{SECRET}", f'2020-01-02,"{SECRET}'])
    .map(lambda row: f"{LOG}{row}\n".encode()),
    st.sampled_from([f"{SECRET},a,b\n", f"when,place,when\n{SECRET},1,1\n"]).map(str.encode),
    st.permutations(LOG.splitlines()[:9]).filter(lambda x: x[0][0] == "2").map(lambda x: "\n".join(x).encode()),
)  # fmt: skip


@given(unsound)
def test_unsound_files_are_one_line_and_nothing_is_released(tmp_path_factory, saved, content):
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "log.csv").write_bytes(content)
    plan, change, printed = plan_of(saved), {"by": "place", "groups": "a,b", "count": "many"}, io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(printed):
        patch.setattr(release, "exact", lambda *_, **__: plan)
        assert main(arguments(folder / "log.csv", saved, folder / "out", "--quiet", **change)) == 2
    text = printed.getvalue()
    assert text.startswith("dpfast: error: ")
    assert text.count("\n") == 1
    assert SECRET not in text
    assert not (folder / "out").exists()


@functools.cache
def plan_of(saved):
    return release.exact(dp.load(saved), Inputs(0, 50, n_streams=2))


@pytest.mark.parametrize("kind", ["posterior mean", "unequal shares"])
def test_what_design_saves_is_released_and_read_back(kind, log, tmp_path, capsys):
    """A file of each form of block sums: v and estimates of the store are those of the saved design."""
    target, file = dp.Filter([0.1], [1, -0.9]), tmp_path / "blocks.json"
    if kind == "posterior mean":
        chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [0, 1])
        design = dp.block_sums(target, dp.Privacy(2), chain, length=3, lag=2, receiver="bayes")
    else:
        counts = dp.ARMA([1], [1, -0.5], mean=2.0)
        design = dp.block_sums(target, dp.Privacy(1), counts, length=(2, 6), shares=(0.75, 0.25))
    dp.save(design, file)
    out = tmp_path / "out"
    assert main(arguments(log, file, out, high="1")) == 0
    said = capsys.readouterr().out
    assert ("on sums of 2: two-sided geometric" in said) == (kind == "unequal shares")
    plan = dp.exact(design, dp.Inputs(0, 1))
    read = dp.read_release(beside(out))
    np.testing.assert_array_equal(read.estimate, plan.estimate(read.privatized, 24)[:, plan.lag :])
    assert read.guarantee.loss == plan.guarantee.loss
    assert (read.predicted_rmse_if_model_holds is None) == (kind == "posterior mean")
    rows = list(csv.DictReader((out / "estimates.csv").read_text().splitlines()))
    assert len(rows) == 24
    if kind == "posterior mean":  # of the other there is one, unless v contradicts the model
        assert rows[0]["predicted_rmse_if_model_holds"] == ""
    assert main(["release", "--read", str(beside(out))]) == 0
