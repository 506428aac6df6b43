"""What one event of a person may change: which inputs, by how much, and when; and mixtures of such events."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array, Complex
from dpfast.privacy.sensitivity_of_matrix import Adjacency

_MOST_SIGNED = 8  # inputs of which all signs are mixed
_LITTLE, _IDLE = 0.2, 0.002  # of all shares, and of their mean: of events with ten times that some come back


class EventAtoms(NamedTuple):
    """Events that a person may have, a row each.

    Attributes
    ----------
    changes : array, (n_atoms, m)
        What is added to each input.
    delays : array of int, (n_atoms, m)
        When, each at least 0.
    """

    changes: Array
    delays: Array

    def response(self, omega: Array) -> Complex:
        """Return their transforms a, (n_atoms, angles, m); of events at one time (n_atoms, 1, m)."""
        if not self.delays.any():
            return np.asarray(self.changes[:, None, :], dtype=np.complex128)
        return np.asarray(self.changes[:, None] * np.exp(-1j * omega[:, None] * self.delays[:, None]))


class EventMixture(NamedTuple):
    """Events of a person with shares that sum to one.

    Attributes
    ----------
    atoms : EventAtoms
    shares : array, (n_atoms,)
    """

    atoms: EventAtoms
    shares: Array

    def extended(self, others: EventAtoms) -> EventMixture:
        """Return one that has a little of others, too, and no longer those at times of their own that hardly count."""
        kept = ~self.atoms.delays.any(axis=1) | (self.shares > _IDLE * self.shares.mean())
        atoms = EventAtoms(*(np.vstack([x[kept], y]) for x, y in zip(self.atoms, others, strict=True)))
        little = np.full(len(others.changes), _LITTLE * self.shares.sum() / len(others.changes))
        return EventMixture(atoms, np.concatenate([(1 - _LITTLE) * self.shares[kept], little]))

    def at(self, omega: Array) -> Complex:
        """Return Φ = Σ λ a a*, (angles, m, m); of events at one time one for all angles, (1, m, m)."""
        return mix(self.atoms.response(omega), self.shares)


def mix(atoms: Complex, shares: Array) -> Complex:
    """Return Σ λ a a*, (angles, m, m), of atoms (n_atoms, angles, m)."""
    weighted = np.moveaxis(shares[:, None, None] * atoms, 0, -1)
    return np.asarray(weighted @ np.moveaxis(atoms.conj(), 0, 1), dtype=np.complex128)


def atoms_at_once(changes: Array, adjacency: Adjacency) -> EventAtoms:
    """Return what a person may change at one time, which spans all directions."""
    m = len(changes)
    if adjacency == "one_input":
        rows = np.diag(changes)
    elif m > _MOST_SIGNED:  # some of all signs, whose columns are orthogonal
        signs: Array = linalg.hadamard(1 << (m - 1).bit_length()).astype(np.float64)
        rows = signs[:, :m] * changes
    else:
        rows = np.array([(1, *x) for x in itertools.product((1, -1), repeat=m - 1)], dtype=np.float64) * changes
    return EventAtoms(rows, np.zeros(rows.shape, dtype=np.int64))


def even_mixture(atoms: EventAtoms) -> EventMixture:
    """Return equal shares of all."""
    n = len(atoms.changes)
    return EventMixture(atoms, np.full(n, 1 / n))
