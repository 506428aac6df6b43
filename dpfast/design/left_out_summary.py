"""What is not in a table of designs, in a few sentences: how many need something else, and which do not serve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from dpfast.design.best_candidates import ENDS, NO_DELTA, NO_HORIZON, NO_LEVELS, NO_MODEL, NOT_TWO_LEVELS, WAITS
from dpfast.design.best_ranking import UNKNOWN

_NEEDED = {
    WAITS: "the whole input, by --batch",
    UNKNOWN: "a simulation of their errors, by --simulate",
    NO_DELTA: "a delta above 0",
    NO_MODEL: "a model of the input",
    NO_LEVELS: "a model of levels",
    NOT_TWO_LEVELS: "a model of two levels",
    NO_HORIZON: "a target over a horizon, in Python",
    ENDS: "a target without an end",
}


def say_left_out(reasons: Iterable[tuple[str, str]], shown: Collection[str], where: str) -> str:
    r"""Say how many mechanisms are not in a table, what they need, and which of them do not serve; nothing of none.

    Parameters
    ----------
    reasons : iterable of (label, reason)
        Why mechanisms cannot serve.
    shown : collection of str
        Labels of those that are in the table nevertheless.
    where : str
        The file that has all reasons.

    Examples
    --------
    >>> said = say_left_out([("DFE", NO_LEVELS), ("BLT", NO_HORIZON), ("robust", "use robust")], (), "design.md")
    >>> print(*said.split(". "), sep="\n")
    Not in the table are 3 mechanisms
    2 need something else: a model of levels (1); a target over a horizon, in Python (1)
    1 does not serve here: robust
    design.md says why.
    """
    left = {label: reason for label, reason in reasons if label not in shown}
    if not left:
        return ""
    counts = Counter(left.values())
    needed = {words: counts[reason] for reason, words in _NEEDED.items() if counts[reason]}
    others = [label for label, reason in left.items() if reason not in _NEEDED]
    said = [f"Not in the table {'are' if len(left) > 1 else 'is'} {_count(len(left), 'mechanism')}."]
    if n := sum(needed.values()):
        words = "; ".join(f"{what} ({count})" for what, count in needed.items())
        said.append(f"{n} {'need' if n > 1 else 'needs'} something else: {words}.")
    if others:
        said.append(f"{len(others)} {'do' if len(others) > 1 else 'does'} not serve here: {', '.join(others)}.")
    return " ".join([*said, f"{where} says why."])


def _count(n: int, word: str) -> str:
    return f"{n} {word}{'s' * (n > 1)}"
