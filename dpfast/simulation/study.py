"""What Monte Carlo simulations found: results, comparisons and studies."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpfast._support import html, validation
from dpfast._support.validation import Array
from dpfast.mechanisms.constant import NAME
from dpfast.signals.output_variance import explained_share
from dpfast.simulation.intervals import ENOUGH, ErrorSizes, difference_interval, is_rare, n_events, rmse_interval

SINGLE_ERROR = 1e-3  # relative, of an MSE in float32


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
        return explained_share(self.mse, self.variance)

    def _cells(self) -> tuple[str, ...]:
        """Name, predicted and simulated RMSE, interval, what is explained."""
        predicted = "-" if self.predicted_rmse is None else f"{self.predicted_rmse:.5g}"
        part = "-" if self.explained is None else f"{self.explained:.3f}"
        low, high = self.interval
        return self.name, predicted, f"{self.rmse:.5g}", f"{low:.5g} … {high:.5g}", part

    def _repr_html_(self) -> str:
        return html.notebook(_table([self], [self._cells()]))


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


def compare_paired(
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


def describe_rare_errors(results: Iterable[Result]) -> str:
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
        return compare_paired(a.stream_mse, b.stream_mse, self.confidence, (a.sizes, b.sizes))

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
        return "\n".join([*lines, self._size(), *filter(None, [describe_rare_errors(self)])])

    def _rows(self) -> list[tuple[str, ...]]:
        """As they are shown, the constant last."""
        constants = [(name, f"{x:.5g}", "-", "-", f"{0:.3f}") for name, x in self.constants().items()]
        return [*(x._cells() for x in self.results), *constants]

    __repr__ = __str__

    def _repr_html_(self) -> str:
        told = filter(None, [self._size(), describe_rare_errors(self)])
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


def interval_basis(rare: bool) -> str:
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
        "interval_by": interval_basis(x.is_rare),
    }
