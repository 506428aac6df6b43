"""What the comparison of v with the model found, in words and numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from dpfast._support import html_fragments as html
from dpfast._support.errors import ModelWarning, warn
from dpfast._support.validation import Array
from dpfast.releases.model_check.error_from_v import ErrorFromV
from dpfast.releases.model_check.whiteness_tests import PowerBand, Whiteness
from dpfast.signals.channel_models import ChannelModels
from dpfast.signals.model import Model

LEVEL = 1e-3
BAND = 1.959964  # standard deviations that 95 % of normal errors are within
_FIRST_LOOK = 64  # steps
_NO_MODEL = "The design has no model, so there is nothing for what was published to agree with."
_SAFE = "The guarantee does not depend on the model; the error does."
_TOO_FEW = "Too little was published for a comparison with the model."
_TOO_EARLY = f"A stream is compared with its model after {_FIRST_LOOK} steps, and after twice as many again and again."


@dataclass(frozen=True, eq=False)
class ModelCheck:
    """Read what the published v tells of the model of a release, and of its error; print it for a summary.

    Attributes
    ----------
    agrees : bool or None
        Whether the mean and the spectrum of v are those that the model predicts, and of several streams how far they
        depend on one another; None where the design has no model, or the stream is too young.
    findings : tuple of str
        What disagrees, in words.
    level : float
        Chance, at most, that v of an input of the model is found to disagree, also of a rare level in a short release.
        Of several streams together it is that of all tests of all channels.
    p_values : dict of str to float
        The p-values of the mean, the variance of the signal and the spectrum; v disagrees where one is below a third of
        `level`. Of several streams there is that of their dependence, too, each for all channels, and a quarter counts.
        Of inputs or noise that are not normal those that would be below it are found by simulation, or, of many values,
        ten times as large as by the normal law.
    statistics : dict of str to float
        The numbers behind them: by how much the mean of u is above that of the model and the standard deviation of
        that, and the ratio of the signal's power to that of the model, to first order.
    steps : int
        How many steps of every stream were compared.
    estimated_mse : float or None
        Mean squared error of the estimates, estimated from v: the part of the noise is known, that of the signal
        follows from the power of v. None where `reason` says why.
    mse_interval : (float, float) or None
        95 % interval of it: asymptotic, as if v were normal. It takes the spectrum behind `hidden_mse` for the true
        one, and misses the truth where that is wrong.
    noise_mse : float or None
        The part of `estimated_mse` that the noise makes.
    hidden_mse : float or None
        The part that v does not show, because the prefilter lets so little of it through: there a spectrum stands in,
        that of the model where v agrees with it and a fitted one otherwise.
    band : array, (streams,), or None
        Half-width about each estimate of a stream that 95 % of normal errors are within: 1.96 times the estimated root
        mean square error of that stream. Where errors change with time it holds on the average over the steps.
    reason : str
        Why there is no estimate, or none is needed; empty otherwise.
    contradicted_after : int or None
        After how many steps of every stream v contradicted the model first: of a stream the look that found it, of a
        batch all of them. None where it does not.

    Notes
    -----
    *Privacy.* All of it is computed from v and the design, which are public: nothing is spent.
    """

    agrees: bool | None
    findings: tuple[str, ...]
    level: float
    p_values: dict[str, float]
    statistics: dict[str, float]
    steps: int
    estimated_mse: float | None
    mse_interval: tuple[float, float] | None
    noise_mse: float | None
    hidden_mse: float | None
    band: Array | None
    reason: str
    contradicted_after: int | None = None

    @property
    def estimated_rmse(self) -> float | None:
        """Return the root of `estimated_mse`."""
        return None if self.estimated_mse is None else math.sqrt(self.estimated_mse)

    def content(self) -> dict[str, Any]:
        """Return all of it as JSON holds it."""
        interval = None if self.mse_interval is None else [math.sqrt(x) for x in self.mse_interval]
        return {
            "agrees": self.agrees,
            "findings": list(self.findings),
            "level": self.level,
            "p_values": self.p_values,
            "statistics": self.statistics,
            "steps": self.steps,
            "contradicted_after": self.contradicted_after,
            "estimated_rmse": self.estimated_rmse,
            "estimated_rmse_interval": interval,
            "noise_rmse": None if self.noise_mse is None else math.sqrt(self.noise_mse),
            "hidden_share": self._hidden_share,
            "band": None if self.band is None else np.asarray(self.band).tolist(),
            "reason": self.reason,
        }

    @property
    def _hidden_share(self) -> float | None:
        """Return the part of the estimated error that v does not show."""
        if self.estimated_mse is None or self.hidden_mse is None:
            return None
        return self.hidden_mse / self.estimated_mse if self.estimated_mse else 0.0

    def __str__(self) -> str:
        return " ".join(x for x in (self.verdict_text(), self.error_text()) if x)

    def verdict_text(self) -> str:
        """Say whether v agrees with the model."""
        if self.agrees is None:
            return ""
        if self.agrees:
            return f"What was published agrees with the model (test of level {self.level:g})."
        found = "; ".join(self.findings)
        said = f"What was published contradicts the model (test of level {self.level:g}): {found}. {_SAFE}"
        after = self.contradicted_after
        if after is None or after >= self.steps:
            return said
        return (
            f"{said} That was found after {after} of {self.steps} steps: rows of a file of estimates that were written "
            "before state a predicted error, which does not hold either."
        )

    def error_text(self) -> str:
        """Say what the error is, as v tells it."""
        if self.estimated_mse is None or self.mse_interval is None:
            return self.reason
        low, high = map(math.sqrt, self.mse_interval)
        interval = f"95 % interval {low:.4g} to {high:.4g}"
        text = f"RMSE estimated from what was published: {self.estimated_rmse:.4g} ({interval})."
        share = self._hidden_share or 0.0
        if share >= 0.01:
            whose = "the model's" if self.agrees else "a fitted"
            text += f" {share:.0%} of its square cannot be seen in what was published and rests on {whose} spectrum, "
            text += "whose errors the interval leaves out."
        return " ".join(x for x in (text, self.reason) if x)

    def __repr__(self) -> str:
        verdict = {None: "no model", True: "agrees", False: "disagrees"}[self.agrees]
        error = "-" if self.estimated_rmse is None else f"{self.estimated_rmse:.6g}"
        return f"<ModelCheck: {verdict}, estimated RMSE {error}>"

    def _repr_html_(self) -> str:
        return html.notebook(html.paragraphs(str(self)))


# --- how it is found ------------------------------------------------------------------------------


class Judgement(NamedTuple):
    """Hold what a test of one v found: `agrees`, `findings`, `p_values` and `statistics` of a :class:`ModelCheck`."""

    agrees: bool | None
    findings: tuple[str, ...]
    p_values: dict[str, float]
    statistics: dict[str, float]


NOTHING_TO_TEST = Judgement(None, (), {}, {})


class Evidence(Protocol):
    """Hold what was published, with what a mechanism knows of it: each kind of mechanism has one."""

    @property
    def model(self) -> Model | ChannelModels | None:
        """Return the model of the design, or those of several streams."""

    @property
    def steps(self) -> int:
        """Count the steps of each stream."""

    def until(self, steps: int) -> Self:
        """Return the first steps alone."""

    def judge(self, level: float) -> Judgement:
        """Test whether v agrees with the model, with this chance of a false alarm at most."""

    def estimate_error(self, *, contradicted: bool) -> ErrorFromV | str:
        """Estimate the error, by a fitted spectrum where the model is contradicted; or say why there is none."""


class FirstPruned(NamedTuple):
    """Hold what a stream knows whose first steps are not kept: there is nothing to compare."""

    model: Model | ChannelModels | None
    steps: int

    def until(self, steps: int) -> FirstPruned:
        """Return the first steps alone."""
        return self._replace(steps=steps)

    def judge(self, level: float) -> Judgement:
        """Return that nothing was tested."""
        return NOTHING_TO_TEST

    def estimate_error(self, *, contradicted: bool) -> str:
        """Say why no error is estimated."""
        return "What was published first is not kept: nothing is compared with the model, and no error is estimated."


def check_whole(evidence: Evidence, level: float = LEVEL) -> ModelCheck:
    """Compare a whole release with the model, once."""
    return _conclude(evidence, evidence.judge(level), level, _TOO_FEW, evidence.steps)


def check_growing(evidence: Evidence, level: float = LEVEL) -> ModelCheck:
    """Compare a stream with the model at 64, 128, 256, … steps, by one test for its whole life.

    The k-th look has the level / (k (k + 1)), and these sum up to the level, however long the stream goes on. What one
    look found stays found. The error is estimated from all steps.
    """
    judgement, steps = NOTHING_TO_TEST, 0
    looks = look_steps(evidence.steps)
    for k, steps in enumerate(looks, 1):
        judgement = evidence.until(steps).judge(level / (k * (k + 1)))
        if judgement.agrees is False:
            break
    return _conclude(evidence, judgement, level, _TOO_FEW if looks else _TOO_EARLY, steps)


def warn_of_contradiction(check: ModelCheck, *, adapted: bool = False) -> None:
    """Warn where v contradicts the model, and say what to do."""
    if check.agrees is False:
        advice = (
            ""
            if adapted or check.estimated_mse is None
            else "; adapt=True gives estimates that are fitted to what was published, at no cost of privacy"
        )
        warn(f"{check} predicted_rmse_if_model_holds does not hold for this release{advice}", ModelWarning)


def look_steps(steps: int) -> list[int]:
    """Return after how many steps a stream that has so many was looked at."""
    return [_FIRST_LOOK << k for k in range((steps // _FIRST_LOOK).bit_length())]


def _conclude(evidence: Evidence, judgement: Judgement, level: float, untested: str, looked: int) -> ModelCheck:
    """Estimate the error, and put all together; it was judged after so many steps."""
    agrees, findings, p_values, statistics = judgement
    error = evidence.estimate_error(contradicted=agrees is False)
    known = agrees, findings, level, p_values, statistics, evidence.steps
    said = agrees is not None or isinstance(evidence, FirstPruned)
    first = looked if agrees is False else None
    why = "" if said else untested if evidence.model is not None else _NO_MODEL
    if isinstance(error, str):
        return ModelCheck(*known, None, None, None, None, None, f"{why} {error}".strip(), first)
    half = BAND * error.standard_error
    interval = max(error.mse - half, error.noise), error.mse + half
    band = BAND * np.sqrt(error.of_streams)
    return ModelCheck(*known, error.mse, interval, error.noise, error.hidden, band, why, first)


def judge_whiteness(found: Whiteness, model_mean: float, level: float, spacing: float = 1.0) -> Judgement:
    """Say in words what has a chance below a third of the level; values of v are so many steps apart."""
    p_values = {"mean": found.p_mean, "variance": found.p_variance, "spectrum": found.p_spectrum}
    power = (
        "what is seen of the true values varies with about "
        f"{max(found.signal_ratio, 0):.2g} times the variance that the model predicts"
    )
    spectrum = say_spectrum(found.bands, found.line, spacing)
    texts = {"mean": _mean_text(found, model_mean), "variance": power, "spectrum": spectrum}
    findings = tuple(texts[name] for name, p in p_values.items() if p < level / len(p_values))
    statistics = {"signal power over that of the model": found.signal_ratio}
    if found.mean_error is not None:
        statistics |= {"mean above the model's": found.mean_error, "its standard deviation": found.mean_deviation}
    return Judgement(not findings, findings, p_values, statistics)


def _mean_text(found: Whiteness, model_mean: float) -> str:
    """Say what the mean is, with a deviation that lets slow changes be larger than the model says."""
    wider = math.sqrt(max(1.0, found.bands[-1].ratio)) if found.bands else 1.0
    deviation = found.mean_deviation * wider
    if found.mean_error is None or abs(found.mean_error) < 3 * deviation:
        return f"the means of the streams differ from the model's {model_mean:.4g}, or change in time"
    mean = model_mean + found.mean_error
    return (
        f"the mean of the true values is about {mean:.4g} ± {BAND * deviation:.2g}, and {model_mean:.4g} in the model"
    )


def say_spectrum(bands: Sequence[PowerBand], line: PowerBand | None, spacing: float = 1.0) -> str:
    """Name the octave, or the line, that is the least likely; values of v are so many steps apart."""
    if line is None:
        return ""
    band = min(bands, key=lambda x: x.p_value)
    if line.p_value < len(bands) * band.p_value:
        period = f"{line.longest * spacing:.3g} steps"
        return (
            f"what was published repeats itself with a period of about {period}: a rhythm, such as of a day, that the "
            "model does not have"
        )
    shortest, longest = f"{band.shortest * spacing:.3g}", f"{band.longest * spacing:.3g}"
    periods = shortest if shortest == longest else f"{shortest} to {longest}"
    return (
        f"what was published has {band.ratio:.2g} times the power that the model predicts at periods of {periods} steps"
    )
