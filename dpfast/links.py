"""What a study simulates side by side: compiled chains and matrix mechanisms, on the same inputs and unit noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from dpfast import matrix
from dpfast._kernels import study as kernels
from dpfast._validate import Array
from dpfast.matrix import MatrixLink

Link = kernels.Link | MatrixLink


class Study(NamedTuple):
    """A source, mechanisms, and the window of the target's output in which errors count."""

    source: kernels.Source
    links: tuple[Link, ...]
    burn_in: int
    n_samples: int
    dtype: DTypeLike = np.float64

    @property
    def length(self) -> int:
        """Samples of a stream that are simulated, of all links."""
        compiled, over_horizon = self._sorted()
        length = self._chain(compiled).length if compiled else 0
        return length + self.n_samples * len(over_horizon)

    def squared_errors(
        self, n_streams: int, seed: int, n_threads: int, advance: Callable[[int], None] | None = None, first: int = 0
    ) -> Array:
        """Mean squared errors (streams, links) of the streams first, first + 1, ... .

        `advance` hears of the samples that are done. Matrix mechanisms are computed in float64.
        """
        errors = np.empty((n_streams, len(self.links)))
        run = n_streams, seed, n_threads, advance, first
        compiled, over_horizon = self._sorted()
        if compiled:
            errors[:, compiled] = kernels.squared_errors(self._chain(compiled), *run)
        if over_horizon:
            links = tuple(x for x in self.links if isinstance(x, MatrixLink))
            errors[:, over_horizon] = matrix.squared_errors(self.source, links, *run)
        return errors

    def _sorted(self) -> tuple[list[int], list[int]]:
        """Places of the compiled links, and of the others."""
        over_horizon = [i for i, x in enumerate(self.links) if isinstance(x, MatrixLink)]
        return [i for i in range(len(self.links)) if i not in over_horizon], over_horizon

    def _chain(self, compiled: Sequence[int]) -> kernels.Study:
        links = tuple(x for i in compiled if isinstance(x := self.links[i], kernels.Link))
        return kernels.Study(self.source, links, self.burn_in, self.n_samples, self.dtype)
