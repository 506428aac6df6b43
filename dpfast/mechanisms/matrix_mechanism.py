"""Matrix mechanisms: a strategy, noise and a reconstruction over a horizon, as the literature on counters has them."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from dpfast._support import validation
from dpfast._support.dataframes import unwrap
from dpfast._support.errors import DesignError
from dpfast._support.safe_rounding import round_up
from dpfast._support.validation import Array
from dpfast.filters.toeplitz import Toeplitz, multiply_symmetric
from dpfast.mechanisms.base import GuaranteeTerms, MechanismBase, Option, figure_text
from dpfast.mechanisms.block_noise import BlockLaw
from dpfast.mechanisms.bound import BoundTerms
from dpfast.mechanisms.compiled_matrix_mechanism import GROUP, CompiledMatrixMechanism
from dpfast.mechanisms.horizon_terms import NO_RELEASE_OVER_HORIZON, terms_over_horizon
from dpfast.mechanisms.lags import Lag, check_lag
from dpfast.mechanisms.least_squares import lmmse_receiver
from dpfast.mechanisms.matrix_bound_terms import matrix_bound_terms
from dpfast.mechanisms.mechanism import Paths
from dpfast.mechanisms.noise_covariance import NESTED, NoiseCovariance, check_groups, compile_law, law_on_steps
from dpfast.mechanisms.operators.convolution import Convolution
from dpfast.mechanisms.operators.dense import Dense
from dpfast.mechanisms.operators.factorization_checks import check_shapes, check_unbiased, check_whole
from dpfast.mechanisms.operators.operator_protocol import NotLinearError, Operator, own_operator
from dpfast.mechanisms.rounding import warn_of_rounding
from dpfast.mechanisms.strategy_sensitivity import strategy_sensitivity
from dpfast.privacy.integer_noise.law import IntegerKind
from dpfast.privacy.lattice import Lattice, find_lattice
from dpfast.privacy.privacy import Privacy, check_privacy
from dpfast.privacy.provenance import Provenance
from dpfast.signals.model import Model, autocovariance, check_model

Noise = Literal["gaussian", "laplace"]
OnInput = Noise | IntegerKind | Literal["nested"]  # noise on the inputs themselves may also be on the integers
LONGEST_DENSE = 4096  # steps


@dataclass(frozen=True, eq=False)
class MatrixMechanism(MechanismBase):
    r"""Study a mechanism that adds noise to a linear map of a series of a given length, and estimates from that alone.

    v = C (u - centre) + n; ŷ = B v + A centre; n independent, of one scale. A is the target's lower-triangular Toeplitz
    matrix, C the strategy, B the reconstruction (elsewhere prefilter and receiver). Designs for a horizon make it.

    Attributes
    ----------
    name : str
    target : Toeplitz
        A.
    privacy : Privacy
    strategy : Operator
        C, the only part that sees u; kept, as B is, with read-only arrays of its own.
    reconstruction : Operator
        B; computed from v alone.
    noise : {"gaussian", "laplace", "geometric", "canonical", "staircase", "nested"}
        Laplace: pure ε; δ is not used. The last four are on the integers: geometric noise, which is pure ε too, for a
        strategy of integers, and the others for C = 1 alone. "nested" is not independent, see `groups`.
    model : Model or None
        The signal that it was designed for; None where none is needed.
    centre : float
        Mean that the receiver assumes.
    lag : int or None
        The estimate of y_t uses v up to t + lag; None: all of it.
    unbiased : bool
        Whether B C = A, so that the error is noise alone, whatever the input. Tried on one input.
    ideal_mse : float or None
        Mean over the horizon by the closed formula of the source, where there is one.
    lower_bound_mse : float or None
        Certified, where the design gives one; of its kind of mechanisms, and counting one event of a person only.
    options : tuple of (name, value)
        What else the design was given.
    declared : tuple of (name, source)
        What a person said of the inputs, by :meth:`with_sources`.
    unit : float or None
        With noise on the integers and C = 1, the unit whose multiples real inputs are rounded to; None for counts.
    groups, slacks : tuple of int
        For nested noise, the branches of its tree from the steps up, and how much may cancel in a node of each level.

    Notes
    -----
    *Privacy.* Two streams that differ by at most max_events events of a person, at least min_separation steps apart,
    each at most max_change, give v with (epsilon, delta)-indistinguishable distributions in exact arithmetic, and so
    does everything that is computed from v; with Laplace or geometric noise δ = 0. The noise comes from the sensitivity
    of the strategy, see :attr:`sensitivity`. Inputs may react to rows of v that are published before they come: given
    these, an event changes the log-density of each further row by its entry of the column over the scale at most, and
    these entries add up to no more than the norm of the column (for Gaussian noise: Denisov, McMahan, Rush, Smith and
    Thakurta 2022; nested noise costs no more for a change of one row, whatever the others are). A dense strategy is for
    a batch: nothing is published before the last input is there. (A theorem would allow more for the unbiased reading,
    at pure ε, of which the package makes no use: docs/explanation/beyond-blocks.md.) Nothing holds beyond the horizon:
    a stream that is started anew is published by another mechanism, and a person who is in both pays twice.
    :meth:`simulate` is for studies.

    Examples
    --------
    >>> import dpfast as dp
    >>> mechanism = dp.square_root(dp.running_sum(1024), dp.Privacy.from_gdp(1, 1e-6))
    >>> round(mechanism.predicted_rmse, 4), round(math.sqrt(mechanism.max_mse), 4)
    (3.1098, 3.2726)
    """

    name: str
    target: Toeplitz
    privacy: Privacy
    strategy: Operator
    reconstruction: Operator
    noise: OnInput = "gaussian"
    model: Model | None = None
    centre: float = 0.0
    lag: int | None = 0
    unbiased: bool = True
    ideal_mse: float | None = None
    lower_bound_mse: float | None = None
    options: tuple[tuple[str, Option], ...] = ()
    declared: tuple[tuple[str, Provenance], ...] = ()
    unit: float | None = None
    groups: tuple[int, ...] = ()
    slacks: tuple[int, ...] = ()
    mean_square: ClassVar[None] = None  # no design over a horizon is made for the worst input

    def __post_init__(self) -> None:
        validation.instance("target", self.target, Toeplitz, "a Toeplitz target")
        check_privacy(self.privacy)
        validation.choice("noise", self.noise, (*get_args(Noise), *get_args(IntegerKind), NESTED))
        if self.model is not None:
            check_model(self.model)
        super().__post_init__()
        object.__setattr__(self, "centre", validation.number("centre", self.centre))
        object.__setattr__(self, "lag", check_lag(self.lag))
        for part in ("strategy", "reconstruction"):
            object.__setattr__(self, part, own_operator(part, getattr(self, part)))
        check_groups(self.noise, self.groups, self.slacks)
        check_shapes(self.strategy, self.reconstruction, self.horizon)
        if self.unbiased:
            check_unbiased(self.strategy, self.reconstruction, self.target)
        if self.lattice is not None:
            check_whole(self.strategy, self.noise, self.unit)
        if self.noise == "gaussian":
            _ = self.privacy.noise_multiplier  # an error here, and not when it is first used, where there is no delta

    def __reduce__(self) -> tuple[Any, ...]:
        # It is made anew: arrays that come out of a pickle can be written to, and a kept noise would not follow
        state = {} if self.choice is None else {"_choice": self.choice}
        return MatrixMechanism, tuple(getattr(self, x.name) for x in fields(self)), state

    @functools.cached_property
    def lattice(self) -> Lattice | None:
        """The unit that inputs are multiples of, or are rounded to, with noise on the integers."""
        return None if self.noise in get_args(Noise) else find_lattice(self.privacy, None, self.unit)

    @property
    def horizon(self) -> int:
        """n, the number of steps."""
        return self.target.horizon

    def settling_time(self, amplitude: float) -> int:
        """Return zero, as a study need not wait until anything settles: the first step counts."""
        return 0

    def sizes(self) -> tuple[str, str]:
        """Say how large strategy and reconstruction are."""
        rows, columns = self.strategy.shape
        return f"{rows} rows", f"{columns} steps"

    def release_hindrance(self) -> str:
        """Say why the exact path cannot run it, and what to do instead."""
        return NO_RELEASE_OVER_HORIZON

    @property
    def full_name(self) -> str:
        """Name its kind and itself, for messages, with its horizon."""
        return f"{super().full_name} over a horizon of {self.horizon} steps"

    def guarantee_terms(self) -> GuaranteeTerms:
        """Say what is particular to the guarantee over a horizon, which ends with it; the description asks for it."""
        condition = "" if self.lattice is None else self.lattice.condition
        delta = self.privacy.delta if self.noise in ("gaussian", "canonical") else 0.0
        return terms_over_horizon(self.horizon, self.noise, delta, condition, online=self.lag is not None)

    @functools.cached_property
    def sensitivity(self) -> float:
        r"""The sensitivity of the strategy: ℓ₁ for Laplace and geometric noise, ℓ₂ for others.

        One event: d·(largest norm of a column). Several: with γ(τ) the largest \|⟨C_s, C_t⟩\| at distances ≥ τ,
        Δ₂² ≤ d² min{m γ(0) + 2 Σ_{l<m} (m - l) γ(l b), m² γ(0)}, of as many events as fit into the horizon; exactly
        d²‖C_0 + C_b + ... + C_{(m-1)b}‖² for a Toeplitz strategy of coefficients that are not negative and never grow
        (Kalinin and Lampert 2024, Theorem 2). Δ₁ ≤ d m (largest ℓ₁ norm of a column).
        """
        return strategy_sensitivity(self.strategy, self.privacy, l1=self.noise in ("laplace", "geometric", NESTED))

    @functools.cached_property
    def noise_scale(self) -> float:
        """The factor of unit noise: σ = κ Δ₂, or Δ₁/ε, or the unit."""
        if self.lattice is not None:
            return self.lattice.unit
        if self.noise == "laplace":
            return round_up(self.sensitivity / self.privacy.epsilon)
        return self.privacy.noise_multiplier * self.sensitivity

    @property
    def noise_std(self) -> float:
        """The standard deviation of a component of n, of rounding to multiples of a unit too."""
        if self.lattice is None:
            return self.compiled().noise_std
        return math.sqrt(self.lattice.unit**2 * self._integer_law.variance + self.lattice.rounding_variance)

    def _noise_on(self, model: Model | None) -> NoiseCovariance:
        """Return the covariance of n, with what rounding adds to inputs of a model."""
        if self.lattice is None or (model is None and not self.groups):
            return NoiseCovariance(self.noise_std**2)
        return NoiseCovariance.of_law(self._integer_law, self.groups, self.lattice, model)

    def with_receiver(self, model: Model, *, lag: Lag = 0, name: str | None = None) -> MatrixMechanism:
        r"""Return the same strategy and noise, with the linear receiver of the least mean square error behind them.

        Parameters
        ----------
        model : Model
            Mean and spectrum of u; the guarantee does not depend on their being right, the error does.
        lag : int or "smoother"
            The estimate of y_t uses what is published up to t + lag; the smoother, which None is too, all of it.
        name : str, optional
            How tables and pictures call it.

        Notes
        -----
        *Privacy.* As before: the receiver sees v alone.

        Raises
        ------
        DesignError
            For a horizon of more than 4096 steps, as the matrices are dense.
        """
        check_model(model)
        delay = check_lag(lag)
        if (n := self.horizon) > LONGEST_DENSE:
            raise DesignError(f"horizon must be at most {LONGEST_DENSE} for a dense receiver, got {n}: shorten it")
        noise = self._noise_on(model).matrix(self.strategy.shape[0])
        receiver = lmmse_receiver(self.strategy.matrix(), self.target, model, noise, delay)
        return replace(
            self,
            name=f"{self.name}, LMMSE {'smoother' if delay is None else f'lag {delay}'}" if name is None else name,
            reconstruction=Dense(validation.freeze(receiver)),
            model=model,
            centre=model.mean,
            lag=delay,
            unbiased=False,
            ideal_mse=None,
            lower_bound_mse=None,
            options=tuple((dict(self.options) | {"lag": delay}).items()),
        )

    # --- errors -----------------------------------------------------------------------------------

    def step_mse(self, model: Model | None = None) -> Array | None:
        r"""Return the MSE E|ŷ_t - y_t|² of every step (n,); None where only a simulation tells.

        It is (B Σ Bᵀ)_tt + (E R Eᵀ)_tt + ((E 1)_t (mean - centre))², with E = B C - A and Σ the covariance of n.

        Parameters
        ----------
        model : Model, optional
            Of the input, stationary from step 0; by default the one of the design. It makes no difference where the
            mechanism is unbiased.
        """
        if model is not None:
            check_model(model)
            warn_of_rounding(self.lattice, model)
        model = self.model if model is None else model
        try:
            noise = self._noise_on(model).errors(self.reconstruction)
        except NotLinearError:
            return None
        if self.unbiased:
            return noise
        if model is None:
            return None
        residual = self._residual
        spread = np.einsum("ij,ij->i", multiply_symmetric(residual, autocovariance(model, self.horizon)), residual)
        return np.asarray(noise + spread + (residual.sum(axis=1) * (model.mean - self.centre)) ** 2)

    def bound_terms(self) -> BoundTerms:
        """Say what is particular to matrices for bounds of errors."""
        parts, gaussian = (self.strategy, self.reconstruction, self.lag), self.noise == "gaussian"
        return matrix_bound_terms(*parts, unbiased=self.unbiased, gaussian=gaussian)

    @functools.cached_property
    def _residual(self) -> Array:
        made = self.reconstruction.matrix() @ self.strategy.matrix()
        return validation.freeze(made - Convolution(self.target.coefficients).matrix())

    @functools.cached_property
    def predicted_mse(self) -> float | None:
        """Mean of :meth:`step_mse` over the horizon, what a study simulates; None where only a simulation tells."""
        steps = self.step_mse()
        return None if steps is None else float(steps.mean())

    @property
    def max_mse(self) -> float | None:
        """The largest of :meth:`step_mse`."""
        steps = self.step_mse()
        return None if steps is None else float(steps.max())

    @property
    def worst_step_mse(self) -> float | None:
        """The same as `max_mse`, by the name that it has for all mechanisms."""
        return self.max_mse

    def predict(self, model: Model) -> float | None:
        """Return the mean of :meth:`step_mse` on another model."""
        steps = self.step_mse(model)
        return None if steps is None else float(steps.mean())

    def predict_first(self, n: int, model: Model) -> float | None:
        """Return :meth:`predict`, as a study simulates the whole horizon and is compared with its mean."""
        return self.predict(model)

    # --- simulation -------------------------------------------------------------------------------

    def simulate(self, u: ArrayLike, *, seed: Any) -> Paths:
        """Run the mechanism on given inputs, with seeded noise: for studies, never for publication.

        Parameters
        ----------
        u : array_like, (..., n), or Series, DataFrame or DataArray
            Finite numbers, as many steps as the horizon has. Rows of a pandas DataFrame are times and columns streams;
            an xarray DataArray has a dimension "time". Times must be equally spaced.
        seed : int or numpy.random.Generator
            Stream i (in C order) gets noise that depends on (seed, i) alone.

        Returns
        -------
        Paths
            ``privatized`` (..., rows of the strategy); ``estimate`` (..., n), of the target's output at the same step:
            it can be published `lag` steps later. Of the kind of u, with its labels; ``privatized`` is an array.

        Notes
        -----
        *Privacy.* None: the noise is reproducible and in floating point.
        """
        values, wrap = unwrap("u", u)
        x = self.target.checked(values)
        compiled, seed = self.compiled(), validation.seed(seed)
        streams = x.reshape(math.prod(x.shape[:-1]), self.horizon)
        v, estimate = np.empty((len(streams), self.strategy.shape[0])), np.empty(streams.shape)
        for first in range(0, len(streams), GROUP):
            here = slice(first, min(first + GROUP, len(streams)))
            group = np.zeros((GROUP, self.horizon))
            group[: here.stop - first] = streams[here]
            found = compiled.run(group, seed, first)
            v[here], estimate[here] = (part[: here.stop - first] for part in found)
        return Paths(v.reshape(*x.shape[:-1], v.shape[1]), wrap(estimate.reshape(x.shape)), None, 0)

    def compiled(self) -> CompiledMatrixMechanism:
        """Return the compiled form, which studies run."""
        return CompiledMatrixMechanism(
            target=self.target.coefficients,
            centre=self.centre,
            strategy=self.strategy,
            noise=self.noise if self.lattice is None else compile_law(self._integer_law),
            scale=self.noise_scale,
            reconstruction=self.reconstruction,
            rounding=self.lattice.unit if self.lattice is not None and self.lattice.rounds else 0.0,
        )

    @functools.cached_property
    def _integer_law(self) -> BlockLaw:
        """The law of noise on the integers, for so many steps as an event changes all rows together."""
        assert self.lattice is not None
        steps = self.lattice.steps * round(self.strategy.largest_l1())
        return law_on_steps(self.noise, self.privacy, steps, self.groups, self.slacks)

    def _promise_text(self) -> str:
        if self.noise == "gaussian":
            return super()._promise_text()
        terms = self.guarantee_terms()
        return f"epsilon {self.privacy.epsilon:.6g}, delta {terms.delta:.3g} ({terms.noise})"

    def _facts(self) -> dict[str, str]:
        rows, columns = self.strategy.shape
        return {
            "strategy": f"{rows} rows over a horizon of {columns} steps",
            "noise": f"{self.noise}, standard deviation {self.noise_std:.6g}",
            "lag": "all of the horizon is needed" if self.lag is None else str(self.lag),
            "ideal RMSE": figure_text(self.ideal_rmse),
            "predicted RMSE": f"{figure_text(self.predicted_rmse)} (mean over the horizon)",
        }

    def __repr__(self) -> str:
        return (
            f"<MatrixMechanism {self.name!r}: {self.horizon} steps, predicted RMSE {figure_text(self.predicted_rmse)}>"
        )
