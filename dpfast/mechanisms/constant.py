"""The baseline of every table, the constant: what publishes the mean of the true output, and nothing of the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpfast._kernels import compiled_mechanisms, compiled_receivers
from dpfast._support import html_fragments as html
from dpfast._support import plotting, validation
from dpfast._support.dataframes import unwrap
from dpfast._support.first_steps import SETTLED, distinct_steps, mean_of_first
from dpfast._support.plotting import Drawn
from dpfast._support.validation import Array
from dpfast.filters.filter import A_FILTER, Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.toeplitz import MAX_HORIZON, Toeplitz
from dpfast.mechanisms.compiled_matrix_mechanism import CompiledMatrixMechanism
from dpfast.mechanisms.mechanism import Paths
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.privacy.provenance import FITTED
from dpfast.signals.model import Model, check_model
from dpfast.signals.output_variance import output_variance, step_variances

NAME = "constant"


@dataclass(frozen=True, eq=False)
class Constant(Drawn):
    """Publish the mean of the true output, whatever the data are. Made by :func:`constant`.

    ŷ_t = E y_t under the model: no prefilter, no noise, nothing of u.

    It is simulated and predicted as mechanisms are, and is the row *constant* of every table of errors.

    Attributes
    ----------
    name : str
    target : Filter or Toeplitz
    model : Model
        Its mean is all that is used of it; its spectrum tells the error.
    """

    name: str
    target: Filter | Toeplitz
    model: Model
    sees_data: ClassVar[bool] = False

    def __post_init__(self) -> None:
        validation.instance("name", self.name, str, "text")
        if isinstance(self.target, FilterMatrix):
            raise ValueError(
                f"target must be of one stream here, got {self.target!r}: studies of several streams have the constant "
                "as a row, for each output and for all; so has the choice of best"
            )
        if not isinstance(self.target, (Filter, Toeplitz)):
            raise validation.fail("target", f"{A_FILTER}, or a Toeplitz", self.target)
        check_model(self.model)

    @property
    def lag(self) -> int:
        """0, as it waits for nothing."""
        return 0

    @property
    def horizon(self) -> int | None:
        """The steps that the target has; None without an end."""
        return self.target.horizon

    def settling_time(self, amplitude: float) -> int:
        """Count the samples until the target has decayed to an amplitude; none over a horizon."""
        filter = self.target.as_filter()
        return 0 if filter is None else max(len(filter.factors[0]), filter.settling_time(amplitude))

    @property
    def predicted_mse(self) -> float:
        """The variance of the true output, settled; over a horizon its mean over the steps."""
        return output_variance(self.target, self.model)

    @property
    def predicted_rmse(self) -> float:
        """The standard deviation of the true output."""
        return math.sqrt(self.predicted_mse)

    @property
    def worst_step_mse(self) -> float:
        """The largest MSE of a step: settled all are `predicted_mse`; over a horizon the largest of its steps."""
        return self.predicted_mse if self.horizon is None else float(self.step_mse().max())

    @property
    def explained(self) -> float:
        """The share of the variance of the true output that it explains: 0."""
        return 0.0

    def predict(self, model: Model) -> float:
        """Return the MSE on another model: the variance of the output there, and the square of the mean's error."""
        check_model(model)
        filter = self.target.as_filter()
        if filter is None:
            return float(self.step_mse(model=model).mean())
        bias = (model.mean - self.model.mean) * float(filter.response(0.0).real)
        return output_variance(filter, model) + bias**2

    def step_mse(self, n: int | None = None, model: Model | None = None) -> Array:
        """Return the MSE E|ŷ_t - y_t|² of each of the first n steps, where the target starts at rest.

        Parameters
        ----------
        n : int, optional
            Steps; over a horizon all of them by default.
        model : Model, optional
            Of the input; by default its own.
        """
        n, model = self._steps(n), self.model if model is None else model
        check_model(model)
        bias = (model.mean - self.model.mean) * self._sums(n)
        return step_variances(self.target, model, n) + bias**2

    def over_first(self, n: int) -> Constant:
        """Return what a study of n steps from the start runs: itself."""
        return self

    def predict_first(self, n: int, model: Model) -> float:
        """Return the mean of :meth:`step_mse` over the first n steps, which a study of these is compared with."""
        settled = n if self.horizon is not None else self.settling_time(SETTLED)
        return mean_of_first(self.step_mse(distinct_steps(n, settled), model), n)

    def control_mse(self, model: Model, burn_in: int, n: int) -> None:
        """Return None, as its simulation needs no control."""

    def expected(self, n: int | None = None) -> Array:
        """Return what it publishes, (n,): the mean of the true output at each step from the start.

        Parameters
        ----------
        n : int, optional
            Steps; over a horizon all of them by default.
        """
        return self.model.mean * self._sums(self._steps(n))

    def simulate(self, u: ArrayLike, *, seed: Any) -> Paths:
        """Run on given inputs, as a mechanism.

        Parameters
        ----------
        u : array_like, (..., time), or Series, DataFrame or DataArray
            As for a mechanism; nothing of it but its shape and its labels is used.
        seed : int or numpy.random.Generator
            As for a mechanism; there is no noise that it could change.

        Returns
        -------
        Paths
            ``privatized`` is zero.
        """
        values, wrap = unwrap("u", u)
        x = self.target.checked(values)
        validation.seed(seed)
        estimate = np.broadcast_to(self.model.mean * self._sums(x.shape[-1]), x.shape).copy()
        return Paths(wrap(np.zeros(x.shape)), wrap(estimate), None, 0)

    def compiled(self) -> compiled_mechanisms.CompiledMechanism | CompiledMatrixMechanism:
        """Return the compiled form, which studies run."""
        mean, filter = self.model.mean, self.target.as_filter()
        if filter is None:
            coefficients = self.target.impulse(self.horizon or 0)
            nothing = Convolution(np.zeros(len(coefficients)))
            return CompiledMatrixMechanism(coefficients, mean, nothing, "gaussian", 0.0, nothing)
        zero = Filter([0.0]).factors
        return compiled_mechanisms.CompiledMechanism(
            mean, zero, 0.0, compiled_receivers.CompiledLinearReceiver(zero, filter.factors, mean, 0)
        )

    def _steps(self, n: int | None) -> int:
        return validation.integer("n", self.horizon if n is None else n, 1, self.horizon or MAX_HORIZON)

    def _sums(self, n: int) -> Array:
        """Return what the target makes of a constant input of 1."""
        return np.cumsum(self.target.impulse(n))

    def summary(self) -> str:
        """Describe the constant in a few lines for people."""
        return "\n".join([self.name, *(f"  {key:<15} {value}" for key, value in self._facts().items())])

    def _repr_html_(self) -> str:
        return html.notebook(html.facts(self._facts(), caption=self.name), plotting.small_picture(self))

    def _facts(self) -> dict[str, str]:
        found = {"privacy": "nothing of the data is published", "predicted RMSE": f"{self.predicted_rmse:.6g}"}
        if self.model.source == FITTED:
            found["privacy"] = "none: the mean was fitted to private data"
        return found

    def __repr__(self) -> str:
        return f"<Constant {self.name!r}: predicted RMSE {self.predicted_rmse:.6g}>"


def constant(target: Filter | Toeplitz, model: Model, *, name: str = NAME) -> Constant:
    """Publish the mean of the true output, whatever the data are: what every mechanism has to be better than.

    Its MSE is the variance <P_u |F|²> of the true output, which is what `explained` of other mechanisms is relative to.

    Parameters
    ----------
    target : Filter or Toeplitz
        F, or A.
    model : Model
        Mean and spectrum of u.
    name : str
        What tables and pictures call it.

    Returns
    -------
    Constant
        Goes into :func:`monte_carlo` beside mechanisms.

    Notes
    -----
    *Privacy.* It costs none, if the model does not depend on the data: nothing of u is published, so there is nothing
    to release, and :func:`release` refuses it. A mean that was fitted to private data is not private.

    Examples
    --------
    >>> from dpfast.signals.markov_chain import MarkovChain
    >>> chain = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
    >>> mechanism = constant(Filter([0.5, 0.5]), chain)
    >>> mechanism.expected(3), round(mechanism.predicted_mse, 6)
    (array([0.25, 0.5 , 0.5 ]), 0.1875)
    """
    return Constant(name, target, model)
