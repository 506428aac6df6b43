"""A designed mechanism: prefilter, noise, receiver; how it runs, and the error that it is predicted to have."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpfast._kernels import compiled_mechanisms, simulation
from dpfast._support import thread_count, validation
from dpfast._support.dataframes import unwrap
from dpfast._support.first_steps import SETTLED, distinct_steps, mean_of_first
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import MAX_HORIZON
from dpfast.mechanisms.base import GuaranteeTerms, Magnitudes, MechanismBase, Option, figure_text
from dpfast.mechanisms.bound import BoundTerms
from dpfast.mechanisms.input_noise import InputLaw, InputNoise, LatticeNoise, ResponseNoise
from dpfast.mechanisms.linear_channel import LinearChannel, undoing_hindrance
from dpfast.mechanisms.receivers.base import LinearMap, Receiver
from dpfast.mechanisms.steady_error import Errors, steady_grid
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.provenance import Provenance
from dpfast.signals.model import Model, check_model

_IDENTITY = Filter([1.0])
_SAME = 1e-6  # of the largest gain: filters that are the same but for rounding


class Paths(NamedTuple):
    """Look at the signals of a simulation, each (..., time) like its input, and of its kind, with its labels.

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


@dataclass(frozen=True, eq=False)
class Mechanism(MechanismBase):
    r"""Study a mechanism that adds white Gaussian noise behind a prefilter, and estimates F u from that alone.

    v = G (u - mean) + n, n white Gaussian of standard deviation κ·Δ₂(G); an estimate of F u from v alone. Made by the
    design functions. Ideal, predicted and simulated errors are three different figures.

    Attributes
    ----------
    name : str
    target : Filter
        F, whose output should be published.
    privacy : Privacy
        The guarantee that is asked for.
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
        The formula of the family, for ideal filters of any order. For the two-step LMMSE of a finite lag it is that of
        the rule that keeps suppressed frequencies slightly open, and a realised G may do better. For decision feedback
        it assumes that all decisions are free of errors, which at strong privacy no receiver comes near.
    predicted_mse : float or None
        The exact stationary error of the realised filters on `model`; None where only simulation tells.
    lower_bound_mse : float or None
        Certified, where the design gives one: for all linear mechanisms of this lag with Gaussian noise; for zero
        forcing, for all of them that do not distort.
    mean_square : float or None
        Bound of the inputs' mean square for which a robust design is made; its ideal, predicted and lower bound MSE
        are those of the worst such input.
    options : tuple of (name, value)
        What else the design was given, such as the lag and the tolerance; a value that is no number or word is "given".
    declared : tuple of (name, source)
        What a person said of the inputs, by :meth:`with_sources`.
    noise : InputNoise or None
        Noise of another kind than Gaussian, on the inputs themselves: then G = 1.

    Notes
    -----
    *Privacy.* v, and with it everything that is computed from v, is (epsilon, delta)-differentially private in exact
    arithmetic when the design does not depend on the data: `sources` says where each input comes from.
    :meth:`simulate` is for studies: its seeded floating-point noise keeps no such promise.
    """

    of_filters: ClassVar[bool] = True
    name: str
    target: Filter
    privacy: Privacy
    model: Model | None
    prefilter: Filter
    receiver: Receiver
    ideal_mse: float | None = None
    lower_bound_mse: float | None = None
    mean_square: float | None = None
    options: tuple[tuple[str, Option], ...] = ()
    declared: tuple[tuple[str, Provenance], ...] = ()
    noise: InputNoise | None = None

    def __post_init__(self) -> None:
        if self.noise is not None and self.prefilter != _IDENTITY:
            raise ValueError(
                f"prefilter must be 1 with {self.noise.kind} noise, which is on the inputs, got {self.prefilter}"
            )
        super().__post_init__()

    @functools.cached_property
    def _law(self) -> InputLaw | None:
        """The law of noise on the inputs, as the privacy makes it; None for Gaussian noise."""
        return None if self.noise is None else self.noise.law(self.privacy)

    @functools.cached_property
    def noise_std(self) -> float:
        """The standard deviation of the noise behind the realised prefilter."""
        if self._law is not None:
            return self._law.std
        return self.privacy.noise_std(self.prefilter)

    @property
    def lag(self) -> int | None:
        """The samples by which the estimate is late; None for a smoother."""
        return self.receiver.lag

    @property
    def horizon(self) -> None:
        """It is None, as it runs without an end; a :class:`MatrixMechanism` has so many steps."""

    def settling_time(self, amplitude: float) -> int:
        """Count the samples until the slowest of target, prefilter and receiver has decayed to an amplitude."""
        filters = self.target, self.prefilter, *self.receiver.filters()
        return max(max(len(f.factors[0]), f.settling_time(amplitude)) for f in filters)

    def release_hindrance(self) -> str:
        """Say why the exact path cannot run it, and what to do instead; nothing where it can."""
        is_undone = self.model is None and self.mean_square is None
        undoing = undoing_hindrance(self.target, self.prefilter) if is_undone else ""
        return undoing if self.noise is None else self.noise.release_hindrance

    @property
    def full_name(self) -> str:
        """Name its kind and itself, for messages, and its noise where that is not Gaussian."""
        return super().full_name + ("" if self._law is None else f" with {self._law.name}")

    def sizes(self) -> tuple[str, str]:
        """Say how large prefilter and receiver are."""
        return self.prefilter.size_text(), self.receiver.size_text()

    def magnitudes(self, omega: Array) -> Magnitudes:
        """Return |G| for G of unit norm, and |H| with the gain that this takes away, over frequency."""
        norm, h = self.prefilter.h2_norm(), self.receiver.response(omega)
        return Magnitudes(np.abs(self.prefilter.response(omega)) / norm, None if h is None else np.abs(h) * norm)

    @property
    def has_gaussian_bound(self) -> bool:
        """Tell whether lower bounds for linear mechanisms with Gaussian noise hold for it."""
        return self.noise is None and self.receiver.as_linear() is not None

    def bound_terms(self) -> BoundTerms:
        """Say what is particular to filters for bounds of errors: what receiver and noise are like."""
        linear = self.receiver.as_linear() is not None
        additive = linear and (self.noise is None or self.noise.levels is None)
        undistorted = additive and self.mean_square is None and self.predicted_distortion_mse == 0.0
        return BoundTerms(self.lag, additive, linear, undistorted, self.noise is None)

    def guarantee_terms(self) -> GuaranteeTerms:
        """Say what is particular to the guarantee of filters, which is nothing; the description asks for it."""
        if self._law is not None:
            law = self._law
            chance = law.chance if isinstance(law, ResponseNoise) else ""
            return GuaranteeTerms("streams", law.name, law.delta and self.privacy.delta, law.condition, chance)
        return GuaranteeTerms("streams", "noise", self.privacy.delta)

    @property
    def predicted_mse(self) -> float | None:
        """The exact stationary error of the realised filters on the mechanism's own model, or on its worst input."""
        return None if self._predicted is None else sum(self._predicted)

    @property
    def predicted_noise_mse(self) -> float | None:
        """The part σ²<|H|²> of `predicted_mse`, of the noise."""
        return None if self._predicted is None else self._predicted.noise

    @property
    def predicted_distortion_mse(self) -> float | None:
        """The part <P_u |e^{-iωD} F - H G|²> + (bias of the mean)² of `predicted_mse`, which is there without noise."""
        return None if self._predicted is None else self._predicted.distortion

    @functools.cached_property
    def _predicted(self) -> Errors | None:
        if self.mean_square is not None:
            return self._worst_errors(self.mean_square)
        if self.model is not None:
            return self._errors(self.model)
        # Without a model the error is known where H G = F: no distortion, whatever the input
        grid = steady_grid(self.target, self.prefilter, *self.receiver.filters())
        h, wanted = self.receiver.response(grid.omega), self.target.response(grid.omega)
        if h is None or np.abs(wanted - h * self.prefilter.response(grid.omega)).max() > _SAME * np.abs(wanted).max():
            return None
        return Errors(self.noise_std**2 * grid.mean(np.abs(h) ** 2), 0.0)

    def predict(self, model: Model) -> float | None:
        r"""Return the MSE of this mechanism on another model; None where only simulation tells.

        It is <P_u |e^{-iωD} F - H G|²> + σ² <|H|²> + (bias of the mean)². Randomised response has none on models
        without its two levels, or with others, which it takes for them.
        """
        check_model(model)
        errors = self._errors(model) if self._is_linear_on(model) else None
        return None if errors is None else sum(errors)

    def _is_linear_on(self, model: Model) -> bool:
        return self.noise is None or self.noise.is_white_on(model)

    def _errors(self, model: Model) -> Errors | None:
        return self.receiver.predicted_errors(self.target, self.prefilter, self._noise_std_on(model), model)

    def _noise_std_on(self, model: Model | None) -> float:
        """Return the standard deviation of the noise, with what rounding adds to inputs of a model."""
        return self.noise_std if model is None or not isinstance(self._law, LatticeNoise) else self._law.std_on(model)

    def step_mse(self, n: int, model: Model | None = None) -> Array | None:
        r"""Return the MSE E|ŷ_t - y_t|² of each of the first n steps; None where only simulation tells.

        The filters start at rest, and the input is stationary from the first step on: what a study without a burn-in
        simulates. ŷ_t is the estimate that comes at t + lag. It tends to :meth:`predict`.

        Parameters
        ----------
        n : int
            Steps, at least 1.
        model : Model, optional
            Of the input; by default the one of the design. Without one the error is known where there is no distortion.

        Returns
        -------
        array, (n,), or None

        Examples
        --------
        >>> from dpfast import input_perturbation
        >>> input_perturbation(Filter([1, 2]), Privacy.from_gdp(1, 1e-6)).step_mse(3).round(6)
        array([1., 5., 5.])
        """
        n = validation.integer("n", n, 1, MAX_HORIZON)
        if model is not None:
            check_model(model)
            if not self._is_linear_on(model):
                return None
        model = self.model if model is None else model
        if model is None and self.predicted_distortion_mse != 0.0:
            return None
        return self.receiver.step_errors(self.target, self.prefilter, self._noise_std_on(model), model, n)

    def predict_first(self, n: int, model: Model) -> float | None:
        """Return the mean of :meth:`step_mse` over the first n steps, which a study of these is compared with."""
        settled = 2 * self.settling_time(SETTLED) + (self.lag or 0)  # G and H behind one another
        steps = self.step_mse(distinct_steps(n, settled), model)
        return None if steps is None else mean_of_first(steps, n)

    def worst_case_mse(self, mean_square: float) -> float | None:
        r"""Return the largest MSE over all inputs of a mean square; None where only simulation tells.

        It is mean_square · ‖e^{-iωD} F - H G‖∞² + σ² <|H|²>, rounded up. A sinusoid at the worst frequency comes to it,
        with its power counted about the mean that the receiver assumes. Noise that takes inputs for others, which it
        rounds, or which randomised response tells apart, has none.

        Parameters
        ----------
        mean_square : float
            Above 0: the power of u - mean, averaged over time.
        """
        errors = self._worst_errors(validation.number("mean_square", mean_square, above=0))
        if self.noise is not None and not self.noise.is_white_on_all:
            return None
        return None if errors is None else sum(errors)

    def _worst_errors(self, mean_square: float) -> Errors | None:
        return self.receiver.worst_errors(self.target, self.prefilter, self.noise_std, mean_square)

    def simulate(self, u: ArrayLike, *, seed: Any, n_threads: int | None = None) -> Paths:
        """Run the mechanism on given inputs, with seeded noise: for studies, never for publication.

        Parameters
        ----------
        u : array_like, (..., time), or Series, DataFrame or DataArray
            Finite numbers; one stream may be 1-D. Rows of a pandas DataFrame are times and columns streams; an xarray
            DataArray has a dimension "time". Times must be equally spaced.
        seed : int or numpy.random.Generator
            Stream i (in C order) gets noise that depends on (seed, i) alone.
        n_threads : int, optional
            At most so many, the caller's included; they do not change the result. By default as many as the environment
            variable ``DPFAST_NUM_THREADS`` says, or else one for every processor that the process may use.

        Returns
        -------
        Paths
            Of the shape of u, and of its kind, with its labels: the estimate at the label of t is of t - lag.

        Notes
        -----
        *Privacy.* None: the noise is reproducible and in floating point.
        """
        values, wrap = unwrap("u", u)
        x = validation.samples("u", values)
        seed, n_threads = validation.seed(seed), thread_count.n_threads(n_threads)
        streams = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
        parts = [wrap(part.reshape(x.shape)) for part in simulation.simulate(self.compiled(), streams, seed, n_threads)]
        return Paths(parts[0], parts[1], parts[2] if len(parts) > 2 else None, self.lag or 0)

    def compiled(self) -> compiled_mechanisms.CompiledChain:
        """Return the compiled form, which studies run."""
        if self._law is not None:
            return self._law.compile(self.receiver.mean, self.receiver.compiled())
        return compiled_mechanisms.CompiledMechanism(
            self.receiver.mean, self.prefilter.factors, self.noise_std, self.receiver.compiled()
        )

    # --- for adapt: another receiver may run behind it --------------------------------------------

    def linear_channel(self) -> LinearChannel | None:
        """Return what v goes through and the linear receiver behind it; None where the receiver is not linear."""
        receiver = self.receiver.as_linear()
        if receiver is None:
            return None
        return LinearChannel(self.name, self.target, self.model, self.prefilter, self.noise_std, receiver)

    def receiver_input(self, v: Array) -> Array:
        """Return G (u - mean) + n of v (streams, time), as :meth:`simulate` gives it: v itself."""
        return np.asarray(v, dtype=np.float64)

    def adapted_to(self, model: Model, receiver: LinearMap, **sources: Provenance) -> Mechanism:
        """Return the same prefilter and noise with a receiver that was designed for another model.

        Parameters
        ----------
        model : Model
            The one that was fitted to what was published.
        receiver : LinearReceiver or Smoother
            Designed for the model, this prefilter and this noise.
        **sources : {"public", "assumed", "fitted-from-private"}
            As of :meth:`with_sources`.
        """
        adapted = replace(self, name=f"{self.name}, adapted", model=model, receiver=receiver, mean_square=None)
        return replace(adapted, ideal_mse=None, lower_bound_mse=None).with_sources(**sources)

    def _promise_text(self) -> str:
        if self._law is None:
            return super()._promise_text()
        return f"epsilon {self.privacy.epsilon:.6g}, delta {self.guarantee_terms().delta:.3g} ({self._law.name})"

    def _facts(self) -> dict[str, str]:
        found = {
            "prefilter": self.prefilter.size_text(),
            "noise std": f"{self.noise_std:.6g}",
            "lag": "smoother (batch only)" if self.lag is None else str(self.lag),
            "ideal RMSE": figure_text(self.ideal_rmse) + self._assumption() + self._worst(),
            "predicted RMSE": figure_text(self.predicted_rmse) + self._loss() + self._worst(),
        }
        if self.lower_bound_mse and self.ideal_mse:
            gap = self.ideal_mse / self.lower_bound_mse - 1
            found["lower bound"] = f"{math.sqrt(self.lower_bound_mse):.6g} (the ideal MSE is {gap:.1g} above)"
        return found

    def _loss(self) -> str:
        """Say what the realisation of the filters costs."""
        if self.predicted_mse is None or not self.ideal_mse:
            return ""
        loss = round(self.predicted_mse / self.ideal_mse - 1, 4) + 0.0  # no negative zero
        return f" (MSE {loss:+.2%} from the ideal)"

    def _assumption(self) -> str:
        return f" (assumes {self.receiver.assumption})" if self.receiver.assumption else ""

    def _worst(self) -> str:
        return "" if self.mean_square is None else f" (worst input of mean square {self.mean_square:g})"

    def __repr__(self) -> str:
        return f"<Mechanism {self.name!r}: predicted RMSE {figure_text(self.predicted_rmse)}>"
