"""Refuse mechanisms that the exact path cannot run."""

from __future__ import annotations

from dpfast._support.errors import ReleaseError
from dpfast.mechanisms.constant import Constant
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.mechanism_kinds import T, check_of_filters


def check_releasable(mechanism: T | MatrixMechanism) -> T:
    """Return a mechanism that the exact path may run; refuse a constant, and mechanisms of matrices."""
    if isinstance(mechanism, Constant):
        raise ReleaseError(
            f"mechanism must be one that sees the data, got the constant {mechanism.name!r}, which publishes nothing "
            "of the data: its values are constant.expected(n), and there is nothing to release"
        )
    why = (
        "exact integer arithmetic and noise are for a stationary prefilter with integer taps, and simulate() is for "
        "studies and protects nobody. Release a design for a Filter, such as zero_forcing or optimal; a pole just "
        "below 1 is near to a running sum"
    )
    return check_of_filters(mechanism, why, ReleaseError)
