"""The exact two-sided geometric: what every row of words leads to, with words of a few bits."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from helpers.word_masses import exp, fits, masses, random_words
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast._kernels import two_sided_geometric
from dpfast._kernels._jit import DISABLE_JIT
from dpfast._kernels.exact_decisions import DIGITS, NO, NOTHING, WORDS, YES
from dpfast._kernels.two_sided_geometric import LARGEST_J, MOST, GeometricLaw

RATES = [(1, 0), (3, 0), (1, 1), (3, 1), (1, 2), (5, 2)]
N_WORDS = 300 if DISABLE_JIT else 1000


@pytest.mark.parametrize("rate", RATES, ids="{0[0]}-{0[1]}".format)
@pytest.mark.parametrize(("word_bits", "depth"), [(3, 5), (2, 7)])
def test_attempts_lead_to_each_integer_with_its_probability(rate, word_bits, depth):
    """(1 - exp(-1/2^j)) exp(-x/2^j), summed over the s values of x of a size, half of it for each sign.

    An attempt keeps 2^-j sum_u exp(-u/2^j) = 2^-j (1 - exp(-1)) / (1 - exp(-2^-j)) of all, before signs.
    """
    (s, j), law = rate, GeometricLaw.from_rate(*rate, word_bits)

    def run(words):
        outcome, y, _ = two_sided_geometric.attempt_geometric(words, 0, law)
        return outcome if outcome != YES else ("y", y)

    found, expected = masses(run, word_bits, depth), Counter()
    for x in range(40 << j):
        u, v = x % (1 << j), x >> j
        p = exp(Fraction(-u, 1 << j)) * exp(Fraction(-v)) * (1 - exp(Fraction(-1))) / (1 << j)
        for y in {x // s, -(x // s)}:
            expected["y", y] += p / 2
    expected[NO] = 1 - sum(expected.values())
    assert fits(found, expected, Fraction(1, 2))
    assert sum(found[x] > 0 for x in expected) > (1 if rate == (3, 0) else 3)


def drawn(words, law, pieces):
    """All samples that words give, which come in pieces of some lengths by turns."""
    samples, at, given, turn = [], 0, 0, 0
    while True:
        out = np.full(3, -99)
        n, used, missing = two_sided_geometric.draw_geometric(words[at:given], law, out)
        assert (out[n:] == -99).all()
        assert missing == (NOTHING if n == len(out) else WORDS)
        samples, at = [*samples, *out[:n].tolist()], at + used
        if missing == WORDS:
            if given == len(words):
                return samples, at
            given, turn = min(given + pieces[turn % len(pieces)], len(words)), turn + 1


@settings(max_examples=10)
@given(
    st.integers(0, 2**32),
    st.lists(st.integers(1, 40), min_size=1, max_size=9),
    st.sampled_from([*RATES, (2**29, 31), (77, 40)]),
    st.sampled_from([2, 3, 4, 32]),
)
def test_samples_do_not_depend_on_how_words_arrive(seed, pieces, rate, word_bits):
    law, words = GeometricLaw.from_rate(*rate, word_bits), random_words(seed, N_WORDS, word_bits)
    whole = drawn(words, law, [len(words)])
    assert drawn(words, law, pieces) == whole
    assert len(whole[0]) > 2


def test_no_more_than_so_many_successes_are_ever_drawn():
    """A success is a YES of probability 1/2 and then a NO of probability 1/3."""
    success, out = [0, 2**32 - 1], np.zeros(1, int)
    for n, outcome in ((MOST - 1, (1, NOTHING)), (MOST, (0, DIGITS))):
        words = np.array([0, 0, *success * n, *[2**32 - 1] * 9], np.uint32)
        assert two_sided_geometric.draw_geometric(words, GeometricLaw.from_rate(1, 0), out)[::2] == outcome
    assert out == MOST - 1


@pytest.mark.parametrize("rate", [(1, 0), (1, LARGEST_J), (2**62, LARGEST_J), (2**30 - 1, 30)])
def test_the_largest_products_fit_into_words_of_64_bits(rate):
    law = GeometricLaw.from_rate(*rate)
    assert law.bits + law.spare == 32
    assert (1 << law.j) << law.bits < 2**63
    assert MOST << law.bits < 2**63  # the n of a decision of 1 / n, which is seen no more often
    assert (MOST << law.j) + (1 << law.j) < 2**63


def test_the_smallest_rate_can_be_drawn():
    words, out = random_words(5, 20_000), np.zeros(1000, int)
    assert two_sided_geometric.draw_geometric(words, GeometricLaw.from_rate(1, 40), out)[::2] == (1000, NOTHING)
    assert np.std(out) == pytest.approx(2**0.5 * 2**40, rel=0.2)
