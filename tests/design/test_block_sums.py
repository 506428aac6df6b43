"""Block sums as designed: against noise.json and the tables of the mathematics."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from helpers.designs import designed
from helpers.noise_tables import CHAIN, LN3, TABLE, TARGETS

from dpfast import (
    ARMA,
    Filter,
    MarkovChain,
    Privacy,
    block_sums,
    optimal,
    randomized_response,
    running_sum,
)

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "noise.json").read_text())
RTOL = 1e-7  # that noise.json suggests for what block sums and randomised response err
LONG = pytest.mark.long
ROWS = pytest.mark.parametrize("row", TABLE, ids=lambda row: " ".join(str(x) for x in row[:4]))
SMOOTHERS = {  # at (1, 1e-6), (3, 1e-6) and (ln 3, .05)
    "MA12": ("0.1370 8", "0.0611 3", "0.1135 7"),
    "exp .9": ("0.1080 9", "0.0495 3", "0.0906 7"),
    "resonator": ("2.4956 4", "1.1111 2", "2.1404 3"),
    "1-2z": ("0.8045 3", "0.5390 1", "0.7687 2"),
    "paper": ("5.6721 38", "2.5828 10", "4.7050 27"),
}


def privacy_of(epsilon, delta, **options):
    return Privacy(epsilon, **({"delta": delta} if delta else {}), **options)


def model_of(case):
    model = case["model"]
    if model["type"] == "markov":
        return MarkovChain(model["transition"], levels=model["levels"])
    return ARMA(np.array(model["b"]) * model["innovation_std"], model["a"], mean=model["mean"])


def asked(case):
    return Filter(case["target"]["b"], case["target"]["a"]), privacy_of(case["epsilon"], case["delta"]), model_of(case)


def printed(number):
    """What is equal to a printed number: all that rounds to it."""
    return pytest.approx(float(number), abs=0.5001 * 10.0 ** -len(number.partition(".")[2]))


# --- noise.json -----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", REFERENCE["cases"], ids=lambda x: f"{x['name']}, {x['epsilon']}, lag {x['lag']}")
def test_errors_are_those_of_the_reference(case):
    target, privacy, model = asked(case)
    options = {"lag": case["lag"], "noise": case["noise"]}
    given = block_sums(target, privacy, model, length=case["block_length"], **options)
    assert given.noise[0].variance == pytest.approx(case["noise_variance"], rel=1e-8)
    assert given.predicted_rmse == pytest.approx(case["mean_rmse"], rel=RTOL)
    assert math.sqrt(given.worst_step_mse) == pytest.approx(case["worst_phase_rmse"], rel=RTOL)
    if case["phase_rmse"]:
        np.testing.assert_allclose(np.sqrt(given.phase_mse), case["phase_rmse"], rtol=RTOL)
    per_step = block_sums(target, privacy, model, length=1, **options)
    assert per_step.predicted_rmse == pytest.approx(case["per_step_rmse"], rel=RTOL)
    found = block_sums(target, privacy, model, **options)
    assert found.predicted_rmse <= given.predicted_rmse * (1 + 1e-9)


@pytest.mark.parametrize("case", [x for x in REFERENCE["cases"] if x["rr_rmse"]], ids=lambda x: x["name"])
def test_errors_of_randomised_response_are_those_of_the_reference(case):
    target, privacy, model = asked(case)
    mechanism = randomized_response(target, privacy, model, lag=case["lag"])
    assert mechanism.noise_std**2 == pytest.approx(case["rr_noise_variance"], rel=1e-8)
    assert mechanism.predicted_rmse == pytest.approx(case["rr_rmse"], rel=RTOL)


@pytest.mark.parametrize("case", REFERENCE["finite_horizon"], ids=lambda x: f"{x['steps']} steps, lag {x['lag']}")
def test_errors_over_a_horizon_are_those_of_the_reference(case):
    """The file counts estimates by when they are made, of outputs before step 1 too, which are zero and known."""
    n, lag = case["steps"], case["lag"]
    mechanism = block_sums(
        running_sum(n),
        Privacy(case["epsilon"]),
        model_of(case),
        lag=lag,
        length=case["block_lengths"],
        shares=case["epsilon_shares"],
        noise=case["noise"],
    )
    np.testing.assert_allclose([x.variance for x in mechanism.noise], case["noise_variances"], rtol=1e-12)
    made = np.append(np.zeros(lag), mechanism.step_mse())[:n]
    assert math.sqrt(made.mean()) == pytest.approx(case["mean_rmse"], rel=RTOL)
    assert math.sqrt(made.max()) == pytest.approx(case["largest_step_rmse"], rel=RTOL)
    found = {t: math.sqrt(made[int(t) - 1]) for t in case["rmse_at"]}
    assert found == pytest.approx(case["rmse_at"], rel=RTOL)


# --- the tables of the mathematics ----------------------------------------------------------------


@ROWS
def test_every_cell_of_the_table(row):
    epsilon, delta, target, lag, per_step, rmse, length, best, worst, response = row
    asked = TARGETS[target], Privacy(epsilon, delta), CHAIN
    found = block_sums(*asked, lag=lag)
    assert found.predicted_rmse == printed(rmse)
    there = block_sums(*asked, lag=lag, length=length)
    assert found.predicted_rmse <= there.predicted_rmse * (1 + 1e-12)
    phases = np.sqrt(there.phase_mse)
    assert (phases.min(), phases.max()) == (printed(best), printed(worst))
    assert block_sums(*asked, lag=lag, length=1).predicted_rmse == printed(per_step)
    assert randomized_response(*asked, lag=lag).predicted_rmse == printed(response)


@pytest.mark.parametrize("target", SMOOTHERS)
@pytest.mark.parametrize("which", range(3), ids=["1", "3", "ln 3"])
def test_smoothers_wait_until_waiting_gains_nothing(target, which):
    privacy = [Privacy(1, 1e-6), Privacy(3, 1e-6), Privacy(LN3, 0.05)][which]
    rmse, length = SMOOTHERS[target][which].split()
    found = designed(block_sums, TARGETS[target], privacy, CHAIN, lag="smoother")
    there = block_sums(TARGETS[target], privacy, CHAIN, lag="smoother", length=int(length))
    assert found.predicted_rmse == pytest.approx(there.predicted_rmse, rel=1e-4)
    # the page waits 40 steps, on the paper's example 150: no longer
    assert float(rmse) * (1 - 2e-4) - 5.1e-5 < found.predicted_rmse < float(rmse) + 5.1e-5
    later = block_sums(TARGETS[target], privacy, CHAIN, lag=2 * found.lag + 8, length=found.lengths[0])
    assert later.predicted_mse == pytest.approx(found.predicted_mse, rel=2e-9)


def test_a_little_epsilon_asks_for_long_blocks():
    given = TARGETS["paper"], Privacy(0.1, 1e-6), CHAIN
    for lag, rmse in ((0, "15.591"), (5, "15.508")):
        found = block_sums(*given, lag=lag)
        assert found.predicted_rmse == printed(rmse)
        assert found.predicted_mse <= block_sums(*given, lag=lag, length=148).predicted_mse


@pytest.mark.parametrize(
    ("pole", "epsilon", "one", "two"),
    [
        (0.998, 1, "9.488 34", None),
        (0.998, 3, "4.396 9", None),
        (0.9995, 1, "13.95 66", None),
        (0.9995, 3, "6.660 17", "6.635 11 12 .5"),
        (0.9999, 1, "21.31 164", "19.75 98 12 .55"),
        (0.9999, 3, "10.37 38", "9.13 22 24 .55"),
        (0.99995, 1, "25.47 230", None),
        (0.99995, 3, "12.46 53", None),
    ],
)
def test_long_memory_takes_longer_blocks_and_a_second_level(pole, epsilon, one, two):
    target, privacy = Filter([1, pole], [1, -pole]), Privacy(epsilon)
    rmse, length = one.split()
    there = block_sums(target, privacy, CHAIN, length=int(length))
    assert there.predicted_rmse == printed(rmse)
    found = block_sums(target, privacy, CHAIN)
    assert 1 - 1e-3 < found.predicted_rmse / there.predicted_rmse <= 1  # the page tries fewer lengths
    if two is not None:
        rmse, length, ratio, share = two.split()
        lengths, shares = (int(length), int(length) * int(ratio)), (float(share), 1 - float(share))
        assert block_sums(target, privacy, CHAIN, length=lengths, shares=shares).predicted_rmse == printed(rmse)


@pytest.mark.parametrize(
    ("n", "epsilon", "rmse"),
    [
        (1024, 1, 5.8635),
        pytest.param(1024, 3, 2.8065, marks=LONG),
        pytest.param(4096, 1, 8.4805, marks=LONG),
        pytest.param(4096, 3, 4.1235, marks=LONG),
    ],
)
def test_running_sums_take_a_length_as_good_as_that_of_the_page(n, epsilon, rmse):
    """The page tries fewer lengths."""
    assert 1 - 1e-3 < block_sums(running_sum(n), Privacy(epsilon), CHAIN).predicted_rmse / rmse <= 1


# --- smoothers behind several levels ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "lengths", "shares"),
    [
        ("exp .9", (3, 12), (0.6, 0.4)),
        ("resonator", (2, 4, 16), (0.5, 0.3, 0.2)),
        ("paper", (12, 96), (0.7, 0.3)),
        ("MA12", (20, 60), (0.5, 0.5)),  # blocks that are longer than the target remembers
    ],
)
def test_smoothers_wait_behind_several_levels(target, lengths, shares):
    """The lag is one behind which nothing is gained, by these lengths; a lag given by hand errs the same."""
    asked = TARGETS[target], Privacy(1, 1e-6), CHAIN
    found = block_sums(*asked, lag="smoother", length=lengths, shares=shares)
    assert found.lengths == lengths
    by_hand = [
        block_sums(*asked, lag=lag, length=lengths, shares=shares).predicted_mse
        for lag in (found.lag // 16, found.lag, 3 * found.lag + lengths[-1])
    ]
    assert by_hand[1] == found.predicted_mse
    assert by_hand[2] == pytest.approx(found.predicted_mse, rel=1e-7)
    assert by_hand[0] > found.predicted_mse * (1 + 1e-9)


@pytest.mark.parametrize("which", [0, pytest.param(1, marks=LONG), pytest.param(2, marks=LONG)])
def test_smoothers_of_gaussian_noise_are_those_of_the_page(which):
    """Section 5 has them beside those of block sums."""
    privacy = [Privacy(1, 1e-6), Privacy(3, 1e-6), Privacy(LN3, 0.05)][which]
    for target, rmse in (("MA12", ("0.1988", "0.1298", "0.1145")), ("paper", ("7.9948", "4.2715", "3.6835"))):
        found = designed(optimal, TARGETS[target], privacy, CHAIN, lag="smoother")
        assert found.ideal_rmse == printed(rmse[which])


@pytest.mark.parametrize(
    ("given", "options", "name"),
    [
        ({}, {"lag": 0, "noise": "best"}, "block sums lag 0"),
        ({"length": [6], "unit": 0.5}, {"lag": 0, "noise": "best", "length": 6, "unit": 0.5}, "block sums lag 0"),
        (
            {"length": (4, 8), "shares": (0.5, 0.5), "phase": 3, "noise": "geometric"},
            {"lag": 0, "noise": "geometric", "length": "4, 8", "shares": "0.5, 0.5", "phase": 3},
            "block sums lag 0",
        ),
        (
            {"weights": [[1, 0], [0, -1]], "releases": (1, 2), "lag": 3},
            {"lag": 3, "noise": "best", "weights": "given", "releases": "1, 2"},
            "signed block sums lag 3",
        ),
        ({"weights": [[1], [1]]}, {"lag": 0, "noise": "best", "length": 2}, "block sums lag 0"),
        (
            {"length": 4, "group": (2, 2), "slack": [1, 2]},
            {"lag": 0, "noise": "geometric", "length": 4, "group": "2, 2", "slack": "1, 2"},
            "block sums of shared noise lag 0",
        ),
        (
            {"length": 2, "receiver": "bayes", "lag": "smoother"},
            {"lag": None, "noise": "best", "length": 2, "receiver": "bayes"},
            "block sums Bayes smoother",
        ),
    ],
)
def test_options_and_name_tell_what_was_asked_for(given, options, name):
    mechanism = block_sums(Filter([0.1], [1, -0.9]), Privacy(1), CHAIN, **given)
    assert mechanism.options == tuple(options.items())
    assert mechanism.name == name
