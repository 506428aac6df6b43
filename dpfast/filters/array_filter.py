"""A filter on arrays of one dtype: which kernel runs it, and how arrays get there."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.factors import Factors
from dpfast._kernels.filter_streams import REFUSED, plan_stream, push
from dpfast._support import validation

if TYPE_CHECKING:
    from dpfast._kernels.chain_builder import Chain
    from dpfast._kernels.filter_in_time import TimePlan

Array = NDArray[Any]

BESIDE, IN_TIME, IN_SQUARES, CHAIN = range(4)
_BY_TIME = (IN_TIME, IN_SQUARES)
_MANY = 16  # streams
_FEW = 16  # samples of several streams
_FEW_ALONE = 1024  # of one
_LANES = 4  # sections that run in time at once
_CACHED = 2**20  # samples
_SETTLED = 256  # samples behind which it no longer matters that lanes start and end one after the other
_SHORT = 2**14  # samples of all streams
_SMALL = 2**18  # samples; more are worth several threads, and a few microseconds


class ArrayFilter:
    """The compiled forms of a filter for a dtype.

    Whatever runs, the bits are the same.

    Parameters
    ----------
    factors : Factors
        Those of the filter.
    dtype : {numpy.float64, numpy.float32}
        What is computed in.
    """

    def __init__(self, factors: Factors, dtype: np.dtype[Any]) -> None:
        self._factors, self._dtype, self._n_states = factors, dtype, factors.n_states
        self._counts = len(factors.taps), len(factors.sections), len(factors.recursion), dtype.itemsize
        self._plan = plan_stream(factors, dtype)
        self._plain = self._plan.c, self._plan.layout, self._plan.n_rows, self._n_states, dtype
        self._limit = validation.largest(dtype)
        self._state_limit = min(validation.LARGEST, float(np.finfo(dtype).max))

    @functools.cached_property
    def _in_time(self) -> TimePlan:
        from dpfast._kernels.filter_in_time import plan_in_time  # late: steps do without

        return plan_in_time(self._factors, self._dtype)

    @functools.cached_property
    def _chain(self) -> Chain:
        from dpfast._kernels import simulation  # late, as it is large

        return simulation.build_filter_chain(self._factors, self._dtype)

    def filter_plain(self, x: Any, zi: Any, out: Any) -> tuple[Array, Array] | None:
        """Filter a small array whose samples lie as a kernel takes them; return the output and the states.

        None, and nothing is done to its arguments, where one is of another kind, or not finite: the long way takes or
        refuses it. This one is for calls whose time would else go to the looking.
        """
        c, layout, n_rows, n_states, dtype = self._plain
        if type(x) is not np.ndarray or x.dtype is not dtype or not (out is None or _is_place(out, x)):
            return None
        shape = x.shape
        n_streams, n_samples = shape if len(shape) == 2 else (1, *shape) if len(shape) == 1 else (0, 0)
        if not 0 < n_streams * n_samples <= _SMALL or not x.flags.carray:
            return None
        if zi is not None and (
            type(zi) is not np.ndarray or zi.dtype is not dtype or zi.shape != (n_streams, n_states)[-len(shape) :]
        ):
            return None
        kernel = choose_kernel(n_streams, n_samples, False, self._counts)
        if kernel != BESIDE or (n_streams > 1 and n_samples > 1):
            return self._filter_plain_in_time(x, zi, out, kernel == IN_SQUARES) if kernel in _BY_TIME else None
        if zi is None:
            memory = np.zeros((n_rows, n_streams), dtype)
        else:
            states = zi.T if len(shape) == 2 else zi[:, None]
            memory = states.copy() if n_rows == n_states else self._plan.memory_from(states)
        y = np.empty(shape, dtype) if out is None else out
        now = push(c, layout, memory, 0, self._limit, self._state_limit, x.ravel(), y.ravel())  # views
        if now == REFUSED:
            return None
        zf = memory if n_rows == n_states else self._plan.states_in(memory, now)
        return y, zf.T if len(shape) == 2 else zf[:, 0]

    def _filter_plain_in_time(
        self, x: Array, zi: Array | None, out: Array | None, in_squares: bool
    ) -> tuple[Array, Array] | None:
        """Do the same for arrays in the order of time.

        Not in place, as what is not finite is seen on the way, and the long way reads the arguments again.
        """
        from dpfast._kernels.filter_in_time import filter_block

        if out is x or (out is not None and zi is not None and np.may_share_memory(out, zi)):
            return None
        zf = np.zeros((*x.shape[:-1], self._n_states), self._dtype) if zi is None else zi.copy()
        flat, y = zf.ravel(), np.empty(x.shape, self._dtype) if out is None else out
        states = flat.reshape(x.size // x.shape[-1], self._n_states)
        if not np.vdot(flat, flat) <= self._state_limit or filter_block(
            self._in_time, x.ravel(), states, y.ravel(), self._limit, in_squares
        ):
            return None
        return y, zf

    def filter_any(self, x: Array, zi: Array, out: Array, n_threads: int) -> tuple[Array, bool]:
        """Filter x (streams, time) from finite states (streams, states) into `out`, in any memory order.

        Return the states at the end, and whether all of x is of finite and sensible size.
        """
        if x.size == 0:
            return zi, True
        n_streams, n_samples = x.shape
        is_beside = n_streams > 1 and x.T.flags.c_contiguous
        kernel = choose_kernel(n_streams, n_samples, is_beside, self._counts)
        if kernel == BESIDE:
            return self._filter_beside(x, zi, out)
        if kernel in _BY_TIME:
            from dpfast._kernels.filter_in_time import filter_in_time

            zf = zi.copy(order="C")
            return zf, not filter_in_time(self._in_time, x, zf, out, self._limit, n_threads, kernel == IN_SQUARES)
        from dpfast._kernels import simulation

        zf, squares = simulation.filter_array(self._chain, x, zi, out, n_threads)
        return zf, bool(squares.max() <= self._limit**2)  # nor where it is NaN

    def _filter_beside(self, x: Array, zi: Array, out: Array) -> tuple[Array, bool]:
        """Filter streams that lie side by side, or are brought there."""
        c, layout, *_ = self._plain
        flat = x.T.ravel() if x.T.flags.carray else x.T.flatten()
        y = out.T.ravel() if out.T.flags.carray else np.empty(out.size, out.dtype)
        memory = self._plan.memory_from(zi.T)
        now = push(c, layout, memory, 0, self._limit, math.inf, flat, y)
        if now == REFUSED:
            return zi, False
        if not out.T.flags.carray:
            out.T[...] = y.reshape(out.T.shape)
        return self._plan.states_in(memory, now).T, True


def choose_kernel(n_streams: int, n_samples: int, is_beside: bool, counts: tuple[int, int, int, int]) -> int:
    """Say which kernel takes an array (streams, time); `is_beside`: streams lie side by side, not samples.

    All give the same bits, so that only time decides. They were timed by turns on 1, 4, 16, 32, 256 and 2,000 streams
    of 2 to 512 samples, and on 64 × 8,192, 64 × 10,000, 256 × 10,000 and 1,000 × 20,000, through 1, 4 and 9 sections,
    16, 64 and 256 taps, and taps before sections (one core, vectors of 512 bits). Streams that must be brought side
    by side lose from some 16 samples on, 32 behind taps; few streams with taps, and one at all, at once; one of
    sections alone wins up to 1,000, as its call costs less. Squares win with many streams, by up to four times, but
    against up to four sections in float64, which the other kernel takes at once: those run in time where they come
    from memory, and three or four, which fill its lanes, from some 250 samples on. Recursions run as a chain, which
    takes half of the time, but seconds to compile: so not for few samples.

    counts : taps, sections, coefficients of the recursion, bytes of a number.
    """
    n_taps, n_sections, n_recursion, n_bytes = counts
    if n_samples == 1 or (is_beside and n_streams >= _MANY):
        return BESIDE
    if n_recursion > 1:
        return BESIDE if n_streams == 1 or n_samples < _FEW or n_streams * n_samples <= _SHORT else CHAIN
    if n_streams == 1:
        few = 1 if n_taps > 1 else _FEW_ALONE
    else:
        few = _FEW if n_taps == 1 else 1 if n_streams < 2 * _MANY else 2 * _FEW
    if n_samples < few:
        return BESIDE
    is_square = n_streams >= _MANY and n_sections > 0
    if n_bytes == 8 and n_sections <= _LANES:
        is_square &= n_streams * n_samples <= _CACHED and (n_sections < _LANES - 1 or n_samples < _SETTLED)
    return IN_SQUARES if is_square else IN_TIME


def _is_place(out: Any, x: Array) -> bool:
    """Tell whether outputs can go there at once."""
    if type(out) is not np.ndarray or out.dtype is not x.dtype or out.shape != x.shape or not out.flags.carray:
        return False
    return out is x or not np.may_share_memory(out, x)
