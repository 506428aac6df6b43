"""Interrupted at any instant and started again is never interrupted: the same rows, the same table, to the bit."""

import contextlib
import itertools
import multiprocessing
import os
import random
import signal
import sqlite3
import time
import warnings

import pytest
from helpers import sweeps
from helpers.clusters import eventually
from helpers.interrupts import ctrl_c, press_ctrl_c, unswallowed
from helpers.sweeps import FaultError, Faulty, blocks, rows, run

import dpfast as dp
from dpfast.simulation.sweep import stream_blocks as block
from dpfast.simulation.sweep import sweep_stages as module
from dpfast.simulation.sweep.stream_blocks import STREAMS
from dpfast.simulation.sweep.sweep_store import SweepStore

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forks of this one")
# A task is a block, and so is a transaction: stages of 1, 4, 16, … blocks.
LONG = {"n_samples": 500, "width": 0.002, "budget": 120 * STREAMS * 500}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sweeps.sqlite"


@pytest.fixture(autouse=True)
def _a_block_to_a_task(monkeypatch):
    monkeypatch.setattr(block, "_SECONDS", 0.0)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What is never interrupted: short and long, rows and table."""
    found = {}
    for name, options in (("short", {}), ("long", LONG)):
        path = tmp_path_factory.mktemp(name) / "sweeps.sqlite"
        found[name] = rows(run(store=path, **options)), blocks(path)
    return found


# --- noise on the integers ------------------------------------------------------------------------

OTHER_NOISE = {"target": "moving-average:4", "epsilon": [1, 2], "lag": 1} | {
    "mechanism": ["block_sums", "randomized_response", "input_perturbation"],
    "model": {"bit": "markov:0.75,0.25;0.25,0.75@0,1"},
}
ON_INTEGERS = [
    OTHER_NOISE | {"length": ["best", 3, [2, 6]], "shares": [None, [0.75, 0.25]], "phase": [0, 1], "noise": "best"},
    OTHER_NOISE | {"mechanism": ["block_sums", "input_perturbation"], "model": {"real": "arma:1/1,-0.5@3"}}
    | {"epsilon": 1, "delta": [0, 1e-3], "noise": ["geometric", "staircase"], "unit": [0.5, 1], "length": 3},
]  # fmt: skip


def test_block_sums_and_randomised_response_go_on_to_the_same_bytes(path, tmp_path):
    """Nested lengths, shares, phases, kinds of noise and units, with and without a delta: each is a case of its own."""
    options = {"width": None, "budget": 3 * STREAMS * 50}
    whole = run(ON_INTEGERS, store=tmp_path / "whole.sqlite", **options)
    assert not any(x.error for x in whole)
    assert len({x.noise_std for x in whole}) > 10
    for n in (0, 5, 20):
        with contextlib.suppress(FaultError):
            run(ON_INTEGERS, store=path, executor=Faulty(n), n_threads=None, **options)
    found = run(ON_INTEGERS, store=path, **options)
    assert rows(found) == rows(whole)
    assert found.table().csv() == whole.table().csv()
    assert blocks(path) == blocks(tmp_path / "whole.sqlite")
    nested = found.row(mechanism="block_sums", model="bit", epsilon=1, length="2, 6", shares="0.75, 0.25", phase=1)
    chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [0, 1])
    by_hand = dp.block_sums(
        dp.Filter([0.25] * 4), dp.Privacy(1), chain, lag=1, length=(2, 6), shares=(0.75, 0.25), phase=1
    )
    study = dp.monte_carlo(by_hand, chain, n_streams=3 * STREAMS, n_samples=50, seed=3, burn_in=8)
    assert nested.rmse == pytest.approx(study[by_hand.name].rmse, rel=1e-12)
    assert nested.predicted_mse == by_hand.predicted_mse


# --- faults ---------------------------------------------------------------------------------------


def failing(method, n, after):
    """The method of a store, which fails at the n-th call, before or after it has done its work."""
    calls = itertools.count(1)

    def replaced(*given):
        hit = next(calls) == n
        if hit and not after:
            raise FaultError
        result = method(*given)
        if hit:
            raise FaultError
        return result

    return replaced


@pytest.mark.parametrize(
    ("name", "after"),
    [
        *(("enter", False), ("add", False), ("add", True), ("add_designs", True)),
        *(pytest.param(*x, marks=pytest.mark.long) for x in (("enter", True), ("add_designs", False))),
        ("designs", False),
        ("all_means", False),
    ],
)
def test_a_store_that_fails_at_any_call_costs_nothing_but_that(name, after, tmp_path, whole, monkeypatch):
    for n in itertools.count(1):
        path = tmp_path / f"{n}.sqlite"
        with monkeypatch.context() as patch, contextlib.suppress(FaultError):
            patch.setattr(SweepStore, name, failing(getattr(SweepStore, name), n, after))
            run(store=path)
            break
        assert rows(run(store=path)) == whole["short"][0]
        assert blocks(path) == whole["short"][1]
    assert n > (3 if name.startswith("add") else 1)


def test_an_engine_that_fails_at_any_answer_costs_that_at_most(tmp_path, whole):
    for n in itertools.count():
        path = tmp_path / f"{n}.sqlite"
        with contextlib.suppress(FaultError):
            run(store=path, executor=Faulty(n), n_threads=None)
            break
        with SweepStore(path) as store:
            there = sum(map(len, store.blocks(1).values()))
        assert (there > 0) == (n > 4)  # four designs come first
        assert rows(run(store=path)) == whole["short"][0]
        assert blocks(path) == whole["short"][1]
    assert n > 10


def test_faults_one_after_the_other(path, whole):
    for _ in range(200):
        with contextlib.suppress(FaultError):
            found = run(store=path, executor=Faulty(1), n_threads=None)  # one answer more each time
            break
    assert rows(found) == whole["short"][0]
    assert blocks(path) == whole["short"][1]


# --- Ctrl-C ---------------------------------------------------------------------------------------


def test_ctrl_c_says_how_to_go_on(path, whole, monkeypatch):
    calls, simulate = itertools.count(1), block.simulate_block

    def interrupted(*given):
        if next(calls) == 6:
            press_ctrl_c()
        return simulate(*given)

    with monkeypatch.context() as patch, unswallowed():
        patch.setattr(block, "simulate_block", interrupted)
        with pytest.raises(
            KeyboardInterrupt, match=r"^\d of 4 cases were finished; the same call with seed=3 goes on$"
        ):
            run(store=path)
    assert 0 < len(blocks(path)[0]) < len(whole["short"][1][0])
    assert rows(run(store=path)) == whole["short"][0]
    assert blocks(path) == whole["short"][1]


def test_ctrl_c_while_designs_are_made(path, whole, monkeypatch):
    calls, make_design = itertools.count(1), module.make_design

    def interrupted(task):
        if next(calls) == 3:
            raise KeyboardInterrupt
        return make_design(task)

    with monkeypatch.context() as patch:
        patch.setattr(module, "make_design", interrupted)
        with pytest.raises(KeyboardInterrupt, match=r"^0 of 4 cases were finished; the same call with seed=3 goes on$"):
            run(store=path)
        assert len(blocks(path)[1]) == 2
    assert rows(run(store=path)) == whole["short"][0]


def test_ctrl_c_without_a_store_says_that_all_is_lost():
    with ctrl_c(0.3), pytest.raises(KeyboardInterrupt, match="without a store, all is lost"):
        run(n_samples=10**6, width=None, budget=2e9)


# --- processes ------------------------------------------------------------------------------------


def child(pipe, path, options, gate):
    """In a group of its own, as a command in a terminal: what comes of the sweep, or of Ctrl-C."""
    os.setsid()
    pipe.send("begun")
    gate.wait()
    with unswallowed():
        try:
            said = rows(run(store=path, **options))
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # too late
        except KeyboardInterrupt as error:
            said = str(error)
    pipe.send(said)


class Child:
    """A forked process with a sweep."""

    def __init__(self, path, gate=None, **options):
        context = multiprocessing.get_context("fork")
        self.path, (self.pipe, there) = path, context.Pipe(duplex=False)
        gate = context.Barrier(1) if gate is None else gate
        self.process = context.Process(target=child, args=(there, path, options, gate))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the child needs no thread of those that may be here
            self.process.start()
        there.close()
        assert self.pipe.recv() == "begun"

    def said(self):
        """What it says before it ends by itself; None where it was killed first."""
        with self.pipe, contextlib.suppress(EOFError):
            return self.pipe.recv()
        return None

    def kill(self, number, rng, seconds):
        """A signal to the group, as from a terminal, or to the process alone; soon after it has begun to store."""
        before = count(self.path)
        eventually(lambda: count(self.path) > before or not self.process.is_alive(), 30)
        time.sleep(rng.uniform(0, seconds))
        with contextlib.suppress(ProcessLookupError):
            (os.kill if number == signal.SIGKILL else os.killpg)(self.process.pid, number)

    def ended(self):
        """Whether it is gone, and all that it started."""
        self.process.join()
        code = self.process.exitcode
        assert eventually(lambda: empty(self.process.pid))
        self.process.close()
        return code


def empty(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def count(path):
    """Designs and blocks that are there."""
    with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT (SELECT count(*) FROM blocks) + (SELECT count(*) FROM designs)").fetchone()[0]
    return 0


def hunted(folder, whole, number, n, seconds, **options):
    """Kill a sweep whenever it goes on, and another one when it has come to its end, until n were under way."""
    rng, n_hit, stores = random.Random(1), 0, (folder / f"{k}.sqlite" for k in itertools.count())
    path = next(stores)
    for _ in range(10 * n):
        one = Child(path, **LONG, **options)
        one.kill(number, rng, seconds)
        said = one.said()
        assert one.ended() == (-signal.SIGKILL if said is None else 0)
        if isinstance(said, list):
            assert (said, blocks(path)) == whole["long"]
            path = next(stores)
        else:
            if number == signal.SIGINT:  # it has no more to say when it is leaving
                assert said.endswith("the same call with seed=3 goes on") or blocks(path) == whole["long"][1]
            n_hit += 1
        if n_hit == n:
            break
    assert n_hit == n
    assert rows(run(store=path, **LONG)) == whole["long"][0]
    assert blocks(path) == whole["long"][1]


@forks
@pytest.mark.parametrize("n", [1, pytest.param(6, marks=pytest.mark.long)])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_killed_at_any_instant_in_this_process(number, n, tmp_path, whole):
    hunted(tmp_path, whole, number, n, 0.03)


@forks
def test_killed_at_any_instant_with_workers(tmp_path, whole):
    hunted(tmp_path, whole, signal.SIGKILL, 1, 0.1, workers=2, n_threads=None)


@forks
@pytest.mark.crash
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("workers", [None, 2])
def test_killed_many_times(number, workers, tmp_path, whole):
    hunted(tmp_path, whole, number, 20, 0.05, **({"workers": workers, "n_threads": None} if workers else {}))


@forks
def test_two_processes_with_one_sweep(path, whole):
    gate = multiprocessing.get_context("fork").Barrier(2)
    with contextlib.ExitStack() as stack:
        both = [stack.enter_context(threaded(path, gate, LONG)) for _ in range(2)]
    assert [x.result for x in both] == [whole["long"][0]] * 2
    assert blocks(path) == whole["long"][1]


@forks
@pytest.mark.parametrize("n_blocks", [24, pytest.param(120, marks=pytest.mark.long)])
def test_two_processes_with_two_sweeps(path, tmp_path, n_blocks):
    gate = multiprocessing.get_context("fork").Barrier(2)
    long = LONG | {"budget": n_blocks * STREAMS * LONG["n_samples"]}
    options = [long | {"seed": 3}, long | {"seed": 4, "grid": sweeps.GRID | {"epsilon": [2, 3]}}]
    with contextlib.ExitStack() as stack:
        both = [stack.enter_context(threaded(path, gate, x)) for x in options]
    alone = tmp_path / "alone"
    assert [x.result for x in both] == [rows(run(store=alone, **x)) for x in options]
    assert blocks(path) == blocks(alone)


@contextlib.contextmanager
def threaded(path, gate, options):
    """A child whose gate opens when all have begun; its result afterwards."""
    one = Child(path, gate, **options)
    yield one
    one.result = one.said()
    assert one.ended() == 0
