"""Sums over all noises of a tree, against convolutions term by term, and where slacks differ much between levels."""

import math

import numpy as np
import pytest
from scipy import signal

from dpfast.privacy.integer_noise import tree_sums

SIZE = 56  # of φ, beyond which the law has nothing


def by_convolution(rate, branches, slacks):
    """log Σ exp(-rate φ) and the variance of the sum of all values, from tables of (s, φ) without any transform."""
    x = np.arange(-SIZE, SIZE + 1)
    table = np.where(np.abs(x)[:, None] == np.arange(SIZE + 1), np.exp(-rate * np.abs(x))[:, None], 0.0)
    for k, slack in zip(branches, slacks, strict=True):
        together = table
        for _ in range(k - 1):
            together = signal.convolve2d(together, table)
        s, t = np.arange(together.shape[0]) - together.shape[0] // 2, np.arange(together.shape[1])
        phi = np.maximum(np.abs(s)[:, None], t - slack)
        kept = (np.abs(s)[:, None] <= SIZE) & (phi <= SIZE)
        table = np.zeros((2 * SIZE + 1, SIZE + 1))
        weights = (together * np.exp(-rate * (phi - t)))[kept]
        np.add.at(table, (np.broadcast_to(s[:, None], kept.shape)[kept] + SIZE, phi[kept]), weights)
    return math.log(table.sum()), float(table.sum(axis=1) @ x**2 / table.sum())


@pytest.mark.parametrize(
    ("odds", "branches", "slacks"),
    [(3, (3, 3), (1, 18)), (20, (3, 2), (8, 1)), (8, (2, 3), (1, 30))],
)
def test_sums_are_those_of_tables_term_by_term(odds, branches, slacks):
    rate = math.log(odds)
    sums = tree_sums.solve(rate, branches, slacks)
    total, variance = by_convolution(rate, branches, slacks)
    assert sums.log_total == pytest.approx(total, abs=1e-9)
    root = sums.laws[-1].sum(axis=1)
    assert root @ np.arange(len(root)) ** 2 == pytest.approx(variance, rel=1e-8)


def trees():
    """A tree whose tables grew without end once, and others of all kinds."""
    yield math.log(3), (3, 3, 3, 3, 3, 3), (1, 18, 15, 12, 12, 10)
    rng = np.random.default_rng(1)
    for _ in range(40):
        n = rng.integers(1, 6)
        branches = tuple(rng.integers(2, (8, 6, 5, 4, 3)[n - 1] + 1, n).tolist())
        slacks = tuple(np.floor(rng.exponential(rng.choice([1, 5, 20]), n)).astype(int).tolist())
        yield math.exp(rng.uniform(0.0, 2.0)), branches, slacks


@pytest.mark.parametrize(("rate", "branches", "slacks"), [*trees()])
def test_tables_are_large_enough_at_once_or_nearly(rate, branches, slacks, monkeypatch):
    scales, climb = [], tree_sums.climb
    monkeypatch.setattr(tree_sums, "climb", lambda *x: scales.append(x[4]) or climb(*x))
    tree_sums.solve(rate, branches, slacks, tree_sums.COARSE)
    assert max(scales) <= 1.5
