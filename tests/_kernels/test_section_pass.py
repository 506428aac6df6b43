import numpy as np
import pytest
from scipy import signal

from dpfast._kernels.section_pass import pass_sections

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("n", [0, 1, 2, 300])
@pytest.mark.parametrize("n_sections", [0, 1, 2, 5])
@pytest.mark.parametrize("radius", [0.0, 0.9, 1.0, 1.1])
def test_a_signal_passes_with_the_bits_of_scipy(n_sections, n, radius):
    sections, x = RNG.standard_normal((n_sections, 6)), RNG.standard_normal(n)
    angle = RNG.uniform(0, np.pi, n_sections)
    sections[:, 3:] = np.stack([np.ones(n_sections), -2 * radius * np.cos(angle), np.full(n_sections, radius**2)], 1)
    expected = signal.sosfilt(sections.copy(), x) if n_sections and n else x.copy()
    pass_sections(sections, x)
    assert np.array_equal(x, expected)
