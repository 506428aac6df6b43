"""A study is prepared here: what no seed and no number of streams changes, kept for the next call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpfast._kernels import compiled_mechanisms, signal_sources
from dpfast._kernels import simulation as kernels
from dpfast._support.errors import Warned, note_warnings, warn
from dpfast._support.weak_cache import keep_last
from dpfast.mechanisms.constant import Constant
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.signals.model import Model, ShapedModel
from dpfast.signals.output_variance import output_variance
from dpfast.simulation import rare_error_sizes
from dpfast.simulation.intervals import ErrorSizes
from dpfast.simulation.mixed_study import MixedStudy
from dpfast.simulation.study import SINGLE_ERROR

SETTLED_START = 1e-3  # amplitude of a start-up transient when errors begin to count: 1e-6 of the MSE
PILOT_STREAMS, PILOT_SAMPLES = 32, 4000
_KEPT = 32  # studies; those over a horizon may hold large matrices, and are not kept
_PILOTS = 256

AnyStudied = AnyMechanism | Constant


class Expected(NamedTuple):
    """A summary of what is known of the error of a mechanism before a stream is drawn."""

    rmse: float | None  # as predicted
    variance: float | None  # of the true output
    sizes: ErrorSizes | None  # of errors that may be rare
    control: float | None  # exact MSE of the linear receiver that a posterior mean is simulated against


class PreparedStudy(NamedTuple):
    """A study of mechanisms on a model, ready to run."""

    study: MixedStudy
    expected: tuple[Expected, ...]
    warned: tuple[Warned, ...]  # what every call has to say


def prepare(
    items: Sequence[AnyStudied], model: Model, burn_in: int | None, n_samples: int, precision: np.dtype[Any]
) -> PreparedStudy:
    """Prepare a study, or take the one that the same mechanisms, model and window had before."""
    run = [x.over_first(n_samples) for x in items]
    check_window([(repr(x.name), n) for x in run if (n := x.horizon) is not None], n_samples, burn_in)
    kept = isinstance(model, ShapedModel) and all(x.horizon is None for x in run)  # a user's own model may change
    prepared = (_prepare_once if kept else _prepare)((model, *run), burn_in, n_samples, precision)
    for message, category in prepared.warned:
        warn(message, category)
    return prepared


def _prepare(objects: tuple[Any, ...], burn_in: int | None, n_samples: int, precision: np.dtype[Any]) -> PreparedStudy:
    with note_warnings() as noted:
        study, expected = _describe(objects, burn_in, n_samples, precision)
    return PreparedStudy(study, expected, tuple(noted))


_prepare_once = keep_last(_KEPT)(_prepare)


def _describe(
    objects: tuple[Any, ...], burn_in: int | None, n_samples: int, precision: np.dtype[Any]
) -> tuple[MixedStudy, tuple[Expected, ...]]:
    model: Model = objects[0]
    items: tuple[AnyStudied, ...] = objects[1:]
    burn_in = default_burn_in(items) if burn_in is None else burn_in
    source, parts = model.compiled(), tuple(x.compiled() for x in items)
    inputs, n_first = rare_error_sizes.input_range(source), n_samples if burn_in == 0 else None
    expected = []
    for mechanism, compiled in zip(items, parts, strict=True):
        sizes = rare_error_sizes.error_sizes(compiled, inputs, n_samples)
        predicted = predicted_mse(mechanism, model, n_first)
        root = None if predicted is None else math.sqrt(predicted)
        # where noise is hardly ever drawn, the difference from a linear receiver is as rare, and no control
        control = None if sizes is not None else mechanism.control_mse(model, burn_in, n_samples)
        variance = output_variance(mechanism.target, model, n_first)
        expected.append(Expected(root, variance, sizes, control))
    compared = tuple(i for i, x in enumerate(expected) if x.control is not None)
    if precision == np.float32:
        for mechanism, compiled in zip(items, parts, strict=True):
            if mechanism.sees_data and compiled.as_chain() is not None:
                run_pilot = _pilot_error_once if isinstance(model, ShapedModel) else _pilot_error
                check_single_precision(mechanism.name, run_pilot((mechanism, model)))
    return MixedStudy(source, parts, burn_in, n_samples, precision, compared), tuple(expected)


def check_window(horizons: Iterable[tuple[str, int]], n_samples: int, burn_in: int | None) -> None:
    """Refuse numbers of samples that are not the horizon of a matrix mechanism, which the message names."""
    for name, horizon in horizons:
        if horizon != n_samples:
            raise ValueError(
                f"n_samples must be the horizon of {name}, {horizon}, got {n_samples}: a matrix mechanism is made for "
                "that many steps; give that, or design it for another horizon"
            )
        if burn_in:
            raise ValueError(
                f"burn_in must be 0 with {name}, got {burn_in}: a matrix mechanism starts at step 0; leave it out"
            )


def default_burn_in(mechanisms: Sequence[AnyStudied]) -> int:
    """Count the samples until all mechanisms have settled; none with one over a horizon, whose first step counts."""
    if any(x.horizon is not None for x in mechanisms):
        return 0
    return max(settling_time(x) for x in mechanisms)


def settling_time(mechanism: AnyStudied) -> int:
    """Count the samples until the slowest pole of target, prefilter and receiver has decayed; 0 over a horizon."""
    return mechanism.settling_time(SETTLED_START)


def predicted_mse(mechanism: AnyStudied, model: Model, n_first: int | None) -> float | None:
    """Predict the MSE of the first steps from zero state, or when settled (None); None where only simulation tells."""
    return mechanism.predict(model) if n_first is None else mechanism.predict_first(n_first, model)


# --- whether float32 will do ----------------------------------------------------------------------


def check_single_precision(name: str, error: float) -> None:
    """Refuse float32 where it changes an error, which is a difference of outputs that may be much larger."""
    if not abs(error) <= SINGLE_ERROR:
        raise ValueError(
            f"dtype must be float64 here: in float32 the MSE of {name!r} would be off by {error:.1g} of its "
            f"size, more than {SINGLE_ERROR:g}"
        )


def _pilot_error(objects: tuple[Any, ...]) -> float:
    mechanism, model = objects
    return single_precision_error(model.compiled(), mechanism.compiled().as_chain(), default_burn_in([mechanism]))


_pilot_error_once = keep_last(_PILOTS)(_pilot_error)


def single_precision_error(
    source: signal_sources.SignalSource, compiled: compiled_mechanisms.CompiledChain, burn_in: int
) -> float:
    """Measure on a few streams the relative change of an MSE by float32, over a horizon on all of it.

    Their median, as a decision that flips changes one stream by chance.
    """
    n_samples = compiled.horizon or PILOT_SAMPLES
    single, double = (
        kernels.squared_errors(
            kernels.CompiledStudy(source, (compiled,), burn_in, n_samples, dtype), PILOT_STREAMS, 1, 1
        )
        for dtype in (np.float32, np.float64)
    )
    return float(np.median(single / double - 1))
