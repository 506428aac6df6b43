"""Publish randomised response to a chain of two levels, with the posterior mean behind it, which no receiver beats."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from dpfast._kernels import compiled_mechanisms
from dpfast._kernels.compiled_receivers import CompiledPosterior
from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.filters.toeplitz import MAX_HORIZON
from dpfast.mechanisms.base import Magnitudes
from dpfast.mechanisms.bound import BoundTerms
from dpfast.mechanisms.chain_law import ChainLaw, chain_of, is_same_law
from dpfast.mechanisms.input_noise import ResponseNoise
from dpfast.mechanisms.mechanism import Mechanism
from dpfast.mechanisms.posterior_tables import TableMaker, response_posterior
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.privacy.randomized_response import RandomizedResponse
from dpfast.signals.model import Model, check_model

_SETTLED = 1e-3  # amplitude of what is left of a start: 1e-6 of an MSE
_SAME = 1e-12  # of what is told: a difference that rounding may take for none


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorResponseMechanism(Mechanism):
    r"""Publish randomised response, with the posterior mean ŷ_t = E[y_{t-D} | v] of a chain instead of a Wiener filter.

    Made by :func:`dpfast.randomized_response` with ``receiver="bayes"``. It has no prediction, only simulation tells
    its error; that of the linear receiver of the same lag, `linear_mse`, is never less where the model holds.
    Attributes are those of :class:`Mechanism`; ``receiver`` is the linear one, with which studies compare it.

    Notes
    -----
    *Privacy.* That of the response, whatever is computed from it.
    """

    @property
    def exact_kind(self) -> str:
        """Name the kind of the exact form that a release runs."""
        return "randomised response, posterior mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        chain_of(self.model)
        validation.instance("receiver", self.receiver, LinearReceiver, "a LinearReceiver")
        if not isinstance(self._law, ResponseNoise) or self.model is None or not self._is_linear_on(self.model):
            raise ValueError(
                "noise must be randomised response to the levels of the model behind a posterior mean: make it by "
                "randomized_response"
            )

    @property
    def predicted_mse(self) -> None:
        """It is None, as only simulation tells; `linear_mse` is a bound of it from above."""

    @property
    def predicted_noise_mse(self) -> None:
        """It is None, as only simulation tells."""

    @property
    def predicted_distortion_mse(self) -> None:
        """It is None, as only simulation tells."""

    @property
    def linear_mse(self) -> float:
        """The exact MSE of the linear receiver on the model of the design."""
        assert self._predicted is not None  # of a linear receiver it is known
        return sum(self._predicted)

    @property
    def has_gaussian_bound(self) -> bool:
        """It is False, as its noise is not Gaussian."""
        return False

    def predict(self, model: Model) -> None:
        """Return None, as only simulation tells."""
        check_model(model)

    def step_mse(self, n: int, model: Model | None = None) -> None:
        """Return None, as only simulation tells."""

    def worst_case_mse(self, mean_square: float) -> None:
        """Return None, as there is none of a response, which takes inputs for the nearer level."""

    def linear_channel(self) -> None:
        """Return None, as no linear receiver runs."""

    def magnitudes(self, omega: Array) -> Magnitudes:
        """Return |G|, and no |H|, over frequency."""
        return super().magnitudes(omega)._replace(receiver=None)

    def bound_terms(self) -> BoundTerms:
        """Say what is particular to a posterior mean for bounds of errors: it is not linear."""
        return BoundTerms(self.lag)

    def control_mse(self, model: Model, burn_in: int, n: int) -> float | None:
        """Return the exact MSE of the linear receiver over n steps behind a burn-in; None on another model."""
        if not is_same_law(model, self.model):
            return None
        if burn_in >= self.settling_time(_SETTLED):
            return self.linear_mse
        if burn_in + n > MAX_HORIZON:
            return None
        steps = super().step_mse(burn_in + n, model)
        return None if steps is None else float(steps[burn_in:].mean())

    @functools.cached_property
    def _posterior(self) -> CompiledPosterior:
        """The posterior mean that runs, as privacy and model make it."""
        assert isinstance(self._law, ResponseNoise)
        response = self._law.response
        outcomes, boundaries = response_outcomes(response)
        middle = (response.low + response.high) / 2 - self.receiver.mean
        return self.receiver_behind(outcomes, boundaries + middle, None)

    def receiver_behind(self, outcomes: Array, boundaries: Array, n_steps: int | None) -> CompiledPosterior:
        """Return the posterior mean behind other responses, of which none tells anything beyond so many steps.

        Parameters
        ----------
        outcomes : array, (outcomes, 2)
            P(outcome | level) of the lower and the upper level, by the size of what is published.
        boundaries : array, (outcomes - 1,)
            Between what is published.
        n_steps : int, optional
        """
        assert isinstance(self._law, ResponseNoise)
        response, lag, linear = self._law.response, self.receiver.lag, self.receiver.compiled()
        law = ChainLaw.of(chain_of(self.model))
        maker = TableMaker(law, self.receiver.mean, response.low, response.span, self.target.factors)
        assert lag is not None  # of a linear receiver
        return CompiledPosterior(response_posterior(maker, outcomes, boundaries, lag, n_steps), linear)

    def compiled(self) -> compiled_mechanisms.CompiledChain:
        """Return the compiled form, which studies run."""
        assert self._law is not None
        return self._law.compile(self.receiver.mean, self._posterior)

    def sizes(self) -> tuple[str, str]:
        """Say how large prefilter and receiver are."""
        return self.prefilter.size_text(), self._receiver_text()

    def _receiver_text(self) -> str:
        return f"posterior mean, {self._posterior.posterior.table.rows.size} numbers"

    def _facts(self) -> dict[str, str]:
        limit = f"- (only simulation tells; at most {math.sqrt(self.linear_mse):.6g}, that of the linear receiver)"
        return {**super()._facts(), "receiver": self._receiver_text(), "predicted RMSE": limit}


def response_outcomes(response: RandomizedResponse) -> tuple[Array, Array]:
    """Return P(outcome | level) (outcomes, levels), by the size of what is published, and the boundaries between.

    The middle of the levels is zero. At an ε so large that what is told by chance is, to rounding, as large as what is
    told for certain, all is taken for told by chance, which is as certain but for e^{-ε}.
    """
    lie = math.exp(-response.epsilon) / (1 + math.exp(-response.epsilon))
    delta, told = response.delta, response.span / (2 * response.shown)
    boundary = told * (1 + response.trust) / 2 if 1 - response.trust > _SAME else 2 * told  # which no value is above
    low = [delta, (1 - delta) * (1 - lie), (1 - delta) * lie, 0.0]
    return np.column_stack([low, low[::-1]]), np.array([-boundary, 0.0, boundary])
