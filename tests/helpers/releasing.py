"""Two releases of a store under a ledger, killed anywhere, and protocols that are wrong."""

import os
from pathlib import Path

import numpy as np
from helpers import faults

import dpfast as dp
from dpfast._support import sqlite
from dpfast.releases.ledger.account import Account
from dpfast.releases.ledger.entry import Entry
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.store.spent_entries import SpentEntries
from dpfast.releases.store.witness import Witness

CALLS = [
    (sqlite.Connection, "execute"),
    (os, "fsync"),
    (Path, "replace"),
    (Path, "unlink"),
    (Path, "mkdir"),
    (Account, "enter"),
    (SpentEntries, "write"),
    (ReleaseStore, "enter_batch"),
    (ReleaseStore, "begin_live"),
    (Witness, "write"),
]
PLAN = None


def plan():
    """A mechanism in integers, made once and inherited by forks."""
    global PLAN
    if PLAN is None:
        mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.5]), dp.Privacy(1, 1e-6))
        PLAN = dp.exact(mechanism, dp.Inputs(0, 20), tolerance=0.1)
    return PLAN


def ledger_of(folder):
    return dp.Ledger.open(folder / "ledger" / "ledger.sqlite")


def begin(folder):
    plan()
    dp.Ledger.create(folder / "ledger" / "ledger.sqlite", "guests")


def published(folder, name="store"):
    """The first steps of what a store has published, by the numbers of the releases, and its entries."""
    if not (folder / name / "store.sqlite").exists():
        return {}, {}
    with ReleaseStore.open(folder / name) as store:
        return {x.id: x.first for x in store.releases()}, store.spent.releases()


def scenario(folder):
    """Two batches, those left out that are there, and a stream in a store of its own."""
    for first in (0, 5):
        if first not in published(folder)[0].values():
            dp.release(plan(), np.arange(5), folder / "store", first=first, ledger=ledger_of(folder))
    with dp.open_stream(plan(), folder / "stream", ledger=ledger_of(folder)) as stream:
        if stream.position == 0:
            stream.push(np.arange(3))


def killed(folder, k, break_protocol=lambda set_attribute: None):
    """In a process of its own: the scenario, killed at its k-th point."""
    break_protocol(setattr)
    faults.instrument(setattr, faults.reaching(k, faults.die), CALLS)
    scenario(folder)


def check(folder):
    """Whatever is published is in the ledger; then all is finished, and each release is there once."""
    entries = [x.entry for x in ledger_of(folder).lines]
    for name in ("store", "stream"):
        releases, spent = published(folder, name)
        known = [(x.first, x.kind) for x in entries if Path(x.path).name == name]
        assert len(known) <= len(releases) + 1
        for number, first in releases.items():
            assert known.count((first, "live" if name == "stream" else "batch")) == 1, "published and not entered"
            assert number in spent.values(), "not witnessed"
    scenario(folder)
    lines = ledger_of(folder).lines
    assert [(Path(x.entry.path).name, x.entry.first, x.entry.kind) for x in lines] == [
        ("store", 0, "batch"),
        ("store", 5, "batch"),
        ("stream", 0, "live"),
    ]
    assert published(folder)[1] == {1: 1, 2: 2}
    assert published(folder, "stream")[1] == {3: 1}


# --- protocols that are wrong ---------------------------------------------------------------------


def entered_behind_the_publication(set_attribute):
    enter, enter_batch, late = Account.enter, ReleaseStore.enter_batch, []
    set_attribute(Account, "enter", lambda self, *args, **options: late.append((self, args, options)))

    def mutant(self, *args, **options):
        number = enter_batch(self, *args, **options)
        account, given, more = late.pop()
        enter(account, *given, **more)
        return number

    set_attribute(ReleaseStore, "enter_batch", mutant)


def entries_never_found(set_attribute):
    set_attribute(Entry, "is_same_release", lambda self, other: False)


def not_remembered(set_attribute):
    set_attribute(SpentEntries, "write", lambda self: None)


MUTANTS = [entered_behind_the_publication, entries_never_found, not_remembered]
