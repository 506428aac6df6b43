"""Streams and batches of block sums: suspended anywhere, pushed again, composed, read back, never told too much."""

import itertools
import json
import shutil
import sqlite3
from fractions import Fraction

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
LEVELS = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
INPUTS = dp.Inputs(0, 9, n_streams=2)
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


@pytest.fixture(scope="module", params=["one level", "two levels", "shares", "signed", "inputs", "posterior"])
def plan(request):
    privacy = dp.Privacy(1)
    made = {
        "one level": lambda: dp.block_sums(TARGET, privacy, COUNTS, length=4, lag=2),
        "two levels": lambda: dp.block_sums(TARGET, privacy, COUNTS, length=(2, 6), lag=1),
        "shares": lambda: dp.block_sums(TARGET, privacy, COUNTS, length=(2, 6), shares=(0.75, 0.25), lag=1),
        "posterior": lambda: dp.block_sums(TARGET, privacy, LEVELS, length=4, lag=2, receiver="bayes"),
        "signed": lambda: dp.block_sums(
            TARGET, privacy, COUNTS, weights=[[1, 0], [0, 1], [-1, 0], [0, -1]], releases=[2, 4], phase=1
        ),
        "inputs": lambda: dp.input_perturbation(TARGET, privacy, noise="geometric"),
    }
    return dp.exact(made[request.param](), INPUTS)


def opened(plan, folder):
    """A stream whose noise of a step does not depend on where it was cut; draws of all streams come push by push."""
    store = ReleaseStore.open(folder)
    position = 0 if not store.releases() else store.memory(1).position
    return Stream(store, plan, NoiseOfLaws(tuple(Counted(2 * n) for n in plan.n_draws(0, position))))


def push_one_by_one(plan, folder, *, reopened):
    """Publish the signal step by step, opened anew at each step or not; return v and the estimates."""
    u, stream = signal(), opened(plan, folder)
    for t in range(N):
        if reopened:
            stream.suspend()
            stream = opened(plan, folder)
        assert stream.position == t
        stream.push(u[:, t : t + 1])
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
    assert read.guarantee == plan.guarantee
    assert (read.released == plan.released(0, N + plan.lag, N)).all()


def test_inputs_of_unfinished_blocks_alone_are_stored(plan, tmp_path):
    u = signal()
    for t in range(1, N + 1):
        with opened(plan, tmp_path / "store") as stream:
            stream.push(u[:, t - 1 : t])
        with ReleaseStore.open(tmp_path / "store") as store:
            kept = store.memory(1).inputs
        assert (kept == u[:, t - plan.needed(t) : t]).all()
    with opened(plan, tmp_path / "store") as stream:
        stream.close()
    with ReleaseStore.open(tmp_path / "store") as store:
        assert store.memory(1).inputs.size == 0


def test_steps_in_an_unfinished_block_may_be_pushed_again(plan, tmp_path):
    u = signal()
    with opened(plan, tmp_path / "store") as stream:
        stream.push(u[:, :7])
        k = plan.needed(7)
        again = stream.push(u[:, 7 - k : 9], first=7 - k)
        assert stream.position == 9
        assert again.privatized.shape[-1] == 2 + k
        if k:
            with pytest.raises(ReleaseError, match="with other inputs than these"):
                stream.push(9 - u[:, 9 - plan.needed(9) : 9], first=9 - plan.needed(9))
        forgotten = 9 - plan.needed(9)  # read back, whatever comes
        if forgotten:
            old = stream.push(9 - u[:, :forgotten], first=0).privatized
            assert np.array_equal(old, stream.read(0, forgotten).privatized)


def test_published_sums_are_sums_and_noise(plan, tmp_path):
    """By hand: block by block, level by level."""
    u, result = signal(), dp.release(plan, signal(), tmp_path / "store")
    released = plan.released(0, N + plan.lag, N)
    assert (result.privatized[:, ~released] == 0).all() if released.ndim > 1 else True
    if plan.kind == "block sums" and plan.per_step == 1:
        ends = np.flatnonzero(released)
        sums = np.stack([u[:, t - 3 : t + 1].sum(axis=1) for t in ends], axis=1)
        assert np.abs(result.privatized[:, ends] - sums).max() < 200  # e^-200 is what more would take
        assert ends.tolist() == [3, 7, 11]
    assert result.estimate.shape == u.shape
    assert (result.released == released).all()
    rows = show_store(str(tmp_path / "store")).split("privatized,estimate,predicted_rmse_if_model_holds\n")[1]
    shown = [row.split(",")[4] for row in rows.splitlines()]
    assert len(shown) == 2 * (N + plan.lag)
    for i, text in enumerate(shown):
        v, here = result.privatized[i % 2, ..., i // 2], released[..., i // 2]
        assert text == ";".join(map(str, v[here].ravel().tolist()))


def test_an_unfinished_block_is_never_published(plan, tmp_path):
    if plan.kind != "block sums":
        return
    u = signal()
    with opened(plan, tmp_path / "store") as stream:
        stream.push(u)
        published = stream.close()
    assert not published.privatized.any()
    assert not plan.released(N, plan.lag, N).any()


def test_what_is_published_twice_composes(plan, tmp_path):
    dp.release(plan, signal(), tmp_path / "store")
    with pytest.raises(ReleaseError, match="released already"):
        dp.release(plan, signal(), tmp_path / "store")
    both = dp.release(plan, signal(), tmp_path / "store", compose=True).guarantee
    assert both.loss.pure == plan.guarantee.loss.pure * 2
    assert both.epsilon == pytest.approx(2 * plan.guarantee.epsilon, rel=1e-9)
    assert f"with 1 other release of the same data (ε = {plan.guarantee.loss.pure[0]})" in str(both)
    assert json.loads((tmp_path / "store-published" / "guarantee.json").read_text())["releases"][1]["guarantee"][
        "epsilon"
    ] == pytest.approx(both.epsilon)


def test_gaussian_and_geometric_releases_compose(tmp_path):
    gaussian = dp.zero_forcing(TARGET, dp.Privacy(1, 1e-6))
    blocks = dp.exact(dp.block_sums(TARGET, dp.Privacy(1), COUNTS, length=4), INPUTS)
    first = dp.release(gaussian, signal(), tmp_path / "store", INPUTS).guarantee
    both = dp.release(blocks, signal(), tmp_path / "store", compose=True).guarantee
    assert both.loss == first.loss + blocks.guarantee.loss or both.loss == blocks.guarantee.loss + first.loss
    assert both.epsilon <= first.epsilon + blocks.guarantee.epsilon
    assert both.epsilon > max(first.epsilon, blocks.guarantee.epsilon)
    assert both.zcdp_rho == first.zcdp_rho + blocks.guarantee.loss.pure[0] ** 2 / Fraction(2)


def test_a_horizon_ends_with_its_steps(tmp_path):
    over = dp.Toeplitz.of(dp.Filter([1], [1, -0.999]), N)
    plan = dp.exact(dp.block_sums(over, dp.Privacy(1), COUNTS, length=4, lag=2), INPUTS)
    u = signal()
    with pytest.raises(ValueError, match="made for 13 steps, got a signal of 12"):
        dp.release(plan, u[:, :12], tmp_path / "batch")
    with dp.open_stream(plan, tmp_path / "live") as stream:
        stream.push(u)
        with pytest.raises(ValueError, match="made for 13 steps, got steps up to 14"):
            stream.push(u[:, :1])
        assert stream.close().estimate.shape == (2, 2)


def test_damage_is_found(plan, tmp_path):
    with opened(plan, tmp_path / "store") as stream:
        stream.push(signal()[:, :6])
    for table, column in itertools.product(["pushes"], ["privatized", "estimate"]):
        shutil.copytree(tmp_path / "store", tmp_path / column)
        shutil.copytree(tmp_path / "store-published", tmp_path / f"{column}-published")
        with sqlite3.connect(tmp_path / column / "store.sqlite") as database:
            database.execute(f"UPDATE {table} SET {column} = zeroblob(length({column}) - 8)")
        with pytest.raises(ReleaseError):
            ReleaseStore.open(tmp_path / column, adopt=True)


def test_a_design_is_opened_again_as_it_was(tmp_path):
    mechanism = dp.block_sums(TARGET, dp.Privacy(1), COUNTS, length=4)
    with dp.open_stream(mechanism, tmp_path / "store", INPUTS) as stream:
        stream.push(signal()[:, :6])
    with dp.open_stream(mechanism, tmp_path / "store", INPUTS) as stream:
        assert stream.position == 6
    other = dp.block_sums(TARGET, dp.Privacy(1), COUNTS, length=3)
    with pytest.raises(ReleaseError, match="must be that of the stream, got one that differs in mechanism"):
        dp.open_stream(other, tmp_path / "store", INPUTS)
