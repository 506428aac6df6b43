"""Other forms of a filter: roots, systems of scipy.signal and python-control, state space; read, and made.

zeros, poles, gain ─────► read_roots  ─┐
├─► factors, or b and a ──► Filter ──► make_state_space
A B C D; num den; ... ──► read_system ─┘
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast._kernels.factors import Factors
from dpfast._support import validation
from dpfast._support.validation import Array, Complex
from dpfast.filters.sections import make_sections

StateSpace = tuple[Array, Array, Array, Array]  # A, B, C, D
_SEVERAL = "FilterMatrix.from_system takes those of several"


class Coefficients(NamedTuple):
    """Numerator and denominator in powers of z⁻¹, as a Filter takes them."""

    b: Array
    a: Array


def read_system(system: Any) -> Factors | Coefficients:
    """Read a discrete-time system of scipy.signal or python-control by its attributes; refuse any other.

    Raises
    ------
    ValueError
        As ``Filter.from_system``, which this is for.
    """
    _check_discrete(system)
    if hasattr(system, "A"):
        return _read_state_space(*(validation.array(x, np.atleast_2d(getattr(system, x))) for x in "ABCD"))
    if hasattr(system, "num"):
        return _read_powers_of_z(_polynomial_in_z("num", system.num), _polynomial_in_z("den", system.den))
    if hasattr(system, "gain"):
        return read_roots(system.zeros, system.poles, system.gain)
    raise validation.fail("system", "a system with A B C D, num den or zeros poles gain", system)


def _check_discrete(system: Any) -> None:
    if not hasattr(system, "dt"):
        raise validation.fail("system", "a system with A B C D, num den or zeros poles gain, and dt", system)
    dt = system.dt
    if not (isinstance(dt, (int, float, np.number)) and dt > 0):  # True: discrete, of no given step
        raise ValueError(
            f"system must be in discrete time (dt above 0, or True), got dt = {dt!r}: sample it, as by its "
            "to_discrete or sample, or say what dt is"
        )


def read_state_space(system: Any) -> StateSpace | None:
    """Return the matrices of a discrete-time system that is given by them, None for another."""
    if not hasattr(system, "A"):
        return None
    _check_discrete(system)
    a, b, c, d = (validation.array(x, np.atleast_2d(getattr(system, x))) for x in "ABCD")
    return a, b, c, d


def read_systems(system: Any) -> list[list[Any]]:
    """Return the systems from each input to each output of a system, output by output, for :func:`read_system`."""
    num = getattr(system, "num", None)
    if not _is_nested(num):
        return [[system]]
    return [
        [SimpleNamespace(dt=system.dt, num=top, den=bottom) for top, bottom in zip(tops, bottoms, strict=True)]
        for tops, bottoms in zip(num, system.den, strict=True)
    ]


def split_system(a: Array, b: Array, c: Array, d: Array) -> list[list[SimpleNamespace]]:
    """Return the systems from each input to each output of a state space, for :func:`read_system`."""
    return [[_entry_of(a, b[:, [j]], c[[i]], d[i, j]) for j in range(d.shape[1])] for i in range(len(d))]


def _entry_of(a: Array, b: Array, c: Array, d: float) -> SimpleNamespace:
    """Return the system from one input to one output, without the states that do not lie between them."""
    kept = reached_states(a, b[:, 0]) & reached_states(a.T, c[0])
    if not kept.any():
        return SimpleNamespace(dt=True, num=[d], den=[1.0])
    return SimpleNamespace(dt=True, A=a[np.ix_(kept, kept)], B=b[kept], C=c[:, kept], D=d)


def reached_states(a: Array, b: Array) -> NDArray[np.bool_]:
    """Tell which states something gets to, by what is not zero."""
    links: NDArray[np.bool_] = a != 0
    there: NDArray[np.bool_] = b != 0
    while not np.array_equal(there, wider := there | (links @ there)):
        there = wider
    return there


def _is_nested(value: Any) -> TypeGuard[Sequence[Any]]:
    """Tell whether polynomials are given output by output, as python-control gives them."""
    kinds = (list, tuple, np.ndarray)
    return isinstance(value, kinds) and len(value) > 0 and isinstance(value[0], kinds)


def _read_state_space(a: Array, b: Array, c: Array, d: Array) -> Factors:
    if b.shape[1] != 1 or c.shape[0] != 1:
        raise ValueError(f"system must have one input and one output, got {b.shape[1]} and {c.shape[0]}: {_SEVERAL}")
    from scipy import linalg

    poles, impulse, state = linalg.eigvals(a), [d.item()], b
    for _ in range(len(a)):
        impulse.append((c @ state).item())
        state = a @ state
    taps = np.convolve(impulse, np.atleast_1d(np.poly(poles)).real)[: len(impulse)]
    return Factors(taps, make_sections([], poles, 1.0), np.ones(1))


def _read_powers_of_z(num: Array, den: Array) -> Coefficients:
    if len(num) > len(den):
        raise ValueError(
            "system must be causal, with a numerator of no higher degree than the denominator, got degrees "
            f"{len(num) - 1} over {len(den) - 1}: delay it, by poles at 0"
        )
    return Coefficients(np.concatenate([np.zeros(len(den) - len(num)), num]), den)


def _polynomial_in_z(name: str, value: Any) -> Array:
    """Take out the coefficients, highest power first; python-control nests them by output and input."""
    while (
        isinstance(value, (list, tuple, np.ndarray)) and len(value) and isinstance(value[0], (list, tuple, np.ndarray))
    ):
        if len(value) != 1:
            raise ValueError(
                f"system must have one input and one output, got {len(value)} polynomials in {name}: {_SEVERAL}"
            )
        value = value[0]
    return np.trim_zeros(np.atleast_1d(validation.array(name, value)), "f")


def read_roots(zeros: ArrayLike, poles: ArrayLike, gain: float) -> Factors:
    """Turn gain · Π(z - zeros) / Π(z - poles) into a delay and second-order sections.

    Raises
    ------
    ValueError
        For more zeros than poles, for complex roots without their conjugates, and for what is not finite.
    """
    z, p = _finite_roots("zeros", zeros), _finite_roots("poles", poles)
    k = validation.number("gain", gain)
    if len(z) > len(p):
        raise ValueError(
            f"zeros must be no more than poles, as a filter is causal, got {len(z)} and {len(p)}: add poles at 0, each "
            "of which delays by a sample"
        )
    delay = np.zeros(len(p) - len(z) + 1)
    delay[-1] = k
    try:
        sections = make_sections(z, p, 1.0)
    except ValueError:
        raise ValueError(
            "zeros and poles must come in conjugate pairs where they are complex, got one without its conjugate: give "
            "both"
        ) from None
    return Factors(delay, sections, np.ones(1))


def _finite_roots(name: str, value: ArrayLike) -> Complex:
    try:
        roots = np.atleast_1d(np.asarray(value, dtype=np.complex128)).ravel()
    except (TypeError, ValueError):
        raise validation.fail(name, "an array of complex numbers", value) from None
    if not np.isfinite(roots).all():
        count = np.count_nonzero(~np.isfinite(roots))
        raise ValueError(f"{name} must be finite, got {count} NaN or infinite values: remove them")
    return roots


def make_state_space(factors: Factors) -> StateSpace:
    """Chain the factors: past inputs of the taps, two states for each section, past outputs of the recursion.

    A block for each factor, so that clustered poles stay well conditioned. Sections are in transposed direct form II.
    """
    taps, sections, recursion = factors
    n = len(taps) - 1
    system = np.eye(n, k=-1), np.eye(n, 1), taps[None, 1:], taps[:1, None]
    for b0, b1, b2, _, a1, a2 in sections:
        a = np.array([[-a1, 1], [-a2, 0]])
        section = a, np.array([[b1 - a1 * b0], [b2 - a2 * b0]]), np.eye(1, 2), np.array([[b0]])
        system = chain_systems(system, section)
    n = len(recursion) - 1
    if n:
        feedback = -recursion[None, 1:]
        a = np.eye(n, k=-1)
        a[0] = feedback
        system = chain_systems(system, (a, np.eye(n, 1), feedback, np.ones((1, 1))))
    return system


def chain_systems(first: StateSpace, second: StateSpace) -> StateSpace:
    """Return the state space of one system and another behind it."""
    (a1, b1, c1, d1), (a2, b2, c2, d2) = first, second
    a = np.block([[a1, np.zeros((len(a1), len(a2)))], [b2 @ c1, a2]])
    return a, np.vstack([b1, b2 @ d1]), np.hstack([d2 @ c1, c2]), d2 @ d1
