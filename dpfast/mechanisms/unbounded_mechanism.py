"""Publish running sums without a horizon: one strategy and one noise for as many steps as may come."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast._support.dataframes import unwrap
from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.filters.endless_sum import EndlessSum
from dpfast.filters.toeplitz import MAX_HORIZON, running_sum
from dpfast.mechanisms.base import GuaranteeTerms, MechanismBase, Option
from dpfast.mechanisms.compiled_matrix_mechanism import GROUP, CompiledMatrixMechanism
from dpfast.mechanisms.horizon_terms import NO_RELEASE_OVER_HORIZON
from dpfast.mechanisms.matrix_mechanism import MatrixMechanism
from dpfast.mechanisms.mechanism import Paths
from dpfast.mechanisms.operators.growing_noise import GrowingReconstruction, GrowingStrategy, squared_rows
from dpfast.privacy.privacy import Privacy, check_privacy
from dpfast.privacy.provenance import Provenance
from dpfast.signals.model import Model

MOST_STEPS = 2**53  # steps are counted in float64
_LONGEST = 2**28  # steps of which an array is made
_ENDLESS = (
    " It has no end: it holds for all that is ever published, however many steps there are, and also where inputs "
    "react to what was published before. Its simulation is for studies; there is no exact release of it."
)


@dataclass(frozen=True, eq=False)
class UnboundedMechanism(MechanismBase):
    r"""Study a mechanism that estimates the running sum of a stream for ever, without a horizon.

    v = C u + n; ŷ = B v; B C the running sum, n white Gaussian: from step 0 on, without a horizon.

    Made by :func:`dpfast.unbounded_sum`, which has the formulas of C and B. The error grows with time, as that of any
    private running sum does; there is no mean over all time, and so no `predicted_mse`: ask :meth:`mse_at` or
    :meth:`step_mse`. It does not depend on the input.

    Attributes
    ----------
    name : str
    target : EndlessSum
        S.
    privacy : Privacy
        The guarantee that is asked for.
    model : None
        None is needed, as the error does not depend on the input.
    options : tuple of (name, value)
        What else the design was given: nothing today.
    declared : tuple of (name, source)
        What a person said of the inputs, by :meth:`with_sources`.

    Notes
    -----
    *Privacy.* Two streams that differ by at most max_events events of a person, each at most max_change, give v with
    (epsilon, delta)-indistinguishable distributions in exact arithmetic, over all time, and so does everything that is
    computed from v. C is lower triangular, so that this holds where inputs react to what was published too.
    :meth:`simulate` is for studies.

    Examples
    --------
    >>> import dpfast as dp
    >>> mechanism = dp.unbounded_sum(dp.Privacy.from_gdp(1, 1e-6))
    >>> [round(mechanism.mse_at(t), 3) for t in (0, 1023, 2**24 - 1)]
    [1.353, 14.218, 52.136]
    """

    name: str
    target: EndlessSum
    privacy: Privacy
    model: None = None
    options: tuple[tuple[str, Option], ...] = ()
    declared: tuple[tuple[str, Provenance], ...] = ()
    horizon: ClassVar[None] = None
    lag: ClassVar[int] = 0
    mean_square: ClassVar[None] = None
    ideal_mse: ClassVar[None] = None
    lower_bound_mse: ClassVar[None] = None
    predicted_mse: ClassVar[None] = None  # there is no mean over all time

    def __post_init__(self) -> None:
        validation.instance("target", self.target, EndlessSum, "an EndlessSum")
        check_privacy(self.privacy)
        validation.instance("model", self.model, type(None), "None")
        super().__post_init__()
        _ = self.privacy.noise_multiplier  # an error here, and not when it is first used, where there is no delta

    @property
    def sensitivity(self) -> float:
        r"""The ℓ₂ sensitivity of the strategy over all time: at most d m, as no column has a norm above 1."""
        return float(self.privacy.max_change * self.privacy.max_events)

    @property
    def noise_std(self) -> float:
        """The standard deviation of a component of n."""
        return self.privacy.noise_multiplier * self.sensitivity

    def settling_time(self, amplitude: float) -> int:
        """Return zero, as it never settles: studies begin at its first step."""
        return 0

    def sizes(self) -> tuple[str, str]:
        """Say how large what makes v is, and what makes the estimate of it."""
        return "31 buffers", "31 buffers and a sum"

    def release_hindrance(self) -> str:
        """Say why the exact path cannot run it, and what to do instead."""
        return NO_RELEASE_OVER_HORIZON

    def guarantee_terms(self) -> GuaranteeTerms:
        """Say what is particular to the guarantee without a horizon; the description asks for it."""
        return GuaranteeTerms("streams of any length", "noise", self.privacy.delta, _ENDLESS)

    def _without_figures(self) -> dict[str, None]:
        """Return nothing, as all figures are computed from the privacy."""
        return {}

    # --- errors -----------------------------------------------------------------------------------

    @property
    def additive_bound_mse(self) -> NoReturn:
        """It is refused, as there is no mean over all time that a bound could be for."""
        raise DesignError(
            f"mechanism must have a mean error for a bound of it, got {self.full_name}, whose error grows with time: "
            "take that of over_first(n)"
        )

    def mse_at(self, t: int) -> float:
        """Return the MSE of the estimate at a step.

        Parameters
        ----------
        t : int
            The step: 0 is the first; at most 2⁵³.
        """
        t = validation.integer("t", t, 0, MOST_STEPS)
        return self.noise_std**2 * float(squared_rows(t, 1)[0])

    def step_mse(self, n: int) -> Array:
        """Return the MSE of each of the first n steps, (n,), to rounding.

        Parameters
        ----------
        n : int
            Steps, 1 to 2²⁸.
        """
        return self.noise_std**2 * squared_rows(0, validation.integer("n", n, 1, _LONGEST))

    def predict(self, model: Model) -> None:
        """Return None, as there is no mean over all time; :meth:`predict_first` has that of the first steps."""

    def predict_first(self, n: int, model: Model) -> float:
        """Return the mean of :meth:`step_mse` over the first n steps, the same on any model."""
        return float(self.step_mse(n).mean())

    # --- simulation -------------------------------------------------------------------------------

    def over_first(self, n: int) -> MatrixMechanism:
        """Return what runs in the first n steps, with the same noise, as a mechanism over that horizon: for studies.

        Parameters
        ----------
        n : int
            Steps: at least as many as the events of a person take, at most 2²².

        Raises
        ------
        ValueError
            For fewer steps than in which a person's events fit, where a mechanism over a horizon would have less noise.
        """
        least = 1 + (self.privacy.max_events - 1) * self.privacy.min_separation
        n = validation.integer("n", n, least, MAX_HORIZON)
        return MatrixMechanism(
            self.name,
            running_sum(n),
            self.privacy,
            GrowingStrategy(n),
            GrowingReconstruction(n),
            options=self.options,
            declared=self.declared,
        )

    def simulate(self, u: ArrayLike, *, seed: Any) -> Paths:
        """Run the mechanism on given inputs, with seeded noise: for studies, never for publication.

        The first steps are the same to the bit, however many come after them. It takes 31 multiplications a step each
        way, and about 40 bytes of memory for each of them and of eight streams at a time.

        Parameters
        ----------
        u : array_like, (..., time), or Series, DataFrame or DataArray
            Finite numbers, of any number of steps. Rows of a pandas DataFrame are times and columns streams; an xarray
            DataArray has a dimension "time". Times must be equally spaced.
        seed : int or numpy.random.Generator
            Stream i (in C order) gets noise that depends on (seed, i) alone.

        Returns
        -------
        Paths
            ``privatized`` and ``estimate``, of the shape of u: what is published, and the sum that is made of it.

        Notes
        -----
        *Privacy.* None: the noise is reproducible and in floating point.
        """
        values, wrap = unwrap("u", u)
        x, seed = self.target.checked(values), validation.seed(seed)
        n = x.shape[-1]
        streams = x.reshape(math.prod(x.shape[:-1]), n)
        v, estimate = np.empty(streams.shape), np.empty(streams.shape)
        compiled = CompiledMatrixMechanism(
            np.ones(n), 0.0, GrowingStrategy(n), "gaussian", self.noise_std, GrowingReconstruction(n)
        )
        for first in range(0, len(streams) if n else 0, GROUP):
            here = slice(first, first + GROUP)
            v[here], estimate[here] = compiled.run(streams[here], seed, first)
        return Paths(v.reshape(x.shape), wrap(estimate.reshape(x.shape)), None, 0)

    def compiled(self) -> NoReturn:
        """Refuse: a study needs to know how many steps it runs."""
        raise ValueError(
            f"mechanism must have a horizon here, got {self.full_name}, which has none: give mechanism.over_first(n), "
            "of which the horizon is the n samples of the study, or take monte_carlo, which does"
        )

    # --- words ------------------------------------------------------------------------------------

    def _facts(self) -> dict[str, str]:
        rmse = ", ".join(f"{math.sqrt(self.mse_at(n - 1)):.6g}" for n in (1, 1000, 10**6, 10**9))
        return {
            "strategy": "without a horizon, 31 buffers",
            "noise": f"gaussian, standard deviation {self.noise_std:.6g}",
            "lag": "0",
            "RMSE": f"{rmse} at step 1, 1e3, 1e6, 1e9",
        }

    def __repr__(self) -> str:
        return f"<UnboundedMechanism {self.name!r}: noise std {self.noise_std:.6g}>"
