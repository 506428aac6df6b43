"""The mean of a figure over the first steps, of which those that are settled repeat: memory does not grow with time.

k = distinct_steps(n, settled)
mean = mean_of_first(figures_of_steps(k), n)
"""

from __future__ import annotations

from dpfast._support.validation import Array

SETTLED = 1e-18  # what an impulse response has decayed to when nothing changes any more
_LONG = 2**16  # steps that are looked at one by one in any case
_LONGEST = 2**22  # a pole of modulus .99998, the largest that filters have, has decayed to 1e-36 by then


def distinct_steps(n: int, settled: int, period: int = 1) -> int:
    """Return how many of n steps to look at, where those after `settled` steps repeat with a period."""
    return min(n, _LONGEST, max(_LONG, settled) + period)


def mean_of_first(first: Array, n: int, period: int = 1) -> float:
    """Return the mean over n steps, of which the first are given, and the others repeat the last of them."""
    if n == len(first):
        return float(first.mean())
    again = first[-period:]
    cycles, rest = divmod(n - len(first), period)
    return float((first.sum() + cycles * again.sum() + again[:rest].sum()) / n)
