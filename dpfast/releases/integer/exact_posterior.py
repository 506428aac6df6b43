"""Posterior means of a chain of levels behind exact sums of blocks, and behind exact answers: v is that of others."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._kernels.compiled_receivers import CompiledPosterior
from dpfast._support.errors import ReleaseError
from dpfast._support.validation import Array
from dpfast.mechanisms.posterior_blocks import PosteriorBlockMechanism
from dpfast.mechanisms.posterior_response import PosteriorResponseMechanism
from dpfast.mechanisms.posterior_tables import SumNoise
from dpfast.privacy.canonical_table import CanonicalTable
from dpfast.privacy.geometric_rate import GeometricRate
from dpfast.privacy.integer_noise.geometric import TwoSidedGeometric
from dpfast.releases.integer.exact_block_sums import ExactBlockSums
from dpfast.releases.integer.exact_response import ExactResponse
from dpfast.releases.integer.inputs import Integers
from dpfast.releases.integer.lattice_noise import LatticeLaw
from dpfast.releases.integer.live_posterior import FOR_EVER, LivePosterior
from dpfast.releases.model_check.channel_check import NOT_LINEAR

_BETWEEN_ANSWERS = np.array([-1.5, 0.0, 1.5])  # of -2, -1, 1 and 2


@dataclass(frozen=True, eq=False, repr=False)
class ExactPosteriorBlocks(ExactBlockSums):
    """Publish sums of blocks of integers with exact noise, and estimate by the posterior mean of a chain of levels.

    :func:`exact` makes it of :func:`block_sums` with ``receiver="bayes"``. All but the estimates is that of
    :class:`ExactBlockSums`: the same v, and the same guarantee.

    Attributes
    ----------
    mechanism : PosteriorBlockMechanism
        The design.
    inputs : Inputs
    tolerance : float
    noise : tuple of GeometricRate or CanonicalTable
        These three as of :class:`ExactBlockSums`.
    receiver : PeriodicKalman
        The linear receiver of these sums, whose error is a bound from above.
    last_block : None
        An unfinished block is dropped.

    Examples
    --------
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
    >>> mechanism = dp.block_sums(dp.Filter([0.1], [1, -0.9]), dp.Privacy(3), chain, receiver="bayes", length=1)
    >>> plan = dp.exact(mechanism, dp.Inputs(0, 1))
    >>> plan.predicted_mse is None, round(plan.linear_mse**0.5, 4)
    (True, 0.0703)
    """

    kind: ClassVar[str] = "block sums, posterior mean"
    mechanism: PosteriorBlockMechanism

    @functools.cached_property
    def _posterior(self) -> CompiledPosterior:
        """Return what estimates; its tables follow from the noise that runs and from the design."""
        return self.mechanism.receiver_behind(_sum_noise(self.noise[0]), self.mechanism.horizon or FOR_EVER)

    def _values(self, v: Integers, position: int) -> Array:
        """Return sums about the mean in the units of the signal, and 0 where none is released."""
        unit = self.mechanism.lattice.unit
        shift, n = (self.receiver.mean - float(self.inputs.centre)) / unit, v.shape[1]
        mean = shift * self.schedule.weighed(position, n)
        return np.where(self.schedule.due(position, n), (v - mean) * unit, 0.0)

    def live(self, n_streams: int | None = None) -> LivePosterior:
        """Return the receiver as it is at the beginning of a stream."""
        return LivePosterior(self._posterior, self._values, n_streams or self.inputs.n_streams)

    def ending_after(self, n_steps: int) -> ExactBlockSums:
        """Refuse to publish an unfinished block.

        Raises
        ------
        ReleaseError
        """
        raise ReleaseError(
            f"last_block must be 'drop' with a posterior mean, got 'publish' for {self.mechanism.full_name}: its "
            "tables are those of whole blocks; design it with receiver='linear', or leave last_block out"
        )

    @functools.cached_property
    def predicted_mse(self) -> None:
        """It is None, as only simulation tells; `linear_mse` is a bound of it from above."""

    @functools.cached_property
    def linear_mse(self) -> float | None:
        """Return the exact error of the linear receiver of these sums, which the posterior mean does not exceed."""
        return self.mechanism.mse_behind(self._variances, self.receiver)

    def step_mse(self, n: int | None = None) -> None:
        """Return None, as only simulation tells."""

    @functools.cached_property
    def error_responses(self) -> str:
        """Say why no error is estimated from v."""
        return NOT_LINEAR

    @property
    def error_text(self) -> str:
        """Write what is known of the error."""
        return _bounded_text(self.linear_mse)


@dataclass(frozen=True, eq=False, repr=False)
class ExactPosteriorResponse(ExactResponse):
    """Publish by exact randomised response, and estimate by the posterior mean of a chain of two levels.

    :func:`exact` makes it of :func:`randomized_response` with ``receiver="bayes"``. All but the estimates is that of
    :class:`ExactResponse`: the same answers, and the same guarantee. Answers to the declared zeros at the end tell
    nothing, and nothing is made of them.

    Attributes
    ----------
    mechanism : PosteriorResponseMechanism
        The design.
    inputs : Inputs
    tolerance : float
    noise : ResponseTable
        These three as of :class:`ExactResponse`.
    receiver : LinearReceiver
        The linear receiver of these answers, whose error is a bound from above.
    """

    kind: ClassVar[str] = "randomised response, posterior mean"
    mechanism: PosteriorResponseMechanism

    @functools.cached_property
    def _posterior(self) -> CompiledPosterior:
        """Return what estimates; its tables follow from the answers that are drawn and from the design."""
        certain, truly, falsely = (float(x) for x in self.noise.probabilities)
        low = [certain, truly, falsely, 0.0]
        return self.mechanism.receiver_behind(np.column_stack([low, low[::-1]]), _BETWEEN_ANSWERS, FOR_EVER)

    def live(self, n_streams: int | None = None) -> LivePosterior:
        """Return the receiver as it is at the beginning of a stream."""
        n_streams = n_streams or self.inputs.n_streams
        return LivePosterior(self._posterior, lambda v, position: v.astype(np.float64), n_streams)

    def estimate(self, privatized: Integers, end: int | None = None) -> Array:
        """Return all estimates from all of v, at t that of t - lag."""
        return self.live().push(privatized, end)

    def linear_channel(self) -> None:
        """Return None, as no linear receiver runs."""

    @functools.cached_property
    def predicted_mse(self) -> None:
        """It is None, as only simulation tells; `linear_mse` is a bound of it from above."""

    @functools.cached_property
    def linear_mse(self) -> float | None:
        """Return the exact error of the linear receiver of these answers, which the posterior mean does not exceed."""
        return self.mse_behind(self.receiver)

    @property
    def error_text(self) -> str:
        """Write what is known of the error."""
        return _bounded_text(self.linear_mse)


class _TableNoise(NamedTuple):
    """A law of a table, as a posterior mean asks for it."""

    law: CanonicalTable

    @property
    def largest(self) -> int:
        """Return the largest |n| that can be drawn."""
        return self.law.values[-1]

    @property
    def period(self) -> int:
        """Return 1: it has an end."""
        return 1

    def log_probability(self, n: NDArray[np.int64]) -> Array:
        """Return ln P(N = n) of integers, minus infinity outside of the table."""
        padded = np.array([0.0, *(float(x) for x in self.law.probabilities), 0.0])
        with np.errstate(divide="ignore"):
            logs = np.log(padded)
        return np.asarray(logs[np.clip(n + self.largest + 1, 0, len(logs) - 1)])


def _sum_noise(law: LatticeLaw) -> SumNoise:
    """Return a law that is drawn as a posterior mean asks for it."""
    return TwoSidedGeometric(float(law.per_step)) if isinstance(law, GeometricRate) else _TableNoise(law)


def _bounded_text(linear_mse: float | None) -> str:
    """Write what is known of an error that only simulation tells."""
    bound = "" if linear_mse is None else f"; at most {linear_mse**0.5:.6g}, that of the linear receiver"
    return f"- (only simulation tells{bound})"
