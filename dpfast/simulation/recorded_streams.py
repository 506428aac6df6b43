"""Mechanisms of several streams on recorded data: how each would have erred there, and which predictions hold."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import thread_count, validation
from dpfast._support.validation import Array
from dpfast.mechanisms.channels_base import ChannelsBase
from dpfast.simulation.evaluation import noise_seed
from dpfast.simulation.monte_carlo import check_mechanisms
from dpfast.simulation.prepared_channels import ExpectedOutputs, check_alike, make_result
from dpfast.simulation.prepared_study import SETTLED_START
from dpfast.simulation.study import Result, Study

HOLDS = 0.1  # relative difference of an RMSE from the predicted one, up to which a prediction holds
UNPROTECTED = (
    "The guarantees hold whatever the data are. The figures here were computed from the data, unprotected: they are "
    "not for release."
)


@dataclass(frozen=True, eq=False)
class Evaluation(Study):
    """Read how mechanisms of several streams err on recorded data, and which of their predictions hold there.

    Made by :func:`evaluate`. It is a study whose inputs are the recorded ones: rows, comparisons, pandas and pictures
    are those of a :class:`Study`. Intervals are over draws of the noise alone, as the data are what they are; of other
    data they say nothing. The constant is the best in hindsight: it publishes the mean that each output had.

    Attributes
    ----------
    results : tuple of Result
        Their streams are the draws of the noise.
    n_samples, burn_in, seed : int
        Counted steps of each recording, steps before them, and the seed.
    confidence : float
    n_recordings : int
        The recordings, over all of which each error is a mean.
    """

    n_recordings: int

    @property
    def verdicts(self) -> tuple[str, ...]:
        """Sentences that say what holds: whether who was predicted to err least does, and which predictions of each.

        One holds where the RMSE on the data is within a tenth of it.
        """
        return (*_say_order(self.results), *map(_say_what_holds, self.results))

    def _notes(self) -> list[str]:
        return [*super()._notes(), *self.verdicts, UNPROTECTED]

    def _size(self) -> str:
        n, k = self.results[0].n_streams, self.n_recordings
        recordings = f"{k} recording{'s' * (k != 1)}"
        size = f"{self.n_samples} samples after {self.burn_in}"
        return f"{n} draws of the noise on {recordings} of {size}, seed {self.seed}"


def evaluate(
    mechanisms: ChannelsBase | Iterable[ChannelsBase],
    u: ArrayLike,
    *,
    seed: Any,
    draws: int = 20,
    burn_in: int | None = None,
    confidence: float = 0.95,
    n_threads: int | None = None,
) -> Evaluation:
    r"""Run mechanisms of several streams on recorded data that you may look at, and see how each would have erred.

    The error of output i is the mean of :math:`(\hat y_{i,t+D} - y_{i,t})^2` over time and recordings, for y = F u and
    the lag D of the mechanism. All mechanisms are measured over the same steps, with the same unit noise.

    Parameters
    ----------
    mechanisms : ChannelsMechanism or BlockChannelsMechanism, or iterable of them
        With different names, all of the same inputs; such as ``[best, *best.alternatives]``.
    u : array_like, (..., m, time)
        What was recorded of the m streams, once or several times: finite numbers. Filters begin at rest.
    seed : int or numpy.random.Generator
        The noise of each draw depends on it alone.
    draws : int
        At least 2: draws of the noise for all recordings, over which the intervals are.
    burn_in : int, optional
        Steps of each recording before errors count. By default the slowest pole of target, prefilter and receiver has
        decayed to 1e-3.
    confidence : float
        The confidence of the intervals, strictly between 0 and 1.
    n_threads : int, optional
        At most so many, the caller's included; they do not change the result. By default as many as the environment
        variable ``DPFAST_NUM_THREADS`` says, or else one for every processor that the process may use.

    Returns
    -------
    Evaluation
        For each mechanism the error of all outputs together and of each, beside what its design predicted and the
        spread of the true outputs; and in words which predictions hold.

    Raises
    ------
    ValueError
        For arguments out of range, mechanisms of one stream, two of one name or of other inputs, and for recordings
        that are no longer than what passes before errors count.

    Notes
    -----
    *Privacy.* None: the errors are of the data themselves, and a choice that is made by them depends on the data.
    Recordings must be such that you may look at, and publish figures of.

    Examples
    --------
    >>> import dpfast as dp
    >>> counts = dp.VectorARMA([[[0.5, 0], [0, 0.8]]], mean=[5, 3]).sample(1, 2000, seed=1)
    >>> privacy = dp.Privacy(1, 1e-6, adjacency="one_input")
    >>> found = dp.evaluate(dp.input_perturbation(dp.total(2) * dp.Filter([0.1], [1, -0.9]), privacy), counts, seed=1)
    >>> found.verdicts
    ('input perturbation: the prediction holds within 10 %.',)
    """
    items = _check_of_several(check_mechanisms(mechanisms))
    x = items[0].target.checked(u)
    recordings = x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:])
    if len(recordings) == 0:
        raise ValueError(f"u must have at least one recording, got the shape {x.shape}")
    seed, confidence = validation.seed(seed), validation.number("confidence", confidence, above=0, below=1)
    draws, n_threads = validation.integer("draws", draws, 2), thread_count.n_threads(n_threads)
    window = _find_window(items, x.shape[-1], burn_in)
    seeds = [noise_seed(seed, i) for i in range(draws)]
    results = tuple(_measure(mechanism, recordings, window, seeds, confidence, n_threads) for mechanism in items)
    return Evaluation(results, len(window), window.start, seed, confidence, len(recordings))


def _check_of_several(items: tuple[Any, ...]) -> tuple[ChannelsBase, ...]:
    one = [x.name for x in items if not isinstance(x, ChannelsBase)]
    if one:
        raise ValueError(
            f"mechanisms must be of several streams here, got {one} of one stream: evaluate these by the command "
            "dpfast evaluate on a log, or design them for FilterMatrix([[target]])"
        )
    return check_alike(items)


def _find_window(items: tuple[ChannelsBase, ...], n_steps: int, burn_in: int | None) -> range:
    """Return the steps of the true outputs that count: all have settled, and every estimate of them is there."""
    settled = max(x.settling_time(SETTLED_START) for x in items)
    start = settled if burn_in is None else validation.integer("burn_in", burn_in, 0)
    stop = n_steps - max(x.lag for x in items)
    if start >= stop:
        raise ValueError(
            f"u must have more than {start + n_steps - stop} steps, {start} before errors count and {n_steps - stop} "
            f"that estimates are late, got {n_steps}: record longer, or give a smaller burn_in"
        )
    return range(start, stop)


def _measure(
    mechanism: ChannelsBase, recordings: Array, window: range, seeds: list[int], confidence: float, n_threads: int
) -> Result:
    """Return the error of a mechanism for each draw of the noise, beside what was predicted and how outputs spread."""
    counted = slice(window.start, window.stop)
    late = slice(window.start + mechanism.lag, window.stop + mechanism.lag)
    y = mechanism.target.apply(recordings)[..., counted]
    errors = np.empty((len(y[0]), len(seeds)))
    for i, seed in enumerate(seeds):
        estimate = mechanism.simulate(recordings, seed=seed, n_threads=n_threads).estimate[..., late]
        errors[:, i] = ((estimate - y) ** 2).mean(axis=(0, 2))
    known = ExpectedOutputs(mechanism.output_mse, y.var(axis=(0, 2)), [None] * len(errors))
    return make_result(mechanism.name, errors, known, confidence)


# --- what holds -----------------------------------------------------------------------------------


def _say_order(results: tuple[Result, ...]) -> list[str]:
    """Say whether the mechanism errs least that was predicted to; nothing of one alone."""
    if len(results) < 2:
        return []
    least, expected = min(results, key=lambda x: x.mse), min(results, key=lambda x: x.predicted_rmse or 0.0)
    if least is expected:
        return [f"{least.name} errs least, as predicted."]
    return [f"{expected.name} was predicted to err least, and {least.name} does."]


def _say_what_holds(result: Result) -> str:
    """Say for which outputs the prediction of a mechanism holds, and by how much it is off for others."""
    several = len(result.outputs) > 1
    ratios = {
        "all outputs together" if row is result else row.name.removeprefix(f"{result.name}, "): _ratio(row)
        for row in result.with_outputs
    }
    off = {name: x for name, x in ratios.items() if not abs(x - 1) <= HOLDS}
    within = f"holds within {100 * HOLDS:g} %"
    if not off:
        return f"{result.name}: the prediction {within}{', for all outputs together and for each' * several}."
    more = [f"{name} ({_say_ratio(x)})" if several else _say_ratio(x) for name, x in off.items()]
    kept = [name for name in ratios if name not in off]
    holds = f"{within} for {', '.join(kept)}, and not for " if kept else f"does not hold{': ' if several else ', '}"
    return f"{result.name}: the prediction {holds}{', '.join(more)}."


def _ratio(row: Result) -> float:
    """Return the RMSE on the data over the predicted one; 1 where neither is above zero."""
    predicted = row.predicted_rmse or 0.0
    if predicted == 0:
        return math.inf if row.rmse else 1.0
    return row.rmse / predicted


def _say_ratio(ratio: float) -> str:
    return f"{100 * abs(ratio - 1):.3g} % {'more' if ratio > 1 else 'less'} than predicted"
