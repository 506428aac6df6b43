"""What rows of integers with geometric noise publish, and the worst that an adversary can do: plain Python, exact."""

import itertools
from fractions import Fraction
from typing import NamedTuple


def geometric_law(q, total, low, high):
    """Outcomes of a total of low ... high with two-sided geometric noise; all beyond are alike, and told as one."""
    scale = (1 - q) / (1 + q)
    found = {v: scale * q ** abs(v - total) for v in range(low, high + 1)}
    found["above"] = scale * q ** (high + 1 - total) / (1 - q)
    found["below"] = scale * q ** (total - low + 1) / (1 - q)
    return found


class RowPublisher(NamedTuple):
    """Integer rows, each published when its last input is there, with geometric noise of ratio q; inputs 0 ... most."""

    rows: tuple
    q: Fraction
    most: int

    @property
    def n_steps(self):
        return len(self.rows[0])

    def due(self, t):
        """Rows whose last input is the one of step t; those without inputs come first."""
        return [r for r in self.rows if max([0, *(s for s, x in enumerate(r) if x)]) == t]

    def law(self, row, total):
        low = sum(min(0, x) for x in row) * self.most
        high = sum(max(0, x) for x in row) * self.most
        return geometric_law(self.q, total, low, high)


def worst_case(publisher, odds, change, n_events):
    """Return the least delta at e^epsilon = odds against the best of all adversaries.

    Before each input one chooses two values for it, equal but for so many events, no farther apart than the change, and
    has seen all rows that are there already.
    """
    values = range(publisher.most + 1)
    pairs = [(u, w) for u, w in itertools.product(values, values) if abs(u - w) <= change]

    def gain(t, first, second, left, p, q):
        if t == publisher.n_steps:
            return max(p - odds * q, Fraction(0))
        return max(publish(t, (*first, u), (*second, w), left - (u != w), p, q) for u, w in pairs if u == w or left > 0)

    def publish(t, first, second, left, p, q):
        laws = []
        for row in publisher.due(t):
            totals = (sum(x * u for x, u in zip(row, inputs, strict=False)) for inputs in (first, second))
            laws.append(tuple(publisher.law(row, total) for total in totals))
        found = Fraction(0)
        for outcomes in itertools.product(*(law for law, _ in laws)):
            a, b = p, q
            for outcome, (law, other) in zip(outcomes, laws, strict=True):
                a, b = a * law[outcome], b * other[outcome]
            found += gain(t + 1, first, second, left, a, b)
        return found

    return gain(0, (), (), n_events, Fraction(1), Fraction(1))
