import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpfast as dp
from dpfast.releases.audit.floating_point_grid import _difference, _product, evidence, is_possible
from dpfast.releases.integer.exact_forms import exact
from dpfast.releases.noise import Noise

PRIVACY = dp.Privacy(1, 1e-6)
COUNTS = dp.input_perturbation(dp.Filter([1]), PRIVACY)


def test_one_simulated_value_tells_the_input():
    """An input among 21, never wrong; the true one is always possible, another one with a probability near 1e-8."""
    candidates = np.arange(21.0)[:, None]
    u = np.repeat(candidates, 4000, axis=1).reshape(-1, 1)
    found = evidence(COUNTS, COUNTS.simulate(u, seed=1).privatized, candidates)[:, :, 0]
    assert found.shape == (21, 84_000)
    assert found.sum(axis=0).tolist() == [1] * 84_000
    assert (found.argmax(axis=0) == u[:, 0]).all()


@settings(max_examples=8)
@given(
    epsilon=st.floats(0.01, 20),
    target=st.sampled_from([([1.0], [1.0, -0.9]), ([1.0, 0.995], [1.0, -0.995]), ([0.3, -2.0, 0.1], [1.0])]),
    design=st.sampled_from([dp.input_perturbation, dp.zero_forcing, dp.output_perturbation]),
    change=st.integers(-5, 5).filter(bool),
    seed=st.integers(0, 2**32),
)
def test_any_prefilter_tells_where_it_passes_the_change(epsilon, target, design, change, seed):
    if design is dp.output_perturbation and target[0][1:] == [-2.0, 0.1]:
        target = [0.3, -0.2, 0.1], [1.0]  # as noise on an output that no stable filter undoes cannot be released
    mechanism = design(dp.Filter(*target), dp.Privacy(epsilon, 1e-6))
    u = np.random.default_rng(seed).integers(0, 20, (2, 9)).astype(float)
    u[1] = u[0]
    u[1, 6] += change
    v = mechanism.simulate(u[0], seed=seed).privatized
    true, other = evidence(mechanism, v, u)
    assert true.all()
    assert other[:6].all()
    assert not other[6]


def test_a_mean_is_taken_out_as_in_a_simulation():
    model = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.3, 0.8])
    mechanism = dp.lmmse(dp.Filter([1], [1, -0.5]), PRIVACY, model, lag=1)
    u = np.array([[-0.3, 0.8, 0.8], [-0.3, 0.8, -0.3]])
    found = evidence(mechanism, mechanism.simulate(u[0], seed=5).privatized, u)
    assert found.tolist() == [[True, True, True], [True, True, False]]


def test_a_release_is_as_possible_without_as_with():
    plan = exact(COUNTS, dp.Inputs(0, 20))
    noise, seen = Noise(plan.sigma), []
    noise.ready(40_000)
    gain = int(plan.taps[0])
    for u in (0, 1):
        v = (gain * u + noise.take(20_000)).astype(np.float64)
        seen.append([is_possible(v, gain * float(x), plan.sigma.std).mean() for x in (0, 1)])
    # an integer is off the grid but at n = 0; the rates of any event differ by no more than e^ε, here with 6 sigma
    for rates in np.transpose(seen):
        assert abs(rates[0] - rates[1]) < (math.e - 1) * rates.min() + 6 * math.sqrt(rates.max() / 20_000)
        assert rates.max() < 0.05


def test_rounding_twice_is_possible_too():
    """A processor that cannot multiply and add at once."""
    rng = np.random.default_rng(7)
    n, sigma = rng.normal(size=100_000).astype(np.float32).astype(float), COUNTS.noise_std
    assert is_possible(n * sigma + 3.0, 3.0, sigma).all()
    assert not is_possible(n * sigma + 3.0, 4.0, sigma).any()


def test_noise_of_53_bits_is_possible_nowhere():
    rng = np.random.default_rng(8)
    assert not is_possible(rng.normal(size=10_000) * 4.0 + 1.0, 1.0, COUNTS.noise_std).any()


finite = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(a=finite, b=finite, sigma=st.floats(1e-3, 1e3))
def test_differences_and_products_are_exact(a, b, sigma):
    s, e = _difference(np.float64(a), b)
    assert Fraction(float(s)) + Fraction(float(e)) == Fraction(a) - Fraction(b)
    single = float(np.float32(a))
    if single == 0 or abs(single) > 1e-30:  # below, the error of a product is no number any more
        p, e = _product(np.float64(single), sigma)
        assert Fraction(float(p)) + Fraction(float(e)) == Fraction(single) * Fraction(sigma)


@given(n=st.floats(-7, 7, width=32), response=st.floats(-1e3, 1e3), sigma=st.floats(0.1, 1e3))
def test_possible_is_what_exact_arithmetic_says(n, response, sigma):
    exact_sum = Fraction(n) * Fraction(sigma) + Fraction(response)
    v = float(exact_sum)  # rounded once, as by a fused multiply-add
    assert is_possible(np.array([v]), response, sigma).all()
    step = np.spacing(abs(v)) + np.spacing(abs(float(Fraction(n) * Fraction(sigma))))
    near = v + 2 * step  # a neighbour that this n does not reach; another one is a float32 step away
    if abs(n) * sigma * 2.0**-25 > 8 * step:
        assert not is_possible(np.array([near]), response, sigma).any()


def test_the_classical_grid_of_naive_noise():
    """U + σ N of 53 bits, u = 0 or 1: "below 1/4, and off the grid of 2^-54" is for u = 0 alone.

    With probability (1/6)√(2/π)/σ: numbers of the binade 2^-k are multiples of 2^-(k+53), of which one in 2^(k-1) is on
    the grid. Five sigma.
    """
    rng, sigma, n = np.random.default_rng(9), 1.7563, 400_000
    seen = []
    for u in (0.0, 1.0):
        v = u + sigma * rng.normal(size=n)
        seen.append(np.count_nonzero((np.abs(v) < 0.25) & (v * 2.0**54 != np.rint(v * 2.0**54))))
    p = math.sqrt(2 / math.pi) / 6 / sigma
    assert seen[1] == 0
    assert seen[0] / n == pytest.approx(p, abs=5 * math.sqrt(p / n) + 0.003 * p)  # the density is not quite flat


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"candidates must be \(n_candidates, time\) with the time of v, got shapes"):
        evidence(COUNTS, [1.0, 2.0], [[1.0]])
    with pytest.raises(ValueError, match="mechanism must be a Mechanism"):
        evidence(3, [1.0], [[1.0]])
