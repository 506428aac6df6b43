"""The factors that a filter is made of, as kernels take them, without what compiles these: a filter is made at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Factors(NamedTuple):
    """The factors of a filter: H(z) = taps(z) · Π sections(z) / recursion(z).

    The state of a filter is that of ``Filter.state_space``: past inputs of the taps, two states a section, past
    outputs of the recursion, the newest first.
    """

    taps: NDArray[np.float64]
    sections: NDArray[np.float64]  # (n, 6), leading denominator coefficient one
    recursion: NDArray[np.float64]  # monic

    @property
    def n_states(self) -> int:
        """The numbers that the running filter remembers."""
        return len(self.taps) + 2 * len(self.sections) + len(self.recursion) - 2


FilterRow = tuple[Factors | None, ...]  # of a matrix of filters, an entry for each input; None is zero
UNITY = Factors(np.ones(1), np.empty((0, 6)), np.ones(1))
