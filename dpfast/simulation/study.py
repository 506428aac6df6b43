"""Results of Monte Carlo simulations: of one mechanism, of a comparison of two, and of a whole study."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dpfast._support import html_fragments as html
from dpfast._support import plotting, validation
from dpfast._support.validation import Array
from dpfast._support.wrapped_text import wrap_paragraph
from dpfast.mechanisms.constant import NAME
from dpfast.signals.output_variance import explained_share
from dpfast.simulation.intervals import ENOUGH, ErrorSizes, count_events, difference_interval, is_rare, rmse_interval
from dpfast.simulation.least_error import say_least_error

SINGLE_ERROR = 1e-3  # relative, of an MSE in float32


@dataclass(frozen=True, eq=False)
class Result:
    """Read the simulated error of one mechanism, with its interval and what was predicted.

    Attributes
    ----------
    name : str
    predicted_rmse : float or None
        The predicted RMSE of what was simulated, on its model: settled, or from the first step on.
    stream_mse : array, (n_streams,)
        Mean squared error of each stream: independent, identically distributed.
    confidence : float
    variance : float or None
        The variance of the true output, under the model of what was simulated; None where it is not known.
    sizes : ErrorSizes or None
        The sizes of errors that decisions make in a stream; None for a mechanism without decisions.
    controlled_mse : array, (n_streams,), or None
        For a posterior mean, the exact error of its linear receiver, less the mean squared difference of the two in
        each stream. Its mean is that of `stream_mse`, as a posterior mean is uncorrelated with what is known (a control
        variate), and it spreads less: figures and interval are from it. None without one.
    outputs : tuple of Result
        For a mechanism of several streams, the error of each output, in order; the result itself is of all together,
        the sum of their MSE, and its interval is from that sum in each stream, so that it counts how the errors of
        outputs vary together. Empty for a mechanism of one stream.
    """

    name: str
    predicted_rmse: float | None
    stream_mse: Array
    confidence: float
    variance: float | None = None
    sizes: ErrorSizes | None = None
    controlled_mse: Array | None = None
    outputs: tuple[Result, ...] = ()

    @property
    def output_mse(self) -> Array:
        """The mean squared error of each output, (p,)."""
        return np.array([x.mse for x in self.outputs])

    @property
    def output_rmse(self) -> Array:
        """The root of the mean squared error of each output, (p,)."""
        return np.array([x.rmse for x in self.outputs])

    @property
    def output_intervals(self) -> Array:
        """The confidence intervals (p, 2) of `output_rmse`: of each output by itself."""
        return np.array([x.interval for x in self.outputs]).reshape(-1, 2)

    @property
    def with_outputs(self) -> tuple[Result, ...]:
        """The rows of tables and pictures: the result itself and, where there are several outputs, that of each."""
        return (self, *self.outputs) if len(self.outputs) > 1 else (self,)

    @property
    def values(self) -> Array:
        """The figure of each stream of which the mean is the error: `controlled_mse` where there is one."""
        return self.stream_mse if self.controlled_mse is None else self.controlled_mse

    @property
    def n_streams(self) -> int:
        """The number of independent streams behind the interval."""
        return len(self.stream_mse)

    @property
    def mse(self) -> float:
        """The mean squared error over all streams."""
        return max(0.0, float(self.values.mean()))

    @property
    def rmse(self) -> float:
        """The root of the mean squared error."""
        return math.sqrt(self.mse)

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval (low, high) of the RMSE, from the spread of the streams.

        It is Student's t, or wider where errors are skewed; where they are rare it is a bound that holds whatever
        they are.
        """
        return rmse_interval(self.values, self.confidence, self.sizes)

    @property
    def error_events(self) -> int | None:
        """The number of streams with a wrong decision, by the size of their errors; None without decisions."""
        return None if self.sizes is None else count_events(self.stream_mse, self.sizes)

    @property
    def is_rare(self) -> bool:
        """Tell whether errors are too rare for the spread of the streams: fewer than 16 have one, and not all."""
        return is_rare(self.stream_mse, self.sizes)

    @property
    def drawn_interval(self) -> tuple[float, float]:
        """The interval as pictures show it: none (NaN) where it is a bound for rare errors, far above them."""
        return (math.nan, math.nan) if self.is_rare else self.interval

    @property
    def explained(self) -> float | None:
        """1 - simulated MSE/variance of the true output, under the model: 0 is as good as the mean, below 0 is worse.

        None where that variance is not known.
        """
        return explained_share(self.mse, self.variance)

    def _cells(self) -> tuple[str, ...]:
        """Write name, predicted and simulated RMSE, interval and what is explained, as tables show them."""
        predicted = "-" if self.predicted_rmse is None else f"{self.predicted_rmse:.5g}"
        part = "-" if self.explained is None else f"{self.explained:.3f}"
        low, high = self.interval
        return self.name, predicted, f"{self.rmse:.5g}", f"{low:.5g} … {high:.5g}", part

    def _repr_html_(self) -> str:
        return html.notebook(_write_table(self.with_outputs, [x._cells() for x in self.with_outputs]))


class Comparison(NamedTuple):
    """Tell which of two mechanisms errs less, from the same inputs and the same unit noise.

    Attributes
    ----------
    mse_difference : float
        The MSE of the first minus that of the second.
    interval : tuple of float
        The confidence interval (low, high) of the difference.
    rmse_ratio : float
        The RMSE of the first over that of the second.
    """

    mse_difference: float
    interval: tuple[float, float]
    rmse_ratio: float

    @property
    def decided(self) -> bool:
        """Tell whether the interval leaves out zero, so that it is known which of them errs less."""
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
    """Compare two mechanisms by their mean squared errors on the same streams."""
    interval = difference_interval(first, second, 1 - confidence, sizes)
    return Comparison(float((first - second).mean()), interval, rmse_ratio(first, second))


def compare_results(a: Result, b: Result) -> Comparison:
    """Compare two mechanisms on the same streams; two posterior means by their control variates."""
    both = a.controlled_mse is not None and b.controlled_mse is not None
    values = (a.values, b.values) if both else (a.stream_mse, b.stream_mse)
    return compare_paired(*values, a.confidence, (a.sizes, b.sizes))


def rmse_ratio(first: Array, second: Array) -> float:
    """Return the RMSE of the first over that of the second; 1 where neither errs."""
    above, below = max(0.0, float(first.mean())), max(0.0, float(second.mean()))  # by control variates also below zero
    if below == 0:
        return math.inf if above else 1.0
    return math.sqrt(above / below)


def describe_rare_errors(results: Iterable[Result]) -> str:
    """Say in sentences which intervals are bounds for rare errors; nothing where there are none."""
    return " ".join(
        f"{x.name}: {x.error_events} of {x.n_streams} streams have an error event, fewer than {ENOUGH}: too few for an "
        "interval from their spread. What is given is a bound that holds however large the errors are."
        for x in results
        if x.is_rare
    )


def describe_controls(results: Iterable[Result]) -> str:
    """Say in a sentence which errors are from a control variate; nothing where none is."""
    names = ", ".join(x.name for x in results if x.controlled_mse is not None)
    if not names:
        return ""
    return f"{names}: the exact error of the linear receiver, less the simulated squared difference from it."


@dataclass(frozen=True, eq=False)
class Study:
    """Read the results of a study by name, in the order of the mechanisms; print it, or iterate over it.

    Those of outputs of a mechanism of several streams are found by names as "LZF, output 0" too.

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
        for result in (*self.results, *(x for y in self.results for x in y.outputs)):
            if result.name == name:
                return result
        known = [x.name for x in self.results]
        raise KeyError(f"name must be that of a mechanism of this study, one of {known}, got {name!r}")

    @property
    def rows(self) -> tuple[Result, ...]:
        """The results as tables and pictures show them: each mechanism, and behind it its outputs if several."""
        return tuple(x for result in self.results for x in result.with_outputs)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def compare(self, first: str, second: str) -> Comparison:
        """Compare two mechanisms, by their names, on the same streams.

        Squared errors are compared with squared errors, which vary together; two posterior means by their control
        variates.
        """
        return compare_results(self[first], self[second])

    def constants(self) -> dict[str, float]:
        """Predict the RMSE of publishing the mean, "constant", which need not be simulated.

        Where there are several targets, a figure for each, named after its first mechanism, and where there are several
        outputs, one for each of these too; none where the constant is among the mechanisms, or no variance is known.
        """
        if any(x.name == NAME for x in self.results):
            return {}
        first: dict[tuple[float | None, ...], Result] = {}
        for result in self.results:
            if result.variance is not None:
                first.setdefault(tuple(x.variance for x in result.with_outputs), result)
        found: dict[str, float] = {}
        for result in first.values():
            name = f"{NAME} for {result.name}" if len(first) > 1 else NAME
            for row in result.with_outputs:
                found[name + row.name.removeprefix(result.name)] = math.sqrt(row.variance or 0.0)
        return found

    @property
    def sentence(self) -> str:
        """The findings in words: who errs least, by how much, and the constant; empty for several targets."""
        mechanisms = [x for x in self.results if x.name != NAME]
        constants = [x.rmse for x in self.results if x.name == NAME] or list(self.constants().values())[:1]
        if not mechanisms or len({x.variance for x in mechanisms}) > 1:
            return ""
        return say_least_error(mechanisms, constants[0] if constants else None, compare_results)

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with a row for each mechanism, and for the constant, which is not simulated.

        Behind a mechanism of several outputs is a row for each of these.
        """
        pandas = validation.optional("pandas", "pandas")
        constants = [
            {"mechanism": name, "predicted_rmse": x, "n_streams": 0, "explained": 0.0}
            for name, x in self.constants().items()
        ]
        return pandas.DataFrame([*map(_write_row, self.rows), *constants]).set_index("mechanism")

    def plot(self, kind: str | None = None, *, ax: Any = None) -> Any:
        """Draw the error of each mechanism with its interval, and what was predicted of it.

        Parameters
        ----------
        kind : str, optional
            "rmse"; "distance", in percent from what was predicted. By default "rmse".
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default new axes of pyplot.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            For a kind that there is none of.
        MissingExtraError
            Without matplotlib (extra ``plot``).
        """
        return plotting.draw(self, kind, ax)

    def __str__(self) -> str:
        rows = [_columns(self.confidence), *self._rows()]
        name, interval = (max(len(x[i]) for x in rows) for i in (0, 3))
        lines = [f"{x[0]:<{name}}  {x[1]:>14}  {x[2]:>14}  {x[3]:<{interval}}  {x[4]:>9}" for x in rows]
        said = [wrap_paragraph(self.sentence)] if self.sentence else []
        return "\n".join([*said, *lines, *map(wrap_paragraph, self._notes())])

    def _rows(self) -> list[tuple[str, ...]]:
        """Write the rows as tables show them, the constant last."""
        constants = [(name, f"{x:.5g}", "-", "-", f"{0:.3f}") for name, x in self.constants().items()]
        return [*(x._cells() for x in self.rows), *constants]

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = map(html.paragraphs, self._notes())
        return html.notebook(html.paragraphs(self.sentence), _write_table(self.rows, self._rows()), *notes)

    def _notes(self) -> list[str]:
        """Say how many streams there were, and where figures do not come from the spread of their errors."""
        return [self._size(), *filter(None, [describe_rare_errors(self.rows), describe_controls(self)])]

    def _size(self) -> str:
        return f"{self.results[0].n_streams} streams of {self.n_samples} samples after {self.burn_in}, seed {self.seed}"


def _columns(confidence: float) -> tuple[str, ...]:
    return "mechanism", "predicted RMSE", "simulated RMSE", f"{100 * confidence:g}% interval", "explained"


def _write_table(results: Sequence[Result], rows: Sequence[tuple[str, ...]]) -> html.Html:
    """Write a table with a picture of the intervals, all on one axis; a ring is what was predicted."""
    found = [html.Interval(low, x.rmse, high, x.predicted_rmse) for x in results for low, high in [x.drawn_interval]]
    found += [html.Interval(math.nan, math.nan, math.nan)] * (len(rows) - len(found))
    right, columns = (False, True, True, True, True), _columns(results[0].confidence)
    return html.table(columns, rows, right, drawn=html.intervals(found))


def interval_basis(rare: bool) -> str:
    """Name in a word what an interval comes from, for tables."""
    return "rare errors" if rare else "spread"


def _write_row(x: Result) -> dict[str, Any]:
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
        "interval_by": "control variate" if x.controlled_mse is not None else interval_basis(x.is_rare),
    }
