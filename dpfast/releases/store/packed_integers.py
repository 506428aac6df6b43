"""Integers as bytes: each takes as many as the largest of them needs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
_WORD = np.dtype("<i8")


def pack(x: Integers) -> bytes:
    """Return the bytes of integers, of any shape: the first says how many each of the others takes.

    Examples
    --------
    >>> pack(np.array([[1, -2, 300]])).hex(" ")
    '02 01 00 fe ff 2c 01'
    """
    words = np.ascontiguousarray(x, _WORD).ravel()
    width = _bytes_needed(words)
    kept = words.view(np.uint8).reshape(-1, 8)[:, :width]
    return bytes([width]) + kept.tobytes()


def unpack(content: bytes) -> Integers:
    """Return the integers, in one row, of what :func:`pack` gave.

    Raises
    ------
    ValueError
        For other bytes.

    Examples
    --------
    >>> unpack(pack(np.array([1, -2, 300]))).tolist()
    [1, -2, 300]
    """
    width = content[0] if content else 0
    if not 1 <= width <= 8 or (len(content) - 1) % width:
        raise ValueError("content must be integers that pack gave, got other bytes")
    if width in (1, 2, 4, 8):
        return np.frombuffer(content, f"<i{width}", offset=1).astype(np.int64)
    n = (len(content) - 1) // width
    words = np.zeros((n, 8), np.uint8)
    words[:, 8 - width :] = np.frombuffer(content, np.uint8, offset=1).reshape(n, width)
    return np.asarray(words.view(_WORD)[:, 0] >> (64 - 8 * width), np.int64)  # which copies the sign


def _bytes_needed(words: Integers) -> int:
    """Return the bytes in which all of some integers have a place with their signs."""
    if not words.size:
        return 1
    reach = max(int(words.max()), ~int(words.min()))
    return reach.bit_length() // 8 + 1
