"""Releases, streams and the command under a ledger."""

import shutil
from fractions import Fraction

import numpy as np
import pytest
from helpers import releasing
from helpers.commands import refusal
from helpers.ledgers import DAY

import dpfast as dp
from dpfast.cli.main import main
from dpfast.privacy.composition import Loss
from dpfast.releases.store.release_store import ReleaseStore

COUNTS = np.array([3, 1, 2, 0, 4])
MODEL = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [0, 1])


@pytest.fixture
def folder(tmp_path):
    releasing.begin(tmp_path)
    return tmp_path


@pytest.fixture
def ledger(folder):
    return releasing.ledger_of(folder)


def capped(folder, **caps):
    return dp.Ledger.create(folder / "capped" / "l.sqlite", "guests", **caps)


def test_a_release_is_entered_as_what_it_costs(folder, ledger):
    plan = releasing.plan()
    result = dp.release(plan, COUNTS, folder / "store", first=7, ledger=ledger)
    (line,) = ledger.lines
    found = line.entry
    assert found.loss == result.guarantee.loss == Loss((plan.shift,))
    assert found.epsilon == Fraction(result.guarantee.loss.epsilon(1e-6))
    assert (found.release, found.first, found.count, found.kind, found.unit) == (1, 7, 5, "batch", "event")
    assert (found.delta, found.max_events, found.streams_per_person) == (Fraction(1e-6), 1, 1)
    assert (found.start, found.clock, found.groups) == (None, None, None)
    assert found.path == str(folder / "store")


def test_what_the_ledger_said_is_with_the_release_and_in_its_report(folder, ledger):
    first = dp.release(releasing.plan(), COUNTS, folder / "store", ledger=ledger)
    second = dp.release(releasing.plan(), COUNTS, folder / "store", compose=True, ledger=ledger)
    assert first.ledger.startswith(
        "The ledger of 'guests' has 1 entry. All releases have cost one event at most, at delta 1e-06"
    )
    assert second.ledger == ledger.statement().summary
    assert second.ledger.startswith("The ledger of 'guests' has 2 entries.")
    assert [dp.read_release(folder / "store", n).ledger for n in (1, 2)] == [first.ledger, second.ledger]
    dp.report(dp.read_release(folder / "store", 1), folder / "report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "What all releases have cost" in page
    assert "All releases have cost one event at most" in page
    assert str(folder) not in page
    dp.report(dp.release(releasing.plan(), COUNTS, folder / "alone"), folder / "alone.html")
    assert "What all releases have cost" not in (folder / "alone.html").read_text(encoding="utf-8")


def test_disjoint_steps_of_a_store_are_one_release_for_an_event_and_the_same_steps_two(folder, ledger):
    plan = releasing.plan()
    for first in (0, 5):
        dp.release(plan, COUNTS, folder / "store", first=first, ledger=ledger)
    assert ledger.statement().event.rho == plan.guarantee.zcdp_rho
    result = dp.release(plan, COUNTS, folder / "store", first=5, compose=True, ledger=ledger.path)
    assert ledger.statement().event.rho == 2 * plan.guarantee.zcdp_rho == result.guarantee.zcdp_rho
    dp.release(plan, COUNTS, folder / "other", ledger=str(ledger.path))
    assert ledger.statement().event.rho == 3 * plan.guarantee.zcdp_rho
    assert ledger.statement().event.n_entries == 4


def test_a_release_beyond_the_cap_publishes_nothing(folder):
    ledger = capped(folder, cap_epsilon=1.5, cap_delta=1e-5)
    dp.release(releasing.plan(), COUNTS, folder / "a", ledger=ledger)
    with pytest.raises(dp.ReleaseError, match="beyond the cap"):
        dp.release(releasing.plan(), COUNTS, folder / "b", ledger=ledger)
    with ReleaseStore.open(folder / "b") as store:
        assert store.releases() == []
        assert store.spent.remembered() is None
    with pytest.raises(dp.ReleaseError, match="beyond the cap"):
        dp.open_stream(releasing.plan(), folder / "c", ledger=ledger)
    assert len(ledger.lines) == 1
    dp.release(releasing.plan(), COUNTS, folder / "a", first=5, ledger=ledger)  # other events


def test_a_store_does_not_publish_without_its_ledger(folder, ledger):
    dp.release(releasing.plan(), COUNTS, folder / "store", ledger=ledger)
    with pytest.raises(
        dp.ReleaseError, match=r"ledger must be given: the store .*store enters its releases in the led"
    ):
        dp.release(releasing.plan(), COUNTS, folder / "store", first=5)
    assert dp.read_release(folder / "store").first == 0  # reading needs none
    with dp.open_stream(releasing.plan(), folder / "stream", ledger=ledger) as stream:
        stream.push(COUNTS)
    with pytest.raises(dp.ReleaseError, match="ledger must be given"):
        dp.open_stream(releasing.plan(), folder / "stream")
    other = capped(folder)
    for refuse in (
        lambda: dp.release(releasing.plan(), COUNTS, folder / "store", first=5, ledger=other),
        lambda: dp.open_stream(releasing.plan(), folder / "stream", ledger=other),
    ):
        with pytest.raises(dp.ReleaseError, match="ledger must be the one that the store has entered its releases in"):
            refuse()
    assert other.lines == []


def test_a_ledger_that_was_set_back_publishes_nothing(folder, ledger):
    old = ledger.path.read_bytes()
    dp.release(releasing.plan(), COUNTS, folder / "store", ledger=ledger)
    new = ledger.path.read_bytes()
    ledger.path.write_bytes(old)
    with pytest.raises(dp.ReleaseError, match=f"the ledger {ledger.path} was set back"):
        dp.release(releasing.plan(), COUNTS, folder / "store", first=5, ledger=ledger)
    assert len(releasing.published(folder)[0]) == 1
    ledger.path.write_bytes(new)
    dp.release(releasing.plan(), COUNTS, folder / "store", first=5, ledger=ledger)


def test_a_store_that_was_set_back_with_its_witness_is_refused(folder, ledger):
    """Nothing but the ledger can tell: the whole place of the store is that of another day."""

    def publish(name):
        if name == "stream":
            dp.open_stream(releasing.plan(), folder / name, ledger=ledger).suspend()
        else:
            dp.release(releasing.plan(), COUNTS, folder / name, ledger=ledger)

    for name in ("store", "stream"):
        with ReleaseStore.open(folder / name):
            pass
        kept = shutil.copytree(folder / name, folder / f"{name}-kept")
        publish(name)
        assert ledger.lines[-1].published
        for path in (folder / f"{name}-published").iterdir():
            path.unlink()
        shutil.copy2(kept / "store.sqlite", folder / name / "store.sqlite")
        (folder / name / "mark").unlink()
        with ReleaseStore.open(folder / name, adopt=True):
            pass
        with pytest.raises(
            dp.ReleaseError, match=rf"{name} was set back: the ledger .* knows that it has published ent"
        ):
            publish(name)


def fail(*args):
    raise dp.ReleaseError("in use")


def test_a_ledger_that_cannot_be_told_is_told_at_the_next_opening(folder, ledger, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(dp.Ledger, "confirm", fail)
        dp.release(releasing.plan(), COUNTS, folder / "store", ledger=ledger)
    assert not ledger.lines[0].published
    dp.release(releasing.plan(), COUNTS, folder / "store", first=5, ledger=ledger)
    assert [x.published for x in ledger.lines] == [True, True]


def test_what_a_store_has_published_before_is_entered_with_its_next_release(folder, ledger):
    dp.release(releasing.plan(), COUNTS, folder / "store")
    dp.release(releasing.plan(), COUNTS, folder / "store", compose=True)
    dp.release(releasing.plan(), COUNTS, folder / "store", first=5, ledger=ledger)
    assert [(x.entry.release, x.entry.first) for x in ledger.lines] == [(1, 0), (2, 0), (3, 5)]
    assert releasing.published(folder)[1] == {1: 1, 2: 2, 3: 3}
    assert ledger.statement().event.rho == 2 * releasing.plan().guarantee.zcdp_rho
    with dp.open_stream(releasing.plan(), folder / "stream") as stream:
        stream.push(COUNTS)
    with dp.open_stream(releasing.plan(), folder / "stream", ledger=ledger):
        assert len(ledger.lines) == 4
    with dp.open_stream(releasing.plan(), folder / "stream", ledger=ledger) as stream:
        stream.push(COUNTS)  # the store learns of it with this push
    assert len(ledger.lines) == 4
    assert releasing.published(folder, "stream")[1] == {4: 1}


def test_a_stream_is_entered_for_all_its_life_before_its_first_step(folder, ledger):
    with dp.open_stream(releasing.plan(), folder / "stream", ledger=ledger) as stream:
        (line,) = ledger.lines
        stream.push(COUNTS)
    for _ in range(2):
        with dp.open_stream(releasing.plan(), folder / "stream", ledger=ledger) as stream:
            stream.push(COUNTS)
    assert ledger.lines == [line]
    assert (line.entry.kind, line.entry.first, line.entry.count) == ("live", 0, None)


def test_an_interrupted_release_is_found_by_the_same_one_and_no_other(folder, ledger, monkeypatch):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ReleaseStore, "enter_batch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            dp.release(releasing.plan(), COUNTS, folder / "store", ledger=ledger)
    assert len(ledger.lines) == 1
    dp.release(releasing.plan(), COUNTS[:4], folder / "store", first=20, ledger=ledger)
    assert len(ledger.lines) == 2  # another release: the first stays spent
    dp.release(releasing.plan(), COUNTS, folder / "store", ledger=ledger)
    assert len(ledger.lines) == 2
    assert releasing.published(folder)[1] == {1: 2, 2: 1}


def test_damage_of_what_a_store_remembers_is_refused(folder, ledger):
    import sqlite3
    from contextlib import closing

    dp.release(releasing.plan(), COUNTS, folder / "store", ledger=ledger)
    with closing(sqlite3.connect(folder / "store" / "store.sqlite")) as connection:
        connection.execute("UPDATE ledger SET entries = 0")
        connection.commit()
    with pytest.raises(dp.ReleaseError, match="damaged"):
        dp.release(releasing.plan(), COUNTS, folder / "store", first=5, ledger=ledger)


# --- the command ----------------------------------------------------------------------------------

LOG = "when,place\n" + "".join(f"2020-01-0{d}T{h:02}:10,{'ab'[h % 2]}\n" for d in (1, 2, 3) for h in range(24))


@pytest.fixture
def saved(folder):
    path = folder / "mechanism.json"
    dp.save(releasing.plan().mechanism, path)
    (folder / "log.csv").write_text(LOG)
    return path


def words(folder, day, *more, out="out", **given):
    span = {"--start": f"2020-01-0{day}", "--end": f"2020-01-0{day + 1}", "--period": "1h", "--high": "20"}
    given = {f"--{name.replace('_', '-')}": str(value) for name, value in given.items()}
    pairs = {"--mechanism": folder / "mechanism.json", "--out": folder / out, "--time": "when", **span, **given}
    pairs |= {"--ledger": folder / "capped" / "l.sqlite", "--tolerance": "0.1"}
    return ["release", str(folder / "log.csv"), *(str(x) for pair in pairs.items() for x in pair), "--quiet", *more]


def run_ledger(capsys, *given):
    assert main(["ledger", *map(str, given)]) == 0
    return capsys.readouterr().out


def test_the_command_enters_time_and_groups(folder, saved, capsys):
    file = folder / "capped" / "l.sqlite"
    made = run_ledger(capsys, file, "--create", "--population", "guests", "--cap-epsilon", "2", "--cap-delta", "2e-6")
    assert f"Made. Give it to every release of these people's data: --ledger {file}" in made
    assert "The cap allows a sum of epsilon of 2, of which 0 is spent and 2 is left" in made
    for day in (1, 2):
        assert main(words(folder, day, by="place", groups="a,b", name=f"day-{day}")) == 0
    capsys.readouterr()
    ledger = dp.Ledger.open(file)
    first, second = (x.entry for x in ledger.lines)
    day = int(np.datetime64("2020-01-01", "us").astype(np.int64))
    assert (first.start, first.end, second.start) == (day, day + DAY, day + DAY)
    assert (first.clock, first.column, first.groups) == (("when", "null", "local"), "place", ("a", "b"))
    assert (first.name, first.release, second.release) == ("day-1", 1, 2)
    assert ledger.statement().event.sum_of_epsilons == first.epsilon  # no event is in both
    assert main(words(folder, 2, out="again")) == 0  # another store, all places
    capsys.readouterr()
    assert ledger.statement().event.sum_of_epsilons == first.epsilon + ledger.lines[2].entry.epsilon
    said = run_ledger(capsys, file, "--window", "1d", "--population", "guests")
    assert "3 entries of 2 stores" in said
    assert "The releases of any 1d have cost one event at most, at delta 2e-06, epsilon " in said
    assert str(folder / "again-private") in said
    line = refusal(words(folder, 2, out="third"), capsys)
    assert "beyond the cap" in line
    assert not (folder / "third").exists()
    assert not (folder / "third-private").exists()
    assert len(ledger.lines) == 3


def test_the_command_refuses_before_data_are_read(folder, saved, capsys):
    capped(folder, cap_epsilon=0.5)
    (folder / "log.csv").unlink()
    assert "beyond the cap" in refusal(words(folder, 1), capsys)


def test_an_unsound_file_spends_nothing(folder, saved, capsys):
    ledger = capped(folder)
    (folder / "log.csv").write_text("when\n2020-01-01T00:00\nyesterday\n")
    assert "when" in refusal(words(folder, 1), capsys)
    assert ledger.lines == []


def test_the_same_command_again_enters_nothing(folder, saved, capsys):
    ledger = capped(folder, cap_epsilon=1, cap_delta=1e-6)
    for _ in range(2):
        assert main(words(folder, 1)) == 0
    assert "nothing spent" in capsys.readouterr().out
    assert len(ledger.lines) == 1
    missing = [x for x in words(folder, 2) if x not in ("--ledger", str(ledger.path))]
    assert "ledger must be given" in refusal(missing, capsys)


def test_the_same_command_again_enters_what_was_published_without_a_ledger(folder, saved, capsys):
    """Else it would say that a ledger counts what it costs, and the ledger would know nothing."""
    ledger = capped(folder, cap_epsilon=1, cap_delta=1e-6)
    without = [x for x in words(folder, 1) if x not in ("--ledger", str(ledger.path))]
    assert main(without) == 0
    assert ledger.lines == []
    for _ in range(2):
        assert main(words(folder, 1)) == 0
    assert len(ledger.lines) == 1
    capsys.readouterr()
    assert "beyond the cap" in refusal(words(folder, 1, out="another"), capsys)


def test_the_same_command_again_tells_a_ledger_that_could_not_be_told(folder, saved, monkeypatch):
    """As where the disk was full then: else a store that is set back would not be known to have published."""
    ledger = capped(folder)
    with monkeypatch.context() as patch:
        patch.setattr(dp.Ledger, "confirm", fail)
        assert main(words(folder, 1)) == 0
    assert not ledger.lines[0].published
    assert main(words(folder, 1)) == 0
    assert ledger.lines[0].published


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--create"], "population must be given with --create"),
        (["--create", "--population", "x", "--window", "1d"], "window must come without --create"),
        (["--create", "--population", "x", "--cap-delta", "0.1"], "cap_delta must come with cap_epsilon or cap_rho"),
        (["--cap-epsilon", "1"], "cap_epsilon must come with --create"),
        (["--delta", "2"], "delta must be a number from 0 to below 1, got 2.0"),
        (["--population", "others"], "population must be that of the ledger"),
    ],
)
def test_options_that_do_not_go_together_are_refused_by_name(ledger, given, message, capsys):
    assert message in refusal(["ledger", str(ledger.path), *given], capsys)


def test_a_ledger_is_adopted_by_the_command(ledger, capsys):
    moved = ledger.path.rename(ledger.path.with_name("moved.sqlite"))
    assert "copied or moved" in refusal(["ledger", str(moved)], capsys)
    assert "Nothing was spent." in run_ledger(capsys, moved, "--adopt")
    run_ledger(capsys, moved)


# --- other noise ----------------------------------------------------------------------------------


def test_releases_of_geometric_noise_reach_their_cap_and_are_stated_together(folder):
    """Block sums of pure epsilon; each release is of the same people, as its steps are published again."""
    blocks = dp.exact(dp.block_sums(dp.Filter([0.5, 0.5]), dp.Privacy(1), MODEL), dp.Inputs(0, 20))
    ledger = capped(folder, cap_epsilon=3)
    for n in range(3):
        result = dp.release(blocks, np.arange(8), folder / "store", compose=n > 0, ledger=ledger)
    with pytest.raises(dp.ReleaseError, match="beyond the cap"):
        dp.release(blocks, np.arange(8), folder / "store", compose=True, ledger=ledger)
    entries = [x.entry for x in ledger.lines]
    assert all(x.loss == blocks.guarantee.loss and x.delta == 0 for x in entries)
    said = ledger.statement(delta=0.05)
    together = Loss(pure=blocks.guarantee.loss.pure * 3)
    assert said.event.epsilon == together.epsilon(0.05) < 3
    assert said.event.sum_of_epsilons == pytest.approx(3, abs=1e-7)
    assert result.guarantee.loss == together
