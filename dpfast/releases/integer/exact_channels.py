"""Several streams that one person may reach, in integers: a matrix of taps, noise on each channel, what undoes them."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np

from dpfast._kernels.integer_fir import add_filtered
from dpfast._support import html_fragments as html
from dpfast._support import validation
from dpfast._support.validation import Array
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.mechanisms.serialization.channels_content import (
    matrix_content,
    read_channels,
    read_matrix,
)
from dpfast.privacy.composition import Loss
from dpfast.privacy.discrete_gaussian_accounting import Shift, Sigma
from dpfast.privacy.privacy import Privacy
from dpfast.releases.guarantee_terms import ReleaseTerms, name_gaussian
from dpfast.releases.integer.exact_base import check_mechanism
from dpfast.releases.integer.exact_outputs import ExactOutputs, check_streams
from dpfast.releases.integer.inputs import Inputs, Integers
from dpfast.releases.integer.integer_taps import MAX_TAPS, check_sizes
from dpfast.releases.integer.matrix_receiver import LiveChannels, MatrixReceiver
from dpfast.releases.integer.matrix_search import MatrixCircle, round_channels
from dpfast.releases.integer.noise_calibration import channels_shift, check_epsilon
from dpfast.releases.integer.releasable import check_releasable
from dpfast.releases.model_check.joint_check import FilteredChannels


@dataclass(frozen=True, eq=False)
class ExactChannels(ExactOutputs):
    r"""Several streams in integers: v_a,t = Σ_i,k g_ai,k x_i,t-k + n_a,t, discrete Gaussian n, and a receiver.

    :func:`exact` makes it of a design for a :class:`FilterMatrix`. Everything in it is public.

    Attributes
    ----------
    mechanism : ChannelsMechanism
        The design, F of p outputs and m inputs.
    inputs : Inputs
        What is declared of all inputs, `n_streams` of them.
    tolerance : float
        Accept this relative increase of the MSE for taps that are integers.
    taps : array of int64, (q, m, n)
        g, of at most 65,536 integers each, whose squares sum to less than 2^62; a copy, which nobody can write to.
    sigma : Sigma
        P(n) ∝ exp(-n²/2σ²), σ = a/2^j, of the noise on each of the q channels.
    receiver : MatrixReceiver
        From all channels to the estimates of all outputs, in the units of the signal.

    Raises
    ------
    ReleaseError
        For a design with fitted-from-private inputs.
    ValueError
        For inputs of another number of streams, or that say how many of them one person is in: the adjacency does.
    DesignError
        Where sums would not fit into 64 bits, and for noise that is less than the mechanism's privacy takes.

    Notes
    -----
    *Privacy.* `guarantee` says what a release of it promises, and in which streams one person may be.
    :meth:`privatize` is the only function that sees inputs.

    Examples
    --------
    >>> import dpfast as dp
    >>> target = dp.total(3) * dp.Filter([0.1], [1, -0.9])
    >>> mechanism = dp.zero_forcing(target, dp.Privacy(1, 1e-6, adjacency="one_input"))
    >>> plan = dp.exact(mechanism, dp.Inputs(0, 20, n_streams=3))
    >>> plan.taps.shape[:2], plan.predicted_mse < 1.001 * mechanism.predicted_mse
    ((3, 3), True)
    >>> plan.guarantee.items()["protected"]
    'one event of size at most 1 in one of the 3 streams'
    """

    kind: ClassVar[str] = "channels"
    mechanism: ChannelsMechanism
    inputs: Inputs
    tolerance: float
    taps: Integers
    sigma: Sigma
    receiver: MatrixReceiver

    def __post_init__(self) -> None:
        check_mechanism(self.mechanism)
        check_streams(self.mechanism, self.inputs)
        object.__setattr__(self, "taps", _own_taps(self.taps, self.mechanism.target.shape[1]))
        check_sizes(self.taps, self.inputs, self.sigma)
        check_epsilon(self.guarantee.epsilon, self.mechanism.privacy, self.sigma)

    def __reduce__(self) -> tuple[type[ExactChannels], tuple[Any, ...]]:
        # made and checked anew: taps that come out of a pickle can be written to, and a kept guarantee would not follow
        return ExactChannels, tuple(getattr(self, x.name) for x in fields(self))

    @classmethod
    def make(cls, mechanism: ChannelsMechanism, inputs: Inputs, tolerance: float) -> ExactChannels:
        """Make the exact form of a design for such inputs: the fewest taps and bits within the tolerance."""
        check_streams(mechanism, inputs)
        return cls(mechanism, inputs, tolerance, *round_channels(mechanism, inputs, tolerance))

    # --- what runs --------------------------------------------------------------------------------

    def published_rows(self, n_streams: int) -> int:
        """Count the channels that are published."""
        return len(self.taps)

    @property
    def laws(self) -> tuple[Sigma]:
        """Return the law of the noise: its σ."""
        return (self.sigma,)

    @property
    def row_inputs(self) -> tuple[tuple[int, ...], ...]:
        """Return the inputs for which each row of the prefilter has taps."""
        return tuple(tuple(np.flatnonzero(row.any(axis=-1)).tolist()) for row in self.taps)

    @property
    def stream_costs(self) -> tuple[object, ...]:
        """Return the taps and σ, which decide it."""
        return self.taps.shape, self.taps.tobytes(), self.sigma

    @property
    def memory(self) -> int:
        """The number of past inputs that the prefilter needs."""
        return int(self.taps.shape[2]) - 1

    def privatize(
        self, history: Integers, x: Integers, noise: Integers, position: int = 0, end: int | None = None
    ) -> Integers:
        """Return v (q, n) of the integers x (m, n), behind `memory` earlier ones, oldest first.

        No sum overflows: the range of x, the taps and the largest noise were checked at design. Declared zeros at the
        end are published like any other input.
        """
        v = noise.copy()
        before = np.zeros((len(x), self.memory - history.shape[1]), np.int64)
        whole = np.concatenate([before, history, x], axis=1)
        for a, row in enumerate(self.taps):
            for i, taps in enumerate(row):
                if taps.any():
                    add_filtered(taps, whole[i : i + 1], v[a : a + 1])
        return v

    def live(self, n_streams: int | None = None) -> LiveChannels:
        """Return the receiver as it is at the beginning of a stream; all streams are one."""
        unit, centre = float(self.inputs.unit), float(self.inputs.centre)
        return LiveChannels(self.receiver, self.taps, [(x - centre) / unit for x in self.receiver.means])

    def estimate(self, privatized: Integers, end: int | None = None) -> Array:
        """Return all estimates (p, time) from all of v (q, time), at t that of t - lag."""
        return self.live().push(privatized)

    def evidence(self, privatized: Integers, end: int) -> FilteredChannels:
        """Return what v from its first step on tells of the models of the streams."""
        unit, centre = float(self.inputs.unit), float(self.inputs.centre)
        means = np.array(self.receiver.means)
        known = np.tensordot((means - centre) / unit, np.cumsum(self.taps, axis=2).astype(float), (0, 1))
        last = known.shape[1] - 1
        centred = np.asarray(
            privatized[:, :end] - known[:, np.minimum(np.arange(min(end, privatized.shape[1])), last)], np.float64
        )
        models, taps = self.mechanism.models, self.taps / unit
        return FilteredChannels(models, taps, self.sigma.std, means, centred, self.check_names)

    # --- what it promises -------------------------------------------------------------------------

    @functools.cached_property
    def output_mse(self) -> Array:
        """The exact stationary error of each output, (p,), as that of the mechanism."""
        circle = MatrixCircle.of(self.mechanism, self.taps.shape[2])
        g = circle.taps_response(self.taps / float(self.inputs.unit))
        return validation.freeze(circle.output_mse(g, self.sigma.std, self.receiver.response(circle.n)))

    @functools.cached_property
    def shift(self) -> Shift:
        """The change that one person makes at most, and the noise, as the accounting takes them."""
        return channels_shift(self.mechanism.privacy, self.inputs, self.taps, self.sigma)

    def terms(self, privacy: Privacy, inputs: Inputs) -> ReleaseTerms:
        """Say what it costs a person of some bounds, and what a guarantee says of it."""
        shift, (q, m, n) = channels_shift(privacy, inputs, self.taps, self.sigma), self.taps.shape
        digest = hashlib.sha256(self.taps.astype("<i8").tobytes()).hexdigest()
        law = name_gaussian(shift.sigma)
        return ReleaseTerms(
            Loss((shift,)),
            {
                "squared sensitivity": f"Δ² = {shift.squared_sensitivity}, of all channels together",
                "noise": f"{law}, drawn exactly, once for every step of each of {q} channels",
            },
            "computed from this σ and rounded up",
            {"prefilter": f"{q} × {m} filters of {n} integer taps, SHA-256 {digest}"},
            {"prefilter": {"taps": n, "channels": q, "sha256": digest}},
        )

    # --- as JSON holds it -------------------------------------------------------------------------

    @property
    def configuration(self) -> dict[str, Any]:
        """The whole mechanism, as JSON holds it, with the rows of what is published and estimated."""
        return {
            "kind": self.kind,
            **self.demand,
            "rows": {"published": len(self.taps), "estimated": self.mechanism.target.shape[0]},
            "taps": self.taps.tolist(),
            "sigma": list(self.sigma),
            "stages": [matrix_content(stage) for stage in self.receiver.stages],
            "means": list(self.receiver.means),
        }

    @classmethod
    def from_configuration(cls, given: Mapping[str, Any]) -> ExactChannels:
        """Make the same mechanism to the last bit, though another machine would have designed another."""
        mechanism: Any = check_releasable(read_channels(given["mechanism"]))
        stages = tuple(read_matrix(f"stages[{i}]", stage) for i, stage in enumerate(given["stages"]))
        return cls(
            mechanism=mechanism,
            inputs=Inputs.from_public(given["inputs"]),
            tolerance=given["tolerance"],
            taps=np.array(given["taps"], dtype=np.int64),
            sigma=Sigma(*given["sigma"]),
            receiver=MatrixReceiver(stages, mechanism.target, tuple(given["means"]), mechanism.lag),
        )

    # --- as it is shown ---------------------------------------------------------------------------

    def __repr__(self) -> str:
        q, m, n = self.taps.shape
        return f"<ExactChannels {self.mechanism.name!r}: {q} × {m} × {n} taps, predicted RMSE {self.error_text}>"

    def _repr_html_(self) -> str:
        shown = {
            "integer taps": " × ".join(map(str, self.taps.shape)),
            "noise": f"discrete Gaussian on each channel, σ = {self.sigma.std:.6g}",
            "lag": self.lag_text,
            "predicted RMSE": self.error_text,
        }
        return html.notebook(html.facts(shown, caption=self.mechanism.name), *self.guarantee.shown())


def _own_taps(taps: Any, m: int) -> Integers:
    """Copy taps so that nobody can write to them, as the guarantee is computed from them once."""
    given = np.asarray(taps)
    if given.dtype.kind not in "iu" or given.ndim != 3 or given.shape[1] != m or not 1 <= given.shape[2] <= MAX_TAPS:
        must_be = f"an array (channels, {m}, n) of 1 to {MAX_TAPS:,} integers each"
        raise ValueError(f"taps must be {must_be}, got dtype {given.dtype} and shape {given.shape}: make it by exact")
    return validation.freeze(np.array(given, dtype=np.int64))
