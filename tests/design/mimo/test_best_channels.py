"""The best of several streams, against designs by hand."""

import itertools
import math

import numpy as np
import pytest

import dpfast as dp

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW], [QUICK, -1 * QUICK]])
MODELS = [dp.ARMA([0.5], [1, -0.5]), dp.ARMA([0.8], [1, -0.8], mean=3)]
LATE = dp.Filter([0, 1])
LOOSE = {"tolerance": 0.05}


def privacy(adjacency="one_input", epsilon=1.0, delta=0.05):
    return dp.Privacy(epsilon, delta, adjacency=adjacency)


def by_hand(demand, lag):
    return {
        "LZF, general": dp.zero_forcing(TARGET, demand, prefilter="general", **LOOSE),
        "optimal, general": dp.optimal(TARGET, demand, MODELS, lag=lag, prefilter="general", **LOOSE),
        "optimal": dp.optimal(TARGET, demand, MODELS, lag=lag, **LOOSE),
        "optimal, separate": dp.optimal(TARGET, demand, MODELS, lag=lag, prefilter="separate", **LOOSE),
        "block sums": dp.block_sums(TARGET, demand, MODELS, lag=lag),
        "LZF": dp.zero_forcing(TARGET, demand, **LOOSE),
        "LZF, separate": dp.zero_forcing(TARGET, demand, prefilter="separate", **LOOSE),
        "input perturbation": dp.input_perturbation(TARGET, demand),
        "output perturbation": dp.output_perturbation(TARGET, demand),
    }


@pytest.mark.parametrize(
    ("adjacency", "epsilon", "lag"),
    [("one_input", 0.5, 0), pytest.param("each_input", 8.0, 2, marks=pytest.mark.long)],
)
def test_the_one_of_the_least_error_comes_first_and_the_others_in_order(adjacency, epsilon, lag):
    demand = privacy(adjacency, epsilon, 1e-6 if epsilon < 1 else 0.05)
    errors = {name: x.predicted_rmse for name, x in by_hand(demand, lag).items()}
    found = dp.best(TARGET, demand, MODELS, lag=lag, **LOOSE)
    rows = [row for row in found.choice.rows if row.status != "reference"]
    assert [row.rmse for row in rows] == pytest.approx(sorted(errors.values()), rel=1e-9)
    assert {row.name: row.rmse for row in rows} == pytest.approx(errors, rel=1e-9)
    assert found.predicted_rmse == pytest.approx(min(errors.values()), rel=1e-9)
    assert [x.predicted_rmse for x in found.alternatives] == pytest.approx(sorted(errors.values())[1:], rel=1e-9)
    assert found.choice.sentence.startswith(f"Use {rows[0].name}: RMSE ")


def test_a_study_of_all_of_them_finds_what_was_predicted_of_each():
    """Every output and the sum within 5 standard errors, on streams that no design was made with."""
    found = dp.best(TARGET, privacy(epsilon=0.5), MODELS, lag=2, **LOOSE)
    study = dp.monte_carlo([found, *found.alternatives], MODELS, n_streams=64, n_samples=2000, seed=5)
    assert {x.name for x in study} == {
        *(
            "optimal lag 2",
            "optimal, general lag 2",
            "optimal, separate lag 2",
            "block sums lag 2",
            "LZF",
            "LZF, general",
            "LZF, separate",
        ),
        *("input perturbation", "output perturbation"),
    }
    assert [x.name for x in study] == [x.name for x in (found, *found.alternatives)]
    for x in study.rows:
        standard_error = x.stream_mse.std(ddof=1) / math.sqrt(x.n_streams)
        assert abs(x.mse - x.predicted_rmse**2) < 5 * standard_error, x.name
    assert list(study.constants()) == ["constant", "constant, output 0", "constant, output 1"]
    (row,) = [x for x in found.choice.rows if x.status == "reference"]
    assert study.constants()["constant"] == pytest.approx(row.rmse, rel=1e-9)


def test_the_constant_has_the_variance_of_the_outputs():
    """By long impulse responses."""
    h = TARGET.impulse(2000)
    variance = 0.0
    for j, (pole, std) in enumerate([(0.5, 0.5), (0.8, 0.8)]):
        shaping = std * pole ** np.arange(2000.0)
        variance += sum((np.convolve(row[j], shaping)[:2000] ** 2).sum() for row in h)
    (row,) = [x for x in dp.best(TARGET, privacy(), MODELS, **LOOSE).choice.rows if x.status == "reference"]
    assert row.rmse == pytest.approx(math.sqrt(variance), rel=1e-9)


def test_where_nothing_helps_the_sentence_says_so():
    found = dp.best(TARGET, privacy(epsilon=0.001, delta=1e-9), MODELS, **LOOSE)
    assert found.choice.sentence.startswith("Publish the means of the outputs (constant), at no cost of privacy: RMSE")
    assert "hardly better" in found.choice.sentence


def test_without_a_delta_there_are_pure_block_sums():
    found = dp.best(TARGET, privacy("each_input", delta=0.0), MODELS)
    assert isinstance(found, dp.BlockChannelsMechanism)
    assert [x.guarantee for x in found.choice.rows[:1]] == ["pure ε"]
    assert "optimal" in dict(found.choice.reasons)


@pytest.mark.parametrize(
    ("target", "models"),
    [
        *itertools.product(
            [TARGET, dp.total(2) * SLOW, dp.FilterMatrix([[SLOW, 1], [QUICK, 2], [1, SLOW]])], [MODELS, None]
        ),
        (dp.FilterMatrix([[SLOW, 0], [0, SLOW * LATE]]), None),
        (dp.FilterMatrix([[SLOW * SLOW, 2 * SLOW], [dp.Filter([1, 2]), 5]]), None),  # no inverse of it is stable
    ],
)
def test_what_can_be_released_has_an_exact_form_and_block_sums_always_do(target, models):
    best = dp.best(target, privacy("each_input_same_time", 8.0), models, **LOOSE)
    rows = {row.name: row.releasable for row in best.choice.rows if row.status != "reference"}
    for (name, releasable), mechanism in zip(rows.items(), (best, *best.alternatives), strict=True):
        if releasable:  # for certain; of others some can
            assert dp.exact(mechanism, dp.Inputs(-50, 50, n_streams=2), tolerance=0.2).guarantee.epsilon <= 8, name
    assert rows["LZF"]
    assert models is None or rows["block sums"]


def test_what_has_no_exact_form_is_left_out_if_asked():
    """A prefilter that mixes inputs behind different filters in fewer channels cannot be undone once it is rounded."""
    target = dp.FilterMatrix([[SLOW, QUICK]])
    every, real = (dp.best(target, privacy(), releasable=x, **LOOSE) for x in (False, True))
    left_out = [row.name for row in every.choice.rows if not row.releasable]
    assert left_out
    assert [row.name for row in real.choice.rows] == [x.name for x in every.choice.rows if x.name not in left_out]
    for name in left_out:
        assert "no exact release" in dict(real.choice.reasons)[name]
    first, second = left_out[0], real.choice.rows[0].name
    assert every.choice.rows[0].name == first
    assert f"There is no exact release of {first} so far; of those" in every.choice.sentence
    assert f"(releasable=True) {second} errs least" in every.choice.sentence


def test_without_models_nothing_distorts():
    found = dp.best(TARGET, privacy(), **LOOSE)
    assert found.choice.rows[0].name == "LZF, general"  # which has the least error of all of them
    assert [x.status for x in found.choice.rows] == ["chosen", "", "", "", ""]
    assert dict(found.choice.reasons)["block sums"] == "a model of each input is needed"
    assert "explains" not in found.choice.sentence


def test_noise_that_can_be_drawn_is_taken_where_a_release_asks_for_it():
    """Staircases, which have the least variance where one may change a value by several, cannot."""
    demand = dp.Privacy(1, max_change=[3, 1], adjacency="one_input")
    every, real = (dp.best(TARGET, demand, MODELS, releasable=x) for x in (False, True))
    assert "no exact release of block sums so far, nor of any other" in every.choice.sentence
    assert real.predicted_mse == dp.block_sums(TARGET, demand, MODELS, noise="geometric").predicted_mse
    assert dp.exact(real, dp.Inputs(0, 9, n_streams=2)).guarantee.epsilon <= 1


def test_streams_that_depend_on_one_another_are_said_to_need_models_of_their_own():
    both = dp.VectorARMA([[[0.5, 0.1], [0.0, 0.3]]], innovation_covariance=[[1.0, 0.2], [0.2, 1.0]])
    best = dp.best(TARGET, privacy(), both, tolerance=1e-3)
    assert "independent streams" in dict(best.choice.reasons)["block sums"]
    assert [x.name for x in best.choice.rows[:3]] == ["optimal, general", "optimal", "LMMSE"]
    assert best.predicted_mse < min(x.predicted_mse for x in best.choice.alternatives)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"simulate": True}, "simulate must be False for a FilterMatrix, got True"),
        ({"online": False}, "online must be True for a FilterMatrix, got False"),
        ({"minimize": "worst_step"}, "minimize must be 'mean' for a FilterMatrix, got 'worst_step'"),
        ({"lag": None}, "lag must be a number of samples for a FilterMatrix"),
        ({"model": MODELS[:1]}, "model must be a sequence of 2 models"),
        ({"tolerance": 3}, "tolerance must be"),
        ({"unit": math.nan}, "unit must be"),
        ({"privacy": dp.Privacy(1, 0.1)}, "adjacency must be said for 2 inputs"),
        ({"privacy": privacy(delta=0.0), "model": None}, "no mechanism of several streams serves here. No optimal,"),
    ],
)
def test_what_does_not_fit_is_named(given, words):
    with pytest.raises(ValueError, match=words):
        dp.best(**{"target": TARGET, "privacy": privacy(), "model": MODELS, **LOOSE, **given})
