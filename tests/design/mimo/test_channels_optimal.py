"""The joint optimum of several streams, against MIMO.md, one stream, a convex program and a numerical search."""

import math

import cvxpy as cp
import numpy as np
import pytest
from scipy import optimize

import dpfast as dp
from dpfast.design.mimo.column_gains import column_gain
from dpfast.design.prefilter.design_problem import Problem
from dpfast.design.prefilter.objectives import wiener_loss
from dpfast.filters.warped_circle import choose_circle

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])


def stream(pole, variance, mean=0.0):
    return dp.ARMA([1], [1, -pole], innovation_std=math.sqrt(variance * (1 - pole * pole)), mean=mean)


MODELS = [stream(0.5, 0.25), stream(0.5, 0.25), stream(0.8, 1)]


def privacy(adjacency, **more):
    return dp.Privacy(math.log(3), 0.05, adjacency=adjacency, **more)


@pytest.mark.parametrize(
    ("adjacency", "lag", "optimum"),
    [
        ("one_input", 0, 0.082333),
        ("one_input", 10, 0.055063),
        ("each_input", 0, 0.129760),
        ("each_input", 10, 0.091553),
        ("each_input_same_time", 0, 0.129760),
        ("each_input_same_time", 10, 0.091553),
    ],
)
def test_the_values_that_other_programs_found(adjacency, lag, optimum):
    made = dp.optimal(TARGET, privacy(adjacency), MODELS, lag=lag, tolerance=1e-2)
    assert made.ideal_mse == pytest.approx(optimum, abs=5e-7)
    assert made.ideal_mse * (1 - 1e-6) <= made.lower_bound_mse <= made.ideal_mse
    assert made.ideal_mse <= made.predicted_mse <= 1.01 * made.ideal_mse
    assert made.lag == lag


@pytest.mark.parametrize("lag", [0, 3])
def test_one_input_and_output_are_the_scalar_design(lag):
    demand, model = dp.Privacy(1, 1e-6, max_change=2), stream(0.5, 0.25, mean=3.0)
    scalar = dp.optimal(SLOW, demand, model, lag=lag, tolerance=1e-2)
    several = dp.optimal(dp.FilterMatrix([[SLOW]]), demand, [model], lag=lag, tolerance=1e-2)
    for name in "ideal_mse", "lower_bound_mse", "predicted_mse":
        assert getattr(several, name) == pytest.approx(getattr(scalar, name), rel=1e-10)


def sampled(target, models, n=256):
    """F (p, m, n) and the spectra (m, n) on the circle."""
    omega = 2 * np.pi * np.arange(n) / n
    return omega, np.moveaxis(target.response(omega), 0, -1), np.array([x.psd(omega) for x in models])


def solve_by_taps(target, models, noise, lag, *, is_shared, taps=24, n=256):
    """K of so many taps, by a cone program: Σ <P_i|z^{-D}F_i - K_i|²> + what the adjacency makes of c_i<|K_i|>."""
    omega, f, psd = sampled(target, models, n)
    delays = np.exp(-1j * np.outer(omega[: n // 2 + 1], np.arange(taps)))
    weights = np.r_[1, np.full(n // 2 - 1, 2), 1] / n
    distortion, norms = 0, []
    for i in range(len(models)):
        k = cp.Variable((taps, len(f)))
        wanted = (f[:, i] * np.exp(-1j * lag * omega))[:, : n // 2 + 1].T
        root = np.sqrt(weights * psd[i, : n // 2 + 1])[:, None]
        parts = [(delays.real @ k, wanted.real), (delays.imag @ k, wanted.imag)]
        distortion += sum(cp.sum_squares(cp.multiply(root, have - want)) for have, want in parts)
        rows = cp.hstack([have for have, _ in parts])
        norms.append(noise[i] * (weights @ cp.norm(rows, 2, axis=1)))
    cost = cp.square(sum(norms)) if is_shared else sum(map(cp.square, norms))
    return cp.Problem(cp.Minimize(distortion + cost)).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
@pytest.mark.parametrize("lag", [0, 2])
def test_a_general_solver_finds_the_same_optimum(adjacency, lag):
    """With entries whose phases differ, of which a filter as loud as the column knows nothing."""
    quick, late = dp.Filter([1.0, 0.5], [1, -0.6]), dp.Filter([0.0, 0.0, 1.5])
    target = dp.FilterMatrix([[quick, 0.3], [late, -1 * quick], [0, dp.Filter([0.4, 1.0])]])
    models, demand = [stream(0.5, 2.0), stream(-0.6, 1.0)], privacy(adjacency, max_change=[1, 0.5])
    noise = demand.noise_multiplier * np.array([1, 0.5])
    found = dp.optimal(target, demand, models, lag=lag, tolerance=1e-2)
    least = solve_by_taps(target, models, noise, lag, is_shared=adjacency == "each_input")
    assert found.ideal_mse * (1 - 1e-6) <= least <= found.ideal_mse * (1 + 1e-5)


def error_behind(target, models, noise, lag, taps, n=256):
    """The least error behind prefilters of these taps (m, taps), whose squares times the largest changes sum to one."""
    _, f, psd = sampled(target, models, n)
    total = 0.0
    for i, g in enumerate(np.fft.fft(taps, n)):
        whole = psd[i] * np.abs(g) ** 2 + noise**2
        cepstrum = np.fft.ifft(np.log(whole)).real
        cepstrum[1 : n // 2] *= 2
        cepstrum[n // 2 + 1 :] = 0
        q = np.exp(np.fft.fft(cepstrum / 2))
        late = np.exp(-2j * np.pi * lag * np.arange(n) / n)
        samples = np.fft.ifft(psd[i] * f[:, i] * late * g.conj() / q.conj())
        total += (psd[i] * np.abs(f[:, i]) ** 2).sum() / n - (np.abs(samples[:, : n // 2]) ** 2).sum()
    return total


@pytest.mark.parametrize("seed", range(3))
def test_no_search_over_short_prefilters_goes_below(seed):
    rng = np.random.default_rng(seed)
    target = dp.FilterMatrix([[dp.Filter(rng.standard_normal(3)) for _ in range(2)] for _ in range(2)])
    models, lag = [stream(p, v) for p, v in zip(rng.uniform(-0.6, 0.6, 2), rng.uniform(0.5, 4, 2), strict=True)], 1
    demand = privacy("each_input")
    found = dp.optimal(target, demand, models, lag=lag, tolerance=1e-3)

    def error(x):
        taps = x.reshape(2, 3)
        return error_behind(target, models, demand.noise_multiplier, lag, taps / np.linalg.norm(taps))

    starts = rng.standard_normal((3, 6))
    best = min(optimize.minimize(error, x, method="Nelder-Mead", options={"maxiter": 400}).fun for x in starts)
    assert found.ideal_mse * (1 - 1e-9) <= best <= found.ideal_mse * 1.2
    assert found.predicted_mse <= best * 1.001


def test_the_slope_of_the_error_is_its_derivative():
    """For every change of ln|G|²; fits go down along it."""
    entries = SLOW, -1 * QUICK * QUICK
    problem = Problem(column_gain(dp.FilterMatrix([[x] for x in entries]), 0), MODELS[0], 1.5, entries=entries)
    circle = choose_circle(problem.poles, 3)
    loss, omega = wiener_loss(problem, 3, circle), circle.grid.omega
    log_power, change = np.cos(omega), 0.3 * np.cos(2 * omega) - np.cos(5 * omega)
    _, slope = loss(np.exp(log_power))
    above, below = (loss(np.exp(log_power + step * change))[0] for step in (1e-5, -1e-5))
    assert circle.grid.mean(slope * change) == pytest.approx((above - below) / 2e-5, rel=1e-7)


def test_permuted_and_scaled_channels():
    """Louder inputs, of which events are louder too, with all outputs in another order."""
    base = dp.optimal(TARGET, privacy("each_input"), MODELS, tolerance=1e-2)
    order, scale = [2, 0, 1], [3.0, 0.5, 1e3]
    target = dp.FilterMatrix([[row[j] * (1 / scale[j]) for j in order] for row in TARGET.rows[::-1]])
    models = [dp.ARMA.from_shaping(MODELS[j].shaping * scale[j]) for j in order]
    made = dp.optimal(target, privacy("each_input", max_change=[scale[j] for j in order]), models, tolerance=1e-2)
    assert made.ideal_mse == pytest.approx(base.ideal_mse, rel=1e-7)
    np.testing.assert_allclose(made.output_mse, base.output_mse[::-1], rtol=1e-4)


@pytest.mark.parametrize("lag", [0, 2])
def test_separate_designs_are_those_of_one_stream_with_the_best_shares(lag):
    """Of one input with two outputs: J(c²/α) + J(c²/(1 - α)) at the best α, by a search over scalar optima."""
    target, model = dp.FilterMatrix([[SLOW], [QUICK]]), MODELS[2]
    made = dp.optimal(target, dp.Privacy(1, 0.05), [model], lag=lag, prefilter="separate", tolerance=1e-2)

    def error(share):
        changes = 1 / math.sqrt(share), 1 / math.sqrt(1 - share)
        alone = [dp.Privacy(1, 0.05, max_change=d) for d in changes]
        return sum(
            dp.optimal(f, p, model, lag=lag, tolerance=0.5).ideal_mse for f, p in zip((SLOW, QUICK), alone, strict=True)
        )

    least = optimize.minimize_scalar(error, bounds=(0.02, 0.98), method="bounded", options={"maxiter": 12}).fun
    assert made.ideal_mse * (1 - 1e-6) <= least <= made.ideal_mse * (1 + 1e-4)
    assert made.lower_bound_mse == pytest.approx(made.ideal_mse, rel=1e-6)
    assert made.ideal_mse <= made.predicted_mse <= made.ideal_mse * 1.01
    together = dp.optimal(target, dp.Privacy(1, 0.05), [model], lag=lag, tolerance=1e-2)
    assert together.ideal_mse < made.ideal_mse


def test_several_events_cost_as_many_times_the_sensitivity():
    several = dp.optimal(TARGET, privacy("each_input", max_events=3), MODELS, tolerance=1e-2)
    louder = dp.optimal(TARGET, privacy("each_input", max_change=3.0), MODELS, tolerance=1e-2)
    assert several.ideal_mse == pytest.approx(louder.ideal_mse, rel=1e-9)


def test_an_input_that_is_lost_in_the_noise_costs_nothing():
    models, target = [stream(0.5, 1.0), stream(0.5, 1e-9)], dp.total(2) * QUICK
    made = dp.optimal(target, privacy("each_input"), models, lag=1, tolerance=1e-2)
    alone = dp.optimal(dp.FilterMatrix([[QUICK]]), privacy("each_input"), models[:1], lag=1, tolerance=1e-2)
    assert made.ideal_mse == pytest.approx(alone.ideal_mse, abs=1e-8)
    assert made.lower_bound_mse <= made.ideal_mse


def test_simulated_errors_are_the_predicted_ones():
    made = dp.optimal(TARGET, privacy("each_input"), MODELS, lag=4, tolerance=1e-2)
    u = np.stack([x.sample(300, 400, seed=i) for i, x in enumerate(MODELS)], axis=1)
    error = made.simulate(u, seed=7).estimate[..., 150:] - TARGET.apply(u)[..., 146:396]
    of_streams = (error**2).mean(axis=-1)
    deviation = np.abs(of_streams.mean(axis=0) - made.output_mse)
    assert (deviation <= 5 * of_streams.std(axis=0) / math.sqrt(len(u))).all()


@pytest.mark.parametrize("design", [dp.optimal, dp.lmmse])
def test_an_input_that_is_hidden_for_nothing_is_published(design):
    """Its share of the sensitivity is nothing, too; behind it the second stream is lost, and the third is known."""
    moderate, extreme = (
        design(
            TARGET, dp.Privacy(math.log(3), 0.05, max_change=x, adjacency="each_input"), MODELS, lag=3, tolerance=1e-2
        )
        for x in ((1, 1e3, 1e-5), (1, 1e20, 1e-20))
    )
    assert extreme.predicted_mse == pytest.approx(moderate.predicted_mse, rel=1e-3)
    assert extreme.lower_bound_mse == pytest.approx(moderate.lower_bound_mse, rel=1e-3)
    assert extreme.lower_bound_mse < extreme.predicted_mse
