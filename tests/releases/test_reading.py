"""What was published is read back: values, estimates, guarantee, times; from stores of before too."""

import functools

import numpy as np
import pytest
from helpers.old_stores import bring_back

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.releases.store.release_store import ReleaseStore

PRIVACY = dp.Privacy(1, 1e-6)
COUNTS = np.random.default_rng(1).poisson(2, (2, 30))


@functools.cache
def planned():
    model = dp.ARMA([1], [1, -0.5], mean=2.0)
    mechanism = dp.lmmse(dp.Filter(np.ones(3) / 3), PRIVACY, model, lag=2, tolerance=0.1)
    return dp.exact(mechanism, dp.Inputs(0, 20, n_streams=2))


def same(read, result):
    assert (read.first, read.number, read.name) == (result.first, result.number, result.name)
    np.testing.assert_array_equal(read.privatized, result.privatized)
    np.testing.assert_array_equal(read.estimate, np.asarray(result.estimate))
    assert read.predicted_rmse_if_model_holds == result.predicted_rmse_if_model_holds
    return True


def test_a_batch(tmp_path):
    result = dp.release(planned(), COUNTS, tmp_path / "store", first=7)
    witness = (tmp_path / "store-published" / "witness.json").read_bytes()
    for _ in range(2):
        read = dp.read_release(tmp_path / "store")
        assert same(read, result)
        assert (str(read.guarantee), read.guarantee.to_json()) == (str(result.guarantee), result.guarantee.to_json())
        assert (read.times, read.groups) == (None, None)
    assert (tmp_path / "store-published" / "witness.json").read_bytes() == witness  # nothing was published


def test_several_releases(tmp_path):
    store = tmp_path / "store"
    results = [dp.release(planned(), COUNTS, store, first=first) for first in (0, 30)]
    results.append(dp.release(planned(), COUNTS, store, first=20, compose=True))
    for number, result in enumerate(results, 1):
        assert same(dp.read_release(store, number), result)
    assert same(dp.read_release(store), results[-1])
    # the third shares steps with both, which then promise less than each did alone
    assert len({str(x.guarantee) for x in results}) == 2
    assert dp.read_release(store, 3).guarantee.epsilon == results[2].guarantee.epsilon > planned().guarantee.epsilon
    assert dp.read_release(store, 1).guarantee.epsilon > planned().guarantee.epsilon
    with pytest.raises(ValueError, match=r"release must be one that the store .* has, got 4: Release 1, 30 steps"):
        dp.read_release(store, 4)
    with pytest.raises(ValueError, match="got 'weekly': Release 1"):
        dp.read_release(store, "weekly")


@pytest.mark.parametrize("release", [True, 1.0, [1]])
def test_a_release_is_a_number_or_a_name(tmp_path, release):
    dp.release(planned(), COUNTS, tmp_path / "store")
    with pytest.raises(ValueError, match="release must be the number or the name of a release"):
        dp.read_release(tmp_path / "store", release)


@pytest.mark.parametrize("closed", [True, False])
def test_a_stream_is_read_with_its_estimates_in_their_places(tmp_path, closed):
    with dp.open_stream(planned(), tmp_path / "store") as stream:
        parts = [stream.push(COUNTS[:, :1]), stream.push(COUNTS[:, 1:])]
        if closed:
            parts.append(stream.close())
    read = dp.read_release(tmp_path / "store")
    v, estimate = (np.concatenate([getattr(x, name) for x in parts], axis=1) for name in ("privatized", "estimate"))
    np.testing.assert_array_equal(read.privatized, v)
    np.testing.assert_array_equal(read.estimate, estimate[:, 2:])
    assert read.estimate.shape == (2, 30 if closed else 28)
    assert (read.first, str(read.guarantee)) == (0, str(planned().guarantee))


@pytest.mark.parametrize("steps", [0, 1])
def test_a_stream_that_has_just_begun(tmp_path, steps):
    with dp.open_stream(planned(), tmp_path / "store") as stream:
        stream.push(COUNTS[:, :steps])
    read = dp.read_release(tmp_path / "store")
    assert (read.privatized.shape, read.estimate.shape) == ((2, steps), (2, 0))


def test_nothing_is_begun_where_there_is_no_store(tmp_path):
    with pytest.raises(ReleaseError, match=r"there is no store in .*store to read from"):
        dp.read_release(tmp_path / "store")
    assert list(tmp_path.iterdir()) == []
    ReleaseStore.open(tmp_path / "store").close()
    with pytest.raises(ReleaseError, match="nothing was released in the store"):
        dp.read_release(tmp_path / "store")


def test_a_store_in_use_or_behind_its_witness_is_refused(tmp_path):
    dp.release(planned(), COUNTS, tmp_path / "store")
    old = (tmp_path / "store" / "store.sqlite").read_bytes()
    with ReleaseStore.open(tmp_path / "store"), pytest.raises(ReleaseError, match="is in use"):
        dp.read_release(tmp_path / "store")
    dp.release(planned(), COUNTS, tmp_path / "store", first=30)
    (tmp_path / "store" / "store.sqlite").write_bytes(old)
    with pytest.raises(ReleaseError, match="behind its witness"):
        dp.read_release(tmp_path / "store")


def test_a_store_of_before_is_read(tmp_path):
    """Of format 1: without a declaration, names and a mark, and its witness inside."""
    result = dp.release(planned(), COUNTS, tmp_path / "store")
    (tmp_path / "store-published").rename(tmp_path / "store" / "published")
    (tmp_path / "store" / "mark").unlink()
    bring_back(tmp_path / "store", 1)
    for _ in range(2):
        assert same(dp.read_release(tmp_path / "store"), result)


def test_a_store_of_format_2_is_read_and_protects_events(tmp_path):
    """It has no tables of persons."""
    result = dp.release(planned(), COUNTS, tmp_path / "store")
    bring_back(tmp_path / "store", 2)
    for _ in range(2):
        assert same(dp.read_release(tmp_path / "store"), result)
    with ReleaseStore.open(tmp_path / "store") as store:
        assert store.persons() is None


def test_the_guarantee_says_what_becomes_of_an_event_whose_time_was_corrected(tmp_path):
    dp.release(planned(), COUNTS, tmp_path / "store")
    later = dp.release(planned(), COUNTS, tmp_path / "store", first=30)
    assert "whose time was corrected between two of them may be in both, and counts as two" in " ".join(
        later.guarantee.not_covered
    )
    assert later.guarantee.epsilon == planned().guarantee.epsilon


@pytest.mark.parametrize("version", [2, 3])
def test_a_stream_of_before_goes_on_to_the_bit(tmp_path, version):
    """Its receiver was stored with every push, in one piece; from then on it is made of what was published."""
    plan, published = planned(), []
    with dp.open_stream(plan, tmp_path / "store") as stream:
        published.append(stream.push(COUNTS[:, :17]))
        receiver = stream._receiver._parts[0].state()
    bring_back(tmp_path / "store", version, receiver)
    with dp.open_stream(plan, tmp_path / "store") as stream:
        published += [stream.push(COUNTS[:, t : t + 1]) for t in range(17, COUNTS.shape[1])]
    v = np.concatenate([x.privatized for x in published], axis=1)
    assert np.concatenate([x.estimate for x in published], axis=1).tobytes() == plan.estimate(v).tobytes()
    assert (dp.read_release(tmp_path / "store").privatized == v).all()
