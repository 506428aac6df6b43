"""Nothing goes below a bound that holds for it: random mechanisms, random periodic strategies, and a search for one."""

import math
import warnings

import numpy as np
import pytest
from scipy import optimize

from dpfast import (
    ARMA,
    Filter,
    IndependentLevels,
    MarkovChain,
    Privacy,
    additive_bound,
    block_sums,
    bounds_of,
    gaussian_bound,
    input_perturbation,
    lmmse,
    randomized_response,
    zero_forcing,
)
from dpfast.privacy.least_noise import least_variance
from dpfast.signals.model import autocovariance
from tests.helpers.periodic_strategies import periodic_mse
from tests.laws.test_block_sums_random_cases import random_case, random_filter

ROUNDING = 1e-9
WINDOW = 100
TARGETS = {
    "MA12": Filter([1 / 12] * 12),
    "exp .9": Filter([0.1], [1, -0.9]),
    "1-2z": Filter([1, -2]),
    "resonator": Filter([1], [1, -1.6, 0.8]),
}
CHAIN = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
few_or_all = pytest.mark.parametrize(
    "numbers", [range(4), pytest.param(range(4, 300), marks=pytest.mark.long)], ids=["few", "all"]
)


def check(mechanism, mse):
    """Every bound of the mechanism is at most its error, and is told in a sentence."""
    bounds = bounds_of(mechanism)
    for bound in bounds:
        assert bound.mse <= mse * (1 + ROUNDING), (mechanism, bound)
    return bounds


@few_or_all
def test_random_block_sums_do_not(numbers):
    for number in numbers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # predictions of rounded inputs that are far off, which other tests are on
            mechanism, _ = random_case(number)
            assert check(mechanism, mechanism.predicted_mse)


@pytest.mark.parametrize(("name", "more"), [("resonator", {"weights": "best"}), ("exp .9", {"group": 3, "length": 2})])
def test_signed_sums_and_shared_noise_do_not(name, more):
    mechanism = block_sums(TARGETS[name], Privacy(1), CHAIN, **more)
    assert [x.name for x in check(mechanism, mechanism.predicted_mse)] == ["additive bound"]


def random_two_levels(rng):
    flips = np.array([rng.uniform(0.01, 0.6), rng.uniform(0.01, 0.6)])
    if rng.random() < 0.5:
        flips[1] = flips[0]
    return MarkovChain([[1 - flips[0], flips[0]], [flips[1], 1 - flips[1]]], levels=[-0.5, 0.5])


@few_or_all
def test_random_filters_do_not(numbers):
    """Wiener receivers behind Gaussian noise, other noise on the inputs, and responses; with and without a model."""
    for number in numbers:
        rng = np.random.default_rng([18, number])
        target, chain = random_filter(rng), random_two_levels(rng)
        lag = int(rng.choice([0, 1, 7]))
        epsilon, m = math.exp(rng.uniform(math.log(0.1), math.log(6))), int(rng.choice([1, 1, 3]))
        privacy = Privacy(epsilon, float(rng.choice([1e-9, 1e-4, 0.05, 0.3])), max_events=m)
        noises = [str(rng.choice(["geometric", "canonical", "laplace"])), "gaussian"]
        perturbed = [input_perturbation(target, privacy, noise=x) for x in noises]
        response = randomized_response(target, privacy, chain, lag=lag)
        taps = Filter(np.append(1.0, rng.normal(scale=0.4, size=3)))
        wiener = lmmse(target, privacy, chain, lag=lag, prefilter=taps)
        for mechanism in (*perturbed, response, wiener):
            assert check(mechanism, mechanism.predicted_mse)


def test_zero_forcing_does_not_and_loud_inputs_reach_the_bound():
    privacy = Privacy(1.0)
    loud = ARMA([1e4], levels=None)
    mechanism = block_sums(Filter([1.0]), privacy, loud, length=1)
    assert 1 - 1e-6 < mechanism.additive_bound_mse / mechanism.predicted_mse <= 1
    forcing = zero_forcing(Filter([1, 0.5]), Privacy(1, 1e-6))
    assert [x.name for x in check(forcing, forcing.predicted_mse)] == [
        "bound of its family",
        "additive bound",
        "unbiased bound",
    ]


@pytest.mark.parametrize("privacy", [Privacy(1), Privacy(0.3, 0.1), Privacy(4, 1e-6)], ids=str)
def test_responses_to_fair_coins_reach_the_linear_mean_bound(privacy):
    """Of independent inputs nothing better than G = 1 can be made, and the response is the least deviation itself."""
    coin = IndependentLevels([-0.5, 0.5], [0.5, 0.5])
    response = randomized_response(Filter([1.0]), privacy, coin)
    (bound,) = check(response, response.predicted_mse)
    assert 1 - 1e-5 < bound.mse / response.predicted_mse <= 1


# --- periodic strategies, beyond those of the package -----------------------------------------------


def ratio_to_bound(name, lag, variance):
    """A function of the rows of a strategy: its MSE over the additive bound for noise of this variance.

    Gaussian noise of the variance V_* hides less than it should, but serves the proof, in which covariances are all.
    """
    target, privacy = TARGETS[name], Privacy(1, 1e-6)
    given = autocovariance(CHAIN, WINDOW), target.impulse(WINDOW), lag
    bound = additive_bound(target, privacy, CHAIN, lag=lag).mse
    return lambda rows: periodic_mse(rows, variance, *given) / bound


@pytest.mark.parametrize("name", TARGETS)
@few_or_all
def test_random_periodic_strategies_do_not(name, numbers):
    for number in numbers:
        rng = np.random.default_rng([19, number])
        ratio = ratio_to_bound(name, int(rng.choice([0, 3])), least_variance(Privacy(1, 1e-6)))
        period, taps = rng.integers(1, 7), rng.integers(1, 13)
        rows = rng.normal(size=(period, taps)) * rng.uniform(0.3, 1.0) ** np.arange(taps)
        silent = rng.random(period) < 0.5  # as block sums are at most steps
        rows[1:][silent[1:]] = 0.0
        assert ratio(rows + 1e-12) > 1 - ROUNDING


@pytest.mark.parametrize(
    ("name", "period", "taps", "starts", "steps"),
    [
        ("1-2z", 2, 3, 1, 25),
        *[pytest.param(name, p, 8, 2, 100, marks=pytest.mark.long) for name in TARGETS for p in (1, 2, 3, 4)],
    ],
)
def test_a_search_for_a_strategy_does_not(name, period, taps, starts, steps):
    """It comes near from above, to within some per cent of the bound."""
    ratio, best = ratio_to_bound(name, 0, least_variance(Privacy(1, 1e-6))), math.inf
    for start in range(starts):
        first = np.random.default_rng([20, start]).normal(size=period * taps)
        found = optimize.minimize(
            lambda x: ratio(x.reshape(period, taps)), first, method="L-BFGS-B", options={"maxiter": steps}
        )
        best = min(best, found.fun)
    assert 1 - ROUNDING < best < 1.1


def test_a_search_over_blocks_does_not():
    """Lengths, phases and shares of two levels, on a problem on which blocks come near to the bound."""
    target, privacy = TARGETS["1-2z"], Privacy(1.0)
    for length in range(1, 5):
        for more in ({}, {"shares": (0.9, 0.1), "length": (length, 3 * length)}):
            mechanism = block_sums(target, privacy, CHAIN, **({"length": length} | more))
            check(mechanism, mechanism.predicted_mse)


# --- every receiver behind Gaussian noise -------------------------------------------------------------


def posterior_mse(taps, kappa, flip, output, seed, n_bits=9, runs=4000):
    """The MSE of the posterior mean of Σ output_k s_k/2 for a few bits of a chain, and its standard error.

    All paths are enumerated; v_t = Σ taps_k s_{t-k}/2 + noise for every t at which a bit is seen, so that nothing after
    the last bit is unknown but the bits.
    """
    rng = np.random.default_rng(seed)
    paths = 1 - 2 * ((np.arange(2**n_bits)[:, None] >> np.arange(n_bits)) & 1).astype(float)
    changes = (np.diff(paths, axis=1) != 0).sum(axis=1)
    chance = 0.5 * flip**changes * (1 - flip) ** (n_bits - 1 - changes)
    sees = np.array([np.convolve(x, taps) for x in paths]) / 2
    wanted = paths @ output / 2
    drawn = rng.choice(len(paths), p=chance, size=runs)
    v = sees[drawn] + kappa * np.linalg.norm(taps) * rng.normal(size=(runs, sees.shape[1]))
    fits = v @ sees.T - (sees**2).sum(axis=1) / 2
    weights = np.log(chance) + fits / (kappa * np.linalg.norm(taps)) ** 2
    weights = np.exp(weights - weights.max(axis=1, keepdims=True))
    errors = ((weights @ wanted) / weights.sum(axis=1) - wanted[drawn]) ** 2
    return errors.mean(), errors.std() / math.sqrt(runs)


@pytest.mark.parametrize(("taps", "kappa", "flip"), [([1], 0.7, 0.5), ([1, 0.8], 1.0, 0.3), ([1, -0.5], 0.5, 0.4)])
def test_the_posterior_mean_of_a_few_bits_does_not(taps, kappa, flip):
    """The output is of four bits in the middle: of the others, chance that a path is cut off is 2(1 - 2 flip)³ at most.

    It goes below the bound by chance with a probability below 1e-6, five standard errors; a smoother's bound is taken.
    """
    impulse = np.array([1.0, -0.6, 0.4, 0.2])
    output = np.zeros(9)
    output[6:2:-1] = impulse
    mse, error = posterior_mse(np.array(taps, dtype=float), kappa, flip, output, seed=18)
    chain = MarkovChain([[1 - flip, flip], [flip, 1 - flip]], levels=[-0.5, 0.5])
    privacy = Privacy.from_gdp(1 / kappa, 1e-6)
    bound = gaussian_bound(Filter(impulse), privacy, chain, lag=None).mse
    assert bound < mse + 5 * error
    assert bound > 0.5 * mse  # it tells something


def test_independent_bits_are_a_chain_too():
    target, privacy = Filter([1, 0.5]), Privacy(1, 1e-3)
    coin = IndependentLevels([-0.5, 0.5], [0.5, 0.5])
    chain = MarkovChain([[0.5, 0.5], [0.5, 0.5]], levels=[-0.5, 0.5])
    assert gaussian_bound(target, privacy, coin).mse == gaussian_bound(target, privacy, chain).mse > 0
