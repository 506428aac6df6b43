"""The ledger's file: entered once, never less than what was spent, and refused where it is not the newest."""

import itertools
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from helpers.ledgers import DAY, dated, entry

import dpfast as dp
from dpfast.privacy.composition import Loss
from dpfast.privacy.discrete_gaussian_accounting import Shift, Sigma
from dpfast.releases.ledger.ledger import as_ledger

NOISE = (Shift(1, Sigma(20, 0), 1),)
posix = pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")


NAMES = (f"ledger-{n}" for n in itertools.count())


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.engines)])
def ledger(request, tmp_path):
    place = tmp_path / "ledger" / "ledger.sqlite"
    if request.param == "postgres":
        place = dp.Postgres(request.getfixturevalue("postgres_server").address, next(NAMES))
    return dp.Ledger.create(place, "guests", cap_epsilon=12)


in_a_file = pytest.mark.parametrize("ledger", ["file"], indirect=True)


def same(n=1, **given):
    """Entries that add up, of different stores."""
    return [entry(store=f"s{i}", max_events=2, **given) for i in range(n)]


# --- entering -------------------------------------------------------------------------------------


def test_entries_are_numbered_and_stay(ledger):
    numbers, first = ledger.enter(same(2))
    assert numbers == [1, 2]
    numbers, second = ledger.enter(same(3)[2:], first)
    assert numbers == [3]
    lines = dp.Ledger.open(ledger.path).lines
    assert [x.number for x in lines] == [1, 2, 3]
    assert [x.entry for x in lines] == same(3)
    assert (first.entries, second.entries) == (2, 3)
    assert second == ledger.attest()


def test_the_same_release_of_a_store_is_found_and_not_entered_again(ledger):
    (first,), seen = ledger.enter(same())
    assert ledger.enter([entry(max_events=2, store="s0", release=7, path="/moved")], seen)[0] == [first]
    assert len(ledger.lines) == 1
    assert ledger.enter(same(), seen, used=[first])[0] == [2]  # another one, as the first was published
    for other in ({"first": 1}, {"name": "x"}, {"epsilon": 2}, {"count": 9}, {"kind": "live"}):
        number = len(ledger.lines) + 1
        assert ledger.enter([entry(**{"max_events": 2, "store": "s0", "epsilon": 1} | other)])[0] == [number]


def test_two_equal_entries_at_once_are_two(ledger):
    assert ledger.enter(same() * 2)[0] == [1, 2]


@in_a_file
def test_a_cap_is_reached_exactly_and_not_passed(ledger):
    for item in same(12):
        ledger.check([item], None, [])
        ledger.enter([item])
    assert ledger.statement().left == 0
    before = ledger.path.read_bytes()
    for refuse in (lambda x: ledger.check(x, None, []), ledger.enter):
        with pytest.raises(
            dp.ReleaseError,
            match=r"epsilon may be 12, is 12 and would be 13.*Nothing more is published, and nothing was entered",
        ):
            refuse(same(13)[12:])
    assert ledger.path.read_bytes() == before
    assert ledger.enter(same(12)[11:])[0] == [12]  # what was entered is found also at the cap


def test_an_entry_beyond_the_cap_in_parallel_is_within(ledger):
    ledger.enter([dated(0, 1, epsilon=12)])
    ledger.enter([dated(1, 2, epsilon=12)])
    with pytest.raises(dp.ReleaseError, match="beyond the cap"):
        ledger.enter([dated(1, 2, first=3, epsilon=1)])


# --- what is refused ------------------------------------------------------------------------------


@in_a_file
def test_a_ledger_that_was_set_back_is_refused(ledger, tmp_path):
    old = ledger.path.read_bytes()
    _, seen = ledger.enter(same(2))
    ledger.path.write_bytes(old)
    for refuse in (lambda: ledger.check([], seen, []), lambda: ledger.enter(same(), seen)):
        with pytest.raises(dp.ReleaseError, match=r"ledger.sqlite was set back: it has 0 entries, and the store remem"):
            refuse()
    ledger.enter(same(4)[2:])  # as many, others
    with pytest.raises(dp.ReleaseError, match="set back: it has 2 entries, and the store remembers 2, or other ones"):
        ledger.enter(same(), seen)


def test_another_ledger_is_refused(ledger, tmp_path):
    _, seen = ledger.enter(same())
    other = dp.Ledger.create(tmp_path / "other" / "ledger.sqlite", "guests")
    with pytest.raises(dp.ReleaseError, match=r"ledger must be the one .* entered its releases in, of id .*other"):
        other.enter(same(), seen)


def test_another_population_is_refused(ledger):
    assert dp.Ledger.open(ledger.path, population="guests").population == "guests"
    with pytest.raises(dp.ReleaseError, match=r"population must be that of the ledger .* 'guests', got 'patients'"):
        dp.Ledger.open(ledger.path, population="patients")


@pytest.mark.parametrize("population", ["", "  ", "a\nb", None, 3])
def test_a_population_is_said_in_words(population, tmp_path):
    with pytest.raises(ValueError, match="population must be printable text"):
        dp.Ledger.create(tmp_path / "l" / "l.sqlite", population)


@in_a_file
def test_a_copy_is_refused_until_it_is_adopted(ledger, tmp_path):
    ledger.enter(same())
    copy = tmp_path / "ledger" / "copy.sqlite"
    shutil.copy2(ledger.path, copy)
    with pytest.raises(dp.ReleaseError, match=r"copy.sqlite was copied or moved: it was at .*ledger.sqlite"):
        dp.Ledger.open(copy)
    assert len(dp.Ledger.open(copy, adopt=True).lines) == 1
    assert len(dp.Ledger.open(copy).lines) == 1
    assert len(dp.Ledger.open(ledger.path).lines) == 1
    moved = ledger.path.rename(tmp_path / "ledger" / "moved.sqlite")
    with pytest.raises(dp.ReleaseError, match="copied or moved"):
        dp.Ledger.open(moved)
    shutil.copy2(moved, ledger.path)  # another file at the same place
    with pytest.raises(dp.ReleaseError, match="copied or moved"):
        dp.Ledger.open(ledger.path)


def test_a_missing_ledger_is_never_begun_by_opening(tmp_path):
    for path in (tmp_path / "nowhere" / "l.sqlite", tmp_path / "l.sqlite"):
        tmp_path.chmod(0o700)
        with pytest.raises(dp.ReleaseError, match=r"l.sqlite is not there. A new one is made by dpfast ledger"):
            dp.Ledger.open(path)
        assert not path.exists()


@in_a_file
def test_a_ledger_that_is_there_is_not_made_again(ledger):
    before = ledger.path.read_bytes()
    with pytest.raises(dp.ReleaseError, match="is there already: open it"):
        dp.Ledger.create(ledger.path, "guests")
    assert ledger.path.read_bytes() == before
    assert [x.name for x in ledger.path.parent.iterdir()] == [ledger.path.name]


@posix
def test_a_new_ledger_closes_a_folder_first(tmp_path):
    """What has been open to others for long is told from an empty folder, which nobody has read anything in."""
    folder = tmp_path / "books"
    folder.mkdir(mode=0o755)
    with pytest.raises(dp.ReleaseError, match=r"books is to hold private data .* \(mode 755\): run: chmod 700 "):
        dp.Ledger.create(folder / "ledger.sqlite", "guests")
    (folder / "old").touch()
    with pytest.raises(
        dp.ReleaseError, match=r"books holds private data .*: find out who has read it, then run: chmod"
    ):
        dp.Ledger.create(folder / "ledger.sqlite", "guests")


@in_a_file
@posix
def test_a_ledger_is_for_its_owner_alone(ledger):
    assert (ledger.path.stat().st_mode & 0o777, ledger.path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    for path, mode in ((ledger.path, 0o640), (ledger.path.parent, 0o755)):
        path.chmod(mode)
        with pytest.raises(dp.ReleaseError, match=rf"must be for its owner alone, and {path} is open to others"):
            ledger.enter(same())
        path.chmod(0o600 if path == ledger.path else 0o700)
    link = ledger.path.with_name("link.sqlite")
    link.symlink_to(ledger.path)
    with pytest.raises(dp.ReleaseError, match="is a link"):
        dp.Ledger.open(link)


@in_a_file
def test_damage_is_refused_wherever_it_is(ledger):
    """A byte of each 64 is changed: what is read afterwards is the same, or nothing."""
    ledger.enter(same(3))
    whole, lines = ledger.path.read_bytes(), ledger.lines
    refused = 0
    for at in range(0, len(whole), 64):
        content = bytearray(whole)
        content[at] ^= 0x41
        ledger.path.write_bytes(content)
        try:
            found = dp.Ledger.open(ledger.path).lines
        except dp.ReleaseError:
            refused += 1
        else:
            assert found == lines
    assert refused > 5
    for size in (0, 100, 4096, len(whole) - 4096):
        ledger.path.write_bytes(whole[:size])
        with pytest.raises(dp.ReleaseError, match="damaged, or no ledger"):
            dp.Ledger.open(ledger.path)


@in_a_file
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entries WHERE number = 2",
        "UPDATE entries SET number = 9 WHERE number = 3",
        "UPDATE entries SET entered = '' WHERE number = 1",
        "UPDATE entries SET content = replace(content, 'batch', 'livee') WHERE number = 1",
        "UPDATE meta SET cap = ''",
        "DELETE FROM meta",
        "DELETE FROM place",
        "DROP TABLE entries",
        "INSERT INTO published VALUES (1, 0)",
    ],
)
def test_rows_that_were_changed_are_refused(ledger, statement):
    ledger.enter(same(3))
    with closing(sqlite3.connect(ledger.path)) as connection:
        connection.execute(statement)
        connection.commit()
    with pytest.raises(dp.ReleaseError, match="damaged, or no ledger"):
        dp.Ledger.open(ledger.path)


@in_a_file
def test_a_ledger_of_a_later_version_is_refused(ledger):
    from dpfast._support import checksums

    with closing(sqlite3.connect(ledger.path)) as connection:
        row = connection.execute("SELECT * FROM meta").fetchone()
        connection.execute("DELETE FROM meta")
        connection.execute("INSERT INTO meta VALUES (?, ?, ?, ?, ?)", checksums.seal_row(2, *row[1:-1]))
        connection.commit()
    with pytest.raises(dp.ReleaseError, match="must have format 1, got 2: use the version of dpfast that wrote it"):
        dp.Ledger.open(ledger.path)


@in_a_file
def test_a_ledger_that_another_holds_for_too_long_is_in_use(ledger, monkeypatch):
    from dpfast.releases.ledger import ledger_file

    monkeypatch.setattr(ledger_file, "_PATIENCE", 0.01)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(dp.ReleaseError, match="in use by another release for too long: try again"):
            ledger.enter(same())
        connection.execute("ROLLBACK")
    assert ledger.enter(same())[0] == [1]


@in_a_file
def test_arguments_that_are_none_are_refused_by_name(ledger):
    for call, name in (
        (lambda: dp.Ledger.open(3), "path"),
        (lambda: dp.Ledger.open(ledger.path, adopt=1), "adopt"),
        (lambda: dp.Ledger.create(3, "guests"), "path"),
        (lambda: as_ledger(3), "ledger"),
        (lambda: ledger.statement(delta=1), "delta"),
        (lambda: ledger.statement(window=3), "window"),
        (lambda: ledger.statement(window="3 months"), "period"),
    ):
        with pytest.raises(ValueError, match=f"^{name} must be "):
            call()
    assert as_ledger(None) is None
    assert as_ledger(ledger) is ledger
    assert as_ledger(str(ledger.path)).path == ledger.path


# --- several programs -----------------------------------------------------------------------------

PROGRAM = """
import sys
sys.path.insert(0, {helpers!r})
import dpfast as dp
from helpers.ledgers import entry
ledger = dp.Ledger.open({path!r})
print("ready", flush=True)
sys.stdin.readline()
done = 0
for i in range(8):
    try:
        ledger.enter([entry(store=f"{{sys.argv[1]}}-{{i}}", max_events=2)])
        done += 1
    except dp.ReleaseError as error:
        assert "beyond the cap" in str(error), error
print(done)
"""


@in_a_file
def test_programs_that_enter_at_once_stay_within_the_cap(ledger):
    helpers = str(Path(sys.modules["helpers.ledgers"].__file__).parents[1])
    code = PROGRAM.format(helpers=helpers, path=str(ledger.path))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    programs = [subprocess.Popen([sys.executable, "-c", code, name], **pipes) for name in "ab"]
    assert [x.stdout.readline() for x in programs] == ["ready\n"] * 2
    for program in programs:
        program.stdin.write("go\n")
        program.stdin.flush()
    done = [int(program.communicate()[0]) for program in programs]
    assert sum(done) == 12  # of sixteen
    assert [x.number for x in ledger.lines] == list(range(1, 13))


# --- what it says ---------------------------------------------------------------------------------


def test_twelve_months_are_stated_as_what_they_are_together(tmp_path):
    """Per person they add up, whatever their spans; the exact composition is that of test_composition."""
    ledger = dp.Ledger.create(tmp_path / "l" / "l.sqlite", "guests", cap_epsilon=12)
    months = [dated(30 * i, 30 * (i + 1), unit="person", delta=Fraction(0)) for i in range(12)]
    ledger.enter(months)
    said = ledger.statement(delta=1e-6)
    assert said.event is None
    assert said.person.epsilon == pytest.approx(Loss(pure=(Fraction(1),) * 12).epsilon(1e-6), rel=1e-9)
    assert (said.person.sum_of_epsilons, said.person.rho, said.left) == (12, 6, 0)
    assert ledger.statement(delta=0.05).person.epsilon == pytest.approx(9.669, abs=1e-3)
    begin, total = ledger.statement(window="30d").windows["person"]
    assert (total.sum_of_epsilons, total.n_entries) == (2, 2)  # a window that begins within a month touches the next
    assert begin == np.datetime64(30 * DAY - 1, "us")
    assert ledger.statement(window=np.timedelta64(31, "D")).windows["person"][1].sum_of_epsilons == 3
    text = str(ledger.statement(window="30d"))
    assert "All releases have cost one person at most, at delta 0, epsilon 12 together" in text
    assert "The releases of any 30d have cost one person at most, at delta 0, epsilon 2 together" in text
    assert "The cap allows a sum of epsilon of 12, of which 12 is spent and 0 is left" in text
    assert "no total per person" not in text
    words = " ".join(text.split("What these words mean:")[1].split())
    assert all(f" {x}, " in words for x in ("epsilon", "delta", "rho"))
    assert "What these words mean" not in str(dp.Ledger.create(tmp_path / "empty" / "l.sqlite", "nobody").statement())


@pytest.mark.parametrize(("unit", "n_together"), [("event", 1), ("person", 12)])
def test_the_delta_of_a_statement_is_what_is_used_up_together(tmp_path, unit, n_together):
    """Of releases with a δ each: an event is in one month, a person in all; Gaussian noise takes its own beside."""
    ledger = dp.Ledger.create(tmp_path / "l" / "l.sqlite", "guests")
    loss = Loss(approximate=((Fraction(1), Fraction(1, 20)),))
    ledger.enter([dated(30 * i, 30 * (i + 1), unit=unit, delta=Fraction(0.05), loss=loss) for i in range(12)])
    said = ledger.statement()
    assert said.delta == pytest.approx(1 - 0.95**n_together)
    assert Fraction(said.delta) >= 1 - Fraction(19, 20) ** n_together
    total = said.event if unit == "event" else said.person
    assert total.epsilon == pytest.approx(n_together, rel=1e-6)
    noise = Loss((Shift(12, Sigma(4, 0), 1),))
    ledger.enter([dated(0, 360, unit=unit, delta=Fraction(1e-6), loss=noise)])
    with_noise = ledger.statement()
    assert with_noise.delta == pytest.approx(said.delta + 0.05)
    assert ledger.statement(delta=said.delta).delta == said.delta


def test_events_of_the_same_column_are_in_one_month(ledger):
    ledger.enter([dated(30 * i, 30 * (i + 1)) for i in range(12)])
    said = ledger.statement()
    assert said.person is None
    assert (said.event.epsilon, said.event.sum_of_epsilons, said.event.n_entries) == (1, 1, 12)
    assert "There is no total per person, as 12 releases enforce no bound" in str(said)
    assert said.windows == {}


@in_a_file
def test_gaussian_and_pure_releases_together(ledger):
    items = [entry(store="g", loss=Loss(NOISE), delta=Fraction(1e-6), max_events=2), *same(2)]
    ledger = dp.Ledger.create(ledger.path.with_name("rho.sqlite"), "guests", cap_rho=2, cap_delta=1e-5)
    ledger.enter(items)
    said = ledger.statement()
    loss = Loss(NOISE, (Fraction(1),) * 2)
    assert said.delta == 1e-5
    assert said.event.epsilon == pytest.approx(loss.epsilon(1e-5))
    assert said.event.rho == loss.zcdp()[0] == 1 + Fraction(1, 800)
    assert said.left == 1 - Fraction(1, 800)
    assert "The cap allows a sum of rho of 2" in str(said)
    assert len(said.stores) == 1  # one path
    assert "unbounded" in str(ledger.statement(delta=0))


@in_a_file
def test_an_empty_ledger_says_so(ledger):
    text = str(ledger.statement(window="1d"))
    assert text.startswith("Ledger of 'guests': 0 entries of 0 stores, in ")
    assert "Nothing was spent." in text
    assert "12 is left" in text
    assert repr(ledger) == f"<Ledger of 'guests' in {str(ledger.path)!r}>"
    assert "No cap is set." in str(dp.Ledger.create(ledger.path.with_name("b.sqlite"), "b").statement())
