"""What no mechanism of several streams goes below that does not distort: the worst mixture of what a person may do."""

from __future__ import annotations

import itertools

import numpy as np

from dpfast._support.validation import Array
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.quadrature import graded_grid
from dpfast.privacy.sensitivity_of_matrix import Adjacency

_MOST_SIGNED = 8  # inputs of which all signs are mixed
_STEPS = 400
_REACHED = 1e-7  # relative: the bound is that near to the largest of its kind
_SINGULAR = 1e-14  # of the largest eigenvalue: a mixture that hardly has a direction


def undistorted_bound(target: FilterMatrix, changes: Array, adjacency: Adjacency) -> float:
    r"""Return a lower bound of MSE/κ² for every mechanism with Gaussian noise and H G = F, of one event a person.

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
    atoms = _atoms(changes, adjacency)
    grid = graded_grid(target.poles, degree=target.order)
    response = target.response(grid.omega)
    shares, best = np.full(len(atoms), 1 / len(atoms)), 0.0
    for _ in range(_STEPS):
        values, vectors = np.linalg.eigh((atoms.T * shares) @ atoms)
        root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        _, sizes, right = np.linalg.svd(response @ root, full_matrices=False)
        best = max(best, grid.mean(sizes.sum(axis=1)) ** 2)
        side = right @ (vectors / np.sqrt(np.maximum(values, _SINGULAR * values[-1]))) @ vectors.T
        x = np.einsum("w,wri,wr,wrj->ij", grid.weights, side.conj(), sizes, side).real
        changed = np.einsum("pi,ij,pj->p", atoms, x, atoms)
        mean = shares @ changed
        if changed.max() <= mean * (1 + _REACHED):
            break
        shares = np.maximum(shares * changed / mean, np.finfo(float).tiny)
        shares /= shares.sum()
    return best


def _atoms(changes: Array, adjacency: Adjacency) -> Array:
    """Return what a person may change at one time, which spans all directions, a row each."""
    m = len(changes)
    if adjacency == "one_input" or m > _MOST_SIGNED:  # of all signs, these are a mixture without their correlations
        return np.diag(changes) * (1.0 if adjacency == "one_input" else np.sqrt(m))
    signs = np.array([(1, *x) for x in itertools.product((1, -1), repeat=m - 1)], dtype=np.float64)
    return signs * changes
