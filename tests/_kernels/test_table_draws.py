"""Draws from tables: what every row of words leads to, with words and tables of a few bits."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from helpers.word_masses import masses, random_words
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast._kernels import table_draws
from dpfast._kernels.exact_decisions import NOTHING, WORDS
from dpfast._kernels.table_draws import CutTable

TABLES = {  # weights of 2^bits
    (-1, 0, 1): (1, 2, 1),
    (-1, 0, 1, 7): (5, 0, 2, 1),
    (0, 1, 2): (0, 11, 5),
    (-2, -1, 0, 1, 2): (1, 7, 16, 7, 1),
    (3, 9): (1, 1),
    (4,): (2,),
    tuple(range(9)): (1, 2, 3, 4, 5, 6, 7, 8, 28),
    tuple(range(16)): (4,) * 16,
}


@pytest.mark.parametrize("values", TABLES, ids=len)
@pytest.mark.parametrize("word_bits", [1, 2, 3, 4, 7])
def test_every_row_of_words_leads_to_a_value_and_each_has_its_weight(values, word_bits):
    weights, out = TABLES[values], np.zeros(1, np.int64)
    table = CutTable.from_weights(values, weights, word_bits)
    n_words = -(-table.n_bits // word_bits)
    assert sum(weights) == 1 << table.n_bits

    def run(words):
        n, at, missing = table_draws.draw_table(words, table, out)
        assert (n, at, missing) == ((0, 0, WORDS) if len(words) < n_words else (1, n_words, NOTHING))
        return int(out[0]) if n else WORDS

    expected = {value: Fraction(weight, sum(weights)) for value, weight in zip(values, weights, strict=True) if weight}
    if word_bits * n_words <= 8:
        assert masses(run, word_bits, n_words) == expected
    else:  # the last bits of the last word do not matter
        assert word_bits == 7
        assert masses(run, 7, 1) == expected if n_words == 1 else True


@pytest.mark.parametrize("n", range(1, 18))
def test_a_place_is_the_number_of_thresholds_that_are_not_above(n):
    weights = [1 + (7 * i) % 3 for i in range(n)]
    weights.append((1 << (sum(weights)).bit_length()) - sum(weights))
    table, sums = CutTable.from_weights(range(n + 1), weights), list(itertools.accumulate(weights))
    assert len(table.thresholds) == (1 << table.steps) - 1 >= n
    for u in range(sums[-1]):
        assert table_draws.place(u, table.thresholds, table.steps) == sum(s <= u for s in sums)


def naive(words, values, weights, word_bits):
    """One sample after another, from the bits as text."""
    n_bits, samples = (sum(weights) - 1).bit_length(), []
    n_words = -(-n_bits // word_bits)
    for first in range(0, len(words) - n_words + 1, n_words):
        text = "".join(f"{word:0{word_bits}b}" for word in words[first : first + n_words - 1].tolist())
        last = f"{words[first + n_words - 1]:0{word_bits}b}"
        u = int(text + last[: n_bits - len(text)], 2)
        samples.append(next(v for v, s in zip(values, itertools.accumulate(weights), strict=True) if u < s))
    return samples


LARGE = {
    (-1, 0, 1): (2**60 + 1, 2**61 - 2, 2**60 + 1),
    tuple(range(-20, 21)): (*[3**i for i in range(20)], 2**61 - (3**20 - 1), *[3**i for i in range(20)][::-1]),
    (0, 1, 2): (2**62 - 2, 1, 1),
}


@settings(max_examples=15)
@given(
    st.integers(0, 2**32),
    st.lists(st.integers(1, 40), min_size=1, max_size=9),
    st.sampled_from([*TABLES.items(), *LARGE.items()]),
    st.sampled_from([3, 4, 32]),
)
def test_samples_are_those_of_a_naive_twin_however_words_arrive(seed, pieces, law, word_bits):
    words = random_words(seed, 200, word_bits)
    values, weights = law[0], list(law[1])
    weights[-1] += (1 << (sum(weights) - 1).bit_length()) - sum(weights)
    table, samples, at, given, turn = CutTable.from_weights(values, weights, word_bits), [], 0, 0, 0
    while given < len(words):
        given, turn = min(given + pieces[turn % len(pieces)], len(words)), turn + 1
        missing = NOTHING
        while missing == NOTHING:
            out = np.full(3, -99)
            n, used, missing = table_draws.draw_table(words[at:given], table, out)
            assert (out[n:] == -99).all()
            assert missing == (NOTHING if n == len(out) else WORDS)
            samples, at = [*samples, *out[:n].tolist()], at + used
    assert samples == naive(words, values, weights, word_bits)
    assert len(samples) > 8


def test_the_ends_of_the_words_are_the_ends_of_the_table():
    values, weights = (-1, 0, 1), (1, 2**62 - 2, 1)
    table, out = CutTable.from_weights(values, weights), np.zeros(4, np.int64)
    most = 2**32 - 1
    words = np.array([0, 3, 0, 4, most, most, most, most - 4], np.uint32)
    assert table_draws.draw_table(words, table, out) == (4, 8, NOTHING)
    assert out.tolist() == [-1, 0, 1, 0]
    assert Counter(weights)[1] == 2
