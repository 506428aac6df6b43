"""Pictures of sweeps: what they show is what the rows say."""

import functools
import itertools
import math

import matplotlib
import numpy as np
import pytest
from helpers.sweeps import COIN, PRIVACY, TARGET, run

import dpfast as dp
from dpfast.reports import mechanism_styles
from dpfast.reports.matplotlib_helpers import render_png
from dpfast.reports.sweep import axis_titles, convergence, sweep_pictures, sweep_sample_paths, winner_map
from dpfast.reports.sweep import lines_and_panels as panels
from dpfast.reports.sweep.rmse_curves import describe_over

BASE = {"target": "exponential:0.9", "model": "markov:0.75,0.25;0.25,0.75@-0.5,0.5", "delta": 1e-3}
WIDE = BASE | {"tolerance": 0.3}
LINEAR = {
    **WIDE,
    "mechanism": ["lmmse", "zero_forcing"],
    "epsilon": [1, 3, 10],
    "lag": [0, 2, "smoother"],
}
DECIDING = {
    **BASE,
    "mechanism": "decision_feedback",
    "prefilter": {"b": [0.4, 0.2]},
    "decision": ["soft", "sign"],
    "epsilon": [1, 3, 10],
    "lag": [0, 2],
}
OPTIONS = {"n_samples": 100, "burn_in": None, "budget": 1e5}


@pytest.fixture(autouse=True, scope="module")
def _one_store(tmp_path_factory):
    """What several sweeps have in common is designed and simulated once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(OPTIONS, "store", tmp_path_factory.mktemp("pictures") / "sweeps.sqlite")
        yield


@functools.cache
def sweep():
    return run([LINEAR, DECIDING], **OPTIONS, decide=["mechanism", "decision"])


@functools.cache
def bounded():
    grid = {**WIDE, "mechanism": ["optimal", "zero_forcing"], "epsilon": [1, 10], "lag": 1}
    return run(grid, **OPTIONS)


@pytest.mark.parametrize("axes", [("epsilon",), ("lag",), ("epsilon", "lag"), ("decision", "lag"), ()])
def test_a_panel_has_all_rows_with_its_labels_in_their_order(axes):
    found = panels.task_panels(sweep(), axes)
    for x in found:
        own = [row for row in sweep().rows if all(row.settings.get(name, y) == y for name, y in x.labels.items())]
        assert [row.number for row in x.rows] == [row.number for row in own]
    assert {row.number for x in found for row in x.rows} == {row.number for row in sweep().rows}


@functools.cache
def all_drawn():
    return sweep_pictures.draw_all(sweep())


def panel(figure, title):
    """The axes with a title, and those below."""
    places = [i for i, x in enumerate(figure.axes) if x.get_title(loc="left") == title]
    assert len(places) == 1
    return figure.axes[places[0]]


def line(ax, label):
    found = [x for x in ax.lines if x.get_label() == label]
    assert len(found) == 1
    return found[0]


def legend_of(figure):
    (found,) = figure.legends
    return [x.get_text() for x in found.get_texts()]


def overlaps(figure):
    """Pairs of texts that lie over each other: numbers along an axis, titles, texts in cells."""
    figure.draw_without_rendering()
    renderer = figure._get_renderer()
    groups = [[x._left_title for x in figure.axes if x.get_title(loc="left")]]
    for ax in figure.axes:
        groups += [ax.texts, *(numbers(x) for x in (ax.xaxis, ax.yaxis))]
    found = []
    for texts in groups:
        boxes = [x.get_window_extent(renderer) for x in texts]
        pairs = itertools.combinations(range(len(texts)), 2)
        found += [(texts[i].get_text(), texts[j].get_text()) for i, j in pairs if boxes[i].overlaps(boxes[j])]
    return found


def numbers(axis):
    """The labels of the ticks that are seen."""
    low, high = sorted(axis.get_view_interval())
    seen = [x.label1 for x in axis.get_major_ticks() if low <= x.get_loc() <= high]
    return [x for x in seen if x.get_visible() and x.get_text()]


@pytest.mark.parametrize(
    ("axis", "label", "text"),
    [
        ("length", 21, "length 21"),
        ("length", "21, 252", "length 21, 252"),
        ("length", "best", "best length"),
        ("shares", "0.55, 0.45", "shares 0.55, 0.45"),
        ("shares", None, "equal shares"),
        ("unit", None, "no unit"),
        ("noise", "geometric", "geometric"),
        ("model", None, "no model"),
        ("phase", 3, "phase 3"),
    ],
)
def test_labels_say_what_they_are_of(axis, label, text):
    assert axis_titles.label_text(axis, label) == text


# --- RMSE over an axis ----------------------------------------------------------------------------


def test_lines_over_epsilon_are_the_rows():
    figure = all_drawn()["rmse-over-epsilon.png"]
    assert [x.get_title(loc="left") for x in figure.axes if x.get_title(loc="left")] == ["lag 0", "lag 2", "smoother"]
    ax = panel(figure, "lag 2")
    for label, settings in {
        "LMMSE": {"mechanism": "lmmse", "lag": 2},
        "LZF": {"mechanism": "zero_forcing", "lag": 2},
        "DFE soft": {"decision": "soft", "lag": 2},
        "DFE sign": {"decision": "sign", "lag": 2},
    }.items():
        rows = [sweep().row(**settings, epsilon=x) for x in (1, 3, 10)]
        drawn = line(ax, label)
        assert list(drawn.get_xdata()) == [1, 3, 10]
        assert list(drawn.get_ydata()) == [x.rmse for x in rows]
        rings = [
            x
            for x in ax.lines
            if x.get_markerfacecolor() == "none" and x.get_color() == drawn.get_color() and len(x.get_xdata())
        ]
        predicted = [math.nan if x.predicted_rmse is None else x.predicted_rmse for x in rows]
        assert any(np.array_equal(x.get_ydata(), predicted, equal_nan=True) for x in rings)
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert set(legend_of(figure)) == {
        "lower bound, Gaussian noise",
        "LMMSE",
        "LZF",
        "DFE soft",
        "DFE sign",
        "constant",
        "predicted",
        "95 % interval",
    }


def test_bands_are_intervals():
    ax = sweep_pictures.draw_over(bounded(), "epsilon").axes[0]
    rows = [bounded().row(mechanism="optimal", epsilon=x) for x in (1, 10)]
    bands = [x.get_paths()[0].vertices for x in ax.collections if len(x.get_paths()) and len(x.get_paths()[0].vertices)]
    wanted = {(e, y) for e, row in zip((1, 10), rows, strict=True) for y in row.interval}
    assert any(wanted <= {tuple(v) for v in band} for band in bands)


def test_the_smoother_is_the_latest_and_what_takes_no_lag_is_at_every_one():
    figure = all_drawn()["rmse-over-lag.png"]
    ax = panel(figure, "ε 3")
    figure.draw_without_rendering()
    assert [x.get_text() for x in numbers(figure.axes[-1].xaxis)] == ["0", "2", "∞"]
    drawn = line(ax, "LMMSE")
    rows = [sweep().row(mechanism="lmmse", epsilon=3, lag=x) for x in (0, 2, None)]
    assert list(drawn.get_xdata())[:2] == [0, 2]
    assert drawn.get_xdata()[2] > 2
    assert list(drawn.get_ydata()) == [x.rmse for x in rows]
    level = sweep().row(mechanism="zero_forcing", epsilon=3, lag=0).rmse
    assert list(line(ax, "LZF").get_ydata()) == [level] * 3
    assert np.isnan(line(ax, "DFE soft").get_ydata()).tolist() == [False, False, True]


def test_the_bound_is_that_of_all_linear_mechanisms_and_not_of_zero_forcing():
    assert all(x.lower_bound_rmse for x in bounded())
    figure = sweep_pictures.draw_over(bounded(), "epsilon")
    rows = [bounded().row(mechanism="optimal", epsilon=x) for x in (1, 10)]
    bound = line(figure.axes[0], "lower bound, Gaussian noise")
    assert list(bound.get_ydata()) == [x.lower_bound_rmse for x in rows]
    assert bound.get_linewidth() == mechanism_styles.BOUND.width
    excess = line(figure.axes[1], "LZF").get_ydata()
    level = [bounded().row(mechanism="zero_forcing", epsilon=x).rmse for x in (1, 10)]
    assert excess == pytest.approx([100 * (y / x.lower_bound_rmse - 1) for x, y in zip(rows, level, strict=True)])
    alone = run({**WIDE, "mechanism": "zero_forcing", "epsilon": [1, 10]}, **OPTIONS)
    assert alone.rows[0].lower_bound_rmse is not None
    assert "lower bound, Gaussian noise" not in legend_of(sweep_pictures.draw_over(alone, "epsilon"))


@functools.cache
def beside_blocks():
    return run(
        {**WIDE, "mechanism": ["optimal", "zero_forcing", "block_sums"], "epsilon": [1, 10], "lag": 1}, **OPTIONS
    )


def figures(found, name, mechanism):
    return np.array([getattr(found.row(mechanism=mechanism, epsilon=x), name) for x in (1, 10)])


def test_errors_are_not_measured_from_a_bound_that_others_go_below():
    found = beside_blocks()
    bounds, least = figures(found, "lower_bound_rmse", "optimal"), figures(found, "predicted_rmse", "block_sums")
    assert all(least < bounds)
    figure = sweep_pictures.draw_over(found, "epsilon")
    below = figure.axes[1]
    assert below.get_ylabel() == "% above\nthe least"
    assert list(line(below, "block sums").get_ydata()) == [0, 0]
    # each reference is drawn as far above the least as it is, and nothing but mechanisms and a thin rule at zero
    assert line(below, "lower bound, Gaussian noise").get_ydata() == pytest.approx(100 * (bounds / least - 1))
    assert min(line(below, "lower bound, Gaussian noise").get_ydata()) > 10
    at_zero = [x for x in below.lines if len(x.get_ydata()) and not np.any(x.get_ydata())]
    assert {x.get_label() for x in at_zero if x.get_linewidth() > 1} == {"block sums"}
    assert {x.get_color() for x in at_zero} == {
        mechanism_styles.GREY,
        mechanism_styles.FAMILIES["block_sums"].colour,
    }


def test_percent_that_are_much_are_on_the_axis():
    figure = sweep_pictures.draw_over(beside_blocks(), "epsilon")
    figure.draw_without_rendering()
    below = figure.axes[1]
    low, high = below.get_ylim()
    drawn = [y for x in below.lines for y in np.asarray(x.get_ydata(), float)]
    assert low < min(drawn) < 0
    assert 200 < max(drawn) < high
    assert all(line(below, x).get_ydata()[1] > 100 for x in ("LZF", "constant", "optimal"))
    assert overlaps(figure) == []


def test_the_bound_itself_is_at_zero_where_it_is_what_errors_are_measured_from():
    below = sweep_pictures.draw_over(bounded(), "epsilon").axes[1]
    assert below.get_ylabel() == "% above\nlower bound"
    drawn = line(below, "lower bound, Gaussian noise")
    assert list(drawn.get_ydata()) == [0, 0]
    assert drawn.get_linewidth() <= mechanism_styles.BOUND.width / 2  # what is near to it is seen


def test_block_sums_stand_beside_the_bound_that_is_for_them():
    found = beside_blocks()
    figure = sweep_pictures.draw_over(found, "epsilon")
    chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    target = dp.Filter([0.1], [1, -0.9])
    bounds = [dp.additive_bound(target, dp.Privacy(x, 1e-3), chain, lag=1).rmse for x in (1, 10)]
    drawn = [line(ax, "additive bound, any noise").get_ydata() for ax in figure.axes]
    assert drawn[0] == pytest.approx(bounds)
    least = figures(found, "predicted_rmse", "block_sums")
    assert drawn[1] == pytest.approx(100 * (bounds / least - 1))
    assert all(bounds < figures(found, "predicted_rmse", "block_sums"))
    assert "additive bound, any noise" not in legend_of(sweep_pictures.draw_over(bounded(), "epsilon"))


def test_the_constant_is_a_line():
    """Its error is that of the mean: the variance of the true output, from the correlations 1/4 · 2⁻ᵏ of the levels."""
    taps = 0.1 * 0.9 ** np.arange(400)
    lags = np.abs(np.subtract.outer(np.arange(400), np.arange(400)))
    level = math.sqrt(taps @ (0.25 * 0.5**lags) @ taps)
    figure = sweep_pictures.draw_over(bounded(), "epsilon")
    assert line(figure.axes[0], "constant").get_ydata() == pytest.approx([level] * 2)
    excess = 100 * (level / figures(bounded(), "lower_bound_rmse", "optimal") - 1)
    assert line(figure.axes[1], "constant").get_ydata() == pytest.approx(excess)


def test_the_caption_says_what_is_in_the_picture():
    said = {x: describe_over(sweep_pictures.draw_over(x, "epsilon"), "ε") for x in (bounded(), beside_blocks())}
    assert said[bounded()].endswith("Below, all of it in percent above that lower bound.")
    assert "additive" not in said[bounded()]
    assert said[beside_blocks()].startswith("RMSE against ε for each mechanism: bands are the intervals")
    assert "the thick dashed line the additive bound" in said[beside_blocks()]
    assert "that lower bound" not in said[beside_blocks()]
    assert "above the mechanism that errs least there" in said[beside_blocks()]
    undecided = {**BASE, "mechanism": "decision_feedback", "prefilter": {"b": [0.4, 0.2]}, "epsilon": [1, 3], "lag": 0}
    alone = describe_over(sweep_pictures.draw_over(run(undecided, **OPTIONS), "epsilon"), "ε")
    assert "bound" not in alone
    assert "rings" not in alone
    assert "grey dots the constant" in alone


def test_a_bound_for_other_inputs_is_none():
    other = run({**WIDE, "mechanism": "optimal", "epsilon": [1, 10], "lag": 1, "stream": COIN}, **OPTIONS)
    assert [panels.lower_bound(other, x) for x in other] == [None, None]
    given = dp.optimal(TARGET, PRIVACY, COIN, lag=1, tolerance=0.3)
    known = run({"mechanism": given, "stream": {"coin": COIN, "other": dp.ARMA([1.0], [1.0, -0.5])}}, **OPTIONS)
    assert [panels.lower_bound(known, x) for x in known] == [math.sqrt(given.lower_bound_mse), None]


def test_differences_from_the_best_are_paired():
    found = sweep().where(lag=2)
    figure = sweep_pictures.draw_over(found, "epsilon")
    for i, epsilon in enumerate((1, 3, 10)):
        rows = found.where(epsilon=epsilon).rows
        best = min(rows, key=lambda x: x.mse)
        row = found.row(mechanism="lmmse", epsilon=epsilon)
        ratio = found.compare(row, best).rmse_ratio
        assert line(figure.axes[1], "LMMSE").get_ydata()[i] == pytest.approx(100 * (ratio - 1))


def test_limits_contain_what_is_drawn():
    for axis in ("epsilon", "lag"):
        figure = all_drawn()[f"rmse-over-{axis}.png"]
        figure.draw_without_rendering()
        for ax in (x for x in figure.axes if x.get_title(loc="left")):
            ys = [y for x in ax.lines for y in np.asarray(x.get_ydata(), float) if np.isfinite(y)]
            low, high = ax.get_ylim()
            assert low <= min(ys) <= max(ys) <= high
            left, right = ax.get_xlim()
            xs = [x for each in ax.lines for x in each.get_xdata()]
            assert left <= min(xs) <= max(xs) <= right


def test_a_dozen_panels_and_how_many_are_left_out():
    found = run(
        {
            **BASE,
            "target": "moving-average:2",
            "mechanism": "input_perturbation",
            "epsilon": [1, 2],
            "max_events": list(range(1, 16)),
        },
        **OPTIONS,
    )
    figure = sweep_pictures.draw_over(found, "epsilon")
    titles = [x.get_title(loc="left") for x in figure.axes if x.get_title(loc="left")]
    assert len(titles) == 12
    assert (titles[0], titles[-1]) == ("max events 1", "max events 15")
    assert figure.get_suptitle() == "12 of 15 panels are shown, from all over the grid"


def test_only_axes_of_numbers_can_be_drawn_over():
    with pytest.raises(ValueError, match="axis must be one of 'epsilon', 'lag', got 'mechanism'"):
        sweep_pictures.draw_over(sweep(), "mechanism")


# --- winners --------------------------------------------------------------------------------------


def test_the_map_says_who_errs_least():
    figure = all_drawn()["winners.png"]
    ax = figure.axes[0]
    told = {x.get_position(): x.get_text().split("\n") for x in ax.texts}
    names, places = ("mechanism", "decision"), {"epsilon": [1, 3, 10], "lag": [0, 2, "smoother"]}
    cells = sweep().winners(*names)
    assert len(told) == len(cells) == 9
    looks = panels.row_styles(sweep(), names)
    for cell in cells:
        at = (places["lag"].index(cell.labels["lag"]), places["epsilon"].index(cell.labels["epsilon"]))
        name = panels.row_name(cell.best, names)
        assert told[at][0] == name
        known = cell.best.rmse if cell.best.predicted_rmse is None else cell.best.predicted_rmse
        assert float(told[at][1]) == pytest.approx(known, rel=1e-3)
        (bar,) = [
            x
            for bars in ax.containers
            for x in bars
            if (x.get_x() + 0.5, x.get_y() + 0.5) == at and bars.get_label() not in {*looks, "undecided"}
        ]
        assert (bar.get_hatch() is not None) == (cell.state == "undecided")
    assert set(legend_of(figure)) <= {*looks, "undecided"}
    assert [x.get_text() for x in ax.get_xticklabels()] == ["0", "2", "smoother"]


def test_no_axis_of_the_contest_is_dropped():
    """Models of the design are of a task, and here what is compared: each has a name and a colour of its own."""
    models = {"slow": "markov:0.9,0.1;0.1,0.9@-0.5,0.5", "right": BASE["model"], "fast": "levels:-0.5,0.5@0.5,0.5"}
    grid = {**WIDE, "model": models, "stream": BASE["model"], "mechanism": ["lmmse", "zero_forcing"], "lag": 2}
    found = run(grid | {"epsilon": [1, 10]}, **OPTIONS, decide=["mechanism", "model"])
    figure = sweep_pictures.draw_winners(found)
    names = [f"LMMSE, {x}" for x in models]
    told = [x.get_text().split("\n") for x in figure.axes[0].texts]
    cells = found.winners()
    assert len(told) == len(cells) == 2
    for lines_told, cell in zip(told, cells, strict=True):
        assert lines_told[0] == f"LMMSE, {cell.best.settings['model']}" in names
        assert lines_told[-1].startswith(f"LMMSE, {cell.second.settings['model']} +")
    colours = winner_map.row_colours(found, ("mechanism", "model"))
    assert {*names, "LZF"} == set(colours)
    assert len(set(colours.values())) == len(colours)
    assert set(legend_of(figure)) - {"undecided"} <= set(names)


def test_ties_are_said():
    twins = [dp.zero_forcing(TARGET, PRIVACY, tolerance=0.3, name=x) for x in ("one", "two")]
    found = run({"mechanism": twins, "stream": {"coin": COIN, "other": dp.ARMA([1.0], [1.0, -0.5])}}, **OPTIONS)
    texts = [x.get_text().split("\n") for x in sweep_pictures.draw_winners(found).axes[0].texts]
    assert [(x[0], x[-1]) for x in texts] == [("one", "two tie")] * 2


def test_many_maps_are_small():
    """Two targets and three lags: six maps over ε and δ, which has more values than the lag, a row for each target."""
    targets = {"short": "moving-average:2", "long": "moving-average:3"}
    grid = {**BASE, "mechanism": ["randomized_response", "block_sums"], "lag": [0, 1, 2], "epsilon": [1, 10]}
    grid |= {"delta": [0, 1e-9, 1e-3, 1e-2], "target": targets, "length": 1}
    found = run(grid, **OPTIONS | {"budget": 1}, decide="mechanism")
    figure = sweep_pictures.draw_winners(found)
    assert figure.axes[0].get_subplotspec().get_gridspec().get_geometry() == (2, 3)
    assert [x.get_title(loc="left") for x in figure.axes[:3]] == [f"short, lag {x}" for x in range(3)]
    labels = {"target": "short", "lag": 1, "epsilon": 10, "delta": 1e-3}
    (cell,) = [x for x in found.winners() if x.labels == labels]
    (told,) = [x for x in figure.axes[1].texts if x.get_position() == (2, 1)]
    percent = 100 * (found.compare(cell.second, cell.best).rmse_ratio - 1)
    assert float(told.get_text()) == pytest.approx(percent, rel=0.05)
    assert [x.get_ylabel() for x in figure.axes[:2]] == ["ε", ""]
    assert [x.get_xlabel() for x in figure.axes[2:4]] == ["", "δ"]


def test_axes_of_a_map_are_checked():
    with pytest.raises(ValueError, match="rows must be one of 'epsilon', 'lag', got 'decision'"):
        sweep_pictures.draw_winners(sweep(), rows="decision")
    with pytest.raises(ValueError, match="rows and columns must be different axes, got 'lag' twice"):
        sweep_pictures.draw_winners(sweep(), rows="lag", columns="lag")
    assert sweep_pictures.draw_winners(sweep(), columns="epsilon").axes[0].get_ylabel() == "lag (samples)"


# --- paths, convergence ---------------------------------------------------------------------------


def test_paths_are_those_of_the_mechanisms():
    rows = [sweep().row(mechanism="lmmse", epsilon=3, lag=2), sweep().row(decision="sign", epsilon=3, lag=2)]
    figure = sweep_sample_paths.draw_sample_paths(sweep(), rows, n_samples=50)
    assert [x.get_title(loc="left") for x in figure.axes] == ["LMMSE", "DFE sign"]
    first, second = (x.lines for x in figure.axes)
    assert len(first[0].get_ydata()) == 50
    assert np.array_equal(first[0].get_ydata(), second[0].get_ydata())  # the true output
    assert not np.array_equal(first[1].get_ydata(), second[1].get_ydata())
    apart = [sweep().row(mechanism="lmmse", epsilon=3, lag=x) for x in (0, 2)]
    titles = [x.get_title(loc="left") for x in sweep_sample_paths.draw_sample_paths(sweep(), apart).axes]
    assert titles == ["LMMSE, ε 3, lag 0", "LMMSE, ε 3, lag 2"]
    with pytest.raises(ValueError, match="rows must be of one stream and one target"):
        sweep_sample_paths.draw_sample_paths(sweep(), [])


def test_convergence_ends_at_the_estimate_and_its_interval():
    figure = all_drawn()["convergence.png"]
    ax = figure.axes[0]
    row = next(x for x in sweep() if len(x.batch_means) > 16)
    drawn = next(x for x in ax.lines if len(x.get_xdata()) > 2)
    assert drawn.get_xdata()[-1] == row.n_streams
    assert drawn.get_ydata()[-1] == pytest.approx(0, abs=1e-9)
    n = int(drawn.get_xdata()[5]) // 8
    assert drawn.get_ydata()[5] == pytest.approx(100 * (math.sqrt(row.batch_means[:n].mean()) / row.rmse - 1))
    band = ax.collections[0].get_paths()[0].vertices
    last = sorted({y for x, y in band if x == row.n_streams})
    assert [last[0], last[-1]] == pytest.approx([100 * (x / row.rmse - 1) for x in row.interval])


def test_rare_errors_have_no_band():
    """What bounds them is far above; where none was seen there is nothing to compare with either."""
    found = run(
        {**WIDE, "mechanism": "decision_feedback", "decision": ["sign", "soft"], "epsilon": [3, 200]}, **OPTIONS
    )
    rare = [x for x in found if x.settings["epsilon"] == 200]
    assert all(x.is_rare for x in rare)
    figure = sweep_pictures.draw_over(found, "epsilon")
    (ax, *_) = figure.axes
    drawn = [y for x in ax.lines for y in x.get_ydata()]
    assert ax.get_ylim()[1] < 1.2 * max(drawn)  # the constant, and no end of an interval
    assert max(drawn) != max(x.interval[1] for x in rare)
    assert "without a band: 2 cases in which errors are too rare for one" in figure.get_suptitle()
    for band in ax.collections[:2]:
        assert {x for path in band.get_paths() for x, _ in path.vertices} == {3}
    assert "convergence.png" not in sweep_pictures.draw_all(found.where(epsilon=200))


def test_convergence_needs_blocks():
    single = run({**BASE, "mechanism": "zero_forcing", "epsilon": 1}, **{**OPTIONS, "width": None, "budget": 1e4})
    with pytest.raises(ValueError, match="several blocks"):
        convergence.draw_convergence(single)
    assert list(sweep_pictures.draw_all(single)) == ["paths.png"]


# --- all ------------------------------------------------------------------------------------------


def test_all_pictures_of_a_sweep_are_legible_and_of_one_style():
    found = all_drawn()
    assert list(found) == ["rmse-over-epsilon.png", "rmse-over-lag.png", "winners.png", "paths.png", "convergence.png"]
    colours = {mechanism_styles.FAMILIES[x].colour for x in ("lmmse", "zero_forcing", "decision_feedback")}
    known = colours | {mechanism_styles.TRUTH, mechanism_styles.GREY, mechanism_styles.BOUND.colour, "white"}
    known |= {x.colour for x in panels.row_styles(sweep(), panels.variant_axes(sweep())).values()}  # shades of these
    for name, figure in found.items():
        assert overlaps(figure) == [], name
        assert figure.get_figwidth() <= 7
        sizes = [x.get_fontsize() for x in figure.findobj(matplotlib.text.Text) if x.get_text()]
        assert min(sizes) >= 7
        assert {x.get_color() for ax in figure.axes for x in ax.lines} <= known, name
        assert all(legend_of(figure) for _ in figure.legends)


def test_a_design_that_failed_is_said():
    grid = {
        "mechanism": ["zero_forcing", "decision_feedback"],
        "target": dp.Filter([1.0]),
        "model": {"coin": COIN, "Gaussian": dp.ARMA([0.5], mean=1.0)},
        "stream": COIN,
        "epsilon": [1, 2],
        "delta": 1e-6,
        "lag": 0,
    }
    found = run(grid, **OPTIONS)
    figures = sweep_pictures.draw_all(found)
    assert figures["rmse-over-epsilon.png"].get_suptitle() == "2 cases have no design"
    ax = panel(figures["rmse-over-epsilon.png"], "Gaussian")
    assert [x.get_label() for x in ax.lines if not x.get_label().startswith("_")] == ["constant", "LZF"]
    assert all(overlaps(x) == [] for x in figures.values())


@pytest.mark.parametrize(
    ("mechanism", "axis", "values"), [("zero_forcing", "delta", [0, 1e-6]), ("block_sums", "max_change", [1, 1.5])]
)
def test_there_is_a_gap_where_nothing_has_a_design(mechanism, axis, values):
    """Gaussian noise needs a δ, and an event on the levels changes them by whole steps."""
    options = {"tolerance": 0.3} if mechanism == "zero_forcing" else {"lag": 0, "length": 2}
    grid = {x: y for x, y in BASE.items() if x != "delta"} | options
    found = run({**grid, "mechanism": mechanism, "epsilon": [1, 2], axis: values}, **OPTIONS)
    failed = [x.settings[axis] for x in found if x.failed]
    assert len(failed) == 2 == len(found) / 2
    for name in ("epsilon", axis):
        figure = sweep_pictures.draw_over(found, name)
        assert figure.get_suptitle() == "2 cases have no design"
        label = "LZF" if mechanism == "zero_forcing" else "block sums"
        drawn = [x for ax in figure.axes for x in ax.lines if x.get_label() == label]
        seen = {x: y for each in drawn for x, y in zip(each.get_xdata(), each.get_ydata(), strict=True)}
        if name == axis:
            assert [x for x in values if math.isnan(seen[x])] == [failed[0]]
        else:
            assert all(map(math.isfinite, seen.values()))
    assert "rmse-over-epsilon.png" in sweep_pictures.draw_all(found)


def test_png_is_written():
    assert render_png(all_drawn()["winners.png"]).startswith(b"\x89PNG")
