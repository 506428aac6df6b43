"""Studies of compiled chains and matrix mechanisms side by side, on the same inputs and unit noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from dpfast._kernels import compiled_mechanisms, signal_sources
from dpfast._kernels import simulation as kernels
from dpfast._support.validation import Array
from dpfast.mechanisms import compiled_matrix_mechanism
from dpfast.mechanisms.compiled_matrix_mechanism import CompiledMatrixMechanism

AnyCompiledMechanism = compiled_mechanisms.CompiledChain | CompiledMatrixMechanism


class MixedStudy(NamedTuple):
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
        compiled, over_horizon = self._split_kinds()
        length = self._compiled_study(compiled).length if compiled else 0
        return length + self.n_samples * len(over_horizon)

    def squared_errors(
        self, n_streams: int, seed: int, n_threads: int, advance: Callable[[int], None] | None = None, first: int = 0
    ) -> Array:
        """Simulate the mean squared errors (streams, mechanisms + compared) of the streams first, first + 1, ... .

        Behind them are the mean squared differences of those that are compared. `advance` hears of the samples that are
        done. Matrix mechanisms are computed in float64.
        """
        n_mechanisms = len(self.mechanisms)
        errors = np.empty((n_streams, n_mechanisms + len(self.compared)))
        run = n_streams, seed, n_threads, advance, first
        compiled, over_horizon = self._split_kinds()
        if compiled:
            behind = range(n_mechanisms, n_mechanisms + len(self.compared))
            errors[:, [*compiled, *behind]] = kernels.squared_errors(self._compiled_study(compiled), *run)
        if over_horizon:
            matrices = tuple(x for each in self.mechanisms if (x := each.as_matrices()) is not None)
            errors[:, over_horizon] = compiled_matrix_mechanism.squared_errors(self.source, matrices, *run)
        return errors

    def _split_kinds(self) -> tuple[list[int], list[int]]:
        """Return the places of the chains of filters, and those of the others."""
        over_horizon = [i for i, x in enumerate(self.mechanisms) if x.as_matrices() is not None]
        return [i for i in range(len(self.mechanisms)) if i not in over_horizon], over_horizon

    def _compiled_study(self, compiled: Sequence[int]) -> kernels.CompiledStudy:
        chains = tuple(x for i in compiled if (x := self.mechanisms[i].as_chain()) is not None)
        places = tuple(compiled.index(i) for i in self.compared)
        return kernels.CompiledStudy(self.source, chains, self.burn_in, self.n_samples, self.dtype, places)
