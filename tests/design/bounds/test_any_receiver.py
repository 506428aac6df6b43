"""The bound for every receiver behind Gaussian noise: its table, its series against integrals, and what it refuses."""

import itertools
import math

import numpy as np
import pytest

from dpfast import (
    ARMA,
    DesignError,
    Filter,
    IndependentLevels,
    MarkovChain,
    Privacy,
    gaussian_bound,
    optimal,
)
from dpfast.design.bounds.genie import equivalent_signal
from tests.helpers.noise_tables import CHAIN, TARGETS

# Section 12 of the mathematics: κ, and the RMSE at lags 0, 5, 20 of the paper's example
TABLE = [
    (1.75633987311476, "5.538 5.031 4.635"),
    (1.255925, "4.257 3.799 3.583"),
    (1, "3.501"),
    (0.5, "1.780"),
    (0.3, "0.927"),
]


def at_noise(kappa, **more):
    """A privacy with Gaussian noise of this multiplier."""
    return Privacy.from_gdp(1 / kappa, 1e-6, **more)


@pytest.mark.parametrize(("kappa", "values"), TABLE)
def test_cells_of_the_table(kappa, values):
    found = [gaussian_bound(TARGETS["paper"], at_noise(kappa), CHAIN, lag=x).rmse for x in (0, 5, 20)]
    for value, rmse in zip(values.split(), found, strict=False):
        assert rmse == pytest.approx(float(value), abs=7e-4 * float(value))


def pair_moment(gap, correlation, kappa, flip):
    """E ψ_i ψ_{i+gap} by the sum over all bits around them and Gauss-Hermite quadrature over two noises.

    ψ is the bit less its mean given its two neighbours and the bit's own noisy image x = s/2 + n.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    first = nodes[:, None] + 0 * nodes
    second = correlation * first + math.sqrt(1 - correlation**2) * nodes
    lean, total = 0.5 * math.log((1 - flip) / flip), 0.0
    for bits in itertools.product((-1, 1), repeat=gap + 3):
        s = np.array(bits)
        changes = (np.diff(s) != 0).sum()
        chance = 0.5 * flip**changes * (1 - flip) ** (gap + 2 - changes)

        def psi(i, noise, s=s):
            return s[i] - np.tanh(lean * (s[i - 1] + s[i + 1]) + (s[i] / 2 + kappa * noise) / (2 * kappa**2))

        total += chance * float(weights @ (psi(1, first) * psi(1 + gap, second)) @ weights)
    return total


def moment_bound(gap, correlation, signal, flip):
    """What the equivalent signal claims: E ψψ summed with any weights is at most C²(1/P + R/σ²), here for C = 1."""
    omega = 2 * np.pi * np.arange(512) / 512
    inverse = np.abs(np.polynomial.polynomial.polyval(np.exp(-1j * omega), signal.a)) ** 2
    inverse = inverse / np.abs(np.polynomial.polynomial.polyval(np.exp(-1j * omega), signal.b)) ** 2
    return np.fft.ifft(inverse).real[gap] + correlation / signal.noise_variance


@pytest.mark.parametrize(("kappa", "flip"), [(1.0, 0.25), (0.6, 0.4), (2.0, 0.1)])
def test_the_moments_of_what_is_left_unknown_are_below_those_of_the_equivalent_signal(kappa, flip):
    """C²(T + R/σ²) - V is positive semidefinite for four bits in a row, R the Gramian of a short filter.

    T is the Toeplitz matrix of 1/P; C is E[s ψ]/2, the moment of a bit with itself.
    """
    taps = np.array([1.0, 0.7, -0.3])
    gramian = np.correlate(taps, taps, "full")[2:] / (taps @ taps)
    r = np.append(gramian, [0.0])
    signal = equivalent_signal(flip, kappa)
    own = pair_moment(0, 0.999999999, kappa, flip)  # E ψ², which is E s ψ too
    v = [own] + [pair_moment(k, r[k], kappa, flip) for k in (1, 2, 3)]
    claimed = [(own / 2) ** 2 * moment_bound(k, r[k], signal, flip) for k in range(4)]
    places = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    gap = np.linalg.eigvalsh(np.array(claimed)[places] - np.array(v)[places])
    assert gap.min() > -1e-6
    assert gap.max() < 0.3 * own  # it is near


@pytest.mark.parametrize("flip", [0.02, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("kappa", [0.15, 0.7, 3.0, 1e4])
def test_it_is_below_the_joint_optimum(kappa, flip):
    """Linear receivers are receivers; with much noise or independent bits it comes near."""
    chain = MarkovChain([[1 - flip, flip], [flip, 1 - flip]], levels=[2.0, 3.5])
    privacy = at_noise(kappa, max_change=1.5)
    bound = gaussian_bound(TARGETS["exp .9"], privacy, chain, lag=1).mse
    best = optimal(TARGETS["exp .9"], privacy, chain, lag=1, tolerance=0.5).lower_bound_mse
    assert bound <= best
    assert (kappa < 1e3 and (kappa, flip) != (3.0, 0.5)) or bound > 0.99 * best


def test_levels_and_events_scale_it():
    one = gaussian_bound(TARGETS["MA12"], at_noise(1.0), CHAIN).mse
    wide = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[7.0, 10.0])
    assert gaussian_bound(TARGETS["MA12"], at_noise(1.0, max_change=3), wide).mse == pytest.approx(9 * one, rel=1e-9)
    several = Privacy(1, 1e-6, max_events=4)
    assert gaussian_bound(TARGETS["MA12"], several, CHAIN).mse == pytest.approx(
        gaussian_bound(TARGETS["MA12"], Privacy(1, 1e-6, max_change=2), CHAIN).mse, rel=1e-9
    )


def test_with_hardly_any_noise_it_says_nothing():
    assert gaussian_bound(TARGETS["MA12"], at_noise(0.05), CHAIN).mse == 0.0


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (MarkovChain([[0.7, 0.3], [0.4, 0.6]], levels=[0, 1]), "MarkovChain with the levels .* of probabilities"),
        (MarkovChain(np.full((3, 3), 1 / 3), levels=[0, 1, 1]), "MarkovChain with the levels"),
        (MarkovChain(np.full((3, 3), 1 / 3), levels=[0, 1, 2]), "MarkovChain with the levels"),
        (IndependentLevels([0, 1], [0.3, 0.7]), "IndependentLevels with the levels"),
        (ARMA([1]), "ARMA with no levels"),
        (ARMA([0.5], levels=[-0.5, 0.5]), "ARMA with the levels"),
    ],
)
def test_other_models_are_refused_and_told_what_serves(model, words):
    with pytest.raises(DesignError, match=f"two levels, as likely .* got {words}.*: additive_bound is for linear"):
        gaussian_bound(Filter([1.0]), Privacy(1, 1e-6), model)


def test_without_a_delta_there_is_no_gaussian_noise():
    with pytest.raises(ValueError, match="delta must be above 0"):
        gaussian_bound(Filter([1.0]), Privacy(1), CHAIN)
