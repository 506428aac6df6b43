import numpy as np
import pytest
from helpers.designs import to_a_wide_tolerance
from scipy import signal

import dpfast as dp
from dpfast.design.catalogue import filter_families
from dpfast.simulation import evaluation

PRIVACY = dp.Privacy(1, 1e-6)
TARGET = dp.Filter(np.full(4, 0.25))


@pytest.fixture(autouse=True)
def widely(monkeypatch):
    """Designs are to a wide tolerance: what they do is looked at, and not how well."""
    wide = [x._replace(design=to_a_wide_tolerance(x.design)) for x in filter_families()]
    monkeypatch.setattr(evaluation, "filter_families", lambda: wide)


def poisson(n_series, n_bins):
    return np.random.default_rng(1).poisson(3.0, (n_series, n_bins))


def test_errors_are_those_of_the_estimates_against_the_true_output():
    u = poisson(1, 400)[0].astype(float)
    y = signal.lfilter(TARGET.b, 1, u)
    model = dp.ARMA.fit(u, 2)
    designs = evaluation.design_mechanisms(u, TARGET, PRIVACY, model)
    for outcome in evaluation.evaluate_series("all", u, y, model, designs, draws=3, seed=5):
        lag = outcome.mechanism.lag or 0
        draws = outcome.mechanism.simulate(np.stack([u] * 3), seed=5).estimate
        error = draws[:, lag:] - y[: len(y) - lag]
        np.testing.assert_allclose(outcome.result.stream_mse, (error**2).mean(axis=1), rtol=1e-12)
        np.testing.assert_allclose(outcome.result.rmse, np.sqrt((error**2).mean()), rtol=1e-12)
        np.testing.assert_array_equal(outcome.estimate[: len(y) - lag], draws[0, lag:])
        assert np.isnan(outcome.estimate[len(y) - lag :]).all()


def test_linear_mechanisms_do_as_predicted_on_data_like_the_model():
    u = poisson(1, 20_000)[0].astype(float)
    y = signal.lfilter(TARGET.b, 1, u)
    model = dp.ARMA.fit(u, 1)
    designs = [x for x in evaluation.design_mechanisms(u, TARGET, PRIVACY, model) if x.predicted_rmse is not None]
    assert len(designs) == 10
    for outcome in evaluation.evaluate_series("all", u, y, model, designs, draws=8, seed=1):
        assert outcome.result.rmse == pytest.approx(outcome.mechanism.predicted_rmse, rel=0.05)


def test_errors_too_rare_for_their_spread_are_bounded():
    """So little noise that no decision is wrong."""
    u = (np.arange(60) % 7 == 0) * 1.0
    target, model = dp.Filter([0.5, 0.5]), dp.IndependentLevels([0, 1], [6 / 7, 1 / 7])
    design = dp.decision_feedback(target, dp.Privacy(200, 0.05), model, lag=1, decision="quantizer")
    designs = [design, dp.input_perturbation(target, dp.Privacy(1, 1e-6))]
    rare, plain = (
        x.result for x in evaluation.evaluate_series("all", u, target.filter(u).y, model, designs, draws=4, seed=5)
    )
    assert rare.rmse == 0
    assert (rare.error_events, rare.is_rare, plain.is_rare) == (0, True, False)
    assert 0.5 < rare.interval[1] < 1


def test_without_delta_the_families_that_need_none_are_evaluated_and_the_others_noted():
    u = poisson(1, 400)[0].astype(float)
    notes = {}
    designs = evaluation.design_mechanisms(u, TARGET, dp.Privacy(1), dp.ARMA.fit(u, 2), notes)
    assert [x.name for x in designs] == ["input perturbation", "block sums lag 0", "block sums lag 5"]
    assert [x.guarantee_terms().delta for x in designs] == [0, 0, 0]
    assert list(notes) == [
        (
            "No optimal, LZF, LMMSE, output perturbation: their Gaussian noise needs a delta above 0; without one "
            "there are input perturbation, block sums."
        )
    ]
    results = evaluation.evaluate_series("all", u, signal.lfilter(TARGET.b, 1, u), dp.ARMA.fit(u, 2), designs, 8, 3)
    for x in results:
        assert x.result.rmse == pytest.approx(x.mechanism.predicted_rmse, rel=0.15)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (2.0, 4.0)])
def test_a_series_of_two_counts_is_told_by_randomised_response_too(low, high):
    chain = dp.MarkovChain([[0.9, 0.1], [0.3, 0.7]], [low, high])
    u = chain.sample(1, 4000, seed=1)[0]
    model, privacy = dp.ARMA.fit(u, 2), dp.Privacy(2, max_change=high - low)
    assert evaluation.tell_apart(u, model).levels.tolist() == [low, high]
    designs = evaluation.design_mechanisms(u, TARGET, privacy, model)
    told = [x for x in designs if x.name.startswith("randomised response")]
    assert [x.name for x in told] == ["randomised response lag 0", "randomised response lag 5"]
    told, y = evaluation.tell_apart(u, model), signal.lfilter(TARGET.b, 1, u)
    for x in evaluation.evaluate_series("all", u, y, told, designs, 8, 3):
        assert x.result.rmse == pytest.approx(x.result.predicted_rmse, rel=0.1)
        assert x.result.predicted_rmse == pytest.approx(x.mechanism.predicted_rmse, rel=1e-9)


def test_counts_that_are_not_two_have_no_two_levels():
    for u in ([0.0, 1, 2, 1, 0], [1.0, 0, 3, 0, 1]):
        assert evaluation.tell_apart(np.array(u), dp.ARMA([1])).levels is None


def test_a_response_predicts_nothing_on_inputs_that_it_takes_for_others():
    coin = dp.IndependentLevels([0, 1], [0.5, 0.5])
    mechanism = dp.randomized_response(TARGET, dp.Privacy(2), coin, lag=1)
    others = [dp.ARMA([1], [1, -0.5], mean=3), dp.IndependentLevels([0, 2], [0.5, 0.5])]
    assert [mechanism.predict(x) for x in others] == [None, None]
    assert [mechanism.step_mse(3, x) for x in others] == [None, None]
    assert mechanism.worst_case_mse(1.0) is None
    assert mechanism.predict(coin) == pytest.approx(mechanism.predicted_mse, rel=1e-12)
    for model in others:
        study = dp.monte_carlo(mechanism, model, n_streams=8, n_samples=200, seed=1)
        assert study[mechanism.name].predicted_rmse is None
    found = evaluation.evaluate_series("all", np.array([0.0, 7, 3] * 9), np.zeros(27), others[0], [mechanism], 2, 1)
    assert found[0].result.predicted_rmse is None


def test_two_counts_farther_apart_than_a_change_are_noted():
    u, notes = np.array([0.0, 5, 5, 0, 0, 0, 5, 0, 5, 5, 0, 0] * 5), {}
    designs = evaluation.design_mechanisms(u, TARGET, dp.Privacy(1), dp.ARMA.fit(u, 1), notes)
    assert "block sums lag 0" in [x.name for x in designs]  # to which they are counts
    assert not any("randomised response" in x.name for x in designs)
    assert any("No randomised response: max_change must be at least 5" in x for x in notes)


def test_a_saved_mechanism_of_blocks_is_evaluated():
    saved = dp.block_sums(TARGET, dp.Privacy(2), dp.ARMA([1], [1, -0.5], mean=3))
    (named,) = evaluation.name_saved([saved], TARGET, PRIVACY)
    assert named.name == "saved: block sums lag 0 (epsilon 2, delta 0)"
    assert named.predicted_mse == saved.predicted_mse


def test_what_a_family_does_not_take_is_noted_with_the_reason():
    u = poisson(1, 100)[0].astype(float)
    notes = {}
    designs = evaluation.design_mechanisms(u, TARGET, dp.Privacy(1, max_change=1.5), dp.ARMA.fit(u, 1), notes)
    assert [x.name for x in designs] == ["input perturbation"]
    assert next(iter(notes)).endswith("without one there are input perturbation.")
    assert "No block sums: max_change must be a multiple of 1, the step of counts" in list(notes)[1]


def test_real_inputs_are_rounded_to_a_unit():
    u = poisson(1, 100)[0] / 4
    notes = {}
    designs = evaluation.design_mechanisms(u, TARGET, dp.Privacy(1, max_change=0.5), dp.ARMA.fit(u, 1), notes, 0.25)
    assert [x.name for x in designs] == ["input perturbation", "block sums lag 0", "block sums lag 5"]
    assert [(x.unit, x.lattice.steps) for x in designs[1:]] == [(0.25, 3)] * 2
    assert len(notes) == 1
