"""Smoothers with a prefilter that mixes streams, against MIMO.md, semidefinite programs, finite lags and simulation."""

import itertools
import math
import warnings

import cvxpy as cp
import numpy as np
import pytest

import dpfast as dp
from dpfast.design.mimo import mixing_smoother as of_smoother
from dpfast.design.mimo.channel_weights import SampledChannels
from dpfast.design.mimo.event_atoms import atoms_at_once
from dpfast.design.mimo.mixing_smoother import bound_beside_mixture, mixing_smoother, spread_nodes
from dpfast.filters.warped_circle import choose_steps, make_circle

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])
POLES, VARIANCES = np.array([0.5, 0.5, 0.8]), np.array([0.25, 0.25, 1])
ADJACENCIES = ("one_input", "each_input_same_time")


def streams(correlation, poles=POLES, variances=VARIANCES):
    sizes, m = np.sqrt(variances * (1 - poles**2)), len(poles)
    alike = np.full((m, m), correlation) + (1 - correlation) * np.eye(m)
    return dp.VectorARMA([np.diag(poles)], innovation_covariance=alike * np.outer(sizes, sizes))


def privacy(adjacency, **more):
    return dp.Privacy(more.pop("epsilon", math.log(3)), 0.05, adjacency=adjacency, **more)


def bound(target, demand, model, steps=None):
    """The optimum without causality, on a circle of its own or of no warp."""

    def sample(circle):
        omega = circle.grid.omega
        changes = demand.changes(target.shape[1])
        return SampledChannels(
            circle, target.response(omega), model.psd(omega), demand.noise_multiplier, changes, demand.adjacency
        )

    warp, size = choose_steps(np.concatenate([target.poles, model.poles]), size=256) if steps is None else (0.0, steps)
    return mixing_smoother(sample, atoms_at_once(demand.changes(target.shape[1]), demand.adjacency), warp, size, 1e-5)


@pytest.fixture(scope="module")
def smoothers():
    sizes = np.sqrt(VARIANCES * (1 - POLES**2))
    apart = [dp.ARMA([1], [1, -p], innovation_std=x) for p, x in zip(POLES, sizes, strict=True)]
    asked = [("one_input", apart), ("one_input", streams(0.6)), ("each_input_same_time", apart)]
    return [dp.optimal(TARGET, privacy(x), y, lag=None, prefilter="general", tolerance=5e-3) for x, y in asked]


@pytest.mark.parametrize(
    ("which", "optimum", "elsewhere"),
    [(0, 0.0449410, 0.044943), (1, 0.0327306, 0.032733), (2, 0.0852103, 0.085215)],
)
def test_the_values_that_other_programs_found(smoothers, which, optimum, elsewhere):
    """Theirs smoothed singular values by more, and are less than 1e-4 above."""
    made = smoothers[which]
    assert made.ideal_mse == pytest.approx(optimum, rel=1e-5)
    assert made.ideal_mse * (1 - 2e-5) <= made.lower_bound_mse <= made.ideal_mse
    assert elsewhere * (1 - 1e-4) <= made.lower_bound_mse <= elsewhere


@pytest.mark.long
def test_events_at_their_own_times_cost_more_than_at_one_and_less_with_mixing():
    asked = TARGET, privacy("each_input"), streams(0.0)
    found = bound(*asked)
    assert found.mse == pytest.approx(0.0879674, rel=2e-5)
    assert found.mse * (1 - 3e-5) <= found.lower_bound <= found.mse
    assert 0.085211 < found.lower_bound < 0.08820 < 0.091040  # at one time, of lag 10, and a prefilter for each
    made = dp.optimal(*asked, lag=None, prefilter="general", tolerance=5e-3)
    assert made.predicted_mse <= 1.0055 * found.mse
    assert found.lower_bound * (1 - 1.25e-3) <= made.lower_bound_mse <= found.mse <= made.ideal_mse * (1 + 1e-5)


def test_filters_of_few_states_and_a_finite_lag_are_near_to_it(smoothers):
    for made in smoothers:
        assert made.ideal_mse <= made.smoothed_mse.sum() <= 1.005 * made.ideal_mse
        assert made.predicted_mse <= (1 + 1e-4) * made.smoothed_mse.sum()
        assert made.prefilter.shape == (3, 3)
        assert made.prefilter.n_states <= 12
        assert (made.name, dict(made.options)["lag"], made.lag >= 8) == ("optimal smoother", None, True)


@pytest.mark.parametrize(("which", "at_lag_10"), [(0, 0.0450862), (1, 0.0328575), (2, 0.0857210)])
def test_lag_ten_is_a_little_above(smoothers, which, at_lag_10):
    assert 0.99 * at_lag_10 < smoothers[which].ideal_mse < 0.998 * at_lag_10


@pytest.mark.long
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_no_lag_goes_below(adjacency):
    below = bound(TARGET, privacy(adjacency), streams(0.6)).lower_bound
    found = [
        dp.optimal(TARGET, privacy(adjacency), streams(0.6), lag=lag, prefilter="general", tolerance=1e-2).ideal_mse
        for lag in (0, 10, 40)
    ]
    assert below <= found[2] <= found[1] <= found[0]
    assert found[2] <= below * (1 + 4e-4)


def test_it_bounds_the_optimum_of_a_long_lag_that_is_not_found(monkeypatch, smoothers):
    """With no time for the latter, the bound is that of the smoother, which is found no nearer than is seen."""
    goals = []
    monkeypatch.setattr(
        "dpfast.design.mimo.joint_mechanism.mixing_smoother", lambda *x: goals.append(x[-1]) or bound(*asked)
    )
    asked = TARGET, privacy("one_input"), streams(0.0)
    with monkeypatch.context() as patch:
        patch.setattr("dpfast.design.mimo.mixing_search._MOST_WORK", 1)
        with pytest.warns(dp.ConvergenceWarning, match="the optimum of lag 10 is certified to a relative gap of"):
            hasty = dp.optimal(*asked, lag=10, prefilter="general", tolerance=0.1)
    assert hasty.lower_bound_mse == pytest.approx(smoothers[0].lower_bound_mse, rel=2e-5)
    assert hasty.lower_bound_mse < 0.0450862 <= hasty.ideal_mse
    assert [0.05 * 1e-2 < x <= 0.05 for x in goals] == [True]


def least_error_on_nodes(problem, atoms):
    """By a semidefinite program: [A K; K* X] ⪰ 0 at every node, <tr A> ≤ t, and no person changes <X> by more."""
    p, m = problem.wanted.shape[1:]
    t, distortion, noise, change = cp.Variable(), 0, 0, 0
    limits = []
    roots = np.linalg.cholesky(problem.psd)
    for weight, wanted, root in zip(problem.circle.grid.weights, problem.wanted, roots, strict=True):
        big = cp.Variable((p + m, p + m), hermitian=True)
        limits.append(big >> 0)
        distortion += weight * cp.sum_squares((wanted - big[:p, p:]) @ root)
        noise += weight * cp.real(cp.trace(big[:p, :p]))
        change += weight * cp.real(big[p:, p:])
    limits += [noise <= t, *(x @ change @ x <= t for x in atoms)]
    asked = cp.Problem(cp.Minimize(distortion + problem.noise**2 * cp.square(t)), limits)
    accurate = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-7)
    return asked.solve(solver="CLARABEL", max_step_fraction=0.95, **accurate)  # nearer to the cone it may get stuck


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("p", "m"), [(1, 2), (2, 2), (2, 3)])
def test_a_semidefinite_program_finds_the_same(monkeypatch, p, m, adjacency):
    """On a circle of 16 steps, where noise shuts directions off at some frequencies."""
    monkeypatch.setattr("dpfast.design.mimo.mixing_smoother._LONGEST", 16)
    rng = np.random.default_rng((4, p, m))
    target = dp.FilterMatrix([[dp.Filter(rng.standard_normal(3)) for _ in range(m)] for _ in range(p)])
    own, root, changes = rng.uniform(-0.3, 0.3, (m, m)), rng.standard_normal((m, m)), rng.uniform(0.5, 2, m)
    model = dp.VectorARMA([own], innovation_covariance=root @ root.T + 0.1 * np.eye(m))
    found = bound(target, privacy(adjacency, max_change=changes), model, 8)
    problem = found.weights.problem
    assert problem.circle.size == 16
    signs = np.array([(1, *x) for x in itertools.product((1, -1), repeat=m - 1)])
    least = least_error_on_nodes(problem, (np.eye(m) if adjacency == "one_input" else signs) * changes)
    assert found.mse == pytest.approx(least, rel=2e-5)
    assert found.lower_bound <= least * (1 + 1e-7)
    assert (np.linalg.svd(found.product, compute_uv=False)[:, -1] > 1e-3).sum() < 9 or p < m


def test_a_bound_beside_any_product_is_below_the_closed_form():
    """Of white streams apart, of which an event is at one: K = 0 reaches J of m gains at the best shares."""
    rng, noise = np.random.default_rng(11), 1.25
    f, variances, changes = rng.uniform(0.5, 2, (3, 3))
    best = variances * f / (variances + (noise * changes) ** 2)
    least = ((noise * changes) ** 2 * f * best).sum()
    circle = make_circle(0.0, 16)
    wanted, psd = (np.tile(np.diag(x) + 0j, (len(circle.z), 1, 1)) for x in (f, variances))
    problem = SampledChannels(circle, wanted, psd, noise, changes, "one_input")

    def below(k, shares):
        return bound_beside_mixture(problem, wanted - k, np.diag(shares * changes**2)[None] + 0j, shares.sum())

    worst = (best * changes) ** 2
    assert below(0 * wanted, worst) == pytest.approx(least, rel=1e-12)
    assert below(np.diag(best) + 0 * wanted, worst) == pytest.approx(least, rel=1e-12)
    for spread in np.geomspace(1e-3, 1, 30):
        k = (rng.random() < 0.5) * np.diag(best) + spread * rng.standard_normal(wanted.shape)
        assert below(k, worst * np.exp(spread * rng.standard_normal(3))) <= least


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_bound_beside_a_product_that_errs_more_is_below_the_least(adjacency):
    """Of a product that is too small ψ is too large, and is cut; of any other the bound is no better."""
    found = bound(TARGET, privacy(adjacency), streams(0.6))
    problem, whole = found.weights.problem, found.weights.squared_norm(found.product)
    mixture = found.weights.mixture.at(problem.circle.grid.omega)
    products = [x * found.product for x in (0.5, 0.9, 0.99, 1.0, 1.01, 1.1, 1.5)]
    near = [bound_beside_mixture(problem, problem.wanted - k, whole * mixture, whole) for k in products]
    assert max(near) <= found.mse
    assert near[3] == pytest.approx(found.mse, rel=3e-5)
    assert near[2] >= 0.95 * found.mse


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_streams_of_one_noise_have_a_certificate_too(adjacency):
    """Their spectra cannot be divided by; they are next to those of streams that are nearly alike."""
    target = dp.FilterMatrix([[QUICK, QUICK], [SLOW, -1 * SLOW]])
    noises = [np.array([[1, x], [x, 1]]) for x in (1.0, 1 - 1e-6)]
    exact, near = (
        bound(target, privacy(adjacency), dp.VectorARMA([np.diag([0.5, 0.2])], innovation_covariance=x)) for x in noises
    )
    assert exact.mse * (1 - 2e-5) <= exact.lower_bound <= exact.mse
    assert exact.mse == pytest.approx(near.mse, rel=1e-4)


@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_one_stream_has_the_bound_of_one_stream(noise):
    model, demand = dp.ARMA([1], [1, -0.7]), dp.Privacy(noise, 0.05, adjacency="one_input")
    scalar = dp.lmmse(SLOW, dp.Privacy(noise, 0.05), model, tolerance=0.1).lower_bound_mse
    found = bound(dp.FilterMatrix([[SLOW]]), demand, dp.VectorARMA.independent([model]))
    assert scalar * (1 - 4e-5) <= found.lower_bound <= scalar * (1 + 1e-7)
    assert scalar * (1 - 1e-7) <= found.mse <= scalar * (1 + 2e-5)


def test_a_total_costs_what_one_stream_does():
    """Of independent streams that are alike it is a filter of their sum, of which an event changes as much."""
    one, whole = (dp.ARMA([1], [1, -0.7], innovation_std=x) for x in (1, math.sqrt(3)))
    scalar = dp.lmmse(SLOW, dp.Privacy(0.3, 0.05), whole, tolerance=0.1).lower_bound_mse
    found = bound(dp.total(3) * SLOW, privacy("one_input", epsilon=0.3), dp.VectorARMA.independent([one] * 3))
    assert scalar * (1 - 4e-5) <= found.lower_bound <= scalar * (1 + 1e-7)
    assert found.mse == pytest.approx(scalar, rel=2e-5)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_permuted_and_scaled_channels(adjacency):
    """Louder inputs, of which events are louder too, with all outputs in another order."""
    model, order, scale = streams(0.4), [2, 0, 1], np.array([3.0, 0.5, 100.0])
    base = bound(TARGET, privacy(adjacency), model)
    target = dp.FilterMatrix([[row[j] * (1 / scale[j]) for j in order] for row in TARGET.rows[::-1]])
    turned = np.diag(scale)[order]
    other = dp.VectorARMA.from_state_space(model.a, model.b, turned @ model.c, turned @ model.d)
    made = bound(target, privacy(adjacency, max_change=scale[order]), other)
    assert made.mse == pytest.approx(base.mse, rel=1e-5)
    assert made.lower_bound == pytest.approx(base.lower_bound, rel=2e-5)


def test_simulated_errors_are_the_predicted_ones(smoothers):
    made, model = smoothers[1], streams(0.6)
    settled, n, paths = 200, 200, 500
    u = model.sample(paths, settled + n, seed=1)
    late, now = slice(settled - made.lag, settled + n - made.lag), slice(settled, settled + n)
    errors = made.simulate(u, seed=2).estimate[..., now] - TARGET.apply(u)[..., late]
    of_paths = (errors**2).sum(axis=1).mean(axis=1)
    assert abs(of_paths.mean() - made.predicted_mse) <= 5 * of_paths.std() / math.sqrt(paths)


def test_streams_that_depend_on_one_another_have_one_of_a_prefilter_for_each(tmp_path):
    made = dp.optimal(TARGET, privacy("one_input"), streams(0.6), lag="smoother", tolerance=1e-2)
    assert made.ideal_mse == pytest.approx(0.039152, abs=6e-7)
    assert made.ideal_mse * (1 - 1e-6) <= made.lower_bound_mse
    assert made.predicted_mse <= 1.0101 * made.ideal_mse
    np.testing.assert_array_equal(made.prefilter.links(), np.eye(3))
    two_steps = dp.lmmse(TARGET, privacy("one_input"), streams(0.6), tolerance=1e-2)
    assert made.predicted_mse < two_steps.predicted_mse
    dp.save(made, tmp_path / "made.json")
    assert dp.load(tmp_path / "made.json") == made


def test_a_prefilter_for_each_of_independent_streams_is_that_of_one_stream_at_a_time():
    demand, model = privacy("each_input", max_change=[1, 2, 0.5]), streams(0.0)
    whole = dp.optimal(TARGET, demand, model, lag=None, tolerance=1e-2)
    parts = dp.lmmse(TARGET, demand, [model.channel(j) for j in range(3)], lag=0, tolerance=0.1)
    assert whole.lower_bound_mse == pytest.approx(parts.lower_bound_mse, rel=2e-6)


def test_a_tolerance_that_is_not_reached_is_said(monkeypatch):
    monkeypatch.setattr("dpfast.design.mimo.prefilter_states._MOST_STATES", 1)
    model = streams(0.3, POLES[1:], VARIANCES[1:])
    with pytest.warns(dp.ToleranceWarning, match=r"prefilter of up to 2 states .+ raise tolerance, smooth the target$"):
        dp.optimal(dp.total(2) * SLOW, privacy("one_input"), model, lag=None, prefilter="general")


def test_strong_noise_has_a_certificate_too():
    """Next to nothing is known then, and most work is needed."""
    model = dp.VectorARMA([0.6 * np.eye(3)], innovation_covariance=np.eye(3))
    assert bound(TARGET, dp.Privacy(0.001, 1e-6, adjacency="one_input"), model).gap <= 1e-5


def test_events_at_their_own_times_take_no_more_work_than_there_is(monkeypatch):
    """On all circles together, but for what a step takes; what is found by then is stated with its gap."""
    searches = []

    def note(problem, atoms, most):
        searches.append((make(problem, atoms, most), most))
        return searches[-1][0]

    make = of_smoother._SmootherSearch
    monkeypatch.setattr(of_smoother, "_SmootherSearch", note)
    monkeypatch.setattr(of_smoother, "_MOST_WORK", 2**19)
    model = [dp.ARMA([1], [1, -0.6], innovation_std=x) for x in (1, 1.2, 1.5)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dp.ConvergenceWarning)
        demand = dp.Privacy(0.5, 1e-6, adjacency="each_input")
        made = dp.optimal(TARGET, demand, model, lag=None, prefilter="general", tolerance=1e-2)
    assert len(searches) > 1
    for search, most in searches:
        assert search.spent <= most + 50 * search.size
    assert sum(search.spent for search, _ in searches) <= 2**19 + 50 * searches[-1][0].size
    assert made.lower_bound_mse < made.ideal_mse


def test_work_counts_curvatures_steps_and_events():
    circle = make_circle(0.3, 64)
    omega = circle.grid.omega
    psd = dp.VectorARMA([0.6 * np.eye(3)], innovation_covariance=np.eye(3)).psd(omega)
    problem = SampledChannels(circle, TARGET.response(omega), psd, 1.25, np.ones(3), "one_input")
    search = of_smoother._SmootherSearch(problem, atoms_at_once(np.ones(3), "one_input"), math.inf)
    entries, spent = problem.wanted.size, []
    norm = search._norm.at_shares(problem.wanted, np.ones(3), 0.1)
    fit = of_smoother._SmootherFit(problem.wanted, norm, search._invert(norm), 0.0)
    spent.append(search.spent)
    search._newton_step(fit, norm.soft)
    spent.append(search.spent - sum(spent))
    costs, nothing = search._costs(problem.wanted, norm), np.zeros(len(omega))
    search._go(problem.wanted, norm, np.zeros_like(norm.k), costs, nothing)
    spent.append(search.spent - sum(spent))
    np.testing.assert_allclose(spent, [3 * entries, (1 + 0.05 * 3) * entries, (1 + 0.01 * 3) * entries])


def test_finer_circles_lose_nothing_where_work_ends(monkeypatch):
    """What is left of the work goes into what a finer circle changes, not into events that it begins with anew."""
    found = []

    def note(search, *asked):
        stage, best = solve(search, *asked)
        found.append((search.size, search.spent, best.gap))
        return stage, best

    solve = of_smoother._SmootherSearch.solve
    monkeypatch.setattr(of_smoother._SmootherSearch, "solve", note)
    monkeypatch.setattr(of_smoother, "_MOST_WORK", 2**19)
    demand = dp.Privacy(20, 1e-6, adjacency="each_input")
    model = dp.VectorARMA.independent([dp.ARMA([1], [1, -0.6], innovation_std=x) for x in (1, 1.2, 1.5)])
    best = bound(dp.FilterMatrix([[1, 1, 1], [1, -1, 0], [0, 1, -1]]) * QUICK, demand, model)
    (size, spent, first), *finer = found
    assert (finer[0][0], spent > 2**17, first > 1e-5) == (2 * size, True, True)  # the work has ended
    assert sum(more for _, more, _ in finer) <= 0.5 * spent
    assert best.gap <= 1.6 * first


def test_the_best_that_was_judged_is_returned(monkeypatch):
    """With the stage that it is of, as a finer circle begins there: later ones may be further from the optimum."""

    def judge(search, fit):
        judged.append(fit)
        found = judge_well(search, fit)
        return found._replace(lower_bound=found.mse * (1 - (0.1 if len(judged) == 2 else 0.2)))

    judge_well, judged = of_smoother._SmootherSearch._judge, []
    monkeypatch.setattr(of_smoother._SmootherSearch, "_judge", judge)
    circle, demand, model = make_circle(0.0, 64), privacy("each_input"), streams(0.0)
    sampled = TARGET.response(circle.grid.omega), model.psd(circle.grid.omega)
    problem = SampledChannels(circle, *sampled, demand.noise_multiplier, demand.changes(3), demand.adjacency)
    search = of_smoother._SmootherSearch(problem, atoms_at_once(demand.changes(3), demand.adjacency), 2.0**20)
    stage, best = search.solve(search.start(), 1e-9, 1e-9)
    assert len(judged) > 3
    assert best.gap == pytest.approx(0.1)
    assert stage.beside is judged[1].beside
    assert best.product is judged[1].norm.k


def test_values_between_nodes_are_on_a_line():
    values = np.array([[0.0], [1.0], [3.0 - 1j]])
    np.testing.assert_array_equal(spread_nodes(values, 8)[:, 0], [0, 0.5, 1, 2 - 0.5j, 3 - 1j])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lag": "late"}, "lag must be .+ or 'smoother', or None"),
        ({"lag": -1}, "lag must be .+, got -1"),
        ({"model": streams(0, POLES[:2], VARIANCES[:2])}, "got a VectorARMA of 2 channels"),
    ],
)
def test_what_does_not_fit_is_named(given, words):
    asked = {"target": TARGET, "demand": privacy("one_input"), "model": streams(0.6), "lag": None, **given}
    with pytest.raises(ValueError, match=words):
        dp.optimal(asked["target"], asked["demand"], asked["model"], lag=asked["lag"], prefilter="general")
