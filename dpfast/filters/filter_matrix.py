"""The class FilterMatrix: filters from several inputs to several outputs, made, run, and their norms."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast._support.validation import Array, Complex
from dpfast.filters.conversion import read_systems
from dpfast.filters.fft_grid import MAX_FFT
from dpfast.filters.filter import A_FILTER, Filter, Filtered
from dpfast.filters.peak_gain import fft_points, hinf_norm

Rows = tuple[tuple[Filter, ...], ...]


class FilterMatrix:
    r"""A causal, stable linear system from m inputs to p outputs: a matrix of filters.

    Use it as a target where outputs mix several streams, as their total, differences, or smoothed flows.

    Model
    -----
    :math:`y_{i,t} = \sum_j \sum_k h_{ij,k}\, u_{j,t-k}`, with the entry :math:`H_{ij}(z) = \sum_k h_{ij,k} z^{-k}` from
    input j to output i.

    Parameters
    ----------
    rows : sequence of sequences of Filter or float
        A row for each output, in it an entry for each input; a number is a gain.

    Raises
    ------
    ValueError
        Where there is no row or no entry, where rows have unequal lengths, or an entry is no filter.

    Examples
    --------
    >>> import dpfast as dp
    >>> slow, quick = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
    >>> target = FilterMatrix([[slow, slow, slow], [quick, -1 * quick, 0]])
    >>> target.shape
    (2, 3)
    >>> target.apply([[1, 0], [0, 0], [1, 0]]).round(4).tolist()
    [[0.1, 0.095], [0.2, 0.16]]
    """

    _rows: Rows

    def __init__(self, rows: Sequence[Sequence[Filter | float]]) -> None:
        self.__dict__["_rows"] = _check_rows(rows)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a FilterMatrix is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a FilterMatrix is immutable")

    def __reduce__(self) -> tuple[Any, ...]:
        return FilterMatrix, (self._rows,)

    @classmethod
    def from_system(cls, system: Any) -> Self:
        """Make it of a discrete-time system of scipy.signal or python-control with any numbers of inputs and outputs.

        Parameters
        ----------
        system : dlti, or TransferFunction or StateSpace of python-control
            As for :meth:`Filter.from_system`. The entries of a system in state space have all of its poles each.

        Raises
        ------
        ValueError
            For continuous-time and non-causal systems, those of complex coefficients, and anything else.

        Examples
        --------
        >>> from scipy import signal
        >>> system = signal.dlti([[0.5]], [[1.0, 2.0]], [[1.0]], [[0.0, 1.0]])
        >>> FilterMatrix.from_system(system).impulse(3).tolist()
        [[[0.0, 1.0, 0.5], [1.0, 2.0, 1.0]]]
        """
        read = ([Filter.from_system(entry) for entry in row] for row in read_systems(system))
        return cls([[entry if entry.b.any() else Filter([0.0]) for entry in row] for row in read])

    @classmethod
    def diagonal(cls, filters: Sequence[Filter | float]) -> Self:
        """Make the matrix in which each stream has a filter of its own.

        Parameters
        ----------
        filters : sequence of Filter or float

        Examples
        --------
        >>> FilterMatrix.diagonal([2, 3]).impulse(1)[..., 0].tolist()
        [[2.0, 0.0], [0.0, 3.0]]
        """
        given = list(filters)
        return cls([[x if i == j else 0.0 for j in range(len(given))] for i, x in enumerate(given)])

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of outputs and of inputs."""
        return len(self._rows), len(self._rows[0])

    @property
    def rows(self) -> Rows:
        """The entries, output by output."""
        return self._rows

    def __getitem__(self, at: tuple[int, int]) -> Filter:
        """Return the entry of an output and an input."""
        output, input = at
        return self._rows[output][input]

    @property
    def n_states(self) -> int:
        """The count of numbers that the running system remembers: those of all entries."""
        return sum(entry.n_states for row in self._rows for entry in row)

    @functools.cached_property
    def poles(self) -> Complex:
        """The poles of all entries, each as often as entries have it."""
        return validation.freeze(np.concatenate([entry.poles for row in self._rows for entry in row]))

    def checked(self, u: ArrayLike) -> Array:
        """Return an input (..., m, time) as numbers; refuse another number of channels."""
        values = validation.samples("u", u, axis="m, time")
        m = self.shape[1]
        if values.ndim < 2 or values.shape[-2] != m:
            hint = ": transpose it, as time is the last axis" if values.ndim > 1 and values.shape[-1] == m else ""
            raise ValueError(f"u must have the shape (..., {m}, time), {m} channels, got {values.shape}{hint}")
        return values

    def filter(self, u: ArrayLike, zi: ArrayLike | None = None) -> Filtered:
        """Filter signals of all channels, from a given state.

        Parameters
        ----------
        u : array_like, (..., m, time)
            Finite numbers.
        zi : array_like, (..., n_states), optional
            State before the first sample, as a call before gave it; zero by default.

        Returns
        -------
        Filtered
            Output y (..., p, time), and the state zf (..., n_states): those of the entries, row by row. A signal in
            pieces, each with the zf of the one before, gives the same bits as the whole.

        Raises
        ------
        ValueError
            For arguments of the wrong kind or shape, such as channels in another axis.

        Examples
        --------
        >>> system = FilterMatrix([[Filter([1], [1, -0.5]), 1]])
        >>> y, zf = system.filter([[1, 0], [0, 1]])
        >>> y.tolist(), system.filter([[0], [0]], zf).y.tolist()
        ([[1.0, 1.5]], [[0.25]])
        """
        x = self.checked(u)
        n = self.n_states
        states = np.zeros((*x.shape[:-2], n)) if zi is None else validation.samples("zi", zi, axis="n_states")
        if states.shape != (*x.shape[:-2], n):
            raise ValueError(f"zi must have the shape {(*x.shape[:-2], n)} (..., n_states), got {states.shape}")
        y = np.zeros((*x.shape[:-2], self.shape[0], x.shape[-1]))
        zf, first = np.empty_like(states), 0
        for i, row in enumerate(self._rows):
            for j, entry in enumerate(row):
                here = slice(first, first := first + entry.n_states)
                part, zf[..., here] = entry.filter(x[..., j, :], states[..., here])
                y[..., i, :] += part
        return Filtered(y, zf)

    def apply(self, u: ArrayLike) -> Array:
        """Return the output (..., p, time) for an input (..., m, time) that begins at rest."""
        found: Array = self.filter(u).y
        return found

    def impulse(self, n: int) -> Array:
        """Return the first `n` samples of all impulse responses, (p, m, n)."""
        return np.array([[entry.impulse(n) for entry in row] for row in self._rows])

    def response(self, omega: ArrayLike) -> Complex:
        """Return the matrices (..., p, m) of the frequency response at angles (...), in radians per sample."""
        rows = [np.stack([entry.response(omega) for entry in row], axis=-1) for row in self._rows]
        return np.stack(rows, axis=-2)

    def h2_norm(self) -> float:
        """Return the root of the energy of all impulse responses: of the output for white inputs of variance one."""
        return math.hypot(*(entry.h2_norm() for row in self._rows for entry in row))

    def hinf_norm(self) -> float:
        """Return the H-infinity norm: the largest singular value of the response over all frequencies, rounded up."""
        order = max(entry.order for row in self._rows for entry in row)
        n = min(fft_points(order), MAX_FFT)
        return hinf_norm(self._largest_gain, self.poles, self._largest_gain(np.linspace(0, np.pi, n // 2 + 1)))

    def _largest_gain(self, omega: Array) -> Array:
        gains: Array = np.linalg.svd(self.response(omega), compute_uv=False).astype(np.float64)[..., 0]
        return gains

    def state_space(self) -> tuple[Array, Array, Array, Array]:
        """Return the matrices A, B, C, D of the entries side by side, with the states that :meth:`filter` carries."""
        from scipy import linalg

        systems = [[entry.state_space() for entry in row] for row in self._rows]
        every = [(i, j, x) for i, row in enumerate(systems) for j, x in enumerate(row)]
        (p, m), n = self.shape, self.n_states
        b, c = np.zeros((n, m)), np.zeros((p, n))
        first = 0
        for i, j, (a, b_ij, c_ij, _) in every:
            here = slice(first, first := first + len(a))
            b[here, j], c[i, here] = b_ij[:, 0], c_ij[0]
        d = np.array([[x[3].item() for x in row] for row in systems])
        return linalg.block_diag(*(x[0] for _, _, x in every)), b, c, d

    def __mul__(self, other: object) -> FilterMatrix:
        if isinstance(other, (Filter, int, float, np.number)):
            return FilterMatrix([[entry * other for entry in row] for row in self._rows])
        return NotImplemented

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return self._rows == other._rows if isinstance(other, FilterMatrix) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._rows)

    def __repr__(self) -> str:
        p, m = self.shape
        return f"<FilterMatrix from {m} inputs to {p} outputs, {self.n_states} states>"


def _check_rows(rows: Any) -> Rows:
    if isinstance(rows, (str, bytes)) or not isinstance(rows, (Sequence, np.ndarray)) or len(rows) == 0:
        raise validation.fail("rows", "a row of filters for each output, as [[F11, F12], [F21, F22]]", rows)
    found = tuple(tuple(_check_entry(i, j, x) for j, x in enumerate(_check_row(i, row))) for i, row in enumerate(rows))
    if len({len(row) for row in found}) > 1:
        raise ValueError(
            f"rows must all have an entry for each input, got rows of {[len(row) for row in found]} entries"
        )
    return found


def _check_row(i: int, row: Any) -> Any:
    if isinstance(row, (str, bytes)) or not isinstance(row, (Sequence, np.ndarray)) or len(row) == 0:
        raise validation.fail(f"rows[{i}]", "a sequence of filters, one for each input", row)
    return row


def _check_entry(i: int, j: int, entry: Any) -> Filter:
    if isinstance(entry, (int, float, np.number)) and not isinstance(entry, bool):
        return Filter([validation.number(f"rows[{i}][{j}]", entry)])
    validation.instance(f"rows[{i}][{j}]", entry, Filter, f"a number, or {A_FILTER}")
    checked: Filter = entry
    return checked


def total(m: int) -> FilterMatrix:
    """Return the target that adds up m streams.

    Multiply it by a filter to smooth it: ``total(3) * moving_average``.

    Parameters
    ----------
    m : int
        Streams, at least 1.

    Examples
    --------
    >>> total(3).apply([[1, 2], [3, 4], [5, 6]]).tolist()
    [[9.0, 12.0]]
    """
    return FilterMatrix([[1.0] * validation.integer("m", m, 1)])


def differences(m: int) -> FilterMatrix:
    """Return the target of the differences between each stream and the one before it, as :func:`numpy.diff` gives them.

    Parameters
    ----------
    m : int
        Streams, at least 2: there are m - 1 differences.

    Examples
    --------
    >>> differences(3).apply([[1, 2], [3, 4], [5, 9]]).tolist()
    [[2.0, 2.0], [2.0, 5.0]]
    """
    m = validation.integer("m", m, 2)
    return FilterMatrix([[float(j == i + 1) - float(j == i) for j in range(m)] for i in range(m - 1)])
