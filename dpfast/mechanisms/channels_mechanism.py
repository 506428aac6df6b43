"""A mechanism of several streams: a matrix of filters, noise of one deviation on its outputs, and what undoes it."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast._support.validation import Array, Complex
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.filters.quadrature import QuadratureGrid, graded_grid
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.mechanism import Paths
from dpfast.privacy.privacy import Privacy

_SAME = 1e-6  # of the largest gain: responses that are the same but for rounding

_ONE_EVENT = {
    None: "one event of a person is at the one input",
    "one_input": "one event of a person is at one of the {} inputs",
    "each_input_same_time": "one event of a person may be at all {} inputs, at the same time",
    "each_input": "one event of a person may be at all {} inputs, at a time of its own at each",
}


@dataclass(frozen=True)
class ChannelsMechanism:
    r"""Use what was designed for several streams together: v = G u + n, ŷ = H v, without distortion.

    G is q × m and H is p × q, with H G = F; n is white Gaussian noise of one standard deviation on all q channels.

    Attributes
    ----------
    name : str
    target : FilterMatrix
        F, p × m, whose outputs should be published.
    privacy : Privacy
        With the adjacency, which says which inputs one person reaches.
    prefilter : FilterMatrix
        G as realised, the only part that sees u.
    receiver : FilterMatrix
        H.
    ideal_mse : float or None
        The formula of the family, for ideal filters of any order.
    lower_bound_mse : float or None
        What no linear mechanism with Gaussian noise that does not distort goes below, whatever its G is.
    options : tuple of (name, value)
        What else the design was given.

    Raises
    ------
    ValueError
        For parts whose channels do not fit.
    DesignError
        Where H G is not F.

    Notes
    -----
    *Privacy.* v, and with it everything that is computed from v, is (epsilon, delta)-differentially private in exact
    arithmetic, for two inputs that are adjacent as `privacy` says. :meth:`simulate` is for studies: its seeded
    floating-point noise keeps no such promise. There is no exact release of several streams together yet.

    Examples
    --------
    >>> import dpfast as dp
    >>> privacy = dp.Privacy.from_gdp(1, 1e-6)
    >>> privacy = dp.Privacy(privacy.epsilon, 1e-6, adjacency="one_input")
    >>> mechanism = dp.input_perturbation(dp.total(3), privacy)
    >>> round(mechanism.predicted_mse, 6)
    3.0
    """

    name: str
    target: FilterMatrix
    privacy: Privacy
    prefilter: FilterMatrix
    receiver: FilterMatrix
    ideal_mse: float | None = None
    lower_bound_mse: float | None = None
    options: tuple[tuple[str, Option], ...] = ()

    def __post_init__(self) -> None:
        (p, m), (q, inputs), (outputs, channels) = (x.shape for x in (self.target, self.prefilter, self.receiver))
        if (inputs, outputs, channels) != (m, p, q):
            raise ValueError(
                f"prefilter and receiver must be q × {m} and {p} × q for a target of shape {self.target.shape}, got "
                f"{self.prefilter.shape} and {self.receiver.shape}"
            )
        wanted, found = self.target.response(self._grid.omega), self._product(self._grid.omega)
        if np.abs(wanted - found).max() > _SAME * np.abs(wanted).max():
            raise DesignError("receiver must give the target behind the prefilter, H G = F, and does not")

    @functools.cached_property
    def _grid(self) -> QuadratureGrid:
        parts = self.target, self.prefilter, self.receiver
        order = max(entry.order for part in parts for row in part.rows for entry in row)
        return graded_grid(np.concatenate([part.poles for part in parts]), degree=order)

    def _product(self, omega: Array) -> Complex:
        return np.asarray(self.receiver.response(omega) @ self.prefilter.response(omega))

    @property
    def lag(self) -> int:
        """The samples by which the estimate is late: none."""
        return 0

    @functools.cached_property
    def noise_std(self) -> float:
        """The standard deviation of the noise on each channel behind the realised prefilter."""
        return self.privacy.noise_std(self.prefilter)

    @functools.cached_property
    def output_mse(self) -> Array:
        """The exact stationary error of each output, (p,), whatever the input is: σ² Σ_q ‖H_pq‖²."""
        power = np.abs(self.receiver.response(self._grid.omega)) ** 2
        return validation.freeze(self.noise_std**2 * np.einsum("w,wpq->p", self._grid.weights, power))

    @property
    def predicted_mse(self) -> float:
        """The error of all outputs together: the sum of `output_mse`."""
        return float(self.output_mse.sum())

    @property
    def ideal_rmse(self) -> float | None:
        """The root of `ideal_mse`."""
        return None if self.ideal_mse is None else math.sqrt(self.ideal_mse)

    @property
    def predicted_rmse(self) -> float:
        """The root of `predicted_mse`."""
        return math.sqrt(self.predicted_mse)

    def simulate(self, u: ArrayLike, *, seed: Any) -> Paths:
        """Run the mechanism on signals, from rest, with noise that a seed fixes.

        Parameters
        ----------
        u : array_like, (..., m, time)
            Inputs.
        seed : int or Generator
            Of the noise; the same seed and shape give the same noise.

        Returns
        -------
        Paths
            `privatized` v (..., q, time) and `estimate` (..., p, time); there are no decisions.

        Raises
        ------
        ValueError
            For inputs of another shape.

        Examples
        --------
        >>> import dpfast as dp
        >>> mechanism = dp.input_perturbation(dp.total(2), dp.Privacy(1, 1e-6, adjacency="one_input"))
        >>> mechanism.simulate([[1, 2, 3], [4, 5, 6]], seed=1).estimate.shape
        (1, 3)
        """
        v = self.prefilter.apply(u)
        v += self.noise_std * np.random.default_rng(validation.seed(seed)).standard_normal(v.shape)
        return Paths(v, self.receiver.apply(v), None, 0)

    def summary(self) -> str:
        """Describe the mechanism in a few lines for people.

        Examples
        --------
        >>> import dpfast as dp
        >>> privacy = dp.Privacy(1, 1e-6, adjacency="one_input")
        >>> print(dp.input_perturbation(dp.total(2), privacy).summary())
        input perturbation
          privacy         epsilon 1, delta 1e-06 (exact calibration, noise multiplier 4.22468)
          one person      one event of a person is at one of the 2 inputs; 1 event at most
          target          1 output of 2 inputs
          prefilter       2 channels, 0 states
          noise           standard deviation 4.22468 on each channel
          error           MSE 35.6958 of all outputs together
          lower bound     MSE 17.8479 without distortion, for any prefilter
        """
        (p, m), (q, _), privacy = self.target.shape, self.prefilter.shape, self.privacy
        facts = {
            "privacy": f"epsilon {privacy.epsilon:.6g}, delta {privacy.delta:.3g} ({privacy.calibration} calibration, "
            f"noise multiplier {privacy.noise_multiplier:.6g})",
            "one person": f"{_ONE_EVENT[privacy.adjacency].format(m)}; {_count(privacy.max_events, 'event')} at most",
            "target": f"{_count(p, 'output')} of {_count(m, 'input')}",
            "prefilter": f"{_count(q, 'channel')}, {_count(self.prefilter.n_states, 'state')}",
            "noise": f"standard deviation {self.noise_std:.6g} on each channel",
            "error": f"MSE {self.predicted_mse:.6g} of all outputs together",
        }
        if self.lower_bound_mse is not None:
            facts["lower bound"] = f"MSE {self.lower_bound_mse:.6g} without distortion, for any prefilter"
        return "\n".join([self.name, *(f"  {key:<15} {value}" for key, value in facts.items())])


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"
