"""What `plot` of several streams draws, read off the axes and compared with other ways to the same figures."""

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import signal

import dpfast as dp

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW], [QUICK, 0]])
PRIVACY = dp.Privacy(1, 1e-3, adjacency="one_input")
MODELS = [dp.ARMA([1], [1, -0.5], mean=2.0), dp.ARMA([1.2], [1, -0.8])]


def lines(ax):
    return {x.get_label(): np.array([x.get_xdata(), x.get_ydata()]) for x in ax.lines}


def test_gains_of_entries_are_those_of_scipy_in_decibels():
    found = lines(TARGET.plot(ax=Figure().subplots()))
    assert list(found) == ["output 0, input 0", "output 0, input 1", "output 1, input 0"]
    x, y = found["output 1, input 0"]
    _, h = signal.freqz([0.2], [1, -0.8], 2 * np.pi * x)
    np.testing.assert_allclose(y, 20 * np.log10(np.abs(h)), atol=1e-9)
    assert x[-1] == 0.5
    ax = TARGET.plot("gain", ax=Figure().subplots(), period="5min")
    assert ax.get_xlabel() == "frequency (cycles per hour)"
    assert lines(ax)["output 1, input 0"][0, -1] == 6.0
    many = dp.FilterMatrix([[1.0] * 13]).plot(ax=Figure().subplots())
    assert many.get_legend() is None
    assert not dp.FilterMatrix([[0.0]]).plot(ax=Figure().subplots()).lines


def test_gains_of_a_prefilter_are_those_of_each_input_above_the_noise():
    turn = np.array([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0]])
    target = dp.FilterMatrix([[1, 0, 0], [0, 1, 0]])
    made = dp.ChannelsMechanism("turned", target, PRIVACY, dp.FilterMatrix(turn), dp.FilterMatrix(turn[:, :2].T))
    found = lines(made.plot("gain", ax=Figure().subplots()))
    assert list(found) == ["input 0", "input 1"]
    for _, y in found.values():
        np.testing.assert_allclose(y, -20 * np.log10(made.noise_std), atol=1e-9)


@pytest.mark.parametrize("kind", ["filters", "blocks"])
def test_errors_of_outputs_stand_beside_those_of_the_mean(kind):
    blocks = dp.Privacy(1, adjacency="one_input")
    made = dp.lmmse(TARGET, PRIVACY, MODELS, lag=1) if kind == "filters" else dp.block_sums(TARGET, blocks, MODELS)
    ax = made.plot("outputs", ax=Figure().subplots())
    np.testing.assert_allclose([x.get_height() for x in ax.patches], np.sqrt(made.output_mse))
    u = dp.VectorARMA.independent(MODELS).sample(400, 300, seed=1)
    spread = TARGET.apply(u)[..., 150:].std(axis=(0, 2))
    np.testing.assert_allclose(lines(ax)["publishing the mean"][1], spread, rtol=0.05)
    assert [x.get_text() for x in ax.get_xticklabels()] == ["output 0", "output 1"]
    alone = dp.zero_forcing(TARGET, PRIVACY).plot("outputs", ax=Figure().subplots())
    assert alone.get_legend() is None
    assert made.plot(ax=Figure().subplots()).get_ylabel() == ("gain (dB)" if kind == "filters" else "RMSE")


def test_what_there_is_none_of_is_refused():
    made = dp.block_sums(TARGET, dp.Privacy(1, adjacency="one_input"), MODELS)
    with pytest.raises(ValueError, match="kind must be one of 'outputs'"):
        made.plot("gain", ax=Figure().subplots())
    with pytest.raises(ValueError, match="period must be left out for 'outputs'"):
        made.plot("outputs", ax=Figure().subplots(), period="5min")


def test_notebooks_show_words_and_a_picture():
    made = dp.zero_forcing(TARGET, PRIVACY)
    for x, words in ((TARGET, "FilterMatrix from 2 inputs"), (made, "one event of a person is at one of the 2 inputs")):
        text = x._repr_html_()
        assert words in text
        assert text.count("<img ") == 1
    assert len(dp.plot(made).axes) == 2
