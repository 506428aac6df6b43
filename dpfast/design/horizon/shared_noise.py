"""Noise on the inputs that the steps of a horizon share, in a tree: what little of it is left on sums of many steps."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast._support.errors import DesignError
from dpfast.design.argument_checks import Target, target_over_horizon
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.noise_covariance import NESTED, NoiseCovariance
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.privacy.integer_noise import tree_sums
from dpfast.privacy.integer_noise.shared import SharedGeometric, check_tree
from dpfast.privacy.lattice import find_lattice
from dpfast.privacy.privacy import Privacy

_BRANCHES = (2, 3)  # that are tried: wider trees were never better
_GAIN = 2e-4  # of an MSE: what a change has to gain, as errors are flat about the best
_STEP, _LAST_STEP = 0.5, 0.25  # of a slack, which a search begins with, of all slacks at the end
_FINEST_RATE = 0.5  # ε for a unit, below which laws are the same but for their scale


class Tree(NamedTuple):
    """The branches of a tree from the steps up, and how much may cancel in a node of each level."""

    groups: tuple[int, ...]
    slacks: tuple[int, ...]


@public_design
def shared_noise(
    target: Target,
    privacy: Privacy,
    *,
    horizon: int | None = None,
    group: int | tuple[int, ...] | None = None,
    slack: int | tuple[int, ...] | None = None,
    unit: float | None = None,
    name: str = "shared noise",
) -> MatrixMechanism:
    r"""Put noise on the inputs, most of which cancels in sums: it needs neither a δ nor a model, and waits for nothing.

    x is one draw of :class:`SharedGeometric`: P(x) ∝ exp(-(ε/d) φ(root)) on the integers, over a tree whose leaves are
    the steps, φ(leaf) = \|x\|, φ(node) = max(\|sum of its noises\|, Σ φ(child) - slack of its level). An event costs ε
    at its own step alone, and noises of a node may cancel at no cost up to the slack: each is larger, and what they add
    up to is much smaller. For running sums nothing here errs less without a δ and without a model.

    Parameters
    ----------
    target : Filter, Toeplitz or sequence of float
        A; running sums gain most, targets with a short memory little or nothing.
    privacy : Privacy
        δ is not used.
    horizon : int, optional
        n, by default that of the target; needed for a Filter.
    group : int or tuple of int, optional
        The branches of the tree, from the steps up; where the horizon is longer than one tree another one begins. By
        default 2 or 3 for each level, and as many levels as gain.
    slack : int or tuple of int, optional
        How much may cancel in a node of each level, for the given branches; by default what errs least.
    unit : float, optional
        The unit whose multiples real inputs are rounded to, as for :func:`input_perturbation`; without it inputs are
        counts.
    name : str
        What tables and pictures call it.

    Returns
    -------
    MatrixMechanism
        With C = 1, B = A, and noise "nested". :meth:`MatrixMechanism.with_receiver` puts a receiver for a model behind
        it.

    Raises
    ------
    DesignError
        Where ε is so small for each unit that the tables of such noise would be too large.

    Notes
    -----
    *Privacy.* Pure ε, for inputs that react to what was published before too: no change of one input by k steps changes
    ln P by more than ε\|k\|/(m d), of m events each of at most d steps, whatever all other noises are. The noise of the
    horizon is drawn ahead; an estimate needs the inputs and the noise up to its own step.

    Examples
    --------
    >>> import dpfast as dp
    >>> mechanism = dp.shared_noise(dp.running_sum(64), dp.Privacy(1))
    >>> mechanism.groups, round(mechanism.predicted_rmse, 2)
    ((2, 2, 2, 2, 2, 2), 4.47)
    >>> round(dp.input_perturbation(dp.running_sum(64), dp.Privacy(1), noise="geometric").predicted_rmse, 2)
    7.74
    """
    series = target_over_horizon(target, privacy, horizon)
    lattice = find_lattice(privacy, None, unit)
    rate = privacy.epsilon / (privacy.max_events * lattice.steps)
    tree = _find_tree(series, rate, _several("group", group, 2), _several("slack", slack, 0))
    unit = None if unit is None else lattice.unit
    response = Convolution(series.coefficients)
    words = (("group", _words(tree.groups)), ("slack", _words(tree.slacks)))
    return MatrixMechanism(
        name,
        series,
        privacy,
        Convolution(np.eye(1, series.horizon)[0]),
        response,
        noise=NESTED,
        unit=unit,
        groups=tree.groups,
        slacks=tree.slacks,
        options=words if unit is None else (*words, ("unit", unit)),
    )


def _several(name: str, given: int | tuple[int, ...] | None, least: int) -> tuple[int, ...] | None:
    """Take one number a level, of one level too."""
    if given is None:
        return None
    if validation.is_several(given):
        return tuple(validation.integer(name, x, least) for x in given)  # type: ignore[union-attr]
    return (validation.integer(name, given, least),)


def _words(numbers: tuple[int, ...]) -> str:
    return " ".join(map(str, numbers))


def _find_tree(target: Toeplitz, rate: float, groups: tuple[int, ...] | None, slacks: tuple[int, ...] | None) -> Tree:
    if groups is None and slacks is not None:
        raise ValueError(f"slack must not be given without group, got {slacks}: give the branches that it is for")
    if groups is not None and slacks is not None:
        return Tree(*check_tree(groups, slacks, ("group", "slack")))
    if groups is not None:
        check_tree(groups, (0,) * len(groups), ("group", "slack"))
    coarse = max(rate, _FINEST_RATE)
    search = _SlackSearch(coarse, _error_of(target, coarse))
    if groups is None:
        found = search.find(target.horizon)
    else:
        found = search.descend(_begin_given(search, groups), range(len(groups)), _STEP)
    tree = Tree(found.groups, tuple(round(c * coarse / rate) for c in found.slacks))
    if not SharedGeometric.is_possible(rate, *tree):
        raise DesignError(
            f"epsilon must be larger, got {rate:.3g} for each unit that max_change and max_events make: "
            "the tables of noise that steps share would be too large; take a coarser unit, fewer levels by group, or "
            'input_perturbation(noise="geometric")'
        )
    return tree


def _begin_given(search: _SlackSearch, groups: tuple[int, ...]) -> Tree:
    """Return the tree of given groups with slacks from which a search may start; refuse what is too large for any."""
    tree = search.begin(groups)
    while max(tree.slacks) > 1 and not SharedGeometric.is_possible(search.rate, *tree):
        tree = tree._replace(slacks=tuple(max(1, c // 2) for c in tree.slacks))
    if not SharedGeometric.is_possible(search.rate, *tree):
        raise ValueError(
            f"group must be of fewer branches, got {_words(groups)} at an epsilon of {search.rate:.3g} for each "
            "unit: the tables of noise that so many share would be too large; take several levels, as "
            "(2, 2, 2)"
        )
    return tree


def _error_of(target: Toeplitz, rate: float) -> Callable[[Tree], float]:
    """Return the mean squared error over the horizon of the noise of a tree, to some digits."""
    response = Convolution(target.coefficients)

    @functools.cache
    def error(tree: Tree) -> float:
        if not SharedGeometric.is_possible(rate, *tree):
            return math.inf
        covariances = tree_sums.solve(rate, *tree, tree_sums.COARSE).covariances()
        mean = float(NoiseCovariance.of_tree(tree.groups, covariances).errors(response).mean())
        return mean if mean > 0 else math.inf  # which rounding made of a difference

    return error


class _SlackSearch(NamedTuple):
    """A search for the tree of least error: level by level, and by its slacks, in larger and smaller steps."""

    rate: float
    error: Callable[[Tree], float]

    def find(self, horizon: int) -> Tree:
        """Find the tree, of as many levels as gain."""
        return min((self._grow(k, horizon) for k in _BRANCHES), key=self.error)

    def begin(self, groups: tuple[int, ...]) -> Tree:
        """Return a tree with slacks from which a search may start."""
        return Tree(groups, tuple(max(1, round(k / self.rate)) for k in groups))

    def _grow(self, k: int, horizon: int) -> Tree:
        best = self.descend(self.begin((k,)), range(1), _STEP)
        while best.slacks[-1] and math.prod(best.groups) < horizon:  # where nothing is shared no more levels share it
            n = len(best.groups) + 1
            taller = self.descend(Tree((k,) * n, (*best.slacks, best.slacks[-1])), range(n - 1, n), _STEP)
            if not self._is_better(taller, best):
                break
            best = taller
        return self.descend(best, range(len(best.groups)), _LAST_STEP)

    def _is_better(self, tree: Tree, other: Tree) -> bool:
        return self.error(tree) < self.error(other) * (1 - _GAIN)

    def descend(self, tree: Tree, levels: range, part: float) -> Tree:
        """Change the slacks of levels in turn, by smaller and smaller parts of themselves, as long as that gains."""
        least = 0 if len(tree.groups) == 1 else 1  # without slack a tree adds up all of its leaves, which takes long
        while True:
            before = tree
            for level in levels:
                for sign in (1, -1):
                    step = sign * max(1, round(part * tree.slacks[level]))
                    while tree.slacks[level] + step >= least and self._is_better(
                        moved := _moved(tree, level, step), tree
                    ):
                        tree = moved
            if tree == before:
                if all(round(part * tree.slacks[level]) <= 1 for level in levels):
                    return tree
                part /= 2


def _moved(tree: Tree, level: int, step: int) -> Tree:
    slacks = list(tree.slacks)
    slacks[level] += step
    return tree._replace(slacks=tuple(slacks))
