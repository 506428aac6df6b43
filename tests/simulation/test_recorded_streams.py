"""Mechanisms of several streams on recorded data, against distortion and noise computed apart, in closed form."""

import math

import numpy as np
import pytest
from scipy import signal, stats

import dpfast as dp

ALARM = 1e-6  # of a statistical test
SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])
ONE = dp.Privacy(math.log(3), 0.05, adjacency="one_input")
MODELS = (dp.ARMA([1], [1, -0.5], mean=2.0), dp.ARMA([1], mean=-1.0), dp.ARMA([0.6], [1, -0.8]))
INPUTS = dp.input_perturbation(TARGET, ONE)
LATE = dp.Filter([0, 0, 0.7])
# neither is good, and each distorts in its own way: the second is two samples late
SHRUNK = dp.ChannelsMechanism(
    *("shrunk", TARGET, ONE, dp.FilterMatrix.diagonal([1, 2, 1]), TARGET * LATE), models=MODELS, lag=2
)


def recorded(n_recordings=2, n=1500, level=(4.0, 0.0, 1.0), seed=3):
    """Recordings of no model at all: random levels that stay for a while, and a trend."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(n_recordings, 3, n // 50)).repeat(50, axis=-1)
    return steps + np.array(level)[:, None] + np.linspace(0, 1, n)


def run_matrix(system, x):
    """The outputs (..., p, time) of a matrix of filters by scipy, entry by entry."""
    rows = [[signal.lfilter(f.b, f.a, x[..., j, :]) for j, f in enumerate(row)] for row in system.rows]
    return np.stack([sum(row) for row in rows], axis=-2)


def expected_mse(m, u, burn_in, n):
    """The mean square of what the filters distort, and of the noise since the start, over the steps that count."""
    means = np.zeros(3) if m.models is None else np.array([x.mean for x in m.models])
    offset = np.zeros_like(u)
    offset[..., m.lag :] = means[:, None]
    estimate = run_matrix(m.receiver, run_matrix(m.prefilter, u - means[:, None])) + run_matrix(m.target, offset)
    truth = run_matrix(m.target, u)[..., burn_in : burn_in + n]
    late = slice(burn_in + m.lag, burn_in + m.lag + n)
    responses = run_matrix(m.receiver, np.eye(3)[:, :, None] * (np.arange(u.shape[-1]) == 0))  # (channel, output, time)
    noise = m.noise_std**2 * np.cumsum((responses**2).sum(axis=0), axis=-1)[:, late].mean(axis=-1)
    return ((estimate[..., late] - truth) ** 2).mean(axis=(0, 2)) + noise


@pytest.mark.parametrize("mechanism", [INPUTS, SHRUNK], ids=["no distortion", "distorts, late"])
def test_errors_are_distortion_of_the_data_and_noise(mechanism):
    u = recorded()
    found = dp.evaluate(mechanism, u, seed=1, draws=30, burn_in=100)
    assert (found.n_samples, found.burn_in, found.n_recordings) == (1400 - mechanism.lag, 100, 2)
    result = found[mechanism.name]
    wanted = expected_mse(mechanism, u, 100, found.n_samples)
    quantile = stats.t.isf(ALARM / 6, 29)
    for row, mse in zip(result.with_outputs, [wanted.sum(), *wanted], strict=True):
        assert abs(row.mse - mse) < quantile * row.stream_mse.std(ddof=1) / math.sqrt(30), row.name
    np.testing.assert_allclose(result.stream_mse, sum(x.stream_mse for x in result.outputs), rtol=1e-12)
    assert result.predicted_rmse == mechanism.predicted_rmse


def test_the_constant_is_the_spread_of_the_true_outputs_on_the_data():
    u = recorded()
    y = run_matrix(TARGET, u)[..., 200:1498]
    found = dp.evaluate([INPUTS, SHRUNK], u, seed=1, draws=2, burn_in=200)
    spread = {f"constant, output {i}": y[:, i].std() for i in range(2)}
    assert found.constants() == pytest.approx({"constant": math.hypot(*spread.values()), **spread}, rel=1e-9)
    result = found["shrunk"]
    assert result.explained == pytest.approx(1 - result.mse / sum(x**2 for x in spread.values()), rel=1e-9)


def test_all_are_measured_over_the_same_steps_with_the_same_noise():
    """So that the same filters, one of them called late, are compared without any spread."""
    same = dp.ChannelsMechanism("again", TARGET, ONE, INPUTS.prefilter, INPUTS.receiver)
    found = dp.evaluate([INPUTS, same, SHRUNK], recorded(), seed=1, draws=3)
    assert found.compare("input perturbation", "again") == (0.0, (0.0, 0.0), 1.0)
    assert found.n_samples == 1498 - found.burn_in
    slowest = max(x.settling_time(1e-3) for x in (INPUTS, SHRUNK))
    assert found.burn_in == slowest


def test_one_recording_is_an_array_without_an_axis_for_several():
    u, options = recorded(1), {"seed": 4, "draws": 3, "burn_in": 50}
    alone, one = dp.evaluate(INPUTS, u[0], **options), dp.evaluate(INPUTS, u, **options)
    np.testing.assert_array_equal(alone.results[0].stream_mse, one.results[0].stream_mse)
    assert "3 draws of the noise on 1 recording of 1450 samples after 50, seed 4" in str(alone)
    assert "on 2 recordings of" in str(dp.evaluate(INPUTS, recorded(2), **options))


def test_it_is_said_which_predictions_hold():
    """Noise alone errs alike on all data; what distorts errs by its models, and the data are far from those."""
    found = dp.evaluate([INPUTS, SHRUNK], recorded(level=(9, 0, 0)), seed=1, draws=3)
    distorted = found["shrunk"]
    names = ["all outputs together", "output 0", "output 1"]
    off = {name: x.rmse / x.predicted_rmse - 1 for name, x in zip(names, distorted.with_outputs, strict=True)}
    assert min(map(abs, off.values())) > 0.1
    more = ", ".join(
        f"{name} ({100 * abs(x):.3g} % {'more' if x > 0 else 'less'} than predicted)" for name, x in off.items()
    )
    least = "shrunk" if distorted.mse < found["input perturbation"].mse else "input perturbation"
    expected = "shrunk" if SHRUNK.predicted_mse < INPUTS.predicted_mse else "input perturbation"
    order = (
        f"{least} errs least, as predicted."
        if least == expected
        else (f"{expected} was predicted to err least, and {least} does.")
    )
    assert found.verdicts == (
        order,
        "input perturbation: the prediction holds within 10 %, for all outputs together and for each.",
        f"shrunk: the prediction does not hold: {more}.",
    )
    printed = " ".join(str(found).split())
    assert all(x in printed for x in found.verdicts)
    assert printed.endswith("The figures here were computed from the data, unprotected: they are not for release.")
    assert all(x in found._repr_html_() for x in found.verdicts)


def test_what_holds_for_some_outputs_is_said_so():
    quiet = recorded(level=(0, 0, 0)) * np.array([1, 1, 200])[:, None]  # which output 1 does not see
    bias = dp.ChannelsMechanism(
        *("biased", TARGET, ONE, INPUTS.prefilter, dp.FilterMatrix([[0.5 * SLOW] * 3, TARGET.rows[1]])), models=MODELS
    )
    (verdict,) = dp.evaluate(bias, quiet, seed=1, draws=3).verdicts
    assert verdict.startswith(
        "biased: the prediction holds within 10 % for output 1, and not for all outputs together ("
    )
    assert verdict.endswith(" % more than predicted).")


@pytest.mark.parametrize(
    ("mechanisms", "u", "options", "words"),
    [
        (INPUTS, np.zeros((2, 500)), {}, r"u must have the shape \(..., 3, time\), 3 channels, got \(2, 500\)"),
        (INPUTS, np.zeros((0, 3, 500)), {}, "u must have at least one recording"),
        (
            INPUTS,
            np.zeros((3, 100)),
            {"burn_in": 100},
            "u must have more than 100 steps, 100 before .* got 100: record",
        ),
        (SHRUNK, np.zeros((3, 102)), {"burn_in": 100}, "u must have more than 102 steps, 100 before .* and 2 that"),
        (INPUTS, np.zeros((3, 500)), {"draws": 1}, "draws must be"),
        (INPUTS, np.zeros((3, 500)), {"confidence": 1}, "confidence must be"),
        (INPUTS, np.zeros((3, 500)), {"burn_in": -1}, "burn_in must be"),
        ([INPUTS, INPUTS], np.zeros((3, 500)), {}, "mechanisms must have different names"),
        (
            dp.input_perturbation(SLOW, dp.Privacy(1, 0.1)),
            np.zeros(500),
            {},
            r"must be of several streams here, got \['input perturbation'\] of one stream: .* dpfast evaluate",
        ),
        (
            [INPUTS, dp.input_perturbation(dp.total(2), ONE, name="two")],
            np.zeros((3, 500)),
            {},
            "mechanisms must all have the same inputs",
        ),
    ],
)
def test_what_does_not_fit_is_named(mechanisms, u, options, words):
    with pytest.raises(ValueError, match=words):
        dp.evaluate(mechanisms, u, seed=1, **options)
