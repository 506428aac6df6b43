"""The page of a sweep of several streams: a row for each output, gains instead of paths."""

import numpy as np
import pytest
from helpers import pages

import dpfast as dp
from dpfast.reports.sweep import lines_and_panels, prefilter_gains, sweep_pictures
from dpfast.reports.sweep.sweep_page import sweep_page

SLOW = dp.Filter([0.1], [1, -0.9])
TARGET = dp.FilterMatrix([[SLOW, SLOW], [1, 0]])
GRID = {
    "mechanism": ["zero_forcing", "input_perturbation", "block_sums"],
    "target": TARGET,
    "model": [dp.ARMA([1], [1, -0.5]), dp.ARMA([2.0])],
    "epsilon": [1, 2],
    "delta": 1e-3,
    "adjacency": "one_input",
}


@pytest.fixture(scope="module")
def sweep():
    return dp.sweep(GRID, seed=1, n_samples=40, burn_in=10, width=0.5)


@pytest.fixture(scope="module")
def page(sweep):
    with pytest.MonkeyPatch.context() as patch:
        pages.render_once(patch)
        return pages.checked(sweep_page(sweep))


def test_the_page_has_a_row_for_each_output(sweep, page):
    said = [x.strip() for x in page.text if x.strip()]
    assert any(x.startswith("Of several streams each output has a row") for x in said)
    assert said.count("all") == len(sweep.points) + 1  # with the constant
    for row in sweep:
        for x in row.with_outputs:
            assert f"{x.rmse:#.5g}" in said


def test_there_are_gains_and_no_paths(sweep, page):
    alts = [x["alt"] for x in page.all("img")]
    assert any(x.startswith("Gain of the prefilter for each input") for x in alts)
    assert not any(x.startswith("Sample paths") for x in alts)
    assert list(sweep_pictures.draw_all(sweep)) == ["rmse-over-epsilon.png", "winners.png", "gains.png"]
    with pytest.raises(ValueError, match="some of several: there is the picture 'gains'"):
        dp.plot(sweep, "paths")


def test_gains_are_those_of_the_prefilters_on_one_scale(sweep):
    figure = dp.plot(sweep, "gains")
    shown = {ax.get_title(loc="left"): ax for ax in figure.axes if ax.get_visible()}
    assert list(shown) == ["LZF", "input perturbation"]  # block sums have none
    assert len({ax.get_ylim() for ax in shown.values()}) == 1
    row = next(x for x in sweep if x.family == "input_perturbation" and x.settings["epsilon"] == 2)
    made = sweep.mechanism(row)
    for j, line in enumerate(shown["input perturbation"].lines):
        gain = abs(made.prefilter[j, j].b[0]) / made.noise_std
        np.testing.assert_allclose(line.get_ydata(), 20 * np.log10(gain), atol=1e-9)


def test_without_prefilters_there_are_no_gains(sweep):
    blocks = sweep.where(mechanism="block_sums")
    assert "gains.png" not in sweep_pictures.draw_all(blocks)
    with pytest.raises(ValueError, match="gains must be of a sweep of several streams"):
        prefilter_gains.draw_gains(blocks)


def test_the_first_picture_of_one_task_is_of_gains(sweep):
    single = sweep.where(epsilon=1)
    assert dp.plot(single).axes[0].get_ylabel() == "gain (dB)"


def test_a_mechanism_that_is_there_has_its_bound_where_it_has_models():
    privacy = dp.Privacy(1, 1e-3, adjacency="one_input")
    made = {
        "with": dp.optimal(TARGET, privacy, GRID["model"], lag=1, tolerance=0.1),
        "without": dp.zero_forcing(TARGET, privacy, tolerance=0.1),
    }
    given = dp.sweep({"mechanism": made, "stream": [GRID["model"]]}, seed=1, n_samples=40, burn_in=10, width=0.5)
    known, unknown = (lines_and_panels.lower_bound(given, given.row(mechanism=x)) for x in made)
    assert known == pytest.approx(made["with"].lower_bound_mse ** 0.5)
    assert unknown is None
