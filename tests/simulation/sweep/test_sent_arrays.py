import multiprocessing
import pickle
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dp
from dpfast.simulation.sweep import sent_arrays
from dpfast.simulation.sweep.executors import ExecutorEngine, Pool
from dpfast.simulation.sweep.sent_arrays import Inbox, Lacking, Numbers, Outbox, Sender, Shelf, do_parcel

N = sent_arrays._LARGE // 8


def frozen(value, n=N):
    x = np.full(n, float(value))
    x.setflags(write=False)
    return x


def test_a_large_array_goes_once_to_a_worker():
    numbers, outbox, inbox, x = Numbers(), Outbox(), Inbox(), frozen(3)
    sizes = []
    for i in range(3):
        message = outbox.message(numbers.pack(("job", i, {"strategy": x})))
        sizes.append(len(message))
        name, number, parts = inbox.read(message)
        assert (name, number, parts["strategy"].tobytes()) == ("job", i, x.tobytes())
        assert not parts["strategy"].flags.writeable
    assert sizes[0] > x.nbytes
    assert max(sizes[1:]) < 500
    assert len(Outbox().message(numbers.pack(x))) > x.nbytes  # to another worker


def test_what_may_change_goes_along_every_time():
    numbers, outbox, inbox, x = Numbers(), Outbox(), Inbox(), np.zeros(N)
    inbox.read(outbox.message(numbers.pack(x)))
    x[:] = 5
    assert (inbox.read(outbox.message(numbers.pack(x))) == 5).all()


@given(
    jobs=st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=12),
    room=st.sampled_from([0, 1, 2, 3, 100]),
)
def test_a_worker_has_what_its_job_needs_and_forgets_the_rest(jobs, room):
    numbers, outbox, inbox = Numbers(), Outbox(), Inbox()
    arrays = [frozen(i) for i in range(6)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sent_arrays, "_KEPT", room * arrays[0].nbytes)
        for job in jobs:
            found = inbox.read(outbox.message(numbers.pack([arrays[i] for i in job])))
            assert [x[0] for x in found] == job
            assert len(inbox._arrays) <= max(room, len(set(job)))


def first_entries(arrays):
    assert not any(x.flags.writeable for x in arrays)
    return [float(x[0]) for x in arrays]


def test_a_pool_sends_arrays_that_jobs_share(monkeypatch):
    arrays = [frozen(i) for i in range(3)]
    items = [[arrays[i % 3], arrays[(i + 1) % 3]] for i in range(12)]
    sent = []
    message = Outbox.message
    monkeypatch.setattr(Outbox, "message", lambda self, job: sent.append(message(self, job)) or sent[-1])
    with Pool(2) as pool:
        found = {id(item): result for item, result in pool.run(first_entries, items)}
    assert found == {id(item): first_entries(item) for item in items}
    assert sum(len(x) > N * 8 for x in sent) <= 2 * 3  # each array at most once to each worker


def test_a_design_of_a_sweep_has_arrays_that_go_once():
    """Else nothing would be saved: what is compiled is read-only, and the same object in all tasks."""
    mechanism = dp.optimal_factorization(dp.Toeplitz(np.ones(160)), dp.Privacy(1.0, 1e-6))
    numbers, outbox, inbox, compiled = Numbers(), Outbox(), Inbox(), mechanism.compiled()
    messages = [outbox.message(numbers.pack(compiled)) for _ in range(2)]
    assert len(messages[1]) < 0.1 * len(messages[0])
    u = np.ones((3, 160))
    for message in messages:
        assert (inbox.read(message).run(u, 1, 0)[1] == compiled.run(u, 1, 0)[1]).all()


# --- behind an executor ---------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def empty_shelf(monkeypatch):
    monkeypatch.setattr(sent_arrays, "_shelf", Shelf())


class Strangers:
    """An executor that does each task at once, as one of so many workers, in turn or by chance; it counts bytes."""

    def __init__(self, choices, n=3):
        self.choices, self.shelves, self.sizes = iter(choices), [Shelf() for _ in range(n)], []

    def submit(self, function, *arguments):
        task = pickle.dumps((function, arguments), protocol=4)  # forgets what is read-only
        self.sizes.append(len(task))
        function, arguments = pickle.loads(task)
        future = Future()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sent_arrays, "_shelf", self.shelves[next(self.choices, 0)])
            future.set_result(pickle.loads(pickle.dumps(function(*arguments))))
        return future


@given(
    jobs=st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=15),
    choices=st.lists(st.integers(0, 2), max_size=30),
    room=st.sampled_from([0, 1, 2, 100]),
)
def test_whoever_takes_a_job_gets_its_arrays(jobs, choices, room):
    arrays, executor = [frozen(i) for i in range(4)], Strangers(choices)
    items = [[arrays[i] for i in job] for job in jobs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sent_arrays, "_KEPT", room * arrays[0].nbytes)
        found = list(ExecutorEngine(executor, 2).run(first_entries, items))
    assert sorted(x for _, x in found) == sorted(map(first_entries, items))
    for shelf in executor.shelves:
        assert len(shelf._arrays) <= max(room, 4)


def test_an_array_is_sent_until_all_strangers_have_it():
    """An answer that it is lacking costs another sending, to anybody: as many as coupons are collected with."""
    x, by_chance = frozen(7), np.random.default_rng(3)
    executor = Strangers(by_chance.integers(0, 3, 500).tolist())
    assert [y for _, y in ExecutorEngine(executor, 1).run(first_entries, [[x]] * 200)] == [[7.0]] * 200
    n_whole = sum(size > x.nbytes for size in executor.sizes)
    assert all(shelf._arrays for shelf in executor.shelves)
    assert 3 <= n_whole <= 9
    assert len(executor.sizes) == 200 + n_whole - 1


def test_two_senders_do_not_take_each_others_arrays():
    first, second = Sender(), Sender()
    one, two = (sender.parcel(first_entries, [frozen(i)]) for i, sender in enumerate((first, second)))
    assert (do_parcel(one), do_parcel(two)) == ([0.0], [1.0])
    first.close()
    assert isinstance(do_parcel(first.parcel(first_entries, [frozen(5)])), list)
    assert isinstance(do_parcel(one._replace(given={})), Lacking)
    assert do_parcel(two._replace(given={})) == [1.0]


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_an_executor_is_sent_arrays_that_jobs_share(kind):
    arrays = [frozen(i) for i in range(3)]
    items = [[arrays[i % 3], arrays[(i + 1) % 3]] for i in range(12)]
    spawn = multiprocessing.get_context("spawn")
    with ThreadPoolExecutor(2) if kind == "threads" else ProcessPoolExecutor(1, spawn) as executor:
        found = {id(item): result for item, result in ExecutorEngine(executor).run(first_entries, items)}
    assert found == {id(item): first_entries(item) for item in items}
    assert not sent_arrays._shelf._arrays  # nothing stays in this process
