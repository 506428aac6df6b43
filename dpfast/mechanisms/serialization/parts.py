"""Parts of mechanisms as JSON: filters, models, receivers, operators; there and back."""

from __future__ import annotations

import math
import typing
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.filters.endless_sum import EndlessSum
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.adaptive_mechanism import AdaptiveBlockMechanism
from dpfast.mechanisms.input_noise import InputNoise, Kind
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.noise_covariance import NESTED
from dpfast.mechanisms.operators.buffered_toeplitz import BufferedToeplitz
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.mechanisms.operators.dense import Dense
from dpfast.mechanisms.operators.growing_noise import GrowingReconstruction, GrowingStrategy
from dpfast.mechanisms.operators.k_ary_trees import CausalTree, TreeLeastSquares
from dpfast.mechanisms.operators.operator_protocol import Operator
from dpfast.mechanisms.operators.sparse import Sparse
from dpfast.mechanisms.operators.sparse_decoder import SparseDecoder
from dpfast.mechanisms.operators.trees import DecayedPrefixes, TreeEstimator
from dpfast.mechanisms.receivers.base import Receiver
from dpfast.mechanisms.receivers.decision_feedback import DecisionFeedback
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.mechanisms.receivers.smoother import Smoother
from dpfast.mechanisms.serialization.json_fields import Fields, factors_content, filter_content, name_errors
from dpfast.privacy.integer_noise.law import IntegerKind
from dpfast.privacy.provenance import check_source
from dpfast.signals.arma import ARMA
from dpfast.signals.independent_levels import IndependentLevels
from dpfast.signals.markov_chain import MarkovChain
from dpfast.signals.model import Model

SAME_NOISE = 1e-9  # relative; another machine may round otherwise
SAME_MSE = 1e-6
_ENDLESS = "endless-sum"

# The strategies and reconstructions that there are, by the kinds that files have; a class may be renamed, its kind not.
OPERATORS: dict[str, Any] = {
    "convolution": Convolution,
    "dense": Dense,
    "sparse": Sparse,
    "buffered-toeplitz": BufferedToeplitz,
    "decayed-prefixes": DecayedPrefixes,
    "tree-estimator": TreeEstimator,
    "sparse-decoder": SparseDecoder,
    "causal-tree": CausalTree,
    "tree-least-squares": TreeLeastSquares,
    "growing-strategy": GrowingStrategy,
    "growing-reconstruction": GrowingReconstruction,
}
RECEIVERS: dict[str, type[Receiver]] = {x.kind: x for x in (LinearReceiver, Smoother, DecisionFeedback)}
_KIND_OF = {x: kind for kind, x in OPERATORS.items()}


def toeplitz_content(target: Toeplitz) -> dict[str, Any]:
    """Return a target over a horizon as a field holds it."""
    return {"coefficients": target.coefficients.tolist()}


def target_content(target: Filter | Toeplitz) -> dict[str, Any]:
    """Return a target of either kind as a field holds it."""
    return toeplitz_content(target) if isinstance(target, Toeplitz) else filter_content(target)


def rational_content(target: Filter | Toeplitz) -> dict[str, Any]:
    """Return a rational target as a field holds it: over a horizon with its recursion."""
    content, factors = target_content(target), target.factors
    if target.horizon is None or factors is None:
        return content
    return {**content, "recursion": factors_content(factors)}


def read_rational(content: Fields, name: str) -> Filter | Toeplitz:
    """Read a target that :func:`rational_content` has written."""
    inner = content.inner(name)
    if not inner.has("coefficients"):
        return inner.as_filter()
    coefficients, factors = inner.array("coefficients"), inner.inner("recursion").factors()
    inner.end()
    with name_errors(content.path(name)):
        return Toeplitz.with_factors(coefficients, factors)


def endless_content() -> dict[str, Any]:
    """Return the target of a sum without a horizon as a field holds it."""
    return {"kind": _ENDLESS}


def read_endless(content: Fields) -> EndlessSum:
    """Read the target of a sum without a horizon, from which all else follows."""
    target = content.inner("target")
    target.choice("kind", (_ENDLESS,))
    target.end()
    return EndlessSum()


def model_content(model: Model) -> dict[str, Any]:
    """Return a model as the field `model` holds it."""
    if type(model) is MarkovChain:
        content = {"kind": "markov-chain", "transition": model.transition.tolist(), "levels": model.states.tolist()}
    elif type(model) is IndependentLevels:
        probabilities = model.probabilities.tolist()
        content = {"kind": "independent-levels", "levels": model.levels.tolist(), "probabilities": probabilities}
    else:
        arma = model if type(model) is ARMA else _as_arma(model)
        levels = None if arma.levels is None else arma.levels.tolist()
        content = {"kind": "arma", "shaping": filter_content(arma.shaping), "mean": arma.mean, "levels": levels}
        content["fitted_order"] = arma.fitted_order
    return {**content, "source": model.source}


def _as_arma(model: Model) -> ARMA:
    """Return what a design uses of a model of somebody's own class."""
    kind = type(model).__name__
    try:
        arma = ARMA.from_shaping(model.shaping, mean=model.mean, levels=model.levels, source=model.source)
    except ValueError as error:
        raise ValueError(f"a model of class {kind} cannot be saved: {error}; give an ARMA of its spectrum") from None
    if not math.isclose(arma.variance, model.variance, rel_tol=SAME_MSE):
        raise ValueError(
            f"a model of class {kind} cannot be saved: its shaping filter must have its variance {model.variance:g}, "
            f"got {arma.variance:g}: give an ARMA of its spectrum"
        )
    return arma


def receiver_content(receiver: Receiver) -> dict[str, Any]:
    """Return a receiver as the field `receiver` holds it."""
    return {"kind": receiver.kind, **receiver.to_fields()}


def operator_content(operator: Operator) -> dict[str, Any]:
    """Return an operator as a field `strategy` or `reconstruction` holds it: its kind, and the fields of the tuple."""
    values: Any = operator
    fields = {name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in values._asdict().items()}
    return {"kind": _KIND_OF.get(type(operator), type(operator).__name__), **fields}


def matrix_noise_content(m: MatrixMechanism) -> dict[str, Any]:
    """Return what a mechanism of matrices has of noise on the integers."""
    unit = {} if m.lattice is None else {"unit": m.unit}
    return {**unit, **({"groups": list(m.groups), "slacks": list(m.slacks)} if m.groups else {})}


def read_matrix_noise(content: Fields, noise: Any) -> dict[str, Any]:
    """Read what :func:`matrix_noise_content` has written."""
    found: dict[str, Any] = {}
    if noise in (*get_args(IntegerKind), NESTED) or content.has("unit"):
        found["unit"] = content.take("unit")
        check_unit(content, found["unit"])
    if noise == NESTED or content.has("groups"):
        found |= {name: tuple(content.integers(name).tolist()) for name in ("groups", "slacks")}
    return found


def partition_content(m: AdaptiveBlockMechanism) -> dict[str, Any]:
    """Return what the field `partition` holds: from it, model and privacy all else follows."""
    return {"kind": m.noise_kind, "threshold": m.threshold, "longest": m.longest, "lag": m.lag}


def read_model(content: Fields) -> Model:
    """Read the model in a field `model`."""
    kind = content.choice("kind", ("markov-chain", "independent-levels", "arma"))
    source = check_source(content.path("source"), content.take("source"))
    if kind == "markov-chain":
        transition, levels = content.array("transition", 2), content.array("levels")
        content.end()
        with name_errors(f"field {content.name}"):
            return MarkovChain(transition, levels, source=source)
    if kind == "independent-levels":
        levels, probabilities = content.array("levels"), content.array("probabilities")
        content.end()
        with name_errors(f"field {content.name}"):
            return IndependentLevels(levels, probabilities, source=source)
    shaping, mean, order = content.filter("shaping"), content.number("mean"), content.take("fitted_order")
    given = content.take("levels")
    content.end()
    alphabet = None if given is None else Fields({"levels": given}, "mechanism.model").array("levels")
    with name_errors(f"field {content.name}"):
        return ARMA.from_shaping(shaping, mean=mean, levels=alphabet, source=source, fitted_order=order)


def read_noise(content: Fields) -> InputNoise:
    """Read which noise is on inputs; its law is found anew from the privacy."""
    kind = content.choice("kind", get_args(Kind))
    unit, levels = content.take("unit"), content.array("levels", empty=True)
    content.end()
    two = kind == "randomised response"
    if len(levels) != (2 if two else 0) or (two and levels[0] >= levels[1]):
        raise validation.fail(content.path("levels"), "two that grow for randomised response, and none else", levels)
    if unit is not None and kind not in get_args(IntegerKind):
        raise validation.fail(content.path("unit"), "null for noise that is not on the integers", unit)
    check_unit(content, unit)
    return InputNoise(kind, unit, (float(levels[0]), float(levels[1])) if two else None)  # type: ignore[arg-type]


def read_partition(content: Fields, model: Model | None) -> dict[str, Any]:
    """Read what only blocks have that react to what was published."""
    if not isinstance(model, MarkovChain | IndependentLevels):
        raise validation.fail(content.path("model"), "a chain of levels, or independent ones, with a partition", model)
    partition = content.inner("partition")
    kind, threshold = partition.choice("kind", get_args(IntegerKind)), partition.number("threshold", above=0)
    longest = validation.integer(partition.path("longest"), partition.take("longest"), 1)
    found = {"noise_kind": kind, "threshold": threshold, "longest": longest, "lag": partition.lag()}
    partition.end()
    return {"target": read_rational(content, "target"), **found}


def check_unit(content: Fields, unit: Any) -> None:
    """Refuse a unit that inputs cannot be multiples of."""
    if unit is not None:
        validation.number(content.path("unit"), unit, above=0)


def read_receiver(content: Fields, target: Filter) -> Receiver:
    """Read the receiver in a field `receiver`."""
    receiver = RECEIVERS[content.choice("kind", RECEIVERS)].from_fields(content, target)
    content.end()
    return receiver


def read_operator(content: Fields) -> Operator:
    """Read the operator in a field `strategy` or `reconstruction`; refuse one that would lie about its norms."""
    made = OPERATORS[content.choice("kind", OPERATORS)]
    read = {name: _OF_TYPES[hint](content, name) for name, hint in typing.get_type_hints(made).items()}
    content.end()
    operator: Operator = made(**read)
    with name_errors(f"field {content.name}"):
        operator.check()
    return operator


_OF_TYPES: dict[Any, Callable[[Fields, str], Any]] = {
    Array: lambda content, name: content.array(name, None, empty=True),
    NDArray[np.int64]: lambda content, name: content.integers(name),
    int: lambda content, name: validation.integer(content.path(name), content.take(name), 0),
    float: lambda content, name: content.number(name),
    str: lambda content, name: content.text(name),
}
