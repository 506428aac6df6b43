"""A study of mechanisms of several streams is prepared here, and its errors become results: of each output, and all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dpfast._kernels import compiled_channels, signal_sources
from dpfast._kernels import simulation as kernels
from dpfast._support import validation
from dpfast._support.errors import Warned, note_warnings, warn
from dpfast._support.validation import Array
from dpfast._support.weak_cache import keep_last
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.channels_base import ChannelsBase
from dpfast.signals.channel_models import ChannelModels, check_channel_models
from dpfast.signals.channel_outputs import compile_sources, output_variances
from dpfast.signals.model import ShapedModel
from dpfast.signals.vector_arma import VectorARMA
from dpfast.simulation.intervals import ErrorSizes
from dpfast.simulation.prepared_study import PILOT_SAMPLES, PILOT_STREAMS, SETTLED_START, check_single_precision
from dpfast.simulation.rare_error_sizes import noise_sizes, response_sizes
from dpfast.simulation.study import Result

_KEPT = 32  # studies


class ExpectedOutputs(NamedTuple):
    """A summary of what is known of the errors of all outputs before a stream is drawn, (p,) each."""

    mse: Array | None  # as predicted
    variance: Array  # of the true outputs
    sizes: list[ErrorSizes | None]  # of errors that may be rare


class ChannelsStudy(NamedTuple):
    """A study of mechanisms of several streams, ready to run."""

    names: tuple[str, ...]
    built: kernels.BuiltStudy
    burn_in: int
    expected: tuple[ExpectedOutputs, ...]
    warned: tuple[Warned, ...]  # what every call has to say

    def results(self, errors: Array, confidence: float) -> tuple[Result, ...]:
        """Return what was found, of mean squared errors (streams, outputs of all mechanisms)."""
        ends = np.cumsum([len(x.variance) for x in self.expected])[:-1]
        triples = zip(self.names, np.split(errors.T, ends), self.expected, strict=True)
        return tuple(make_result(name, part, known, confidence) for name, part, known in triples)


def prepare_channels(
    items: Sequence[Any], model: Any, burn_in: int | None, n_samples: int, precision: np.dtype[Any]
) -> ChannelsStudy:
    """Prepare a study of mechanisms of several streams, or take the one that the same ones had before.

    Other mechanisms beside them are refused, and models of other inputs.
    """
    mechanisms = check_alike(items)
    models = check_channel_models("model", model, mechanisms[0].target.shape[1])
    together = isinstance(models, VectorARMA)
    parts: tuple[Any, ...] = (models,) if isinstance(models, VectorARMA) else models
    kept = together or all(isinstance(x, ShapedModel) for x in parts)  # a user's own model may change
    run = len(mechanisms), together, burn_in, n_samples, precision
    prepared = (_prepare_once if kept else _prepare)((*mechanisms, *parts), *run)
    for message, category in prepared.warned:
        warn(message, category)
    return prepared


def _prepare(
    objects: tuple[Any, ...], n: int, together: bool, burn_in: int | None, n_samples: int, precision: np.dtype[Any]
) -> ChannelsStudy:
    """Prepare a study of n mechanisms, behind which stands a model for each input, or one of all together."""
    mechanisms: tuple[ChannelsBase, ...] = objects[:n]
    models: ChannelModels = objects[n] if together else objects[n:]
    if burn_in is None:
        burn_in = max(x.settling_time(SETTLED_START) for x in mechanisms)
    sources, parts = compile_sources(models), tuple(x.compiled() for x in mechanisms)
    n_first = n_samples if burn_in == 0 else None
    pairs = list(zip(mechanisms, parts, strict=True))
    with note_warnings() as noted:
        expected = tuple(_expect(x, part, models, n_samples, n_first) for x, part in pairs)
    if precision == np.float32:
        for x, part in pairs:
            check_single_precision(x.name, channels_precision_error(sources, part, burn_in))
    built = kernels.CompiledChannelsStudy(sources, parts, burn_in, n_samples, precision).build_chain()
    return ChannelsStudy(tuple(x.name for x in mechanisms), built, burn_in, expected, tuple(noted))


_prepare_once = keep_last(_KEPT)(_prepare)


def check_alike(items: Sequence[Any]) -> tuple[ChannelsBase, ...]:
    """Refuse mechanisms of one stream beside those of several, and such of other inputs; return them."""
    others = [x.name for x in items if not isinstance(x, ChannelsBase)]
    if others:
        raise ValueError(
            f"mechanisms must all be of one stream or all of several, got {others} of one stream beside those of "
            "several: simulate them apart"
        )
    inputs = {x.name: x.target.shape[1] for x in items}
    if len(set(inputs.values())) > 1:
        raise ValueError(f"mechanisms must all have the same inputs, got {inputs} of them: simulate them apart")
    return tuple(items)


def _expect(
    mechanism: ChannelsBase,
    compiled: compiled_channels.AnyCompiledChannels,
    models: ChannelModels,
    n_samples: int,
    n_first: int | None,
) -> ExpectedOutputs:
    predicted = predicted_outputs(mechanism, models, n_first)
    variances = output_variances(mechanism.target, models, n_first)
    return ExpectedOutputs(predicted, variances, output_sizes(mechanism.target, compiled, n_samples))


def predicted_outputs(mechanism: ChannelsBase, models: ChannelModels, n_first: int | None) -> Array | None:
    """Predict the MSE of each output of the first steps from rest, or when settled (None)."""
    return mechanism.predict_outputs(models) if n_first is None else mechanism.predict_first_outputs(n_first, models)


def output_sizes(
    target: FilterMatrix, compiled: compiled_channels.AnyCompiledChannels, n_samples: int, n_streams: int = 1
) -> list[ErrorSizes | None]:
    """Return the sizes of errors of each output where all that is published for it mostly has no noise at all.

    They are those of the mean over so many streams.
    """
    if isinstance(compiled, compiled_channels.CompiledChannels):
        return [None] * target.shape[0]
    noises = [None if x is None else noise_sizes(x, n_streams * n_samples) for x in compiled.columns]
    found: list[ErrorSizes | None] = []
    for row in target.rows:
        parts = [(noise, entry.factors) for noise, entry in zip(noises, row, strict=True) if entry.b.any()]
        least, largest = math.inf, 0.0
        for noise, factors in parts:
            energy, gain = response_sizes(factors, n_samples)
            least = min(least, 0.0 if noise is None else noise[0] ** 2 * energy / (n_streams * n_samples))
            largest += 0.0 if noise is None else noise[1] * gain
        rare = bool(parts) and all(noise is not None for noise, _ in parts)
        found.append(ErrorSizes(least, largest**2) if rare else None)
    return found


def channels_precision_error(
    sources: signal_sources.ChannelSources, compiled: compiled_channels.AnyCompiledChannels, burn_in: int
) -> float:
    """Measure on a few streams the relative change of the MSE of each output by float32; return the largest."""
    single, double = (
        kernels.squared_errors(
            kernels.CompiledChannelsStudy(sources, (compiled,), burn_in, PILOT_SAMPLES, dtype), PILOT_STREAMS, 1, 1
        )
        for dtype in (np.float32, np.float64)
    )
    there = double.any(axis=0)  # an output that is always zero has no error
    return float(np.abs(np.median(single[:, there] / double[:, there] - 1, axis=0)).max(initial=0.0))


def make_result(name: str, errors: Array, known: ExpectedOutputs, confidence: float) -> Result:
    """Return the error of all outputs together, which counts how those of one stream vary together, and of each."""
    outputs = tuple(
        Result(
            f"{name}, output {i}",
            None if known.mse is None else math.sqrt(known.mse[i]),
            validation.freeze(mse.copy()),
            confidence,
            float(known.variance[i]),
            known.sizes[i],
        )
        for i, mse in enumerate(errors)
    )
    together = None if known.mse is None else math.sqrt(known.mse.sum())
    values, sizes = validation.freeze(errors.sum(axis=0)), add_sizes(known.sizes)
    return Result(name, together, values, confidence, float(known.variance.sum()), sizes, outputs=outputs)


def add_sizes(sizes: Sequence[ErrorSizes | None]) -> ErrorSizes | None:
    """Return the sizes of the errors of all outputs together: an event of one is an event of all."""
    known = [x for x in sizes if x is not None]
    if len(known) < len(sizes):
        return None
    return ErrorSizes(min(x.smallest for x in known), sum(x.largest for x in known))
