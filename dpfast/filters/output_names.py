"""Names of the outputs of a matrix of filters, by the inputs that they are of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpfast._support.validation import Array
from dpfast.filters.filter_matrix import FilterMatrix

_MOST_TERMS = 4
_SAME = 1e-9  # of an impulse response, relative


def name_outputs(target: FilterMatrix, inputs: Sequence[str]) -> tuple[str, ...]:
    """Name the outputs of a target, so that who reads a table of them need not know it.

    One of a few inputs, all behind the same filter but for gains, is named after these: ``"A + B"``, ``"A - 0.5 B"``,
    whatever that filter is. The sum of more inputs, if it is of all, is ``"total"``; all others have numbers, and so
    have outputs that would have one name.

    Parameters
    ----------
    target : FilterMatrix
    inputs : sequence of str
        Names of its inputs.

    Examples
    --------
    >>> from dpfast.filters.filter import Filter
    >>> slow, quick = Filter([0.05], [1, -0.95]), Filter([0.2], [1, -0.8])
    >>> name_outputs(FilterMatrix([[slow, slow, slow], [quick, -1 * quick, 0], [slow, quick, 0]]), "ABC")
    ('A + B + C', 'A - B', 'output 3')
    """
    responses = target.impulse(2 * target.order + 1)  # of two entries no other ones begin alike
    found = [_name_row(x, inputs) for x in responses]
    return tuple(f"output {a + 1}" if name is None or found.count(name) > 1 else name for a, name in enumerate(found))


def _name_row(responses: Array, inputs: Sequence[str]) -> str | None:
    """Name the output of some inputs by their impulse responses, (m, n)."""
    used: list[int] = np.flatnonzero(responses.any(axis=1)).tolist()
    if not used:
        return None
    first = responses[used[0]]
    first = first * np.sign(first[first.nonzero()[0][0]])
    gains = responses[used] @ first / (first @ first)
    largest = np.abs(responses).max()
    if np.abs(responses[used] - gains[:, None] * first).max() > _SAME * largest:
        return None
    if len(used) <= _MOST_TERMS:
        return _write_sum(gains, [inputs[i] for i in used])
    return "total" if len(used) == len(inputs) and np.allclose(gains, 1, rtol=_SAME) else None


def _write_sum(gains: Array, names: Sequence[str]) -> str:
    """Write a sum with its gains, ``"A - 0.5 B"``."""
    terms = [name if abs(abs(c) - 1) < _SAME else f"{abs(c):g} {name}" for c, name in zip(gains, names, strict=True)]
    signs = ["-" if c < 0 else "+" for c in gains]
    start = "-" if signs[0] == "-" else ""
    return start + "".join([terms[0], *(f" {sign} {term}" for sign, term in zip(signs[1:], terms[1:], strict=True))])
