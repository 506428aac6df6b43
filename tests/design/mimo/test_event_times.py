"""Times of events that change most, against correlations of impulse responses and trying all of them."""

import itertools

import numpy as np
import pytest

import dpfast as dp
from dpfast.design.mimo.event_times import placed_products, worst_events
from dpfast.filters.warped_circle import choose_circle, make_circle

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, 0.8])


def correlations(g, reach):
    """R_ij(τ) = Σ g_i(t)ᵀ g_j(t + τ) at times from -reach to reach."""
    m, n = g.shape[1:]
    every = [[sum(np.correlate(row[j], row[i], "full") for row in g) for j in range(m)] for i in range(m)]
    return np.array(every)[:, :, n - 1 - reach : n + reach]


@pytest.mark.parametrize("size", [256, 2048])
def test_products_at_all_times_are_those_of_impulse_responses(size):
    target = dp.FilterMatrix([[SLOW, QUICK, SLOW], [QUICK, -1 * SLOW, 0.3 * QUICK]])
    circle = choose_circle(target.poles, size=size)
    g = target.response(circle.grid.omega)
    found = placed_products(circle, np.swapaxes(g, 1, 2).conj() @ g)
    reach = found.shape[2] // 2
    assert reach >= 256
    np.testing.assert_allclose(found, correlations(target.impulse(3000), reach), rtol=0, atol=1e-9)


def change(g, changes, signs, times):
    """What events at each input change, sample by sample."""
    q, _, n = g.shape
    out = np.zeros((q, n + max(times)))
    for i, t in enumerate(times):
        out[:, t : t + n] += signs[i] * changes[i] * g[:, i]
    return float((out**2).sum())


@pytest.mark.parametrize("m", [2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_no_events_change_more_and_none_less_than_was_asked(seed, m):
    """Of up to three inputs the worst is among them; of four no input can be moved to where it changes more."""
    rng = np.random.default_rng(seed)
    g, changes = rng.standard_normal((2, m, 3)), rng.uniform(0.5, 2, m)
    omega = make_circle(0.0, 64).grid.omega
    response = np.einsum("qmt,wt->wqm", g, np.exp(-1j * omega[:, None] * np.arange(3)))
    products = placed_products(make_circle(0.0, 64), np.swapaxes(response, 1, 2).conj() @ response)
    placed = [(0, *x) for x in itertools.product(range(-4, 5), repeat=m - 1)] if m < 4 else [(0, 0, 0, 0)]
    signed = [(1, *x) for x in itertools.product((1, -1), repeat=m - 1)]
    every = [change(g, changes, s, np.array(t) - min(t)) for s in signed for t in placed]
    least = 0.9 * max(every)
    found = worst_events(products, changes, least, least)
    changed = [change(g, np.ones(m), *event) for event in zip(*found, strict=True)]
    assert found.delays.min() == 0
    np.testing.assert_allclose(np.abs(found.changes), np.broadcast_to(changes, found.changes.shape))
    np.testing.assert_allclose(changed, sorted(changed, reverse=True), rtol=1e-9)
    assert min(changed) > least
    assert changed[0] >= max(every) * (1 - 1e-9)
    if m < 4:
        assert changed[0] == pytest.approx(max(every), rel=1e-9)
    assert len(worst_events(products, changes, changed[0] * 1.5, changed[0] * 0.5).changes) == 0
    nearly = worst_events(products, changes, least, 0.7 * least)
    close = [change(g, np.ones(m), *event) for event in zip(*nearly, strict=True)]
    assert (max(close), min(close) > 0.7 * least) == (pytest.approx(changed[0]), True)
    assert len(close) >= len(changed)


def test_events_that_come_close_are_found_with_those_that_change_more():
    """Of three inputs of which each two meet at a time of their own."""
    g = np.zeros((3, 3, 16))
    g[0, 0, 0], g[0, 1, 3], g[1, 0, 0], g[1, 2, 5], g[2, 1, 0], g[2, 2, 9] = 1, 1, 1, 0.9, 1, 0.8
    circle = make_circle(0.0, 64)
    response = np.einsum("qmt,wt->wqm", g, np.exp(-1j * circle.grid.omega[:, None] * np.arange(16)))
    products = placed_products(circle, np.swapaxes(response, 1, 2).conj() @ response)
    largest = change(g, np.ones(3), *(x[0] for x in worst_events(products, np.ones(3), 0.0, 0.0)))
    alone, more = (worst_events(products, np.ones(3), 0.999 * largest, x * largest) for x in (0.999, 0.5))
    assert len(alone.changes) < len(more.changes)
    changed = [change(g, np.ones(3), *event) for event in zip(*more, strict=True)]
    assert 0.5 * largest < min(changed) < 0.999 * largest


def test_three_that_no_move_of_one_brings_together_are_found():
    """Inputs that oppose one another in pairs at one time, and do not where each is a third of a turn later."""
    turn = dp.Filter([0.2], [1, 0.95, 0.95**2])
    third = 0.75**0.5
    target = dp.FilterMatrix([[turn, -0.5 * turn, -0.5 * turn], [0.0, third * turn, -third * turn]])
    circle = choose_circle(target.poles, size=512)
    g = target.response(circle.grid.omega)
    products = placed_products(circle, np.swapaxes(g, 1, 2).conj() @ g)
    demand = dp.Privacy(1, 0.05, adjacency="each_input")
    largest = demand.sensitivity(target) ** 2
    found = worst_events(products, np.ones(3), 0.999 * largest, 0.999 * largest)
    assert found.delays[0].any()
    assert change(target.impulse(2000), np.ones(3), *(x[0] for x in found)) == pytest.approx(largest, rel=1e-9)
