import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dp
from dpfast.simulation.sweep import sent_arrays
from dpfast.simulation.sweep.executors import Pool
from dpfast.simulation.sweep.sent_arrays import Inbox, Numbers, Outbox

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
