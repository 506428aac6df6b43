"""Block sums that end when what was published says so, and the posterior mean behind them."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from dpfast._kernels import compiled_mechanisms, compiled_receivers
from dpfast._kernels.partition import Partition
from dpfast._support import validation
from dpfast.filters.filter import Filter
from dpfast.filters.toeplitz import MAX_HORIZON, Toeplitz
from dpfast.mechanisms.base import GuaranteeTerms, Option
from dpfast.mechanisms.block_base import BlockMechanismBase
from dpfast.mechanisms.chain_law import TAKE_BLOCK_SUMS, ChainLaw, chain_of
from dpfast.mechanisms.partition_tables import build_partition
from dpfast.mechanisms.posterior_tables import TableMaker
from dpfast.privacy.integer_noise.choice import integer_noise
from dpfast.privacy.integer_noise.law import IntegerKind, IntegerNoise
from dpfast.privacy.lattice import Lattice, find_lattice
from dpfast.privacy.privacy import Privacy
from dpfast.privacy.provenance import Provenance
from dpfast.signals.model import Model, check_model


@dataclass(frozen=True, eq=False)
class AdaptiveBlockMechanism(BlockMechanismBase):
    r"""Study a mechanism that adds integer noise to sums of blocks, which end once enough of their sum is unknown.

    v = (sum of a block of inputs) + integer noise, where a block ends once Var(sum | earlier v) ≥ θ Var(noise).

    Made by :func:`dpfast.adaptive_blocks`. Where the past tells what comes, blocks are long, and short where it does
    not. Behind them is the posterior mean ŷ_t = E[y_{t-D} | v] of a chain of levels, whose variance decides.

    Attributes
    ----------
    name : str
    target : Filter or Toeplitz
        F; over a horizon one that is rational, stable or not.
    privacy : Privacy
        The guarantee that is asked for.
    model : MarkovChain or IndependentLevels
        The signal that it was designed for, which partition and receiver follow; the guarantee does not.
    threshold : float
        θ.
    longest : int
        Steps that a block has at most.
    lag : int
        D, the samples by which the estimate is late.
    noise_kind : {"geometric", "canonical", "staircase"}
    options : tuple of (name, value)
        What else the design was given.
    declared : tuple of (name, source)
        What a person said of the inputs, by :meth:`with_sources`.

    Notes
    -----
    *Privacy.* Where a block ends is a function of what was published before it began, and of nothing else: along any
    values v published, an event lies in one block, changes its sum by at most max_change, and meets fresh noise. So the
    probabilities of any v differ by a factor of exp(epsilon) at most, also where inputs depend on what was published
    before; with canonical noise v is (epsilon, delta)-differentially private likewise, as one release of an adaptive
    composition differs. That nothing is published yet tells nothing: it was known when the block began. An unfinished
    block at the end of a horizon is never published.

    Examples
    --------
    >>> import dpfast as dp
    >>> chain = dp.MarkovChain([[0.99, 0.01], [0.01, 0.99]], levels=[0, 1])
    >>> mechanism = dp.adaptive_blocks(dp.Filter([0.1], [1, -0.9]), dp.Privacy(3), chain, threshold=0.15)
    >>> mechanism.longest, mechanism.next_length([0.5, 0.5]), mechanism.next_length([0.999, 0.001])
    (16, 1, 2)
    """

    name: str
    target: Filter | Toeplitz
    privacy: Privacy
    model: Model
    threshold: float
    longest: int
    lag: int = 0
    noise_kind: IntegerKind = "geometric"
    options: tuple[tuple[str, Option], ...] = ()
    declared: tuple[tuple[str, Provenance], ...] = ()
    mean_square: ClassVar[None] = None
    lower_bound_mse: ClassVar[None] = None
    ideal_mse: ClassVar[None] = None  # only simulation tells
    predicted_mse: ClassVar[None] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        validation.number("threshold", self.threshold, above=0)
        validation.integer("longest", self.longest, 1)
        validation.integer("lag", self.lag, 0)
        chain_of(self.model, TAKE_BLOCK_SUMS)
        _ = self._partition  # one that would take too much is refused here, and not when it is first used

    @functools.cached_property
    def lattice(self) -> Lattice:
        """The unit that inputs are whole multiples of, and the largest change in units."""
        return find_lattice(self.privacy, self.model.levels, None)

    @functools.cached_property
    def noise(self) -> IntegerNoise:
        """The law of the noise, as privacy and unit make it."""
        return integer_noise(self.noise_kind, self.privacy, self.lattice.steps)

    @functools.cached_property
    def _maker(self) -> TableMaker:
        """It makes the tables of the posterior mean."""
        factors = self.target.factors
        assert factors is not None, "as the design asks for it"
        law = ChainLaw.of(chain_of(self.model))
        return TableMaker(law, self.model.mean, self.lattice.offset, self.lattice.unit, factors)

    @functools.cached_property
    def _partition(self) -> Partition:
        """The partition and the posterior mean that run."""
        return build_partition(self._maker, self.noise, self.threshold, self.longest, self.lag, self.horizon)

    @property
    def noise_std(self) -> float:
        """The standard deviation of the noise on a sum."""
        return self.lattice.unit * math.sqrt(self.noise.variance)

    def next_length(self, probabilities: ArrayLike) -> int:
        """Return the steps of the next block, from the probabilities of what the chain remembers, given all v so far.

        Parameters
        ----------
        probabilities : array_like, (memories,)
            Of the last level, levels that are followed alike being one; they sum to 1.

        Returns
        -------
        int
        """
        p = validation.array("probabilities", probabilities, ndim=1)
        moments = self._partition.moments
        n = moments.shape[1] // 2
        if len(p) != n or p.min() < 0 or not math.isclose(float(p.sum()), 1.0, rel_tol=1e-9):
            raise validation.fail("probabilities", f"{n} numbers that are not negative and sum to 1", probabilities)
        enough = moments[:-1, n:] @ p - (moments[:-1, :n] @ p) ** 2 >= self._partition.threshold
        return int(enough.argmax()) + 1 if enough.any() else self.longest

    def operations_for_a_sample(self, lag: int) -> float:
        """Count the multiply-adds that a sample costs with a lag, at most: of blocks of one step."""
        return self._maker.operations_for_a_sample(1, lag)

    def settling_time(self, amplitude: float) -> int:
        """Count the samples until target and chain have forgotten a start but for an amplitude; 0 over a horizon."""
        target = self.target.as_filter()
        if target is None:
            return 0
        forgets = self.model.shaping.settling_time(amplitude)
        return max(len(target.factors.taps), target.settling_time(amplitude)) + forgets + self.longest

    def sizes(self) -> tuple[str, str]:
        """Say how long the blocks are, and how large the receiver is."""
        return self._blocks_text(), self._receiver_text()

    def guarantee_terms(self) -> GuaranteeTerms:
        """Say what is particular to the guarantee of such blocks; the description asks for it."""
        ending = _REACTS + self._condition_text()
        return GuaranteeTerms(self._streams_text(), f"{self.noise.kind} noise", self._delta, ending)

    @property
    def _delta(self) -> float:
        return self.privacy.delta if self.noise.delta else 0.0

    def predict(self, model: Model) -> None:
        """Return None, as only simulation tells."""
        check_model(model)

    def predict_first(self, n: int, model: Model) -> None:
        """Return None, as only simulation tells."""

    def step_mse(self, n: int | None = None, model: Model | None = None) -> None:
        """Return None, as only simulation tells."""
        validation.integer("n", self.horizon if n is None else n, 1, self.horizon or MAX_HORIZON)
        if model is not None:
            check_model(model)

    # --- simulation -------------------------------------------------------------------------------

    def compiled(self) -> compiled_mechanisms.CompiledAdaptiveMechanism:
        """Return the compiled form, which studies run."""
        factors = self.target.factors
        assert factors is not None, "as the design asks for it"
        receiver = compiled_receivers.CompiledFollower(self._partition, factors, self.model.mean)
        noise = compiled_mechanisms.CompiledBlock(1, *self.noise.tails())
        return compiled_mechanisms.CompiledAdaptiveMechanism(self.model.mean, noise, receiver)

    # --- words ------------------------------------------------------------------------------------

    def _promise_text(self) -> str:
        return f"epsilon {self.privacy.epsilon:.6g}, delta {self._delta:.3g} ({self.noise.kind} noise)"

    def _blocks_text(self) -> str:
        return f"sums of 1 to {self.longest} steps, until their variance is {self.threshold:g} times the noise's"

    def _receiver_text(self) -> str:
        return f"posterior mean, {sum(x.rows.size for x in self._partition.tables)} numbers"

    def _facts(self) -> dict[str, str]:
        return {
            "blocks": self._blocks_text(),
            **self._horizon_facts(),
            "noise": f"{self.noise.kind}, standard deviation {self.noise_std:.6g}",
            "receiver": self._receiver_text(),
            "lag": str(self.lag),
            "predicted RMSE": "- (only simulation tells)",
        }

    def __repr__(self) -> str:
        return f"<AdaptiveBlockMechanism {self.name!r}: {self._blocks_text()}>"


_REACTS = " Where a block ends depends on what was published before it, and tells nothing more."
