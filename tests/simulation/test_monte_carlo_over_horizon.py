"""Matrix mechanisms in a study, beside filters that start with them. The twin has explicit matrices."""

import functools
import math

import numpy as np
import pytest
from helpers.chains import unit_normals
from helpers.designs import designed
from helpers.interrupts import ctrl_c
from scipy import linalg

import dpfast as dp
from dpfast.mechanisms.operators.dense import Dense

SIGMAS = 5.5  # of a normal: 4e-8 a comparison, some 20 of them
N = 48
PRIVACY = dp.Privacy(1.0, 0.05)
MODEL = dp.MarkovChain([[0.8, 0.2], [0.4, 0.6]], levels=[0.0, 1.0])
FILTER, PREFILTER = dp.Filter([1, 0.5], [1, -0.8]), dp.Filter([1, -0.2], [1, -0.6])
TARGET = dp.Toeplitz.of(FILTER, N)
SUM = dp.running_sum(N)


@functools.cache
def dense():
    return dp.MatrixMechanism(
        *("repeated", SUM, PRIVACY, Dense(np.tri(N)[3::4]), Dense(np.repeat(np.eye(N // 4), 4, axis=0))),
        noise="laplace",
        model=MODEL,
        centre=0.25,
        lag=3,
        unbiased=False,
    )


@functools.cache
def over_horizon():
    return [
        dp.square_root(FILTER, PRIVACY, horizon=N),
        dp.buffered_toeplitz(FILTER, PRIVACY, horizon=N, n_buffers=2),
        dp.decayed_sum(FILTER, PRIVACY, horizon=N, noise="laplace"),
        dp.input_perturbation(TARGET, PRIVACY),
        dp.output_perturbation(TARGET, PRIVACY),
        dp.fourier_perturbation(FILTER, PRIVACY, horizon=N, n_coefficients=9),
        dp.binary_tree(SUM, PRIVACY, name="honaker"),
        dp.binary_tree(SUM, PRIVACY, estimator="plain", noise="laplace", name="plain"),
        dense(),
    ]


@functools.cache
def stationary():
    return [
        designed(dp.zero_forcing, FILTER, PRIVACY, tolerance=0.1),
        designed(dp.lmmse, FILTER, PRIVACY, MODEL, lag=2, prefilter=PREFILTER),
        designed(dp.lmmse, FILTER, PRIVACY, MODEL, name="smoother", prefilter=PREFILTER),
    ]


def both():
    return [*over_horizon(), *stationary()]


def run(mechanisms, model=MODEL, **options):
    return dp.monte_carlo(mechanisms, model, **({"n_streams": 20, "n_samples": N, "seed": 1} | options))


@pytest.mark.parametrize("i", range(9))
def test_errors_are_those_of_explicit_matrices(i):
    mechanism = over_horizon()[i]
    u = MODEL.sample(5, N, seed=7)
    a, c, b = linalg.toeplitz(mechanism.target.coefficients, np.zeros(N)), *matrices(mechanism)
    noise = unit_normals(7, 5, len(c) if mechanism.noise == "gaussian" else 3 * len(c))
    if mechanism.noise == "laplace":
        x, y, z = np.moveaxis(noise.reshape(5, len(c), 3), 2, 0)
        noise = np.hypot(x, y) * z  # |x + iy| is Rayleigh: times a normal, Laplace of scale one
    centre = mechanism.centre
    estimate = ((u - centre) @ c.T + mechanism.noise_scale * noise) @ b.T + centre * a.sum(axis=1)
    expected = ((estimate - u @ a.T) ** 2).mean(axis=1)
    found = run(mechanism, n_streams=5, seed=7)[mechanism.name].stream_mse
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def matrices(mechanism):
    """By what the operators do to unit vectors."""
    rows = mechanism.strategy.shape[0]
    return mechanism.strategy.apply(np.eye(N)).T, mechanism.reconstruction.apply(np.eye(rows)).T


@pytest.fixture(scope="module", params=[1500, pytest.param(4000, marks=pytest.mark.long)])
def study(request):
    return run(both(), n_streams=request.param)


def test_simulated_errors_have_the_predicted_mean(study):
    far = {}
    for x in study:
        predicted, std = x.predicted_rmse**2, x.stream_mse.std()
        off = abs(x.stream_mse.mean() - predicted) / std * math.sqrt(x.n_streams)
        if not (off < SIGMAS and std < predicted):  # so that 5.5 of them are below 9 %
            far[x.name] = off, std / predicted
    assert len(list(study)) == 12
    assert far == {}


def test_another_model_is_simulated_with_the_error_that_is_predicted():
    other = dp.ARMA([0.5], [1, 0.7], mean=2.0)
    for x in run(both(), other, n_streams=800):
        assert abs(x.mse - x.predicted_rmse**2) < SIGMAS * x.stream_mse.std() / math.sqrt(x.n_streams)


def test_all_mechanisms_start_with_a_matrix_mechanism():
    study = run(both())
    assert study.burn_in == 0
    alone = run(stationary(), burn_in=0)
    for x in stationary():
        np.testing.assert_array_equal(study[x.name].stream_mse, alone[x.name].stream_mse)
        assert study[x.name].predicted_rmse == math.sqrt(x.step_mse(N, MODEL).mean()) == alone[x.name].predicted_rmse
    settled = run(stationary())
    assert settled.burn_in > 0
    assert [x.predicted_rmse for x in settled] == [math.sqrt(x.predict(MODEL)) for x in stationary()]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_neither_threads_nor_company_change_a_bit(n_threads):
    whole = run(both(), n_streams=21)
    few = run(both()[::-1], n_streams=13, n_threads=n_threads)
    for x in whole:
        np.testing.assert_array_equal(x.stream_mse[:13], few[x.name].stream_mse)
    alone = run(over_horizon()[4], n_threads=n_threads)
    np.testing.assert_array_equal(alone["output perturbation"].stream_mse, whole["output perturbation"].stream_mse[:20])


def test_comparisons_of_both_kinds_are_paired():
    """Output perturbation is the same either way, but for the noise of what the filter does beyond the horizon."""
    matrix, filter = over_horizon()[4], dp.output_perturbation(FILTER, PRIVACY, name="filter")
    x, y = (run([matrix, filter])[name].stream_mse for name in (matrix.name, "filter"))
    np.testing.assert_allclose(x / y, (matrix.noise_std / filter.noise_std) ** 2, rtol=1e-9)


def test_single_precision_is_for_filters():
    single, double = (run(both(), dtype=x) for x in ("float32", "float64"))
    for x in over_horizon():
        np.testing.assert_array_equal(single[x.name].stream_mse, double[x.name].stream_mse)
    assert (single["LZF"].stream_mse != double["LZF"].stream_mse).any()


@pytest.mark.parametrize(
    ("mechanisms", "options", "message"),
    [
        (dense, {"n_samples": 47}, r"n_samples must be the horizon of 'repeated', 48, got 47: .* give that, or design"),
        (both, {"burn_in": 3}, r"burn_in must be 0 with 'square root', got 3: .* leave it out"),
        (
            lambda: [dense(), dp.square_root(dp.running_sum(9), PRIVACY)],
            {},
            "n_samples must be the horizon of 'square root', 9",
        ),
    ],
)
def test_samples_that_are_not_the_horizon_are_refused(mechanisms, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        run(mechanisms(), **options)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_bar_reaches_its_end(capsys, monkeypatch, n_threads):
    totals = []

    class Bar:
        def __init__(self, total, **_):
            self.n, self.total = 0, total
            totals.append(self)

        def update(self, n):
            self.n += n

        __enter__ = lambda self: self  # noqa: E731
        __exit__ = lambda *_: None  # noqa: E731

    monkeypatch.setattr("tqdm.tqdm", Bar)
    run(both(), n_threads=n_threads, progress=True)
    [bar] = totals
    assert bar.n == bar.total >= 20 * N * len(both())


def test_ctrl_c_ends_it_soon():
    slow = [dp.square_root(dp.running_sum(2**16), PRIVACY)]
    with ctrl_c(0.3), pytest.raises(KeyboardInterrupt):
        run(slow, n_streams=10**5, n_samples=2**16)
