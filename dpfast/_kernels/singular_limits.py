"""What singular values at each frequency have beyond a limit, by Jacobi's rotations of Y Y*.

Y is a matrix with no more rows than columns: those of a matrix with more are its transpose's.
"""

from __future__ import annotations

import math

from dpfast._kernels._jit import kernel, part
from dpfast._kernels.matrix_tiles import Array, Complex

_LITTLE = 1e-16  # of the trace of Y Y*, squared: what is off its diagonal before the last turn, which squares it


@part
def _multiply(e: Array, w: int, whiten: Complex, y: Complex, upright: bool) -> float:
    """Set y to e W at a node, or to its transpose if that is upright, and return its squared size."""
    total, m = 0.0, whiten.shape[0]
    for j in range(e.shape[0] // m):
        for i in range(m):
            entry = 0j
            for k in range(m):
                entry += complex(e[j * m + k, 0, w], e[j * m + k, 1, w]) * whiten[k, i]
            if upright:
                y[i, j] = entry
            else:
                y[j, i] = entry
            total += entry.real * entry.real + entry.imag * entry.imag
    return total


@part
def _multiply_back(y: Complex, upright: bool, whiten: Complex, e: Array, w: int) -> None:
    """Set e at a node to Y W*, of y or its transpose."""
    m = whiten.shape[0]
    for j in range(e.shape[0] // m):
        for i in range(m):
            entry = 0j
            for k in range(m):
                entry += (y[k, j] if upright else y[j, k]) * whiten[i, k].conjugate()
            e[j * m + i, 0, w], e[j * m + i, 1, w] = entry.real, entry.imag


@part
def _square(y: Complex, gram: Complex, basis: Complex) -> None:
    """Set gram to y y*, and basis to 1."""
    for j in range(y.shape[0]):
        for k in range(y.shape[0]):
            entry = 0j
            for i in range(y.shape[1]):
                entry += y[j, i] * y[k, i].conjugate()
            gram[j, k] = entry
            basis[j, k] = 1.0 if j == k else 0.0


@part
def _rotate_columns(a: Complex, j: int, k: int, phase: complex, cosine: float, sine: float) -> None:
    """Turn two columns into one another, the second by a phase before."""
    for i in range(a.shape[0]):
        x, y = a[i, j], a[i, k] * phase
        a[i, j], a[i, k] = cosine * x - sine * y, sine * x + cosine * y


@part
def _rotate(gram: Complex, basis: Complex, j: int, k: int, beside: float) -> None:
    """Make an entry of gram zero whose size is beside."""
    tau = (gram[k, k].real - gram[j, j].real) / (2 * beside)
    tangent = math.copysign(1.0, tau) / (abs(tau) + math.hypot(1.0, tau))
    cosine = 1 / math.sqrt(1 + tangent * tangent)
    sine, phase = tangent * cosine, gram[j, k].conjugate() / beside
    _rotate_columns(basis, j, k, phase, cosine, sine)
    _rotate_columns(gram, j, k, phase, cosine, sine)
    _rotate_columns(gram.T, j, k, phase.conjugate(), cosine, sine)
    gram[j, k] = gram[k, j] = 0.0


@part
def _diagonalize(gram: Complex, basis: Complex, power: float) -> None:
    """Make gram diagonal, with its eigenvectors in basis; its trace is the power."""
    n, left = gram.shape[0], 1.0
    while left > _LITTLE:
        left = 0.0
        for j in range(n):
            for k in range(j + 1, n):
                beside = abs(gram[j, k])
                left += (beside / power) * (beside / power)
                if beside > 0.0:
                    _rotate(gram, basis, j, k, beside)


@part
def _keep_beyond(y: Complex, gram: Complex, basis: Complex, limit: float, row: Complex) -> None:
    """Leave of y what its singular values have beyond a limit; row is scratch."""
    n = y.shape[0]
    for i in range(y.shape[1]):
        for j in range(n):
            entry = 0j
            for k in range(n):
                entry += basis[k, j].conjugate() * y[k, i]
            size = math.sqrt(max(0.0, gram[j, j].real))
            row[j] = entry * (1 - limit / size) if size > limit else 0j
        for j in range(n):
            entry = 0j
            for k in range(n):
                entry += basis[j, k] * row[k]
            y[j, i] = entry


@kernel
def exceed_singular(
    e: Array,
    whiten: Complex,
    limit: float,
    sizes: Array,
    first: int,
    count: int,
    y: Complex,
    gram: Complex,
    basis: Complex,
    row: Complex,
) -> None:
    """Replace e (p m, 2, places) by X W*, X what singular values of e W have beyond a limit times the sizes of nodes.

    W is at all places (places, m, m), or one for all (1, m, m). The last four are scratch, of as many rows as p or m,
    whichever is less; y has as many columns as the other.
    """
    upright = len(e) > whiten.shape[1] * len(y)
    for w in range(first, first + count):
        here = whiten[w if len(whiten) > 1 else 0]
        power, highest = _multiply(e, w, here, y, upright), limit * sizes[w]
        if power <= highest * highest:
            y[:] = 0.0
        else:
            _square(y, gram, basis)
            _diagonalize(gram, basis, power)
            _keep_beyond(y, gram, basis, highest, row)
        _multiply_back(y, upright, here, e, w)
