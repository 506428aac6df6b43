"""Values of polynomials and sections at many angles, against SciPy's."""

import numpy as np
import pytest
from scipy import signal

from dpfast.filters.sections import cascade_response, rational_response

RANDOM = np.random.default_rng(0)
SECTIONS = np.array([[0.5, 1, -2, 1, -1.6, 0.7], [1, 0, 0, 1, -0.9, 0], [2, -1.99, 0, 1, 0, 0.5], [1, 0, 0, 1, 0, 0]])


@pytest.mark.parametrize("shape", [(), (0,), (1,), (4095,), (2, 6000), (12289,)])
@pytest.mark.parametrize(
    "taps",
    [[1.0], [-3.0], RANDOM.standard_normal(70), 0.99 ** np.arange(300)],
    ids=["one", "a gain", "taps", "many taps"],
)
@pytest.mark.parametrize("recursion", [[1.0], [1.0, *[0.0] * 40, -0.5]], ids=["no recursion", "a recursion"])
def test_a_response_at_any_count_of_angles_is_that_of_freqz(shape, taps, recursion):
    omega = np.random.default_rng(1).uniform(0, np.pi, shape)
    z = np.asarray(np.exp(-1j * omega))
    cascade = signal.freqz_sos(SECTIONS, omega.ravel())[1].reshape(shape)
    ends = signal.freqz(taps, recursion, omega.ravel())[1].reshape(shape)
    found = rational_response(np.array(taps), SECTIONS, np.array(recursion), z)
    assert found.shape == shape
    np.testing.assert_allclose(found, ends * cascade, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(cascade_response(SECTIONS, z), cascade, rtol=1e-12)
