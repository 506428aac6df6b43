"""Monte Carlo estimates of the error of mechanisms, with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dpfast._kernels.simulation import BuiltStudy
from dpfast._support import thread_count, validation
from dpfast._support.progress import progress_bar
from dpfast._support.validation import Array
from dpfast.mechanisms.channels_base import ChannelsBase
from dpfast.mechanisms.constant import Constant
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.signals.model import Model, check_model
from dpfast.signals.vector_arma import VectorARMA
from dpfast.simulation import mixed_study, prepared_channels, prepared_study
from dpfast.simulation.study import Result, Study

AnySimulated = AnyMechanism | Constant | ChannelsBase


def monte_carlo(
    mechanisms: AnySimulated | Iterable[AnySimulated],
    model: Model | Sequence[Model] | VectorARMA,
    *,
    n_streams: int,
    n_samples: int,
    seed: Any,
    burn_in: int | None = None,
    confidence: float = 0.95,
    dtype: DTypeLike = np.float64,
    n_threads: int | None = None,
    progress: bool = False,
) -> Study:
    r"""Simulate mechanisms on streams of a model and estimate their errors.

    All mechanisms see the same inputs and the same unit noise (common random numbers). The error of a mechanism with
    lag D is that of its estimate at t + D against y_t, for the same y of every mechanism.

    A MatrixMechanism is made for so many steps from a start: all mechanisms of its study start at step 0 with it. So do
    those of the study of an UnboundedMechanism, of which its first n_samples steps are run.

    Mechanisms of several streams (ChannelsMechanism, BlockChannelsMechanism) have a result for all outputs together,
    of the sum of their mean squared errors, and in its `outputs` one for each. All intervals are from the spread over
    independent sets of streams.

    Parameters
    ----------
    mechanisms : Mechanism, MatrixMechanism, Constant or ChannelsMechanism, or iterable of them
        With different names; those over a horizon of one horizon; all of one stream, or all of as many streams.
    model : Model, or for several streams a sequence of Model or a VectorARMA
        What the streams are drawn from; it may differ from the model of a design. For several streams one for each
        input, which are independent, or one of all, which may be correlated.
    n_streams : int
        At least 2: the interval comes from the spread of their errors (inside a stream errors are correlated). Of
        mechanisms of several streams, sets of these.
    n_samples : int
        Counted samples of each stream; with matrix mechanisms their horizon.
    seed : int or numpy.random.Generator
        Stream i depends on (seed, i) alone, whatever the threads.
    burn_in : int, optional
        Samples before errors count. By default the slowest pole of target, prefilter and receiver has decayed to 1e-3:
        filters start from zero state and err less at first. With matrix mechanisms it is 0. Where it is 0 the predicted
        error is that of the first n_samples steps.
    confidence : float
        The confidence of the intervals, strictly between 0 and 1.
    dtype : {numpy.float64, numpy.float32}
        What is computed in. float32 is nearly twice as fast; sums of squares are in float64 even so. Whether it will
        do is measured on a few streams in both: an error is the difference of two outputs, which may be much larger.
        Matrix mechanisms are computed in float64 even so.
    n_threads : int, optional
        At most so many, the caller's included; they do not change the result. By default as many as the environment
        variable ``DPFAST_NUM_THREADS`` says, or else one for every processor that the process may use.
    progress : bool
        Show a bar (tqdm, extra ``progress``).

    Returns
    -------
    Study
        Intervals are Student's t over the streams, wider where their errors are skewed
        (:mod:`dpfast.simulation.intervals`). Where a mechanism decides between levels, and fewer than 16 streams (and
        not all) have a wrong decision, their spread tells nothing of the error: the interval is a bound then, which
        holds whatever the errors are, and the study says so. Of a posterior mean (``receiver="bayes"``), on the model
        of its design, it is the exact error of the linear receiver less the mean squared difference of the two
        estimates, which spreads less: a control variate, which the study names.

    Raises
    ------
    ValueError
        For arguments out of range, no mechanism, or two of one name, mechanisms of several streams beside those of one,
        or models that are not those of their inputs; for n_samples or a burn_in that are not those of a
        matrix mechanism; for float32 where it would change a mean squared
        error by more than 1e-3 of it.

    Examples
    --------
    >>> from dpfast import Filter, MarkovChain, Privacy, zero_forcing
    >>> chain = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> mechanism = zero_forcing(Filter([1], [1, -0.9]), Privacy(epsilon=1, delta=1e-3))
    >>> study = monte_carlo(mechanism, chain, n_streams=64, n_samples=2000, seed=1)
    >>> low, high = study["LZF"].interval
    >>> low < mechanism.predicted_rmse < high
    True

    The total of two streams, and their difference:

    >>> import dpfast as dp
    >>> target = dp.FilterMatrix([[1, 1], [1, -1]]) * dp.Filter([0.1], [1, -0.9])
    >>> both = dp.zero_forcing(target, Privacy(epsilon=1, delta=1e-3, adjacency="one_input"))
    >>> study = monte_carlo(both, [chain, chain], n_streams=64, n_samples=2000, seed=1)
    >>> study["LZF"].output_rmse.round(2), round(study["LZF"].rmse, 2)
    (array([0.53, 0.53]), 0.75)
    """
    items = check_mechanisms(mechanisms)
    n_streams = validation.integer("n_streams", n_streams, 2)
    n_samples = validation.integer("n_samples", n_samples, 1)
    seed = validation.seed(seed)
    confidence = validation.number("confidence", confidence, above=0, below=1)
    burn_in = None if burn_in is None else validation.integer("burn_in", burn_in, 0)
    n_threads, precision = thread_count.n_threads(n_threads), validation.precision(dtype)
    if any(isinstance(x, ChannelsBase) for x in items):
        channels = prepared_channels.prepare_channels(items, model, burn_in, n_samples, precision)
        outputs = channels.results(_simulate(channels.built, n_streams, seed, n_threads, progress), confidence)
        return Study(outputs, n_samples, channels.burn_in, seed, confidence)
    study, expected, _ = prepared_study.prepare(items, _check_one_stream(model), burn_in, n_samples, precision)
    errors = _simulate(study, n_streams, seed, n_threads, progress).T
    differences = iter(errors[len(items) :])
    results: list[Result] = []
    for mechanism, mse, known in zip(items, errors, expected, strict=False):
        controlled = None if known.control is None else validation.freeze(known.control - next(differences))
        found = validation.freeze(mse.copy()), confidence, known.variance, known.sizes, controlled
        results.append(Result(mechanism.name, known.rmse, *found))
    return Study(tuple(results), n_samples, study.burn_in, seed, confidence)


def check_mechanisms(mechanisms: Any) -> tuple[Any, ...]:
    """Refuse what is no mechanism, none at all, and two of one name; return the mechanisms."""
    several = isinstance(mechanisms, Iterable) and not isinstance(mechanisms, AnySimulated)
    items = tuple(mechanisms) if several else (mechanisms,)
    if not all(isinstance(x, AnySimulated) for x in items):
        raise validation.fail("mechanisms", "a Mechanism, a MatrixMechanism or a sequence of them", mechanisms)
    names = [x.name for x in items]
    if not names:
        raise ValueError("mechanisms must be at least one, got none: give a mechanism, or several")
    twice = sorted({x for x in names if names.count(x) > 1})
    if twice:
        raise ValueError(f"mechanisms must have different names, got {twice} more than once: give them name=")
    return items


def _check_one_stream(model: Any) -> Model:
    check_model(model)
    one: Model = model
    return one


def _simulate(
    study: mixed_study.MixedStudy | BuiltStudy, n_streams: int, seed: int, n_threads: int, progress: bool
) -> Array:
    """Simulate the mean squared errors (streams, mechanisms), with a bar if it is to be shown."""
    with progress_bar(progress, n_streams * study.length, "simulating", unit="sample", scaled=True) as advance:
        return study.squared_errors(n_streams, seed, n_threads, advance if progress else None)
