"""What grids of several streams have besides: matrices of filters, a model for each input, who may be at which."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dpfast._kernels.signal_sources import ChannelSources, SignalSource
from dpfast._support import validation
from dpfast.design.target_and_model_specs import parse_model
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.mechanism_kinds import AnyChannels, AnyMechanism
from dpfast.mechanisms.serialization.channels_content import (
    file_content,
    matrix_content,
    models_content,
    read_file_content,
    read_matrix,
    read_models,
)
from dpfast.mechanisms.serialization.json_fields import Fields
from dpfast.mechanisms.serialization.mechanism_file import mechanism_content, read_mechanism
from dpfast.mechanisms.serialization.parts import model_content, read_model, target_content
from dpfast.signals.channel_models import ChannelModels, check_channel_models
from dpfast.signals.channel_outputs import compile_sources
from dpfast.signals.model import Model, check_model
from dpfast.signals.vector_arma import VectorARMA

MODELS = ("model", "stream")
# What a design takes of several streams that values of a grid cannot be, or that it refuses for them
_NOT_OF_SEVERAL = frozenset({"unit", "phase", "noise"})
_NARROWED: dict[str, Any] = {"length": int | None}


def is_of_several(part: Mapping[str, Any]) -> bool:
    """Tell whether a part of a grid is of several streams: its targets, and mechanisms that are there already.

    Raises
    ------
    ValueError
        Where some are and others are not.
    """
    given = {
        name: [isinstance(x, FilterMatrix | AnyChannels) for x in _values(part.get(name)) if not _names_family(x)]
        for name in ("target", "mechanism")
    }
    every = [x for several in given.values() for x in several]
    if any(every) and not all(every):
        name = "target" if any(given["target"]) and not all(given["target"]) else "mechanism"
        raise ValueError(
            f"{name} must be of one stream or of several, all of a part of a grid, got some of each: give two parts, "
            "[{...}, {...}]"
        )
    return any(every)


def _names_family(given: Any) -> bool:
    return isinstance(given, str) or callable(given)


def _values(given: Any) -> Iterator[Any]:
    if isinstance(given, (list, tuple)):
        yield from given
    elif isinstance(given, Mapping) and not {"b", "coefficients"} & set(given):
        yield from given.values()
    elif given is not None:
        yield given


def is_one_of_each_input(name: str, given: Any) -> bool:
    """Tell whether a sequence is one value, a model for each input, and no axis of such values."""
    flat = isinstance(given, (list, tuple)) and len(given) > 0
    return name in MODELS and flat and not any(isinstance(x, (list, tuple, VectorARMA)) for x in given)


def read_channel_models(name: str, given: Any) -> ChannelModels | None:
    """Read a model for each input, or one of all; None for a model of one stream."""
    if isinstance(given, VectorARMA):
        return given
    if not isinstance(given, (list, tuple)):
        return None
    found = tuple(parse_model(x) if isinstance(x, (str, Mapping)) else x for x in given)
    for x in found:
        check_model(x)
    if not found:
        raise validation.fail(name, "a model for each input", given)
    return found


def models_of(stream: Any) -> tuple[Any, ...]:
    """List the models of one stream that a model is, or is made of; none of a VectorARMA."""
    return () if isinstance(stream, VectorARMA) else stream if isinstance(stream, tuple) else (stream,)


def overload_of_several(design: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return how a design function is called for a FilterMatrix; None where it has nothing for several streams."""
    found = typing.get_overloads(design)
    return next((x for x in found if typing.get_type_hints(x)["target"] is FilterMatrix), None)


def narrow_hints(hints: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what values of a grid can be: a lag that is a number, one length of blocks for all inputs."""
    return {name: _NARROWED.get(name, hint) for name, hint in hints.items() if name not in _NOT_OF_SEVERAL}


def check_inputs(target: FilterMatrix, has: Mapping[str, Any]) -> None:
    """Refuse models of other inputs than those of a target, and a privacy that does not say who may be at which."""
    check_models(target, has)
    m, given = target.shape[1], has.get("privacy")
    adjacency, change = (getattr(given, x) if given is not None else has.get(x) for x in ("adjacency", "max_change"))
    if adjacency is None and m > 1:
        raise ValueError(
            f"adjacency must be given in the grid for a target of {m} inputs: 'one_input', 'each_input_same_time' or "
            "'each_input', by which inputs one event of a person is at"
        )
    if isinstance(change, tuple) and len(change) != m:
        raise ValueError(f"max_change must be one number, or one for each of {m} inputs, got {len(change)}")


def check_models(target: FilterMatrix, has: Mapping[str, Any]) -> None:
    """Refuse models of other inputs than those of a target."""
    for name in MODELS:
        if has.get(name) is not None:
            check_channel_models(name, has[name], target.shape[1])


def check_one_stream(has: Mapping[str, Any]) -> None:
    """Refuse what is for several streams where the target is of one."""
    for name in (*MODELS, "prefilter"):
        if isinstance(has.get(name), tuple | VectorARMA | FilterMatrix):
            raise ValueError(f"{name} must be of one stream, as the target is, got {has[name]!r}: give a FilterMatrix")
    if getattr(has.get("privacy"), "adjacency", None) is not None:
        raise ValueError(f"privacy must have no adjacency for one stream, got {has['privacy']!r}: leave it out")


def compile_streams(models: Any) -> SignalSource | ChannelSources:
    """Return what draws the streams of a model, of one stream or several."""
    if isinstance(models, tuple | VectorARMA):
        return compile_sources(models)
    source: SignalSource = models.compiled()
    return source


# --- contents -------------------------------------------------------------------------------------


def content_of_mechanism(x: AnyMechanism | AnyChannels) -> dict[str, Any]:
    """Return the content of a mechanism of one stream or several."""
    return file_content(x, mechanism_content) if isinstance(x, AnyChannels) else mechanism_content(x)


def build_mechanism(content: Mapping[str, Any]) -> AnyMechanism | AnyChannels:
    """Make the mechanism with a content."""
    return read_file_content(dict(content), read_mechanism) if "models" in content else read_mechanism(content)


def content_of_target(target: Any) -> dict[str, Any]:
    """Return the content of a target of one stream or several."""
    return matrix_content(target) if isinstance(target, FilterMatrix) else target_content(target)


def matrix_or_none(name: str, content: Mapping[str, Any]) -> FilterMatrix | None:
    """Make the matrix of filters with a content; None for that of something else."""
    return read_matrix(name, dict(content)) if "shape" in content or "d" in content else None


def content_of_models(models: Model | ChannelModels) -> dict[str, Any]:
    """Return the content of a model of one stream, of each input, or of all."""
    if not isinstance(models, tuple | VectorARMA):
        return model_content(models)
    content = models_content(models)
    assert content is not None, "there are models"
    return content


def build_models(content: Mapping[str, Any]) -> Any:
    """Make the model with a content, of one stream or several, as a grid has it."""
    if "kind" in content and content["kind"] != "vector-arma":
        return read_model(Fields(dict(content), "model"))
    return read_models(Fields({"models": dict(content)}, "model"))
