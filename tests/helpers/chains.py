"""Chains of the package on arrays, and what scipy makes of the same filters: for tests of several modules."""

import numpy as np
from hypothesis import settings
from scipy import signal

from dpfast._kernels._jit import DISABLE_JIT
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_execute import execute
from dpfast._kernels.factors import Factors
from dpfast._kernels.simd import lanes
from dpfast._kernels.simulated_noise import NOISE

EXAMPLES = settings(max_examples=4 if DISABLE_JIT else 8)  # of a law with many cases, or whose check takes long
TOLERANCE = {8: 1e-12, 4: 2e-5}  # by the size of a number: of the largest value
LANES = lanes(np.float64)
ONE, NO_SECTIONS = np.ones(1), np.empty((0, 6))
POLES = np.array([0.9, -0.5, 0.3 + 0.4j, 0.3 - 0.4j])
SECTIONS = np.array([[0.2, 0.3, 0.1, 1.0, -0.6, 0.3], [1.0, 0.4, 0.0, 1.0, 0.5, -0.2], [1.0, -0.3, 0.9, 1.0, 0.1, 0.6]])
COMB = np.eye(1, 41)[0] - 0.2 * np.eye(1, 41, 40)[0] + 0.1 * np.eye(1, 41, 33)[0]  # 40 poles


def decaying(n):
    return np.random.default_rng(n).normal(size=n) * 0.97 ** np.arange(n)


FACTORS = {
    "identity": Factors(ONE, NO_SECTIONS, ONE),
    "gain": Factors(np.array([-2.5]), NO_SECTIONS, ONE),
    "silence": Factors(np.zeros(1), NO_SECTIONS, ONE),
    "delay": Factors(np.array([0.0, 0.0, 0.0, 1.5]), NO_SECTIONS, ONE),
    "eight taps": Factors(decaying(8), NO_SECTIONS, ONE),
    "nine taps": Factors(decaying(9), NO_SECTIONS, ONE),
    "taps beyond a chunk": Factors(decaying(131), NO_SECTIONS, ONE),
    "section": Factors(ONE, SECTIONS[:1], ONE),
    "gain and sections": Factors(np.array([0.3]), SECTIONS, ONE),
    "delay and section": Factors(np.array([0.0, 0.0, 1.0]), SECTIONS[1:2], ONE),
    "Wiener": Factors(decaying(21), SECTIONS[:2], ONE),
    "recursion": Factors(ONE, NO_SECTIONS, np.poly(POLES).real),
    "comb": Factors(np.array([0.7]), NO_SECTIONS, COMB),
    "all": Factors(np.array([0.0, 0.5, 1.0, -0.3]), SECTIONS, COMB),
}


def scipys(factors, x):
    y = signal.lfilter(factors.taps, factors.recursion, x)
    return signal.sosfilt(factors.sections, y) if len(factors.sections) else y


def noise(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def assert_close(found, expected, case=""):
    """Up to the rounding of the type of what was found, relative to the largest value."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, case
    scale = np.abs(expected).max(initial=1.0)
    np.testing.assert_allclose(found, expected, 0, TOLERANCE[found.dtype.itemsize] * scale, err_msg=str(case))


def paths(chain, signals, n_streams, n_samples, **options):
    """What signals of a chain are, (signals, streams, time)."""
    for number in signals:
        chain.write(number)
    out = np.empty((len(signals), n_streams, n_samples), chain.dtype)
    execute(chain, n_streams, n_samples, out=out, **options)
    return out


def unit_normals(seed, n_streams, n_samples, purpose=NOISE, dtype=np.float64, **options):
    """The package's own standard normals of streams, (streams, time)."""
    chain = Chain(dtype)
    return paths(chain, [chain.normals(purpose)], n_streams, n_samples, seed=seed, **options)[0]
