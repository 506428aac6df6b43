"""Decisions of exact probability: what every row of words leads to, with words of a few bits."""

from fractions import Fraction
from typing import NamedTuple

import pytest
from helpers.word_masses import exp, fits, masses

from dpfast._kernels import exact_decisions
from dpfast._kernels.exact_decisions import NO, WORDS, YES


class Cut(NamedTuple):
    """Limbs of a few bits of a word."""

    bits: int
    spare: int


LAWS = pytest.mark.parametrize(
    "law", [Cut(2, 0), Cut(3, 0), Cut(3, 1), Cut(4, 0)], ids=lambda law: f"{law.bits} of {sum(law)} bits"
)


@LAWS
def test_a_bernoulli_has_its_probability_exactly(law):
    word_bits, depth = law.bits + law.spare, 4
    for denominator in range(1, 11):
        for numerator in range(denominator + 1):

            def run(words, fraction=(numerator, denominator)):
                return exact_decisions.bernoulli(words, 0, *fraction, law)[0]

            p, found = Fraction(numerator, denominator), masses(run, word_bits, depth)
            assert fits(found, {YES: p, NO: 1 - p}, Fraction(1, 1 << law.bits * depth))
            assert (found[WORDS] == 0) == ((p * (1 << law.bits * depth)).denominator == 1)


@LAWS
def test_uniform_integers_are_equally_likely(law):
    word_bits, depth = law.bits + law.spare, 4
    for n in range(1, (1 << law.bits) + 1):
        found = masses(lambda words, n=n: exact_decisions.uniform(words, 0, n, law)[0], word_bits, depth)
        assert fits(found, dict.fromkeys(range(n), Fraction(1, n)), Fraction(n, 1 << law.bits * depth))


@LAWS
def test_few_bits_are_equally_likely(law):
    word_bits = sum(law)
    for n_bits in range(8):
        found = masses(lambda words, n=n_bits: exact_decisions.few_bits(words, 0, n, law)[0], word_bits, 4)
        assert found == dict.fromkeys(range(1 << n_bits), Fraction(1, 1 << n_bits))


@pytest.mark.parametrize(
    ("p", "a", "q", "b"),
    [
        *((*x, 1, 1) for x in ((0, 5), (1, 1), (1, 2), (1, 16))),
        (1, 2, 2, 3),
        *(pytest.param(*x, marks=pytest.mark.slow_nojit) for x in ((3, 5, 1, 1), (6, 7, 1, 1), (1, 1, 2, 3))),
    ],
)
def test_negative_exponentials_have_their_probabilities_exactly(p, a, q, b):
    def run(words):
        return exact_decisions.negative_exponential(words, 0, p, a, q, b, Cut(3, 0))[0]

    probability, found = exp(Fraction(-p * q, a * b)), masses(run, 3, 8)
    assert fits(found, {YES: probability, NO: 1 - probability}, Fraction(1, 30))
