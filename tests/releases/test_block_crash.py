"""Kills of streams with noise on the integers at every point: no step has two values, none is lost."""

import itertools
import multiprocessing
import os
import random
import signal
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from helpers import fakes, faults

import dpfast as dp
from dpfast.releases.arbiters import private_connection
from dpfast.releases.store import release_rows, release_store, witness

TARGET = dp.Filter([0.1], [1, -0.9])
COUNTS = dp.ARMA([1.2], [1, -0.9], mean=5)
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
TOTAL = 11
CALLS = [
    (private_connection.PrivateConnection, "execute"),
    (private_connection.PrivateConnection, "close"),
    (os, "fsync"),
    (Path, "replace"),
    (release_rows.Records, "push"),
    (release_store.ReleaseStore, "append"),
    (witness.Witness, "write"),
]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forks of this one")


def made(name):
    inputs, privacy = dp.Inputs(0, 9, n_streams=2), dp.Privacy(1)
    if name == "channels":  # two inputs, two channels, one output
        together = dp.Privacy(1, 1e-6, adjacency="one_input")
        channels = dp.lmmse(dp.total(2) * TARGET, together, [COUNTS, dp.ARMA([2], [1, -0.8], mean=4)], lag=1)
        return dp.exact(channels, inputs, tolerance=0.1)
    if name == "channels of blocks":  # two inputs, each released at steps of its own, one output
        together = dp.Privacy(1, adjacency="each_input")
        models = [COUNTS, dp.ARMA([2], [1, -0.8], mean=4)]
        blocks = dp.block_sums(dp.total(2) * TARGET, together, models, length=[2, 3], shares=[0.6, 0.4], lag=1)
        return dp.exact(blocks, inputs)
    if name == "blocks":
        return dp.exact(dp.block_sums(TARGET, privacy, COUNTS, length=(2, 4), lag=1), inputs)
    if name == "last block":
        blocks = dp.block_sums(TARGET, privacy, COUNTS, length=(2, 4), lag=1)
        return dp.exact(blocks, inputs, last_block="publish", n_steps=TOTAL)
    if name == "shares":
        return dp.exact(dp.block_sums(TARGET, privacy, COUNTS, length=(2, 4), shares=(0.7, 0.3)), inputs)
    if name == "posterior":
        blocks = dp.block_sums(TARGET, privacy, CHAIN, length=2, lag=3, receiver="bayes")
        return dp.exact(blocks, dp.Inputs(0, 1, n_streams=2))
    if name == "inputs":
        return dp.exact(dp.input_perturbation(TARGET, privacy, noise="geometric"), inputs)
    return dp.exact(dp.randomized_response(TARGET, privacy, CHAIN, lag=1), dp.Inputs(0, 1, n_streams=2))


@pytest.fixture(
    scope="module",
    params=["blocks", "last block", "shares", "posterior", "inputs", "responses", "channels", "channels of blocks"],
)
def plan(request):
    return made(request.param)


@pytest.fixture
def folder(tmp_path):
    """In memory where the system can: what a process wrote outlives its death anywhere."""
    memory = Path("/dev/shm")
    if not memory.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


def signal_of(plan, first, n):
    return (np.arange(first, first + n)[None] * [[3], [7]]) % (plan.inputs.range[1] + 1)


def publish(folder, result):
    v = list(map(np.ravel, np.moveaxis(result.privatized, -1, 0)))
    fakes.append(folder / "published.jsonl", [result.first, [x.tolist() for x in v], result.estimate.T.tolist()])


def run_to_end(folder, plan):
    """What a publisher does who has lost all but what was published: the steps behind that, and the end."""
    said = fakes.lines(folder / "published.jsonl")
    known = max((first + len(v) for first, v, _ in said), default=0)
    with dp.open_stream(plan, folder / "store") as stream:
        if known < stream.position:  # stored, and not said
            publish(folder, stream.read(known, stream.position - known))
        while stream.position < TOTAL:
            n = min(3, TOTAL - stream.position)
            publish(folder, stream.push(signal_of(plan, stream.position, n), first=stream.position))
        publish(folder, stream.close())


def check(folder, plan):
    read = dp.read_release(folder / "store")
    v = np.moveaxis(read.privatized, -1, 0).reshape(read.privatized.shape[-1], -1)
    assert len(v) == TOTAL + plan.lag
    seen = set()
    for first, published, _ in fakes.lines(folder / "published.jsonl"):
        assert v[first : first + len(published)].tolist() == published
        seen |= set(range(first, first + len(published)))
    assert seen >= set(range(TOTAL + plan.lag))
    if plan.kind.startswith("block sums"):
        x = signal_of(plan, 0, TOTAL)
        sums = plan.privatize(x[:, :0], x, np.zeros((plan.noise_rows(2), sum(plan.n_draws(0, TOTAL))), np.int64))
        noise = read.privatized[..., :TOTAL] - sums
        assert np.abs(noise).max() < 300
        there = np.broadcast_to(plan.released(0, TOTAL), noise.shape)
        assert not noise[~there].any()
        assert read.released[..., TOTAL - 1].all() == (plan.n_steps == TOTAL)


def killed(folder, plan, k):
    faults.instrument(setattr, faults.reaching(k, faults.die), CALLS)
    run_to_end(folder, plan)


def run(target, *args):
    process = multiprocessing.get_context("fork").Process(target=target, args=args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    process.join()
    return process


def kills(folder, plan, at):
    """Lives killed at one point after the other, until one comes to its end; how many there were."""
    for k in at:
        place = folder / str(k)
        place.mkdir()
        died = run(killed, place, plan, k).exitcode == -signal.SIGKILL
        run_to_end(place, plan)
        check(place, plan)
        if not died:
            return k - 1
    return None


def test_killed_at_some_points(folder, plan):
    choice = random.Random(5)
    kills(folder, plan, sorted(choice.sample(range(5, 200), 4)))


@pytest.mark.crash
def test_killed_at_every_point(folder, plan):
    assert kills(folder, plan, itertools.count(1)) > 150
