"""Targets over a horizon: lower-triangular Toeplitz matrices, and power series cut to so many terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpfast._kernels.factors import Factors
from dpfast._support import validation
from dpfast._support.dataframes import unwrap
from dpfast._support.plotting import Drawn
from dpfast._support.validation import Array
from dpfast.filters.filter import A_FILTER, Filter
from dpfast.filters.impulse_response import impulse_response

MAX_HORIZON = 2**22
_SUM = Factors(np.ones(1), np.array([[1.0, 0.0, 0.0, 1.0, -1.0, 0.0]]), np.ones(1))
_SAME = 1e-6  # of the largest coefficient: factors that are slow round otherwise
_DIRECT = 2048  # terms of a power series that are found one by one


class Toeplitz(Drawn):
    r"""Describe what should be published of n steps: each output weighs the inputs so far by their age.

    y_t = Σ_{k ≤ t} f_k u_{t-k} for 0 ≤ t < n. Immutable.

    A target that no stable filter can be, such as a running sum, needs a horizon; any other may have one.

    Parameters
    ----------
    coefficients : array_like, 1-D
        f_0, f_1, ...; finite, not all zero.
    horizon : int, optional
        n, by default as many as there are coefficients: they are padded with zeros, or cut.

    Raises
    ------
    ValueError
        For coefficients that are not finite or all zero within the horizon.

    See Also
    --------
    running_sum, polynomial_decay

    Examples
    --------
    >>> Toeplitz([1, 1], horizon=4).apply([1, 2, 3, 4])
    array([1., 3., 5., 7.])
    """

    __slots__ = ("_coefficients", "_factors")
    _coefficients: Array
    _factors: Factors | None

    def __init__(self, coefficients: ArrayLike, horizon: int | None = None) -> None:
        given = validation.array("coefficients", coefficients, ndim=1, empty=False)
        n = len(given) if horizon is None else check_horizon(horizon)
        validation.check_size("coefficients", given)
        f = np.zeros(n)
        f[: min(n, len(given))] = given[:n] + 0.0  # no -0.0, which is equal to 0.0 and has another hash
        if not np.abs(f).max() > validation.SMALLEST:
            raise ValueError("coefficients must not all be zero within the horizon: give a longer one")
        object.__setattr__(self, "_coefficients", validation.freeze(f))
        object.__setattr__(self, "_factors", None)

    @classmethod
    def with_factors(cls, coefficients: ArrayLike, factors: Factors | None) -> Toeplitz:
        """Make a target that also knows the factors of a filter, stable or not, of which these are the coefficients.

        Raises
        ------
        ValueError
            For factors of another filter.
        """
        result = cls(coefficients)
        if factors is not None:
            found = impulse_response(factors, result.horizon)
            if not np.abs(found - result.coefficients).max() <= _SAME * np.abs(result.coefficients).max():
                raise ValueError(
                    "factors must be of a filter that begins with these coefficients, got others: leave them out"
                )
            factors = Factors(*(validation.freeze(np.array(x)) for x in factors))
        object.__setattr__(result, "_factors", factors)
        return result

    @classmethod
    def of(cls, target: Filter | Toeplitz | Sequence[float], horizon: int | None = None) -> Toeplitz:
        """Make a target over a horizon of a filter, a sequence of coefficients, or another Toeplitz target.

        Raises
        ------
        ValueError
            For a filter without a horizon, and for a horizon longer than that of a Toeplitz target.

        Examples
        --------
        >>> Toeplitz.of(Filter([1], [1, -0.5]), 3).coefficients
        array([1.  , 0.5 , 0.25])
        """
        if isinstance(target, Filter):
            if horizon is None:
                raise ValueError("horizon must be given for a Filter: for how many steps the mechanism is made")
            return cls.with_factors(target.impulse(check_horizon(horizon)), target.factors)
        if not isinstance(target, Toeplitz):
            return cls(_coefficients(target), horizon)
        n = target.horizon if horizon is None else check_horizon(horizon)
        if n > target.horizon:
            raise ValueError(f"horizon must be at most that of the target, {target.horizon}, got {n}: leave it out")
        return target if n == target.horizon else cls.with_factors(target.coefficients[:n], target.factors)

    @property
    def coefficients(self) -> Array:
        """The coefficients f, as many as the horizon has steps; read-only."""
        return self._coefficients

    @property
    def factors(self) -> Factors | None:
        """The factors of a rational target, which need not be stable: a recursion for what is computed step by step.

        None where only the coefficients are known.
        """
        return self._factors

    @property
    def horizon(self) -> int:
        """The number n of steps."""
        return len(self._coefficients)

    def as_filter(self) -> None:
        """Return None, as it is no filter; a :class:`Filter` returns itself, so that one can ask both."""

    def size_text(self) -> str:
        """Say how long the horizon is, in the words of tables and labels."""
        return f"{self.horizon} steps"

    def impulse(self, n: int) -> Array:
        """Return the first n coefficients, or all where the horizon is shorter."""
        return self._coefficients[:n]

    def apply(self, u: ArrayLike) -> Any:
        """Return the output (..., n) for an input (..., n) from step 0; with its labels, where it has some."""
        values, wrap = unwrap("u", u)
        return wrap(convolve_series(self._coefficients, self.checked(values)))

    def checked(self, u: ArrayLike) -> Array:
        """Return an input as an array; refuse one of other steps than the horizon's. Mechanisms check theirs by it."""
        x = np.asarray(validation.samples("u", u), float)
        if x.shape[-1] != self.horizon:
            raise ValueError(
                f"u must have the horizon's {self.horizon} steps along its last axis, got {x.shape[-1]}: give as many, "
                "or design for another horizon"
            )
        return x

    def h2_norm(self) -> float:
        """Return ‖f‖₂ over the horizon."""
        return float(np.linalg.norm(self._coefficients))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Toeplitz target cannot be changed: make another one")

    def __reduce__(self) -> tuple[Any, tuple[Array, Factors | None]]:
        return Toeplitz.with_factors, (self._coefficients, self._factors)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Toeplitz):
            return NotImplemented
        return np.array_equal(self._coefficients, other._coefficients)

    def __hash__(self) -> int:
        return hash(self._coefficients.tobytes())

    def __repr__(self) -> str:
        shown = ", ".join(f"{x:.6g}" for x in self._coefficients[:4])
        return f"Toeplitz([{shown}{', ...' * (self.horizon > 4)}], horizon={self.horizon})"


def _coefficients(target: Any) -> Array:
    nested = isinstance(target, (list, tuple)) and any(hasattr(x, "__len__") for x in target)  # such as (b, a)
    if nested or isinstance(target, str) or not hasattr(target, "__len__"):
        raise validation.fail("target", f"{A_FILTER}, a Toeplitz, or a sequence of coefficients", target)
    return validation.array("target", target, ndim=1, empty=False)


def running_sum(horizon: int) -> Toeplitz:
    """Make the target y_t = u_0 + ... + u_t: the counter of Dwork et al. 2010, a pole at 1.

    Parameters
    ----------
    horizon : int
        Steps, at least 1.

    Examples
    --------
    >>> running_sum(3).apply([1, 2, 3])
    array([1., 3., 6.])
    """
    return Toeplitz.with_factors(np.ones(check_horizon(horizon)), _SUM)


def polynomial_decay(power: float, horizon: int) -> Toeplitz:
    """Make the target y_t = Σ (k + 1)^-power u_{t-k}, a decaying sum of Bolot et al. 2011.

    Parameters
    ----------
    power : float
        Above 0.
    horizon : int
        Steps, at least 1.

    Examples
    --------
    >>> polynomial_decay(1, 4).coefficients.round(3)
    array([1.   , 0.5  , 0.333, 0.25 ])
    """
    power = validation.number("power", power, above=0)
    return Toeplitz(np.arange(1.0, check_horizon(horizon) + 1) ** -power)


def check_horizon(horizon: int) -> int:
    """Check a number of steps."""
    return validation.integer("horizon", horizon, 1, MAX_HORIZON)


# --- power series, cut to the length of the first -------------------------------------------------


def convolve_series(f: Array, x: Array) -> Array:
    """Multiply power series f and x (..., n), in FFTs: to rounding of the largest term."""
    n = x.shape[-1]
    size = 1 << (2 * n - 1).bit_length()
    return np.asarray(np.fft.irfft(np.fft.rfft(f, size) * np.fft.rfft(x, size), size)[..., :n])


def multiply_symmetric(x: Array, r: Array) -> Array:
    """Compute X R, R the symmetric Toeplitz matrix of r."""
    backward = convolve_series(r, x[:, ::-1])[:, ::-1]
    return np.asarray(convolve_series(r, x) + backward - r[0] * x)


def square_root_series(f: Array) -> Array:
    """Find the series c with c² = f, for f_0 > 0.

    Of a running sum c_k = Π_{j ≤ k} (1 - 1/2j). Of others the first terms by 2 c_0 c_k = f_k - Σ_{0<j<k} c_j c_{k-j},
    each to its own rounding; beyond by Newton's method, c + (f - c²) / 2c, which doubles their number with every step,
    to rounding of the largest.
    """
    if (f == f[0]).all():  # a running sum
        return np.asarray(np.sqrt(f[0]) * np.cumprod(np.append(1.0, 1 - 0.5 / np.arange(1, len(f)))))
    c = np.zeros(min(len(f), _DIRECT))
    c[0] = np.sqrt(f[0])
    for k in range(1, len(c)):
        c[k] = (f[k] - c[1:k] @ c[k - 1 : 0 : -1]) / (2 * c[0])
    b = inverse_series(c) if len(c) < len(f) else c
    while (m := len(c)) < len(f):
        c = np.pad(c, (0, min(m, len(f) - m)))
        b = np.pad(b, (0, len(c) - m))
        c[m:] = convolve_series(b, f[: len(c)] - convolve_series(c, c))[m:] / 2
        b = 2 * b - convolve_series(b, convolve_series(b, c))
    return c


def inverse_series(f: Array) -> Array:
    """Find the series b with b f = 1, for f_0 ≠ 0."""
    b = np.zeros(len(f))
    b[0] = 1 / f[0]
    for k in range(1, len(f)):
        b[k] = -(f[1 : k + 1] @ b[k - 1 :: -1][:k]) / f[0]
    return b
