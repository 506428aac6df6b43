"""The page of a mechanism: how far each output is off, beside what the mean alone would be, and what is guaranteed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from dpfast._support.html_fragments import Html, items, paragraphs
from dpfast._support.text_table import Table
from dpfast.mechanisms.guarantee_text import channels_guarantee_text, describe, guarantee_text
from dpfast.mechanisms.mechanism_kinds import AnyChannels, AnyMechanism
from dpfast.privacy.provenance import fitted_inputs
from dpfast.releases.contributions import format_declared
from dpfast.releases.rounded_numbers import format_factor, format_rounded_up
from dpfast.reports.html_page import closing_sections, code, page, picture, table
from dpfast.reports.matplotlib_helpers import COLUMN, make_figure
from dpfast.reports.objects.object_plots import draw_kind, kinds_of
from dpfast.reports.release.guarantee_sections import tabulate_odds
from dpfast.signals.channel_outputs import output_variances
from dpfast.signals.output_variance import explained_share, output_variance

TITLE = "A mechanism"
PRIVATE = (
    "This design was fitted to private data: its figures depend on these data, and what is published by it is not "
    "protected as below."
)
TOGETHER = "all outputs together"
_FEW = 6  # outputs that have a sentence each
_DIGITS = 12  # of a share: what is beyond is rounding
_HEIGHT = 2.6  # inches
_ERRORS = (
    "As predicted from the parts that run, on the streams that the design was made for. The constant publishes the "
    "mean of an output and nothing of the data, at no cost of privacy. Explained: 1 − MSE/variance of the true output. "
    "Squared errors add up: the last row is the sum."
)
_UNKNOWN = (
    "As predicted from the parts that run, for any input. What the constant would err by, which publishes the mean of "
    "an output, is not known without a model."
)
_SHOWS = {
    "gain": "How loud each frequency is in what is published, and in the estimate: what is kept, and what is left to "
    "the noise.",
    "outputs": "The predicted error of each output, and that of publishing its mean.",
    "errors": "The parts of the error over frequency, noise and distortion, and the true output.",
    "steps": "The error of each step.",
    "path": "The true output and the estimate on a simulated stream of the model. It is no release.",
}
_GAIN_OF_SEVERAL = (
    "How loud each input is in what is published, over frequency, above the noise: where a line is low, the noise "
    "hides what that input does, and the estimate takes its mean or what the other inputs tell."
)
_REACH = {
    "one_input": "Whoever is in the data is at one of the inputs: all that is published looks nearly the same with "
    "that event and without it, whichever input it was at.",
    "each_input_same_time": "An event may be seen by every input at one time: all that is published looks nearly the "
    "same with it and without it, in all inputs together. Events at several times are not covered.",
    "each_input": "Somebody may be at every input, at a time of its own at each: all that is published looks nearly "
    "the same with all these events and without them.",
}


class _Error(NamedTuple):
    """The predicted error of an output, or of all together, and the variance of what is true, where they are known."""

    name: str
    mse: float | None
    variance: float | None

    @property
    def explained(self) -> float | None:
        found = None if self.mse is None or self.variance is None else explained_share(self.mse, self.variance)
        return None if found is None else round(found, _DIGITS) + 0.0  # an output that is not published explains none


def mechanism_page(x: AnyMechanism | AnyChannels, *, title: str | None = None, description: str | None = None) -> str:
    """Make the page of a mechanism.

    Parameters
    ----------
    x : mechanism
        Of one stream or several.
    title, description : str, optional
    """
    errors = _list_errors(x)
    known = any(error.variance is not None for error in errors)
    sections = {
        "In short": [items([*_say_errors(x, errors), *_say_bound(x), _say_promise(x)])],
        "Errors": [paragraphs(_ERRORS if known else _UNKNOWN), _tabulate_errors(errors)],
        "Pictures": _draw_pictures(x),
        "What one person may change": _explain_person(x),
        "What is guaranteed": [paragraphs(_unwrap(_guarantee(x))), *_explain_odds(x)],
        "In full": [code(describe(x))],
        **closing_sections("dpfast.report(mechanism, 'report.html')\n# the mechanism is that above"),
    }
    banner = PRIVATE if fitted_inputs(x.sources) else ""
    return page(title or f"{TITLE}: {x.name}", sections, lead=description, banner=banner)


# --- errors ---------------------------------------------------------------------------------------


def _list_errors(x: AnyMechanism | AnyChannels) -> list[_Error]:
    """List the error of each output and, where there are several, of all together behind them."""
    if not isinstance(x, AnyChannels):
        variance = None if x.explained is None or x.model is None else output_variance(x.target, x.model)
        return [_Error("the output", x.predicted_mse, variance)]
    mse, variances = x.output_mse, None if x.models is None else output_variances(x.target, x.models)
    told = [None] * len(mse) if variances is None else variances.tolist()
    found = [_Error(f"output {i}", *each) for i, each in enumerate(zip(mse.tolist(), told, strict=True))]
    if len(found) == 1:
        return found
    return [*found, _Error(TOGETHER, float(mse.sum()), None if variances is None else float(variances.sum()))]


def _tabulate_errors(errors: Sequence[_Error]) -> Html:
    rows = tuple((e.name, e.mse, _root(e.mse), _root(e.variance), e.explained) for e in errors)
    content = Table(("", "MSE", "RMSE", "RMSE of the constant", "explained"), rows)
    return table(content, "errors", where="mechanism.output_mse")


def _say_errors(x: AnyMechanism | AnyChannels, errors: Sequence[_Error]) -> list[str]:
    """Say the error of all outputs, and of each beside that of its constant; of many those of the ends."""
    *each, whole = errors
    what, of = (f"{len(each)} outputs", " of all together") if each else (whole.name, "")
    if whole.mse is None:
        return [f"{x.name} estimates {what} {_late(x.lag)}; only simulation (dpfast.monte_carlo) tells its error."]
    rmse = f"a predicted RMSE of {_root(whole.mse):.4g}{of}{_beside(whole)}"
    said = [f"{x.name} estimates {what} {_late(x.lag)}, with {rmse}."]
    if len(each) > _FEW and whole.explained is not None:
        ranked = sorted(each, key=lambda e: -(e.explained or 0.0))
        return [*said, *(f"{how}: {_say_one(e)}" for how, e in (("The best", ranked[0]), ("The worst", ranked[-1])))]
    return [*said, *(_capitalize(_say_one(e)) for e in each[:_FEW])]


def _late(lag: int | None) -> str:
    if lag is None:
        return "once all of the stream is there"
    return f"{lag} sample{'s' * (lag != 1)} late" if lag else "without delay"


def _say_one(error: _Error) -> str:
    return f"{error.name} errs by {_root(error.mse):.4g}{_beside(error)}."


def _beside(error: _Error) -> str:
    """Set an error beside that of the constant; shares of the variance are rounded down."""
    if error.explained is None:
        return ""
    constant = f"; publishing the mean alone errs by {_root(error.variance):.4g}"
    if error.explained <= 0:
        return f"{constant}, which is no more"
    return f"{constant}, so {math.floor(100 * error.explained)} % of the variance is explained"


def _say_bound(x: AnyMechanism | AnyChannels) -> list[str]:
    """Say what was computed that no mechanism of its kind goes below."""
    bound = _root(x.lower_bound_mse)
    if bound is None or x.predicted_rmse is None or bound <= 0:
        return []
    more = 100 * (x.predicted_rmse / bound - 1)
    return [f"That is {max(more, 0.0):.2g} % above a lower bound of {bound:.4g}; for whom it holds is said below."]


# --- pictures -------------------------------------------------------------------------------------


def _draw_pictures(x: AnyMechanism | AnyChannels) -> list[Html]:
    shown = _SHOWS | ({"gain": _GAIN_OF_SEVERAL} if isinstance(x, AnyChannels) else {})
    return [_draw(x, kind, shown[kind]) for kind in kinds_of(x)]


def _draw(x: AnyMechanism | AnyChannels, kind: str, caption: str) -> Html:
    drawn, axes = make_figure(1, 1, height=_HEIGHT, width=1.4 * COLUMN)
    draw_kind(x, kind, axes[0, 0])
    return picture(drawn, caption)


# --- what is guaranteed ---------------------------------------------------------------------------


def _guarantee(x: AnyMechanism | AnyChannels) -> str:
    return channels_guarantee_text(x) if isinstance(x, AnyChannels) else guarantee_text(x)


def _unwrap(text: str) -> str:
    return " ".join(text.split())


def _say_promise(x: AnyMechanism | AnyChannels) -> str:
    epsilon, delta = x.privacy.epsilon, x.privacy.delta
    but = f", but for δ = {format_declared(delta)}" if delta else ", without exception"
    return (
        "What is published multiplies or divides anybody's odds on what one person may change by at most "
        f"{format_factor(epsilon)}: ε = {format_rounded_up(epsilon, 4)}{but}."
    )


def _explain_person(x: AnyMechanism | AnyChannels) -> list[Html]:
    privacy = x.privacy
    if not isinstance(x, AnyChannels):
        n, apart = privacy.max_events, privacy.min_separation
        events = "one event" if n == 1 else f"{n} events at most, at least {apart} sample{'s' * (apart != 1)} apart"
        size = f"{privacy.max_change:g} at most"
        return [paragraphs(f"The input, by {events}. An event changes it at one time, by {size}.")]
    m = x.target.shape[1]
    sizes = [f"input {i} by {size:g} at most" for i, size in enumerate(privacy.changes(m))]
    reach = [] if privacy.adjacency is None else [paragraphs(_REACH[privacy.adjacency])]
    return [paragraphs(_capitalize(f"{x.one_person}.")), items([f"An event changes {each}." for each in sizes]), *reach]


def _explain_odds(x: AnyMechanism | AnyChannels) -> list[Html]:
    return [
        paragraphs(
            "How probable it can be afterwards that somebody is in the data, by how probable it was before"
            f"{', but for δ' if x.privacy.delta else ''}:"
        ),
        tabulate_odds(x.privacy.epsilon),
    ]


def _root(mse: float | None) -> float | None:
    return None if mse is None else math.sqrt(max(mse, 0.0))


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]
