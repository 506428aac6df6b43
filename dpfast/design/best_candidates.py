"""List what the best mechanism is chosen from: each family of the catalogue, and which of its kind, for a task."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from dpfast.design.adaptive_blocks import adaptive_blocks
from dpfast.design.best_blocks import (
    design_blocks,
    design_shared,
    design_signs,
    design_two_levels,
    has_long_memory,
)
from dpfast.design.best_demand import Demand
from dpfast.design.block_sums import block_sums
from dpfast.design.catalogue import FAMILIES, Family
from dpfast.design.horizon.binary_tree import binary_tree
from dpfast.design.horizon.compressive import compressive
from dpfast.design.horizon.decayed_sum import decayed_sum
from dpfast.design.horizon.fourier import fourier_perturbation
from dpfast.design.horizon.optimal_factorization import LONGEST, optimal_factorization
from dpfast.design.horizon.shared_noise import shared_noise
from dpfast.design.horizon.tree import tree
from dpfast.design.perturbation import input_perturbation, output_perturbation
from dpfast.design.randomized_response import randomized_response
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.privacy.lattice import is_whole

GAUSSIAN_FILTER, GAUSSIAN_FACTORIZATION = "the best Gaussian filter", "the best Gaussian factorization"
SHARED = "shared noise"  # a need that can always be met
_BAYES = {"receiver": "bayes"}
_LONGEST_DESCENT = 512  # steps: beyond it strategies for Laplace noise take minutes
_LONGEST_JOINT = 1024  # beyond it those for Gaussian noise do with a model, and so do bounds
WAITS = "online=False, or --batch, is needed to wait for the whole input"
NO_DELTA = "Gaussian noise needs a delta above 0"
NO_MODEL = "a model of the input is needed"
NO_LEVELS = "a model of levels is needed, such as MarkovChain"
NOT_TWO_LEVELS = "a model of two levels is needed, such as MarkovChain"
NO_HORIZON = "a target over a horizon is needed, such as Toeplitz.of(target, horizon)"
ENDS = "a Filter is needed, without an end"
TOO_LONG_WITH_MODEL = f"more than {_LONGEST_JOINT} steps with a model take minutes"


def is_long_with_model(task: Demand) -> bool:
    """Tell whether matrices of all steps, with those of the model, take minutes."""
    return task.model is not None and (task.horizon or 0) > _LONGEST_JOINT


class Candidate(NamedTuple):
    """A way to serve a task: a family of the catalogue, and what it is given besides.

    Attributes
    ----------
    label : str
        In tables: that of the family, and what is particular.
    design : callable
        From a task to a mechanism.
    family : Family
    needs : frozenset of str
        What the family needs, and besides: "delta", for Gaussian noise; "integers" and "counts", for noise on the
        integers; "long memory" and a "carrier", without which it loses; a "descent" that takes long, or a
        "joint descent" that does with a model; a "count" that nothing here finds.
    waits : bool
        True for what needs the whole input before it publishes.
    predicted : bool
        False where only simulation tells its error.
    kind : str
        What the sentence compares others with; empty for what it names itself.
    """

    label: str
    design: Callable[[Demand], AnyMechanism]
    family: Family
    needs: frozenset[str]
    waits: bool = False
    predicted: bool = True
    kind: str = ""

    def reason_against(self, task: Demand) -> str:
        """Say why it cannot serve a task, and what would have to change; nothing where it can."""
        levels = None if task.model is None else task.model.levels
        n_levels = 0 if levels is None else len(levels)
        off = levels is not None and not is_whole(np.asarray(levels))
        found = {
            "delta": task.privacy.delta == 0 and NO_DELTA,
            "model": task.model is None and NO_MODEL,
            "levels": n_levels == 0 and NO_LEVELS,
            "two_levels": n_levels != 2 and NOT_TWO_LEVELS,
            "mean_square": "a bound of the mean square, and nothing else, must be known of the input: use robust",
            "count": f"the number of its coefficients or measurements must be given: use {self.family.name}",
            "descent": (task.horizon or 0) > _LONGEST_DESCENT
            and f"more than {_LONGEST_DESCENT} steps take minutes: use {self.family.name}",
            "joint descent": is_long_with_model(task) and f"{TOO_LONG_WITH_MODEL}: use {self.family.name}",
            "integers": off and task.unit is None and "inputs must be integers, or be rounded to a given unit",
            "counts": (off or task.unit is not None) and "inputs must be integers, and no unit given",
            "carrier": not task.has_carrier and "the output has the most power at frequency zero, as plain sums have",
            "long memory": not has_long_memory(task) and "a memory of more than 1000 steps is needed to gain by them",
        }
        if self.waits and task.online:
            return WAITS
        return next((str(x) for name, x in found.items() if name in self.needs and x), "")


def candidates(task: Demand) -> list[Candidate]:
    """List all ways to serve a task of this kind of target, whether they can or not, in the order of the catalogue."""
    if task.horizon is not None:
        return list(_over_horizon(task))
    return [x for x in filter_candidates() if not (x.waits and task.lag is None)]  # all are smoothers then


@functools.cache
def filter_candidates() -> tuple[Candidate, ...]:
    """List all ways to serve a task of a filter."""
    return tuple(_for_filters())


def other_families(task: Demand) -> list[tuple[str, str]]:
    """List the families that are for the other kind of target, with what would have to change."""
    mine, other = ("filter", "horizon") if task.horizon is None else ("horizon", "filter")
    reason = NO_HORIZON if other == "horizon" else ENDS
    return [(x.label, reason) for x in FAMILIES.values() if mine not in x.serves and other in x.serves]


def _design(family: Family, task: Demand, *, smoother: bool = False, **extra: Any) -> AnyMechanism:
    given: dict[str, Any] = {"model": task.model, "tolerance": task.tolerance, "lag": task.lag, "unit": task.unit}
    given |= {"lag": None} if smoother else {}
    given |= {"noise": task.integer_noise} if family.design is block_sums else {}
    made: AnyMechanism = family.make(task.target, task.privacy, **(given | extra))
    return made


def _on_integers(family: Family, task: Demand) -> AnyMechanism:
    return _design(family, task, noise=task.integer_noise)


def _of(family: Family, label: str, *needs: str, **more: Any) -> Candidate:
    """Make the candidate of a family that its design function designs, unless another one is given."""
    given = more.pop("given", {})
    design = more.pop("design", None) or functools.partial(_design, family, **given)
    return Candidate(label, design, family, family.needs | {*needs}, **more)


def _smoother_of(family: Family, *needs: str, receiver: str = "linear", **more: Any) -> Candidate:
    """Make the candidate of a family that waits for the whole signal, whatever the lag."""
    label = f"{family.label} smoother{' (Bayes)' if receiver == 'bayes' else ''}"
    given = {"smoother": True, "receiver": receiver}
    made = _of(family, label, *needs, waits=True, given=given, **more)
    return made._replace(needs=made.needs - {"lag"})


# --- filters --------------------------------------------------------------------------------------


def _for_filters() -> Iterator[Candidate]:
    for family in FAMILIES.values():
        if "filter" in family.serves:
            yield from _FILTERS.get(family.design, _gaussian_filter)(family)


def _gaussian_filter(family: Family) -> Iterator[Candidate]:
    decides = "levels" in family.needs
    kind = "" if decides else GAUSSIAN_FILTER
    yield _of(family, family.label, "delta", kind=kind, predicted=not decides)
    if family.is_smoother_by_default and "mean_square" not in family.needs:
        yield _smoother_of(family, "delta", kind=GAUSSIAN_FILTER)


def _input_noise(family: Family) -> Iterator[Candidate]:
    yield _of(family, family.label, "delta", kind=GAUSSIAN_FILTER, given={"noise": "gaussian"})
    yield from _pure_input_noise(family)


def _pure_input_noise(family: Family) -> Iterator[Candidate]:
    yield _of(family, f"{family.label} (Laplace noise)", given={"noise": "laplace"})
    yield _of(family, f"{family.label} (integer noise)", "integers", design=functools.partial(_on_integers, family))


def _blocks(family: Family) -> Iterator[Candidate]:
    yield from _plain_blocks(family)
    yield _smoother_of(family)
    yield _smoother_of(family, "levels", predicted=False, receiver="bayes")


def _adaptive(family: Family) -> Iterator[Candidate]:
    yield _of(family, family.label, predicted=False)


def _plain_blocks(family: Family) -> Iterator[Candidate]:
    yield _of(family, family.label, design=design_blocks)
    yield _of(family, f"{family.label} (shared noise)", SHARED, design=design_shared)
    yield _of(family, f"{family.label} (signs)", "carrier", design=design_signs)
    yield _of(family, f"{family.label} (two levels)", "long memory", design=design_two_levels)
    yield _of(family, f"{family.label} (Bayes)", "levels", predicted=False, given=_BAYES)


def _response(family: Family) -> Iterator[Candidate]:
    yield _of(family, family.label)
    yield _of(family, f"{family.label} (Bayes)", predicted=False, given=_BAYES)
    yield _smoother_of(family)
    yield _smoother_of(family, predicted=False, receiver="bayes")


_FILTERS: dict[Callable[..., Any], Callable[[Family], Iterator[Candidate]]] = {
    input_perturbation: _input_noise,
    block_sums: _blocks,
    adaptive_blocks: _adaptive,
    randomized_response: _response,
}


# --- over a horizon -------------------------------------------------------------------------------


def _over_horizon(task: Demand) -> Iterator[Candidate]:
    for family in FAMILIES.values():
        if "horizon" in family.serves:
            for x in _HORIZONS.get(family.design, _factorization)(family):
                yield _with_receiver(x, task)


def _factorization(family: Family) -> Iterator[Candidate]:
    yield _of(family, family.label, "delta", kind=GAUSSIAN_FACTORIZATION)


def _gaussian_or_laplace(family: Family) -> Iterator[Candidate]:
    yield _of(family, family.label, "delta", kind=GAUSSIAN_FACTORIZATION, given={"noise": "gaussian"})
    yield _of(family, f"{family.label} (Laplace noise)", given={"noise": "laplace"})


def _optimal_factorization(family: Family) -> Iterator[Candidate]:
    yield _of(family, family.label, "delta", "joint descent", kind=GAUSSIAN_FACTORIZATION, design=_design_optimal)
    for noise, words, need in (("laplace", "Laplace noise", "descent"), ("geometric", "integer noise", "counts")):
        for waits in (False, True):
            design = functools.partial(_design_optimal, noise=noise, strategy="dense" if waits else "lower")
            label = f"{family.label} ({'dense, ' * waits}{words})"
            yield _of(family, label, "descent", need, waits=waits, design=design)


def _input_noise_over_horizon(family: Family) -> Iterator[Candidate]:
    yield from _gaussian_or_laplace(family)
    yield list(_pure_input_noise(family))[-1]


def _tree(family: Family) -> Iterator[Candidate]:
    for waits in (False, True):
        how = "subtraction, " * waits
        given = {"subtraction": waits}
        yield _of(family, f"{family.label} ({how}Laplace noise)", waits=waits, given=given)
        yield _of(
            family, f"{family.label} ({how}integer noise)", "counts", waits=waits, given=given | {"noise": "geometric"}
        )
        yield _of(
            *(family, f"{family.label} ({how}Gaussian noise)", "delta"),
            waits=waits,
            kind=GAUSSIAN_FACTORIZATION,
            given=given | {"noise": "gaussian"},
        )


def _shared(family: Family) -> Iterator[Candidate]:
    yield _of(family, family.label, "integers")


def _counted(family: Family) -> Iterator[Candidate]:
    yield _of(family, family.label, "count", waits=True)


_HORIZONS: dict[Callable[..., Any], Callable[[Family], Iterator[Candidate]]] = {
    input_perturbation: _input_noise_over_horizon,
    output_perturbation: _gaussian_or_laplace,
    block_sums: _plain_blocks,
    adaptive_blocks: _adaptive,
    optimal_factorization: _optimal_factorization,
    tree: _tree,
    shared_noise: _shared,
    binary_tree: _gaussian_or_laplace,
    decayed_sum: _gaussian_or_laplace,
    fourier_perturbation: _counted,
    compressive: _counted,
}


def _design_optimal(task: Demand, **given: Any) -> AnyMechanism:
    """Design it together with its receiver where there is a model; an unbiased one gains nothing by waiting."""
    lag = 0 if task.model is None else task.lag
    made: AnyMechanism = optimal_factorization(task.target, task.privacy, task.model, lag=lag, **given)
    return made


def _with_receiver(candidate: Candidate, task: Demand) -> Candidate:
    """Return a candidate with the best linear receiver behind its strategy, where there is a model."""
    if task.model is None or "model" in candidate.needs or (task.horizon or 0) > LONGEST:
        return candidate
    return candidate._replace(design=functools.partial(_design_receiver, candidate.design))


def _design_receiver(design: Callable[[Demand], Any], task: Demand) -> AnyMechanism:
    made: Any = design(task)
    assert task.model is not None
    behind: AnyMechanism = made.with_receiver(task.model, lag=task.lag) if made.unbiased else made
    return behind
