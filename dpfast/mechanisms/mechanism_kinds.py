"""The kinds of mechanisms: of filters, without an end, and of matrices, over a horizon."""

from __future__ import annotations

from typing import TypeVar

from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.mechanism import Mechanism

T = TypeVar("T")
AnyMechanism = Mechanism | MatrixMechanism


def check_of_filters(mechanism: T | MatrixMechanism, why: str, error: type[ValueError] = ValueError) -> T:
    """Return a mechanism that is none of matrices; refuse those, with a reason and what to do."""
    if isinstance(mechanism, MatrixMechanism):
        raise error(
            f"mechanism must be a Mechanism, of filters, got the MatrixMechanism {mechanism.name!r} over a horizon of "
            f"{mechanism.horizon} steps: {why}"
        )
    return mechanism
