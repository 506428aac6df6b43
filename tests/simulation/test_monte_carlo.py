import math
import subprocess
import sys

import numpy as np
import pytest
from helpers import processors, reference
from helpers.chains import unit_normals
from scipy import stats

import dpfast as dp
from dpfast.simulation import prepared_study

ALARM = 1e-6  # of a statistical test
TARGET, PREFILTER = dp.Filter([1, 0.5], [1, -0.8]), dp.Filter([1, -0.2], [1, -0.6])
PRIVACY = dp.Privacy(1.0, 0.05)
MODEL = dp.MarkovChain([[0.8, 0.2], [0.4, 0.6]], levels=[0.0, 1.0])

LZF = dp.zero_forcing(TARGET, PRIVACY, tolerance=0.1)
SMOOTHER = dp.lmmse(TARGET, PRIVACY, MODEL, prefilter=PREFILTER)
WIENER = dp.lmmse(TARGET, PRIVACY, MODEL, lag=5, prefilter=PREFILTER)
FEEDBACK = dp.decision_feedback(TARGET, PRIVACY, MODEL, prefilter=PREFILTER, name="DFE")
ALL = [LZF, SMOOTHER, WIENER, FEEDBACK]
LINEAR = [LZF, SMOOTHER, WIENER]
SMALL = {"n_streams": 6, "n_samples": 200, "seed": 1}


def run(mechanisms, model=MODEL, **options):
    return dp.monte_carlo(mechanisms, model, **{**SMALL, **options})


# --- the figures ----------------------------------------------------------------------------------


def test_errors_are_those_of_a_slow_loop():
    n = 40 + 200 + 5
    u, noise = MODEL.sample(4, n, seed=7), unit_normals(7, 4, n)
    h, offset = WIENER.receiver.filter, reference.step(TARGET.b, TARGET.a, MODEL.mean, 5, n)
    expected = reference.monte_carlo_mse(
        u,
        noise,
        MODEL.mean,
        (TARGET.b, TARGET.a),
        (PREFILTER.b, PREFILTER.a),
        WIENER.noise_std,
        lambda v: reference.direct_form(h.b, h.a, v) + offset,
        lag=5,
        burn_in=40,
        n_samples=200,
    )
    study = run(WIENER, n_streams=4, seed=7, burn_in=40)
    np.testing.assert_allclose(study["LMMSE lag 5"].stream_mse, expected, rtol=1e-12)


@pytest.fixture(scope="module", params=[300, pytest.param(1000, marks=pytest.mark.long)])
def studies(request):
    options = {"n_streams": 12, "n_samples": request.param, "confidence": 0.9}
    return [dp.monte_carlo(LINEAR, MODEL, **options, seed=s) for s in range(400)]


@pytest.mark.slow_nojit
@pytest.mark.parametrize("name", [x.name for x in LINEAR])
def test_intervals_cover_the_predicted_value_at_their_nominal_rate(studies, name):
    inside = [study[name].interval[0] <= study[name].predicted_rmse <= study[name].interval[1] for study in studies]
    assert stats.binomtest(sum(inside), len(inside), 0.9).pvalue > ALARM


@pytest.mark.slow_nojit
@pytest.mark.parametrize("name", [x.name for x in LINEAR])
def test_simulated_errors_have_the_predicted_mean(studies, name):
    errors = np.concatenate([study[name].stream_mse for study in studies])
    assert stats.ttest_1samp(errors, studies[0][name].predicted_rmse ** 2).pvalue > ALARM


def test_the_interval_is_that_of_student_corrected_for_skewness():
    study = run(ALL, confidence=0.8)
    for x in study:
        assert x.stream_mse.shape == (6,)
        assert x.n_streams == 6
        assert x.mse == pytest.approx(x.stream_mse.mean(), rel=1e-14)
        assert x.rmse == pytest.approx(math.sqrt(x.mse), rel=1e-14)
        np.testing.assert_allclose(x.interval, np.sqrt(reference.skewed_interval(x.stream_mse, 0.2)), rtol=1e-10)


def test_an_interval_of_an_error_does_not_go_below_zero():
    result = dp.Result("x", None, np.array([0.0, 0.0, 9.0]), 0.99)
    assert result.interval[0] == 0.0
    assert result.interval[1] > math.sqrt(3)


def test_the_predicted_figure_is_of_the_simulated_model():
    other = dp.ARMA([0.5], [1, 0.7], mean=2.0)
    study = run(LINEAR, other)
    for mechanism in LINEAR:
        assert study[mechanism.name].predicted_rmse == math.sqrt(mechanism.predict(other))
    assert run(FEEDBACK)["DFE"].predicted_rmse is None


@pytest.mark.slow_nojit
def test_another_model_is_simulated_with_the_error_that_is_predicted():
    other = dp.ARMA([0.5], [1, 0.7], mean=2.0)
    for x in dp.monte_carlo(LINEAR, other, n_streams=300, n_samples=2000, seed=4):
        assert stats.ttest_1samp(x.stream_mse, x.predicted_rmse**2).pvalue > ALARM / 3


def test_the_variance_of_a_target_is_found_once_for_all_studies(monkeypatch):
    """Over the first steps that takes as long as many samples."""
    asked, target = [], dp.Filter([1, 0.25], [1, -0.75])
    find = prepared_study.output_variance
    monkeypatch.setattr(prepared_study, "output_variance", lambda *which: asked.append(which[2]) or find(*which))
    mechanism = dp.zero_forcing(target, PRIVACY, tolerance=0.1)
    for burn_in in (0, 0, None, 0):
        study = run(mechanism, burn_in=burn_in)
        n_first = study.n_samples if burn_in == 0 else None
        assert study.results[0].variance == find(target, MODEL, n_first)
    assert asked == [SMALL["n_samples"], None]


# --- burn-in --------------------------------------------------------------------------------------


@pytest.mark.slow_nojit
def test_the_transient_biases_low_without_burn_in_and_not_with_the_default():
    slow = dp.zero_forcing(dp.Filter([1], [1, -0.99]), PRIVACY)
    options = {"n_streams": 2000, "n_samples": 50, "seed": 3}
    without, default = (dp.monte_carlo(slow, MODEL, **options, **x)["LZF"] for x in ({"burn_in": 0}, {}))
    assert stats.ttest_1samp(without.stream_mse, slow.predicted_mse, alternative="less").pvalue < ALARM
    assert stats.ttest_1samp(default.stream_mse, slow.predicted_mse).pvalue > ALARM


@pytest.mark.parametrize("design", [dp.lmmse, dp.decision_feedback])
@pytest.mark.parametrize("where", ["target", "prefilter"])
def test_the_default_burn_in_waits_for_the_slowest_pole(design, where):
    slow, fast = dp.Filter([1], [1, -0.99]), dp.Filter([1], [1, -0.5])
    target, prefilter = (slow, fast) if where == "target" else (fast, slow)
    mechanism = design(target, PRIVACY, MODEL, lag=2, prefilter=prefilter)
    assert 0.99 ** run(mechanism).burn_in <= 1e-3
    assert run([mechanism, LZF]).burn_in == run(mechanism).burn_in
    assert run(LZF).burn_in < 200


def test_the_burn_in_of_a_fir_receiver_is_its_length():
    assert run(FEEDBACK).burn_in >= 64  # forward taps


def test_samples_before_the_burn_in_do_not_count():
    parts = [run(ALL, n_samples=n, burn_in=b) for n, b in ((100, 30), (60, 30), (40, 90))]
    for whole, first, second in zip(*parts, strict=True):
        expected = (60 * first.stream_mse + 40 * second.stream_mse) / 100
        np.testing.assert_allclose(whole.stream_mse, expected, rtol=1e-12)


# --- reproducible ---------------------------------------------------------------------------------


def same(first, second):
    return np.array_equal(first.stream_mse, second.stream_mse)


@pytest.mark.slow_nojit
def test_threads_leave_no_trace_in_the_bits():
    one, *others = (run(ALL, n_streams=70, n_threads=n) for n in (1, 2, 4, None))
    for other in others:
        assert all(map(same, one, other))


@pytest.mark.parametrize("mechanism", ALL, ids=lambda x: x.name)
def test_a_mechanism_has_the_same_bits_alone_and_in_company(mechanism):
    together = run(ALL, burn_in=50)
    assert same(run(mechanism, burn_in=50)[mechanism.name], together[mechanism.name])
    assert same(run(ALL[::-1], burn_in=50)[mechanism.name], together[mechanism.name])


@pytest.mark.slow_nojit
def test_a_stream_does_not_depend_on_how_many_there_are():
    few, many = run(ALL, n_streams=5), run(ALL, n_streams=70)
    for x, y in zip(few, many, strict=True):
        assert np.array_equal(x.stream_mse, y.stream_mse[:5])
        assert len(np.unique(y.stream_mse)) == 70


def test_seeds_differ_and_may_be_drawn_from_a_generator():
    generator, draw = np.random.default_rng(5), int(np.random.default_rng(5).integers(2**63))
    study = run(WIENER, seed=generator)
    assert study.seed == draw
    assert same(study["LMMSE lag 5"], run(WIENER, seed=draw)["LMMSE lag 5"])
    assert not same(study["LMMSE lag 5"], run(WIENER, seed=generator)["LMMSE lag 5"])


# --- precision ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, "float32", np.dtype("f4")])
def test_float32_gives_nearly_the_same(dtype):
    for exact, single in zip(run(ALL), run(ALL, dtype=dtype), strict=True):
        np.testing.assert_allclose(single.stream_mse, exact.stream_mse, rtol=1e-4)
        assert not same(exact, single)
        assert single.stream_mse.dtype == np.float64


def test_float64_is_the_default():
    assert all(map(same, run(ALL), run(ALL, dtype=np.float64)))


@pytest.mark.parametrize(
    ("target", "model"),
    [
        (dp.Filter([1, 0.995], [1, -0.995]), dp.MarkovChain(MODEL.transition, levels=[0, 1000])),
        (dp.Filter([1], [1, -0.999]), MODEL),
        (dp.Filter([1, 0.995], [1, -0.95]), dp.ARMA([1, 0.3], [1, -1.989, 0.98901])),
    ],
    ids=["large signal", "slow filters", "slow model"],
)
def test_float32_is_refused_where_it_would_spoil_an_error(target, model):
    mechanisms = [dp.output_perturbation(target, PRIVACY, name="fine"), dp.zero_forcing(target, PRIVACY)]
    with pytest.raises(ValueError, match=r"^dtype must be float64 here: in float32 the MSE of 'LZF' would be off by"):
        run(mechanisms, model, n_samples=2000, dtype=np.float32)
    assert np.isfinite(run(mechanisms, model, n_samples=2000)["LZF"].mse)


def test_a_decision_that_flips_in_float32_is_no_reason_to_refuse():
    chain = dp.MarkovChain([[0.9, 0.1, 0], [0, 0.7, 0.3], [0.2, 0.2, 0.6]], levels=[-1, 2, 5])
    target, privacy = dp.Filter([1, 0.995], [1, -0.995]), dp.Privacy(3 * math.log(3), 0.05)
    feedback = dp.decision_feedback(target, privacy, chain, lag=2, decision="quantizer", name="DFE")
    exact, single = (
        run(feedback, chain, n_streams=32, n_samples=4000, seed=15, dtype=x)["DFE"] for x in (np.float64, np.float32)
    )
    if processors.rounds_once():  # this seed shows a flip there
        assert abs((single.stream_mse / exact.stream_mse).mean() - 1) > 1e-3


# --- comparison -----------------------------------------------------------------------------------


def test_mechanisms_see_the_same_inputs_and_noise():
    twin = dp.lmmse(TARGET, PRIVACY, MODEL, lag=5, prefilter=PREFILTER, name="twin")
    study = run([WIENER, twin])
    assert same(study["twin"], study["LMMSE lag 5"])
    assert study.compare("twin", "LMMSE lag 5") == (0, (0, 0), 1)
    assert not study.compare("twin", "LMMSE lag 5").decided


def test_a_comparison_is_the_interval_of_paired_differences():
    study = run([LZF, WIENER], n_streams=20, confidence=0.9)
    a, b = study["LZF"].stream_mse, study["LMMSE lag 5"].stream_mse
    comparison, expected = study.compare("LZF", "LMMSE lag 5"), reference.skewed_interval(a - b, 0.1)
    assert comparison.mse_difference == pytest.approx(np.mean(a - b), rel=1e-12)
    np.testing.assert_allclose(comparison.interval, expected, rtol=1e-10)
    assert comparison.rmse_ratio == pytest.approx(math.sqrt(a.mean() / b.mean()), rel=1e-12)
    assert comparison.decided
    assert study.compare("LMMSE lag 5", "LZF").decided


def test_common_random_numbers_make_a_comparison_narrower():
    lag_4 = dp.lmmse(TARGET, PRIVACY, MODEL, lag=4, prefilter=PREFILTER)
    study = run([lag_4, WIENER], n_streams=30)
    paired, unpaired = study.compare("LMMSE lag 4", "LMMSE lag 5").interval, np.hypot(*map(half_width, study))
    assert paired[1] - paired[0] < 0.1 * 2 * unpaired


def half_width(result):
    return stats.sem(result.stream_mse) * stats.t.ppf(0.975, result.n_streams - 1)


# --- rare errors ----------------------------------------------------------------------------------

AVERAGE = dp.Filter(np.ones(3) / 3)
HARD = {"lag": 2, "decision": "quantizer"}
CERTAIN = dp.decision_feedback(AVERAGE, dp.Privacy(60, 0.05), MODEL, prefilter="decision-feedback", **HARD)


def test_no_error_seen_is_not_known_to_be_none():
    study = run([CERTAIN, LZF])
    result = study[CERTAIN.name]
    assert result.rmse == 0
    assert result.is_rare
    assert result.error_events == 0
    low, high = result.interval
    chance = stats.binomtest(0, 6).proportion_ci(0.95, method="exact").high
    assert low == 0
    assert chance < high**2 < chance + 0.25 / 3 / 200  # levels 0 and 1, an average of three
    assert not study["LZF"].is_rare
    assert study["LZF"].error_events is None
    told = "0 of 6 streams have an error event, fewer than 16: too few for an interval from their spread"
    assert told in " ".join(str(study).split())
    assert told in study._repr_html_()
    assert "LZF: " not in str(study)
    table = study.to_pandas()
    assert table.error_events[CERTAIN.name] == 0
    assert math.isnan(table.error_events["LZF"])
    assert table.interval_by.tolist()[:2] == ["rare errors", "spread"]


def test_a_comparison_with_errors_not_seen_is_not_certain():
    twin = dp.decision_feedback(AVERAGE, dp.Privacy(80, 0.05), MODEL, name="twin", **HARD)
    weak = dp.output_perturbation(AVERAGE, dp.Privacy(1e-3, 1e-9), name="weak")
    study = run([CERTAIN, twin, weak])
    found = study.compare(CERTAIN.name, "twin")
    assert found.mse_difference == 0
    assert found.interval[0] < 0 < found.interval[1]
    assert found.rmse_ratio == 1
    assert study.compare("weak", CERTAIN.name).rmse_ratio == math.inf
    assert study.compare("weak", CERTAIN.name).decided  # its error is above all that decisions can do


# --- memory ---------------------------------------------------------------------------------------

MEMORY = r"""
import pathlib, re, sys
import dpfast as dp

def peak():
    return int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1024

target, model = dp.Filter([1], [1, -0.8]), dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
privacy, prefilter = dp.Privacy(1.0, 0.05), dp.Filter([1], [1, -0.5])
mechanisms = [dp.input_perturbation(target, privacy), dp.lmmse(target, privacy, model, prefilter=prefilter)]
before = peak()
for n_samples in map(int, sys.argv[1:]):  # the shortest first: a peak stays
    dp.monte_carlo(mechanisms, model, n_streams=64, n_samples=n_samples, seed=1, n_threads=2)
    print(peak() - before)
"""


def megabytes(*n_samples):
    """Peak memory of studies over the imported package; not ru_maxrss, which begins with that of the parent."""
    command = [sys.executable, "-c", MEMORY, *map(str, n_samples)]
    return map(float, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.slow_nojit
@pytest.mark.parametrize("n_samples", [100_000, pytest.param(1_500_000, marks=pytest.mark.long)])
def test_memory_does_not_grow_with_the_length_of_a_study(n_samples):
    short, long = megabytes(20_000, n_samples)  # a million samples, and 6 or 96 million
    assert long < 100
    assert long < short + 8


# --- bad arguments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *[("n_streams", x) for x in (1, 0, -1, 2.5, "8", None, True)],
        *[("n_samples", x) for x in (0, -1, 10.0, None)],
        *[("seed", x) for x in (-1, 0.5, None, "1")],
        *[("burn_in", x) for x in (-1, 0.5, "1")],
        *[("n_threads", x) for x in (0, -2, 1.5)],
        *[("dtype", x) for x in (np.float16, "f16", int, complex, None, "single precision", 32)],
        *[("confidence", x) for x in (0, 1, -0.5, 95, math.nan, None)],
    ],
)
def test_a_bad_argument_is_named(argument, value):
    with pytest.raises(ValueError, match=rf"^{argument} must "):
        run(LZF, **{argument: value})


@pytest.mark.parametrize("nothing", [[], (), iter([])])
def test_no_mechanism_is_an_error(nothing):
    with pytest.raises(ValueError, match="mechanisms must be at least one, got none"):
        run(nothing)


def test_two_mechanisms_of_one_name_are_an_error_that_says_what_to_do():
    with pytest.raises(ValueError, match=r"different names, got \['LZF'\] more than once: give them name="):
        run([LZF, WIENER, dp.zero_forcing(TARGET, PRIVACY)])


@pytest.mark.parametrize("wrong", [[1], ["LZF"], [LZF, TARGET], 1, "LZF", TARGET, None])
def test_what_is_no_mechanism_is_named(wrong):
    with pytest.raises((ValueError, TypeError), match=r"^mechanisms must "):
        run(wrong)


@pytest.mark.parametrize("wrong", [None, TARGET, 1.0, [0, 1]])
def test_what_is_no_model_is_named(wrong):
    with pytest.raises((ValueError, TypeError), match=r"^model must "):
        run(LZF, wrong)


# --- a study --------------------------------------------------------------------------------------


def test_a_study_is_iterable_in_the_order_of_the_mechanisms():
    study = run(ALL)
    assert [x.name for x in study] == [x.name for x in ALL]
    assert len(study) == 4
    assert [study[x.name] for x in study] == list(study)
    assert (study.n_samples, study.seed, study.confidence) == (200, 1, 0.95)


def test_a_study_of_several_targets_says_nothing_of_the_least_error():
    other = dp.zero_forcing(dp.Filter([1, 2]), LZF.privacy, name="other")
    assert run([LZF]).sentence.startswith("LZF has an RMSE of ")
    assert run([LZF, other]).sentence == ""
    assert str(run([LZF, other])).startswith("mechanism ")


def test_an_unknown_name_lists_the_known_ones():
    for ask in (lambda s: s["smoother"], lambda s: s.compare("LZF", "smoother")):
        with pytest.raises(KeyError, match=r"mechanism of this study, one of \['LZF', 'DFE'\], got 'smoother'"):
            ask(run([LZF, FEEDBACK]))


def test_a_study_prints_a_row_for_each_mechanism():
    study = run(ALL, confidence=0.9, burn_in=33)
    said, table = str(study).split("mechanism  ")
    assert " ".join(said.split()) == study.sentence
    assert study.sentence.startswith("DFE errs least, with an RMSE of ")
    header, *rows, constant, size = table.splitlines()
    assert "90% interval" in header
    assert size == "6 streams of 200 samples after 33, seed 1"
    for row, x in zip(rows, study, strict=True):
        low, high = x.interval
        predicted = "-" if x.predicted_rmse is None else f"{x.predicted_rmse:.5g}"
        assert row.startswith(x.name)
        figures = [f"{x.rmse:.5g}", f"{low:.5g}", "…", f"{high:.5g}", f"{x.explained:.3f}"]
        assert row[len(x.name) :].split() == [predicted, *figures]
    assert constant.split() == ["constant", f"{np.sqrt(study.results[0].variance):.5g}", "-", "-", "0.000"]
    assert len({len(line.split("…")[0]) for line in rows}) <= 3  # columns
    assert repr(study) == str(study)


@pytest.mark.parametrize(("confidence", "shown"), [(0.9, "90%"), (0.995, "99.5%"), (0.9999, "99.99%")])
def test_a_study_prints_its_confidence_unrounded(confidence, shown):
    assert f"{shown} interval" in str(run(LZF, confidence=confidence))


def test_to_pandas_has_a_row_for_each_mechanism():
    study = run(ALL)
    table = study.to_pandas()
    assert table.index.tolist() == [*(x.name for x in ALL), "constant"]
    assert table.index.name == "mechanism"
    for x in study:
        row = table.loc[x.name]
        assert (row.rmse, row.low, row.high, row.mse, row.n_streams) == (x.rmse, *x.interval, x.mse, 6)
        assert math.isnan(row.predicted_rmse) if x.predicted_rmse is None else row.predicted_rmse == x.predicted_rmse


def test_results_are_frozen():
    study = run(LZF)
    with pytest.raises(AttributeError):
        study.seed = 2
    with pytest.raises(AttributeError):
        study["LZF"].name = "x"
    with pytest.raises(ValueError, match="read-only"):
        study["LZF"].stream_mse[0] = 0


# --- progress and extras --------------------------------------------------------------------------


@pytest.mark.slow_nojit
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_progress_bar_is_shown_on_request_and_reaches_its_end(capsys, n_threads):
    run(ALL, n_streams=40, n_samples=3000, n_threads=n_threads, progress=True)
    shown = capsys.readouterr().err
    assert "simulating" in shown
    assert "100%" in shown.split("\r")[-1]


def test_no_progress_bar_is_shown_otherwise(capsys):
    run(ALL)
    assert capsys.readouterr() == ("", "")


def test_the_bar_leaves_no_trace_in_the_bits(capsys):
    assert all(map(same, run(ALL), run(ALL, progress=True)))


@pytest.mark.parametrize(("package", "extra"), [("pandas", "pandas"), ("tqdm", "progress")])
def test_a_missing_extra_says_how_to_get_it(monkeypatch, package, extra):
    study = run(LZF)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(dp.MissingExtraError, match=rf"needs {package}: pip install 'dpfast\[{extra}\]'"):
        study.to_pandas() if package == "pandas" else run(LZF, progress=True)


SLOW = dp.ARMA([0.1], [1, -0.995])  # of which the receiver remembers more than the target does


@pytest.mark.parametrize(
    ("target", "model", "lengths"),
    [
        (dp.Filter([0.02], [1, -0.98]), MODEL, 5),
        (dp.Filter([0.02], [1, -0.98]), MODEL, [5, 40]),
        (dp.Filter([1.0]), SLOW, 5),
    ],
)
def test_block_sums_have_settled_when_the_burn_in_is_over(target, model, lengths):
    """The error from rest, step by step, is that of a cycle then, and is not long before."""
    mechanism = dp.block_sums(target, dp.Privacy(0.3), model, length=lengths)
    settled, n = mechanism.settling_time(1e-3), mechanism.lengths[-1]
    steps = mechanism.step_mse(settled + 2 * n)
    assert steps[settled:].reshape(2, n).mean(axis=1) == pytest.approx(mechanism.predicted_mse, rel=1e-4)
    assert abs(steps[:n].mean() / mechanism.predicted_mse - 1) > 0.1
    assert settled < 2000


def test_block_sums_over_a_horizon_have_no_burn_in_and_single_precision_is_tried_on_it():
    mechanism = dp.block_sums(dp.running_sum(64), dp.Privacy(1), MODEL)
    assert mechanism.settling_time(1e-3) == 0
    study = dp.monte_carlo(mechanism, MODEL, n_streams=400, n_samples=64, seed=1, dtype=np.float32)
    assert study.burn_in == 0
    low, high = study["block sums lag 0"].interval
    assert 0.9 * low < mechanism.predicted_rmse < 1.1 * high
