"""Releases under a ledger, for losses of power, right ones and wrong ones; recorded in a process of their own."""

import contextlib
from pathlib import Path

import numpy as np
from helpers import cutting, fakes, releasing

import dpfast as dp
from dpfast.releases.ledger import ledger_file
from dpfast.releases.ledger.ledger_file import LedgerFile
from dpfast.releases.store.release_store import ReleaseStore

BATCHES = (0, 5)  # their first steps
PUSHES = 2
CHUNK = 3  # steps of a push


def in_one_place(set_attribute):
    """Stores and ledgers may be looked at elsewhere, and are no copies."""
    cutting.in_one_place(set_attribute)
    set_attribute(ledger_file, "_locate", lambda file, path: cutting.Anywhere(("1", "anywhere")))


def scenario(folder):
    """A ledger, two batches, and a stream in a store of its own; what is there is taken, and what is public noted."""
    ledger = folder / "ledger" / "ledger.sqlite"
    if not ledger.exists():
        dp.Ledger.create(ledger, "guests")
    fakes.append(folder / "public.jsonl", ["ledger"])
    for first in BATCHES:
        if first not in releasing.published(folder)[0].values():
            made = dp.release(releasing.plan(), np.arange(5), folder / "store", first=first, ledger=ledger)
            fakes.append(folder / "public.jsonl", ["store", first, made.privatized.tolist()])
    with dp.open_stream(releasing.plan(), folder / "stream", ledger=ledger) as stream:
        while stream.position < PUSHES * CHUNK:
            pushed = stream.push(np.arange(CHUNK))
            fakes.append(folder / "public.jsonl", ["stream", pushed.first, pushed.privatized.tolist()])


def check(folder):
    """What is public is stored as it was, and entered, once; then all is finished, and still is."""
    entered = [] if not (folder / "ledger" / "ledger.sqlite").exists() else releasing.ledger_of(folder).lines
    check_public(folder)
    check_entered(folder, [(Path(x.entry.path).name, x.entry.first) for x in entered])
    scenario(folder)
    check_public(folder)
    assert [(Path(x.entry.path).name, x.entry.first) for x in releasing.ledger_of(folder).lines] == [
        *(("store", first) for first in BATCHES),
        ("stream", 0),
    ]


def check_entered(folder, entered):
    """Whatever a store has published is in the ledger, and beyond that at most one release that was interrupted."""
    n_published = 0
    for name in ("store", "stream"):
        releases, spent = releasing.published(folder, name)
        for number, first in releases.items():
            assert entered.count((name, first)) == 1, "published and not entered"
            assert number in spent.values(), "not witnessed"
        n_published += len(releases)
    assert len(entered) <= n_published + 1


def check_public(folder):
    """Nobody has seen values that are not those of the store."""
    public = fakes.lines(folder / "public.jsonl")
    assert (folder / "ledger" / "ledger.sqlite").exists() or not public, "the ledger is lost"
    stored = {name: values(folder, name) for name in ("store", "stream") if (folder / name / "store.sqlite").exists()}
    for name, first, v in (x for x in public if x != ["ledger"]):
        found = stored[name][first]
        assert found == v[0], "published with other noise"


def values(folder, name):
    """What a store has published, by first steps of the batches, or of the pushes."""
    with ReleaseStore.open(folder / name) as store:
        result = {}
        for entry in store.releases():
            length = store.length(entry.id)
            if entry.kind == "batch":
                result[entry.first] = store.read(entry.id, entry.first, length)[0][0].tolist()
            else:
                v = store.read(entry.id, 0, length)[0][0].tolist()
                result |= {t: v[t : t + CHUNK] for t in range(0, length, CHUNK)}
        return result


# --- protocols that are wrong ---------------------------------------------------------------------


def ledger_not_synced(set_attribute):
    """The ledger does not wait for the disk."""
    connected = LedgerFile._connected

    @contextlib.contextmanager
    def mutant(self, **options):
        with connected(self, **options) as connection:
            connection.execute("PRAGMA synchronous=OFF")
            yield connection

    set_attribute(LedgerFile, "_connected", mutant)


def ledger_made_unsynced(set_attribute):
    """The name of a new ledger does not wait for the disk."""
    set_attribute(ledger_file.atomic_files, "sync_folder", lambda path: None)


def entered_behind_the_publication(set_attribute):
    releasing.entered_behind_the_publication(set_attribute)


MUTANTS = [ledger_not_synced, ledger_made_unsynced, entered_behind_the_publication]


def main(root):
    """The scenario, right and with each wrong protocol, in a folder that has its name."""
    in_one_place(setattr)
    releasing.plan()
    for name, mutate in {"right": lambda _: None, **{x.__name__: x for x in MUTANTS}}.items():
        folder = Path(root, name)
        folder.mkdir()
        with cutting.patched(mutate):
            scenario(folder)
