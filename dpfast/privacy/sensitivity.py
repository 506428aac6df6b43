"""Sensitivity of a filtered signal to several events of one person."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._support.validation import Array
from dpfast.filters.filter import Filter

_NEGLIGIBLE = 1e-14  # where impulse responses are cut; what is cut is bounded and added


def several_events(
    max_events: int, min_separation: int, largest: NDArray[Any], beyond: Any, energy: Any, peak: Any
) -> Any:
    """Return the squared sensitivity to several events of size one, exactly where all that is given are integers.

    Parameters
    ----------
    largest : array
        sup_{τ' ≥ τ} |r(τ')| for τ = 0, 1, ...
    beyond : number
        A bound of it for what comes after those.
    energy, peak : number
        ‖G‖₂² and ‖G‖_∞².
    """
    m = max_events
    separation = min(min_separation, len(largest))
    n_lags = min(m - 1, (len(largest) - 1) // separation)  # those that are not beyond
    lags = np.arange(1, n_lags + 1)
    near = (m - lags).astype(largest.dtype) @ largest[lags * separation] if n_lags else 0
    far = (m - 1 - n_lags) * (m - n_lags) // 2 * beyond  # the sum of m - l over the other lags
    return min(m * energy + 2 * (near + far), m * m * energy, m * peak)


def largest_autocorrelations(prefilter: Filter, norm: float) -> tuple[Array, float]:
    """Return sup_{τ' ≥ τ} |r(τ')| for τ = 0, 1, ..., n - 1, and a bound on it for τ ≥ n.

    What the n samples of the impulse response miss is at most ‖g‖·‖g from n on‖ (Cauchy-Schwarz).
    """
    settled = prefilter.settling_time(_NEGLIGIBLE)
    g = prefilter.impulse(2 * settled)
    missed = norm * float(np.linalg.norm(g[settled:]))  # more than what comes after 2 * settled
    size = 1 << (2 * len(g) - 1).bit_length()
    r = np.abs(np.fft.irfft(np.abs(np.fft.rfft(g, size)) ** 2)[: len(g)])
    return np.maximum.accumulate(r[::-1])[::-1] + missed, missed
