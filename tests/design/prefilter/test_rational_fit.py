"""Parameters of rational fits: reflection coefficients and roots."""

import numpy as np
import pytest

from dpfast.design.prefilter import rational_fit
from dpfast.filters.filter import MAX_POLE_RADIUS


@pytest.mark.parametrize(
    "roots",
    [[], [0.5], [0.5, -0.3], [0.5 + 0.3j, 0.5 - 0.3j], [0.9, 0.2 + 0.1j, 0.2 - 0.1j], [0.999, 0.99, -0.5], [0.0, 0.0]],
)
def test_reflection_coefficients_keep_the_roots(roots):
    found = rational_fit._section_roots(rational_fit._parameters(np.array(roots, complex)))
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(np.array(roots, complex)), atol=1e-7)


@pytest.mark.parametrize("raw", [[3.0, -4.0], [100.0, -100.0, 5.0], [-20.0, 20.0, 20.0, 20.0]])
def test_any_parameters_are_stable(raw):
    assert (np.abs(rational_fit._section_roots(np.array(raw))) <= 1 + 1e-7).all()
    assert (np.abs(rational_fit._reflect_inside(rational_fit._section_roots(np.array(raw)))) < MAX_POLE_RADIUS).all()


def test_zeros_outside_of_the_circle_are_reflected():
    np.testing.assert_allclose(rational_fit._reflect_inside(np.array([2.0, 0.5, 2j])), [0.5, 0.5, 0.5j])
