"""Compute the sizes of errors that may be too rare to be seen, of wrong decisions or of noise that mostly is zero."""

from __future__ import annotations

import functools

import numpy as np

from dpfast._kernels import signal_sources
from dpfast._kernels.factors import Factors
from dpfast.filters.filter import Filter
from dpfast.filters.impulse_response import impulse_response
from dpfast.simulation.intervals import ErrorSizes
from dpfast.simulation.mixed_study import AnyCompiledMechanism


def input_range(source: signal_sources.SignalSource) -> tuple[float, float]:
    """Return the least and the largest input that a source can give."""
    if source.levels is None:
        return -np.inf, np.inf
    return float(source.levels.min()), float(source.levels.max())


def error_sizes(
    compiled: AnyCompiledMechanism, inputs: tuple[float, float], n_samples: int, n_streams: int = 1
) -> ErrorSizes | None:
    """Compute the sizes of errors that may be rare, in the mean over so many streams; None where there are none.

    They are those of wrong decisions, or of noise on the integers that is not zero less than once in such a mean: what
    a draw of it does is told by the target, which the receiver then hardly differs from.

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
    sizes = _decision_sizes(compiled, inputs) or noise_sizes(compiled, n_streams * n_samples)
    if sizes is None:
        return None
    least, largest = sizes
    energy, gain = _target_sizes(compiled, n_samples)
    return ErrorSizes(least**2 * energy / (n_streams * n_samples), (largest * gain) ** 2)


def _target_sizes(compiled: AnyCompiledMechanism, n_samples: int) -> tuple[float, float]:
    """Compute of the target's impulse response the energy of the counted samples, and the sum of the sizes of all."""
    chain, matrices = compiled.as_chain(), compiled.as_matrices()
    if matrices is not None:
        response = matrices.target
    else:
        assert chain is not None  # it is one or the other
        if chain.horizon is None:
            return response_sizes(chain.receiver.target, n_samples)
        response = impulse_response(chain.receiver.target, n_samples)
    return float(np.sum(response**2)), float(np.abs(response).sum())


def _decision_sizes(compiled: AnyCompiledMechanism, inputs: tuple[float, float]) -> tuple[float, float] | None:
    """Return half of the least error of a decision, and the largest; None without decisions."""
    chain = compiled.as_chain()
    if chain is None or chain.receiver.equalizer is None:
        return None
    levels = np.sort(chain.receiver.equalizer.levels)
    if len(levels) < 2:
        return None
    # before the first input there is none: zero, when centred
    farthest = max(abs(x - level) for x in (*inputs, compiled.centre) for level in compiled.centre + levels[[0, -1]])
    return float(np.diff(levels).min() / 2), float(farthest)


def noise_sizes(compiled: AnyCompiledMechanism, n_draws: int) -> tuple[float, float] | None:
    """Return half of the least step of noise, and twice the largest; None where some of so many draws are no zero."""
    steps = compiled.noise_steps
    if steps is None or steps.chance * n_draws >= 1:
        return None
    return steps.least / 2, 2 * steps.largest


def response_sizes(target: Factors, n_samples: int) -> tuple[float, float]:
    """Compute of a filter's impulse response the energy of the first samples, and the sum of the sizes of all."""
    return _response_sizes(*(x.tobytes() for x in target), n_samples)


@functools.lru_cache(maxsize=256)
def _response_sizes(taps: bytes, sections: bytes, recursion: bytes, n_samples: int) -> tuple[float, float]:
    """Compute of a filter's impulse response the energy of the first samples, and the sum of the sizes of all."""
    taps_, sections_, recursion_ = (np.frombuffer(x) for x in (taps, sections, recursion))
    target = Filter.from_factors(taps_, sections_.reshape(-1, 6), recursion_)
    return float(np.sum(target.impulse(n_samples) ** 2)), target.impulse_norm(1)
