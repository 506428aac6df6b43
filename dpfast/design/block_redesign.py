"""The receiver of block sums that are there, designed anew: for the noise that runs, or for another model."""

from __future__ import annotations

from dpfast.design.block_plan import Plan
from dpfast.design.block_problem import BlockProblem
from dpfast.design.block_signs import Signs
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.mechanisms.receivers.periodic_kalman import PeriodicKalman
from dpfast.signals.model import Model


def redesign_blocks(
    mechanism: BlockMechanism, variances: tuple[float, ...], model: Model | None = None
) -> PeriodicKalman:
    """Design the receiver of the same sums behind other noise, for the model of the design or for another one.

    Parameters
    ----------
    mechanism : BlockMechanism
    variances : tuple of float
        Of the noise on the sums of each level, in units; of signed sums one for all.
    model : Model, optional
    """
    factors = mechanism.target.factors
    assert factors is not None
    model = mechanism.model if model is None else model
    problem = BlockProblem(factors, mechanism.horizon, model, mechanism.lattice, mechanism.lag)
    if mechanism.weights is None:
        return problem.receiver(Plan.sums(*mechanism.lengths), variances, mechanism.receiver.phase)
    lates = mechanism.receiver.offsets or (0,) * len(mechanism.lengths)
    return problem.receiver(Plan.of(Signs(mechanism.weights, lates)), variances, mechanism.receiver.phase)
