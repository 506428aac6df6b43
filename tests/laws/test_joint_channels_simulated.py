"""Optima of random streams that depend on one another: certified, and simulated errors are the predicted ones.

Up to six inputs and outputs, targets of up to four states; `nox -s statistics` takes all forty.
"""

import math

import numpy as np
import pytest

import dpfast as dp

STREAMS, STEPS, SETTLED = 100, 300, 100


def random_problem(seed):
    rng = np.random.default_rng(seed)
    p, m, n = rng.integers([1, 2, 1], [7, 7, 5])
    a, own = (rng.standard_normal((k, k)) for k in (n, m))
    a, own = (x * rng.uniform(0.3, 0.9) / np.abs(np.linalg.eigvals(x)).max() for x in (a, own))
    target = dp.FilterMatrix.from_state_space(a, *(rng.standard_normal(x) for x in ((n, m), (p, n), (p, m))))
    root = rng.standard_normal((m, m))
    model = dp.VectorARMA([own], innovation_covariance=root @ root.T + 0.1 * np.eye(m), mean=rng.standard_normal(m))
    adjacency = ("one_input", "each_input")[seed % 2]
    privacy = dp.Privacy(math.log(3), 0.05, max_change=rng.uniform(0.5, 2, m), adjacency=adjacency)
    return target, privacy, model, int(rng.integers(0, 5))


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(x, marks=pytest.mark.long) for x in range(4, 40))])
def test_simulated_errors_are_the_predicted_ones(seed):
    """At five standard errors, from the means over time of independent streams."""
    target, privacy, model, lag = random_problem(seed)
    made = dp.optimal(target, privacy, model, lag=lag, tolerance=1e-2)
    assert made.ideal_mse * (1 - 1e-6) <= made.lower_bound_mse <= made.ideal_mse
    u = model.sample(STREAMS, STEPS, seed=seed + 1000)
    wanted = target.apply(u)[..., SETTLED - lag : STEPS - lag]
    errors = ((made.simulate(u, seed=seed).estimate[..., SETTLED:] - wanted) ** 2).mean(axis=-1)
    errors = np.column_stack([errors, errors.sum(axis=1)])
    deviations = errors.mean(axis=0) - np.append(made.output_mse, made.predicted_mse)
    assert (np.abs(deviations) <= 5 * errors.std(axis=0, ddof=1) / math.sqrt(STREAMS)).all()
