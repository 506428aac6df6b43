"""Design a mechanism for several streams: a prefilter for each input, or noise on inputs or outputs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast.design.mimo.channel_parts import (
    ChannelPart,
    PrefilterForm,
    channel_parts,
    least_shares,
    prefilters_of,
    reached_together,
    receivers_of,
    scaled,
)
from dpfast.design.mimo.column_gains import column_gain
from dpfast.design.mimo.undistorted_bound import undistorted_bound
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.ideal_mechanism import Ideal, IdealFamily
from dpfast.design.prefilter.objectives import Excess
from dpfast.design.prefilter.order_selection import FAR, best_realization, check_excess, realize
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.quadrature import graded_grid
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.privacy.privacy import Privacy

_ONE = Filter([1.0])
_GOAL = 1e-3  # of a bound that is not reached: how far it may be below the largest
_KEPT = 256  # prefilters of few states


class ForcedColumn(NamedTuple):
    """The prefilter of one input without distortion, of norm one.

    Attributes
    ----------
    prefilter : Filter
    excess : float
        How far its error is above the least, relatively.
    mse : float
        The least error, of noise of unit variance.
    """

    prefilter: Filter
    excess: float
    mse: float


def force_channels(
    target: FilterMatrix, privacy: Privacy, family: IdealFamily, form: PrefilterForm, tolerance: float, name: str
) -> ChannelsMechanism:
    """Design zero forcing, |G_k|² ∝ |F_k|₂ of what a channel is for; `family` is that of one stream.

    A person of "one_input" changes the channels of one input by Δ² = Σ d_i²‖G_k‖²; the others all channels together.
    """
    parts = channel_parts(target, check_channels(target, privacy), form)
    found = [force_column(column_gain(part.target, 0), family, tolerance) for part in parts]
    options = (("prefilter", form), ("tolerance", tolerance))
    return _undistorted(name, target, privacy, parts, [x.prefilter for x in found], [x.mse for x in found], options)


def force_column(gain: Filter, family: IdealFamily, tolerance: float) -> ForcedColumn:
    """Find the prefilter of one input, of which all outputs together have this gain; warn if it is not near enough."""
    found = _search_column(gain, family, tolerance)
    check_excess(found.excess, tolerance)
    return found


@functools.lru_cache(maxsize=_KEPT)
def _search_column(gain: Filter, family: IdealFamily, tolerance: float) -> ForcedColumn:
    """Search once: it depends on no privacy, and designs for other epsilons and persons come by the same gains."""
    problem = Problem(gain, None, 1.0)
    ideal = family(problem)
    found, g = best_realization(ideal.shape(problem), _excess_over(problem, ideal, tolerance), tolerance)
    return ForcedColumn(g, found, ideal.mse)


def realize_column(problem: Problem, ideal: Ideal, tolerance: float) -> Filter:
    """Return the prefilter of one input, of norm one, within the tolerance of an ideal."""
    return realize(ideal.shape(problem), tolerance=tolerance, excess=_excess_over(problem, ideal, tolerance))


def _excess_over(problem: Problem, ideal: Ideal, tolerance: float) -> Excess:
    return lambda g: ideal.excess(problem, g, FAR * tolerance)


def perturb_channels(target: FilterMatrix, privacy: Privacy, name: str) -> ChannelsMechanism:
    """Put noise on the inputs, as much on each as is best: G a gain for each input that is used."""
    parts = channel_parts(target, check_channels(target, privacy), "diagonal")
    ideals = [_energy_behind(part, _ONE) for part in parts]
    return _undistorted(name, target, privacy, parts, [_ONE] * len(parts), ideals, ())


def perturb_outputs(target: FilterMatrix, privacy: Privacy, name: str) -> ChannelsMechanism:
    """Put noise of the same deviation on every output: G = F, H = 1."""
    columns, (p, m) = check_channels(target, privacy), target.shape
    prefilter = FilterMatrix([[row[j] if j in columns else 0.0 for j in range(m)] for row in target.rows])
    return _make(name, target, privacy, prefilter, FilterMatrix.diagonal([1.0] * p), p * privacy.noise_std(target) ** 2)


def check_channels(target: FilterMatrix, privacy: Privacy) -> list[int]:
    """Refuse a target that is zero; return the inputs that it uses."""
    validation.instance("privacy", privacy, Privacy, "a Privacy")
    columns = [
        j for j in range(target.shape[1]) if max(np.abs(row[j].b).max() for row in target.rows) > validation.SMALLEST
    ]
    if not columns:
        raise DesignError(f"target must not be zero, nor have all coefficients below {validation.SMALLEST:g}: scale it")
    privacy.changes(target.shape[1])  # refuses what has no adjacency
    return columns


def _undistorted(
    name: str,
    target: FilterMatrix,
    privacy: Privacy,
    parts: Sequence[ChannelPart],
    filters: Sequence[Filter],
    ideals: Sequence[float],
    options: tuple[tuple[str, Option], ...],
) -> ChannelsMechanism:
    """Put prefilters of norm one and their inverses together, each as loud as is best."""
    changes = privacy.changes(target.shape[1])[[part.column for part in parts]]
    groups = reached_together(parts, privacy)
    energies = np.array([_energy_behind(part, g) for part, g in zip(parts, filters, strict=True)])
    shares, _ = least_shares(changes, energies, groups)
    prefilters = [scaled(*each) for each in zip(filters, shares.tolist(), changes.tolist(), strict=True)]
    receivers = [
        {i: entry * g.inverse() for i, entry in part.entries.items()} for part, g in zip(parts, prefilters, strict=True)
    ]
    p, m = target.shape
    _, least = least_shares(changes, np.array(ideals), groups)
    ideal = (privacy.noise_multiplier * privacy.max_events) ** 2 * least
    g, h = prefilters_of(parts, prefilters, m), receivers_of(receivers, p)
    return _make(name, target, privacy, g, h, ideal, options)


def _make(
    name: str,
    target: FilterMatrix,
    privacy: Privacy,
    prefilter: FilterMatrix,
    receiver: FilterMatrix,
    ideal: float,
    options: tuple[tuple[str, Option], ...] = (),
) -> ChannelsMechanism:
    changes = privacy.changes(target.shape[1])
    bound = (
        privacy.noise_multiplier**2 * undistorted_bound(target, changes, privacy.adjacency or "one_input", _GOAL).bound
    )
    return ChannelsMechanism(name, target, privacy, prefilter, receiver, ideal, min(bound, ideal), options)


def _energy_behind(part: ChannelPart, prefilter: Filter) -> float:
    """Return the energy of what a channel is for, divided by its prefilter."""
    entries = list(part.entries.values())
    roots = np.concatenate([prefilter.poles, prefilter.zeros, *(e.poles for e in entries)])
    grid = graded_grid(roots, degree=max(prefilter.order, *(e.order for e in entries)))
    power = sum(np.abs(e.response(grid.omega)) ** 2 for e in entries)
    return grid.mean(power / np.abs(prefilter.response(grid.omega)) ** 2)
