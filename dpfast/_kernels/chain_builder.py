"""Chains are put together here: every stage is a method, every signal a number.

chain = Chain()
v = chain.filter(prefilter, chain.read(), plus=Term(noise_std))
chain.write(v)
execute(chain, n_streams, n_samples, x=u, out=out)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpfast._kernels import chain_program as kinds
from dpfast._kernels.block_sums import BlockSums, PeriodicFilter
from dpfast._kernels.chain_layout import Signal, State, find_rows, lay_out, past_rows
from dpfast._kernels.chain_program import STAGE, BundleMemory, ChainProgram, Words
from dpfast._kernels.equalizer import Equalizer, pad_feedback_taps
from dpfast._kernels.fir_and_sections import Factors, fold_factors
from dpfast._kernels.integer_draws import IntegerTable
from dpfast._kernels.randomized_response import TwoLevelResponse
from dpfast._kernels.simd import lanes
from dpfast._kernels.simulated_noise import NOISE, STATE_WORDS, LevelTable, seed_generators
from dpfast._kernels.tiles import ROWS

Array = NDArray[Any]

CHUNK = 480  # rows
SMOOTHER_ROWS = 480  # the least that a smoother runs back over; chunks divide it
_NOTHING = np.empty(0)
_LINE = 64  # bytes of the cache

FirstWords = Callable[[int, int, int], Words]  # (seed, first stream, count): (words, count) at time zero
FirstStates = Callable[[int, int, int], Array]  # likewise (states, count)


class Term(NamedTuple):
    """A term to be added: scale · signal[t - late]; without a signal, independent standard normals of a purpose."""

    scale: float
    signal: int | None = None
    late: int = 0
    purpose: int = NOISE


class Pass(NamedTuple):
    """The times at which a stage runs, if not on every chunk: after so many rows of time, on as many and more."""

    every: int
    n: int


class Chain:
    """A chain under construction: every method adds a stage, and returns the number of the signal that it writes."""

    def __init__(self, dtype: DTypeLike = np.float64, chunk: int = CHUNK) -> None:
        self.dtype, self.chunk = np.dtype(dtype), chunk
        self.program: ChainProgram | None = None
        self.signals: list[Signal] = []
        self.stages: list[dict[str, Any]] = []
        self.coefficients: list[Array] = []
        self.tables: list[Array] = []
        self.made: dict[tuple[Any, ...], int] = {}
        self.words: list[FirstWords] = []
        self.first_states: list[FirstStates] = []
        self.begin: list[State] = []
        self.end: list[State] = []
        self.n_coefficients = self.n_states = self.n_generators = self.n_totals = self.n_outputs = 0

    # --- stages -----------------------------------------------------------------------------------

    def read(self) -> int:
        """Read the array that is given to `execute`."""
        return self._stage(kinds.READ)

    def write(self, x: int) -> None:
        """Write a signal into the next of the arrays that come out."""
        self._stage(kinds.WRITE, x=x, out=x, place=self.n_outputs)
        self.n_outputs += 1

    def normals(self, purpose: int) -> int:
        """Draw independent standard normals."""
        return self._stage(kinds.NORMALS, place=self._generator(purpose))

    def laplace(self, purpose: int) -> int:
        """Draw independent Laplace noise of scale one."""
        return self._stage(kinds.LAPLACE, place=self._generator(purpose))

    def levels(self, table: LevelTable, purpose: int, first: FirstWords) -> int:
        """Draw a Markov chain; `first` gives the place in the table where each stream begins."""
        generator = self._generator(purpose)
        self.words.append(first)
        start = self._tabulate(table.thresholds, table.next_row)
        kind = kinds.MANY_LEVELS if table.n_halves is not None else kinds.TWO_LEVELS
        fields: dict[str, Any] = {
            "place": generator,
            "a": start,
            "n_a": table.thresholds.size,
            "n_levels": table.n_halves or 0,
        }
        return self._stage(kind, **fields, levels=self._keep(table.levels))

    def step(self, level: float, start: int) -> int:
        """Make a signal that is zero, and a constant from a time on."""
        return self._stage(kinds.STEP, scale=level, start=start)

    def shift(self, x: int, by: float) -> int:
        """Add a constant to x; x itself is returned where that is zero."""
        return x if by == 0 else self._once(("shift", x, by), lambda: self._pass(x, plus=Term(by, self._ones())))

    def _ones(self) -> int:
        return self._once(("ones",), lambda: self.step(1.0, 0))

    def add(self, x: int, term: Term) -> int:
        """Add another signal to x."""
        return self._pass(x, plus=term)

    def filter_once(self, factors: Factors, x: int) -> int:
        """Filter x by F, once for all who ask for it."""
        return self._once(("filter", x, *(part.tobytes() for part in factors)), lambda: self.filter(factors, x))

    def filter(
        self,
        factors: Factors,
        x: int,
        *,
        lag: int = 0,
        minus: int | None = None,
        plus: Term | None = None,
        square: range | None = None,
        begin: FirstStates | None = None,
        states: bool = False,
        timing: Pass | None = None,
    ) -> int:
        """Add F(x[t - lag] - minus) + plus.

        square : only sum the squares, into the next of the totals, over the times start ≤ t < stop.
        begin : gives the states that F starts from, zero by default.
        states : F starts from states that are given to `execute`, and its states at the end are asked for.
        """
        taps, sections = fold_factors(factors)
        if minus is not None and len(taps):  # taps need the past of the difference
            x, lag, minus = self._pass(x, lag=lag, minus=minus, timing=timing), 0, None
        source, state, recursive = x, self.n_states, len(factors.recursion) > 1
        if recursive:
            x = self._pass(x, taps, sections, lag=lag, minus=minus, timing=timing)
            x = result = self._recursion(factors.recursion, x, timing)
            if plus is not None or square is not None:
                result = self._pass(x, plus=plus, square=square, timing=timing)
        else:
            x = result = self._pass(x, taps, sections, lag=lag, minus=minus, plus=plus, square=square, timing=timing)
        if begin is not None or states:
            places = self._states(factors, source, state, x)
            self.begin += places
            self.end += places if states else []
            self.first_states += [begin] if begin is not None else []
        return result

    def _pass(
        self,
        x: int,
        taps: Array = _NOTHING,
        sections: Array = _NOTHING,
        *,
        lag: int = 0,
        minus: int | None = None,
        plus: Term | None = None,
        square: range | None = None,
        timing: Pass | None = None,
    ) -> int:
        fields: dict[str, Any] = {"lag": lag, "place": self.n_states}
        fields |= self._places("a", taps) | self._places("b", sections.ravel())
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
        return self._stage(kinds.FILTER, timing, x=x, **fields)

    def _recursion(self, recursion: Array, x: int, timing: Pass | None) -> int:
        places = self._places("a", _NOTHING) | self._places("b", pad_feedback_taps(-recursion[1:]))
        out = self._stage(kinds.FEEDBACK, timing, x=x, **places)
        self.signals[out].look_back(places["n_b"])
        return out

    def _states(self, factors: Factors, x: int, first: int, out: int) -> list[State]:
        """List where the states of a filter are: past inputs, states of sections from `first` on, past outputs."""
        n_past, n_poles = len(factors.taps) - 1, len(factors.recursion) - 1
        sections: list[State] = [(None, first + k) for k in range(2 * len(factors.sections))]
        return [*past_rows(x, n_past), *sections, *past_rows(out, n_poles)]

    def decide(self, equalizer: Equalizer, x: int, *, states: bool = False) -> int:
        """Decide by an equaliser; `states` as of a filter: past inputs, past decisions."""
        places = self._places("a", equalizer.forward) | self._places("b", pad_feedback_taps(equalizer.feedback))
        if equalizer.soft:
            places |= {"soft": 1} | self._levels(equalizer.levels, equalizer.slopes, equalizer.offsets)
        else:
            places |= self._levels(equalizer.levels, equalizer.thresholds)
        self.signals[x].look_back(places["n_a"])
        out = self._stage(kinds.FEEDBACK, x=x, lag=equalizer.lag, **places)
        self.signals[out].look_back(places["n_b"])
        if states:
            past = [*past_rows(x, len(equalizer.forward) - 1), *past_rows(out, len(equalizer.feedback))]
            self.begin += past
            self.end += past
        return out

    def release(self, blocks: BlockSums, table: IntegerTable, purpose: int, x: int) -> int:
        """Sum x in blocks and add noise to each sum; zero where nothing is released."""
        fields: dict[str, Any] = {"a": self._tabulate(table.thresholds), "n_a": table.thresholds.size}
        fields |= {"n_levels": table.n_halves, "scale": table.step, "soft": int(blocks.rounds)}
        fields |= {"place": self.n_states, "block": blocks.length, "phase": blocks.phase}
        fields["generator"] = self._generator(purpose)
        self.begin.append((None, self.n_states))
        self.first_states.append(lambda seed, first, count: np.full((1, count), blocks.before))
        self.n_states += 1
        numbers = np.array([blocks.offset, 1 / blocks.unit, blocks.unit, blocks.shift])
        return self._stage(kinds.RELEASE, x=x, **fields, b=self._keep(numbers))

    def estimate(self, kalman: PeriodicFilter, released: tuple[int, ...]) -> int:
        """Run a periodic Kalman filter behind block sums, released as signals that were made one after the other."""
        n_states, n_levels, n_kept = len(kalman.advance), len(released), max(2, kalman.n_later + 1)
        fields: dict[str, Any] = {"place": self.n_states, "lag": kalman.lag}
        fields |= {"block": kalman.lengths[0], "phase": kalman.phase}
        fields |= {"cycle": len(kalman.weights), "kept": n_kept, "n_levels": n_levels}
        fields |= {"a": self._keep(kalman.advance.ravel()), "n_a": n_states, "b": self._keep(kalman.gains.ravel())}
        fields |= {"weights": self._keep(kalman.weights.ravel()), "levels": self._keep(np.array(kalman.lengths))}
        self.n_states += n_kept * (n_states + 2 * n_levels)
        return self._stage(kinds.ESTIMATE, x=released[0], **fields)

    def respond(self, response: TwoLevelResponse, purpose: int, x: int) -> int:
        """Respond to x, of two levels, by chance."""
        start = self._tabulate(np.clip(np.rint(np.array([response.told, response.true]) * 2.0**32), 0, 2**32 - 1))
        numbers = np.array([response.middle, response.told_size, response.true_size, response.shift])
        generator = self._generator(purpose)
        return self._stage(kinds.RESPOND, x=x, generator=generator, a=start, n_a=2, b=self._keep(numbers), n_b=4)

    def round(self, x: int, levels: Array) -> int:
        """Round x to the nearest of sorted levels: decisions without memory."""
        middles = (levels[1:] + levels[:-1]) / 2
        return self.decide(Equalizer(_NOTHING, _NOTHING, levels, middles, _NOTHING, _NOTHING, soft=False, lag=0), x)

    def smooth(self, backward: Factors, lookahead: int, target: int, x: int, square: range) -> int:
        """Sum squared errors of x, filtered backward in time from `lookahead` samples ahead, against a target.

        Every few chunks the filter runs over the last of them and the lookahead before. Gives the rows that are then
        done, of which the time must be a multiple.
        """
        block = SMOOTHER_ROWS
        while block < 2 * lookahead:
            block *= 2
        for signal in (self.signals[x], self.signals[target]):
            signal.look_back(lookahead)
            signal.block = max(signal.block, block)
        longer, first = Pass(block, block + lookahead), self.n_states
        ahead = self._stage(kinds.REVERSE, longer, x=x, lag=lookahead)
        self._stage(kinds.CLEAR, longer, x=ahead, out=ahead, place=first, n_a=2 * len(backward.sections))
        result = self.filter(backward, ahead, timing=longer)
        timing = Pass(block, block)
        estimate = self._stage(kinds.REVERSE, timing, x=result, lag=-lookahead)
        late = range(square.start + lookahead, square.stop + lookahead)
        self._pass(target, lag=lookahead, minus=estimate, square=late, timing=timing)
        return block

    # --- bookkeeping ------------------------------------------------------------------------------

    def _once(self, key: tuple[Any, ...], make: Callable[[], int]) -> int:
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def _stage(self, kind: int, timing: Pass | None = None, **fields: Any) -> int:
        every, n = timing or Pass(self.chunk, 0)
        if "out" not in fields:
            self.signals.append(Signal(fixed_length=n))
            fields["out"] = len(self.signals) - 1
        self.stages.append({"kind": kind, "period": every // self.chunk, "n": n, **fields})
        return int(fields["out"])

    def _generator(self, purpose: int) -> int:
        """Add a generator, and return the first row of its words."""
        row = STATE_WORDS * self.n_generators + len(self.words) - self.n_generators
        self.words.append(lambda seed, first, count: seed_generators(seed, first, count, purpose))
        self.n_generators += 1
        return row

    def _keep(self, values: Array) -> int:
        self.coefficients.append(np.asarray(values, dtype=np.float64))
        self.n_coefficients += values.size
        return self.n_coefficients - values.size

    def _tabulate(self, *words: Array) -> int:
        start = sum(x.size for x in self.tables)
        self.tables += words
        return start

    def _places(self, name: str, values: Array) -> dict[str, Any]:
        return {name: self._keep(values), f"n_{name}": values.size}

    def _levels(self, *numbers: Array) -> dict[str, int]:
        """Keep levels, and what decides between them."""
        return {"levels": self._keep(np.concatenate(numbers)), "n_levels": len(numbers[0])}

    # --- what runs --------------------------------------------------------------------------------

    def states_before(self, seed: int, first: int, count: int) -> Array:
        """Return the states (count, states) of the streams first, first + 1, ... before time zero."""
        states = np.zeros((len(self.begin), count), self.dtype)
        if self.first_states:
            np.concatenate([part(seed, first, count) for part in self.first_states], out=states, casting="same_kind")
        return states.T

    def first_words(self, seed: int, first: int, count: int) -> Words:
        """Return the words (count, words) of their generators, and of what else is random at first."""
        words = [np.atleast_2d(part(seed, first, count)) for part in self.words]
        return np.concatenate(words).astype(np.uint32).T if words else np.empty((count, 0), np.uint32)

    def compile(self, n_samples: int) -> ChainProgram:
        """Make the program for signals of a length; the last one is kept."""
        program = self.program
        if program is None or program.n_samples != n_samples:
            program = self.program = self._compile(n_samples)  # another thread may keep another one meanwhile
        return program

    def _compile(self, n_samples: int) -> ChainProgram:
        chunk = min(self.chunk, max(1, -(-n_samples // ROWS)) * ROWS)  # a short signal takes little memory
        signals, first_state = lay_out(self.signals, chunk)
        stages = np.zeros(len(self.stages), STAGE)
        for name in STAGE.names or ():
            stages[name] = [fields.get(name, 0) for fields in self.stages]

        return ChainProgram(
            signals=signals,
            stages=stages.view(np.recarray),
            coefficients=np.concatenate([_NOTHING, *self.coefficients]).astype(self.dtype),
            table=np.concatenate([_NOTHING, *self.tables]).astype(np.uint32),
            begin=find_rows(signals, first_state, self.begin, 0),
            end=find_rows(signals, first_state, self.end, n_samples),
            first_state=first_state,
            n_rows=first_state + self.n_states,
            chunk=chunk,
            n_samples=n_samples,
            work=chunk * sum(4 + x.get("n_a", 0) + x.get("n_b", 0) for x in self.stages),
        )

    def memory(self, program: ChainProgram) -> BundleMemory:
        """Make room for a bundle: zeros in one piece, from the beginning of a cache line."""
        n, n_words = lanes(self.dtype), len(self.words) + (STATE_WORDS - 1) * self.n_generators
        size, n_totals = program.n_rows * self.dtype.itemsize, self.n_totals + 1
        raw = np.zeros(n * (size + 8 * n_totals + 4 * n_words) + _LINE, np.uint8)
        start = -raw.ctypes.data % _LINE
        return BundleMemory(
            now=np.zeros(len(self.signals), np.int64),
            rows=np.ndarray((program.n_rows, n), self.dtype, raw, start),
            totals=np.ndarray((n_totals, n), np.float64, raw, start + n * size),
            words=np.ndarray((n_words, n), np.uint32, raw, start + n * (size + 8 * n_totals)),
        )
