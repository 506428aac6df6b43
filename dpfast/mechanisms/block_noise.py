"""The noise on block sums: of each level its own, or shared by the blocks of a group, or of a tree of groups."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable

from dpfast._kernels.shared_draws import SharedTable
from dpfast._kernels.tree_draws import TreeTable
from dpfast._support import validation
from dpfast.mechanisms.group_levels import Levels, check_levels
from dpfast.privacy.integer_noise.choice import integer_noise
from dpfast.privacy.integer_noise.law import IntegerKind, IntegerNoise
from dpfast.privacy.integer_noise.shared import SharedGeometric
from dpfast.privacy.privacy import Privacy

_KEPT = 4  # laws, the last ones: their tables take long, and blocks of other lengths ask for the same

BlockLaw = IntegerNoise | SharedGeometric


def make_laws(
    kinds: tuple[IntegerKind, ...],
    shares: tuple[float, ...],
    privacy: Privacy,
    steps: int,
    groups: tuple[int, ...],
    slack: Levels,
) -> tuple[BlockLaw, ...]:
    """Make the law of the noise of each level, or of a group of blocks that share it, or of a tree of groups."""
    if groups:
        return (shared_law(privacy, steps, groups, check_levels("slack", slack, 0)),)
    return tuple(integer_noise(kind, privacy, steps, share) for kind, share in zip(kinds, shares, strict=True))


@functools.lru_cache(maxsize=_KEPT)
def shared_law(privacy: Privacy, steps: int, groups: tuple[int, ...], slacks: tuple[int, ...]) -> SharedGeometric:
    """Make the law of noise that values share, for changes of at most so many steps: pure ε.

    These are the `max_events` changes of a person together, wherever they fall: each step costs the same part of ε.
    """
    return SharedGeometric(privacy.epsilon, groups, slacks, steps * privacy.max_events)


def own_variances(laws: tuple[BlockLaw, ...], unit: float) -> tuple[float, ...]:
    """Return the variance of what each sum's noise has for itself, for inputs in multiples of a unit."""
    return tuple(unit**2 * x.variance - sum(common_variances(x, unit)) for x in laws)


def common_variances(law: BlockLaw, unit: float) -> tuple[float, ...]:
    """Return the variance of what the noises of a group of each level share beyond the next level; none if nothing."""
    if not isinstance(law, SharedGeometric):
        return ()
    return tuple(unit**2 * (x - y) for x, y in itertools.pairwise((*law.covariances[1:], 0.0)))


def shared_table(law: BlockLaw) -> SharedTable | TreeTable | None:
    """Return the table that shared noise is drawn by in studies; None for noise of its own."""
    return law.table() if isinstance(law, SharedGeometric) else None


def noise_words(lengths: tuple[int, ...], laws: tuple[BlockLaw, ...], stds: list[float]) -> str:
    """Say what is drawn for each level, of those behind the first one how large it is."""
    levels = list(zip(lengths, laws, stds, strict=True))
    above = [f"{law.kind} noise of standard deviation {std:.6g} on sums of {n} steps" for n, law, std in levels[1:]]
    on = f" on sums of {lengths[0]} steps" if above else ""
    return " and ".join([*above, f"{laws[0].kind} noise{on}"])


def check_sharing(groups: tuple[int, ...], slack: Levels, kinds: tuple[IntegerKind, ...], *, weighed: bool) -> None:
    """Refuse what shares no noise, other kinds of it and sums with weights, and other slacks than there are levels."""
    if len(check_levels("slack", slack, 0)) != max(1, len(groups)):
        raise validation.fail("slack", f"as many integers as there are levels of groups, {len(groups)}", slack)
    if groups and (weighed or kinds != ("geometric",)):
        raise ValueError(f"noise_kinds must be ('geometric',), without weights, where blocks share noise, got {kinds}")


def check_shares(shares: tuple[float, ...], kinds: tuple[IntegerKind, ...], n_levels: int) -> None:
    """Refuse shares that would spend more than there is, and another number of them, or of kinds, than of levels."""
    if not len(shares) == len(kinds) == n_levels or min(shares) <= 0 or math.fsum(shares) > 1:
        raise ValueError(
            f"shares must be above 0, at most 1 together, and as many as noise_kinds and lengths, {n_levels}, got "
            f"{list(shares)} and {len(kinds)} kinds"
        )


def listed(numbers: Iterable[float]) -> str:
    """Write figures in words."""
    return " and ".join(f"{x:.6g}" for x in numbers)
