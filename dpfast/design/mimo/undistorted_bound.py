"""What no mechanism of several streams goes below that does not distort: the worst mixture of what a person may do."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.design.mimo.channel_weights import SampledChannels
from dpfast.design.mimo.event_atoms import EventMixture, atoms_at_once, even_mixture
from dpfast.design.mimo.mixing_norm import MixingNorm
from dpfast.design.mimo.mixing_prefilter import MixingPrefilter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.quadrature import graded_grid
from dpfast.filters.warped_circle import choose_circle
from dpfast.privacy.sensitivity_of_matrix import Adjacency

_SMOOTHED = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)  # a share of singular values, from stage to stage
_SLACK = 0.3  # of that: events that change the more are taken in
_MOST_ROUNDS = 12  # of a stage, in which events are taken in
_NODES = 512  # of the circle, at the least, on which a mixture is looked for
_KEPT = 64  # bounds, each with a mixture of some thousands of numbers


class WorstMixture(NamedTuple):
    """A bound that no mechanism without distortion goes below, and the mixture of a person's changes that gives it.

    Attributes
    ----------
    bound : float
        Of MSE/κ².
    mixture : EventMixture
        Φ, of what a person may change.
    """

    bound: float
    mixture: EventMixture


def undistorted_bound(target: FilterMatrix, changes: Array, adjacency: Adjacency, goal: float) -> WorstMixture:
    r"""Find a lower bound of MSE/κ² for every mechanism with Gaussian noise and H G = F, of one event a person.

    With Φ a mixture of a a* over what a person may do, a, Δ² ≥ <tr ΦG*G>, and by Cauchy and Schwarz
    MSE/κ² ≥ <tr ΦG*G><tr F(G*G)⁻¹F*> ≥ <‖FΦ^½‖_*>², the nuclear norm. Any mixture gives a bound. The largest is looked
    for on few nodes, and for "each_input" among more and more events at times that differ.

    Parameters
    ----------
    target : FilterMatrix
        F, whose output should be published.
    changes : array, (m,)
        The largest change of each input.
    adjacency : {"one_input", "each_input_same_time", "each_input"}
    goal : float
        How far, relatively, it may be below the largest as events at other times are left out.
    """
    return _find_bound(target, tuple(changes.tolist()), adjacency, goal)


@functools.lru_cache(maxsize=_KEPT)
def _find_bound(target: FilterMatrix, sizes: tuple[float, ...], adjacency: Adjacency, goal: float) -> WorstMixture:
    """Find it once: designs of other forms, and for other epsilons, ask for the bound of the same target again."""
    changes = np.array(sizes)
    circle = choose_circle(target.poles, target.order, size=_NODES)
    sampled = target.response(circle.grid.omega)
    problem = SampledChannels(circle, sampled, np.eye(len(changes), dtype=np.complex128)[None], 1.0, changes, adjacency)
    mixture = _worst_mixture(problem, goal)
    zeros = np.concatenate([entry.zeros for row in target.rows for entry in row])
    fine = graded_grid(target.poles, kinks=zeros, degree=target.order + int(mixture.atoms.delays.max()))
    gains = np.linalg.svd(target.response(fine.omega) @ np.linalg.cholesky(mixture.at(fine.omega)), compute_uv=False)
    return WorstMixture(fine.mean(gains.sum(axis=1)) ** 2, mixture)


def _worst_mixture(problem: SampledChannels, goal: float) -> EventMixture:
    """Smooth less and less, and take in the events that change more than the mixture."""
    mixture, k = even_mixture(atoms_at_once(problem.changes, problem.adjacency)), problem.wanted
    for share in _SMOOTHED:
        for _ in range(_MOST_ROUNDS):
            norm = MixingNorm(problem, mixture.atoms)
            point = norm.at(k, mixture.shares, norm.soften(share * norm.whole(k, mixture.shares)))
            mixture = point.events
            missed = MixingPrefilter(problem, mixture).missed_events(k, max(_SLACK * share, goal))
            if not len(missed.changes):
                break
            mixture = mixture.extended(missed)
    return mixture
