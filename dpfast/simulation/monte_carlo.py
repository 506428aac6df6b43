"""Monte Carlo estimates of the error of mechanisms, with intervals."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from dpfast._kernels import simulation as kernels
from dpfast._support import html, validation
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import Toeplitz
from dpfast.mechanisms.checks import AnyMechanism
from dpfast.mechanisms.constant import NAME, Constant
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.signals.arma import Model, check_model
from dpfast.signals.output_variance import explained, output_variance
from dpfast.simulation import mixed_study
from dpfast.simulation.intervals import ENOUGH, ErrorSizes, difference_interval, is_rare, n_events, rmse_interval

_SETTLED = 1e-3  # amplitude of a start-up transient when errors begin to count: 1e-6 of the MSE
_SINGLE_ERROR = 1e-3  # relative, of an MSE in float32
_PILOT_STREAMS, _PILOT_SAMPLES = 32, 4000


@dataclass(frozen=True, eq=False)
class Result:
    """The simulated error of one mechanism.

    Attributes
    ----------
    name : str
    predicted_rmse : float or None
        Of what was simulated, on its model: settled, or from the first step on.
    stream_mse : array, (n_streams,)
        Mean squared error of each stream: independent, identically distributed.
    confidence : float
    variance : float or None
        Of the true output, under the model of what was simulated; None where it is not known.
    sizes : ErrorSizes or None
        What decisions make of the error of a stream; None for a mechanism without decisions.
    """

    name: str
    predicted_rmse: float | None
    stream_mse: Array
    confidence: float
    variance: float | None = None
    sizes: ErrorSizes | None = None

    @property
    def n_streams(self) -> int:
        """Independent streams behind the interval."""
        return len(self.stream_mse)

    @property
    def mse(self) -> float:
        """Mean squared error."""
        return float(self.stream_mse.mean())

    @property
    def rmse(self) -> float:
        """Root of the mean squared error."""
        return math.sqrt(self.mse)

    @property
    def interval(self) -> tuple[float, float]:
        """Confidence interval (low, high) of the RMSE, from the spread of the streams: Student's t, or wider if skewed.

        Where errors are rare, a bound that holds whatever they are.
        """
        return rmse_interval(self.stream_mse, self.confidence, self.sizes)

    @property
    def error_events(self) -> int | None:
        """Streams with a wrong decision, by the size of their errors; None for a mechanism without decisions."""
        return None if self.sizes is None else n_events(self.stream_mse, self.sizes)

    @property
    def is_rare(self) -> bool:
        """Whether errors are too rare for the spread of the streams to tell: fewer than 16 with one, and not all."""
        return is_rare(self.stream_mse, self.sizes)

    @property
    def drawn_interval(self) -> tuple[float, float]:
        """As pictures show it: none (NaN) where it is a bound for rare errors, far above them."""
        return (math.nan, math.nan) if self.is_rare else self.interval

    @property
    def explained(self) -> float | None:
        """1 - simulated MSE/variance of the true output, the latter under the model: 0 for the mean, below 0 if worse.

        None where that variance is not known.
        """
        return explained(self.mse, self.variance)

    def _shown(self) -> tuple[str, ...]:
        """Name, predicted and simulated RMSE, interval, what is explained."""
        predicted = "-" if self.predicted_rmse is None else f"{self.predicted_rmse:.5g}"
        part = "-" if self.explained is None else f"{self.explained:.3f}"
        low, high = self.interval
        return self.name, predicted, f"{self.rmse:.5g}", f"{low:.5g} … {high:.5g}", part

    def _repr_html_(self) -> str:
        return html.notebook(_table([self], [self._shown()]))


class Comparison(NamedTuple):
    """Paired comparison of two mechanisms on the same inputs and the same unit noise.

    Attributes
    ----------
    mse_difference : float
        MSE of the first minus MSE of the second.
    interval : tuple of float
        Confidence interval (low, high) of the difference.
    rmse_ratio : float
        RMSE of the first over that of the second.
    """

    mse_difference: float
    interval: tuple[float, float]
    rmse_ratio: float

    @property
    def decided(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.interval[0] > 0 or self.interval[1] < 0

    def _repr_html_(self) -> str:
        low, high = self.interval
        shown = {
            "difference of the MSE": f"{self.mse_difference:.5g}",
            "interval": f"{low:.5g} … {high:.5g}",
            "ratio of the RMSE": f"{self.rmse_ratio:.5g}",
            "decided": "yes" if self.decided else "no",
        }
        return html.notebook(html.facts(shown, caption="Comparison"))


def paired(
    first: Array,
    second: Array,
    confidence: float,
    sizes: tuple[ErrorSizes | None, ErrorSizes | None] = (None, None),
) -> Comparison:
    """Comparison of two mechanisms by their mean squared errors on the same streams."""
    interval = difference_interval(first, second, 1 - confidence, sizes)
    return Comparison(float((first - second).mean()), interval, rmse_ratio(first, second))


def rmse_ratio(first: Array, second: Array) -> float:
    """RMSE of the first over that of the second; 1 where neither errs."""
    if not second.any():
        return math.inf if first.any() else 1.0
    return math.sqrt(first.mean() / second.mean())


def told_of_rare(results: Iterable[Result]) -> str:
    """What has to be said of intervals that are bounds, in sentences; nothing where there are none."""
    return " ".join(
        f"{x.name}: {x.error_events} of {x.n_streams} streams have an error event, fewer than {ENOUGH}: too few for an "
        "interval from their spread. What is given is a bound that holds however large the errors are."
        for x in results
        if x.is_rare
    )


@dataclass(frozen=True, eq=False)
class Study:
    """Results by name, in the order of the mechanisms; printable, iterable.

    Attributes
    ----------
    results : tuple of Result
    n_samples, burn_in, seed : int
        Counted samples of each stream, samples dropped before them, and the seed.
    confidence : float
    """

    results: tuple[Result, ...]
    n_samples: int
    burn_in: int
    seed: int
    confidence: float

    def __getitem__(self, name: str) -> Result:
        for result in self.results:
            if result.name == name:
                return result
        raise KeyError(f"no mechanism {name!r} in this study, only {[x.name for x in self.results]}")

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def compare(self, first: str, second: str) -> Comparison:
        """Paired comparison of two mechanisms by name."""
        a, b = self[first], self[second]
        return paired(a.stream_mse, b.stream_mse, self.confidence, (a.sizes, b.sizes))

    def constants(self) -> dict[str, float]:
        """RMSE of publishing the mean, "constant", as the model predicts it: nothing has to be simulated for it.

        Where there are several targets, a figure for each, named after its first mechanism; none where the constant is
        among the mechanisms, or no variance is known.
        """
        if any(x.name == NAME for x in self.results):
            return {}
        first: dict[float, str] = {}
        for result in self.results:
            if result.variance is not None:
                first.setdefault(result.variance, result.name)
        several = len(first) > 1
        return {f"{NAME} for {name}" if several else NAME: math.sqrt(x) for x, name in first.items()}

    def to_pandas(self) -> Any:
        """A pandas DataFrame with a row for each mechanism, and for the constant, of which nothing is simulated."""
        pandas = validation.optional("pandas", "pandas")
        constants = [
            {"mechanism": name, "predicted_rmse": x, "n_streams": 0, "explained": 0.0}
            for name, x in self.constants().items()
        ]
        return pandas.DataFrame([*map(_row, self.results), *constants]).set_index("mechanism")

    def __str__(self) -> str:
        rows = [_columns(self.confidence), *self._rows()]
        name, interval = (max(len(x[i]) for x in rows) for i in (0, 3))
        lines = [f"{x[0]:<{name}}  {x[1]:>14}  {x[2]:>14}  {x[3]:<{interval}}  {x[4]:>9}" for x in rows]
        return "\n".join([*lines, self._size(), *filter(None, [told_of_rare(self)])])

    def _rows(self) -> list[tuple[str, ...]]:
        """As they are shown, the constant last."""
        constants = [(name, f"{x:.5g}", "-", "-", f"{0:.3f}") for name, x in self.constants().items()]
        return [*(x._shown() for x in self.results), *constants]

    __repr__ = __str__

    def _repr_html_(self) -> str:
        told = filter(None, [self._size(), told_of_rare(self)])
        return html.notebook(_table(self.results, self._rows()), *map(html.paragraphs, told))

    def _size(self) -> str:
        return f"{self.results[0].n_streams} streams of {self.n_samples} samples after {self.burn_in}, seed {self.seed}"


def _columns(confidence: float) -> tuple[str, ...]:
    return "mechanism", "predicted RMSE", "simulated RMSE", f"{100 * confidence:g}% interval", "explained"


def _table(results: Sequence[Result], rows: Sequence[tuple[str, ...]]) -> html.Html:
    """With a picture of the intervals, all on one axis; a ring is what was predicted."""
    found = [html.Interval(low, x.rmse, high, x.predicted_rmse) for x in results for low, high in [x.drawn_interval]]
    found += [html.Interval(math.nan, math.nan, math.nan)] * (len(rows) - len(found))
    right, columns = (False, True, True, True, True), _columns(results[0].confidence)
    return html.table(columns, rows, right, drawn=html.intervals(found))


def interval_by(rare: bool) -> str:
    """What an interval comes from, in tables."""
    return "rare errors" if rare else "spread"


def _row(x: Result) -> dict[str, Any]:
    low, high = x.interval
    return {
        "mechanism": x.name,
        "predicted_rmse": math.nan if x.predicted_rmse is None else x.predicted_rmse,
        "rmse": x.rmse,
        "low": low,
        "high": high,
        "mse": x.mse,
        "n_streams": x.n_streams,
        "explained": math.nan if x.explained is None else x.explained,
        "error_events": x.error_events,
        "interval_by": interval_by(x.is_rare),
    }


def monte_carlo(
    mechanisms: AnyMechanism | Constant | Iterable[AnyMechanism | Constant],
    model: Model,
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

    A MatrixMechanism is made for so many steps from a start: all mechanisms of its study start at step 0 with it.

    Parameters
    ----------
    mechanisms : Mechanism, MatrixMechanism or Constant, or iterable of them
        With different names; those over a horizon of one horizon.
    model : Model
        What the streams are drawn from; it may differ from the model of a design.
    n_streams : int
        At least 2: the interval comes from the spread of their errors (inside a stream errors are correlated).
    n_samples : int
        Counted samples of each stream; with matrix mechanisms their horizon.
    seed : int or numpy.random.Generator
        Stream i depends on (seed, i) alone, whatever the threads.
    burn_in : int, optional
        Samples before errors count. By default the slowest pole of target, prefilter and receiver has decayed to 1e-3:
        filters start from zero state and err less at first. With matrix mechanisms it is 0. Where it is 0 the predicted
        error is that of the first n_samples steps.
    confidence : float
        Of the intervals, strictly between 0 and 1.
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
        Intervals are Student's t over the streams, wider where their errors are skewed (:mod:`dpfast.simulation.intervals`). Where
        a mechanism decides between levels, and fewer than 16 streams (and not all) have a wrong decision, their spread
        tells nothing of the error: the interval is a bound then, which holds whatever the errors are, and the study
        says so.

    Raises
    ------
    ValueError
        For arguments out of range, no mechanism, or two of one name; for n_samples or a burn_in that are not those of a
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
    """
    items = _checked(mechanisms)
    check_model(model)
    n_streams = validation.integer("n_streams", n_streams, 2)
    n_samples = validation.integer("n_samples", n_samples, 1)
    seed = validation.seed(seed)
    confidence = validation.number("confidence", confidence, above=0, below=1)
    burn_in = None if burn_in is None else validation.integer("burn_in", burn_in, 0)
    check_window([(repr(x.name), n) for x in items if (n := _horizon(x)) is not None], n_samples, burn_in)
    burn_in = default_burn_in(items) if burn_in is None else burn_in
    n_threads, precision = validation.n_threads(n_threads), validation.precision(dtype)
    study = mixed_study.Study(model.compiled(), tuple(x.link() for x in items), burn_in, n_samples, precision)
    if precision == np.float32:
        for mechanism in items:
            if isinstance(mechanism, Mechanism):
                check_single(mechanism.name, _single_error(mechanism, model))  # type: ignore[arg-type]
    errors = _simulate(study, n_streams, seed, n_threads, progress)
    inputs = mixed_study.input_range(study.source)
    results, n_first = [], n_samples if burn_in == 0 else None
    for mechanism, link, row in zip(items, study.links, errors.T, strict=True):
        predicted = predicted_mse(mechanism, model, n_first)
        root = None if predicted is None else math.sqrt(predicted)
        variance = output_variance(mechanism.target, model, n_first)
        sizes = mixed_study.error_sizes(link, inputs, n_samples)
        results.append(Result(mechanism.name, root, validation.frozen(row.copy()), confidence, variance, sizes))
    return Study(tuple(results), n_samples, burn_in, seed, confidence)


def _checked(mechanisms: Any) -> tuple[AnyMechanism | Constant, ...]:
    """Mechanisms, at least one, of different names."""
    several = isinstance(mechanisms, Iterable) and not isinstance(mechanisms, AnyMechanism | Constant)
    items = tuple(mechanisms) if several else (mechanisms,)
    if not all(isinstance(x, AnyMechanism | Constant) for x in items):
        raise validation.fail("mechanisms", "a Mechanism, a MatrixMechanism or a sequence of them", mechanisms)
    names = [x.name for x in items]
    if not names:
        raise ValueError("mechanisms must not be empty")
    twice = sorted({x for x in names if names.count(x) > 1})
    if twice:
        raise ValueError(f"mechanisms must have different names, got {twice} more than once: give them name=")
    return items


def check_window(horizons: Iterable[tuple[str, int]], n_samples: int, burn_in: int | None) -> None:
    """Refuse samples that are not those of a horizon, by the name of what has it."""
    for name, horizon in horizons:
        if horizon != n_samples:
            raise ValueError(
                f"n_samples must be the horizon of {name}, {horizon}, got {n_samples}: a matrix mechanism is made for "
                "that many steps; give that, or design it for another horizon"
            )
        if burn_in:
            raise ValueError(
                f"burn_in must be 0 with {name}, got {burn_in}: a matrix mechanism starts at step 0; leave it out"
            )


def _horizon(mechanism: AnyMechanism | Constant) -> int | None:
    target = mechanism.target
    return target.horizon if isinstance(target, Toeplitz) else None


def default_burn_in(mechanisms: Sequence[AnyMechanism | Constant]) -> int:
    """Samples until all mechanisms have settled; none with one over a horizon, whose first step counts."""
    if any(_horizon(x) is not None for x in mechanisms):
        return 0
    return max(settling_time(x) for x in mechanisms)


def settling_time(mechanism: AnyMechanism | Constant) -> int:
    """Samples until the slowest pole of target, prefilter and receiver has decayed; 0 over a horizon."""
    if isinstance(mechanism, Mechanism):
        filters = (mechanism.target, mechanism.prefilter, *mechanism.receiver.filters())
    else:
        filters = (mechanism.target,) if isinstance(mechanism.target, Filter) else ()
    return max((max(len(f.factors[0]), f.settling_time(_SETTLED)) for f in filters), default=0)


def predicted_mse(mechanism: AnyMechanism | Constant, model: Model, n_first: int | None) -> float | None:
    """Of the first so many steps, from zero state; None: settled. None where only simulation tells."""
    if n_first is None or isinstance(mechanism, MatrixMechanism):
        return mechanism.predict(model)
    steps = mechanism.step_mse(n_first, model)
    return None if steps is None else float(steps.mean())


def check_single(name: str, error: float) -> None:
    """Refuse float32 where it changes an error, which is a difference of outputs that may be much larger."""
    if not abs(error) <= _SINGLE_ERROR:
        raise ValueError(
            f"dtype must be float64 here: in float32 the MSE of {name!r} would be off by {error:.1g} of its "
            f"size, more than {_SINGLE_ERROR:g}"
        )


@functools.lru_cache(maxsize=256)
def _single_error(mechanism: Mechanism, model: Any) -> float:
    return single_error(model.compiled(), mechanism.link(), default_burn_in([mechanism]))


def single_error(source: kernels.Source, link: kernels.Link, burn_in: int) -> float:
    """Relative change of an MSE by float32, measured on a few streams.

    Their median, as a decision that flips changes one stream by chance.
    """
    single, double = (
        kernels.squared_errors(kernels.Study(source, (link,), burn_in, _PILOT_SAMPLES, dtype), _PILOT_STREAMS, 1, 1)
        for dtype in (np.float32, np.float64)
    )
    return float(np.median(single / double - 1))


def _simulate(study: mixed_study.Study, n_streams: int, seed: int, n_threads: int, progress: bool) -> Array:
    """Mean squared errors (streams, mechanisms)."""
    if not progress:
        return study.squared_errors(n_streams, seed, n_threads)
    tqdm = validation.optional("tqdm", "progress").tqdm
    with tqdm(total=n_streams * study.length, unit="sample", unit_scale=True, desc="simulating") as bar:
        return study.squared_errors(n_streams, seed, n_threads, bar.update)
