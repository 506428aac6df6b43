"""The channels of a design without mixing: which filters from one input each of them serves, and who shares noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.privacy.privacy import Privacy

PrefilterForm = Literal["diagonal", "separate"]
AnyForm = Literal["diagonal", "separate", "general"]


class ChannelPart(NamedTuple):
    """The part of a target that one channel serves: the filters from one input to some outputs."""

    column: int
    entries: dict[int, Filter]

    @property
    def target(self) -> FilterMatrix:
        """The filters as a column."""
        return FilterMatrix([[entry] for entry in self.entries.values()])


def check_form(target: object, prefilter: object, forms: tuple[str, ...] = get_args(PrefilterForm)) -> None:
    """Refuse another word for the form of prefilters, and one that a single filter has no use for."""
    validation.choice("prefilter", prefilter, forms)
    if prefilter != "diagonal" and not isinstance(target, FilterMatrix):
        raise ValueError(f"prefilter must be 'diagonal' for one stream, got {prefilter!r}: it is for a FilterMatrix")


def channel_parts(target: FilterMatrix, columns: Sequence[int], form: PrefilterForm) -> list[ChannelPart]:
    """Return a channel for each input, or for each filter from an input to an output."""
    seen = [(j, {i: row[j] for i, row in enumerate(target.rows) if row[j].b.any()}) for j in columns]
    if form == "diagonal":
        return [ChannelPart(j, entries) for j, entries in seen]
    return [ChannelPart(j, {i: entry}) for j, entries in seen for i, entry in entries.items()]


def reached_together(parts: Sequence[ChannelPart], privacy: Privacy) -> list[list[int]]:
    """Return groups of the numbers of channels that one event of a person reaches."""
    if (privacy.adjacency or "one_input") != "one_input":
        return [list(range(len(parts)))]
    columns = dict.fromkeys(part.column for part in parts)
    return [[k for k, part in enumerate(parts) if part.column == j] for j in columns]


def least_shares(changes: Array, energies: Array, groups: Sequence[Sequence[int]]) -> tuple[Array, float]:
    """Return the shares of the squared sensitivity with the least error, and that for a sensitivity of one.

    Channels with prefilters of norm one, behind which the outputs have these energies of noise, have the error
    Σ (Σ d √energy)², the inner sum over those of a group, at shares ∝ d √energy.
    """
    loudness, shares, least = changes * np.sqrt(energies), np.zeros(len(energies)), 0.0
    for group in map(list, groups):
        total = float(loudness[group].sum())
        shares[group] = loudness[group] / total
        least += total**2
    return shares, least


def prefilters_of(parts: Sequence[ChannelPart], prefilters: Sequence[Filter], m: int) -> FilterMatrix:
    """Return G of channels, of which each has a prefilter for one of m inputs."""
    zero = Filter([0.0])
    return FilterMatrix(
        [[x if j == part.column else zero for j in range(m)] for part, x in zip(parts, prefilters, strict=True)]
    )


def receivers_of(receivers: Sequence[dict[int, Filter]], p: int) -> FilterMatrix:
    """Return H of channels, of which each has a receiver for some of p outputs."""
    zero = Filter([0.0])
    return FilterMatrix([[each.get(i, zero) for each in receivers] for i in range(p)])


def scaled(prefilter: Filter, share: float, change: float) -> Filter:
    """Return a prefilter of norm one as loud as a share of a sensitivity of one lets it be."""
    return prefilter * (math.sqrt(share) / change)
