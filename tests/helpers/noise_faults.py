"""Samplers with a fault, planted where all releases draw their noise."""

import importlib
import tempfile
from pathlib import Path

import numpy as np

from dpfast.privacy.geometric_rate import GeometricRate
from dpfast.releases.audit.expected_laws import expect
from dpfast.releases.noise import Noise

DRAWING = ("audit.canary", "audit.all_attacks", "noise")


def plant(monkeypatch, fault, only=DRAWING):
    """Let all that draws noise draw it from another sampler; stores are made in memory."""
    for name in only:
        monkeypatch.setattr(importlib.import_module(f"dpfast.releases.{name}"), "Noise", fault)
    monkeypatch.setattr(tempfile, "tempdir", "/dev/shm" if Path("/dev/shm").is_dir() else None)


def made(change):
    """A sampler whose samples are changed."""

    class Changed(Noise):
        def __init__(self, law, *rest):
            super().__init__(law, *rest)
            self.rng, self.std, self.n_taken = np.random.default_rng(1), expect(law).std, 0

        def take(self, n):
            self.n_taken += 1
            return change(self, super().take(n))

    return Changed


def scaled(factor):
    return made(lambda self, z: np.rint(factor * z).astype(np.int64))


def repeated(distance):
    """Every value comes again so many steps later."""

    def change(self, z):
        blocks = np.arange(len(z)) // (2 * distance) * 2 * distance
        return z[np.minimum(blocks + np.arange(len(z)) % distance, len(z) - 1)]

    return made(change)


def halves(self, z):
    """The second of two streams gets what the first one got."""
    n = len(z) // 2
    return np.concatenate([z[:n], z[: len(z) - n]])


def some_zeros(self, z):
    return np.where(self.rng.random(len(z)) < 0.01, 0, z)


class Stuck(Noise):
    """Pushes of the same length get the same samples."""

    kept = None

    def take(self, n):
        fresh = super().take(n)
        if self.kept is None or len(self.kept) != n:
            self.kept = fresh
        return self.kept.copy()


class Seeded(Noise):
    """Two releases draw the same."""

    def __init__(self, law):
        super().__init__(law)
        self.rng, self.std = np.random.default_rng(1), expect(law).std

    def take(self, n):
        super().take(n)
        return np.rint(self.rng.normal(size=n) * self.std).astype(np.int64)


class Faster(Noise):
    """A geometric rate that is a tenth too large."""

    def __init__(self, law):
        super().__init__(GeometricRate(law.s * 10 // 9, law.j))


class SeededGeometric(Noise):
    """Two releases draw the same."""

    def __init__(self, law):
        super().__init__(law)
        self.rng, self.p = np.random.default_rng(1), -np.expm1(-float(law.per_step))

    def take(self, n):
        super().take(n)
        return self.rng.geometric(self.p, n) - self.rng.geometric(self.p, n)
