"""What block sums are asked for, checked: lengths, shares, signs, and groups that share noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple, Self, get_args

from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast.design.block_plan import LARGEST_TREE, GroupSearch
from dpfast.design.block_problem import LONGEST, BlockProblem
from dpfast.design.block_signs import Signs
from dpfast.mechanisms.block_weights import check_weights
from dpfast.mechanisms.group_levels import check_levels
from dpfast.privacy.integer_noise.law import IntegerKind
from dpfast.privacy.integer_noise.shared import LARGEST_GROUP
from dpfast.privacy.privacy import Privacy

BEST = "best"  # weights, or groups
RECEIVERS = ("linear", "bayes")
_SAME_SHARES = 1e-12


class BlockArguments(NamedTuple):
    """The arguments of a design of block sums, checked.

    Attributes
    ----------
    lengths : tuple of int or None
        Of each level; None for the best one.
    shares : tuple of float
        Of ε, for each level.
    noise : {"best", "geometric", "canonical", "staircase"}
    signs : Signs, "best" or None
        Of inputs in the sums; None for plain sums.
    search : GroupSearch or None
        For the blocks that share noise.
    """

    lengths: tuple[int, ...] | None
    shares: tuple[float, ...]
    noise: IntegerKind | Literal["best"]
    signs: Signs | Literal["best"] | None
    search: GroupSearch | None

    @classmethod
    def check(
        cls,
        problem: BlockProblem,
        privacy: Privacy,
        length: int | Sequence[int] | None,
        shares: Sequence[float] | None,
        noise: IntegerKind | Literal["best"],
        weights: ArrayLike | Literal["best"] | None,
        releases: Sequence[int] | None,
        group: int | Sequence[int] | Literal["best"] | None,
        slack: int | Sequence[int] | None,
        receiver: str,
    ) -> Self:
        """Refuse what is out of range, and what does not go together."""
        if length is None and shares is not None:
            raise ValueError("shares must not be given without the lengths that they are for: give length=")
        lengths = None if length is None else check_lengths(length, problem.horizon)
        signs = check_signs(weights, releases, lengths, problem.horizon)
        if isinstance(signs, Signs) and signs.is_plain:
            lengths, signs = (len(signs.weights),), None
        search = check_group(group, slack, privacy, problem.lattice.steps)
        if search is not None:
            _check_alone(noise=noise, weights=weights, shares=shares, receiver=receiver, length=lengths)
        return cls(lengths, check_shares(shares, 1 if lengths is None else len(lengths)), noise, signs, search)


def check_lengths(length: int | Sequence[int], horizon: int | None) -> tuple[int, ...]:
    """Return the lengths of the levels; refuse those that are not nested."""
    given = tuple(length) if validation.is_several(length) else (length,)  # type: ignore[arg-type]
    if not given:
        raise validation.fail("length", "an integer, or one for each level of blocks, from the shortest up", length)
    lengths = tuple(validation.integer("length", x, 1, horizon or LONGEST) for x in given)
    for shorter, longer in itertools.pairwise(lengths):
        if longer % shorter or longer == shorter:
            raise ValueError(
                f"length must be of nested blocks, each a multiple of the one before, got {longer} after {shorter}"
            )
    return lengths


def check_shares(shares: Sequence[float] | None, n: int) -> tuple[float, ...]:
    """Return the shares of ε of the levels, by default equal ones."""
    if shares is None:
        return (1.0 / n,) * n
    if not validation.is_several(shares):
        raise validation.fail("shares", "a number for each level, as many as lengths", shares)
    parts = tuple(validation.number("shares", x, above=0) for x in shares)
    if len(parts) != n or not math.isclose(math.fsum(parts), 1.0, rel_tol=_SAME_SHARES):
        raise ValueError(f"shares must be as many as lengths, {n}, and sum to 1, got {list(parts)}")
    while math.fsum(parts) > 1:  # by rounding: never more than there is
        parts = tuple(math.nextafter(x, 0.0) for x in parts)
    return parts


def check_signs(
    weights: ArrayLike | Literal["best"] | None,
    releases: Sequence[int] | None,
    lengths: tuple[int, ...] | None,
    horizon: int | None,
) -> Signs | Literal["best"] | None:
    """Return the signs of inputs that are given, or the word; refuse other words, and what does not go with signs."""
    if releases is not None and (weights is None or isinstance(weights, str)):
        raise ValueError("releases must not be given without the weights of the sums that are released: give weights=")
    if weights is None:
        return None
    if lengths is not None and len(lengths) > 1:
        raise ValueError("weights must not be given with several lengths: signed sums have one level")
    if isinstance(weights, str):
        _check_best("weights", weights, "an array of signs (steps of a block, sums)")
        return "best"
    signs = check_weights(weights)
    if lengths not in (None, (len(signs),)):
        raise ValueError(
            f"weights must have a row for each of the {lengths[0]} inputs of a block, got {len(signs)} rows"
        )
    if horizon is not None and len(signs) > horizon:
        raise ValueError(f"weights must have at most {horizon} rows, the steps of the horizon, got {len(signs)}")
    return Signs(signs, _check_releases(releases, *signs.shape))


def _check_releases(releases: Sequence[int] | None, length: int, n_sums: int) -> tuple[int, ...]:
    """Return the steps after the end of a block at which each sum is released; none where all are at its end."""
    if releases is None:
        return ()
    if not validation.is_several(releases) or len(releases) != n_sums:
        raise validation.fail("releases", f"as many integers as there are sums, {n_sums}", releases)
    offsets = tuple(validation.integer("releases", x, 1, length) % length for x in releases)
    return offsets if any(offsets) else ()


def check_group(
    group: int | Sequence[int] | Literal["best"] | None, slack: int | Sequence[int] | None, privacy: Privacy, steps: int
) -> GroupSearch | None:
    """Return the search for groups of blocks that share noise, or None where none is asked for."""
    if group is None:
        if slack is not None:
            raise ValueError('slack must not be given without the blocks that share noise: give group=, or "best"')
        return None
    if isinstance(group, str):
        _check_best("group", group, "an integer, or as many as there are levels of groups,")
    groups = None if isinstance(group, str) else check_levels("group", group, 2, LARGEST_GROUP)
    slacks = None if slack is None else check_levels("slack", slack, 0)
    if groups is not None and math.prod(groups) > LARGEST_TREE:
        raise ValueError(
            f"group must be of at most {LARGEST_TREE} blocks in all, got {math.prod(groups)} by {groups}: take fewer"
        )
    n = 1 if groups is None else len(groups)
    if slacks is not None and len(slacks) != n:
        raise validation.fail("slack", f"as many integers as there are levels of groups, {n}", slack)
    search = GroupSearch(privacy.epsilon, steps * privacy.max_events, groups, slacks)
    search.check()
    return search


def _check_alone(**given: object) -> None:
    """Refuse what does not go with noise that blocks share."""
    validation.choice("noise", given["noise"], (*get_args(IntegerKind), BEST))
    validation.choice("receiver", given["receiver"], RECEIVERS)
    alone = {"noise": ("best", "geometric"), "weights": (None,), "shares": (None,), "receiver": ("linear",)}
    for name, values in alone.items():
        if not any(given[name] is x or (isinstance(x, str) and given[name] == x) for x in values):
            raise validation.fail(name, f"{values[-1]!r} where blocks share noise (leave it or group out)", given[name])
    if given["length"] is not None and len(given["length"]) > 1:  # type: ignore[arg-type]
        raise ValueError("length must be one where blocks share noise, got several levels: leave group out")


def _check_best(name: str, word: str, otherwise: str) -> None:
    """Refuse another word than "best"."""
    if word != BEST:
        raise validation.fail(name, f"{otherwise} or {BEST!r}", word)


def check_phase(phase: int, length: int, horizon: int | None) -> int:
    """Return by how much the first block is shorter; none over a horizon."""
    phase = validation.integer("phase", phase, 0, length - 1)
    if phase and horizon is not None:
        raise ValueError(f"phase must be 0 over a horizon, whose first step counts, got {phase}")
    return phase


def listed(numbers: Sequence[float]) -> str:
    """Write several numbers as the one word that options have."""
    return ", ".join(f"{x:.17g}" for x in numbers)
