"""The kinds of mechanisms: of filters, without an end; of block sums; and of matrices, over a horizon."""

from __future__ import annotations

from dpfast.mechanisms.base import MechanismBase
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.mechanism import Mechanism

AnyMechanism = Mechanism | MatrixMechanism | BlockMechanism


def check_of_filters(mechanism: object, why: str, error: type[ValueError] = ValueError) -> None:
    """Refuse mechanisms that no prefilter and receiver make, with a reason and what to do."""
    if isinstance(mechanism, MechanismBase) and not mechanism.of_filters:
        raise error(f"mechanism must be a Mechanism, of filters, got {mechanism.full_name}: {why}")
