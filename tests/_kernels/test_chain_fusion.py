"""Stages that run as one, beside the same one after the other."""

import numpy as np
import pytest
from helpers.chains import EXAMPLES, FACTORS, LANES, ONE, SECTIONS
from hypothesis import given
from hypothesis import strategies as st

from dpfast._kernels import chain_parts, chain_program
from dpfast._kernels.chain_builder import Chain, Term
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.factors import UNITY, Factors
from dpfast._kernels.simulated_noise import INPUT, NOISE, LevelTable, of_channel

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])
TABLE = LevelTable.from_cumulative(np.array([[0.75, 1.0], [0.4, 1.0]]), np.array([-0.5, 2.0]))
ONE_POLE = np.array([[1.0, 0.995, 0.0, 1.0, -0.995, 0.0]])


def first_words(start):
    return start[0] % 2


def sections(*rows):
    return Factors(ONE, np.concatenate(rows), ONE)


def apart(stages, coefficients):
    """Every stage by itself."""
    return stages, coefficients


def first_pass(dtype, factors, chunk=48, by=0.0, **options):
    """A chain of levels, sections and noise; its signals."""
    chain = Chain(dtype, chunk)
    u = chain.shift(chain.levels(TABLE, INPUT, first_words), by)
    return chain, (u, chain.filter(factors, u, **{"plus": Term(0.7), **options}))


def kinds(chain, n_samples=100):
    return [int(stage.kind) for stage in chain.compile(n_samples).stages]


def run(chain, signals, n_streams, n_samples):
    for signal in signals:
        chain.write(signal)
    out = np.empty((len(signals), n_streams, n_samples), chain.dtype)
    return out, execute(chain, n_streams, n_samples, seed=3, out=out).totals


# --- the first pass -------------------------------------------------------------------------------


@DTYPES
@EXAMPLES
@given(
    n=st.integers(1, 120),
    n_sections=st.integers(1, 3),
    chunk=st.sampled_from([6, 48]),
    by=st.sampled_from([0.0, 0.1, -1 / 3]),
)
def test_one_pass_gives_the_bits_of_several(dtype, n, n_sections, chunk, by):
    results = []
    for fuses in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not fuses:
                patch.setattr(chain_parts, "fuse_stages", apart)
            chain, (u, v) = first_pass(dtype, sections(SECTIONS[:n_sections]), chunk, by=by)
            chain.filter(FACTORS["section"], u, minus=v, square=range(n // 3, n))
            results.append(run(chain, (u, v), LANES + 1, n))
            assert (kinds(chain)[0] == chain_program.FIRST_PASS) == fuses
    for fused, plain in zip(*results, strict=True):
        assert fused.any()
        assert np.array_equal(fused, plain)


def test_what_else_a_filter_does_keeps_it_apart():
    pole = sections(ONE_POLE)
    apart = [chain_program.TWO_LEVELS, chain_program.FILTER]
    assert kinds(first_pass(np.float64, pole)[0]) == [chain_program.FIRST_PASS]
    for options in ({"lag": 1}, {"plus": None}, {"square": range(9)}):
        assert kinds(first_pass(np.float64, pole, **options)[0]) == apart
    assert kinds(first_pass(np.float64, FACTORS["Wiener"])[0]) == apart  # taps
    assert kinds(first_pass(np.float64, UNITY)[0]) == apart  # nothing but noise


def test_the_input_of_another_signal_keeps_a_filter_apart():
    chain, (_, v) = first_pass(np.float64, sections(ONE_POLE))
    chain.levels(TABLE, INPUT, first_words)
    chain.filter(FACTORS["section"], v, plus=Term(1.0))
    assert kinds(chain) == [chain_program.FIRST_PASS, chain_program.TWO_LEVELS, chain_program.FILTER]


def shifted(by=0.5, step=(1.0, 0), **term):
    """A chain of levels that are shifted and filtered; the signal of levels, and the constant."""
    chain = Chain(np.float64, 48)
    u, ones = chain.levels(TABLE, INPUT, first_words), chain.step(*step)
    chain.filter(sections(ONE_POLE), chain.add(u, Term(by, ones, **term)), plus=Term(1.0))
    return chain, u, ones


def test_levels_that_only_a_shift_reads_are_drawn_shifted():
    chain, _, ones = shifted()
    assert kinds(chain) == [chain_program.FIRST_PASS]
    chain, _, ones = shifted()
    chain.write(ones)
    assert kinds(chain) == [chain_program.STEP, chain_program.FIRST_PASS, chain_program.WRITE]


@DTYPES
def test_each_of_several_channels_is_drawn_in_one_pass_whatever_lies_between(dtype):
    results = []
    for fuses in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not fuses:
                patch.setattr(chain_parts, "fuse_stages", apart)
            chain = Chain(dtype, 48)
            u = [chain.levels(TABLE, of_channel(INPUT, i), first_words) for i in range(3)]
            x = [chain.shift(signal, by) for signal, by in zip(u, (0.5, 0.5, -0.25), strict=True)]
            v = [chain.filter(sections(ONE_POLE), x[i], plus=Term(1.0, None, 0, of_channel(NOISE, i))) for i in (1, 0)]
            seen = [*x, *v, u[2]]  # the last of which is not shifted in place
            results.append(run(chain, seen, LANES + 1, 100)[0])
            if fuses:
                found = kinds(chain)
                assert found.count(chain_program.FIRST_PASS) == 2
                assert found.count(chain_program.TWO_LEVELS) == 1
    assert np.array_equal(*results)
    assert len(np.unique(results[0][:3, 0, :20] - np.array([[0.5], [0.5], [-0.25]]), axis=0)) == 3


def test_levels_that_something_else_reads_first_are_drawn_before_it():
    chain = Chain(np.float64, 48)
    u = chain.levels(TABLE, INPUT, first_words)
    chain.filter(sections(SECTIONS), u)
    chain.filter(sections(ONE_POLE), u, plus=Term(1.0))
    assert kinds(chain) == [chain_program.TWO_LEVELS, chain_program.FILTER, chain_program.FILTER]


def test_a_shift_that_others_see_or_that_begins_later_is_a_stage():
    stages = [chain_program.TWO_LEVELS, chain_program.STEP, chain_program.FILTER, chain_program.FILTER]
    for other in (shifted(step=(2.0, 0)), shifted(step=(1.0, 7)), shifted(late=3)):
        assert kinds(other[0]) == stages
    chain, u, _ = shifted()
    chain.write(u)
    assert kinds(chain) == [*stages, chain_program.WRITE]


@pytest.mark.parametrize("name", ["identity", "section"])
def test_what_is_no_shift_stays_behind_levels(name):
    """Another signal is added, or what is shifted is filtered too."""
    chain = Chain(np.float64, 48)
    added = chain.normals(NOISE) if name == "identity" else chain.step(1.0, 0)
    chain.filter(FACTORS[name], chain.levels(TABLE, INPUT, first_words), plus=Term(0.5, added))
    assert kinds(chain)[1:] == [chain_program.TWO_LEVELS, chain_program.FILTER]


def test_where_states_are_asked_for_no_pass_runs_beyond_the_last_sample():
    chain, _ = first_pass(np.float64, sections(ONE_POLE), states=True)
    assert kinds(chain) == [chain_program.TWO_LEVELS, chain_program.FILTER]


# --- a section of one pole ------------------------------------------------------------------------


@DTYPES
@EXAMPLES
@given(n=st.integers(1, 120), before=st.integers(0, 2), window=st.tuples(st.integers(0, 120), st.integers(0, 120)))
def test_squares_behind_one_pole_are_those_of_its_output(dtype, n, before, window):
    """Which a section of two poles makes, as it is kept."""
    factors, late = sections(SECTIONS[:before], ONE_POLE), range(*sorted(min(t, n) for t in window))
    chain = Chain(dtype, 48)
    x = chain.normals(NOISE)
    chain.filter(factors, x, square=late)
    chain.filter(UNITY, chain.filter(factors, x), square=late)
    at_once, behind = execute(chain, LANES + 1, n, seed=3).totals.T
    assert np.array_equal(at_once, behind)
    assert at_once.all() == (len(late) > 0)
