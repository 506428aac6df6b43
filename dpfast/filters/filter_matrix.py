"""The class FilterMatrix: filters from several inputs to several outputs, made, run, and their norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._support import validation
from dpfast._support.plotting import Drawn
from dpfast._support.validation import Array, Complex
from dpfast.filters.conversion import read_state_space, read_systems
from dpfast.filters.entrywise_system import EntrywiseSystem, Rows
from dpfast.filters.fft_grid import MAX_FFT
from dpfast.filters.filter import A_FILTER, Filter, Filtered
from dpfast.filters.peak_gain import fft_points, hinf_norm
from dpfast.filters.state_space_system import StateSpaceSystem


class FilterMatrix(Drawn):
    r"""Describe a causal, stable linear system from m inputs to p outputs by a matrix of filters.

    Use it as a target where outputs mix several streams, as their total, differences, or smoothed flows.

    Made of filters it runs each entry by itself, with states of its own; made of state space
    (:meth:`from_state_space`, :meth:`from_system`) it keeps that, and all entries share its few states.

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

    _system: EntrywiseSystem | StateSpaceSystem

    def __init__(self, rows: Sequence[Sequence[Filter | float]]) -> None:
        self.__dict__["_system"] = EntrywiseSystem(_check_rows(rows))

    @classmethod
    def _of(cls, system: EntrywiseSystem | StateSpaceSystem) -> Self:
        self = cls.__new__(cls)
        self.__dict__["_system"] = system
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a FilterMatrix cannot be changed: make another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a FilterMatrix cannot be changed: make another one")

    def __reduce__(self) -> tuple[Any, ...]:
        if self.shares_states:
            return FilterMatrix.from_state_space, self.state_space()
        return FilterMatrix, (self.rows,)

    @classmethod
    def from_state_space(cls, a: ArrayLike, b: ArrayLike, c: ArrayLike, d: ArrayLike | None = None) -> Self:
        """Make the system s⁺ = A s + B u, y = C s + D u, in which all entries share the state s.

        Parameters
        ----------
        a, b, c : array_like, (n, n), (n, m), (p, n)
            Of s⁺ = a s + b x, y = c s + d x, with the poles of a inside the unit circle.
        d : array_like, (p, m), optional
            Zero by default.

        Raises
        ------
        ValueError
            For matrices whose shapes do not fit.
        UnstableFilterError
            Where an eigenvalue of A has a modulus above 1 - 2e-5.

        Examples
        --------
        >>> system = FilterMatrix.from_state_space([[0.5]], [[1, 2]], [[1], [3]])
        >>> system
        <FilterMatrix from 2 inputs to 2 outputs, 1 state>
        >>> system.impulse(3)[1].tolist()
        [[0.0, 3.0, 1.5], [0.0, 6.0, 3.0]]
        """
        matrices = [validation.array(name, value, ndim=2) for name, value in (("a", a), ("b", b), ("c", c))]
        n, m, p = len(matrices[0]), matrices[1].shape[1], len(matrices[2])
        matrices.append(np.zeros((p, m)) if d is None else validation.array("d", d, ndim=2))
        shapes = tuple(x.shape for x in matrices)
        if m == 0 or p == 0 or shapes != ((n, n), (n, m), (p, n), (p, m)):
            raise ValueError(
                "a, b, c, d must have the shapes (n, n), (n, m), (p, n), (p, m) of n states, m inputs and p outputs, "
                f"got {shapes}"
            )
        return cls._of(StateSpaceSystem(*matrices))

    @classmethod
    def from_system(cls, system: Any) -> Self:
        """Make it of a discrete-time system of scipy.signal or python-control with any numbers of inputs and outputs.

        Parameters
        ----------
        system : dlti, or TransferFunction or StateSpace of python-control
            As for :meth:`Filter.from_system`. A system in state space stays one, as :meth:`from_state_space` makes it.

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
        if (matrices := read_state_space(system)) is not None:
            return cls.from_state_space(*matrices)
        read = ([Filter.from_system(entry) for entry in row] for row in read_systems(system))
        return cls([[entry if entry.b.any() else Filter([0.0]) for entry in row] for row in read])

    @classmethod
    def diagonal(cls, filters: Sequence[Filter | float]) -> Self:
        """Make the matrix in which each stream has a filter of its own.

        Parameters
        ----------
        filters : sequence of Filter or float
            One for each channel, of which output i sees input i alone.

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
        return self._system.shape

    @property
    def rows(self) -> Rows:
        """The entries, output by output; of a system in state space each with all of the poles that reach it."""
        return self._system.rows

    def __getitem__(self, at: tuple[int, int]) -> Filter:
        """Return the entry of an output and an input."""
        output, input = at
        return self.rows[output][input]

    @property
    def shares_states(self) -> bool:
        """True where it is in state space, so that all entries share its states."""
        return self._system.is_shared

    @property
    def n_states(self) -> int:
        """The count of numbers that the running system remembers: those of all entries, or those that they share."""
        return self._system.n_states

    @property
    def order(self) -> int:
        """The largest order of an entry; of a system in state space the count of its states."""
        return self._system.order

    @property
    def poles(self) -> Complex:
        """The poles of all entries, each as often as entries have it; of state space the eigenvalues of A."""
        return self._system.poles

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
            Output y (..., p, time), and the state zf (..., n_states): those of the entries, row by row, or s. A signal
            in pieces, each with the zf of the one before, gives bit-identical results.

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
        return Filtered(*self._system.run(x, states))

    def apply(self, u: ArrayLike) -> Array:
        """Return the output (..., p, time) for an input (..., m, time) that begins at rest."""
        found: Array = self.filter(u).y
        return found

    def impulse(self, n: int) -> Array:
        """Return the first `n` samples of all impulse responses, (p, m, n)."""
        return self._system.impulse(validation.integer("n", n, 0))

    def response(self, omega: ArrayLike) -> Complex:
        """Return the matrices (..., p, m) of the frequency response at angles (...), in radians per sample."""
        return self._system.response(omega)

    def h2_norm(self) -> float:
        """Return the root of the energy of all impulse responses: of the output for white inputs of variance one."""
        return math.hypot(*self.column_norms())

    def column_norms(self) -> Array:
        """Return, for each input (m,), the root of the energy that an impulse there causes at all outputs together."""
        return self._system.column_norms()

    def settling_time(self, level: float) -> int:
        """Count the samples after which each impulse response stays below `level` times its largest value."""
        return self._system.settling_time(validation.number("level", level, above=0, below=1))

    def links(self) -> NDArray[np.bool_]:
        """Tell which outputs may see which inputs, (p, m): false where an entry is zero."""
        return self._system.links

    def hinf_norm(self) -> float:
        """Return the H-infinity norm: the largest singular value of the response over all frequencies, rounded up."""
        n = min(fft_points(self.order), MAX_FFT)
        return hinf_norm(self._largest_gain, self.poles, self._largest_gain(np.linspace(0, np.pi, n // 2 + 1)))

    def _largest_gain(self, omega: Array) -> Array:
        gains: Array = np.linalg.svd(self.response(omega), compute_uv=False).astype(np.float64)[..., 0]
        return gains

    def state_space(self) -> tuple[Array, Array, Array, Array]:
        """Return the matrices A, B, C, D, with the states of :meth:`filter`; those of entries side by side."""
        return self._system.state_space()

    def __mul__(self, other: object) -> FilterMatrix:
        if isinstance(other, (Filter, int, float, np.number)):
            return FilterMatrix._of(self._system.times(other if isinstance(other, Filter) else float(other)))
        return NotImplemented

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        return self._content() == other._content() if isinstance(other, FilterMatrix) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[Any, ...]:
        return self.shares_states, self._system.content()

    def __repr__(self) -> str:
        p, m = self.shape
        counts = (f"{n} {noun}{'s' * (n != 1)}" for n, noun in ((m, "input"), (p, "output"), (self.n_states, "state")))
        return "<FilterMatrix from {} to {}, {}>".format(*counts)


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
