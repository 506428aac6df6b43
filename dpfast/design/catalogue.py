"""The one list of the families of mechanisms: what each is called, how it is designed, what for, and its colour."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, get_args

from dpfast._support.validation import Array
from dpfast.design.adaptive_blocks import adaptive_blocks
from dpfast.design.block_sums import block_sums
from dpfast.design.decision_feedback import decision_feedback, redesign_equalizer
from dpfast.design.horizon.binary_tree import binary_tree
from dpfast.design.horizon.buffered_toeplitz import buffered_toeplitz
from dpfast.design.horizon.compressive import compressive
from dpfast.design.horizon.decayed_sum import decayed_sum
from dpfast.design.horizon.fourier import fourier_perturbation
from dpfast.design.horizon.optimal_factorization import optimal_factorization
from dpfast.design.horizon.shared_noise import shared_noise
from dpfast.design.horizon.square_root import square_root
from dpfast.design.horizon.tree import tree
from dpfast.design.lmmse import lmmse, redesign_wiener
from dpfast.design.optimal import optimal
from dpfast.design.perturbation import input_perturbation, output_perturbation
from dpfast.design.randomized_response import randomized_response
from dpfast.design.robust import keep_receiver, robust
from dpfast.design.zero_forcing import redesign_inverse, zero_forcing
from dpfast.filters.filter import Filter
from dpfast.mechanisms.matrix_mechanism import Noise
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.receivers.base import Receiver
from dpfast.mechanisms.receivers.decision_feedback import DecisionFeedback
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.mechanisms.receivers.smoother import Smoother
from dpfast.privacy.privacy import Privacy

Dashes = str | tuple[float, tuple[float, ...]]  # as matplotlib has them: a word, or lengths of dashes and gaps

GIVEN = "given"  # the family of a mechanism that is there already
GREY = "#777777"
_DASHED, _DASH_DOT, _DOTTED = (0, (5, 2)), (0, (6, 1.5, 1.2, 1.5)), (0, (1.2, 1.5))
_THREE_DOTS, _TWO_DASHES, _FAR = (0, (6, *(1.5, 1.2) * 3, 1.5)), (0, (6, 1.5, 6, 1.5, 1.2, 1.5)), (0, (1.2, 4))
_GAPS, _LONG_DOT, _EVEN, _LONG_SHORT = (0, (5, 5)), (0, (12, 2, 1.2, 2)), (0, (3, 3)), (0, (9, 2, 3, 2))
_ENDS, _TWICE = (0, (7, 1, 3, 1, 1.2, 1)), (0, (2, 1, 2, 1, 9, 1))
_STEPS, _PAIRS, _BRANCHES = (0, (4, 1, 1.2, 1)), (0, (4, 1, 4, 4)), (0, (2, 1, 2, 5))
_LONG, _TWO_DOTS, _SHORT = (0, (9, 2.5)), (0, (6, 1.5, 1.2, 1.5, 1.2, 1.5)), (0, (2.5, 1.5))


class Family(NamedTuple):
    """A family of mechanisms, as every table, picture, grid and file has it.

    Attributes
    ----------
    name : str
        Its name in grids, files and stores: that of the design function.
    label : str
        Its name in tables and pictures.
    design : callable
        The public design function.
    needs : frozenset of str
        What a design depends on besides target and privacy: "model", "lag", "levels" or "two_levels" (of the model),
        "mean_square".
    serves : frozenset of str
        What it is for: targets that are a "filter", targets over a "horizon", "pure" guarantees without a δ,
        "several_events" of one person, and a "release" by the exact path.
    color, line, marker : str, Dashes, str
        How it is drawn. Colours are those of Okabe and Ito (2008), and three of Tol (2021) for what is not Gaussian,
        which colour-blind readers tell apart; lines and markers tell families apart in grey too. Families of filters
        have each a colour of their own, and so have those over a horizon: there are not enough for both.
    redesign : callable or None
        Designs the receiver of a mechanism behind another prefilter and noise, from (mechanism, prefilter, noise_std).
        None over a horizon, where :meth:`MatrixMechanism.with_receiver` does, and where nothing is released exactly.
    redesigned : frozenset of str
        The kinds of receivers that `redesign` takes the place of.
    pure_noise : str or None
        The noise to ask for without a δ, where that of the design function needs one.
    """

    name: str
    label: str
    design: Callable[..., Any]
    needs: frozenset[str]
    serves: frozenset[str]
    color: str
    line: Dashes
    marker: str
    redesign: Callable[[Mechanism, Filter, float], Receiver] | None = None
    redesigned: frozenset[str] = frozenset()
    pure_noise: str | None = None

    @property
    def is_smoother_by_default(self) -> bool:
        """True where the design function makes a smoother if no lag is given."""
        lag = inspect.signature(self.design).parameters.get("lag")
        return lag is not None and lag.default is None

    @property
    def needs_delta(self) -> bool:
        """True where noise for a filter is Gaussian, which gives no guarantee without a δ."""
        noise = inspect.signature(self.design).parameters.get("noise")
        return "pure" not in self.serves or (noise is not None and noise.default == "gaussian" and not self.pure_noise)

    def make(self, target: Any, privacy: Any, **given: Any) -> Any:
        """Design a mechanism of the family, with those of the given arguments that its design function takes.

        Without a δ its noise is one that needs none, where the family has such; a unit is for noise on the integers.
        """
        taken = inspect.signature(self.design).parameters
        if self.pure_noise is not None and privacy.delta == 0:
            given = {"noise": self.pure_noise} | given
        if "noise" in taken and given.get("noise", taken["noise"].default) in get_args(Noise):
            given = {name: x for name, x in given.items() if name != "unit"}
        return self.design(target, privacy, **{name: x for name, x in given.items() if name in taken})


def _word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FILTER, _HORIZON = _word_set("filter several_events release"), _word_set("horizon several_events")
_PURE, _ANY = _HORIZON | {"pure"}, _FILTER | _HORIZON | {"pure"}
_REACTING, _RESPONSE = _ANY - {"release"}, _word_set("filter pure several_events release")
_LINEAR, _DECIDING = frozenset({LinearReceiver.kind, Smoother.kind}), frozenset({DecisionFeedback.kind})
_ANY_KIND = _LINEAR | _DECIDING
_NONE, _LAG, _LEVELS = _word_set(""), _word_set("model lag"), _word_set("model lag levels")
_TWO_LEVELS = _word_set("model lag two_levels")

FAMILIES: dict[str, Family] = {
    x.name: x
    for x in (
        Family("optimal", "optimal", optimal, _LAG, _FILTER, "#009E73", "-", "o", redesign_wiener, _LINEAR),
        Family(
            *("zero_forcing", "LZF", zero_forcing, _NONE, _FILTER, "#0072B2", _DASH_DOT, "s"),
            *(redesign_inverse, _ANY_KIND),
        ),
        Family("lmmse", "LMMSE", lmmse, _LAG, _FILTER, "#D55E00", _DASHED, "^", redesign_wiener, _LINEAR),
        Family(
            *("input_perturbation", "input perturbation", input_perturbation, _NONE, _ANY, "#56B4E9", _SHORT, "P"),
            *(redesign_inverse, _ANY_KIND, "laplace"),
        ),
        Family(
            *("output_perturbation", "output perturbation", output_perturbation, _NONE, _ANY, "#E69F00", _DOTTED, "X"),
            *(redesign_inverse, _ANY_KIND),
        ),
        Family(
            *("decision_feedback", "DFE", decision_feedback, _LEVELS, _FILTER, "#CC79A7", _TWO_DOTS, "D"),
            *(redesign_equalizer, _DECIDING),
        ),
        Family(
            *("robust", "robust", robust, _word_set("lag mean_square"), _word_set("filter release"), GREY, _LONG, "v"),
            *(keep_receiver, _ANY_KIND),
        ),
        Family("block_sums", "block sums", block_sums, _LAG, _ANY, "#882255", _STEPS, "H"),
        Family("adaptive_blocks", "block sums adaptive", adaptive_blocks, _LEVELS, _REACTING, "#332288", _ENDS, "1"),
        Family(
            *("randomized_response", "randomised response", randomized_response, _TWO_LEVELS, _RESPONSE),
            *("#999933", _PAIRS, "2"),
        ),
        Family(
            *("optimal_factorization", "optimal factorization", optimal_factorization, _NONE, _PURE),
            *("#009E73", _LONG_DOT, "p"),
            pure_noise="laplace",
        ),
        Family("square_root", "square root", square_root, _NONE, _HORIZON, "#0072B2", _TWO_DASHES, "*"),
        Family("buffered_toeplitz", "BLT", buffered_toeplitz, _NONE, _HORIZON, "#D55E00", _GAPS, "h"),
        Family("binary_tree", "binary tree", binary_tree, _NONE, _PURE, "#CC79A7", _THREE_DOTS, "<"),
        Family("tree", "tree", tree, _NONE, _PURE, "#999933", _BRANCHES, "3"),
        Family("shared_noise", "shared noise", shared_noise, _NONE, _PURE, "#882255", _TWICE, "4"),
        Family("decayed_sum", "decayed sum", decayed_sum, _NONE, _PURE, "#56B4E9", _EVEN, ">"),
        Family("fourier_perturbation", "FPA", fourier_perturbation, _NONE, _PURE, "#E69F00", _FAR, "d"),
        Family("compressive", "compressive", compressive, _NONE, _HORIZON | _PURE, GREY, _LONG_SHORT, "8"),
    )
}


def filter_families() -> list[Family]:
    """List the families of filters that need no more than a model, a lag and levels."""
    return [x for x in FAMILIES.values() if "filter" in x.serves and x.needs <= _TWO_LEVELS | _LEVELS]


def split_by_delta(families: Iterable[Family], privacy: Privacy) -> tuple[list[Family], list[Family]]:
    """Return the families of filters that a privacy allows, and the others."""
    several = list(dict.fromkeys(families))
    allowed = [x for x in several if privacy.delta > 0 or not x.needs_delta]
    return allowed, [x for x in several if x not in allowed]


def explain_delta(left_out: Iterable[Family], served: Iterable[Family] = ()) -> tuple[str, ...]:
    """Return a note that names the families that need a δ, if any, and those that served without one."""
    without, others = (", ".join(dict.fromkeys(x.label for x in y)) for y in (left_out, served))
    ending = f"; without one there are {others}" if others else ""
    return (f"No {without}: their Gaussian noise needs a delta above 0{ending}.",) if without else ()


def can_design(family: Family, levels: Array | None) -> bool:
    """Tell whether a family can design for a model with these levels, or with none."""
    n_levels = 0 if levels is None else len(levels)
    return (n_levels > 0 or "levels" not in family.needs) and (n_levels == 2 or "two_levels" not in family.needs)


def family_label(name: str) -> str:
    """Give the label of a family by its name; a name that is none stays."""
    return FAMILIES[name].label if name in FAMILIES else name


def family_of(mechanism: str) -> str | None:
    """Tell the family from the name of a mechanism, such as "LMMSE lag 5", or of the family; None where it tells none.

    Examples
    --------
    >>> family_of("saved: LMMSE smoother"), family_of("DFE, soft"), family_of("zero_forcing"), family_of("mine")
    ('lmmse', 'decision_feedback', 'zero_forcing', None)
    """
    word = mechanism.rpartition(": ")[2]
    if word in FAMILIES:
        return word
    longest = sorted(FAMILIES, key=lambda x: -len(FAMILIES[x].label))  # "optimal factorization" is not "optimal"
    return next((x for x in longest if re.match(rf"{FAMILIES[x].label}\b", word)), None)


def redesign_receiver(mechanism: Mechanism, prefilter: Filter, noise_std: float) -> Receiver:
    """Design the receiver of a mechanism behind another prefilter and noise, as its family does.

    Raises
    ------
    UnstableFilterError
        For zero forcing, where the prefilter has no stable inverse.
    """
    gain = prefilter.h2_norm()
    unit = prefilter * (1 / gain)  # systems are then well conditioned
    redesign = _family_like(mechanism).redesign
    assert redesign is not None
    return redesign(mechanism, unit, noise_std / gain).scaled(1 / gain)


def _family_like(mechanism: Mechanism) -> Family:
    """Find a family that designs such a receiver for what the mechanism was designed for, whatever its name is."""
    needed = "mean_square" if mechanism.mean_square is not None else None if mechanism.model is None else "model"
    return next(
        x
        for x in FAMILIES.values()
        if mechanism.receiver.kind in x.redesigned and (needed in x.needs if needed else not x.needs)
    )
