"""Block sums of several independent streams: blocks and noise for each input, and what is estimated of every output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dpfast._support import validation
from dpfast.design.argument_checks import check_name
from dpfast.design.block_arguments import check_lengths, check_phase, check_shares
from dpfast.design.mimo.channel_blocks import ChannelBlocks, ChannelRequest
from dpfast.design.mimo.channel_designs import check_channels
from dpfast.design.mimo.channels_lmmse import check_lag_of_channels, check_models
from dpfast.design.mimo.epsilon_shares import find_shares
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.block_channels_mechanism import BlockChannelsMechanism
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.privacy.integer_noise.law import IntegerKind
from dpfast.privacy.privacy import Privacy
from dpfast.signals.channel_models import without_others


def sum_channels(
    target: FilterMatrix,
    privacy: Privacy,
    models: Any,
    lag: Any,
    *,
    length: Any,
    shares: Any,
    noise: IntegerKind | Any,
    unit: Any,
    phase: Any,
    name: str | None,
) -> BlockChannelsMechanism:
    """Design block sums of several streams; what is given for one number holds for all inputs alike."""
    used, m = check_channels(target, privacy), target.shape[1]
    checked, delay = check_models(without_others(models), m), check_lag_of_channels(lag)
    lengths = [None if x is None else check_lengths(x, None)[0] for x in _for_each("length", length, m)]
    units, phases = _for_each("unit", unit, m), _for_each("phase", phase, m)
    channels = {
        i: ChannelBlocks(
            ChannelRequest(
                {a: row[i] for a, row in enumerate(target.rows) if row[i].b.any()},
                checked[i],
                _privacy_of(privacy, m, i),
                noise,
                lengths[i],
                phases[i],
                units[i],
                delay,
            )
        )
        for i in used
    }
    found = _choose(channels, privacy, shares, m)
    title = check_name(name, f"block sums lag {delay}")
    options: tuple[tuple[str, Option], ...] = (("lag", delay), ("noise", noise))
    given = ("length", length), ("shares", shares), ("unit", unit), ("phase", phase or None)
    options += tuple((key, _option(x)) for key, x in given if x is not None)
    columns: dict[int, dict[int, BlockMechanism]] = {}
    for i, (share, n) in found.items():
        check_phase(phases[i], n, None)
        columns[i] = channels[i].build(share, n, title, options)
    entries = tuple(tuple(columns.get(i, {}).get(a) for i in range(m)) for a in range(target.shape[0]))
    return BlockChannelsMechanism(title, target, privacy, checked, entries, delay, options)


def _choose(channels: dict[int, ChannelBlocks], privacy: Privacy, shares: Any, m: int) -> dict[int, tuple[float, int]]:
    """Return share of ε and length of each input that is published."""
    if (privacy.adjacency or "one_input") == "one_input":
        if shares is not None:
            raise ValueError(
                "shares must not be given where one event is at one input, which has all of epsilon there: leave it out"
            )
        return {i: (1.0, x.find_length(1.0)) for i, x in channels.items()}
    if shares is not None:
        given = dict(enumerate(_at_most_all(check_shares(shares, m), privacy)))
        return {i: (given[i], x.find_length(given[i])) for i, x in channels.items()}
    best = dict(zip(channels, find_shares(list(channels.values())), strict=True))
    published = {i: x for i, x in best.items() if x[0] > 0}
    parts = _at_most_all([x for x, _ in published.values()], privacy)
    return {i: (share, n) for share, (i, (_, n)) in zip(parts, published.items(), strict=True)}


def _at_most_all(shares: Sequence[float], privacy: Privacy) -> list[float]:
    """Return shares whose parts of ε and δ, as they are rounded, are no more than there is."""
    parts = list(shares)
    while any(math.fsum(x * whole for x in parts) > whole for whole in (privacy.epsilon, privacy.delta)):
        parts = [math.nextafter(x, 0.0) for x in parts]
    return parts


def _privacy_of(privacy: Privacy, m: int, i: int) -> Privacy:
    """Return what is demanded of one input, where an event is at it."""
    return Privacy(
        *(privacy.epsilon, privacy.delta),
        max_change=float(privacy.changes(m)[i]),
        max_events=privacy.max_events,
        min_separation=privacy.min_separation,
        calibration=privacy.calibration,
    )


def _for_each(name: str, value: Any, m: int) -> list[Any]:
    """Return a value for each input: the same for all, or one for each."""
    if not validation.is_several(value):
        return [value] * m
    if len(value) != m:
        raise validation.fail(name, f"one for all inputs, or one for each of the {m}", value)
    return list(value)


def _option(value: Any) -> Option:
    """Write a value for each input as one word; leave one for all as it is."""
    if not validation.is_several(value):
        return value  # type: ignore[no-any-return]
    return ", ".join("best" if x is None else f"{x:.17g}" for x in value)
