"""The check of block sums: their mean and covariance at the steps of releases against the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpfast._support.validation import Array
from dpfast.design.adaptive.published_sums import SHORTEST, PublishedSums
from dpfast.design.adaptive.sum_errors import ErrorResponses
from dpfast.releases.model_check.block_error import estimate_from_sums
from dpfast.releases.model_check.error_from_v import ErrorFromV
from dpfast.releases.model_check.fourth_moments import excess_kurtosis
from dpfast.releases.model_check.simulated_chances import WhiteValues, fewer_steps
from dpfast.releases.model_check.verdict import NOTHING_TO_TEST, Judgement, judge_whiteness
from dpfast.releases.model_check.whiteness_tests import Excess
from dpfast.signals.model import Model, autocovariance

_CHUNK = 128  # steps that are made white together, behind as many before, at the least
TOO_SHORT = f"No error is estimated from what was published: there are fewer than {SHORTEST} whole cycles of blocks."


class WhiteSums(NamedTuple):
    """Hold sums of blocks that should be white.

    Attributes
    ----------
    values : WhiteValues
    cycle : int
        Steps after which the releases repeat.
    ends : array of int, (values,)
        The steps at which the sums are released.
    spacing : float
        Steps that they are apart, on the average.
    """

    values: WhiteValues
    cycle: int
    ends: NDArray[np.int64]
    spacing: float


class BlockValues(NamedTuple):
    """Hold what was published as sums of blocks, as far as a check needs it.

    Attributes
    ----------
    model : Model
        That of the design.
    noise_variances : array, (levels,)
    noise_kurtosis : float
        Excess of it over that of a normal noise, at most.
    centre : float
        That every sum has subtracted from its inputs.
    cycle : int
        Steps after which the releases repeat.
    begin : int
        The step at which the first whole cycle begins.
    sums : array, (streams, levels, steps)
        What was published, in units of the signal; 0 where nothing was.
    weigh : callable
        Gives of inputs (streams, steps) that begin with a cycle the sums that would be published without noise, and at
        which steps they are.
    publish : callable
        Gives of inputs (rows, steps) that begin with a cycle, and a generator of random numbers, what would be
        published: the like of `sums`.
    rounding : float
        The variance of what rounding adds to an input.
    mean : float
        That the receiver takes inputs to have.
    respond : callable
        Gives how the receiver errs, or says why that is not known.
    """

    model: Model
    noise_variances: Array
    noise_kurtosis: float
    centre: float
    cycle: int
    begin: int
    sums: Array
    weigh: Callable[[Array], tuple[Array, NDArray[np.bool_]]]
    publish: Callable[[Array, np.random.Generator], Array]
    rounding: float
    mean: float
    respond: Callable[[], ErrorResponses | str]

    @property
    def steps(self) -> int:
        """Count the steps of each stream."""
        return int(self.sums.shape[-1])

    def until(self, steps: int) -> BlockValues:
        """Return the first steps alone."""
        return self._replace(sums=self.sums[..., :steps])

    def judge(self, level: float) -> Judgement:
        """Test whether v agrees with the model, with this chance of a false alarm at most."""
        white = self.whitened()
        if white is None:
            return NOTHING_TO_TEST
        found = white.values.compare(level)
        if found is None:  # the laws of all of it would take too long to simulate
            return self.until(fewer_steps(self.steps, white.values.cost, level)).judge(level)
        return judge_whiteness(found, self.model.mean, level, white.spacing)

    def whitened(self) -> WhiteSums | None:
        """Make the sums white by the model; None where there are too few."""
        length = self._length
        n_chunks = (self.steps - self.begin) // length - 1  # the first one is what the sums of the next may begin in
        return None if n_chunks < 1 else self._whiten(length, n_chunks)

    @property
    def _length(self) -> int:
        """Count the steps that are made white together: whole cycles."""
        return self.cycle * -(-_CHUNK // self.cycle)

    def _whiten(self, length: int, n_chunks: int) -> WhiteSums:
        """Make sums white by the model, and say how others are drawn, and at which steps they are."""
        impulses, due = self.weigh(np.eye(3 * length))
        now = due[:, length : 2 * length]
        n_sums = int(now.sum())
        both = np.concatenate([now, now], axis=1)
        weights = np.ascontiguousarray(impulses[:, :, length:].transpose(0, 2, 1)[:, both.T].T)
        inputs = autocovariance(self.model, 3 * length)
        inputs[0] += self.rounding
        signal = weights @ linalg.toeplitz(inputs) @ weights.T
        covariance = signal + np.diag(self.noise_variances[np.nonzero(both.T)[1]])
        rise = np.tile(weights.sum(axis=1)[n_sums:], n_chunks)
        above = (self.model.mean - self.centre) * rise

        def released(sums: Array) -> Array:
            """Return the sums of all chunks but the first, stream after stream."""
            chunks = sums[..., length:].reshape(*sums.shape[:2], n_chunks, length)
            return np.asarray(chunks.transpose(0, 2, 3, 1)[:, :, now.T].reshape(len(sums), -1))

        def draw(rows: int, rng: np.random.Generator) -> Array:
            sums = self.publish(self.model.sample(rows, length * (n_chunks + 1), seed=rng), rng)
            return _whiten_chunks(released(sums) - above, covariance, n_sums)

        values = released(self.sums[..., self.begin : self.begin + length * (n_chunks + 1)])
        z = _whiten_chunks(np.concatenate([values - above, rise[np.newaxis]]), covariance, n_sums)
        share = np.full(2, float(np.trace(signal) / np.trace(covariance)))
        excess = Excess(excess_kurtosis(self.model), self.noise_kurtosis)
        cost = len(values) * length * (n_chunks + 1)
        white = WhiteValues(z[:-1], z[-1], share, excess, draw, cost)
        chunks = self.begin + length * np.arange(1, n_chunks + 1)
        return WhiteSums(white, self.cycle, (chunks[:, np.newaxis] + np.nonzero(now.T)[0]).ravel(), length / n_sums)

    def estimate_error(self, *, contradicted: bool) -> ErrorFromV | str:
        """Estimate the error, by a fitted spectrum where the model is contradicted; or say why there is none."""
        responses = self.respond()
        if isinstance(responses, str):
            return responses
        seen = self.published_sums(responses.reach)
        if seen is None:
            return TOO_SHORT
        return estimate_from_sums(seen, responses, self.model, contradicted=contradicted)

    def published_sums(self, reach: int) -> PublishedSums | None:
        """Return the sums of whole cycles, for filters that reach so many steps back; None where there are too few."""
        cycle = self.cycle
        impulses, due = self.weigh(np.eye(3 * cycle))
        now = due[:, 2 * cycle :]
        weights = impulses[::-1, :, 2 * cycle :].transpose(0, 2, 1)[:, now.T].T  # the latest input first
        first = self.begin + (cycle if weights[:, cycle:].any() else 0)
        n_cycles = (self.steps - first) // cycle
        if n_cycles < SHORTEST:
            return None
        whole = self.sums[..., first : first + n_cycles * cycle].reshape(*self.sums.shape[:2], n_cycles, cycle)
        values = whole.transpose(0, 2, 3, 1)[:, :, now.T] - (self.mean - self.centre) * weights.sum(axis=1)
        variances = self.noise_variances[np.nonzero(now.T)[1]]
        return PublishedSums(values, weights, cycle, variances, self.rounding, self.mean, reach)


def _whiten_chunks(x: Array, covariance: Array, n: int) -> Array:
    """Make chunks of n values white, each behind the one before; `covariance` is that of two."""
    factor = linalg.cholesky(covariance, lower=True)
    chunks = x.reshape(len(x), -1, n)
    white = np.empty(chunks.shape)
    white[:, 0] = linalg.solve_triangular(factor[:n, :n], chunks[:, 0].T, lower=True).T
    for i in range(1, chunks.shape[1]):
        both = np.concatenate([chunks[:, i - 1], chunks[:, i]], axis=1)
        white[:, i] = linalg.solve_triangular(factor, both.T, lower=True)[n:].T
    return white.reshape(len(x), -1)
