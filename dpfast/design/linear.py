"""Linear mechanisms: zero forcing, LMMSE, and the two extremes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from dpfast import _validate
from dpfast._validate import Array
from dpfast.design.prefilter import (
    Problem,
    WaterFilling,
    shape_objective,
    smoother_objective,
    smoother_water_filling,
    zero_forcing_mse,
    zero_forcing_objective,
)
from dpfast.errors import DesignError, ToleranceWarning
from dpfast.filters import MAX_SECTION_POLES, Filter, ratio
from dpfast.mechanism import LinearReceiver, Mechanism, Smoother
from dpfast.models import Model, check_model
from dpfast.privacy import Privacy
from dpfast.quadrature import Grid
from dpfast.realize import Objective, realize
from dpfast.spectra import (
    MAX_FFT,
    Spectrum,
    causal_energy,
    factor_polynomial,
    fft_angles,
    fft_length,
    minimum_phase,
    sum_zeros,
)

Complex = NDArray[np.complex128]
_ROUNDS = 10
_CONVERGED = 1e-6  # relative change of an MSE when the FFT grid is doubled


def zero_forcing(target: Filter, privacy: Privacy, *, tolerance: float = 1e-3, name: str = "LZF") -> Mechanism:
    r"""Linear zero-forcing mechanism: no distortion, the least noise. It needs no model of the signal.

    Model
    -----
    H = F/G, MSE = c²‖G‖₂²‖F/G‖₂² ≥ c²<|F|>², reached by |G|² ∝ |F| (Le Ny 2013, Theorem 6). F may have zeros on and
    outside of the circle: 1/G stays stable.

    Parameters
    ----------
    target : Filter
        F.
    privacy : Privacy
    tolerance : float
        Relative excess of the MSE that the realisation of G may cost; the order is found from it.
    name : str

    Returns
    -------
    Mechanism
        ``ideal_mse`` is c²<|F|>².

    Warns
    -----
    ToleranceWarning
        Where the tolerance is not reached.

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of the realised G.

    Examples
    --------
    >>> privacy = Privacy(np.log(3), 0.05, calibration="paper")
    >>> mechanism = zero_forcing(Filter([1, 0.995], [1, -0.995]), privacy)
    >>> round(mechanism.ideal_rmse, 4), mechanism.prefilter.order
    (7.4715, 4)
    """
    check_inputs(target, privacy)
    unit = Problem(target, None, 1.0)
    prefilter = realize(zero_forcing_objective(unit), tolerance=check_tolerance(tolerance))
    problem = Problem(target, None, noise_cost(privacy, prefilter))
    receiver = LinearReceiver(target * prefilter.inverse(), target, 0.0, 0)
    return Mechanism(name, target, privacy, None, prefilter, receiver, zero_forcing_mse(problem))


def input_perturbation(target: Filter, privacy: Privacy, *, name: str = "input perturbation") -> Mechanism:
    """Noise on the input: G = 1, H = F, MSE c²‖F‖₂² (Le Ny 2013, Section III).

    Parameters
    ----------
    target : Filter
        F.
    privacy : Privacy
    name : str

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of G, by which all that follows is private.
    """
    check_inputs(target, privacy)
    return _extreme(name, target, privacy, Filter([1.0]), target)


def output_perturbation(target: Filter, privacy: Privacy, *, name: str = "output perturbation") -> Mechanism:
    """Noise on the output: G = F, H = 1, MSE c²‖F‖₂² (Le Ny 2013, Section III).

    Parameters
    ----------
    target : Filter
        F.
    privacy : Privacy
    name : str

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of G, by which all that follows is private.
    """
    check_inputs(target, privacy)
    return _extreme(name, target, privacy, target, Filter([1.0]))


def _extreme(name: str, target: Filter, privacy: Privacy, prefilter: Filter, post: Filter) -> Mechanism:
    receiver = LinearReceiver(post, target, 0.0, 0)
    ideal = (privacy.noise_std(prefilter) * post.h2_norm()) ** 2
    return Mechanism(name, target, privacy, None, prefilter, receiver, ideal)


def lmmse(
    target: Filter,
    privacy: Privacy,
    model: Model,
    *,
    lag: int | None = None,
    prefilter: Filter | None = None,
    tolerance: float = 1e-3,
    name: str | None = None,
) -> Mechanism:
    r"""Linear minimum mean square error mechanism: a Wiener receiver.

    Model
    -----
    Smoother: H = P_u F G* / (P_u|G|² + σ²) (Le Ny 2013, equation (7), with the d² that its display drops) behind the G
    that is optimal for it. Finite lag D: H = [z^{-D} P_u F G* / Q*]₊ / Q with P_v = |Q|², behind the G of the smoother
    with its zero band filled: |G|² ∝ x + θ, θ ≥ 0 the one with the least MSE at this lag. (Where x is zero G would be
    a brick wall, which no causal receiver can use.)

    Parameters
    ----------
    target : Filter
        F.
    privacy : Privacy
    model : Model
        Mean and spectrum of u; the guarantee does not depend on their being right, the error does.
    lag : int or None
        Delay of the estimate in samples; None for the smoother.
    prefilter : Filter, optional
        A G to use instead; ``ideal_mse`` is then that of the ideal Wiener receiver behind it.
    tolerance : float
        Relative excess of the MSE that the realisation of G may cost.
    name : str, optional

    Raises
    ------
    ValueError
        For lag < 0.
    DesignError
        Where the target or the prefilter is zero.

    Warns
    -----
    ToleranceWarning
        Where the tolerance is not reached.

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of the realised G. The model must not be fitted to the data that
    are to be released.

    Examples
    --------
    >>> from dpfast.models import MarkovChain
    >>> chain = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> privacy = Privacy(np.log(3), 0.05, calibration="paper")
    >>> round(lmmse(Filter([1, 0.995], [1, -0.995]), privacy, chain).ideal_rmse, 4)
    4.6704
    """
    check_inputs(target, privacy)
    check_model(model)
    lag = None if lag is None else _validate.lag(lag)
    name = name or ("LMMSE smoother" if lag is None else f"LMMSE lag {lag}")
    tolerance = check_tolerance(tolerance)
    if prefilter is not None:
        check_filter("prefilter", prefilter)
        mechanism = _with_wiener(name, target, privacy, model, prefilter, lag)
        return replace(mechanism, ideal_mse=mechanism.predicted_mse)
    best, ideal = _two_step(target, privacy, model, lag, tolerance)
    return replace(_with_wiener(name, target, privacy, model, best, lag), ideal_mse=ideal)


def noise_cost(privacy: Privacy, prefilter: Filter | None) -> float:
    """c²: variance of the noise per unit of ‖G‖₂². Without a G yet, that of events too far apart to overlap."""
    if prefilter is None:
        return (privacy.noise_multiplier * privacy.max_change) ** 2 * privacy.max_events
    return (privacy.noise_std(prefilter) / prefilter.h2_norm()) ** 2


def check_tolerance(tolerance: float) -> float:
    """A relative excess of an MSE."""
    return _validate.number("tolerance", tolerance, above=0, below=1)


def check_filter(name: str, value: Filter) -> None:
    """A filter that is not zero."""
    _validate.instance(name, value, Filter, "a Filter (Filter.from_system takes other systems)")
    if not value.b.any():
        raise DesignError(f"{name} must not be zero")


def check_inputs(target: Filter, privacy: Privacy) -> None:
    """What every design takes."""
    check_filter("target", target)
    _validate.instance("privacy", privacy, Privacy, "a Privacy")


# --- the smoother's prefilter, and its zero band filled for a finite lag --------------------------


class _Wanted(NamedTuple):
    """Ideal MSE, what is realised, and the excess that decides."""

    ideal: float
    objective: Objective
    excess: Callable[[Filter], float]


def _two_step(
    target: Filter, privacy: Privacy, model: Model, lag: int | None, tolerance: float
) -> tuple[Filter, float]:
    """Realised G, and the ideal MSE at the noise that this G needs.

    The sensitivity to several events depends on G: it is designed for the noise of the one before, until it is within
    the tolerance of the ideal at its own noise.
    """
    wanted = _wanted(Problem(target, model, noise_cost(privacy, None)), lag)
    excess = math.inf
    for _ in range(_ROUNDS):
        best = realize(wanted.objective, tolerance=tolerance, excess=wanted.excess)
        if privacy.max_events == 1:
            return best, wanted.ideal
        wanted = _wanted(Problem(target, model, noise_cost(privacy, best)), lag)
        excess = wanted.excess(best)
        if excess <= tolerance:
            return best, wanted.ideal
    warnings.warn(
        f"the prefilter for {privacy.max_events} events a person has an MSE {excess:.2g} (relative) above the ideal at "
        f"its own noise, tolerance is {tolerance:g}: raise tolerance",
        ToleranceWarning,
        stacklevel=3,
    )
    return best, wanted.ideal


def _wanted(problem: Problem, lag: int | None) -> _Wanted:
    water = smoother_water_filling(problem)
    if lag is None:
        objective = smoother_objective(problem, water)
        return _Wanted(water.mse, objective, objective.excess)
    fill, ideal, n = best_filling(problem, water, lag)

    def excess(g: Filter) -> float:
        grid = problem.grid(g.poles, g.order, water.cutoffs)
        length = max(n, fft_length(float(np.abs(g.poles).max(initial=0.0))))
        return wiener_mse(problem, lambda omega: np.abs(g.response(omega)) ** 2, lag, length, grid) / ideal - 1

    detail = problem.detail(water.cutoffs)
    objective = shape_objective(problem, lambda omega: water.x(omega) + fill, detail, water.cutoffs)
    return _Wanted(ideal, objective, excess)


def best_filling(problem: Problem, water: WaterFilling, lag: int) -> tuple[float, float, int]:
    """The θ with the least MSE of the ideal Wiener receiver behind |G|² = x + θ, that MSE, and the FFT it took."""
    grid = problem.grid(breaks=water.cutoffs)

    def mse(log_fill: float, n: int) -> float:
        fill = math.exp(log_fill)
        return wiener_mse(problem, lambda omega: water.x(omega) + fill, lag, n, grid)

    n, bounds = max(2**14, fft_length(problem.slowest)), (-25.0, 8.0)
    while True:
        best, value, *_ = optimize.fminbound(mse, *bounds, args=(n,), xtol=1e-4, full_output=True)
        finer = mse(best, 2 * n)
        if abs(finer / value - 1) < _CONVERGED or n >= MAX_FFT // 4:
            return math.exp(best), finer, 2 * n
        n, bounds = 4 * n, (best - 0.5, best + 0.5)


def wiener_mse(problem: Problem, shape: Spectrum, lag: int, n: int, grid: Grid) -> float:
    """MSE of the ideal Wiener receiver of a lag behind a minimum-phase G with |G|² ∝ shape.

    The smoother's MSE plus the energy of what the lag cuts off, both sums of positive terms.
    """
    x = shape(grid.omega)
    psd, gain = problem.psd(grid.omega), problem.gain(grid.omega)
    smoother = grid.mean(psd * gain**2 / (psd * x / (problem.cost * grid.mean(x)) + 1))
    omega = fft_angles(n)
    power, psd = shape(omega), problem.psd(omega)
    g = minimum_phase(power)
    q = minimum_phase(psd * power + problem.cost * grid.mean(x))
    return smoother + causal_energy(psd * problem.target.response(omega) * (g / q).conj(), lag)[1]


# --- Wiener receivers of a realised prefilter -----------------------------------------------------


def _with_wiener(
    name: str, target: Filter, privacy: Privacy, model: Model, prefilter: Filter, lag: int | None
) -> Mechanism:
    """The mechanism of a given prefilter and the Wiener receiver behind it."""
    receiver = wiener(target, model, prefilter, privacy.noise_std(prefilter), lag)
    return Mechanism(name, target, privacy, model, prefilter, receiver)


def wiener(
    target: Filter, model: Model, prefilter: Filter, noise_std: float, lag: int | None
) -> LinearReceiver | Smoother:
    r"""The receiver with the least mean square error, as an exact rational filter.

    With Ω = N_u/D_u the shaping filter, G = N_g/D_g, F = N_f/D_f, and q the minimum-phase polynomial of
    |q|² = |N_u N_g|² + σ²|D_u D_g|²: the smoother is A(z) B(1/z) with A = F D_g N_u/q and B = N_u N_g/q; that of a lag
    is H = D_g R/(q D_f), R a polynomial of about `lag` taps.
    """
    shaping = model.shaping
    q = _innovations_numerator(shaping, prefilter, noise_std)
    backward = ratio((shaping.numerator, prefilter.numerator), (q,))
    if lag is None:
        forward = ratio((target.numerator, shaping.numerator, prefilter.denominator), (q, target.denominator))
        return Smoother(forward, backward, target, model.mean)
    taps = Filter(_causal_numerator(target, shaping, backward, lag))
    receiver = ratio((taps, prefilter.denominator), (q, target.denominator))
    return LinearReceiver(receiver, target, model.mean, lag)


def _innovations_numerator(shaping: Filter, prefilter: Filter, noise_std: float) -> Filter:
    """The FIR filter q: in sections, or as taps where it is long."""
    poles = np.concatenate([shaping.poles, prefilter.poles])
    degree = max(len(shaping.b) + len(prefilter.b), len(shaping.a) + len(prefilter.a)) - 2

    def spectrum(omega: Array) -> Array:
        return np.abs(shaping.response(omega) * prefilter.response(omega)) ** 2 + noise_std**2

    if degree > MAX_SECTION_POLES:
        return Filter(factor_polynomial(spectrum, poles, degree))
    lead = np.prod([np.trim_zeros(x.b, "f")[0] for x in (shaping, prefilter)])
    zeros = sum_zeros(np.concatenate([shaping.zeros, prefilter.zeros]), poles, (noise_std / lead) ** 2)
    q = Filter.from_zpk(zeros, np.zeros(len(zeros)), 1.0)
    middle = np.array(np.pi / 2)
    gain = math.sqrt(spectrum(middle)) * abs(np.prod(1 - poles * np.exp(-1j * middle)) / q.response(middle))
    return q * float(gain)


def _causal_numerator(target: Filter, shaping: Filter, backward: Filter, lag: int) -> Array:
    """R with [z^{-D} B(1/z) N_u N_f / (D_u D_f)]₊ = R / (D_u D_f).

    The two-sided numerator is fed to 1/(D_u D_f) up to time -1; what its state holds then is added to the rest.
    """
    from scipy import signal

    b = backward.impulse(backward.settling_time(1e-18) + lag)
    numerator = np.convolve(b[::-1], np.convolve(shaping.b, target.b))
    start = lag - len(b) + 1  # time of the first sample
    numerator = np.concatenate([np.zeros(max(0, start)), numerator])
    before = max(0, -start)
    denominator = np.convolve(shaping.a, target.a)
    if len(denominator) == 1 or before == 0:  # scipy 1.17 returns another call's state for an empty input
        return numerator[before:]
    _, state = signal.lfilter([1.0], denominator, numerator[:before], zi=np.zeros(len(denominator) - 1))
    taps = numerator[before:]
    taps = np.pad(taps, (0, max(0, len(state) - len(taps))))
    taps[: len(state)] += state
    return taps
