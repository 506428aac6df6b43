"""Check what the best mechanism is asked for, which is the task that `dpfast design` gives to all families, too."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from dpfast._support import validation
from dpfast.design.argument_checks import check_target, check_tolerance, check_unit
from dpfast.design.block_signs import find_carrier
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.constant import Constant, constant
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.privacy.lattice import find_lattice
from dpfast.privacy.privacy import Privacy, check_privacy
from dpfast.signals.model import Model, check_model

Minimize = Literal["mean", "worst_step"]


@dataclass(frozen=True)
class Demand:
    """A task that every family is to design for; a lag of None asks for smoothers, a unit of None for no rounding.

    `online` leaves out what waits for the whole input, `minimize` tells which error is to be the least, and
    `releasable` leaves out what has no exact release. Then, or where `drawn` says so, noise on integers can be drawn.
    """

    target: Filter | Toeplitz
    privacy: Privacy
    model: Model | None
    lag: int | None
    tolerance: float
    unit: float | None = None
    online: bool = True
    minimize: Minimize = "mean"
    releasable: bool = False
    drawn: bool = False

    @functools.cached_property
    def constant(self) -> Constant | None:
        """The constant estimate that every family has to beat; None without a model, which tells its error."""
        return None if self.model is None else constant(self.target, self.model)

    @functools.cached_property
    def variance(self) -> float | None:
        """The variance of the true output; None without a model."""
        return None if self.constant is None else self.constant.predicted_mse

    @functools.cached_property
    def has_carrier(self) -> bool:
        """Tell whether the output has the most power at another frequency than zero, where signs may help."""
        factors = self.target.factors
        return (
            self.model is not None
            and factors is not None
            and find_carrier(factors, self.model.shaping.factors, self.horizon) > 0
        )

    @functools.cached_property
    def integer_noise(self) -> Literal["best", "geometric"]:
        """The noise on integers to ask for: that of least variance, or of what a release can draw.

        That of least variance is a staircase where a person may change a value by several units, which
        cannot be drawn exactly; where there is another one, it can.
        """
        if not (self.releasable or self.drawn):
            return "best"
        levels = None if self.model is None else self.model.levels
        return "geometric" if find_lattice(self.privacy, levels, self.unit).steps > 1 else "best"

    @property
    def horizon(self) -> int | None:
        """The steps of the target; None without an end."""
        return self.target.horizon

    @property
    def filter(self) -> Filter:
        """The target, of a task that is known to be one of filters."""
        filter = self.target.as_filter()
        assert filter is not None, "as whoever asks has made sure"
        return filter

    @property
    def memory(self) -> float:
        """The steps in which the slowest pole of the target decays to 1/e; of coefficients, those above 1/e of all."""
        filter = self.target.as_filter()
        if filter is None:
            f = np.abs(self.target.impulse(self.horizon or 0))
            return float(np.count_nonzero(f > f.max() / math.e))
        slowest = float(max(abs(filter.poles), default=0.0))
        return -1 / math.log(slowest) if slowest > 0 else 0.0

    def value(self, mechanism: AnyMechanism) -> float | None:
        """Return the error that is to be the least; None where only simulation tells."""
        return mechanism.predicted_mse if self.minimize == "mean" else mechanism.worst_step_mse


def check_demand(
    target: Filter | Toeplitz,
    privacy: Privacy,
    model: Model | None,
    *,
    lag: Lag,
    minimize: Any,
    online: Any,
    unit: float | None,
    tolerance: float,
    releasable: Any = False,
) -> Demand:
    """Check the arguments of :func:`dpfast.best`."""
    check_target(target)
    check_privacy(privacy)
    if model is not None:
        check_model(model)
    validation.choice("minimize", minimize, get_args(Minimize))
    validation.instance("online", online, bool, "True or False")
    validation.instance("releasable", releasable, bool, "True or False")
    delay = check_lag(lag)
    if delay is None and online:
        raise ValueError(
            f"lag must be a number of samples online, got {lag!r}: a smoother waits for the whole input; say "
            "online=False"
        )
    if target.horizon is not None and not online:
        delay = None  # whoever waits for the whole input has all of it
    accuracy = check_tolerance(tolerance), check_unit(unit)
    return Demand(target, privacy, model, delay, *accuracy, online, minimize, releasable)
