"""One white noise in the place of several: spectra of sums in closed form, and filters as they were."""

import numpy as np
import pytest

import dpfast as dp
from dpfast.filters.one_noise import shape_one_noise

OMEGA = np.linspace(0, np.pi, 500)


def power(found):
    return np.abs(found.response(OMEGA)) ** 2


@pytest.mark.parametrize("system", [([1, 0.3], [1, -0.5]), ([1, 2.5], [1, -0.99]), ([1, -1], [1, 0.2, 0.5])])
@pytest.mark.parametrize("later", [0, 1])
def test_one_noise_is_the_filter_behind_it(system, later):
    """But for a delay, which no spectrum shows, and noises and states that are not heard."""
    wanted = dp.Filter(*system)
    a, b, c, d = (wanted * dp.Filter(np.eye(later + 1)[later])).state_space()
    n = len(a)
    a, b = (
        np.block([[a, np.zeros((n, 1))], [np.ones((1, n + 1)) / 2]]),
        np.vstack([np.hstack([b, 0 * b]), np.ones((1, 2))]),
    )
    found = shape_one_noise(a, b, np.hstack([c, [[0]]]), np.hstack([d, [[0]]]))
    on_circle = system[0][-1] == -1 and later  # then nothing stable undoes it, and its zero is 1e-6 off
    near = {"atol": 1e-5} if on_circle else {"rtol": 1e-12, "atol": 1e-30}
    np.testing.assert_allclose(power(found) / power(wanted).max(), power(wanted) / power(wanted).max(), **near)
    assert found.b[0] != 0
    assert len(found.a) <= n + 2


@pytest.mark.parametrize("seed", range(6))
def test_sums_of_autoregressions_have_the_sum_of_their_spectra(seed):
    """Slow ones and quick ones, loud and soft; and streams that show what was only later.

    Of two zeros that are 1e-3 from 1 and half of that from one another numbers tell 2e-13 of where each is (beside 60
    digits), which is up to 6e-10 of the spectrum at ω = 0.
    """
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 5))
    poles, sizes = 1 - 10 ** rng.uniform(-3, 0, k), 10 ** rng.uniform(-1, 1, k)
    sizes *= np.sqrt(1 - poles**2)
    at_once = seed % 2
    a, b, c = np.diag(poles), np.diag(sizes * (poles if at_once else 1)), np.ones((1, k))
    found = shape_one_noise(a, b, c, at_once * sizes[None])
    z = np.exp(1j * OMEGA)[:, None]
    np.testing.assert_allclose(power(found), (np.abs(sizes / (1 - poles / z)) ** 2).sum(axis=1), rtol=1e-9)
    assert np.abs(found.zeros).max(initial=0) < 1
