"""Refuse mechanisms that the exact path cannot run."""

from __future__ import annotations

from typing import Any

from dpfast._support import validation
from dpfast._support.errors import ReleaseError
from dpfast.mechanisms.base import MechanismBase
from dpfast.mechanisms.channels_base import ChannelsBase
from dpfast.mechanisms.constant import Constant


def check_releasable(mechanism: object) -> Any:
    """Return a mechanism that the exact path may run; refuse all others, each with its own reason."""
    if isinstance(mechanism, Constant):
        raise ReleaseError(
            f"mechanism must be one that sees the data, got the constant {mechanism.name!r}, which publishes nothing "
            "of the data: its values are constant.expected(n), and there is nothing to release"
        )
    if isinstance(mechanism, MechanismBase | ChannelsBase) and (why := mechanism.release_hindrance()):
        raise ReleaseError(f"mechanism must be one that has an exact form, got {mechanism.full_name}: {why}")
    if not isinstance(mechanism, MechanismBase | ChannelsBase):
        raise validation.fail("mechanism", "a Mechanism", mechanism)
    return mechanism
