"""How large a mechanism's file may be, and its parts: read off the text, before anything is made of it."""

from __future__ import annotations

import re
from typing import NamedTuple

from dpfast.filters.toeplitz import MAX_HORIZON
from dpfast.mechanisms.block_weights import LONGEST_PATTERN, MOST_SUMS

MAX_BYTES = 2**26
MAX_FIELDS = 10_000
MAX_DEPTH = 8  # of objects; arrays are of numbers, or of rows of numbers


class Limit(NamedTuple):
    """The size that an array may have: so many numbers, or rows of so many numbers."""

    rows: int
    columns: int = 0


MAX_TAPS = 2**14  # the largest lag and the longest prefilter, and a little more
MAX_RECURSION = 2**13
MAX_SECTIONS = 512
MAX_STATES = 1000
MAX_ADVANCES = 2**16
MAX_LEVELS = 100_000
MAX_ENTRIES = 2**23
MAX_DENSE = Limit(2**13, 2**13)  # those of trees have twice as many nodes as steps
MAX_SHORT = 100
LIMITS = {
    "taps": Limit(MAX_TAPS),
    "recursion": Limit(MAX_RECURSION),
    "sections": Limit(MAX_SECTIONS, 6),
    "coefficients": Limit(MAX_HORIZON),
    "response": Limit(MAX_HORIZON),
    "entries": MAX_DENSE,
    "projection": MAX_DENSE,
    "data": Limit(MAX_ENTRIES),
    "indices": Limit(MAX_ENTRIES),
    "indptr": Limit(MAX_ENTRIES),
    "transition": Limit(MAX_STATES, MAX_STATES),
    "levels": Limit(MAX_LEVELS),
    "probabilities": Limit(MAX_LEVELS),
    "forward": Limit(MAX_TAPS),
    "feedback": Limit(MAX_TAPS),
    "advance": Limit(MAX_ADVANCES, MAX_STATES),
    "gains": Limit(MAX_HORIZON, MAX_STATES),
    "weights": Limit(2 * MAX_HORIZON, MAX_TAPS),
    "signs": Limit(LONGEST_PATTERN, MOST_SUMS),
    **dict.fromkeys("abcd", Limit(MAX_STATES, MAX_STATES)),
}
_OTHER = Limit(MAX_SHORT)
# a string, closed or not, and the colon behind a name; an end of an object; or an array, and all up to the next of
# these. Never back over what was read, so that no text takes longer than it is long
_TOKEN = re.compile(rb'"((?:[^"\\]++|\\.)*+)"?(\s*+:)?|([{}])|\[([^"{}]*+)', re.DOTALL)
_TOKENS = 4  # of a field: a name, a value that is a text, an object with its end
_NUMBERS = b"0123456789+-.eE, \t\r\n"


def check_sizes(content: bytes) -> None:
    """Refuse a file, an array or a nesting that is too large for its name; what else is wrong is found by reading it.

    Raises
    ------
    ValueError
        Naming the field, the limit, and what to do.
    """
    if len(content) > MAX_BYTES:
        raise ValueError(
            f"the file must be of at most {MAX_BYTES:,} bytes, got {len(content):,} or more: shorten the horizon, "
            "design and save anew"
        )
    path: list[str] = []
    name, n_fields = "", 0
    for n_tokens, token in enumerate(_TOKEN.finditer(content)):
        string, colon, end, array = token.groups()
        n_fields += colon is not None
        if n_fields > MAX_FIELDS or n_tokens > _TOKENS * MAX_FIELDS:
            raise ValueError(f"it must have at most {MAX_FIELDS:,} fields: is it a file that dpfast.save wrote?")
        if string is not None:
            name = string[:80].decode(errors="replace")
        elif array is not None:
            _check_array(_field(*path, name), name, array)
        elif end == b"{":
            path.append(name)
            if len(path) > MAX_DEPTH:
                raise _nested(_field(*path))
        elif path:
            path.pop()


def _check_array(field: str, name: str, array: bytes) -> None:
    end = array.rfind(b"]")  # what follows is a comma and the end of a line
    limit, numbers, rows = LIMITS.get(name, _OTHER), array.count(b",", 0, end) + 1, array.count(b"[")
    if limit.columns and rows:
        too_many = rows > limit.rows or numbers > rows * limit.columns
        most, got = f"{limit.rows:,} rows of {limit.columns:,} numbers", f"{rows:,} rows of {-(-numbers // rows):,}"
    else:
        too_many = max(numbers, rows) > limit.rows
        most, got = f"{limit.rows:,} numbers", f"{max(numbers, rows):,}"
    if too_many:
        raise ValueError(f"{field} must have at most {most}, got {got}: {_ADVICE.get(name, _SHORTER)}")
    if rows and b"[[" in array.translate(None, _NUMBERS):  # within the one that the match began with
        raise _nested(field)


def _field(*names: str) -> str:
    return f"field {'.'.join(filter(None, names))}" if any(names) else "it"


def _nested(field: str) -> ValueError:
    return ValueError(
        f"{field} must not be nested as deeply: objects at most {MAX_DEPTH} deep, arrays of numbers or of rows of "
        "numbers; is it a file that dpfast.save wrote?"
    )


_SHORTER = "take fewer, design and save anew"
_HORIZON = ("coefficients", "response", "entries", "projection", "data", "indices", "indptr")
_ADVICE = {
    **dict.fromkeys(("taps", "recursion", "sections"), "take a shorter filter, design and save anew"),
    **dict.fromkeys(_HORIZON, "shorten the horizon, design and save anew"),
    "transition": "merge states or take an ARMA model, design and save anew",
}
