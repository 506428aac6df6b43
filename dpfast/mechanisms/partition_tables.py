"""Make the tables of blocks whose partition reacts to what was published: one for each length that a block may have."""

from __future__ import annotations

import numpy as np

from dpfast._kernels.partition import Partition
from dpfast._support.validation import Array
from dpfast.mechanisms.block_dynamics import small_state_space
from dpfast.mechanisms.posterior_tables import (
    FAR,
    MOST_FOR_A_SAMPLE,
    MOST_NUMBERS,
    MOST_OPERATIONS,
    TableMaker,
    sum_weights,
    weighted_period,
)
from dpfast.privacy.integer_noise.law import IntegerNoise


def build_partition(
    maker: TableMaker, noise: IntegerNoise, threshold: float, longest: int, lag: int, n_steps: int | None
) -> Partition:
    """Make the partition into blocks that end once their sum has `threshold` times the variance of the noise."""
    period, off_mean = weighted_period(noise), maker.offset - maker.mean
    _check_cost(maker, longest, lag, period - 1)
    tables, moments = [], []
    for length, found in enumerate(maker.walks(longest, lag), start=1):
        sums = np.arange(found.mass.shape[-1])
        weights = sum_weights(noise, len(sums) - 1)
        tables.append(maker.table(found, weights, length, length * off_mean))
        moments.append(np.concatenate([found.mass.sum(axis=1) @ sums**k for k in (1, 2)]))
    return Partition(
        tables=tuple(tables),
        moments=np.array(moments),
        predictions=maker.predictions(longest),
        start=maker.law.start,
        n_states=len(small_state_space(maker.target)[0]),
        lag=lag,
        unit=maker.unit,
        offset=maker.offset,
        range=int(maker.steps.max()),
        period=period,
        farthest=FAR if noise.largest is None else period - 1.0,
        threshold=threshold * noise.variance,
        n_steps=n_steps,
    )


def _check_cost(maker: TableMaker, longest: int, lag: int, beyond: int) -> None:
    """Refuse tables that would take too much memory, or too long to make or to run."""
    n, n_levels, n_states = len(maker.law.start), len(maker.law.levels), len(small_state_space(maker.target)[0])
    lengths: Array = np.arange(1.0, longest + 1)
    means, sums = 1 + n_states + np.minimum(lengths, lag + 1.0), lengths * float(maker.steps.max()) + 1
    numbers = (sums + 2 * beyond + 1) * n * n * means
    steps = sums[-1] * n_levels * n * n * (means + n_states**2)
    for what, found, most in (
        ("numbers in its tables", numbers.sum(), MOST_NUMBERS),
        ("multiply-adds to make them", (sums * numbers + steps).sum(), MOST_OPERATIONS),
        ("multiply-adds for a sample", maker.operations_for_a_sample(1, lag), MOST_FOR_A_SAMPLE),
    ):
        if found > most:
            raise ValueError(
                f"longest must be smaller here, got {longest}: it would take {found:.2g} {what}, more than {most:.2g}, "
                f"for {n_levels} levels over {maker.steps.max() + 1} units, a target of {n_states} "
                f"states and a lag of {lag}; or take a coarser alphabet, a shorter target or a smaller lag"
            )
