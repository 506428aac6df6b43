"""The exact form of a mechanism: each kind of what is published, and of noise, has a class of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast.design.argument_checks import check_tolerance
from dpfast.releases.integer.exact_base import ExactBase, check_mechanism
from dpfast.releases.integer.exact_block_channels import ExactBlockChannels
from dpfast.releases.integer.exact_block_sums import ExactBlockSums
from dpfast.releases.integer.exact_channels import ExactChannels
from dpfast.releases.integer.exact_input_noise import ExactInputNoise
from dpfast.releases.integer.exact_mechanism import ExactMechanism
from dpfast.releases.integer.exact_posterior import ExactPosteriorBlocks, ExactPosteriorResponse
from dpfast.releases.integer.exact_response import ExactResponse
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.integer.last_block import LastBlockChoice, check_last_block

_FORMS: dict[str, type[ExactBase]] = {
    x.kind: x
    for x in (
        *(ExactMechanism, ExactBlockSums, ExactInputNoise, ExactResponse, ExactChannels),
        *(ExactBlockChannels, ExactPosteriorBlocks, ExactPosteriorResponse),
    )
}


@public_design
def exact(
    mechanism: Any,
    inputs: Inputs,
    *,
    tolerance: float = 1e-3,
    last_block: LastBlockChoice | None = None,
    n_steps: int | None = None,
) -> ExactBase:
    """Make the exact form of a mechanism, which a release runs.

    *Filters with Gaussian noise*: g = round(2^m · G/‖G‖₂), with the fewest taps and bits m whose error, with a receiver
    designed for g and for exact noise, is within the tolerance of the mechanism's; σ² ≥ κ²Δ² + 4, Δ² the integer
    squared sensitivity of g.

    *Several streams that one person may reach*, of a :class:`FilterMatrix`: a matrix of such taps and the same noise on
    each channel, Δ² the integer squared sensitivity for its adjacency. Without models the receiver undoes the taps;
    with models it is that of the design, or one for the taps where that errs less.

    *Block sums, and noise on the inputs*: sums of integers, with two-sided geometric noise of a rate that is rounded
    down, and of δ ≥ 1/1000 with canonical noise by an exact table; below, geometric noise takes the place of canonical
    noise, as nothing is lost. The inputs must be declared in the unit of the design.

    *Randomised response*: by an exact table, on inputs that are declared on the two levels.

    Behind the same v, posterior means of a chain of levels run as studies run them, with tables for the noise that is
    drawn; their error only simulation tells, and `linear_mse` is a bound of it from above.

    Parameters
    ----------
    mechanism : Mechanism, BlockMechanism, ChannelsMechanism or BlockChannelsMechanism
        None of its inputs fitted to private data.
    inputs : Inputs
        What is declared of the data; for designs of several streams `n_streams` is the number of its inputs.
    tolerance : float
        Accept this relative increase of the MSE for taps that are integers; other integers cost nothing.
    last_block : {"drop", "publish"}, optional
        For block sums alone: "drop", the default, publishes nothing of a block that the last step leaves unfinished;
        "publish" publishes it at that step as a block of its own, so that each input is still in one sum of each level.
    n_steps : int, optional
        The steps of the stream with "publish": it can have no others. Over a horizon it is that.

    Returns
    -------
    ExactMechanism, ExactBlockSums, ExactInputNoise, ExactResponse, ExactChannels or ExactBlockChannels, or one with a
        posterior mean

    Raises
    ------
    ReleaseError
        For a design with fitted-from-private inputs, and for one without an exact form, each with its own reason: a
        MatrixMechanism, blocks that react or share noise, Laplace and staircase noise; and for "publish" with a
        posterior mean, whose tables are those of whole blocks.
    ValueError
        For a `last_block` of a mechanism without blocks, and for "publish" without `n_steps`.
    DesignError
        Where more than 65,536 taps would be needed, sums would not fit into 64 bits, or the inputs are declared on
        another unit than that of the design.

    Warns
    -----
    AccuracyWarning
        Where it explains less than half of the variance of the true output, both under the model of the design.

    Notes
    -----
    *Privacy.* Nothing here depends on data.

    Examples
    --------
    >>> import dpfast as dp
    >>> mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6))
    >>> result = dp.exact(mechanism, dp.Inputs(0, 20))
    >>> len(result.taps) < 64, result.predicted_mse < 1.001 * mechanism.predicted_mse
    (True, True)
    """
    check_mechanism(mechanism)
    validation.instance("inputs", inputs, Inputs, "an Inputs, which says what the data are")
    tolerance = check_tolerance(tolerance)
    last_step = check_last_block(mechanism, last_block, n_steps)
    plan = _FORMS[mechanism.exact_kind].make(mechanism, inputs, tolerance)
    plan = plan if last_step is None else plan.ending_after(last_step)
    plan.warn_if_inaccurate()
    return plan


def load_exact(configuration: Mapping[str, Any]) -> ExactBase:
    """Make the mechanism of a configuration, to the last bit."""
    return _FORMS[configuration.get("kind", ExactMechanism.kind)].from_configuration(configuration)


def exact_or_none(mechanism: object) -> ExactBase | None:
    """Return a mechanism that may be a design or its exact form where it is the latter, and None where not."""
    return mechanism if isinstance(mechanism, ExactBase) else None


def declare_end(plan: ExactBase, last_block: str | None, n_steps: int | None) -> ExactBase:
    """Return the exact mechanism with its unfinished blocks dropped or published, as is asked for.

    Raises
    ------
    ValueError
        For mechanisms without blocks, and for another end than it has already.
    """
    declared = plan.n_steps if n_steps is None and last_block == "publish" else n_steps
    n_steps = check_last_block(plan.mechanism, last_block, declared)
    if last_block is None or n_steps == plan.n_steps:
        return plan
    if n_steps is None or plan.n_steps is not None:
        raise ValueError(
            f"last_block must be that of the ExactBlockSums, 'publish' after {plan.n_steps} steps, got {last_block!r}"
            f"{'' if n_steps is None else f' after {n_steps}'}: leave it out"
        )
    return plan.ending_after(n_steps)


def as_exact(
    mechanism: Any,
    inputs: Inputs | None,
    tolerance: float,
    last_block: LastBlockChoice | None = None,
    n_steps: int | None = None,
) -> ExactBase:
    """Return the exact mechanism of a design and declared inputs."""
    plan = exact_or_none(mechanism)
    if plan is None:
        end: dict[str, Any] = {"last_block": last_block, "n_steps": n_steps}
        return exact(mechanism, inputs, tolerance=tolerance, **end)  # type: ignore[arg-type]  # refuses None
    if inputs is not None and inputs != plan.inputs:
        raise ValueError("inputs must be those of the ExactMechanism, got others: leave them out")
    check_mechanism(plan.mechanism)
    return declare_end(plan, last_block, n_steps)
