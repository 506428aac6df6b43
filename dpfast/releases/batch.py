"""A release of a whole signal at once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpfast._support import html_fragments as html
from dpfast._support import plotting, validation
from dpfast._support.dataframes import unwrap
from dpfast._support.validation import Array
from dpfast.mechanisms.mechanism_kinds import AnyMechanism
from dpfast.releases.arbiters.place import PlaceLike
from dpfast.releases.batch_run import run_mechanism
from dpfast.releases.composed_releases import compose_guarantee, declared_bounds
from dpfast.releases.guarantee import Guarantee
from dpfast.releases.integer.design_words import describe_design
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.exact_forms import as_exact, declare_end
from dpfast.releases.integer.inputs import Inputs, Integers
from dpfast.releases.integer.last_block import LastBlockChoice
from dpfast.releases.ledger.account import Account
from dpfast.releases.ledger.ledger import Ledger, as_ledger
from dpfast.releases.model_check.adapted_estimates import AdaptedEstimates, adapt_estimates, check_adaptable
from dpfast.releases.model_check.verdict import ModelCheck, check_whole, warn_of_contradiction
from dpfast.releases.persons.declared_persons import Persons
from dpfast.releases.persons.person_spans import PersonSpans
from dpfast.releases.persons.protection import check_events, open_protection, published_steps
from dpfast.releases.private_counts import PrivateCounts
from dpfast.releases.rounded_numbers import format_rounded_up
from dpfast.releases.store.push_limits import MAX_BATCH, check_push
from dpfast.releases.store.release_store import ReleaseStore

Path = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Release:
    """Read what a release has published; all of it is public, the labels of `estimate` too.

    Attributes
    ----------
    first : int
        Number of its first step; of a release that was read, the first step that the store still has.
    privatized : array of int64, (streams, time + lag), or (streams, sums, time + lag)
        v, exact integers, or of channels; of a stream that goes on the last `lag` steps have no estimate yet.
    estimate : array, (streams, time) or (outputs, time), or of the kind of the input, with its labels
        At t of the target's output at step first + t; outputs of several streams together have no labels.
    predicted_rmse_if_model_holds : float or None
        Root mean square error that is predicted for the estimates if the data follow the model of the design, its mean
        and spectrum; None where only simulation tells. Of block sums it is the mean over the steps of a cycle when all
        blocks end, or over those of the horizon: steps behind a release err less. It is not measured on the data, and
        where they do not follow the model the true error may be several times as large, or less: `model_check` says
        what v tells. Of several streams together it is that of all outputs, and `output_rmse_if_model_holds` of each.
    guarantee : Guarantee
    model_check : ModelCheck
        Whether v agrees with the model of the design, and the error estimated from v.
    number : int
        The number of the release in its store, counted from 1.
    name : str or None
        The name that the command gave it.
    times : array of datetime64, (time,), or None
        Left edges of the bins of `estimate`, where the store declares bins, in UTC or the declared local clock.
    groups : tuple of str, or None
        Names of the streams, where the store declares them.
    channels, outputs : tuple of str, or None
        Names of the rows of `privatized` and of `estimate` then: the groups, but for several streams together.
    explained_if_model_holds : float or None
        1 - MSE/variance of the true output, both under the model of the design; None where one of them is not known.
    constant_rmse_if_model_holds : float or None
        What publishing the mean of the true output alone would err by under that model; None without one.
    declared : mapping or None
        What the store declares of its steps, values and persons, where it does.
    ledger : str or None
        What the ledger said of all releases together, with this one, where it was entered in one.
    adapted : AdaptedEstimates or None
        What a receiver fitted to v estimates, where that was asked for.
    released : array of bool, (time + lag,) or (sums, time + lag), or None
        At which steps a number was published, which depends on the mechanism alone: of block sums where a block ends,
        and `privatized` is 0 elsewhere; of filters everywhere.
    output_rmse_if_model_holds : tuple of float, (outputs,), or None
    design : mapping or None
        What is estimated, by which mechanism, how late, and what its design assumed of the data, in words.
    missed : int
        Bins that ended while no process of a live release ran: `missed.csv` lists them, and they count as empty.
    """

    first: int
    privatized: Integers
    estimate: Any
    predicted_rmse_if_model_holds: float | None
    guarantee: Guarantee
    model_check: ModelCheck
    number: int = 1
    name: str | None = None
    times: NDArray[np.datetime64] | None = None
    groups: tuple[str, ...] | None = None
    explained_if_model_holds: float | None = None
    declared: Mapping[str, Any] | None = None
    ledger: str | None = None
    adapted: AdaptedEstimates | None = None
    released: NDArray[np.bool_] | None = None
    output_rmse_if_model_holds: tuple[float, ...] | None = None
    channels: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    missed: int = 0
    design: Mapping[str, str] | None = None
    constant_rmse_if_model_holds: float | None = None

    @property
    def digest(self) -> str:
        """Return SHA-256 of `privatized`, as 64-bit little-endian numbers, stream after stream."""
        return hashlib.sha256(np.ascontiguousarray(self.privatized, "<i8").tobytes()).hexdigest()

    def __repr__(self) -> str:
        return f"<{self._size()}: epsilon {format_rounded_up(self.guarantee.epsilon, 6)}>"

    def plot(self, *, stream: int = 0, ax: Any = None) -> Any:
        """Draw the published estimates of one stream, with the band in which the true output lies in 95 % of the steps.

        Parameters
        ----------
        stream : int
            Which one, counted from 0.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default new axes of pyplot.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        MissingExtraError
            Without matplotlib (extra ``plot``).
        """
        return plotting.draw(self, None, ax, stream=stream)

    def _repr_html_(self) -> str:
        error = "-" if self.predicted_rmse_if_model_holds is None else f"{self.predicted_rmse_if_model_holds:.6g}"
        shown = html.facts({"predicted RMSE if the model holds": error}, caption=self._size())
        said = html.paragraphs("\n\n".join(str(x) for x in (self.model_check, self.adapted) if x is not None))
        return html.notebook(shown, plotting.small_picture(self), said, *self.guarantee.shown())

    def _size(self) -> str:
        """Say how many steps and streams it has."""
        rows = self.estimate.shape[0] if isinstance(self.estimate, np.ndarray) else len(self.privatized)
        what = (
            f"{rows} streams" if rows == len(self.privatized) else f"{rows} outputs of {len(self.privatized)} channels"
        )
        return f"Release of {self.estimate.size // rows} steps from {self.first}, {what}"


def release(
    mechanism: AnyMechanism | ExactBase,
    u: Any,
    path: PlaceLike,
    inputs: Inputs | None = None,
    *,
    first: int = 0,
    compose: bool = False,
    published: Path | None = None,
    tolerance: float = 1e-3,
    adopt: bool = False,
    persons: Persons | None = None,
    ledger: Ledger | PlaceLike | None = None,
    adapt: bool = False,
    last_block: LastBlockChoice | None = None,
    witness: PlaceLike | None = None,
) -> Release:
    r"""Release a whole signal in exact integer arithmetic, and enter it in a store: it is published once.

    It publishes v = g ∗ x + n with integers x of u, integer taps g and exact discrete Gaussian noise n (Canonne, Kamath
    and Steinke 2020; Karney 2016), or sums of blocks, or single inputs, with exact noise on the integers: what
    :func:`exact` makes of the mechanism. Everything else is computed from v. A mechanism of lag D runs D steps beyond
    the end, on declared zeros: x = 0, the centre. A block of sums that the last step of u leaves unfinished is dropped,
    or published there.

    Parameters
    ----------
    mechanism : Mechanism or ExactMechanism
        None of its inputs fitted to private data.
    u : array (streams, time), or Series, DataFrame or DataArray; Events with `persons`
        Private, of an integer dtype; floats where `inputs` declares what a NaN counts as. One stream may be (time,).
        Rows of a pandas DataFrame are times and columns streams; an xarray DataArray has a dimension "time".
    path : path-like
        Folder of the private store, made where there is none.
    inputs : Inputs
        What is declared of the data; with an ExactMechanism its own.
    first : int
        Number of the first step: 0, or where this continues what was released before.
    compose : bool
        Release steps that this store has released already, and state the guarantee of all these releases together.
        Otherwise a second release of the same steps is refused. If releases of the store declare different
        persons (`n_streams`, `streams_per_person`, `max_change`, `max_events`, `min_separation`), the guarantee is
        that of all of them together anyway, for a person of the largest of these bounds.
    published : path-like, optional
        Folder of what is public: the guarantee and the witness of the store. By default beside `path`, its name with
        "-published".
    tolerance : float
        As in :func:`exact`.
    adopt : bool
        Take over a store that was copied, moved or written over by a copy, on purpose.
    persons : Persons, optional
        Protect persons: `u` are Events, of which those are kept that the bounds of mechanism and inputs allow each
        person, over all releases of the store. Without it the guarantee is per event.
    ledger : Ledger or path-like, optional
        Enter what the release costs in this ledger, before anything is published; beyond its cap it is refused. Needed
        where the store has entered releases in one.
    adapt : bool
        Fit the receiver to v as well, as :func:`adapt` does, and return what it estimates as `adapted`. That costs no
        privacy: `estimate` is the same as without, and v too.
    last_block : {"drop", "publish"}, optional
        For block sums alone, what becomes of a block that the last step leaves unfinished, as in :func:`exact`; by
        default that of an ExactBlockSums, and "drop". How many steps there are is public.
    witness : path-like or Postgres, optional
        A second witness, elsewhere than the store and what is published: it tells where both were set back together, as
        by the snapshot of a machine. A folder, or a place in a database, which any number of stores may have in common.
        A store that has one is not written without it.

    Returns
    -------
    Release

    Raises
    ------
    ReleaseError
        Where the store refuses, or the design depends on private data.
    ValueError
        For another type or shape, and for labels of time that are not equally spaced. Nothing is refused for a value:
        values outside of the range are clamped.

    Warns
    -----
    AccuracyWarning
        Where a Mechanism explains less than half of the variance of the true output, both under the model of its
        design; of an ExactMechanism :func:`exact` has warned. Nothing is measured on the data.
    ModelWarning
        Where v, which is published, contradicts the model of the design, so that `predicted_rmse_if_model_holds` does
        not hold; by a test of level 0.001, see :class:`ModelCheck`.

    Notes
    -----
    *Privacy.* As `guarantee` says, which is also saved among the published files. Every call draws new noise: two
    releases of the same data are two releases. A release is entered in the store in one transaction, before anything
    is returned: after a crash either all of it is there, and :func:`read_release` gives it, or nothing was spent.

    The labels of a Series, DataFrame or DataArray (index, columns, names, coordinates; not `attrs`, which are dropped)
    are declared to be public: they come with the estimates as they are, and what is refused may depend on them. They
    must not depend on anybody's events, as times from the first event to the last, or a column for every place with an
    event, would.

    Examples
    --------
    >>> import dpfast as dp, tempfile
    >>> mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6))
    >>> counts = np.array([0, 2, 1, 0, 3])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = dp.release(mechanism, counts, folder + "/store", dp.Inputs(0, 20))
    >>> result.estimate.shape
    (1, 5)
    """
    validation.instance("adapt", adapt, bool, "True or False")
    account = as_ledger(ledger)
    batch = Batch(
        as_exact(mechanism, inputs, tolerance),
        u,
        first,
        compose=compose,
        persons=persons,
        adapt=adapt,
        last_block=last_block,
    )
    with ReleaseStore.open(path, published, adopt=adopt, witness=witness) as store:
        result = batch.enter(store, account)
    warn_of_contradiction(result.model_check, adapted=adapt)
    return result


class Batch:
    """A whole signal to be released, checked but for the store; it takes what :func:`release` takes, and a name."""

    def __init__(
        self,
        plan: ExactBase,
        u: Any,
        first: int,
        *,
        compose: bool,
        name: str | None = None,
        persons: Persons | None = None,
        adapt: bool = False,
        last_block: LastBlockChoice | None = None,
    ) -> None:
        self._events, self._persons = check_events("u", u, persons), persons
        values, wrap = (np.empty((u.n_streams, 0), np.int64), None) if self._events is not None else unwrap("u", u)
        streams = plan.inputs.check("u", values)
        validation.instance("compose", compose, bool, "True or False")
        n_steps = streams.shape[1] if self._events is None else self._events.n_steps
        plan = declare_end(plan, last_block, n_steps if last_block == "publish" else None)
        self._plan, self._compose, self._name, self._lag = plan, compose, name, plan.lag or 0
        self._first = check_push(
            first, plan.published_rows(len(streams)) * plan.per_step, n_steps + self._lag, MAX_BATCH
        )
        plan.check_steps(n_steps, whole=True)
        if adapt:
            check_adaptable(plan, n_steps)
        self._x, self._n_steps, self._adapt = plan.inputs.integers(streams), n_steps, adapt
        self._shape, self._wrap = values.shape, None if values is u or plan.mixes_streams else wrap

    def enter(self, store: ReleaseStore, ledger: Ledger | None = None, seen: PrivateCounts | None = None) -> Release:
        """Publish the signal in a store, which enters it in a ledger before.

        Of events of persons `seen` counts, for the operator, what is left out.
        """
        plan, first, n = self._plan, self._first, self._n_steps
        if store.declaration is not None:
            store.declaration.check_no_shard(store.path)
        store.hold(declared_bounds(plan))
        earlier = store.check_released(first, n, compose=self._compose)
        protection = open_protection(store, self._persons, plan)
        spans = None if protection is None else PersonSpans.of(protection.bounds, plan.memory, first, n)
        account, alone = Account(store, ledger), compose_guarantee(plan, [], [], store.unchecked, spans)
        account.check(alone, first, n, name=self._name)
        x, bounded = self._x, None
        if protection is not None and self._events is not None:
            bounded = protection.bound(self._events, first, published_steps(store.releases()))
            if seen is not None:
                seen.count_beyond(bounded.n_dropped)
                seen.count_clamped(bounded.counts)
            x = plan.inputs.integers(bounded.counts)
        guarantee = compose_guarantee(plan, store.releases(), earlier, store.unchecked, spans)
        account.enter(alone, first, n, name=self._name)
        v, estimate = run_mechanism(plan, x)
        number = store.enter_batch(
            plan.configuration,
            guarantee,
            first,
            v,
            estimate,
            n_streams=plan.inputs.n_streams,
            compose=self._compose,
            name=self._name,
            persons=None if bounded is None else bounded.change,
        )
        account.confirm()
        if protection is not None and bounded is not None:
            protection.settle(bounded)
        return self._describe(first, v, estimate, guarantee, number, store.spent.said(number))

    def _describe(
        self, first: int, v: Integers, estimate: Array, guarantee: Guarantee, number: int, ledger: str | None
    ) -> Release:
        """Say what was published, and what it tells: of v alone."""
        plan, n = self._plan, self._n_steps
        check = check_whole(plan.evidence(v, n))
        adapted = adapt_estimates(plan, v, n, check) if self._adapt else None
        if adapted is not None:
            adapted = replace(adapted, estimate=self._label(adapted.estimate))
        return Release(
            first,
            v,
            self._label(estimate),
            plan.predicted_rmse_if_model_holds,
            guarantee,
            check,
            number,
            self._name,
            explained_if_model_holds=plan.explained_if_model_holds,
            ledger=ledger,
            adapted=adapted,
            released=plan.released(0, v.shape[-1], n),
            output_rmse_if_model_holds=plan.output_rmse_if_model_holds,
            design=describe_design(plan.mechanism),
            constant_rmse_if_model_holds=plan.constant_rmse_if_model_holds,
        )

    def _label(self, estimate: Array) -> Any:
        """Give estimates the labels of the input."""
        if self._wrap is None:
            return estimate
        labelled: Any = self._wrap(estimate.reshape(self._shape))
        labelled.attrs = {}  # they may tell of the data, as the attribute "actual_range" of a file does
        return labelled
