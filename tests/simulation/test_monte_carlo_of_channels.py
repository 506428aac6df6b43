"""Monte Carlo of several streams, against a twin of loops, exact predictions, and the scalar mechanism."""

import gc
import math
import weakref

import numpy as np
import pytest
from helpers import reference
from helpers.chains import unit_normals
from scipy import stats

import dpfast as dp
from dpfast._kernels import simulation
from dpfast._kernels.simulated_noise import NOISE, of_channel
from dpfast.signals.channel_outputs import compile_sources
from dpfast.simulation import prepared_channels

ALARM = 1e-6  # of a statistical test
SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])
ONE, EACH = (dp.Privacy(math.log(3), 0.05, adjacency=x) for x in ("one_input", "each_input"))
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
MODELS = (dp.ARMA([1], [1, -0.5], mean=2.0), CHAIN, dp.ARMA([0.6], [1, -0.8]))
CORRELATED = dp.VectorARMA(
    [np.diag([0.5, 0.5, 0.8])], innovation_covariance=[[1, 0.6, 0.3], [0.6, 1, 0.6], [0.3, 0.6, 1]], mean=[1, -2, 0]
)
COUNTS = (dp.ARMA([1.2], [1, -0.9], mean=5), dp.ARMA([2.0], [1, -0.7], mean=3), CHAIN)
LZF = dp.zero_forcing(TARGET, ONE)
LMMSE = dp.lmmse(TARGET, ONE, MODELS, lag=3, tolerance=1e-2)
BLOCKS = dp.block_sums(TARGET, dp.Privacy(1, adjacency="one_input"), COUNTS, lag=2)
SMALL = {"n_streams": 6, "n_samples": 200, "seed": 1}


def run(mechanisms, model=MODELS, **options):
    return dp.monte_carlo(mechanisms, model, **{**SMALL, **options})


def drawn(models, n_streams, n, seed):
    """The inputs (streams, m, time) of a study."""
    out = np.empty((TARGET.shape[1], n_streams, n))
    simulation.sample_channels(compile_sources(models), seed, out, 1)
    return out.swapaxes(0, 1)


def filtered(system, x):
    """The output (p, time) of a matrix of filters, entry by entry."""
    rows = [[reference.direct_form(f.b, f.a, x[j]) for j, f in enumerate(row)] for row in system.rows]
    return np.array([sum(row) for row in rows])


# --- the figures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [MODELS, CORRELATED], ids=["independent", "correlated"])
def test_errors_are_those_of_a_slow_loop(model):
    n_streams, burn_in, n, seed, lag = 3, 40, 120, 7, LMMSE.lag
    length, means = burn_in + n + lag, np.array([2.0, 0.0, 0.0])
    u = drawn(model, n_streams, length, seed)
    noise = np.stack([unit_normals(seed, n_streams, length, of_channel(NOISE, q)) for q in range(3)])
    expected = np.zeros((2, n_streams))
    for i in range(n_streams):
        v = filtered(LMMSE.prefilter, u[i] - means[:, None]) + LMMSE.noise_std * noise[:, i]
        late = np.where(np.arange(length) >= lag, means[:, None], 0.0)
        estimate = filtered(LMMSE.receiver, v) + filtered(TARGET, late)
        error = estimate[:, burn_in + lag :] - filtered(TARGET, u[i])[:, burn_in : burn_in + n]
        expected[:, i] = (error**2).mean(axis=1)
    found = run(LMMSE, model, n_streams=n_streams, n_samples=n, seed=seed, burn_in=burn_in)["LMMSE lag 3"]
    np.testing.assert_allclose([x.stream_mse for x in found.outputs], expected, rtol=1e-9)
    np.testing.assert_allclose(found.stream_mse, expected.sum(axis=0), rtol=1e-9)


def test_correlated_inputs_are_the_samples_of_their_model():
    u = CORRELATED.sample(6, 90, seed=3)
    np.testing.assert_array_equal(u, drawn(CORRELATED, 6, 90, 3))
    np.testing.assert_array_equal(u[:2, :, :50], CORRELATED.sample(2, 50, seed=3))


@pytest.mark.parametrize(("mechanism", "model"), [(LMMSE, MODELS), (LMMSE, CORRELATED), (BLOCKS, COUNTS)])
def test_a_study_is_what_its_mechanism_makes_of_its_inputs(mechanism, model):
    n, burn_in, lag = 150, 30, mechanism.lag
    u = drawn(model, 4, burn_in + n + lag, 5)
    error = mechanism.simulate(u, seed=5).estimate[..., burn_in + lag :] - TARGET.apply(u)[..., burn_in:][..., :n]
    found = run(mechanism, model, n_streams=4, n_samples=n, seed=5, burn_in=burn_in)[mechanism.name]
    np.testing.assert_allclose([x.stream_mse for x in found.outputs], (error**2).mean(axis=-1).T, rtol=1e-9)


def random_system(rng):
    """A mechanism of filters with random parts of orders up to 4, m and p up to 4, and correlated inputs."""
    p, m = rng.integers(1, 5, 2)

    def entry():
        poles = rng.uniform(-0.9, 0.9, rng.integers(0, 5))
        return dp.Filter(rng.normal(size=rng.integers(1, 5)), np.poly(poles) if len(poles) else [1.0])

    g = dp.FilterMatrix.diagonal([entry() for _ in range(m)])
    target, receiver = (dp.FilterMatrix([[entry() for _ in range(m)] for _ in range(p)]) for _ in range(2))
    ar = np.diag(rng.uniform(-0.8, 0.8, m)) + np.triu(rng.normal(size=(m, m)) / 4, 1)
    root = rng.normal(size=(m, m))
    model = dp.VectorARMA([ar], [rng.normal(size=(m, m)) / 3], innovation_covariance=root @ root.T, mean=rng.normal(m))
    independent = tuple(dp.ARMA([1], [1, -x], mean=float(i)) for i, x in enumerate(rng.uniform(-0.9, 0.9, m)))
    lag = int(rng.integers(0, 4))
    made = dp.ChannelsMechanism("mine", target, ONE if m > 1 else EACH, g, receiver, models=independent, lag=lag)
    return made, model, independent


def deviations(result):
    """How many standard errors each output, and all together, lie from what is predicted."""
    rows = [result, *result.outputs]
    return [(x.mse - x.predicted_rmse**2) / (x.stream_mse.std(ddof=1) / math.sqrt(x.n_streams)) for x in rows]


def test_systems_in_state_space_run_as_their_entries_do():
    rng = np.random.default_rng(0)
    made, model, independent = random_system(rng)
    parts = (made.target, made.prefilter, made.receiver)
    target, *filters = (dp.FilterMatrix.from_state_space(*x.state_space()) for x in parts)
    shared = dp.ChannelsMechanism("shared", target, made.privacy, *filters, models=independent, lag=made.lag)
    for burn_in in (0, 30):
        found = run([made, shared], model, burn_in=burn_in)
        np.testing.assert_allclose(found["shared"].stream_mse, found["mine"].stream_mse, rtol=1e-9)
        assert found["shared"].predicted_rmse == pytest.approx(found["mine"].predicted_rmse, rel=1e-9)
    blocks = dp.block_sums(TARGET, dp.Privacy(1, adjacency="one_input"), COUNTS, length=2)
    entries = dp.FilterMatrix.from_state_space(*TARGET.state_space())
    same = dp.block_sums(entries, dp.Privacy(1, adjacency="one_input"), COUNTS, length=2, name="same")
    found = run([blocks, same], COUNTS)
    np.testing.assert_allclose(found["same"].output_mse, found[blocks.name].output_mse, rtol=1e-9)


@pytest.mark.parametrize("burn_in", [None, 0])
def test_simulated_errors_are_the_predicted_ones_on_random_systems(burn_in):
    rng = np.random.default_rng(3)
    for _ in range(6):
        made, *models = random_system(rng)
        for model in models:
            found = run(made, model, n_streams=400, n_samples=60, burn_in=burn_in)["mine"]
            assert np.abs(deviations(found)).max() <= 5


@pytest.mark.parametrize("burn_in", [None, 0])
@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
def test_simulated_errors_of_block_sums_are_the_predicted_ones(adjacency, burn_in):
    made = dp.block_sums(TARGET, dp.Privacy(1, adjacency=adjacency), COUNTS, lag=1)
    assert (None in made.lengths) == (adjacency == "each_input")
    others = (COUNTS[0], COUNTS[1], dp.MarkovChain([[0.5, 0.5], [0.25, 0.75]], levels=[0.5, 1.5]))
    for model in (COUNTS, others):
        found = run(made, model, n_streams=600, n_samples=60, burn_in=burn_in)[made.name]
        assert np.abs(deviations(found)).max() <= 5
    assert run(made, COUNTS, burn_in=200)[made.name].predicted_rmse == pytest.approx(made.predicted_rmse, rel=1e-9)


def test_where_biases_or_correlation_would_have_to_be_known_nothing_is_predicted_of_block_sums():
    louder = [dp.ARMA(x.shaping.b, x.shaping.a, mean=x.mean + 1) for x in COUNTS[:2]] + [COUNTS[2]]
    for model in (louder, CORRELATED):
        found = run(BLOCKS, model)[BLOCKS.name]
        assert found.predicted_rmse is None
        assert found.outputs[0].predicted_rmse is None
        assert BLOCKS.predict(model) is None


def test_every_error_stands_beside_that_of_the_constant():
    """Whose error is the variance of the true output: Σ r_ij Σ_k f_i,k f_j,k + ... , here in the state space."""
    from scipy import linalg

    study = run([LZF, LMMSE], CORRELATED)
    h = TARGET.impulse(2000)
    lags = [CORRELATED.covariance]
    for _ in range(400):
        lags.append(np.diag([0.5, 0.5, 0.8]) @ lags[-1])
    for a, output in enumerate(study["LZF"].outputs):
        variance = sum(
            h[a, i]
            @ linalg.toeplitz([x[i, j] for x in lags] + [0] * 1599, [x[j, i] for x in lags] + [0] * 1599)
            @ h[a, j]
            for i in range(3)
            for j in range(3)
        )
        assert output.variance == pytest.approx(variance, rel=1e-6)
    found = study.constants()
    assert list(found) == ["constant", "constant, output 0", "constant, output 1"]
    assert found["constant"] ** 2 == pytest.approx(sum(x.variance for x in study["LZF"].outputs))


# --- intervals ------------------------------------------------------------------------------------


def test_intervals_cover_the_errors_of_outputs_and_of_their_sum():
    n, confidence = 300, 0.9
    truth = [LMMSE.predict(MODELS), *LMMSE.predict_outputs(MODELS)]
    studies = [run(LMMSE, n_streams=12, n_samples=50, confidence=confidence, seed=i)["LMMSE lag 3"] for i in range(n)]
    for k, mse in enumerate(truth):
        rows = [[x, *x.outputs][k] for x in studies]
        covered = sum(x.interval[0] <= math.sqrt(mse) <= x.interval[1] for x in rows)
        assert stats.binom.cdf(covered, n, confidence - 0.02) > ALARM
        assert stats.binom.sf(covered - 1, n, confidence + 0.04) > ALARM


def test_the_interval_of_the_sum_counts_that_outputs_err_together():
    """Of an output and the same again, and of one and what is independent of it."""
    twice = dp.ChannelsMechanism(
        "twice", dp.FilterMatrix([[SLOW], [SLOW]]), EACH, dp.FilterMatrix([[1]]), dp.FilterMatrix([[SLOW], [SLOW]])
    )
    both = run(twice, [MODELS[0]])["twice"]
    np.testing.assert_allclose(both.interval, math.sqrt(2) * np.array(both.outputs[0].interval), rtol=1e-12)
    np.testing.assert_allclose(both.output_intervals, [both.outputs[1].interval] * 2)
    apart = dp.input_perturbation(dp.FilterMatrix.diagonal([SLOW, SLOW]), ONE)
    found = run(apart, MODELS[:2], n_streams=400)[apart.name]
    low, high = (math.fsum(x.interval[i] ** 2 for x in found.outputs) for i in (0, 1))
    ratio = (found.interval[1] ** 2 - found.interval[0] ** 2) / (high - low)
    assert ratio == pytest.approx(math.sqrt(0.5), abs=0.1)


def test_rare_noise_has_a_bound_for_an_interval():
    """Of so large an epsilon that noise is hardly ever drawn, and none of these streams has any."""
    levels = dp.IndependentLevels([0, 1], [0.5, 0.5])
    made = dp.block_sums(dp.total(2), dp.Privacy(30, adjacency="one_input"), [levels] * 2, length=1)
    found = run(made, [levels] * 2)[made.name]
    assert found.is_rare
    assert found.outputs[0].is_rare
    assert found.interval[1] > 0
    assert not run(BLOCKS, COUNTS)[BLOCKS.name].is_rare
    partly = dp.block_sums(
        dp.total(2), dp.Privacy(30, adjacency="each_input"), [levels] * 2, length=1, shares=[0.95, 0.05]
    )
    assert not run(partly, [levels] * 2)[partly.name].is_rare


# --- what does not change them --------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "model"), [(LMMSE, MODELS), (LZF, CORRELATED), (BLOCKS, COUNTS)])
def test_streams_depend_on_seed_and_number_alone(mechanism, model):
    def errors(**options):
        return run(mechanism, model, **options)[mechanism.name].stream_mse

    base = errors(n_streams=70, n_threads=1)
    for options in ({"n_threads": 2}, {"n_threads": 5}):
        np.testing.assert_array_equal(errors(n_streams=70, **options), base)
    np.testing.assert_array_equal(errors(n_streams=3), base[:3])
    assert (errors(seed=2, n_streams=70) != base).all()
    u = np.random.default_rng(0).standard_normal((40, 3, 700))
    paths = mechanism.simulate(u, seed=1, n_threads=1)
    for some, length in ((40, 700), (5, 700), (40, 13)):
        part = mechanism.simulate(u[:some, :, :length], seed=1, n_threads=3)
        np.testing.assert_array_equal(part.estimate, paths.estimate[:some, :, :length])
        np.testing.assert_array_equal(part.privatized, paths.privatized[:some, :, :length])


def test_mechanisms_together_have_the_bits_that_they_have_alone():
    together = run([LZF, LMMSE], CORRELATED, burn_in=50)
    for x in (LZF, LMMSE):
        np.testing.assert_array_equal(together[x.name].stream_mse, run(x, CORRELATED, burn_in=50)[x.name].stream_mse)


def test_what_was_prepared_for_another_call_changes_nothing_and_keeps_nothing(monkeypatch):
    calls = [
        (mechanism, model, options)
        for mechanism in (LZF, LMMSE)
        for model in (MODELS, MODELS[::-1], CORRELATED)
        for options in ({}, {"burn_in": 0}, {"n_samples": 90}, {"dtype": np.float32}, {"seed": 2})
    ]

    def figures(mechanism, model, options):
        found = run(mechanism, model, **options)[mechanism.name]
        return [(x.predicted_rmse, x.variance, x.stream_mse.tobytes()) for x in (found, *found.outputs)]

    kept = [figures(*calls[i]) for i in (*range(len(calls)), *reversed(range(len(calls))))]
    monkeypatch.setattr(prepared_channels, "_prepare_once", prepared_channels._prepare)
    anew = [figures(*x) for x in calls]
    assert kept == anew + anew[::-1]
    monkeypatch.undo()
    made = dp.input_perturbation(TARGET, EACH)
    run(made)
    there = weakref.ref(made)
    del made
    gc.collect()
    assert there() is None


def test_rounding_is_warned_of_in_every_call():
    fine = [dp.ARMA([0.01], [1, -0.5], mean=5)] * 2
    demand, loud = dp.Privacy(1, adjacency="one_input"), [dp.ARMA([2], [1, -0.5], mean=5)] * 2
    made = dp.block_sums(dp.total(2), demand, loud, unit=1)
    for _ in range(2):
        with pytest.warns(dp.AccuracyWarning):
            run(made, fine)


@pytest.mark.parametrize("model", [MODELS[0], CHAIN])
@pytest.mark.parametrize("burn_in", [None, 0])
def test_one_input_and_output_are_the_scalar_mechanism_to_the_bit(model, burn_in):
    privacy = dp.Privacy(1, 1e-6)
    scalar = dp.lmmse(SLOW, privacy, model, lag=2)
    parts = (dp.FilterMatrix([[x]]) for x in (SLOW, scalar.prefilter, scalar.receiver.filter))
    target, *filters = parts
    several = dp.ChannelsMechanism("several", target, privacy, *filters, models=(model,), lag=2)
    pairs = [
        (scalar, several),
        (dp.block_sums(SLOW, privacy, model, length=3), dp.block_sums(target, privacy, [model], length=3)),
    ]
    for one, matrix in pairs:
        expected = run(one, model, burn_in=burn_in)[one.name]
        found = run(matrix, [model], burn_in=burn_in)[matrix.name]
        for result in (found, *found.outputs):
            np.testing.assert_array_equal(result.stream_mse, expected.stream_mse)
            assert result.interval == expected.interval
            assert result.predicted_rmse == pytest.approx(expected.predicted_rmse, rel=1e-10)
            assert result.variance == pytest.approx(expected.variance, rel=1e-10)
        u = np.random.default_rng(0).standard_normal((4, 1, 90))
        paths, own = matrix.simulate(u, seed=3), one.simulate(u[:, 0], seed=3)
        np.testing.assert_array_equal(paths.privatized[:, 0], own.privatized)
        np.testing.assert_array_equal(paths.estimate[:, 0], own.estimate)


def test_single_precision_is_near():
    double, single = (run([LZF, LMMSE], dtype=x) for x in (np.float64, np.float32))
    for x in (LZF, LMMSE):
        np.testing.assert_allclose(single[x.name].output_mse, double[x.name].output_mse, rtol=1e-3)


def test_single_precision_that_will_not_do_is_refused():
    target = dp.FilterMatrix([[1, 1], [1e-7, 0]]) * dp.Filter([1], [1, -0.9999])
    made = dp.zero_forcing(target, ONE)
    loud = [dp.ARMA([1e4], [1, -0.5])] * 2
    with pytest.raises(ValueError, match=r"dtype must be float64 here: in float32 the MSE of 'LZF' would be off"):
        run(made, loud, dtype=np.float32, burn_in=10)


def test_an_output_that_is_zero_has_no_error():
    target = dp.FilterMatrix([[SLOW, SLOW], [0, 0]])
    for made in (
        dp.input_perturbation(target, ONE),
        dp.block_sums(target, dp.Privacy(1, adjacency="one_input"), COUNTS[:2]),
    ):
        found = run(made, COUNTS[:2], dtype=np.float32)[made.name]
        np.testing.assert_array_equal(found.outputs[1].stream_mse, np.zeros(6))
        assert found.outputs[1].explained is None


# --- tables and refusals --------------------------------------------------------------------------


def test_tables_have_a_row_for_each_output():
    study = run([LZF, LMMSE])
    names = [f"{x}{y}" for x in ("LZF", "LMMSE lag 3", "constant") for y in ("", ", output 0", ", output 1")]
    lines = str(study).splitlines()
    assert [x for x in names if not any(line.startswith(f"{x} ") for line in lines)] == []
    assert list(study.to_pandas().index) == names
    assert len(study) == 2
    assert study["LZF, output 1"] is study["LZF"].outputs[1]
    assert study["LZF"].output_rmse.tolist() == [x.rmse for x in study["LZF"].outputs]
    assert study.compare("LZF, output 0", "LMMSE lag 3, output 0").decided
    for text in (study._repr_html_(), study["LZF"]._repr_html_()):
        assert "LZF, output 1" in text
    from matplotlib.figure import Figure

    labels = study.plot(ax=Figure().subplots()).get_yticklabels()
    assert [x.get_text() for x in labels] == names[:6]
    assert run(dp.input_perturbation(dp.total(3), ONE)).rows[0].outputs[0].name == "input perturbation, output 0"
    assert len(run(dp.input_perturbation(dp.total(3), ONE)).rows) == 1


def test_targets_that_differ_have_constants_of_their_own():
    other = dp.input_perturbation(dp.total(3), ONE)
    assert list(run([LZF, other]).constants()) == [
        *("constant for LZF", "constant for LZF, output 0", "constant for LZF, output 1"),
        "constant for input perturbation",
    ]


@pytest.mark.parametrize(
    ("mechanisms", "model", "words"),
    [
        (LZF, MODELS[:2], "model must be a sequence of 3 models, one for each input, or a VectorARMA of 3"),
        (LZF, CHAIN, "model must be a sequence of 3 models, one for each input, or a VectorARMA of 3"),
        (LZF, [1, 2, 3], "model must be a MarkovChain"),
        (LZF, dp.VectorARMA([np.eye(2) / 2]), "or a VectorARMA of 3 channels, got a VectorARMA of 2"),
        ([LZF, dp.zero_forcing(SLOW, dp.Privacy(1, 0.1), name="one")], MODELS, r"all of several, got \['one'\] of one"),
        ([LZF, dp.input_perturbation(dp.total(2), ONE)], MODELS, "must all have the same inputs, got .*: simulate"),
        ([LZF, LZF], MODELS, "mechanisms must have different names"),
        (dp.zero_forcing(SLOW, dp.Privacy(1, 0.1)), MODELS, "model must be a MarkovChain"),
        ("LZF", MODELS, "mechanisms must be a Mechanism"),
    ],
)
def test_what_does_not_fit_is_named(mechanisms, model, words):
    with pytest.raises(ValueError, match=words):
        run(mechanisms, model)
