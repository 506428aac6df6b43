"""Block sums in integers: exact sums and exact integer noise, of which an event touches one draw on each level."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.design.adaptive.published_sums import PublishedSums
from dpfast.design.adaptive.sum_errors import ErrorResponses
from dpfast.design.block_redesign import redesign_blocks
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import MAX_HORIZON
from dpfast.mechanisms.block_ending import step_errors
from dpfast.mechanisms.block_errors import ClosedLoop, unless_hidden
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.mechanisms.block_weights import weights_of_sums
from dpfast.mechanisms.receivers.periodic_kalman import PeriodicKalman
from dpfast.mechanisms.rounding import rounding_variance
from dpfast.mechanisms.serialization.json_fields import Fields
from dpfast.privacy.privacy import Privacy
from dpfast.releases.guarantee_terms import ReleaseTerms
from dpfast.releases.integer.block_responses import find_responses
from dpfast.releases.integer.block_schedule import BlockSchedule
from dpfast.releases.integer.exact_base import LiveEstimator, check_mechanism
from dpfast.releases.integer.exact_drawn import ExactDrawn
from dpfast.releases.integer.inputs import Inputs, Integers
from dpfast.releases.integer.last_block import LastBlock, demand_of
from dpfast.releases.integer.lattice_noise import (
    LARGEST_NOISE,
    LatticeLaw,
    check_cost,
    check_lattice,
    exact_shares,
    find_law,
    law_terms,
    loss_of,
    read_laws,
)
from dpfast.releases.integer.live_blocks import LiveBlocks
from dpfast.releases.model_check.block_check import BlockValues
from dpfast.releases.model_check.noise_imitation import imitate_noise
from dpfast.signals.model import Model

_LARGEST_SUM = 2**62
_SAME = 1e-6  # of a variance: noise for which the receiver of the design will do


@dataclass(frozen=True, eq=False, repr=False)
class ExactBlockSums(ExactDrawn):
    r"""Publish sums v_j = Σ w x + n of blocks of integers x, with exact noise n, and estimate by a Kalman filter.

    :func:`exact` makes it of :func:`block_sums`. Everything in it is public. A block that the last step leaves
    unfinished is dropped, so that nothing of it is ever published; or, where that was declared, it is published as a
    block of its own at that step, and never before.

    Attributes
    ----------
    mechanism : BlockMechanism
        The design.
    inputs : Inputs
        What is declared of the data, in the unit of the design.
    tolerance : float
        As :func:`exact` was given it; integers cost nothing here.
    noise : tuple of GeometricRate or CanonicalTable
        The law of each draw, in units, for the sums of each level, or for each sum of a block.
    receiver : PeriodicKalman
        Designed for this noise.
    last_block : LastBlock or None
        The release of unfinished blocks at the last step, where that was declared.

    Raises
    ------
    ReleaseError
        For a design with fitted-from-private inputs.
    DesignError
        For inputs in another unit, sums that do not fit into 64 bits, and less noise than the privacy takes.

    Notes
    -----
    *Privacy.* An event changes one sum of each level, by at most its own change: with geometric noise of rate r an
    event of d steps costs r·d on a level, the levels and the events of a person add up, also where inputs depend on
    what was published before (docs/explanation/release-proofs.md). :meth:`privatize` is the only function that sees
    inputs.

    Examples
    --------
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
    >>> mechanism = dp.block_sums(dp.Filter([0.1], [1, -0.9]), dp.Privacy(1), chain)
    >>> plan = dp.exact(mechanism, dp.Inputs(0, 1))
    >>> plan.guarantee.delta, plan.guarantee.epsilon <= 1, mechanism.lengths
    (0.0, True, (5,))
    """

    kind: ClassVar[str] = "block sums"
    mechanism: BlockMechanism
    inputs: Inputs
    tolerance: float
    noise: tuple[LatticeLaw, ...]
    receiver: PeriodicKalman
    last_block: LastBlock | None = None

    def __post_init__(self) -> None:
        check_mechanism(self.mechanism)
        check_lattice(self.mechanism.lattice, self.inputs)
        largest = max(map(abs, self.inputs.range)) * max(self.mechanism.lengths)
        if largest + LARGEST_NOISE > _LARGEST_SUM:
            raise DesignError("inputs must have a smaller range or a larger unit: sums of blocks must stay below 2**62")
        if len(self.noise) != self.per_step or (self.mechanism.weights is not None and len(self.drawn_laws) > 1):
            raise DesignError(f"noise must have a law for each of {self.per_step} sums, the same one for signed sums")
        check_cost(self.terms(self.mechanism.privacy, self.inputs).loss, self.mechanism.privacy)

    @classmethod
    def make(cls, mechanism: BlockMechanism, inputs: Inputs, tolerance: float) -> ExactBlockSums:
        """Make the exact form of a design: the noise that the declared inputs take, and a receiver for it."""
        check_lattice(mechanism.lattice, inputs)
        parts = zip(mechanism.noise_kinds, exact_shares(mechanism.shares), strict=True)
        own = tuple(find_law(kind, mechanism.privacy, inputs, share) for kind, share in parts)
        laws = own if mechanism.weights is None else own * len(mechanism.lengths)
        ratios = [float(x.variance) / y.variance for x, y in zip(laws, mechanism.noise, strict=True)]
        designed = all(abs(x - 1) <= _SAME for x in ratios)
        receiver = mechanism.receiver if designed else redesign_blocks(mechanism, _variances_of(own))
        return cls(mechanism, inputs, tolerance, laws, receiver)

    @property
    def laws(self) -> tuple[LatticeLaw, ...]:
        """Return the law of the noise on each sum: `noise`."""
        return self.noise

    @property
    def n_steps(self) -> int | None:
        """Return the declared steps of the stream, where blocks that the last one leaves unfinished are published."""
        return None if self.last_block is None else self.last_block.n_steps

    def ending_after(self, n_steps: int) -> ExactBlockSums:
        """Return the same with blocks that the last of so many steps leaves unfinished published there."""
        self.check_steps(n_steps, whole=True)
        return self if self.last_block else replace(self, last_block=LastBlock.make(self._loop, n_steps))

    @property
    def _variances(self) -> tuple[float, ...]:
        """Return the variance of the noise on each sum, in the units of the signal."""
        return tuple(float(self.inputs.unit) ** 2 * float(x.variance) for x in self.noise)

    @property
    def _loop(self) -> ClosedLoop:
        return self.mechanism.loop_behind(self._variances, self.receiver)

    @functools.cached_property
    def schedule(self) -> BlockSchedule:
        """Say when which sums are released, and which inputs are in each."""
        receiver = self.receiver
        lates = receiver.offsets or (0,) * len(receiver.lengths)
        signs = weights_of_sums(self.mechanism.weights, lates)
        weights = tuple(tuple(map(int, x)) for x in signs)
        return BlockSchedule(receiver.lengths, lates, receiver.phase, weights, self.n_steps)

    # --- what runs --------------------------------------------------------------------------------

    @property
    def per_step(self) -> int:
        """Count the sums that may be released at one step."""
        return len(self.receiver.lengths)

    @property
    def memory(self) -> int:
        """Count the inputs before the last one of the longest block."""
        return max(self.receiver.lengths) - 1

    def needed(self, position: int) -> int:
        """Return how many inputs before a step are in unfinished blocks: no older ones are kept."""
        return self.schedule.needed(position)

    @functools.cached_property
    def _levels(self) -> tuple[NDArray[np.intp], ...]:
        """Return the levels whose noise is of each of the drawn laws."""
        return tuple(np.array([i for i, x in enumerate(self.noise) if x == law]) for law in self.drawn_laws)

    def n_draws(self, position: int, n: int, end: int | None = None) -> tuple[int, ...]:
        """Count the sums that n steps of a stream release: there is a draw for each, and none for other steps."""
        due = self.schedule.due(position, n, end)
        return tuple(int(np.count_nonzero(due[levels])) for levels in self._levels)

    def released(self, first: int, n: int, end: int | None = None) -> NDArray[np.bool_]:
        """Tell at which of n steps a sum is released: (n,) or, of several, (per_step, n)."""
        due = self.schedule.due(first, n, end)
        return due if self.per_step > 1 else due[0]

    def privatize(
        self, history: Integers, x: Integers, noise: Integers, position: int = 0, end: int | None = None
    ) -> Integers:
        """Return v: the sums of blocks that end at these steps, each with a draw of noise of its own; else 0."""
        v, due, used = self.schedule.sums(history, x, position, end), self.schedule.due(position, x.shape[1], end), 0
        for levels in self._levels:
            steps, which = np.nonzero(due[levels].T)
            v[:, levels[which], steps] += noise[:, used : used + len(steps)]
            used += len(steps)
        return v if self.per_step > 1 else v[:, 0]

    def live(self, n_streams: int | None = None) -> LiveEstimator:
        """Return the receiver as it is at the beginning of a stream."""
        unit = float(self.inputs.unit)
        shift = (self.receiver.mean - float(self.inputs.centre)) / unit
        signal = unit, shift, n_streams or self.inputs.n_streams
        return LiveBlocks(self.receiver, self.mechanism.target, self.schedule, *signal, self.last_block)

    def estimate(self, privatized: Integers, end: int | None = None) -> Array:
        """Return all estimates from all of v, at t that of t - lag."""
        return self.live().push(privatized, end)

    def check_steps(self, end: int, *, whole: bool = False) -> None:
        """Refuse inputs beyond a horizon and the declared last step, and a whole signal of fewer steps."""
        super().check_steps(end, whole=whole)
        n_steps = self.n_steps
        if n_steps is not None and (end > n_steps or (whole and end < n_steps)):
            raise ValueError(
                f"the last block is published after {n_steps} steps, as n_steps declared, got "
                f"{'a signal of' if whole else 'steps up to'} {end}: "
                + ("declare as many as there are" if whole else "close the stream; what follows is another one")
            )

    # --- what it promises -------------------------------------------------------------------------

    @functools.cached_property
    def predicted_mse(self) -> float | None:
        """Return the exact error with the noise that runs, the mean over a cycle, or over the steps of the horizon.

        Over a horizon it is that of all its steps, with an unfinished block as it is published or dropped. Without one
        it is that of steps whose blocks were finished, for ever; the last `lag` + 1 steps of a stream err otherwise, as
        :meth:`step_mse` says.
        """
        if self.mechanism.horizon is None or self.last_block is None:
            return self.mechanism.mse_behind(self._variances, self.receiver)
        mse = step_errors(self._loop, self.mechanism.horizon, publish=True)
        return unless_hidden(float(mse.mean()), self.mechanism.target, self.mechanism.model)

    def step_mse(self, n: int | None = None) -> Array | None:
        """Return the MSE of each estimate of a release of n steps, from rest, on the model of the design.

        The last ones wait for releases that never come: of a dropped block they learn nothing, of a published one its
        sum at the last step.

        Parameters
        ----------
        n : int, optional
            By default the declared ones, or those of the horizon.

        Returns
        -------
        array, (n,), or None where only simulation tells
        """
        n = validation.integer("n", self.fixed_steps if n is None else n, 1, MAX_HORIZON)
        self.check_steps(n, whole=True)
        return step_errors(self._loop, n, publish=self.last_block is not None)

    def terms(self, privacy: Privacy, inputs: Inputs) -> ReleaseTerms:
        """Say what it costs a person of some bounds, and what a guarantee says of it."""
        touched = self.noise if self.mechanism.weights is None else self.noise[:1]  # a signed sum of a block alone
        loss = loss_of(touched, privacy, inputs)
        what, last = self.mechanism.sizes()[0], self.last_block
        content = {"lengths": list(self.schedule.lengths), "phase": self.schedule.phase, "last_block": "drop"}
        if last is None:
            what += "; an unfinished block is dropped"
        else:
            what += f"; a block that the last of {last.n_steps} steps leaves unfinished is published there"
            content |= demand_of(last.n_steps)
        return law_terms(touched, loss, what, "block", content, [f"on sums of {n}" for n in self.schedule.lengths])

    def evidence(self, privatized: Integers, end: int) -> BlockValues:
        """Return what v from its first step on tells of the model."""
        unit, cycle = float(self.inputs.unit), max(self.schedule.lengths)
        v = privatized.reshape(self.inputs.n_streams, self.per_step, -1)[..., :end]
        sums: Array = np.asarray(unit * v, np.float64)
        aligned = replace(self.schedule, phase=0, n_steps=None)

        def weigh(x: Array) -> tuple[Array, NDArray[np.bool_]]:
            whole = aligned.sums(np.zeros((len(x), 0), np.int64), x.astype(np.int64), 0)
            return whole.astype(float), aligned.due(0, x.shape[1])

        # two-sided geometric noise has this kurtosis, and tables of the same demand less
        kurtosis = 3 + 1 / min(float(x.variance) for x in self.noise)
        model, begin, centre = self.mechanism.model, -self.schedule.phase % cycle, float(self.inputs.centre)
        published = np.array(self._variances), kurtosis, centre, cycle, begin, sums, weigh, self._publish
        return BlockValues(model, *published, self._rounding, self.receiver.mean, self.respond)

    def respond(self) -> ErrorResponses | str:
        """Return how estimates err, or say why that is not computed."""
        return self.error_responses

    @functools.cached_property
    def error_responses(self) -> ErrorResponses | str:
        """Return how estimates err, or say why that is not computed."""
        decay = self._loop.decay() if self.mechanism.horizon is None else 0.0
        parts = self.receiver, self.mechanism.target, self.schedule, self.last_block
        return find_responses(*parts, self._variances, self._rounding, decay)

    @property
    def _rounding(self) -> float:
        """Return the variance of what rounding adds to an input."""
        return rounding_variance(self.mechanism.lattice, self.mechanism.model)

    def _publish(self, u: Array, rng: np.random.Generator) -> Array:
        """Imitate what would be published of signals that begin with a cycle."""
        aligned, unit = replace(self.schedule, phase=0, n_steps=None), float(self.inputs.unit)
        steps = np.floor((u - float(self.inputs.centre)) / unit + 0.5)
        x = np.clip(steps, *self.inputs.range).astype(np.int64)
        sums, due = aligned.sums(x[:, :0], x, 0).astype(float), aligned.due(0, x.shape[1])
        for level, law in enumerate(self.noise):
            sums[:, level, due[level]] += imitate_noise(law, rng, (len(x), int(due[level].sum())))
        return unit * sums

    # --- for adapt: another receiver may run behind it --------------------------------------------

    def published_sums(self, privatized: Integers, end: int) -> PublishedSums | None:
        """Return the sums of whole cycles of v before a step; None where there are too few."""
        responses = self.respond()
        return None if isinstance(responses, str) else self.evidence(privatized, end).published_sums(responses.reach)

    def receiver_sums(self, v: Array) -> Integers:
        """Return v (streams, time) or, of several sums at a step, (streams, sums, time), all of it integers.

        Raises
        ------
        ValueError
            For v that does not hold the integers that were published, and for another shape.
        """
        if v.dtype.kind not in "iu":
            raise ValueError(f"v must hold the integers that were published, got dtype {v.dtype}: give privatized")
        shape = (self.inputs.n_streams, *([self.per_step] if self.per_step > 1 else []))
        if v.shape[:-1] != shape and (1, *v.shape[:-1]) != shape:
            raise ValueError(f"v must have the shape {(*shape, 'time')}, got {v.shape}")
        return v.reshape(*shape, v.shape[-1]).astype(np.int64)

    def redesigned_for(self, model: Model) -> ExactBlockSums:
        """Return the same sums and noise with a receiver that was designed for another model of the input."""
        laws = self.noise if self.mechanism.weights is None else self.noise[:1]
        receiver = redesign_blocks(self.mechanism, _variances_of(laws), model)
        if self.last_block is None:
            return replace(self, receiver=receiver)
        loop = self.mechanism.loop_behind(self._variances, receiver, model)
        return replace(self, receiver=receiver, last_block=LastBlock.make(loop, self.last_block.n_steps))

    def mse_on(self, model: Model) -> float:
        """Return the exact error on another model of the input, as `predicted_mse` is on that of the design.

        Where a last block is published that model must be the one that the receiver is designed for.
        """
        loop, horizon = self.mechanism.loop_behind(self._variances, self.receiver, model), self.mechanism.horizon
        if horizon is None:
            return float(loop.cycle_mse().mean())
        mse = loop.step_mse(horizon) if self.last_block is None else step_errors(loop, horizon, publish=True)
        return float(mse.mean())

    # --- as JSON holds it -------------------------------------------------------------------------

    @staticmethod
    def read_noise(given: Any, receiver: PeriodicKalman) -> tuple[LatticeLaw, ...]:
        """Read the law of the noise on each sum: one for all of them, or each its own."""
        return read_laws(given, len(receiver.lengths))

    @property
    def demand(self) -> dict[str, Any]:
        """Return the demand: all that decides the rest, but for the rounding of a machine."""
        return super().demand | demand_of(self.n_steps)

    @property
    def configuration(self) -> dict[str, Any]:
        """Return the whole mechanism, as JSON holds it."""
        last = {} if self.last_block is None else {"last_block": self.last_block.configuration}
        return super().configuration | last

    @classmethod
    def from_configuration(cls, given: Mapping[str, Any]) -> ExactBlockSums:
        """Make the same mechanism to the last bit, though another machine would have designed another."""
        plan = super().from_configuration(given)
        last = given.get("last_block")
        return plan if last is None else replace(plan, last_block=LastBlock.from_configuration(last))

    def receiver_content(self) -> dict[str, Any]:
        """Return the receiver as JSON holds it."""
        return self.receiver.to_fields()

    @staticmethod
    def read_receiver(content: Fields, target: Filter) -> PeriodicKalman:
        """Read what :meth:`receiver_content` gave."""
        return PeriodicKalman.from_fields(content)


def _variances_of(laws: Sequence[LatticeLaw]) -> tuple[float, ...]:
    """Return the variances of noise in units."""
    return tuple(float(x.variance) for x in laws)
