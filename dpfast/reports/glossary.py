"""Words of all pages: what a task is, and what the figures mean that all of them show."""

from __future__ import annotations

from collections.abc import Sequence

from dpfast.filters.filter import Filter
from dpfast.privacy.privacy import ONE_STREAM_FIELDS, Privacy
from dpfast.signals.model import Model

FIGURES = {
    "Ideal": "What the formula of the family gives for filters without limits of size. That of decision feedback "
    "assumes decisions without errors, which at strong privacy is far from true.",
    "Predicted": "What the realised filters, the small ones that run, or the matrices, give on a stream of the model: "
    "computed from them, not sampled; where errors count from the first step on, their mean over the steps. There is "
    "none where a receiver makes decisions, or randomised response gets inputs that are not its levels: only "
    "simulation tells that error.",
    "Explained": "1 − MSE/variance of the true output, the latter under the model: 1 is an estimate without error; 0 "
    "is as good as the constant, which publishes the mean of the true output and nothing of the data; less is worse.",
    "Lower bound": "No linear mechanism with Gaussian noise that is as private, and whose estimates come no later, can "
    "err less on this stream. That of zero forcing, and of a factorization without a model, is for mechanisms that do "
    "not distort; what decides, such as decision feedback, is not linear and may err less, and so may other "
    "noise, such as that of block sums.",
}
_FEW = 16  # numbers that are all shown


def explain_interval(mean_over: str, samples: str, skewed: str = "errors") -> str:
    """Explain a simulated RMSE and its interval: what the mean is over, and which samples Student's t is over."""
    return (
        f"Root of the mean squared error over {mean_over}, with a confidence interval, low to high: Student's t over "
        f"{samples}, wider where {skewed} are skewed."
    )


def describe_task(target: Filter, privacy: Privacy, unit: float | None = None) -> dict[str, str]:
    """Describe what is to be published, how privately, and the unit that real inputs are rounded to, if any.

    Examples
    --------
    >>> describe_task(Filter([1], [1, -0.9]), Privacy(1, 1e-6))["target"]
    'b = 1; a = 1, -0.9'
    """
    figures = {x.replace("_", " "): getattr(privacy, x) for x in ONE_STREAM_FIELDS}
    return {
        "target": _write_filter(target),
        **{name: x if isinstance(x, str) else f"{x:g}" for name, x in figures.items()},
        **({} if unit is None else {"unit": f"{unit:g}"}),
    }


def describe_model(model: Model) -> str:
    """Describe a model by its moments, levels and source; its numbers are in the files of mechanisms."""
    parts = [type(model).__name__, f"mean {model.mean:.6g}", f"variance {model.variance:.6g}"]
    parts += [] if model.levels is None else [f"levels {_write_numbers(model.levels.tolist())}"]
    return "; ".join([*parts, f"spectrum shaped by {_write_filter(model.shaping)}", model.source])


def _write_filter(x: Filter) -> str:
    """Write the coefficients of a filter, in powers of 1/z."""
    return f"b = {_write_numbers(x.b.tolist())}; a = {_write_numbers(x.a.tolist())}"


def _write_numbers(values: Sequence[float]) -> str:
    shown = [f"{x:.6g}" for x in values]
    if len(shown) > _FEW:
        shown = [*shown[: _FEW // 2], "…", f"{shown[-1]} ({len(values)} numbers)"]
    return ", ".join(shown)
