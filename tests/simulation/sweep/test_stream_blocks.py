"""Blocks: the bits of a case do not depend on what is beside it, nor on where and when it is simulated."""

import itertools
import pickle
import time

import numpy as np
import pytest
from helpers.blocks import LINKS, SOURCES, block, task
from helpers.interrupts import ctrl_c
from hypothesis import given
from hypothesis import strategies as st

from dpfast._kernels import simulation as kernels
from dpfast._support.errors import EngineError
from dpfast.simulation.sweep.stream_blocks import (
    BATCHES,
    STREAMS,
    BlockAnswer,
    Group,
    Pace,
    count_samples,
    estimate_cost,
    iterate_rows,
    plan_tasks,
    run_task,
    simulate_block,
)

SOURCE = pytest.mark.parametrize("source", SOURCES)
DTYPE = pytest.mark.parametrize("dtype", ["f8", "f4"])
PER_BATCH = STREAMS // BATCHES


@SOURCE
@DTYPE
def test_blocks_are_the_streams_of_one_long_run(source, dtype):
    study = kernels.CompiledStudy(SOURCES[source], LINKS, 20, 60, dtype)
    errors = kernels.squared_errors(study, 3 * STREAMS, 7, 2)
    for number in range(3):
        for case, row in enumerate(simulate_block(block(number, source=source, dtype=dtype))):
            streams = errors[number * STREAMS : (number + 1) * STREAMS, case].tolist()
            batches = [sum(streams[k : k + PER_BATCH]) / PER_BATCH for k in range(0, STREAMS, PER_BATCH)]
            assert row.tolist() == batches


def test_streams_from_any_on_are_those_of_a_long_run():
    study = kernels.CompiledStudy(SOURCES["Gaussian"], LINKS, 20, 60)
    whole = kernels.squared_errors(study, 50, 7, 1)
    assert np.array_equal(kernels.squared_errors(study, 17, 7, 1, first=33), whole[33:])


@SOURCE
@DTYPE
def test_a_case_does_not_depend_on_the_cases_beside_it(source, dtype):
    together = simulate_block(block(3, source=source, dtype=dtype))
    for k, link in enumerate(LINKS):
        assert np.array_equal(simulate_block(block(3, [link], source, dtype=dtype)), together[[k]])
        many = simulate_block(block(3, [LINKS[2], *[link] * 16, LINKS[4]], source, dtype=dtype))
        assert np.array_equal(many[1:-1], together[[k] * 16])
    assert np.array_equal(simulate_block(block(3, LINKS[::-1], source, dtype=dtype)), together[::-1])


def test_threads_do_not_matter():
    expected = simulate_block(block(1, n_samples=3000))
    assert np.array_equal(simulate_block(block(1, n_samples=3000), n_threads=3), expected)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_a_task_gives_what_its_blocks_give(n_threads):
    one = task(block(0), block(4, LINKS[:2]), block(1, LINKS[3:]))
    answer = run_task(one, n_threads)
    assert list(map(np.array_equal, answer.means, map(simulate_block, one.blocks))) == [True] * 3
    assert answer.seconds > 0
    found = list(iterate_rows(one, answer))
    assert [(case, number) for case, number, _ in found] == [
        *((k, 0) for k in range(5)),
        (0, 4),
        (1, 4),
        (0, 1),
        (1, 1),
    ]
    assert np.array_equal(found[6][2], simulate_block(one.blocks[1])[1])
    assert found[0][2].shape == (BATCHES,)
    assert found[0][2].flags.c_contiguous
    assert count_samples(one) == 9 * STREAMS * 60


def test_a_task_travels():
    one = task(block(2, dtype=np.dtype("f4")))
    answer = pickle.loads(pickle.dumps(run_task(pickle.loads(pickle.dumps(one)))))
    assert np.array_equal(answer.means[0], simulate_block(one.blocks[0]))


def test_another_version_is_refused():
    with pytest.raises(EngineError, match=r"dpfast .*, the sweep was started by 0\.0\.7: install the same"):
        run_task(task(block(), version="0.0.7"))


def test_blocks_end_soon_after_an_interruption():
    """In all threads, in the middle of what would take a minute."""
    run_task(task(block()))  # compiled
    long = task(*[block(k, n_samples=10**7) for k in range(2)])
    began = time.process_time()  # of both threads; not of whatever else the machine does
    with ctrl_c(0.3), pytest.raises(KeyboardInterrupt):
        run_task(long, 2)
    assert time.process_time() - began < 5  # mostly 0.7


# --- planning -------------------------------------------------------------------------------------


def planned(lackings, pace=None, link=lambda case: LINKS[case % len(LINKS)], **options):
    groups = [Group(SOURCES["levels"], 20, lacking) for lacking in lackings]
    return plan_tasks(groups, link, n_samples=60, seed=7, pace=pace or Pace(), **options)


def at_pace(rate):
    pace = Pace()
    pace.rate = rate
    return pace


LACKING = st.dictionaries(st.integers(0, 60), st.sets(st.integers(0, 6)).map(sorted), max_size=40)


@given(lackings=st.lists(LACKING, max_size=3), rate=st.none() | st.sampled_from([1e-12, 1e-7, 3e-7, 1e-6, 1e-3]))
def test_a_plan_has_every_block_once_in_tasks_that_are_not_too_long(lackings, rate):
    lackings = [{100 * i + case: x for case, x in lacking.items()} for i, lacking in enumerate(lackings)]
    found = []
    for one in planned(lackings, at_pace(rate)):
        assert len(one.blocks) == 1 or rate * one.work <= 1
        for this, cases in zip(one.blocks, one.cases, strict=True):
            assert this.mechanisms == tuple(LINKS[case % len(LINKS)] for case in cases)
            assert 1 <= len(this.mechanisms) <= 16
            assert len({case // 100 for case in cases}) == 1
            assert rate is None or len(cases) == 1 or rate * one.work <= 1
            found += [(case, this.number) for case in cases]
    wanted = [(case, k) for lacking in lackings for case, numbers in lacking.items() for k in numbers]
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("in_flight", [1, 4, 10])
def test_tasks_become_shorter_towards_the_end(in_flight):
    some = planned([dict.fromkeys(range(64), range(100))], at_pace(1e-12), in_flight=in_flight)
    sizes = [sum(map(len, one.cases)) for one in some]
    left = [sum(sizes[k:]) for k in range(len(sizes))]
    assert left[0] == 6400
    assert all(size * in_flight <= most or size == 16 for size, most in zip(sizes, left, strict=True))
    assert len(sizes) <= 1 + 6 * in_flight if in_flight > 1 else sizes == [6400]


def test_cases_that_lack_equally_much_share_blocks():
    lacking = {case: range(8 if case % 2 else 1) for case in range(32)}
    (one,) = planned([lacking], at_pace(1e-12))
    assert [len(x.mechanisms) for x in one.blocks] == [16] * 9
    assert [x.number for x in one.blocks] == [0, *range(8)]


def test_links_are_made_when_they_are_needed_and_once_for_all_blocks_of_a_part():
    made = []

    def link(case):
        made.append(case)
        return LINKS[0]

    some = planned([dict.fromkeys(range(64), range(3))], link=link)
    assert made == []
    next(some)
    assert len(made) <= 17
    assert len(list(some)) == 4 * 3 - 1
    assert sorted(made) == list(range(64))


def test_a_plan_gives_the_same_bits_for_every_pace():
    lackings = [{0: range(3), 1: range(1), 4: [2]}, {2: range(2)}]
    results = []
    for rate in (None, 1e-12, 1e-3):
        means = [iterate_rows(one, run_task(one)) for one in planned(lackings, at_pace(rate))]
        results.append({(case, number): x.tolist() for case, number, x in itertools.chain.from_iterable(means)})
    assert len(results[0]) == 7
    assert results[0] == results[1] == results[2]


def test_the_pace_is_learnt():
    pace, one = Pace(), task(block())._replace(work=1e6)
    assert not pace.fits(1.0)
    pace.learn(one, BlockAnswer([], 4.0, ""))
    assert pace.rate == 4e-6
    pace.learn(one, BlockAnswer([], 1.0, ""))
    assert pace.rate == pytest.approx(2.5e-6)
    assert pace.fits(1e5)
    assert not pace.fits(1e6)


def test_the_cost_of_a_link_grows_with_its_filters():
    linear, smoother, feedback, taps, recursion = map(estimate_cost, LINKS)
    assert 0 < taps < linear < smoother
    assert 0 < feedback < recursion
