"""Streams and batches that publish an unfinished block at their declared last step, and never before."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.cli.read_release import show_store
from dpfast.releases.noise import NoiseOfLaws
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.stream import Stream

TARGET = dp.Filter([0.1], [1, -0.9])
COUNTS = dp.ARMA([1.2], [1, -0.9], mean=5)
INPUTS = dp.Inputs(0, 9, n_streams=2)
SIGNS = [[1, 0], [0, 1], [-1, 0], [0, -1]]
N = 13


class Counted:
    """Noise 1000, 1001, ... for ever: two runs of the same steps publish the same numbers."""

    def __init__(self, used):
        self.used = used

    def ready(self, n):
        pass

    def take(self, n):
        taken = 1000 + np.arange(self.used, self.used + n)
        self.used += n
        return taken


def signal():
    return np.random.default_rng(4).integers(0, 10, (2, N))


KINDS = {
    "one level": {"length": 5, "lag": 2},
    "two levels": {"length": (2, 6), "lag": 3},
    "signed": {"weights": SIGNS, "releases": [2, 4], "phase": 1, "lag": 1},
}


@pytest.fixture(scope="module", params=KINDS)
def design(request):
    return dp.block_sums(TARGET, dp.Privacy(1), COUNTS, **KINDS[request.param])


@pytest.fixture(scope="module")
def plan(design):
    return dp.exact(design, INPUTS, last_block="publish", n_steps=N)


def opened(plan, folder):
    """A stream whose noise of a step does not depend on where it was cut; draws of all streams come push by push."""
    store = ReleaseStore.open(folder)
    position = 0 if not store.releases() else store.memory(1).position
    return Stream(store, plan, NoiseOfLaws(tuple(Counted(2 * n) for n in plan.n_draws(0, position))))


def push_one_by_one(plan, folder, *, reopened):
    u, stream = signal(), opened(plan, folder)
    for t in range(N):
        if reopened:
            stream.suspend()
            stream = opened(plan, folder)
        stream.push(u[:, t : t + 1])
    if reopened:  # what waits for the last block is stored, not remembered
        stream.suspend()
        stream = opened(plan, folder)
    with stream:
        stream.close()
        return stream.read(0, stream.position)


def test_a_stream_that_is_opened_anew_at_every_step_publishes_the_same_bits(plan, tmp_path):
    whole = push_one_by_one(plan, tmp_path / "a", reopened=False)
    again = push_one_by_one(plan, tmp_path / "b", reopened=True)
    assert (whole.privatized == again.privatized).all()
    assert (whole.estimate == again.estimate).all()
    read = dp.read_release(tmp_path / "b")
    assert (read.privatized == again.privatized).all()
    assert (read.released == plan.released(0, N + plan.lag, N)).all()
    assert read.released[..., N - 1].all()
    assert not read.released[..., N:].any()
    assert read.guarantee == plan.guarantee
    by_hand = plan.estimate(read.privatized, N)[:, plan.lag :]
    assert (read.estimate == by_hand).all()


def test_every_step_in_one_sum_of_each_level_with_noise_of_its_own(plan, tmp_path):
    """By hand: block by block, level by level."""
    whole, u = push_one_by_one(plan, tmp_path / "store", reopened=False), signal()
    receiver, weights = plan.receiver, plan.mechanism.weights
    lates = receiver.offsets or (0,) * len(receiver.lengths)
    v = whole.privatized.reshape(2, plan.per_step, -1)
    expected, noises = np.zeros_like(v), []
    for level, (length, late) in enumerate(zip(receiver.lengths, lates, strict=True)):
        total = np.zeros(2, np.int64)
        for t in range(N):
            sign = 1 if weights is None else int(weights[(t + receiver.phase) % length, level])
            total += sign * u[:, t]
            if (t + 1 + receiver.phase - late) % length == 0 or t == N - 1:
                expected[:, level, t], total = total, np.zeros(2, np.int64)
                noises += (v[:, level, t] - expected[:, level, t]).tolist()
    assert sorted(noises) == list(range(1000, 1000 + len(noises)))
    assert len(noises) == 2 * sum(plan.n_draws(0, N))


def test_suspending_and_closing_before_the_last_step_publish_nothing_of_an_unfinished_block(design, plan, tmp_path):
    dropped, u = dp.exact(design, INPUTS), signal()
    for n in (4, 11, 12):
        with opened(plan, tmp_path / f"{n}") as stream:
            stream.push(u[:, :n])
        with opened(dropped, tmp_path / f"{n}-dropped") as stream:
            stream.push(u[:, :n])
        for close in (False, True):
            if close:
                with opened(plan, tmp_path / f"{n}") as stream:
                    stream.close()
                with opened(dropped, tmp_path / f"{n}-dropped") as stream:
                    stream.close()
            a, b = dp.read_release(tmp_path / f"{n}"), dp.read_release(tmp_path / f"{n}-dropped")
            assert (a.privatized == b.privatized).all()
            assert (a.released == b.released).all()
            assert (a.estimate == b.estimate).all()


def test_no_step_comes_behind_the_declared_last_one(plan, tmp_path):
    u = signal()
    with dp.open_stream(plan, tmp_path / "store") as stream:
        with pytest.raises(ValueError, match="13 steps, as n_steps declared, got steps up to 14: close the stream"):
            stream.push(np.concatenate([u, u[:, :1]], axis=1))
        stream.push(u)
        before = stream.read(0, N).privatized
        with pytest.raises(ValueError, match="got steps up to 14"):
            stream.push(u[:, :1])
        assert stream.close().first == N
        assert (stream.read(0, N).privatized == before).all()
    table = " ".join(show_store(str(tmp_path / "store")).split())  # without its line breaks
    assert "a block that the last of 13 steps leaves unfinished is published there" in table


def test_a_later_run_that_declares_another_end_is_refused(design, tmp_path):
    begun = {"last_block": "publish", "n_steps": N}
    with dp.open_stream(design, tmp_path / "store", INPUTS, **begun) as stream:
        stream.push(signal()[:, :4])
    for other in ({}, {"last_block": "drop"}, begun | {"n_steps": N + 1}):
        with pytest.raises(ReleaseError, match=r"one that differs in (last_block, )?n_steps: open it with what it"):
            dp.open_stream(design, tmp_path / "store", INPUTS, **other)
    exact = dp.exact(design, INPUTS)
    with pytest.raises(ReleaseError, match="one that differs in last_block"):
        dp.open_stream(exact, tmp_path / "store")
    with pytest.raises(ValueError, match="n_steps must be given with last_block='publish'"):
        dp.open_stream(design, tmp_path / "store", INPUTS, last_block="publish")
    with dp.open_stream(exact, tmp_path / "store", **begun) as stream:
        assert stream.position == 4
    with dp.open_stream(dp.exact(design, INPUTS, **begun), tmp_path / "store", last_block="publish") as stream:
        assert stream.push(signal()[:, 4:]).first == 4


def test_a_dropping_stream_does_not_publish_later(design, tmp_path):
    with dp.open_stream(design, tmp_path / "store", INPUTS, last_block="drop") as stream:
        stream.push(signal()[:, :4])
    with pytest.raises(ReleaseError, match="one that differs in last_block, n_steps"):
        dp.open_stream(design, tmp_path / "store", INPUTS, last_block="publish", n_steps=N)
    with dp.open_stream(design, tmp_path / "store", INPUTS) as stream:  # the default
        assert stream.position == 4


def test_a_batch_has_the_steps_that_its_signal_has(design, plan, tmp_path):
    result = dp.release(design, signal(), tmp_path / "a", INPUTS, last_block="publish")
    read = dp.read_release(tmp_path / "a")
    assert (read.privatized == result.privatized).all()
    assert (read.estimate == result.estimate).all()
    assert (read.released == result.released).all()
    assert result.released[..., N - 1].all()
    assert result.guarantee == plan.guarantee
    assert json.loads(result.guarantee.to_json())["last_block"] == "publish"
    sums = plan.privatize(signal()[:, :0], signal(), np.zeros((2, sum(plan.n_draws(0, N))), np.int64))
    assert np.abs(result.privatized[..., :N] - sums)[..., result.released[..., :N]].max() < 300
    again = dp.release(plan, signal(), tmp_path / "b")
    assert again.guarantee == result.guarantee
    dropped = dp.release(design, signal(), tmp_path / "c", INPUTS)
    assert not dropped.released[..., N - 1].all()


def test_a_batch_of_other_steps_than_declared_is_refused(design, plan, tmp_path):
    with pytest.raises(ValueError, match="got a signal of 12: declare as many as there are"):
        dp.release(plan, signal()[:, :12], tmp_path / "a")
    with pytest.raises(ValueError, match="'publish' after 13 steps, got 'drop': leave it out"):
        dp.release(plan, signal(), tmp_path / "a", last_block="drop")
    with pytest.raises(ValueError, match="'publish' after 13 steps, got 'publish' after 12: leave it out"):
        dp.release(plan, signal()[:, :12], tmp_path / "a", last_block="publish")
    with pytest.raises(ValueError, match="last_block must be one of 'drop', 'publish', got True"):
        dp.release(design, signal(), tmp_path / "a", INPUTS, last_block=True)
    filtered = dp.zero_forcing(TARGET, dp.Privacy(1, 1e-6))
    with pytest.raises(ValueError, match="must be left out for a mechanism without blocks, got 'drop'"):
        dp.release(filtered, signal(), tmp_path / "a", INPUTS, last_block="drop")
    with pytest.raises(ValueError, match="must be left out for a mechanism without blocks, got 'publish'"):
        dp.open_stream(filtered, tmp_path / "a", INPUTS, last_block="publish", n_steps=9)


def test_one_step_is_a_stream_too(tmp_path):
    design = dp.block_sums(TARGET, dp.Privacy(1), COUNTS, length=5)
    inputs = replace(INPUTS, n_streams=1)
    with dp.open_stream(design, tmp_path / "store", inputs, last_block="publish", n_steps=1) as stream:
        published = stream.push(np.array([7]))
        stream.close()
    assert dp.read_release(tmp_path / "store").released.tolist() == [True]
    assert published.estimate.shape == (1, 1)


def test_persons_are_bounded_before_an_unfinished_block(tmp_path):
    design = dp.block_sums(TARGET, dp.Privacy(1, max_events=2), COUNTS, length=5, noise="geometric")
    events = dp.Events(step=[0, 0, 3, 5, 6], person=["a"] * 5, n_steps=7)
    inputs = replace(INPUTS, n_streams=1)
    result = dp.release(design, events, tmp_path / "store", inputs, persons=dp.Persons(), last_block="publish")
    assert result.released.tolist() == [False, False, False, False, True, False, True]
    plan = dp.exact(design, inputs, last_block="publish", n_steps=7)
    assert result.guarantee.loss == plan.guarantee.loss


def test_pieces_of_any_sizes_are_the_whole(plan, tmp_path):
    u, rng = signal(), np.random.default_rng(1)
    whole = push_one_by_one(plan, tmp_path / "whole", reopened=False)
    for i in range(4):
        cuts = [0, *sorted({*rng.integers(1, N, 3).tolist()}), N]
        with opened(plan, tmp_path / f"{i}") as stream:
            # noise of both streams comes push by push, so that it is compared where nothing depends on it
            pieces = [stream.push(u[:, a:b]) for a, b in itertools.pairwise(cuts)]
            stream.close()
            found = stream.read(0, stream.position)
        assert (np.concatenate([x.privatized for x in pieces], axis=-1) == found.privatized[..., :N]).all()
        assert ((found.privatized != 0) == (whole.privatized != 0)).all()
        assert (plan.estimate(found.privatized, N)[:, plan.lag :] == found.estimate[:, plan.lag :]).all()
