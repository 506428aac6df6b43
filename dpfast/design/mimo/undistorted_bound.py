"""What no mechanism of several streams goes below that does not distort: the worst mixture of what a person may do."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from scipy import linalg

from dpfast._support.validation import Array, Complex
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.quadrature import QuadratureGrid, graded_grid
from dpfast.filters.warped_circle import choose_circle
from dpfast.privacy.sensitivity_of_matrix import Adjacency

_MOST_SIGNED = 8  # inputs of which all signs are mixed
_STEPS = 400
_RELAXATION = 3.0  # of a step: many signs take several times more plain ones
_NODES = 512  # of the circle, at the least, on which a mixture is looked for
_REACHED = 1e-7  # relative: the bound of few nodes is that near to the largest of its kind
_SINGULAR = 1e-14  # of the largest eigenvalue: a mixture that hardly has a direction


class WorstMixture(NamedTuple):
    """A bound that no mechanism without distortion goes below, and the mixture of a person's changes that gives it.

    Attributes
    ----------
    bound : float
        Of MSE/κ².
    mixture : array, (m, m)
        Φ, of what a person may change at one time.
    """

    bound: float
    mixture: Array


def undistorted_bound(target: FilterMatrix, changes: Array, adjacency: Adjacency) -> WorstMixture:
    r"""Find a lower bound of MSE/κ² for every mechanism with Gaussian noise and H G = F, of one event a person.

    With Φ a mixture of a aᵀ over what a person may do, a, Δ² ≥ <tr ΦG*G>, and by Cauchy and Schwarz
    MSE/κ² ≥ <tr ΦG*G><tr F(G*G)⁻¹F*> ≥ <‖FΦ^½‖_*>², the nuclear norm. The weights of the mixture are multiplied by
    what each a changes, until the bound is as large as it gets. For "each_input" times are taken as equal, which
    some person may do: the bound holds, and is the loosest.

    Parameters
    ----------
    target : FilterMatrix
        F.
    changes : array, (m,)
        The largest change of each input.
    adjacency : {"one_input", "each_input_same_time", "each_input"}
    """
    entries = [entry for row in target.rows for entry in row]
    grid = choose_circle(
        target.poles, target.order, size=_NODES
    ).grid  # any mixture gives a bound: few nodes find a good one
    mixture = _worst_mixture(event_atoms(changes, adjacency), grid, target.response(grid.omega))
    fine = graded_grid(target.poles, kinks=np.concatenate([entry.zeros for entry in entries]), degree=target.order)
    sizes = np.linalg.svd(target.response(fine.omega) @ _root(mixture), compute_uv=False)
    return WorstMixture(fine.mean(sizes.sum(axis=1)) ** 2, mixture)


def _worst_mixture(atoms: Array, grid: QuadratureGrid, response: Complex) -> Array:
    shares = np.full(len(atoms), 1 / len(atoms))
    best, worst = 0.0, np.eye(atoms.shape[1])
    for _ in range(_STEPS):
        mixture = (atoms.T * shares) @ atoms
        values, vectors = np.linalg.eigh(mixture)
        _, sizes, right = np.linalg.svd(response @ _root(mixture), full_matrices=False)
        bound = grid.mean(sizes.sum(axis=1))
        best, worst = max((best, worst), (bound, mixture), key=lambda x: x[0])
        side = right @ (vectors / np.sqrt(np.maximum(values, _SINGULAR * values[-1]))) @ vectors.T
        x = np.einsum("w,wri,wr,wrj->ij", grid.weights, side.conj(), sizes, side).real
        changed = np.einsum("pi,ij,pj->p", atoms, x, atoms)
        mean = shares @ changed
        if changed.max() <= mean * (1 + _REACHED):
            break
        power = _RELAXATION if bound >= best else 1.0  # the plain step never makes it smaller
        shares = np.maximum(shares * (changed / mean) ** power, np.finfo(float).tiny)
        shares /= shares.sum()
    return worst


def _root(mixture: Array) -> Array:
    values, vectors = np.linalg.eigh(mixture)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T)


def event_atoms(changes: Array, adjacency: Adjacency) -> Array:
    """Return what a person may change at one time, which spans all directions, a row each."""
    m = len(changes)
    if adjacency == "one_input":
        return np.diag(changes)
    if m > _MOST_SIGNED:  # some of all signs, whose columns are orthogonal
        rows: Array = linalg.hadamard(1 << (m - 1).bit_length()).astype(np.float64)
        return rows[:, :m] * changes
    signs = np.array([(1, *x) for x in itertools.product((1, -1), repeat=m - 1)], dtype=np.float64)
    return signs * changes
