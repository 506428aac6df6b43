"""Several streams in integers: what they cost, what one person moves, and that what was filtered is undone."""

import itertools
import json
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from helpers.seeded_noise import seed_noise

import dpfast as dp
from dpfast._support.errors import DesignError, ReleaseError
from dpfast.mechanisms.channels_mechanism import ChannelsMechanism
from dpfast.privacy.discrete_gaussian_accounting import Shift, epsilon
from dpfast.releases.integer.exact_forms import load_exact
from dpfast.releases.integer.matrix_receiver import LiveChannels
from dpfast.releases.noise import Noise

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])
MODELS = [dp.ARMA([0.43], [1, -0.5], mean=2), dp.ARMA([0.43], [1, -0.5], mean=1.5), dp.ARMA([0.6], [1, -0.8], mean=3)]
INPUTS = dp.Inputs(0, 20, centre=2, n_streams=3)
ADJACENCIES = "one_input", "each_input_same_time", "each_input"


def privacy(adjacency, **others):
    return dp.Privacy(math.log(3), 0.05, adjacency=adjacency, **others)


def mixed(adjacency):
    """Two inputs through a matrix that is not diagonal, its inverse and a target behind it."""
    g = dp.FilterMatrix([[dp.Filter([1, 0.5]), dp.Filter([0, 0.25])], [0.5, dp.Filter([1, -0.25])]])
    # (1 + z/2)(1 - z/4) - z/8 = 1 + z/8 - z²/8
    inverse = dp.Filter([1], [1, 0.125, -0.125])
    h = [
        [dp.Filter([1, -0.25]) * inverse, dp.Filter([0, -0.25]) * inverse],
        [-0.5 * inverse, dp.Filter([1, 0.5]) * inverse],
    ]
    total = [[h[0][j] * SLOW for j in range(2)]]
    target = dp.FilterMatrix([[SLOW, 0]])
    return ChannelsMechanism("mixed", target, privacy(adjacency), g, dp.FilterMatrix(total))


DESIGNS = {
    "input perturbation": lambda p: dp.input_perturbation(TARGET, p),
    "zero forcing": lambda p: dp.zero_forcing(TARGET, p),
    "separate": lambda p: dp.zero_forcing(TARGET, p, prefilter="separate"),  # five channels, two of them of one input
    "LMMSE": lambda p: dp.lmmse(TARGET, p, MODELS, lag=3),
    "optimal, separate": lambda p: dp.optimal(TARGET, p, MODELS, lag=1, prefilter="separate", tolerance=0.01),
}
CASES = list(itertools.product(DESIGNS, ADJACENCIES))


@pytest.fixture(scope="module")
def made():
    """Each design and its exact form, made once."""
    found = {}

    def get(name, adjacency):
        if (name, adjacency) not in found:
            mechanism = DESIGNS[name](privacy(adjacency))
            found[name, adjacency] = mechanism, dp.exact(mechanism, INPUTS)
        return found[name, adjacency]

    return get


@pytest.mark.parametrize(("name", "adjacency"), CASES)
def test_it_costs_at_most_a_thousandth_more(made, name, adjacency):
    mechanism, plan = made(name, adjacency)
    assert plan.predicted_mse / mechanism.predicted_mse == pytest.approx(1, abs=1e-3)
    assert plan.output_mse.sum() == plan.predicted_mse


def frequency_error(plan, psds):
    """∫ Σ_j P_j |e^{-iωD}F - HG|² + σ²|H|² by the midpoint rule, with the filters' rational functions."""
    n = 2**13
    omega = (np.arange(n) + 0.5) * np.pi / n
    z = np.exp(-1j * omega)
    g = np.moveaxis(np.polynomial.polynomial.polyval(z, np.moveaxis(plan.taps, -1, 0).astype(float)), -1, 0)
    h = plan.receiver.stages[0].response(omega)
    for stage in plan.receiver.stages[1:]:
        h = stage.response(omega) @ h
    wanted = plan.mechanism.target.response(omega) * (z**plan.lag)[:, None, None]
    sigma = plan.sigma.a / 2**plan.sigma.j
    return np.mean(sigma**2 * (np.abs(h) ** 2).sum((1, 2)) + (psds(omega) * np.abs(wanted - h @ g) ** 2).sum((1, 2)))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_prediction_is_that_of_numpy(made, adjacency):
    def psds(omega):
        z = np.exp(-1j * omega)
        gains = (0.43, 0.5), (0.43, 0.5), (0.6, 0.8)
        return np.stack([b**2 / np.abs(1 - a * z) ** 2 for b, a in gains], axis=-1)[:, None]

    _, plan = made("LMMSE", adjacency)
    assert plan.predicted_mse == pytest.approx(frequency_error(plan, psds), rel=1e-7)
    _, plan = made("zero forcing", adjacency)
    assert plan.predicted_mse == pytest.approx(frequency_error(plan, lambda omega: 1.0), rel=1e-7)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_mixing_prefilter_is_undone(adjacency):
    mechanism = mixed(adjacency)
    plan = dp.exact(mechanism, dp.Inputs(0, 9, n_streams=2))
    assert plan.predicted_mse / mechanism.predicted_mse == pytest.approx(1, abs=1e-3)
    x = np.random.default_rng(1).integers(0, 10, (2, 300))
    v = plan.privatize(x[:, :0], x, np.zeros((2, 300), np.int64))
    np.testing.assert_allclose(plan.estimate(v), mechanism.target.apply(x), atol=1e-9)


SUMS = {
    "total": dp.total(3) * SLOW,
    "differences": dp.differences(3) * QUICK,
    "total and a difference": TARGET,
    "weights": dp.FilterMatrix([[SLOW, 0.5 * SLOW, -2 / 3 * SLOW]]),
    "moving average": dp.total(3) * dp.Filter(np.full(12, 1 / 12)),  # with zeros on the circle
}


@pytest.mark.parametrize("adjacency", ADJACENCIES[:2])
@pytest.mark.parametrize("name", SUMS)
def test_sums_of_more_inputs_than_channels_are_undone(name, adjacency):
    """What the prefilter sees of three inputs is one sum or two: integer weights stand before rounded filters."""
    target = SUMS[name]
    mechanism = dp.zero_forcing(target, privacy(adjacency), prefilter="general")
    plan = dp.exact(mechanism, INPUTS)
    q, _, n = plan.taps.shape
    assert q == target.shape[0] < 3
    assert np.linalg.matrix_rank(np.moveaxis(plan.taps, 1, -1).reshape(q * n, 3)) == q
    assert plan.predicted_mse / mechanism.predicted_mse == pytest.approx(1, abs=1e-3)
    assert plan.predicted_mse == pytest.approx(frequency_error(plan, lambda omega: 1.0), rel=1e-7)
    x = np.random.default_rng(1).integers(0, 21, (3, 400))
    integers = plan.inputs.integers(x)
    v = plan.privatize(integers[:, :0], integers, np.zeros((q, 400), np.int64))
    np.testing.assert_allclose(plan.estimate(v), target.apply(x), atol=1e-8)
    assert plan.shift.squared_sensitivity == worst_change(plan, 1)
    again = load_exact(json.loads(json.dumps(plan.configuration)))
    np.testing.assert_array_equal(again.estimate(v), plan.estimate(v))


@pytest.mark.parametrize("name", ["input perturbation", "zero forcing", "separate"])
def test_without_noise_the_target_is_left(made, name):
    _, plan = made(name, "each_input")
    x = np.random.default_rng(1).integers(0, 21, (3, 400))
    integers = plan.inputs.integers(x)
    v = plan.privatize(integers[:, :0], integers, np.zeros((len(plan.taps), 400), np.int64))
    np.testing.assert_allclose(plan.estimate(v), TARGET.apply(x), atol=1e-8)


@pytest.mark.parametrize("name", ["zero forcing", "LMMSE"])
def test_monte_carlo_over_integers_agrees_with_the_prediction(name, monkeypatch):
    """300 runs, |mean - prediction| < 5.5 standard errors: a false alarm in 1e-7 of such runs (Student, 299)."""
    seed_noise(monkeypatch, 20131)
    runs, n, margin = 300, 300, 120
    fine = dp.Inputs(-30, 34, unit=Fraction(1, 16), centre=2, missing=2, n_streams=3)
    plan = dp.exact(DESIGNS[name](privacy("one_input")), fine)
    source, squares = Noise(plan.sigma), []
    inputs = [x.sample(runs, n, seed=7 + j) for j, x in enumerate(MODELS)]
    for each in zip(*inputs, strict=True):
        u = np.rint(16 * np.array(each)) / 16
        x = fine.integers(u)
        source.ready(3 * n)
        v = plan.privatize(x[:, :0], x, source.take(3 * n).reshape(3, n))
        late = TARGET.apply(u)[:, : n - plan.lag]
        squares.append(((plan.estimate(v)[:, plan.lag :] - late)[:, margin:] ** 2).sum(axis=0).mean())
    squares = np.array(squares)
    assert abs(squares.mean() - plan.predicted_mse) < 5.5 * squares.std(ddof=1) / math.sqrt(runs)


def worst_change(plan, horizon):
    """The largest energy of v by one event of a person, by all places and signs, sample by sample."""
    q, m, n = plan.taps.shape
    worst, adjacency = 0, plan.mechanism.privacy.adjacency
    for signs in itertools.product((-1, 0, 1), repeat=m):
        if adjacency == "one_input" and sum(map(abs, signs)) > 1:
            continue
        any_times = adjacency == "each_input"
        for times in itertools.product(range(horizon), repeat=m) if any_times else ((t,) * m for t in range(horizon)):
            x = np.zeros((m, horizon + n), np.int64)
            for i in range(m):
                x[i, times[i]] += signs[i]
            v = plan.privatize(x[:, :0], x, np.zeros((q, horizon + n), np.int64))
            worst = max(worst, int((v.astype(object) ** 2).sum()))
    return worst


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("events", [1, 2])
def test_the_guarantee_is_that_of_the_worst_event(adjacency, events):
    """What is stated follows from what runs, by the accountant alone; two events are a group of two."""
    design = mixed(adjacency)
    design = replace(design, privacy=privacy(adjacency, max_events=events))
    plan = dp.exact(design, dp.Inputs(0, 9, n_streams=2))
    worst = events**2 * worst_change(plan, 5)
    assert plan.shift.squared_sensitivity == worst
    assert plan.shift.n_coordinates == 2 * 2 * events * (2 if adjacency == "each_input" else 1)
    assert plan.guarantee.epsilon == epsilon([Shift(worst, plan.sigma, plan.shift.n_coordinates)], 0.05) <= math.log(3)
    with pytest.raises(DesignError, match="sigma must be so large"):
        replace(plan, sigma=plan.sigma._replace(a=plan.sigma.a * 99 // 100))


def test_changes_of_each_input_count_as_they_are():
    design = replace(mixed("one_input"), privacy=privacy("one_input", max_change=(1, 3)))
    plan = dp.exact(design, dp.Inputs(0, 9, n_streams=2))
    energies = (plan.taps.astype(object) ** 2).sum(axis=(0, 2))
    assert plan.shift.squared_sensitivity == max(energies[0], 9 * energies[1])
    assert plan.guarantee.items()["largest change"] == "1, 3 (stream by stream); after rounding 1, 3 units"


SENTENCES = {
    "one_input": "one event of size at most 1 in one of the 3 streams was",
    "each_input_same_time": "the events of one person, at most one in each of the 3 streams and all in the same step, "
    "each of size at most 1, were",
    "each_input": "the events of one person, at most one in each of the 3 streams at any times, each of size at most "
    "1, were",
}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_guarantee_says_what_one_person_may_change(made, adjacency):
    _, plan = made("zero forcing", adjacency)
    assert f"it is about whether {SENTENCES[adjacency]} in the data or not" in plan.guarantee.sentence
    content = json.loads(plan.guarantee.to_json())
    assert content["one_event"] == adjacency
    assert content["prefilter"]["channels"] == 3
    said = plan.guarantee.items()["noise"]
    assert said.startswith(
        f"discrete Gaussian, σ = {plan.sigma.a}/2^{plan.sigma.j} (about {plan.sigma.std:.4g}), drawn"
    )
    assert "once for every step of each of 3" in said


def test_a_plan_is_the_same_from_its_configuration_and_a_pickle(made):
    for name in DESIGNS:
        _, plan = made(name, "each_input")
        for same in (load_exact(json.loads(json.dumps(plan.configuration))), pickle.loads(pickle.dumps(plan))):
            assert same.digest == plan.digest
            assert not same.taps.flags.writeable
            v = np.arange(10 * len(plan.taps)).reshape(-1, 10) * 100
            assert (same.estimate(v) == plan.estimate(v)).all()
        assert repr(plan).startswith("<ExactChannels ")


@pytest.mark.filterwarnings("ignore::dpfast.AccuracyWarning")  # a receiver that undoes G, for no model
@pytest.mark.parametrize("white", [False, True])
def test_one_model_of_all_streams_is_kept(white):
    """A receiver for correlated streams is that of the design; all of it is the same from its configuration."""
    model = dp.VectorARMA([[[0.5, 0.2], [0, 0.4]]], innovation_covariance=[[1, 0.6], [0.6, 1]], mean=[2, 3])
    if white:
        model = dp.VectorARMA.independent([dp.ARMA([1], mean=2), dp.ARMA([1], mean=3)])
    design = replace(mixed("each_input"), models=model)
    plan = dp.exact(design, dp.Inputs(0, 9, n_streams=2))
    assert plan.receiver.means == (2.0, 3.0)
    assert plan.predicted_mse / design.predicted_mse == pytest.approx(1, abs=1e-3)
    again = load_exact(json.loads(json.dumps(plan.configuration)))
    assert again.digest == plan.digest
    assert again.mechanism.models == model


def test_estimates_do_not_depend_on_how_v_is_cut_or_where_the_receiver_was_stored(made):
    _, plan = made("LMMSE", "one_input")
    v = np.random.default_rng(2).integers(-500, 500, (3, 40))
    whole, live, at = plan.estimate(v), plan.live(), 0
    for n in (1, 2, 0, 7, 30):
        again = plan.live()
        again.restore(live.state())
        pieces = live.push(v[:, at : at + n]), again.push(v[:, at : at + n])
        for piece in pieces:
            assert (piece == whole[:, at : at + n]).all()
        at += n
    with pytest.raises(ValueError, match="numbers"):
        plan.live().restore(live.state()[:-8])
    with pytest.raises(ValueError, match="format"):
        plan.live().restore(b"no state")
    assert isinstance(live, LiveChannels)


def test_what_does_not_fit_is_refused():
    design = DESIGNS["zero forcing"](privacy("one_input"))
    with pytest.raises(ValueError, match="n_streams=3, one for each input"):
        dp.exact(design, dp.Inputs(0, 9, n_streams=2))
    with pytest.raises(ValueError, match="leave streams_per_person out"):
        dp.exact(design, dp.Inputs(0, 9, n_streams=3, streams_per_person=2))
    plan = dp.exact(design, INPUTS)
    with pytest.raises(DesignError, match="must stay below"):
        replace(plan, inputs=dp.Inputs(0, 2**40, n_streams=3), taps=plan.taps * 2**20)
    with pytest.raises(ValueError, match=r"an array \(channels, 3, n\)"):
        replace(plan, taps=plan.taps[:, :2])
    with pytest.raises(DesignError, match="squares that sum"):
        replace(plan, taps=plan.taps * 0)
    apart = dp.zero_forcing(dp.FilterMatrix([[SLOW, QUICK, QUICK]]), privacy("one_input"), prefilter="general")
    with pytest.raises(DesignError, match=r"can be undone .* that mixes inputs behind different filters"):
        dp.exact(apart, INPUTS)
    fitted = [dp.ARMA.fit(np.random.default_rng(1).normal(size=200), 1), *MODELS[1:]]
    with pytest.raises(ReleaseError, match=r"models\[0\] is fitted from private data"):
        dp.exact(dp.lmmse(TARGET, privacy("one_input"), fitted, lag=0), INPUTS)
    with pytest.raises(ValueError, match="without blocks"):
        dp.exact(design, INPUTS, last_block="drop")


def test_noise_on_the_outputs_needs_no_undoing_where_rounding_keeps_the_target():
    mechanism = dp.output_perturbation(dp.total(3), privacy("each_input"))
    plan = dp.exact(mechanism, INPUTS)
    assert plan.taps.shape == (1, 3, 1)
    assert len(set(plan.taps.ravel().tolist())) == 1
    assert plan.predicted_mse / mechanism.predicted_mse == pytest.approx(1, abs=1e-3)


LATE = dp.Filter([0, 0, 1])


@pytest.mark.parametrize("design", [dp.output_perturbation, lambda *x: dp.zero_forcing(*x, prefilter="general")])
@pytest.mark.parametrize("rows", [[[SLOW, 0], [0, QUICK * LATE]], [[SLOW, LATE], [QUICK, 5 * LATE]]])
def test_delays_of_inputs_are_undone(rows, design):
    """Of channels of one input each, and of ones that mix them."""
    mechanism = design(dp.FilterMatrix(rows), privacy("one_input"))
    plan = dp.exact(mechanism, dp.Inputs(0, 9, n_streams=2))
    assert plan.predicted_mse / mechanism.predicted_mse == pytest.approx(1, abs=1e-3)
    x = np.random.default_rng(1).integers(0, 10, (2, 300))
    v = plan.privatize(x[:, :0], x, np.zeros((2, 300), np.int64))
    np.testing.assert_allclose(plan.estimate(v), mechanism.target.apply(x), atol=1e-8)


def test_a_square_prefilter_without_a_stable_inverse_is_named():
    target = dp.FilterMatrix([[SLOW * SLOW, 2 * SLOW], [dp.Filter([1, 2]), 5]])
    mechanism = dp.zero_forcing(target, privacy("one_input"), prefilter="general")
    with pytest.raises(DesignError, match=r"shape \(2, 2\) whose inverse is not stable, without models: design it by"):
        dp.exact(mechanism, dp.Inputs(0, 9, n_streams=2))


def test_one_input_is_the_mechanism_of_one_stream():
    """A target of one row and one column has the noise of the filter alone, to a thousandth."""
    demand = dp.Privacy(math.log(3), 0.05)
    one, matrix = dp.zero_forcing(SLOW, demand), dp.zero_forcing(dp.FilterMatrix([[SLOW]]), demand)
    alone, plan = dp.exact(one, dp.Inputs(0, 20)), dp.exact(matrix, dp.Inputs(0, 20))
    assert plan.predicted_mse / alone.predicted_mse == pytest.approx(1, abs=1e-3)
    assert plan.guarantee.sentence == alone.guarantee.sentence


def test_an_inaccurate_design_is_warned_of():
    with pytest.warns(dp.AccuracyWarning, match="explains"):
        plan = dp.exact(dp.lmmse(TARGET, dp.Privacy(0.05, 1e-6, adjacency="one_input"), MODELS, lag=0), INPUTS)
    assert 0 <= plan.explained_if_model_holds < 0.5
