"""Design a mechanism for several streams: a prefilter for each input, or noise on inputs or outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.design.mimo.column_gains import column_gain
from dpfast.design.mimo.undistorted_bound import undistorted_bound
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.ideal_mechanism import Ideal, IdealFamily
from dpfast.design.prefilter.order_selection import FAR, realize
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.quadrature import graded_grid
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.privacy.privacy import Privacy


def force_channels(
    target: FilterMatrix, privacy: Privacy, family: IdealFamily, tolerance: float, name: str
) -> ChannelsMechanism:
    """Design zero forcing with a prefilter for each input, |G_i|² ∝ |F_i|₂ of its column; `family` is that of one.

    A person of "one_input" changes each channel by the same; the others all channels together by Δ² = Σ d_i²‖G_i‖².
    """
    columns, changes = check_channels(target, privacy), privacy.changes(target.shape[1])
    filters, norms, ideals = {}, np.zeros(len(changes)), np.zeros(len(changes))
    for j in columns:
        problem = Problem(column_gain(target, j), None, 1.0)
        ideal = family(problem)
        filters[j] = realize_column(problem, ideal, tolerance)
        norms[j], ideals[j] = _energy_behind(target, j, filters[j]), ideal.mse
    scales = _balance(privacy, changes[columns], norms[columns])
    zero = Filter([0.0])
    prefilter = [
        [filters[j] * scales[i] if i == k else zero for k, j in enumerate(columns)] for i in range(len(columns))
    ]
    receiver = [[_divide(row[j], filters[j] * scales[i]) for i, j in enumerate(columns)] for row in target.rows]
    cost = (privacy.noise_multiplier * privacy.max_events) ** 2 * _least(privacy, changes, ideals)
    return _make(name, target, privacy, columns, prefilter, receiver, cost, (("tolerance", tolerance),))


def realize_column(problem: Problem, ideal: Ideal, tolerance: float) -> Filter:
    """Return the prefilter of one input, of norm one, within the tolerance of an ideal."""

    def excess(g: Filter) -> float:
        return ideal.excess(problem, g, FAR * tolerance)

    return realize(ideal.shape(problem), tolerance=tolerance, excess=excess)


def perturb_channels(target: FilterMatrix, privacy: Privacy, name: str) -> ChannelsMechanism:
    """Put noise on the inputs, as much on each as is best: G a gain for each input that is used."""
    columns, changes = check_channels(target, privacy), privacy.changes(target.shape[1])
    energies = np.array([_energy_behind(target, j, Filter([1.0])) for j in range(len(changes))])
    scales = _balance(privacy, changes[columns], energies[columns])
    prefilter = [[float(scales[i]) if i == k else 0.0 for k in range(len(columns))] for i in range(len(columns))]
    receiver = [[row[j] * float(1 / scales[i]) for i, j in enumerate(columns)] for row in target.rows]
    cost = (privacy.noise_multiplier * privacy.max_events) ** 2 * _least(privacy, changes, energies)
    return _make(name, target, privacy, columns, prefilter, receiver, cost, ())


def perturb_outputs(target: FilterMatrix, privacy: Privacy, name: str) -> ChannelsMechanism:
    """Put noise of the same deviation on every output: G = F, H = 1."""
    columns = check_channels(target, privacy)
    prefilter = [[row[j] for j in columns] for row in target.rows]
    p = target.shape[0]
    receiver = [[float(i == j) for j in range(p)] for i in range(p)]
    mse = p * privacy.noise_std(target) ** 2
    return _make(name, target, privacy, columns, prefilter, receiver, mse, ())


def check_channels(target: FilterMatrix, privacy: Privacy) -> list[int]:
    """Refuse a target that is zero; return the inputs that it uses."""
    validation.instance("privacy", privacy, Privacy, "a Privacy")
    columns = [
        j for j in range(target.shape[1]) if max(np.abs(row[j].b).max() for row in target.rows) > validation.SMALLEST
    ]
    if not columns:
        raise DesignError(f"target must not be zero, nor have all coefficients below {validation.SMALLEST:g}")
    privacy.changes(target.shape[1])  # refuses what has no adjacency
    return columns


def _make(
    name: str,
    target: FilterMatrix,
    privacy: Privacy,
    columns: list[int],
    prefilter: Sequence[Sequence[Filter | float]],
    receiver: Sequence[Sequence[Filter | float]],
    ideal: float,
    options: tuple[tuple[str, Option], ...],
) -> ChannelsMechanism:
    """Put a mechanism together; inputs that the target does not use get no channel."""
    whole: list[list[Filter | float]] = [[0.0] * target.shape[1] for _ in prefilter]
    for row, used in zip(whole, prefilter, strict=True):
        for j, entry in zip(columns, used, strict=True):
            row[j] = entry
    changes = privacy.changes(target.shape[1])
    bound = privacy.noise_multiplier**2 * undistorted_bound(target, changes, privacy.adjacency or "one_input")
    return ChannelsMechanism(
        name, target, privacy, FilterMatrix(whole), FilterMatrix(receiver), ideal, min(bound, ideal), options
    )


def _energy_behind(target: FilterMatrix, j: int, prefilter: Filter) -> float:
    """Return the energy of a column of the target divided by a prefilter."""
    entries = [row[j] for row in target.rows]
    roots = np.concatenate([prefilter.poles, prefilter.zeros, *(e.poles for e in entries)])
    grid = graded_grid(roots, degree=max(prefilter.order, *(e.order for e in entries)))
    power = sum(np.abs(e.response(grid.omega)) ** 2 for e in entries)
    return grid.mean(power / np.abs(prefilter.response(grid.omega)) ** 2)


def _balance(privacy: Privacy, changes: Array, energies: Array) -> Array:
    """Return the gains of prefilters of norm one that make the least error Δ² Σ energies/gains²."""
    if (privacy.adjacency or "one_input") == "one_input":
        return np.asarray(1 / changes)
    gains = np.sqrt(np.sqrt(energies) / changes)
    return np.asarray(gains / math.sqrt(float(changes**2 @ gains**2)))


def _least(privacy: Privacy, changes: Array, energies: Array) -> float:
    """Return that error, for a Δ of one: Σ d_i² energies, or (Σ d_i √energies)²."""
    if (privacy.adjacency or "one_input") == "one_input":
        return float(changes**2 @ energies)
    return float(changes @ np.sqrt(energies)) ** 2


def _divide(entry: Filter, prefilter: Filter) -> Filter:
    return entry * prefilter.inverse() if entry.b.any() else entry
