"""How much one event that reaches several inputs changes, against trying all signs and times."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dp
from dpfast.privacy.placed_events import largest_placed

ADJACENCIES = ("one_input", "each_input_same_time", "each_input")
SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])


def brute_force(g, changes, adjacency, longest):
    """The largest change of the outputs of (q, m, n) taps, by trying all signs and times up to a longest delay."""
    q, m, n = g.shape
    if adjacency == "one_input":
        return max(changes[j] * np.linalg.norm(g[:, j]) for j in range(m))
    delays = [(0,) * m]
    if adjacency == "each_input":
        delays = itertools.product(range(longest + 1), repeat=m)
    largest = 0.0
    for times, signs in itertools.product(list(delays), itertools.product((1, -1), repeat=m)):
        out = np.zeros((q, n + longest))
        for j in range(m):
            out[:, times[j] : times[j] + n] += signs[j] * changes[j] * g[:, j]
        largest = max(largest, float(np.linalg.norm(out)))
    return largest


def test_a_sensitivity_is_found_once_for_what_is_equal_and_anew_for_what_is_not(monkeypatch):
    places = []
    monkeypatch.setattr("dpfast.privacy.sensitivity_of_matrix.largest_placed", lambda x: places.append(1) or place(x))
    place = largest_placed

    def measure(gain, change=1.0, adjacency="each_input"):
        g = dp.FilterMatrix([[dp.Filter([0.3, 0.1, gain]), dp.Filter([0.2, -0.7])]])
        return dp.Privacy(1, 1e-3, adjacency=adjacency, max_change=[1.0, change]).sensitivity(g)

    first = measure(0.123)
    assert (measure(0.123), len(places)) == (first, 1)
    assert measure(np.nextafter(0.123, 1)) >= first
    assert len(places) == 2
    assert measure(0.123, np.nextafter(1, 2)) >= first
    assert len(places) == 3
    assert measure(0.123, adjacency="one_input") < measure(0.123, adjacency="each_input_same_time") <= first


def fir(taps):
    return dp.FilterMatrix([[dp.Filter(x) for x in row] for row in taps])


def found(matrix, changes, adjacency, **more):
    return dp.Privacy(1, 0.05, max_change=changes, adjacency=adjacency, **more).sensitivity(matrix)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("m", [1, 2, 3])
def test_it_is_that_of_the_worst_signs_and_times(adjacency, seed, m):
    rng = np.random.default_rng(seed)
    taps, changes = rng.standard_normal((2, m, 3)), rng.uniform(0.3, 2, m)
    exact = brute_force(taps, changes, adjacency, 4)  # the outer two meet the one between
    bound = found(fir(taps), changes if m > 1 else changes[0], adjacency)
    assert bound == pytest.approx(exact, rel=1e-9)


taps_of_three = st.lists(st.floats(-2, 2), min_size=12, max_size=12)


@given(taps_of_three, st.sampled_from(ADJACENCIES))
def test_it_is_never_below_the_worst(values, adjacency):
    taps = np.reshape(values, (2, 3, 2))
    assert brute_force(taps, np.ones(3), adjacency, 2) <= found(fir(taps), 1.0, adjacency) * (1 + 1e-9) + 1e-9


def test_slow_poles_against_long_impulse_responses():
    g = TARGET.impulse(1500)
    r = np.einsum("qit,qjt->ij", g, g)
    same = max(np.array(s) @ r @ np.array(s) for s in itertools.product((1, -1), repeat=3))
    assert found(TARGET, 1, "one_input") == pytest.approx(math.sqrt(r.diagonal().max()), rel=1e-9)
    assert found(TARGET, 1, "each_input_same_time") == pytest.approx(math.sqrt(same), rel=1e-9)
    energy, products, reach = np.trace(r), correlations(g), range(-400, 401)
    near = [{t: x[len(x) // 2 + t] for t in range(-800, 801)} for x in products]
    largest = max(placed(near, a, b) for a in reach for b in reach)
    assert found(TARGET, 1, "each_input") == pytest.approx(math.sqrt(energy + 2 * largest), rel=1e-6)
    assert energy + 2 * largest < 0.85 * (energy + 2 * sum(np.abs(x).max() for x in products))


def correlations(g):
    """R_01, R_02 and R_12 at all times."""
    couples = [(0, 1), (0, 2), (1, 2)]
    return [sum(np.correlate(row[i], row[j], "full") for row in g) for i, j in couples]


def placed(products, a, b):
    x, y, z = products[0][a], products[1][b], products[2][b - a]
    return max(x + y + z, x - y - z, -x + y - z, -x - y + z)


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_of_four_inputs_it_is_below_the_sum_of_the_largest_products(seed):
    """Of each input its own taps or none: rings of three and four, chains, and inputs that stay alone."""
    rng = np.random.default_rng(seed)
    taps = rng.standard_normal((2, 4, 2)) * rng.integers(0, 2, (2, 4, 1))
    exact = brute_force(taps, np.ones(4), "each_input", 2)
    together = [
        abs(sum(np.correlate(row[i], row[j], "full") for row in taps)).max() for i in range(4) for j in range(i)
    ]
    bound = found(fir(taps), 1.0, "each_input")
    assert exact * (1 - 1e-9) <= bound <= math.sqrt((taps**2).sum() + 2 * sum(together)) * (1 + 1e-9)


def test_four_inputs_that_oppose_one_another_are_bounded_by_their_triples():
    """Two against the third leave 1 of three, and two against two leave 2 of four, where magnitudes sum to 6."""
    opposed = {couple: np.array([0, -1, 0]) for couple in itertools.combinations(range(4), 2)}
    assert largest_placed(opposed) == 2
    assert largest_placed({couple: 0.5 * r for couple, r in opposed.items()}) == 1


def test_a_person_at_any_times_may_change_more_than_at_one():
    """Two inputs whose responses do not overlap at the same time, and do with a delay."""
    delayed = dp.FilterMatrix([[1, dp.Filter([0, 1])]])
    assert found(delayed, 1, "each_input_same_time") == pytest.approx(math.sqrt(2))
    assert found(delayed, 1, "each_input") == pytest.approx(2)


def test_times_count_for_nothing_where_no_output_sees_two_inputs():
    diagonal = dp.FilterMatrix.diagonal([SLOW, QUICK, 2])
    every = math.hypot(SLOW.h2_norm(), 3 * QUICK.h2_norm(), 4)
    changes = [1, 3, 2]
    assert found(diagonal, changes, "each_input") == pytest.approx(every, rel=1e-12)
    assert found(diagonal, changes, "each_input_same_time") == pytest.approx(every, rel=1e-12)
    assert found(diagonal, changes, "one_input") == pytest.approx(4, rel=1e-12)


def test_signs_of_many_inputs_are_bounded():
    """More inputs than signs are tried for: exact for a total, and for an orthogonal matrix."""
    assert found(dp.total(20), 1, "each_input_same_time") == pytest.approx(20)
    turned = np.linalg.qr(np.random.default_rng(0).standard_normal((18, 18)))[0]
    assert found(dp.FilterMatrix(turned), 1, "each_input_same_time") == pytest.approx(math.sqrt(18))
    stacked = dp.FilterMatrix(np.vstack([turned[:9], turned[:9] + 0.1]))
    r = stacked.response(0.0).real.T @ stacked.response(0.0).real
    by_eigenvalue = math.sqrt(18 * np.linalg.eigvalsh(r)[-1])
    assert found(stacked, 1, "each_input_same_time") <= by_eigenvalue * (1 + 1e-9) < math.sqrt(np.abs(r).sum())
    sampled = np.random.default_rng(1).choice([-1.0, 1.0], (500, 18)) @ stacked.response(0.0).real.T
    assert np.linalg.norm(sampled, axis=1).max() <= found(stacked, 1, "each_input_same_time")


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_permuted_and_scaled_channels(adjacency):
    order, scale = [2, 0, 1], [3.0, 0.5, 2.0]
    permuted = dp.FilterMatrix([[row[j] for j in order] for row in TARGET.rows])
    assert found(permuted, [scale[j] for j in order], adjacency) == pytest.approx(found(TARGET, scale, adjacency))
    scaled = dp.FilterMatrix([[scale[j] * row[j] for j in range(3)] for row in TARGET.rows])
    assert found(scaled, 1, adjacency) == pytest.approx(found(TARGET, scale, adjacency))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_several_events_cost_as_a_group(adjacency):
    assert found(TARGET, 1, adjacency, max_events=3) == pytest.approx(3 * found(TARGET, 1, adjacency))


@pytest.mark.parametrize("more", [{}, {"max_events": 3}])
def test_one_input_and_output_are_a_filter(more):
    privacy = dp.Privacy(1, 0.05, max_change=2, **more)
    assert privacy.sensitivity(dp.FilterMatrix([[SLOW]])) == privacy.sensitivity(SLOW)
    assert privacy.noise_std(dp.FilterMatrix([[SLOW]])) == privacy.noise_std(SLOW)
    stacked = dp.FilterMatrix([[SLOW], [QUICK]])
    norm = 2 * math.hypot(SLOW.h2_norm(), QUICK.h2_norm())
    assert privacy.sensitivity(stacked) == pytest.approx(norm * privacy.max_events)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_change": [1, 2]}, "adjacency must be said for 2 inputs: 'one_input' where"),
        ({"max_change": [1, 0], "adjacency": "one_input"}, r"max_change\[1\] must be a number strictly between"),
        (
            {"max_change": np.array([])},
            "max_change must be a number above 0, or a number for each of several inputs, got a ndarray of shape",
        ),
        ({"adjacency": "each"}, "adjacency must be one of 'one_input', 'each_input_same_time', 'each_input', got"),
    ],
)
def test_wrong_changes_and_adjacencies_are_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        dp.Privacy(1, 0.05, **arguments)


def test_what_does_not_fit_the_inputs_is_named():
    with pytest.raises(ValueError, match=r"adjacency must be said for 3 inputs: .* it has no default"):
        dp.Privacy(1, 0.05).sensitivity(TARGET)
    with pytest.raises(ValueError, match="a value for each of the 3 inputs, or be one number for all, got 2 values"):
        found(TARGET, [1, 2], "one_input")
    with pytest.raises(ValueError, match="prefilter must be a Filter or a FilterMatrix, got 3"):
        dp.Privacy(1, 0.05).sensitivity(3)


SEVERAL = dp.Privacy(1, 0.05, max_change=[1, 2], adjacency="one_input")


@pytest.mark.parametrize(
    "design",
    [
        lambda: SEVERAL.sensitivity(SLOW),
        lambda: dp.zero_forcing(SLOW, SEVERAL),
        lambda: dp.lmmse(SLOW, SEVERAL, dp.ARMA([1])),
        lambda: dp.input_perturbation(SLOW, SEVERAL),
        lambda: dp.output_perturbation(SLOW, SEVERAL),
        lambda: dp.block_sums(SLOW, SEVERAL, dp.ARMA([1])),
        lambda: dp.randomized_response(SLOW, SEVERAL, dp.MarkovChain([[0.9, 0.1], [0.2, 0.8]], levels=[0, 1])),
        lambda: dp.robust(SLOW, SEVERAL, mean_square=1),
        lambda: dp.unbounded_sum(SEVERAL),
        lambda: dp.square_root(dp.running_sum(4), SEVERAL),
        lambda: dp.optimal_factorization(dp.running_sum(4), SEVERAL),
        lambda: dp.additive_bound(SLOW, SEVERAL),
        lambda: dp.unbiased_bound(SLOW, SEVERAL),
        lambda: dp.linear_mean_bound(SLOW, SEVERAL, dp.ARMA([1])),
        lambda: dp.gaussian_bound(SLOW, SEVERAL, dp.ARMA([1])),
        lambda: dp.adaptive_blocks(SLOW, SEVERAL, dp.MarkovChain([[0.9, 0.1], [0.2, 0.8]], levels=[0, 1])),
        lambda: dp.decision_feedback(SLOW, SEVERAL, dp.MarkovChain([[0.9, 0.1], [0.2, 0.8]], levels=[0, 1])),
        lambda: dp.optimal(SLOW, SEVERAL, dp.ARMA([1])),
        lambda: dp.optimal_program(SLOW, SEVERAL, dp.ARMA([1])),
        lambda: dp.tree(dp.running_sum(4), SEVERAL),
        lambda: dp.shared_noise(dp.running_sum(4), SEVERAL),
        lambda: dp.best(SLOW, SEVERAL, dp.ARMA([1])),
        lambda: dp.zero_forcing(SLOW, dp.Privacy(1, 0.05)).under(SEVERAL),
        lambda: dp.block_sums(SLOW, dp.Privacy(1), dp.ARMA([1])).under(dp.Privacy(1, adjacency="each_input")),
    ],
)
def test_designs_for_one_stream_refuse_an_adjacency(design):
    with pytest.raises(ValueError, match="privacy must have no adjacency where there is one stream"):
        design()


def test_changes_are_a_number_or_several():
    with pytest.raises(ValueError, match="max_change must be a number above 0, or a number for each of several"):
        dp.Privacy(1, max_change=[2])
    assert dp.Privacy(1, max_change=[2, 3], adjacency="one_input").max_change == (2.0, 3.0)
    assert "one_input" in SEVERAL._repr_html_()
    assert "adjacency" not in dp.Privacy(1, 0.05)._repr_html_()
