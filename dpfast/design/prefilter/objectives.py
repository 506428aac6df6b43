"""The objectives that realised prefilters are fitted to: the MSE behind G, and its slope in ln|G|²."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dpfast._support.validation import Array, Complex
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.water_filling import WaterFilling, feedback_mse
from dpfast.filters.fft_grid import MAX_FFT
from dpfast.filters.filter import Filter
from dpfast.filters.quadrature import QuadratureGrid
from dpfast.filters.spectral_factor import Spectrum
from dpfast.filters.warped_circle import SHORTEST, WarpedCircle, choose_steps, make_circle

Loss = Callable[[Array], tuple[float, Array]]
Excess = Callable[[Filter], float]

MOST_STEPS = 2**18  # the largest circle, unless the poles alone need a larger one
_ROUGHER = 2  # times fewer steps, to choose among starts
_DISTANCES = (1e-5, 2.2e-4)  # from the circle, of zeros of a spectrum that steps resolve: near one end, or anywhere


class Objective(NamedTuple):
    """A loss J(G) to be made small.

    Attributes
    ----------
    resolve : callable
        (roots, degree) → a grid that resolves the target, the signal, those roots, and that many taps; and the loss on
        it: |G|² → (J, S) with dJ = <S · d ln|G|²>. J must not depend on the gain of G.
    shape : callable
        ω → the ideal |G|².
    ideal : float
        The loss of the ideal G.
    detail : complex
        Where the finest detail of the shape is: the root that is nearest to the circle.
    draft : Objective, optional
        One that is quick to evaluate and least for the same shape: fits start from its fits.
    rough : callable, optional
        () → the loss itself in fewer steps, right enough to choose among starts: its slopes are those of the loss.
    brief : callable, optional
        As `resolve`, in fewer steps, right enough to tell a large loss; None where that takes few itself.
    """

    resolve: Callable[[Complex, int], tuple[QuadratureGrid, Loss]]
    shape: Spectrum
    ideal: float
    detail: complex
    draft: Objective | None = None
    rough: Callable[[], tuple[QuadratureGrid, Loss]] | None = None
    brief: Callable[[Complex, int], tuple[QuadratureGrid, Loss] | None] | None = None

    def excess(self, g: Filter, far: float = math.inf) -> float:
        """Return the relative excess of the loss of `g` over the ideal, on a grid that resolves `g` too.

        Where that grid is very long, a shorter one tells first whether the excess is beyond `far`, and is then enough.
        """
        roots = np.concatenate([g.poles, np.empty(0) if g.is_fir else g.zeros])
        if self.brief is not None and (briefly := self.brief(roots, g.order)) is not None:
            roughly = self._excess_on(*briefly, g)
            if roughly > far:
                return roughly
        return self._excess_on(*self.resolve(roots, g.order), g)

    def _excess_on(self, grid: QuadratureGrid, loss: Loss, g: Filter) -> float:
        return loss(np.abs(g.response(grid.omega)) ** 2)[0] / self.ideal - 1


def shape_objective(problem: Problem, shape: Spectrum, detail: complex, breaks: tuple[float, ...] = ()) -> Objective:
    """Return the loss c²<ψ²|G|²> <ψ²S²/|G|²> ≥ c²<ψ²S>², which is least for |G|² ∝ S.

    It is the loss of zero forcing for a target with |F| = ψS.
    """

    def resolve(roots: Complex, degree: int) -> tuple[QuadratureGrid, Loss]:
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
    """Return the error of zero forcing behind G as an objective."""

    def shape(omega: Array) -> Array:
        return problem.gain(omega) / problem.weight(omega)

    return shape_objective(problem, shape, problem.finest_detail())


def smoother_objective(problem: Problem, ideal: WaterFilling) -> Objective:
    """Return the error of the smoother, the non-causal Wiener filter, behind G as an objective."""

    def resolve(roots: Complex, degree: int) -> tuple[QuadratureGrid, Loss]:
        grid = problem.grid(roots, degree, ideal.cutoffs)
        psd, weight = problem.psd(grid.omega), problem.weight(grid.omega) ** 2
        alpha, beta = psd * problem.gain(grid.omega) ** 2, psd / problem.cost

        def loss(power: Array) -> tuple[float, Array]:
            x = power / grid.mean(weight * power)
            error = alpha / (beta * x + 1)
            slope = x * error * beta / (beta * x + 1)
            return grid.mean(error), weight * x * grid.mean(slope) - slope

        return grid, loss

    return Objective(resolve, ideal.x, ideal.mse, problem.finest_detail(ideal.cutoffs))


def feedback_objective(problem: Problem, ideal: WaterFilling) -> Objective:
    """Return the error of decision feedback behind G, *assuming error-free decisions*, as an objective."""

    def resolve(roots: Complex, degree: int) -> tuple[QuadratureGrid, Loss]:
        grid = problem.grid(roots, degree, ideal.cutoffs)
        beta = problem.psd(grid.omega) / problem.cost

        def loss(power: Array) -> tuple[float, Array]:
            x = power / grid.mean(power)
            mse = feedback_mse(problem, grid, x)
            slope = beta * x / (beta * x + 1)
            return mse, mse * (x * grid.mean(slope) - slope)

        return grid, loss

    return Objective(resolve, ideal.x, ideal.mse, problem.finest_detail(ideal.cutoffs))


def wiener_objective(problem: Problem, lag: int, ideal: Objective, cutoffs: tuple[float, ...]) -> Objective:
    """Return the error of the Wiener filter of a lag behind G as an objective, with the shape of another one.

    That other one is the draft. The cutoffs are those of the smoother, beside the zeros of the spectrum.
    """

    def resolve(roots: Complex, degree: int) -> tuple[QuadratureGrid, Loss]:
        held, circle = resolve_on_circle(problem, lag, cutoffs, roots, degree)
        return circle.grid, wiener_loss(held, lag, circle)

    def rough() -> tuple[QuadratureGrid, Loss]:
        held, circle = resolve_on_circle(problem, lag, cutoffs)
        circle = make_circle(circle.warp, circle.size // _ROUGHER)
        return circle.grid, wiener_loss(held, lag, circle)

    def brief(roots: Complex, degree: int) -> tuple[QuadratureGrid, Loss] | None:
        held, circle = resolve_on_circle(problem, lag, cutoffs, roots, degree, most=MOST_STEPS)
        return None if circle.size < MOST_STEPS else (circle.grid, wiener_loss(held, lag, circle))

    return ideal._replace(resolve=resolve, draft=ideal, rough=rough, brief=brief)


def resolve_on_circle(
    problem: Problem,
    lag: int,
    cutoffs: tuple[float, ...],
    roots: Any = (),
    degree: int = 0,
    *,
    size: int = SHORTEST,
    most: int = MAX_FFT,
) -> tuple[Problem, WarpedCircle]:
    """Return a circle that resolves a problem, further roots and so many taps, and the problem that it resolves.

    It has at least `size` steps, and `most` at the most, which may be too few for roots very near to the circle. The
    problem is another one if, beside a zero of the spectrum, only a band narrower than most steps lets nothing
    pass: its zeros are a little off the circle, and its errors differ by about that distance, relatively.
    """
    nearest = 1 - np.abs(problem.spectrum_zeros(cutoffs)).max(initial=0.0)
    for distance in _DISTANCES:
        held = problem if nearest >= distance else problem.with_zeros_off_circle(distance)
        every = np.concatenate([held.resolved_roots(cutoffs), roots])
        warp, steps = choose_steps(every, max(lag, problem.degree, 2 * degree), size=size)
        if steps <= MOST_STEPS:
            break
    return held, make_circle(warp, min(steps, most))


def wiener_loss(problem: Problem, lag: int, circle: WarpedCircle) -> Loss:
    r"""Return the error of the Wiener filter of a lag behind a minimum-phase G, and its slope, on a circle.

    It is the smoother's error plus the energy of what the lag cuts off, both sums of positive terms. With H held at its
    optimum (envelope theorem) dJ = 2 Re<(-P_u E* H G + c²‖H‖²ψ²|G|²) d ln G>, E = z^{-D}F - HG.
    """
    omega, mean = circle.grid.omega, circle.grid.mean
    psd, weight = problem.psd(omega), problem.weight(omega) ** 2
    wanted = problem.response(omega) * circle.z**-lag
    scaled, output = psd * wanted, psd * _energy(wanted)

    def loss(power: Array) -> tuple[float, Array]:
        noise = problem.cost * mean(weight * power)
        privatized = psd * power + noise
        ratio = circle.outer_factor(power / privatized)  # G/Q, |Q|² the spectrum of what the receiver sees
        whole = scaled * ratio.conj()
        causal = circle.causal_part(whole)
        product = causal * ratio  # HG
        early = whole - causal
        mse = mean(output * noise / privatized) + mean(_energy(early))
        norm = problem.cost * mean(_energy(causal) / privatized)
        missed = ((wanted - product).conj() * product).sum(axis=0)
        return mse, circle.along_outer(2 * (norm * weight * power - psd * missed))

    return loss


def _energy(rows: Complex) -> Array:
    """Return the squared magnitudes of all outputs together."""
    return np.asarray((rows.real**2 + rows.imag**2).sum(axis=0))
