"""The impulse response of the factors of a filter, stable or not."""

from __future__ import annotations

import numpy as np

from dpfast._kernels.factors import Factors
from dpfast._support.validation import Array

_FEW = 128  # samples times sections, found one by one in no time, and without Numba


def impulse_response(factors: Factors, n: int) -> Array:
    """Return the first `n` samples of the impulse response of taps · sections / recursion."""
    x = np.zeros(n)
    if n == 0:
        return x
    x[: len(factors.taps)] = factors.taps[:n]
    if len(factors.sections):
        x = _pass_sections(factors.sections, x)
    if len(factors.recursion) > 1:
        from scipy import signal  # late: it takes longer to import than all of dpfast

        x = signal.lfilter([1.0], factors.recursion, x)
    return np.asarray(x)


def _pass_sections(sections: Array, x: Array) -> Array:
    """Pass a signal through second-order sections, by the steps of scipy, and so with its bits."""
    if len(x) * len(sections) > _FEW:
        from dpfast._kernels.section_pass import pass_sections  # late: with it comes Numba

        pass_sections(np.ascontiguousarray(sections), x)
        return x
    found = x.tolist()
    for b0, b1, b2, _, a1, a2 in sections.tolist():
        first = second = 0.0
        for i, value in enumerate(found):
            y = b0 * value + first
            first = b1 * value - a1 * y + second
            second = b2 * value - a2 * y
            found[i] = y
    return np.array(found)
