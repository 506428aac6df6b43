"""What every row of words leads to, with words of a few bits: exact probabilities of what is drawn from them."""

from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np

from dpfast._kernels.exact_decisions import DIGITS, WORDS


def masses(run, word_bits, depth):
    """Probability of each outcome of `run(words)` within so many words; of WORDS, that these are too few."""
    found, open_prefixes = Counter(), [()]
    followers = [(word,) for word in range(1 << word_bits)]
    while open_prefixes:
        prefix = open_prefixes.pop()
        outcome = run(np.array(prefix, np.uint32))
        if outcome == WORDS and len(prefix) < depth:
            open_prefixes += [prefix + word for word in followers]
        else:
            found[outcome] += 1 << word_bits * (depth - len(prefix))  # rows of so many words that begin like this
    rows = 1 << word_bits * depth
    assert found.total() == rows
    return Counter({outcome: Fraction(n, rows) for outcome, n in found.items()})


def fits(found, probabilities, undecided):
    """Whether what is decided is not too much of anything, and no more than some mass is not decided."""
    rest = found[WORDS] + found[DIGITS]
    assert set(found) <= {*probabilities, WORDS, DIGITS}
    return rest <= undecided and all(found[x] <= p <= found[x] + rest for x, p in probabilities.items())


def exactly(x):
    """An mpmath number as a Fraction."""
    return Fraction(int(mpmath.floor(x * 2**400)), 2**400)


@mpmath.workdps(150)
def exp(x):
    return exactly(mpmath.exp(mpmath.mpf(x.numerator) / x.denominator))


def random_words(seed, n, word_bits=32):
    return np.random.default_rng(seed).integers(1 << word_bits, size=n, dtype=np.uint32)
