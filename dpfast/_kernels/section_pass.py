"""One signal passes through second-order sections here, with the bits of scipy: for impulse responses, which are long.

What filters streams (``fir_and_sections``) takes fused steps, and so has other bits.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from dpfast._kernels._jit import kernel

Array = NDArray[Any]


@kernel
def pass_sections(sections: Array, x: Array) -> None:
    """Pass x (time,), in place, through sections (b0 b1 b2 1 a1 a2), each a transposed direct form from rest."""
    for k in range(len(sections)):
        b0, b1, b2 = sections[k, 0], sections[k, 1], sections[k, 2]
        a1, a2 = sections[k, 4], sections[k, 5]
        first = second = 0.0
        for i in range(len(x)):
            value = x[i]
            y = b0 * value + first
            first = b1 * value - a1 * y + second
            second = b2 * value - a2 * y
            x[i] = y
