"""What was published: the estimates with their band, their error, and whether the model that predicts it holds."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpfast._support import html_fragments as html
from dpfast._support.dataframes import unwrap
from dpfast._support.html_fragments import Html, paragraphs
from dpfast._support.validation import Array
from dpfast.releases.batch import Release
from dpfast.releases.guarantee import Guarantee
from dpfast.releases.model_check.adapted_estimates import AdaptedEstimates
from dpfast.releases.model_check.verdict import BAND, ModelCheck
from dpfast.reports.release import estimate_chart
from dpfast.reports.release.chart_axes import Ticks, step_ticks, time_ticks
from dpfast.reports.release.estimate_chart import MOST_COLUMNS, GroupPanel

MOST_PANELS = 24
_HALF = 0.5  # of the variance
_MEANING = (
    "RMSE is the root mean square error of the estimates, in the units of the target's output. Explained is the part "
    "of the variance of the true output that the estimates explain. What is predicted, and the constant, follow "
    "from the model that the design assumed; what is estimated, from what was published. Nothing is measured on the "
    "data."
)
_KEPT = (
    "The true output is that of the events that the bounds of persons keep. Events beyond them are missing, so that "
    "estimates of all events are too low, by an amount that is private. What follows on errors is about the events "
    "that are kept."
)
_LITTLE = (
    "Under the model the estimates explain less than half of the variance of the true output: publishing the mean "
    "alone, which costs no privacy, errs by {:.4g} instead of {:.4g}."
)


def say_kept(guarantee: Guarantee) -> list[Html]:
    """Say of which events the numbers are, where those beyond the bounds of persons are missing."""
    return [] if guarantee.persons is None else [paragraphs(_KEPT)]


def plain_estimates(release: Release) -> Array:
    """Return the estimates as an array (streams, time), without the labels of the data that were released."""
    values = np.asarray(unwrap("estimate", release.estimate)[0], float)
    rows = len(values) if isinstance(release.estimate, np.ndarray) else len(release.privatized)
    return values.reshape(rows, -1)


def declared_period(release: Release) -> np.timedelta64 | None:
    """Return the length of a step, where the store declares it."""
    length = (release.declared or {}).get("period_us")
    return None if length is None else np.timedelta64(int(length), "us")


# --- the drawing ----------------------------------------------------------------------------------


def draw_estimates(release: Release, estimate: Array) -> list[Html]:
    """Draw the estimates of each group with their band, and say what is drawn."""
    n_groups, n_steps = estimate.shape
    if not n_steps:
        return [paragraphs("No step has an estimate yet.")]
    band = half_widths(release, n_groups)
    what = "stream" if release.output_rmse_if_model_holds is None else "output"
    names = release.outputs or tuple(f"{what} {i + 1}" for i in range(n_groups))
    panels = [GroupPanel(*x) for x in zip(names, estimate, band, strict=True)][:MOST_PANELS]
    drawn = estimate_chart.draw_panels(panels, _time_ticks(release, n_steps), lambda i: _name_step(release, i))
    return [
        paragraphs(" ".join([_explain_line(n_steps), _explain_band(release, band), *_explain_panels(n_groups)])),
        drawn,
    ]


def half_widths(release: Release, n_groups: int) -> list[float] | list[None]:
    """Return half the width of each band: by the error that v tells, or else by the one that the model predicts.

    Of a model that v contradicts nothing is drawn.
    """
    error, band = release.predicted_rmse_if_model_holds, release.model_check.band
    if band is not None:
        widths: list[float] = np.asarray(band, float).tolist()
        return widths
    if release.model_check.agrees is False:
        return [None] * n_groups
    if (of_each := release.output_rmse_if_model_holds) is not None:
        return [BAND * x for x in of_each]
    return [None] * n_groups if error is None else [BAND * error] * n_groups


def _time_ticks(release: Release, n: int) -> Ticks:
    times, period = release.times, declared_period(release)
    if times is None or period is None:
        return step_ticks(release.first, n)
    return time_ticks(_microseconds(times), n * int(period.astype(np.int64)))


def _name_step(release: Release, i: int) -> str:
    """Name a step as the store counts it, or by the time at which it begins."""
    if release.times is None:
        return f"step {release.first + i:,}"
    time = release.times[i].astype("datetime64[us]")
    whole = time == time.astype("datetime64[m]")
    return str(np.datetime_as_string(time, unit="m" if whole else "us")).replace("T", " ")


def _microseconds(times: NDArray[np.datetime64]) -> int:
    return int(times[0].astype("datetime64[us]").astype(np.int64))


def _explain_line(n_steps: int) -> str:
    if n_steps <= MOST_COLUMNS:
        return "The line is what is published: the estimate of the target's output in each step."
    return (
        f"Of {n_steps:,} steps the drawing shows {MOST_COLUMNS} stretches of time: from the least to the largest "
        "published estimate in each."
    )


def _explain_band(release: Release, band: list[float] | list[None]) -> str:
    widths = [x for x in band if x is not None]
    if not widths and release.model_check.agrees is False:
        return (
            "What was published contradicts the model that predicts an error, and none is estimated: there is no band."
        )
    if not widths:
        return "No error is predicted of this mechanism, as only simulation tells it: there is no band."
    low, high = (f"{x:.3g}" for x in (min(widths), max(widths)))
    size = f"±{low}" if low == high else f"±{low} to ±{high}, by group,"
    estimated = release.model_check.band is not None
    what, condition = ("estimated", "if") if estimated else ("predicted", "if the model holds and")
    between = release.released is not None and not release.released.all()  # estimates err more between sums of blocks
    average = ", on the average over time" if estimated or between else ""
    return (
        f"The pale band is {size} about it, {BAND:.3g} times the {what} error: {condition} errors are nearly normal, "
        f"the true output lies in it in 95 % of the steps{average}."
    )


def _explain_panels(n_groups: int) -> list[str]:
    cut = [f"The first {MOST_PANELS} of {n_groups:,} groups are drawn."] if n_groups > MOST_PANELS else []
    return [*(["Each group has a scale of its own."] if n_groups > 1 else []), *cut]


# --- errors ---------------------------------------------------------------------------------------


def tabulate_errors(release: Release) -> list[Html]:
    """Tabulate the errors that are predicted and estimated, and beside them that of publishing the mean alone."""
    error, explained, check = (
        release.predicted_rmse_if_model_holds,
        release.explained_if_model_holds,
        release.model_check,
    )
    rows = [] if error is None else [(_name_prediction(check), f"{error:.4g}", format_share(explained))]
    if check.estimated_rmse is not None:
        rows.append(("estimated from what was published", _format_estimated(check), "–"))
    if release.adapted is not None and release.adapted.estimated_rmse is not None:
        rows.append((_name_adapted(release.adapted), f"{release.adapted.estimated_rmse:.4g}", "–"))
    if not rows:
        return []
    said = [_MEANING]
    constant = release.constant_rmse_if_model_holds
    if constant is not None and error is not None and explained is not None and check.agrees is not False:
        rows.append(("constant: publish the mean alone, at no cost", f"{constant:.4g}", format_share(0.0)))
        said = [*([_LITTLE.format(constant, error)] if explained < _HALF else []), *said]
    return [html.table(("", "RMSE", "explained"), rows, (False, True, True)), paragraphs("\n\n".join(said))]


def _name_prediction(check: ModelCheck) -> str:
    doubt = " (what was published contradicts it, see below)" if check.agrees is False else ""
    return f"predicted, if the model holds{doubt}"


def _name_adapted(adapted: AdaptedEstimates) -> str:
    """Name the error of a receiver that was fitted to v, where it was taken."""
    doubt = " (too low by a little, without an interval: it was fitted to the same numbers)" if adapted.taken else ""
    return f"adapted receiver, estimated likewise{doubt}"


def _format_estimated(check: ModelCheck) -> str:
    """Write the error that v tells, with its interval."""
    if check.mse_interval is None:
        return f"{check.estimated_rmse:.4g}"
    low, high = map(math.sqrt, check.mse_interval)
    return f"{check.estimated_rmse:.4g} ({low:.4g} … {high:.4g})"


def format_share(x: float | None) -> str:
    """Write a share in percent, rounded down: 100 % is an estimate without error."""
    return "–" if x is None else f"{math.floor(1000 * x) / 10:.1f}\u00a0%"


def judge_model(check: ModelCheck) -> list[Html]:
    """Say whether what was published agrees with the model, and what it tells of the error."""
    return [paragraphs(text) for text in (check.verdict_text(), check.error_text()) if text]
