"""What the methods `plot` draw, read off the axes and compared with other ways to the same figures."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest
from helpers import sweeps
from matplotlib.figure import Figure
from scipy import signal

import dpfast as dp
from dpfast._support.errors import MissingExtraError

TARGET, PRIVACY = dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-3)
MODEL = dp.ARMA([1], [1, -0.5], mean=2.0)
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])


def axes():
    return Figure().subplots()


def line(ax, label=None):
    """The points of the line of a label, or of the first one."""
    found = [x for x in ax.lines if label is None or x.get_label().startswith(label)]
    return np.asarray(found[0].get_xdata(), float), np.asarray(found[0].get_ydata(), float)


def mean_over_frequency(x, y):
    """The mean of a density over cycles per sample from 0 to 1/2, by trapezoids on the drawn points."""
    return 2 * (y[0] * x[0] + np.trapezoid(y, x))


@pytest.fixture(scope="module")
def mechanism():
    return dp.lmmse(TARGET, PRIVACY, MODEL, lag=2)


# --- filters and models ---------------------------------------------------------------------------


def test_the_gain_is_that_of_scipy_in_decibels():
    x, y = line(TARGET.plot(ax=axes()))
    _, h = signal.freqz([1], [1, -0.9], 2 * np.pi * x)
    np.testing.assert_allclose(y, 20 * np.log10(np.abs(h)), atol=1e-9)
    assert x[-1] == 0.5


@pytest.mark.parametrize(
    ("period", "unit", "nyquist"),
    [("5min", "hour", 6), ("1h", "day", 12), ("1s", "minute", 30), ("1ms", "second", 500)],
)
def test_frequencies_and_times_have_units_where_the_period_is_known(period, unit, nyquist):
    ax = TARGET.plot(ax=axes(), period=period)
    assert ax.get_xlabel() == f"frequency (cycles per {unit})"
    assert line(ax)[0][-1] == pytest.approx(nyquist)
    ax = TARGET.plot("impulse", ax=axes(), period=period)
    assert ax.get_xlabel() == f"time ({unit}s)"
    assert line(ax)[0][0] == 0
    assert np.diff(ax.lines[-1].get_xdata())[0] == pytest.approx(1 / (2 * nyquist))


def test_the_impulse_response_is_drawn_until_it_has_decayed():
    y = TARGET.plot("impulse", ax=axes()).lines[-1].get_ydata()
    np.testing.assert_allclose(y, 0.9 ** np.arange(len(y)))
    assert y[-1] < 0.011
    y = dp.running_sum(300).plot(ax=axes()).lines[-1].get_ydata()
    np.testing.assert_array_equal(y, np.ones(300))


def test_the_spectrum_has_the_variance_for_its_mean():
    ax = MODEL.plot(ax=axes())
    assert mean_over_frequency(*line(ax)) == pytest.approx(1 / (1 - 0.25), rel=1e-4)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), 1 / (1 - 0.25))


def test_a_path_of_a_chain_has_its_levels():
    x, y = line(CHAIN.plot("path", ax=axes(), period="1min"))
    assert set(y) == {-0.5, 0.5}
    assert x[-1] == pytest.approx((len(y) - 1) / 60)


# --- mechanisms -----------------------------------------------------------------------------------


def test_gains_of_a_mechanism(mechanism):
    ax = mechanism.plot(ax=axes())
    x, g = line(ax, "|G|")
    _, h = line(ax, "|H|")
    _, both = line(ax, "|HG|")
    np.testing.assert_allclose(g + h, both, atol=1e-9)
    power = mean_over_frequency(x, 10 ** (g / 10))
    assert power == pytest.approx(1, rel=1e-3)  # of unit norm
    omega = 2 * np.pi * x
    wanted = np.abs(mechanism.prefilter.response(omega) * mechanism.receiver.response(omega))
    np.testing.assert_allclose(10 ** (both / 20), wanted, rtol=1e-9)


def test_the_parts_of_the_error_add_up_to_what_is_predicted(mechanism):
    ax = mechanism.plot("errors", ax=axes())
    noise = mean_over_frequency(*line(ax, "error: noise"))
    distortion = mean_over_frequency(*line(ax, "error: distortion"))
    assert noise == pytest.approx(mechanism.predicted_noise_mse, rel=1e-3)
    assert distortion == pytest.approx(mechanism.predicted_distortion_mse, rel=1e-3)
    true = mean_over_frequency(*line(ax, "the true output"))
    assert 1 - (noise + distortion) / true == pytest.approx(mechanism.explained, rel=1e-3)


def test_errors_by_step(mechanism):
    y = mechanism.plot("steps", ax=axes()).lines[0].get_ydata()
    np.testing.assert_allclose(y**2, mechanism.step_mse(len(y)))
    blocks = dp.block_sums(dp.Filter([1]), dp.Privacy(1), MODEL, length=3)
    ax = blocks.plot(ax=axes())
    np.testing.assert_allclose(line(ax)[1] ** 2, blocks.phase_mse)
    assert ax.lines[1].get_ydata()[0] == pytest.approx(blocks.predicted_rmse)
    horizon = dp.square_root(dp.running_sum(64), PRIVACY)
    np.testing.assert_allclose(line(horizon.plot(ax=axes()))[1] ** 2, horizon.step_mse())
    unbounded = dp.unbounded_sum(PRIVACY)
    assert line(unbounded.plot(ax=axes()))[1][6] == pytest.approx(unbounded.mse_at(6) ** 0.5)


def test_a_path_shows_the_output_of_the_target_beside_the_estimate_of_the_same_time(mechanism):
    ax = mechanism.plot("path", ax=axes())
    (_, truth), (_, estimate) = line(ax, "true output"), line(ax, "estimate")
    assert len(truth) == len(estimate) == 200
    at_lags = [np.mean((truth[5:-5] - estimate[5 + k : len(estimate) - 5 + k]) ** 2) for k in (-4, 0, 4)]
    assert np.argmin(at_lags) == 1
    assert np.mean((truth - estimate) ** 2) ** 0.5 == pytest.approx(mechanism.predicted_rmse, rel=0.5)


@pytest.mark.parametrize(
    ("made", "kinds"),
    [
        (lambda: dp.zero_forcing(TARGET, PRIVACY), ["gain", "steps"]),
        (lambda: dp.decision_feedback(TARGET, PRIVACY, CHAIN, lag=1), ["gain", "path"]),
        (lambda: dp.block_sums(TARGET, dp.Privacy(1), CHAIN, receiver="bayes", length=2), ["path"]),
        (lambda: dp.constant(TARGET, CHAIN), ["steps", "path"]),
        (lambda: dp.randomized_response(TARGET, dp.Privacy(1), CHAIN), ["gain", "errors", "steps", "path"]),
    ],
)
def test_each_mechanism_has_the_pictures_that_are_known(made, kinds):
    thing = made()
    for kind in kinds:
        assert thing.plot(kind, ax=axes()).lines
    with pytest.raises(ValueError, match=f"kind must be one of {', '.join(map(repr, kinds))}, got 'spectrum'"):
        thing.plot("spectrum", ax=axes())


# --- releases, studies and sweeps -----------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:What was published contradicts")
def test_a_release_is_drawn_with_its_band(mechanism, tmp_path):
    u = np.random.default_rng(1).poisson(2, (2, 50))
    result = dp.release(mechanism, u, tmp_path / "store", dp.Inputs(0, 20, centre=2, n_streams=2))
    ax = result.plot(stream=1, ax=axes())
    np.testing.assert_allclose(line(ax)[1], result.estimate[1])
    (band,) = ax.collections
    low, high = band.get_paths()[0].get_extents().intervaly
    half = result.model_check.band[1] if result.model_check.band is not None else 1.96 * mechanism.predicted_rmse
    assert high - result.estimate[1].max() == pytest.approx(half, rel=1e-2)
    assert result.estimate[1].min() - low == pytest.approx(half, rel=1e-2)
    legend = ax.get_legend().get_window_extent()
    assert legend.ymin > ax.transData.transform((0, high))[1]
    with pytest.raises(ValueError, match="stream must be"):
        result.plot(stream=2, ax=axes())


def test_a_study_is_drawn_with_what_was_predicted(mechanism):
    study = dp.monte_carlo([mechanism, dp.zero_forcing(TARGET, PRIVACY)], MODEL, n_streams=8, n_samples=200, seed=1)
    ax = study.plot(ax=axes())
    drawn = {float(y) for x in ax.lines for y in x.get_xdata()}
    assert {x for one in study for x in (one.rmse, one.predicted_rmse, *one.interval)} <= drawn
    ax = study.plot("distance", ax=axes())
    assert {100 * (x.rmse / x.predicted_rmse - 1) for x in study} <= {float(y) for x in ax.lines for y in x.get_xdata()}
    assert [x.get_text() for x in ax.get_yticklabels()] == [x.name for x in study]


def test_a_sweep_of_one_task_is_drawn_in_given_axes():
    found = sweeps.run(width=0.01, budget=3e4)
    one = found.where(target=next(iter(found.axes["target"]))) if "target" in found.axes else found
    ax = one.plot("epsilon", ax=axes())
    values = {float(y) for x in ax.lines for y in x.get_ydata()}
    assert {x.rmse for x in one.rows} <= values
    best = min(one.rows, key=lambda x: x.mse)
    top = max(ax.lines, key=lambda x: x.get_zorder())
    assert best.rmse in top.get_ydata()
    ax = one.plot("winners", ax=axes())
    assert [x.get_text() for x in ax.get_xticklabels()] == ["0.5", "2"]


# --- axes, and what is refused --------------------------------------------------------------------


def test_new_axes_are_those_of_pyplot():
    ax = TARGET.plot()
    assert plt.gcf() is ax.figure
    plt.close(ax.figure)


def test_what_is_refused(mechanism):
    with pytest.raises(ValueError, match="kind must be one of 'gain', 'impulse', got 'impulses'"):
        TARGET.plot("impulses", ax=axes())
    with pytest.raises(ValueError, match="ax must be axes of matplotlib, got"):
        TARGET.plot(ax=[1])
    with pytest.raises(ValueError, match="period must be a positive number of"):
        TARGET.plot(ax=axes(), period="5 minutes")
    several = sweeps.run(sweeps.GRID | {"target": {"a": TARGET, "b": dp.Filter([1, 1])}}, budget=1)
    with pytest.raises(ValueError, match=r"the sweep has \d, which differ in .* by where\(...\) of target"):
        several.plot("epsilon", ax=axes())


def test_matplotlib_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dpfast\[plot\]'"):
        TARGET.plot()


def test_a_release_is_drawn_over_the_labels_of_what_was_released(tmp_path):
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2024-03-04", periods=60, freq="D", tz="Europe/Berlin")
    table = pandas.DataFrame(np.ones((60, 2), int), index=days, columns=["north", "south"])
    mechanism = dp.input_perturbation(dp.Filter([1.0]), dp.Privacy(1, 1e-6))
    result = dp.release(mechanism, table, tmp_path / "store", dp.Inputs(0, 2, n_streams=2))
    ax = result.plot(stream=1, ax=Figure().subplots())
    assert (ax.get_title(loc="left"), ax.get_xlabel()) == ("south", "time")
    assert ax.lines[-1].get_xdata()[0] == np.datetime64("2024-03-04")
    plain = dp.read_release(tmp_path / "store").plot(ax=Figure().subplots())
    assert (plain.get_title(loc="left"), plain.get_xlabel()) == ("stream 1", "step")
