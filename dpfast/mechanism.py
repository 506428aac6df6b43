"""A designed mechanism: prefilter, noise, receiver; how it runs, and the error that it is predicted to have."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpfast import _validate
from dpfast._kernels import chain, threads
from dpfast._validate import Array
from dpfast.filters import Filter
from dpfast.models import Model, check_model
from dpfast.peaks import fft_points, largest_gain
from dpfast.privacy import Privacy
from dpfast.quadrature import Grid, graded_grid

Decision = Literal["sign", "quantizer", "soft"]
_CUT = 1e-11
_NO_INFORMATION = 1e-12
DECISIONS: tuple[Decision, ...] = ("sign", "quantizer", "soft")


class Paths(NamedTuple):
    """What a simulation gives, each (..., time) like its input.

    Attributes
    ----------
    privatized : array
        v = G (u - mean) + n. Private in the model of the simulation only: nothing here may be published.
    estimate : array
        ``estimate[..., t]`` estimates the target's output at t - lag.
    decisions : array or None
        The estimate of u at t - lag of a decision-feedback receiver.
    lag : int
        0 for a smoother.
    """

    privatized: Array
    estimate: Array
    decisions: Array | None
    lag: int


# --- receivers: they see v, and have no argument through which u could reach them -----------------


class Receiver(Protocol):
    """Post-filter: turns the privatized signal v into an estimate of the target's output."""

    @property
    def lag(self) -> int | None:
        """Samples by which the estimate is late; None for a smoother."""

    def estimate(self, v: Array) -> tuple[Array, Array | None]:
        """Estimate, and decisions if any, from v (streams, time)."""

    def response(self, omega: ArrayLike) -> NDArray[np.complex128] | None:
        """H(ω), None where it is not linear."""

    def filters(self) -> tuple[Filter, ...]:
        """The linear filters inside."""

    def compiled(self) -> chain.Receiver:
        """What the Monte Carlo chain runs."""


@dataclass(frozen=True)
class LinearReceiver:
    """ŷ_t = (H v)_t + mean · (step response of the target)_{t - lag}."""

    filter: Filter
    target: Filter
    mean: float
    lag: int

    def estimate(self, v: Array) -> tuple[Array, Array | None]:
        """Estimate from v (streams, time)."""
        out = v.copy()
        self.compiled().start(len(v)).run(out)
        return out, None

    def response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """H(ω)."""
        return self.filter.response(omega)

    def filters(self) -> tuple[Filter, ...]:
        """H alone."""
        return (self.filter,)

    def compiled(self) -> chain.LinearReceiver:
        """What the Monte Carlo chain runs."""
        return chain.LinearReceiver(self.filter.factors, self.target.factors, self.mean, self.lag)


@dataclass(frozen=True)
class Smoother:
    """Two-sided ŷ = B(1/z) A(z) v + mean · step response of the target: forward through A, then backward through B.

    For batches only. Samples outside of an array count as zero.
    """

    forward: Filter
    backward: Filter
    target: Filter
    mean: float
    lag: None = field(default=None, init=False)

    def estimate(self, v: Array) -> tuple[Array, Array | None]:
        """Estimate from v (streams, time)."""
        out = v.copy()
        chain.Linear(self.forward.factors, len(v)).run(out)
        out = np.ascontiguousarray(chain.backward(self.backward.factors, out))
        chain.Offset(self.target.factors, self.mean, 0).add(out)
        return out, None

    def response(self, omega: ArrayLike) -> NDArray[np.complex128]:
        """H(ω) = A(ω) B(ω)*."""
        return np.asarray(self.forward.response(omega) * self.backward.response(omega).conj())

    def filters(self) -> tuple[Filter, ...]:
        """A and B."""
        return self.forward, self.backward

    def compiled(self) -> chain.SmootherReceiver:
        """What the Monte Carlo chain runs; B is cut where it has decayed to 1e-11."""
        return chain.SmootherReceiver(
            self.forward.factors,
            self.backward.factors,
            self.target.factors,
            self.mean,
            self.backward.settling_time(_CUT),
        )


@dataclass(frozen=True, eq=False)
class DecisionFeedback:
    r"""FIR decision-feedback equaliser in front of the target (Voois 1996; Le Ny 2013, Section V).

    ũ_t = Σ_i forward[i] v_{t-i} + Σ_{j≥1} feedback[j-1] û_{t-j}, û_t = decision(ũ_t) an estimate of u_{t-lag},
    ŷ = F û. All on the centred input. E[ũ | u] = shrinkage · u, and the error around it has the variance
    shrinkage · error_variance.
    """

    forward: Array
    feedback: Array
    levels: Array
    probabilities: Array
    shrinkage: float
    error_variance: float
    decision: Decision
    target: Filter
    mean: float
    lag: int

    def estimate(self, v: Array) -> tuple[Array, Array | None]:
        """Estimate and decisions from v (streams, time)."""
        decisions = v.copy()
        chain.FeedbackStage(self.compiled(), len(v)).decide(decisions)
        out = decisions.copy()
        chain.Linear(self.target.factors, len(v)).run(out)
        return out, decisions

    def response(self, omega: ArrayLike) -> None:
        """None: a decision is not linear."""

    def filters(self) -> tuple[Filter, ...]:
        """The forward filter."""
        return (Filter(self.forward),)

    def compiled(self) -> chain.FeedbackReceiver:
        """What the Monte Carlo chain runs."""
        centred = self.levels - self.mean
        # without information ũ = 0 whatever u is: the level nearest to the mean
        scale = self.shrinkage if self.shrinkage > _NO_INFORMATION else 1.0
        with np.errstate(divide="ignore"):
            prior = np.log(self.probabilities)
        equalizer = chain.Equalizer(
            forward=self.forward,
            feedback=self.feedback,
            levels=centred,
            thresholds=scale * (centred[1:] + centred[:-1]) / 2,
            slopes=centred / self.error_variance,
            offsets=prior - self.shrinkage * centred**2 / (2 * self.error_variance),
            soft=self.decision == "soft",
            lag=self.lag,
        )
        return chain.FeedbackReceiver(equalizer, self.target.factors, self.mean)


# --- the mechanism --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Mechanism:
    r"""v = G (u - mean) + n, n white Gaussian of standard deviation κ·Δ₂(G); an estimate of F u from v alone.

    Made by the design functions. Ideal, predicted and simulated errors are three different figures.

    Attributes
    ----------
    name : str
    target : Filter
        F, whose output should be published.
    privacy : Privacy
    model : Model or None
        The signal that it was designed for; None where none is needed.
    prefilter : Filter
        G as realised, the only part that sees u.
    noise_std : float
        Standard deviation of n, from the sensitivity of the realised G.
    receiver : LinearReceiver, Smoother or DecisionFeedback
    lag : int or None
        The estimate at t is of the target's output at t - lag; None for a smoother.
    ideal_mse : float or None
        The formula of the family, for ideal filters: a bound for zero forcing and for smoothers alone. At a finite lag
        it is that of the rule which fills the zero band, and a realised G may do better. For decision feedback it
        assumes that all decisions are free of errors, which at strong privacy no receiver comes near.
    predicted_mse : float or None
        The exact stationary error of the realised filters on `model`; None where only simulation tells.
    lower_bound_mse : float or None
        A certified lower bound for all linear mechanisms of this lag, where the design gives one.
    mean_square : float or None
        Bound of the inputs' mean square for which a robust design is made; its ideal, predicted and lower bound MSE
        are those of the worst such input.

    Notes
    -----
    *Privacy.* v, and with it everything that is computed from v, is (epsilon, delta)-differentially private in exact
    arithmetic when the design does not depend on the data. :meth:`simulate` is for studies: its seeded floating-point
    noise keeps no such promise.
    """

    name: str
    target: Filter
    privacy: Privacy
    model: Model | None
    prefilter: Filter
    receiver: LinearReceiver | Smoother | DecisionFeedback
    ideal_mse: float | None = None
    lower_bound_mse: float | None = None
    mean_square: float | None = None

    def __post_init__(self) -> None:
        _validate.instance("name", self.name, str, "text")

    @functools.cached_property
    def noise_std(self) -> float:
        """Standard deviation of the noise behind the realised prefilter."""
        return self.privacy.noise_std(self.prefilter)

    @property
    def lag(self) -> int | None:
        """Samples by which the estimate is late; None for a smoother."""
        return self.receiver.lag

    @functools.cached_property
    def predicted_mse(self) -> float | None:
        """Exact stationary error of the realised filters on the mechanism's own model, or on its worst input."""
        if self.mean_square is not None:
            return self.worst_case_mse(self.mean_square)
        if self.model is not None:
            return self.predict(self.model)
        # without a model H G = F: no distortion, whatever the input
        grid = _grid(self.target, self.prefilter, *self.receiver.filters())
        h = self.receiver.response(grid.omega)
        return None if h is None else self.noise_std**2 * grid.mean(np.abs(h) ** 2)

    def predict(self, model: Model) -> float | None:
        r"""MSE of this mechanism on another model; None where only simulation tells.

        <P_u |e^{-iωD} F - H G|²> + σ² <|H|²> + (bias of the mean)².
        """
        check_model(model)
        if isinstance(self.receiver, DecisionFeedback):
            return None
        gain = self.target.response(0.0) - self.receiver.response(0.0) * self.prefilter.response(0.0)
        bias = (model.mean - self.receiver.mean) * float(gain.real)
        return linear_mse(self.target, model, self.prefilter, self.noise_std, self.receiver) + bias**2

    def worst_case_mse(self, mean_square: float) -> float | None:
        r"""The largest MSE over all inputs of a mean square; None where only simulation tells.

        mean_square · ‖e^{-iωD} F - H G‖∞² + σ² <|H|²>, rounded up. A sinusoid at the worst frequency comes to it, with
        its power counted about the mean that the receiver assumes.

        Parameters
        ----------
        mean_square : float
            Above 0: the power of u - mean, averaged over time.
        """
        mean_square = _validate.number("mean_square", mean_square, above=0)
        if isinstance(self.receiver, DecisionFeedback):
            return None
        return worst_mse(self.target, mean_square, self.prefilter, self.noise_std, self.receiver)

    @property
    def ideal_rmse(self) -> float | None:
        """Root of `ideal_mse`."""
        return _root(self.ideal_mse)

    @property
    def predicted_rmse(self) -> float | None:
        """Root of `predicted_mse`."""
        return _root(self.predicted_mse)

    def simulate(self, u: ArrayLike, *, seed: Any, n_threads: int | None = None) -> Paths:
        """Run the mechanism on given inputs, with seeded noise: for studies, never for publication.

        Parameters
        ----------
        u : array_like, (..., time)
            Finite numbers; one stream may be 1-D.
        seed : int or numpy.random.Generator
            Stream i (in C order) gets noise that depends on (seed, i) alone.
        n_threads : int, optional
            All processors by default; it does not change the result.

        Returns
        -------
        Paths
            Arrays of the shape of u.

        Notes
        -----
        *Privacy.* None: the noise is reproducible and in floating point.
        """
        x = _validate.array("u", u)
        if x.ndim == 0:
            raise ValueError("u must be an array (..., time), got a number")
        seed = _validate.seed(seed)
        if n_threads is not None:
            n_threads = _validate.integer("n_threads", n_threads, 1)
        streams = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        privatized, estimate = np.empty_like(streams), np.empty_like(streams)
        decisions = np.empty_like(streams) if isinstance(self.receiver, DecisionFeedback) else None

        def task(first: int, count: int, check: Any) -> None:
            check()
            rows = slice(first, first + count)
            privatized[rows] = v = self._privatize(streams[rows], seed, first)
            estimate[rows], decided = self.receiver.estimate(v)
            if decisions is not None:
                decisions[rows] = decided

        threads.for_ranges(task, len(streams), threads.block_size(len(streams), n_threads, chain.BLOCK), n_threads)
        decided = None if decisions is None else decisions.reshape(x.shape)
        return Paths(privatized.reshape(x.shape), estimate.reshape(x.shape), decided, self.lag or 0)

    def _privatize(self, u: Array, seed: int, first: int) -> Array:
        """V from u: nothing else here takes u."""
        noise = np.empty(u.shape)
        chain.Noise(seed, first, len(u)).run(noise)
        return chain.Privatizer(self.link(0), len(u)).privatize(u, noise)

    def link(self, target: int) -> chain.Link:
        """What the Monte Carlo chain runs; `target` is the index of the target there."""
        return chain.Link(target, self.receiver.mean, self.prefilter.factors, self.noise_std, self.receiver.compiled())

    def summary(self) -> str:
        """A few lines for people."""
        g = self.prefilter
        lines = {
            "privacy": f"epsilon {self.privacy.epsilon:.6g}, delta {self.privacy.delta:.3g} "
            f"({self.privacy.calibration} calibration, noise multiplier {self.privacy.noise_multiplier:.6g})",
            "prefilter": f"FIR of {len(g.b)} taps" if g.is_fir else f"{g.order} states",
            "noise std": f"{self.noise_std:.6g}",
            "lag": "smoother (batch only)" if self.lag is None else str(self.lag),
            "ideal RMSE": _shown(self.ideal_rmse) + self._assumption() + self._worst(),
            "predicted RMSE": _shown(self.predicted_rmse) + self._worst(),
        }
        return "\n".join([self.name, *(f"  {key:<15} {value}" for key, value in lines.items())])

    def _assumption(self) -> str:
        return " (assumes error-free decisions)" if isinstance(self.receiver, DecisionFeedback) else ""

    def _worst(self) -> str:
        return "" if self.mean_square is None else f" (worst input of mean square {self.mean_square:g})"

    def __repr__(self) -> str:
        return f"<Mechanism {self.name!r}: predicted RMSE {_shown(self.predicted_rmse)}>"


def linear_mse(
    target: Filter, model: Model, prefilter: Filter, noise_std: float, receiver: LinearReceiver | Smoother
) -> float:
    """<P_u |e^{-iωD} F - H G|²> + σ² <|H|²>, the stationary error where the mean is known."""
    grid = _grid(target, prefilter, *receiver.filters(), model.shaping)
    omega, h = grid.omega, receiver.response(grid.omega)
    wanted = target.response(omega) * np.exp(-1j * (receiver.lag or 0) * omega)
    distortion = model.psd(omega) * np.abs(wanted - h * prefilter.response(omega)) ** 2
    return grid.mean(distortion) + noise_std**2 * grid.mean(np.abs(h) ** 2)


def worst_mse(
    target: Filter, mean_square: float, prefilter: Filter, noise_std: float, receiver: LinearReceiver | Smoother
) -> float:
    """mean_square · ‖e^{-iωD} F - H G‖∞² + σ² <|H|²>, rounded up."""
    filters, lag = (target, prefilter, *receiver.filters()), receiver.lag or 0

    def distortion(omega: Array) -> Array:
        wanted = target.response(omega) * np.exp(-1j * lag * omega)
        return np.asarray(np.abs(wanted - receiver.response(omega) * prefilter.response(omega)))

    uniform = distortion(np.linspace(0, np.pi, fft_points(lag + sum(x.order for x in filters)) // 2 + 1))
    worst = largest_gain(distortion, np.concatenate([x.poles for x in filters]), uniform)
    grid = _grid(*filters)
    return mean_square * worst**2 + noise_std**2 * grid.mean(np.abs(receiver.response(grid.omega)) ** 2)


def _grid(*filters: Filter) -> Grid:
    return graded_grid(np.concatenate([x.poles for x in filters]), degree=sum(len(x.b) for x in filters))


def _root(mse: float | None) -> float | None:
    return None if mse is None else math.sqrt(mse)


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"
