"""Lay the signals and states of a chain out among the rows of a bundle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.chain_program import SIGNAL, Records
from dpfast._kernels.tiles import ROWS

State = tuple[int | None, int]  # (signal, samples ago), or (None, number of a state)


class Signal:
    """A signal of a chain under construction, which knows how far back its readers look, and how it is kept."""

    def __init__(self, fixed_length: int = 0) -> None:
        self.history, self.fixed_length, self.block = 0, fixed_length, 0

    def look_back(self, n_rows: int) -> None:
        """Keep so many rows of the past for a reader."""
        self.history = max(self.history, n_rows)

    def length(self, chunk: int) -> int:
        """Count the rows of the present: whole blocks of readers that take several chunks, no shorter than the past."""
        if self.fixed_length:
            return self.fixed_length
        length = max(chunk, self.block)
        while length < self.history:
            length *= 2
        return length


def lay_out(signals: list[Signal], chunk: int) -> tuple[Records, int]:
    """Give every signal its rows, and return the row behind them."""
    records, row = list[tuple[int, int, int]](), 0
    for signal in signals:
        length = signal.length(chunk)
        records.append((row + signal.history, signal.history, 0 if signal.fixed_length else length))
        row += signal.history + length + ROWS - 1
    return np.array(records, SIGNAL).view(np.recarray), row


def past_rows(x: int, n: int) -> list[State]:
    """List the last samples of a signal, the newest first."""
    return [(x, k) for k in range(n)]


def find_rows(signals: Records, first_state: int, states: list[State], time: int) -> NDArray[np.int64]:
    """List the rows where the states before a time are."""
    newest = signals.row + (time - 1) % np.maximum(1, signals.length) if time else signals.row - 1
    places = [first_state + k if x is None else newest[x] - k for x, k in states]
    return np.array(places, dtype=np.int64)
