"""The law that a demand of privacy gets: group privacy by brute force, shares, and which law does not serve."""

import itertools
import math

import numpy as np
import pytest

from dpfast import Privacy
from dpfast.privacy.integer_noise.choice import integer_noise
from dpfast.privacy.integer_noise.staircase import MOST_STEPS

KINDS = ("geometric", "canonical", "staircase")
FAR = 50  # |n| up to here; what is beyond counts in full for the adversary


def probabilities(law):
    return np.exp(law.log_probability(np.arange(-FAR, FAR + 1)))


def hockey_stick(p, q, epsilon):
    """The least delta with which p is hidden by q, and what is known of it is all that they sum to."""
    return np.sum(np.maximum(p - math.exp(epsilon) * q, 0.0)) + (1 - p.sum())


def together(law, changes):
    """Joint probabilities of draws, one behind each change."""
    p = probabilities(law)
    size = max(abs(c) for c in changes)
    moved = [np.concatenate([np.zeros(size + c), p, np.zeros(size - c)]) for c in changes]
    joint = moved[0]
    for x in moved[1:]:
        joint = np.multiply.outer(joint, x)
    return joint


def splits(n_events, steps):
    """All ways in which events of one person, each of at most so many steps, change two blocks."""
    n_blocks, found = min(n_events, 2), set()
    for places in itertools.product(range(n_blocks), repeat=n_events):
        for sizes in itertools.product(range(-steps, steps + 1), repeat=n_events):
            changes = [0] * n_blocks
            for place, size in zip(places, sizes, strict=True):
                changes[place] += size
            found.add(tuple(changes))
    return sorted(found)


CASES = [
    ("geometric", 1.0, 0.0, 1, 2),
    ("geometric", 2.0, 0.0, 2, 2),
    ("geometric", 3.0, 0.0, 1, 3),
    ("canonical", 1.0, 0.05, 1, 1),
    ("canonical", 1.0, 0.05, 1, 2),
    ("canonical", 2.0, 0.01, 1, 3),
    ("canonical", 3.0, 1e-4, 1, 4),
    ("staircase", 3.0, 0.0, 2, 1),
    ("staircase", 3.0, 0.0, 2, 2),
    ("staircase", 4.0, 0.0, 3, 2),
]


@pytest.mark.parametrize(("kind", "epsilon", "delta", "steps", "n_events"), CASES)
def test_no_split_of_a_persons_events_shows_more_than_is_promised(kind, epsilon, delta, steps, n_events):
    """Events in one block or in several, of any sizes and signs; the noise is summed, with all that is cut off."""
    law = integer_noise(kind, Privacy(epsilon, delta, max_events=n_events), steps)
    assert law.kind == kind
    costs = []
    for changes in splits(n_events, steps):
        p = together(law, changes)
        still = together(law, tuple(0 for _ in changes))
        size = max(abs(c) for c in changes)
        pad = [(size, size)] * len(changes)
        still = np.pad(still, pad)
        costs += [hockey_stick(a, b, epsilon) for a, b in ((p, still), (still, p))]
    assert max(costs) <= delta + 1e-9
    if kind == "canonical":
        assert max(costs) == pytest.approx(delta, rel=1e-6)  # m events in one block


def test_a_staircase_of_all_events_together_would_break_the_promise():
    """Twice a change of 2 in two blocks costs 6, not 3, where d is multiplied by the number of events."""
    law = integer_noise("staircase", Privacy(3.0), 4)
    p, still = together(law, (2, 2)), np.pad(together(law, (0, 0)), [(2, 2)] * 2)
    inside = np.s_[4:-4, 4:-4]
    assert np.log(p[inside] / still[inside]).max() == pytest.approx(6, rel=1e-9)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.25])
@pytest.mark.parametrize("kind", KINDS)
def test_a_share_is_one_of_epsilon_and_of_delta(kind, share):
    law = integer_noise(kind, Privacy(2.0, 0.02), 1, share)
    assert law.guarantee(1) == pytest.approx((2 * share, 0.02 * share if kind == "canonical" else 0))


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("n_events", [1, 2, 5, 40])
@pytest.mark.parametrize("kind", KINDS)
def test_all_events_in_one_block_cost_what_is_promised(kind, n_events, share):
    steps = 1 if kind == "canonical" else 3
    law = integer_noise(kind, Privacy(2.0, 0.02, max_events=n_events), steps, share)
    expected = 2 * share, 0.02 * share if kind == "canonical" else 0
    assert law.guarantee(n_events * steps) == pytest.approx(expected, rel=1e-9)


def test_group_privacy_is_that_of_one_change_for_each_event():
    law = integer_noise("canonical", Privacy(3.0, 0.01, max_events=3), 1)
    assert law.epsilon == pytest.approx(1.0)
    assert law.delta == pytest.approx(0.01 / (1 + math.e + math.e**2))
    law = integer_noise("geometric", Privacy(3.0, 0.01, max_events=3), 2)
    assert law.rate == pytest.approx(0.5)
    law = integer_noise("staircase", Privacy(3.0, 0.01, max_events=3), 2)
    assert (law.epsilon, law.steps) == (pytest.approx(1.0), 2)


# --- the best -------------------------------------------------------------------------------------


def variance(law):
    n = np.arange(-2000, 2001)
    return math.fsum(n**2 * np.exp(law.log_probability(n)))


@pytest.mark.parametrize("n_events", [1, 2, 4])
@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.05])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_best_law_has_the_least_variance_of_those_that_serve(epsilon, delta, steps, n_events):
    privacy = Privacy(epsilon, delta, max_events=n_events)
    serve = [x for x in KINDS if x != "canonical" or (delta > 0 and steps == 1)]
    laws = [integer_noise(x, privacy, steps) for x in serve]
    best = integer_noise("best", privacy, steps)
    assert variance(best) <= min(map(variance, laws)) * (1 + 2e-9)  # beside one of less than 1e-9 less
    assert best in laws


@pytest.mark.parametrize("delta", [0.0, 1e-300])
@pytest.mark.parametrize("epsilon", np.geomspace(0.01, 30, 40))
def test_the_best_law_of_a_tie_is_the_geometric(epsilon, delta):
    """A staircase of one step is that law under another name, and rounding decides which has the least variance."""
    assert integer_noise("best", Privacy(epsilon, delta), 1).kind == "geometric"


def test_the_best_law_of_more_steps_than_stairs_have_is_the_geometric():
    assert integer_noise("best", Privacy(5.0), MOST_STEPS + 1).kind == "geometric"


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "privacy", "steps", "why"),
    [
        ("canonical", Privacy(1), 1, "it needs a delta above 0"),
        ("canonical", Privacy(1, 0.1), 2, "it hides a change of one unit, and max_change is 2 of them"),
        (
            "staircase",
            Privacy(1),
            MOST_STEPS + 1,
            "it is for at most 1,000,000 units, and max_change is 1,000,001 of them",
        ),
    ],
)
def test_a_law_that_does_not_serve_is_refused_with_the_reason(kind, privacy, steps, why):
    with pytest.raises(ValueError, match=rf"^noise must not be '{kind}' here: {why}; take 'geometric', or 'best'$"):
        integer_noise(kind, privacy, steps)


@pytest.mark.parametrize("kind", ["gaussian", "Geometric", "", None])
def test_a_law_has_one_of_four_names(kind):
    with pytest.raises(
        ValueError, match=rf"^noise must be one of 'best', 'geometric', 'canonical', 'staircase', got {kind!r}"
    ):
        integer_noise(kind, Privacy(1), 1)


@pytest.mark.parametrize(("epsilon", "delta"), [(800.0, 1e-6), (1e5, 0.05), (730.0, 1e-3), (1.0, 5e-324)])
@pytest.mark.parametrize("kind", ["canonical", "best"])
def test_a_delta_without_effect_leaves_the_geometric_law(kind, epsilon, delta):
    law = integer_noise(kind, Privacy(epsilon, delta), 1)
    assert (law.kind, law.epsilon) == ("geometric", epsilon)


def test_noise_for_a_change_of_two_need_not_hide_two_of_one():
    """As notes of Privacy say: block sums take max_events = 2 where a person has two events, in two sums perhaps."""
    one_change = integer_noise("staircase", Privacy(1.0, max_change=2), 2)
    two_events = integer_noise("staircase", Privacy(1.0, max_events=2), 1)
    for law, changes, is_hidden in ((one_change, (2,), True), (one_change, (1, 1), False), (two_events, (1, 1), True)):
        size = max(changes)
        still = np.pad(together(law, (0,) * len(changes)), [(size, size)] * len(changes))
        delta = hockey_stick(together(law, changes), still, 1.0)
        assert delta < 1e-9 if is_hidden else delta > 0.02
