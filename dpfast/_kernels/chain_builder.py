"""Chains are put together here: every stage is a method, every signal a number.

chain = Chain()
v = chain.filter(prefilter, chain.read(), plus=Term(noise_std))
chain.write(v)
execute(chain, n_streams, n_samples, x=u, out=out)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import chain_program as kinds
from dpfast._kernels.block_sums import BlockSums, PeriodicFilter
from dpfast._kernels.chain_layout import Signal, State, past_rows
from dpfast._kernels.chain_parts import ChainParts, FirstStates, FirstWord, Pass, RandomStart
from dpfast._kernels.equalizer import Equalizer, pad_feedback_taps
from dpfast._kernels.factors import UNITY, Factors, FilterRow
from dpfast._kernels.fir_and_sections import fold_factors
from dpfast._kernels.integer_draws import IntegerTable
from dpfast._kernels.partition import Partition
from dpfast._kernels.posterior import PosteriorFilter
from dpfast._kernels.randomized_response import TwoLevelResponse
from dpfast._kernels.shared_draws import SharedTable
from dpfast._kernels.simulated_noise import NOISE, START, LevelTable
from dpfast._kernels.state_space_pass import StateSpace
from dpfast._kernels.tree_draws import TreeTable

Array = NDArray[Any]

SMOOTHER_ROWS = 480  # the least that a smoother runs back over; chunks divide it
_NOTHING = np.empty(0)


class Term(NamedTuple):
    """A term to be added: scale · signal[t - late]; without a signal, independent standard normals of a purpose."""

    scale: float
    signal: int | None = None
    late: int = 0
    purpose: int = NOISE


class Chain(ChainParts):
    """A chain under construction: every method adds a stage, and returns the number of the signal that it writes."""

    # --- stages -----------------------------------------------------------------------------------

    def read(self, array: int = 0) -> int:
        """Read the array that is given to `execute`, or one of several."""
        return self._stage(kinds.READ, place=array)

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

    def levels(self, table: LevelTable, purpose: int, first: FirstWord, start_purpose: int = START) -> int:
        """Draw a Markov chain; `first` gives the place in the table where each stream begins, from random words."""
        generator = self._generator(purpose)
        self.words.append(RandomStart(start_purpose, first))
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

    def filter_sum(
        self, row: FilterRow, signals: tuple[int, ...], *, plus: Term | None = None, square: range | None = None
    ) -> int:
        """Add Σ_j F_j x_j + plus, `square` as of a filter; an F_j that is None is zero."""
        parts = [(factors, x) for factors, x in zip(row, signals, strict=True) if factors is not None]
        *others, (last, x) = parts or [(UNITY, self._once(("zero",), lambda: self.step(0.0, 0)))]
        for factors, other in others:
            plus = Term(1.0, self.filter(factors, other, plus=plus))
        return self.filter(last, x, plus=plus, square=square)

    def filter_sum_once(self, row: FilterRow, signals: tuple[int, ...]) -> int:
        """Add Σ_j F_j x_j, once for all who ask for it."""
        parts = [b"" if x is None else b"|".join(part.tobytes() for part in x) for x in row]
        return self._once(("filter sum", signals, *parts), lambda: self.filter_sum(row, signals))

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

    def run_system(
        self, system: StateSpace, inputs: tuple[int, ...], *, begin: FirstStates | None = None
    ) -> tuple[int, ...]:
        """Run a system of one state for all its outputs, from zero unless `begin` gives the states.

        Its inputs were made one after the other, right before, and nobody else looks back at them.
        """
        n, weights = len(system.a), np.hstack([system.d, system.c])
        group = {"x": inputs[0], "n_a": n, "n_b": weights.shape[1]}
        self.signals += [Signal() for _ in range(n)]
        group["plus"] = inputs[0] + min(1, group["n_b"] - 1)  # all lie as far from one another as the first two
        if n:
            matrix = self._keep(np.hstack([system.b, system.a]).ravel())
            self._stage(kinds.ADVANCE, **group, out=inputs[-1] + 1, place=self.n_states, a=matrix)
            if begin is not None:
                self.begin += [(None, self.n_states + i) for i in range(n)]
                self.first_states.append(begin)
            self.n_states += n
        return tuple(self._stage(kinds.MIX, **group, a=self._keep(row)) for row in weights)

    def decide(self, equalizer: Equalizer, x: int, *, states: bool = False) -> int:
        """Decide by an equaliser; `states` as of a filter: past inputs, past decisions."""
        places = self._places("a", equalizer.forward) | self._places("b", pad_feedback_taps(equalizer.feedback))
        if equalizer.soft:
            places |= self._levels(equalizer.levels, equalizer.slopes, equalizer.offsets)
        else:
            places |= self._levels(equalizer.levels, equalizer.thresholds)
        self.signals[x].look_back(places["n_a"])
        kind = kinds.SOFT_FEEDBACK if equalizer.soft else kinds.FEEDBACK
        out = self._stage(kind, x=x, lag=equalizer.lag, **places)
        self.signals[out].look_back(places["n_b"])
        if states:
            past = [*past_rows(x, len(equalizer.forward) - 1), *past_rows(out, len(equalizer.feedback))]
            self.begin += past
            self.end += past
        return out

    def release(
        self,
        blocks: BlockSums,
        table: IntegerTable,
        purpose: int,
        x: int,
        shared: SharedTable | TreeTable | None = None,
    ) -> int:
        """Sum x in blocks and add noise to each sum, which those of a group may share; zero where none is released."""
        fields: dict[str, Any] = {"a": self._tabulate(table.thresholds), "n_a": table.thresholds.size}
        fields |= {"n_levels": table.n_halves, "scale": table.step, "rounds": int(blocks.rounds)}
        fields |= {"place": self.n_states, "block": blocks.length, "phase": blocks.phase}
        fields["generator"] = self._generator(purpose)
        self.begin.append((None, self.n_states))
        self.first_states.append(lambda seed, first, count: np.full((1, count), blocks.before))
        self.n_states += 1
        kind = kinds.RELEASE
        if shared is not None:
            self.words.append(RandomStart(START, lambda words: np.zeros_like(words[0])))  # bits of the present draw
            kind = kinds.RELEASE_SHARED if isinstance(shared, SharedTable) else kinds.RELEASE_TREE
            fields |= self._share(shared)
        fields |= {"weights": self._keep(np.array(blocks.weights)), "n_weights": len(blocks.weights)}
        numbers = np.array([blocks.offset, 1 / blocks.unit, blocks.unit, blocks.shift])
        return self._stage(kind, x=x, **fields, b=self._keep(numbers))

    def _share(self, shared: SharedTable | TreeTable) -> dict[str, int]:
        """Keep the tables of noise that blocks share, and make room for what was drawn of it."""
        if isinstance(shared, SharedTable):
            self.n_states += 2
            remaining = shared.remaining
            return {"kept": shared.group, "levels": self._keep(remaining.ravel()), "n_b": remaining.shape[1]}
        self.n_states += 2 * len(shared.branches)
        places = [self._keep(x) for x in shared.numbers()]
        words = self._tabulate(shared.words(places))
        return {"kept": math.prod(shared.branches), "levels": words, "cycle": len(shared.branches)}

    def estimate(self, kalman: PeriodicFilter, released: tuple[int, ...]) -> int:
        """Run a periodic Kalman filter behind block sums, released as signals that were made one after the other."""
        n_states, n_levels, n_kept = kalman.advance.shape[-1], len(released), max(2, kalman.n_later + 1)
        fields: dict[str, Any] = {"place": self.n_states, "lag": kalman.lag}
        fields |= {"block": kalman.slot, "phase": kalman.phase}
        fields |= {"cycle": len(kalman.weights), "kept": n_kept, "n_levels": n_levels}
        fields |= {"a": self._keep(kalman.advance.ravel()), "n_a": n_states, "b": self._keep(kalman.gains.ravel())}
        times = np.array([*kalman.lengths, *(kalman.offsets or (0,) * n_levels)])
        fields |= {"n_b": kalman.advance.size // n_states**2, "levels": self._keep(times)}
        fields |= {"weights": self._keep(kalman.weights.ravel())}
        self.n_states += n_kept * (n_states + 2 * n_levels)
        second = released[min(1, n_levels - 1)]  # they lie as far from one another as the first two
        return self._stage(kinds.ESTIMATE, x=released[0], plus=second, **fields)

    def estimate_posterior(self, posterior: PosteriorFilter, released: int, *, states: bool = False) -> int:
        """Take the posterior mean behind a signal that is released, once for all who ask for it.

        `states` as of a filter: what is known of memory, states and remembered outputs, from given states on.
        """
        return self._once(("posterior", released), lambda: self._posterior(posterior, released, states=states))

    def _posterior(self, posterior: PosteriorFilter, released: int, *, states: bool) -> int:
        n, n_states, n_slots = len(posterior.start), posterior.n_states, posterior.lag + 1
        numbers, words = posterior.numbers(), list[int]()
        for table in (posterior.first, posterior.table):
            n_recent = len(table.reach) - n_states
            words += [self._keep(table.rows.ravel()), self._keep(table.reach.ravel()), n_recent, table.n_steps]
            numbers += [len(table.rows) - 1.0, float(table.top), table.shift]
        fields: dict[str, Any] = {"lag": posterior.lag, "block": posterior.length, "phase": posterior.phase}
        fields |= {"place": self.n_states, "kept": n_slots, "n_levels": n, "n_a": n_states}
        fields |= {"weights": self._keep(posterior.predictions.ravel()), "n_b": len(posterior.boundaries)}
        fields |= {"levels": self._tabulate(np.array(words)), "b": self._keep(np.array(numbers))}
        known = n + n_states + n * n_states + n * n_slots
        if states:
            places: list[State] = [(None, self.n_states + i) for i in range(known)]
            self.begin += places
            self.end += places
        else:
            self._start_levels(self.n_states, posterior.start)
        n_means = n_states + max(len(x.reach) for x in (posterior.first, posterior.table))
        self.n_states += known + 2 + n * n + n + n * n_means
        return self._stage(kinds.POSTERIOR, x=released, **fields)

    def publish(self, partition: Partition, table: IntegerTable, purpose: int, x: int) -> int:
        """Sum x in blocks that end when what was published says so, and add noise to each sum; else zero."""
        fields: dict[str, Any] = {"a": self._tabulate(table.thresholds), "n_a": table.thresholds.size}
        fields |= {"n_levels": table.n_halves, "scale": table.step, "generator": self._generator(purpose)}
        fields |= self._partition(partition)
        self.n_states += 1
        return self._stage(kinds.PUBLISH, x=x, **fields)

    def follow(self, partition: Partition, released: int) -> int:
        """Take the posterior mean behind such blocks, which are released as a signal."""
        fields = self._partition(partition)
        in_memory = partition.n_states + partition.lag + 1 + partition.n_means
        self.n_states += 1 + partition.n_states + len(partition.start) * in_memory
        return self._stage(kinds.FOLLOW, x=released, **fields)

    def _partition(self, partition: Partition) -> dict[str, Any]:
        """Keep the numbers of a partition, and make room for who follows it."""
        n = len(partition.start)
        self._start_levels(self.n_states + 2, partition.start)
        fields = {"place": self.n_states, "b": self._keep(partition.numbers())}
        places = [self._keep(x.ravel()) for table in partition.tables for x in (table.rows, table.reach)]
        self.n_states += 2 + 2 * n
        return {**fields, "levels": self._tabulate(partition.words(places)), "n_b": n * n}

    def _start_levels(self, state: int, start: Array) -> None:
        """Begin with probabilities of levels in the states from one on."""
        self.begin += [(None, state + i) for i in range(len(start))]
        self.first_states.append(lambda seed, first, count: np.repeat(start[:, None], count, axis=1))

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
