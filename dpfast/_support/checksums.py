"""Checksums of what a database holds: they tell damage.

There are two, as files of both kinds are there: a seal covers a whole row, a checksum a content and the key where it
belongs.
"""

from __future__ import annotations

import zlib
from typing import Any


def seal_row(*row: Any) -> tuple[Any, ...]:
    """Append to a row its CRC, which tells damage. That of an input goes with its row, and nothing of it stays."""
    crc = 0
    for i, x in enumerate(row):  # as of all joined by zeros, which would be a copy of large ones
        crc = zlib.crc32(x if isinstance(x, bytes) else repr(x).encode(), zlib.crc32(b"\0", crc) if i else 0)
    return *row, crc


def is_sealed(row: tuple[Any, ...]) -> bool:
    """Tell whether a row is as :func:`seal_row` made it."""
    return seal_row(*row[:-1]) == row


def checksum(content: bytes, *key: object) -> int:
    """Return the CRC of a content at its key: content at a wrong key is damage, too."""
    return zlib.crc32(content, zlib.crc32(repr(key).encode()))


def is_intact(crc: int, content: object, *key: object) -> bool:
    """Tell whether a content, as it was read, has its :func:`checksum`."""
    return isinstance(content, bytes) and checksum(content, *key) == crc
