"""Durable streams: what is pushed is published once, whatever happens in between."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from dpfast._support import validation
from dpfast._support.errors import ReleaseError
from dpfast.releases.composed_releases import compose_guarantee
from dpfast.releases.integer.exact_base import ExactBase
from dpfast.releases.integer.inputs import Integers
from dpfast.releases.integer.receiver_parts import ReceiverParts
from dpfast.releases.ledger.account import Account
from dpfast.releases.ledger.ledger import Ledger
from dpfast.releases.model_check.adapted_estimates import AdaptedEstimates, adapt_estimates, check_adaptable
from dpfast.releases.model_check.verdict import Evidence, FirstPruned, ModelCheck, check_growing
from dpfast.releases.noise import NoiseOfLaws
from dpfast.releases.persons.declared_persons import Persons
from dpfast.releases.persons.person_events import Events
from dpfast.releases.persons.person_spans import PersonSpans
from dpfast.releases.persons.protection import Bounded, check_events, open_protection, published_steps
from dpfast.releases.private_counts import PrivateCounts
from dpfast.releases.published_steps import (
    Published,
    PublishedSteps,
    declared_length,
    live_release,
    sharing_steps,
)
from dpfast.releases.replayed_steps import ReplayedSteps, last_columns
from dpfast.releases.store.push_limits import check_push
from dpfast.releases.store.release_store import ReleaseStore

if TYPE_CHECKING:
    from dpfast.releases.guarantee import Guarantee


class Stream:
    """Publish live data by a mechanism, with a store that remembers. :func:`open_stream` opens it.

    Steps are numbered from 0. It is a context manager, which leaves by :meth:`suspend`. Threads may share it: calls
    take turns, in no order but that of their `first`. A forked child may not use it, and it cannot be copied or
    pickled.

    Whatever interrupts a call that publishes, Ctrl-C too, makes the object refuse all further ones, as what it has in
    memory and what is in the store may then differ. Opened again the stream goes on exactly: steps that were stored
    are published and can be read, or pushed again with `first`, and the others never happened. Without `first` values
    that are pushed again are new steps: a person's events would count twice.

    Parameters
    ----------
    store, plan, noise, persons, ledger, seen, keep_steps, replay_steps
        As :func:`open_stream` finds or makes them.
    """

    def __init__(
        self,
        store: ReleaseStore,
        plan: ExactBase,
        noise: NoiseOfLaws,
        persons: Persons | None = None,
        ledger: Ledger | None = None,
        seen: PrivateCounts | None = None,
        keep_steps: int | None = None,
        replay_steps: int = 0,
    ) -> None:
        self._store, self._plan, self._noise = store, plan, noise
        self._lock, self._running = threading.RLock(), False
        self._receiver = ReceiverParts(plan)
        n_streams, entry = plan.inputs.n_streams, live_release(store)
        self._persons, self._seen, self._keep_steps, self._replay_steps = persons, seen, keep_steps, replay_steps
        self._rows, self._noise_rows = plan.published_rows(n_streams), plan.noise_rows(n_streams)
        self._protection = open_protection(store, persons, plan)
        spans, beginning = None, None
        if self._protection is not None:
            n, beginning = declared_length(store), self._protection.beginning
            spans = PersonSpans.of(self._protection.bounds, plan.memory, 0, n)
        self._account, self._alone = Account(store, ledger), compose_guarantee(plan, [], [], store.unchecked, spans)
        if entry is None:
            self._account.enter(self._alone, 0, None, kind="live")
            self._release = store.begin_live(plan.configuration, self._alone, n_streams, persons=beginning)
            self._account.confirm()
        else:
            self._account.enter_published()
            self._release = entry.id
        # while it is open nothing else can be released
        others = [x for x in store.releases() if x.id != self._release]
        self._guarantee = compose_guarantee(plan, others, sharing_steps(entry, others), store.unchecked, spans)
        self._steps = PublishedSteps(store, self._release, plan)
        self._state = "closed" if entry is not None and entry.closed else "open"
        self._position, self._history, self._replayed = self._restore_inputs()
        if self._state == "open":
            self._restore_receiver()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.suspend()

    def __repr__(self) -> str:
        return f"<Stream in {str(self._store.path)!r}: next step {self._position}, {self._state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream publishes each step once, so it cannot be copied or pickled: open its store there")

    @property
    def position(self) -> int:
        """The number of the next step."""
        return self._position

    @property
    def lag(self) -> int:
        """The number of steps that an estimate is behind the last one that it takes in."""
        return self._plan.lag or 0

    @property
    def predicted_rmse_if_model_holds(self) -> float | None:
        """The root mean square error that is predicted if the data follow the model of the design."""
        return self._plan.predicted_rmse_if_model_holds

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all that is published, together with batches of the same steps."""
        return self._guarantee

    def prepare(self, n: int = 1) -> None:
        """Draw the noise of the next steps now, in whole blocks: between pushes, so that none has to.

        A push that finds too little draws whole blocks too, before it looks at its chunk. Opening draws the first.

        Parameters
        ----------
        n : int
            Steps.
        """
        with self._take_turn():
            n = validation.integer("n", n, 0)
            check_push(self._position, self._rows, n)
            self._noise.ready(self._noise_rows, self._plan.n_draws(self._position, n))

    def push(self, chunk: Any, *, first: int | None = None) -> Published:
        """Publish the next steps; when this returns they are on the disk.

        Parameters
        ----------
        chunk : array, (streams, n) or (n,) for one stream, or Series, DataFrame or DataArray
            Private values, of a type that the declared inputs allow; n may be 0. Labels say which axis is time, and are
            not kept. Of a stream with `persons` they are Events, whose n_steps is n, and steps count from the first.
        first : int, optional
            Number of the chunk's first step; the next one by default. Steps that were published may be pushed again,
            as after a crash: nothing is drawn again, and what was published is returned. While their inputs are stored,
            those that the filter still needs and `replay_steps` of :func:`open_stream`, they must be the same; older
            ones are not looked at.

        Returns
        -------
        Published
            Of the steps of the chunk.

        Raises
        ------
        ValueError
            For another type or shape. No value is refused: values outside of the range are clamped.
        ReleaseError
            Where steps would be left out, or published with other inputs; for steps that are not kept any more; where
            the stream is over; where the store cannot be written.

        Notes
        -----
        *Privacy.* Nothing depends on values but what is published, with one exception: whether steps that are pushed
        again have the inputs that they had is told, to whoever pushes them.
        """
        published = False
        try:
            with self._take_turn():
                events = check_events("chunk", chunk, self._persons)
                values = chunk if events is None else np.broadcast_to(np.int64(0), events.shape)
                u = self._plan.inputs.check("chunk", values)
                first = check_push(self._position if first is None else first, *u.shape)
                if first > self._position:
                    raise ReleaseError(
                        f"first must be at most the next step, {self._position}, got {first}: a gap would be filled "
                        "by guesses; push what lies between"
                    )
                n = u.shape[1]
                self._check_open(first + n)
                check_push(self._position, self._rows * self._plan.per_step, n)
                known = min(self._position - first, n)
                self._plan.check_steps(first + n)
                if known:
                    self._steps.check_kept(first)
                self._noise.ready(self._noise_rows, self._plan.n_draws(self._position, n - known))
                unseen = min(max(0, self._compared_from() - first), known)
                bounded = self._bound(events, first, unseen)
                x = self._plan.inputs.integers(u[:, unseen:] if bounded is None else bounded.counts)
                self._replayed.compare(first + unseen, x[:, : known - unseen])
                if known < n:
                    self._enter_spans(first + n)
                    published = True
                    self._publish(x[:, known - unseen :], bounded)
                return self._steps.read(first, n)
        except BaseException:
            if published:  # and not returned: whoever tries again would publish the same values as further steps
                self._give_up()
            raise

    def read(self, first: int, count: int) -> Published:
        """Return what was published of steps `first` to ``first + count - 1``.

        Raises
        ------
        ReleaseError
            Where some of them were not published.
        """
        with self._take_turn():
            first, count = validation.integer("first", first, 0), validation.integer("count", count, 0)
            if first + count > self._position:
                raise ReleaseError(
                    f"first + count must be at most the next step, {self._position}, got {first} + {count}: what lies "
                    "behind is not published"
                )
            return self._steps.read(first, count)

    def close(self) -> Published:
        """End the stream: publish the `lag` further steps that the last estimates wait for; their inputs are zeros.

        They are declared, not data: the integer 0, which is the centre. Reading goes on, pushing does not; the store
        then holds no inputs any more. Of a stream that is over it gives these steps again.
        """
        with self._take_turn():
            lag, n_streams = self.lag, self._plan.inputs.n_streams
            if self._state == "open":
                self._noise.ready(self._noise_rows, self._plan.n_draws(self._position, lag, self._position))
                self._publish(np.zeros((n_streams, lag), np.int64), last=True)
                self._store.forget_deleted()
            return self._steps.read(self._position - lag, lag)

    def model_check(self) -> ModelCheck:
        """Compare all that was published so far with the model of the design, and estimate the error from it.

        It is one test for the whole life of the stream: however often this is called, it looks at the first 64, 128,
        256, … steps alone, and the levels of these looks sum up to that which is stated. What one look found stays
        found. The error is estimated from all steps. All of it is computed from the stored v, also after a restart.
        """
        with self._take_turn():
            return check_growing(self._evidence())

    def adapted(self) -> AdaptedEstimates:
        """Fit the receiver to all v so far, as :func:`adapt` does, and estimate all steps from the first on anew.

        Nothing is published by it and nothing spent; the stream goes on with its own receiver.

        Raises
        ------
        ValueError
            For too few steps.
        DesignError
            For a receiver that is not linear, and for what is not a filtered input step by step.
        """
        with self._take_turn():
            n = self._n_inputs
            check_adaptable(self._plan, n)
            v = self._steps.read_v(0, self._position)
            return adapt_estimates(self._plan, v, n, check_growing(self._evidence()))

    def suspend(self) -> None:
        """Leave without publishing anything; the stream can be opened again. In a forked child it does nothing."""
        if self._store.owned:
            with self._lock:
                self._store.close()

    @contextlib.contextmanager
    def _take_turn(self) -> Iterator[None]:
        """Run a call alone, on a stream of this process that nothing interrupted."""
        self._store.check_process()
        with self._lock:
            if self._running:
                raise ReleaseError(
                    f"the stream in {self._store.path} is in the middle of another call of this thread, as where a "
                    "handler of a signal calls it: call it when that one has returned"
                )
            if self._state == "interrupted":
                raise ReleaseError(
                    f"the stream in {self._store.path} was interrupted while it published: open it again, which tells "
                    "by its position how far it came"
                )
            self._store.check_usable()
            self._running = True
            try:
                yield
            finally:
                self._running = False

    def _give_up(self) -> None:
        """Refuse all further calls, and let the store go."""
        self._state = "interrupted"
        self._store.abandon()

    def _check_open(self, end: int) -> None:
        """Refuse steps behind the end of a stream that is over."""
        if self._state == "closed" and end > self._n_inputs:
            raise ReleaseError(f"the stream in {self._store.path} is over at step {self._position}: read it only")

    def _compared_from(self) -> int:
        """Return the step from which on what is pushed again is compared; persons are decided upon in their span."""
        return (
            self._replayed.first if self._protection is None else max(self._replayed.first, self._protection.first_step)
        )

    def _bound(self, events: Events | None, first: int, unseen: int) -> Bounded | None:
        """Decide which events of persons are kept, behind steps of which none is looked at.

        Where steps are published it is decided already.
        """
        if events is None or self._protection is None:
            return None
        seen = events.behind(unseen)
        return self._protection.bound(seen, first + unseen, published_steps(self._store.releases()))

    def _enter_spans(self, position: int) -> None:
        """Enter the spans of persons up to a step in the ledger, before anything of them is published."""
        if self._protection is not None:
            self._account.reach(self._alone, self._protection.bounds.count_spans(0, position))

    def _publish(self, x: Integers, bounded: Bounded | None = None, *, last: bool = False) -> None:
        """Publish new steps, as nothing else does: noise is drawn, and taken once; memory changes behind the disk."""
        n, plan = x.shape[1], self._plan
        self._state = "interrupted"  # until the end
        try:
            position, end = self._position + n, self._position if last else None
            noise = self._noise.take(self._noise_rows, plan.n_draws(self._position, n, end))
            v = plan.privatize(self._history, x, noise, self._position, end)
            estimate = self._receiver.push(v, end)
            needed = 0 if last else plan.needed(position)
            stored = 0 if last else max(needed, min(position, self._replay_steps))
            self._store.append(
                self._release,
                self._position,
                v,
                estimate,
                x=x,
                memory=stored,
                receivers=() if last else self._receiver.next_states(n),
                last=last,
                persons=None if bounded is None else bounded.change,
                prune_before=self._unneeded(position),
            )
            if bounded is not None and self._protection is not None:
                self._protection.settle(bounded)
                if self._seen is not None:
                    self._seen.count_beyond(bounded.n_dropped)
                    self._seen.count_clamped(bounded.counts)
        except BaseException:
            self._give_up()
            raise
        seen = np.concatenate([self._history, x.astype(plan.inputs.dtype)], axis=1)
        self._history, self._position = last_columns(seen, needed), position
        self._replayed.first = max(self._replayed.first, position - stored)
        self._state = "closed" if last else "open"

    def _unneeded(self, position: int) -> int:
        """Return the step before which what was published may be forgotten; 0 where all of it is kept."""
        if self._keep_steps is None:
            return 0
        pushed_again = max(self._plan.needed(position), self._replay_steps)
        return min(position - self.lag - max(self._keep_steps, pushed_again), self._receiver.needed_from)

    def _restore_inputs(self) -> tuple[int, Integers, ReplayedSteps]:
        """Return the next step, the inputs that it needs, and what compares those that are pushed again."""
        position, stored = self._store.memory(self._release)
        needed = 0 if self._state == "closed" else self._plan.needed(position)
        if stored.shape[1] < needed:
            raise self._store.damage_error()
        history = last_columns(stored, needed).astype(self._plan.inputs.dtype)  # the smallest, as all of them stay
        return position, history, ReplayedSteps(self._store, self._release, position - stored.shape[1])

    def _restore_receiver(self) -> None:
        states = self._store.receivers(self._release)
        try:
            self._receiver.restore(states, self._position, self._steps.read_needed)
        except ValueError as error:  # ReleaseError is one, and a server that is lost is no damage
            raise (error if isinstance(error, ReleaseError) else self._store.damage_error()) from None

    @property
    def _n_inputs(self) -> int:
        """Count the steps with inputs."""
        return self._position - (self.lag if self._state == "closed" else 0)

    def _evidence(self) -> Evidence:
        """Return what all of v tells of the model; nothing where the first of it is not kept."""
        if self._steps.first > 0:
            return FirstPruned(self._plan.model, self._n_inputs)
        return self._plan.evidence(self._steps.read_v(0, self._position), self._n_inputs)
