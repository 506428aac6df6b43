"""The class Filter: causal stable linear filters, how they are made, what they do to signals, and their norms.

The file is longer than others because the class is: most of it documents what users call, and its methods share the
factors that nobody else sees. What reads and makes other forms of a filter is in ``conversion``.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from dpfast._kernels.factors import Factors
from dpfast._support import thread_count, validation
from dpfast._support.dataframes import unwrap
from dpfast._support.errors import UnstableFilterError
from dpfast._support.plotting import Drawn
from dpfast._support.validation import Array, Complex
from dpfast.filters.conversion import Coefficients, make_state_space, read_roots, read_system
from dpfast.filters.impulse_response import impulse_response
from dpfast.filters.peak_gain import fft_points, hinf_norm
from dpfast.filters.quadrature import graded_grid
from dpfast.filters.roots import are_surely_inside
from dpfast.filters.sections import (
    cascade_response,
    factor_roots,
    make_sections,
    rational_response,
    section_roots,
    trim,
)

if TYPE_CHECKING:
    from dpfast.filters.array_filter import ArrayFilter
    from dpfast.filters.filter_stream import FilterStream

A_FILTER = "a Filter, as Filter(b, a) or Filter.from_system(system of scipy or python-control) makes it"
MAX_POLE_RADIUS = 1 - 2e-5
_LONG_RECURSION = 256  # coefficients, of which a winding number takes less time than roots
MAX_SECTION_POLES = 32  # more poles than this run as one direct-form recursion
_TINY = 1e-12  # beside a leading coefficient so small a companion matrix loses the other roots
_SINGLE_ERROR = 1e-4  # relative, of an output in float32
_SINGLE_SAMPLES = 2**20
_RADIUS_SLACK = 1e-10  # a pole at the limit stays below it after rounding
_SPELLINGS = frozenset({type, str, type(np.dtype(np.float64)), type(np.dtype(np.float32))})  # how dtypes are given


class Filtered(NamedTuple):
    """Take the output of a filter, and the state to go on from.

    Attributes
    ----------
    y : array, (..., time), or of the kind of the input
        Output.
    zf : array, (..., n_states)
        State behind the last sample, the `zi` of the next call.
    """

    y: Any
    zf: NDArray[Any]


class Filter(Drawn):
    r"""Describe a causal, stable, linear time-invariant filter with real coefficients, to design with and to run.

    Model
    -----
    a_0 y_t = Σ_k b_k x_{t-k} - Σ_{k≥1} a_k y_{t-k}, that is H(z) = Σ_k b_k z⁻ᵏ / Σ_k a_k z⁻ᵏ, as in
    :func:`scipy.signal.lfilter`.

    A filter keeps its factors (numerator taps, second-order sections, a long recursion) rather than two
    long polynomials, so that products and near-coincident poles cost no accuracy.

    Parameters
    ----------
    b, a : array_like, 1-D
        Numerator and denominator in powers of z⁻¹. ``a[0]`` must not be zero; both are divided by it.

    Raises
    ------
    ValueError
        Where a coefficient is not finite, an array is empty, or ``a[0]`` is zero.
    UnstableFilterError
        Where a pole has a modulus above 1 - 2e-5.

    Examples
    --------
    >>> target = Filter([1, 0.995], [1, -0.995])
    >>> round(target.h2_norm(), 6)
    19.95
    >>> target.impulse(3).round(5).tolist()
    [1.0, 1.99, 1.98005]
    """

    _taps: Array
    _sections: Array  # (n, 6), each with a leading denominator coefficient of one
    _recursion: Array  # a monic denominator in powers of z^-1

    def __init__(self, b: ArrayLike, a: ArrayLike = (1.0,)) -> None:
        if np.ndim(given := validation.array("b", b, empty=False)) == 2:  # a call that scipy's shapes invite
            raise ValueError(
                f"b must have 1 dimension, got shape {given.shape}: give a pair of coefficients as Filter(b, a), and "
                "second-order sections as Filter.from_sos(sos)"
            )
        top = trim(validation.array("b", given, ndim=1))
        bottom = trim(validation.array("a", a, ndim=1, empty=False))
        a_0 = float(bottom[0])
        if a_0 == 0:
            raise ValueError(
                "a[0] must not be zero, as the filter would need inputs of the future: leave out the zeros that a "
                "begins with"
            )
        with np.errstate(over="ignore"):
            top, bottom = top / bottom[0], bottom / bottom[0]
        if not (np.isfinite(top).all() and np.isfinite(bottom).all()):
            raise ValueError(f"a[0] must not be tiny beside the other coefficients, got {a_0:g}: divide them by it")
        if len(bottom) - 1 > MAX_SECTION_POLES:
            self._set(top, np.empty((0, 6)), bottom)
        elif abs(top[0]) > _TINY * np.abs(top).max() and len(top) <= 2 * (len(bottom) // 2) + 1:
            self._set(np.ones(1), make_sections(np.roots(top), np.roots(bottom), top[0]), np.ones(1))
        else:
            self._set(top, make_sections([], np.roots(bottom), 1.0), np.ones(1))
        self.__dict__["b"], self.__dict__["a"] = validation.freeze(top), validation.freeze(bottom)

    def _set(self, taps: Array, sections: Array, recursion: Array) -> None:
        """Keep the factors, the delays of sections moved to the taps, so that every section starts with b0 ≠ 0."""
        taps, sections = np.array(taps, dtype=np.float64), np.array(sections, dtype=np.float64)
        for row in sections:
            delay = int(np.argmax(row[:3] != 0))
            taps = np.concatenate([np.zeros(delay), taps]) if row[:3].any() else np.zeros(1)
            row[:3] = [*row[delay:3], *[0.0] * delay] if row[:3].any() else [1.0, 0.0, 0.0]
        parts = {"_taps": trim(taps), "_sections": sections, "_recursion": np.array(recursion, dtype=np.float64)}
        for name, value in parts.items():
            self.__dict__[name] = validation.freeze(value + 0.0)  # no negative zeros: equal filters hash alike
        if len(self._recursion) > _LONG_RECURSION and are_surely_inside(self._recursion, MAX_POLE_RADIUS):
            check_stable(section_roots(self._sections[:, 3:]))  # the roots of the rest are not worth their time
        else:
            check_stable(self.poles)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Filter cannot be changed: make another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Filter cannot be changed: make another one")

    def __reduce__(self) -> tuple[Any, ...]:
        return Filter.from_factors, tuple(self.factors)

    @classmethod
    def from_factors(cls, taps: ArrayLike = (1.0,), sections: ArrayLike = (), recursion: ArrayLike = (1.0,)) -> Self:
        """Make the filter taps(z) · Π sections(z) / recursion(z).

        Parameters
        ----------
        taps : array_like
            Numerator in powers of z⁻¹.
        sections : array_like, (n, 6)
            Second-order sections b0 b1 b2 a0 a1 a2, as in :func:`scipy.signal.sosfilt`.
        recursion : array_like
            A further denominator in powers of z⁻¹, run as one direct-form recursion.
        """
        taps = validation.array("taps", taps, ndim=1, empty=False)
        recursion = trim(validation.array("recursion", recursion, ndim=1, empty=False))
        sos = np.empty((0, 6)) if np.size(sections) == 0 else validation.array("sections", sections, ndim=2)
        if sos.shape[1] != 6:
            raise ValueError(f"sections must have 6 columns (b0 b1 b2 a0 a1 a2), got shape {sos.shape}")
        if recursion[0] == 0 or (sos[:, 3] == 0).any():
            raise ValueError(
                "a0 of all sections and recursion[0] must not be zero, as the filter would need inputs of the future: "
                "leave out the zeros that a denominator begins with"
            )
        self = cls.__new__(cls)
        self._set(taps / recursion[0], sos / sos[:, 3:4], recursion / recursion[0])
        return self

    @classmethod
    def from_sos(cls, sos: ArrayLike) -> Self:
        """Make a filter of second-order sections (n, 6), as in :func:`scipy.signal.sosfilt`.

        Examples
        --------
        >>> Filter.from_sos([[1, 0, 0, 1, -0.5, 0]]).impulse(3).tolist()
        [1.0, 0.5, 0.25]
        """
        return cls.from_factors(sections=validation.array("sos", sos, ndim=2, empty=False))

    @classmethod
    def from_zpk(cls, zeros: ArrayLike, poles: ArrayLike, gain: float) -> Self:
        """Make the filter gain · Π(z - zeros) / Π(z - poles).

        Complex roots come in conjugate pairs; there are no more zeros than poles.

        Examples
        --------
        >>> Filter.from_zpk([], [0.5], 1.0).impulse(3).tolist()
        [0.0, 1.0, 0.5]
        """
        return cls.from_factors(*read_roots(zeros, poles, gain))

    @classmethod
    def from_system(cls, system: Any) -> Self:
        """Make a filter of a discrete-time single-input single-output system of scipy.signal or python-control.

        Systems are recognised by their attributes (A B C D; num den; zeros poles gain). Polynomials are in
        positive powers of z and may have unequal lengths. The step `dt` says no more than that time is discrete: a
        filter knows samples. The way back is ``scipy.signal.dlti(*f.state_space())`` or
        ``control.ss(*f.state_space(), True)``, which no delay gets lost on, as it may between `b` and `num`.

        Parameters
        ----------
        system : dlti, or TransferFunction or StateSpace of python-control
            With `dt` above 0, or True.

        Raises
        ------
        ValueError
            For continuous-time, non-causal or several-input systems, those of complex coefficients, and anything else.

        Examples
        --------
        >>> from scipy import signal
        >>> Filter.from_system(signal.dlti([1.0], [1.0, -0.5])).impulse(4).tolist()  # 1 / (z - 0.5)
        [0.0, 1.0, 0.5, 0.25]
        """
        read = read_system(system)
        return cls(*read) if isinstance(read, Coefficients) else cls.from_factors(*read)

    @functools.cached_property
    def b(self) -> Array:
        """The numerator in powers of z⁻¹."""
        return validation.freeze(trim(functools.reduce(np.convolve, self._sections[:, :3], self._taps)))

    @functools.cached_property
    def a(self) -> Array:
        """The denominator in powers of z⁻¹, with ``a[0] = 1``."""
        return validation.freeze(trim(functools.reduce(np.convolve, self._sections[:, 3:], self._recursion)))

    @property
    def factors(self) -> Factors:
        """The numerator taps, second-order sections (n, 6) and recursion that run, in this order."""
        return Factors(self._taps, self._sections, self._recursion)

    @property
    def sos(self) -> Array:
        """The whole filter as second-order sections (n, 6), as in :func:`scipy.signal.sosfilt`; a fresh array."""
        delay = int(np.argmax(self._taps != 0)) if self._taps.any() else 0
        gain = float(self._taps[delay])
        whole = make_sections(np.roots(self._taps[delay:]), np.roots(self._recursion), gain)
        shifts = [[0, 1, 0, 1, 0, 0]] * (delay % 2) + [[0, 0, 1, 1, 0, 0]] * (delay // 2)
        every = np.concatenate([whole, np.reshape(shifts, (-1, 6)), self._sections])
        return every if len(every) else np.array([[1.0, 0, 0, 1, 0, 0]])

    @property
    def order(self) -> int:
        """The number of states of the filter in direct form."""
        return max(len(trim(self.b)), len(self.a)) - 1

    @property
    def is_fir(self) -> bool:
        """Tell whether the impulse response is finite."""
        return len(self.a) == 1

    @property
    def horizon(self) -> None:
        """It is None, as a filter runs without an end; a :class:`Toeplitz` target has so many steps."""

    def as_filter(self) -> Filter:
        """Return the filter itself; a :class:`Toeplitz` target returns None, so that one can ask both."""
        return self

    def size_text(self) -> str:
        """Say how large the filter is, in the words of tables and labels.

        Examples
        --------
        >>> Filter([1, 2]).size_text(), Filter([1], [1, -0.5]).size_text()
        ('FIR of 2 taps', '1 state')
        """
        kind, count, unit = ("FIR of ", len(self.b), "tap") if self.is_fir else ("", self.order, "state")
        return f"{kind}{count} {unit}{'s' * (count != 1)}"

    @functools.cached_property
    def poles(self) -> Complex:
        """The poles in the z plane, without those at zero."""
        return validation.freeze(factor_roots(self._sections[:, 3:], self._recursion))

    @functools.cached_property
    def zeros(self) -> Complex:
        """The zeros in the z plane, without those at zero."""
        return validation.freeze(factor_roots(self._sections[:, :3], np.trim_zeros(self._taps, "f")))

    def response(self, omega: ArrayLike) -> Complex:
        """Return the complex frequency response at the angles `omega` (radians per sample), of any shape.

        Examples
        --------
        >>> Filter([1, 1]).response(0.0).item()
        (2+0j)
        """
        z = np.exp(-1j * validation.array("omega", omega))
        return rational_response(self._taps, self._sections, self._recursion, z)

    @property
    def n_states(self) -> int:
        """The count of numbers that the running filter remembers; those of :meth:`state_space`."""
        return self.factors.n_states

    def filter(
        self,
        x: ArrayLike,
        zi: ArrayLike | None = None,
        *,
        dtype: DTypeLike = np.float64,
        out: NDArray[Any] | None = None,
        n_threads: int | None = None,
    ) -> Filtered:
        """Filter signals, from a given state; as :func:`scipy.signal.sosfilt`, but by factors and along the last axis.

        Parameters
        ----------
        x : array_like, (..., time), or Series, DataFrame or DataArray
            Finite numbers, in any memory order; fastest where time is contiguous. Rows of a pandas DataFrame are times
            and columns streams; an xarray DataArray has a dimension "time". Times must be equally spaced.
        zi : array_like, (..., n_states), optional
            State before the first sample, as a call before gave it; zero by default.
        dtype : {numpy.float64, numpy.float32}
            What is computed in, and the dtype of the result.
        out : array, (..., time), optional
            Where to put the output; it may be x itself. NaN where x turns out not to be finite. Only for x without
            labels.
        n_threads : int, optional
            By default ``DPFAST_NUM_THREADS``, or all processors; it does not change the result.

        Returns
        -------
        Filtered
            Output y and state zf behind the last sample, always both. A signal in pieces, each with the zf of the one
            before, gives bit-identical results; an empty piece changes nothing. y is of the kind of x, with its labels;
            zf is an array (..., n_states), streams as in x, and may be a transposed view.

        Raises
        ------
        ValueError
            For arguments of the wrong kind or shape, and for float32 where it would spoil this filter's output by
            more than 1e-4 of its size.

        Examples
        --------
        >>> f = Filter([1], [1, -0.5])
        >>> y, zf = f.filter([1, 0, 0])
        >>> y.tolist()
        [1.0, 0.5, 0.25]
        >>> f.filter([0, 0], zf).y.tolist()
        [0.125, 0.0625]
        """
        ready = self._ready.get(dtype) if type(dtype) in _SPELLINGS else None
        if ready is not None and (n_threads is None or (type(n_threads) is int and n_threads > 0)):
            found = ready.filter_plain(x, zi, out)
            if found is not None:
                return Filtered(*found)
        precision = validation.precision(dtype)
        values, wrap = unwrap("x", x)
        if out is not None and values is not x:
            raise ValueError(f"out must be None where x has labels, as a {type(x).__name__} has: give x as an array")
        samples = validation.samples("x", values, precision, finite=False)  # that is seen on the way, which is faster
        state_shape = (*samples.shape[:-1], self.n_states)
        states = np.zeros(state_shape) if zi is None else validation.samples("zi", zi, axis="n_states")
        if states.shape != state_shape:
            raise ValueError(f"zi must have the shape {state_shape} (..., n_states), got {states.shape}")
        if precision == np.float32:
            _check_single_precision("the filter", self)
        result = np.empty(samples.shape, precision) if out is None else _check_out(out, samples)
        if out is not None and np.may_share_memory(out, samples):
            validation.check_size("x", samples)  # before it is written over
        states = states.astype(precision, copy=out is not None)  # of which `out` may be a part
        zf = self._run(samples, states, result, thread_count.n_threads(n_threads))
        if type(dtype) in _SPELLINGS:
            self._ready[dtype] = self._arrays(precision)
        return Filtered(wrap(result), zf)

    def stream(self, n_streams: int, *, dtype: DTypeLike = np.float64) -> FilterStream:
        """Start the filter on streams whose samples come a step or a few at a time; it keeps its state in between.

        The bits are those of :meth:`filter`, at a fraction of its time for pieces that are short.

        Parameters
        ----------
        n_streams : int
            At least 1.
        dtype : {numpy.float64, numpy.float32}
            What is computed in, and the dtype of the results; float32 is refused where :meth:`filter` refuses it.

        Examples
        --------
        >>> stream = Filter([1], [1, -0.5]).stream(2)
        >>> stream.push([1, 0]).tolist(), stream.push([0, 4]).tolist()
        ([1.0, 0.0], [0.5, 4.0])
        """
        from dpfast.filters.filter_stream import FilterStream  # late, as it loads what compiles

        precision = validation.precision(dtype)
        if precision == np.float32:
            _check_single_precision("the filter", self)
        return FilterStream(self.factors, validation.integer("n_streams", n_streams, 1), precision)

    def _run(self, x: NDArray[Any], zi: NDArray[Any], out: NDArray[Any], n_threads: int = 1) -> NDArray[Any]:
        """Filter x (..., time) into `out`, of one dtype; return the states at the end. Fail where x is not finite."""
        n_streams, n_samples = math.prod(x.shape[:-1]), x.shape[-1]
        streams, target = x.reshape(n_streams, n_samples), out.reshape(n_streams, n_samples)
        states = zi.reshape(n_streams, zi.shape[-1])
        zf, is_sound = self._arrays(x.dtype).filter_any(streams, states, target, n_threads)
        if not is_sound:
            try:
                validation.check_size("x", x)
            except ValueError:
                out.fill(np.nan)
                raise
        if target.base is not out and not np.may_share_memory(target, out):
            out[...] = target.reshape(out.shape)
        return zf.reshape(zi.shape)

    def _arrays(self, dtype: np.dtype[Any]) -> ArrayFilter:
        """Return the compiled forms for a dtype."""
        from dpfast.filters.array_filter import ArrayFilter  # late: a filter is made faster than Numba loads

        found = self._compiled.get(dtype)
        return self._compiled.setdefault(dtype, ArrayFilter(self.factors, dtype)) if found is None else found

    @functools.cached_property
    def _compiled(self) -> dict[np.dtype[Any], ArrayFilter]:
        """The compiled forms for each dtype."""
        return {}

    @functools.cached_property
    def _ready(self) -> dict[Any, ArrayFilter]:
        """The dtypes that a call has found to serve, as calls have spelled them."""
        return {}

    def checked(self, u: ArrayLike) -> Array:
        """Return an input (..., time) of any length as numbers; refuse what is none. Mechanisms check theirs by it."""
        return validation.samples("u", u)

    def apply(self, u: ArrayLike) -> Any:
        """Return the output (..., time) for an input that begins at rest; with its labels, where it has some."""
        return self.filter(u).y

    def impulse(self, n: int) -> Array:
        """Return the first `n` samples of the impulse response."""
        return impulse_response(self.factors, validation.integer("n", n, 0))

    def h2_norm(self) -> float:
        r"""Return the ℓ₂ norm of the impulse response, to about 1e-12.

        It is taken from the response on a grid graded around every pole. (A dense Lyapunov equation loses all
        digits where poles cluster near the circle.)
        """
        if self.is_fir:
            from scipy import linalg  # late, as it takes longer to load than a filter takes to make

            return float(linalg.norm(self.b))
        grid = graded_grid(self.poles, degree=len(self._taps) + len(self._recursion))
        return math.sqrt(grid.mean(np.abs(self.response(grid.omega)) ** 2))

    def state_space(self) -> tuple[Array, Array, Array, Array]:
        """Return the matrices A, B, C, D of the factors in cascade, with the states that the compiled filter carries.

        A block for each factor, so that clustered poles stay well conditioned: past inputs of the taps, two states a
        section (transposed direct form II), past outputs of the recursion.
        """
        return make_state_space(self.factors)

    def hinf_norm(self) -> float:
        """Return the H-infinity norm, the largest gain over all frequencies.

        From a grid that is dense around every pole, refined at every peak that may be the largest, rounded up by 1e-9.
        """
        n = fft_points(self.order)
        z = np.exp(-1j * np.linspace(0, np.pi, n // 2 + 1))
        ends = np.fft.rfft(self._taps, n) / np.fft.rfft(self._recursion, n)
        uniform = np.abs(ends * cascade_response(self._sections, z))
        return hinf_norm(lambda omega: np.abs(self.response(omega)), self.poles, uniform)

    def impulse_norm(self, p: float) -> float:
        r"""Return the ℓ_p norm of the impulse response, `p` ≥ 1 or ``inf``.

        Examples
        --------
        >>> round(Filter([1], [1, -0.5]).impulse_norm(1), 12)
        2.0
        """
        if p != math.inf and validation.number("p", p) < 1:
            raise validation.fail("p", "at least 1, or inf", p)
        from scipy import linalg

        return float(linalg.norm(self.impulse(self.settling_time(1e-18)), p))

    def settling_time(self, level: float) -> int:
        """Count the samples after which the impulse response stays below `level` times its largest value.

        Measured on twice the samples that the slowest pole alone would take, and twice that until it holds.
        """
        level = validation.number("level", level, above=0, below=1)
        radius = float(np.abs(self.poles).max(initial=0.0))
        n = len(self._taps) + 2 * len(self._sections) + len(self._recursion)
        n += math.ceil(math.log(level) / math.log(radius)) if radius > 0 else 0
        while True:
            size = np.abs(self.impulse(2 * n))
            last = int(np.flatnonzero(size > level * size.max()).max(initial=0))
            if last < n:
                return last + 1
            n *= 2

    def inverse(self) -> Filter:
        """Return the filter 1/H of a minimum-phase filter.

        Raises
        ------
        UnstableFilterError
            Where a zero is outside of, or too near to, the unit circle.
        """
        return ratio((self.denominator,), (self.numerator,))

    @property
    def numerator(self) -> Filter:
        """The numerator as an FIR filter, in factors."""
        sections = self._sections.copy()
        sections[:, 3:] = [1.0, 0.0, 0.0]
        return Filter.from_factors(self._taps, sections)

    @property
    def denominator(self) -> Filter:
        """The denominator as an FIR filter, in factors."""
        sections = np.hstack([self._sections[:, 3:], np.tile([1.0, 0.0, 0.0], (len(self._sections), 1))])
        return Filter.from_factors(self._recursion, sections)

    def __mul__(self, other: object) -> Filter:
        if isinstance(other, Filter):
            return Filter.from_factors(
                np.convolve(self._taps, other._taps),
                np.concatenate([self._sections, other._sections]),
                np.convolve(self._recursion, other._recursion),
            )
        if isinstance(other, (int, float, np.number)):
            gain = validation.number("the factor of a filter", other)
            return Filter.from_factors(self._taps * gain, self._sections, self._recursion)
        return NotImplemented

    __rmul__ = __mul__

    def __eq__(self, other: object) -> bool:
        """Compare the factors: F * G and the same filter multiplied out are not equal."""
        if not isinstance(other, Filter):
            return NotImplemented
        return all(map(np.array_equal, self.factors, other.factors))

    def __hash__(self) -> int:
        return hash(tuple(x.tobytes() for x in self.factors))

    def __repr__(self) -> str:
        if max(len(self.b), len(self.a)) > 9:
            return f"<Filter with {len(self.b)} numerator and {len(self.a)} denominator coefficients>"
        return f"Filter({self.b.tolist()}, {self.a.tolist()})"


def _check_single_precision(name: str, filter: Filter) -> None:
    """Refuse float32 where it spoils a filter's output."""
    error = _single_precision_error(filter)
    if not error <= _SINGLE_ERROR:
        slowest = np.abs(filter.poles).max(initial=0.0)
        raise ValueError(
            f"dtype must be float64 here: in float32 the output of {name} would be off by {error:.1g} of its size, "
            f"more than {_SINGLE_ERROR:g} (its slowest pole has the modulus {slowest:.9g})"
        )


@functools.lru_cache(maxsize=256)
def _single_precision_error(filter: Filter) -> float:
    """Measure the relative root mean square error of the output in float32, on white noise."""
    n = min(4 * filter.settling_time(1e-3), _SINGLE_SAMPLES)
    x = np.random.default_rng(1).standard_normal((1, n)).astype(np.float32)
    outputs = []
    for dtype in (np.float64, np.float32):
        y = np.empty((1, n), dtype)
        filter._run(x.astype(dtype), np.zeros((1, filter.n_states), dtype), y)
        outputs.append(y.astype(np.float64))
    exact, rounded = outputs
    from scipy import linalg

    size = float(linalg.norm(exact))
    return float(linalg.norm(rounded - exact)) / size if size else 0.0


def _check_out(out: Any, x: NDArray[Any]) -> NDArray[Any]:
    """Check an array for results, which may be x itself but must not overlap it otherwise."""
    if not isinstance(out, np.ndarray) or out.shape != x.shape or out.dtype != x.dtype:
        raise validation.fail("out", f"an array of shape {x.shape} and dtype {x.dtype}", out)
    if not out.flags.writeable:
        raise ValueError("out must be writeable, got a read-only array")
    same = out.ctypes.data == x.ctypes.data and out.strides == x.strides
    if not same and np.shares_memory(out, x):
        raise ValueError("out must be x itself or share no memory with it: give another array")
    return out


def filter_from_rest(filter: Filter, x: Array) -> tuple[Array, Array]:
    """Filter (time,) from zero state; return the output, and the state at its end as of `Filter.state_space`."""
    out = np.empty_like(x)
    return out, filter._run(x, np.zeros(filter.n_states), out)


def ratio(tops: tuple[Filter, ...], bottoms: tuple[Filter, ...]) -> Filter:
    """Divide products of FIR filters, their sections' roots paired anew; `bottoms` must be minimum phase.

    Raises
    ------
    UnstableFilterError
        Where a bottom has a delay, or a zero outside of, or too near to, the circle.
    """
    zeros, top, taps = _gather_factors(tops)
    poles, bottom, recursion = _gather_factors(bottoms)
    if bottom * recursion[0] == 0:
        raise UnstableFilterError(
            "the inverse of a filter with a delay is not causal: take the delay off first, so that b[0] is not 0"
        )
    gain = top / bottom / recursion[0]
    return Filter.from_factors(taps * gain, make_sections(zeros, poles, 1.0), recursion / recursion[0])


def _gather_factors(filters: tuple[Filter, ...]) -> tuple[Complex, float, Array]:
    """Gather the roots of the numerators of all sections, their leading coefficients' product, and all taps."""
    sections = np.concatenate([x.factors[1] for x in filters])
    taps = functools.reduce(np.convolve, [x.factors[0] for x in filters])
    return section_roots(sections[:, :3]), float(np.prod(sections[:, 0])), taps


def check_stable(poles: Complex) -> None:
    """Refuse a pole beyond the limit; the message shows the slowest one."""
    if len(poles) == 0:
        return
    slowest = poles[np.argmax(np.abs(poles))]
    if abs(slowest) > MAX_POLE_RADIUS + _RADIUS_SLACK:
        shown = f"{slowest.real:.9g}" if slowest.imag == 0 else f"{slowest:.9g}"
        raise UnstableFilterError(
            f"the filter must be stable with every pole of modulus at most {MAX_POLE_RADIUS:g}, "
            f"got a pole at {shown} (modulus {abs(slowest):.9g}): move it inwards, "
            "or give clustered poles by from_sos or from_zpk; or say for how many steps n it runs: running_sum(n) is "
            "the filter 1/(1 - z⁻¹), and Toeplitz(impulse_response, horizon=n) any other"
        )
