"""The live Kalman filter behind block sums, against a naive twin and in pieces."""

import itertools

import numpy as np
import pytest

from dpfast._kernels.block_estimates import LivePlan, estimate_live


def naive(plan, v, due):
    """What estimate_live computes of a stream (levels, steps), all innovations and states kept for ever."""
    n_levels, n_steps = v.shape
    n = plan.advance.shape[-1]
    states, shown = {0: np.zeros(n)}, {}
    out = np.zeros(n_steps)
    for t in range(n_steps):
        now = t + 1 + plan.phase
        if now % plan.slot == 0:
            turn = now // plan.slot
            before = states.get(turn - 1, np.zeros(n))
            x = plan.advance[(turn - 1) % len(plan.advance)] @ before
            for level in range(n_levels):
                shown[turn, level] = 0.0
                if due[level, t]:
                    shown[turn, level] = v[level, t] - x[n - n_levels + level]
                    x = x + plan.gains[(turn - 1) % len(plan.gains), level] * shown[turn, level]
            x[n - n_levels :][due[:, t]] = 0.0
            states[turn] = x
        if t >= plan.lag:
            wanted = now - plan.lag
            row, turn = plan.weights[wanted % len(plan.weights)], wanted // plan.slot
            out[t] = row[:n] @ states.get(turn, np.zeros(n))
            n_later = (len(row) - n) // n_levels
            for level in range(n_levels):
                for k in range(n_later):
                    out[t] += row[n + level * n_later + k] * shown.get((turn + 1 + k, level), 0.0)
    return out


def make(rng, lengths, slot, lag, phase, n=4, slots=1):
    n_later, cycle = -(-lag // slot), lengths[-1]
    gains = rng.normal(size=(cycle // slot, len(lengths), n)) / 4
    weights = rng.normal(size=(cycle, n + len(lengths) * n_later))
    until = slot - np.arange(cycle) % slot
    late = until[:, None] + slot * np.arange(n_later) > lag
    for level in range(len(lengths)):
        weights[:, n + level * n_later : n + (level + 1) * n_later][late] = 0.0
    return LivePlan(rng.normal(size=(slots, n, n)) / 3, gains, weights, slot, phase, lag)


@pytest.mark.parametrize(("lengths", "lag", "phase"), [((3,), 0, 0), ((3,), 4, 2), ((2, 4), 3, 1), ((1,), 2, 0)])
def test_it_is_the_naive_one_however_it_is_cut(lengths, lag, phase):
    rng = np.random.default_rng(3)
    plan = make(rng, lengths, lengths[0], lag, phase)
    n_streams, n = 2, 23
    passed = np.arange(1, n + 1) + phase
    due = np.array([passed % x == 0 for x in lengths])
    v = np.where(due, rng.normal(size=(n_streams, len(lengths), n)), 0.0)
    expected = np.stack([naive(plan, x, due) for x in v])
    seen = []
    for cuts in ([0, n], [0, 1, 2, 9, n], list(range(n + 1))):
        states = np.zeros((n_streams, plan.n_kept, 4))
        innovations, pieces = np.zeros((n_streams, plan.n_kept, len(lengths))), []
        for a, b in itertools.pairwise(cuts):
            out = np.empty((n_streams, b - a))
            piece = np.ascontiguousarray(v[:, :, a:b]), np.ascontiguousarray(due[:, a:b])
            estimate_live(*plan, a, *piece, states, innovations, out)
            pieces.append(out)
        seen.append(np.concatenate(pieces, axis=1))
    np.testing.assert_allclose(seen[0], expected, rtol=1e-12, atol=1e-13)
    assert all((x == seen[0]).all() for x in seen)


def test_slots_of_their_own_take_turns():
    rng = np.random.default_rng(5)
    plan = make(rng, (4, 4), 2, 0, 0, slots=2)
    n = 12
    passed = np.arange(1, n + 1)
    due = np.array([passed % 4 == 0, passed % 4 == 2])
    v = np.where(due, rng.normal(size=(1, 2, n)), 0.0)
    states, innovations, out = np.zeros((1, 2, 4)), np.zeros((1, 2, 2)), np.empty((1, n))
    estimate_live(*plan, 0, v, due, states, innovations, out)
    np.testing.assert_allclose(out[0], naive(plan, v[0], due), rtol=1e-12, atol=1e-13)
