"""The accountant against exact distributions of the integer privacy loss, mpmath and dp-accounting."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st

from dpfast import Privacy
from dpfast.privacy import discrete_gaussian_accounting as accounting
from dpfast.privacy.discrete_gaussian_accounting import Shift, Sigma, group_shifts, smallest_sigma

# The inverse FFT of 2^17 numbers is off by some 2^-53 of its norm, at most 1: their sum by 2^8.5 times that.
FFT_ERROR = 1e-12
LN3 = math.log(3)


# --- exact distributions --------------------------------------------------------------------------


def next_power(n):
    return 1 << (int(n) - 1).bit_length()


def losses(vectors, sigmas):
    """Distribution of Z = <N, Δ> for each integer vector Δ: (z, probabilities), rows of cases.

    Its characteristic function at 2πm/M is that of one coordinate, a table, at m·Δ_i modulo M. What wraps around is
    beyond ten standard deviations, below 1e-22.
    """
    sigmas = np.asarray(sigmas, float)
    spread = max(sigmas * np.maximum(np.linalg.norm(vectors, axis=1), 1))
    size = next_power(2 * 10 * spread + 2)
    z = np.arange(size) - size // 2
    pmf = np.exp(-(z**2) / (2 * sigmas[:, None] ** 2))
    table = np.fft.fft(np.fft.ifftshift(pmf / pmf.sum(axis=1, keepdims=True), axes=1)).real
    frequencies = np.arange(size // 2 + 1)
    product = np.ones((len(sigmas), len(frequencies)))
    for column in vectors.T:
        product *= np.take_along_axis(table, column[:, None] * frequencies % size, axis=1)
    return z, np.fft.fftshift(np.fft.irfft(product, size), axes=1)


def exact_deltas(vectors, sigmas, epsilons):
    """δ(ε) of the pairs (N, N + Δ): the loss at n is (‖Δ‖² - 2<n, Δ>)/2σ², and E[1 - e^(ε - loss)]₊ is summed."""
    z, probabilities = losses(vectors, sigmas)
    squared = (vectors**2).sum(axis=1)
    loss = (squared[:, None] - 2 * z) / (2 * np.asarray(sigmas)[:, None] ** 2)
    return (probabilities * -np.expm1(np.minimum(np.asarray(epsilons)[:, None] - loss, 0))).sum(axis=1)


def exact_delta_of_pair(first, second, epsilon):
    """δ(ε) of two releases, each (vector, σ)."""
    loss, probability = [], []
    for vector, sigma in (first, second):
        z, p = losses(np.array([vector]), [sigma])
        keep = p[0] > 1e-17
        loss.append((np.dot(vector, vector) - 2 * z[keep]) / (2 * sigma**2))
        probability.append(p[0][keep])
    total = loss[0][:, None] + loss[1]
    return float(probability[0] @ -np.expm1(np.minimum(epsilon - total, 0)) @ probability[1])


def in_groups_of_size(vectors, sigmas, most=1 << 22):
    """Indices of cases of similar cost, in pieces that fit into memory."""
    spread = sigmas * np.maximum(np.linalg.norm(vectors, axis=1), 1)
    sizes = np.array([next_power(20 * s + 2) for s in spread])
    for size in np.unique(sizes):
        yield from np.array_split(np.flatnonzero(sizes == size), 1 + np.count_nonzero(sizes == size) * size // most)


def random_vectors(rng, n):
    """Integer vectors of up to six entries -4..4, not zero."""
    vectors = rng.integers(-4, 5, (n, 6)) * (np.arange(6) < rng.integers(1, 7, n)[:, None])
    vectors[~vectors.any(axis=1), 0] = 1
    return vectors


def shift_of(vector, sigma):
    return Shift(int(np.dot(vector, vector)), sigma, max(1, int(np.count_nonzero(vector))))


def log_uniform(rng, low, high, n):
    return np.exp(rng.uniform(math.log(low), math.log(high), n))


def test_the_oracle_is_that_of_a_sum_over_all_noise():
    for vector, sigma, epsilon in [((2,), 2.5, 0.3), ((1, -3), 2.2, 1.0), ((4, 0), 2.5, 0.0), ((-1, -1), 3, 0.1)]:
        k = np.arange(-25, 26)
        p = np.exp(-(k**2) / (2 * sigma**2))
        p /= p.sum()
        total = 0.0
        for noise in itertools.product(zip(k, p, strict=True), repeat=len(vector)):
            loss = sum(x * x - 2 * x * n for x, (n, _) in zip(vector, noise, strict=True)) / (2 * sigma**2)
            total += max(0, 1 - math.exp(epsilon - loss)) * math.prod(q for _, q in noise)
        assert exact_deltas(np.array([vector]), [sigma], [epsilon])[0] == pytest.approx(total, rel=1e-10)


# --- soundness ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [500, pytest.param(3000, marks=pytest.mark.long)])
def test_thousands_of_calibrated_mechanisms_are_what_they_claim(n):
    rng = np.random.default_rng(1)
    vectors = random_vectors(rng, n)
    epsilons, deltas = log_uniform(rng, 0.3, 8, n), log_uniform(rng, 1e-4, 0.5, n)
    chosen = [
        smallest_sigma(Privacy(e, d).noise_multiplier, int(v @ v))
        for e, d, v in zip(epsilons, deltas, vectors, strict=True)
    ]
    stds = np.array([sigma.std for sigma in chosen])
    exact = np.empty(n)
    for piece in in_groups_of_size(vectors, stds):
        exact[piece] = exact_deltas(vectors[piece], stds[piece], epsilons[piece])
    assert np.all(exact <= deltas + FFT_ERROR)
    for v, sigma, e, d, truth in zip(vectors, chosen, epsilons, deltas, exact, strict=True):
        shifts = [shift_of(v, sigma)]
        assert truth <= accounting.delta(shifts, e) + FFT_ERROR
        assert accounting.delta(shifts, e) <= d
        assert accounting.epsilon(shifts, d) <= e


@pytest.mark.parametrize("n", [700, pytest.param(5000, marks=pytest.mark.long)])
def test_thousands_of_other_mechanisms_are_what_they_claim(n):
    rng = np.random.default_rng(2)
    vectors = random_vectors(rng, n)
    numerators = np.floor(2 * 64 + 1 + 64 * log_uniform(rng, 1e-3, 30, n)).astype(int)
    stds = numerators / 64
    epsilons = log_uniform(rng, 1e-3, 8, n) * (rng.random(n) < 0.9)
    exact = np.empty(n)
    for piece in in_groups_of_size(vectors, stds):
        exact[piece] = exact_deltas(vectors[piece], stds[piece], epsilons[piece])
    for v, a, e, truth in zip(vectors, numerators, epsilons, exact, strict=True):
        shifts = [shift_of(v, Sigma(int(a), 6))]
        claimed = accounting.delta(shifts, e)
        assert truth <= claimed + FFT_ERROR
        if 1e-300 < claimed < 1:  # the epsilon at that delta is this one again, but for the rounding outward
            assert accounting.epsilon(shifts, claimed) <= e * (1 + 1e-9) + 1e-9
            assert accounting.delta(shifts, accounting.epsilon(shifts, claimed)) <= claimed * (1 + 1e-9)


def test_noise_of_the_continuous_sigma_alone_is_caught():
    kappa = Privacy(LN3, 0.05).noise_multiplier
    without = exact_deltas(np.array([[2]]), [2 * kappa], [LN3])[0]
    assert without == pytest.approx(0.0512, abs=5e-5)
    assert without > 0.05
    assert exact_deltas(np.array([[2]]), [smallest_sigma(kappa, 4).std], [LN3])[0] <= 0.05


def test_small_deltas_of_one_coordinate_in_sums_of_positive_terms():
    """What the FFT cannot see: all terms of the sum are positive, so that it is exact to 1e-12 relative."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        delta_1, a = int(rng.integers(1, 5)), int(rng.integers(130, 1000))
        shifts, sigma = [Shift(delta_1**2, Sigma(a, 6), 1)], a / 64
        epsilon = float(rng.uniform(0, 8 * delta_1 / sigma))
        k = np.arange(-int(20 * sigma), int(20 * sigma) + 1)
        p = np.exp(-(k**2) / (2 * sigma**2))
        loss = (delta_1**2 - 2 * k * delta_1) / (2 * sigma**2)
        truth = math.fsum(p * -np.expm1(np.minimum(epsilon - loss, 0))) / math.fsum(p)
        assert truth <= accounting.delta(shifts, epsilon) * (1 + 1e-12)


def test_compositions_of_two_sigmas():
    rng = np.random.default_rng(4)
    for _ in range(150):
        vectors, numerators = random_vectors(rng, 2)[:, :3], rng.integers(2 * 64 + 1, 8 * 64, 2)
        vectors[:, 0] += vectors[:, 0] == 0
        epsilon = float(rng.uniform(0, 4))
        truth = exact_delta_of_pair(*zip(vectors, numerators / 64, strict=True), epsilon)
        shifts = [shift_of(v, Sigma(int(a), 6)) for v, a in zip(vectors, numerators, strict=True)]
        assert truth <= accounting.delta(shifts, epsilon) + FFT_ERROR


def test_groups():
    rng = np.random.default_rng(5)
    for _ in range(300):
        size, sigma = int(rng.integers(2, 5)), Sigma(int(rng.integers(129, 800)), 6)
        people = rng.integers(-2, 3, (size, 4))
        squared = max(1, int((people**2).sum(axis=1).max()))
        claimed = group_shifts([Shift(squared, sigma, 4)], size)
        epsilon = float(rng.uniform(0, 3))
        assert exact_deltas(people.sum(axis=0)[None], [sigma.std], [epsilon])[0] <= (
            accounting.delta(claimed, epsilon) + FFT_ERROR
        )
        worst = size * people[:1]
        alone = [shift_of(people[0], sigma)]
        assert exact_deltas(worst, [sigma.std], [epsilon])[0] <= (
            accounting.delta(group_shifts(alone, size), epsilon) + FFT_ERROR
        )


def test_inputs_chosen_from_earlier_outputs():
    """Two steps, the second change 3 or 0 and at another place, by what the first output was: summed exactly."""
    sigma, epsilon = Sigma(160, 6), 0.4
    k = np.arange(-60, 61)
    p = np.exp(-(k**2) / (2 * sigma.std**2))
    p /= p.sum()
    loss = (1 - 2 * k) / (2 * sigma.std**2)
    for seed in range(20):
        # after a first change of 1, one of norm at most 2 as the first output says
        second = np.random.default_rng(seed).integers(-2, 3, len(k))[:, None]
        after = (second**2 - 2 * k * second) / (2 * sigma.std**2)
        truth = np.sum(p[:, None] * p * -np.expm1(np.minimum(epsilon - loss[:, None] - after, 0)))
        assert truth <= accounting.delta([Shift(1 + 4, sigma, 2)], epsilon)


# --- tightness ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("std", "change"), [(50, 12), (50, 50), (128, 64), (300, 300), (1000, 400)])
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.05])
def test_little_is_lost_for_a_large_sigma(std, change, delta):
    """The excess of δ is what 2/σ² of the noise is worth; at σ = 128 and δ = .05, and beyond, it is below 1e-3."""
    shifts = [Shift(change**2, Sigma(std, 0), 1)]
    epsilon = accounting.epsilon(shifts, delta)
    k = np.arange(-12 * std, 12 * std + 1)
    loss = (change**2 - 2 * k * change) / (2 * std**2)

    def exact(std_of_loss):
        losses = loss * (std / std_of_loss) ** 2
        p = np.exp(-(k**2) / (2 * std_of_loss**2))
        return math.fsum(p * -np.expm1(np.minimum(epsilon - losses, 0))) / math.fsum(p)

    assert exact(std) <= delta
    assert exact(std * (1 - 2.1 / std**2)) >= delta * (1 - 1e-9)
    if std >= 300 or (std >= 128 and delta >= 0.05):
        assert exact(std) >= delta * (1 - 1e-3)


@pytest.mark.parametrize(("sigma", "sensitivity"), [(16, 8), (16, 1), (50, 50), (3, 1)])
@pytest.mark.parametrize("epsilon", [0.1, LN3, 3.0])
def test_the_privacy_loss_distribution_of_dp_accounting(sigma, sensitivity, epsilon):
    theirs = privacy_loss_distribution.from_discrete_gaussian_mechanism(
        float(sigma), sensitivity=sensitivity
    ).get_delta_for_epsilon(epsilon)
    exact, before = exact_deltas(np.full((2, 1), sensitivity), [sigma] * 2, [epsilon, epsilon - 1e-4])
    ours = accounting.delta([Shift(sensitivity**2, Sigma(sigma, 0), 1)], epsilon)
    assert exact - FFT_ERROR <= theirs <= before + 1e-10  # pessimistic, on a grid of losses of 1e-4
    assert exact - FFT_ERROR <= ours
    if sigma >= 16:  # 2/σ² of the noise, times at most 30, is the excess of δ
        assert ours <= theirs * (1 + 60 / sigma**2) + 1e-10


# --- floats ---------------------------------------------------------------------------------------


def true_delta(mu_squared, epsilon):
    """δ of the continuous mechanism in many digits."""
    mu = mpmath.sqrt(mpmath.mpf(mu_squared.numerator) / mu_squared.denominator)
    x = mpmath.mpf(epsilon) / mu - mu / 2
    first, second = mpmath.erfc(x / mpmath.sqrt(2)), mpmath.erfc((x + mu) / mpmath.sqrt(2))
    return (first - mpmath.exp(mpmath.mpf(epsilon)) * second) / 2


DIGITS = 100  # of which differences of probabilities, each to a relative error, take some thirty


@mpmath.workdps(DIGITS)
def epsilon_is_right(squared, sigma, delta):
    mu_squared = squared / (sigma.variance - 4)
    epsilon = accounting.epsilon([Shift(squared, sigma, 1000)], delta)
    if mu_squared > 10**6:  # exp(ε) has millions of digits; ε/μ² → 1/2
        mu = math.isqrt(math.ceil(mu_squared))
        return mu_squared / 2 - 10 * mu <= epsilon <= mu_squared / 2 + 40 * mu
    slack = 1e-9 if delta < 0.999 else 1e-4
    least = true_delta(mu_squared, epsilon * (1 - slack) - 1e-11) if epsilon > 0 else 1
    return true_delta(mu_squared, epsilon) <= mpmath.mpf(delta) <= least


@pytest.mark.parametrize("sigma", [Sigma(2**40 - 1, 0), Sigma(10**8, 0), Sigma(7, 1), Sigma(2**32 + 1, 31)])
def test_epsilon_is_never_below_the_truth_and_hardly_above(sigma):
    deltas = [1e-300, 1e-100, 1e-20, 1e-6, 0.05, 0.4, 0.9, 0.999, 1 - 2**-53]
    cases = itertools.product([1, 10**4, 10**8, 10**12, 10**16], deltas)
    assert [(squared, delta) for squared, delta in cases if not epsilon_is_right(squared, sigma, delta)] == []


@mpmath.workdps(DIGITS)
def delta_is_right(squared, sigma, epsilon):
    mu_squared = squared / (sigma.variance - 4)
    claimed = accounting.delta([Shift(squared, sigma, 1000)], epsilon)
    if epsilon > 1e3 or mu_squared > 10**6:
        return 0 < claimed <= 1
    truth = true_delta(mu_squared, epsilon)
    return truth <= mpmath.mpf(claimed) and (claimed <= float(truth) * (1 + 2e-9) or claimed < 1e-322)


@pytest.mark.parametrize("sigma", [Sigma(2**40 - 1, 0), Sigma(10**7, 0), Sigma(10**5, 0), Sigma(7, 1)])
def test_delta_is_never_below_the_truth_and_hardly_above(sigma):
    cases = itertools.product([1, 10**4, 10**8, 10**12], [0.0, 1e-6, 1e-2, 1.0, 10.0, 1e3, 1e6, 1e300])
    assert [(squared, epsilon) for squared, epsilon in cases if not delta_is_right(squared, sigma, epsilon)] == []


@pytest.mark.parametrize("size", [1, 50, 100, 1000])
def test_sensitivities_of_any_number_of_digits(size):
    shifts = [Shift(10**size, Sigma(5, 1), 10**30)]
    assert accounting.zcdp_rho(shifts) == Fraction(10**size * 2, 25)
    with mpmath.workdps(2 * size + 50):
        mu = mpmath.sqrt(mpmath.mpf(10) ** size * 4 / 9)
        if size == 1000:
            assert accounting.gdp_mu(shifts) == accounting.epsilon(shifts, 0.1) == math.inf
            assert accounting.delta(shifts, 1e300) == 1
        else:
            assert mu <= mpmath.mpf(accounting.gdp_mu(shifts)) <= mu * (1 + mpmath.mpf(2) ** -51)
            assert accounting.epsilon(shifts, 0.1) >= mu**2 / 2 if size > 1 else True


@given(st.integers(1, 10**40), st.integers(2**9 + 1, 2**30), st.integers(1, 10**40), st.integers(2**9 + 1, 2**30))
def test_mu_and_rho_are_sums_of_squares(first, a, second, b):
    shifts = [Shift(first, Sigma(a, 8), 1), Shift(second, Sigma(b, 8), 1)]
    exact = first / (Fraction(a, 256) ** 2 - 4) + second / (Fraction(b, 256) ** 2 - 4)
    mu = Fraction(accounting.gdp_mu(shifts))
    assert exact <= mu**2 <= exact * (1 + Fraction(1, 2**50))
    assert accounting.zcdp_rho(shifts) == (first / Fraction(a, 256) ** 2 + second / Fraction(b, 256) ** 2) / 2


def test_the_terms_with_eta_are_counted_and_those_of_nothing_are_not():
    sigma, many = Sigma(7, 1), 10**30
    few, all_of_them = [Shift(4, sigma, 1)], [Shift(4, sigma, many)]
    with mpmath.workdps(60):
        eta = mpmath.mpf("2.01") * mpmath.exp(-8 * mpmath.pi**2)
        loss = many * mpmath.log((1 + 3 * eta) / (1 - 3 * eta))
        more = accounting.epsilon(all_of_them, 1e-6) - accounting.epsilon(few, 1e-6)
        assert loss <= more <= loss * 1.01 + 1e-3
    assert accounting.delta(all_of_them, 1.0) > accounting.delta(few, 1.0) * 1.0003
    assert accounting.delta([*few, Shift(0, sigma, many)], 1.0) == accounting.delta(few, 1.0)


def test_constants_of_the_lemma():
    with mpmath.workdps(60):
        series = 2 * sum(mpmath.exp(-8 * mpmath.pi**2 * m**2) for m in range(1, 5))
        eta = mpmath.mpf("2.01") * mpmath.exp(-8 * mpmath.pi**2)
        assert series <= eta
        assert (1 + series) / (1 - series) <= 1 + 3 * eta
        assert 3 * eta <= mpmath.mpf(accounting._THREE_ETA.numerator) / accounting._THREE_ETA.denominator
        assert mpmath.log((1 + 3 * eta) / (1 - 3 * eta)) <= (
            mpmath.mpf(accounting._LOSS.numerator) / accounting._LOSS.denominator
        )


@pytest.mark.parametrize("variance", [5, 7.3, 30])
def test_discrete_noise_is_a_rounding_of_continuous_noise(variance):
    """The lemma by numbers, with s = .4 that its η is seen; the marginal of Z by a sum over y of steps of 1/64."""
    s = 0.4
    eta = 2.01 * math.exp(-2 * math.pi**2 * s**2)
    y, k = np.arange(-60, 60, 1 / 64)[:, None], np.arange(-80, 81)
    rounding = np.exp(-((k - y) ** 2) / (2 * s**2))
    rounding /= rounding.sum(axis=1, keepdims=True)
    density = np.exp(-(y**2) / (2 * (variance - s**2)))
    rounded = (density * rounding).sum(axis=0) / density.sum()
    discrete = np.exp(-(k**2) / (2 * variance))
    ratio = (discrete / discrete.sum())[70:91] / rounded[70:91]
    assert np.all(np.abs(ratio - 1) <= 3 * eta)
    assert np.abs(ratio - 1).max() >= eta / 1e3  # there is something to bound


# --- sigma ----------------------------------------------------------------------------------------


@given(st.floats(1e-6, 1e6), st.integers(1, 10**10))
def test_sigma_is_the_smallest_of_its_denominator(kappa, squared):
    sigma = smallest_sigma(kappa, squared)
    needed = Fraction(kappa) ** 2 * squared + 4
    assert sigma.variance >= needed
    assert Sigma(sigma.a - 1, sigma.j).variance < needed
    assert sigma.j == 0 or 2**23 <= sigma.a <= 2**24
    assert sigma.j > 0 or sigma.a >= 2**23


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.3, LN3, 10, 100, 1000])
def test_a_calibrated_sigma_has_its_epsilon_back(epsilon):
    wrong = {}
    for delta in (1e-300, 1e-100, 1e-20, 1e-6, 0.05, 0.4, 0.9, 0.999):
        kappa = Privacy(epsilon, delta).noise_multiplier
        squared = 10 ** max(0, int(2 * (11 - math.log10(kappa))) - 1)  # σ is close to 2^40
        shifts = [Shift(squared, smallest_sigma(kappa, squared), 10**9)]
        back = accounting.epsilon(shifts, delta), accounting.delta(shifts, epsilon)
        least = epsilon * (1 - 1e-6) - 1e-8 if delta < 0.9 else -math.inf
        if not (least <= back[0] <= epsilon and back[1] <= delta):
            wrong[delta] = back
    assert wrong == {}


def test_a_sigma_of_a_small_kappa_is_above_2():
    sigma = smallest_sigma(1e-9, 1)
    assert sigma == Sigma(2**23 + 1, 22)
    assert accounting.gdp_mu([Shift(1, sigma, 1)]) > 1000


def test_a_sigma_of_2_to_the_40_is_refused():
    assert smallest_sigma(1.0, 2**80 - 2**41 - 3) == Sigma(2**40 - 1, 0)
    with pytest.raises(ValueError, match=r"^noise_multiplier \* sqrt\(.*\) must be below 2\*\*40, got"):
        smallest_sigma(1.0, 2**80 - 2**41 - 2)


# --- edges and arguments --------------------------------------------------------------------------


@pytest.mark.parametrize("shifts", [[], [Shift(0, Sigma(3, 0), 0)], [Shift(0, Sigma(3, 0), 7)] * 2])
def test_no_change_costs_nothing(shifts):
    assert accounting.epsilon(shifts, 1e-9) == 0
    assert accounting.delta(shifts, 0) == 0
    assert accounting.gdp_mu(shifts) == 0
    assert accounting.zcdp_rho(shifts) == 0
    assert isinstance(accounting.zcdp_rho(shifts), Fraction)


def test_epsilon_is_0_where_delta_is_large():
    shifts = [Shift(1, Sigma(1000, 0), 1)]
    at_zero = accounting.delta(shifts, 0)
    assert accounting.epsilon(shifts, at_zero) == 0
    assert 0 < accounting.epsilon(shifts, at_zero * (1 - 1e-6)) < 1e-8


def test_a_delta_that_a_float_cannot_hold_is_not_0():
    assert 0 < accounting.delta([Shift(1, Sigma(1000, 0), 1)], 100) < 1e-300


@pytest.mark.parametrize("sigma", [Sigma(2, 0), Sigma(1, 0), Sigma(2**24, 23), Sigma(2**40, 0), Sigma(10**400, 3)])
def test_a_sigma_out_of_range_is_refused(sigma):
    with pytest.raises(ValueError, match=r"^sigma must be above 2 and below 2\*\*40, got"):
        accounting.epsilon([Shift(1, sigma, 1)], 0.1)


@pytest.mark.parametrize(
    ("shift", "name"),
    [
        (Shift(-1, Sigma(3, 0), 1), "squared_sensitivity"),
        (Shift(1.0, Sigma(3, 0), 1), "squared_sensitivity"),
        (Shift(1, Sigma(3.5, 0), 1), "sigma.a"),
        (Shift(1, Sigma(3, -1), 1), "sigma.j"),
        (Shift(1, Sigma(3, 65), 1), "sigma.j"),
        (Shift(1, Sigma(3, 0), 0), "n_coordinates"),
        (Shift(1, Sigma(3, 0), 10**31), "n_coordinates"),
        ((1, Sigma(3, 0), 1), "shifts"),
    ],
)
def test_shifts_out_of_range_are_refused_by_name(shift, name):
    for call in (
        accounting.gdp_mu,
        accounting.zcdp_rho,
        lambda shifts: group_shifts(shifts, 2),
    ):
        with pytest.raises(ValueError, match=f"^{name} must be "):
            call([shift])


def test_other_arguments_out_of_range_are_refused_by_name():
    shifts = [Shift(1, Sigma(3, 0), 1)]
    for value in (0, 1, -0.1, math.nan, "x", None):
        with pytest.raises(ValueError, match=r"^delta must be "):
            accounting.epsilon(shifts, value)
    for value in (-1e-9, math.nan, math.inf, None):
        with pytest.raises(ValueError, match=r"^epsilon must be "):
            accounting.delta(shifts, value)
    for value in (0, -1, 1.5):
        with pytest.raises(ValueError, match=r"^size must be "):
            group_shifts(shifts, value)
    for value in (0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=r"^noise_multiplier must be "):
            smallest_sigma(value, 1)
    for value in (0, -1, 1.5):
        with pytest.raises(ValueError, match=r"^squared_sensitivity must be "):
            smallest_sigma(1.0, value)
