"""Differential privacy of a filtered stream: from (epsilon, delta) to the noise."""

from __future__ import annotations

import functools
import math
from dataclasses import KW_ONLY, dataclass, fields
from typing import Literal, Self

from scipy import special

from dpfast._support import validation
from dpfast._support.html_fragments import facts, notebook
from dpfast.filters.filter import Filter
from dpfast.privacy.gaussian import gaussian_epsilon, gaussian_noise_multiplier
from dpfast.privacy.sensitivity import largest_autocorrelations, several_events

Calibration = Literal["exact", "paper"]
LARGEST_EPSILON = 1e9
_LARGEST_MU = 4e4  # its epsilon is below that
_MOST_EVENTS = 10**9


@dataclass(frozen=True)
class Privacy:
    r"""A demand of (epsilon, delta)-differential privacy at event level.

    Two streams are adjacent when they differ by at most `max_events` events of one person, at times at least
    `min_separation` samples apart, each of size at most `max_change`.

    Parameters
    ----------
    epsilon : float
        Above 0, below 1e9.
    delta : float
        At least 0, below 1. Zero, the default, is pure ε: no Gaussian noise gives that, and designs with Gaussian noise
        refuse it.
    max_change : float
        d, the largest change of the input at one time.
    max_events : int
        m, how many events a person contributes.
    min_separation : int
        b, samples between the events of a person.
    calibration : {"exact", "paper"}
        "exact": the analytic Gaussian mechanism (Balle and Wang 2018, Theorem 8), the smallest noise there is.
        "paper": κ = (K + √(K² + 2ε)) / 2ε, K = Q⁻¹(δ) (Le Ny 2013, Theorem 2), for reproduction.

    Raises
    ------
    ValueError
        For arguments out of range, and for a `calibration="paper"` with delta ≥ 1/2, where its theorem ends.

    Notes
    -----
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
    """

    epsilon: float
    delta: float = 0.0
    _: KW_ONLY
    max_change: float = 1.0
    max_events: int = 1
    min_separation: int = 1
    calibration: Calibration = "exact"

    def __post_init__(self) -> None:
        check = {
            "epsilon": validation.number("epsilon", self.epsilon, above=0, below=LARGEST_EPSILON),
            "delta": validation.fraction("delta", self.delta),
            "max_change": validation.number(
                "max_change", self.max_change, above=validation.SMALLEST, below=validation.LARGEST
            ),
            "max_events": validation.integer("max_events", self.max_events, 1, _MOST_EVENTS),
            "min_separation": validation.integer("min_separation", self.min_separation, 1),
            "calibration": validation.choice("calibration", self.calibration, ("exact", "paper")),
        }
        for name, value in check.items():
            object.__setattr__(self, name, value)
        if self.calibration == "paper" and self.delta >= 0.5:
            raise ValueError(f"delta must be below 0.5 with calibration='paper', got {self.delta}")

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
        given = {x.name.replace("_", " "): str(getattr(self, x.name)) for x in fields(self)}
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

    def sensitivity(self, prefilter: Filter) -> float:
        r"""Return the ℓ₂ sensitivity of a prefilter: d‖G‖₂, and for several events a bound that is always sound.

        With r(τ) = Σ g_k g_{k+τ}, Δ² ≤ d² min{m r(0) + 2 Σ_{l<m} (m - l) sup_{τ ≥ lb} |r(τ)|, m² r(0), m ‖G‖_∞²};
        where r is non-negative and non-increasing the first is exact.

        Examples
        --------
        >>> round(Privacy(1, 1e-6).sensitivity(Filter([3, 4])), 9)
        5.0
        >>> round(Privacy(1, 1e-6, max_events=2).sensitivity(Filter([3, 4])) ** 2, 9)
        74.0
        """
        validation.instance("prefilter", prefilter, Filter, "a Filter")
        norm = prefilter.h2_norm()
        if self.max_events == 1:
            return self.max_change * norm
        largest, beyond = largest_autocorrelations(prefilter, norm)
        peak = prefilter.hinf_norm() ** 2
        bound = several_events(self.max_events, self.min_separation, largest, beyond, norm * norm, peak)
        return self.max_change * math.sqrt(bound)

    def noise_std(self, prefilter: Filter) -> float:
        """Return the standard deviation κ · sensitivity of the noise behind a prefilter."""
        return self.noise_multiplier * self.sensitivity(prefilter)
