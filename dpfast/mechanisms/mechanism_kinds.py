"""The kinds of mechanisms: filters; blocks, of one length or that react; matrices; a sum without a horizon.

And those of several streams, by filters or block sums.
"""

from __future__ import annotations

from dpfast.mechanisms.adaptive_mechanism import AdaptiveBlockMechanism
from dpfast.mechanisms.base import MechanismBase
from dpfast.mechanisms.block_channels_mechanism import BlockChannelsMechanism
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.unbounded_mechanism import UnboundedMechanism

AnyMechanism = Mechanism | MatrixMechanism | BlockMechanism | AdaptiveBlockMechanism | UnboundedMechanism
AnyChannels = ChannelsMechanism | BlockChannelsMechanism


def check_of_filters(mechanism: object, why: str, error: type[ValueError] = ValueError) -> None:
    """Refuse mechanisms that no prefilter and receiver make, with a reason and what to do."""
    if isinstance(mechanism, MechanismBase) and not mechanism.of_filters:
        raise error(f"mechanism must be a Mechanism, of filters, got {mechanism.full_name}: {why}")


def refuse_channels(mechanism: object, why: str, error: type[ValueError] = ValueError, name: str = "mechanism") -> None:
    """Refuse mechanisms of several streams, with a reason and what to do."""
    if isinstance(mechanism, AnyChannels):
        m = mechanism.target.shape[1]
        raise error(f"{name} must be of one stream, got {mechanism.full_name} of {m} inputs: {why}")
