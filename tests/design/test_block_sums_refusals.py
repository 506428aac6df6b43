"""What block sums and randomised response refuse: the argument, what it must be, what it was and what to do."""

import math
import warnings

import numpy as np
import pytest

from dpfast import (
    ARMA,
    DesignError,
    Filter,
    IndependentLevels,
    MarkovChain,
    Privacy,
    Toeplitz,
    ToleranceWarning,
    block_sums,
    buffered_toeplitz,
    decision_feedback,
    input_perturbation,
    lmmse,
    optimal,
    optimal_factorization,
    output_perturbation,
    randomized_response,
    running_sum,
    square_root,
    zero_forcing,
)

TARGET, PURE = Filter([1], [1, -0.9]), Privacy(1)
CHAIN = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
COUNTS = ARMA([1.2], [1, -0.9], mean=5)


def blocks(privacy=PURE, model=CHAIN, target=TARGET, **options):
    return block_sums(target, privacy, model, **options)


def respond(privacy=PURE, model=CHAIN, target=TARGET, **options):
    return randomized_response(target, privacy, model, **options)


# --- a delta of zero ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "design",
    [
        lambda: optimal(TARGET, PURE, CHAIN),
        lambda: zero_forcing(TARGET, PURE),
        lambda: lmmse(TARGET, PURE, CHAIN),
        lambda: decision_feedback(TARGET, PURE, CHAIN),
        lambda: input_perturbation(TARGET, PURE),
        lambda: output_perturbation(TARGET, PURE),
        lambda: square_root(running_sum(8), PURE),
        lambda: buffered_toeplitz(running_sum(8), PURE),
        lambda: optimal_factorization(running_sum(8), PURE),
        lambda: input_perturbation(running_sum(8), PURE),
    ],
)
def test_gaussian_noise_needs_a_delta_and_the_message_names_what_serves(design):
    message = (
        r"^delta must be above 0 for Gaussian noise, which gives no pure ε: give a delta, or take block_sums, "
        r"randomized_response \(of two levels\) or input_perturbation with noise='geometric' or 'laplace'; over a "
        r"horizon other designs take noise='laplace' too$"
    )
    with pytest.raises(ValueError, match=message):
        design()


@pytest.mark.parametrize(
    "design",
    [
        blocks,
        respond,
        lambda: blocks(target=running_sum(8)),
        lambda: input_perturbation(TARGET, PURE, noise="geometric"),
        lambda: input_perturbation(running_sum(8), PURE, noise="geometric"),
        lambda: input_perturbation(running_sum(8), PURE, noise="laplace"),
    ],
)
def test_what_the_message_names_serves(design):
    assert design().privacy.delta == 0
    assert design().guarantee_terms().delta == 0


# --- targets and models ---------------------------------------------------------------------------


@pytest.mark.parametrize("pole", [1.0, -1.0, 1.2])
@pytest.mark.parametrize("design", [blocks, respond])
def test_a_target_without_a_steady_state_asks_for_a_horizon(design, pole):
    with pytest.raises(DesignError, match=r"pole at -?1.*or say for how many steps n it runs: running_sum\(n\)"):
        design(target=Filter([1], [1, -pole]))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: blocks(target=[1, 2]), "target must be a Filter, .* got a list of length 2"),
        (lambda: respond(target=running_sum(8)), "target must be a Filter here, got a Toeplitz of 8 steps"),
        (lambda: blocks(privacy=1), "privacy must be a Privacy, got 1"),
        (lambda: blocks(model=3), "model must be a MarkovChain, IndependentLevels or ARMA, got 3"),
        (lambda: respond(model=3), "model must be a MarkovChain, IndependentLevels or ARMA, got 3"),
        (lambda: blocks().predict(3), "model must be a MarkovChain, IndependentLevels or ARMA, got 3"),
    ],
)
def test_what_is_something_else_is_named(run, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        run()


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            lambda: blocks(target=Toeplitz([1, 0.5, 0.2])),
            r"target must have a recursion for block sums, got a Toeplitz of .* take running_sum\(n\)",
        ),
        (
            lambda: respond(model=COUNTS),
            "model must have two levels for randomised response, got none: take block_sums",
        ),
        (
            lambda: respond(model=IndependentLevels([0, 1, 2], [0.3, 0.3, 0.4])),
            "model must have two levels for randomised response, got 3: take block_sums",
        ),
    ],
)
def test_no_design_for_these(run, message):
    with pytest.raises(DesignError, match=f"^{message}$"):
        run()


# --- lattices -------------------------------------------------------------------------------------


@pytest.mark.parametrize("change", [0.3, 1.5])
def test_a_change_of_counts_or_levels_is_whole_steps(change):
    levels = (
        f"max_change must be a multiple of 1, the step of the levels, which lie 1 apart, got {change}: round it up$"
    )
    counts = (
        f"max_change must be a multiple of 1, the step of counts, which are integers, got {change}: round it up; real "
        "inputs take a unit, to whose multiples they are rounded$"
    )
    for model, message in ((CHAIN, levels), (COUNTS, counts)):
        with pytest.raises(ValueError, match=message):
            blocks(Privacy(1, max_change=change), model)
    assert blocks(Privacy(1, max_change=change), COUNTS, unit=0.25).lattice.rounds


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            lambda: blocks(model=IndependentLevels([0, 1, math.sqrt(2)], [0.3, 0.3, 0.4])),
            r"model must have levels that are whole multiples of one distance apart, got \[0.0, 1.0, 1.41421356\d*\].*",
        ),
        (
            lambda: blocks(unit=0.3),
            r"unit must divide all differences of the model's levels, got 0.3 for levels \[-0.5, 0.5\]: leave it out",
        ),
        (lambda: blocks(model=COUNTS, unit=0), "unit must be a number strictly between 1e-50 and 1e\\+50, got 0"),
        (
            lambda: respond(Privacy(1, max_change=0.9)),
            "max_change must be at least 1, the distance of the levels, for randomised response, got 0.9: .*",
        ),
    ],
)
def test_what_is_off_the_lattice_is_refused(run, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        run()


# --- noise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            lambda: blocks(noise="laplace"),
            "noise must be one of 'best', 'geometric', 'canonical', 'staircase', got 'laplace'",
        ),
        (lambda: blocks(noise="canonical"), "noise must not be 'canonical' here: it needs a delta above 0; take .*"),
        (
            lambda: blocks(Privacy(1, 0.1, max_change=2), noise="canonical"),
            "noise must not be 'canonical' here: it hides a change of one unit, and max_change is 2 of them; .*",
        ),
        (
            lambda: blocks(Privacy(1, max_change=2_000_000), COUNTS, noise="staircase"),
            "noise must not be 'staircase' here: it is for at most 1,000,000 units, and max_change is 2,000,000 .*",
        ),
        (
            lambda: blocks(Privacy(1e-4, max_events=10**9)),
            "epsilon must be at least 1e-12 for each unit .*, got 0.0001 over 1,000,000,000: take a .*",
        ),
    ],
)
def test_noise_that_does_not_serve_is_refused_with_the_reason(run, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        run()


@pytest.mark.parametrize("noise", ["best", "geometric", "canonical", "staircase"])
def test_any_number_of_events_is_hidden_and_simulated(noise):
    mechanism = blocks(Privacy(1, 1e-6, max_events=10**9), noise=noise, length=4)
    assert mechanism.noise_std == pytest.approx(math.sqrt(2) * 1e9, rel=1e-4)
    released = mechanism.simulate(np.zeros((100, 800)), seed=1).privatized
    assert released[:, 3::4].std() == pytest.approx(mechanism.noise_std, rel=0.1)


@pytest.mark.parametrize("target", [TARGET, running_sum(8)], ids=["filter", "horizon"])
@pytest.mark.parametrize("epsilon", [50.0, 800.0, 1e8])
def test_an_error_that_rounding_hides_is_not_predicted(target, epsilon):
    """The error is a difference of moments of the output; the variance of the noise is 0 from ε of about 750 on."""
    mechanism = blocks(Privacy(epsilon), target=target)
    assert mechanism.lengths == (1,)
    figures = (mechanism.predicted_mse, mechanism.worst_step_mse, mechanism.phase_mse, mechanism.explained)
    assert figures == (None, None, None, None)
    assert mechanism.predict(mechanism.model) is None
    assert "below what rounding lets one tell" in mechanism.summary()
    np.testing.assert_allclose(mechanism.step_mse(8), 0, atol=1e-14)


@pytest.mark.parametrize("epsilon", [20, 25, 30])
def test_small_errors_that_are_predicted_are_those_of_the_noise_that_passes_the_target(epsilon):
    target, q = Filter([0.1], [1, -0.9]), math.exp(-epsilon)
    mechanism = blocks(Privacy(epsilon), target=target)
    assert mechanism.lengths == (1,)
    noise = 2 * q / (1 - q) ** 2 * target.h2_norm() ** 2
    assert mechanism.predicted_mse == pytest.approx(noise, rel=5e-3)


# --- the other arguments --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lag": -1}, "lag must be an integer, at least 0 and at most 10000, got -1; or 'smoother'"),
        ({"lag": 10_001}, "lag must be an integer, at least 0 and at most 10000, got 10001; or 'smoother'"),
        ({"lag": "late"}, "lag must be .* got 'late'; or 'smoother'"),
        ({"length": 0}, "length must be an integer, at least 1 and at most 16384, got 0"),
        ({"length": 2**14 + 1}, "length must be an integer, at least 1 and at most 16384, got 16385"),
        ({"length": 2.5}, "length must be an integer, .* got 2.5"),
        ({"length": "long"}, "length must be an integer, .* got 'long'"),
        ({"length": [4, [8]]}, r"length must be an integer, .* got a list of length 1"),
        ({"length": [4, 8], "shares": [0.5, [0.5]]}, "shares must be a finite number above 0, got a list of length 1"),
        ({"unit": 1e300}, r"unit must be a number strictly between 1e-50 and 1e\+50, got 1e\+300"),
        ({"unit": 1e-300}, r"unit must be a number strictly between 1e-50 and 1e\+50, got 1e-300"),
        (
            {"length": ()},
            "length must be an integer, or one for each level of blocks, from the shortest up, got a tuple of",
        ),
        ({"length": (4, 6)}, "length must be of nested blocks, each a multiple of the one before, got 6 after 4"),
        ({"length": (4, 4)}, "length must be of nested blocks, each a multiple of the one before, got 4 after 4"),
        ({"length": (4, 2)}, "length must be of nested blocks, each a multiple of the one before, got 2 after 4"),
        ({"length": 9, "target": running_sum(8)}, "length must be an integer, at least 1 and at most 8, got 9"),
        ({"shares": (1,)}, "shares must not be given without the lengths that they are for: give length="),
        ({"length": (2, 4), "shares": (1,)}, r"shares must be as many as lengths, 2, and sum to 1, got \[1.0\]"),
        ({"length": (2, 4), "shares": (0.5, 0.6)}, r"shares must be as many .*, and sum to 1, got \[0.5, 0.6\]"),
        ({"length": (2, 4), "shares": (0.5, 0.4)}, r"shares must be as many .*, and sum to 1, got \[0.5, 0.4\]"),
        ({"length": (2, 4), "shares": (0, 1)}, "shares must be a finite number above 0, got 0"),
        ({"length": (2, 4), "shares": 0.5}, "shares must be a number for each level, as many as lengths, got 0.5"),
        ({"length": 4, "phase": 4}, "phase must be an integer, at least 0 and at most 3, got 4"),
        ({"length": 4, "phase": -1}, "phase must be an integer, at least 0 and at most 3, got -1"),
        (
            {"length": 4, "phase": 1, "target": running_sum(8)},
            "phase must be 0 over a horizon, whose first step counts, got 1",
        ),
        ({"weights": "carrier"}, "weights must be an array of signs .steps of a block, sums. or 'best', got"),
        ({"weights": [1, -1]}, "weights must have 2 dimensions, got shape"),
        ({"weights": [[1, 0], [0]]}, "weights must be"),
        (
            {"weights": [[0.5], [1]]},
            "weights must be numbers 0, 1 or -1, a row for each input of a block, a column a sum",
        ),
        ({"weights": np.zeros((0, 1))}, "weights must have a number that is not 0 in each"),
        (
            {"weights": [[1, 0], [-1, 1]]},
            r"weights must have at most one number other than 0 in a row, got \[-1, 1\] in row 1: an event there",
        ),
        ({"weights": [[1, 0], [-1, 0]]}, "weights must have a number that is not 0 in each column: a sum of nothing"),
        ({"weights": np.eye(17)}, r"weights must be of at most 16 sums .* of at most 4,096 inputs, got .*\(17, 17\)"),
        ({"weights": np.ones((4097, 1))}, "weights must be of at most 16 sums of blocks of at most 4,096 inputs"),
        ({"weights": [[1], [-1]], "length": 3}, "weights must have a row for each of the 3 inputs of a block, got 2"),
        ({"weights": "best", "length": (2, 4)}, "weights must not be given with several lengths: signed sums have"),
        ({"weights": [[1], [-1]], "shares": (1,)}, "shares must not be given without the lengths"),
        ({"weights": -np.ones((9, 1)), "target": running_sum(8)}, "weights must have at most 8 rows, the steps of"),
        ({"weights": [[1], [-1]], "phase": 2}, "phase must be an integer, at least 0 and at most 1, got 2"),
        ({"weights": [[1], [-1]], "receiver": "bayes"}, 'weights must not be given with receiver="bayes"'),
        ({"releases": (1,)}, "releases must not be given without the weights of the sums that are released: give"),
        ({"releases": (1,), "weights": "best"}, "releases must not be given without the weights of the sums"),
        ({"releases": 1, "weights": [[1], [-1]]}, "releases must be as many integers as there are sums, 1, got 1"),
        ({"releases": (1, 2), "weights": [[1], [-1]]}, "releases must be as many integers as there are sums, 1, got"),
        ({"releases": (0,), "weights": [[1], [-1]]}, "releases must be an integer, at least 1 and at most 2, got 0"),
        ({"releases": (3,), "weights": [[1], [-1]]}, "releases must be an integer, at least 1 and at most 2, got 3"),
    ],
)
def test_an_argument_out_of_range_is_named(given, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        blocks(**given)


def test_arrays_are_sequences():
    given = blocks(length=np.array([2, 4]), shares=np.array([0.25, 0.75]))
    assert (given.lengths, given.shares) == ((2, 4), (0.25, 0.75))


def test_an_array_without_dimensions_is_the_integer():
    given = blocks(length=np.array(3), group=np.array(2), slack=np.array(1), lag=np.array(4))
    assert (given.lengths, given.group, given.slack, given.lag) == ((3,), 2, 1, 4)
    assert {type(x) for _, x in given.options} <= {int, str}  # as files take them


@pytest.mark.parametrize("other", [np.array(1.5), np.array("x"), b"xx", np.array(True)])
@pytest.mark.parametrize("name", ["length", "shares", "group", "slack", "releases"])
def test_what_is_no_number_is_refused_by_name(name, other):
    beside = {"shares": {"length": 4}, "slack": {"group": 2}, "releases": {"weights": [[1], [-1]]}}.get(name, {})
    with pytest.raises(ValueError, match=f"^{name} must be"):
        blocks(**{name: other, **beside})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"group": "bset"},
            "group must be an integer, or as many as .* of groups, or 'best', got 'bset'",
        ),
        ({"group": (20, 20)}, r"group must be of at most 256 blocks in all, got 400 by \(20, 20\): take fewer"),
        (
            {"group": 2, "slack": 10**6},
            "slack must be smaller, got 1000000 for groups of 2 at an epsilon of 1 .* take 2, or leave it out",
        ),
        ({"group": 2, "noise": np.array([1, 2])}, "noise must be one of .*, got a ndarray of shape"),
        ({"group": 2, "weights": np.eye(2)}, r"weights must be None where .*, got a ndarray of shape \(2, 2\)"),
        ({"name": np.array([1, 2])}, "name must be text, got a ndarray of shape"),
        ({"name": 0}, "name must be text, got 0"),
        ({"target": [1, 2]}, "target must be a Filter, .*, or a Toeplitz, got a list of length 2"),
    ],
)
def test_a_word_or_an_array_that_does_not_serve_is_named(given, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        blocks(**given)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: blocks().step_mse(), "n must be an integer, at least 1 and .*, got None"),
        (lambda: blocks(target=running_sum(8)).step_mse(9), "n must be an integer, at least 1 and at most 8, got 9"),
        (
            lambda: blocks(target=running_sum(8)).simulate(np.zeros(7), seed=1),
            "u must have the horizon's 8 steps along its last axis, got 7: give as many, or design for another horizon",
        ),
    ],
)
def test_a_mechanism_says_how_many_steps_it_has(run, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        run()


def test_a_scan_that_memory_ends_says_so(monkeypatch):
    coin, average = IndependentLevels([0, 1], [0.5, 0.5]), Filter(np.ones(12) / 12)
    best = block_sums(average, Privacy(1), coin).lengths[0]
    for longest in (best - 1, best + 1):
        monkeypatch.setattr("dpfast.design.block_problem._MOST_NUMBERS", int((longest + 0.5) * 13**2))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert block_sums(average, Privacy(1), coin).lengths == (min(longest, best),)
        told = [str(x.message) for x in caught if x.category is ToleranceWarning]
        assert len(told) == (longest < best)
        assert all(f"tried up to {longest} steps only, as target and model have 13 states" in x for x in told)
