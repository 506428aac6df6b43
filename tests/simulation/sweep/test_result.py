"""What a sweep says: its parts, comparisons and winners, tables, text."""

import dataclasses
import itertools
import math

import numpy as np
import pandas
import pytest
from helpers import reference, sweeps
from helpers.sweeps import COIN, GRID, rows, run

import dpfast as dp
from dpfast.simulation.sweep.result import Sweep
from dpfast.simulation.sweep.stream_blocks import BATCHES
from dpfast.simulation.sweep.winner_sentences import say_who_wins

# Two groups; a mechanism without a lag; one whose design fails; a point that cannot be; labels of two kinds.
MIXED = [
    {
        "mechanism": ["zero_forcing", "lmmse", "decision_feedback"],
        "target": {"short": dp.Filter([1.0]), "long": dp.Filter([1, 1])},
        "model": {"coin": COIN, "Gaussian": dp.ARMA([0.5], mean=1.0)},
        "stream": COIN,
        "tolerance": 0.1,
        "epsilon": 1,
        "delta": 1e-6,
        "lag": [0, None],
    },
    {"mechanism": "output_perturbation", "target": dp.Filter([1.0]), "stream": COIN, "epsilon": 1, "delta": 1e-6},
]


@pytest.fixture(scope="module")
def found():
    return run(width=0.08, budget=3e4)


@pytest.fixture(scope="module")
def mixed():
    return run(MIXED, width=0.03, budget=3e4)


def labels_of(sweep):
    return [tuple(x.labels.values()) for x in sweep.points]


# --- rows -----------------------------------------------------------------------------------------


def test_figures_of_a_row_follow_from_its_batches(found):
    for row in found:
        x = row.batch_means
        assert row.mse == pytest.approx(math.fsum(x) / len(x))
        assert row.rmse == math.sqrt(row.mse)
        assert len(x) * 8 == row.n_streams
        low, high = reference.skewed_interval(x, 0.05)
        assert row.interval == pytest.approx((math.sqrt(low), math.sqrt(high)))
        assert row.relative_width == pytest.approx((math.sqrt(high) - math.sqrt(low)) / row.rmse)
        assert row.predicted_rmse == math.sqrt(row.predicted_mse)
        assert row.ideal_rmse == math.sqrt(row.ideal_mse)
        assert not row.failed
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 0


def test_a_row_has_the_additive_bound_where_it_holds():
    chain = dp.MarkovChain([[0.9, 0.1], [0.2, 0.8]], levels=[0, 1])
    target, privacy = dp.Filter([0.5], [1, -0.5]), dp.Privacy(1, 1e-6)
    grid = {"mechanism": ["block_sums", "lmmse", "zero_forcing"], "target": target, "model": chain, "lag": 1}
    grid |= {"epsilon": 1, "delta": 1e-6, "tolerance": 0.1}
    of_model = run(grid, width=None, budget=1)
    bound = dp.additive_bound(target, privacy, chain, lag=1).rmse
    assert of_model.row(mechanism="block_sums").additive_bound_rmse == pytest.approx(bound)
    assert of_model.row(mechanism="lmmse").additive_bound_rmse == pytest.approx(bound)
    assert all(x.additive_bound_rmse is None for x in run({**grid, "stream": COIN}, width=None, budget=1))
    assert all(x.additive_bound_rmse is None for x in run(grid, width=None, budget=1, burn_in=0))
    deciding = {**grid, "mechanism": ["decision_feedback", "randomized_response"]}
    assert [x.additive_bound_rmse for x in run(deciding, width=None, budget=1)] == [None, None]
    horizon = {"mechanism": "block_sums", "target": "running-sum:50", "model": chain, "epsilon": [1, 2], "lag": 0}
    over_horizon = run(horizon, width=None, budget=1, burn_in=None)
    assert [x.additive_bound_rmse for x in over_horizon] == [None, None]


def test_a_row_without_a_design_has_no_figures(mixed):
    failed = [x for x in mixed if x.failed]
    assert [(x.family, x.settings["model"], x.stopped) for x in failed] == [
        ("decision_feedback", "Gaussian", "failed")
    ] * 2
    for row in failed:
        assert all(map(math.isnan, (row.mse, row.rmse, *row.interval, row.relative_width, row.noise_std)))
        assert (row.predicted_rmse, row.ideal_rmse, row.lower_bound_rmse, row.additive_bound_rmse) == (None,) * 4
        assert row.lag is None
        with pytest.raises(ValueError, match="row must be of a design that did not fail, got one with the error: mo"):
            mixed.mechanism(row)


def test_no_error_at_all_has_no_width():
    (row,) = run(GRID | {"mechanism": "input_perturbation", "epsilon": 2}, budget=1)
    zero = dataclasses.replace(row, batch_means=np.zeros(16), predicted_mse=0.0)
    assert (zero.rmse, zero.interval, zero.relative_width, zero.predicted_rmse) == (0, (0, 0), 0, 0)


# --- parts ----------------------------------------------------------------------------------------


def test_where_gives_the_points_with_these_labels(mixed):
    axes = list(mixed.axes)
    for mechanism, target in itertools.product(mixed.axes["mechanism"], mixed.axes["target"]):
        part = mixed.where(mechanism=mechanism, target=target)
        expected = [
            x for x in labels_of(mixed) if {mechanism, target} <= {x[axes.index("mechanism")], x[axes.index("target")]}
        ]
        assert labels_of(part) == expected
        assert {x.number for x in part} == {x.case for x in part.points}
        assert all(x in mixed.rows for x in part)
        assert part.axes == {**mixed.axes, "mechanism": (mechanism,), "target": (target,)}
        assert (part.digest, part.seed) == (mixed.digest, mixed.seed)
    assert labels_of(mixed.where(lag=None)) == [
        x for x in labels_of(mixed) if x[axes.index("lag")] in (None, "smoother")
    ]
    assert {x[axes.index("lag")] for x in labels_of(mixed.where(lag="smoother"))} == {"smoother"}
    assert rows(mixed.where(mechanism=["lmmse", "zero_forcing"]).where(mechanism="lmmse")) == rows(
        mixed.where(mechanism="lmmse")
    )
    assert rows(mixed.where()) == rows(mixed)


def test_where_with_no_point_is_empty(mixed):
    empty = mixed.where(mechanism="decision_feedback", lag=None)
    assert (len(empty), list(empty), empty.winners()) == (0, [], ())
    assert list(empty.to_pandas().columns) == [*mixed.axes, "smoother", *FIGURES]
    assert "0 points, 0 cases" in str(empty)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"colour": 1}, "an axis of where must be one of 'mechanism', 'epsilon', got 'colour'$"),
        ({"epsilom": 1}, r"an axis of where must be .*, got 'epsilom'; did you mean epsilon\?"),
        ({"mechanism": "input_pertubation"}, r"; did you mean input_perturbation\?"),
        ({"epsilon": 3}, r"epsilon must be one of 0\.5, 2\.0, got 3"),
        ({"mechanism": ["lmmse"]}, "mechanism must be one of input_perturbation, output_perturbation, got 'lmmse'"),
    ],
)
def test_unknown_labels_are_refused(found, labels, said):
    with pytest.raises(ValueError, match=said):
        found.where(**labels)


def test_row_is_the_only_one(found):
    row = found.row(mechanism="input_perturbation", epsilon=np.float64(2))
    assert (row.family, row.settings["epsilon"]) == ("input_perturbation", 2)
    with pytest.raises(
        ValueError, match=r"labels must leave one row, got 2: name more, or fewer, of mechanism, epsilon"
    ):
        found.row(epsilon=2)


def test_points_that_share_a_case_have_one_row(mixed):
    shared = mixed.where(mechanism="zero_forcing", target="short")
    assert (len(shared.points), len(shared)) == (4, 1)  # zero forcing has neither model nor lag
    assert shared.row() is mixed.row(mechanism="zero_forcing", target="short", lag=None)


def test_mechanisms_come_back(mixed):
    by_hand = dp.lmmse(dp.Filter([1, 1]), dp.Privacy(1, 1e-6), COIN, lag=0, tolerance=0.1)
    back = mixed.mechanism(mixed.row(mechanism="lmmse", target="long", model="coin", lag=0))
    assert repr(back) == repr(by_hand)
    assert back.receiver.filters()[0].b.tolist() == by_hand.receiver.filters()[0].b.tolist()


def test_a_grid_without_axes():
    one = run(GRID | {"mechanism": "input_perturbation", "epsilon": 2})
    assert one.axes == {}
    assert one.row() is one.rows[0]
    with pytest.raises(ValueError, match=r"an axis of where must be one of \(none\), got 'epsilon'"):
        one.where(epsilon=2)
    with pytest.raises(ValueError, match=r"contest must be one of \(none\), got 'mechanism'"):
        one.winners()
    assert one.to_pandas().loc[0, ["mechanism", "epsilon"]].tolist() == ["input_perturbation", 2]
    assert "1 points, 1 cases" in str(one)


# --- comparisons ----------------------------------------------------------------------------------


def test_a_comparison_is_of_paired_differences(mixed):
    some = [x for x in mixed.where(target="long") if not x.failed]
    assert len({len(x.batch_means) for x in some}) > 1
    for first, second in itertools.permutations(some, 2):
        n = min(len(first.batch_means), len(second.batch_means))
        a, b = first.batch_means[:n], second.batch_means[:n]
        low, high = reference.skewed_interval(a - b, 0.05)
        compared = mixed.compare(first, second)
        assert compared.mse_difference == pytest.approx(a.mean() - b.mean(), rel=1e-9, abs=1e-15)
        assert compared.interval == pytest.approx((low, high))
        assert compared.rmse_ratio == pytest.approx(math.sqrt(a.mean() / b.mean()))
        assert compared.decided == (low > 0 or high < 0)


def test_only_cases_of_one_group_and_sweep_are_compared(mixed, found):
    short, long = mixed.where(target="short").rows[0], mixed.where(target="long").rows[0]
    failed = next(x for x in mixed if x.failed)
    with pytest.raises(ValueError, match=r"must be of one stream and one target.*got cases 0 and"):
        mixed.compare(short, long)
    for pair in [(short, failed), (failed, short)]:
        with pytest.raises(ValueError, match=r"must be of designs that did not fail, got case \d"):
            mixed.compare(*pair)
    for pair in [(short, found.rows[0]), (found.rows[0], short)]:
        with pytest.raises(ValueError, match="must be of this sweep"):
            mixed.compare(*pair)
    with pytest.raises(ValueError, match="must be of one stream and one target"):
        mixed.winners("target")
    with pytest.raises(ValueError, match="contest must be one of 'mechanism', 'epsilon', got 'lag'"):
        found.winners("lag")


def naive_winner(batches, n_looks, looks):
    """(best, whether it is separated from all others), each pair by the last look that both have reached."""

    def test(a, b, level):
        n = 16 * max(x for x in looks if 16 * x <= min(len(a), len(b)))
        difference = a[:n] - b[:n]
        return difference.mean(), reference.skewed_interval(difference, level)[1]

    best = 0
    for k in range(1, len(batches)):
        if test(batches[best], batches[k], 0.5)[0] > 0:
            best = k
    others = [x for k, x in enumerate(batches) if k != best]
    level = 0.05 / (n_looks * max(1, len(others)))
    return best, all(test(batches[best], x, level)[1] < 0 for x in others)


def test_winners_against_a_naive_twin(mixed):
    looks = [1, 2, 4]  # within the budget of 4 blocks
    assert mixed.budget_blocks == 4
    for axis in ("mechanism", "lag", "model"):
        for cell in mixed.winners(axis):
            members = {
                x.case: None
                for x in mixed.points
                if all(x.labels[name] == label for name, label in cell.labels.items()) and not mixed.rows[x.case].failed
            }
            batches = [mixed.rows[x].batch_means for x in members]
            best, separated = naive_winner(batches, len(looks), looks)
            assert set(cell.labels) == set(mixed.axes) - {axis}
            assert {x.number for x in cell.rows} == set(members)
            assert cell.best.number == list(members)[best]
            assert cell.second is (cell.rows[1] if len(members) > 1 else None)
            assert [x.mse for x in cell.rows[2:]] == sorted(x.mse for x in cell.rows[2:])
            assert (cell.state == "decided") == separated
    states = {x.state for axis in ("mechanism", "lag", "model") for x in mixed.winners(axis)}
    assert states == {"decided", "undecided"}


def test_a_mechanism_without_a_lag_is_in_the_cell_of_every_lag(mixed):
    cells = mixed.where(target="short", model="coin").winners()
    assert [x.labels["lag"] for x in cells] == [0, "smoother"]
    assert all("zero_forcing" in {row.family for row in x.rows} for x in cells)
    assert ["decision_feedback" in {row.family for row in x.rows} for x in cells] == [True, False]


def made(template, batches, budget_blocks):
    """A sweep with these batch means, of one cell."""
    (row,), (point,) = template.rows, template.points
    some = tuple(dataclasses.replace(row, number=k, batch_means=np.asarray(x)) for k, x in enumerate(batches))
    points = tuple(point._replace(labels={"mechanism": k}, case=k) for k in range(len(some)))
    axes = {"mechanism": tuple(range(len(some)))}
    return dataclasses.replace(template, rows=some, points=points, axes=axes, budget_blocks=budget_blocks)


def test_the_best_is_the_better_one_on_the_streams_that_are_shared():
    template = run(GRID | {"mechanism": "input_perturbation", "epsilon": 2}, budget=1)
    rng = np.random.default_rng(1)
    common = rng.normal(1, 0.1, 16)  # the first block erred more, by chance, than those that follow
    short, long = common + 0.2, np.concatenate([common + 0.21, rng.normal(0.9, 0.1, 48)])
    (cell,) = made(template, [long, short], 4).winners()
    assert long.mean() < short.mean()
    assert (cell.state, cell.best.number, cell.second.number) == ("decided", 1, 0)


def test_what_is_equal_is_a_tie():
    template = run(GRID | {"mechanism": "input_perturbation", "epsilon": 2}, budget=1)
    x = np.random.default_rng(1).normal(1, 0.1, 16)
    (cell,) = made(template, [x + 1, x, x], 1).winners()
    assert ([row.number for row in cell.rows], cell.state) == ([1, 2, 0], "tie")
    (lone,) = made(template, [x], 1).winners()
    assert (lone.best.number, lone.second, lone.state) == (0, None, "decided")


def test_a_cell_without_a_design_is_left_out(mixed):
    failed = mixed.where(mechanism="decision_feedback", lag=0)
    assert [x.labels["model"] for x in failed.winners()] == ["coin", "coin"]


# --- tables ---------------------------------------------------------------------------------------

N_GROUPS = 2  # of `mixed`
FIGURES = ["rmse", "low", "high", "relative_width", "predicted_rmse", "ideal_rmse", "lower_bound_rmse"]
FIGURES += ["explained", "noise_std", "n_streams", "n_samples", "error_events", "interval_by", "stopped", "note"]


def test_the_table_is_tidy(mixed):
    table = mixed.to_pandas()
    parameters = [x for x in table.columns if x not in FIGURES]
    assert list(table.columns) == [*parameters, *FIGURES]
    assert parameters.pop(list(mixed.axes).index("lag") + 1) == "smoother"
    assert parameters[: len(mixed.axes)] == list(mixed.axes)
    assert len(table) - N_GROUPS == len(mixed.points) > len(mixed)
    for (_, line), point in zip(table[:-N_GROUPS].iterrows(), mixed.points, strict=True):
        row = mixed.rows[point.case]
        for name, label in point.labels.items():
            if name != "lag":
                assert line[name] == label or (label is None and pandas.isna(line[name]))
        lag = point.labels["lag"]
        expected = {None: (pandas.NA, pandas.NA), "smoother": (pandas.NA, True)}.get(lag, (lag, False))
        for name, wanted in zip(("lag", "smoother"), expected, strict=True):
            assert line[name] is pandas.NA if wanted is pandas.NA else line[name] == wanted
        figures = [row.rmse, *row.interval, row.relative_width, row.predicted_rmse, row.ideal_rmse]
        figures += [row.lower_bound_rmse, row.explained, row.noise_std, row.n_streams, row.n_samples, row.error_events]
        figures += [None if row.failed else "rare errors" if row.is_rare else "spread", row.stopped]
        for name, expected in zip(FIGURES, figures, strict=False):
            assert line[name] == expected or (pandas.isna(line[name]) and (expected is None or math.isnan(expected)))
        assert bool(line["note"]) == (row.failed or bool(row.notes))
    assert set(table["delta"][:-N_GROUPS]) == {1e-6}


def test_each_stream_and_target_has_its_constant(mixed):
    table = mixed.to_pandas()[-N_GROUPS:]
    assert set(table["mechanism"]) == {"constant"}
    assert table["model"].isna().all()  # those of the designs
    found = {(x["target"], x["stream"]): x["predicted_rmse"] for _, x in table.iterrows()}
    for row in mixed:
        assert found[row.settings["target"], row.settings["stream"]] == pytest.approx(
            math.sqrt(row.variance), rel=1e-12
        )
        if not row.failed:
            assert row.explained == 1 - row.mse / row.variance
    assert len(found) == N_GROUPS
    for name in ("rmse", "low", "high", "lag", "delta", "stopped"):
        assert table[name].isna().all()
    assert (table["explained"].tolist(), table["n_streams"].tolist()) == ([0.0] * N_GROUPS, [0] * N_GROUPS)


def test_the_variance_is_that_of_the_samples_that_count():
    rest = {"mechanism": "zero_forcing", "target": "exponential:0.5", "stream": "levels:-1,1@0.5,0.5"}
    grid = {**rest, "epsilon": 1, "delta": 1e-6}
    settled, start = (dp.sweep(grid, seed=1, n_samples=2, width=1, burn_in=x).rows[0].variance for x in (None, 0))
    assert settled == pytest.approx(0.25 / (1 - 0.25), rel=1e-12)  # taps .5, .25, ...
    assert start == pytest.approx((0.25 + 0.3125) / 2, rel=1e-12)
    counter = {**grid, "mechanism": "square_root", "target": "running-sum:4"}
    assert dp.sweep(counter, seed=1, width=1, budget=1).rows[0].variance == pytest.approx(2.5, rel=1e-12)


def test_where_the_stream_is_another_than_the_model_the_constant_is_that_of_the_stream():
    grid = {"mechanism": "lmmse", "target": "exponential:0.5", "model": ["arma:1/1", "arma:2/1"], "lag": 0}
    found = dp.sweep({**grid, "stream": "arma:3/1", "epsilon": 1, "delta": 1e-6}, seed=1, n_samples=9, budget=1)
    (mean,) = (x for x in found.table().rows if "constant" in x)
    named = dict(zip(found.table().columns, mean, strict=True))
    assert (named["stream"], named["model"]) == ("arma:3/1", None)
    assert named["predicted_rmse"] == pytest.approx(math.sqrt(9 * 0.25 / 0.75), rel=1e-12)


def test_notes_are_the_warnings_of_a_design(mixed):
    noted = dataclasses.replace(mixed.rows[0], notes=("one thing", "another"))
    assert noted.figures()["note"] == "one thing; another"


def test_text_has_a_line_for_each_point(mixed, found):
    lines = str(mixed).splitlines()
    assert lines[0].split()[:6] == ["mechanism", "model", "lag", "rmse", "[95", "%"]
    n_headings, end = 2, lines.index("", 2 + N_GROUPS + len(mixed.points) + 2 * 2)
    assert end == 2 + len(mixed.points) + N_GROUPS + 2 * n_headings  # an empty line before each
    assert [x for x in lines if x.startswith("target ")] == ["target short", "target long"]
    below = " ".join(lines[end:])  # how many lines the paragraphs take is not ours
    assert "In parentheses: what a mechanism does not take, so that its figures are the same for every value. " in below
    assert "parentheses" not in str(found)
    assert f" {len(mixed.points)} points, {len(mixed)} cases, 2 of them without a design; 50 samples a stream" in below
    assert below.endswith("seed 3; until interval of at most 3% of the RMSE, or 30000 samples; 95% intervals")


def test_every_printed_error_has_its_interval_and_every_group_its_constant(mixed):
    """In lines of a terminal, where columns are left out and groups of rows have headings."""
    text = str(mixed)
    short, long = text.split("target short\n")[1].split("\n\n")[:2]
    assert long.startswith("target long\n")
    for name, part in (("short", short), ("long", long)):
        lines, rows_of = part.splitlines(), {x.number: x for x in mixed.where(target=name)}
        points = [x for x in mixed.points if x.labels["target"] == name]
        printed = [x for x in lines if not x.startswith("target")]
        for point, line in zip(points, printed, strict=False):
            row = rows_of[point.case]
            low, high = row.interval
            whole = "failed" if row.failed else f"{row.rmse:#.5g} [{low:#.5g}, {high:#.5g}]"
            assert whole in line
            assert ("failed" in line) is row.failed
        assert printed[len(points)].split()[0] == "constant"
        assert f"{math.sqrt(next(iter(rows_of.values())).variance):#.5g}" in printed[len(points)]
        assert len(printed) == len(points) + 1


def test_text_is_what_prompts_show(found):
    assert repr(found) == str(found)


def test_a_long_sweep_is_shortened():
    many = run(GRID | {"epsilon": list(np.linspace(1, 2, 30))}, budget=1)
    lines = str(many).splitlines()
    assert len(lines) == 2 + 40 + 1 + 2 + 2
    assert lines[-3] == "… and 20 more rows: to_pandas() has all, winners() those of least error"


def test_winners_are_said_first():
    """Where there was something to be decided; however many rows are shown."""
    grid = GRID | {"mechanism": ["zero_forcing", "output_perturbation"], "target": "exponential:0.5"}
    found = run(grid | {"epsilon": [*np.linspace(1, 2, 29), 20.0]}, width=None, decide="mechanism")
    said, _, rest = str(found).partition("mechanism   ")
    cells = found.winners()
    assert {x.best.family for x in cells} == {"zero_forcing"}
    behind = [100 * (found.compare(x.second, x.best).rmse_ratio - 1) for x in cells]
    numbers = dict.fromkeys(f"{x:.2g}" for x in (min(behind), max(behind)))
    variance = 0.1875 * 0.25 / 0.75  # of coins behind taps .5, .25, ...
    worse = sum(x.best.interval[0] > math.sqrt(variance) for x in cells)
    assert 0 < worse < 30
    assert " ".join(said.split()) == (
        f"Least error: LZF in 30 of 30 cases, where the nearest errs {' to '.join(numbers)} % more. In {worse} of 30 "
        "cases the constant, which publishes the mean alone, errs less. All 30 cases are decided."
    )
    assert "rmse [95 % interval]" in rest
    as_good = dataclasses.replace(cells[0].best, variance=cells[0].best.mse)  # inside the interval: nobody knows
    assert "constant" not in say_who_wins([cells[0]._replace(rows=(as_good, *cells[0].rows[1:]))])
    assert found._repr_html_().index("Least error") < found._repr_html_().index("<table")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"width": None}, "; 10000 samples a case; "),
        (
            {"width": 0.5, "decide": "mechanism"},
            "; until interval of at most 50% of the RMSE and best mechanism decided, or 10000 s",
        ),
        ({"width": None, "decide": "epsilon"}, "; until best epsilon decided, or 10000 samples; 90% intervals"),
    ],
)
def test_the_rule_is_told(options, said):
    assert said in " ".join(str(run(budget=1e4, confidence=0.9, **options)).split())


def test_a_sweep_is_a_sequence_of_rows(found):
    assert isinstance(found, Sweep)
    assert list(found) == list(found.rows)
    assert len(found) == len(found.rows) == 4
    assert {len(x.batch_means) % BATCHES for x in found} == {0}
    assert sweeps.OPTIONS["seed"] == found.seed
