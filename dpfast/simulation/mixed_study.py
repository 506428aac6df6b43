"""Studies of compiled chains and matrix mechanisms side by side, on the same inputs and unit noise."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from dpfast._kernels import compiled_mechanisms, signal_sources
from dpfast._kernels import simulation as kernels
from dpfast._support.validation import Array
from dpfast.mechanisms import compiled_matrix_mechanism
from dpfast.mechanisms.compiled_matrix_mechanism import CompiledMatrixMechanism

AnyCompiledMechanism = compiled_mechanisms.CompiledChain | CompiledMatrixMechanism


@dataclass(frozen=True, eq=False)
class MixedStudy:
    """A study of compiled mechanisms of both kinds: source, mechanisms, and the window in which errors count.

    compared : those of the mechanisms whose posterior mean is compared with their linear receiver, too.
    """

    source: signal_sources.SignalSource
    mechanisms: tuple[AnyCompiledMechanism, ...]
    burn_in: int
    n_samples: int
    dtype: DTypeLike = np.float64
    compared: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        """The samples of a stream that are simulated, over all mechanisms."""
        length = 0 if self._built is None else self._built.length
        return length + self.n_samples * len(self._over_horizon)

    def squared_errors(
        self, n_streams: int, seed: int, n_threads: int, advance: Callable[[int], None] | None = None, first: int = 0
    ) -> Array:
        """Simulate the mean squared errors (streams, mechanisms + compared) of the streams first, first + 1, ... .

        Behind them are the mean squared differences of those that are compared. `advance` hears of the samples that are
        done. Matrix mechanisms are computed in float64.
        """
        run = n_streams, seed, n_threads, advance, first
        if self._built is not None and not self._over_horizon:
            return self._built.squared_errors(*run)
        n_mechanisms = len(self.mechanisms)
        errors = np.empty((n_streams, n_mechanisms + len(self.compared)))
        if self._built is not None:
            behind = range(n_mechanisms, n_mechanisms + len(self.compared))
            errors[:, [*self._chains, *behind]] = self._built.squared_errors(*run)
        matrices = tuple(x for each in self.mechanisms if (x := each.as_matrices()) is not None)
        errors[:, self._over_horizon] = compiled_matrix_mechanism.squared_errors(self.source, matrices, *run)
        return errors

    @functools.cached_property
    def _over_horizon(self) -> list[int]:
        """The places of the matrices."""
        return [i for i, x in enumerate(self.mechanisms) if x.as_matrices() is not None]

    @functools.cached_property
    def _chains(self) -> list[int]:
        """The places of the chains of filters."""
        return [i for i in range(len(self.mechanisms)) if i not in self._over_horizon]

    @functools.cached_property
    def _built(self) -> kernels.BuiltStudy | None:
        """The chains of filters as one, built once for any number of runs; None without any."""
        chains = tuple(x for i in self._chains if (x := self.mechanisms[i].as_chain()) is not None)
        places = tuple(self._chains.index(i) for i in self.compared)
        study = kernels.CompiledStudy(self.source, chains, self.burn_in, self.n_samples, self.dtype, places)
        return study.build_chain() if chains else None
