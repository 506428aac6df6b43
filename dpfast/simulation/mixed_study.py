"""Studies of compiled chains and matrix mechanisms side by side, on the same inputs and unit noise."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from dpfast._kernels import simulation as kernels
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.mechanisms import compiled_matrix_mechanism
from dpfast.mechanisms.compiled_matrix_mechanism import CompiledMatrixMechanism
from dpfast.simulation.intervals import ErrorSizes

AnyCompiledMechanism = kernels.CompiledMechanism | CompiledMatrixMechanism


class MixedStudy(NamedTuple):
    """A study of compiled mechanisms of both kinds: source, mechanisms, and the window in which errors count."""

    source: kernels.SignalSource
    links: tuple[AnyCompiledMechanism, ...]
    burn_in: int
    n_samples: int
    dtype: DTypeLike = np.float64

    @property
    def length(self) -> int:
        """The samples of a stream that are simulated, over all links."""
        compiled, over_horizon = self._split_links()
        length = self._compiled_study(compiled).length if compiled else 0
        return length + self.n_samples * len(over_horizon)

    def squared_errors(
        self, n_streams: int, seed: int, n_threads: int, advance: Callable[[int], None] | None = None, first: int = 0
    ) -> Array:
        """Simulate the mean squared errors (streams, links) of the streams first, first + 1, ... .

        `advance` hears of the samples that are done. Matrix mechanisms are computed in float64.
        """
        errors = np.empty((n_streams, len(self.links)))
        run = n_streams, seed, n_threads, advance, first
        compiled, over_horizon = self._split_links()
        if compiled:
            errors[:, compiled] = kernels.squared_errors(self._compiled_study(compiled), *run)
        if over_horizon:
            links = tuple(x for link in self.links if (x := link.as_matrices()) is not None)
            errors[:, over_horizon] = compiled_matrix_mechanism.squared_errors(self.source, links, *run)
        return errors

    def _split_links(self) -> tuple[list[int], list[int]]:
        """Return the places of the compiled links, and those of the others."""
        over_horizon = [i for i, x in enumerate(self.links) if x.horizon is not None]
        return [i for i in range(len(self.links)) if i not in over_horizon], over_horizon

    def _compiled_study(self, compiled: Sequence[int]) -> kernels.CompiledStudy:
        links = tuple(x for i in compiled if (x := self.links[i].as_chain()) is not None)
        return kernels.CompiledStudy(self.source, links, self.burn_in, self.n_samples, self.dtype)


# --- decisions ------------------------------------------------------------------------------------


def input_range(source: kernels.SignalSource) -> tuple[float, float]:
    """Return the least and the largest input that a source can give."""
    if source.levels is None:
        return -np.inf, np.inf
    return float(source.levels.min()), float(source.levels.max())


def error_sizes(
    link: AnyCompiledMechanism, inputs: tuple[float, float], n_samples: int, n_streams: int = 1
) -> ErrorSizes | None:
    """Compute the sizes of errors that decisions make, in the mean over so many streams; None without decisions.

    Parameters
    ----------
    link : AnyCompiledMechanism
    inputs : tuple of float
        The least and the largest input.
    n_samples : int
        Counted samples of each stream.
    n_streams : int
        The streams over which the mean is taken.
    """
    chain = link.as_chain()
    if chain is None or chain.receiver.equalizer is None:
        return None
    levels = np.sort(chain.receiver.equalizer.levels)
    if len(levels) < 2:
        return None
    energy, gain = _response_sizes(*(x.tobytes() for x in chain.receiver.target), n_samples)
    # before the first input there is none: zero, when centred
    farthest = max(abs(x - level) for x in (*inputs, link.centre) for level in link.centre + levels[[0, -1]])
    smallest = float(np.diff(levels).min() / 2) ** 2 * energy / (n_streams * n_samples)
    return ErrorSizes(smallest, float(farthest * gain) ** 2)


@functools.lru_cache(maxsize=256)
def _response_sizes(taps: bytes, sections: bytes, recursion: bytes, n_samples: int) -> tuple[float, float]:
    """Compute of a filter's impulse response the energy of the first samples, and the sum of the sizes of all."""
    taps_, sections_, recursion_ = (np.frombuffer(x) for x in (taps, sections, recursion))
    target = Filter.from_factors(taps_, sections_.reshape(-1, 6), recursion_)
    return float(np.sum(target.impulse(n_samples) ** 2)), target.impulse_norm(1)
