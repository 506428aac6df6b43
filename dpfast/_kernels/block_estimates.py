"""A periodic Kalman filter behind block sums runs here on live data: a few steps at a time, from a state that is kept.

Numbers and the order of operations are those of ``block_sums``, one stream after the other and without multiply-adds,
so that the bits do not depend on how a stream is cut.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from dpfast._kernels._jit import kernel

Array = NDArray[Any]


class LivePlan(NamedTuple):
    """Lay out a periodic Kalman filter in arrays, with an axis for each thing that they are counted by."""

    advance: Array  # (slots, states, states)
    gains: Array  # (releases of a cycle, levels, states)
    weights: Array  # (samples of a cycle, states + levels · later releases)
    slot: int
    phase: int
    lag: int

    @property
    def n_kept(self) -> int:
        """Count the releases whose states and innovations are kept: those of late estimates, and two more."""
        return -(-self.lag // self.slot) + 2


@kernel
def estimate_live(
    advance: Array,
    gains: Array,
    weights: Array,
    slot: int,
    phase: int,
    lag: int,
    position: int,
    v: Array,
    due: Array,
    states: Array,
    innovations: Array,
    out: Array,
) -> None:
    """Estimate the steps from a position on, each `lag` late, and bring the state behind them.

    v : (streams, levels, steps), about the mean. due : (levels, steps), whether it is released. states : (streams,
    kept, states). innovations : (streams, kept, levels). out : (streams, steps).
    """
    n_streams, n_levels, n_steps = v.shape
    n_kept, n = states.shape[1], states.shape[2]
    sums, n_later = n - n_levels, n_kept - 2
    for stream in range(n_streams):
        for t in range(n_steps):
            now = position + t + 1 + phase
            if now % slot == 0:
                turn = now // slot
                here, before = turn % n_kept, (turn - 1) % n_kept
                step, gain = advance[(turn - 1) % advance.shape[0]], gains[(turn - 1) % gains.shape[0]]
                for i in range(n):
                    total = 0.0
                    for j in range(n):
                        total += step[i, j] * states[stream, before, j]
                    states[stream, here, i] = total
                for level in range(n_levels):
                    shown = 0.0
                    if due[level, t]:
                        shown = v[stream, level, t] - states[stream, here, sums + level]
                        for i in range(n):
                            states[stream, here, i] += gain[level, i] * shown
                    innovations[stream, here, level] = shown
                for level in range(n_levels):
                    if due[level, t]:
                        states[stream, here, sums + level] = 0.0
            out[stream, t] = 0.0
            if position + t >= lag:
                wanted = now - lag
                turn, row = wanted // slot, weights[wanted % weights.shape[0]]
                total = 0.0
                for i in range(n):
                    total += row[i] * states[stream, turn % n_kept, i]
                for level in range(n_levels):
                    for k in range(n_later):
                        if (turn + 1 + k) * slot <= now:  # others are not there yet
                            total += row[n + level * n_later + k] * innovations[stream, (turn + 1 + k) % n_kept, level]
                out[stream, t] = total
