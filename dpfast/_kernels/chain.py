"""The Monte Carlo chain: stages with state that pass chunks of a block of streams from one to the next.

    source ──► prefilter ──► + noise ──► receiver ──► error against the delayed target output

Every mechanism sees the same input and the same unit noise (common random numbers). A chunk is an array
(streams, time); chunks may have any length, and leave no trace in the result, as long as all but the last are even
(normals come in pairs).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels import feedback, linear, random
from dpfast._kernels.feedback import Equalizer as Equalizer
from dpfast._kernels.linear import Factors as Factors

Array = NDArray[np.float64]

BLOCK = 32  # streams that pass through the chain together
CHUNK = 2048  # samples of a chunk


class Stage(Protocol):
    """Something that turns a chunk into another one in place, and remembers what it must."""

    def run(self, x: Array) -> None:
        """Process the next chunk (streams, time) in place."""


class Linear:
    """A running linear filter; from zero state unless one is given."""

    def __init__(self, factors: Factors, n_streams: int, state: Array | None = None) -> None:
        self.factors = factors
        self.state = np.zeros((n_streams, factors.n_states)) if state is None else state

    def run(self, x: Array) -> None:
        linear.run(self.factors, self.state, x)


class Noise:
    """Independent standard normals, the same for every mechanism."""

    def __init__(self, seed: int, first: int, n_streams: int) -> None:
        self.generators = random.generators(seed, first, n_streams, random.NOISE)

    def run(self, x: Array) -> None:
        random.draw_normals(self.generators, x)


class Fifo:
    """Samples (streams, time) that wait, first in, first out."""

    def __init__(self, n_streams: int, n_zeros: int) -> None:
        self.parts, self.length = deque([np.zeros((n_streams, n_zeros))]), n_zeros
        self.nothing = np.empty((n_streams, 0))

    def put(self, x: Array) -> None:
        self.parts.append(x)
        self.length += x.shape[1]

    def peek(self, n: int) -> Array:
        """The first n samples, which stay."""
        taken, parts = [self.nothing], iter(self.parts)
        while n > 0:
            taken.append(next(parts)[:, :n])
            n -= taken[-1].shape[1]
        return np.concatenate(taken, axis=1)

    def take(self, n: int) -> Array:
        """The first n samples, which leave."""
        result = self.peek(n)
        self.length -= n
        while n > 0:
            part = self.parts.popleft()
            if part.shape[1] > n:
                self.parts.appendleft(part[:, n:])
            n -= min(n, part.shape[1])
        return result


# --- sources --------------------------------------------------------------------------------------


class Draw(Protocol):
    """A block of input streams under way."""

    def draw(self, out: Array) -> None:
        """Fill `out` (streams, time) with the next samples."""


class Source(Protocol):
    """Where input streams come from."""

    def start(self, seed: int, first: int, n_streams: int) -> Draw:
        """The streams first, first + 1, ... at time zero."""


class LevelSource(NamedTuple):
    """A Markov chain over levels, or independent levels; probabilities are cumulative (``random.draw_levels``)."""

    initial: Array
    transition: Array
    levels: Array

    def start(self, seed: int, first: int, n_streams: int) -> Draw:
        return _LevelDraw(self, random.generators(seed, first, n_streams, random.INPUT))


class _LevelDraw:
    def __init__(self, source: LevelSource, generators: random.Words) -> None:
        self.source, self.generators = source, generators
        self.state = np.full(len(generators), -1)

    def draw(self, out: Array) -> None:
        random.draw_levels(*self.source, self.state, self.generators, out)


class GaussianSource(NamedTuple):
    """White noise through a filter that starts in its stationary state, plus a mean; rounded to levels if any.

    root : R with RᵀR the stationary covariance of the filter's state.
    """

    shaping: Factors
    root: Array
    mean: float
    levels: Array | None

    def start(self, seed: int, first: int, n_streams: int) -> Draw:
        generators = random.generators(seed, first, n_streams, random.INPUT)
        normals = np.empty((n_streams, len(self.root)))
        random.draw_normals(generators, normals)
        # one stream at a time: a matrix product may sum in an order that depends on its size
        state = np.stack([row @ self.root for row in normals]) if n_streams else normals
        return _GaussianDraw(self, generators, Linear(self.shaping, n_streams, state))


class _GaussianDraw:
    def __init__(self, source: GaussianSource, generators: random.Words, shaping: Linear) -> None:
        self.source, self.generators, self.shaping = source, generators, shaping

    def draw(self, out: Array) -> None:
        random.draw_normals(self.generators, out)
        self.shaping.run(out)
        out += self.source.mean
        levels = self.source.levels
        if levels is not None:
            out[...] = levels[np.searchsorted((levels[1:] + levels[:-1]) / 2, out)]


# --- receivers ------------------------------------------------------------------------------------


class LinearReceiver(NamedTuple):
    """ŷ = H v + offset(t), the offset being `level` through the target, `lag` samples late."""

    factors: Factors
    target: Factors
    level: float
    lag: int

    @property
    def delay(self) -> int:
        return self.lag

    def start(self, n_streams: int) -> Stage:
        return _LinearStage(self, n_streams)


class SmootherReceiver(NamedTuple):
    """ŷ = B(1/z) A(z) v + offset: forward through A, then backward through B from `lookahead` samples ahead.

    Estimates leave in blocks of fixed length, so that chunks leave no trace in the bits.
    """

    forward: Factors
    backward: Factors
    target: Factors
    level: float
    lookahead: int

    @property
    def block(self) -> int:
        return max(CHUNK, 2 * self.lookahead)

    @property
    def delay(self) -> int:
        return self.lookahead + self.block

    def start(self, n_streams: int) -> Stage:
        return _SmootherStage(self, n_streams)


class FeedbackReceiver(NamedTuple):
    """ŷ = F û, û the equaliser's decision plus `level`."""

    equalizer: Equalizer
    target: Factors
    level: float

    @property
    def delay(self) -> int:
        return self.equalizer.lag

    def start(self, n_streams: int) -> Stage:
        return FeedbackStage(self, n_streams)


Receiver = LinearReceiver | SmootherReceiver | FeedbackReceiver


class Offset:
    """What a known mean adds to an estimate: a constant from time zero on, through the target."""

    def __init__(self, target: Factors, level: float, delay: int) -> None:
        self.stage, self.level, self.wait = Linear(target, 1), level, delay

    def add(self, x: Array) -> None:
        if self.level == 0.0:
            return
        steps = np.full((1, x.shape[1]), self.level)
        steps[:, : self.wait] = 0.0
        self.wait = max(0, self.wait - x.shape[1])
        self.stage.run(steps)
        x += steps


class _LinearStage:
    def __init__(self, receiver: LinearReceiver, n_streams: int) -> None:
        self.filter = Linear(receiver.factors, n_streams)
        self.offset = Offset(receiver.target, receiver.level, receiver.lag)

    def run(self, x: Array) -> None:
        self.filter.run(x)
        self.offset.add(x)


class _SmootherStage:
    """Estimates `receiver.delay` samples late; zeros before that."""

    def __init__(self, receiver: SmootherReceiver, n_streams: int) -> None:
        self.receiver = receiver
        self.forward = Linear(receiver.forward, n_streams)
        self.offset = Offset(receiver.target, receiver.level, receiver.delay)
        self.pending, self.ready = Fifo(n_streams, 0), Fifo(n_streams, receiver.delay)

    def run(self, x: Array) -> None:
        self.forward.run(x)
        self.pending.put(x.copy())
        block, enough = self.receiver.block, self.receiver.delay
        while self.pending.length >= enough:
            ahead = backward(self.receiver.backward, self.pending.peek(enough))
            self.ready.put(ahead[:, :block])
            self.pending.take(block)
        x[...] = self.ready.take(x.shape[1])
        self.offset.add(x)


def backward(factors: Factors, x: Array) -> Array:
    """The filter run from the last sample to the first."""
    reversed_ = np.ascontiguousarray(x[:, ::-1])
    Linear(factors, len(x)).run(reversed_)
    return reversed_[:, ::-1]


class FeedbackStage:
    """A running decision-feedback receiver; `decide` leaves the decisions, `run` the estimates."""

    def __init__(self, receiver: FeedbackReceiver, n_streams: int) -> None:
        self.equalizer, self.level = receiver.equalizer, receiver.level
        self.forward = Linear(linear.fir(self.equalizer.forward), n_streams)
        self.target = Linear(receiver.target, n_streams)
        self.past = np.zeros((n_streams, len(self.equalizer.feedback)))
        self.time = 0

    def decide(self, x: Array) -> None:
        self.forward.run(x)
        feedback.decide(self.equalizer, self.past, self.time, x)
        if self.level != 0.0:
            x[:, max(0, self.equalizer.lag - self.time) :] += self.level
        self.time += x.shape[1]

    def run(self, x: Array) -> None:
        self.decide(x)
        self.target.run(x)


# --- the chain ------------------------------------------------------------------------------------


class Link(NamedTuple):
    """A mechanism: v = G (u - centre) + noise_std · n, and the receiver of v; `target` is an index."""

    target: int
    centre: float
    prefilter: Factors
    noise_std: float
    receiver: Receiver


class Study(NamedTuple):
    """What is simulated: a source, the distinct targets, mechanisms, and the window of y in which errors count."""

    source: Source
    targets: tuple[Factors, ...]
    links: tuple[Link, ...]
    burn_in: int
    n_samples: int


class Privatizer:
    """The only stage that sees u: v = G (u - centre) + noise_std · n."""

    def __init__(self, link: Link, n_streams: int) -> None:
        self.centre, self.noise_std = link.centre, link.noise_std
        self.prefilter = Linear(link.prefilter, n_streams)

    def privatize(self, u: Array, noise: Array) -> Array:
        """The next chunk of v, from unit noise."""
        v = u - self.centre
        self.prefilter.run(v)
        v += self.noise_std * noise
        return v


class _Running:
    """A mechanism under way: its stages, and the target outputs that wait for their estimates."""

    def __init__(self, link: Link, n_streams: int) -> None:
        self.link = link
        self.privatizer = Privatizer(link, n_streams)
        self.receiver = link.receiver.start(n_streams)
        self.waiting = Fifo(n_streams, link.receiver.delay)
        self.squares = np.zeros(n_streams)

    def step(self, u: Array, noise: Array, y: Array, window: slice) -> None:
        """Add the squared errors of the estimates of y that leave in this chunk and lie in the window."""
        x = self.privatizer.privatize(u, noise)
        self.receiver.run(x)
        self.waiting.put(y)
        x -= self.waiting.take(x.shape[1])
        linear.add_squares(x, window.start, window.stop, self.squares)


def squared_errors(study: Study, seed: int, first: int, n_streams: int, advance: Callable[[int], None]) -> Array:
    """Simulate a block of streams; mean squared errors (mechanisms, streams). `advance` hears of every chunk."""
    source, noise = study.source.start(seed, first, n_streams), Noise(seed, first, n_streams)
    targets = [Linear(x, n_streams) for x in study.targets]
    running = [_Running(link, n_streams) for link in study.links]
    end = study.burn_in + study.n_samples
    last = end + max(link.receiver.delay for link in study.links)
    for start in range(0, last, CHUNK):
        size = min(CHUNK, last - start + (last - start) % 2)
        u, n = np.empty((n_streams, size)), np.empty((n_streams, size))
        source.draw(u)
        noise.run(n)
        outputs = [_run(stage, u.copy()) for stage in targets]
        for mechanism in running:
            shift = start - mechanism.link.receiver.delay
            window = slice(*(min(max(t - shift, 0), size) for t in (study.burn_in, end)))
            mechanism.step(u, n, outputs[mechanism.link.target], window)
        advance(size)
    return np.stack([mechanism.squares for mechanism in running]) / study.n_samples


def _run(stage: Stage, x: Array) -> Array:
    stage.run(x)
    return x
