"""Decision-feedback mechanisms, for streams that take finitely many levels."""

from __future__ import annotations

from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from dpfast._support import validation
from dpfast._support.design_calls import public_design
from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.design.argument_checks import check_filter, check_inputs, check_name, check_tolerance, filter_or_none
from dpfast.design.lmmse import lmmse
from dpfast.design.prefilter.canonical_factor import canonical_factor
from dpfast.design.prefilter.design_problem import Problem, noise_cost
from dpfast.design.prefilter.objectives import feedback_objective
from dpfast.design.prefilter.order_selection import realize
from dpfast.design.prefilter.water_filling import feedback_mse, feedback_water_filling
from dpfast.design.zero_forcing import zero_forcing
from dpfast.filters.fft_grid import fft_angles, fft_length
from dpfast.filters.filter import Filter
from dpfast.filters.spectral_factor import spectral_factor
from dpfast.mechanisms.base import Option
from dpfast.mechanisms.lags import check_causal
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.receivers.base import Receiver
from dpfast.mechanisms.receivers.decision_feedback import DECISIONS, Decision, DecisionFeedback
from dpfast.privacy.privacy import Privacy
from dpfast.signals.model import Model, check_model

_DRAWN = 0.99  # a pole whose response is told at enough angles to draw it, 4,096 of the circle

Prefilter = Literal["lmmse", "decision-feedback", "zero-forcing"]
PREFILTERS: tuple[Prefilter, ...] = ("lmmse", "decision-feedback", "zero-forcing")

MAX_TAPS = 2048  # the normal equations are dense


@public_design
def decision_feedback(
    target: Filter,
    privacy: Privacy,
    model: Model,
    *,
    lag: int = 5,
    prefilter: Prefilter | Filter = "lmmse",
    decision: Decision = "soft",
    n_forward: int = 64,
    n_feedback: int = 16,
    tolerance: float = 1e-3,
    name: str | None = None,
) -> Mechanism:
    r"""Design an FIR decision-feedback mechanism, which estimates u on its levels and filters that by the target.

    Model
    -----
    ũ_t = Σ_{i<Nf} h1_i v_{t-i} + Σ_{1≤j≤Nb} h2_j û_{t-j}, û_t = decision(ũ_t) an estimate of u_{t-D}, ŷ = F û
    (Le Ny 2013, Section V; Voois 1996). The taps solve the normal equations for E|u_{t-D} - ũ_t|² under correct past
    decisions. ũ is shrunk, E[ũ|u] = αu with α = 1 - mse/var(u), and is divided by α before a hard decision.

    Parameters
    ----------
    target : Filter
        F, whose output should be published.
    privacy : Privacy
        The guarantee that is asked for.
    model : Model
        With levels.
    lag : int
        D, the delay of the estimate in samples.
    prefilter : {"lmmse", "decision-feedback", "zero-forcing"} or Filter
        The smoother's optimal G; the one that maximises the error-free approximation (it ignores F); LZF's; or a G.
    decision : {"soft", "quantizer", "sign"}
        Posterior mean over the levels, given the stationary probabilities; the nearest level; one of two levels.
    n_forward, n_feedback : int
        Taps h1 and h2.
    tolerance : float
        Relative excess of the prefilter's own criterion that its realisation may cost.
    name : str, optional
        What tables and pictures call it; by default its family and lag.

    Returns
    -------
    Mechanism
        ``ideal_mse`` *assumes error-free decisions* (Le Ny 2013, equation (10)): at strong privacy no receiver comes
        near it, and wrong decisions, fed back and integrated by F, can make the real error larger than that of any
        linear mechanism. ``predicted_mse`` is None: only simulation tells.

    Raises
    ------
    DesignError
        Where the model has no levels, or `decision="sign"` meets more than two.

    Notes
    -----
    *Privacy.* The noise is that of the sensitivity of the realised G.

    Examples
    --------
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> target, privacy = dp.Filter([1], [1, -0.9]), dp.Privacy(5, 1e-3)
    >>> mechanism = dp.decision_feedback(target, privacy, chain, lag=2, prefilter="zero-forcing")
    >>> mechanism.predicted_mse is None, mechanism.receiver.forward.shape, mechanism.receiver.feedback.shape
    (True, (64,), (16,))
    """
    check_inputs(target, privacy)
    check_model(model)
    lag = check_causal(lag, "decisions are fed back as they are made, so that decision feedback is no smoother")
    n_forward = validation.integer("n_forward", n_forward, 1, MAX_TAPS)
    n_feedback = validation.integer("n_feedback", n_feedback, 0, MAX_TAPS)
    decision = _check_decision(decision, model)
    tolerance = check_tolerance(tolerance)
    label = prefilter if isinstance(prefilter, str) else "given"
    g = _choose_prefilter(target, privacy, model, prefilter, tolerance)
    receiver = design_equalizer(target, model, g, privacy.noise_std(g), lag, decision, n_forward, n_feedback)
    ideal = _ideal_mse(Problem(target, model, noise_cost(privacy, g)), g)
    name = check_name(name, f"DFE {decision} lag {lag} ({label} prefilter)")
    options: dict[str, Option] = {"lag": lag, "prefilter": label, "decision": decision}
    options |= {"n_forward": n_forward, "n_feedback": n_feedback}
    if label != "given":
        options["tolerance"] = tolerance
    return Mechanism(name, target, privacy, model, g, receiver, ideal, options=tuple(options.items()))


def _check_decision(decision: Decision, model: Model) -> Decision:
    validation.choice("decision", decision, DECISIONS)
    if model.levels is None:
        raise DesignError(
            "model must have the values that the stream takes, among which decision feedback decides, got "
            f"{model!r}: give a MarkovChain, IndependentLevels, or an ARMA with levels"
        )
    if decision == "sign" and len(model.levels) != 2:
        raise DesignError(f"decision='sign' must have two levels, got {len(model.levels)}: use 'quantizer' or 'soft'")
    return decision


def _choose_prefilter(
    target: Filter, privacy: Privacy, model: Model, prefilter: Prefilter | Filter, tolerance: float
) -> Filter:
    if (given := filter_or_none(prefilter)) is not None:
        return check_filter("prefilter", given)
    validation.choice("prefilter", prefilter, PREFILTERS)
    if prefilter == "lmmse":
        return lmmse(target, privacy, model, tolerance=tolerance).prefilter
    if prefilter == "zero-forcing":
        return zero_forcing(target, privacy, tolerance=tolerance).prefilter
    problem = Problem(target, model, noise_cost(privacy, None))
    return realize(feedback_objective(problem, feedback_water_filling(problem)), tolerance=tolerance)


def design_equalizer(
    target: Filter,
    model: Model,
    prefilter: Filter,
    noise_std: float,
    lag: int,
    decision: Decision,
    n_forward: int,
    n_feedback: int,
) -> DecisionFeedback:
    """Return the FIR decision-feedback receiver behind a given prefilter, from the normal equations."""
    levels, probabilities = model.levels, model.probabilities
    assert levels is not None
    assert probabilities is not None
    shaping = model.shaping
    poles = np.concatenate([shaping.poles, prefilter.poles])
    n = max(fft_length(float(np.abs(poles).max(initial=0.0))), 8 * (n_forward + n_feedback + lag))
    omega = fft_angles(n)
    psd, g = model.psd(omega), prefilter.response(omega)
    r_u, r_uv = np.fft.irfft(psd), np.fft.irfft(psd * g.conj())  # r_uv[k] = E[u_t v_{t-k}]
    r_v = np.fft.irfft(psd * np.abs(g) ** 2 + noise_std**2)
    i, j = np.arange(n_forward), np.arange(1, n_feedback + 1)
    cross = r_uv[i[:, None] - lag - j]  # E[v_{t-i} u_{t-lag-j}]
    matrix = np.block([[linalg.toeplitz(r_v[i]), cross], [cross.T, linalg.toeplitz(r_u[j - 1])]])
    right = np.concatenate([r_uv[i - lag], r_u[j]])
    taps = linalg.solve(matrix, right, assume_a="pos")
    error = max(r_u[0] - float(right @ taps), 1e-15 * r_u[0])
    return DecisionFeedback(
        forward=validation.freeze(taps[:n_forward]),
        feedback=validation.freeze(taps[n_forward:]),
        levels=levels,
        probabilities=probabilities,
        shrinkage=1 - error / model.variance,
        error_variance=error,
        decision=decision,
        target=target,
        mean=model.mean,
        lag=lag,
    )


def redesign_equalizer(mechanism: Mechanism, prefilter: Filter, noise_std: float) -> Receiver:
    """Design the equaliser of a mechanism, with as many taps and the same decisions, behind another prefilter."""
    assert mechanism.model is not None
    old = cast("DecisionFeedback", mechanism.receiver)
    sizes = len(old.forward), len(old.feedback)
    return design_equalizer(mechanism.target, mechanism.model, prefilter, noise_std, old.lag, old.decision, *sizes)


class IdealFeedback(NamedTuple):
    """Ideal decision feedback, *assuming error-free decisions*, as responses at the angles `omega`.

    Attributes
    ----------
    omega : array
    feedback : array of complex
        B = 1 + H₂ = Q/(Q_u Q_F), monic.
    forward : array of complex
        H₁ = B P_u G*/(P_u|G|² + σ²), in general not causal.
    mse : float
        γ_u² γ_F²/γ².
    """

    omega: Array
    feedback: NDArray[np.complex128]
    forward: NDArray[np.complex128]
    mse: float


def ideal_feedback(target: Filter, privacy: Privacy, model: Model, prefilter: Filter) -> IdealFeedback:
    """Return ideal decision feedback behind a given prefilter, by Le Ny 2013, equations (9) and (10).

    B = Q/(Q_u Q_F), where Q, Q_u and Q_F are the canonical factors of P_u|G|²/σ² + 1, P_u and |F|².

    Parameters
    ----------
    target : Filter
        F, whose output should be published.
    privacy : Privacy
        The guarantee that is asked for.
    model : Model
        Spectrum of u.
    prefilter : Filter
        G.

    Examples
    --------
    >>> import dpfast as dp
    >>> coin = dp.IndependentLevels([-0.5, 0.5], [0.5, 0.5])
    >>> privacy = dp.Privacy.from_gdp(2, 1e-3)  # σ² = 1/4, the variance of the signal
    >>> ideal = dp.ideal_feedback(dp.Filter([1]), privacy, coin, dp.Filter([1]))
    >>> round(ideal.mse, 6)
    0.125
    """
    check_inputs(target, privacy)
    check_model(model)
    check_filter("prefilter", prefilter)
    problem = Problem(target, model, noise_cost(privacy, prefilter))
    poles = np.concatenate([problem.poles, problem.spectrum_zeros(), target.zeros, prefilter.poles])
    inside = np.abs(poles)[np.abs(poles) < 1 - 1e-6]
    variance = problem.cost * prefilter.h2_norm() ** 2

    def ratio(omega: Array) -> Array:
        return np.asarray(model.psd(omega) * np.abs(prefilter.response(omega)) ** 2 / variance + 1)

    # zeros of the spectrum that are on the circle, in front of little noise, take more angles than any that is inside
    q = spectral_factor(ratio, float(inside.max(initial=_DRAWN)))
    omega = fft_angles(2 * (len(q) - 1))
    q /= np.fft.irfft(q)[0]
    with np.errstate(divide="ignore", invalid="ignore"):  # a zero on the circle makes B infinite there
        b = q / (canonical_factor(model.shaping)[1].response(omega) * canonical_factor(target)[1].response(omega))
        forward = b * model.psd(omega) * prefilter.response(omega).conj() / (variance * ratio(omega))
    return IdealFeedback(omega, b, forward, _ideal_mse(problem, prefilter))


def _ideal_mse(problem: Problem, prefilter: Filter) -> float:
    grid = problem.grid(prefilter.poles, prefilter.order)
    return feedback_mse(problem, grid, np.abs(prefilter.response(grid.omega) / prefilter.h2_norm()) ** 2)
