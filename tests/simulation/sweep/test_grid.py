import hashlib
import itertools
import json
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dp
from dpfast.design import catalogue
from dpfast.simulation.sweep import parameters
from dpfast.simulation.sweep.grid import ParameterGrid

TARGET, MODEL = "ba:1/1,-0.5", "levels:0,1@0.5,0.5"
BASE = {"target": TARGET, "model": MODEL, "epsilon": 1, "delta": 1e-6}
TAKES = {  # said again, by hand
    "optimal": {"model", "lag", "tolerance"},
    "lmmse": {"model", "lag", "prefilter", "tolerance"},
    "zero_forcing": {"tolerance"},
    "decision_feedback": {"model", "lag", "prefilter", "decision", "n_forward", "n_feedback", "tolerance"},
    "input_perturbation": {"noise", "unit"},
    "output_perturbation": {"noise"},
    "robust": {"mean_square", "lag", "tolerance"},
    "block_sums": {
        *("model", "lag", "length", "shares", "noise", "unit", "phase", "receiver"),
        *("weights", "releases", "group", "slack"),
    },
    "randomized_response": {"model", "lag", "receiver"},
    "adaptive_blocks": {"model", "lag", "noise", "threshold", "longest"},
    "optimal_factorization": {"horizon", "model", "lag", "noise", "strategy", "strategy_unit", "progress"},
    "tree": {"horizon", "branching", "subtraction", "levels", "noise"},
    "shared_noise": {"horizon", "group", "slack", "unit"},
    "square_root": {"horizon"},
    "buffered_toeplitz": {"horizon", "n_buffers", "error"},
    "binary_tree": {"horizon", "estimator", "noise"},
    "decayed_sum": {"horizon", "noise"},
    "fourier_perturbation": {"horizon", "n_coefficients", "noise"},
    "compressive": {"horizon", "n_measurements", "basis", "noise", "phi_seed"},
}


def test_block_sums_have_axes_of_lengths_noises_and_units():
    grid = ParameterGrid(
        BASE
        | {"mechanism": ["block_sums", "lmmse"], "delta": [0, 1e-6], "length": [None, 4], "noise": "geometric"}
        | {"unit": [None, 0.5]}
    )
    found = [x.arguments for x in grid.cases if x.family == "block_sums"]
    assert [(x["privacy"]["delta"], x["length"], x["unit"]) for x in found] == list(
        itertools.product([0, 1e-6], [None, 4], [None, 0.5])
    )
    assert {x["noise"] for x in found} == {"geometric"}
    assert sum(x.family == "lmmse" for x in grid.cases) == 2


def test_nested_lengths_are_one_value_each_and_shares_go_with_as_many():
    definition = BASE | {"mechanism": ["block_sums", "lmmse"], "lag": 1, "noise": "geometric"}
    lengths = ["best", 5, [5, 20], "4, 8", (2, 4, 8)]
    grid = ParameterGrid(definition | {"length": lengths, "shares": [None, [0.6, 0.4], "0.5,0.25,0.25"]})
    assert grid.axes["length"] == ("best", 5, "5, 20", "4, 8", "2, 4, 8")
    assert grid.axes["shares"] == (None, "0.6, 0.4", "0.5, 0.25, 0.25")
    found = [(x.arguments["length"], x.arguments["shares"]) for x in grid.cases if x.family == "block_sums"]
    assert found == [
        *((None, None), (5, None), ((5, 20), None), ((5, 20), (0.6, 0.4)), ((4, 8), None), ((4, 8), (0.6, 0.4))),
        *(((2, 4, 8), None), ((2, 4, 8), (0.5, 0.25, 0.25))),
    ]
    assert sum(x.family == "lmmse" for x in grid.cases) == 1
    json.dumps(grid.content)
    same = ParameterGrid(definition | {"length": [np.array([5, 20])], "shares": {"mine": [0.6, 0.4]}})
    assert same.axes == {"mechanism": ("block_sums", "lmmse"), "length": ("5, 20",), "shares": ("mine",)}
    assert same.cases[0].key == next(x.key for x in grid.cases if x.settings.get("shares") == "0.6, 0.4")


@pytest.mark.parametrize("length", [None, "best", ["best"], [[7]], "7", [7]])
def test_a_length_alone_is_no_several_ones(length):
    grid = ParameterGrid(BASE | {"mechanism": "block_sums", "length": length})
    best = length in (None, "best", ["best"])
    assert [x.settings["length"] for x in grid.cases] == ["best" if best else 7]
    assert [x.arguments["length"] for x in grid.cases] == [None if best else 7]


def test_shares_that_are_one_but_for_rounding_are_shares():
    given = [0.5 + 2**-52, 0.5]
    assert sum(given) > 1  # or this tests nothing
    grid = ParameterGrid(BASE | {"mechanism": "block_sums", "length": "2,4", "shares": [given]})
    (shares,) = (x.arguments["shares"] for x in grid.cases)
    assert sum(shares) <= 1
    assert shares == pytest.approx(given, rel=1e-15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length": [[5, 21]]}, "length must be of nested blocks, each a multiple of the one before, got 21 after 5"),
        ({"length": "5; 20"}, r"length must be an integer; several nested ones as one value, \[21, 252\] .*'5; 20'"),
        ({"length": [[5, 20], "5, 20"]}, "length must have every value once, got '5, 20' several times"),
        ({"length": 2.5}, "length must be an integer, at least 1 .*, got 2.5"),
        ({"length": [[]]}, "length must be an integer, .* got a list of length 0"),
        ({"length": 0}, "length must be an integer, at least 1 .*, got 0"),
        ({"shares": [0.5, 0.5], "length": "2, 4"}, r"shares must be several numbers as one value, .* got 0\.5"),
        ({"shares": [[]], "length": "2, 4"}, "shares must be several numbers as one value, .* length 0"),
        ({"shares": "half", "length": "2, 4"}, "shares must be several numbers as one value, .* got 'half'"),
        ({"shares": "0.5, 0.6", "length": "2, 4"}, r"shares must be as many .*, and sum to 1, got \[0\.5, 0\.6\]"),
        ({"shares": "nan, 1", "length": "2, 4"}, "shares must be a finite number above 0, got nan"),
        ({"shares": "1.5, -0.5", "length": "2, 4"}, r"shares must be a finite number above 0, got -0\.5"),
        ({"shares": "0.5, 0.5", "length": 2}, "mechanism block_sums must have a point, got no shares for as many"),
        ({"shares": "0.5, 0.5"}, "mechanism block_sums must have a point, got no shares for as many lengths"),
        (
            {"shares": [None, "0.5, 0.3, 0.2"], "length": ["best", "2, 4"]},
            "shares must have values that one of block_sums can have, got '0.5, 0.3, 0.2'",
        ),
    ],
)
def test_lengths_and_shares_that_cannot_be_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        ParameterGrid(BASE | {"mechanism": "block_sums"} | change)


def labels(grid):
    return [tuple(x.labels.values()) for x in grid.points]


# --- points and cases -----------------------------------------------------------------------------


@given(
    st.lists(
        st.sampled_from(sorted(x for x in TAKES if "horizon" not in TAKES[x])), min_size=1, max_size=4, unique=True
    ),
    st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from([0.1, 0.5, 1, 2]), min_size=1, max_size=3, unique=True),
)
def test_a_case_has_what_its_family_takes_and_points_share_it(mechanisms, lags, epsilons):
    axes = {"mechanism": mechanisms, "lag": lags, "epsilon": epsilons}
    taken = {"mechanism", "lag"} if any("lag" in TAKES[x] for x in mechanisms) else {"mechanism"}
    if "lag" not in taken:
        del axes["lag"]
    square = {"mean_square": 2.0} if "robust" in mechanisms else {}
    grid = ParameterGrid(axes | square | {name: x for name, x in BASE.items() if name not in axes})
    points = [dict(zip(axes, x, strict=True)) for x in itertools.product(*axes.values())]
    assert [x.labels for x in grid.points] == points
    settings = []
    for point in points:
        has = TAKES[point["mechanism"]] | {"mechanism", "target", "epsilon", "delta", "model"}
        settings.append({name: x for name, x in (BASE | square | point).items() if name in has})
    assert [grid.cases[x.case].settings for x in grid.points] == settings
    assert len(grid.cases) == len({json.dumps(x, sort_keys=True) for x in settings})
    assert [x.number for x in grid.cases] == list(range(len(grid.cases)))


def test_points_come_in_the_order_of_the_axes_the_last_one_fastest():
    grid = ParameterGrid(BASE | {"lag": [1, 0], "mechanism": ["lmmse", "zero_forcing"]})
    assert list(grid.axes.items()) == [("lag", (1, 0)), ("mechanism", ("lmmse", "zero_forcing"))]
    assert labels(grid) == [(1, "lmmse"), (1, "zero_forcing"), (0, "lmmse"), (0, "zero_forcing")]
    assert [x.case for x in grid.points] == [0, 1, 2, 1]


def test_one_value_is_no_axis_unless_it_is_said_as_one():
    grid = ParameterGrid(BASE | {"mechanism": "lmmse", "lag": [5]})
    assert (grid.axes, labels(grid)) == ({"lag": (5,)}, [(5,)])
    assert grid.parameters == ("target", "model", "epsilon", "delta", "mechanism", "lag")


@pytest.mark.parametrize("smoother", [None, "smoother"])
def test_a_lag_that_a_family_cannot_have_is_left_out(smoother):
    grid = ParameterGrid(BASE | {"mechanism": ["decision_feedback", "lmmse", "zero_forcing"], "lag": [5, smoother]})
    assert labels(grid) == [
        ("decision_feedback", 5),
        *(("lmmse", 5), ("lmmse", "smoother")),
        *(("zero_forcing", 5), ("zero_forcing", "smoother")),
    ]


def test_a_prefilter_may_be_a_word_for_one_family_and_a_filter_for_both():
    given = BASE | {"mechanism": ["lmmse", "decision_feedback"], "prefilter": ["zero-forcing", {"b": [1, 2]}, None]}
    assert labels(ParameterGrid(given)) == [
        *(("lmmse", "ba:1,2"), ("lmmse", None)),
        *(("decision_feedback", "zero-forcing"), ("decision_feedback", "ba:1,2")),
    ]


@pytest.mark.parametrize("family", ["optimal", "zero_forcing"])
def test_of_one_stream_no_family_has_the_prefilter_that_several_have(family):
    """As another family has one, it is an axis, on which these have no place."""
    several = parameters.family_parameters(family, of_several=True)
    assert "prefilter" in several.takes
    one = parameters.family_parameters(family)
    assert "prefilter" not in {*one.takes, *one.defaults}
    assert set(one.defaults) <= set(one.takes)


def test_parts_of_a_grid_are_put_together_and_a_point_is_there_once():
    grid = ParameterGrid(
        [
            BASE | {"mechanism": ["optimal", "zero_forcing"]},
            BASE | {"mechanism": ["optimal", "lmmse"], "lag": [0, 3]},
        ]
    )
    # the first part leaves the lag to the optimal design's default, which is 0; zero forcing has none
    assert labels(grid) == [("optimal", 0), ("zero_forcing", None), ("optimal", 3), ("lmmse", 0), ("lmmse", 3)]
    assert len(grid.cases) == 5


def test_parts_with_several_targets_have_them_as_an_axis():
    parts = [BASE | {"mechanism": "zero_forcing", "target": x} for x in (TARGET, dp.Filter([1, 1]), "ba:1,1")]
    assert ParameterGrid(parts).axes == {"target": (TARGET, "ba:1,1")}
    parts[1]["target"] = {"called": dp.Filter([1, 1])}
    with pytest.raises(ValueError, match=r"target must have one label for each value, .* got 'ba:1,1' twice"):
        ParameterGrid(parts)


# --- groups, arguments, keys ----------------------------------------------------------------------


def test_a_group_has_one_stream_and_one_target():
    targets = {"a": "ba:1", "b": dp.Filter([1, 1])}
    grid = ParameterGrid(BASE | {"mechanism": ["lmmse", "zero_forcing"], "target": targets, "epsilon": [1, 2]})
    named = [{(grid.cases[x].settings["target"]) for x in group} for group in grid.groups]
    assert named == [{"a"}, {"b"}]
    assert sorted(x for group in grid.groups for x in group) == list(range(8))
    assert [grid.cases[x].group for group in grid.groups for x in group] == [0] * 4 + [1] * 4


def test_the_stream_is_the_model_unless_it_is_given():
    given = BASE | {"mechanism": ["zero_forcing", "lmmse"]}
    own = ParameterGrid(given)
    assert {x.stream for x in own.cases} == set(own.models)
    assert [x.settings["model"] for x in own.cases] == [MODEL] * 2  # zero forcing takes none, but runs on it
    other = ParameterGrid(given | {"stream": "arma:1/1,-0.9@2"})
    assert "model" not in other.cases[0].settings
    assert other.cases[1].settings.items() >= {"model": MODEL, "stream": "arma:1/1,-0.9@2"}.items()
    assert [x.key for x in own.cases] == [x.key for x in other.cases]
    assert own.cases[0].stream != other.cases[0].stream


def test_arguments_are_contents_as_in_files_and_the_key_is_their_digest():
    case = ParameterGrid(BASE | {"mechanism": "lmmse", "lag": 3, "max_events": 2}).cases[0]
    arguments = case.arguments
    assert json.loads(json.dumps(arguments)) == arguments
    model = {"kind": "independent-levels", "levels": [0, 1], "probabilities": [0.5, 0.5], "source": "assumed"}
    privacy = {"epsilon": 1, "delta": 1e-6, "max_change": 1, "max_events": 2, "min_separation": 1}
    assert case.family == "lmmse"
    assert arguments["model"] == model
    assert arguments["privacy"] == privacy | {"calibration": "exact"}
    assert (arguments["lag"], arguments["prefilter"], arguments["tolerance"]) == (3, None, 1e-3)
    assert sorted(arguments) == ["lag", "model", "prefilter", "privacy", "target", "tolerance"]


def test_the_key_depends_on_what_is_designed_alone(monkeypatch):
    def key(**change):
        return ParameterGrid(BASE | {"mechanism": "optimal"} | change).cases[0].key

    first = key()
    same = [
        {"target": dp.Filter([1], [1, -0.5]), "epsilon": 1.0, "lag": 0},
        {"target": {"another label": TARGET}},
        {"stream": "arma:1"},
        {"epsilon": np.float64(1), "tolerance": 1e-3, "max_change": 1},
        {"mechanism": dp.optimal},
    ]
    assert [key(**x) for x in same] == [first] * len(same)
    plain = {name: x for name, x in BASE.items() if name not in ("epsilon", "delta")} | {"mechanism": "optimal"}
    assert ParameterGrid(plain | {"privacy": dp.Privacy(1, 1e-6)}).cases[0].key == first
    other = [{"target": "ba:1"}, {"epsilon": 2}, {"lag": 1}, {"mechanism": "lmmse"}, {"calibration": "paper"}]
    assert len({key(**x) for x in other} | {first}) == len(other) + 1
    monkeypatch.setattr("dpfast._support.version.__version__", "other")
    assert key() != first


def test_the_content_tells_what_is_computed_and_not_how_it_is_called():
    given = BASE | {"mechanism": ["lmmse", "optimal"], "lag": [0, 1], "model": {"a": MODEL, "b": "arma:1"}}
    grid = ParameterGrid(given)
    text = json.dumps(grid.content, sort_keys=True)
    assert ParameterGrid(given | {"model": {"c": MODEL, "d": "arma:1"}}).content == grid.content
    assert ParameterGrid(given | {"lag": [0, 2]}).content != grid.content
    assert text.count('"probabilities"') == 1
    assert len(grid.content["cases"]) == len(grid.cases)
    for digest, content in (grid.models | grid.targets).items():
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        assert hashlib.sha256(canonical.encode()).hexdigest() == digest
    assert {x.stream for x in grid.cases} == set(grid.models)
    assert {x.target for x in grid.cases} == set(grid.targets)


# --- ready-made mechanisms ------------------------------------------------------------------------


def test_of_a_mechanism_that_is_there_only_the_stream_is_varied():
    made = dp.zero_forcing(dp.Filter([1]), dp.Privacy(1, 1e-6), name="mine")
    grid = ParameterGrid(
        {"mechanism": [made, "input_perturbation"], "target": "ba:1", "epsilon": [1, 2], "delta": 1e-6}
        | {"stream": ["arma:1", MODEL]}
    )
    assert [x.settings for x in grid.cases if x.family == "given"] == [
        {"mechanism": "mine", "stream": "arma:1"},
        {"mechanism": "mine", "stream": MODEL},
    ]
    assert len(grid.groups) == 2  # with those that are designed for the same target
    assert grid.cases[0].arguments["mechanism"]["name"] == "mine"


def test_mechanisms_of_one_name_need_labels():
    made = [dp.input_perturbation(dp.Filter([1, x]), dp.Privacy(1, 1e-6)) for x in (1, 2)]
    with pytest.raises(ValueError, match="mechanism must have one label for each value"):
        ParameterGrid({"mechanism": made, "stream": "arma:1"})
    grid = ParameterGrid({"mechanism": dict(zip("ab", made, strict=True)), "stream": "arma:1"})
    assert grid.axes == {"mechanism": ("a", "b")}


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (range(3), (0, 1, 2)),
        ((4, 2), (4, 2)),
        (np.arange(3), (0, 1, 2)),
        ({"early": 0, "late": 9}, ("early", "late")),
        ({"start": 0, "stop": 20, "number": 5}, (0, 5, 10, 15, 20)),
        ({"start": 1, "stop": 1000, "number": 4, "spacing": "log"}, (1, 10, 100, 1000)),
    ],
)
def test_axes(given, expected):
    assert ParameterGrid(BASE | {"mechanism": "lmmse", "lag": given}).axes["lag"] == expected


def test_numbers_in_equal_ratios():
    axis = {"start": 0.1, "stop": 10, "number": 9, "spacing": "log"}
    found = ParameterGrid(BASE | {"mechanism": "lmmse", "epsilon": axis}).axes["epsilon"]
    np.testing.assert_allclose(found, 10 ** np.linspace(-1, 1, 9))
    assert (found[0], found[-1]) == (0.1, 10.0)


def test_labels_of_what_has_no_text():
    long = dp.Filter(np.arange(1, 31))
    given = {
        "target": [dp.Filter([1]), "ba:1,1", {"b": [2]}, long, dp.Filter([0.25], [1, -0.75]), dp.Filter([0.5, 0.5])],
        "model": [
            dp.ARMA([1]),
            {"kind": "arma", "b": [2], "mean": 3},
            dp.ARMA([1], [1, -0.5], source="fitted-from-private"),
            dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5]),
            dp.IndependentLevels([0, 1], [0.9, 0.1]),
        ],
    }
    grid = ParameterGrid(BASE | {"mechanism": "zero_forcing"} | given)
    targets = ("ba:1", "ba:1,1", "ba:2", "target 4, FIR of 30 taps", "exponential:0.75", "moving-average:2")
    models = ("arma:1", "arma:2@3", "model 3, fitted", "markov:0.75,0.25;0.25,0.75@-0.5,0.5", "levels:0,1@0.9,0.1")
    assert grid.axes == {"target": targets, "model": models}


@pytest.mark.parametrize("privacy", [dp.Privacy(1, 1e-6), dp.Privacy(0.25, 1e-6, max_events=2)])
def test_a_privacy_is_called_by_its_fields(privacy):
    several = {"privacy": [privacy, dp.Privacy(9, 1e-6)], "mechanism": "zero_forcing"}
    grid = ParameterGrid({name: x for name, x in BASE.items() if name not in ("epsilon", "delta")} | several)
    told = f"epsilon {privacy.epsilon!r}, delta 1e-06" + ", max_events 2" * (privacy.max_events == 2)
    assert grid.axes["privacy"] == (told.replace("1.0,", "1,"), "epsilon 9, delta 1e-06")


def test_two_values_that_would_be_called_alike_are_told_apart():
    same = dp.Filter([1], [1, -0.5]), dp.Filter.from_factors(sections=[[1, 0, 0, 1, -0.5, 0]])
    nearly = dp.Filter.from_factors(recursion=[1, -0.5])  # another arithmetic of the same filter
    axes = ParameterGrid(BASE | {"mechanism": "zero_forcing", "target": [same[0], nearly]}).axes["target"]
    assert axes == ("ba:1/1,-0.5", "target 2, 1 state")
    with pytest.raises(ValueError, match="target must have every value once"):
        ParameterGrid(BASE | {"mechanism": "zero_forcing", "target": list(same)})


def test_targets_over_a_horizon_are_called_as_on_the_command_line():
    given = [dp.running_sum(8), dp.polynomial_decay(0.5, 8), dp.polynomial_decay(1, 8), dp.Toeplitz([1, 1], 8)]
    definition = BASE | {"mechanism": "square_root", "target": given}
    names = ("running-sum:8", "polynomial-decay:0.5:8", "polynomial-decay:1:8", "target 4, 8 steps")
    assert ParameterGrid(definition).axes["target"] == names


def test_parameters_are_those_of_the_design_functions():
    assert {
        name: set(parameters.family_parameters(name).takes) - {"target", "privacy", *parameters.OF_PRIVACY}
        for name in TAKES
    } == TAKES
    assert set(catalogue.FAMILIES) == set(TAKES)


class Own(dp.ARMA):
    """A model of somebody's own."""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lagg": 1}, "a parameter of the grid must be one of 'mechanism', 'stream', .* got 'lagg'"),
        ({"mechanism": None}, "mechanism must be a mechanism or one of optimal, .* got None"),
        ({"mechanism": "best"}, "mechanism must be a mechanism or one of optimal, .* got 'best'"),
        ({"mechanism": []}, "mechanism must not be an empty axis"),
        ({"lag": {}}, "lag must not be an empty axis"),
        ({"lag": [1, 2, 1]}, "lag must have every value once, got 1 several times"),
        ({"epsilon": [1, 1.0]}, "epsilon must have every value once"),
        ({"target": [TARGET, "ba:1/1,-0.50"]}, "target must have (every value once|one label)"),
        ({"target": {"a": "ba:1", "b": "ba:1"}}, "target must have"),
        ({"target": "ba:0"}, "target must not be zero"),
        ({"target": 3}, "target must be text, got 3"),
        ({"model": 3}, "model must be a MarkovChain, IndependentLevels or ARMA, got 3"),
        ({"model": Own([1])}, "stream must be a MarkovChain, .* got a Own: give stream="),
        ({"epsilon": -1}, "epsilon must be"),
        ({"epsilon": "x"}, "epsilon must be a number, got 'x'"),
        ({"epsilon": None}, "epsilon must be a number, got None"),
        ({"epsilon": True}, "epsilon must be a finite number, got True"),
        ({"lag": -1}, "lag must be an integer"),
        ({"lag": 1.5}, "lag must be an integer"),
        ({"lag": "never"}, "lag must be 'smoother' or None or an integer, got 'never'"),
        ({"lag": np.ones((2, 2))}, "lag must be an axis of one dimension"),
        ({"lag": {None: 1}}, "a label of lag must be a word or a number"),
        ({"lag": {"start": 0, "stop": 2}}, "lag must have the words start, stop and number, .*; number is not there"),
        ({"lag": {"start": 0, "stop": 2, "number": 4}}, "lag must be an integer"),
        ({"lag": {"start": 0, "stop": 2, "number": 3, "spacing": "log"}}, "lag.start must be a finite number above 0"),
        ({"lag": {"start": 0, "stop": 2, "number": 3, "spacing": "x"}}, "lag.spacing must be one of"),
        ({"tolerance": 2}, "tolerance must be"),
        ({"n_forward": 8}, "n_forward must be left out: it is nothing that optimal would depend on"),
        ({"stream": "arma:1", "mechanism": "zero_forcing"}, "model must be left out"),
        ({"mechanism": ["optimal", "robust"]}, "mean_square must be given in the grid: robust needs it"),
        (
            {"mechanism": "decision_feedback", "lag": [1, None]},
            "lag must have values that one of decision_feedback can",
        ),
        (
            {"mechanism": ["decision_feedback", "lmmse"], "lag": None},
            "mechanism decision_feedback must have a point, got no lag that it can have",
        ),
        ({"mechanism": "decision_feedback", "decision": "hard"}, "decision must be 'quantizer' or 'sign' or 'soft'"),
        ({"privacy": dp.Privacy(1, 1e-6)}, "privacy must be given whole or by its fields"),
        ({"delta": {"a": 0.5, "b": 0.6}, "calibration": "paper"}, "delta must be below 0.5"),
        (
            {"lag": range(10_001), "epsilon": np.arange(1, 102)},
            "a grid must have at most 1,000,000 points, got 1,010,101",
        ),
    ],
)
def test_grids_that_cannot_be_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        ParameterGrid(BASE | {"mechanism": "optimal"} | change)


@pytest.mark.parametrize("missing", ["target", "epsilon", "mechanism", "model"])
def test_what_is_needed_must_be_there(missing):
    definition = {name: x for name, x in (BASE | {"mechanism": "input_perturbation"}).items() if name != missing}
    with pytest.raises(ValueError, match=f"{missing} .*must be given"):
        ParameterGrid(definition)


@pytest.mark.parametrize("definition", [[], None, 3, [3], "grid"])
def test_a_grid_is_one_mapping_or_several(definition):
    with pytest.raises(ValueError, match="grid must be a mapping of parameters, or several"):
        ParameterGrid(definition)


def test_ten_thousand_points_take_little_time():
    definition = {
        "mechanism": ["optimal", "lmmse", "zero_forcing", "decision_feedback"],
        "target": {"long": "moving-average:1000", "short": TARGET},
        "epsilon": {"start": 0.1, "stop": 10, "number": 25, "spacing": "log"},
        "lag": range(50),
    }
    begin = time.process_time()
    grid = ParameterGrid(BASE | definition)
    assert time.process_time() - begin < 10  # mostly 1; of this process alone
    assert len(grid.points) == 10_000
    assert len(grid.cases) == 3 * 2 * 25 * 50 + 2 * 25


def test_a_value_that_only_one_part_gives_is_no_axis():
    common = {"target": "exponential:0.9", "model": "levels:-1,1@0.5,0.5", "epsilon": 1, "delta": 1e-6, "lag": 5}
    linear = common | {"mechanism": ["optimal", "lmmse"]}
    feedback = common | {"mechanism": "decision_feedback", "prefilter": "zero-forcing"}
    assert list(ParameterGrid([linear, feedback]).axes) == ["mechanism"]
    assert list(ParameterGrid([common | {"mechanism": "optimal"}, feedback]).axes) == ["mechanism"]
    # two values, the second the default
    assert list(ParameterGrid([linear, feedback, common | {"mechanism": "decision_feedback"}]).axes) == [
        "mechanism",
        "prefilter",
    ]


@pytest.mark.parametrize(
    ("change", "meant"),
    [
        ({"epsilom": 1}, "epsilon"),
        ({"mechanism": "optimall"}, "optimal"),
        ({"mechanism": "LMMSE_"}, "lmmse"),
        ({"mechanism": "binary_tree", "target": "running-sum:8", "noise": "gausian"}, "gaussian"),
        ({"mechanism": "decision_feedback", "prefilter": "zero_forcing"}, "zero-forcing"),
        ({"calibration": "exat"}, "exact"),
        ({"target": "movingaverage:12"}, "moving-average"),
        ({"target": "runing-sum:12"}, "running-sum"),
        ({"model": "amra:1/1,-0.5"}, "arma"),
        ({"model": {"kind": "arma", "innovation": 1}}, "innovation_std"),
        ({"epsilon": {"start": 1, "stop": 2, "num": 3}}, "number"),
    ],
)
def test_a_word_that_is_nearly_known_is_asked_about(change, meant):
    definition = {
        "mechanism": "lmmse",
        "target": "exponential:0.9",
        "model": "arma:1/1,-0.5",
        "epsilon": 1,
        "delta": 1e-6,
    }
    with pytest.raises(ValueError, match=f"; did you mean {meant}\\?"):
        ParameterGrid(definition | change)
