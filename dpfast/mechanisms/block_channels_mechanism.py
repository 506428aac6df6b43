"""Block sums of several streams that one person may reach: blocks of its own for each, and estimates from them all."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.mechanisms.mechanism import Paths
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model
from dpfast.signals.output_variance import output_variance

_REACH = {
    None: "the one input",
    "one_input": "one of the {} inputs",
    "each_input_same_time": "all {} inputs, at the same time",
    "each_input": "all {} inputs, at a time of its own at each",
}


@dataclass(frozen=True, eq=False)
class BlockChannelsMechanism:
    r"""Sums of blocks of each input with integer noise, and estimates of every output of F u from all of them.

    Made by :func:`dpfast.block_sums` for a :class:`FilterMatrix`. Inputs are independent in the model, so that the
    Kalman filter of all of them together is one for each input, and the estimate of an output the sum of what those say
    of it: ŷ_a = Σ_i ŷ_ai, its error Σ_i E|ŷ_ai - F_ai u_i|².

    Attributes
    ----------
    name : str
    target : FilterMatrix
        F, p × m.
    privacy : Privacy
        With the adjacency, which says which inputs one person reaches.
    models : tuple of Model
        The independent streams that it was designed for, one for each input.
    entries : tuple of tuple of BlockMechanism or None, p × m
        For output a and input i the block sums that estimate F_ai u_i, with the privacy that input i has for itself.
        All of a column are of the same published sums. None where an input is not published, or not wanted.
    lag : int
        The samples by which all estimates are late.
    options : tuple of (name, value)
        What else the design was given.

    Raises
    ------
    ValueError
        For entries that do not fit, and for such as spend more than the privacy has.

    Notes
    -----
    *Privacy.* An event changes one published sum of each input that it is at, by at most max_change. Where it is at one
    input, every input has the whole ε and δ; where it may be at all, these are the sums of those of the inputs (basic
    composition), whatever times the event has at each. Several events are hidden as in one stream, by group privacy,
    wherever they fall. :meth:`simulate` is for studies: its noise is seeded. There is no exact release of several
    streams together yet.

    Examples
    --------
    >>> import dpfast as dp
    >>> counts = dp.ARMA([1.2], [1, -0.9], mean=5)
    >>> mean = dp.FilterMatrix([[dp.Filter([0.1], [1, -0.9])] * 2])
    >>> for adjacency in "one_input", "each_input":
    ...     blocks = dp.block_sums(mean, dp.Privacy(1, adjacency=adjacency), [counts, counts])
    ...     print(blocks.lengths, blocks.epsilons, round(blocks.predicted_rmse, 4))
    (2, 2) (1.0, 1.0) 0.3479
    (3, 3) (0.5, 0.5) 0.603
    """

    name: str
    target: FilterMatrix
    privacy: Privacy
    models: tuple[Model, ...]
    entries: tuple[tuple[BlockMechanism | None, ...], ...]
    lag: int
    options: tuple[tuple[str, Option], ...] = ()
    lower_bound_mse: ClassVar[None] = None

    def __post_init__(self) -> None:
        p, m = self.target.shape
        if len(self.models) != m:
            raise validation.fail("models", f"a model for each of the {m} inputs", self.models)
        if len(self.entries) != p or any(len(row) != m for row in self.entries):
            raise validation.fail("entries", f"{p} rows of {m}, as the target has", self.entries)
        for i, column in enumerate(zip(*self.entries, strict=True)):
            self._check_column(i, [x for x in column if x is not None])
        self._check_spending()

    def _check_column(self, i: int, column: list[BlockMechanism]) -> None:
        """Refuse sums that are not the same for all outputs, more than one of a block, and other inputs' changes."""
        published = {(x.lengths, x.receiver.phase, x.noise_kinds, x.privacy, x.unit, x.slack) for x in column}
        if len(published) > 1 or any(len(x.lengths) > 1 or x.receiver.groups or x.weights is not None for x in column):
            raise ValueError(f"entries must be of the same plain sums of input {i} for all outputs, got different ones")
        if any(x.lag != self.lag or x.model is not self.models[i] for x in column):
            raise ValueError(
                f"entries must have the lag {self.lag} and the model of input {i}, got others in its column"
            )
        change = self.privacy.changes(self.target.shape[1])[i]
        if any((x.privacy.max_change, x.privacy.max_events) != (change, self.privacy.max_events) for x in column):
            raise ValueError(
                f"entries must hide {self.privacy.max_events} changes of {change:g} of input {i}, as privacy says, got "
                "others in its column"
            )

    def _check_spending(self) -> None:
        total = max if (self.privacy.adjacency or "one_input") == "one_input" else math.fsum
        epsilon, delta = (total(x) for x in (self.epsilons, self._deltas))
        if epsilon > self.privacy.epsilon or delta > self.privacy.delta:
            raise ValueError(
                f"entries must spend at most epsilon {self.privacy.epsilon:g} and delta {self.privacy.delta:g} for "
                f"adjacency {self.privacy.adjacency!r}, got {epsilon:g} and {delta:g}"
            )

    @functools.cached_property
    def _columns(self) -> tuple[BlockMechanism | None, ...]:
        """One entry of each input, for what its sums are; None where it is not published."""
        columns = zip(*self.entries, strict=True)
        return tuple(next((x for x in column if x is not None), None) for column in columns)

    @property
    def lengths(self) -> tuple[int | None, ...]:
        """The length B_i of the blocks of each input; None where it is not published."""
        return tuple(None if x is None else x.lengths[0] for x in self._columns)

    @property
    def phases(self) -> tuple[int, ...]:
        """The samples that the first block of each input is shorter."""
        return tuple(0 if x is None else x.receiver.phase for x in self._columns)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The ε that one person's events at each input cost there; 0 where the input is not published."""
        return tuple(0.0 if x is None else x.privacy.epsilon for x in self._columns)

    @property
    def _deltas(self) -> tuple[float, ...]:
        return tuple(0.0 if x is None else x.privacy.delta for x in self._columns)

    @property
    def noise_stds(self) -> tuple[float | None, ...]:
        """The standard deviation of the noise on the sums of each input; None where it is not published."""
        return tuple(None if x is None else x.noise_std for x in self._columns)

    # --- errors -----------------------------------------------------------------------------------

    @functools.cached_property
    def output_mse(self) -> Array:
        """The exact stationary error of each output, (p,), the mean over time.

        Of an input that is not published the whole variance of what it adds to an output counts.
        """
        every = [
            [self._unpublished(f, model) if x is None else x.linear_mse for f, model, x in zip(*row, strict=True)]
            for row in ((fs, self.models, xs) for fs, xs in zip(self.target.rows, self.entries, strict=True))
        ]
        return validation.freeze(np.array([math.fsum(x) for x in every]))

    @staticmethod
    def _unpublished(entry: Any, model: Model) -> float:
        return output_variance(entry, model) if entry.b.any() else 0.0

    @property
    def predicted_mse(self) -> float:
        """The error of all outputs together: the sum of `output_mse`."""
        return float(self.output_mse.sum())

    @property
    def predicted_rmse(self) -> float:
        """The root of `predicted_mse`."""
        return math.sqrt(self.predicted_mse)

    @property
    def ideal_mse(self) -> float:
        """The error of the best linear receiver behind these sums, which is the one that runs."""
        return self.predicted_mse

    # --- simulation -------------------------------------------------------------------------------

    def simulate(self, u: ArrayLike, *, seed: Any) -> Paths:
        """Run the mechanism on signals, from rest, with noise that a seed fixes: for studies, never for publication.

        Parameters
        ----------
        u : array_like, (..., m, time)
            Inputs.
        seed : int or Generator
            Of the noise; the same seed and shape give the same noise.

        Returns
        -------
        Paths
            `privatized` (..., m, time), the published sums about their mean, NaN where nothing is released; `estimate`
            (..., p, time), which at t is of the output at t - lag.

        Raises
        ------
        ValueError
            For inputs of another shape.

        Notes
        -----
        *Privacy.* None: the noise is reproducible and in floating point.

        Examples
        --------
        >>> import dpfast as dp
        >>> counts = dp.ARMA([1.2], [1, -0.9], mean=5)
        >>> blocks = dp.block_sums(dp.total(2), dp.Privacy(1, adjacency="one_input"), [counts] * 2, length=3)
        >>> blocks.simulate([[4, 5, 6], [7, 8, 9]], seed=1).estimate.shape
        (1, 3)
        """
        x, seed = self.target.checked(u), validation.seed(seed)
        v = np.full(x.shape, np.nan)
        estimate = np.zeros((*x.shape[:-2], self.target.shape[0], x.shape[-1]))
        for i, model in enumerate(self.models):
            own = int(np.random.SeedSequence((seed, i)).generate_state(1, np.uint64)[0] >> 1)
            for a, row in enumerate(self.entries):
                entry = row[i]
                if entry is None:
                    estimate[..., a, :] += self._mean_alone(a, i, model.mean, x.shape[-1])
                    continue
                paths = entry.simulate(x[..., i, :], seed=own)  # the same noise for all outputs, by its seed
                v[..., i, :] = paths.privatized
                estimate[..., a, :] += paths.estimate
        return Paths(v, estimate, None, self.lag)

    def _mean_alone(self, a: int, i: int, mean: float, n: int) -> Array:
        """Return what is known of an input that is not published: what its mean makes of a target from rest, late."""
        found = np.zeros(n)
        if mean and n > self.lag:
            found[self.lag :] = self.target[a, i].apply(np.full(n - self.lag, mean))
        return found

    # --- words ------------------------------------------------------------------------------------

    def summary(self) -> str:
        """Describe the mechanism in a few lines for people.

        Examples
        --------
        >>> import dpfast as dp
        >>> counts = dp.ARMA([1.2], [1, -0.9], mean=5)
        >>> privacy = dp.Privacy(1, adjacency="each_input")
        >>> print(dp.block_sums(dp.total(2), privacy, [counts] * 2, length=3).summary())
        block sums lag 0
          privacy         epsilon 1, delta 0
          one person      one event of a person is at all 2 inputs, at a time of its own at each; at most 1 in all
          input 0         sums of 3 steps, epsilon 0.5, geometric noise of standard deviation 2.79918
          input 1         sums of 3 steps, epsilon 0.5, geometric noise of standard deviation 2.79918
          error           MSE 5.26467 of all outputs together, 0 samples late
        """
        m, privacy = self.target.shape[1], self.privacy
        reach = _REACH[privacy.adjacency].format(m)
        facts = {
            "privacy": f"epsilon {privacy.epsilon:.6g}, delta {privacy.delta:.3g}",
            "one person": f"one event of a person is at {reach}; at most {privacy.max_events} in all",
            **{f"input {i}": self._input_text(x) for i, x in enumerate(self._columns)},
            "error": f"MSE {self.predicted_mse:.6g} of all outputs together, {self.lag} samples late",
        }
        return "\n".join([self.name, *(f"  {key:<15} {value}" for key, value in facts.items())])

    @staticmethod
    def _input_text(x: BlockMechanism | None) -> str:
        if x is None:
            return "not published"
        first = f", the first one of {x.lengths[0] - x.receiver.phase}" if x.receiver.phase else ""
        noise = f"{x.noise_kinds[0]} noise of standard deviation {x.noise_std:.6g}"
        return f"sums of {x.lengths[0]} steps{first}, epsilon {x.privacy.epsilon:.6g}, {noise}"

    def __repr__(self) -> str:
        return f"<BlockChannelsMechanism {self.name!r}: predicted RMSE {self.predicted_rmse:.6g}>"
