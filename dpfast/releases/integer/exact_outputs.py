"""What the mechanisms share that estimate outputs of several streams together, which one person may reach."""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from dpfast._support.errors import AccuracyWarning, warn
from dpfast._support.validation import Array
from dpfast.design.low_accuracy_warning import HALF
from dpfast.filters.output_names import name_outputs
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.inputs import Inputs
from dpfast.releases.model_check.joint_verdict import Names
from dpfast.signals.channel_outputs import output_variances


class ExactOutputs(ExactBase):
    """Predict the error of each output of several streams, and of all together.

    Attributes
    ----------
    mechanism : ChannelsMechanism or BlockChannelsMechanism
        The design, of p outputs and m inputs.
    inputs : Inputs
        What is declared of all inputs, `n_streams` of them.
    tolerance : float
    """

    mixes_streams: ClassVar[bool] = True

    @property
    @abc.abstractmethod
    def output_mse(self) -> Array:
        """The exact stationary error of each output, (p,), as that of the mechanism."""

    @property
    @abc.abstractmethod
    def stream_costs(self) -> tuple[object, ...]:
        """Return what decides the cost of an event in each stream alone."""

    @property
    @abc.abstractmethod
    def row_inputs(self) -> tuple[tuple[int, ...], ...]:
        """Return the inputs that each row of v is of."""

    def channel_names(self, groups: Sequence[str]) -> tuple[str, ...]:
        """Name a row of v after the one stream that it is of, and number one of several."""
        return tuple(groups[x[0]] if len(x) == 1 else f"channel {k}" for k, x in enumerate(self.row_inputs, 1))

    def output_names(self, groups: Sequence[str]) -> tuple[str, ...]:
        """Name the outputs after the streams that they are of."""
        return name_outputs(self.mechanism.target, groups)

    @property
    def model(self) -> None:
        """Return None: there is no one model of one stream."""
        return None

    def estimated_rows(self, n_streams: int) -> int:
        """Count the outputs of the target."""
        rows: int = self.mechanism.target.shape[0]
        return rows

    @property
    def predicted_mse(self) -> float:
        """The error of all outputs together: the sum of `output_mse`."""
        return float(self.output_mse.sum())

    @property
    def output_rmse_if_model_holds(self) -> tuple[float, ...]:
        """Return the root of `output_mse`, of each output."""
        return tuple(np.sqrt(self.output_mse).tolist())

    @functools.cached_property
    def _true_variance(self) -> float | None:
        """The variance of all true outputs together under the models; None without them."""
        models = self.mechanism.models
        return None if models is None else float(output_variances(self.mechanism.target, models).sum())

    def warn_if_inaccurate(self) -> None:
        """Warn where it explains less than half of the variance of the outputs together."""
        part = self.explained_if_model_holds
        if part is not None and part < HALF:
            warn(
                f"{self.mechanism.name!r} explains {part:.0%} of the variance of all outputs, if the models hold: a "
                "larger lag or a larger epsilon would help, and a target of a narrower band, such as a longer average",
                AccuracyWarning,
            )

    @property
    def check_names(self) -> Names:
        """Return names of the rows of v and of the streams, as the check of v against the models says them."""
        return Names.of(self.row_inputs, self.inputs.n_streams)


def check_streams(mechanism: Any, inputs: Inputs) -> None:
    """Refuse declared inputs that are not those of a design of several streams."""
    m = mechanism.target.shape[1]
    if inputs.n_streams != m:
        raise ValueError(f"inputs must have n_streams={m}, one for each input of the target, got {inputs.n_streams}")
    if inputs.streams_per_person != 1:
        raise ValueError(
            f"inputs must leave streams_per_person out for a design of several streams, got "
            f"{inputs.streams_per_person}: its privacy has the adjacency {mechanism.privacy.adjacency!r}, which says "
            "which streams one person reaches"
        )
