"""Whole signals: what is published of them, against a naive twin with the very noise; and what is refused."""

import dataclasses
import functools
import json
import sqlite3
from fractions import Fraction

import numpy as np
import pytest
from helpers import fakes
from helpers.designs import designed
from helpers.reference import direct_form
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.releases.noise import Noise
from dpfast.releases.store.push_limits import MAX_BATCH
from dpfast.releases.store.release_rows import Records
from dpfast.releases.store.release_store import ReleaseStore
from dpfast.releases.store.witness import Witness
from dpfast.releases.stream_opening import open_stream

TARGET = dp.Filter([1], [1, -0.9])
PRIVACY = dp.Privacy(2, 1e-6)
MODEL = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
INPUTS = dp.Inputs(0, 6, unit=0.5, centre=2, n_streams=2)


def late(mechanism, lag):
    """The same estimates, so many steps later."""
    old = mechanism.receiver
    receiver = LinearReceiver(old.filter * dp.Filter([0.0] * lag + [1.0]), old.target, old.mean, lag)
    return dataclasses.replace(mechanism, receiver=receiver)


def zero_forcing():
    return designed(dp.zero_forcing, TARGET, PRIVACY, tolerance=0.1)


MECHANISMS = {
    "zero forcing": zero_forcing,
    "zero forcing of lag 3": lambda: late(zero_forcing(), 3),
    "lmmse": lambda: designed(dp.lmmse, TARGET, PRIVACY, MODEL, lag=3, tolerance=0.1),
    "smoother": lambda: designed(dp.lmmse, TARGET, PRIVACY, MODEL, tolerance=0.1),
    "decision feedback": lambda: designed(dp.decision_feedback, TARGET, PRIVACY, MODEL, lag=4, tolerance=0.1),
}


@functools.cache
def simple():
    return dp.exact(zero_forcing(), INPUTS)


@pytest.fixture(scope="module", params=MECHANISMS)
def plan(request):
    return dp.exact(MECHANISMS[request.param](), INPUTS)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def noise(monkeypatch):
    """The noise that is drawn, all of it, in order."""
    drawn = []

    class Noted(Noise):
        def take(self, n):
            drawn.extend(taken := super().take(n).tolist())
            return np.array(taken, np.int64)

    monkeypatch.setattr("dpfast.releases.noise.Noise", Noted)
    return drawn


@pytest.fixture
def silent(monkeypatch):
    class Silent(Noise):
        def take(self, n):
            return 0 * super().take(n)

    monkeypatch.setattr("dpfast.releases.noise.Noise", Silent)


def values(n, n_streams=2):
    """Integers, some outside of the range."""
    return np.random.default_rng(n).integers(-3, 11, (n_streams, n))


def x_of(u):
    """In half units about 2, of values in 0 to 6."""
    return [[2 * (min(max(int(value), 0), 6) - 2) for value in row] for row in u]


def publications(folder):
    """All that is public or stored."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- what is published ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:What was published contradicts")
@pytest.mark.parametrize("n", [0, 1, 5, 300])
def test_v_is_that_of_a_naive_twin_and_the_noise_that_was_drawn(plan, folder, noise, n):
    u, lag = values(n), plan.lag or 0
    result = dp.release(plan, u, folder)
    assert result.privatized.dtype == np.int64
    assert result.privatized.shape == (2, n + lag)
    assert result.estimate.shape == (2, n)
    assert len(noise) == 2 * (n + lag)  # each taken once, and no more
    taps = plan.taps.tolist()
    for i, row in enumerate(x_of(u)):
        flushed = row + [0] * lag
        filtered = np.convolve(np.array(taps, object), np.array(flushed, object))[: n + lag].tolist() if flushed else []
        own = noise[i * (n + lag) : (i + 1) * (n + lag)]
        assert result.privatized[i].tolist() == [a + b for a, b in zip(filtered, own, strict=True)]
    assert result.estimate.tolist() == plan.estimate(result.privatized)[:, lag:].tolist()
    assert result.predicted_rmse_if_model_holds == plan.predicted_rmse_if_model_holds
    assert result.guarantee == plan.guarantee


@pytest.mark.parametrize("lag", [0, 1, 3])
def test_without_noise_every_estimate_is_of_its_own_time(folder, silent, lag):
    u = values(400)
    result = dp.release(late(zero_forcing(), lag), u, folder, INPUTS)
    assert result.privatized.shape == (2, 400 + lag)
    for row, estimate in zip(u.clip(0, 6), result.estimate, strict=True):
        assert np.abs(estimate - direct_form([1.0], [1.0, -0.9], row)).max() < 1e-9


@pytest.mark.filterwarnings("ignore:What was published contradicts")
def test_a_smoother_without_noise_is_of_its_own_time(folder, silent):
    """Of an impulse in the middle the estimate is about the target's output there, and nowhere else as near."""
    mechanism = dp.lmmse(dp.Filter([1]), dp.Privacy(200, 0.01), MODEL)
    u = np.zeros((1, 101), int)
    u[0, 50] = 1
    estimate = dp.release(mechanism, u, folder, dp.Inputs(0, 1)).estimate
    assert int(estimate.argmax()) == 50


@settings(max_examples=10)
@given(st.integers(0, 30), st.integers(1, 3), st.integers(0, 2**61))
def test_the_store_has_what_was_returned(tmp_path_factory, n, n_streams, first):
    folder = tmp_path_factory.mktemp("batch") / "store"
    plan = dataclasses.replace(simple(), inputs=dataclasses.replace(INPUTS, n_streams=n_streams))
    result = dp.release(plan, values(n, n_streams), folder, first=first)
    with ReleaseStore.open(folder) as store:
        (entry,) = store.releases()
        v, estimate = store.read(entry.id, first, n)
        assert (entry.kind, entry.first, entry.count, entry.closed) == ("batch", first, n, True)
        assert (entry.guarantee, entry.guarantee_json) == (str(result.guarantee), result.guarantee.to_json())
        again = type(plan).from_configuration(entry.configuration)
    assert again.digest == plan.digest
    assert v.tolist() == result.privatized.tolist()
    assert estimate.tolist() == result.estimate.tolist()
    assert result.first == first


def test_the_steps_behind_the_last_input_are_in_the_store(folder):
    plan = dp.exact(MECHANISMS["zero forcing of lag 3"](), INPUTS)
    result = dp.release(plan, values(5), folder)
    with ReleaseStore.open(folder) as store:
        v, _ = store.read(1, 0, 8)
    assert v.tolist() == result.privatized.tolist()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_floats_with_missing_values(folder, noise, dtype):
    inputs = dp.Inputs(0, 100_001, missing=99_999)  # in half precision that would be infinite
    u = np.array([0.5, np.nan, np.inf, -np.inf, 7, 0.25], dtype)
    plan = dp.exact(dp.input_perturbation(dp.Filter([1]), PRIVACY), inputs)
    x = (dp.release(plan, u, folder).privatized - noise) // plan.taps[0]
    assert x.tolist() == [[1, 99_999, 100_001, 0, 7, 0]]


@pytest.mark.parametrize(
    "u", [values(9, 1), values(9, 1)[0], values(9, 1).astype(">i2")], ids=["2-D", "1-D", "swapped"]
)
def test_one_stream_may_have_one_dimension(folder, noise, u):
    inputs = dp.Inputs(0, 6, unit=0.5, centre=2)
    plan = dataclasses.replace(simple(), inputs=inputs)
    v = dp.release(plan, u, folder).privatized - noise
    assert v.tolist() == fakes.filtered(np.array(x_of(u.reshape(1, 9))), plan.taps).tolist()


def test_a_repr_has_no_numbers_of_the_data(folder):
    result = dp.release(simple(), values(5), folder)
    assert repr(result) == "<Release of 5 steps from 0, 2 streams: epsilon 2>"


# --- the same steps again -------------------------------------------------------------------------


def test_a_second_release_of_the_same_steps_is_refused(folder, noise):
    dp.release(simple(), values(10), folder, first=5)
    before, drawn = publications(folder), len(noise)
    for first, n in ((5, 10), (14, 3), (0, 6), (7, 2)):
        with pytest.raises(ReleaseError, match=r"released already \(release 1 .*compose=True"):
            dp.release(simple(), values(n), folder, first=first)
    assert publications(folder) == before
    assert len(noise) == drawn
    for first, n in ((15, 2), (0, 5), (8, 0)):
        assert len(dp.release(simple(), values(n), folder, first=first).guarantee.shifts) == 1


def test_composed_releases_state_their_sum(folder):
    other = dp.exact(dp.zero_forcing(TARGET, dp.Privacy(0.5, 1e-4)), INPUTS)
    dp.release(simple(), values(10), folder)
    dp.release(simple(), values(10), folder, first=50)  # other data
    two = dp.release(other, values(10), folder, first=9, compose=True).guarantee
    three = dp.release(simple(), values(3), folder, first=9, compose=True).guarantee
    only = dp.release(simple(), values(3), folder, first=30, compose=True).guarantee

    def rho(*plans):
        return sum(Fraction(x.shift.squared_sensitivity) / x.sigma.variance / 2 for x in plans)

    assert two.zcdp_rho == rho(other, simple())
    assert three.zcdp_rho == rho(simple(), simple(), other)
    assert only.zcdp_rho == rho(simple())
    assert (two.squared_sensitivity, two.delta) == (other.shift.squared_sensitivity, 1e-4)
    assert three.epsilon > max(two.epsilon, simple().guarantee.epsilon)
    text = (fakes.beside(folder) / "guarantee.txt").read_text(encoding="utf-8")
    published = "but for events at steps that release{} published too, whose guarantee is below:\n"  # it is not theirs
    first = f"Release 1, 10 steps from 0 on, {published.format('s 3 and 4')}"
    others = "Release 2, 10 steps from 50 on:\nRelease 5, 3 steps from 30 on:\n\n"
    assert text.startswith(f"{first}{others}{only}\n")
    third = f"Release 3, 10 steps from 9 on, {published.format(' 4')}"
    for release in (f"{third}\n{two}\n", f"Release 4, 3 steps from 9 on:\n\n{three}\n"):
        assert release in text
    content = json.loads((fakes.beside(folder) / "guarantee.json").read_text(encoding="utf-8"))
    assert [x.get("published_again_by") for x in content["releases"]] == [[3, 4], None, [4], None, None]


PEOPLE = [
    (dp.Privacy(2, 1e-6, max_change=2), INPUTS),
    (dp.Privacy(2, 1e-6, max_events=2), INPUTS),
    (dp.Privacy(2, 1e-6, min_separation=2), INPUTS),
    (PRIVACY, dataclasses.replace(INPUTS, streams_per_person=2)),
    (PRIVACY, dataclasses.replace(INPUTS, n_streams=3)),
]


@pytest.mark.parametrize(
    ("privacy", "inputs", "first"),
    [
        pytest.param(*people, first, marks=[pytest.mark.long] * (i % 2 != bool(first)))
        for first in (0, 10)
        for i, people in enumerate(PEOPLE)
    ],
)
def test_promises_to_different_people_are_those_of_all_together_at_any_steps(folder, privacy, inputs, first):
    dp.release(simple(), values(10), folder)
    u = values(10, inputs.n_streams)
    design = designed(dp.zero_forcing, TARGET, privacy)
    other = dp.release(design, u, folder, inputs, first=first, compose=first == 0).guarantee
    again = dp.release(simple(), values(3), folder, first=100).guarantee
    assert (len(other.shifts), other.whole, len(again.shifts), again.whole) == (2, True, 3, True)
    for guarantee in (other, again):
        assert guarantee.privacy.max_change == privacy.max_change
        assert guarantee.privacy.max_events == privacy.max_events
        assert guarantee.privacy.min_separation == 1
        assert guarantee.inputs.streams_per_person == inputs.streams_per_person
    assert all(x.squared_sensitivity >= simple().shift.squared_sensitivity for x in other.shifts)
    text = (fakes.beside(folder) / "guarantee.txt").read_text(encoding="utf-8")
    releases = (
        f"Release 1, 10 steps from 0 on:\nRelease 2, 10 steps from {first} on:\nRelease 3, 3 steps from 100 on:\n\n"
    )
    assert text == f"{releases}{again}\n"


def test_a_stream_states_the_batches_that_were_composed_with_it(folder):
    with open_stream(simple(), folder) as stream:
        stream.push(values(10))
        assert stream.guarantee == simple().guarantee
    with pytest.raises(ReleaseError, match="released already"):
        dp.release(simple(), values(5), folder, first=30)  # the stream may come there
    result = dp.release(simple(), values(5), folder, first=30, compose=True)
    assert result.guarantee.zcdp_rho == 2 * simple().guarantee.zcdp_rho
    with open_stream(simple(), folder) as stream:
        assert stream.guarantee == result.guarantee
        stream.close()
    dp.release(simple(), values(5), folder, first=100)  # behind its end
    with open_stream(simple(), folder) as stream:
        assert stream.guarantee == simple().guarantee


def test_a_stream_states_batches_for_other_people_too(folder):
    privacy = dp.Privacy(2, 1e-6, max_events=2)
    with open_stream(simple(), folder) as stream:
        stream.push(values(10))
        stream.close()
    batch = dp.release(dp.zero_forcing(TARGET, privacy), values(5), folder, INPUTS, first=100).guarantee
    assert batch.whole
    with open_stream(simple(), folder) as stream:
        assert stream.guarantee.whole
        assert stream.guarantee.privacy.max_events == 2
        assert stream.guarantee.zcdp_rho == batch.zcdp_rho
    text = (fakes.beside(folder) / "guarantee.txt").read_text(encoding="utf-8")
    assert text == f"Release 1, steps from 0 on:\nRelease 2, 5 steps from 100 on:\n\n{batch}\n"


# --- refusals come first --------------------------------------------------------------------------


def private():
    return zero_forcing().with_sources(target="fitted-from-private")


REFUSED = {
    "private design": (private, values(3), {"inputs": INPUTS}, "must not depend on private data"),
    "no mechanism": (lambda: None, values(3), {"inputs": INPUTS}, "mechanism must be a Mechanism"),
    "no inputs": (zero_forcing, values(3), {}, "inputs must be an Inputs"),
    "other inputs": (simple, values(3), {"inputs": dp.Inputs(0, 5)}, "inputs must be those of the ExactMechanism"),
    "shape": (simple, values(3)[0], {}, r"u must be of shape \(2, time\)"),
    "type": (simple, values(3) * 1.0, {}, "u must be of an integer dtype"),
    "compose": (simple, values(3), {"compose": "no"}, "compose must be True or False"),
    "adopt": (simple, values(3), {"adopt": 1}, "adopt must be True or False"),
    "first": (simple, values(3), {"first": -1}, "first must be an integer"),
    "last": (simple, values(3), {"first": 2**62}, "first must be an integer"),
    "length": (simple, np.broadcast_to(np.int64(1), (2, MAX_BATCH)), {}, "at most 2,000,000,000 samples"),
    "tolerance": (zero_forcing, values(3), {"inputs": INPUTS, "tolerance": 0}, "tolerance must be"),
}


@pytest.mark.parametrize(("of", "u", "options", "match"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused_makes_no_folder_and_draws_no_noise(folder, noise, of, u, options, match):
    with pytest.raises(ValueError, match=match):
        dp.release(of(), u, folder, **options)
    assert not folder.exists()
    assert noise == []


@pytest.mark.parametrize("path", [None, 3, b"store", ["store"], np.zeros(3)], ids=repr)
def test_paths_are_checked(tmp_path, path):
    with pytest.raises(ValueError, match="path must be a path, got"):
        dp.release(simple(), values(3), path)
    if path is not None:
        with pytest.raises(ValueError, match="published must be a path, got"):
            dp.release(simple(), values(3), tmp_path / "store", published=path)
    assert list(tmp_path.iterdir()) == []


# --- writing that fails ---------------------------------------------------------------------------


def failing(error):
    def fail(*args, **options):
        raise error

    return fail


@pytest.mark.parametrize("error", [sqlite3.OperationalError("disk full"), OSError("no"), KeyboardInterrupt()])
def test_what_fails_before_the_commit_is_not_published(folder, noise, monkeypatch, error):
    with monkeypatch.context() as patch:
        patch.setattr(Records, "progress", failing(error))
        with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else ReleaseError):
            dp.release(simple(), values(4), folder)
    lost = list(noise)
    with ReleaseStore.open(folder) as store:
        assert store.releases() == []
    assert not (fakes.beside(folder) / "guarantee.txt").exists()
    result = dp.release(simple(), values(4), folder)
    assert noise[len(lost) :] != lost
    assert result.first == 0


def test_what_fails_behind_the_commit_is_published_and_not_again(folder, monkeypatch):
    ReleaseStore.open(folder).close()
    write = Witness.write

    def fail_behind_a_push(self, attestation, *files):
        if attestation.position:
            raise OSError("no space")
        write(self, attestation, *files)

    with monkeypatch.context() as patch:
        patch.setattr(Witness, "write", fail_behind_a_push)
        with pytest.raises(ReleaseError, match="the call returned nothing"):
            dp.release(simple(), values(4), folder)
    with pytest.raises(ReleaseError, match="released already"):
        dp.release(simple(), values(4), folder)
    with ReleaseStore.open(folder) as store:
        assert store.read(1, 0, 4)[0].shape == (2, 4)
