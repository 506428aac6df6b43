"""A design as a task for a worker, and its answer: objects in a process, pickled on their way to another one."""

from __future__ import annotations

import json
import math
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpfast._support import version
from dpfast._support.canonical_json import canonical, digest
from dpfast._support.errors import ConvergenceWarning, DataError, ToleranceWarning
from dpfast.design.catalogue import FAMILIES, GIVEN
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.mechanisms.mechanism_kinds import AnyChannels, AnyMechanism
from dpfast.mechanisms.serialization.json_fields import Fields
from dpfast.mechanisms.serialization.mechanism_file import to_text
from dpfast.mechanisms.serialization.parts import model_content, read_rational
from dpfast.privacy.privacy import Privacy
from dpfast.signals.channel_outputs import output_variances
from dpfast.signals.output_variance import output_variance
from dpfast.simulation.prepared_channels import predicted_outputs
from dpfast.simulation.prepared_study import SETTLED_START, predicted_mse, settling_time
from dpfast.simulation.sweep import several_streams as several
from dpfast.simulation.sweep.compiled_mechanism_json import AnyCompiled, compiled_content

Content = Mapping[str, Any]  # what the file of a mechanism has of a filter, a model, a mechanism
_NOTED = (ToleranceWarning, ConvergenceWarning)
_ONE_AT_A_TIME = threading.Lock()  # warnings are caught for the whole process, and workers may be its threads


@dataclass(frozen=True, eq=False)
class DesignTask:
    """A mechanism that a worker is to design, and the streams that its error is to be predicted for.

    It is made of plain contents and no other class of this package, so that a worker of any version can receive it and
    refuse a version that is not its own.

    Attributes
    ----------
    version : str
        The version of dpfast that asks.
    key : str
        What the design is called in the store.
    family : str
        The name of the design function; "given" for a mechanism that is there already.
    arguments : mapping
        The content of each argument of the design function.
    streams : mapping
        By :func:`prediction_key`: the content of a model, and how many first steps count; None for all when settled.
    """

    version: str
    key: str
    family: str
    arguments: Content
    streams: Mapping[str, tuple[Content, int | None]]


@dataclass(frozen=True, eq=False)
class DesignAnswer:
    """A mechanism that a worker has designed, or why there is none.

    Attributes
    ----------
    version : str
        The version of dpfast of the worker.
    notes : tuple of str
        The texts of the warnings of the design.
    error : str or None
        Why there is no such mechanism; then there is nothing else but notes.
    mechanism : str
        The text of the mechanism's file.
    compiled : AnyCompiled or None
        What the simulation runs.
    figures : mapping
        Name, lag and errors, as :class:`~dpfast.simulation.sweep.design_cache.Design` has them.
    """

    version: str
    notes: tuple[str, ...]
    error: str | None = None
    mechanism: str = ""
    compiled: AnyCompiled | None = None
    figures: Mapping[str, Any] = field(default_factory=dict)

    def to_text(self) -> str:
        """Write the answer as JSON, for the store."""
        if self.error is not None:
            return json.dumps({"dpfast": self.version, "error": self.error, "notes": self.notes})
        parts = {"mechanism": self.mechanism, "link": compiled_content(self.compiled), "figures": self.figures}
        return json.dumps({"dpfast": self.version, **parts, "notes": self.notes})


def make_design(task: DesignTask) -> DesignAnswer:
    """Design a mechanism, on whatever worker.

    Raises
    ------
    DataError
        Where the task is of another version.
    """
    own = version.__version__
    if task.version != own:
        raise DataError(
            f"workers must run dpfast {task.version}, as the process that they work for does; got {own}: "
            "install the same version there"
        )
    parts: dict[str, Any]
    with _ONE_AT_A_TIME, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            mechanism = _design_mechanism(task)
            figures = _compute_figures(mechanism, task.streams)
            parts = {"mechanism": to_text(mechanism), "compiled": mechanism.compiled(), "figures": figures}
        except ValueError as error:  # a DesignError, or of an argument that is out of range
            parts = {"error": str(error)}
    for x in caught:
        if not issubclass(x.category, _NOTED):
            warnings.warn_explicit(x.message, x.category, x.filename, x.lineno)
    notes = dict.fromkeys(str(x.message) for x in caught if issubclass(x.category, _NOTED))
    return DesignAnswer(own, tuple(notes), **parts)


def _design_mechanism(task: DesignTask) -> AnyMechanism | AnyChannels:
    if task.family == GIVEN:
        return several.build_mechanism(task.arguments["mechanism"])
    design: Callable[..., AnyMechanism | AnyChannels] = FAMILIES[task.family].design
    return design(**{name: _build_argument(name, x) for name, x in task.arguments.items()})


def _build_argument(name: str, content: Any) -> Any:
    """Make what the content of an argument describes."""
    if not isinstance(content, dict):
        return content
    if name == "privacy":
        return Privacy(**content)
    if name == "model":
        return several.build_models(content)
    matrix = several.matrix_or_none(name, content)
    if matrix is not None:
        return matrix
    fields = Fields({name: content})
    if "recursion" in content:
        return read_rational(fields, name)
    return fields.toeplitz(name) if "coefficients" in content else fields.filter(name)


def build_target(content: Content) -> Any:
    """Make the target with a content, as a grid has it."""
    return _build_argument("target", dict(content))


def true_output_variances(target: Content, stream: Content, n_first: int | None) -> tuple[float, ...]:
    """Compute the variance of each true output on a stream, settled or as the mean of so many first steps."""
    wanted, models = build_target(target), several.build_models(stream)
    if isinstance(wanted, FilterMatrix):
        return tuple(output_variances(wanted, models, n_first).tolist())
    return (output_variance(wanted, models, n_first),)


def _compute_figures(
    mechanism: AnyMechanism | AnyChannels, streams: Mapping[str, tuple[Content, int | None]]
) -> dict[str, Any]:
    models = {name: (several.build_models(content), n_first) for name, (content, n_first) in streams.items()}
    if isinstance(mechanism, AnyChannels):
        return _compute_channel_figures(mechanism, models)
    return {
        "name": mechanism.name,
        "lag": mechanism.lag,
        "noise_std": mechanism.noise_std,
        "ideal_mse": mechanism.ideal_mse,
        "bound": None if _has_worst_case_errors(mechanism) else mechanism.lower_bound_mse,
        "model": None if mechanism.model is None else digest(canonical(model_content(mechanism.model))),
        "settling": settling_time(mechanism),
        "predicted": {name: predicted_mse(mechanism, model, n_first) for name, (model, n_first) in models.items()},
    }


def _compute_channel_figures(mechanism: AnyChannels, models: Mapping[str, tuple[Any, int | None]]) -> dict[str, Any]:
    """Compute the figures of a mechanism of several streams: the errors of its outputs, and all together."""
    found = {name: predicted_outputs(mechanism, *x) for name, x in models.items()}
    noise = mechanism.noise_std if isinstance(mechanism, ChannelsMechanism) else math.nan  # its inputs have each theirs
    designed_for = mechanism.models
    return {
        "name": mechanism.name,
        "lag": mechanism.lag,
        "noise_std": noise,
        "ideal_mse": mechanism.ideal_mse,
        "bound": mechanism.lower_bound_mse,
        "model": None if designed_for is None else digest(canonical(several.content_of_models(designed_for))),
        "settling": mechanism.settling_time(SETTLED_START),
        "predicted": {name: None if x is None else float(x.sum()) for name, x in found.items()},
        "predicted_outputs": {name: None if x is None else x.tolist() for name, x in found.items()},
    }


def _has_worst_case_errors(mechanism: AnyMechanism) -> bool:
    """Tell whether its errors are those of the worst input, and not of its model."""
    return mechanism.mean_square is not None


def prediction_key(stream: str, n_first: int | None) -> str:
    """Name the error on a stream, given by its digest: settled, or of the first steps."""
    return stream if n_first is None else f"{stream}, first {n_first}"
