"""The impulse response of the factors of a filter, stable or not."""

from __future__ import annotations

import numpy as np

from dpfast._kernels.fir_and_sections import Factors
from dpfast._support.validation import Array


def impulse_response(factors: Factors, n: int) -> Array:
    """Return the first `n` samples of the impulse response of taps · sections / recursion."""
    from scipy import signal  # late: it takes half as long to import as all of dpfast

    x = np.zeros(n)
    if n == 0:
        return x
    x[: len(factors.taps)] = factors.taps[:n]
    if len(factors.sections):
        x = signal.sosfilt(factors.sections.copy(), x)
    if len(factors.recursion) > 1:
        x = signal.lfilter([1.0], factors.recursion, x)
    return np.asarray(x)
