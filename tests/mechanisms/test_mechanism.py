import ast
import dataclasses
import inspect

import numpy as np
import pytest
from helpers import reference
from helpers.chains import EXAMPLES, unit_normals
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal, stats

import dpfast as dp
from dpfast._kernels import compiled_mechanisms, compiled_receivers
from dpfast._kernels import simulation as kernels
from dpfast._kernels.simulated_noise import NOISE
from dpfast.mechanisms.receivers.base import CausalReceiver, LinearMap, Receiver
from dpfast.mechanisms.receivers.decision_feedback import DecisionFeedback
from dpfast.mechanisms.receivers.linear import LinearReceiver
from dpfast.mechanisms.receivers.smoother import Smoother

ALARM = 1e-6  # of a statistical test
TARGET, PREFILTER = dp.Filter([1, 0.5], [1, -0.8]), dp.Filter([1, -0.2], [1, -0.6])
PRIVACY, QUIET = dp.Privacy(1.0, 0.05), dp.Privacy(1e6, 0.05)
TRANSITION, LEVELS = [[0.8, 0.2], [0.4, 0.6]], [0.0, 1.0]
MODEL = dp.MarkovChain(TRANSITION, LEVELS)  # mean 1/3
LAGS = [0, 1, 5]


def linear(privacy=PRIVACY, model=MODEL):
    return [dp.lmmse(TARGET, privacy, model, lag=lag, prefilter=PREFILTER) for lag in LAGS]


def wiener_of_lag_5(model):
    return linear(model=model)[2]


def smoother(privacy=PRIVACY, model=MODEL):
    return dp.lmmse(TARGET, privacy, model, prefilter=PREFILTER)


def feedback(privacy=PRIVACY, model=MODEL, **options):
    return dp.decision_feedback(TARGET, privacy, model, prefilter=PREFILTER, **options)


LINEAR = [
    dp.zero_forcing(TARGET, PRIVACY),
    dp.input_perturbation(TARGET, PRIVACY),
    dp.output_perturbation(TARGET, PRIVACY),
    *linear(),
]
SMOOTHER = smoother()
FEEDBACK = [feedback(decision=decision, lag=lag) for decision in ("sign", "quantizer", "soft") for lag in (0, 5)]
ALL = [*LINEAR, SMOOTHER, *FEEDBACK]


def named(mechanisms):
    return pytest.mark.parametrize("mechanism", mechanisms, ids=lambda x: x.name)


def step(mechanism, n):
    return reference.step(TARGET.b, TARGET.a, mechanism.receiver.mean, mechanism.lag or 0, n)


# --- what runs ------------------------------------------------------------------------------------


@named(ALL)
def test_noise_has_the_multiplier_times_the_norm_of_the_prefilter(mechanism):
    impulse = signal.lfilter(mechanism.prefilter.b, mechanism.prefilter.a, np.eye(1, 2000)[0])
    assert mechanism.noise_std == pytest.approx(PRIVACY.noise_multiplier * np.linalg.norm(impulse), rel=1e-12)


@named(ALL)
def test_without_a_signal_the_privatized_is_the_noise_of_the_stream(mechanism):
    found = mechanism.simulate(np.full((3, 80), mechanism.receiver.mean), seed=9).privatized
    assert np.array_equal(found, mechanism.noise_std * unit_normals(9, 3, 80))
    expected = [reference.normals(9, i, NOISE, 80) for i in range(3)]  # of the twin, where the package has 24 bits
    np.testing.assert_allclose(found / mechanism.noise_std, expected, rtol=1e-5, atol=1e-6)


@named(ALL)
def test_privatized_is_the_prefiltered_centred_input_plus_the_noise(mechanism):
    u, mean, g = MODEL.sample(3, 80, seed=1), mechanism.receiver.mean, mechanism.prefilter
    noise = mechanism.simulate(np.full_like(u, mean), seed=9).privatized
    expected = signal.lfilter(g.b, g.a, u - mean) + noise
    np.testing.assert_allclose(mechanism.simulate(u, seed=9).privatized, expected, rtol=1e-12, atol=1e-12)


@named(LINEAR)
def test_a_linear_estimate_is_the_receiver_after_v_plus_the_mean_through_the_target(mechanism):
    paths = mechanism.simulate(MODEL.sample(3, 80, seed=1), seed=9)
    h = mechanism.receiver.filter
    expected = signal.lfilter(h.b, h.a, paths.privatized) + step(mechanism, 80)
    np.testing.assert_allclose(paths.estimate, expected, rtol=1e-12, atol=1e-11)
    assert paths.decisions is None
    assert paths.lag == mechanism.lag


def test_a_smoothed_estimate_runs_forward_and_then_backward():
    paths = SMOOTHER.simulate(MODEL.sample(3, 80, seed=1), seed=9)
    a, b = SMOOTHER.receiver.forward, SMOOTHER.receiver.backward
    middle = signal.lfilter(a.b, a.a, paths.privatized)
    expected = signal.lfilter(b.b, b.a, middle[:, ::-1])[:, ::-1] + step(SMOOTHER, 80)
    np.testing.assert_allclose(paths.estimate, expected, rtol=1e-12, atol=1e-12)
    assert SMOOTHER.lag is None
    assert (paths.decisions, paths.lag) == (None, 0)


@named(FEEDBACK)
def test_a_feedback_estimate_is_the_decisions_of_the_twin_through_the_target(mechanism):
    r, paths = mechanism.receiver, mechanism.simulate(MODEL.sample(3, 80, seed=1), seed=9)
    centred = np.array(LEVELS) - r.mean
    decide = {
        "sign": reference.sign(centred),
        "quantizer": reference.nearest(centred),
        "soft": reference.posterior_mean(centred, [2 / 3, 1 / 3], r.error_variance / r.shrinkage),
    }[r.decision]
    for v, decisions, estimate in zip(paths.privatized, paths.decisions, paths.estimate, strict=True):
        expected = reference.decision_feedback(r.forward, r.feedback, r.shrinkage, decide, r.lag, v)
        expected[r.lag :] += r.mean
        np.testing.assert_allclose(decisions, expected, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(estimate, signal.lfilter(TARGET.b, TARGET.a, expected), rtol=1e-11, atol=1e-11)
    assert paths.lag == r.lag == mechanism.lag


# --- shapes ---------------------------------------------------------------------------------------


@named(ALL)
def test_results_have_the_shape_of_the_input(mechanism):
    for shape in [(0,), (1,), (7,), (0, 7), (3, 0), (3, 1), (2, 0, 7), (2, 3, 7), (2, 3, 0)]:
        paths = mechanism.simulate(np.ones(shape), seed=1)
        assert paths.privatized.shape == paths.estimate.shape == shape
        assert paths.decisions is None or paths.decisions.shape == shape


@named(ALL)
def test_leading_axes_count_streams_in_c_order(mechanism):
    u = MODEL.sample(6, 20, seed=1)
    flat, deep = mechanism.simulate(u, seed=2), mechanism.simulate(u.reshape(2, 3, 20), seed=2)
    assert np.array_equal(deep.estimate.reshape(6, 20), flat.estimate)
    assert np.array_equal(mechanism.simulate(u[0], seed=2).estimate, flat.estimate[0])


@named(ALL)
def test_the_layout_of_the_input_does_not_matter(mechanism):
    u = MODEL.sample(4, 20, seed=1)
    same = {
        "lists": u.tolist(),
        "integers": u.astype(np.uint8),
        "Fortran": np.asfortranarray(u),
        "strided": np.repeat(u, 2, axis=1)[:, ::2],
        "read-only": u.copy(),
    }
    same["read-only"].setflags(write=False)
    expected, found = mechanism.simulate(u, seed=2), {name: mechanism.simulate(x, seed=2) for name, x in same.items()}
    assert [name for name, x in found.items() if not np.array_equal(x.privatized, expected.privatized)] == []
    assert [name for name, x in found.items() if not np.array_equal(x.estimate, expected.estimate)] == []


@named(ALL)
def test_the_input_is_left_alone(mechanism):
    u = MODEL.sample(4, 20, seed=1)
    before = u.copy()
    mechanism.simulate(u, seed=1)
    assert np.array_equal(u, before)


# --- laws -----------------------------------------------------------------------------------------


@pytest.mark.slow_nojit
@named(ALL)
def test_a_stream_depends_on_seed_and_number_alone(mechanism):
    u = MODEL.sample(70, 20, seed=1)  # several blocks of streams
    whole = mechanism.simulate(u, seed=3)
    changed = u.copy()
    changed[:66] += 5.0
    for other in (mechanism.simulate(changed, seed=3), mechanism.simulate(u, seed=3, n_threads=3)):
        assert np.array_equal(other.privatized[66:], whole.privatized[66:])
        assert np.array_equal(other.estimate[66:], whole.estimate[66:])
    assert np.array_equal(mechanism.simulate(u[:40], seed=3).estimate, whole.estimate[:40])
    assert not np.array_equal(mechanism.simulate(u, seed=4).privatized[0], whole.privatized[0])
    noise = whole.privatized - mechanism.simulate(u[:1].repeat(70, axis=0), seed=3).privatized[:1]
    assert len(np.unique(noise, axis=0)) == 70


def test_a_seed_may_be_drawn_from_a_generator():
    u, draw = MODEL.sample(2, 9, seed=1), np.random.default_rng(5).integers(2**63)
    generator = np.random.default_rng(5)
    first, second = (SMOOTHER.simulate(u, seed=generator).privatized for _ in range(2))
    assert np.array_equal(first, SMOOTHER.simulate(u, seed=int(draw)).privatized)
    assert not np.array_equal(first, second)
    assert np.array_equal(SMOOTHER.simulate(u, seed=np.int64(5)).privatized, SMOOTHER.simulate(u, seed=5).privatized)


@named([*LINEAR, SMOOTHER])
@EXAMPLES
@given(a=st.floats(-10, 10), b=st.floats(-10, 10))
def test_linear_mechanisms_are_linear_in_the_input(mechanism, a, b):
    x, y = np.random.default_rng(0).normal(size=(2, 30))
    zero, *runs = (mechanism.simulate(u, seed=1) for u in (0 * x, x, y, a * x + b * y))
    for field in (0, 1):
        of_x, of_y, of_both = (run[field] - zero[field] for run in runs)
        np.testing.assert_allclose(of_both, a * of_x + b * of_y, atol=1e-9)


@named(ALL)
def test_the_same_privatized_signal_gives_the_same_estimate_whatever_the_input(mechanism):
    paths = mechanism.simulate(MODEL.sample(3, 50, seed=1), seed=1)
    estimate, decisions = mechanism.receiver.estimate(paths.privatized)
    assert np.array_equal(estimate, paths.estimate)
    assert decisions is paths.decisions is None or np.array_equal(decisions, paths.decisions)


# --- time alignment and means: with little noise the estimate is y[t - lag] --------------------


def delayed_output(u, lag):
    y = signal.lfilter(TARGET.b, TARGET.a, u)
    return np.pad(y, [(0, 0), (lag, 0)])[:, : y.shape[1]]


@pytest.mark.parametrize("levels", [[-0.5, 0.5], [0.0, 1.0], [100.0, 101.0]])
@pytest.mark.parametrize("i", range(len(LAGS)))
def test_a_wiener_estimate_with_little_noise_is_the_delayed_output(levels, i):
    model = dp.MarkovChain(TRANSITION, levels)
    mechanism, u = linear(QUIET, model)[i], model.sample(4, 300, seed=1)
    estimate, y = mechanism.simulate(u, seed=1).estimate, delayed_output(u, LAGS[i])
    assert np.abs(estimate - y)[:, 50:].max() < 0.02 < 0.5 * np.abs(np.diff(y)).max()
    assert mechanism.lag == LAGS[i]


@pytest.mark.parametrize("levels", [[-0.5, 0.5], [0.0, 1.0], [100.0, 101.0]])
def test_a_smoothed_estimate_with_little_noise_is_the_output(levels):
    model = dp.MarkovChain(TRANSITION, levels)
    u = model.sample(4, 300, seed=1)
    estimate = smoother(QUIET, model).simulate(u, seed=1).estimate
    assert np.abs(estimate - delayed_output(u, 0))[:, 50:-50].max() < 0.02


@pytest.mark.slow_nojit
@pytest.mark.parametrize("levels", [[-0.5, 0.5], [0.0, 1.0], [100.0, 101.0]])
@pytest.mark.parametrize("decision", ["sign", "quantizer", "soft"])
@pytest.mark.parametrize("lag", [0, 1, 5])
def test_decisions_with_little_noise_are_the_delayed_input(levels, decision, lag):
    model = dp.MarkovChain(TRANSITION, levels)
    u = model.sample(4, 200, seed=1)
    paths = feedback(QUIET, model, decision=decision, lag=lag).simulate(u, seed=1)
    assert not paths.decisions[:, :lag].any()
    np.testing.assert_allclose(paths.decisions[:, lag:], u[:, : 200 - lag], atol=1e-9)
    np.testing.assert_allclose(paths.estimate, delayed_output(u, lag), rtol=1e-10, atol=1e-8)


@pytest.mark.parametrize("make", [wiener_of_lag_5, smoother, feedback])
def test_a_mean_moves_the_estimate_by_itself_through_the_target(make):
    model, moved = dp.MarkovChain(TRANSITION, LEVELS), dp.MarkovChain(TRANSITION, [5.0, 6.0])
    u = model.sample(3, 60, seed=1)
    plain, shifted = make(model=model).simulate(u, seed=2), make(model=moved).simulate(u + 5, seed=2)
    np.testing.assert_allclose(shifted.privatized, plain.privatized, atol=1e-11)
    expected = plain.estimate + reference.step(TARGET.b, TARGET.a, 5.0, plain.lag, 60)
    np.testing.assert_allclose(shifted.estimate, expected, atol=1e-9)


# --- prediction -----------------------------------------------------------------------------------


def impulses(mechanism, n=1500):
    """Of error against input, and of receiver, from -n to n."""
    delta = np.eye(1, n)[0]
    r, lag = mechanism.receiver, mechanism.lag or 0
    parts = (r.forward, r.backward) if mechanism.lag is None else (r.filter, dp.Filter([1.0]))
    forward, backward = (signal.lfilter(x.b, x.a, delta) for x in parts)
    h = np.convolve(forward, backward[::-1])[: 2 * n]  # its time zero is at n - 1
    g = signal.lfilter(mechanism.prefilter.b, mechanism.prefilter.a, delta)
    wanted = np.zeros(2 * n)
    wanted[n - 1 + lag :] = signal.lfilter(TARGET.b, TARGET.a, np.eye(1, n + 1 - lag)[0])
    return wanted[: 2 * n - 1] - np.convolve(h, g)[: 2 * n - 1], h


def brute_force_mse(mechanism, autocovariance):
    error, h = impulses(mechanism)
    r = np.concatenate([autocovariance[:0:-1], autocovariance])
    return error @ np.convolve(error, r, "same") + mechanism.noise_std**2 * h @ h


@named([*LINEAR, SMOOTHER])
def test_predicted_mse_is_the_sum_over_impulse_responses(mechanism):
    expected = brute_force_mse(mechanism, reference.markov_autocovariances(TRANSITION, LEVELS, 80))
    assert mechanism.predict(MODEL) == pytest.approx(expected, rel=1e-9)
    assert mechanism.predicted_mse == pytest.approx(expected, rel=1e-9)
    assert mechanism.predicted_rmse == pytest.approx(expected**0.5, rel=1e-9)


@named([*LINEAR, SMOOTHER])
def test_predict_on_another_spectrum_is_the_sum_over_impulse_responses(mechanism):
    other = dp.ARMA([0.5], [1, 0.7], mean=mechanism.receiver.mean)
    expected = brute_force_mse(mechanism, 0.25 / (1 - 0.49) * (-0.7) ** np.arange(200))
    assert mechanism.predict(other) == pytest.approx(expected, rel=1e-9)


@named([*LINEAR, SMOOTHER])
@pytest.mark.parametrize("mean", [-3.0, 0.0, 50.0])
def test_predict_adds_the_square_of_the_bias_of_another_mean(mechanism, mean):
    def dc(x):
        return x.b.sum() / x.a.sum()

    r = mechanism.receiver
    h = dc(r.forward) * dc(r.backward) if mechanism.lag is None else dc(r.filter)
    bias = (mean - r.mean) * (dc(TARGET) - h * dc(mechanism.prefilter))
    same, other = (mechanism.predict(dp.ARMA([0.5], [1, -0.5], mean=m)) for m in (r.mean, mean))
    assert other - same == pytest.approx(bias**2, rel=1e-9, abs=1e-9 * same)


@pytest.mark.slow_nojit
@named([*LINEAR, SMOOTHER])
def test_the_bias_of_another_mean_is_what_a_constant_input_shows(mechanism):
    u = np.repeat([[50.0], [mechanism.receiver.mean]], 600, axis=1)
    error = [mechanism.simulate(x, seed=1).estimate for x in u] - delayed_output(u, mechanism.lag or 0)
    bias = (error[0] - error[1])[300]  # the noise is the same
    biased, unbiased = (mechanism.predict(dp.ARMA([0.5], [1, -0.5], mean=x[0])) for x in u)
    assert bias**2 == pytest.approx(biased - unbiased, rel=1e-9, abs=1e-12)


@named(FEEDBACK)
def test_the_error_of_decision_feedback_is_not_predicted(mechanism):
    assert mechanism.predicted_mse is mechanism.predicted_rmse is mechanism.predict(MODEL) is None


def test_the_smoother_is_that_of_dense_matrices():
    n, middle = 240, slice(100, 140)
    r = reference.markov_autocovariances(TRANSITION, LEVELS, n)
    impulses = TARGET.impulse(n), PREFILTER.impulse(n)
    gain, mse = reference.dense_smoother(r, *impulses, SMOOTHER.noise_std, n)
    paths = SMOOTHER.simulate(MODEL.sample(2, n, seed=1), seed=1)
    expected = paths.privatized @ gain.T + step(SMOOTHER, n)
    np.testing.assert_allclose(paths.estimate[:, middle], expected[:, middle], rtol=1e-7)
    np.testing.assert_allclose(mse[middle], SMOOTHER.predicted_mse, rtol=1e-7)


@pytest.mark.slow_nojit
@named([*LINEAR, SMOOTHER])
def test_the_simulated_error_has_the_predicted_mean(mechanism):
    u, lag, ends = MODEL.sample(200, 3000, seed=1), mechanism.lag or 0, slice(200, -200)
    error = mechanism.simulate(u, seed=2).estimate - delayed_output(u, lag)
    per_stream = np.mean(error[:, ends] ** 2, axis=1)
    assert stats.ttest_1samp(per_stream, mechanism.predicted_mse).pvalue > ALARM


# --- the privacy boundary -------------------------------------------------------------------------


def parameters(cls):
    """Of every method that is written in its room (not made by dataclass), there or in what the class comes from."""
    room = cls.__module__.rpartition(".")[0]
    classes = [each for each in reversed(cls.__mro__) if each.__module__.startswith(room)]
    written = [(name, f) for each in classes for name, f in vars(each).items()]
    methods = {name: f for name, f in written if inspect.isfunction(f) and "return" in f.__annotations__}
    return {name: list(inspect.signature(f).parameters) for name, f in methods.items() if not name.startswith("__")}


@pytest.mark.parametrize("receiver", [Receiver, LinearReceiver, Smoother, DecisionFeedback])
def test_a_receiver_takes_v_and_nothing_through_which_u_could_reach_it(receiver):
    running = {"continued": ["self", "v", "state"], "_samples_seen": ["self", "state", "n_streams"]}
    running |= {"_go_on": ["self", "v", "states", "past"]}
    channel = ["self", "target", "prefilter", "noise_std"]
    assert parameters(receiver) == {
        "estimate": ["self", "v"],
        "response": ["self", "omega"],
        **{x: ["self"] for x in ("filters", "compiled", "size_text", "as_linear", "as_causal", "to_fields")},
        "scaled": ["self", "gain"],
        "predicted_errors": [*channel, "model"],
        "worst_errors": [*channel, "mean_square"],
        "step_errors": [*channel, "model", "n"],
        **(running if issubclass(receiver, CausalReceiver) else {}),
        **({"causal_form": ["self"], "response_on_circle": ["self", "n"]} if issubclass(receiver, LinearMap) else {}),
    }
    assert not {"u", "x", "signal", "prefilter"} & set(vars(receiver).get("__dataclass_fields__", ()))


@pytest.mark.parametrize(
    ("receiver", "more"),  # whether states are given and asked for
    [
        (compiled_receivers.CompiledLinearReceiver, []),
        (compiled_receivers.CompiledSmoother, []),
        (compiled_receivers.CompiledDecisionFeedback, ["states"]),
        (compiled_receivers.CompiledPeriodicKalman, []),
    ],
)
def test_a_compiled_receiver_makes_estimates_of_v_and_meets_the_centred_input_in_errors_alone(receiver, more):
    taken, v = parameters(receiver), "released" if receiver is compiled_receivers.CompiledPeriodicKalman else "v"
    assert taken.pop("square_errors") == ["self", "chain", v, "x", "window"]
    assert taken.pop("estimate") == ["self", "chain", v, *more]
    assert taken.pop("complete") == ["self", "estimates", "n_threads"]
    assert taken.pop("filter", ["self"]) == ["self"]
    assert set(taken) <= {"_filter"}
    assert not {"u", "x", "prefilter", "centre"} & set(receiver._fields)


def functions(module):
    """Those of a module and of its classes, of which several have one name."""
    return [x for x in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(x, ast.FunctionDef)]


def with_argument(module, name):
    return {x.name for x in functions(module) if name in {y.arg for y in x.args.args}}


def naming(module, name):
    return {x.name for x in functions(module) if name in {getattr(y, "id", "") for y in ast.walk(x)}}


def takers_of_u(function):
    calls = [x for x in ast.walk(function) if isinstance(x, ast.Call)]
    return sorted(ast.unparse(x.func) for x in calls if "u" in {getattr(y, "id", "") for y in x.args})


def test_one_function_hands_u_to_a_mechanism():
    """`privatize`; of what else has u, `simulate` gives it to that, and a study to that and to errors.

    `simulate_channels` gives it to the chains of several streams, each of which hands it to a prefilter.
    """
    assert with_argument(kernels, "u") == {"privatize", "simulate", "simulate_channels"}
    channels = {"simulate_channels", "sample_channels"}  # of which the second draws it
    assert naming(kernels, "u") == {"privatize", "simulate", "build_chain"} | channels
    one, several = (x for x in functions(kernels) if x.name == "build_chain")
    assert takers_of_u(one) == ["chain.shift", "privatize"]
    assert takers_of_u(several) == ["mechanism.privatize", "zip"]  # zip: to shift each


def test_a_compiled_mechanism_publishes_u_in_one_method_and_receivers_never_have_it():
    assert with_argument(compiled_mechanisms, "u") == naming(compiled_mechanisms, "u") == {"privatize"}
    using = {
        x.name for x in functions(compiled_mechanisms) if "prefilter" in {getattr(y, "attr", "") for y in ast.walk(x)}
    }
    assert using == {"privatize", "cost"}  # the latter counts coefficients
    assert with_argument(compiled_receivers, "u") == naming(compiled_receivers, "u") == set()


def test_of_a_mechanism_only_simulate_takes_u():
    assert {name for name, taken in parameters(dp.Mechanism).items() if "u" in taken} == {"simulate"}


@named(ALL)
def test_behind_a_wall_for_a_prefilter_nothing_depends_on_the_input(monkeypatch, mechanism):
    """With noise alone in the place of what `privatize` gives, paths are the same whatever the input."""
    monkeypatch.setattr(kernels, "privatize", lambda chain, *_: chain.normals(NOISE))
    silent, loud = (mechanism.simulate(x * MODEL.sample(3, 80, seed=1), seed=2) for x in (0, 1e6))
    for first, second in zip(silent[:3], loud[:3], strict=True):
        assert first is second is None or np.array_equal(first, second)
    assert np.array_equal(silent.privatized, unit_normals(2, 3, 80))


def test_a_name_must_be_text():
    with pytest.raises(ValueError, match="name must be text, got 3"):
        dp.zero_forcing(TARGET, PRIVACY, name=3)


def test_decisions_without_information_are_the_level_nearest_to_the_mean():
    """The equaliser looks at times before the event: ũ = 0 whatever u is."""
    model = dp.IndependentLevels([0, 1, 5], [0.3, 0.4, 0.3])  # mean 1.9
    options = {"lag": 5, "prefilter": dp.Filter([0] * 9 + [1]), "n_forward": 3, "n_feedback": 2}
    mechanism = dp.decision_feedback(TARGET, PRIVACY, model, decision="quantizer", **options)
    assert mechanism.receiver.shrinkage <= 1e-12
    decisions = mechanism.simulate(model.sample(2, 50, seed=1), seed=2).decisions
    assert (decisions[:, 5:] == 1).all()


def test_objects_are_frozen():
    for x in (FEEDBACK[0], LINEAR[3].receiver, SMOOTHER.receiver, FEEDBACK[0].receiver):
        for name in [f.name for f in dataclasses.fields(x)]:
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(x, name, None)
    receiver = FEEDBACK[0].receiver
    for x in (receiver.forward, receiver.feedback, receiver.levels, receiver.probabilities):
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 1.0


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "u",
    [
        [123.5, np.nan],
        [[123.5, np.inf]],
        [123.5, -np.inf],
        ["123.5"],
        [123.5, None],
        [123.5 + 1j],
        [[123.5], [123.5, 2]],
        {"x": 123.5},
        None,
        123.5,
        "123.5",
        np.datetime64("2020-01-01"),
        [10**400, 123.5],
    ],
    ids=str,
)
def test_a_bad_input_names_u_and_shows_no_data(u):
    with pytest.raises(ValueError, match=r"^u must ") as error:
        SMOOTHER.simulate(u, seed=1)
    assert "123" not in str(error.value)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *[("seed", x) for x in (-1, 1.5, "1", None, True, [1], np.nan)],
        *[("n_threads", x) for x in (0, -1, 1.5, "2", True)],
    ],
)
def test_a_bad_argument_is_named(argument, value):
    with pytest.raises(ValueError, match=rf"^{argument} must "):
        SMOOTHER.simulate([1.0], **{"seed": 1, argument: value})


def test_the_seed_has_no_default():
    with pytest.raises(TypeError, match="seed"):
        SMOOTHER.simulate([1.0])


# --- what people read -----------------------------------------------------------------------------


@named(ALL)
def test_the_summary_says_what_it_is(mechanism):
    text = mechanism.summary()
    assert text.splitlines()[0] == mechanism.name
    assert f"noise std       {mechanism.noise_std:.6g}" in text
    assert ("assumes error-free decisions" in text) == (mechanism in FEEDBACK)
    assert ("smoother" in text.split("lag", 1)[1]) == (mechanism.lag is None)
    assert mechanism.name in repr(mechanism)


def test_the_summary_counts_states_or_taps():
    assert "1 state\n" in SMOOTHER.summary()
    assert "FIR of 1 tap" in dp.input_perturbation(TARGET, PRIVACY).summary()


# --- the two parts of the error -------------------------------------------------------------------


@named([*LINEAR, SMOOTHER])
def test_noise_and_distortion_add_up_to_the_prediction(mechanism):
    omega = 2 * np.pi * (np.arange(2**16) + 0.5) / 2**16
    h, g, f = (
        mechanism.receiver.response(omega),
        mechanism.prefilter.response(omega),
        TARGET.response(omega) * np.exp(-1j * (mechanism.lag or 0) * omega),
    )
    psd = np.abs(MODEL.shaping.response(omega)) ** 2
    assert mechanism.predicted_noise_mse == pytest.approx(mechanism.noise_std**2 * np.mean(np.abs(h) ** 2), rel=1e-9)
    distortion = np.mean(psd * np.abs(f - h * g) ** 2)
    assert mechanism.predicted_distortion_mse == pytest.approx(distortion, rel=1e-9, abs=1e-12)
    total = mechanism.predicted_noise_mse + mechanism.predicted_distortion_mse
    assert total == pytest.approx(mechanism.predicted_mse, rel=1e-15)


def test_the_parts_of_a_decision_feedback_are_not_known():
    assert FEEDBACK[0].predicted_noise_mse is None
    assert FEEDBACK[0].predicted_distortion_mse is None


def test_a_wrong_mean_is_distortion():
    mechanism = linear()[1]
    elsewhere = dp.ARMA.from_shaping(MODEL.shaping, mean=MODEL.mean + 2)
    gain = TARGET.b.sum() / TARGET.a.sum() - (mechanism.receiver.response(0.0) * mechanism.prefilter.response(0.0)).real
    moved = dataclasses.replace(mechanism, model=elsewhere)
    more = moved.predicted_distortion_mse - mechanism.predicted_distortion_mse
    assert more == pytest.approx((2 * gain) ** 2, rel=1e-9)
    assert moved.predicted_noise_mse == pytest.approx(mechanism.predicted_noise_mse, rel=1e-12)


class TestWorstCase:
    TARGET = dp.Filter([1], [1, -0.9])
    PRIVACY = dp.Privacy.from_gdp(1.0, 1e-6)

    def test_without_distortion_it_is_the_noise_whatever_the_power(self):
        mechanism = dp.zero_forcing(self.TARGET, self.PRIVACY)
        for mean_square in (1e-3, 1e3):
            assert mechanism.worst_case_mse(mean_square) == pytest.approx(mechanism.predicted_mse, rel=1e-9)

    @pytest.mark.parametrize("lag", [pytest.param(0, marks=pytest.mark.long), 4, None])
    def test_it_is_the_largest_error_of_a_dense_grid_and_the_noise(self, lag):
        mechanism = dp.lmmse(self.TARGET, self.PRIVACY, dp.ARMA([1.0]), lag=lag, tolerance=0.1)
        omega = np.linspace(0, np.pi, 100_001)
        h, g = mechanism.receiver.response(omega), mechanism.prefilter.response(omega)
        wanted = np.exp(-1j * (lag or 0) * omega) / (1 - 0.9 * np.exp(-1j * omega))
        noise = mechanism.noise_std**2 * np.trapezoid(np.abs(h) ** 2, omega) / np.pi
        for mean_square in (0.1, 10.0):
            worst = mean_square * np.max(np.abs(wanted - h * g)) ** 2 + noise
            assert mechanism.worst_case_mse(mean_square) == pytest.approx(worst, rel=1e-6)
            assert mechanism.worst_case_mse(mean_square) >= worst * (1 - 1e-9)

    def test_no_figure_where_only_simulation_tells(self):
        chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
        mechanism = dp.decision_feedback(self.TARGET, self.PRIVACY, chain, prefilter=PREFILTER)
        assert mechanism.worst_case_mse(1.0) is None

    def test_a_power_of_zero_is_refused(self):
        with pytest.raises(ValueError, match="mean_square must be a finite number above 0, got 0"):
            dp.zero_forcing(self.TARGET, self.PRIVACY).worst_case_mse(0)


def test_without_a_model_there_is_no_prediction_for_filters_that_distort():
    forced = dp.zero_forcing(TARGET, PRIVACY)
    assert forced.predicted_mse > 0
    quiet = dataclasses.replace(forced.receiver, filter=forced.receiver.filter * 0.5)
    assert dataclasses.replace(forced, receiver=quiet).predicted_mse is None
    wiener = dp.lmmse(TARGET, PRIVACY, MODEL, lag=0, prefilter=dp.Filter([1]))
    assert dataclasses.replace(wiener, model=None).predicted_mse is None


def test_a_name_cannot_forge_a_line_of_the_summary():
    mechanism = dp.input_perturbation(TARGET, PRIVACY, name="a\n  not for release  no\x1b[2K")
    assert mechanism.summary().splitlines()[0] == r"a\n  not for release  no\x1b[2K"


def test_noise_that_rounds_inputs_has_no_worst_case():
    made = [dp.input_perturbation(TARGET, dp.Privacy(1), noise="geometric", unit=x) for x in (None, 0.5)]
    assert made[0].worst_case_mse(1.0) == pytest.approx(made[0].predicted_mse, rel=1e-9)  # it does not distort
    assert made[1].worst_case_mse(1.0) is None


def test_a_loss_of_nothing_has_no_minus():
    mechanism = dp.input_perturbation(dp.Filter(np.ones(3) / 3), dp.Privacy(1), noise="laplace")
    less = dataclasses.replace(mechanism, ideal_mse=mechanism.predicted_mse * (1 + 1e-15))
    assert "(MSE +0.00% from the ideal)" in less.summary()
