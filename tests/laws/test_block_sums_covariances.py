"""Block sums against all covariances at once: no state, no recursion, nothing that the package has computed."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest
from helpers.dense_blocks import DenseBlocks, arma_autocovariance, chain_autocovariance, impulse_response

from dpfast import ARMA, Filter, MarkovChain, Privacy, Toeplitz, block_sums, running_sum

RTOL = 1e-9


class Inputs(NamedTuple):
    """A model and, apart from it, its autocovariance."""

    model: object
    autocovariance: object

    @classmethod
    def chain(cls, transition, levels):
        return cls(MarkovChain(transition, levels), lambda n: chain_autocovariance(transition, levels, n))

    @classmethod
    def arma(cls, b, a, mean):
        return cls(ARMA(b, a, mean=mean), lambda n: arma_autocovariance(b, a, n))


def shuffled(k):
    """A chain of k levels without symmetry."""
    rng = np.random.default_rng(k)
    p = 0.3 * np.eye(k) + 0.7 * rng.dirichlet(np.ones(k), k)
    return p / p.sum(axis=1, keepdims=True)


INPUTS = {
    "paper": Inputs.chain([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5]),
    "three": Inputs.chain([[0.7, 0.2, 0.1], [0.15, 0.7, 0.15], [0.05, 0.25, 0.7]], [0, 1, 2]),
    "eight": Inputs.chain(shuffled(8), [3, 0, 1, 7, 4, 4, 2, 9]),
    "half units": Inputs.chain(shuffled(4), [-1.5, 0.0, 0.5, 3.0]),
    "AR": Inputs.arma([1.2], [1, -0.9], 5.0),
    "ARMA": Inputs.arma([0.8, 0.5], [1, -1.2, 0.52], -3.0),
    "white": Inputs.arma([2.0], [1], 0.25),
}
TARGETS = {
    "paper": ([1, 0.95], [1, -0.95]),
    "MA5": ([0.2] * 5, [1]),
    "resonator": ([1], [1, -1.9 * math.cos(math.pi / 6), 0.9025]),
    "two poles": ([0, 0.3, 0.1], [1, -1.5, 0.56]),
    "1-2z": ([1, -2], [1]),
}


@dataclass(frozen=True)
class Case:
    """What a design is asked for."""

    target: str
    inputs: str
    lag: int
    lengths: tuple
    shares: tuple = (1.0,)
    epsilon: float = 1.0
    steps: int = 1  # of the lattice, by which an event changes an input
    n_events: int = 1
    step: float = 1.0  # of the lattice
    rounds: bool = False
    phase: int = 0

    def design(self, target=None):
        privacy = Privacy(self.epsilon, max_change=self.max_change, max_events=self.n_events)
        options = {"shares": self.shares} if len(self.lengths) > 1 else {}
        options |= {"unit": self.step} if self.rounds else {}
        options |= {"phase": self.phase} if self.phase else {}
        return block_sums(
            Filter(*TARGETS[self.target]) if target is None else target,
            privacy,
            INPUTS[self.inputs].model,
            lag=self.lag,
            length=self.lengths,
            noise="geometric",
            **options,
        )

    @property
    def max_change(self):
        return self.step * (self.steps - 0.5 if self.rounds else self.steps)  # rounding costs one step more

    def dense(self, n, target=None, inputs=None, phase=0):
        b, a = TARGETS[self.target] if target is None else target
        rate = np.array(self.shares) * self.epsilon / (self.steps * self.n_events)
        variances = self.step**2 * 2 * np.exp(-rate) / (1 - np.exp(-rate)) ** 2
        given = INPUTS[self.inputs if inputs is None else inputs]
        levels = given.model.levels
        on_lattice = levels is not None and not np.any(levels % self.step)  # where rounding does nothing
        rounding = self.step**2 / 12 if self.rounds and not on_lattice else 0.0
        r = given.autocovariance(n)
        return DenseBlocks(impulse_response(b, a, n), r, self.lengths, variances, phase, rounding)


SETTLED = [
    Case("paper", "paper", 0, (6,)),
    Case("paper", "three", 5, (9,), steps=2),
    Case("MA5", "eight", 3, (4,), epsilon=3.0, steps=3),
    Case("resonator", "half units", 0, (3,), step=0.5, steps=4),
    Case("two poles", "AR", 0, (1,)),
    Case("two poles", "ARMA", 30, (7,), n_events=3),
    Case("1-2z", "white", 2, (5,), epsilon=0.3),
    Case("resonator", "paper", 40, (4,), epsilon=0.5),
    Case("paper", "paper", 0, (4, 12), (0.4, 0.6)),
    Case("two poles", "AR", 7, (2, 10), (0.7, 0.3)),
    Case("MA5", "three", 13, (3, 6, 24), (0.5, 0.2, 0.3), epsilon=3.0),
    Case("paper", "ARMA", 4, (5,), step=0.5, steps=3, rounds=True),
    Case("two poles", "white", 0, (2, 8), (0.5, 0.5), step=2.0, steps=2, rounds=True, epsilon=3.0),
]
WINDOW = 500  # 25 time constants of the slowest target
HORIZON, FIRST = 60, 40


def name_of(case):
    return f"{case.target}, {case.inputs}, lag {case.lag}, {case.lengths}{', rounded' * case.rounds}"


def settled_mse(assumed, lag, actual=None, offset=0.0):
    """The MSE of what is published at each step of a cycle, first at a release of all levels."""
    actual = assumed if actual is None else actual
    return np.array([actual.mse(t, weights, offset) for t, weights in assumed.last_cycle(lag)])


def check(found, expected):
    """Errors that are small beside others are known as exactly as those."""
    np.testing.assert_allclose(found, expected, rtol=RTOL, atol=RTOL * np.max(expected))


# --- in steady state ------------------------------------------------------------------------------


@pytest.mark.parametrize("case", SETTLED, ids=name_of)
def test_no_linear_estimate_errs_less_at_any_phase(case):
    mechanism = case.design()
    expected = settled_mse(case.dense(WINDOW), case.lag)
    check(mechanism.phase_mse, expected)
    assert mechanism.predicted_mse == pytest.approx(expected.mean(), rel=RTOL)
    assert mechanism.worst_step_mse == pytest.approx(expected.max(), rel=RTOL)


@pytest.mark.parametrize(
    ("case", "other"),
    [
        (Case("paper", "paper", 0, (6,)), "three"),
        (Case("MA5", "three", 9, (4,)), "eight"),
        (Case("two poles", "AR", 3, (2, 10), (0.7, 0.3)), "ARMA"),
        (Case("resonator", "white", 5, (3,)), "AR"),
        (Case("paper", "ARMA", 4, (5,), step=0.5, steps=3, rounds=True), "white"),
    ],
    ids=lambda x: x if isinstance(x, str) else name_of(x),
)
def test_the_error_on_another_model_is_that_of_the_same_weights(case, other):
    mechanism, model = case.design(), INPUTS[other].model
    assumed, actual = case.dense(WINDOW), case.dense(WINDOW, inputs=other)
    offset = model.mean - mechanism.model.mean
    assert abs(offset) > 0.5
    expected = settled_mse(assumed, case.lag, actual, offset).mean()
    assert mechanism.predict(model) == pytest.approx(expected, rel=RTOL)
    assert expected > 1.001 * settled_mse(actual, case.lag).mean()  # the best weights are others there


@pytest.mark.parametrize("case", [Case("paper", "three", 5, (9,)), Case("two poles", "AR", 7, (2, 6), (0.7, 0.3))])
@pytest.mark.parametrize("which", [1, -1])
def test_a_phase_shifts_releases_and_changes_no_error(case, which):
    phase = which % case.lengths[0]
    shifted, plain = replace(case, phase=phase).design(), case.design()
    np.testing.assert_array_equal(shifted.phase_mse, plain.phase_mse)
    v = shifted.simulate(np.zeros(40), seed=1).privatized.reshape(len(case.lengths), 40)
    for released, length in zip(v, case.lengths, strict=True):
        assert np.flatnonzero(~np.isnan(released)).tolist() == list(range(length - phase - 1, 40, length))


# --- from rest ------------------------------------------------------------------------------------


def settled_weights(case, n, lag):
    """The weights that a settled receiver has for each y_t, t < n, of what is released since time 0; none of before.

    They are those of the middle of a window, where a cycle begins as it does at time 0.
    """
    cycle = case.lengths[-1]
    skipped = case.phase + -(-(WINDOW - n - lag - 2 * cycle) // cycle) * cycle
    window, rest = case.dense(WINDOW), case.dense(n + lag, phase=case.phase)
    since = np.flatnonzero(window.times >= skipped)[: len(rest.times)]
    assert (window.times[since] - skipped == rest.times).all()
    return rest, [window.best_weights(t + skipped, t + skipped + lag)[since] for t in range(n)]


@pytest.mark.parametrize(
    "case",
    [
        Case("paper", "paper", 0, (6,)),
        Case("paper", "three", 5, (9,), phase=4),
        Case("two poles", "AR", 7, (2, 10), (0.7, 0.3), phase=1),
        Case("1-2z", "ARMA", 3, (4,), step=0.5, steps=3, rounds=True),
        Case("two poles", "white", 2, (1,)),
        Case("MA5", "half units", 12, (5,), step=0.5, phase=2),
    ],
    ids=name_of,
)
def test_a_settled_receiver_starts_from_nothing(case):
    """The weights are those for ever, of what there is; on another model with another mean."""
    mechanism, model = case.design(), INPUTS["eight"].model
    rest, weights = settled_weights(case, FIRST, case.lag)
    check(mechanism.step_mse(FIRST), [rest.mse(t, w) for t, w in enumerate(weights)])
    actual = case.dense(FIRST + case.lag, inputs="eight", phase=case.phase)
    offset = model.mean - mechanism.model.mean
    expected = np.array([actual.mse(t, w, offset) for t, w in enumerate(weights)])
    check(mechanism.step_mse(FIRST, model), expected)
    assert mechanism.predict_first(FIRST, model) == pytest.approx(expected.mean(), rel=RTOL)


@pytest.mark.parametrize(
    "case", [Case("paper", "three", 5, (9,), phase=4), Case("MA5", "half units", 12, (5,), step=0.5)]
)
def test_what_is_estimated_are_these_weights_of_what_is_released(case):
    mechanism, n = case.design(), FIRST + case.lag
    u = INPUTS[case.inputs].model.sample(2, n, seed=1)
    paths = mechanism.simulate(u, seed=2)
    rest, weights = settled_weights(case, FIRST, case.lag)
    v = paths.privatized[:, rest.times]
    constant = mechanism.model.mean * np.cumsum(impulse_response(*TARGETS[case.target], FIRST))
    np.testing.assert_allclose(paths.estimate[:, case.lag :], v @ np.array(weights).T + constant, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    "case",
    [
        Case("two poles", "white", 2, (1,)),
        Case("paper", "three", 5, (9,), phase=4),
        Case("two poles", "AR", 7, (2, 10), (0.7, 0.3), phase=1),
    ],
    ids=name_of,
)
def test_errors_from_rest_become_those_of_a_cycle(case):
    mechanism, n = case.design(), 2003
    steps, made = mechanism.step_mse(n), np.arange(n) + case.lag + 1 + case.phase
    check(steps[1000:], mechanism.phase_mse[made % case.lengths[-1]][1000:])
    rest, weights = settled_weights(case, FIRST, case.lag)
    check(steps[:FIRST], [rest.mse(t, w) for t, w in enumerate(weights)])


# --- over a horizon -------------------------------------------------------------------------------

UNSTABLE = {
    "running sum": (running_sum(HORIZON), ([1], [1, -1])),
    "growing": (Toeplitz.of(Filter([1, 0.3], [1, -0.8]), HORIZON), ([1, 0.3], [1, -0.8])),
    "average": (Toeplitz.of(Filter([0.25] * 4), HORIZON), ([0.25] * 4, [1])),
}
OVER_A_HORIZON = [
    (Case("paper", "paper", 0, (6,)), "running sum"),
    (Case("paper", "eight", 7, (8,), steps=2), "running sum"),  # an unfinished last block
    (Case("paper", "ARMA", 70, (4,), epsilon=3.0), "running sum"),  # nothing is late by more than the horizon
    (Case("paper", "AR", 5, (3, 12), (0.5, 0.5)), "running sum"),
    (Case("paper", "three", 3, (2, 6, 24), (0.2, 0.3, 0.5)), "growing"),
    (Case("paper", "white", 0, (60,)), "growing"),
    (Case("paper", "AR", 11, (1,), step=0.25, steps=2, rounds=True), "average"),
]


@pytest.mark.parametrize(("case", "target"), OVER_A_HORIZON, ids=lambda x: x if isinstance(x, str) else name_of(x))
def test_no_linear_estimate_errs_less_at_any_step_of_a_horizon(case, target):
    target, filter = UNSTABLE[target]
    mechanism, dense = case.design(target), case.dense(HORIZON, filter)
    expected = dense.step_mse(case.lag)
    check(mechanism.step_mse(), expected)
    assert mechanism.predicted_mse == pytest.approx(expected.mean(), rel=RTOL)
    check(mechanism.step_mse(17), expected[:17])
    actual, model = case.dense(HORIZON, filter, "half units"), INPUTS["half units"].model
    offset = model.mean - mechanism.model.mean
    weights = [dense.best_weights(t, t + case.lag) for t in range(HORIZON)]
    expected = np.array([actual.mse(t, w, offset) for t, w in enumerate(weights)])
    check(mechanism.step_mse(model=model), expected)
    assert mechanism.predict(model) == pytest.approx(expected.mean(), rel=RTOL)


@pytest.mark.parametrize(("case", "target"), OVER_A_HORIZON[:4], ids=lambda x: x if isinstance(x, str) else name_of(x))
def test_estimates_over_a_horizon_are_the_best_weights_of_what_is_released(case, target):
    target, filter = UNSTABLE[target]
    mechanism, dense = case.design(target), case.dense(HORIZON, filter)
    u = INPUTS[case.inputs].model.sample(1, HORIZON, seed=1)[0]
    paths = mechanism.simulate(u, seed=2)
    v = paths.privatized.reshape(-1, HORIZON)[dense.levels, dense.times]
    constant = mechanism.model.mean * dense.f.sum(axis=1)
    made = range(case.lag, HORIZON)
    expected = [dense.best_weights(t - case.lag, t) @ v + constant[t - case.lag] for t in made]
    np.testing.assert_allclose(paths.estimate[case.lag :], expected, rtol=1e-8, atol=1e-8)
