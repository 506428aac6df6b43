"""Several correlated streams: closed forms, scipy's Lyapunov equation, a naive recursion, and scalar models."""

import copy
import pickle

import numpy as np
import pytest
from helpers.stream_statistics import SIGMAS, worst_z
from scipy import linalg

import dpfast as dp
from dpfast import ARMA, VectorARMA

AR = np.array([[[0.5, 0.2], [-0.1, 0.6]], [[0.1, 0.0], [0.3, -0.2]]])
MA = np.array([[[0.4, -0.3], [0.2, 0.1]], [[0.0, 0.2], [0.1, 0.0]], [[0.3, 0.0], [0.0, -0.5]]])
SIGMA = np.array([[1.0, 0.6], [0.6, 2.0]])
MODEL = VectorARMA(AR, MA, innovation_covariance=SIGMA, mean=[1, -2])
OMEGA = np.linspace(-3, 3, 41)


def impulse_responses(ar, ma, n):
    """The matrices Ψ_k of x = Σ Ψ_k w_{t-k}, by the recursion itself."""
    m = ar.shape[1]
    psi = []
    for t in range(n):
        now = np.eye(m) * (t == 0) + (ma[t - 1] if 0 < t <= len(ma) else 0)
        for k in range(1, min(t, len(ar)) + 1):
            now = now + ar[k - 1] @ psi[t - k]
        psi.append(now)
    return np.array(psi)


PSI = impulse_responses(AR, MA, 400)


def autocovariance(k):
    """E[x_t x_{t-k}ᵀ]."""
    return sum(PSI[j + k] @ SIGMA @ PSI[j].T for j in range(len(PSI) - k))


def test_covariance_and_spectrum_are_those_of_the_recursion():
    np.testing.assert_allclose(MODEL.covariance, autocovariance(0), rtol=1e-12)
    h = np.einsum("tij,wt->wij", PSI, np.exp(-1j * np.outer(OMEGA, np.arange(len(PSI)))))
    np.testing.assert_allclose(MODEL.psd(OMEGA), h @ SIGMA @ h.conj().swapaxes(1, 2), rtol=1e-11)
    assert MODEL.psd(0.3).shape == (2, 2)
    assert MODEL.psd(np.zeros((3, 4))).shape == (3, 4, 2, 2)


def test_samples_are_stationary_from_the_first():
    x = MODEL.sample(8000, 3, seed=11) - np.array([[1], [-2]])
    assert worst_z(x.reshape(8000, 6), 0) < SIGMAS
    pairs = [(i, s, j, t) for i in range(2) for j in range(2) for s in range(3) for t in range(s + 1)]
    products = np.stack([x[:, i, s] * x[:, j, t] for i, s, j, t in pairs], axis=1)
    assert worst_z(products, [autocovariance(s - t)[i, j] for i, s, j, t in pairs]) < SIGMAS


def test_a_sample_depends_on_seed_and_stream_alone():
    whole = MODEL.sample(9, 50, seed=5)
    np.testing.assert_array_equal(MODEL.sample(4, 50, seed=5), whole[:4])
    np.testing.assert_array_equal(MODEL.sample(9, 20, seed=5), whole[..., :20])
    assert np.abs(MODEL.sample(9, 50, seed=6) - whole).min() > 0
    assert MODEL.sample(0, 5, seed=1).shape == (0, 2, 5)


def test_state_space_has_the_covariance_of_the_lyapunov_equation():
    rng = np.random.default_rng(1)
    a, b, c, d = 0.3 * rng.standard_normal((3, 3)), *(rng.standard_normal(s) for s in ((3, 5), (4, 3), (4, 5)))
    model = VectorARMA.from_state_space(a, b, c, d, mean=7)
    p = linalg.solve_discrete_lyapunov(a, b @ b.T)
    np.testing.assert_allclose(model.covariance, c @ p @ c.T + d @ d.T, rtol=1e-11)
    assert model.mean.tolist() == [7] * 4
    assert VectorARMA.from_state_space(a, b, c) == VectorARMA.from_state_space(a, b, c, np.zeros((4, 5)))
    same = VectorARMA.from_state_space(MODEL.a, MODEL.b, MODEL.c, MODEL.d, mean=MODEL.mean)
    assert same == MODEL


def test_independent_channels_have_the_spectra_of_their_models():
    models = [ARMA([1, 0.4], [1, -0.5], mean=2), dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])]
    model = VectorARMA.independent([*models, ARMA([2])])
    spectra = np.stack([x.psd(OMEGA) for x in (*models, ARMA([2]))], axis=-1)
    np.testing.assert_allclose(model.psd(OMEGA), spectra[:, :, None] * np.eye(3), atol=1e-12)
    assert model.mean.tolist() == [2, 0.5, 0]
    public, private = ARMA([1], source="public"), ARMA([1], source="fitted-from-private")
    assert VectorARMA.independent([public, ARMA([1])]).source == "assumed"
    assert VectorARMA.independent([public, private, ARMA([1])]).source == "fitted-from-private"
    assert VectorARMA.independent([public]).source == "public"


def naive_yule_walker(x, order):
    """Biased autocovariances, and least squares over the streams padded with zeros, which has the same equations."""
    m = x.shape[1]
    rows, wanted = [], []
    for stream in x - x.mean(axis=(0, 2))[:, None]:
        padded = np.hstack([np.zeros((m, order)), stream, np.zeros((m, order))])
        for t in range(order, padded.shape[1]):
            rows.append(padded[:, t - order : t][:, ::-1].T.ravel())
            wanted.append(padded[:, t])
    found, *_ = np.linalg.lstsq(np.array(rows), np.array(wanted), rcond=None)
    left = np.array(wanted) - np.array(rows) @ found
    return found.T.reshape(m, order, m).transpose(1, 0, 2), left.T @ left / (len(x) * x.shape[2])


@pytest.mark.parametrize("order", [1, 3])
def test_a_fit_is_least_squares_over_padded_streams(order):
    x = MODEL.sample(3, 40, seed=2) * np.array([[1e3], [1e-2]])
    model = VectorARMA.fit(x, order)
    ar, sigma = naive_yule_walker(x, order)
    expected = VectorARMA(ar, innovation_covariance=sigma, mean=x.mean(axis=(0, 2)))
    scale = np.sqrt(np.diag(model.covariance))
    np.testing.assert_allclose(
        model.psd(OMEGA) / np.outer(scale, scale), expected.psd(OMEGA) / np.outer(scale, scale), atol=1e-9
    )
    assert (model.fitted_order, model.source) == (order, "fitted-from-private")


def test_a_fit_finds_the_parameters():
    """Each within 5 of its standard errors, those of least squares: (Σ ⊗ Γ⁻¹)/n."""
    n = 40_000
    truth = VectorARMA(AR[:1], innovation_covariance=SIGMA)
    found = VectorARMA.fit(truth.sample(1, n, seed=4)[0], 1)
    errors = np.sqrt(np.outer(np.diag(SIGMA), np.diag(np.linalg.inv(truth.covariance))) / n)
    assert (np.abs(found.a - AR[0]) / errors).max() < 5.5
    np.testing.assert_allclose(found.d @ found.d.T, SIGMA, atol=5.5 * 2 * np.sqrt(2 / n))


def test_a_fit_of_one_channel_is_the_scalar_one():
    x = ARMA([1], [1, -0.7, 0.2], mean=3).sample(4, 300, seed=8)
    scalar, model = ARMA.fit(x, 3), VectorARMA.fit(x[:, None], 3)
    np.testing.assert_allclose(model.psd(OMEGA)[:, 0, 0], scalar.psd(OMEGA), rtol=1e-9)


def test_fits_are_stationary_for_trends_and_sines():
    t = np.arange(2000.0)
    for u in (np.stack([t, t**2]), np.stack([np.sin(t / 50), np.cos(t / 7)])):
        assert 0.99 < np.abs(VectorARMA.fit(u, 4).poles).max() < 1


def test_poles_beyond_the_limit_are_moved_there():
    """Of one channel: a sine without an end, whose poles rounding alone keeps from the circle."""
    t = np.arange(3_000_000.0)
    model = VectorARMA.fit(np.stack([np.sin(t / 3), np.cos(t / 7)]), 2)
    assert np.abs(model.poles).max() == pytest.approx(1 - 2.1e-5, abs=1e-6)


def test_models_are_values():
    for again in (pickle.loads(pickle.dumps(MODEL)), copy.deepcopy(MODEL)):
        assert again == MODEL
        assert hash(again) == hash(MODEL)
        assert not again.a.flags.writeable
    assert MODEL != VectorARMA(AR, MA, innovation_covariance=SIGMA, mean=[1, -2], source="public")
    assert repr(MODEL) == "<VectorARMA of 2 channels, 6 states, assumed>"
    assert repr(VectorARMA.fit(MODEL.sample(1, 99, seed=1), 1)).endswith("fitted with order 1>")


GOOD = np.random.default_rng(0).standard_normal((2, 30))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: VectorARMA([[0.5]]), "autoregression must have 3 dimensions"),
        (lambda: VectorARMA([[[0.5, 1]]]), r"autoregression must have the shape \(order, m, m\), .* got \(1, 1, 2\)"),
        (lambda: VectorARMA([[[0.5]]], AR), r"moving_average must have the shape \(order, 1, 1\)"),
        (lambda: VectorARMA([[[1.0]]]), r"the streams must be stationary, with poles of modulus at most .* got 1"),
        (lambda: VectorARMA(AR, mean=[1, 2, 3]), r"mean must be a number or have the shape \(2,\)"),
        (lambda: VectorARMA(AR, innovation_covariance=[[1]]), r"innovation_covariance must have the shape \(2, 2\)"),
        (lambda: VectorARMA(AR, innovation_covariance=[[1, 2], [2, 1]]), "positive semidefinite .* eigenvalue -1"),
        (lambda: VectorARMA(AR, innovation_covariance=[[1, 0.5], [0, 1]]), "innovation_covariance must be symmetric"),
        (lambda: VectorARMA(AR, source="guess"), "source must be one of"),
        (lambda: VectorARMA.from_state_space([[0.5]], [[1]], [[1, 2]]), "a, b, c, d must have the shapes"),
        (lambda: VectorARMA.from_state_space([[0.5]], [[0]], [[1]]), "must not all be constant"),
        (lambda: VectorARMA.independent([]), "models must be a sequence of models"),
        (lambda: VectorARMA.independent(["ARMA"]), "model must be"),
        (lambda: VectorARMA.fit(GOOD, 30), "u must be .* with more than 30 samples"),
        (lambda: VectorARMA.fit(GOOD[0], 1), r"u must be \(m, time\) or \(streams, m, time\)"),
        (lambda: VectorARMA.fit(GOOD[:, :5].T, 1), "u must have more samples than channels, got 5 channels: is time"),
        (lambda: VectorARMA.fit(GOOD * [[1], [0]], 1), "in every channel, and channel 1 does not"),
        (lambda: VectorARMA.fit(np.vstack([GOOD, GOOD.sum(axis=0)]), 1), "channels that determine one another"),
    ],
)
def test_errors_name_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_white_noise_has_no_states():
    white = VectorARMA(np.zeros((0, 2, 2)), innovation_covariance=SIGMA, mean=[1, 2])
    assert white.a.shape == (0, 0)
    np.testing.assert_allclose(white.covariance, SIGMA, rtol=1e-12)
    drawn = white.sample(200, 50, seed=1)
    assert drawn.shape == (200, 2, 50)
    np.testing.assert_allclose(np.cov(np.moveaxis(drawn, 1, 0).reshape(2, -1)), SIGMA, atol=0.1)
    assert VectorARMA.fit(drawn, 0).a.shape == (0, 0)


@pytest.mark.parametrize("singular", [False, True])
def test_streams_that_are_as_different_as_numbers_keep_their_digits(singular):
    """Each deviation has all of its own, also beside one that is 1e40 times as large; and so has each covariance."""
    deviations = np.array([1, 3e20, 2e-20])
    correlation = np.ones((3, 3)) if singular else 0.4 * np.eye(3) + 0.6
    sigma = correlation * np.outer(deviations, deviations)
    model = VectorARMA(0.5 * np.eye(3)[None], innovation_covariance=sigma)
    np.testing.assert_allclose(model.covariance, sigma / 0.75, rtol=1e-13)
    np.testing.assert_allclose(model.psd(0.0), sigma / 0.25, rtol=1e-13)
