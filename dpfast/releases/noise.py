"""Noise for a release: exact integers of a law, made of the operating system's randomness."""

from __future__ import annotations

import ctypes
import os
import threading
import weakref
from collections.abc import Sequence
from typing import NamedTuple, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.discrete_gaussian import Law, draw, make_table
from dpfast._kernels.exact_decisions import DIGITS, WORDS, Words
from dpfast._kernels.table_draws import CutTable, draw_table
from dpfast._kernels.two_sided_geometric import LARGEST_J, GeometricLaw, draw_geometric
from dpfast._support import validation
from dpfast._support.errors import ReleaseError
from dpfast.privacy.discrete_gaussian_accounting import Sigma
from dpfast.privacy.geometric_rate import GeometricRate
from dpfast.privacy.table_law import TableLaw

Integers = NDArray[np.int64]
NoiseLaw = Sigma | GeometricRate | TableLaw

LARGEST = 2**40  # a of sigma
_LARGEST_S = 2**62
_WORDS_PER_SAMPLE = 8  # that are drawn at a time; a Gaussian uses 7 on average, a geometric 9 to 15, a table 2
_LIMBS, _MOST_LIMBS = 6, 24  # of the table, of 32 bits


class Sampler(Protocol):
    """A law, and how integers are drawn from words."""

    def draw(self, words: Words, out: Integers) -> tuple[int, int, int]:
        """Fill `out`; return how many, the words that they took, and what is missing for the next."""

    def add_digits(self) -> None:
        """Make tables longer, in which a sample was not decided."""


class GaussianSampler:
    """The discrete Gaussian (Karney 2016, algorithm D)."""

    def __init__(self, sigma: Sigma) -> None:
        a = validation.integer("sigma.a", sigma.a, 1, LARGEST)
        self._law = Law.from_fraction(a, validation.integer("sigma.j", sigma.j, 0, a.bit_length() + 3))
        self._n_limbs = _LIMBS

    def draw(self, words: Words, out: Integers) -> tuple[int, int, int]:
        """See :class:`Sampler`."""
        return draw(words, make_table(self._n_limbs), self._law, out)

    def add_digits(self) -> None:
        """See :class:`Sampler`."""
        if self._n_limbs == _MOST_LIMBS:
            raise _broken_source()
        self._n_limbs *= 2

    def __repr__(self) -> str:
        return f"sigma={self._law.a}/2^{self._law.j}"


class GeometricSampler:
    """The two-sided geometric (Canonne, Kamath and Steinke 2020, algorithm 2)."""

    def __init__(self, rate: GeometricRate) -> None:
        s = validation.integer("rate.s", rate.s, 1, _LARGEST_S)
        self._law = GeometricLaw.from_rate(s, validation.integer("rate.j", rate.j, 0, LARGEST_J))

    def draw(self, words: Words, out: Integers) -> tuple[int, int, int]:
        """See :class:`Sampler`."""
        return draw_geometric(words, self._law, out)

    def add_digits(self) -> None:
        """Refuse what has a probability below 2**-738."""
        raise _broken_source()

    def __repr__(self) -> str:
        return f"rate={self._law.s}/2^{self._law.j}"


class TableSampler:
    """Draw from a table of values: the one into whose share of 2^bits a random number falls."""

    def __init__(self, law: TableLaw) -> None:
        self._table = CutTable.from_weights(law.values, law.weights)

    def draw(self, words: Words, out: Integers) -> tuple[int, int, int]:
        """See :class:`Sampler`."""
        return draw_table(words, self._table, out)

    def add_digits(self) -> None:
        """Add none: a table has all of its digits."""

    def __repr__(self) -> str:
        return f"table of {len(self._table.values)} values"


class Noise:
    """A source of independent integers of a law, drawn in blocks before they are needed.

    An integer comes with exactly its probability, as every decision is one of integers and looks at as many random bits
    as it needs.

    Parameters
    ----------
    law
        A `Sigma` for the discrete Gaussian, ``exp(-z**2 / (2 * sigma**2))`` with standard deviation ``a / 2**j``:
        1 <= a <= 2**40, j >= 0, at least 1/16. A `GeometricRate` for the two-sided geometric, ``exp(-abs(y) * r)`` with
        ``r = s / 2**j``: 1 <= s, 0 <= j <= 40. A `TableLaw` for what a table has.
    block
        Samples drawn at a time.

    Raises
    ------
    ReleaseError
        By `ready`, if the operating system's random bits cannot be random.

    Notes
    -----
    *Privacy.* Whoever knows the noise knows the data. Random words come from ``os.urandom``; they and the samples are
    only ever in memory, are used once, and overwritten then. There is no seed. After a fork the child drops what it
    inherited, so that it never draws what its parent draws; for the same reason there are no copies and no pickles.
    Nothing is drawn by `take`, whose time tells nothing of a sample; `ready` is to be called before data are looked at.

    Every Gaussian is below 30 sigma in magnitude, ``z = (k + x) sigma`` with x < 1, as k >= 30 is refused, and every
    geometric at most 512 / r. What is refused has a probability below 2**-640 a sample, so a refusal tells of a broken
    source of randomness, not of chance. A table has all of its digits.

    Examples
    --------
    >>> from dpfast.privacy.discrete_gaussian_accounting import Sigma
    >>> noise = Noise(Sigma(a=645, j=1))
    >>> noise.ready(3)
    >>> noise.take(3).shape
    (3,)
    """

    _words: Words
    _samples: Integers

    def __init__(self, law: NoiseLaw, block: int = 4096) -> None:
        self._sampler = _make_sampler(law)
        self._block = validation.integer("block", block, 1)
        self._forget()
        _EVERY.add(self)

    def ready(self, n: int) -> None:
        """Draw whole blocks until `n` samples are there."""
        n = validation.integer("n", n, 0)
        with self._lock_here():
            old = self._samples
            n_blocks = -(-max(0, n - len(old)) // self._block)
            if n_blocks:
                samples = np.empty(len(old) + n_blocks * self._block, np.int64)
                samples[: len(old)] = old
                self._draw(samples[len(old) :])
                self._samples = samples
                old[:] = 0

    def take(self, n: int) -> Integers:
        """Take the next `n` samples, which must be ready."""
        n = validation.integer("n", n, 0)
        with self._lock_here():
            samples = self._samples
            if n > len(samples):
                raise RuntimeError(f"only {len(samples)} samples are ready, got n = {n}: call ready(n) before")
            # first: an interrupted call loses samples, and none is ever handed out twice, or overwritten
            self._samples = samples[n:]
            taken = samples[:n].copy()
            samples[:n] = 0
            return taken

    def __repr__(self) -> str:
        return f"Noise({self._sampler}, block={self._block})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("noise must not be used twice, so it cannot be copied or pickled: make another Noise")

    def _lock_here(self) -> threading.Lock:
        """Return the lock, in the process that drew what is here."""
        if self._process != os.getpid():  # a fork that Python was not told of
            self._forget()
        return self._lock

    def _forget(self) -> None:
        """Drop what is here, without overwriting it: it may be the memory of the process that drew it."""
        self._process = os.getpid()
        self._lock = threading.Lock()  # a child may have inherited a locked one
        self._words = np.empty(0, np.uint32)
        self._samples = np.empty(0, np.int64)

    def _draw(self, out: Integers) -> None:
        """Draw samples into all of an array."""
        while len(out):
            n, n_words, missing = self._sampler.draw(self._words, out)
            out, used = out[n:], self._words[:n_words]
            self._words = self._words[n_words:]
            used[:] = 0
            if missing == WORDS:
                self._add_words()
            elif missing == DIGITS:
                self._sampler.add_digits()

    def _add_words(self) -> None:
        """Draw random words behind those that an unfinished sample begins with."""
        old = self._words
        words = np.empty(len(old) + _WORDS_PER_SAMPLE * self._block, np.uint32)
        words[: len(old)] = old
        _fill(words[len(old) :])
        self._words = words
        old[:] = 0


class NoiseOfLaws(NamedTuple):
    """A source of noise for each of the laws that a mechanism draws from.

    What is taken comes law by law: which of it belongs to which value depends on the mechanism and on the numbers of
    steps alone.

    Attributes
    ----------
    sources : tuple of Noise
    """

    sources: tuple[Noise, ...]

    @classmethod
    def of(cls, laws: Sequence[NoiseLaw]) -> Self:
        """Make a source for each law."""
        return cls(tuple(map(Noise, laws)))

    def ready(self, n_streams: int, n_draws: Sequence[int]) -> None:
        """Draw whole blocks until so much noise of each law is there for every stream."""
        for source, n in zip(self.sources, n_draws, strict=True):
            source.ready(n_streams * n)

    def take(self, n_streams: int, n_draws: Sequence[int]) -> Integers:
        """Take the next noise (n_streams, draws), which must be ready: so many draws of the first law, and so on."""
        taken = [
            source.take(n_streams * n).reshape(n_streams, n) for source, n in zip(self.sources, n_draws, strict=True)
        ]
        return np.concatenate(taken, axis=1)


def _make_sampler(law: NoiseLaw) -> Sampler:
    if isinstance(law, TableLaw):
        return TableSampler(law)
    return GeometricSampler(law) if isinstance(law, GeometricRate) else GaussianSampler(law)


def _broken_source() -> ReleaseError:
    return ReleaseError("the operating system's random bits are not random: use another machine")


def _fill(words: Words) -> None:
    """Fill an array with random words of the operating system."""
    random = os.urandom(words.nbytes)
    if len(random) != words.nbytes:  # one word for all would be no error of NumPy's
        raise ReleaseError(
            f"the operating system must give the random bytes that it is asked for, {words.nbytes:,}, got "
            f"{len(random):,}: use another machine"
        )
    words[:] = np.frombuffer(random, np.uint32)
    ctypes.memset(ctypes.c_char_p(random), 0, len(random))  # nobody else has these bytes


_EVERY: weakref.WeakSet[Noise] = weakref.WeakSet()


def _forget_all() -> None:
    for noise in _EVERY:
        noise._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
