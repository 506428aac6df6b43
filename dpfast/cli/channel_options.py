"""Options of ``dpfast release`` about mechanisms of several streams: groups are inputs, which one person may reach."""

from __future__ import annotations

import argparse
from typing import Any, get_args

from dpfast._support.settings_file import replace_hyphens
from dpfast.mechanisms.channels_base import ChannelsBase
from dpfast.privacy.sensitivity_of_matrix import Adjacency

RELEASED = (
    "say which of the groups one person may reach, where they are the inputs of a mechanism of several streams; "
    "another adjacency than it was designed for is refused (default: as designed)"
)
ADJACENCIES = get_args(Adjacency)
REACH = (
    "one_input: an event of a person is in one of the groups, as a departure is at one airport; each_input_same_time: "
    "it may be in all of them in the same bin; each_input: in all of them, in a bin of its own in each"
)


def add_adjacency(group: Any, use: str) -> None:
    """Add the option ``--adjacency`` to a group, with what it is for."""
    group.add_argument("--adjacency", type=replace_hyphens, choices=ADJACENCIES, help=f"{use}. {REACH}")


def check_channels(options: argparse.Namespace, mechanism: Any, groups: tuple[str, ...]) -> Any:
    """Return a mechanism of several streams whose inputs the groups are, or one of one stream without an adjacency.

    Raises
    ------
    ValueError
        Which says what the mechanism was designed for.
    """
    if not isinstance(mechanism, ChannelsBase):
        if options.adjacency is not None:
            raise ValueError(
                f"adjacency must come with a mechanism of several streams, got {mechanism.name!r}, which is of one: "
                "say --streams-per-person, in how many groups one person may be, or design one of several streams"
            )
        return mechanism
    m, adjacency = mechanism.target.shape[1], mechanism.privacy.adjacency
    if len(groups) != m:
        raise ValueError(
            f"groups must be {m}, in the order of the inputs of the mechanism's target, got {len(groups)}: name all of "
            "them by --groups, or design a mechanism for these"
        )
    if options.streams_per_person != 1:
        raise ValueError(
            f"streams_per_person must be left out with a mechanism of several streams, got "
            f"{options.streams_per_person}: its adjacency, {adjacency!r}, says which groups one person reaches"
        )
    if options.adjacency is not None and options.adjacency != (adjacency or "one_input"):
        raise ValueError(
            f"adjacency must be {adjacency!r}, for which the mechanism was designed, got {options.adjacency!r}: its "
            "noise does not hide that; design one for it, by the same --adjacency of dpfast design"
        )
    return mechanism
