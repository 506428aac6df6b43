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


def moving(seed, m, far=12):
    rng = np.random.default_rng(seed)
    changes, n = rng.uniform(0.5, 2, m), 6
    still = even_mixture(atoms_at_once(changes, "each_input_same_time"))
    others = EventAtoms(rng.choice([-1.0, 1.0], (n, m)) * changes, rng.integers(0, far, (n, m)))
    return still.extended(others), changes


@pytest.mark.parametrize("m", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_a_mixture_is_a_sum_that_does_not_go_below_its_floor(seed, m):
    mixture, changes = moving(seed, m)
    np.testing.assert_allclose(mixture.at(OMEGA), summed(mixture, OMEGA), atol=1e-12)
    assert mixture.shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(np.trace(mixture.at(OMEGA), axis1=1, axis2=2).real, (changes**2).sum())
    floor = mixture.floor()
    least = np.linalg.eigvalsh(mixture.at(OMEGA) - floor).min()
    assert -1e-12 < least
    scaled = np.linalg.eigvalsh(floor / np.outer(changes, changes)).min()
    nearest = np.linalg.eigvalsh(mixture.at(OMEGA) / np.outer(changes, changes)).min()
    assert 0.9 * nearest < scaled + 0.02
    assert scaled > 0


def test_events_far_apart_are_left_out_of_the_floor():
    mixture, _ = moving(1, 3, far=200)
    near = np.ptp(mixture.atoms.delays, axis=1) <= 64
    assert not near.all()
    assert np.linalg.eigvalsh(mixture.at(OMEGA) - mixture.floor()).min() > -1e-12


def test_a_floor_is_close_to_the_least_of_a_mixture_that_is_nearly_singular():
    """Φ = [[1, c], [c*, 1]] of events as far apart as are counted, which nearly agree at one angle."""
    changes = np.array([[1.0, 1], [1, 1], [1, -1], [1, 1], [1, -1]])
    delays = np.array([[0, 1], [0, 64], [0, 2], [0, 0], [0, 0]])
    shares = np.array([0.6, 0.25, 0.15, 1e-5, 1e-5]) / 1.00002
    mixture = EventMixture(EventAtoms(changes, delays), shares)
    nearest = np.linalg.eigvalsh(mixture.at(np.linspace(0, np.pi, 2**18))).min()
    assert 1e-4 < nearest < 1e-3  # that of the events at one time alone is 2e-5
    assert 0.6 * nearest < np.linalg.eigvalsh(mixture.floor())[0] <= nearest * (1 + 1e-9)


def test_events_at_one_time_have_one_mixture():
    mixture = even_mixture(atoms_at_once(np.array([1.0, 2.0]), "one_input"))
    np.testing.assert_array_equal(mixture.at(OMEGA), [np.diag([0.5, 2.0])])
    np.testing.assert_array_equal(mixture.floor(), np.diag([0.5, 2.0]))
    skewed = EventMixture(mixture.atoms, np.array([0.9, 0.1]))
    np.testing.assert_allclose(skewed.floor(), np.diag([0.9, 0.4]))
