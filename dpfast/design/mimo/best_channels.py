"""The best mechanism of several streams: all that can serve, by their predicted errors of all outputs together."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast._support.progress import progress_bar
from dpfast.design.argument_checks import check_tolerance, check_unit
from dpfast.design.best_conclusion import LITTLE, NOTHING, in_figures, in_percent
from dpfast.design.best_ranking import NO_EXACT_RELEASE
from dpfast.design.block_sums import block_sums
from dpfast.design.catalogue import FAMILIES
from dpfast.design.lmmse import lmmse
from dpfast.design.mimo.channel_designs import check_channels
from dpfast.design.mimo.channel_parts import AnyForm
from dpfast.design.mimo.channels_lmmse import check_lag_of_channels
from dpfast.design.optimal import optimal
from dpfast.design.perturbation import input_perturbation, output_perturbation
from dpfast.design.zero_forcing import zero_forcing
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.undoing import can_undo_matrix
from dpfast.mechanisms.best_choice import CHOSEN, REFERENCE, Choice, ChoiceRow, join_reasons, say_what_can_be_released
from dpfast.mechanisms.block_channels_mechanism import BlockChannelsMechanism
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.mechanisms.constant import NAME
from dpfast.privacy.privacy import Privacy
from dpfast.signals.channel_models import ChannelModels, check_channel_models, without_others
from dpfast.signals.channel_outputs import output_variances
from dpfast.signals.output_variance import explained_share
from dpfast.signals.vector_arma import VectorARMA

AnyChannels = ChannelsMechanism | BlockChannelsMechanism

_TIE = 1e-9  # relative, of errors that are the same but for rounding
_PATIENCE = 2.0  # seconds without a bar
_SEPARATE = ", separate"
_NOT_PROVEN = "for several streams it is not proven"
_NO_DELTA = "Gaussian noise needs a delta above 0"
_NO_MODEL = "a model of each input is needed"
_DEPENDENT = "a model of its own for each input is needed, as it is for independent streams"
_INDEPENDENT = "it is for streams that depend on one another, and for independent ones optimal is the better"


_LABELS = {x.design: x.label for x in FAMILIES.values()}


class ChannelsTask(NamedTuple):
    """The task that all of them are designed for; `drawn` asks for noise on the integers that a release can draw."""

    target: FilterMatrix
    privacy: Privacy
    models: ChannelModels | None
    lag: int
    unit: float | None
    tolerance: float
    drawn: bool

    @property
    def variance(self) -> float | None:
        """The error of publishing the means of all outputs; None without models."""
        return None if self.models is None else float(output_variances(self.target, self.models).sum())


class ChannelsCandidate(NamedTuple):
    """A way to serve it: its label, how it is designed, whether it needs a δ and models, and of which streams alone."""

    label: str
    design: Callable[[ChannelsTask], AnyChannels]
    gaussian: bool = True
    modelled: bool = False
    dependent: bool | None = None

    def reason_against(self, task: ChannelsTask) -> str:
        """Say why it cannot serve, and what would have to change; nothing where it can."""
        if self.gaussian and task.privacy.delta == 0:
            return _NO_DELTA
        if self.modelled and task.models is None:
            return _NO_MODEL
        if self.dependent is not None and isinstance(task.models, VectorARMA) != self.dependent:
            return _INDEPENDENT if self.dependent else _DEPENDENT
        return ""


def _optimal(task: ChannelsTask, form: AnyForm = "diagonal") -> ChannelsMechanism:
    assert task.models is not None
    name = f"{_name_form(_OPTIMAL, form)} lag {task.lag}"
    given: dict[str, Any] = {"lag": task.lag, "tolerance": task.tolerance, "name": name}
    return optimal(task.target, task.privacy, task.models, prefilter=form, **given)


def _estimate(task: ChannelsTask) -> ChannelsMechanism:
    assert isinstance(task.models, VectorARMA)
    return lmmse(task.target, task.privacy, task.models, lag=task.lag, tolerance=task.tolerance)


def _force(task: ChannelsTask, form: AnyForm = "diagonal") -> ChannelsMechanism:
    given: dict[str, Any] = {"tolerance": task.tolerance, "name": _name_form(_FORCED, form)}
    return zero_forcing(task.target, task.privacy, prefilter=form, **given)


def _name_form(label: str, form: AnyForm) -> str:
    """Name a design with the form of its prefilter, so that a study tells all of them apart."""
    return label if form == "diagonal" else f"{label}, {form}"


def _sum_blocks(task: ChannelsTask) -> BlockChannelsMechanism:
    assert task.models is not None
    assert not isinstance(task.models, VectorARMA)
    given = task.target, task.privacy, task.models
    found = block_sums(*given, lag=task.lag, unit=task.unit)
    if task.drawn and found.release_hindrance():  # the noise of least variance cannot be drawn
        return block_sums(*given, lag=task.lag, unit=task.unit, noise="geometric")
    return found


_OPTIMAL, _FORCED = _LABELS[optimal], _LABELS[zero_forcing]
CANDIDATES = (
    ChannelsCandidate(_OPTIMAL, _optimal, modelled=True),
    ChannelsCandidate(
        _name_form(_OPTIMAL, "separate"), lambda x: _optimal(x, "separate"), modelled=True, dependent=False
    ),
    ChannelsCandidate(_name_form(_OPTIMAL, "general"), lambda x: _optimal(x, "general"), modelled=True),
    ChannelsCandidate(_LABELS[lmmse], _estimate, modelled=True, dependent=True),
    ChannelsCandidate(_LABELS[block_sums], _sum_blocks, gaussian=False, modelled=True, dependent=False),
    ChannelsCandidate(_FORCED, _force),
    ChannelsCandidate(_name_form(_FORCED, "general"), lambda x: _force(x, "general")),
    ChannelsCandidate(_name_form(_FORCED, "separate"), lambda x: _force(x, "separate")),
    ChannelsCandidate(_LABELS[input_perturbation], lambda x: input_perturbation(x.target, x.privacy)),
    ChannelsCandidate(_LABELS[output_perturbation], lambda x: output_perturbation(x.target, x.privacy)),
)


class DesignedChannels(NamedTuple):
    """A candidate's label and mechanism, what the design took, and the warnings that came with it."""

    label: str
    mechanism: AnyChannels
    seconds: float
    warned: list[warnings.WarningMessage]


def best_of_channels(
    target: FilterMatrix,
    privacy: Privacy,
    models: Any,
    *,
    lag: Any,
    releasable: Any,
    unit: Any,
    tolerance: float,
    progress: bool,
    drawn: bool = False,
) -> AnyChannels:
    """Design all that can serve, and return that of the least error of all outputs together, with how it was chosen."""
    check_channels(target, privacy)
    validation.instance("releasable", releasable, bool, "True or False")
    known = None if models is None else check_channel_models("model", without_others(models), target.shape[1])
    accuracy = check_unit(unit), check_tolerance(tolerance)
    task = ChannelsTask(target, privacy, known, check_lag_of_channels(lag), *accuracy, releasable or drawn)
    reasons = [(x.label, why) for x in CANDIDATES if (why := x.reason_against(task))]
    possible = [x for x in CANDIDATES if not x.reason_against(task)]
    with progress_bar(progress, len(possible), "designing", unit="design", delay=_PATIENCE) as advance:
        made = list(_design_all(possible, task, reasons, advance))
    if releasable:
        reasons += [(x.label, NO_EXACT_RELEASE) for x in made if not _is_releasable(x.mechanism)]
        made = [x for x in made if _is_releasable(x.mechanism)]
    if not made:
        raise DesignError("no mechanism of several streams serves here. " + " ".join(join_reasons(reasons)))
    return _conclude(task, made, reasons)


def _design_all(
    possible: list[ChannelsCandidate],
    task: ChannelsTask,
    reasons: list[tuple[str, str]],
    advance: Callable[[int], object],
) -> Iterator[DesignedChannels]:
    for candidate in possible:
        begun = time.perf_counter()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                mechanism = candidate.design(task)
            except ValueError as error:  # a DesignError, or of an argument that the family does not take
                reasons.append((candidate.label, str(error)))
                mechanism = None
        advance(1)
        if mechanism is not None:
            yield DesignedChannels(candidate.label, mechanism, time.perf_counter() - begun, warned)


def _conclude(task: ChannelsTask, made: list[DesignedChannels], reasons: list[tuple[str, str]]) -> AnyChannels:
    least = min(x.mechanism.predicted_mse for x in made)
    first = next(x for x in made if x.mechanism.predicted_mse <= least * (1 + _TIE))
    rest = sorted((x for x in made if x is not first), key=lambda x: x.mechanism.predicted_mse)
    for warned in first.warned:
        warnings.warn_explicit(warned.message, warned.category, warned.filename, warned.lineno)
    rows = [_row(x, task, CHOSEN * (x is first)) for x in (first, *rest)]
    choice = Choice(
        sentence=_sentence(task, first, rest) + say_what_can_be_released(rows, lambda row: row.rmse or 0.0),
        rows=(*rows, *_reference(task)),
        bounds=(),
        reasons=tuple(reasons),
        minimize="mean",
        alternatives=tuple(x.mechanism for x in rest),
    )
    return first.mechanism.with_choice(choice)


def _row(x: DesignedChannels, task: ChannelsTask, status: str) -> ChoiceRow:
    m, gaussian = x.mechanism, isinstance(x.mechanism, ChannelsMechanism)
    needs = ("model",) * (m.models is not None) + ("delta",) * gaussian
    return ChoiceRow(
        name=x.label,
        lag=m.lag,
        rmse=m.predicted_rmse,
        interval=None,
        worst_step_rmse=m.predicted_rmse if gaussian else None,  # of blocks it is not predicted for several streams
        explained=explained_share(m.predicted_mse, task.variance),
        seconds=x.seconds,
        needs=needs,
        delta=_delta(m),
        reacts=False,
        reacts_why=_NOT_PROVEN,
        online=True,
        releasable=_is_releasable(m),
        status=status,
    )


def _is_releasable(mechanism: AnyChannels) -> bool:
    """Tell whether it has an exact form for certain: without models something stable must undo rounded taps."""
    if mechanism.models is not None or not isinstance(mechanism, ChannelsMechanism):
        return not mechanism.release_hindrance()
    return can_undo_matrix(mechanism.target, mechanism.prefilter, mechanism.receiver.links())


def _delta(mechanism: AnyChannels) -> float:
    """Return the δ of a guarantee: 0 for sums with noise that needs none."""
    if isinstance(mechanism, ChannelsMechanism):
        return mechanism.privacy.delta
    of_inputs = [
        max((x.guarantee_terms().delta for x in column if x is not None), default=0.0)
        for column in zip(*mechanism.entries, strict=True)
    ]
    return max(of_inputs) if mechanism.privacy.adjacency == "one_input" else math.fsum(of_inputs)


def _reference(task: ChannelsTask) -> list[ChoiceRow]:
    """Return the row of the constant, where models tell its error."""
    if task.variance is None:
        return []
    spread = math.sqrt(task.variance)
    return [ChoiceRow(NAME, 0, spread, None, spread, 0.0, 0.0, ("model",), 0.0, True, NOTHING, True, True, REFERENCE)]


def _sentence(task: ChannelsTask, first: DesignedChannels, rest: list[DesignedChannels]) -> str:
    """Say what to use, its error, and how much less that is than of the next kind, or that the means are as good."""
    mse, variance = first.mechanism.predicted_mse, task.variance
    if variance is not None and mse > (1 - LITTLE) ** 2 * variance:
        no = "no better" if mse >= variance else "hardly better"
        return (
            f"Publish the means of the outputs ({NAME}), at no cost of privacy: RMSE {in_figures(math.sqrt(variance))} "
            f"of all together. The best mechanism, {first.label}, is {no}, with {in_figures(math.sqrt(mse))}."
        )
    explains = f" (explains {in_percent(mse / variance)})" if variance else ""
    text = f"Use {first.label}: RMSE {in_figures(math.sqrt(mse))} of all outputs together{explains}"
    if other := next((x for x in rest if not x.label.endswith(_SEPARATE)), None):
        left = math.sqrt(mse / other.mechanism.predicted_mse)
        than = f"{in_percent(left)} below" if 1 - left >= LITTLE else "about as much as"
        text += f", {than} {other.label}"
    return f"{text}."
