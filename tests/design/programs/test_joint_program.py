"""The joint optimum as a cone program: reference values, closed forms, and constraints."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from helpers.covers import long_but
from helpers.designs import designed
from scipy import linalg

import dpfast as dp

CASES = json.loads((Path(__file__).parents[2] / "data" / "designs.json").read_text())["cases"]
EXAMPLE = dp.Filter([1, 0.995], [1, -0.995])
TARGET = dp.Filter([1], [1, -0.9])
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
PAPER = dp.Privacy(math.log(3), 0.05, calibration="paper")
COST = 1.75633987311476**2
LAG = 3
FINE = np.linspace(0, np.pi, 20_001)


@pytest.fixture(scope="module")
def free():
    return designed(dp.optimal_program, TARGET, PAPER, CHAIN, lag=LAG)


QUICK = {"example .995", "pole .9", "MA10", "diff 1-z^-1", "identity"}


@pytest.mark.parametrize(
    "case", long_but(CASES, [x for x in CASES if x["name"] in QUICK]), ids=lambda case: f"{case['id']}-{case['name']}"
)
def test_reference_values(case):
    lag = 5 if case["id"] % 2 else 0
    privacy = dp.Privacy(case["epsilon"], case["delta"], max_change=case["max_change"], calibration="paper")
    program = dp.optimal_program(dp.Filter(**case["target"]), privacy, dp.ARMA(**case["signal_shaping"]), lag=lag)
    assert program.mse == pytest.approx(case["optimal_mse"][str(lag)], rel=1e-5)
    assert program.grid.mean(program.x) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize(
    ("lag", "rmse"), long_but([(0, 5.6236), (1, 5.4740), (5, 5.0866), (20, 4.7016)], [(1, 5.4740), (5, 5.0866)])
)
def test_example(lag, rmse):
    program = designed(dp.optimal_program, EXAMPLE, PAPER, CHAIN, lag=lag)
    assert math.sqrt(program.mse) == pytest.approx(rmse, abs=6e-5)


def test_value_is_that_of_the_product():
    program = designed(dp.optimal_program, EXAMPLE, PAPER, CHAIN, lag=5)
    omega, K = program.grid.omega, program.product.response(program.grid.omega)
    error = np.abs(EXAMPLE.response(omega) * np.exp(-5j * omega) - K) ** 2
    value = program.grid.mean(CHAIN.psd(omega) * error) + COST * program.grid.mean(np.abs(K)) ** 2
    assert value == pytest.approx(program.mse, rel=1e-6)
    assert program.mse == program.distortion_mse + program.noise_mse


@pytest.mark.parametrize(
    ("mu", "delta"),
    long_but(
        [(mu, delta) for mu in (0.01, 1.0, 100.0) for delta in (1e-3, 1e-9)], [(0.01, 1e-3), (1.0, 1e-9), (100.0, 1e-3)]
    ),
)
def test_between_smoother_and_causal_wiener_at_any_privacy(mu, delta):
    privacy = dp.Privacy.from_gdp(mu, delta)
    program = dp.optimal_program(TARGET, privacy, CHAIN, lag=LAG)
    assert program.mse >= dp.lmmse(TARGET, privacy, CHAIN, tolerance=0.3).ideal_mse * (1 - 1e-6)
    for prefilter in (dp.Filter([1]), dp.Filter([1, 0.2], [1, -0.7])):
        wiener = dp.lmmse(TARGET, privacy, CHAIN, lag=LAG, prefilter=prefilter)
        assert program.mse <= wiener.ideal_mse * (1 + 1e-6)


# --- closed forms ---------------------------------------------------------------------------------

WHITE = dp.ARMA([0.5])
ONE = dp.Filter([1])


def constant(**arguments):
    return dp.optimal_program(ONE, PAPER, WHITE, taps=1, **arguments)


def test_a_constant():
    program = constant()
    assert program.product.b[0] == pytest.approx(0.25 / (0.25 + COST), rel=1e-4)
    assert program.mse == pytest.approx(0.25 * COST / (0.25 + COST), rel=1e-7)


@pytest.mark.parametrize(
    ("constraint", "k"),
    [
        (lambda v: [v.noise_mse <= 1e-3], math.sqrt(1e-3 / COST)),
        (lambda v: [v.h <= 0.03**2], 0.03),
        (lambda v: [v.gain <= 0.02], 0.02),
        (lambda v: [v.distortion_mse <= 0.25 * 0.8**2], 0.2),
        (lambda v: [v.real[0] == 0.1, v.imag == 0], 0.1),
    ],
    ids=["noise", "receiver", "gain", "distortion", "parts"],
)
def test_a_constrained_constant(constraint, k):
    program = constant(constraints=constraint)
    assert program.product.b[0] == pytest.approx(k, rel=1e-5)
    assert program.mse == pytest.approx(0.25 * (1 - k) ** 2 + COST * k * k, rel=1e-5)


def test_a_prefilter_without_any_gain_above_its_mean_is_white():
    """Then the optimum is the FIR Wiener filter behind white noise: normal equations."""
    n, lag = 6, 2
    program = dp.optimal_program(TARGET, PAPER, CHAIN, lag=lag, taps=n, constraints=lambda v: [v.x <= 1])
    u = 0.25 * 0.5 ** np.arange(400.0)  # autocovariance of the chain
    f = 0.9 ** np.arange(300)
    both = np.array([sum(f[j] * u[abs(k - lag - j)] for j in range(300)) for k in range(n)])
    variance = sum(f[i] * f[j] * u[abs(i - j)] for i in range(150) for j in range(150))
    taps = linalg.solve(linalg.toeplitz(u[:n]) + COST * np.eye(n), both)
    np.testing.assert_allclose(program.product.b, taps, rtol=1e-3)
    assert program.mse == pytest.approx(variance - both @ taps, rel=1e-6)


@pytest.mark.parametrize("case", long_but([CASES[2], CASES[3], CASES[6]], [CASES[3]]), ids=lambda case: case["name"])
def test_a_white_prefilter_has_the_causal_wiener_receiver(case):
    privacy = dp.Privacy(case["epsilon"], case["delta"], calibration="paper")
    target, model = dp.Filter(**case["target"]), dp.ARMA(**case["signal_shaping"])
    program = dp.optimal_program(target, privacy, model, lag=5, constraints=lambda v: [v.x <= 1])
    assert program.mse == pytest.approx(case["causal_wiener_mse_identity_prefilter"]["5"], rel=1e-5)


def test_more_taps_are_better_and_the_basis_is_best(free):
    values = [dp.optimal_program(TARGET, PAPER, CHAIN, lag=LAG, taps=n).mse for n in (1, 4, 16, 64)]
    assert values == sorted(values, reverse=True)
    assert free.mse == pytest.approx(values[-1], rel=1e-4)
    assert free.mse <= values[-1] * (1 + 1e-7)


# --- constraints ----------------------------------------------------------------------------------

BAND = (0.8, 1.2)


def in_band(omega):
    return (omega >= BAND[0]) & (omega <= BAND[1])


def power(filter):
    return np.abs(filter.response(FINE)) ** 2


# on the grid's x and h: interpolated; the last figure is what holds between the nodes, relative
CONSTRAINTS = {
    "prefilter": (lambda v: [v.x <= 2], lambda p: np.interp(FINE, p.grid.omega, p.x).max() / 2, 1e-6),
    "receiver": (lambda v: [v.h <= 0.5], lambda p: np.interp(FINE, p.grid.omega, p.h).max() / 0.5, 1e-6),
    "band": (
        lambda v: [v.gain[in_band(v.omega)] <= 0.01],
        lambda p: np.sqrt(power(p.product)[in_band(FINE)].max()) / 0.01,
        2e-3,
    ),
    "noise": (lambda v: [v.noise_mse <= 0.3], lambda p: p.noise_mse / 0.3, 1e-6),
}


@pytest.mark.parametrize(("constraint", "ratio", "accuracy"), CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_a_constraint_binds_and_holds_and_costs_something(constraint, ratio, accuracy, free):
    assert ratio(free) > 1.1
    program = dp.optimal_program(TARGET, PAPER, CHAIN, lag=LAG, constraints=constraint, breaks=BAND)
    assert 1 - accuracy <= ratio(program) <= 1 + accuracy
    assert program.mse > free.mse * (1 + 1e-5)
    K = np.abs(program.product.response(program.grid.omega)) ** 2
    assert (K <= program.x * program.h * (1 + 1e-5) + 1e-9).all()


def test_a_constraint_that_does_not_bind_costs_nothing(free):
    program = dp.optimal_program(TARGET, PAPER, CHAIN, lag=LAG, constraints=lambda v: [v.x <= 1e3, v.h <= 1e3])
    assert program.mse == pytest.approx(free.mse, rel=1e-6)


# --- what is realised -----------------------------------------------------------------------------


@pytest.mark.parametrize("target", long_but({"pole .9": TARGET, "example": EXAMPLE}, ["pole .9"]))
def test_the_realised_mechanism_is_near_the_optimum(target):
    program = designed(dp.optimal_program, target, PAPER, CHAIN, lag=LAG)
    mechanism = program.mechanism(tolerance=1e-3)
    assert mechanism.lag == LAG
    assert mechanism.ideal_mse == program.mse
    assert 1 - 1e-6 <= mechanism.predicted_mse / program.mse <= 1 + 1e-3
    assert mechanism.prefilter.order <= 6


def test_a_realised_product_is_that_of_the_program():
    program = dp.optimal_program(TARGET, PAPER, CHAIN, lag=LAG, constraints=CONSTRAINTS["band"][0], breaks=BAND)
    mechanism = program.mechanism(name="no gain in a band")
    product = mechanism.receiver.response(FINE) * mechanism.prefilter.response(FINE)
    np.testing.assert_allclose(product, program.product.response(FINE), atol=1e-10)
    assert np.abs(product[in_band(FINE)]).max() <= 0.01 * (1 + 2e-3)
    assert mechanism.name == "no gain in a band"


@pytest.mark.parametrize("tolerance", long_but([1e-3, 1e-4], [1e-3]))
def test_a_realised_prefilter_keeps_its_cap_to_the_root_of_the_tolerance(tolerance):
    program = dp.optimal_program(TARGET, PAPER, CHAIN, lag=LAG, constraints=lambda v: [v.x <= 2])
    assert power(program.prefilter(tolerance=tolerance)).max() <= 2 * (1 + 2 * math.sqrt(tolerance))


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lag": -1}, "lag must be an integer, at least 0"),
        ({"lag": None}, "lag must be a number of samples, got None"),
        ({"taps": 0}, "taps must be an integer, at least 1, got 0"),
        ({"breaks": [4.0]}, r"breaks must be angles in \[0, π\]"),
        ({"constraints": lambda v: [v.x <= 0.5]}, "the convex program is infeasible"),
        ({"constraints": lambda v: [v.gain >= 1]}, "constraints must follow cvxpy's rules"),
        ({"solver": "OSQP"}, "solver OSQP failed"),
    ],
)
def test_what_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        dp.optimal_program(TARGET, PAPER, CHAIN, **arguments)


def test_several_events_are_refused():
    with pytest.raises(dp.DesignError, match="max_events must be 1 in a convex program, got 2"):
        dp.optimal_program(TARGET, dp.Privacy(1, 1e-3, max_events=2), CHAIN)
