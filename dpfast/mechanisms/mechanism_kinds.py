"""The kinds of mechanisms: filters; blocks, of one length or that react; matrices; and a sum without a horizon."""

from __future__ import annotations

from dpfast.mechanisms.adaptive_mechanism import AdaptiveBlockMechanism
from dpfast.mechanisms.base import MechanismBase
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.unbounded_mechanism import UnboundedMechanism

AnyMechanism = Mechanism | MatrixMechanism | BlockMechanism | AdaptiveBlockMechanism | UnboundedMechanism


def check_of_filters(mechanism: object, why: str, error: type[ValueError] = ValueError) -> None:
    """Refuse mechanisms that no prefilter and receiver make, with a reason and what to do."""
    if isinstance(mechanism, MechanismBase) and not mechanism.of_filters:
        raise error(f"mechanism must be a Mechanism, of filters, got {mechanism.full_name}: {why}")
