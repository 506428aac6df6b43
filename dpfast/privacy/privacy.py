"""Differential privacy of a filtered stream: from (epsilon, delta) to the noise."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpfast._support import validation
from dpfast._support.html import facts, notebook
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter

Calibration = Literal["exact", "paper"]
_SAFE = 1 + 1e-9  # a root is rounded up by this, so that rounding errs on the safe side
LOG_DELTA_MARGIN = 1e-12  # relative, ten times what ln δ may be wrong by
LARGEST_EPSILON = 1e9
_LARGEST_MU = 4e4  # its epsilon is below that
_MOST_EVENTS = 10**9
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_NEGLIGIBLE = 1e-14  # where impulse responses are cut; what is cut is bounded and added


@dataclass(frozen=True)
class Privacy:
    r"""(epsilon, delta)-differential privacy at event level, by Gaussian noise.

    Two streams are adjacent when they differ by at most `max_events` events of one person, at times at least
    `min_separation` samples apart, each of size at most `max_change`.

    Parameters
    ----------
    epsilon : float
        Above 0, below 1e9.
    delta : float
        Strictly between 0 and 1.
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
    >>> privacy = Privacy(epsilon=np.log(3), delta=0.05)
    >>> round(privacy.noise_multiplier, 4)
    1.2559
    >>> round(Privacy(np.log(3), 0.05, calibration="paper").noise_multiplier, 4)
    1.7563
    """

    epsilon: float
    delta: float
    _: KW_ONLY
    max_change: float = 1.0
    max_events: int = 1
    min_separation: int = 1
    calibration: Calibration = "exact"

    def __post_init__(self) -> None:
        check = {
            "epsilon": validation.number("epsilon", self.epsilon, above=0, below=LARGEST_EPSILON),
            "delta": validation.number("delta", self.delta, above=0, below=1),
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
        r"""Guarantee of a Gaussian mechanism that is `rho`-zCDP, at this delta: κ = 1/√(2ρ).

        Examples
        --------
        >>> round(Privacy.from_zcdp(0.5, 1e-6).zcdp_rho, 6)
        0.5
        """
        rho = validation.number("rho", rho, above=0, below=_LARGEST_MU**2 / 2)
        return cls.from_gdp(math.sqrt(2 * rho), delta, max_change=max_change)

    @classmethod
    def from_gdp(cls, mu: float, delta: float, *, max_change: float = 1.0) -> Self:
        """Guarantee of a `mu`-GDP Gaussian mechanism (κ = 1/μ), at this delta.

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
        derived = {"noise multiplier": self.noise_multiplier, "zCDP ρ": self.zcdp_rho, "Gaussian DP μ": self.gdp_mu}
        return notebook(facts(given | {name: f"{x:.6g}" for name, x in derived.items()}, caption="Privacy"))

    @functools.cached_property
    def noise_multiplier(self) -> float:
        """κ, the noise standard deviation per unit of ℓ₂ sensitivity."""
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
        r"""ℓ₂ sensitivity of a prefilter: d‖G‖₂, and for several events a bound that is always sound.

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
        largest, beyond = _largest_autocorrelations(prefilter, norm)
        peak = prefilter.hinf_norm() ** 2
        bound = several_events(self.max_events, self.min_separation, largest, beyond, norm * norm, peak)
        return self.max_change * math.sqrt(bound)

    def noise_std(self, prefilter: Filter) -> float:
        """Standard deviation κ · sensitivity of the noise behind a prefilter."""
        return self.noise_multiplier * self.sensitivity(prefilter)


def several_events(
    max_events: int, min_separation: int, largest: NDArray[Any], beyond: Any, energy: Any, peak: Any
) -> Any:
    """Squared sensitivity to several events of size one, exactly where all that is given are integers.

    Parameters
    ----------
    largest : array
        sup_{τ' ≥ τ} |r(τ')| for τ = 0, 1, ...
    beyond : number
        A bound of it for what comes after those.
    energy, peak : number
        ‖G‖₂² and ‖G‖_∞².
    """
    m = max_events
    separation = min(min_separation, len(largest))
    n_lags = min(m - 1, (len(largest) - 1) // separation)  # those that are not beyond
    lags = np.arange(1, n_lags + 1)
    near = (m - lags).astype(largest.dtype) @ largest[lags * separation] if n_lags else 0
    far = (m - 1 - n_lags) * (m - n_lags) // 2 * beyond  # the sum of m - l over the other lags
    return min(m * energy + 2 * (near + far), m * m * energy, m * peak)


def _largest_autocorrelations(prefilter: Filter, norm: float) -> tuple[Array, float]:
    """sup_{τ' ≥ τ} |r(τ')| for τ = 0, 1, ..., n - 1, and a bound on it for τ ≥ n.

    What the n samples of the impulse response miss is at most ‖g‖·‖g from n on‖ (Cauchy-Schwarz).
    """
    settled = prefilter.settling_time(_NEGLIGIBLE)
    g = prefilter.impulse(2 * settled)
    missed = norm * float(np.linalg.norm(g[settled:]))  # more than what comes after 2 * settled
    size = 1 << (2 * len(g) - 1).bit_length()
    r = np.abs(np.fft.irfft(np.abs(np.fft.rfft(g, size)) ** 2)[: len(g)])
    return np.maximum.accumulate(r[::-1])[::-1] + missed, missed


def gaussian_log_delta(noise_multiplier: float, epsilon: float) -> float:
    """Natural logarithm of the δ of a Gaussian mechanism."""
    mu = 1 / noise_multiplier
    return log_delta_beyond(epsilon * noise_multiplier - mu / 2, mu)


def log_delta_beyond(threshold: float, mu: float) -> float:
    r"""Natural logarithm of the δ of a μ-GDP mechanism whose privacy loss is above ε where X ~ N(0, 1) is above x.

    Here x is the threshold, ε = μ(x + μ/2). δ = Φ(-x) - e^ε Φ(-x - μ) (Balle and Wang 2018, Theorem 8) is, as
    φ(x) = e^ε φ(x + μ), Φ(-x) - φ(x) M(x + μ) = φ(x)·(M(x) - M(x + μ)) with Mills' ratio M(x) = Φ(-x)/φ(x): no
    cancellation of exponentially small terms. The relative error is below 1e-13 for all μ > 0 and ε ≥ 0.
    """
    log_density = -threshold * threshold / 2 - math.log(2 * math.pi) / 2
    if threshold < -1:  # then μ > 2
        log_tail = float(special.log_ndtr(-threshold))
        return log_tail + math.log1p(-math.exp(log_density - log_tail) * _mills(threshold + mu))
    if mu > 1:
        return log_density + math.log(_mills(threshold) - _mills(threshold + mu))
    slopes = _mills_slope(threshold + mu / 2 * (1 + _NODES))
    return log_density + math.log(mu / 2 * float(slopes @ _WEIGHTS))


def _mills(x: Array | float) -> Any:
    """M(x) = Φ(-x)/φ(x)."""
    return math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2))


def _mills_slope(x: Array) -> Array:
    """-M'(x) = 1 - x M(x), by its asymptotic series 1/x² - 3/x⁴ + 15/x⁶ - ... where the difference would cancel."""
    square = 1 / np.maximum(x * x, 400.0)
    series = np.ones_like(x)
    for odd in range(19, 1, -2):
        series = 1 - odd * square * series
    return np.where(x > 20, square * series, 1 - x * _mills(x))


def gaussian_noise_multiplier(epsilon: float, delta: float) -> float:
    """The smallest κ of a Gaussian mechanism that is (epsilon, delta)-DP, rounded up by 1e-9."""
    log_delta = math.log(delta)

    def gap(log_kappa: float) -> float:
        return gaussian_log_delta(math.exp(log_kappa), epsilon) - log_delta

    low = 0.0
    while gap(low) < 0:
        low -= 1
    return math.exp(_root(gap, low)) * _SAFE


def gaussian_epsilon(noise_multiplier: float, delta: float) -> float:
    """The smallest epsilon of a Gaussian mechanism at this delta, rounded up."""
    mu = 1 / noise_multiplier
    epsilon = mu * (threshold_above(math.log(delta), mu) + mu / 2) * _SAFE
    if epsilon <= 0:
        raise ValueError(
            f"delta must be smaller: with noise of {noise_multiplier:g} per unit of sensitivity "
            f"every epsilon above 0 has a delta below {delta:g}"
        )
    return epsilon


def threshold_above(log_delta: float, mu: float) -> float:
    """The smallest x ≥ -μ/2 (ε ≥ 0) at which ln δ of a μ-GDP mechanism is at most `log_delta`, rounded up."""

    def gap(threshold: float) -> float:
        return log_delta_beyond(threshold, mu) * (1 - LOG_DELTA_MARGIN) - log_delta

    low = max(-mu / 2, -10.0)  # a float δ below 1 has x > -9
    return low if gap(low) <= 0 else _root(gap, low) + 1e-12


def _root(gap: Callable[[float], float], low: float) -> float:
    """The root above `low` of a decreasing function, to 1e-14."""
    from scipy import optimize  # late: it takes a fifth as long to import as all of dpfast

    high = low + 1
    while gap(high) > 0:
        high += 1
    return float(optimize.brentq(gap, low, high, xtol=1e-14, rtol=1e-14))
