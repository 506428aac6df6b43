"""Share ε among the inputs of block sums, where one person may reach all of them, so that all outputs err least."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import optimize

from dpfast._support.validation import Array
from dpfast.design.mimo.channel_blocks import ChannelBlocks

_PARTS = 48  # of ε, that are given to inputs first
_LEAST = 1e-4  # a share: noise for less says nothing
_ROUNDS = 4  # of lengths and shares in turn
_FLAT = 1e-9  # a slope, of the variance of all
_PRECISE = 1e-12


def find_shares(channels: Sequence[ChannelBlocks]) -> tuple[tuple[float, int], ...]:
    r"""Find the share of ε and the length of blocks of each input, (0, 0) for inputs that are not published.

    The error Σ_i J_i(α_i), Σ α_i = 1, is not convex: where ε is small, noise hides all, and two inputs with half of ε
    each may tell less than one with all of it. So first the best shares of whole parts of ε are found, exactly, by
    dynamic programming; then the shares near to them, with lengths as they are, and lengths again.

    Parameters
    ----------
    channels : sequence of ChannelBlocks
    """
    tables = [_errors_by_part(x) for x in channels]
    parts = _best_parts([x for x, _ in tables])
    found = [(part / _PARTS, lengths[part]) for part, (_, lengths) in zip(parts, tables, strict=True)]
    for _ in range(_ROUNDS):
        before, found = found, _improve(channels, found)
        if [n for _, n in found] == [n for _, n in before]:
            break
    return tuple(found)


def _errors_by_part(channel: ChannelBlocks) -> tuple[Array, list[int]]:
    """Return errors and lengths at each number of parts of ε, from none to all."""
    errors, lengths = np.empty(_PARTS + 1), [0] * (_PARTS + 1)
    length = channel.find_length(1.0)
    for part in range(_PARTS, 0, -1):
        errors[part], length = channel.improve_length(part / _PARTS, length)
        lengths[part] = length
    errors[0] = channel.variance
    return errors, lengths


def _best_parts(errors: Sequence[Array]) -> list[int]:
    """Return how many parts each gets, for the least sum of errors."""
    n = np.arange(_PARTS + 1)
    best, choices = errors[0], []
    for mine in errors[1:]:
        left = n[:, None] - n  # that the ones before get, of so many parts
        sums = np.where(left >= 0, best[np.maximum(left, 0)] + mine, np.inf)
        choices.append(sums.argmin(axis=1))
        best = sums.min(axis=1)
    parts, left_over = [], _PARTS
    for choice in reversed(choices):
        parts.append(int(choice[left_over]))
        left_over -= parts[-1]
    return [left_over, *reversed(parts)]


def _improve(channels: Sequence[ChannelBlocks], found: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Find the best shares with lengths as they are, and the best lengths with these shares; keep what errs less."""
    used = [i for i, (share, _) in enumerate(found) if share > 0]
    shares = np.array([found[i][0] for i in used])
    scale = sum(channels[i].variance for i in used)

    def mse(shares: Array) -> float:
        return math.fsum(channels[i].mse(float(x), found[i][1]) for i, x in zip(used, shares, strict=True)) / scale

    if len(used) > 1:
        # shares on a scale of logarithms: a step is a part of each
        result = optimize.minimize(  # type: ignore[call-overload]
            lambda z: mse(_of_logarithms(z)), np.log(shares), method="BFGS", tol=_FLAT
        )
        if mse(better := _of_logarithms(result.x)) < mse(shares):
            shares = better
    improved = list(found)
    for i, share in zip(used, shares, strict=True):
        before, length = found[i][1], channels[i].find_length(float(share))
        keeps = channels[i].mse(float(share), before) <= channels[i].mse(float(share), length) * (1 + _PRECISE)
        improved[i] = float(share), before if keeps else length
    return improved


def _of_logarithms(z: Array) -> Array:
    parts = np.maximum(np.exp(z - z.max()), _LEAST)
    return np.asarray(parts / parts.sum())
