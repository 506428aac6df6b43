"""Mixtures of events, against sums angle by angle."""

import numpy as np
import pytest

from dpfast.design.mimo.event_atoms import EventAtoms, EventMixture, atoms_at_once, even_mixture

OMEGA = np.linspace(0, np.pi, 4001)


def summed(mixture, omega):
    """Σ λ a a*, of a = (what is added to an input, at its time)."""
    every = zip(*mixture.atoms, mixture.shares, strict=True)
    spread = [(share, changes * np.exp(-1j * omega[:, None] * times)) for changes, times, share in every]
    return sum(share * a[:, :, None] * a[:, None].conj() for share, a in spread)


def moving(seed, m):
    rng = np.random.default_rng(seed)
    changes, n = rng.uniform(0.5, 2, m), 6
    still = even_mixture(atoms_at_once(changes, "each_input_same_time"))
    others = EventAtoms(rng.choice([-1.0, 1.0], (n, m)) * changes, rng.integers(0, 12, (n, m)))
    return still.extended(others), changes


@pytest.mark.parametrize("m", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_a_mixture_is_the_sum_of_its_events(seed, m):
    mixture, changes = moving(seed, m)
    np.testing.assert_allclose(mixture.at(OMEGA), summed(mixture, OMEGA), atol=1e-12)
    assert mixture.shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(np.trace(mixture.at(OMEGA), axis1=1, axis2=2).real, (changes**2).sum())


def test_events_at_one_time_have_one_mixture():
    mixture = even_mixture(atoms_at_once(np.array([1.0, 2.0]), "one_input"))
    np.testing.assert_array_equal(mixture.at(OMEGA), [np.diag([0.5, 2.0])])
    skewed = EventMixture(mixture.atoms, np.array([0.9, 0.1]))
    np.testing.assert_allclose(skewed.at(OMEGA), [np.diag([0.9, 0.4])])
