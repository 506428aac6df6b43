"""Descents on functions whose minima are known, in one precision and from one to the other."""

import numpy as np
import pytest
from scipy import optimize

from dpfast.design.horizon.limited_memory_descent import StepMemory, descend


def bowl(n, dtype=np.float64):
    """A quadratic with curvatures from 1 to 1000, its least value 2 at ones."""
    curvatures = np.geomspace(1, 1000, n).astype(dtype)

    def error(x):
        away = x - dtype(1)
        return 2 + float(curvatures @ away**2) / 2, curvatures * away

    return error


def counted(error):
    calls = []

    def counting(x):
        calls.append(x.dtype)
        return error(x)

    return counting, calls


def test_a_quadratic():
    found = descend(bowl(40), np.zeros(40), 1e-14, StepMemory())
    np.testing.assert_allclose(found, 1, atol=1e-5)


def test_a_curved_valley_as_by_scipy():
    """That of Rosenbrock, 1 above its floor: steps must be shortened."""
    start = np.tile([-1.2, 1.0], 5)
    found = descend(lambda x: (1 + optimize.rosen(x), optimize.rosen_der(x)), start, 1e-14, StepMemory())
    best = optimize.minimize(optimize.rosen, start, jac=optimize.rosen_der, method="L-BFGS-B")
    assert optimize.rosen(found) <= best.fun + 1e-8


@pytest.mark.parametrize("decrease", [0.0, 1e-8])
def test_no_slope_is_no_step(decrease):
    np.testing.assert_array_equal(descend(bowl(3), np.ones(3), decrease, StepMemory()), np.ones(3))


def test_where_rounding_hides_a_decrease_it_ends():
    """A slope that promises what never comes."""
    error, calls = counted(lambda x: (1.0 + float(np.abs(x).sum()), -np.ones_like(x)))
    np.testing.assert_array_equal(descend(error, np.zeros(2), 0.0, StepMemory()), np.zeros(2))
    assert len(calls) < 20


def test_double_precision_goes_on_where_single_ended():
    memory = StepMemory()
    rough = descend(bowl(40, np.float32), np.zeros(40, np.float32), 1e-5, memory)
    assert rough.dtype == np.float32
    (error, calls), (alone, calls_alone) = counted(bowl(40)), counted(bowl(40))
    found = descend(error, rough.astype(float), 1e-6, memory)
    assert bowl(40)(found)[0] < 2 + 5e-5 < bowl(40)(rough.astype(float))[0]
    descend(alone, rough.astype(float), 1e-6, StepMemory())
    assert len(calls) < 0.8 * len(calls_alone)


def test_two_small_steps_in_a_row_end_it():
    error, calls = counted(bowl(40))
    descend(error, np.zeros(40), 1.0, StepMemory())  # every step gains less than all of the error that it leaves
    few, more = len(calls), counted(bowl(40))
    descend(more[0], np.zeros(40), 1e-3, StepMemory())
    assert 3 <= few < len(more[1])
