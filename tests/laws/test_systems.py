"""Systems of scipy.signal and python-control: their impulse responses, norms and Kalman filters are ours."""

import control
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import signal

import dpfast as dp

N = 40


def of_scipy(system):
    return np.squeeze(signal.dimpulse(system, n=N)[1][0])


def of_control(system):
    """Of a step of one: impulse_response takes an impulse for one of area one."""
    return control.impulse_response(system, np.arange(N)).outputs


def state_space(num, den):
    return signal.tf2ss(num, den)


# What is made of a numerator and a denominator in powers of z, and how its impulse response is found.
KINDS = {
    "scipy tf": (lambda num, den: signal.TransferFunction(num, den, dt=1), of_scipy),
    "scipy zpk": (lambda num, den: signal.ZerosPolesGain(*signal.tf2zpk(num, den), dt=1), of_scipy),
    "scipy ss": (lambda num, den: signal.StateSpace(*state_space(num, den), dt=1), of_scipy),
    "scipy dlti": (signal.dlti, of_scipy),
    "control tf": (lambda num, den: control.tf(num, den, True), of_control),
    "control ss": (lambda num, den: control.ss(*state_space(num, den), True), of_control),
    "control zpk": (lambda num, den: control.zpk(*signal.tf2zpk(num, den), dt=1), of_control),
}
every_kind = pytest.mark.parametrize(("make", "impulse"), KINDS.values(), ids=KINDS)


@st.composite
def polynomials(draw):
    """A numerator and a denominator in powers of z: poles inside of the circle, alone, in pairs or at zero."""
    den, angles = np.ones(1), st.floats(0.1, 3)
    for radius in draw(st.lists(st.floats(0.1, 0.95), max_size=2)):
        den = np.convolve(den, [1, -2 * radius * np.cos(draw(angles)), radius**2])
    for pole in draw(st.lists(st.floats(-0.95, 0.95) | st.just(0.0), max_size=2)):
        den = np.convolve(den, [1, -pole])
    num = np.array(draw(st.lists(st.integers(-5, 5), min_size=1, max_size=len(den))), float)
    assume(num[0] != 0)
    return num, den


@every_kind
@given(polynomials())
def test_any_causal_system_comes_in_with_its_impulse_response(make, impulse, system):
    theirs = make(*system)
    np.testing.assert_allclose(dp.Filter.from_system(theirs).impulse(N), impulse(theirs), atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("dt", [True, 1, 0.1, np.int64(2), np.float64(0.5)])
def test_any_step_will_do(dt):
    assert dp.Filter.from_system(signal.dlti([1], [1, -0.5], dt=dt)).impulse(3).tolist() == [0, 1, 0.5]


@given(polynomials())
def test_any_filter_goes_out_with_its_delay(system):
    num, den = system
    ours = dp.Filter(np.concatenate([np.zeros(len(den) - len(num)), num]), den)
    ours *= dp.Filter([0, 0, 1, 2])  # a delay, and taps
    out = ours.state_space()
    np.testing.assert_allclose(of_scipy(signal.dlti(*out)), ours.impulse(N), atol=1e-9, rtol=1e-9)
    if len(out[0]):
        np.testing.assert_allclose(of_control(control.ss(*out, True)), ours.impulse(N), atol=1e-9, rtol=1e-9)


REFUSED = {
    "continuous, scipy": (signal.TransferFunction([1], [1, 0.5]), r"dt above 0, or True\), got dt = None: sample it"),
    "continuous, control": (control.ss([[-1]], [[1]], [[1]], [[0]]), r"dt above 0, or True\), got dt = 0: sample it"),
    "no step": (control.tf([1], [1, -0.5], None), "got dt = None: .* say what dt is"),
    "improper": (signal.TransferFunction([1, 0, 0], [1, -0.5], dt=1), "causal, .* got degrees 2 over 1"),
    "improper zpk": (
        signal.ZerosPolesGain([0.1, 0.2], [0.5], 1, dt=1),
        "zeros must be no more than poles, as a filter is causal, got 2 and 1",
    ),
    "two inputs": (signal.StateSpace([[0.5]], [[1, 2]], [[1]], [[0, 0]], dt=1), "one output, got 2 and 1"),
    "two outputs": (control.ss([[0.5]], [[1]], [[1], [2]], [[0], [0]], 1), "one output, got 1 and 2"),
    "complex tf": (signal.TransferFunction([1], [1, -0.5j], dt=1), "must hold real numbers, got dtype complex128"),
    "complex ss": (signal.StateSpace([[0.5j]], [[1]], [[1]], [[0]], dt=1), "A must hold real numbers"),
    "complex zpk": (signal.ZerosPolesGain([], [0.5j], 1, dt=1), "conjugate pairs"),
    "not finite": (signal.StateSpace([[0.5]], [[np.nan]], [[1]], [[0]], dt=1), "B must be finite"),
    "unstable": (control.zpk([], [2.0], 1.0, dt=1), "got a pole at 2"),
    "nonlinear": (control.nlsys(None, lambda t, x, u, p: u, inputs=1, outputs=1, dt=1), "system must be a system with"),
    "a tuple": (([1], [1, -0.5], 1), "system must be a system with .*, got a tuple of length 3"),
}


@pytest.mark.parametrize(("system", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_filter_is_refused_with_what_it_is(system, message):
    with pytest.raises(ValueError, match=message) as error:
        dp.Filter.from_system(system)
    assert "\n" not in str(error.value)


SYSTEMS = [signal.dlti([1], [1, -0.5]), control.tf([1], [1, -0.5], True), ([1], [1, -0.5]), [1, 2], np.ones(2), "1"]
MODEL, PRIVACY = dp.ARMA([1], [1, -0.5]), dp.Privacy(1, 1e-6)
DESIGNS = {
    "zero_forcing": lambda f: dp.zero_forcing(f, PRIVACY),
    "lmmse": lambda f: dp.lmmse(f, PRIVACY, MODEL),
    "prefilter": lambda f: dp.lmmse(dp.Filter([1, 1]), PRIVACY, MODEL, prefilter=f),
    "optimal": lambda f: dp.optimal(f, PRIVACY, MODEL),
    "robust": lambda f: dp.robust(f, PRIVACY, mean_square=1.0),
    "decision_feedback": lambda f: dp.decision_feedback(f, PRIVACY, dp.IndependentLevels([0, 1], [0.5, 0.5])),
    "input_perturbation": lambda f: dp.input_perturbation(f, PRIVACY),
    "output_perturbation": lambda f: dp.output_perturbation(f, PRIVACY),
}


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_designs_say_how_a_system_becomes_a_filter(design):
    message = r"must be a Filter, as Filter\(b, a\) or Filter.from_system\(system .*, got "
    for system in SYSTEMS:
        with pytest.raises(ValueError, match=message):
            design(system)


@pytest.mark.parametrize("system", SYSTEMS[:3], ids=lambda x: type(x).__name__)
def test_targets_over_a_horizon_say_so_too(system):
    with pytest.raises(
        ValueError, match=r"must be a Filter, as Filter\(b, a\) or Filter.from_system.* a Toeplitz, or "
    ):
        dp.square_root(system, PRIVACY, horizon=8)


# --- norms and Kalman filters ---------------------------------------------------------------------


@given(polynomials())
def test_the_largest_gain_is_that_of_python_control(system):
    assume(np.abs(np.roots(system[1])).min(initial=1) > 1e-3)  # theirs is for those alone
    theirs = control.tf(*system, True)
    ours = dp.Filter.from_system(theirs)
    assert ours.hinf_norm() == pytest.approx(control.system_norm(theirs, "inf", tol=1e-8), rel=1e-6)


@pytest.mark.parametrize("pole", [0.5, 0.9])
@pytest.mark.parametrize(
    "target", [dp.Filter([1]), dp.Filter([1, 0.5], [1, -0.8]), dp.Filter([1, -0.3], [1, -0.9, 0.5])]
)
def test_input_perturbation_without_lag_errs_as_the_kalman_filter(target, pole):
    model = dp.ARMA([1], [1, -pole], innovation_std=2.0)
    mechanism = dp.lmmse(target, PRIVACY, model, lag=0, prefilter=dp.Filter([1]), tolerance=1e-8)
    # states: u, then those of the target; v = u + n
    a, b, c, d = target.state_space()
    A = np.block([[np.full((1, 1), pole), np.zeros((1, len(a)))], [b, a]])
    into, see = np.eye(len(A), 1), np.eye(1, len(A))
    noise = mechanism.noise_std**2
    _, P, _ = control.dlqe(A, into, see, [[4.0]], [[noise]])
    y, behind = np.hstack([d, c]), P @ see.T
    filtered = P - behind @ behind.T / (see @ behind + noise)  # also v_t is known
    assert mechanism.predicted_mse == pytest.approx((y @ filtered @ y.T).item(), rel=2e-8)
