"""What a chain does, as data: signals, and the stages that turn one into another, chunk by chunk.

:class:`Chain` collects stages and gives a :class:`Program`, which ``chain.run`` executes. All signals of a bundle of
streams lie in one array of rows::

    signal     history         what stages look back at: taps, lags, decisions
               chunk           240 rows of time at once
               (chunk ...)     more where the history is long, so that it is moved up rarely
               5 rows          for the end of a last tile
    next one   history ...
    states     two rows for each section
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpfast._kernels.feedback import Equalizer
from dpfast._kernels.linear import TAPS, Factors
from dpfast._kernels.random import NOISE, STATE_WORDS, LevelTable, generators
from dpfast._kernels.simd import lanes
from dpfast._kernels.tiles import ROWS, Rows

Array = NDArray[Any]
Words = NDArray[np.uint32]
Records = Any

_NOTHING = np.empty(0)
CHUNK = 240  # rows
SMOOTHER_ROWS = 480  # the least that a smoother runs back over; chunks divide it

READ, WRITE, TWO_LEVELS, MANY_LEVELS, NORMALS, STEP, SHIFT, FILTER, FEEDBACK, ROUND, REVERSE, CLEAR = range(12)
AS_IS, SIGN, NEAREST, SOFT = range(4)

SIGNAL = np.dtype([(name, np.int64) for name in ("row", "history", "length")])  # length 0: time stands still
STAGE = np.dtype(
    [
        ("kind", np.int64),
        ("x", np.int64),  # signal that is read, so many samples late
        ("lag", np.int64),
        ("out", np.int64),  # signal that is written
        ("minus", np.int64),  # signal that is subtracted before a filter, if any
        ("n_minus", np.int64),
        ("plus", np.int64),  # signal that is added behind it, if any: scaled, so many samples late
        ("n_plus", np.int64),
        ("late", np.int64),
        ("generator", np.int64),  # of noise that is added behind it, if any: row of words
        ("n_noise", np.int64),
        ("scale", np.float64),
        ("period", np.int64),  # chunks from one pass to the next
        ("n", np.int64),  # rows of a pass, 0: its chunks
        ("place", np.int64),  # row of states or words; number of an array
        ("a", np.int64),  # where coefficients begin, and how many there are
        ("n_a", np.int64),
        ("b", np.int64),
        ("n_b", np.int64),
        ("rule", np.int64),
        ("levels", np.int64),  # where they begin
        ("n_levels", np.int64),
        ("total", np.int64),  # row of totals for squares, if any, and the times that count
        ("n_squares", np.int64),
        ("start", np.int64),
        ("stop", np.int64),
    ]
)


class Program(NamedTuple):
    """A chain, ready to run."""

    signals: Records
    stages: Records
    coefficients: Array
    table: Words
    begin: NDArray[np.int64]  # rows of the states that are given
    end: NDArray[np.int64]  # rows of the states that are asked for
    first_state: int  # row
    n_rows: int
    chunk: int
    n_samples: int

    @property
    def n_chunks(self) -> int:
        return -(-self.n_samples // self.chunk)


class Memory(NamedTuple):
    """A bundle of streams under way."""

    now: NDArray[np.int64]  # row of each signal where the present chunk begins
    rows: Rows
    words: Words
    totals: Array  # float64; the last row is for squares that do not count


class Streams(NamedTuple):
    """What goes into a program and comes out."""

    x: Array  # (streams, time, 2): see `any_order`
    out: Array  # (arrays, streams, time, 2)
    begin: Array  # (streams, states)
    end: Array
    words: Words  # (words, streams)
    totals: Array  # (streams, totals), float64


FirstWords = Callable[[int, int, int], Words]  # (seed, first stream, count): (words, count) at time zero
States = Callable[[int, int, int], Array]  # (seed, first stream, count): (count, states) before time zero


class Term(NamedTuple):
    """scale · signal[t - late]; without a signal, independent standard normals of a purpose."""

    scale: float
    signal: int | None = None
    late: int = 0
    purpose: int = NOISE


class Signal:
    """A signal of a chain under construction: how far back its readers look, and how it is kept."""

    def __init__(self, fixed_length: int = 0) -> None:
        self.history, self.fixed_length, self.multiple = 0, fixed_length, 1

    def look_back(self, n_rows: int) -> None:
        """A reader needs that many rows of the past."""
        self.history = max(self.history, n_rows)

    def length(self, chunk: int) -> int:
        """Rows of the present: a power of two chunks, no shorter than the past."""
        if self.fixed_length:
            return self.fixed_length
        n_chunks = self.multiple
        while n_chunks * chunk < self.history:
            n_chunks *= 2
        return n_chunks * chunk


class Chain:
    """A chain under construction: every method adds a stage, and gives the number of the signal that it writes."""

    def __init__(self, dtype: DTypeLike = np.float64, chunk: int = CHUNK) -> None:
        self.dtype, self.chunk = np.dtype(dtype), chunk
        self.signals: list[Signal] = []
        self.stages: list[dict[str, Any]] = []
        self.coefficients: list[Array] = []
        self.tables: list[Array] = []
        self.made: dict[tuple[Any, ...], int] = {}
        self.words: list[FirstWords] = []
        self.begin: list[States] = []
        self.states: list[tuple[int | None, int]] = []  # (signal, samples ago), or (None, number of a state)
        self.n_coefficients = self.n_states = self.n_generators = self.n_totals = self.n_outputs = 0

    # --- stages -----------------------------------------------------------------------------------

    def read(self) -> int:
        """The array that is given."""
        return self._stage(READ)

    def write(self, x: int) -> None:
        """Into the next of the arrays that come out."""
        self._stage(WRITE, x=x, out=x, place=self.n_outputs)
        self.n_outputs += 1

    def normals(self, purpose: int) -> int:
        """Independent standard normals."""
        return self._stage(NORMALS, place=self._generator(purpose))

    def levels(self, table: LevelTable, purpose: int, first: FirstWords) -> int:
        """A Markov chain; `first` gives the place in the table where each stream begins."""
        generator = self._generator(purpose)
        self.words.append(first)
        start = sum(x.size for x in self.tables)
        self.tables += [table.thresholds, table.next_row]
        kind = MANY_LEVELS if table.n_halves is not None else TWO_LEVELS
        fields = {"place": generator, "a": start, "n_a": table.thresholds.size, "n_levels": table.n_halves or 0}
        return self._stage(kind, **fields, levels=self._keep(table.levels))

    def step(self, level: float, start: int) -> int:
        """Zero, and a constant from a time on."""
        return self._stage(STEP, scale=level, start=start)

    def shift(self, x: int, by: float) -> int:
        """X plus a constant; x itself where that is zero."""
        return x if by == 0 else self._once((x, by), lambda: self._stage(SHIFT, x=x, scale=by))

    def add(self, x: int, term: Term) -> int:
        """X plus another signal."""
        return self._filter(_NOTHING, _NOTHING, x, plus=term)

    def filter_once(self, factors: Factors, x: int) -> int:
        """F x, for all who ask for it."""
        return self._once((x, *(part.tobytes() for part in factors)), lambda: self.filter(factors, x))

    def filter(
        self,
        factors: Factors,
        x: int,
        *,
        lag: int = 0,
        minus: int | None = None,
        plus: Term | None = None,
        square: range | None = None,
        begin: States | None = None,
        **timing: int,
    ) -> int:
        """F(x[t - lag] - minus) + plus.

        square : only sum the squares, into the next of the totals, over the times start ≤ t < stop.
        begin : gives the states that F starts from, and its states at the end are asked for; else it starts from zero.
        """
        taps, sections = folded(factors)
        if minus is not None and len(taps):
            x, lag, minus = self._filter(_NOTHING, _NOTHING, x, lag, minus, **timing), 0, None
        first, state, recursive = x, self.n_states, len(factors.recursion) > 1
        ending = {} if recursive else {"plus": plus, "square": square}
        if len(taps) or len(sections) or minus is not None or not recursive:
            x = self._filter(taps, sections, x, lag, minus, **ending, **timing)
        if recursive:
            places = self._places("a", _NOTHING) | self._places("b", feedback_taps(-factors.recursion[1:]))
            x = self._stage(FEEDBACK, x=x, **places, rule=AS_IS, **timing)
            self.signals[x].look_back(places["n_b"])
        if begin is not None:
            self._keep_state(factors, first, state, x, begin)
        if recursive and (plus or square):
            x = self._filter(_NOTHING, _NOTHING, x, plus=plus, square=square, **timing)
        return x

    def _filter(
        self,
        taps: Array,
        sections: Array,
        x: int,
        lag: int = 0,
        minus: int | None = None,
        plus: Term | None = None,
        square: range | None = None,
        **timing: int,
    ) -> int:
        fields: dict[str, Any] = {"lag": lag, "place": self.n_states}
        self.signals[x].look_back(len(taps) + lag)
        self.n_states += 2 * len(sections)
        if minus is not None:
            fields |= {"minus": minus, "n_minus": 1}
        if plus is not None:
            fields["scale"] = plus.scale
            if plus.signal is None:
                fields |= {"generator": self._generator(plus.purpose), "n_noise": 1}
            else:
                self.signals[plus.signal].look_back(plus.late)
                fields |= {"plus": plus.signal, "n_plus": 1, "late": plus.late}
        if square is not None:
            fields |= {"out": x, "total": self.n_totals, "n_squares": 1, "start": square.start, "stop": square.stop}
            self.n_totals += 1
        return self._stage(
            FILTER, x=x, **fields, **self._places("a", taps), **self._places("b", sections.ravel()), **timing
        )

    def _keep_state(self, factors: Factors, x: int, state: int, out: int, begin: States) -> None:
        past, poles = len(factors.taps) - 1, len(factors.recursion) - 1
        states: list[tuple[int | None, int]] = [(x, k) for k in range(past)]
        states += [(None, state + k) for k in range(2 * len(factors.sections))]
        states += [(out, k) for k in range(poles)]
        self.signals[x].look_back(past)
        self.states += states
        self.begin.append(begin)

    def decide(self, equalizer: Equalizer, x: int) -> int:
        """Decisions of an equaliser."""
        places = self._places("a", padded(equalizer.forward)) | self._places("b", feedback_taps(equalizer.feedback))
        self.signals[x].look_back(places["n_a"])
        out = self._stage(FEEDBACK, x=x, lag=equalizer.lag, **places, **self._rule(equalizer))
        self.signals[out].look_back(places["n_b"])
        return out

    def round(self, x: int, levels: Array) -> None:
        """X rounded in place to the nearest of sorted levels."""
        rule = NEAREST if len(levels) > 1 else AS_IS
        data = np.concatenate([levels, (levels[1:] + levels[:-1]) / 2])
        self._stage(ROUND, x=x, out=x, rule=rule, levels=self._keep(data), n_levels=len(levels))

    def smooth(self, backward: Factors, lookahead: int, target: int, x: int, square: range) -> int:
        """Squared errors of x, filtered backward in time from `lookahead` samples ahead, against a target.

        Every few chunks the filter runs over the last of them and the lookahead before. Gives the rows that are then
        done, of which the time must be a multiple.
        """
        block = SMOOTHER_ROWS
        while block < 2 * lookahead:
            block *= 2
        period = block // self.chunk
        for signal in (self.signals[x], self.signals[target]):
            signal.look_back(lookahead)
            signal.multiple = max(signal.multiple, period)
        timing, first = {"period": period, "n": block + lookahead}, self.n_states
        ahead = self._stage(REVERSE, x=x, lag=lookahead, **timing)
        self._stage(CLEAR, x=ahead, out=ahead, place=first, n_a=2 * len(backward.sections), **timing)
        result = self.filter(backward, ahead, **timing)
        timing["n"] = block
        estimate = self._stage(REVERSE, x=result, lag=-lookahead, **timing)
        late = range(square.start + lookahead, square.stop + lookahead)
        self._filter(_NOTHING, _NOTHING, target, lookahead, estimate, square=late, **timing)
        return block

    # --- bookkeeping ------------------------------------------------------------------------------

    def _once(self, key: tuple[Any, ...], make: Callable[[], int]) -> int:
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def _stage(self, kind: int, **fields: Any) -> int:
        if "out" not in fields:
            self.signals.append(Signal(fixed_length=fields.get("n", 0)))
            fields["out"] = len(self.signals) - 1
        self.stages.append({"kind": kind, "period": 1, **fields})
        return int(fields["out"])

    def _generator(self, purpose: int) -> int:
        """Row of its words."""
        row = STATE_WORDS * self.n_generators + len(self.words) - self.n_generators
        self.words.append(lambda seed, first, count: generators(seed, first, count, purpose))
        self.n_generators += 1
        return row

    def _keep(self, values: Array) -> int:
        self.coefficients.append(np.asarray(values, dtype=np.float64))
        self.n_coefficients += values.size
        return self.n_coefficients - values.size

    def _places(self, name: str, values: Array) -> dict[str, int]:
        return {name: self._keep(values), f"n_{name}": values.size}

    def _rule(self, equalizer: Equalizer) -> dict[str, int]:
        levels, n = equalizer.levels, len(equalizer.levels)
        if equalizer.soft:
            data = np.concatenate([levels, equalizer.slopes, equalizer.offsets])
            return {"rule": SOFT, "levels": self._keep(data), "n_levels": n}
        data = np.concatenate([levels, equalizer.thresholds])
        return {"rule": SIGN if n == 2 else NEAREST, "levels": self._keep(data), "n_levels": n}

    def compile(self, n_samples: int) -> Program:
        """The program for signals of a length."""
        signals = np.recarray(len(self.signals), SIGNAL)
        row = 0
        for record, signal in zip(signals, self.signals, strict=True):
            length = signal.length(self.chunk)
            record.row, record.history, record.length = row + signal.history, signal.history, length
            if signal.fixed_length:
                record.length = 0
            row += signal.history + length + ROWS - 1
        stages = np.recarray(len(self.stages), STAGE)
        stages[...] = np.zeros((), STAGE)
        for record, fields in zip(stages, self.stages, strict=True):
            for name, value in fields.items():
                setattr(record, name, value)

        def rows(states: list[tuple[int | None, int]], time: int) -> NDArray[np.int64]:
            """Where the states before a time are."""
            places = []
            for signal, k in states:
                if signal is None:
                    places.append(row + k)
                else:
                    latest = (time - 1) % signals[signal].length if time else -1
                    places.append(signals[signal].row + latest - k)
            return np.array(places, dtype=np.int64)

        coefficients = np.concatenate([_NOTHING, *self.coefficients]).astype(self.dtype)
        table = np.concatenate([_NOTHING, *self.tables]).astype(np.uint32)
        begin, end = rows(self.states, 0), rows(self.states, n_samples)
        return Program(
            signals, stages, coefficients, table, begin, end, row, row + self.n_states, self.chunk, n_samples
        )

    def memory(self, program: Program) -> Memory:
        """Room for a bundle."""
        n, n_words = lanes(self.dtype), len(self.words) + (STATE_WORDS - 1) * self.n_generators
        rows, words = aligned((program.n_rows, n), self.dtype), aligned((n_words, n), np.dtype(np.uint32))
        return Memory(program.signals.row.copy(), rows, words, aligned((self.n_totals + 1, n), np.dtype(np.float64)))


def aligned(shape: tuple[int, int], dtype: Any) -> Array:
    """Zeros from the beginning of a cache line."""
    size, line = shape[0] * shape[1] * dtype.itemsize, 64
    raw = np.zeros(size + line, np.uint8)
    start = -raw.ctypes.data % line
    return raw[start : start + size].view(dtype).reshape(shape)


def padded(taps: Array) -> Array:
    """With zeros up to a multiple of eight."""
    return np.concatenate([taps, np.zeros(-len(taps) % TAPS)])


def feedback_taps(taps: Array) -> Array:
    """A tap that is not used, those that fall into a tile, and a multiple of eight."""
    extra = max(0, len(taps) - (ROWS - 1))
    return np.concatenate([[0.0], taps, np.zeros(max(0, ROWS - 1 - len(taps)) + -extra % TAPS)])


def folded(factors: Factors) -> tuple[Array, Array]:
    """Taps in eights, or none, and sections (n, 5); a mere gain goes into the first section."""
    taps, sections = factors.taps, np.delete(factors.sections, 3, axis=1)
    if len(taps) > 1:
        return padded(taps), sections
    if len(sections):
        sections[0, :3] *= taps[0]
    elif taps[0] != 1.0:
        return padded(taps), sections
    return _NOTHING, sections
