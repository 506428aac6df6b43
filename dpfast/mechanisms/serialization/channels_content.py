"""Mechanisms of several streams as JSON holds them, in files and in the configurations of stores.

What there is of each entry of a matrix, or of each input, is a field of an object, named by its numbers: "0,1" is the
entry of output 0 and input 1. What is not there is zero, or is not published.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np

from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.block_channels_mechanism import BlockChannelsMechanism
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.mechanisms.serialization.json_fields import Fields, filter_content, name_errors
from dpfast.mechanisms.serialization.parts import SAME_MSE, SAME_NOISE, model_content, read_model
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.provenance import check_source
from dpfast.signals.channel_models import ChannelModels
from dpfast.signals.model import Model
from dpfast.signals.vector_arma import VectorARMA

_PRIVACY = tuple(x.name for x in fields(Privacy))
_STATE_SPACE = "a", "b", "c", "d"
_MATRICES = "target", "prefilter", "receiver"
_MOST_CHANNELS = 100
_VECTOR = "vector-arma"


def matrix_content(matrix: FilterMatrix) -> dict[str, Any]:
    """Return a matrix of filters: its numbers of outputs and inputs and its entries, or its state space."""
    if matrix.shares_states:
        return _system_content(*matrix.state_space())
    rows = enumerate(matrix.rows)
    entries = {f"{i},{j}": filter_content(x) for i, row in rows for j, x in enumerate(row) if x.b.any()}
    return {"shape": list(matrix.shape), **entries}


def read_matrix(name: str, value: Any) -> FilterMatrix:
    """Read what :func:`matrix_content` gave."""
    content = Fields(value, name)
    if content.has("d"):
        system = _read_system(content)
        content.end()
        with name_errors(f"field {name}"):
            return FilterMatrix.from_state_space(*system)
    p, m = _read_shape(content)
    found = {(i, j): content.filter(key) for i in range(p) for j in range(m) if content.has(key := f"{i},{j}")}
    content.end()
    return FilterMatrix([[found.get((i, j), Filter([0.0])) for j in range(m)] for i in range(p)])


def _read_shape(content: Fields) -> tuple[int, int]:
    shape = content.integers("shape").tolist()
    if len(shape) != 2 or not all(1 <= n <= _MOST_CHANNELS for n in shape):
        raise validation.fail(content.path("shape"), f"two integers from 1 to {_MOST_CHANNELS}", shape)
    return shape[0], shape[1]


def _system_content(a: Array, b: Array, c: Array, d: Array) -> dict[str, Any]:
    """Return a state space; without states D alone tells how large it is."""
    return {name: x.tolist() if x.size else [] for name, x in zip(_STATE_SPACE, (a, b, c, d), strict=True)}


def _read_system(content: Fields) -> tuple[Array, Array, Array, Array]:
    d, found = content.array("d", 2), [content.array(name, 2, empty=True) for name in _STATE_SPACE[:3]]
    if any(x.size for x in found):
        return found[0], found[1], found[2], d
    return np.zeros((0, 0)), np.zeros((0, d.shape[1])), np.zeros((len(d), 0)), d


def models_content(models: ChannelModels | None) -> dict[str, Any] | None:
    """Return a model for each input, or one of all; None where there is none."""
    if models is None:
        return None
    if not isinstance(models, VectorARMA):
        return {str(i): model_content(x) for i, x in enumerate(models)}
    known = {"mean": models.mean.tolist(), "source": models.source, "fitted_order": models.fitted_order}
    return {"kind": _VECTOR, **_system_content(models.a, models.b, models.c, models.d), **known}


def read_models(content: Fields) -> ChannelModels | None:
    """Read what :func:`models_content` gave."""
    given = content.take("models")
    if given is None:
        return None
    inner = Fields(given, content.name + ".models")
    if not inner.has("kind"):
        numbers = range(_MOST_CHANNELS)
        found = tuple(read_model(inner.inner(str(i))) for i in numbers if inner.has(str(i)))
        inner.end()
        return found
    inner.choice("kind", (_VECTOR,))
    system, mean = _read_system(inner), inner.array("mean")
    source, order = check_source(inner.path("source"), inner.take("source")), inner.take("fitted_order")
    inner.end()
    with name_errors(f"field {inner.name}"):
        return VectorARMA.from_state_space(*system, mean=mean, source=source, fitted_order=order)


def _privacy_content(privacy: Privacy) -> dict[str, Any]:
    change = privacy.max_change
    every = {name: getattr(privacy, name) for name in _PRIVACY}
    return {**every, "max_change": list(change) if isinstance(change, tuple) else change}


def _read_privacy(content: Fields) -> Privacy:
    privacy = content.inner("privacy")
    with name_errors(f"field {privacy.name}"):
        found = Privacy(**{name: privacy.take(name) for name in _PRIVACY})
    privacy.end()
    return found


def _read_options(content: Fields) -> tuple[tuple[str, Option], ...]:
    options = content.inner("options").rest()
    for key, value in options.items():
        if isinstance(value, (bool, dict, list)):
            raise validation.fail(content.path(f"options.{key}"), "a number, a word or null", value)
    return tuple(options.items())


# --- in a file ------------------------------------------------------------------------------------


def file_content(
    m: ChannelsMechanism | BlockChannelsMechanism, entry_content: Callable[[BlockMechanism], dict[str, Any]]
) -> dict[str, Any]:
    """Return a mechanism of several streams with the figures that are computed anew when it is read."""
    if isinstance(m, ChannelsMechanism):
        return {**channels_content(m), "noise_std": m.noise_std, "predicted_mse": m.predicted_mse}
    return {**block_channels_content(m, entry_content), "predicted_mse": m.predicted_mse}


def read_file_content(
    value: dict[str, Any], read_entry: Callable[[Any], Any]
) -> ChannelsMechanism | BlockChannelsMechanism:
    """Read what :func:`file_content` gave; refuse figures that are not those of what is in the file."""
    content, of_blocks = Fields(value, "mechanism"), "entries" in value
    names = ("predicted_mse",) if of_blocks else ("noise_std", "predicted_mse")
    told = {name: content.number(name) for name in names}
    rest = content.rest()
    made = read_block_channels(rest, read_entry) if of_blocks else read_channels(rest)
    for name, value_told in told.items():
        computed, tolerance = getattr(made, name), SAME_NOISE if name == "noise_std" else SAME_MSE
        if not math.isclose(value_told, computed, rel_tol=tolerance):
            raise ValueError(
                f"{content.path(name)} must be {computed!r}, as its filters or blocks make it, got {value_told!r}: the "
                "file was changed; design and save anew"
            )
    return made


# --- of filters -----------------------------------------------------------------------------------


def channels_content(m: ChannelsMechanism) -> dict[str, Any]:
    """Return a mechanism of filters."""
    return {
        "name": m.name,
        "privacy": _privacy_content(m.privacy),
        **{name: matrix_content(getattr(m, name)) for name in _MATRICES},
        "models": models_content(m.models),
        "lag": m.lag,
        "ideal_mse": m.ideal_mse,
        "lower_bound_mse": m.lower_bound_mse,
        "options": dict(m.options),
    }


def read_channels(value: Any) -> ChannelsMechanism:
    """Read what :func:`channels_content` gave."""
    content = Fields(value, "mechanism")
    privacy, models = _read_privacy(content), read_models(content)
    target, prefilter, receiver = (read_matrix(f"mechanism.{x}", content.take(x)) for x in _MATRICES)
    ideal, bound = content.optional("ideal_mse"), content.optional("lower_bound_mse")
    lag, options, name = content.lag(), _read_options(content), content.text("name")
    content.end()
    return ChannelsMechanism(
        name, target, privacy, prefilter, receiver, ideal, bound, options=options, models=models, lag=lag
    )


# --- of block sums --------------------------------------------------------------------------------


def block_channels_content(
    m: BlockChannelsMechanism, entry_content: Callable[[BlockMechanism], dict[str, Any]]
) -> dict[str, Any]:
    """Return a mechanism of block sums; `entry_content` is that of the block sums of an output and an input."""
    rows = enumerate(m.entries)
    return {
        "name": m.name,
        "privacy": _privacy_content(m.privacy),
        "target": matrix_content(m.target),
        "models": models_content(m.models),
        "lag": m.lag,
        "entries": {f"{a},{i}": entry_content(x) for a, row in rows for i, x in enumerate(row) if x is not None},
        "options": dict(m.options),
    }


def read_block_channels(value: Any, read_entry: Callable[[Any], Any]) -> BlockChannelsMechanism:
    """Read what :func:`block_channels_content` gave, the entries by `read_entry`."""
    content = Fields(value, "mechanism")
    privacy, models = _read_privacy(content), read_models(content)
    target = read_matrix("mechanism.target", content.take("target"))
    if models is None or isinstance(models, VectorARMA):
        raise validation.fail(content.path("models"), "a model for each input with block sums", models)
    inner, (p, m) = content.inner("entries"), target.shape
    entries = tuple(
        tuple(
            _read_entry(inner, f"{a},{i}", target[a, i], models[i], read_entry) if i < len(models) else None
            for i in range(m)
        )
        for a in range(p)
    )
    inner.end()
    lag, options, name = content.lag(), _read_options(content), content.text("name")
    content.end()
    return BlockChannelsMechanism(name, target, privacy, models, entries, lag, options)


def _read_entry(
    entries: Fields, key: str, target: Filter, model: Model, read_entry: Callable[[Any], Any]
) -> BlockMechanism | None:
    """Read the block sums of an output and an input, whose target and model they have."""
    if not entries.has(key):
        return None
    with name_errors(entries.path(key)):
        found = read_entry(entries.take(key))
    if type(found) is not BlockMechanism or found.target != target:
        raise validation.fail(entries.path(key), "block sums for the target's entry", found)
    if model_content(found.model) != model_content(model):
        raise validation.fail(entries.path(key), "block sums for the model of the input", found.model)
    return replace(found, model=model)
