"""What the comparison of several streams with their models found, in words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpfast._support.validation import Array
from dpfast.releases.model_check.joint_whiteness import JointWhiteness
from dpfast.releases.model_check.pair_coherence import Tie
from dpfast.releases.model_check.verdict import BAND, Judgement, say_spectrum

NO_ERROR = "No error is estimated from what was published where streams are estimated together."
TESTS = ("mean", "variance", "spectrum", "dependence")


class Names(NamedTuple):
    """Hold the names of the channels of v, and of the streams, for words."""

    channels: tuple[str, ...]
    streams: tuple[str, ...]

    @classmethod
    def of(cls, row_inputs: Sequence[Sequence[int]], n_streams: int) -> Names:
        """Name them by the streams that each channel is of, counted from 1 as people do."""
        streams = tuple(f"stream {j + 1}" for j in range(n_streams))
        named = (streams[x[0]] if len(x) == 1 else f"channel {k}" for k, x in enumerate(row_inputs, 1))
        return cls(tuple(named), streams)


def judge_channels(
    found: JointWhiteness, model_means: Array, names: Names, level: float, *, independent: bool
) -> Judgement:
    """Say in words which of the tests have a chance below their part of the level, and where.

    Parameters
    ----------
    found : JointWhiteness
    model_means : array, (m,)
    names : Names
    level : float
    independent : bool
        Whether the streams are independent in the model.
    """
    p_values = dict(zip(TESTS, found.chances.tolist(), strict=False))
    texts = {
        "mean": _mean_text(found, model_means, names),
        "variance": _variance_text(found, names),
        "spectrum": _spectrum_text(found, names),
        "dependence": say_tie(found.ties, names, independent=independent),
    }
    findings = tuple(texts[name] for name, p in p_values.items() if p < level / len(p_values))
    return Judgement(not findings, findings, p_values, _statistics(found, names))


def say_tie(ties: Sequence[Tie], names: Names, *, independent: bool, spacing: float = 1.0) -> str:
    """Say which two channels depend on one another the least likely, and at which lag or periods."""
    if not ties:
        return ""
    tie = min(ties, key=lambda x: (x.p_value, -x.coherence))
    one, other = (names.channels[i] for i in tie.channels)
    longest, shortest = (f"{x * spacing:.3g}" for x in tie.periods)
    periods = shortest if shortest == longest else f"{shortest} to {longest}"
    how = "which are independent in the model" if independent else "beside what the model says of it"
    if tie.lag is not None:
        first, later = (one, other) if tie.lag < 0 else (other, one)
        return (
            f"{one} and {other} depend on one another, {how}: what cannot be foreseen of {later} follows that of "
            f"{first} after {abs(tie.lag) * spacing:.3g} steps, with a correlation of {tie.correlation:.2g}"
        )
    return (
        f"{one} and {other} depend on one another, {how}: at periods of {periods} steps what cannot be foreseen of "
        f"both has a coherence of {tie.coherence:.2g}"
    )


def _mean_text(found: JointWhiteness, model_means: Array, names: Names) -> str:
    """Say of the mean that is the least likely what it is, with a deviation that lets slow changes be larger."""
    apart = np.nan_to_num(np.abs(found.mean_errors) / found.mean_deviations)
    j, slowest = int(np.argmax(apart)), max(x.bands[-1].ratio if x.bands else 1.0 for x in found.powers)
    deviation = float(found.mean_deviations[j]) * max(1.0, slowest) ** 0.5
    if not abs(found.mean_errors[j]) >= 3 * deviation:  # NaN, where v tells the means only together
        return "the means of the streams differ from those of the model, or change in time"
    mean = float(model_means[j] + found.mean_errors[j])
    return (
        f"the mean of the true values of {names.streams[j]} is about {mean:.4g} ± {BAND * deviation:.2g}, and "
        f"{model_means[j]:.4g} in the model"
    )


def _variance_text(found: JointWhiteness, names: Names) -> str:
    """Name the channel whose power is the least likely."""
    k = min(range(len(found.powers)), key=lambda i: found.powers[i].p_variance)
    ratio = max(found.powers[k].signal_ratio, 0)
    return (
        f"what is seen of the true values in {names.channels[k]} varies with about {ratio:.2g} times the variance that "
        "the model predicts"
    )


def _spectrum_text(found: JointWhiteness, names: Names) -> str:
    """Name the channel, and the octave or the line of it, that is the least likely."""
    k = min(range(len(found.powers)), key=lambda i: found.powers[i].p_spectrum)
    return f"of {names.channels[k]}: {say_spectrum(found.powers[k].bands, found.powers[k].line)}"


def _statistics(found: JointWhiteness, names: Names) -> dict[str, float]:
    """Return the numbers behind the findings, by name."""
    powers = zip(names.channels, found.powers, strict=True)
    numbers = {f"signal power over that of the model, {name}": x.signal_ratio for name, x in powers}
    for name, error, deviation in zip(names.streams, found.mean_errors, found.mean_deviations, strict=True):
        if np.isfinite(error):
            numbers |= {
                f"mean above the model's, {name}": float(error),
                f"its standard deviation, {name}": float(deviation),
            }
    return numbers
