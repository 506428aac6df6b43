"""Signed block sums against all covariances at once: no state, no recursion, nothing that the package has computed."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from helpers.dense_blocks import DenseBlocks, arma_autocovariance, chain_autocovariance, impulse_response
from scipy import stats

from dpfast import ARMA, Filter, MarkovChain, Privacy, Toeplitz, block_sums, monte_carlo

RTOL = 1e-9
STAYS, THREE = [[0.75, 0.25], [0.25, 0.75]], [[0.7, 0.2, 0.1], [0.15, 0.7, 0.15], [0.05, 0.25, 0.7]]
INPUTS = {  # a model and, apart from it, its autocovariance
    "chain": (MarkovChain(STAYS, [-0.5, 0.5]), lambda n: chain_autocovariance(STAYS, [-0.5, 0.5], n)),
    "three": (MarkovChain(THREE, [0, 1, 2]), lambda n: chain_autocovariance(THREE, [0, 1, 2], n)),
    "ARMA": (
        ARMA([0.8, 0.5], [1, -1.2, 0.52], mean=-3.0),
        lambda n: arma_autocovariance([0.8, 0.5], [1, -1.2, 0.52], n),
    ),
    "white": (ARMA([2.0], mean=0.25), lambda n: arma_autocovariance([2.0], [1], n)),
}
TARGETS = {
    "resonator": ([1], [1, -1.8 * math.cos(math.pi / 3), 0.81]),
    "Nyquist": ([1, -0.9], [1, 0.9]),
    "difference": ([1, -1], [1]),
    "two poles": ([0, 0.3, 0.1], [1, -1.5, 0.56]),
}
ONE = ((1,), (-1,), (1,), (-1,), (0,))
TWO = ((1, 0), (0, -1), (0, -1), (-1, 0), (0, 0), (0, 1))
IN_TURN = ((1, 0), (1, 0), (0, -1), (0, 1))  # the pattern of the mathematics' page is of this kind
THREE_SUMS = ((1, 0, 0), (0, 0, -1), (0, 1, 0), (-1, 0, 0), (0, 0, 1))


@dataclass(frozen=True)
class Case:
    """What a design is asked for."""

    target: str
    inputs: str
    lag: int
    signs: tuple
    releases: tuple = ()
    phase: int = 0
    epsilon: float = 1.0
    step: float = 0.0  # of the lattice that inputs are rounded to

    def design(self, target=None):
        options = {"releases": self.releases} if self.releases else {}
        options |= {"unit": self.step} if self.step else {}
        return block_sums(
            Filter(*TARGETS[self.target]) if target is None else target,
            Privacy(self.epsilon, max_change=self.step / 2 if self.step else 1.0),
            INPUTS[self.inputs][0],
            lag=self.lag,
            weights=self.signs,
            noise="geometric",
            phase=self.phase,
            **options,
        )

    def dense(self, n, target=None, inputs=None, phase=0):
        b, a = TARGETS[self.target] if target is None else target
        q, unit, (length, n_sums) = np.exp(-self.epsilon), self.step or 1.0, np.shape(self.signs)
        given, autocovariance = INPUTS[self.inputs if inputs is None else inputs]
        lates = [x % length for x in self.releases] or [0] * n_sums
        return DenseBlocks(
            impulse_response(b, a, n),
            autocovariance(n),
            (length,) * n_sums,
            [unit**2 * 2 * q / (1 - q) ** 2] * n_sums,
            phase,
            0.0 if given.levels is not None else self.step**2 / 12,  # levels lie on the lattice
            np.array(self.signs),
            lates,
        )


CASES = [
    Case("resonator", "chain", 0, ONE),
    Case("Nyquist", "three", 4, ONE, epsilon=3.0),
    Case("resonator", "ARMA", 7, TWO),
    Case("difference", "white", 0, TWO, step=0.5),
    Case("two poles", "three", 13, THREE_SUMS),
    Case("resonator", "chain", 0, IN_TURN, (4, 2), epsilon=3.0),
    Case("resonator", "white", 5, IN_TURN, (2, 4)),
    Case("two poles", "ARMA", 3, TWO, (3, 6)),
    Case("Nyquist", "three", 9, THREE_SUMS, (2, 5, 4)),
    Case("difference", "chain", 2, THREE_SUMS, (1, 1, 3), epsilon=3.0),
]
WINDOW, FIRST, HORIZON = 300, 30, 47
EVERY_CASE = pytest.mark.parametrize("case", CASES, ids=lambda x: f"{x.target}, {x.inputs}, lag {x.lag}, {x.releases}")


def check(found, expected):
    np.testing.assert_allclose(found, expected, rtol=RTOL, atol=RTOL * np.max(expected))


@EVERY_CASE
def test_no_linear_estimate_errs_less_at_any_step_of_a_block(case):
    mechanism, dense = case.design(), case.dense(WINDOW)
    expected = np.array([dense.mse(t, w) for t, w in dense.last_cycle(case.lag)])
    check(mechanism.phase_mse, expected)
    check(mechanism.ideal_mse, expected.mean())
    assert mechanism.predicted_mse == pytest.approx(expected.mean(), rel=RTOL)


@EVERY_CASE
@pytest.mark.parametrize("other", ["three", "ARMA"])
def test_the_error_on_another_model_is_that_of_the_same_weights(case, other):
    mechanism, model = case.design(), INPUTS[other][0]
    dense, actual = case.dense(WINDOW), case.dense(WINDOW, inputs=other)
    offset = model.mean - mechanism.model.mean
    expected = np.mean([actual.mse(t, w, offset) for t, w in dense.last_cycle(case.lag)])
    assert mechanism.predict(model) == pytest.approx(expected, rel=RTOL)


def settled_weights(case, n):
    """The weights that a settled receiver has for each y_t, t < n, of what is released since time 0; none of before."""
    cycle = len(case.signs)
    skipped = case.phase + -(-(WINDOW - n - case.lag - 2 * cycle) // cycle) * cycle
    window, rest = case.dense(WINDOW), case.dense(n + case.lag, phase=case.phase)
    since = np.flatnonzero(window.times >= skipped)[: len(rest.times)]
    assert (window.times[since] - skipped == rest.times).all()
    return rest, [window.best_weights(t + skipped, t + skipped + case.lag)[since] for t in range(n)]


@EVERY_CASE
@pytest.mark.parametrize("phase", [0, 1, -1])
def test_a_settled_receiver_starts_from_nothing_with_a_shorter_block(case, phase):
    """Its errors from rest, on its own model and on another one, and its estimates, are those of these weights."""
    case = replace(case, phase=phase % len(case.signs))
    mechanism, model = case.design(), INPUTS["three"][0]
    rest, weights = settled_weights(case, FIRST)
    check(mechanism.step_mse(FIRST), [rest.mse(t, w) for t, w in enumerate(weights)])
    actual, offset = case.dense(FIRST + case.lag, inputs="three", phase=case.phase), model.mean - mechanism.model.mean
    check(mechanism.step_mse(FIRST, model), [actual.mse(t, w, offset) for t, w in enumerate(weights)])

    u = mechanism.model.sample(2, FIRST + case.lag, seed=1)
    paths = mechanism.simulate(u, seed=2)
    v = paths.privatized.reshape(-1, *u.shape)
    released = [(t, level) for level, sums in enumerate(v) for t in np.flatnonzero(~np.isnan(sums[0]))]
    assert sorted(released) == list(zip(rest.times, rest.levels, strict=True))
    constant = mechanism.model.mean * np.cumsum(impulse_response(*TARGETS[case.target], FIRST))
    centred = v[rest.levels, :, rest.times]
    expected = np.array(weights) @ centred + constant[:, None]
    np.testing.assert_allclose(paths.estimate[:, case.lag :].T, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("case", [CASES[2], CASES[5], CASES[8]])
def test_errors_from_rest_become_those_of_a_cycle(case):
    mechanism, n = case.design(), 1003
    steps, made = mechanism.step_mse(n), np.arange(n) + case.lag + 1
    check(steps[500:], mechanism.phase_mse[made % len(case.signs)][500:])


OVER_A_HORIZON = [CASES[0], CASES[2], CASES[5], CASES[8]]


@pytest.mark.parametrize("case", OVER_A_HORIZON)
def test_no_linear_estimate_errs_less_at_any_step_of_a_horizon(case):
    """Of a target that grows; 47 steps are no whole number of blocks, or of slots."""
    growing = [1, 0.3], [1, 0.1, 1.0]
    mechanism = case.design(Toeplitz.of(Filter([1, 0.3], [1, 0.1, 1 - 1e-3]), HORIZON))
    growing[1][2] = 1 - 1e-3
    dense = case.dense(HORIZON, growing)
    expected = dense.step_mse(case.lag)
    check(mechanism.step_mse(), expected)
    assert mechanism.ideal_mse == pytest.approx(expected.mean(), rel=RTOL)
    u = mechanism.model.sample(1, HORIZON, seed=1)[0]
    paths = mechanism.simulate(u, seed=2)
    v = paths.privatized.reshape(-1, HORIZON)[dense.levels, dense.times]
    constant = mechanism.model.mean * dense.f.sum(axis=1)
    made = range(case.lag, HORIZON)
    expected = [dense.best_weights(t - case.lag, t) @ v + constant[t - case.lag] for t in made]
    np.testing.assert_allclose(paths.estimate[case.lag :], expected, rtol=1e-8, atol=1e-8)


# --- plain sums are those of ones -----------------------------------------------------------------


@pytest.mark.parametrize(("lag", "phase"), [(0, 0), (7, 3)])
def test_weights_of_one_are_plain_sums_to_the_bit(lag, phase):
    target, model = Filter(*TARGETS["two poles"]), INPUTS["ARMA"][0]
    plain = block_sums(target, Privacy(1), model, lag=lag, length=5, phase=phase)
    ones = block_sums(target, Privacy(1), model, lag=lag, weights=np.ones((5, 1)), phase=phase)
    u = model.sample(3, 60, seed=1)
    for a, b in zip(plain.simulate(u, seed=2), ones.simulate(u, seed=2), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(plain.phase_mse, ones.phase_mse)
    assert (ones.weights, ones.summary(), ones.ideal_mse) == (None, plain.summary(), plain.ideal_mse)


# --- simulation -----------------------------------------------------------------------------------

ALARM = 1e-6  # of a run


@pytest.mark.slow_nojit
def test_errors_that_are_simulated_are_those_that_are_predicted():
    made = [replace(case, inputs="three").design() for case in (CASES[1], CASES[2], CASES[5], CASES[8])]
    made = [replace(x, name=str(i)) for i, x in enumerate(made)]
    study = monte_carlo(made, INPUTS["three"][0], n_streams=1_000, n_samples=60 * 25, seed=1)
    for mechanism in made:
        errors = study[mechanism.name].stream_mse
        z = (errors.mean() - mechanism.predicted_mse) / (errors.std(ddof=1) / math.sqrt(len(errors)))
        assert abs(z) < stats.norm.isf(ALARM / (2 * len(made)))
