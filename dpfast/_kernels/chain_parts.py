"""Keep what a chain under construction has: signals, stages, coefficients, states; make its program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpfast._kernels.chain_fusion import fuse_stages
from dpfast._kernels.chain_layout import Signal, State, find_rows, lay_out
from dpfast._kernels.chain_program import STAGE, BundleMemory, ChainProgram, Words
from dpfast._kernels.simd import lanes
from dpfast._kernels.simulated_noise import STATE_WORDS, seed_generators
from dpfast._kernels.tiles import ROWS

Array = NDArray[Any]

CHUNK = 480  # rows
_NOTHING = np.empty(0)
_LINE = 64  # bytes of the cache

FirstWord = Callable[[Words], Words]  # random words (4, streams), for what came before time zero: a word (streams,)
FirstStates = Callable[[int, int, int], Array]  # (seed, first stream, count): (states, count) at time zero


class RandomStart(NamedTuple):
    """A word that is random at first: the purpose of the words that it is made of, and how."""

    purpose: int
    find: FirstWord


class Pass(NamedTuple):
    """The times at which a stage runs, if not on every chunk: after so many rows of time, on as many and more."""

    every: int
    n: int


class ChainParts:
    """All that a chain keeps, by the numbers that stages know it by."""

    def __init__(self, dtype: DTypeLike = np.float64, chunk: int = CHUNK) -> None:
        self.dtype, self.chunk = np.dtype(dtype), chunk
        self.program: ChainProgram | None = None
        self.signals: list[Signal] = []
        self.stages: list[dict[str, Any]] = []
        self.coefficients: list[Array] = []
        self.tables: list[Array] = []
        self.made: dict[tuple[Any, ...], int] = {}
        self.words: list[int | RandomStart] = []  # purposes of generators, and what else is random at first
        self.first_states: list[FirstStates] = []
        self.begin: list[State] = []
        self.end: list[State] = []
        self.n_coefficients = self.n_states = self.n_generators = self.n_totals = self.n_outputs = 0

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
        self.words.append(purpose)
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
        purposes = tuple(x if isinstance(x, int) else x.purpose for x in self.words)
        drawn = zip(self.words, seed_generators(seed, first, count, purposes), strict=True)
        words = [state if isinstance(x, int) else x.find(state)[None] for x, state in drawn]
        return np.concatenate([np.empty((0, count), np.uint32), *words]).T

    def compile(self, n_samples: int) -> ChainProgram:
        """Make the program for signals of a length; the last one is kept."""
        program = self.program
        if program is None or program.n_samples != n_samples:
            program = self.program = self._compile(n_samples)  # another thread may keep another one meanwhile
        return program

    def _compile(self, n_samples: int) -> ChainProgram:
        chunk = min(self.chunk, max(1, -(-n_samples // ROWS)) * ROWS)  # a short signal takes little memory
        signals, first_state = lay_out(self.signals, chunk)
        to_run, coefficients = self.stages, np.concatenate([_NOTHING, *self.coefficients]).astype(self.dtype)
        if not self.end:
            to_run, coefficients = fuse_stages(to_run, coefficients)
        names = STAGE.names or ()
        stages = np.array([tuple([fields.get(name, 0) for name in names]) for fields in to_run], STAGE)

        return ChainProgram(
            signals=signals,
            stages=stages.view(np.recarray),
            coefficients=coefficients,
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
