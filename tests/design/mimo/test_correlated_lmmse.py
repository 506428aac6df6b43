"""LMMSE of streams that depend on one another: MIMO.md, Riccati equations of scipy, normal equations, simulation."""

import math

import numpy as np
import pytest
from scipy import linalg

import dpfast as dp

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])
POLES, VARIANCES = np.array([0.5, 0.5, 0.8]), np.array([0.25, 0.25, 1.0])
ONES = dp.FilterMatrix.diagonal([1, 1, 1])


def three_zones(r, mean=0.0):
    """Autoregressions of which the innovations have a correlation."""
    sizes = np.sqrt(VARIANCES * (1 - POLES**2))
    correlation = np.where(np.eye(3, dtype=bool), 1.0, r)
    return dp.VectorARMA([np.diag(POLES)], innovation_covariance=correlation * np.outer(sizes, sizes), mean=mean)


def privacy(adjacency, **more):
    return dp.Privacy(math.log(3), 0.05, adjacency=adjacency, **more)


@pytest.mark.parametrize(
    ("r", "lag", "mse"), [(0.6, 0, 0.118724), (0.6, 10, 0.116204), (0, 0, 0.150997), (0, 10, 0.148461)]
)
def test_noise_on_the_inputs_leaves_what_other_programs_found(r, lag, mse):
    made = dp.lmmse(TARGET, privacy("one_input"), three_zones(r), lag=lag, prefilter=ONES)
    assert made.noise_std == pytest.approx(1.25592366548677, rel=1e-8)
    assert made.predicted_mse == pytest.approx(mse, abs=5.1e-7)


@pytest.mark.parametrize(("lag", "optimum"), [(0, 0.056686), (10, 0.039282)])
def test_the_joint_optimum_that_other_programs_found_is_near_and_never_beaten(lag, optimum):
    made = dp.lmmse(TARGET, privacy("one_input"), three_zones(0.6), lag=lag, tolerance=2e-2)
    assert optimum * (1 - 1e-5) <= made.predicted_mse <= optimum * 1.05
    assert made.receiver.shares_states
    assert made.receiver.n_states <= 11 + 6 * (lag > 0) + 2 * lag


def random_system(seed, largest=4):
    """Target, prefilter and streams of any sizes, in matrices: what a naive twin and the package make the same of."""
    rng = np.random.default_rng(seed)
    m, p, q = rng.integers(1, largest + 1, 3)

    def matrices(outputs, inputs):
        n = int(rng.integers(0, 4))
        a = rng.standard_normal((n, n))
        a *= rng.uniform(0.3, 0.9) / np.abs(np.linalg.eigvals(a)).max(initial=1e-9)
        return (
            a,
            rng.standard_normal((n, inputs)),
            rng.standard_normal((outputs, n)),
            rng.standard_normal((outputs, inputs)),
        )

    return rng, matrices(p, m), matrices(q, m), matrices(m, int(rng.integers(1, m + 2)))


def naive_error(f, g, u, std, lag):
    """The least error of all outputs, by scipy's Riccati equation with a delay line among the states."""
    (af, bf, cf, df), (ag, bg, cg, dg), (am, bm, cm, dm) = f, g, u
    nm, ng, nf, p = len(am), len(ag), len(af), len(df)
    n = nm + ng + nf
    a, b = np.zeros((n + p * lag,) * 2), np.zeros((n + p * lag, bm.shape[1]))
    a[:nm, :nm], b[:nm] = am, bm
    a[nm : nm + ng, :nm], a[nm : nm + ng, nm : nm + ng], b[nm : nm + ng] = bg @ cm, ag, bg @ dm
    a[nm + ng : n, :nm], a[nm + ng : n, nm + ng : n], b[nm + ng : n] = bf @ cm, af, bf @ dm
    now, direct = np.hstack([df @ cm, np.zeros((p, ng)), cf, np.zeros((p, p * lag))]), df @ dm
    if lag:
        a[n : n + p], b[n : n + p] = now, direct
        a[n + p :, n:-p] = np.eye(p * (lag - 1))
        now, direct = np.eye(p, n + p * lag, k=n + p * (lag - 1)), 0 * direct
    c, d = np.hstack([dg @ cm, cg, np.zeros((len(dg), nf + p * lag))]), dg @ dm
    r = d @ d.T + std**2 * np.eye(len(d))
    x = linalg.solve_discrete_are(a.T, c.T, b @ b.T, r, s=b @ d.T)
    s, cross = c @ x @ c.T + r, now @ x @ c.T + direct @ d.T
    return np.diag(now @ x @ now.T + direct @ direct.T - cross @ np.linalg.solve(s, cross.T))


@pytest.mark.parametrize("seed", range(20))
def test_no_receiver_errs_less_than_that_of_scipys_riccati_equation(seed):
    rng, f, g, u = random_system(seed)
    lag = int(rng.integers(0, 6))
    made = dp.lmmse(
        dp.FilterMatrix.from_state_space(*f),
        dp.Privacy(1, 0.05, adjacency="each_input_same_time"),
        dp.VectorARMA.from_state_space(*u),
        lag=lag,
        prefilter=dp.FilterMatrix.from_state_space(*g),
    )
    wanted = naive_error(f, g, u, made.noise_std, lag)
    np.testing.assert_allclose(made.output_mse, wanted, rtol=1e-8, atol=1e-9 * wanted.max())
    assert made.receiver.n_states <= sum(len(x[0]) for x in (f, g, u)) + lag * len(f[3])
    assert (made.lower_bound_mse, made.ideal_mse) == (None, None)


@pytest.mark.parametrize("seed", range(40, 45))
def test_simulated_errors_are_the_predicted_ones(seed):
    """Errors at the last step of independent streams, at 5.1 standard errors."""
    rng, f, g, u = random_system(seed, largest=6)
    target, streams = (
        dp.FilterMatrix.from_state_space(*f),
        dp.VectorARMA.from_state_space(*u, mean=rng.standard_normal(len(u[3]))),
    )
    demand, lag = dp.Privacy(1, 0.05, adjacency="each_input_same_time"), int(rng.integers(0, 4))
    made = dp.lmmse(target, demand, streams, lag=lag, prefilter=dp.FilterMatrix.from_state_space(*g))
    x = streams.sample(4000, 150, seed=seed)
    paths = made.simulate(x, seed=seed + 1)
    errors = (paths.estimate[..., -1] - target.apply(x)[..., -1 - lag]) ** 2
    deviations = (errors.mean(axis=0) - made.output_mse) / (errors.std(axis=0) / math.sqrt(len(errors)))
    assert np.abs(deviations).max() <= 5.1
    means = streams.mean[:, None] + np.zeros((len(streams.mean), 150))
    offset = np.zeros_like(paths.estimate)
    offset[..., lag:] = target.apply(means[:, : 150 - lag])
    again = made.receiver.apply(paths.privatized) + offset
    np.testing.assert_allclose(paths.estimate, again, atol=1e-9 * np.abs(again).max())  # the chain runs that system


def test_streams_that_are_independent_are_designed_as_such():
    chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    models, target = [dp.ARMA([0.6, 0.3], [1, -0.8], mean=2.0), chain], dp.FilterMatrix([[SLOW, SLOW], [0, QUICK]])
    apart = dp.lmmse(target, privacy("each_input"), models, lag=2, tolerance=5e-2)
    together = dp.lmmse(target, privacy("each_input"), dp.VectorARMA.independent(models), lag=2, tolerance=5e-2)
    assert together.predicted_mse == pytest.approx(apart.predicted_mse, rel=1e-6)
    given = dp.lmmse(target, privacy("each_input"), models, lag=2, prefilter=apart.prefilter)
    np.testing.assert_allclose(given.output_mse, apart.output_mse, rtol=1e-8)
    assert given.receiver.n_states < apart.receiver.n_states


def test_one_stream_is_estimated_as_by_a_wiener_filter():
    smooth, demand, model = dp.Filter([0.1], [1, -0.9]), dp.Privacy(1, 1e-3), dp.ARMA([1, 0.3], [1, -0.5], mean=1.0)
    for lag in 0, 3:
        alone = dp.lmmse(smooth, demand, model, lag=lag, tolerance=0.01)
        given = dp.FilterMatrix([[alone.prefilter]])
        several = dp.lmmse(dp.FilterMatrix([[smooth]]), demand, [model], lag=lag, prefilter=given)
        assert several.predicted_mse == pytest.approx(alone.predicted_mse, rel=1e-10)
        omega = np.linspace(0, np.pi, 50)
        np.testing.assert_allclose(several.receiver.response(omega)[:, 0, 0], alone.receiver.response(omega), atol=1e-9)


def test_what_streams_tell_of_one_another_is_used():
    """Designed for the truth it errs less than for streams apart, behind the same prefilters."""
    truth = three_zones(0.6)
    apart = dp.lmmse(TARGET, privacy("one_input"), [truth.channel(i) for i in range(3)], lag=3, tolerance=5e-2)
    made = dp.lmmse(TARGET, privacy("one_input"), truth, lag=3, prefilter=apart.prefilter)
    assert (made.output_mse < 0.9 * apart.predict_outputs(truth)).any()
    assert (made.output_mse < apart.predict_outputs(truth)).all()


def test_a_stream_that_another_determines_is_estimated_from_both():
    copies = dp.VectorARMA.from_state_space([[0.8]], [[1.0]], [[1.0], [2.0]])
    target = dp.FilterMatrix([[1, 0]]) * QUICK
    both = dp.FilterMatrix.diagonal([1, 1])
    made = dp.lmmse(target, privacy("one_input"), copies, lag=1, prefilter=both)
    alone = dp.lmmse(target, privacy("one_input"), copies, lag=1, prefilter=dp.FilterMatrix([[1, 0]]))
    assert made.predicted_mse < 0.5 * alone.predicted_mse
    assert dp.lmmse(target, privacy("one_input"), copies, lag=1, tolerance=0.1).prefilter.shape == (1, 2)


def test_a_constant_stream_is_not_published():
    streams = dp.VectorARMA.from_state_space([[0.8]], [[1.0]], [[1.0], [0.0]], mean=[0, 7])
    made = dp.lmmse(dp.total(2) * QUICK, privacy("each_input"), streams, lag=1, tolerance=0.1)
    assert made.prefilter.shape == (1, 2)
    assert made.prefilter.links().tolist() == [[True, False]]
    with pytest.raises(dp.DesignError, match="target must use an input that is not constant"):
        dp.lmmse(dp.FilterMatrix([[0, 1]]), privacy("each_input"), streams, lag=1)


def test_permuted_and_scaled_channels():
    base, order, scale = three_zones(0.6), [2, 0, 1], np.array([3.0, 0.5, 2.0])
    target = dp.FilterMatrix([[row[j] * float(1 / scale[j]) for j in order] for row in TARGET.rows])
    streams = dp.VectorARMA.from_state_space(
        base.a, base.b, (scale[:, None] * base.c)[order], (scale[:, None] * base.d)[order]
    )
    demand = privacy("each_input", max_change=scale[order])
    first = dp.lmmse(TARGET, privacy("each_input"), base, lag=1, tolerance=5e-2)
    made = dp.lmmse(target, demand, streams, lag=1, tolerance=5e-2)
    np.testing.assert_allclose(made.output_mse, first.output_mse, rtol=1e-4)


def test_slow_poles_and_little_noise():
    """Poles at the limit of stability, and noise far below the streams: scipy's equation fails there."""
    pole = 1 - 3e-5
    target = dp.FilterMatrix([[dp.Filter([1 - pole], [1, -pole]), 1]])
    streams = dp.VectorARMA([[[0.9999, 0], [0.00001, 0.9]]], innovation_covariance=[[1, 0.5], [0.5, 1]])
    demand = dp.Privacy(200, 0.5, max_change=1e-3, adjacency="one_input")
    made = dp.lmmse(target, demand, streams, lag=0, prefilter=dp.FilterMatrix.diagonal([1, 1]))
    assert 0 < made.predicted_mse < made.noise_std**2 * target.h2_norm() ** 2 * (1 + 1e-6)
    undistorted = made.noise_std**2 * target.h2_norm() ** 2
    assert made.predicted_mse == pytest.approx(undistorted, rel=1e-3)  # noise so small that nothing can be told of it


def test_a_model_of_one_channel_has_its_spectrum():
    omega = np.linspace(0, np.pi, 200)
    models = [three_zones(0.6, mean=[1, 2, 3])]
    models += [dp.VectorARMA.from_state_space(*random_system(seed)[3]) for seed in range(8)]
    for model in models:
        for i in range(model.n_channels):
            alone = model.channel(i)
            np.testing.assert_allclose(
                alone.psd(omega), model.psd(omega)[:, i, i].real, atol=1e-9 * float(model.covariance[i, i])
            )
            assert (alone.mean, alone.source) == (model.mean[i], model.source)
    with pytest.raises(ValueError, match="i must be an integer, at least 0 and at most 2"):
        models[0].channel(3)
    with pytest.raises(ValueError, match="the stream of channel 1 is constant"):
        dp.VectorARMA.from_state_space([[0.8]], [[1.0]], [[1.0], [0.0]]).channel(1)


STREAMS = three_zones(0.6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"model": dp.VectorARMA([np.eye(2) / 2]), "lag": 0}, "or a VectorARMA of 3 channels, got a VectorARMA of 2"),
        (
            {"lag": 500, "prefilter": ONES},
            r"lag must be at most 4\d\d here, got 500: the receiver of correlated streams has \d+ states and 2",
        ),
        ({"lag": 0, "prefilter": SLOW}, "prefilter must be a FilterMatrix of 3 inputs, as the target is, got Filter"),
        ({"lag": 0, "prefilter": dp.total(2)}, "prefilter must have 3 inputs, as the target, and not be zero, got <"),
        ({"lag": 0, "prefilter": dp.total(3) * 0.0}, "prefilter must have 3 inputs, as the target, and not be zero"),
        ({"lag": 0, "privacy": dp.Privacy(1, 0.05)}, "adjacency must be said for 3 inputs"),
        ({"lag": 0, "prefilter": ONES, "model": [dp.ARMA([1])]}, "model must be a sequence of 3 models, one for each"),
    ],
)
def test_what_does_not_fit_is_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        dp.lmmse(**{"target": TARGET, "privacy": privacy("one_input"), "model": STREAMS, **arguments})


def test_designs_of_independent_streams_say_what_to_do():
    for design in (
        lambda: dp.optimal(TARGET, privacy("one_input"), STREAMS, lag=0, prefilter="separate"),
        lambda: dp.block_sums(TARGET, privacy("one_input"), STREAMS, lag=0),
    ):
        with pytest.raises(ValueError, match="independent streams here, got a VectorARMA: lmmse and optimal take it"):
            design()
