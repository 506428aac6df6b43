"""Releases per person: what is kept over batches, streams, spans, replays and openings, against the naive twin."""

import json
import random
import sqlite3
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest
from helpers import person_bounds_twin as twin

import dpfast as dp
from dpfast._support.errors import ReleaseError
from dpfast.privacy.composition import Loss
from dpfast.privacy.discrete_gaussian_accounting import epsilon, group_shifts
from dpfast.releases.store.release_store import ReleaseStore

N_STREAMS = 3


@pytest.fixture(autouse=True)
def silent(monkeypatch):
    """No noise: v of the target 1 is what was kept, times the tap."""
    monkeypatch.setattr("dpfast.releases.noise.Noise.take", lambda self, n: np.zeros(n, np.int64))


def planned(m=1, b=1, k=1, *, memory=False):
    """Without memory v is what is kept, times the only tap."""
    privacy = dp.Privacy(2, 1e-6, max_events=m, min_separation=b)
    target = dp.Filter([1], [1, -0.5])
    mechanism = dp.zero_forcing(target, privacy) if memory else dp.input_perturbation(target, privacy)
    return dp.exact(mechanism, dp.Inputs(0, 50, n_streams=N_STREAMS, streams_per_person=k), tolerance=0.1)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "store"


def events(log, n_steps, first=0):
    steps, streams, persons = ([event[i] for event in log] for i in range(3))
    return dp.Events(
        step=[t - first for t in steps], stream=streams, person=persons, n_steps=n_steps, n_streams=N_STREAMS
    )


def kept_of(published, plan):
    assert len(plan.taps) == 1
    return (published.privatized // int(plan.taps[0])).tolist()


def random_log(rng, n_steps, names="abcd"):
    n = rng.randrange(5 * n_steps)
    return [(rng.randrange(n_steps), rng.randrange(N_STREAMS), rng.choice([*names, None])) for _ in range(n)]


def published_twice(folder, plan, log, n_steps, span, cuts):
    """What batches of consecutive steps publish of a log."""
    parts = []
    for first, last in zip([0, *cuts], [*cuts, n_steps], strict=True):
        part = [event for event in log if first <= event[0] < last]
        result = dp.release(plan, events(part, last - first, first), folder, first=first, persons=dp.Persons(span=span))
        parts.append(np.array(kept_of(result, plan)))
    return np.concatenate(parts, axis=1).tolist()


@pytest.mark.parametrize("seed", range(8))
def test_batches_and_streams_keep_what_the_twin_keeps(tmp_path, seed):
    rng = random.Random(seed)
    m, b, k, n_steps = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 3), 10
    plan, span = planned(m, b, k), rng.choice([None, 2, 4])
    log = random_log(rng, n_steps)
    expected = twin.inputs(twin.bound(log, m, b, k, span), N_STREAMS, n_steps)
    cuts = sorted(rng.sample(range(1, n_steps), 2))
    assert published_twice(tmp_path / "batches", plan, log, n_steps, span, cuts) == expected
    assert published_twice(tmp_path / "batch", plan, log, n_steps, span, []) == expected
    pieces, position = [], 0
    while position < n_steps:  # opened again and again, with replays in between
        with dp.open_stream(plan, tmp_path / "stream", persons=dp.Persons(span=span)) as stream:
            for _ in range(2):
                n = min(rng.randint(0, 3), n_steps - position)
                part = [event for event in log if position <= event[0] < position + n]
                pieces.append(kept_of(stream.push(events(part, n, position)), plan))
                position += n
            assert stream.position == position
    assert np.concatenate([np.array(x) for x in pieces], axis=1).tolist() == expected


def test_the_second_release_of_a_span_knows_what_the_first_one_kept(folder):
    plan = planned(m=2, b=3, k=1)
    dp.release(plan, events([(1, 0, "a"), (2, 2, "b")], 3), folder, persons=dp.Persons())
    log = [(3, 0, "a"), (4, 0, "a"), (5, 0, "a"), (4, 1, "b"), (5, 2, "b"), (9, 0, "a")]
    result = dp.release(plan, events(log, 7, 3), folder, first=3, persons=dp.Persons())
    u = kept_of(result, plan)
    assert np.argwhere(u).tolist() == [[0, 1], [2, 2]]  # a at step 4, b at step 5


def test_composed_steps_take_only_what_was_kept_there_and_one_of_it(folder):
    plan = planned(m=1, k=2)
    dp.release(plan, events([(1, 0, "a"), (2, 0, "a"), (1, 2, "b")], 4), folder, persons=dp.Persons())
    log = [(1, 0, "a"), (1, 0, "a"), (2, 0, "a"), (0, 1, "a"), (1, 2, "c"), (0, 2, "b"), (4, 1, "a"), (5, 2, "b")]
    again = dp.release(plan, events(log, 6), folder, compose=True, persons=dp.Persons())
    # a once where it was kept; c was never kept there, and b may move nowhere; at new steps as before
    assert np.argwhere(kept_of(again, plan)).tolist() == [[0, 1], [1, 4]]


def test_a_replay_is_compared_with_what_was_kept(folder):
    plan = planned(m=1, memory=True)
    log = [(0, 0, "a"), (1, 0, "a"), (1, 1, "b")]
    with dp.open_stream(plan, folder, persons=dp.Persons()) as stream:
        first = stream.push(events(log, 2))
    with dp.open_stream(plan, folder, persons=dp.Persons()) as stream:
        again = stream.push(events([x for x in log if x[0] == 1] + [(1, 0, "a"), (1, 1, "b")], 1, 1), first=1)
        assert (again.privatized == first.privatized[:, 1:]).all()
        with pytest.raises(ReleaseError, match="with other inputs than these"):
            stream.push(events([(1, 1, "c")], 1, 1), first=1)
        assert kept(folder, stream) == {(0, 0), (1, 1)}


def kept(folder, stream):
    """(stream, step) of what the store has kept, of whomever."""
    return {(row[1], row[2]) for row in stream._store.persons().kept}


def test_blank_ids_are_dropped_and_count_for_nobody(folder):
    plan = planned()
    ids = ["", "  ", None, float("nan"), b"", b"\t", "a"]
    table = dp.Events(step=list(range(7)), person=ids, n_steps=7, n_streams=N_STREAMS)
    result = dp.release(plan, table, folder, persons=dp.Persons())
    assert np.argwhere(kept_of(result, plan)).tolist() == [[0, 6]]


def test_values_are_clipped_before_they_are_summed(folder):
    mechanism = dp.input_perturbation(dp.Filter([1]), dp.Privacy(2, 1e-6, max_change=2.5))
    plan = dp.exact(mechanism, dp.Inputs(-50, 50))
    table = dp.Events(step=[0, 0, 1, 2], person=["a", "b", "c", "d"], value=[100, -1, -7, 2], n_steps=3)
    result = dp.release(plan, table, folder, persons=dp.Persons())
    assert kept_of(result, plan) == [[1, -2, 2]]


# --- spans and the key ----------------------------------------------------------------------------


def test_persons_are_forgotten_when_a_span_has_ended_and_the_key_is_destroyed(folder):
    plan, persons = planned(), dp.Persons(span=3)
    dp.release(plan, events([(0, 0, "a")], 2), folder, persons=persons)
    key = folder.with_name("store.key")
    with key.open("rb") as old:
        before = old.read()
        dp.release(plan, events([(2, 0, "a"), (3, 0, "a")], 2, 2), folder, first=2, persons=persons)
        old.seek(0)
        assert old.read() == bytes(len(before))
    assert key.read_bytes() != before
    with ReleaseStore.open(folder) as store:
        state = store.persons()
    assert [(stream, step) for _, stream, step in state.kept] == [(0, 3)]
    assert state.span == 1
    with pytest.raises(ReleaseError, match="first must be at least 3, where the present span of persons begins"):
        dp.release(plan, events([], 2), folder, compose=True, persons=persons)


def test_no_id_and_no_pseudonym_of_an_ended_span_is_left_in_the_files(folder):
    plan, persons = planned(), dp.Persons(span=2)
    with dp.open_stream(plan, folder, persons=persons) as stream:
        stream.push(events([(0, 0, "ada lovelace")], 1))
        ((pseudonym, *_),) = stream._store.persons().kept
        assert any(pseudonym in x.read_bytes() for x in folder.iterdir())
        stream.push(events([], 2, 1))
        everything = b"".join(x.read_bytes() for x in folder.iterdir())
        assert pseudonym not in everything
        assert b"lovelace" not in everything


@pytest.mark.parametrize("change", ["missing", "another"])
def test_a_key_that_is_not_the_one_of_the_span_is_refused(folder, change):
    plan = planned()
    dp.release(plan, events([(0, 0, "a")], 1), folder, persons=dp.Persons())
    key = folder.with_name("store.key")
    content = key.read_text()
    key.unlink()
    if change == "another":
        key.touch(0o600)
        key.write_text(content[:-4] + "abc\n" if not content.endswith("abc\n") else content[:-4] + "def\n")
    for _ in range(2):
        with pytest.raises(ReleaseError, match="person_key"):
            dp.release(plan, events([(1, 0, "a")], 1, 1), folder, first=1, persons=dp.Persons())
    assert key.exists() == (change == "another")
    assert dp.read_release(folder).number == 1  # reading needs no key


def test_a_key_in_the_folder_of_what_is_public_is_refused(folder):
    public = folder.with_name("public")
    persons = dp.Persons(key=public / "person.key")
    with pytest.raises(ReleaseError, match="person_key must not lie in the folder of what is public"):
        dp.release(planned(), events([], 1), folder, published=public, persons=persons)
    assert not (public / "person.key").exists()


def test_a_crash_at_the_end_of_a_span_loses_no_key(folder, monkeypatch):
    """The transaction is there, and the new key is not yet in its place."""
    plan, persons = planned(), dp.Persons(span=1)
    dp.release(plan, events([(0, 0, "a")], 1), folder, persons=persons)

    def interrupt(self):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dpfast.releases.persons.person_key.KeyFile.put", interrupt)
        with pytest.raises(KeyboardInterrupt):
            dp.release(plan, events([(1, 0, "a")], 1, 1), folder, first=1, persons=persons)
    log = [(1, 0, "a"), (1, 1, "a"), (1, 0, "b")]
    result = dp.release(plan, events(log, 1, 1), folder, first=1, compose=True, persons=persons)
    assert kept_of(result, plan) == [[1], [0], [0]]


def test_a_damaged_state_is_refused(folder):
    plan = planned()
    dp.release(plan, events([(0, 0, "a"), (0, 1, "b")], 1), folder, persons=dp.Persons())
    with closing(sqlite3.connect(folder / "store.sqlite")) as connection, connection:
        connection.execute("DELETE FROM kept WHERE stream = 1")
    with pytest.raises(ReleaseError, match="is damaged"):
        dp.release(plan, events([], 1), folder, first=1, persons=dp.Persons())


# --- what goes together ---------------------------------------------------------------------------


def test_a_store_protects_one_thing_for_ever(tmp_path):
    plan, counts = planned(), np.zeros((N_STREAMS, 1), int)
    dp.release(plan, counts, tmp_path / "events")
    with pytest.raises(ReleaseError, match="persons must not be declared"):
        dp.release(plan, events([], 1), tmp_path / "events", first=1, persons=dp.Persons())
    dp.release(plan, events([], 1), tmp_path / "persons", persons=dp.Persons())
    with pytest.raises(ReleaseError, match="persons must be declared"):
        dp.release(plan, counts, tmp_path / "persons", first=1)
    with pytest.raises(ReleaseError, match="span_steps must be not declared, got 5"):
        dp.release(plan, events([], 1), tmp_path / "persons", first=1, persons=dp.Persons(span=5))
    with pytest.raises(ReleaseError, match="max_events must be 1, got 2"):
        dp.release(planned(m=2), events([], 1), tmp_path / "persons", first=1, persons=dp.Persons())
    with pytest.raises(ReleaseError, match="streams_per_person must be 1, got 2"):
        dp.release(planned(k=2), events([], 1), tmp_path / "persons", first=1, persons=dp.Persons())


def test_events_come_with_persons_and_persons_with_events(folder):
    plan, counts = planned(), np.zeros((N_STREAMS, 1), int)
    with pytest.raises(ValueError, match=r"u must be an array .* give persons=dp\.Persons\(\) too"):
        dp.release(plan, events([], 1), folder)
    with pytest.raises(ValueError, match=r"u must be a dp\.Events"):
        dp.release(plan, counts, folder, persons=dp.Persons())
    with pytest.raises(ValueError, match="persons must be a Persons"):
        dp.release(plan, counts, folder, persons=True)
    with dp.open_stream(plan, folder, persons=dp.Persons()) as stream:
        with pytest.raises(ValueError, match=r"chunk must be a dp\.Events"):
            stream.push(counts)
        with pytest.raises(ValueError, match="must be of shape"):
            stream.push(dp.Events(step=[], person=[], n_steps=1, n_streams=2))
        stream.push(events([], 1))  # it goes on
    assert not list(folder.parent.glob("*.next"))


def test_counts_of_events_need_a_change_of_one(folder):
    mechanism = dp.input_perturbation(dp.Filter([1]), dp.Privacy(2, 1e-6, max_change=0.5))
    with pytest.raises(ValueError, match="max_change must be at least 1"):
        dp.release(
            mechanism,
            dp.Events(step=[], person=[], n_steps=1),
            folder,
            dp.Inputs(0, 5, unit=0.5),
            persons=dp.Persons(),
        )


# --- the guarantee --------------------------------------------------------------------------------


def test_the_guarantee_is_per_person_and_over_all_spans_that_of_a_group(folder):
    plan = planned(m=2, b=3, k=2, memory=True)
    guarantee = dp.release(plan, events([], 7, 2), folder, first=2, persons=dp.Persons(span=3)).guarantee
    assert guarantee.sentence.startswith(
        "This guarantee is per person and span of 3 steps: it is about whether the events of one person in one span "
        "were in the data or not. Of a person's events in one span, at most 2 in each of at most 2 streams are kept, "
        "at least 3 steps apart, each of size at most 1; all others are left out before anything is computed. Anyone"
    )
    assert guarantee.items()["protected"] == (
        "the events of one person in one span: at most 2 in each of at most 2 streams, at least 3 steps apart, each of "
        "size at most 1"
    )
    assert guarantee.sentence.endswith("what it is in the other case, plus 1e-06 (δ).")
    assert guarantee.persons.n_spans == 3
    assert guarantee.all_spans == Loss(group_shifts(guarantee.shifts, 3))
    assert f"ρ = {9 * guarantee.zcdp_rho}" in guarantee.items()["spans"]
    assert "people who contribute more than is declared here" not in guarantee.not_covered
    assert dp.read_release(folder).guarantee == guarantee


def test_without_memory_the_spans_add_up(folder):
    guarantee = dp.release(planned(), events([], 6), folder, persons=dp.Persons(span=3)).guarantee
    assert f"ρ = {2 * guarantee.zcdp_rho}" in guarantee.items()["spans"]
    together = guarantee.all_spans
    assert together.epsilon(1e-6) < epsilon(group_shifts(guarantee.shifts, 2), 1e-6)


@pytest.mark.parametrize("noise", ["canonical", "response"])
def test_over_spans_the_deltas_add_up_too(folder, noise):
    """A δ of several spans is above that of one: it is stated, and the release is not refused for it."""
    chain, privacy = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1]), dp.Privacy(1, 0.05)
    target = dp.Filter([0.1], [1, -0.9])
    if noise == "canonical":
        mechanism = dp.block_sums(target, privacy, chain, noise=noise)
    else:
        mechanism = dp.randomized_response(target, privacy, chain)
    table = dp.Events(step=[0, 7], stream=[0, 0], person=["a", "a"], n_steps=9)
    result = dp.release(mechanism, table, folder, dp.Inputs(0, 1), persons=dp.Persons(span=3))
    guarantee = result.guarantee
    together = 0.05 * (1 + np.e + np.e**2) if noise == "canonical" else 1 - 0.95**3
    content = json.loads(guarantee.to_json())["persons"]["all_spans"]
    assert (guarantee.epsilon, guarantee.delta) == (pytest.approx(1), 0.05)
    assert content["epsilon"] == pytest.approx(3)
    assert content["delta"] == pytest.approx(together)
    assert Fraction(content["delta"]) >= 1 - np.prod([1 - delta for _, delta in guarantee.all_spans.approximate])
    assert f"ε = 3 at δ = {np.ceil(together * 1e4) / 1e4} and ρ = " in guarantee.items()["spans"]
    dp.report(result, folder.parent / "report.html")


def test_a_guarantee_says_spans_where_they_are_declared(folder):
    one = dp.release(planned(), events([], 6), folder, persons=dp.Persons()).guarantee
    assert "span" not in one.sentence + one.items()["compared"]
    assert not any("in other spans" in line or "within a span" in line for line in one.not_covered)
    two = dp.release(planned(), events([], 6), folder.with_name("two"), persons=dp.Persons(span=3)).guarantee
    for text in (two.sentence, two.items()["compared"]):
        assert "of one person in one span" in text
    assert any("in other spans" in line for line in two.not_covered)


def test_a_stream_without_an_end_says_what_several_spans_are(folder):
    with dp.open_stream(planned(memory=True), folder, persons=dp.Persons(span=3)) as stream:
        text = stream.guarantee.items()["spans"]
        assert "2: ε = " in text
        assert stream.guarantee.all_spans is None


def test_nothing_that_is_published_tells_of_dropped_events(folder):
    """The files of a release with dropped events are those of the log without them, without noise to the byte."""
    plan = planned()
    log = [(0, 0, "a"), (2, 1, "b")]
    for name, extra in (("few", []), ("many", [(1, 0, "a"), (0, 2, "a"), (1, 1, None)] * 9)):
        dp.release(plan, events(log + extra, 3), folder / name, persons=dp.Persons())
    names = ("guarantee.txt", "guarantee.json")
    few, many = ([(folder / f"{x}-published" / name).read_bytes() for name in names] for x in ("few", "many"))
    assert few == many
