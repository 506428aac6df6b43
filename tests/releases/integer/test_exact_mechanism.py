"""Mechanisms in integers: what they cost, against numerical integration, and Monte Carlo over integers."""

import functools
import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dpfast as dp
from dpfast.privacy.discrete_gaussian_accounting import epsilon
from dpfast.releases import noise
from dpfast.releases.integer import exact_mechanism, tap_search
from dpfast.releases.integer.exact_mechanism import ExactMechanism
from dpfast.releases.noise import Noise

TARGET, SHORTER = dp.Filter([1, 0.995], [1, -0.995]), dp.Filter([1, 0.98], [1, -0.98])
PRIVACY = dp.Privacy(math.log(3), 0.05)
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
LEVELS = dp.Inputs(-0.5, 0.5, unit=0.5, missing=0)
COUNTS = dp.Inputs(0, 40, centre=2)

DESIGNS = {
    "optimal lag 5": lambda target: dp.optimal(target, PRIVACY, CHAIN, lag=5, tolerance=0.01),
    "LMMSE smoother": lambda target: dp.lmmse(target, PRIVACY, CHAIN, tolerance=0.01),
    "LMMSE lag 0": lambda target: dp.lmmse(target, PRIVACY, CHAIN, lag=0, tolerance=0.01),
    "LZF": lambda target: dp.zero_forcing(target, PRIVACY, tolerance=0.01),
    "DFE soft lag 5 (lmmse prefilter)": lambda target: dp.decision_feedback(target, PRIVACY, CHAIN, tolerance=0.01),
    "input perturbation": lambda target: dp.input_perturbation(target, PRIVACY),
    "robust lag 5": lambda target: dp.robust(target, PRIVACY, mean_square=0.25, lag=5, tolerance=0.1),
}
LINEAR = ["optimal lag 5", "LMMSE smoother", "LMMSE lag 0", "LZF", "input perturbation"]


class Examples:
    """The designs for a target, and their mechanisms in integers, each made when it is asked for."""

    def __init__(self, target):
        self.target = target

    @functools.cache  # noqa: B019 (two of them, which live as long as the tests)
    def __getitem__(self, name):
        mechanism = DESIGNS[name](self.target)
        assert mechanism.name == name
        return mechanism, dp.exact(mechanism, LEVELS)

    def values(self):
        return [self[name] for name in DESIGNS]


@pytest.fixture(scope="module", params=[SHORTER, pytest.param(TARGET, marks=pytest.mark.long)], ids=["0.98", "0.995"])
def example(request):
    """The paper's example, or that of a pole of 0.98; integers cost a thousandth of whatever the design is."""
    return Examples(request.param)


def integrated_mse(target, psd, taps, unit, sigma, response, lag):
    """∫ P |e^{-iωD}F - HG|² + σ²|H|², by the midpoint rule on 2^15 angles."""
    n = 2**15
    omega = (np.arange(n) + 0.5) * np.pi / n
    z = np.exp(-1j * omega)
    g = np.polynomial.polynomial.polyval(z, taps / unit)
    wanted = np.polyval(target[0][::-1], z) / np.polyval(target[1][::-1], z) * z**lag
    h = response(omega)
    return np.mean(psd(omega) * np.abs(wanted - h * g) ** 2 + sigma**2 * np.abs(h) ** 2)


@pytest.mark.parametrize("name", LINEAR)
def test_the_exact_release_costs_at_most_a_thousandth_more(example, name):
    mechanism, exact = example[name]
    assert 1 <= exact.predicted_mse / mechanism.predicted_mse <= 1.001


@pytest.mark.parametrize("name", LINEAR)
def test_the_prediction_is_that_of_numpy(example, name):
    _, exact = example[name]

    def psd(omega):  # of a chain of correlation 1/2 and variance 1/4
        return 3 / 16 / np.abs(1 - 0.5 * np.exp(-1j * omega)) ** 2

    target = example.target.b, example.target.a
    sigma = exact.sigma.a / 2**exact.sigma.j
    response = exact.receiver.response
    expected = integrated_mse(target, psd, exact.taps, 0.5, sigma, response, exact.lag or 0)
    assert exact.predicted_mse == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("name", ["optimal lag 5", "LMMSE smoother", "LZF", "DFE soft lag 5 (lmmse prefilter)"])
def test_monte_carlo_over_integers_agrees_with_the_prediction(example, name, monkeypatch):
    """256 streams; |mean - prediction| < 5.5 standard errors: a false alarm in 2e-7 of such runs (Student, 255)."""
    rng = np.random.default_rng(20130106)
    monkeypatch.setattr(
        noise, "_fill", lambda words: words.__setitem__(slice(None), rng.integers(2**32, size=len(words)))
    )
    mechanism, exact = example[name]
    exact = replace(exact, inputs=replace(LEVELS, n_streams=256))
    n, margin, lag = *((4000, 1500) if example.target == TARGET else (1500, 400)), exact.lag or 0
    u = CHAIN.sample(256, n, seed=4)
    source = Noise(exact.sigma)
    source.ready(u.size)
    x = exact.inputs.integers(u)
    v = exact.privatize(np.zeros((256, exact.memory), np.int64), x, source.take(u.size).reshape(u.shape))
    late = example.target.filter(u).y[:, : n - lag]
    squares = ((exact.estimate(v)[:, lag:] - late)[:, margin:-margin] ** 2).mean(axis=1)
    predicted, error = exact.predicted_mse, squares.std(ddof=1) / 16
    if predicted is None:  # decision feedback: the same as that of the float mechanism, simulated
        study = dp.monte_carlo([mechanism], CHAIN, n_streams=512, n_samples=n, seed=5)
        predicted, error = study[name].mse, error * math.sqrt(1.5)
    assert abs(squares.mean() - predicted) < 5.5 * error


def test_the_worst_case_of_a_robust_mechanism(example):
    """With the filters that run, from a fine grid: what is predicted, within a part in a thousand of the design."""
    mechanism, exact = example["robust lag 5"]
    omega = np.linspace(0, np.pi, 2**16 + 1)
    z = np.exp(-1j * omega)
    h, g = exact.receiver.response(omega), np.polynomial.polynomial.polyval(z, 2.0 * exact.taps)
    gap = np.abs(z**5 * example.target.response(omega) - h * g).max()
    # the mean of |h|² on the interval, by the trapezoidal rule
    power = np.abs(h) ** 2
    noise_mse = exact.sigma.std**2 * (power.sum() - (power[0] + power[-1]) / 2) / 2**16
    assert exact.predicted_mse == pytest.approx(0.25 * gap**2 + noise_mse, rel=1e-5)
    assert exact.predicted_mse <= 1.001 * mechanism.predicted_mse


def test_every_input_is_in_the_sensitivity(example):
    """Δ² = d²·Σg², of the taps that run; σ² ≥ κ²Δ² + 4 exactly; what is promised is what was demanded, or less."""
    for mechanism, exact in example.values():
        energy = sum(int(x) ** 2 for x in exact.taps)
        assert exact.shift.squared_sensitivity == 4 * energy  # an event of size 1 is two units of 1/2
        assert exact.shift.n_coordinates == len(exact.taps)
        kappa = Fraction(mechanism.privacy.noise_multiplier)
        assert Fraction(exact.sigma.a, 2**exact.sigma.j) ** 2 >= kappa**2 * 4 * energy + 4
        assert epsilon([exact.shift], 0.05) <= math.log(3)
        assert exact.guarantee.epsilon <= math.log(3)


def test_people_in_several_streams_and_several_events():
    privacy = dp.Privacy(1, 1e-6, max_events=3, min_separation=2)
    mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9]), privacy, tolerance=0.1)
    one, many = (dp.exact(mechanism, dp.Inputs(0, 40, n_streams=4, streams_per_person=k)) for k in (1, 4))
    r = np.correlate(many.taps, many.taps, "full")[len(many.taps) - 1 :]
    by_hand = 3 * r[0] + 2 * (2 * np.abs(r[2:]).max() + np.abs(r[4:]).max())
    assert many.shift.squared_sensitivity == 4 * by_hand
    assert many.shift.n_coordinates == 12 * len(many.taps)
    assert many.predicted_mse == pytest.approx(4 * one.predicted_mse, rel=2e-3)


def test_clamping_bounds_what_an_event_changes():
    mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6, max_change=50))
    exact = dp.exact(mechanism, dp.Inputs(0, 5))
    assert exact.shift.squared_sensitivity == 25 * sum(int(x) ** 2 for x in exact.taps)


def test_pieces_of_v_are_the_whole(example):
    _, exact = example["optimal lag 5"]
    rng = np.random.default_rng(1)
    x, drawn = rng.integers(-1, 2, (1, 900)), rng.integers(-999, 999, (1, 900))
    history = np.zeros((1, exact.memory), np.int64)
    whole = exact.privatize(history, x, drawn)
    assert (whole == np.convolve(exact.taps, x[0])[:900] + drawn).all()
    cuts, pieces = [0, 1, 2, 500, 900], []
    for a, b in itertools.pairwise(cuts):
        pieces.append(exact.privatize(history, x[:, a:b], drawn[:, a:b]))
        history = np.concatenate([history, x[:, a:b]], axis=1)[:, -exact.memory :]
    assert (np.concatenate(pieces, axis=1) == whole).all()


def test_streams_that_take_turns_behind_a_short_history_are_those_of_the_definition(example, monkeypatch):
    _, exact = example["optimal lag 5"]
    rng, n, past = np.random.default_rng(2), 30, exact.memory - 1
    history, x = rng.integers(-1, 2, (5, past)).astype(np.int8), rng.integers(-1, 2, (5, n))
    drawn = rng.integers(-999, 999, (5, n))
    inputs = np.concatenate([history, x], axis=1)
    expected = [np.convolve(exact.taps, row)[past : past + n] for row in inputs] + drawn
    for values in (1, 2 * (exact.memory + n), 2**16):
        monkeypatch.setattr(exact_mechanism, "_VALUES", values)
        assert (exact.privatize(history, x, drawn) == expected).all()


def test_what_is_written_comes_back_to_the_last_bit(example):
    for _, exact in example.values():
        again = ExactMechanism.from_configuration(json.loads(json.dumps(exact.configuration)))
        assert (again.digest, again.demand) == (exact.digest, exact.demand)
        assert (again.taps == exact.taps).all()
        v = np.arange(600).reshape(1, -1) * 1000
        assert (again.estimate(v) == exact.estimate(v)).all()
        assert str(again.guarantee) == str(exact.guarantee)


def test_other_demands_are_other_digests():
    mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.5]), dp.Privacy(1, 1e-6))
    digests = {
        dp.exact(mechanism, COUNTS).digest,
        dp.exact(mechanism, dp.Inputs(0, 41, centre=2)).digest,
        dp.exact(mechanism, COUNTS, tolerance=2e-3).digest,
        dp.exact(dp.zero_forcing(dp.Filter([1], [1, -0.5]), dp.Privacy(2, 1e-6)), COUNTS).digest,
    }
    assert len(digests) == 4


@pytest.mark.parametrize(("epsilon", "max_change"), [(1e-5, 1), (1e-3, 100), (1e-7, 1)])
def test_strong_privacy_and_large_changes_take_fewer_bits(epsilon, max_change):
    """The noise of 22 bits would be beyond what can be drawn."""
    privacy = dp.Privacy(epsilon, 1e-6, max_change=max_change)
    mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9]), privacy)
    exact = dp.exact(mechanism, dp.Inputs(0, 1000))
    assert exact.predicted_mse <= 1.001 * mechanism.predicted_mse


# --- slow prefilters --------------------------------------------------------------------------------


@pytest.mark.parametrize("lag", [3, pytest.param(None, marks=pytest.mark.long)])
def test_slow_prefilters_keep_their_receiver(lag):
    """Beyond 1024 taps; the error is that of numpy's integration all the same."""
    target, model = dp.Filter([1], [1, -0.9985]), dp.ARMA([1], [1, -0.5], mean=2.0)
    mechanism = dp.lmmse(target, dp.Privacy(1, 1e-6), model, lag=lag, tolerance=0.01)
    exact = dp.exact(mechanism, COUNTS)
    assert len(exact.taps) > 1024
    omega = (np.arange(2**16) + 0.5) * np.pi / 2**16
    g, h = dp.Filter(exact.taps).response(omega), exact.receiver.response(omega)
    wanted = target.response(omega) * np.exp(-1j * (lag or 0) * omega)
    expected = np.mean(model.psd(omega) * np.abs(wanted - h * g) ** 2 + exact.sigma.std**2 * np.abs(h) ** 2)
    assert exact.predicted_mse == pytest.approx(expected, rel=1e-7)
    assert exact.predicted_mse <= 1.001 * mechanism.predicted_mse


def test_zero_forcing_inverts_the_taps_however_long_they_are():
    mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.9982]), dp.Privacy(1, 1e-6))
    exact = dp.exact(mechanism, COUNTS)
    assert len(exact.taps) > 1024
    silent = np.zeros((1, 3000), np.int64)
    silent[0, 5] = 7
    v = exact.privatize(np.zeros((1, exact.memory), np.int64), silent, np.zeros_like(silent))
    impulse = 7 * 0.9982 ** np.arange(2995)
    # the receiver takes the mean of u for its own, 0, while the integers are about the centre, 2
    known = exact.estimate(np.zeros_like(v))
    np.testing.assert_allclose((exact.estimate(v) - known)[0, 5:], impulse, atol=1e-8)


@pytest.mark.parametrize(("pole", "most_taps"), [(0.9995, 2048), pytest.param(0.99998, 65_536, marks=pytest.mark.long)])
def test_a_prefilter_that_is_too_slow_is_refused(monkeypatch, pole, most_taps):
    assert tap_search.MAX_TAPS == 65_536
    monkeypatch.setattr(tap_search, "MAX_TAPS", most_taps)
    mechanism = dp.zero_forcing(dp.Filter([1], [1, -pole]), dp.Privacy(1, 1e-6))
    with pytest.raises(
        dp.DesignError, match=rf"tolerance must be larger .* got 0\.001: with {most_taps:,} integer taps of 22 bits"
    ):
        dp.exact(mechanism, COUNTS)


def test_more_tolerance_takes_fewer_taps(example):
    mechanism, _ = example["optimal lag 5"]
    sizes = [len(dp.exact(mechanism, LEVELS, tolerance=x).taps) for x in (1e-1, 1e-2, 1e-3)]
    assert sizes == sorted(set(sizes))


# --- prefilters with a delay, or without a stable inverse --------------------------------------------


def test_a_delay_that_prefilter_and_target_share_is_no_hindrance():
    """Noise on a delayed output: without noise the receiver leaves the target, delay and all."""
    late = dp.Filter([0, 0, 1, 0.5], [1, -0.8])
    mechanism = dp.output_perturbation(late, PRIVACY)
    plan = dp.exact(mechanism, dp.Inputs(0, 9))
    assert plan.predicted_mse <= mechanism.predicted_mse * (1 + 1e-3)
    x = np.random.default_rng(1).integers(0, 10, (2, 200))
    v = plan.privatize(x[:, :0], x, np.zeros(x.shape, np.int64))
    np.testing.assert_allclose(plan.estimate(v), late.apply(x.astype(float)), atol=1e-9)


@pytest.mark.parametrize("taps", [[1, 2], [0.5, 0.5], [0, 1, -1]])
def test_what_has_no_stable_inverse_is_refused_with_what_to_take_instead(taps):
    mechanism = dp.output_perturbation(dp.Filter(taps), PRIVACY)
    with pytest.raises(dp.ReleaseError, match=r"must undo rounded taps .* not stable: design it by zero_forcing"):
        dp.exact(mechanism, dp.Inputs(0, 9))
    dp.exact(dp.zero_forcing(dp.Filter(taps), PRIVACY), dp.Inputs(0, 9))


# --- refusals ---------------------------------------------------------------------------------------


def test_designs_that_depend_on_private_data_are_refused():
    u = np.random.default_rng(1).poisson(2, 500)
    fitted = dp.lmmse(dp.Filter([1]), dp.Privacy(1, 1e-6), dp.ARMA.fit(u, 2), lag=1)
    with pytest.raises(dp.ReleaseError, match="mechanism must not depend on private data, got a design whose model"):
        dp.exact(fitted, COUNTS)
    chosen = dp.zero_forcing(dp.Filter([1]), dp.Privacy(1, 1e-6)).with_sources(epsilon="fitted-from-private")
    with pytest.raises(dp.ReleaseError, match="whose epsilon is fitted from private data"):
        dp.exact(chosen, COUNTS)


def test_whatever_makes_one_it_keeps_what_is_demanded():
    """A configuration that was edited, or a dataclass with other fields."""
    plan = dp.exact(dp.input_perturbation(dp.Filter([1]), PRIVACY), COUNTS)
    given = plan.configuration
    a, j = given["sigma"]
    with pytest.raises(dp.DesignError, match=r"sigma must be so large that epsilon is at most 1[.]09861, got"):
        ExactMechanism.from_configuration(given | {"sigma": [a - a // 1000, j]})
    with pytest.raises(dp.DesignError, match="sigma must be so large"):
        replace(plan, taps=2 * plan.taps)
    with pytest.raises(dp.DesignError, match="sums of this prefilter must stay below"):
        replace(plan, taps=np.full(4, 2**58))
    with pytest.raises(dp.ReleaseError, match="must not depend on private data"):
        replace(plan, mechanism=plan.mechanism.with_sources(epsilon="fitted-from-private"))


def test_a_change_is_stated_as_it_is():
    """As a rounded number it promised more: at most 1 are two units, and one is protected."""
    mechanism = dp.input_perturbation(dp.Filter([1]), dp.Privacy(1, 1e-6, max_change=0.99999999))
    guarantee = dp.exact(mechanism, dp.Inputs(0, 20, unit=0.5)).guarantee
    assert guarantee.items()["largest change"] == "0.99999999; after rounding 1 unit"
    assert "one event of size at most 0.99999999 was" in guarantee.sentence


def test_sums_that_do_not_fit_are_refused():
    mechanism = dp.zero_forcing(dp.Filter([1], [1, -0.995]), dp.Privacy(1, 1e-6))
    with pytest.raises(dp.DesignError, match=r"inputs must have a smaller range .* below 2\*\*62"):
        dp.exact(mechanism, dp.Inputs(-(2**40), 2**40), tolerance=1e-7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TARGET, COUNTS), "mechanism must be a Mechanism"),
        ((None, COUNTS), "mechanism must be a Mechanism, got None"),
        ((dp.input_perturbation(TARGET, PRIVACY), None), "inputs must be an Inputs, .* got None"),
        ((dp.input_perturbation(TARGET, PRIVACY), (0, 40)), "inputs must be an Inputs, .* got a tuple"),
    ],
)
def test_other_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        dp.exact(*arguments)


def test_smoothers_do_not_run_live(example):
    with pytest.raises(dp.ReleaseError, match="mechanism must be causal to run as a stream, got the smoother"):
        example["LMMSE smoother"][1].live()


def test_an_exact_mechanism_shows_what_it_is(example):
    assert repr(example["LZF"][1]).startswith("<ExactMechanism 'LZF': ")


def test_rounding_tries_more_bits_where_rounding_has_moved_a_zero_out_of_the_circle():
    """A G with zeros near the circle, whose first roundings have no stable inverse."""
    mechanism = dp.zero_forcing(dp.Filter([1, -1.8, 0.97]), dp.Privacy(1, 1e-6))
    exact = dp.exact(mechanism, COUNTS)
    zeros = np.roots(np.trim_zeros(exact.taps, "f"))
    assert np.abs(zeros).max() < 1
    assert tap_search.round_to_integers(mechanism, COUNTS, 1e-3).sigma == exact.sigma


def test_integer_taps_are_found_for_loud_streams_whose_spectrum_has_a_zero_on_the_circle():
    """Receivers have a pole near the circle, and errors on too few angles were some times too large for any taps."""
    target, model = dp.Filter(np.ones(20) / 20), dp.ARMA([300.0, -300.0])
    mechanism = dp.lmmse(target, dp.Privacy(3, 0.05), model, lag=5, prefilter=dp.Filter([1, 0.9], [1, -0.7]))
    exact = dp.exact(mechanism, dp.Inputs(0, 1000))
    assert exact.predicted_mse <= mechanism.predicted_mse * (1 + 1e-3)
    sigma, response = exact.sigma.a / 2**exact.sigma.j, exact.receiver.response
    expected = integrated_mse((target.b, target.a), model.psd, exact.taps, 1, sigma, response, 5)
    assert exact.predicted_mse == pytest.approx(expected, rel=1e-6)


def test_no_exact_mechanism_keeps_less_than_its_design_demands(example):
    mechanism, exact = example["LZF"]
    with pytest.raises(dp.DesignError, match="sigma must be so large that epsilon is at most"):
        replace(exact, sigma=exact.sigma._replace(a=exact.sigma.a * 9 // 10))
    with pytest.raises(dp.ReleaseError, match="must not depend on private data"):
        replace(exact, mechanism=mechanism.with_sources(target="fitted-from-private"))
