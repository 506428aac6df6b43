"""Block sums of several streams in integers: exact sums and noise of each stream, and estimates from all of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpfast._support import html_fragments as html
from dpfast._support import validation
from dpfast._support.errors import DesignError
from dpfast._support.validation import Array
from dpfast.filters.filter import Filter
from dpfast.filters.filter_matrix import FilterMatrix
from dpfast.mechanisms.block_channels_mechanism import BlockChannelsMechanism
from dpfast.mechanisms.block_mechanism import BlockMechanism
from dpfast.mechanisms.serialization.channels_content import block_channels_content, read_block_channels
from dpfast.mechanisms.serialization.json_fields import Fields
from dpfast.mechanisms.serialization.mechanism_file import mechanism_content, read_mechanism
from dpfast.privacy.privacy import Privacy
from dpfast.releases.guarantee_terms import ReleaseTerms
from dpfast.releases.integer.channel_losses import loss_of_channels
from dpfast.releases.integer.exact_base import check_mechanism
from dpfast.releases.integer.exact_block_sums import ExactBlockSums
from dpfast.releases.integer.exact_outputs import ExactOutputs, check_streams
from dpfast.releases.integer.inputs import Inputs, Integers
from dpfast.releases.integer.last_block import LastBlock, demand_of
from dpfast.releases.integer.lattice_noise import LatticeLaw, check_cost, law_terms, laws_content
from dpfast.releases.integer.live_block_channels import LiveBlockChannels
from dpfast.releases.integer.releasable import check_releasable
from dpfast.releases.model_check.joint_block_check import SummedChannels

Entries = tuple[tuple[ExactBlockSums | None, ...], ...]


@dataclass(frozen=True, eq=False)
class ExactBlockChannels(ExactOutputs):
    r"""Publish sums of blocks of each of several streams, with exact integer noise, and estimate outputs from them all.

    :func:`exact` makes it of :func:`block_sums` for a :class:`FilterMatrix`. Everything in it is public. Each stream
    that is published is a row of v, with blocks and noise of its own; as the streams are independent in the model, the
    Kalman filter of all of them is one for each, and an estimate the sum of what those say.

    Attributes
    ----------
    mechanism : BlockChannelsMechanism
        The design, of p outputs and m inputs.
    inputs : Inputs
        What is declared of all inputs, `n_streams` of them, in the unit of the design.
    tolerance : float
        As :func:`exact` was given it; integers cost nothing here.
    entries : tuple of tuple of ExactBlockSums or None, p × m
        For output a and input i the sums of that input, and what estimates F_ai u_i from them; None as in the design.

    Raises
    ------
    ReleaseError
        For a design with fitted-from-private inputs.
    ValueError
        For inputs of another number of streams, or that say how many of them one person is in: the adjacency does.
    DesignError
        For inputs in another unit, sums that do not fit into 64 bits, and less noise than the privacy takes.

    Notes
    -----
    *Privacy.* An event changes one sum of each input that it is at, by at most its own change, and the noise of each
    sum is drawn by itself. So an event at one input costs what that input's noise has of ε, at most the largest; one
    that may be at all of them costs what the accountant makes of all together, whatever times it has at each
    (docs/explanation/several-streams.md). :meth:`privatize` is the only function that sees inputs.

    Examples
    --------
    >>> import dpfast as dp
    >>> counts = dp.ARMA([1.2], [1, -0.9], mean=5)
    >>> mean = dp.FilterMatrix([[dp.Filter([0.1], [1, -0.9])] * 2])
    >>> mechanism = dp.block_sums(mean, dp.Privacy(1, adjacency="each_input"), [counts, counts])
    >>> plan = dp.exact(mechanism, dp.Inputs(0, 20, n_streams=2))
    >>> plan.guarantee.delta, plan.guarantee.epsilon <= 1, mechanism.lengths
    (0.0, True, (3, 3))
    >>> plan.guarantee.items()["protected"]
    'the events of one person, at most one in each of the 2 streams at any times, each of size at most 1'
    """

    kind: ClassVar[str] = "block sums of channels"
    mechanism: BlockChannelsMechanism
    inputs: Inputs
    tolerance: float
    entries: Entries

    def __post_init__(self) -> None:
        check_mechanism(self.mechanism)
        check_streams(self.mechanism, self.inputs)
        for a, row in enumerate(self.entries):
            for i, entry in enumerate(row):
                self._check_entry(self.mechanism.entries[a][i], entry, i)
        check_cost(self._loss(self.mechanism.privacy, self.inputs), self.mechanism.privacy)

    def _check_entry(self, design: BlockMechanism | None, entry: ExactBlockSums | None, i: int) -> None:
        """Refuse another design's entry, and sums that are not the same for all outputs."""
        fits = (entry is None and design is None) or (
            entry is not None
            and entry.mechanism is design
            and entry.inputs == replace(self.inputs, n_streams=1)
            and _published(entry) == _published(self.columns[i])
        )
        if not fits:
            raise DesignError(
                f"entries must be of the design, and of the same sums of input {i} for all outputs: make it by exact"
            )

    @classmethod
    def make(cls, mechanism: BlockChannelsMechanism, inputs: Inputs, tolerance: float) -> ExactBlockChannels:
        """Make the exact form of a design: the noise that the declared inputs take, and receivers for it."""
        check_streams(mechanism, inputs)
        one = replace(inputs, n_streams=1)

        def make_entry(a: int, i: int) -> ExactBlockSums | None:
            design = mechanism.entries[a][i]
            try:
                return None if design is None else ExactBlockSums.make(design, one, tolerance)
            except DesignError as error:
                raise DesignError(f"input {i} of the target: {error}") from None

        return cls(mechanism, inputs, tolerance, _for_each(mechanism.target, make_entry))

    @functools.cached_property
    def columns(self) -> dict[int, ExactBlockSums]:
        """One entry of each input that is published, by its number, for what its sums are: the rows of v."""
        there = {i: [x for x in column if x is not None] for i, column in enumerate(zip(*self.entries, strict=True))}
        return {i: column[0] for i, column in there.items() if column}

    # --- what runs --------------------------------------------------------------------------------

    def published_rows(self, n_streams: int) -> int:
        """Count the inputs that are published."""
        return len(self.columns)

    def noise_rows(self, n_streams: int) -> int:
        """Return 1: draws are taken for all inputs together, as each is released at steps of its own."""
        return 1

    @property
    def laws(self) -> tuple[LatticeLaw, ...]:
        """Return the law of the noise on the sums of each input that is published."""
        return tuple(x.noise[0] for x in self.columns.values())

    @property
    def row_inputs(self) -> tuple[tuple[int, ...], ...]:
        """Return the input of each row, whose sums it is."""
        return tuple((i,) for i in self.columns)

    @property
    def stream_costs(self) -> tuple[object, ...]:
        """Return the law of the noise of each stream that is published, by its number."""
        return tuple(zip(self.columns, self.laws, strict=True))

    @property
    def memory(self) -> int:
        """Count the inputs before the last one of the longest block."""
        return max(x.memory for x in self.columns.values())

    def needed(self, position: int) -> int:
        """Return how many inputs before a step are in unfinished blocks: no older ones are kept."""
        return max(x.needed(position) for x in self.columns.values())

    def n_draws(self, position: int, n: int, end: int | None = None) -> tuple[int, ...]:
        """Count the sums that n steps release behind noise of each law: there is a draw for each."""
        due = np.count_nonzero(self.released(position, n, end), axis=1)
        return tuple(sum(int(k) for k, x in zip(due, self.laws, strict=True) if x == law) for law in self.drawn_laws)

    def released(self, first: int, n: int, end: int | None = None) -> NDArray[np.bool_]:
        """Tell at which of n steps a sum of each input is released, (rows of v, n)."""
        return np.array([x.released(first, n, end) for x in self.columns.values()])

    def privatize(
        self, history: Integers, x: Integers, noise: Integers, position: int = 0, end: int | None = None
    ) -> Integers:
        """Return v (q, n): the sums of blocks that end at these steps, each with a draw of noise of its own; else 0.

        Noise (1, draws) comes law by law, and of a law input by input.
        """
        v = np.zeros((len(self.columns), x.shape[1]), np.int64)
        used, due = 0, np.count_nonzero(self.released(position, x.shape[1], end), axis=1)
        for law in self.drawn_laws:
            for k, (i, column) in enumerate(self.columns.items()):
                if self.laws[k] == law:
                    draws = noise[:, used : used + due[k]]
                    v[k] = column.privatize(history[i : i + 1], x[i : i + 1], draws, position, end)[0]
                    used += due[k]
        return v

    def live(self, n_streams: int | None = None) -> LiveBlockChannels:
        """Return the receivers as they are at the beginning of a stream; all streams are one."""
        rows = {i: k for k, i in enumerate(self.columns)}
        receivers = {
            (a, rows[i]): x.live() for a, row in enumerate(self.entries) for i, x in enumerate(row) if x is not None
        }
        zero, target = Filter([0.0]), self.mechanism.target
        rest = [
            [f if x is None else zero for f, x in zip(*both, strict=True)]
            for both in zip(target.rows, self.entries, strict=True)
        ]
        means = np.array([0.0 if i in rows else x.mean for i, x in enumerate(self.mechanism.models)])
        return LiveBlockChannels(receivers, FilterMatrix(rest), means, self.mechanism.lag)

    def estimate(self, privatized: Integers, end: int | None = None) -> Array:
        """Return all estimates (p, time) from all of v (q, time), at t that of t - lag."""
        return self.live().push(privatized, end)

    def evidence(self, privatized: Integers, end: int) -> SummedChannels:
        """Return what v from its first step on tells of the models of the streams that are published."""
        rows = zip(self.columns.values(), privatized, strict=True)
        return SummedChannels(tuple(x.evidence(row, end) for x, row in rows), self.check_names)

    # --- the end of a stream ----------------------------------------------------------------------

    @property
    def n_steps(self) -> int | None:
        """Return the declared steps of the stream, where blocks that the last one leaves unfinished are published."""
        return next(iter(self.columns.values())).n_steps

    def ending_after(self, n_steps: int) -> ExactBlockChannels:
        """Return the same with blocks that the last of so many steps leaves unfinished published there."""

        def end_entry(a: int, i: int) -> ExactBlockSums | None:
            entry = self.entries[a][i]
            return None if entry is None else entry.ending_after(n_steps)

        return replace(self, entries=_for_each(self.mechanism.target, end_entry))

    def check_steps(self, end: int, *, whole: bool = False) -> None:
        """Refuse inputs beyond the declared last step, and a whole signal of fewer steps."""
        for column in self.columns.values():
            column.check_steps(end, whole=whole)

    # --- what it promises -------------------------------------------------------------------------

    @functools.cached_property
    def output_mse(self) -> Array:
        """The exact stationary error of each output with the noise that runs, (p,), the mean over time.

        Of an input that is not published the whole variance of what it adds to an output counts, as in the design.
        """
        models = self.mechanism.models
        every = [
            [self.mechanism.unpublished_mse(a, i) if x is None else x.mse_on(models[i]) for i, x in enumerate(row)]
            for a, row in enumerate(self.entries)
        ]
        return validation.freeze(np.array([math.fsum(x) for x in every]))

    def _loss(self, privacy: Privacy, inputs: Inputs) -> Any:
        return loss_of_channels(dict(zip(self.columns, self.laws, strict=True)), privacy, inputs)

    def terms(self, privacy: Privacy, inputs: Inputs) -> ReleaseTerms:
        """Say what it costs a person of some bounds, and what a guarantee says of it."""
        names, lengths = self._names(), self.mechanism.lengths
        what = "; ".join(
            f"of {name} {self.columns[i].mechanism.sizes()[0]}" if i in self.columns else f"nothing of {name}"
            for i, name in enumerate(names)
        )
        content: dict[str, Any] = {"lengths": list(lengths), "phases": list(self.mechanism.phases)}
        if self.n_steps is None:
            what, content = f"{what}; an unfinished block is dropped", content | {"last_block": "drop"}
        else:
            what += f"; a block that the last of {self.n_steps} steps leaves unfinished is published there"
            content |= demand_of(self.n_steps)
        of_each = [f"on {names[i]}" for i in self.columns]
        drawn = "block of each stream"
        return law_terms(self.laws, self._loss(privacy, inputs), what, drawn, content, of_each)

    def _names(self) -> list[str]:
        """Name the streams, counted from 1 as people do."""
        return [f"stream {i + 1}" for i in range(self.inputs.n_streams)]

    # --- as JSON holds it -------------------------------------------------------------------------

    @property
    def demand(self) -> dict[str, Any]:
        """Return the demand: all that decides the rest, but for the rounding of a machine."""
        return super().demand | demand_of(self.n_steps)

    @property
    def configuration(self) -> dict[str, Any]:
        """Return the whole mechanism, as JSON holds it, with the rows of what is published and estimated."""
        rows = enumerate(self.entries)
        return {
            "kind": self.kind,
            "mechanism": block_channels_content(self.mechanism, mechanism_content),
            "inputs": self.inputs.public(),
            "tolerance": self.tolerance,
            "rows": {"published": len(self.columns), "estimated": len(self.entries)},
            "entries": {f"{a},{i}": _entry_content(x) for a, row in rows for i, x in enumerate(row) if x is not None},
        }

    @classmethod
    def from_configuration(cls, given: Mapping[str, Any]) -> ExactBlockChannels:
        """Make the same mechanism to the last bit, though another machine would have designed another."""
        mechanism = check_releasable(read_block_channels(given["mechanism"], read_mechanism))
        inputs, tolerance = Inputs.from_public(given["inputs"]), given["tolerance"]
        one = replace(inputs, n_streams=1)

        def read_entry(a: int, i: int) -> ExactBlockSums | None:
            design, content = mechanism.entries[a][i], given["entries"].get(f"{a},{i}")
            if design is None or content is None:
                return None
            receiver = ExactBlockSums.read_receiver(Fields(content["receiver"], "receiver"), design.target)
            law, last = ExactBlockSums.read_noise(content["law"], receiver), content.get("last_block")
            ending = None if last is None else LastBlock.from_configuration(last)
            return ExactBlockSums(design, one, tolerance, law, receiver, ending)

        return cls(mechanism, inputs, tolerance, _for_each(mechanism.target, read_entry))

    # --- as it is shown ---------------------------------------------------------------------------

    def __repr__(self) -> str:
        p, m = self.mechanism.target.shape
        return f"<ExactBlockChannels {self.mechanism.name!r}: {p} × {m}, predicted RMSE {self.error_text}>"

    def _repr_html_(self) -> str:
        terms = self.terms(self.mechanism.privacy, self.inputs)
        shown = {**terms.published, **terms.noise, "lag": self.lag_text, "predicted RMSE": self.error_text}
        return html.notebook(html.facts(shown, caption=self.mechanism.name), *self.guarantee.shown())


def _for_each(target: FilterMatrix, make: Callable[[int, int], ExactBlockSums | None]) -> Entries:
    """Make an entry for each output and input."""
    p, m = target.shape
    return tuple(tuple(make(a, i) for i in range(m)) for a in range(p))


def _published(x: ExactBlockSums) -> tuple[Any, ...]:
    """Return what decides the sums of an entry that are published."""
    return x.schedule, x.noise, x.n_steps


def _entry_content(x: ExactBlockSums) -> dict[str, Any]:
    """Return what an entry has beyond its design, as JSON holds it."""
    last = {} if x.last_block is None else {"last_block": x.last_block.configuration}
    return {"law": laws_content(x.noise), "receiver": x.receiver_content(), **last}
