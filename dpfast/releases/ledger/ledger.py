"""The ledger of one population: what all releases of its data have cost together."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dpfast._support import validation
from dpfast._support.errors import ReleaseError
from dpfast.releases.arbiters.place import Place, PlaceLike, Postgres, check_place
from dpfast.releases.ledger.cap import Cap
from dpfast.releases.ledger.entry import Entry
from dpfast.releases.ledger.ledger_database import LedgerDatabase, Line, Meta, start_of_chain
from dpfast.releases.ledger.ledger_errors import cap_error
from dpfast.releases.ledger.ledger_file import LedgerFile
from dpfast.releases.ledger.ledger_schema import LedgerSchema
from dpfast.releases.ledger.statement import Statement, count_words


class Attested(NamedTuple):
    """Hold what a store remembers of a ledger: its id, how many entries it had, and the chain over them.

    Attributes
    ----------
    ledger : str
    entries : int
    chain : str
    """

    ledger: str
    entries: int
    chain: str


class Ledger:
    """Add up what all releases of the data of one population cost, and refuse what goes beyond a cap.

    Make it once by :meth:`create`, give it to every release (``ledger=`` of :func:`release` and :func:`open_stream`,
    ``--ledger`` of the command), and read it by :meth:`statement`.

    Attributes
    ----------
    path : Path or Postgres
        The file, which any number of stores and programs on this machine may use at a time; or where it is in a
        database, for those on any machine.
    population : str
        Whose data it is for.
    cap : Cap or None
        What may be spent in all.

    Notes
    -----
    *Privacy.* An entry is on the disk before anything of its release is published, so that the ledger never says less
    than what was spent. A store that has once entered a release refuses to publish without the ledger, and with one
    that is older than what the store remembers. What publishes these people's data without the ledger is not in it.

    Examples
    --------
    >>> import dpfast as dp, numpy as np, tempfile
    >>> mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = dp.Ledger.create(folder + "/ledger/ledger.sqlite", "guests", cap_epsilon=1, cap_delta=1e-6)
    ...     _ = dp.release(mechanism, np.array([3, 1, 2]), folder + "/a", dp.Inputs(0, 20), ledger=ledger)
    ...     try:
    ...         dp.release(mechanism, np.array([3, 1, 2]), folder + "/b", dp.Inputs(0, 20), ledger=ledger)
    ...     except dp.ReleaseError as error:
    ...         print(str(error)[:33])
    the release would go beyond the c
    """

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database
        meta, _ = database.read()
        self.path, self.population, self.id = database.place, meta.population, meta.id
        self.cap = _read_cap(meta)

    @classmethod
    def create(
        cls,
        path: PlaceLike,
        population: str,
        *,
        cap_epsilon: float | None = None,
        cap_delta: float | None = None,
        cap_rho: float | None = None,
    ) -> Ledger:
        """Make a ledger where there is none.

        Parameters
        ----------
        path : path-like or Postgres
            Of the file, in a folder for its owner alone, which is made where it is missing; or a place in a database,
            for stores on several machines.
        population : str
            Whose data it is for, in words.
        cap_epsilon, cap_delta : float, optional
            What the ε of all releases may add up to, and the δ that they demand (0 if not given).
        cap_rho : float, optional
            In place of `cap_epsilon`: what their ρ of zero-concentrated privacy may add up to; `cap_delta` is then for
            those that are known by an (ε, δ) alone.

        Returns
        -------
        Ledger

        Raises
        ------
        ReleaseError
            Where there is a file already.
        """
        database = _database_of(check_place("path", path))
        text = _check_population(population)
        cap = Cap.of(cap_epsilon, cap_delta, cap_rho)
        database.create(text, "" if cap is None else cap.to_json())
        return cls(database)

    @classmethod
    def open(cls, path: PlaceLike, *, population: str | None = None, adopt: bool = False) -> Ledger:
        """Open a ledger that is there.

        Parameters
        ----------
        path : path-like or Postgres
            Where it is: the file, or the place in a database.
        population : str, optional
            Whose data it must be for; another one is refused.
        adopt : bool
            Take over a ledger that was copied or moved, after the original is gone for good.

        Returns
        -------
        Ledger

        Raises
        ------
        ReleaseError
            Where it is missing, open to others, damaged, copied or of another population.
        """
        validation.instance("adopt", adopt, bool, "True or False")
        place = check_place("path", path)
        if isinstance(place, Path):
            place = place.absolute().parent.resolve() / place.name
        database = _database_of(place)
        if adopt:
            database.adopt()
        ledger = cls(database)
        if population is not None and _check_population(population) != ledger.population:
            raise ReleaseError(
                f"population must be that of the ledger {ledger.path}, {ledger.population!r}, got {population!r}: each "
                "population has a ledger of its own"
            )
        return ledger

    def __repr__(self) -> str:
        return f"<Ledger of {self.population!r} in {str(self.path)!r}>"

    @property
    def lines(self) -> list[Line]:
        """Return all entries, each with its number and when it was entered."""
        return self._database.read()[1]

    def statement(self, *, delta: float | None = None, window: Any = None) -> Statement:
        """Tell what was lost at most, by one event and by one person, in all and by stores.

        Parameters
        ----------
        delta : float, optional
            At which ε is stated: by default that of the cap, or the largest that a release has demanded, and beside it
            the δ of all releases together that are known by an (ε, δ) alone.
        window : str or timedelta64, optional
            A length such as "30d": tell too what was lost at most in any such window of time.

        Returns
        -------
        Statement
        """
        return Statement.of(self.path, self.population, self.cap, self.lines, delta=delta, window=window)

    def check(self, entries: Sequence[Entry], seen: Attested | None, used: Sequence[int]) -> None:
        """Refuse entries that would go beyond the cap, and a ledger that was set back; enter nothing."""
        meta, lines = self._database.read()
        self._plan(meta, lines, entries, seen, used)

    def enter(
        self, entries: Sequence[Entry], seen: Attested | None = None, used: Sequence[int] = ()
    ) -> tuple[list[int], Attested]:
        """Enter what will be published, in one transaction, and return the numbers of the entries.

        An entry of the same release that its store has never published is found and taken: the process was interrupted
        between the ledger and the store.

        Parameters
        ----------
        entries : sequence of Entry
            Of one store.
        seen : Attested, optional
            What the store remembers of the ledger.
        used : sequence of int
            Numbers of the entries of what the store has published.

        Returns
        -------
        list of int, Attested
            What the store has to remember.

        Raises
        ------
        ReleaseError
            Beyond the cap, and where the ledger is not the one that the store remembers, or older.
        """

        def action(meta: Meta, lines: list[Line]) -> tuple[list[int], list[tuple[str, Entry]]]:
            numbers, new = self._plan(meta, lines, entries, seen, used)
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            return numbers, [(now, entry) for entry in new]

        numbers = self._database.write(action)
        return numbers, self.attest()

    def confirm(self, numbers: Collection[int]) -> None:
        """Note that entries are published: a store that has forgotten one of them was set back, and is refused."""
        self._database.confirm(numbers)

    def attest(self) -> Attested:
        """Return what a store has to remember of the ledger as it is now."""
        meta, lines = self._database.read()
        return _attest(meta, lines)

    def _plan(
        self, meta: Meta, lines: list[Line], entries: Sequence[Entry], seen: Attested | None, used: Sequence[int]
    ) -> tuple[list[int], list[Entry]]:
        """Return the numbers that entries have or will have, and those of them that are new."""
        self._check_seen(meta, lines, seen)
        taken, numbers, new = set(used), [], []
        for entry in entries:
            self._check_store(entry, lines, taken)
        for entry in entries:
            found = (x.number for x in lines if x.number not in taken and x.entry.is_same_release(entry))
            number = next(found, None)
            if number is None:
                new.append(entry)
                number = len(lines) + len(new)
            taken.add(number)
            numbers.append(number)
        cap = _read_cap(meta)
        if new and cap is not None:
            before = [x.entry for x in lines]
            if not cap.holds([*before, *new]):
                raise cap_error(self.path, cap, cap.spent(before), cap.spent([*before, *new]))
        return numbers, new

    def _check_store(self, entry: Entry, lines: list[Line], used: Collection[int]) -> None:
        for line in lines:
            if line.published and line.number not in used and line.entry.store == entry.store:
                raise ReleaseError(
                    f"the store {entry.path} was set back: the ledger {self.path} knows that it has published entry "
                    f"{line.number}, of {line.entered}, and the store does not. Going on would publish steps again "
                    "with other noise. Put the newest store back; if it is lost, begin a new one"
                )

    def _check_seen(self, meta: Meta, lines: list[Line], seen: Attested | None) -> None:
        if seen is None:
            return
        if seen.ledger != meta.id:
            raise ReleaseError(
                f"ledger must be the one that the store has entered its releases in, of id {seen.ledger}, got "
                f"{self.path}, of id {meta.id}: give that one, so that all releases add up"
            )
        if seen.entries > len(lines) or _attest(meta, lines[: seen.entries]) != seen:
            there = count_words(len(lines), "entry", "entries")
            raise ReleaseError(
                f"the ledger {self.path} was set back: it has {there}, and the store remembers {seen.entries}, or other"
                " ones. What was entered since is missing, so that going on would count too little. Put the newest back"
            )


def _attest(meta: Meta, lines: Sequence[Line]) -> Attested:
    return Attested(meta.id, len(lines), lines[-1].chain if lines else start_of_chain(meta))


def _read_cap(meta: Meta) -> Cap | None:
    return Cap.from_json(meta.cap) if meta.cap else None


def _check_population(population: Any) -> str:
    if not isinstance(population, str) or not population.strip() or not population.isprintable():
        raise validation.fail("population", "printable text that says whose data these are", population)
    return population


def as_ledger(ledger: Any) -> Ledger | None:
    """Return a ledger that was given as such, by its path, or not at all."""
    if ledger is None or isinstance(ledger, Ledger):
        return ledger
    return Ledger.open(check_place("ledger", ledger))


def _database_of(place: Place) -> LedgerDatabase:
    return LedgerSchema(place) if isinstance(place, Postgres) else LedgerFile(place.absolute())
