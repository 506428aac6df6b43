"""Publish block sums of a chain of levels, with the posterior mean behind them, which no receiver beats."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from dpfast._kernels.compiled_receivers import CompiledBlockReceiver, CompiledPosterior
from dpfast._kernels.factors import Factors
from dpfast._kernels.posterior import PosteriorFilter
from dpfast._kernels.simulation import CompiledStudy, squared_errors
from dpfast._support import thread_count, validation
from dpfast.filters.toeplitz import MAX_HORIZON
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.mechanisms.bound import BoundTerms
from dpfast.mechanisms.chain_law import ChainLaw, chain_of, is_same_law
from dpfast.mechanisms.posterior_tables import SumNoise, TableMaker, block_posterior
from dpfast.privacy.integer_noise.law import IntegerNoise
from dpfast.signals.model import Model, check_model

_SETTLED = 1e-3  # amplitude of what is left of a start
_SEED, _SAMPLES, _FEW_SAMPLES, _FEW_STREAMS, _MOST_STREAMS = 1, 2**21, 1000, 64, 2048  # of an estimate of the error
_OPERATIONS = 2**32  # multiply-adds of an estimate, some seconds: of fewer samples where each costs many


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorBlockMechanism(BlockMechanism):
    r"""Publish block sums; estimate by the posterior mean ŷ_t = E[y_{t-D} | v] of a chain instead of a Kalman filter.

    Made by :func:`dpfast.block_sums` with ``receiver="bayes"``. It has no prediction, only simulation tells its error;
    that of the linear receiver behind the same sums, `linear_mse`, is never less where the model holds. Attributes are
    those of :class:`BlockMechanism`; ``receiver`` is the linear one, with which studies compare it.

    Notes
    -----
    *Privacy.* That of the sums, whatever is computed from them.

    Examples
    --------
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    >>> mechanism = dp.block_sums(dp.Filter([0.1], [1, -0.9]), dp.Privacy(3), chain, receiver="bayes", length=1)
    >>> mechanism.predicted_mse is None, round(mechanism.linear_mse**0.5, 4)
    (True, 0.0703)
    """

    @property
    def exact_kind(self) -> str:
        """Name the kind of the exact form that a release runs."""
        return "block sums, posterior mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        chain_of(self.model)
        if len(self.lengths) > 1:
            raise ValueError(
                f'length must be one for receiver="bayes", got {list(self.lengths)}: the sums of several levels would '
                'have to be followed together; take one length, or receiver="linear"'
            )
        if self.weights is not None:
            raise ValueError('weights must not be there with receiver="bayes", which follows plain sums')
        if self.receiver.groups:
            raise ValueError(
                f'group must be 1 with receiver="bayes", which takes noise for independent, got {self.group}'
            )
        _ = self._posterior  # one that would take too much is refused here, and not when it is first used

    @property
    def ideal_mse(self) -> None:
        """It is None, as there is no formula."""

    @property
    def predicted_mse(self) -> None:
        """It is None, as only simulation tells; `linear_mse` is a bound of it from above."""

    @property
    def phase_mse(self) -> None:
        """It is None, as only simulation tells."""

    @property
    def worst_step_mse(self) -> None:
        """It is None, as only simulation tells."""

    def predict(self, model: Model) -> None:
        """Return None, as only simulation tells."""
        check_model(model)

    def step_mse(self, n: int | None = None, model: Model | None = None) -> None:
        """Return None, as only simulation tells."""
        validation.integer("n", self.horizon if n is None else n, 1, self.horizon or MAX_HORIZON)
        if model is not None:
            check_model(model)

    def bound_terms(self) -> BoundTerms:
        """Say what is particular to a posterior mean for bounds of errors: it is not linear."""
        return BoundTerms(self.lag)

    def control_mse(self, model: Model, burn_in: int, n: int) -> float | None:
        """Return the exact MSE of the linear receiver over n steps behind a burn-in; None on another model."""
        if not is_same_law(model, self.model):
            return None
        return float(self._loop(model).step_mse(burn_in + n)[burn_in:].mean())

    def simulated_mse(self) -> float:
        """Estimate the MSE, the mean over time, on a few streams of a fixed seed: to choose between designs."""
        source, length = chain_of(self.model), self.lengths[0]
        burn_in = self.settling_time(_SETTLED)
        n_samples = self.horizon or length * -(-max(_FEW_SAMPLES, burn_in) // length)
        most = min(_SAMPLES, int(_OPERATIONS / self._maker.operations_for_a_sample(length, self.lag)))
        n_streams = min(_MOST_STREAMS, max(_FEW_STREAMS, most // (burn_in + n_samples)))
        study = CompiledStudy(source, (self.compiled(),), burn_in, n_samples, compared=(0,))
        differences = squared_errors(study, n_streams, _SEED, thread_count.n_threads(None))[:, 1]
        linear = self.control_mse(self.model, burn_in, n_samples)
        assert linear is not None  # on its own model it is known
        return linear - float(differences.mean())

    @functools.cached_property
    def _maker(self) -> TableMaker:
        """It makes the tables of the posterior mean."""
        factors = self.target.factors
        assert factors is not None
        law = ChainLaw.of(chain_of(self.model))
        return TableMaker(law, self.receiver.mean, self.lattice.offset, self.lattice.unit, factors)

    @functools.cached_property
    def _posterior(self) -> PosteriorFilter:
        """The posterior mean that runs, as privacy and model make it."""
        noise = self.noise[0]
        assert isinstance(noise, IntegerNoise)  # as no group shares it
        return self._posterior_behind(noise, self.horizon)

    def _posterior_behind(self, noise: SumNoise, n_steps: int | None) -> PosteriorFilter:
        return block_posterior(self._maker, noise, self.lengths[0], self.receiver.phase, self.lag, n_steps)

    def receiver_behind(self, noise: SumNoise, n_steps: int) -> CompiledPosterior:
        """Return the posterior mean behind other noise on the same sums, of which none comes beyond so many steps.

        Parameters
        ----------
        noise : IntegerNoise, or what has its largest value, period and probabilities
            In units.
        n_steps : int
        """
        factors = self.target.factors
        assert factors is not None
        return CompiledPosterior(self._posterior_behind(noise, n_steps), self.receiver.compiled(factors))

    def _compiled_receiver(self, target: Factors) -> CompiledBlockReceiver:
        return CompiledPosterior(self._posterior, self.receiver.compiled(target))

    def _receiver_text(self) -> str:
        return f"posterior mean, {self._posterior.table.rows.size} numbers"

    def _figures_text(self) -> str:
        return f"- (only simulation tells; at most {math.sqrt(self.linear_mse):.6g}, that of the linear receiver)"
