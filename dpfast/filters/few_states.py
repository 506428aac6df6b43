"""Systems of few states, from impulse responses or, square and minimum-phase, from spectra; and quotients of them.

The reduction is balanced truncation: of the error, or for spectra of the relative error, which keeps minimum phase
(Zhou 1995).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array, Complex
from dpfast.filters.conversion import StateSpace, chain_systems
from dpfast.filters.fft_grid import fft_angles, fft_length
from dpfast.filters.filter import MAX_POLE_RADIUS
from dpfast.filters.matrix_spectral_factor import matrix_minimum_phase
from dpfast.filters.state_space import balance_states
from dpfast.filters.warped_circle import allpass, choose_steps, warped_angles

_DECAYED = 1e-10  # what is cut off of impulse responses, relative
_FINEST = 2**16  # angles of a grid, times channels
_OUTERMOST = 1 - 2 * (1 - MAX_POLE_RADIUS)  # of poles and zeros, both of which become poles of filters
_NARROWEST, _OFFSETS = 1e-6, 61  # angles at which a dip is looked for
_MORE = 16  # directions of a random range beyond those that are wanted
_NEGLIGIBLE = 1e-13  # states that are rounding


class ReducedStates:
    r"""A system with a given impulse response, to be had in any number of states.

    With h_k the impulse response, the right singular vectors V of Hankel(h) are the past inputs that matter most, and
    :math:`A = V^T S V` with S the shift: so it is stable. Before a weight, those of T · Hankel(h) matter most, T the
    Toeplitz matrix of its impulse response.

    Parameters
    ----------
    taps : array, (length, p, m)
        h, in the warped time; it has decayed where they end.
    warp : float
        Of the circle that they are from.
    most : int
        States, of which there will be no more.
    weight : array, (length, p, p), optional
        The impulse response of what the error is seen through; none by default.
    """

    def __init__(self, taps: Array, warp: float, most: int, weight: Array | None = None) -> None:
        self._direct, self._warp, n = taps[0], warp, taps.shape[2]
        seen = np.eye(1, len(taps) - 1)[0][:, None, None] * np.eye(taps.shape[1]) if weight is None else weight[:-1]
        self.sizes, inputs = _leading_inputs(taps[1:], seen, most)
        self._inputs = inputs.reshape(len(inputs) * n, -1)
        self._later = np.concatenate(list(taps[1:]), axis=1)
        self._shifted = np.vstack([np.zeros((n, len(self.sizes))), self._inputs[:-n]])

    def reduce(self, order: int) -> StateSpace:
        """Return A, B, C, D of so many states."""
        n, scale = self._direct.shape[1], np.sqrt(self.sizes[:order])
        v = self._inputs[:, :order]
        a = (v.T @ self._shifted[:, :order]) * scale[:, None] / scale
        return _unwarp(a, v[:n].T * scale[:, None], self._later @ v / scale, self._direct, self._warp)


class MinimumPhaseStates:
    r"""The minimum-phase Q with W = Q Q*, to be had in any number of states.

    Its first tap is lower triangular with a positive diagonal. The weight of the reduction is Q⁻¹: it is the relative
    error Q⁻¹(Q' - Q) that matters. All this is done in a warped frequency, where slow poles take few samples.

    Parameters
    ----------
    spectrum : callable
        W (angles, n, n) at given angles.
    poles : array of complex
        Of the spectrum, those inside the circle.
    most : int
        States, of which there will be no more.
    """

    def __init__(self, spectrum: Callable[[Array], Complex], poles: Complex, most: int) -> None:
        details = np.concatenate([poles, _details(spectrum)])
        self._warp, _ = choose_steps(details)
        slowest = float(np.abs(allpass(details, -self._warp)).max(initial=0.0))
        taps, inverse = self._factor(spectrum, fft_length(slowest))
        self._states = ReducedStates(taps, self._warp, most, inverse)

    def _factor(self, spectrum: Callable[[Array], Complex], n: int) -> tuple[Array, Array]:
        """Return the impulse responses of Q and its inverse as far as they take to decay, or the finest grid holds.

        Any factor serves, and a near one better: so there is no need to resolve it to rounding.
        """
        factor = matrix_minimum_phase(spectrum(warped_angles(fft_angles(n), self._warp))).factor
        pair = [np.fft.irfft(x, axis=0) for x in (factor, np.linalg.inv(factor))]
        sizes = [np.abs(x).max(axis=(1, 2)) for x in pair]
        length = max(int(np.flatnonzero(x > _DECAYED * x.max())[-1]) + 1 for x in sizes)
        if length > n // 4 and 2 * n * len(factor[0]) <= _FINEST:
            return self._factor(spectrum, 2 * n)
        length = max(2, min(length, n // 4))
        return pair[0][:length], pair[1][:length]

    @property
    def most(self) -> int:
        """The largest number of states that there is."""
        return len(self._states.sizes)

    def reduce(self, order: int) -> StateSpace:
        """Return A, B, C, D of so many states; poles and zeros that are nearer to the circle are moved to the limit."""
        a, b, c, d = self._states.reduce(order)
        roots = np.concatenate([linalg.eigvals(a), linalg.eigvals(a - b @ np.linalg.solve(d, c))])
        inside = _OUTERMOST / max(float(np.abs(roots).max(initial=0.0)), _OUTERMOST)
        a, b = inside * a, inside * b  # Q(z/r) for Q(z)
        turn, upper = np.linalg.qr(d.T)
        turn = turn * np.sign(np.diag(upper))
        return a, b @ turn, c, np.tril(d @ turn)


def _details(spectrum: Callable[[Array], Complex]) -> Complex:
    """Return points as far inside of 1 and of -1 as a dip of the least eigenvalue there is wide: zeros are as near."""
    found = []
    for end in (1, -1):
        offsets = np.append(0.0, np.geomspace(_NARROWEST, 1, _OFFSETS))
        least = np.linalg.eigvalsh(spectrum(offsets if end > 0 else np.pi - offsets))[:, 0]
        rises = np.flatnonzero(least > 2 * least[0])
        found += [end * (1 - float(offsets[rises[0]]))] if len(rises) else []
    return np.array(found, dtype=np.complex128)


def _leading_inputs(taps: Array, inverse: Array, most: int) -> tuple[Array, Array]:
    """Return the largest singular values of T · Hankel(h), h from its second tap, and their right vectors.

    They come from a random range of it (Halko, Martinsson and Tropp 2011), and products with it by FFT.
    """
    length, _, n = taps.shape
    size = 2 * length
    later, back = np.fft.rfft(taps, size, axis=0), np.fft.rfft(inverse, size, axis=0)

    def forward(v: Array) -> Array:
        outputs = np.fft.irfft(later @ np.fft.rfft(v, size, axis=0).conj(), axis=0)[:length]
        return np.asarray(np.fft.irfft(back @ np.fft.rfft(outputs, size, axis=0), axis=0)[:length])

    def adjoint(u: Array) -> Array:
        before = np.fft.irfft(np.swapaxes(back, 1, 2).conj() @ np.fft.rfft(u, size, axis=0), axis=0)[:length]
        found = np.swapaxes(later, 1, 2) @ np.fft.rfft(before, size, axis=0).conj()
        return np.asarray(np.fft.irfft(found, axis=0)[:length])

    def orthonormal(v: Array) -> Array:
        basis = np.asarray(linalg.qr(v.reshape(-1, v.shape[2]), mode="economic")[0], dtype=np.float64)
        return basis.reshape(length, -1, basis.shape[1])

    probe = np.random.default_rng(0).standard_normal((length, n, min(length * n, most + _MORE)))
    for _ in range(2):
        probe = orthonormal(adjoint(orthonormal(forward(probe))))
    _, sizes, rows = linalg.svd(forward(probe).reshape(-1, probe.shape[2]), full_matrices=False)
    kept = min(most, int(np.count_nonzero(sizes > _NEGLIGIBLE)))
    return sizes[:kept], probe @ rows[:kept].T


def _unwarp(a: Array, b: Array, c: Array, d: Array, warp: float) -> StateSpace:
    """Return the state space in z of one in (z - w)/(1 - wz)."""
    identity = np.eye(len(a))
    back = np.linalg.inv(identity + warp * a)
    inner = back @ (warp * identity + a)
    return inner, back @ b, c @ (identity - warp * inner), d - warp * c @ back @ b


def divide_left(system: StateSpace, other: StateSpace) -> StateSpace:
    """Return Q⁻¹F: a system with the inverse of a minimum-phase square system behind it, in as few states as it takes.

    F may have states twice, as a matrix of filters has.
    """
    a, b, c, d = system
    into = np.asarray(np.linalg.inv(d), dtype=np.float64)
    inverse = a - b @ into @ c, np.asarray(b @ into), -into @ c, into
    return minimal(chain_systems(minimal(other), inverse))


def minimal(system: StateSpace) -> StateSpace:
    """Return a system in balanced coordinates, without states that are rounding: at first of each input alone."""
    columns = [_balance(system, [j]) for j in range(system[1].shape[1])]
    a, b = (linalg.block_diag(*x) for x in ([x[0] for x in columns], [x[1] for x in columns]))
    return _balance((a, b, np.hstack([x[2] for x in columns]), system[3]), range(len(columns)))


def _balance(system: StateSpace, inputs: Sequence[int]) -> StateSpace:
    a, b, c, d = system
    b, d = b[:, inputs], d[:, inputs]
    sizes = [float(np.linalg.norm(x)) or 1.0 for x in (b, c)]
    into, out = balance_states(a, b / sizes[0], c / sizes[1], _NEGLIGIBLE)
    return into @ a @ out, into @ b, c @ out, d
