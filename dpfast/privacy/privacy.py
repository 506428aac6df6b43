"""Differential privacy of a filtered stream: from (epsilon, delta) to the noise."""

from __future__ import annotations

import functools
import math
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal, Self, get_args

import numpy as np
from scipy import special

from dpfast._support import validation
from dpfast._support.html_fragments import facts, notebook
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.privacy.gaussian import gaussian_epsilon, gaussian_noise_multiplier
from dpfast.privacy.sensitivity import largest_autocorrelations, several_events
from dpfast.privacy.sensitivity_of_matrix import Adjacency, matrix_sensitivity

Calibration = Literal["exact", "paper"]
LARGEST_EPSILON = 1e9
_LARGEST_MU = 4e4  # its epsilon is below that
_MOST_EVENTS = 10**9


@dataclass(frozen=True)
class Privacy:
    r"""Demand (epsilon, delta)-differential privacy at event level.

    Two streams are adjacent when they differ by at most `max_events` events of one person, at times at least
    `min_separation` samples apart, each of size at most `max_change`. Of several streams, the inputs of a
    :class:`FilterMatrix`, `adjacency` says which of them one event reaches.

    Parameters
    ----------
    epsilon : float
        Above 0, below 1e9.
    delta : float
        At least 0, below 1. Zero, the default, is pure ε: no Gaussian noise gives that, and designs with Gaussian noise
        refuse it.
    max_change : float, or sequence of float
        d, the largest change of the input at one time; for several inputs one number for all, or one for each.
    max_events : int
        m, how many events a person contributes, each at a step of its own. Two in one step change the input by 2 d, for
        which the noise of `max_events` = 2 may be too little: see Notes.
    min_separation : int
        b, samples between the events of a person; at least 1, so that no two are in one step.
    calibration : {"exact", "paper"}
        "exact": the analytic Gaussian mechanism (Balle and Wang 2018, Theorem 8), the smallest noise there is.
        "paper": κ = (K + √(K² + 2ε)) / 2ε, K = Q⁻¹(δ) (Le Ny 2013, Theorem 2), for reproduction.
    adjacency : {"one_input", "each_input_same_time", "each_input"}, optional
        For several inputs only, where it has no default, as nobody but the user knows it. "one_input": an event of a
        person is at one of the inputs, as a departure is at one airport. "each_input_same_time": it may be at all of
        them, at the same time, as one step is seen by several sensors at once. "each_input": it may be at all of them,
        at a time of its own at each, as somebody who is seen at one place after the other.

    Raises
    ------
    ValueError
        For arguments out of range, for a `calibration="paper"` with delta ≥ 1/2, where its theorem ends, and for
        several values of max_change without an adjacency.

    Notes
    -----
    *Several events in one step.* With Gaussian noise behind a filter G, events at different steps have the
    :meth:`sensitivity`, which may be less than m d‖G‖₂, and m events in one step have just that. Where they may fall in
    one step, as in the sum of streams of which a person may be in several, take ``max_change`` = m d and
    ``max_events`` = 1: by the triangle inequality that hides m events of size d wherever they fall. Block sums, and
    noise on the integers, hide one event after the other (group privacy), so that ``max_events`` = m is right for
    them, and ``max_change`` = m d, which is for one step alone, is not. A :class:`FilterMatrix` of several inputs takes
    m times the Δ of one event, wherever they are.

    *Privacy.* With G the prefilter and v = G u + n, n white Gaussian of standard deviation ``noise_std(G)``, anything
    computed from v alone is (epsilon, delta)-differentially private (Le Ny 2013, Theorems 1 and 4), also when the
    input depends on earlier outputs. This class computes in floating point; it is a calibration, not a release.

    Examples
    --------
    >>> import numpy as np
    >>> privacy = Privacy(epsilon=np.log(3), delta=0.05)
    >>> round(privacy.noise_multiplier, 4)
    1.2559
    >>> round(Privacy(np.log(3), 0.05, calibration="paper").noise_multiplier, 4)
    1.7563

    Two events of a person, at different steps, and perhaps in one:

    >>> prefilter = Filter([3, 4])
    >>> round(Privacy(1, 1e-6, max_events=2).sensitivity(prefilter), 3)
    8.602
    >>> round(Privacy(1, 1e-6, max_change=2).sensitivity(prefilter), 3)
    10.0
    """

    epsilon: float
    delta: float = 0.0
    _: KW_ONLY
    max_change: float | Any = 1.0  # of several inputs perhaps a tuple
    max_events: int = 1
    min_separation: int = 1
    calibration: Calibration = "exact"
    adjacency: Adjacency | None = None

    def __post_init__(self) -> None:
        check = {
            "epsilon": validation.number("epsilon", self.epsilon, above=0, below=LARGEST_EPSILON),
            "delta": validation.fraction("delta", self.delta),
            "max_change": _check_change(self.max_change),
            "max_events": validation.integer("max_events", self.max_events, 1, _MOST_EVENTS),
            "min_separation": validation.integer("min_separation", self.min_separation, 1),
            "calibration": validation.choice("calibration", self.calibration, ("exact", "paper")),
        }
        for name, value in check.items():
            object.__setattr__(self, name, value)
        if self.calibration == "paper" and self.delta >= 0.5:
            raise ValueError(f"delta must be below 0.5 with calibration='paper', got {self.delta}")
        if self.adjacency is not None:
            validation.choice("adjacency", self.adjacency, get_args(Adjacency))
        elif isinstance(self.max_change, tuple):
            raise _lacks_adjacency(len(self.max_change))

    @classmethod
    def from_zcdp(cls, rho: float, delta: float, *, max_change: float = 1.0) -> Self:
        r"""Demand what a Gaussian mechanism that is `rho`-zCDP guarantees at this delta: κ = 1/√(2ρ).

        Examples
        --------
        >>> round(Privacy.from_zcdp(0.5, 1e-6).zcdp_rho, 6)
        0.5
        """
        rho = validation.number("rho", rho, above=0, below=_LARGEST_MU**2 / 2)
        return cls.from_gdp(math.sqrt(2 * rho), delta, max_change=max_change)

    @classmethod
    def from_gdp(cls, mu: float, delta: float, *, max_change: float = 1.0) -> Self:
        """Demand what a `mu`-GDP Gaussian mechanism (κ = 1/μ) guarantees at this delta.

        Examples
        --------
        >>> round(Privacy.from_gdp(1, 1e-6).epsilon, 3)
        4.887
        """
        mu = validation.number("mu", mu, above=0, below=_LARGEST_MU)
        delta = validation.number("delta", delta, above=0, below=1)
        return cls(gaussian_epsilon(1 / mu, delta), delta, max_change=max_change)

    def _repr_html_(self) -> str:
        names = ONE_STREAM_FIELDS if self.adjacency is None else (*ONE_STREAM_FIELDS, "adjacency")
        given = {name.replace("_", " "): str(getattr(self, name)) for name in names}
        derived = {}
        if self.delta > 0:
            derived = {"noise multiplier": self.noise_multiplier, "zCDP ρ": self.zcdp_rho, "Gaussian DP μ": self.gdp_mu}
        return notebook(facts(given | {name: f"{x:.6g}" for name, x in derived.items()}, caption="Privacy"))

    @functools.cached_property
    def noise_multiplier(self) -> float:
        """κ, the standard deviation of Gaussian noise per unit of ℓ₂ sensitivity.

        Raises
        ------
        ValueError
            Without a delta.
        """
        if self.delta == 0:
            raise ValueError(
                "delta must be above 0 for Gaussian noise, which gives no pure ε: give a delta, or take block_sums, "
                "randomized_response (of two levels) or input_perturbation with noise='geometric' or 'laplace'; over a "
                "horizon other designs take noise='laplace' too"
            )
        if self.calibration == "exact":
            return gaussian_noise_multiplier(self.epsilon, self.delta)
        k = -float(special.ndtri(self.delta))
        return (k + math.sqrt(k * k + 2 * self.epsilon)) / (2 * self.epsilon)

    @property
    def zcdp_rho(self) -> float:
        """ρ of zero-concentrated differential privacy, 1/(2κ²)."""
        return 1 / (2 * self.noise_multiplier**2)

    @property
    def gdp_mu(self) -> float:
        """μ of Gaussian differential privacy, 1/κ."""
        return 1 / self.noise_multiplier

    def sensitivity(self, prefilter: Filter | FilterMatrix) -> float:
        r"""Return the ℓ₂ sensitivity of a prefilter: d‖G‖₂, and for several events a bound that is always sound.

        With r(τ) = Σ g_k g_{k+τ}, Δ² ≤ d² min{m r(0) + 2 Σ_{l<m} (m - l) sup_{τ ≥ lb} |r(τ)|, m² r(0), m ‖G‖_∞²};
        where r is non-negative and non-increasing the first is exact.

        Parameters
        ----------
        prefilter : Filter or FilterMatrix
            From n inputs to any number of outputs, which get white noise of one standard deviation. With
            R_ij(τ) = Σ g_i(t)ᵀ g_j(t+τ) of its columns, the inputs weighted by their d_i, one event changes
            "one_input" by max_i R_ii(0)^½; "each_input_same_time" by the root of max sᵀR(0)s over all signs s, for more
            than 16 inputs by a bound of it; "each_input" by that of Σ R_ii(0) + 2 max Σ_{i<j} s_i s_j R_ij(t_i - t_j),
            also over all times t, for more than three inputs that meet by a bound of it. Several events
            cost their number times that (group privacy).

        Raises
        ------
        ValueError
            For several inputs without an adjacency, and for another number of inputs than max_change has values.

        Examples
        --------
        >>> round(Privacy(1, 1e-6).sensitivity(Filter([3, 4])), 9)
        5.0
        >>> round(Privacy(1, 1e-6, max_events=2).sensitivity(Filter([3, 4])) ** 2, 9)
        74.0
        >>> import dpfast as dp
        >>> [round(dp.Privacy(1, 1e-6, adjacency=x).sensitivity(dp.total(4)), 9) for x in ("one_input", "each_input")]
        [1.0, 4.0]
        """
        if isinstance(prefilter, FilterMatrix):
            return self._matrix_sensitivity(prefilter)
        validation.instance("prefilter", prefilter, Filter, "a Filter or a FilterMatrix")
        check_privacy(self)
        norm = prefilter.h2_norm()
        if self.max_events == 1:
            return float(self.max_change * norm)
        largest, beyond = largest_autocorrelations(prefilter, norm)
        peak = prefilter.hinf_norm() ** 2
        bound = several_events(self.max_events, self.min_separation, largest, beyond, norm * norm, peak)
        return float(self.max_change * math.sqrt(bound))

    def _matrix_sensitivity(self, prefilter: FilterMatrix) -> float:
        changes = self.changes(prefilter.shape[1])
        if self.adjacency is None and prefilter.shape == (1, 1):
            return self.sensitivity(prefilter[0, 0])
        return self.max_events * matrix_sensitivity(prefilter, changes, self.adjacency or "one_input")

    def changes(self, n_inputs: int) -> Array:
        """Return the largest change of each of several inputs.

        Parameters
        ----------
        n_inputs : int
            The number of streams.

        Raises
        ------
        ValueError
            For several inputs without an adjacency, and for another number of inputs than max_change has values.

        Examples
        --------
        >>> Privacy(1, max_change=2, adjacency="one_input").changes(3).tolist()
        [2.0, 2.0, 2.0]
        """
        if self.adjacency is None and n_inputs > 1:
            raise _lacks_adjacency(n_inputs)
        if isinstance(self.max_change, tuple) and len(self.max_change) != n_inputs:
            raise ValueError(
                f"max_change must have a value for each of the {n_inputs} inputs, or be one number for all, got "
                f"{len(self.max_change)} values"
            )
        return np.broadcast_to(np.array(self.max_change, dtype=np.float64), (n_inputs,)).copy()

    def noise_std(self, prefilter: Filter | FilterMatrix) -> float:
        """Return the standard deviation κ · sensitivity of the noise behind a prefilter."""
        return self.noise_multiplier * self.sensitivity(prefilter)


# What a demand for one stream says: all but the adjacency of several. Files, options and tables have these.
ONE_STREAM_FIELDS = tuple(x.name for x in fields(Privacy) if x.name != "adjacency")


def check_privacy(privacy: Privacy) -> None:
    """Refuse what is no privacy of one stream."""
    validation.instance("privacy", privacy, Privacy, "a Privacy")
    if privacy.adjacency is not None:
        raise ValueError(
            f"privacy must have no adjacency where there is one stream, got {privacy.adjacency!r}: leave it out; "
            "adjacency says which of several inputs one person reaches, and is for a FilterMatrix"
        )


def _check_change(value: Any) -> float | tuple[float, ...]:
    """Return the largest change: a number, and for several inputs a tuple of them."""
    if not validation.is_several(value):
        return validation.number("max_change", value, above=validation.SMALLEST, below=validation.LARGEST)
    every = tuple(
        validation.number(f"max_change[{i}]", x, above=validation.SMALLEST, below=validation.LARGEST)
        for i, x in enumerate(value)
    )
    if len(every) < 2:
        raise validation.fail("max_change", "a number above 0, or a number for each of several inputs", value)
    return every


def _lacks_adjacency(n_inputs: int) -> ValueError:
    return ValueError(
        f"adjacency must be said for {n_inputs} inputs: 'one_input' where one event of a person is at one of them, "
        "'each_input_same_time' where it may be at all of them at the same time, 'each_input' where it may be at all "
        "of them at any times; it has no default"
    )
