"""Pictures of mechanisms: gains, where noise and distortion are in frequency, errors by step, and a sample path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.mechanisms.linear_channel import LinearChannel
from dpfast.reports.matplotlib_helpers import SMALL, label_axes, set_logarithmic
from dpfast.reports.mechanism_styles import GREY, TRUTH
from dpfast.reports.objects.frequency_axis import AxisUnit, choose_frequencies, decibels, limit_decibels
from dpfast.reports.objects.model_plots import SEED

_G, _H, _ESTIMATE, _NOISE, _DISTORTION = "#D55E00", "#0072B2", "#0072B2", "#D55E00", "#0072B2"
_SETTLED = 0.01
_FEW, _MOST = 20, 500  # steps that are shown
_SHOWN = 200  # samples of a path
_RANGE = 1e-6  # of the largest value: what is drawn of errors over frequency
_BEFORE = 5000  # samples, at most, in which filters settle
_STEMS = 60


def kinds_of_mechanism(x: Any) -> dict[str, Callable[..., None]]:
    """Return the pictures that there are of a mechanism."""
    found: dict[str, Callable[..., None]] = {}
    if getattr(x, "magnitudes", None) and x.magnitudes(np.ones(1)) is not None:
        found["gain"] = draw_gains
    channel = getattr(x, "linear_channel", lambda: None)()
    if channel is not None and x.model is not None and getattr(x, "mean_square", None) is None:
        found["errors"] = draw_error_spectra
    if _step_errors(x) is not None:
        found["steps"] = draw_steps
    if x.model is not None:
        found["path"] = draw_sample_path
    return found


def draw_gains(x: Any, ax: Any, period: str | None = None) -> None:
    """Draw |G| for G of unit norm, |H| with the gain that this takes away, and |HG| beside |F|, in dB."""
    clock, omega = AxisUnit.of(period), choose_frequencies(_filters(x))
    found = x.magnitudes(omega)
    curves = {"|F|, the target": (np.abs(x.target.response(omega)), GREY, 4.0, 0.35)}
    curves["|G|, the prefilter, ‖G‖₂ = 1"] = (found.prefilter, _G, 1.3, 1.0)
    if found.receiver is not None:
        curves["|H|, the receiver of that G"] = (found.receiver, _H, 1.3, 1.0)
        curves["|HG|, what reaches the estimate"] = (found.receiver * found.prefilter, TRUTH, 1.0, 1.0)
    for label, (gain, colour, width, alpha) in curves.items():
        line = "--" if label.startswith("|HG|") else "-"
        style = {"color": colour, "linewidth": width, "alpha": alpha, "linestyle": line}
        ax.plot(clock.frequencies(omega), decibels(gain), label=label, **style)
    limit_decibels(ax, [decibels(gain) for gain, *_ in curves.values()])
    clock.label_frequency(ax)
    label_axes(ax, "gains", y="gain (dB)")
    ax.legend(fontsize=SMALL, frameon=False)


def _filters(x: Any) -> list[Filter]:
    """List the filters whose details a frequency axis has to show."""
    model = [] if x.model is None else [x.model.shaping]
    return [x.target, x.prefilter, *x.receiver.filters(), *model]


def draw_error_spectra(x: Any, ax: Any, period: str | None = None) -> None:
    """Draw the parts of the error over frequency, noise σ²|H|² and distortion, and the true output that they hide."""
    channel: LinearChannel = x.linear_channel()
    clock, omega = AxisUnit.of(period), choose_frequencies(_filters(x))
    h, model = channel.receiver.response(omega), x.model
    wanted = channel.target.response(omega) * np.exp(-1j * (channel.receiver.lag or 0) * omega)
    parts = {
        "the true output": (model.psd(omega) * np.abs(wanted) ** 2, GREY, 4.0, 0.35),
        "error: noise": (channel.noise_std**2 * np.abs(h) ** 2, _NOISE, 1.3, 1.0),
        "error: distortion": (
            model.psd(omega) * np.abs(wanted - h * channel.prefilter.response(omega)) ** 2,
            _DISTORTION,
            1.3,
            1.0,
        ),
    }
    top = max(float(y.max()) for y, *_ in parts.values())
    for label, (y, colour, width, alpha) in parts.items():
        if y.max() > _RANGE * top:
            style = {"color": colour, "linewidth": width, "alpha": alpha}
            ax.plot(clock.frequencies(omega), np.maximum(y, _RANGE * top), label=label, **style)
    ax.set_yscale("log")
    low = min(float(line.get_ydata().min()) for line in ax.lines)
    ax.set_ylim(low / 1.5, 1.5 * top)
    set_logarithmic(ax, "y")
    clock.label_frequency(ax)
    label_axes(ax, "where the error is", y="power density")
    ax.legend(fontsize=SMALL, frameon=False)


def _step_errors(x: Any) -> tuple[Array, bool] | None:
    """Return the MSE by step, and whether these are the steps of a cycle; None where only simulation tells."""
    cycle = getattr(x, "phase_mse", None)
    if cycle is not None:
        return np.asarray(cycle), True
    if x.horizon is not None:
        found = x.step_mse()
    else:
        n = int(np.clip(2 * x.settling_time(_SETTLED) + (x.lag or 0), _FEW, _MOST)) if x.predicted_mse else _MOST
        found = x.step_mse(n)
    return None if found is None else (np.asarray(found), False)


def draw_steps(x: Any, ax: Any, period: str | None = None) -> None:
    """Draw the RMSE of each step: from the first on, or of a cycle of blocks."""
    found = _step_errors(x)
    assert found is not None, "there is no such kind otherwise"
    mse, is_cycle = found
    clock, rmse = AxisUnit.of(period), np.sqrt(np.maximum(mse, 0))
    times = clock.times(len(rmse))
    marker = {"marker": "o", "markersize": 2.5} if len(rmse) <= _STEMS else {}
    ax.plot(times, rmse, color=_NOISE, linewidth=1.2, **marker)
    mean = float(np.sqrt(mse.mean())) if is_cycle or x.horizon is not None else x.predicted_rmse
    if mean is not None:
        ax.axhline(mean, color=GREY, linewidth=0.8, linestyle="--")
    ax.set_ylim(0, 1.1 * float(rmse.max()))
    clock.label_time(ax)
    steps = "steps of a cycle, when settled" if is_cycle else "steps from the start"
    label_axes(ax, steps if mean is None else f"{steps}; dashed: overall", y="RMSE")


def draw_sample_path(x: Any, ax: Any, period: str | None = None) -> None:
    """Draw the true output and the estimate on one simulated stream of the model, whenever that was known."""
    clock = AxisUnit.of(period)
    if x.horizon is None:
        before = min(_BEFORE, x.settling_time(_SETTLED))
        u = x.model.sample(1, before + 2 * _SHOWN + (x.lag or 0), seed=SEED)[0]
    else:
        before, u = 0, x.model.sample(1, x.horizon, seed=SEED)[0]
    run = x.over_first(len(u)) if hasattr(x, "over_first") else x
    made = run.simulate(u, seed=SEED)
    estimate = np.asarray(made.estimate)[made.lag :][before : before + _SHOWN]
    truth = np.asarray(x.target.apply(u))[before : before + len(estimate)]
    ax.plot(clock.times(len(truth)), truth, color=TRUTH, linewidth=2.2, alpha=0.75, label="true output")
    ax.plot(clock.times(len(estimate)), estimate, color=_ESTIMATE, linewidth=1.0, label="estimate")
    clock.label_time(ax)
    label_axes(ax, "simulated, not a release")
    ax.legend(fontsize=SMALL, frameon=False, loc="best")
