"""A lower bound of errors, which says in words for whom it holds."""

from __future__ import annotations

import functools
import importlib
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpfast._support import validation


@dataclass(frozen=True)
class Bound:
    """Compare a mechanism with a mean square error that no mechanism of a class goes below.

    Attributes
    ----------
    name : str
    mse : float
        Rounded down.
    holds_for : str
        The class, in words.
    may_go_below : str
        What is not of the class and may err less.

    Examples
    --------
    >>> print(Bound("additive bound", 4.0, "linear receivers", "other receivers"))
    The additive bound is an RMSE of 2. It holds for linear receivers. Below it may go other receivers.
    """

    name: str
    mse: float
    holds_for: str
    may_go_below: str

    def __post_init__(self) -> None:
        for field in ("name", "holds_for", "may_go_below"):
            validation.instance(field, getattr(self, field), str, "text")
        object.__setattr__(self, "mse", validation.number("mse", self.mse, above=-validation.SMALLEST))

    @property
    def rmse(self) -> float:
        """The root of `mse`."""
        return math.sqrt(self.mse)

    def __str__(self) -> str:
        words = f"The {self.name} is an RMSE of {self.rmse:.6g}. It holds for {self.holds_for}."
        return f"{words} Below it may go {self.may_go_below}."


class BoundTerms(NamedTuple):
    """It has what a kind of mechanism says of itself, from which follows which bounds hold for it.

    Attributes
    ----------
    lag : int or None
        The steps ahead up to which its estimates use inputs; None for all.
    additive : bool
        Its estimate is linear in the input, plus noise that does not depend on it.
    linear_mean : bool
        Its estimate is linear in the input in the mean, with one covariance for all inputs.
    undistorted : bool
        Its estimate is the target's output in the mean, whatever the input.
    gaussian : bool
        It sees the input behind a filter, with Gaussian noise, whatever its receiver is.
    """

    lag: int | None
    additive: bool = False
    linear_mean: bool = False
    undistorted: bool = False
    gaussian: bool = False


def load_bounds() -> None:
    """Load the designs that know how to bound a mechanism, which register with :func:`additive_bound_of`."""
    importlib.import_module("dpfast.design.bounds.of_mechanism")


@functools.singledispatch
def additive_bound_of(mechanism: Any) -> Bound:
    """Return the additive bound of a mechanism; designs know how, and register it here."""
    raise validation.fail("mechanism", "a mechanism", mechanism)
