"""No pair of short filters, a prefilter and a receiver found by search, errs less than what is designed."""

import functools
import itertools
import math

import numpy as np
import pytest
from helpers.covers import long_but
from scipy import optimize

import dpfast as dp

CHANGES, CORRELATION, NODES = np.array([1.0, 1.5, 0.7]), 0.7, 48
ADJACENCIES = ("one_input", "each_input_same_time", "each_input")
EVERY = list(itertools.product(ADJACENCIES, ("diagonal", "general"), (0, 3)))
SLOW_TO_DESIGN = ("each_input", "general", 3)
OF_THREE = list(itertools.product(ADJACENCIES, ("diagonal", "general"), (0, 2)))


@functools.cache
def events(n, m, adjacency):
    """What a person may do: changes (event, time, input) at all times and of all signs, one event after the other."""
    if adjacency == "one_input":
        who, times = np.eye(m), [(0,) * m]
    else:
        who = np.array(list(itertools.product((1, -1), repeat=m)))
        times = list(itertools.product(range(n), repeat=m)) if adjacency == "each_input" else [(0,) * m]
    done = np.zeros((len(who) * len(times), n, m))
    for event, (signs, at) in zip(done, itertools.product(who, times), strict=True):
        event[at, range(m)] = CHANGES[:m] * signs
    return done


def squared_change(g, adjacency):
    """Of taps g (taps, q, m): the most that any event puts out, all its signs and times tried."""
    n, q, m = g.shape
    done = events(n, m, adjacency)
    out = np.zeros((len(done), 2 * n - 1, q))
    for late in range(n):
        out[:, late : late + n] += done @ g[late].T
    return (out**2).sum(axis=(1, 2)).max()


def searched_error(target, psd, noise, adjacency, form, lag):
    """The least error over G of two taps and H of two more than the lag, from a few starts."""
    rng, omega = np.random.default_rng(3), 2 * np.pi * np.arange(NODES) / NODES
    z = np.exp(-1j * omega)[:, None, None]
    wanted, powers = z**lag * target.response(omega), z[:, 0, 0] ** np.arange(lag + 2)[:, None]
    p, m = target.shape
    own, n_g = np.eye(m) if form == "diagonal" else np.ones((m, m)), 2 * m * m

    def error(x):
        g, h = x[:n_g].reshape(2, m, m) * own, x[n_g:].reshape(lag + 2, p, m)
        left = wanted - np.tensordot(powers, h, (0, 0)) @ (g[0] + g[1] * z)
        distortion = ((left @ psd) * left.conj()).real.sum() / NODES
        return distortion + noise**2 * squared_change(g, adjacency) * (h**2).sum()

    def start():
        g = np.stack([np.eye(m), 0.2 * rng.standard_normal((m, m))])
        return np.concatenate([g.ravel(), 0.3 * rng.standard_normal(p * m * (lag + 2))])

    return min(optimize.minimize(error, start(), method="L-BFGS-B", options={"maxiter": 60}).fun for _ in range(3))


def assert_none_errs_less(target, poles, adjacency, form, lag):
    m = target.shape[1]
    shared = np.full((m, m), CORRELATION) + (1 - CORRELATION) * np.eye(m)
    model = dp.VectorARMA([np.diag(poles)], innovation_covariance=shared)
    demand = dp.Privacy(math.log(3), 0.05, max_change=CHANGES[:m], adjacency=adjacency)
    made = dp.optimal(target, demand, model, lag=lag, prefilter=form, tolerance=1e-2)
    psd = model.psd(2 * np.pi * np.arange(NODES) / NODES)
    found = searched_error(target, psd, demand.noise_multiplier, adjacency, form, lag)
    assert made.lower_bound_mse <= found
    assert made.predicted_mse <= 1.01 * found
    assert found <= 1.2 * made.ideal_mse  # the search is a search


@pytest.mark.parametrize(("adjacency", "form", "lag"), long_but(EVERY, [x for x in EVERY if x != SLOW_TO_DESIGN]))
def test_no_pair_of_short_filters_errs_less(adjacency, form, lag):
    """Of two correlated streams, with changes of different sizes."""
    target = dp.FilterMatrix([[dp.Filter([0.6, 0.4]), dp.Filter([0.3])], [dp.Filter([0.5]), dp.Filter([-0.5, 0.2])]])
    assert_none_errs_less(target, [0.5, -0.3], adjacency, form, lag)


@pytest.mark.parametrize(("adjacency", "form", "lag"), OF_THREE)
def test_no_pair_of_short_filters_for_three_streams_errs_less(adjacency, form, lag):
    """Of a total that is smoothed, and a difference."""
    smooth = dp.Filter([0.6, 0.4])
    assert_none_errs_less(
        dp.FilterMatrix([[smooth, smooth, smooth], [1, dp.Filter([-0.5, 0.2]), 0]]),
        [0.5, -0.3, 0.6],
        adjacency,
        form,
        lag,
    )
