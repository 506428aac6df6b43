"""The covariance of noise over a horizon: independent from step to step, or shared in a tree; and errors of both."""

from __future__ import annotations

import functools
import itertools
from typing import Final, NamedTuple, cast

import numpy as np

from dpfast._kernels.compiled_mechanisms import CompiledBlock
from dpfast._support.validation import Array
from dpfast.mechanisms.block_noise import BlockLaw, common_variances, own_variances, shared_law, shared_table
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.mechanisms.operators.operator_protocol import Operator
from dpfast.mechanisms.rounding import rounding_variance
from dpfast.privacy.integer_noise.choice import integer_noise
from dpfast.privacy.integer_noise.law import IntegerKind
from dpfast.privacy.integer_noise.shared import check_tree
from dpfast.privacy.lattice import Lattice
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model

NESTED: Final = "nested"


class NoiseCovariance(NamedTuple):
    """Noise that has a variance of its own at each step, and another in common with the steps of each node above it.

    Attributes
    ----------
    own : float
    common : tuple of float
        Of each level, γ_l - γ_{l+1}: mostly below zero, as shared noise cancels.
    branches : tuple of int
        Of the tree; the next one begins behind its last leaf.
    """

    own: float
    common: tuple[float, ...] = ()
    branches: tuple[int, ...] = ()

    @classmethod
    def of_tree(cls, branches: tuple[int, ...], covariances: tuple[float, ...]) -> NoiseCovariance:
        """Return that of γ_0, γ_1, ..., by the level of the lowest common node."""
        own, *common = (x - y for x, y in itertools.pairwise((*covariances, 0.0)))
        return cls(own, tuple(common), branches)

    @classmethod
    def of_law(cls, law: BlockLaw, branches: tuple[int, ...], lattice: Lattice, model: Model | None) -> NoiseCovariance:
        """Return that of a law on whole units, with what rounding adds to inputs of a model, or to any."""
        rounding = lattice.rounding_variance if model is None else rounding_variance(lattice, model)
        own, common = own_variances((law,), lattice.unit)[0], common_variances(law, lattice.unit)
        return cls(own + rounding, common, branches)

    @property
    def _nodes(self) -> list[tuple[int, float]]:
        """The steps of a node of each level, and what they have in common."""
        return list(zip(itertools.accumulate(self.branches, lambda x, y: x * y), self.common, strict=True))

    def errors(self, reconstruction: Operator) -> Array:
        """Return the variance of every row of a reconstruction of such noise, (rows,); linear in its entries."""
        total = self.own * reconstruction.squared_rows()
        if not self.common:
            return total
        if isinstance(reconstruction, Convolution):
            return np.asarray(total + self._errors_of_response(np.cumsum(reconstruction.coefficients)))
        matrix = reconstruction.matrix()
        for n, common in self._nodes:
            total = total + common * (np.add.reduceat(matrix, np.arange(0, matrix.shape[1], n), axis=1) ** 2).sum(
                axis=1
            )
        return np.asarray(total)

    def _errors_of_response(self, response: Array) -> Array:
        """Return what is in common, for the running sums of the coefficients of a Toeplitz reconstruction.

        The weights of a node that ended j steps ago add up to a difference of running sums: a recursion over whole
        nodes, in as many operations as there are steps.
        """
        horizon, total = len(response), np.zeros(len(response))
        for n, common in self._nodes:
            padded = np.zeros(-(-horizon // n) * n)
            padded[:horizon] = (response - np.concatenate([np.zeros(n), response])[:horizon]) ** 2
            total += common * np.cumsum(padded.reshape(-1, n), axis=0).ravel()[:horizon]
        return total

    def matrix(self, horizon: int) -> Array:
        """Return all of it, (horizon, horizon)."""
        step = np.arange(horizon)
        found = self.own * np.eye(horizon)
        for n, common in self._nodes:
            found += common * (step[:, None] // n == step // n)
        return np.asarray(found)


def law_on_steps(kind: str, privacy: Privacy, steps: int, groups: tuple[int, ...], slacks: tuple[int, ...]) -> BlockLaw:
    """Return the law of noise on the integers, for an event that changes all rows together by so many steps."""
    if kind == NESTED:
        return shared_law(privacy, steps, groups, slacks)
    return integer_noise(cast("IntegerKind", kind), privacy, steps)


@functools.lru_cache(maxsize=4)  # its tables may be large, and are asked for by every figure of a mechanism
def compile_law(law: BlockLaw) -> CompiledBlock:
    """Return the tables of a law on the integers, which studies draw from."""
    return CompiledBlock(1, *law.tails(), shared=shared_table(law))


def check_groups(noise: str, groups: tuple[int, ...], slacks: tuple[int, ...]) -> None:
    """Refuse what is no tree of shared noise, and one where noise is not shared."""
    if noise == NESTED:
        check_tree(groups, slacks, ("groups", "slacks"))
    elif groups or slacks:
        raise ValueError(
            f"groups and slacks must be () with {noise} noise, got {groups!r} and {slacks!r}: leave them out"
        )
