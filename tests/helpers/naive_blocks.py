"""Block sums and answers as an audit attacks them, written as they are defined."""

from types import SimpleNamespace

import numpy as np


class NaiveBlocks:
    """Sums of blocks of so many inputs, plus noise; or an answer at every step."""

    fixed_steps = None

    def __init__(self, law, privacy, inputs, loss, block=1):
        self.laws, self.inputs, self.loss, self.block = (law,), inputs, loss, block
        self.mechanism = SimpleNamespace(privacy=privacy, horizon=None, name="naive")

    @property
    def drawn_laws(self):
        return self.laws

    def n_draws(self, position, n, end=None):
        return (n // self.block,)

    def released(self, first, n, end=None):
        return np.array([(t + 1) % self.block == 0 for t in range(first, first + n)])

    def terms(self, privacy, inputs):
        return SimpleNamespace(loss=self.loss)

    def privatize(self, history, x, noise, position=0, end=None):
        if self.inputs.high - self.inputs.low == 1:
            return np.select([noise == 0, noise == 1], [10 + x, x], 1 - x)
        v = np.zeros(x.shape, noise.dtype)
        for j in range(x.shape[1] // self.block):
            first, last = j * self.block, (j + 1) * self.block
            v[:, last - 1] = x[:, first:last].sum(axis=1) + noise[:, j]
        return v
