"""Noise of releases from a seed, for tests whose assertions hold for most draws only: so they hold for this one."""

import numpy as np

from dpfast.releases import noise


def seed_noise(monkeypatch, seed):
    """Draws the random words of releases from a generator of NumPy's instead of the operating system."""
    rng = np.random.default_rng(seed)

    def fill(words):
        words[:] = rng.integers(0, 2**32, len(words), np.uint32)

    monkeypatch.setattr(noise, "_fill", fill)
