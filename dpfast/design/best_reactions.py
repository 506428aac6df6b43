"""For which families the guarantee is proven where inputs react to what was published, and by what.

The streams that are told apart differ in the events of one person, at times and by amounts that may depend on what was
published before; all other inputs may depend on it too, in the same way for both streams.
"""

from __future__ import annotations

from typing import NamedTuple

from dpfast.design.best_candidates import SHARED, Candidate
from dpfast.mechanisms.mechanism_kinds import AnyMechanism


class Reaction(NamedTuple):
    """The answer whether a guarantee is proven for inputs that react, and by what, or why not."""

    proven: bool
    why: str


GAUSSIAN = (
    "for one event Denisov, McMahan, Rush, Smith and Thakurta 2022 (Theorem 2.1): what is published at a time depends "
    "on no later input, and Gaussian noise hides differences that are chosen on the way as well as fixed ones. For "
    "several events Smith and Thakurta 2022 (fully adaptive composition for Gaussian noise): on every path the squares "
    "of the differences sum to no more than the squared sensitivity"
)
ABSOLUTE = (
    "on every path the privacy losses sum to no more than ε, as the absolute differences of what is published sum to "
    "no more than the sensitivity, and each depends on earlier inputs alone"
)
ONE_DRAW = (
    "an event changes one published value of each level, whose noise is drawn afterwards; shares of several levels and "
    "of several events add up (Dwork, Rothblum and Vadhan 2010, composition of mechanisms that are chosen on the way)"
)
SHARED_NOISE = (
    "an event changes one published value, and with it the logarithm of the probability of all of them by at most ε, "
    "for every outcome and any rule that makes later inputs (docs/explanation/beyond-blocks.md)"
)
OWN_BLOCKS = (
    "blocks end as earlier values say: whatever was published, an event is in one block, whose length is known before "
    "it begins and whose noise is drawn afterwards; several events add up (docs/explanation/block-sums.md)"
)
WAITS = "nothing is published before the input has ended, to which it could react"


def find_reaction(candidate: Candidate, mechanism: AnyMechanism) -> Reaction:
    """Tell whether the guarantee of a mechanism of a candidate is proven for inputs that react, and by what.

    All that has a lag publishes values that depend on earlier inputs alone: filters are causal, and a reconstruction
    over a horizon uses a row of its strategy when all inputs of the row are there.
    """
    if mechanism.lag is None:
        return Reaction(False, WAITS)
    if "delta" in candidate.needs:
        return Reaction(True, GAUSSIAN)
    if SHARED in candidate.needs or candidate.family.name == "shared_noise":
        return Reaction(True, SHARED_NOISE)
    if candidate.family.name == "adaptive_blocks":
        return Reaction(True, OWN_BLOCKS)
    own_draw = "filter" in candidate.family.serves  # without Gaussian noise these have a draw for each input or block
    return Reaction(True, ONE_DRAW if own_draw else ABSOLUTE)
