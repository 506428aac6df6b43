"""Systems in state space on several streams, against the recursion one number at a time."""

import numpy as np
import pytest

from dpfast._kernels import shared_states
from dpfast._kernels.shared_states import plan_shared_states, run_shared_states


def system(n, m, p, seed=0):
    """Stable, with zeros among the weights, and a row of nothing else."""
    rng = np.random.default_rng(seed)
    a, b, c, d = (rng.uniform(-1, 1, shape) for shape in ((n, n), (n, m), (p, n), (p, m)))
    a *= 0.9 / max(1.0, np.abs(np.linalg.eigvals(a)).max(initial=0.0))
    b[rng.random(b.shape) < 0.4] = 0
    c[0], d[0] = 0, 0
    return a, b, c, d


def naive(a, b, c, d, x, s):
    y = np.empty((len(c), x.shape[1]))
    for t in range(x.shape[1]):
        y[:, t] = d @ x[:, t] + c @ s
        s = a @ s + b @ x[:, t]
    return y, s


@pytest.mark.parametrize(("n", "m", "p"), [(0, 2, 1), (1, 1, 2), (3, 2, 3)])
@pytest.mark.parametrize("n_streams", [1, 3, 9])
def test_each_stream_is_passed_through_the_system_from_its_state(n, m, p, n_streams):
    parts, rng = system(n, m, p), np.random.default_rng(1)
    x, states = rng.standard_normal((n_streams, m, 20)), rng.standard_normal((n_streams, n))
    wanted = [naive(*parts, *each) for each in zip(x, states.copy(), strict=True)]
    y = np.empty((n_streams, p, 20))
    run_shared_states(plan_shared_states(*parts), x, states, y, 1)
    np.testing.assert_allclose(y, [w for w, _ in wanted], atol=1e-12)
    np.testing.assert_allclose(states, [s for _, s in wanted], atol=1e-12)


def test_pieces_slices_and_threads_give_the_same_bits(monkeypatch):
    parts, rng = system(3, 2, 2), np.random.default_rng(2)
    plan, x = plan_shared_states(*parts), rng.standard_normal((10, 2, 30))

    def run(pieces, n_threads):
        states, made = np.zeros((10, 3)), []
        for piece in np.split(x, pieces, axis=-1):
            y = np.empty((10, 2, piece.shape[-1]))
            run_shared_states(plan, np.ascontiguousarray(piece), states, y, n_threads)
            made.append(y)
        return np.concatenate(made, axis=-1), states

    whole = run([], 1)
    monkeypatch.setattr(shared_states, "_WORTH_A_THREAD", 1)
    monkeypatch.setattr(shared_states, "_SLICE", 7)
    for found in (run([], 3), run([1, 12], 2)):
        np.testing.assert_array_equal(found[0], whole[0])
        np.testing.assert_array_equal(found[1], whole[1])
