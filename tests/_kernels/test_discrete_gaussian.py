"""The exact discrete Gaussian: what every row of words leads to, with words of a few bits."""

import decimal
from collections import Counter
from decimal import ROUND_DOWN, Context, Inexact, localcontext
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from helpers.word_masses import exactly, exp, fits, masses, random_words
from hypothesis import given, settings
from hypothesis import strategies as st

from dpfast._kernels import discrete_gaussian
from dpfast._kernels._jit import DISABLE_JIT
from dpfast._kernels.discrete_gaussian import MOST, Law
from dpfast._kernels.exact_decisions import DIGITS, NO, NOTHING, WORDS, YES

DEEPER = 0 if DISABLE_JIT else 3  # words that only the compiler affords


@mpmath.workdps(150)
def band_probabilities(most=40):
    terms = [mpmath.exp(-mpmath.mpf(k * k) / 2) for k in range(most)]
    return [exactly(x / sum(terms)) for x in terms]


LONG = () if DISABLE_JIT else pytest.mark.long  # without the compiler fewer words are tried


# --- decisions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_limbs", "word_bits", "depth"), [(1, 2, 3), (2, 4, 3), (5, 2, 6), (4, 3, 5), (4, 3, 2)])
def test_bands_have_their_probabilities_exactly(n_limbs, word_bits, depth):
    thresholds = discrete_gaussian.make_table(n_limbs, word_bits)
    found = masses(lambda words: discrete_gaussian.band(words, 0, thresholds)[0], word_bits, depth)
    assert (found[DIGITS] > 0) == (n_limbs <= depth)
    assert found[WORDS] == 0 or n_limbs > depth
    undecided = Fraction(MOST, 1 << word_bits * min(n_limbs, depth))
    assert fits(found, dict(enumerate(band_probabilities()[:MOST])), undecided)


@pytest.mark.parametrize(
    ("k", "p", "a"),
    [(0, 0, 5), (0, 3, 5), *(pytest.param(*x, marks=LONG) for x in ((0, 6, 7), (1, 4, 5))), (1, 1, 2), (3, 2, 3)],
)
def test_exponentials_have_their_probabilities_exactly(k, p, a):
    law, x = Law.from_fraction(a, 0, 2), Fraction(p, a)
    probability = exp(-x * (2 * k + x) / (2 * k + 2))
    found = masses(lambda words: discrete_gaussian.exponential(words, 0, k, p, law)[0], 2, 7 + DEEPER)
    assert fits(found, {YES: probability, NO: 1 - probability}, Fraction(1, 10 if DISABLE_JIT else 30))


SIGMAS = [(3, 0), (4, 0), (5, 1), (3, 2), (1, 0)]


@pytest.mark.parametrize(
    ("a", "j", "word_bits", "depth"),
    [
        *((*sigma, 3, 5) for sigma in SIGMAS),
        *(pytest.param(*sigma, 2, 7 + DEEPER, marks=() if sigma == (3, 2) else LONG) for sigma in SIGMAS),
    ],
)
def test_attempts_lead_to_each_integer_with_its_probability(a, j, word_bits, depth):
    """P(k) exp(-x (2 k + x) / 2) over twice the integers that the cells have."""
    law, sigma, thresholds = (
        Law.from_fraction(a, j, word_bits),
        Fraction(a, 1 << j),
        discrete_gaussian.make_table(6, word_bits),
    )

    def run(words):
        outcome, z, _ = discrete_gaussian.attempt(words, 0, thresholds, law)
        return outcome if outcome != YES else ("z", z)

    found, expected = masses(run, word_bits, depth), Counter()
    for k, p in enumerate(band_probabilities()):
        for magnitude in range(-(-k * a >> j), -(-(k + 1) * a >> j)):
            x = magnitude / sigma - k
            for z in {magnitude, -magnitude}:
                expected["z", z] += p * exp(-x * (2 * k + x) / 2) / (law.cells << law.low)
    expected[NO] = 1 - sum(expected.values())
    assert fits(found, expected, Fraction(1, 8 if depth == 10 else 2))
    assert sum(found[x] > 0 for x in expected) > 3


# --- samples --------------------------------------------------------------------------------------


def drawn(words, law, word_bits, pieces, n_limbs=1):
    """All samples that words give, which come in pieces of some lengths by turns, with a table that grows."""
    samples, at, given, turn = [], 0, 0, 0
    while True:
        out = np.full(3, -1)
        thresholds = discrete_gaussian.make_table(n_limbs, word_bits)
        n, used, missing = discrete_gaussian.draw(words[at:given], thresholds, law, out)
        assert (out[n:] == -1).all()
        assert (missing == NOTHING) == (n == len(out))
        samples, at = [*samples, *out[:n].tolist()], at + used
        if missing == DIGITS:
            n_limbs *= 2
        if missing == WORDS:
            if given == len(words):
                return samples, at
            given, turn = given + pieces[turn % len(pieces)], turn + 1
            given = min(given, len(words))


N_WORDS = 300 if DISABLE_JIT else 1000


@settings(max_examples=10)
@given(
    st.integers(0, 2**32),
    st.lists(st.integers(1, 40), min_size=1, max_size=9),
    st.sampled_from(SIGMAS),
    st.sampled_from([2, 3, 4, 32]),
)
def test_samples_do_not_depend_on_how_words_and_digits_arrive(seed, pieces, sigma, word_bits):
    law, words = Law.from_fraction(*sigma, word_bits), random_words(seed, N_WORDS, word_bits)
    whole = drawn(words, law, word_bits, [len(words)], n_limbs=32)
    assert drawn(words, law, word_bits, pieces) == whole
    assert len(whole[0]) > 5


def test_missing_digits_are_found_and_said():
    """With limbs of two bits more than the first one is needed for every other sample."""
    law, words = Law.from_fraction(3, 0, 2), random_words(1, N_WORDS, 2)
    out = np.empty(N_WORDS, int)
    n, used, missing = discrete_gaussian.draw(words, discrete_gaussian.make_table(1, 2), law, out)
    assert missing == DIGITS
    more, used_more, missing = discrete_gaussian.draw(words, discrete_gaussian.make_table(9, 2), law, out)
    assert missing == WORDS
    assert (more > n, used_more > used) == (True, True)


def test_nothing_of_thirty_standard_deviations_is_ever_drawn():
    words, out = np.full(100, 2**32 - 1, np.uint32), np.zeros(1, int)
    for table in ((6, 32), (24, 32), (1, 32, 2)):
        thresholds = discrete_gaussian.make_table(*table)
        assert discrete_gaussian.draw(words, thresholds, Law.from_fraction(645, 1), out) == (0, 0, DIGITS)


@pytest.mark.parametrize(("a", "j"), [(2**40, 0), (2**40 - 1, 7), (2**40, 44), (1, 4), (645, 1), (2**31 + 1, 0)])
def test_the_largest_products_fit_into_words_of_64_bits(a, j):
    law, k = Law.from_fraction(a, j), MOST - 1
    most_steps = law.cells // 2 << law.low
    largest_p = (-(-k * a >> j) + most_steps - 1 << j) - k * a
    assert a * (2 * k + 2) << law.bits < 2**63
    assert law.cells << law.bits < 2**63
    assert largest_p < 2**63
    assert most_steps >= -(-a >> j)  # the cells cover everything
    assert law.cells <= 1 << law.bits
    assert (law.bits + law.spare, law.low + law.spare_low) == (32, 32)
    assert law.spare_low >= 0


@pytest.mark.parametrize(("a", "j"), [(2**40, 0), (2**40 - 1, 7)])
def test_the_largest_standard_deviations_can_be_drawn(a, j):
    words, out = random_words(5, 20_000), np.zeros(1000, int)
    assert discrete_gaussian.draw(words, discrete_gaussian.make_table(6), Law.from_fraction(a, j), out)[::2] == (
        1000,
        NOTHING,
    )
    assert np.std(out) == pytest.approx(a / 2**j, rel=0.15)


# --- the table ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_limbs", "word_bits"), [(6, 32), (24, 32), (1, 2), (7, 3)])
def test_the_table_has_the_digits_of_the_cumulative_probabilities(n_limbs, word_bits):
    with mpmath.workdps(300):
        terms = [mpmath.exp(-mpmath.mpf(k * k) / 2) for k in range(80)]
        total, n_bits = sum(terms), n_limbs * word_bits
        numbers = [int(mpmath.floor(sum(terms[: k + 1]) / total * 2**n_bits)) for k in range(MOST)]
    thresholds = discrete_gaussian.make_table(n_limbs, word_bits)
    for k, number in enumerate(numbers):
        assert sum(int(limb) << word_bits * i for i, limb in enumerate(thresholds[::-1, k])) == number


def test_a_longer_table_begins_like_a_shorter_one():
    assert (discrete_gaussian.make_table(24, 32)[:6] == discrete_gaussian.make_table(6, 32)).all()
    assert not discrete_gaussian.make_table(6).flags.writeable


def test_the_table_does_not_depend_on_the_decimal_context_of_the_caller(monkeypatch):
    expected = discrete_gaussian.make_table(3, 20)
    discrete_gaussian.make_table.cache_clear()
    with localcontext(Context(prec=3, rounding=ROUND_DOWN, traps=[Inexact])):
        assert (discrete_gaussian.make_table(3, 20) == expected).all()
    discrete_gaussian.make_table.cache_clear()
    monkeypatch.setitem(decimal.DefaultContext.traps, Inexact, True)
    assert (discrete_gaussian.make_table(3, 20) == expected).all()


def test_bounds_of_what_is_above_a_band_hold_and_are_near():
    with mpmath.workdps(200):
        terms = [mpmath.exp(-mpmath.mpf(k * k) / 2) for k in range(80)]
        for n_digits in (10, 20, 40):
            for k in range(MOST):
                low, high = discrete_gaussian._enclose(k, n_digits)
                truth = sum(terms[k + 1 :]) / sum(terms)
                assert mpmath.mpf(low.numerator) / low.denominator < truth
                assert truth < mpmath.mpf(high.numerator) / high.denominator
                assert high / low < 1 + Fraction(3000, 10**n_digits)
