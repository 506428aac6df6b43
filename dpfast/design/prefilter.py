r"""Optimal prefilters: convex problems in x(ω) = |G(ω)|² / ‖G‖₂².

In closed form (water-filling, on a graded grid); `programs` has the same as convex programs, open to further
constraints. c² is the variance of the noise per unit of ‖G‖₂²: (κ d)² for one event.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpfast._validate import Array
from dpfast.circle import Circle, circle_for
from dpfast.design.contributions import ONE_EVENT, Contributions
from dpfast.filters import Filter
from dpfast.models import Model
from dpfast.privacy import Privacy
from dpfast.quadrature import ON_CIRCLE, Grid, graded_grid
from dpfast.realize import Loss, Objective
from dpfast.roots import polynomial_with
from dpfast.spectra import Spectrum

Complex = NDArray[np.complex128]
_KINK = 1e-3  # distance of a zero from the circle below which it is taken for a kink on it
_PASSES = 3  # solve, insert the cutoffs into the grid, solve again


@dataclass(frozen=True)
class Problem:
    """A target, a signal (None where the design needs none), the noise, and how a person's events count in it.

    The variance of the noise is c²<ψ²|G|²>.
    """

    target: Filter
    model: Model | None
    cost: float  # c²
    contributions: Contributions = ONE_EVENT

    def gain(self, omega: Array) -> Array:
        """|F|."""
        return np.asarray(np.abs(self.target.response(omega)))

    def psd(self, omega: Array) -> Array:
        """P_u."""
        assert self.model is not None
        return self.model.psd(omega)

    def weight(self, omega: Array) -> Array:
        """ψ, one where a person contributes one event."""
        return self.contributions.weight(omega)

    @functools.cached_property
    def log_mean_output(self) -> float:
        """γ_u² γ_F² = exp <ln P_u|F|²>."""
        assert self.model is not None
        return canonical_factor(self.model.shaping)[0] * canonical_factor(self.target)[0]

    @functools.cached_property
    def roots(self) -> Complex:
        """Poles and zeros of the target and of the spectrum."""
        shaping = Filter([1.0]) if self.model is None else self.model.shaping
        return np.concatenate([self.target.poles, self.target.zeros, shaping.poles, shaping.zeros])

    @property
    def degree(self) -> int:
        """Taps in the target and the spectrum, or the longest lag in ψ."""
        taps = self.target.order + (0 if self.model is None else self.model.shaping.order)
        return max(taps, self.contributions.longest)

    @property
    def poles(self) -> Complex:
        """Poles of the target and of the spectrum inside the circle."""
        shaping = Filter([1.0]) if self.model is None else self.model.shaping
        return np.concatenate([self.target.poles, shaping.poles])

    @property
    def details(self) -> Complex:
        """Poles, and zeros not too near to the circle for steps to resolve them, all inside of it."""
        roots = np.concatenate([self.roots, 1 / self.roots[np.abs(self.roots) > 1].conj()])
        return np.concatenate([self.poles, roots[np.abs(roots) < 1 - _KINK]])

    @property
    def slowest(self) -> float:
        """Largest modulus of a pole."""
        return float(np.abs(self.poles).max(initial=0.0))

    def detail(self, cutoffs: tuple[float, ...] = ()) -> complex:
        """The pole, zero (not one on the circle) or cutoff that is nearest to the circle, inside of it."""
        roots = self.roots[self.roots != 0]
        roots = np.where(np.abs(roots) > 1, 1 / roots.conj(), roots)
        ends = [1 - x if x < np.pi / 2 else np.pi - x - 1 for x in cutoffs if min(x, np.pi - x) < 0.5]
        near = np.concatenate([[0.5], roots[np.abs(roots) < 1 - ON_CIRCLE], ends])
        return complex(near[np.argmax(np.abs(near))])

    def grid(self, roots: Any = (), degree: int = 0, breaks: tuple[float, ...] = ()) -> Grid:
        """A grid that resolves the problem, further roots and so many taps."""
        every = np.concatenate([self.roots, np.asarray(roots, dtype=np.complex128)])
        return graded_grid(every, breaks=breaks, degree=max(2 * degree, self.degree))


def noise_cost(privacy: Privacy, prefilter: Filter | None) -> float:
    """c²: variance of the noise per unit of ‖G‖₂². Without a G yet, that of events too far apart to overlap."""
    if prefilter is None:
        return (privacy.noise_multiplier * privacy.max_change) ** 2 * privacy.max_events
    return (privacy.noise_std(prefilter) / prefilter.h2_norm()) ** 2


class WaterFilling(NamedTuple):
    """The optimal x of a problem.

    Attributes
    ----------
    x : callable
        ω → x(ω).
    mse : float
        The value of the criterion.
    cutoffs : tuple of float
        Angles at which x starts or stops being zero.
    level : float
        The water level: m or μ.
    """

    x: Spectrum
    mse: float
    cutoffs: tuple[float, ...]
    level: float


class RobustFilling(NamedTuple):
    """The best smoother against the worst input.

    Attributes
    ----------
    threshold : float
        τ, the largest |F - K|.
    passed : float
        <|K|>.
    mse : float
        The worst MSE.
    cutoffs : tuple of float
        Angles at which K starts or stops being zero.
    """

    threshold: float
    passed: float
    mse: float
    cutoffs: tuple[float, ...]


# --- closed forms ---------------------------------------------------------------------------------


def zero_forcing_mse(problem: Problem) -> float:
    """c² <ψ|F|>² (Le Ny 2013, Theorem 5, for ψ = 1), reached by |G|² ∝ |F|/ψ."""
    grid = problem.grid()
    return problem.cost * grid.mean(problem.weight(grid.omega) * problem.gain(grid.omega)) ** 2


def smoother_water_filling(problem: Problem) -> WaterFilling:
    """The prefilter that is best in front of a non-causal Wiener filter.

    With K = HG: |K| = (|F| - c²mψ/P_u)₊, m = <ψ|K|>, x = |K|/mψ, MSE = <P_u (|F| - |K|)²> + c²m². With ψ = 1 it is the
    solution of the program of Le Ny 2013, equation (7).
    """

    def margin(m: float, omega: Array) -> Array:
        return problem.gain(omega) * problem.psd(omega) - problem.cost * m * problem.weight(omega)

    def product(m: float, omega: Array) -> Array:
        psd = problem.psd(omega)
        return np.maximum(margin(m, omega), 0) / np.where(psd > 0, psd, 1)

    def level(grid: Grid) -> float:
        gain, psd, weight = (f(grid.omega) for f in (problem.gain, problem.psd, problem.weight))
        safe = np.where(psd > 0, psd, 1)

        def excess(m: float) -> float:
            return grid.mean(weight * np.maximum(gain * psd - problem.cost * m * weight, 0) / safe) - m

        return _root(excess, 0.0, grid.mean(weight * gain))

    m, grid, cutoffs = _refine(problem, level, margin)
    gain, psd = problem.gain(grid.omega), problem.psd(grid.omega)
    mse = grid.mean(psd * (gain - product(m, grid.omega)) ** 2) + problem.cost * m * m
    return WaterFilling(lambda omega: product(m, omega) / (m * problem.weight(omega)), mse, cutoffs, m)


def feedback_water_filling(problem: Problem) -> WaterFilling:
    """The prefilter that is best for the error-free approximation of decision feedback.

    x = (μ - c²/P_u)₊ with <x> = 1 maximises <ln(P_u x/c² + 1)>: Le Ny 2013, equation (11). It does not depend on F.
    """

    def margin(mu: float, omega: Array) -> Array:
        return mu * problem.psd(omega) - problem.cost

    def x(mu: float, omega: Array) -> Array:
        psd = problem.psd(omega)
        return np.maximum(margin(mu, omega), 0) / np.where(psd > 0, psd, 1)

    def level(grid: Grid) -> float:
        high = 1.0
        while grid.mean(x(high, grid.omega)) < 1:
            high *= 2
        return _root(lambda mu: grid.mean(x(mu, grid.omega)) - 1, 0.0, high)

    mu, grid, cutoffs = _refine(problem, level, margin)
    mse = feedback_mse(problem, grid, x(mu, grid.omega))
    return WaterFilling(lambda omega: x(mu, omega), mse, cutoffs, mu)


def robust_filling(problem: Problem, mean_square: float) -> RobustFilling:
    """The smoother that is best for the worst input of a mean square V: |K| = (|F| - τ)₊, K along F.

    Every |F - K| up to τ is free once one is τ, which is where V τ² + c² <(|F| - τ)₊>² is least.
    """

    def margin(tau: float, omega: Array) -> Array:
        return problem.gain(omega) - tau

    def worst(tau: float, grid: Grid) -> float:
        return mean_square * tau**2 + problem.cost * grid.mean(np.maximum(margin(tau, grid.omega), 0)) ** 2

    def level(grid: Grid) -> float:
        # not by its slope, which on a grid jumps where τ is the gain at a node
        from scipy import optimize  # late: it takes a fifth as long to import as all of dpfast

        top = float(problem.gain(grid.omega).max())
        return float(optimize.fminbound(worst, 0.0, top, args=(grid,), xtol=1e-10 * top))

    tau, grid, cutoffs = _refine(problem, level, margin)
    return RobustFilling(tau, grid.mean(np.maximum(margin(tau, grid.omega), 0)), worst(tau, grid), cutoffs)


def _root(function: Callable[[float], float], low: float, high: float, xtol: float = 1e-300) -> float:
    from scipy import optimize  # late: it takes a fifth as long to import as all of dpfast

    return float(optimize.brentq(function, low, high, xtol=xtol, rtol=4 * np.finfo(float).eps, maxiter=500))


def _refine(
    problem: Problem, solve: Callable[[Grid], float], margin: Callable[[float, Array], Array]
) -> tuple[float, Grid, tuple[float, ...]]:
    """Solve for the water level, with the angles where the margin changes sign as breakpoints of the grid."""
    cutoffs: tuple[float, ...] = ()
    for _ in range(_PASSES):
        grid = problem.grid(breaks=cutoffs)
        level = solve(grid)
        crossings = np.nonzero(np.diff(margin(level, grid.omega) > 0))[0]
        cutoffs = tuple(_crossing(margin, level, *grid.omega[i : i + 2]) for i in crossings)
    return level, grid, cutoffs


def _crossing(margin: Callable[[float, Array], Array], level: float, low: float, high: float) -> float:
    return _root(lambda omega: margin(level, np.array(omega)).item(), low, high, xtol=1e-15)


def canonical_factor(filter: Filter) -> tuple[float, Filter]:
    r"""γ² and the monic, causal, minimum-phase Q with |H|² = γ²|Q|².

    By Jensen's formula γ² = exp<ln|H|²> = (leading coefficient)² Π max(1, |zero|)².
    """
    lead = np.trim_zeros(filter.b, "f")[0]
    modulus = np.abs(filter.zeros)
    reflected = np.where(modulus > 1, filter.zeros / np.maximum(modulus, 1) ** 2, filter.zeros)
    gain = float(lead * np.prod(np.maximum(1.0, modulus))) ** 2
    _, sections, recursion = filter.factors
    poles = sections.copy()
    poles[:, :3] = [1.0, 0.0, 0.0]
    return gain, Filter.from_factors(polynomial_with(reflected), poles, recursion)


def feedback_mse(problem: Problem, grid: Grid, x: Array) -> float:
    """γ_u² γ_F² exp(-<ln(P_u x/c² + 1)>), the error of ideal decision feedback *assuming error-free decisions*.

    Le Ny 2013, equation (10).
    """
    return problem.log_mean_output * math.exp(-grid.mean(np.log1p(problem.psd(grid.omega) * x / problem.cost)))


# --- objectives for the realisation ---------------------------------------------------------------


def shape_objective(problem: Problem, shape: Spectrum, detail: complex, breaks: tuple[float, ...] = ()) -> Objective:
    """c²<ψ²|G|²> <ψ²S²/|G|²> ≥ c²<ψ²S>²: the loss of zero forcing with |F| = ψS, least for |G|² ∝ S."""

    def resolve(roots: Complex, degree: int) -> tuple[Grid, Loss]:
        grid = problem.grid(roots, degree, breaks)
        weight = problem.weight(grid.omega) ** 2
        square = weight * shape(grid.omega) ** 2

        def loss(power: Array) -> tuple[float, Array]:
            norm, noise = problem.cost * grid.mean(weight * power), grid.mean(square / power)
            return norm * noise, problem.cost * noise * weight * power - norm * square / power

        return grid, loss

    base = problem.grid(breaks=breaks)
    ideal = problem.cost * base.mean(problem.weight(base.omega) ** 2 * shape(base.omega)) ** 2
    return Objective(resolve, shape, ideal, detail)


def zero_forcing_objective(problem: Problem) -> Objective:
    """The error of LZF."""

    def shape(omega: Array) -> Array:
        return problem.gain(omega) / problem.weight(omega)

    return shape_objective(problem, shape, problem.detail())


def smoother_objective(problem: Problem, ideal: WaterFilling) -> Objective:
    """The error of the non-causal Wiener filter behind G."""

    def resolve(roots: Complex, degree: int) -> tuple[Grid, Loss]:
        grid = problem.grid(roots, degree, ideal.cutoffs)
        psd, weight = problem.psd(grid.omega), problem.weight(grid.omega) ** 2
        alpha, beta = psd * problem.gain(grid.omega) ** 2, psd / problem.cost

        def loss(power: Array) -> tuple[float, Array]:
            x = power / grid.mean(weight * power)
            error = alpha / (beta * x + 1)
            slope = x * error * beta / (beta * x + 1)
            return grid.mean(error), weight * x * grid.mean(slope) - slope

        return grid, loss

    return Objective(resolve, ideal.x, ideal.mse, problem.detail(ideal.cutoffs))


def feedback_objective(problem: Problem, ideal: WaterFilling) -> Objective:
    """The error-free approximation of decision feedback behind G."""

    def resolve(roots: Complex, degree: int) -> tuple[Grid, Loss]:
        grid = problem.grid(roots, degree, ideal.cutoffs)
        beta = problem.psd(grid.omega) / problem.cost

        def loss(power: Array) -> tuple[float, Array]:
            x = power / grid.mean(power)
            mse = feedback_mse(problem, grid, x)
            slope = beta * x / (beta * x + 1)
            return mse, mse * (x * grid.mean(slope) - slope)

        return grid, loss

    return Objective(resolve, ideal.x, ideal.mse, problem.detail(ideal.cutoffs))


def wiener_objective(problem: Problem, lag: int, ideal: Objective) -> Objective:
    """The error of the causal Wiener filter of a lag behind G, in place of the loss of another objective."""

    def resolve(roots: Complex, degree: int) -> tuple[Grid, Loss]:
        circle = circle_for(np.concatenate([problem.details, roots]), max(lag, problem.degree, 2 * degree))
        return circle.grid, wiener_loss(problem, lag, circle)

    return ideal._replace(resolve=resolve, draft=ideal)


def wiener_loss(problem: Problem, lag: int, circle: Circle) -> Loss:
    r"""The error of the causal Wiener filter of a lag behind a minimum-phase G.

    The smoother's error plus the energy of what the lag cuts off, both sums of positive terms. With H held at its
    optimum (envelope theorem) dJ = 2 Re<(-P_u E* H G + c²‖H‖²ψ²|G|²) d ln G>, E = z^{-D}F - HG.
    """
    omega, mean = circle.grid.omega, circle.grid.mean
    psd, weight = problem.psd(omega), problem.weight(omega) ** 2
    wanted = problem.target.response(omega) * circle.z**-lag

    def loss(power: Array) -> tuple[float, Array]:
        noise = problem.cost * mean(weight * power)
        g, q = circle.outer(power), circle.outer(psd * power + noise)
        whole = psd * wanted * (g / q).conj()
        causal = circle.causal(whole)
        h = causal / q
        smoother = mean(psd * np.abs(wanted) ** 2 * noise / (psd * power + noise))
        mse = smoother + mean(np.abs(whole - causal) ** 2)
        norm = problem.cost * mean(np.abs(h) ** 2)
        return mse, circle.along_outer(2 * (norm * weight * power - psd * (wanted - h * g).conj() * h * g))

    return loss
