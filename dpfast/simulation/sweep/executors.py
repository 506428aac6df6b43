"""Engines that run tasks: in this process, in processes of our own, or wherever an executor takes them.

An engine is a function applied to many items, with results as they come. It promises no order, and tasks need none: a
block has the same bits wherever it is simulated.
"""

from __future__ import annotations

import abc
import collections
import contextlib
import itertools
import logging
import multiprocessing.connection
import pickle
import queue
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent import futures
from typing import Any, NoReturn, Self, TypeVar

from dpfast._support import thread_count, validation
from dpfast._support.errors import EngineError
from dpfast.simulation.sweep.sent_arrays import Lacking, Numbers, Parcel, Sender, do_parcel
from dpfast.simulation.sweep.worker_processes import Job, Worker, end_if_imported

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger("dpfast.studies")

_REPEATS = 3  # how often a task is repeated whose worker has died
_LOOK = 0.1  # seconds: how long Ctrl-C may have to wait on Windows
_CONNECT = 10.0  # seconds, to a scheduler
_GO_ON = "what is finished is kept: start again with the same store to go on"


class Engine(abc.ABC):
    """An engine that applies a function to items; a context manager."""

    n_threads = 1  # that a task may use

    @property
    @abc.abstractmethod
    def in_flight(self) -> int:
        """The number of items that are taken before their results are asked for, at most."""

    @abc.abstractmethod
    def run(self, function: Callable[[T], R], items: Iterable[T]) -> Generator[tuple[T, R], None, None]:
        """Yield (item, result) as they come. An error of the function is raised here, and ends the run."""

    def close(self) -> None:  # noqa: B027  some have nothing to leave
        """Release what the engine holds, so that nothing is left behind."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ThisProcess(Engine):
    """An engine in this process: one task after the other, each on so many threads."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads

    @property
    def in_flight(self) -> int:
        """One item: that which is under way."""
        return 1

    def run(self, function: Callable[[T], R], items: Iterable[T]) -> Generator[tuple[T, R], None, None]:
        """See :meth:`Engine.run`."""
        for item in items:
            yield item, function(item)


# --- processes of our own -------------------------------------------------------------------------


class Pool(Engine):
    """A pool of processes of one thread each. One that dies is replaced and its task repeated, up to three times.

    They are started afresh, not forked, so they hold no lock and no file of this one. They end with the pool, and with
    this process, however it ends.
    """

    def __init__(self, n_workers: int) -> None:
        end_if_imported()
        self.n_workers = n_workers
        self._workers: list[Worker] = []
        self._numbers = Numbers()
        self._fill()

    @property
    def in_flight(self) -> int:
        """Two items for each worker: as many are ready to go out as are under way."""
        return 2 * self.n_workers

    def run(self, function: Callable[[T], R], items: Iterable[T]) -> Generator[tuple[T, R], None, None]:
        """See :meth:`Engine.run`."""
        jobs: collections.deque[Job] = collections.deque()
        rest = map(Job, items, itertools.repeat(function), itertools.repeat(self._numbers))
        more = True
        self._fill()
        try:
            while True:
                self._hand_out(jobs)
                n_busy = sum(worker.job is not None for worker in self._workers)
                if more and len(jobs) + n_busy < self.in_flight:
                    new = list(itertools.islice(rest, 1))
                    more = bool(new)
                    jobs += new
                elif n_busy or jobs:
                    yield from self._receive_answers(jobs)
                else:
                    return
        finally:
            self._end([worker for worker in self._workers if worker.job is not None])

    def _hand_out(self, jobs: collections.deque[Job]) -> None:
        for worker in self._workers:
            if jobs and worker.ready and worker.job is None:
                worker.give(jobs.popleft())

    def _receive_answers(self, jobs: collections.deque[Job]) -> Iterator[tuple[Any, Any]]:
        """Yield what has come in, after a while at the latest; jobs of dead workers go back."""
        by_connection = {worker.connection: worker for worker in self._workers}
        for connection in multiprocessing.connection.wait(list(by_connection), _LOOK):
            worker = by_connection[connection]  # type: ignore[index]
            data = worker.receive()
            if data is None:
                jobs.extendleft(self._replace(worker))
                continue
            job, worker.job, was_ready, worker.ready = worker.job, None, worker.ready, True
            if was_ready and job is not None:
                succeeded, value = pickle.loads(data)
                if not succeeded:
                    raise value
                self._hand_out(jobs)  # the worker goes on while the caller looks at what it gave
                yield job.item, value

    def _replace(self, worker: Worker) -> list[Job]:
        """Start another worker for a dead one; return the job that it leaves."""
        self._end([worker])
        if worker.is_unguarded:
            raise EngineError(
                "workers must be started under `if __name__ == '__main__':` in a script, as each of them imports it: "
                "put the call there, with workers= as it is"
            )
        if not worker.ready:
            raise EngineError(f"a worker could not start and ended with {worker.exit_code}: see its message")
        log.warning(
            "a worker died with %s; it is replaced%s", worker.exit_code, " and its task repeated" * bool(worker.job)
        )
        self._fill()
        if worker.job is None:
            return []
        worker.job.n_deaths += 1
        if worker.job.n_deaths > _REPEATS:
            raise EngineError(
                f"a task has ended {worker.job.n_deaths} workers, the last with {worker.exit_code}: is there too "
                f"little memory for so many workers? {_GO_ON}"
            )
        return [worker.job]

    def _fill(self) -> None:
        while len(self._workers) < self.n_workers:
            self._workers.append(Worker())

    def _end(self, workers: list[Worker]) -> None:
        for worker in workers:
            worker.process.kill()  # all at once, and only then one after the other
        for worker in workers:
            worker.end()
            self._workers.remove(worker)

    def close(self) -> None:
        """End the workers at once, whatever they do."""
        self._end(list(self._workers))


# --- executors ------------------------------------------------------------------------------------


class ExecutorEngine(Engine):
    """An engine on somebody's executor, of which only `submit` is used; it is never shut down here.

    Functions and items are pickled, also for threads; large arrays that items share are sent until all workers have
    them, and then no more.

    Parameters
    ----------
    executor : concurrent.futures.Executor
    in_flight : int or callable, optional
        By default two for each of its workers where it says how many they are, or else for each processor here.
    lost : tuple of exception types
        What its futures raise, beside what those of the standard library do, when it has lost workers for good.
    """

    def __init__(
        self,
        executor: futures.Executor,
        in_flight: int | Callable[[], int] | None = None,
        lost: tuple[type[Exception], ...] = (),
    ) -> None:
        self.executor, self._in_flight = executor, _default_in_flight(executor) if in_flight is None else in_flight
        self._pending: dict[Any, Any] = {}
        self._sender = Sender()
        self._lost: tuple[type[Exception], ...] = (
            futures.BrokenExecutor,
            futures.CancelledError,
            *lost,
        )

    @property
    def in_flight(self) -> int:
        """The number of items, which may change while workers come and go."""
        return self._in_flight() if callable(self._in_flight) else self._in_flight

    def run(self, function: Callable[[T], R], items: Iterable[T]) -> Generator[tuple[T, R], None, None]:
        """See :meth:`Engine.run`."""
        pending: dict[futures.Future[R | Lacking], tuple[T, Parcel]] = {}
        self._pending = pending
        done: queue.SimpleQueue[futures.Future[R | Lacking]] = queue.SimpleQueue()
        rest, more = iter(items), True

        def submit(item: T, parcel: Parcel) -> None:
            future = self._submit(parcel)
            pending[future] = item, parcel
            future.add_done_callback(done.put)

        try:
            while more or pending:
                while more and len(pending) < self.in_flight:
                    new = list(itertools.islice(rest, 1))
                    more = bool(new)
                    for item in new:
                        submit(item, self._sender.parcel(function, item))
                if pending:
                    future = _take_next(done)
                    item, parcel = pending.pop(future)
                    result = self._result(future)
                    if isinstance(result, Lacking):
                        submit(item, self._sender.complete(parcel))
                    else:
                        yield item, result
        finally:
            self.close()

    def close(self) -> None:
        """Cancel what is under way."""
        for future in self._pending:
            future.cancel()
        self._sender.close()

    def _submit(self, parcel: Parcel) -> futures.Future[Any]:
        try:
            return self.executor.submit(do_parcel, parcel)
        except self._lost as error:
            self._fail(error)

    def _result(self, future: futures.Future[T]) -> T:
        try:
            return future.result()
        except self._lost as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> NoReturn:
        raise EngineError(
            f"the executor has lost its workers, or the way to them ({type(error).__name__}); {_GO_ON}, with a new "
            "executor"
        ) from error


def _default_in_flight(executor: futures.Executor) -> int:
    """Return two tasks for each worker, at least four."""
    told = [getattr(executor, name, None) for name in ("_max_workers", "num_workers")]
    n_workers = next((x for x in told if isinstance(x, int)), thread_count.n_threads(None))
    return max(4, 2 * n_workers)


def _take_next(done: queue.SimpleQueue[T]) -> T:
    """Take the next of a queue, in steps: a wait without a limit would hold up Ctrl-C on Windows."""
    while True:
        with contextlib.suppress(queue.Empty):
            return done.get(timeout=_LOOK)


@contextlib.contextmanager
def connect_dask(address: str) -> Iterator[ExecutorEngine]:
    """Connect to the workers of a Dask scheduler, two tasks for each of their threads; workers may come and go.

    The task of a worker that is lost goes to another one. One that has lost more workers than the scheduler's
    ``distributed.scheduler.allowed-failures`` says (3 by default) ends the sweep.

    Raises
    ------
    EngineError
        If no scheduler answers there.
    """
    distributed = validation.optional("distributed", "dask")
    try:
        client = distributed.Client(address, timeout=_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise EngineError(
            f"no Dask scheduler answers at {address!r} ({type(error).__name__}): start one with `dask scheduler`, and "
            "workers with `dask worker ADDRESS`"
        ) from None
    # every task is new (not pure): no need to find out whether it is equal to another one
    executor, lost = client.get_executor(pure=False), (distributed.KilledWorker,)
    with client, ExecutorEngine(executor, _ClusterSize(client), lost) as engine:
        yield engine


class _ClusterSize:
    """The size of a cluster, asked now and then: two tasks for each of its threads, at least four."""

    def __init__(self, client: Any) -> None:
        self.client, self.count, self.until = client, 0, 0.0

    def __call__(self) -> int:
        if time.monotonic() > self.until:
            n_threads = sum(self.client.nthreads().values())
            self.count, self.until = max(4, 2 * n_threads), time.monotonic() + 2
        return self.count
