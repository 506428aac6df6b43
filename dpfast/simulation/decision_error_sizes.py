"""How large the errors are that wrong decisions make: the least, and the largest possible."""

from __future__ import annotations

import functools

import numpy as np

from dpfast._kernels import simulation as kernels
from dpfast.filters.filter import Filter
from dpfast.simulation.intervals import ErrorSizes
from dpfast.simulation.mixed_study import AnyCompiledMechanism

# --- decisions ------------------------------------------------------------------------------------


def input_range(source: kernels.SignalSource) -> tuple[float, float]:
    """Return the least and the largest input that a source can give."""
    if source.levels is None:
        return -np.inf, np.inf
    return float(source.levels.min()), float(source.levels.max())


def error_sizes(
    compiled: AnyCompiledMechanism, inputs: tuple[float, float], n_samples: int, n_streams: int = 1
) -> ErrorSizes | None:
    """Compute the sizes of errors that decisions make, in the mean over so many streams; None without decisions.

    Parameters
    ----------
    compiled : AnyCompiledMechanism
    inputs : tuple of float
        The least and the largest input.
    n_samples : int
        Counted samples of each stream.
    n_streams : int
        The streams over which the mean is taken.
    """
    chain = compiled.as_chain()
    if chain is None or chain.receiver.equalizer is None:
        return None
    levels = np.sort(chain.receiver.equalizer.levels)
    if len(levels) < 2:
        return None
    energy, gain = _response_sizes(*(x.tobytes() for x in chain.receiver.target), n_samples)
    # before the first input there is none: zero, when centred
    farthest = max(abs(x - level) for x in (*inputs, compiled.centre) for level in compiled.centre + levels[[0, -1]])
    smallest = float(np.diff(levels).min() / 2) ** 2 * energy / (n_streams * n_samples)
    return ErrorSizes(smallest, float(farthest * gain) ** 2)


@functools.lru_cache(maxsize=256)
def _response_sizes(taps: bytes, sections: bytes, recursion: bytes, n_samples: int) -> tuple[float, float]:
    """Compute of a filter's impulse response the energy of the first samples, and the sum of the sizes of all."""
    taps_, sections_, recursion_ = (np.frombuffer(x) for x in (taps, sections, recursion))
    target = Filter.from_factors(taps_, sections_.reshape(-1, 6), recursion_)
    return float(np.sum(target.impulse(n_samples) ** 2)), target.impulse_norm(1)
