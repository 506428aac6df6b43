"""Guarantees over a horizon, attacked: every pair of adjacent inputs of a small one, by what v becomes."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from helpers.covers import long_but
from hypothesis import given
from hypothesis import strategies as st

from dpfast import (
    MarkovChain,
    Privacy,
    Toeplitz,
    input_perturbation,
    optimal_factorization,
    output_perturbation,
    polynomial_decay,
    running_sum,
)
from dpfast.design.horizon.binary_tree import binary_tree
from dpfast.design.horizon.buffered_toeplitz import buffered_toeplitz
from dpfast.design.horizon.compressive import compressive
from dpfast.design.horizon.decayed_sum import decayed_sum
from dpfast.design.horizon.fourier import fourier_perturbation
from dpfast.design.horizon.square_root import square_root
from dpfast.design.horizon.tree import tree

CHAIN = MarkovChain([[0.9, 0.1], [0.2, 0.8]], levels=[0, 1])
SLOW_OR_GROWING = {"BLT", "square root", "optimal factorization", "optimal factorization, model"}
SLOW_OR_GROWING |= {"optimal factorization, Laplace", "optimal factorization, dense"}

# what a design takes beside the target and the privacy, for a horizon
ANY_TARGET = {
    "input perturbation": (input_perturbation, lambda n: {}),
    "output perturbation": (output_perturbation, lambda n: {}),
    "optimal factorization": (optimal_factorization, lambda n: {}),
    "optimal factorization, model": (optimal_factorization, lambda n: {"model": CHAIN, "lag": None}),
    "square root": (square_root, lambda n: {}),
    "BLT": (buffered_toeplitz, lambda n: {"n_buffers": 1}),
    "optimal factorization, Laplace": (optimal_factorization, lambda n: {"noise": "laplace"}),
    "optimal factorization, dense": (optimal_factorization, lambda n: {"noise": "laplace", "strategy": "dense"}),
    "tree, subtraction": (tree, lambda n: {"subtraction": True, "branching": 2, "levels": min(n, 3)}),
    "decayed sum": (decayed_sum, lambda n: {}),
    "decayed sum, Laplace": (decayed_sum, lambda n: {"noise": "laplace"}),
    "FPA": (fourier_perturbation, lambda n: {"n_coefficients": min(3, n)}),
    "FPA, Gaussian": (fourier_perturbation, lambda n: {"n_coefficients": min(4, n), "noise": "gaussian"}),
    "FPA, all": (fourier_perturbation, lambda n: {"n_coefficients": n}),
    "compressive": (compressive, lambda n: {"n_measurements": min(3, n)}),
    "compressive, Gaussian": (compressive, lambda n: {"n_measurements": 1, "noise": "gaussian", "phi_seed": 7}),
}
RUNNING_SUM = ANY_TARGET | {
    "plain tree": (binary_tree, lambda n: {"estimator": "plain"}),
    "Honaker's tree": (binary_tree, lambda n: {}),
    "tree, 3-ary": (tree, lambda n: {"branching": 3, "levels": min(n, 2)}),
    "tree, Gaussian": (tree, lambda n: {"noise": "gaussian"}),
    "tree, Laplace": (binary_tree, lambda n: {"noise": "laplace"}),
}
TARGETS = {
    "running sum": running_sum,
    "polynomial": lambda n: polynomial_decay(0.5, n),
    "exponential": lambda n: 0.8 ** np.arange(n),
    "window": lambda n: np.r_[np.ones(3), np.zeros(n)][:n],
    "alternating": lambda n: (-0.7) ** np.arange(n),
    "delayed": lambda n: np.r_[0.0, 2.0, -1.0, np.zeros(n)][:n],
}
EVENTS = [(1, 1), (2, 1), (2, 2), (2, 5), (3, 1), (3, 2), (4, 7)]


def made(name, f, privacy):
    design, arguments = RUNNING_SUM[name]
    target = Toeplitz.of(f)
    return design(target, privacy, **arguments(target.horizon))


def under(mechanism):
    """The same strategy under every kind of adjacency."""
    for m, b in EVENTS:
        yield replace(mechanism, privacy=Privacy(0.7, 1e-4, max_change=0.5, max_events=m, min_separation=b))


def columns(mechanism):
    """What one more event at each step does to v, with the same noise: (steps, rows)."""
    inputs = np.vstack([np.zeros(mechanism.horizon), np.eye(mechanism.horizon)])
    v = np.array([mechanism.simulate(u, seed=1).privatized for u in inputs])
    return v[1:] - v[0]


def largest_change(mechanism, changes):
    """Over all adjacent pairs: norms are convex, so that events of the largest size, either way, are the worst."""
    privacy = mechanism.privacy
    order = 1 if mechanism.noise == "laplace" else 2
    worst = 0.0
    for count in range(1, privacy.max_events + 1):
        for steps in itertools.combinations(range(mechanism.horizon), count):
            if any(b - a < privacy.min_separation for a, b in itertools.pairwise(steps)):
                continue
            signs = np.array(list(itertools.product([1], *[[1, -1]] * (count - 1))))
            sums = privacy.max_change * signs @ changes[list(steps)]
            worst = max(worst, float(np.linalg.norm(sums, order, axis=1).max()))
    return worst


def attacked(mechanism, changes):
    """The densities of v differ by a factor e^ε at most; or it is Gaussian of a mean that moves by at most μ σ."""
    change, privacy = largest_change(mechanism, changes), mechanism.privacy
    assert change <= mechanism.sensitivity * (1 + 1e-12)
    if mechanism.noise == "laplace":
        assert change / mechanism.noise_scale <= privacy.epsilon
    else:  # κ = 1/μ is rounded up by 1e-9
        assert change / mechanism.noise_std <= privacy.gdp_mu * (1 + 1e-12)
    return change


@pytest.mark.parametrize("n", long_but([2, 5, 8], [5]))
@pytest.mark.parametrize("target", TARGETS)
def test_no_adjacent_pair_changes_v_by_more_than_is_claimed(target, n):
    if (target, n) == ("delayed", 2):
        return  # nothing but zeros to take a square root of
    wrong = {}
    for name in RUNNING_SUM if target == "running sum" else ANY_TARGET:
        any_privacy = made(name, TARGETS[target](n), Privacy(0.7, 1e-4))
        changes = columns(any_privacy)
        for mechanism in under(any_privacy):
            m, b = mechanism.privacy.max_events, mechanism.privacy.min_separation
            try:
                change = attacked(mechanism, changes)
                if m == 1 or b >= n:
                    assert mechanism.sensitivity == pytest.approx(change, rel=1e-9)
            except AssertionError as error:
                wrong[name, m, b] = str(error)
    assert wrong == {}


@given(
    name=st.sampled_from(sorted(ANY_TARGET.keys() - SLOW_OR_GROWING)),
    f=st.lists(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 3.0]), min_size=2, max_size=9).filter(any),
    m=st.integers(1, 4),
    b=st.integers(1, 9),
    d=st.sampled_from([0.1, 1.0, 7.0]),
)
def test_no_adjacent_pair_of_any_target(name, f, m, b, d):
    mechanism = made(name, f, Privacy(1.3, 0.01, max_change=d, max_events=m, min_separation=b))
    change = attacked(mechanism, columns(mechanism))
    if m == 1:
        assert mechanism.sensitivity == pytest.approx(change, rel=1e-9)


@pytest.mark.parametrize("n", [4, 8])
@pytest.mark.parametrize("target", ["running sum", "polynomial", "exponential"])
@pytest.mark.parametrize("name", ["square root", "BLT"])
def test_several_events_are_exact_where_that_is_said(name, target, n):
    any_privacy = made(name, TARGETS[target](n), Privacy(0.7, 1e-4))
    changes = columns(any_privacy)
    assert (changes[0] >= -1e-12).all()
    assert (np.diff(changes[0]) <= 1e-12).all()
    for mechanism in under(any_privacy):
        assert mechanism.sensitivity == pytest.approx(largest_change(mechanism, changes), rel=1e-9)


@pytest.mark.parametrize("name", ["plain tree", "Honaker's tree", "tree, Laplace"])
@pytest.mark.parametrize("n", [2, 4, 8])
def test_two_events_are_exact_in_full_trees(name, n):
    for b in range(1, n + 2):
        mechanism = made(name, running_sum(n), Privacy(1.0, 0.01, max_events=2, min_separation=b))
        assert mechanism.sensitivity == pytest.approx(largest_change(mechanism, columns(mechanism)), rel=1e-9)


def test_the_attack_finds_what_is_too_little():
    """A sensitivity to one event is not one to two."""
    one = made("FPA", running_sum(8), Privacy(1.0, 0.01))
    two = replace(one, privacy=Privacy(1.0, 0.01, max_events=2))
    assert largest_change(two, columns(one)) > 1.5 * one.sensitivity
    with pytest.raises(AssertionError):
        attacked(replace(two, strategy=two.strategy._replace(entries=two.strategy.entries / 2)), columns(two))
