"""Decision feedback against brute-force least squares, plain loops, independent quadrature and simulation."""

import math
import warnings

import numpy as np
import pytest
from helpers.designs import designed
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal

from dpfast import (
    ARMA,
    DesignError,
    Filter,
    IndependentLevels,
    MarkovChain,
    Privacy,
    decision_feedback,
    ideal_feedback,
    lmmse,
    monte_carlo,
    zero_forcing,
)

EXAMPLE = Filter([1, 0.995], [1, -0.995])
CHAIN = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
THREE = MarkovChain([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]], levels=[0, 1, 5])
COIN = IndependentLevels([-1, 4], [0.9, 0.1])
COLOURED = ARMA([1, 0.5], [1, -0.6, 0.2], levels=[-8, -1, 0, 2, 9], mean=0.3)
PRIVACY = Privacy(math.log(3), 0.05, calibration="paper")
WEAK = Privacy(math.log(3), 0.05, max_change=0.02)
PREFILTER = Filter([1, 0.2], [1, -0.9])

MODELS = {"two levels": CHAIN, "three levels": THREE, "asymmetric coin": COIN, "coloured": COLOURED}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


# --- oracles --------------------------------------------------------------------------------------


def in_white_noise(model, prefilter, noise_std, lag, n_forward, n_feedback, memory=600):
    """Rows v_t ... and u_{t-lag-1} ..., and u_{t-lag}, as combinations of past unit white noises w and n."""
    shaping = model.shaping
    pulse = np.zeros(memory)
    pulse[0] = 1
    h = signal.lfilter(shaping.b, shaping.a, pulse)
    gh = signal.lfilter(prefilter.b, prefilter.a, h)
    width = memory + n_forward + lag + n_feedback + 1

    def row(response, delay, noise=None):
        out = np.zeros(width + n_forward)
        out[delay : delay + memory] = response
        if noise is not None:
            out[width + noise] = noise_std
        return out

    rows = [row(gh, i, noise=i) for i in range(n_forward)]
    rows += [row(h, lag + j) for j in range(1, n_feedback + 1)]
    return np.array(rows), row(h, lag)


def decide(receiver, v):
    """The receiver as written, one sample at a time; on the centred input."""
    levels = receiver.levels - receiver.mean
    alpha, mse = receiver.shrinkage, receiver.error_variance
    decisions = []
    for t in range(len(v)):
        x = sum(c * v[t - i] for i, c in enumerate(receiver.forward) if t >= i)
        x += sum(c * decisions[t - j] for j, c in enumerate(receiver.feedback, 1) if t >= j)
        if t < receiver.lag:
            decisions.append(0.0)
        elif receiver.decision == "soft":
            exponent = np.log(receiver.probabilities) - (x - alpha * levels) ** 2 / (2 * alpha * mse)
            weights = np.exp(exponent - exponent.max())
            decisions.append(float(weights @ levels / weights.sum()))
        else:
            decisions.append(float(levels[np.argmin(np.abs(x / alpha - levels))]))
    return np.array(decisions) + np.where(np.arange(len(v)) >= receiver.lag, receiver.mean, 0)


# --- taps -----------------------------------------------------------------------------------------


@each_model
@pytest.mark.parametrize(
    ("lag", "n_forward", "n_feedback"), [(0, 8, 4), (5, 12, 6), (3, 1, 1), (2, 20, 0), (40, 64, 16)]
)
@pytest.mark.parametrize(
    "prefilter", [Filter([1]), PREFILTER, Filter([0, 1, -2], [1, -0.5])], ids=["1", "slow", "late"]
)
def test_the_taps_are_the_least_squares_solution(model, prefilter, lag, n_forward, n_feedback):
    mechanism = decision_feedback(
        EXAMPLE, PRIVACY, model, lag=lag, prefilter=prefilter, n_forward=n_forward, n_feedback=n_feedback
    )
    receiver = mechanism.receiver
    rows, wanted = in_white_noise(model, prefilter, mechanism.noise_std, lag, n_forward, n_feedback)
    taps = np.linalg.lstsq(rows.T, wanted)[0]
    np.testing.assert_allclose(receiver.forward, taps[:n_forward], rtol=0, atol=1e-9 * np.abs(taps).max() + 1e-15)
    np.testing.assert_allclose(receiver.feedback, taps[n_forward:], rtol=0, atol=1e-9 * np.abs(taps).max() + 1e-15)
    mse = np.sum((wanted - taps @ rows) ** 2)
    assert receiver.error_variance == pytest.approx(mse, rel=1e-8)
    assert receiver.shrinkage == pytest.approx(1 - mse / np.sum(wanted**2), rel=1e-8)


def test_the_taps_solve_the_normal_equations_written_as_loops():
    lag, n_forward, n_feedback, n = 2, 5, 3, 250
    mechanism = decision_feedback(
        EXAMPLE, PRIVACY, CHAIN, lag=lag, prefilter=PREFILTER, n_forward=n_forward, n_feedback=n_feedback
    )
    g = [0.9**k + (0.2 * 0.9 ** (k - 1) if k else 0) for k in range(n)]

    def r_u(k):
        return 0.25 * 0.5 ** abs(k)

    def r_uv(k):
        """E[u_t v_{t-k}]."""
        return sum(g[m] * r_u(k + m) for m in range(n))

    def r_v(k):
        total = sum(g[m] * r_uv(k - m) for m in range(n))
        return total + (mechanism.noise_std**2 if k == 0 else 0)

    # one residual for each observation: E[(u_{t-lag} - ũ_t) v_{t-i}] and E[(u_{t-lag} - ũ_t) u_{t-lag-j}]
    forward, feedback = mechanism.receiver.forward, mechanism.receiver.feedback
    for i in range(n_forward):
        estimate = sum(forward[k] * r_v(k - i) for k in range(n_forward))
        estimate += sum(feedback[j - 1] * r_uv(i - lag - j) for j in range(1, n_feedback + 1))
        assert estimate == pytest.approx(r_uv(i - lag), rel=1e-9)
    for j in range(1, n_feedback + 1):
        estimate = sum(forward[k] * r_uv(k - lag - j) for k in range(n_forward))
        estimate += sum(feedback[k - 1] * r_u(k - j) for k in range(1, n_feedback + 1))
        assert estimate == pytest.approx(r_u(j), rel=1e-9)


@given(st.integers(1, 10), st.integers(0, 6), st.integers(0, 8), st.sampled_from([CHAIN, THREE, COIN, COLOURED]))
def test_more_taps_and_more_lag_are_never_worse(n_forward, n_feedback, lag, model):
    def error(lag, n_forward, n_feedback):
        options = {"lag": lag, "n_forward": n_forward, "n_feedback": n_feedback, "prefilter": PREFILTER}
        return decision_feedback(EXAMPLE, PRIVACY, model, **options).receiver.error_variance

    base = error(lag, n_forward, n_feedback)
    assert error(lag, n_forward + 3, n_feedback) <= base * (1 + 1e-9)
    assert error(lag, n_forward, n_feedback + 2) <= base * (1 + 1e-9)
    assert error(lag + 1, n_forward + 1, n_feedback) <= base * (1 + 1e-9)
    assert 0 < base < model.variance


@pytest.mark.parametrize("model", [CHAIN, THREE, COIN], ids=["two levels", "three levels", "coin"])
@pytest.mark.parametrize("privacy", [PRIVACY, WEAK], ids=["strong", "weak"])
def test_many_taps_approach_the_ideal_for_the_identity(model, privacy):
    """Of F = 1 the ideal error is γ_u²/γ², that of u itself with all future observations and all past inputs."""
    mechanism = decision_feedback(
        Filter([1]), privacy, model, lag=60, prefilter=PREFILTER, n_forward=160, n_feedback=60, decision="soft"
    )
    assert mechanism.receiver.error_variance == pytest.approx(mechanism.ideal_mse, rel=1e-6)


# --- decisions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "decision"),
    [
        (CHAIN, "sign"),
        (COIN, "sign"),
        (CHAIN, "quantizer"),
        (THREE, "quantizer"),
        (COLOURED, "quantizer"),
        (CHAIN, "soft"),
        (COIN, "soft"),
        (THREE, "soft"),
        (COLOURED, "soft"),
    ],
)
@pytest.mark.parametrize("lag", [0, 4])
def test_decisions_are_those_of_a_plain_loop(model, decision, lag):
    privacy = Privacy(1, 0.05, max_change=0.5)
    mechanism = decision_feedback(
        EXAMPLE, privacy, model, lag=lag, prefilter=PREFILTER, decision=decision, n_forward=10, n_feedback=4
    )
    v = mechanism.simulate(model.sample(1, 200, seed=3)[0], seed=4).privatized
    expected = decide(mechanism.receiver, v)
    estimate, decisions = mechanism.receiver.estimate(v[None])
    np.testing.assert_allclose(decisions[0], expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(estimate[0], signal.lfilter([1, 0.995], [1, -0.995], expected), rtol=0, atol=1e-6)
    later = decisions[0, lag:]
    if decision == "soft":
        assert ((model.levels[0] <= later) & (later <= model.levels[-1])).all()
    else:
        assert set(np.round(later, 9)) <= set(np.round(model.levels, 9))


def test_the_soft_decision_of_two_symmetric_levels_is_a_hyperbolic_tangent():
    mechanism = decision_feedback(EXAMPLE, PRIVACY, CHAIN, lag=0, prefilter=Filter([1]), n_forward=1, n_feedback=0)
    receiver = mechanism.receiver
    v = np.linspace(-20, 20, 41)
    _, decisions = receiver.estimate(v[:, None])
    expected = 0.5 * np.tanh(0.5 * receiver.forward[0] * v / receiver.error_variance)
    np.testing.assert_allclose(decisions[:, 0], expected, rtol=1e-12, atol=1e-15)


@given(st.floats(-1e3, 1e3), st.sampled_from(["sign", "quantizer", "soft"]))
def test_decisions_of_symmetric_levels_are_odd(value, decision):
    options = {"lag": 0, "prefilter": Filter([1]), "n_forward": 1, "n_feedback": 0, "decision": decision}
    receiver = decision_feedback(EXAMPLE, PRIVACY, CHAIN, **options).receiver
    _, (up, down) = receiver.estimate(np.array([[value], [-value]]))
    if value != 0:
        assert up == pytest.approx(-down, rel=1e-12)


def test_the_sign_is_the_quantizer_of_two_levels():
    one, other = (
        decision_feedback(EXAMPLE, PRIVACY, COIN, prefilter=PREFILTER, decision=x) for x in ("sign", "quantizer")
    )
    u = COIN.sample(2, 500, seed=1)
    np.testing.assert_array_equal(one.simulate(u, seed=2).decisions, other.simulate(u, seed=2).decisions)


def test_a_shifted_alphabet_shifts_the_decisions():
    moved = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[9.5, 10.5])
    u = CHAIN.sample(2, 500, seed=1)
    for decision in ("soft", "sign"):
        options = {"prefilter": PREFILTER, "decision": decision}
        one, other = (decision_feedback(EXAMPLE, PRIVACY, model, **options) for model in (CHAIN, moved))
        np.testing.assert_allclose(other.receiver.forward, one.receiver.forward, rtol=1e-9)
        here, there = one.simulate(u, seed=2), other.simulate(u + 10, seed=2)
        np.testing.assert_allclose(there.decisions[:, 5:], here.decisions[:, 5:] + 10, rtol=0, atol=1e-6)


# --- ideal feedback -------------------------------------------------------------------------------

IDEALS = {
    "example": (EXAMPLE, CHAIN, PREFILTER),
    "outside zero": (Filter([1, -2], [1, -0.5]), CHAIN, PREFILTER),
    "signal with an outside zero": (Filter([1], [1, -0.9]), ARMA([1, -2], levels=[-9, 9]), Filter([1])),
    "gain": (Filter([-5, 1], [1, -0.5]), COLOURED, Filter([3, 1])),
    "delay": (Filter([0, 0, 2], [1, -0.5]), CHAIN, Filter([1])),
    "white": (Filter([1], [1, -0.9]), COIN, Filter([1])),
}


@pytest.fixture(params=IDEALS.values(), ids=list(IDEALS))
def plant(request):
    """(formulas, P, |F|², x/c², G, noise variance) on a uniform grid of the half circle, and the quadrature there."""
    target, model, prefilter = request.param
    formulas = ideal_feedback(target, PRIVACY, model, prefilter)
    z = np.exp(-1j * formulas.omega)
    F, G, shaping = (np.polyval(f.b[::-1], z) / np.polyval(f.a[::-1], z) for f in (target, prefilter, model.shaping))
    weights = np.full(len(z), 1 / (len(z) - 1))
    weights[[0, -1]] /= 2
    noise = PRIVACY.noise_multiplier**2 * (weights @ np.abs(G) ** 2)
    return formulas, np.abs(shaping) ** 2, np.abs(F) ** 2, np.abs(G) ** 2 / noise, G, noise, weights


def test_ideal_feedback_is_monic_and_causal(plant):
    pulses = np.fft.irfft(plant[0].feedback)
    assert pulses[0] == pytest.approx(1, abs=1e-9)
    assert np.abs(pulses[-len(pulses) // 8 :]).max() <= 1e-9 * np.abs(pulses).max()


def test_ideal_feedback_is_exact_where_a_zero_is_on_the_circle_in_front_of_little_noise():
    """Of white levels and G = 1 - z⁻¹: B = 1 - cz⁻¹, c + 1/c = 2 + 2κ², of levels of a variance of 1."""
    privacy = Privacy(1e7, 0.05)
    levels = IndependentLevels([-1, 1], [0.5, 0.5])
    feedback = ideal_feedback(Filter([1]), privacy, levels, Filter([1, -1])).feedback
    half = 1 + privacy.noise_multiplier**2
    expected = np.zeros(64)
    expected[:2] = 1, -1 / (half + math.sqrt((half - 1) * (half + 1)))
    np.testing.assert_allclose(np.fft.irfft(feedback)[:64], expected, atol=1e-9)


def test_ideal_feedback_has_the_magnitude_of_the_formula(plant):
    formulas, P, F2, snr, _, _, weights = plant
    gains = [np.exp(weights @ np.log(x)) for x in (P, F2, P * snr + 1)]
    expected = (P * snr + 1) / gains[2] / (P / gains[0]) / (F2 / gains[1])
    np.testing.assert_allclose(np.abs(formulas.feedback) ** 2, expected, rtol=1e-7)


def test_ideal_forward_filter_is_the_formula(plant):
    formulas, P, _, snr, G, noise, _ = plant
    np.testing.assert_allclose(formulas.forward, formulas.feedback * P * G.conj() / (noise * (P * snr + 1)), rtol=1e-9)


def test_ideal_error_is_the_ratio_of_the_gains(plant):
    formulas, P, F2, snr, _, _, weights = plant
    assert formulas.mse == pytest.approx(np.exp(weights @ np.log(P * F2 / (P * snr + 1))), rel=1e-8)


def test_ideal_error_is_that_of_the_filters(plant):
    formulas, P, F2, snr, _, _, weights = plant
    error = P * F2 * np.abs(formulas.feedback) ** 2 / (P * snr + 1)
    assert formulas.mse == pytest.approx(weights @ error, rel=1e-7)
    np.testing.assert_allclose(error, formulas.mse, rtol=1e-7)  # B makes it white


def test_no_other_monic_feedback_is_better(plant):
    formulas, P, F2, snr, _, _, weights = plant
    z = np.exp(-1j * formulas.omega)
    for step in ([0.1], [-0.1], [0, 0.2], [0.05, -0.1, 0.3]):
        other = formulas.feedback + sum(c * z**k for k, c in enumerate(step, 1))
        assert weights @ (P * F2 * np.abs(other) ** 2 / (P * snr + 1)) >= formulas.mse * (1 - 1e-8)


def test_ideal_error_of_the_example_is_far_below_what_any_receiver_reaches():
    mechanism = designed(decision_feedback, EXAMPLE, PRIVACY, CHAIN, tolerance=0.01)
    assert mechanism.ideal_rmse == pytest.approx(0.42, abs=0.01)
    assert mechanism.predicted_mse is None
    assert "assumes error-free decisions" in mechanism.summary()


@pytest.mark.parametrize("target", [EXAMPLE, Filter([1, -2], [1, -0.5])])
@pytest.mark.parametrize("model", [COIN, ARMA([2.0], levels=[-3, 3])], ids=["coin", "white ARMA"])
def test_the_own_prefilter_of_white_input_is_flat(target, model):
    mechanism = decision_feedback(target, PRIVACY, model, prefilter="decision-feedback")
    np.testing.assert_allclose(np.abs(mechanism.prefilter.response(np.linspace(0, np.pi, 50))), 1, rtol=1e-6)


def test_the_own_prefilter_has_the_least_ideal_error():
    model = ARMA([0.4], [1, -1.2, 0.72], levels=[-3, 3])
    errors = {x: decision_feedback(EXAMPLE, PRIVACY, model, prefilter=x, tolerance=0.01).ideal_mse for x in PREFILTERS}
    assert errors["decision-feedback"] == min(errors.values())


PREFILTERS = ["lmmse", "decision-feedback", "zero-forcing"]


@pytest.mark.parametrize("prefilter", PREFILTERS)
def test_named_prefilters_are_those_of_the_designs(prefilter):
    mechanism = designed(decision_feedback, EXAMPLE, PRIVACY, CHAIN, prefilter=prefilter, tolerance=0.01)
    assert prefilter in mechanism.name
    assert mechanism.noise_std == PRIVACY.noise_std(mechanism.prefilter)
    if prefilter == "lmmse":
        assert mechanism.prefilter == lmmse(EXAMPLE, PRIVACY, CHAIN, tolerance=0.01).prefilter
    if prefilter == "zero-forcing":
        assert mechanism.prefilter == zero_forcing(EXAMPLE, PRIVACY, tolerance=0.01).prefilter


ON_THE_CIRCLE = {
    "difference": (Filter([1, -1]), CHAIN),
    "sum": (Filter([1, 1]), CHAIN),
    "moving average": (Filter(np.full(12, 1 / 12)), CHAIN),
    "signal with a zero at 0": (EXAMPLE, ARMA([1, -1], levels=[-3, 3])),
    "signal with a zero at π": (EXAMPLE, ARMA([1, 1], [1, -0.5], levels=[-9, 9])),
    "second difference": (Filter([1, -2, 1]), CHAIN),
}


@pytest.mark.parametrize(("target", "model"), ON_THE_CIRCLE.values(), ids=ON_THE_CIRCLE)
@pytest.mark.parametrize("prefilter", ["decision-feedback", Filter([1])], ids=["own", "identity"])
def test_zeros_on_the_circle_work(target, model, prefilter):
    mechanism = decision_feedback(target, PRIVACY, model, prefilter=prefilter, tolerance=0.1)
    assert np.isfinite(mechanism.receiver.forward).all()
    if not isinstance(prefilter, str):  # γ_u γ_F are leading coefficients, and the rest is smooth
        omega = 2 * np.pi * np.arange(4096) / 4096
        gain = (target.b[0] * model.shaping.b[0]) ** 2
        snr = np.abs(model.shaping.response(omega)) ** 2 / PRIVACY.noise_multiplier**2
        assert mechanism.ideal_mse == pytest.approx(gain * np.exp(-np.log1p(snr).mean()), rel=1e-9)


# --- simulation -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "decision"), [(CHAIN, "sign"), (THREE, "quantizer"), (CHAIN, "soft"), (COIN, "sign")]
)
@pytest.mark.parametrize("prefilter", ["decision-feedback", "zero-forcing"])
def test_at_weak_privacy_decisions_are_free_of_errors(model, decision, prefilter):
    lag, start = 5, 200
    target = Filter([1], [1, -0.9])
    mechanism = decision_feedback(target, WEAK, model, lag=lag, prefilter=prefilter, decision=decision)
    u = model.sample(16, 3000, seed=1)
    paths = mechanism.simulate(u, seed=2)
    late, decisions = u[:, start - lag : -lag], paths.decisions[:, start:]
    np.testing.assert_allclose(decisions, late, rtol=0, atol=1e-2 if decision == "soft" else 1e-9)
    wanted = signal.lfilter([1], [1, -0.9], u)[:, start - lag : -lag]
    np.testing.assert_allclose(paths.estimate[:, start:], wanted, rtol=0, atol=0.1 if decision == "soft" else 1e-6)

    # the error in front of the decision is that of the normal equations
    receiver = mechanism.receiver
    fed_back = np.pad(paths.decisions - model.mean, ((0, 0), (1, 0)))[:, :-1]
    before = signal.lfilter(receiver.forward, 1, paths.privatized) + signal.lfilter(receiver.feedback, 1, fed_back)
    errors = ((late - model.mean - before[:, start:]) ** 2).mean(axis=1)
    half = 4 * errors.std(ddof=1) / math.sqrt(len(errors))
    assert abs(errors.mean() - receiver.error_variance) <= half


@pytest.mark.slow_nojit
def test_at_the_privacy_of_the_example_hard_decisions_are_far_worse_than_zero_forcing():
    """Erratum 4: wrong decisions feed back, and F integrates them."""
    mechanisms = [zero_forcing(EXAMPLE, PRIVACY), lmmse(EXAMPLE, PRIVACY, CHAIN, lag=5, tolerance=0.01)]
    for prefilter in ("lmmse", "decision-feedback"):
        made = designed(decision_feedback, EXAMPLE, PRIVACY, CHAIN, prefilter=prefilter, tolerance=0.01).prefilter
        mechanisms += [
            decision_feedback(EXAMPLE, PRIVACY, CHAIN, decision=x, prefilter=made, name=f"{x} {prefilter}")
            for x in ("sign", "soft")
        ]
    study = monte_carlo(mechanisms, CHAIN, n_streams=64, n_samples=3000, seed=11)
    linear = study["LZF"].interval
    assert linear[0] < 7.475 < linear[1] * 1.01
    for prefilter in ("lmmse", "decision-feedback"):
        hard, soft = study[f"sign {prefilter}"], study[f"soft {prefilter}"]
        assert hard.interval[0] > 1.5 * linear[1]
        assert hard.interval[1] < 400
        assert soft.interval[1] < hard.interval[0]
        assert soft.interval[0] > 4.6704  # no better than the linear smoother
        assert soft.interval[1] < 20
        assert study.compare(f"sign {prefilter}", "LZF").interval[0] > 0


@pytest.mark.slow_nojit
def test_at_weak_privacy_hard_decisions_beat_the_linear_mechanisms():
    privacy = Privacy(math.log(3), 0.05, max_change=0.14 / 1.75633987, calibration="paper")  # κd = .14
    options = {"prefilter": "decision-feedback", "decision": "sign", "name": "hard", "tolerance": 0.01}
    mechanisms = [decision_feedback(EXAMPLE, privacy, CHAIN, **options)]
    mechanisms += [lmmse(EXAMPLE, privacy, CHAIN, lag=lag, tolerance=0.01) for lag in (5, None)]
    study = monte_carlo(mechanisms, CHAIN, n_streams=256, n_samples=1500, seed=5)
    assert not study["hard"].is_rare  # at .1 there are too few wrong decisions to tell
    assert study["hard"].interval[1] < study["LMMSE smoother"].interval[0]
    assert study["hard"].interval[1] < study["LMMSE lag 5"].interval[0]


# --- errors ---------------------------------------------------------------------------------------


def test_a_model_without_levels_is_an_error():
    with pytest.raises(DesignError, match="levels"):
        decision_feedback(EXAMPLE, PRIVACY, ARMA([1], [1, -0.5]))


def test_the_sign_of_three_levels_is_an_error():
    with pytest.raises(DesignError, match="decision='sign' must have two levels, got 3"):
        decision_feedback(EXAMPLE, PRIVACY, THREE, decision="sign")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("decision", "hard"),
        ("decision", None),
        ("prefilter", "smoother"),
        ("prefilter", None),
        ("prefilter", [1.0]),
        ("n_forward", 0),
        ("n_forward", 1.5),
        ("n_feedback", -1),
        ("n_feedback", "2"),
        ("lag", -1),
        ("lag", 1.5),
        ("lag", None),
        ("tolerance", 0),
        ("tolerance", math.nan),
    ],
)
def test_a_bad_argument_is_named(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        decision_feedback(EXAMPLE, PRIVACY, CHAIN, **{name: value})


@pytest.mark.parametrize("target", [None, [1.0], 3])
def test_a_target_that_is_no_filter_is_named(target):
    with pytest.raises(ValueError, match="target must be a Filter"):
        decision_feedback(target, PRIVACY, CHAIN)


def test_a_zero_filter_is_named():
    with pytest.raises(DesignError, match="target must not be zero"):
        decision_feedback(Filter([0.0]), PRIVACY, CHAIN)
    with pytest.raises(DesignError, match="prefilter must not be zero"):
        decision_feedback(EXAMPLE, PRIVACY, CHAIN, prefilter=Filter([0.0]))


@pytest.mark.parametrize("privacy", [Privacy(1e-4, 1e-12), Privacy(1e-6, 1e-12)])
@pytest.mark.parametrize("decision", ["soft", "sign"])
def test_extreme_privacy_gives_finite_decisions(privacy, decision):
    mechanism = decision_feedback(EXAMPLE, privacy, CHAIN, prefilter=PREFILTER, decision=decision)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        paths = mechanism.simulate(CHAIN.sample(4, 300, seed=0), seed=1)
    assert np.isfinite(paths.estimate).all()
    assert mechanism.receiver.shrinkage > 0


@pytest.mark.parametrize("max_change", [1e-3, 1e-5, 1e-7])
def test_almost_no_noise_gives_the_input_back(max_change):
    privacy = Privacy(1, 0.01, max_change=max_change)
    for decision in ("soft", "sign"):
        options = {"prefilter": Filter([1, 0.5]), "lag": 2, "decision": decision}
        mechanism = decision_feedback(EXAMPLE, privacy, CHAIN, **options)
        u = CHAIN.sample(2, 400, seed=0)
        np.testing.assert_allclose(mechanism.simulate(u, seed=1).decisions[:, 50:], u[:, 48:-2], atol=1e-6)
