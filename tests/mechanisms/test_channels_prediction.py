"""Predicted errors of several streams that depend on one another, against sums over impulse responses."""

import math

import numpy as np
import pytest
from scipy import signal

import dpfast as dp

LONG = 600  # steps after which nothing is left of the systems here


def random_filter(rng, order):
    """Coefficients b and a of a stable filter."""
    poles = rng.uniform(-0.8, 0.8, order)
    return rng.standard_normal(order + 1), np.atleast_1d(np.poly(poles))


def naive_impulses(entries):
    """Impulse responses (p, m, LONG) of coefficients, by scipy."""
    one = np.eye(1, LONG)[0]
    return np.array([[signal.lfilter(b, a, one) for b, a in row] for row in entries])


def naive_product(first, second):
    """Impulse responses of one system behind the other."""
    (p, _, _), (q, m, _) = first.shape, second.shape
    product = np.zeros((p, m, LONG))
    for i in range(p):
        for j in range(m):
            product[i, j] = sum(np.convolve(first[i, k], second[k, j])[:LONG] for k in range(q))
    return product


def naive_model(ar, ma, root):
    """Impulse responses (m, m, LONG) of x_t = A x_{t-1} + w_t + B w_{t-1} with w = root e."""
    states = [root, ar @ root + ma @ root]
    while len(states) < LONG:
        states.append(ar @ states[-1])
    return np.stack(states, axis=-1)


def naive_errors(f, g, h, model, lag, std):
    """Errors (p,) as sums of squares over time."""
    late = np.concatenate([np.zeros((*f.shape[:2], lag)), f], axis=-1)[..., :LONG]
    missed = late - naive_product(h, g)
    return (naive_product(missed, model) ** 2).sum(axis=(1, 2)) + std**2 * (h**2).sum(axis=(1, 2)), missed.sum(axis=-1)


def random_case(seed):
    """A mechanism that nobody designed, with parts of any sizes, and correlated streams."""
    rng = np.random.default_rng(seed)
    m, p, q = rng.integers(1, 7, 3)
    shapes = {"f": (p, m), "g": (q, m), "h": (p, q)}
    parts = {
        k: [[random_filter(rng, rng.integers(0, 5)) for _ in range(n)] for _ in range(rows)]
        for k, (rows, n) in shapes.items()
    }
    ar = rng.standard_normal((m, m))
    ar *= 0.8 / np.abs(np.linalg.eigvals(ar)).max()
    ma, root = rng.standard_normal((2, m, m))
    return rng, parts, (ar, ma, root)


def built(parts, models, lag):
    f, g, h = (dp.FilterMatrix([[dp.Filter(b, a) for b, a in row] for row in parts[k]]) for k in "fgh")
    demand = dp.Privacy(1, 1e-3, adjacency="one_input")
    return dp.ChannelsMechanism("mine", f, demand, g, h, models=models, lag=lag)


@pytest.mark.parametrize("seed", range(12))
def test_errors_on_correlated_streams_are_sums_over_impulse_responses(seed):
    rng, parts, (ar, ma, root) = random_case(seed)
    lag, means = int(rng.integers(0, 6)), rng.standard_normal((2, len(ar)))
    streams = dp.VectorARMA([ar], [ma], innovation_covariance=root @ root.T, mean=means[0])
    made = built(parts, streams, lag)
    f, g, h = (naive_impulses(parts[k]) for k in "fgh")
    wanted, gain = naive_errors(f, g, h, naive_model(ar, ma, root), lag, made.noise_std)
    np.testing.assert_allclose(made.output_mse, wanted, rtol=1e-9)
    assert made.predicted_mse == pytest.approx(wanted.sum(), rel=1e-9)
    moved = dp.VectorARMA([ar], [ma], innovation_covariance=root @ root.T, mean=means[1])
    np.testing.assert_allclose(made.predict_outputs(moved), wanted + (gain @ (means[1] - means[0])) ** 2, rtol=1e-9)
    assert made.predict(streams) == pytest.approx(made.predicted_mse, rel=1e-12)


def test_independent_streams_are_the_same_as_one_model_of_all():
    chain = dp.MarkovChain([[0.9, 0.1], [0.2, 0.8]], levels=[0, 3])
    models = [dp.ARMA([1, 0.4], [1, -0.7], mean=2.0), chain, dp.ARMA([0.3], [1, 0.2, 0.5])]
    target = dp.FilterMatrix([[1, 2, 3], [dp.Filter([1], [1, -0.9]), 0, -1]])
    made = dp.lmmse(target, dp.Privacy(1, 0.1, adjacency="each_input"), models, lag=1, tolerance=0.1)
    np.testing.assert_allclose(made.predict_outputs(dp.VectorARMA.independent(models)), made.output_mse, rtol=1e-10)
    assert np.array_equal(made.predict_outputs(models), made.output_mse)


def test_one_stream_is_predicted_as_a_mechanism_of_one():
    smooth, demand, model = dp.Filter([0.1], [1, -0.9]), dp.Privacy(1, 1e-3), dp.ARMA([1], [1, -0.5], mean=1.0)
    alone = dp.lmmse(smooth, demand, model, lag=2, tolerance=0.01)
    several = dp.ChannelsMechanism(
        *("mine", dp.FilterMatrix([[smooth]]), demand, dp.FilterMatrix([[alone.prefilter]])),
        dp.FilterMatrix([[alone.receiver.filters()[0]]]),
        models=(model,),
        lag=2,
    )
    assert several.predicted_mse == pytest.approx(alone.predicted_mse, rel=1e-10)
    other = dp.ARMA([2, 1], [1, 0.3], mean=-4.0)
    assert several.predict([other]) == pytest.approx(alone.predict(other), rel=1e-10)


def test_what_does_not_distort_errs_alike_on_all_streams():
    made = dp.zero_forcing(dp.total(2), dp.Privacy(1, 1e-3, adjacency="one_input"))
    streams = dp.VectorARMA([[[0.5, 0.4], [0, 0.8]]], mean=[100, -3])
    assert made.predict(streams) == pytest.approx(made.predicted_mse, rel=1e-9)


def test_means_of_one_model_of_all_are_taken_off_and_put_back():
    ones = dp.FilterMatrix.diagonal([1, 1])
    streams = dp.VectorARMA([[[0.5, 0.4], [0, 0.8]]], mean=[100, -3])
    made = dp.ChannelsMechanism("mine", ones, dp.Privacy(9, 0.1, adjacency="one_input"), ones, ones, models=streams)
    paths = made.simulate(np.full((2, 50), [[100.0], [-3.0]]), seed=1)
    assert np.abs(paths.privatized).max() < 10 * made.noise_std
    np.testing.assert_allclose(paths.estimate - paths.privatized, np.full((2, 50), [[100.0], [-3.0]]))


def test_simulated_errors_of_a_wrong_model_are_the_predicted_ones():
    """Designed for streams apart, with other means; they are correlated."""
    models = [dp.ARMA([1], [1, -0.5])] * 2
    target = dp.FilterMatrix([[1, 1], [1, -1]]) * dp.Filter([0.2], [1, -0.8])
    made = dp.lmmse(target, dp.Privacy(1, 0.1, adjacency="one_input"), models, lag=2, tolerance=0.05)
    streams = dp.VectorARMA([[[0.5, 0.2], [0, 0.7]]], innovation_covariance=[[1, 0.9], [0.9, 1]], mean=[0.5, -0.2])
    u = streams.sample(400, 250, seed=3)
    error = made.simulate(u, seed=4).estimate[..., 100:] - target.apply(u)[..., 98:248]
    of_streams = (error**2).mean(axis=-1)
    deviation = np.abs(of_streams.mean(axis=0) - made.predict_outputs(streams))
    assert (deviation <= 5 * of_streams.std(axis=0) / math.sqrt(len(u))).all()


@pytest.mark.parametrize(
    ("models", "got"),
    [
        (dp.VectorARMA([np.eye(3) / 2]), "a VectorARMA of 3 channels"),
        ([dp.ARMA([1])], "a list of length 1"),
        (dp.ARMA([1]), "ARMA"),
        ("xy", "'xy'"),
    ],
)
def test_models_of_another_number_of_channels_are_named(models, got):
    made = dp.input_perturbation(dp.total(2), dp.Privacy(1, 1e-3, adjacency="one_input"))
    words = f"models must be a sequence of 2 models, one for each input, or a VectorARMA of 2 channels, got {got}"
    with pytest.raises(ValueError, match=words):
        made.predict(models)
    with pytest.raises(ValueError, match="model must be a MarkovChain"):
        made.predict([dp.ARMA([1]), 3])
