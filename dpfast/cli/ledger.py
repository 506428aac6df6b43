"""The command ``dpfast ledger``: what all releases of one population's data have cost together."""

from __future__ import annotations

import argparse

from dpfast.releases.ledger.ledger import Ledger

SUMMARY = "tell what all releases of some people's data have cost together, and what is left of a cap"
DESCRIPTION = (
    "Tells what one event, or one person, has lost at most in all releases that were entered in a ledger, by store, in "
    "total and in any window of time, and what is left of the cap. With --create it begins a ledger. 'dpfast release "
    "--ledger FILE' enters a release, and refuses one beyond the cap before it reads any data. docs/guides/ledger.md "
    "explains this."
)


def add_options(command: argparse.ArgumentParser) -> None:
    """Add the file, what is asked of it, and what a new one declares."""
    command.add_argument(
        "file", metavar="FILE", help="read this ledger, such as ledger/ledger.sqlite, in a folder for you alone"
    )
    command.add_argument(
        "--window", metavar="LENGTH", help="tell too what was lost at most in any window of this length, such as 30d"
    )
    command.add_argument(
        "--delta",
        type=float,
        metavar="D",
        help="state epsilon at this delta (default: that of the cap, or the largest that a release has demanded)",
    )
    command.add_argument(
        "--adopt", action="store_true", help="take over a ledger that was copied or moved, whose original is gone"
    )
    command.add_argument(
        "--population",
        metavar="TEXT",
        help="say whose data these are; for a ledger that is there it must be the same",
    )
    new = command.add_argument_group("a new ledger")
    new.add_argument("--create", action="store_true", help="begin the ledger, whose --population is needed")
    new.add_argument(
        "--cap-epsilon", type=float, metavar="E", help="let the epsilons of all releases add up to this at most"
    )
    new.add_argument(
        "--cap-rho", type=float, metavar="R", help="let their rhos add up to this at most, in place of epsilons"
    )
    new.add_argument(
        "--cap-delta", type=float, metavar="D", help="let their deltas add up to this at most (default: 0)"
    )


def run(options: argparse.Namespace) -> str:
    """Return what the ledger says, or that it was made."""
    caps = {name: getattr(options, name) for name in ("cap_epsilon", "cap_delta", "cap_rho")}
    if options.create:
        return _create(options, caps)
    if given := [name for name, value in caps.items() if value is not None]:
        raise ValueError(f"{given[0]} must come with --create: a cap is set when a ledger is made, and stays")
    ledger = Ledger.open(options.file, population=options.population, adopt=options.adopt)
    return str(ledger.statement(delta=options.delta, window=options.window))


def _create(options: argparse.Namespace, caps: dict[str, float | None]) -> str:
    """Make a ledger; what is asked of one that is there has no place beside that."""
    for name in ("window", "delta", "adopt"):
        if getattr(options, name):
            raise ValueError(f"{name} must come without --create: a new ledger has no entries")
    if options.population is None:
        raise ValueError("population must be given with --create: say whose data the ledger is for")
    ledger = Ledger.create(options.file, options.population, **caps)
    return f"{ledger.statement()}\n\nMade. Give it to every release of these people's data: --ledger {ledger.path}"
