"""Integer FIR filters run here: they stand between private data and exact noise. Sums are exact in any order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels._jit import kernel

Integers = NDArray[np.int64]
_BLOCK = 512  # samples whose sums stay in the first cache


@kernel
def add_filtered(taps: Integers, x: Integers, out: Integers) -> None:
    """Add Σ_k taps[k] x[t - k] to out (streams, n); x (streams, memory + n) has the len(taps) - 1 samples before."""
    memory = len(taps) - 1
    for stream in range(out.shape[0]):
        for first in range(0, out.shape[1], _BLOCK):
            last = min(first + _BLOCK, out.shape[1])
            for k in range(len(taps)):
                for t in range(first, last):
                    out[stream, t] += taps[k] * x[stream, memory + t - k]
