"""Designs of one of several streams are those of one stream, whichever way its model is given."""

import numpy as np
import pytest
from helpers.covers import long_but, pairwise

import dpfast as dp

DEMAND = dp.Privacy(1, 1e-3)
TARGETS = {"exponential": dp.Filter([0.05], [1, -0.95]), "moving average": dp.Filter(np.full(6, 1 / 6))}
SYSTEMS = {
    "autoregression": ([1], [1, -0.5]),
    "both": ([1, 0.3], [1, -0.5]),
    "slow pole": ([1], [1, -0.99]),
    "slow pole, zero beside -1": ([2, 1.96], [1, -0.99]),
    "zero beside 1": ([1, -0.999], [1, -0.8]),
    "zero at 1": ([1, -1], [1, -0.8]),
    "zeros at modulus .99": ([1, 0.3, 0.99**2], [1, -0.4]),
    "band": ([0.4], [1, -1.2, 0.72]),
    "resonator": ([1, 0.2], [1, -2 * 0.99 * np.cos(1), 0.99**2]),
    "double slow pole": ([1], [1, -1.98, 0.99**2]),
    "slow poles side by side": ([1], np.poly([0.99, 0.98, 0.5])),
    "zero outside": ([1, 2], [1, -0.7]),
    "delay": ([0, 1, 0.3], [1, -0.5]),
    "taps": ([1, 0.5, 0.25], [1]),
}
CASES = pairwise(list(SYSTEMS), list(TARGETS), (0, 3, 10))


def vector_model(b, a):
    """The same as matrices of one channel, or as a state space where they cannot say it."""
    if b[0] == 0:
        return dp.VectorARMA.from_state_space(*dp.Filter(b, a).state_space())
    lags = [np.reshape(x, (-1, 1, 1)) for x in (-np.array(a[1:]), np.array(b[1:]) / b[0])]
    return dp.VectorARMA(*lags, innovation_covariance=[[b[0] ** 2]])


def several(target):
    return dp.FilterMatrix([[target]])


@pytest.mark.parametrize(
    ("system", "target", "lag"), long_but(CASES, [x for x in CASES if (x[2] == 3) == (x[1] == "exponential")])
)
def test_lmmse_of_a_vector_model_is_that_of_the_scalar_one(system, target, lag):
    b, a = SYSTEMS[system]
    scalar = dp.lmmse(TARGETS[target], DEMAND, dp.ARMA(b, a), lag=lag, tolerance=1e-2)
    made = dp.lmmse(several(TARGETS[target]), DEMAND, vector_model(b, a), lag=lag, tolerance=1e-2)
    # of these poles fits end here or there on a flat ground, at slopes below 1e-7: of one of them all is the same
    alike = 1e-10 if system != "slow poles side by side" else 1e-7
    assert made.predicted_mse == pytest.approx(scalar.predicted_mse, rel=alike)
    assert scalar.predict(vector_model(b, a).channel(0)) == pytest.approx(scalar.predicted_mse, rel=1e-10)
    assert made.prefilter[0, 0].order == scalar.prefilter.order


QUICK = ["both", "slow pole, zero beside -1", "zero at 1", "double slow pole", "slow poles side by side", "delay"]
EVERY = [(system, target) for system in SYSTEMS for target in TARGETS]


@pytest.mark.parametrize(("system", "target"), long_but(EVERY, [(x, "moving average") for x in QUICK]))
def test_smoothers_optima_and_block_sums_too(system, target):
    (b, a), target = SYSTEMS[system], TARGETS[target]
    scalar, vector = dp.ARMA(b, a), vector_model(b, a)
    smoother = dp.lmmse(target, DEMAND, scalar, tolerance=1e-2)
    made = dp.lmmse(several(target), DEMAND, vector, tolerance=1e-2)
    assert made.lower_bound_mse == pytest.approx(smoother.lower_bound_mse, rel=1e-10)
    assert made.smoothed_mse.sum() == pytest.approx(smoother.predicted_mse, rel=1e-10)
    for design, given in ((dp.optimal, {"lag": 3, "tolerance": 1e-2}), (dp.block_sums, {"lag": 3})):
        one, made = design(target, DEMAND, scalar, **given), design(several(target), DEMAND, vector, **given)
        assert made.predicted_mse == pytest.approx(one.predicted_mse, rel=1e-10)
        if design is dp.optimal:
            assert made.ideal_mse == pytest.approx(one.ideal_mse, rel=1e-10)
            assert made.lower_bound_mse == pytest.approx(one.lower_bound_mse, rel=1e-10)


@pytest.mark.parametrize("design", [dp.zero_forcing, dp.input_perturbation, dp.output_perturbation])
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_designs_without_a_model_too(design, target):
    one, made = (design(x, DEMAND) for x in (target, several(target)))
    assert made.predicted_mse == pytest.approx(one.predicted_mse, rel=1e-10)
