"""What integer mechanisms publish, and the worst that an adversary can do, in exact rationals: plain Python alone.

Where noise has no end, its probabilities fall by one factor every so many integers. All values beyond those that any
sum reaches are then told apart by their place in that period only: the others say the same of two sums, to the last
digit, so that nothing is cut off.
"""

import functools
import itertools
from fractions import Fraction
from typing import NamedTuple


class Noise(NamedTuple):
    """P(N = n) of a symmetric law: `of` gives it for n >= 0, where P(N = n + period) = decay P(N = n)."""

    of: object
    period: int
    decay: Fraction
    largest: int = 0  # of a law that ends, which has no period

    def probability(self, n):
        return self.of(abs(n))


def geometric(q):
    return Noise(lambda n: (1 - q) / (1 + q) * q**n, 1, q)


def staircase(odds, steps, high):
    """`odds` is e^epsilon."""
    stair = [1 if place < high else 1 / odds for place in range(steps)]
    total = 2 * sum(stair) / (1 - 1 / odds) - 1
    return Noise(lambda n: stair[n % steps] / odds ** (n // steps) / total, steps, 1 / odds)


def canonical(odds, delta):
    tails = [(1 - delta) / (1 + odds)]  # P(N >= 1), P(N >= 2), ...
    while tails[-1] > delta:
        tails.append((tails[-1] - delta) / odds)
    each = [1 - 2 * tails[0], *(a - b for a, b in itertools.pairwise([*tails, Fraction(0)]))]
    return Noise(lambda n: each[n] if n < len(each) else Fraction(0), 0, Fraction(0), len(tails))


def sum_with_noise(noise, most, least=0):
    """Return what gives the law of a sum, one of least ... most, with noise: outcomes with their probabilities.

    They are told as values above the least one.
    """
    most -= least

    @functools.cache
    def law(total):
        total -= least
        found = {v: noise.probability(v - total) for v in range(-noise.largest, most + noise.largest + 1)}
        for place in range(noise.period):
            found["above", place] = noise.probability(most + 1 + place - total) / (1 - noise.decay)
            found["below", place] = noise.probability(-1 - place - total) / (1 - noise.decay)
        return found

    return law


def randomized_response(odds, delta):
    """The same for one of two levels, 0 and 1."""

    def law(level):
        hidden = {("may be", level): (1 - delta) * odds / (1 + odds), ("may be", 1 - level): (1 - delta) / (1 + odds)}
        return hidden | {("is", level): delta, ("is", 1 - level): Fraction(0)}

    return law


class Publisher(NamedTuple):
    """Every `lengths[i]` inputs, the first time `phase` earlier, what `laws[i]` says of their sum is published.

    With signs, all lengths are that of a block: its k-th input enters the i-th sum with signs[k][i], and the sum is
    published lates[i] inputs behind the end of a block.
    """

    lengths: tuple
    laws: tuple
    n_steps: int
    largest_input: int  # inputs are 0, 1, ...
    phase: int = 0
    signs: tuple = ()
    lates: tuple = ()

    def due(self, t):
        """Levels that publish when t inputs have come."""
        lates = self.lates or (0,) * len(self.lengths)
        return [i for i, n in enumerate(self.lengths) if (t + self.phase - lates[i]) % n == 0]

    def weights(self, t):
        """By what the next input is multiplied in each sum, when t inputs have come."""
        return self.signs[(t + self.phase) % len(self.signs)] if self.signs else (1,) * len(self.lengths)


def worst_case(publisher, odds, change, n_events):
    """Return the least delta at e^epsilon = odds against the best of all adversaries.

    One chooses, before each input, two values for it: equal but for so many events, and there no farther apart than the
    change. It has seen all that was published before, and gains P(published of the first) - odds P(... of the second)
    where that is above zero: the hockey stick, maximal over all pairs of adjacent inputs, in both directions, and over
    all ways in which they react.
    """

    def add(sums, weights, u):
        return tuple(s + weight * u for s, weight in zip(sums, weights, strict=True))

    def choose_inputs(states, t):
        """Take each choice of two inputs in each state: (sums of the one, sums of the other, events left)."""
        values, weights = range(publisher.largest_input + 1), publisher.weights(t)
        return {
            (add(first, weights, u), add(second, weights, w), left - (u != w))
            for first, second, left in states
            for u, w in itertools.product(values, values)
            if u == w or (left > 0 and abs(u - w) <= change)
        }

    def publish(t, state, p, q):
        first, second, left = state
        levels = publisher.due(t)
        after = [tuple(0 if i in levels else s for i, s in enumerate(sums)) for sums in (first, second)]
        laws = [(publisher.laws[i](first[i]), publisher.laws[i](second[i])) for i in levels]
        total = Fraction(0)
        for outcomes in itertools.product(*(law for law, _ in laws)):
            a, b = p, q
            for outcome, (law, other) in zip(outcomes, laws, strict=True):
                a, b = a * law[outcome], b * other[outcome]
            if a > 0:
                total += gain(t, (*after, left), a, b)
        return total

    def gain(t, state, p, q):
        states = {state}
        while t < publisher.n_steps:
            states, t = choose_inputs(states, t), t + 1
            if publisher.due(t):
                return max(publish(t, x, p, q) for x in states)
        return max(p - odds * q, Fraction(0))

    nothing = (0,) * len(publisher.lengths)
    return gain(0, (nothing, nothing, n_events), Fraction(1), Fraction(1))
