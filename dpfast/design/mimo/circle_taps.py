"""Taps of matrices on a warped circle, and their values at its nodes.

Values times the circle's unit are what taps have as a Fourier transform; a function is causal if its taps are.
"""

from __future__ import annotations

import numpy as np
from scipy import fft

from dpfast._support.validation import Array, Complex
from dpfast.filters.warped_circle import WarpedCircle


def causal_taps(circle: WarpedCircle, values: Complex) -> Array:
    """Return the taps (..., taps, p, m) of the causal part of values (..., nodes, p, m): half as many as steps."""
    taps = fft.irfft(values * circle.unit[:, None, None], axis=-3, overwrite_x=True)
    return np.asarray(taps[..., : circle.size // 2, :, :])


def at_nodes(circle: WarpedCircle, taps: Array) -> Complex:
    """Return the values (..., nodes, p, m) of taps (..., taps, p, m), of which there are no more than steps."""
    return np.asarray(fft.rfft(taps, circle.size, axis=-3) * (1 / circle.unit[:, None, None]))


def twice_as_many(taps: Array) -> Array:
    """Return taps with as many of 0 behind them."""
    return np.concatenate([taps, np.zeros_like(taps)])


def interpolate(circle: WarpedCircle, finer: WarpedCircle, values: Complex) -> Complex:
    """Interpolate values at the nodes of a circle (nodes, p, m) at those of one of more steps."""
    taps = fft.irfft(values * circle.unit[:, None, None], axis=0, overwrite_x=True)
    half = circle.size // 2
    taps[half] /= 2  # of which one half is at a positive time, and one at a negative
    spread = np.zeros((finer.size, *taps.shape[1:]))
    spread[: half + 1], spread[-half:] = taps[: half + 1], taps[half:]
    return at_nodes(finer, spread)
