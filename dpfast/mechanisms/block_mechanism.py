"""Block sums: every so many steps the sum of a block is published with integer noise, and the output estimated."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpfast._kernels import compiled_mechanisms, compiled_receivers
from dpfast._kernels.factors import Factors
from dpfast._support import validation
from dpfast._support.first_steps import SETTLED, distinct_steps, mean_of_first
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import MAX_HORIZON, Toeplitz
from dpfast.mechanisms import block_noise
from dpfast.mechanisms.base import NO_EXACT_DRAW, GuaranteeTerms, Option, figure_text
from dpfast.mechanisms.block_base import BlockMechanismBase
from dpfast.mechanisms.block_dynamics import BlockSystem, build_system, find_stretches
from dpfast.mechanisms.block_errors import ClosedLoop, unless_hidden
from dpfast.mechanisms.block_kalman import least_mse
from dpfast.mechanisms.block_noise import BlockLaw, check_shares, check_sharing
from dpfast.mechanisms.block_weights import check_weights, sums_text, weights_of_sums
from dpfast.mechanisms.bound import BoundTerms
from dpfast.mechanisms.group_levels import Levels, given_levels
from dpfast.mechanisms.receivers.periodic_kalman import PeriodicKalman
from dpfast.mechanisms.rounding import rounding_variance, warn_of_rounding
from dpfast.privacy.integer_noise.law import IntegerKind
from dpfast.privacy.lattice import Lattice, find_lattice
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.provenance import Provenance
from dpfast.signals.model import Model, check_model

_SLOWEST = 1 - 1e-7  # decay in a step: beyond it, rounding


@dataclass(frozen=True, eq=False)
class BlockMechanism(BlockMechanismBase):
    r"""Study a mechanism that adds integer noise to sums of blocks of inputs, and estimates F u at every step.

    v_j = (sum of the j-th block of inputs) + integer noise, every B steps; an estimate of F u from all v so far.

    Made by :func:`dpfast.block_sums`. With several levels, every block of a level is so many of the level before, and
    each level pays its share of ε. With weights, each input of a block enters one of its sums, as it is or negated.

    Attributes
    ----------
    name : str
    target : Filter or Toeplitz
        F; over a horizon one that is rational, stable or not.
    privacy : Privacy
        The guarantee that is asked for.
    model : Model
        The signal that it was designed for.
    receiver : PeriodicKalman
    noise_kinds : tuple of str
        The kind of integer noise of each level.
    shares : tuple of float
        The share of ε and δ of each level.
    weights : array, (block, sums), or None
        The signs of the inputs of a block in each of its sums: 0, 1 or -1, and in a row at most one that is not 0. None
        for one sum of them all.
    unit : float or None
        The unit whose multiples real inputs are rounded to; None where they are levels or counts.
    slack : int or tuple of int
        Where the blocks of a group share noise, how much of it may cancel; in groups of groups, for each level.
    options : tuple of (name, value)
        What else the design was given.
    declared : tuple of (name, source)
        What a person said of the inputs, by :meth:`with_sources`.

    Notes
    -----
    *Privacy.* An event changes one sum of each level by at most max_change, so that the noise of that one draw hides
    it; v is (epsilon, delta)-differentially private in exact arithmetic, and with geometric or staircase noise δ = 0,
    also where inputs depend on what was published before. :meth:`simulate` is for studies: its noise is seeded.

    Examples
    --------
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> mechanism = dp.block_sums(dp.Filter([1, 0.995], [1, -0.995]), dp.Privacy(1), chain)
    >>> mechanism.lengths, round(mechanism.predicted_rmse, 3), round(mechanism.worst_step_mse**0.5, 3)
    ((21,), 7.228, 8.692)
    """

    name: str
    target: Filter | Toeplitz
    privacy: Privacy
    model: Model
    receiver: PeriodicKalman
    noise_kinds: tuple[IntegerKind, ...] = ("geometric",)
    shares: tuple[float, ...] = (1.0,)
    unit: float | None = None
    weights: Array | None = None
    slack: Levels = 0
    options: tuple[tuple[str, Option], ...] = ()
    declared: tuple[tuple[str, Provenance], ...] = ()
    mean_square: ClassVar[None] = None  # no design of blocks is made for the worst input
    lower_bound_mse: ClassVar[None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shares(self.shares, self.noise_kinds, len(self.lengths) if self.weights is None else 1)
        check_sharing(self.receiver.groups, self.slack, self.noise_kinds, weighed=self.weights is not None)
        if self.weights is not None:
            object.__setattr__(self, "weights", check_weights(self.weights, self.lengths))
        elif self.receiver.offsets or len(set(self.lengths)) < len(self.lengths):
            raise ValueError(
                f"weights must be there for a receiver of signed sums of {self.lengths[0]} steps, got None"
            )

    @functools.cached_property
    def lattice(self) -> Lattice:
        """The unit that inputs are whole multiples of, or are rounded to, and the largest change in units."""
        return find_lattice(self.privacy, self.model.levels, self.unit)

    @functools.cached_property
    def noise(self) -> tuple[BlockLaw, ...]:
        """The law of the noise of each level, as privacy and unit make it; with weights, of each sum of a block.

        Where blocks share noise, it is the law of a group, or of a tree of groups.
        """
        levels = self.receiver.groups, self.slack
        laws = block_noise.make_laws(self.noise_kinds, self.shares, self.privacy, self.lattice.steps, *levels)
        return laws if self.weights is None else laws * len(self.lengths)

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths B of the blocks, level by level; with weights, of each sum of a block."""
        return self.receiver.lengths

    @property
    def group(self) -> Levels:
        """The blocks that share noise, in groups of groups for each level; 1 for noise of their own."""
        return given_levels(self.receiver.groups or (1,))

    @property
    def lag(self) -> int:
        """The samples by which the estimate is late."""
        return self.receiver.lag

    @property
    def noise_std(self) -> float:
        """The standard deviation of the noise on the sums of the first level."""
        return self._noise_stds[0]

    @property
    def _noise_stds(self) -> list[float]:
        """The standard deviation of the noise on the sums of each level."""
        return [self.lattice.unit * math.sqrt(x.variance) for x in self.noise]

    @functools.cached_property
    def ideal_mse(self) -> float | None:
        """The error of the best linear receiver behind these sums: what runs, unless the privacy was replaced."""
        system, variances = self._system(self.model), self._variances
        schedule = self.receiver.schedule
        stretches = find_stretches(system, schedule)
        return least_mse(system, stretches, schedule, variances, self.lag, self.horizon)

    @property
    def exact_kind(self) -> str:
        """Name the kind of the exact form that a release runs."""
        return "block sums"

    def release_hindrance(self) -> str:
        """Say why the exact path cannot run it, and what to do instead; nothing where it can."""
        if self.receiver.groups:
            return f"noise that several sums share {NO_EXACT_DRAW} without a group"
        if "staircase" in self.noise_kinds:
            return f'staircase noise {NO_EXACT_DRAW} with noise="geometric"'
        return ""

    def mse_behind(self, variances: tuple[float, ...], receiver: PeriodicKalman) -> float | None:
        """Return the MSE with another receiver of the same sums, and noise of other variances, the mean over time.

        None where rounding hides it.
        """
        loop = self.loop_behind(variances, receiver)
        mse = loop.cycle_mse() if self.horizon is None else loop.step_mse(self.horizon)
        return unless_hidden(float(mse.mean()), self.target, self.model)

    def loop_behind(
        self, variances: tuple[float, ...], receiver: PeriodicKalman, model: Model | None = None
    ) -> ClosedLoop:
        """Return the system whose errors are those of another receiver, and noise of other variances, on any model."""
        model = model or self.model
        return ClosedLoop(self._system(model), model.mean - receiver.mean, variances, receiver)

    def settling_time(self, amplitude: float) -> int:
        """Count the samples until target and receiver have forgotten a start but for an amplitude; 0 over a horizon."""
        target = self.target.as_filter()
        if target is None:
            return 0
        forgets = min(self._loop(self.model).decay(), _SLOWEST)
        steps = math.ceil(math.log(amplitude) / math.log(forgets)) if forgets > 0 else 0
        return max(len(target.factors.taps), target.settling_time(amplitude), steps + self.receiver.schedule.cycle)

    def sizes(self) -> tuple[str, str]:
        """Say how long the blocks are, and how large the receiver is."""
        return self._lengths_text(), self._receiver_text()

    def _receiver_text(self) -> str:
        """Say what estimates, and how large it is."""
        return self.receiver.size_text()

    @property
    def full_name(self) -> str:
        """Name its kind and itself, for messages, with its horizon."""
        return super().full_name + ("" if self.horizon is None else f" over a horizon of {self.horizon} steps")

    def bound_terms(self) -> BoundTerms:
        """Say what is particular to block sums for bounds of errors: the receiver is linear."""
        return BoundTerms(self.lag, additive=True, linear_mean=True)

    def guarantee_terms(self) -> GuaranteeTerms:
        """Say what is particular to the guarantee of block sums; the description asks for it."""
        n = len(self.lengths) if self.weights is None else 1  # an event is in one sum of a block
        noise = block_noise.noise_words(self.lengths[:n], self.noise[:n], self._noise_stds[:n])
        delta = self.privacy.delta if any(x.delta for x in self.noise) else 0.0
        return GuaranteeTerms(self._streams_text(), noise, delta, self._condition_text())

    # --- errors -----------------------------------------------------------------------------------

    @property
    def _variances(self) -> tuple[float, ...]:
        return block_noise.own_variances(self.noise, self.lattice.unit)

    def _system(self, model: Model) -> BlockSystem:
        factors = self.target.factors
        assert factors is not None
        rounding = rounding_variance(self.lattice, model)
        shared = block_noise.common_variances(self.noise[0], self.lattice.unit)
        return build_system(model.shaping.factors, factors, len(self.noise), rounding, self.weights, shared)

    def _loop(self, model: Model) -> ClosedLoop:
        return ClosedLoop(self._system(model), model.mean - self.receiver.mean, self._variances, self.receiver)

    @functools.cached_property
    def linear_mse(self) -> float:
        """The exact MSE of the linear receiver on the model of the design, the mean over time.

        It is over a cycle, or the steps of the horizon.
        """
        return float(self._mse.mean())

    @property
    def predicted_mse(self) -> float | None:
        """The exact MSE on the model of the design, the mean over time; None where rounding hides it."""
        return unless_hidden(self.linear_mse, self.target, self.model)

    @property
    def phase_mse(self) -> Array | None:
        """The stationary MSE of each step of a cycle, first when all levels release; None over a horizon, or hidden."""
        return None if self.horizon is not None or self.predicted_mse is None else self._mse

    @property
    def worst_step_mse(self) -> float | None:
        """The largest MSE of a step: of a cycle, or of the horizon; None where rounding hides the mean."""
        return None if self.predicted_mse is None else float(self._mse.max())

    @functools.cached_property
    def _mse(self) -> Array:
        return validation.freeze(self._mse_on(self.model))

    def _mse_on(self, model: Model) -> Array:
        """Return the MSE of each step: of a cycle by the time when it is published, or of the horizon."""
        loop = self._loop(model)
        return loop.step_mse(self.horizon) if self.horizon is not None else np.roll(loop.cycle_mse(), self.lag)

    def predict(self, model: Model) -> float | None:
        """Return the MSE of this mechanism on another model, the mean over time; None where rounding hides it."""
        check_model(model)
        warn_of_rounding(self.lattice, model)
        return unless_hidden(float(self._mse_on(model).mean()), self.target, model)

    def step_mse(self, n: int | None = None, model: Model | None = None) -> Array | None:
        r"""Return the MSE E|ŷ_t - y_t|² of each of the first n steps, from rest.

        The input is stationary from the first step on, and ŷ_t is the estimate that comes at t + lag, over a horizon
        from what is released up to its end.

        Parameters
        ----------
        n : int, optional
            Steps, at least 1; over a horizon at most those that it has, by default all.
        model : Model, optional
            Of the input; by default the one of the design.

        Returns
        -------
        array, (n,), or None where only simulation tells

        Examples
        --------
        >>> import dpfast as dp
        >>> counts = dp.ARMA([1.2], [1, -0.9], mean=5)
        >>> blocks = dp.block_sums(dp.Filter([1]), dp.Privacy(1), counts, length=2)
        >>> blocks.step_mse(3).round(3), blocks.phase_mse.round(3)
        (array([7.579, 0.813, 2.099]), array([0.811, 2.097]))
        """
        n = validation.integer("n", self.horizon if n is None else n, 1, self.horizon or MAX_HORIZON)
        if model is not None:
            check_model(model)
            warn_of_rounding(self.lattice, model)
        model = self.model if model is None else model
        return self._loop(model).step_mse(n)

    def predict_first(self, n: int, model: Model) -> float | None:
        """Return the mean of :meth:`step_mse` over the first n steps, which a study of these is compared with."""
        settled = n if self.horizon is not None else 2 * self.settling_time(SETTLED)
        steps = self.step_mse(distinct_steps(n, settled, self.lengths[-1]), model)
        return None if steps is None else mean_of_first(steps, n, self.lengths[-1])

    # --- simulation -------------------------------------------------------------------------------

    def _mark_unreleased(self, released: list[Array]) -> None:
        """Put NaN where a sum of a level is not released."""
        passed = np.arange(1, released[0].shape[-1] + 1) + self.receiver.phase
        for sums, length, late in zip(released, self.lengths, self._lates, strict=True):
            sums[:, (passed - late) % length != 0] = np.nan

    def compiled(self) -> compiled_mechanisms.CompiledBlockMechanism:
        """Return the compiled form, which studies run."""
        factors = self.target.factors
        assert factors is not None
        signs = weights_of_sums(self.weights, self._lates)
        parts = zip(self.lengths, self.noise, signs, self._lates, strict=True)
        blocks = tuple(
            compiled_mechanisms.CompiledBlock(n, *law.tails(), w, late, block_noise.shared_table(law))
            for n, law, w, late in parts
        )
        unit, offset, _, rounds = self.lattice
        return compiled_mechanisms.CompiledBlockMechanism(
            self.receiver.mean, blocks, offset, unit, rounds, self._compiled_receiver(factors), self.horizon
        )

    def _compiled_receiver(self, target: Factors) -> compiled_receivers.CompiledBlockReceiver:
        """Return the compiled form of what estimates."""
        return self.receiver.compiled(target)

    @property
    def _lates(self) -> tuple[int, ...]:
        """The samples after the end of a block at which each sum is released."""
        return self.receiver.offsets or (0,) * len(self.lengths)

    # --- words ------------------------------------------------------------------------------------

    def _promise_text(self) -> str:
        delta = self.guarantee_terms().delta
        return f"epsilon {self.privacy.epsilon:.6g}, delta {delta:.3g} ({self._noise_text()} noise)"

    def _lengths_text(self) -> str:
        return sums_text(self.lengths, self.weights, self.receiver.offsets, self.receiver.groups)

    def _noise_text(self) -> str:
        return " and ".join(dict.fromkeys(x.kind for x in self.noise))

    def _facts(self) -> dict[str, str]:
        first = f", the first one {self.lengths[0] - self.receiver.phase}" if self.receiver.phase else ""
        shares = f", of shares {block_noise.listed(self.shares)}" if len(self.shares) > 1 else ""
        stds = self._noise_stds if self.weights is None else self._noise_stds[:1]  # one law for all sums
        return {
            "blocks": self._lengths_text() + first + shares,
            **self._horizon_facts(),
            "noise": f"{self._noise_text()}, standard deviation {block_noise.listed(stds)}",
            "receiver": self._receiver_text(),
            "lag": str(self.lag),
            "predicted RMSE": self._figures_text(),
        }

    def _figures_text(self) -> str:
        """Write what is predicted."""
        if self.predicted_mse is None:
            return "- (below what rounding lets one tell)"
        return f"{figure_text(self.predicted_rmse)} (worst step {math.sqrt(float(self._mse.max())):.6g})"

    def __repr__(self) -> str:
        return f"<BlockMechanism {self.name!r}: predicted RMSE {figure_text(self.predicted_rmse)}>"
