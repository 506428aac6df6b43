"""Block sums of several streams that one person may reach: blocks of its own for each, and estimates from them all."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np

from dpfast._kernels import compiled_channels
from dpfast._support import validation
from dpfast._support.first_steps import SETTLED, distinct_steps, mean_of_first
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.mechanisms.channels_base import ChannelsBase, compile_system
from dpfast.privacy.lattice import Lattice
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.provenance import Provenance
from dpfast.signals.channel_models import ChannelModels, check_channel_models
from dpfast.signals.model import Model
from dpfast.signals.output_variance import output_variance
from dpfast.signals.vector_arma import VectorARMA


@dataclass(frozen=True, eq=False)
class BlockChannelsMechanism(ChannelsBase):
    r"""Study a mechanism that adds integer noise to sums of blocks of each input, and estimates all outputs of F u.

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
    wherever they fall. :meth:`simulate` is for studies: its noise is seeded. :func:`exact` is what a release runs.

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
    exact_kind: ClassVar[str] = "block sums of channels"
    horizon: ClassVar[None] = None

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
            [self.unpublished_mse(a, i) if x is None else x.linear_mse for i, x in enumerate(row)]
            for a, row in enumerate(self.entries)
        ]
        return validation.freeze(np.array([math.fsum(x) for x in every]))

    def unpublished_mse(self, a: int, i: int) -> float:
        """Return the variance of what input i adds to output a, which counts where the input is not published."""
        entry = self.target[a, i]
        return output_variance(entry, self.models[i]) if entry.b.any() else 0.0

    def predict_outputs(self, models: Sequence[Model] | VectorARMA) -> Array | None:
        """Return the stationary MSE of each output, (p,), its mean over time, on other streams than those designed for.

        Parameters
        ----------
        models : sequence of Model, or VectorARMA
            A model for each input, which are independent then, or one of all.

        Returns
        -------
        array, (p,), or None
            None where only simulation tells (:func:`monte_carlo` takes all of these): for a VectorARMA, as errors of
            inputs that depend on one another do not add up; where the means of more than one input are not those of
            the design, as their biases add up; and where rounding hides it. A total of correlated inputs has a
            prediction where they are added up first, as one stream.

        Raises
        ------
        ValueError
            For another number of models, or of channels, than inputs.
        """
        return self._sum_up(check_channel_models("models", models, self.target.shape[1]), None)

    def predict_first_outputs(self, n: int, models: ChannelModels) -> Array | None:
        """Return the MSE of each output over the first n steps from rest, (p,); None where only simulation tells."""
        return self._sum_up(models, n)

    def _sum_up(self, models: ChannelModels, n: int | None) -> Array | None:
        """Add up the errors of all inputs, which are independent."""
        if isinstance(models, VectorARMA):
            return None
        if sum(x.mean != assumed.mean for x, assumed in zip(models, self.models, strict=True)) > 1:
            return None
        every = [
            [self._entry_mse(f, x, i, each, n) for i, (f, x, each) in enumerate(zip(fs, xs, models, strict=True))]
            for fs, xs in zip(self.target.rows, self.entries, strict=True)
        ]
        if any(x is None for row in every for x in row):
            return None
        return np.array([math.fsum(x for x in row if x is not None) for row in every])

    def _entry_mse(self, f: Filter, entry: BlockMechanism | None, i: int, model: Model, n: int | None) -> float | None:
        """Return what an input adds to the error of an output, settled or in the mean over first steps."""
        if entry is not None:
            return entry.predict(model) if n is None else entry.predict_first(n, model)
        if not f.b.any():
            return 0.0
        unknown = model.mean - self.models[i].mean
        if n is None:
            return output_variance(f, model) + (unknown * float(f.response(0.0).real)) ** 2
        steps = np.cumsum(f.impulse(distinct_steps(n, FilterMatrix([[f]]).settling_time(SETTLED))))
        return output_variance(f, model, n) + mean_of_first((unknown * steps) ** 2, n)

    @property
    def sources(self) -> Mapping[str, Provenance]:
        """The source of every input of the design: a model has its own, all else is "assumed"."""
        names = ["target", *(x.name for x in fields(Privacy)), *(name for name, _ in self.options)]
        known: dict[str, Provenance] = dict.fromkeys(names, "assumed")
        return known | {f"models[{j}]": x.source for j, x in enumerate(self.models)}

    def under(self, privacy: Privacy) -> BlockChannelsMechanism:
        """Return the same blocks for another number of a person's events, or distance of them, and the noise it takes.

        Raises
        ------
        ValueError
            For a privacy that differs in anything else: the blocks and shares of ε rest on it.
        """
        events, apart = privacy.max_events, privacy.min_separation
        if privacy != replace(self.privacy, max_events=events, min_separation=apart):
            raise ValueError(
                f"privacy must be that of the design, {self.privacy}, but for max_events and min_separation, got "
                f"{privacy}; design it anew for this privacy"
            )
        if privacy == self.privacy:
            return self

        def of(x: BlockMechanism) -> BlockMechanism:
            return x.under(replace(x.privacy, max_events=events, min_separation=apart))

        entries = tuple(tuple(None if x is None else of(x) for x in row) for row in self.entries)
        return replace(self, privacy=privacy, entries=entries)

    @property
    def input_lattices(self) -> tuple[Lattice, ...]:
        """The lattices on which noise is drawn for the inputs that are published."""
        return tuple(x.lattice for x in self._columns if x is not None)

    def release_hindrance(self) -> str:
        """Say why the exact path cannot run it, and what to do instead; nothing where it can."""
        if not any(self._columns):
            return "it publishes nothing of any input: take a larger epsilon"
        return next((why for x in self._columns if x is not None and (why := x.release_hindrance())), "")

    def settling_time(self, amplitude: float) -> int:
        """Count the samples until targets and receivers have forgotten a start but for an amplitude."""
        entries = [x.settling_time(amplitude) for row in self.entries for x in row if x is not None]
        return max([self.target.settling_time(amplitude), *entries])

    @property
    def ideal_mse(self) -> float:
        """The error of the best linear receiver behind these sums, which is the one that runs."""
        return self.predicted_mse

    # --- simulation -------------------------------------------------------------------------------

    def compiled(self) -> compiled_channels.CompiledBlockChannels:
        """Return the compiled form, which studies run."""
        receivers, columns = [], tuple(None if x is None else x.compiled() for x in self._columns)
        for row, targets in zip(self.entries, self.target.rows, strict=True):
            pairs = zip(row, targets, strict=True)
            receivers.append(tuple(None if x is None else x.receiver.compiled(f.factors) for x, f in pairs))
        means, target = tuple(x.mean for x in self.models), compile_system(self.target)
        return compiled_channels.CompiledBlockChannels(means, columns, tuple(receivers), target, self.lag)

    def _published(self, signals: Array) -> Array:
        """Return the sums of all inputs (streams, m, time): NaN where nothing is released."""
        v = np.full((len(signals), len(self.models), signals.shape[-1]), np.nan)
        there = [(i, x) for i, x in enumerate(self._columns) if x is not None]
        passed = np.arange(1, signals.shape[-1] + 1)
        for k, (i, column) in enumerate(there):
            released = (passed + column.receiver.phase) % column.lengths[0] == 0
            v[:, i, released] = signals[:, k, released]
        return v

    # --- words ------------------------------------------------------------------------------------

    def _promise_text(self) -> str:
        return f"epsilon {self.privacy.epsilon:.6g}, delta {self.privacy.delta:.3g}"

    def _facts(self) -> dict[str, str]:
        return {
            **{f"input {i}": self._input_text(x) for i, x in enumerate(self._columns)},
            "error": f"MSE {self.predicted_mse:.6g} of all outputs together, {self.lag} samples late",
        }

    @staticmethod
    def _input_text(x: BlockMechanism | None) -> str:
        if x is None:
            return "not published"
        first = f", the first one of {x.lengths[0] - x.receiver.phase}" if x.receiver.phase else ""
        noise = f"{x.noise_kinds[0]} noise of standard deviation {x.noise_std:.6g}"
        return f"sums of {x.lengths[0]} steps{first}, epsilon {x.privacy.epsilon:.6g}, {noise}"

    def __repr__(self) -> str:
        return f"<BlockChannelsMechanism {self.name!r}: predicted RMSE {self.predicted_rmse:.6g}>"
