"""The class FilterStream: a filter that keeps its state, for samples that come a step or a few at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from dpfast._kernels.factors import Factors
from dpfast._kernels.filter_streams import REFUSED, plan_stream, push
from dpfast._support import validation


class FilterStream:
    """Run a filter on some streams, piece by piece: it remembers where it is. :meth:`Filter.stream` makes it.

    Time comes first here, unlike everywhere else: a push is an array (time, streams), so that the values of a step lie
    side by side. The pieces in which a signal is pushed leave no trace: outputs and states have the bits of
    :meth:`Filter.filter` on the whole.

    It can be copied and pickled, and goes on from where it was. It is for one thread at a time.

    Parameters
    ----------
    factors : Factors
        The factors of the filter.
    n_streams : int
        Streams, at least 1.
    dtype : {numpy.float64, numpy.float32}
        What is computed in.

    Examples
    --------
    >>> import dpfast as dp
    >>> stream = dp.Filter([1], [1, -0.5]).stream(n_streams=2)
    >>> stream.push([[1, 0], [0, 0], [0, 8]]).tolist()  # three steps of two streams
    [[1.0, 0.0], [0.5, 0.0], [0.25, 8.0]]
    >>> stream.push([0, 0]).tolist()  # one step
    [0.125, 4.0]
    """

    def __init__(self, factors: Factors, n_streams: int, dtype: DTypeLike = np.float64) -> None:
        self._factors, self._step, self._dtype = factors, (n_streams,), np.dtype(dtype)
        self._plan = plan_stream(factors, self._dtype)
        self._c, self._layout = self._plan.c, self._plan.layout
        self._limit = validation.largest(self._dtype)
        self._memory, self._now = np.zeros((self._plan.n_rows, n_streams), self._dtype), 0

    @property
    def n_streams(self) -> int:
        """The number of streams."""
        return self._step[0]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype that is computed in, and that outputs and states have."""
        return self._dtype

    @property
    def state(self) -> NDArray[Any]:
        """The state behind the last sample, (n_states, n_streams), a copy: the transposed `zf` of `Filter.filter`."""
        return self._plan.states_in(self._memory, self._now).copy()

    def push(self, x: ArrayLike, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Filter the next samples, and return the outputs.

        Parameters
        ----------
        x : array_like, (time, streams) or (streams,)
            Finite numbers; one dimension is always one step of all streams. Fastest as an array of the stream's dtype
            in C order.
        out : array of the shape of x, optional
            Where to put the outputs, of the stream's dtype; it may be x itself.

        Returns
        -------
        array of the shape of x
            `out`, if it is given.

        Raises
        ------
        ValueError
            For samples of the wrong kind, shape or size. The state is what it was.
        """
        if type(x) is not np.ndarray or x.dtype is not self._dtype or not x.flags.carray:  # rarely, and then slower
            x = self._as_samples(x)
        if x.shape == self._step:
            flat, y = x, np.empty(self._step, self._dtype) if out is None else self._place(out, x)
            outputs = y
        elif x.ndim == 2 and x.shape[1] == self._step[0]:
            y = np.empty(x.shape, self._dtype) if out is None else self._place(out, x)
            flat, outputs = x.ravel(), y.ravel()  # views
        else:
            raise ValueError(self._wrong_shape(x.shape))
        now = push(self._c, self._layout, self._memory, self._now, self._limit, math.inf, flat, outputs)
        if now == REFUSED:
            validation.check_size("x", x)
        self._now = now
        if out is None or y is out:
            return y
        out[...] = y
        return out

    def _as_samples(self, x: ArrayLike) -> NDArray[Any]:
        """Return numbers as the kernel takes them: of one dtype, side by side, in memory that may be written."""
        samples = validation.samples("x", x, self._dtype, finite=False)
        return samples if samples.flags.carray and samples.dtype is self._dtype else samples.astype(self._dtype, "C")

    def _wrong_shape(self, shape: tuple[int, ...]) -> str:
        """Say what is wrong with a shape."""
        n = self.n_streams
        text = f"x must have the shape (time, {n}) or, for one step, ({n},), got {shape}: time comes first here"
        if len(shape) == 2 and shape[0] == n:
            return f"{text}, transpose it"
        if len(shape) == 1 and n == 1:
            return f"{text}, give several steps of one stream as x[:, None]"
        return text

    def _place(self, out: Any, x: NDArray[Any]) -> NDArray[Any]:
        """Return where outputs go at first: `out`, or an array of their own where that does not lie side by side."""
        if type(out) is not np.ndarray or out.dtype != self._dtype or out.shape != x.shape:
            raise validation.fail("out", f"an array of shape {x.shape} and dtype {self._dtype}", out)
        if out.flags.carray:
            owners = out.base is None and x.base is None  # which saves a look at their memory
            if out is x or owners or not np.may_share_memory(out, x):
                return out
        if not out.flags.writeable:
            raise ValueError("out must be writeable, got a read-only array: give another one")
        return np.empty(x.shape, self._dtype)

    def copy(self) -> FilterStream:
        """Return a stream of its own that goes on from here."""
        return _restored(*self._content())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, self._content()

    def _content(self) -> tuple[Any, ...]:
        return tuple(self._factors), self.n_streams, self._dtype.name, self._memory, self._now

    def __repr__(self) -> str:
        return f"<FilterStream of {self.n_streams} streams, {self._factors.n_states} states each, {self._dtype}>"


def _restored(factors: tuple[Any, ...], n_streams: int, dtype: str, memory: NDArray[Any], now: int) -> FilterStream:
    """Make a stream that is where another one was."""
    stream = FilterStream(Factors(*factors), n_streams, dtype)
    stream._memory[...] = memory
    stream._now = now
    return stream
