"""Products with the curvature of the error of several streams at each frequency, and with its inverse.

Conjugate gradients take hundreds of them for a design. E is (nodes, p, m); of a node there are a few numbers, which
stay in the first cache.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel, part

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]


@part
def _multiply(e: Complex, matrices: Complex, w: int, j: int, i: int) -> complex:
    """Return an entry of the product at a node."""
    total = 0j
    for k in range(e.shape[2]):
        total += e[w, j, k] * matrices[w, k, i]
    return total


@part
def _along(directions: Complex, e: Complex, w: int, i: int) -> float:
    """Return Re k_i*e_i of two columns at a node."""
    total = 0.0
    for j in range(e.shape[1]):
        k, x = directions[w, j, i], e[w, j, i]
        total += k.real * x.real + k.imag * x.imag
    return total


@kernel
def lengthen(e: Complex, directions: Complex, weights: Array, along: Array, means: Array) -> None:
    """Set along (nodes, m) to how much longer columns in these directions get, and means (m,) to its weighted sums."""
    means[:] = 0.0
    for w in range(e.shape[0]):
        for i in range(e.shape[2]):
            along[w, i] = _along(directions, e, w, i)
            means[i] += weights[w] * along[w, i]


@kernel
def curve_alone(
    e: Complex,
    psd: Complex,
    directions: Complex,
    duals: Complex,
    along: Array,
    stiffness: Array,
    lengths: Array,
    damped: float,
    out: Complex,
) -> None:
    """Set out to (1 + δ)(e P + s_i e_i) - s_i (k_i Re u_i*e_i + u_i Re k_i*e_i)/2 + c_i k_i, from Re k_i*e_i.

    Directions k, duals u, stiffness s (nodes, m), and lengths c (m,) of all nodes.
    """
    for w in range(e.shape[0]):
        for i in range(e.shape[2]):
            s = stiffness[w, i]
            of_direction = lengths[i] - s * _along(duals, e, w, i) / 2
            of_dual = s * along[w, i] / 2
            for j in range(e.shape[1]):
                straight = _multiply(e, psd, w, j, i) + s * e[w, j, i]
                turned = directions[w, j, i] * of_direction - duals[w, j, i] * of_dual
                out[w, j, i] = (1 + damped) * straight + turned


@kernel
def divide_alone(e: Complex, inverse: Complex, directions: Complex, rest: Array, along: Array, out: Complex) -> None:
    """Set out to what `curve_alone` of it is e, without lengths; e is lost, and along (m,) scratch."""
    for w in range(e.shape[0]):
        for i in range(e.shape[2]):
            for j in range(e.shape[1]):
                out[w, j, i] = _multiply(e, inverse, w, j, i)
            along[i] = _along(directions, out, w, i)
        for i in range(e.shape[2]):
            missing = 0.0
            for k in range(e.shape[2]):
                missing += rest[w, i, k] * along[k]
            for j in range(e.shape[1]):
                e[w, j, i] += directions[w, j, i] * missing
        for j in range(e.shape[1]):
            for i in range(e.shape[2]):
                out[w, j, i] = _multiply(e, inverse, w, j, i)
