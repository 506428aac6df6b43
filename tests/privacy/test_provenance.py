import dataclasses
import pickle

import numpy as np
import pytest

import dpfast as dp
from dpfast.privacy import provenance

TARGET, PRIVACY = dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-3)
GIVEN = ["target", "epsilon", "delta", "max_change", "max_events", "min_separation", "calibration"]
U = np.random.default_rng(1).integers(0, 3, 200).astype(float)
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [0, 1])
FITTED = dp.ARMA.fit(U, 2, levels=[0, 1, 2])
G = dp.Filter([1], [1, -0.5])


def feedback(**options):
    return dp.decision_feedback(TARGET, PRIVACY, CHAIN, n_forward=4, n_feedback=2, **options)


# --- models ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["public", "assumed", "fitted-from-private"])
def test_models_carry_the_source_they_are_given(word):
    models = [
        dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [0, 1], source=word),
        dp.IndependentLevels([0, 1], [0.5, 0.5], source=word),
        dp.ARMA([1], [1, -0.5], source=word),
        dp.ARMA.from_shaping(G, source=word),
        dp.ARMA.fit(U, 1, source=word),
    ]
    assert [x.source for x in models] == [word] * 5


def test_models_are_assumed_but_for_fits():
    coin = dp.IndependentLevels([0, 1], [0.5, 0.5])
    assert [x.source for x in (CHAIN, coin, dp.ARMA([1]), dp.ARMA.from_shaping(G))] == ["assumed"] * 4
    assert FITTED.source == "fitted-from-private"
    assert FITTED.fitted_order == 2
    assert dp.ARMA([1]).fitted_order is None


@pytest.mark.parametrize("word", ["private", "Public", None, 1, ["public"], np.array(["public", "assumed"])])
def test_other_words_are_refused(word):
    with pytest.raises(ValueError, match=r"^source must be one of 'public', 'assumed', 'fitted-from-private', got"):
        dp.ARMA([1], source=word)


def test_a_model_of_one_s_own_without_a_source_is_refused():
    class Own:
        mean, variance, levels, probabilities, shaping = 0.0, 1.0, None, None, dp.Filter([1])
        psd = sample = compiled = len
        source = "guessed"

    with pytest.raises(ValueError, match=r"^model.source must be one of .* got 'guessed'"):
        dp.lmmse(TARGET, PRIVACY, Own())


# --- designs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("design", "options", "more"),
    [
        (dp.input_perturbation, {}, []),
        (dp.output_perturbation, {}, []),
        (dp.zero_forcing, {}, ["tolerance"]),
        (dp.lmmse, {"model": dp.ARMA([1])}, ["lag", "tolerance", "model", "mean"]),
        (dp.lmmse, {"model": CHAIN, "lag": 2, "prefilter": G}, ["lag", "prefilter", "model", "mean", "levels"]),
        (
            dp.decision_feedback,
            {"model": CHAIN, "n_forward": 4, "n_feedback": 2, "prefilter": G},
            ["lag", "prefilter", "decision", "n_forward", "n_feedback", "model", "mean", "levels"],
        ),
        (
            dp.decision_feedback,
            {"model": CHAIN, "n_forward": 4, "n_feedback": 2, "prefilter": "zero-forcing"},
            ["lag", "prefilter", "decision", "n_forward", "n_feedback", "tolerance", "model", "mean", "levels"],
        ),
    ],
)
def test_every_input_of_a_design_has_a_source(design, options, more):
    mechanism = design(TARGET, PRIVACY, **options)
    assert dict(mechanism.sources) == dict.fromkeys(GIVEN + more, "assumed")
    assert "private data" not in mechanism.summary()


def test_a_fit_shows_in_the_mechanism_and_its_summary():
    mechanism = dp.lmmse(TARGET, PRIVACY, FITTED, prefilter=G)
    assert provenance.fitted_inputs(mechanism.sources) == ("model", "mean", "levels")
    assert mechanism.sources["order"] == "assumed"
    assert "fitted from private data: model, mean, levels" in mechanism.summary()


def test_what_is_said_of_inputs_is_kept_and_what_is_not_stays():
    mechanism = dp.zero_forcing(TARGET, PRIVACY)
    told = mechanism.with_sources(epsilon="public", tolerance="fitted-from-private").with_sources(delta="public")
    found = {k: v for k, v in told.sources.items() if v != "assumed"}
    assert found == {"epsilon": "public", "delta": "public", "tolerance": "fitted-from-private"}
    assert "fitted from private data: tolerance" in told.summary()
    assert mechanism.sources["epsilon"] == "assumed"
    assert pickle.loads(pickle.dumps(told)).sources == told.sources


def test_sources_cannot_be_changed():
    with pytest.raises(TypeError):
        dp.zero_forcing(TARGET, PRIVACY).sources["target"] = "public"


def test_nothing_takes_back_that_an_input_was_fitted_to_private_data():
    mechanism = dp.lmmse(TARGET, PRIVACY, FITTED, prefilter=G)
    with pytest.raises(ValueError, match=r"^mean must stay 'fitted-from-private', got 'public': design again"):
        mechanism.with_sources(mean="public")

    trusted = dp.lmmse(TARGET, PRIVACY, CHAIN, prefilter=G).with_sources(model="public", mean="public")
    assert provenance.fitted_inputs(dataclasses.replace(trusted, model=FITTED).sources) == ("model", "mean", "levels")


def test_unknown_names_and_words_are_refused():
    mechanism = dp.input_perturbation(TARGET, PRIVACY)
    with pytest.raises(ValueError, match=r"^'lag' must be an input of this design, one of target, epsilon"):
        mechanism.with_sources(lag="public")
    with pytest.raises(ValueError, match=r"^target must be one of 'public'"):
        mechanism.with_sources(target="secret")


@pytest.mark.parametrize("other", [None, CHAIN])
def test_what_was_fitted_stays_so_when_the_model_is_replaced(tmp_path, other):
    """The filters still come from the fit."""
    mechanism = dp.lmmse(TARGET, PRIVACY, FITTED, lag=0, prefilter=G)
    bare = dataclasses.replace(mechanism, model=other)
    dp.save(bare, tmp_path / "bare.json")
    for x in (bare, dp.load(tmp_path / "bare.json")):
        assert {name for name, word in x.sources.items() if word == "fitted-from-private"} >= {"model", "mean"}
        assert "not for release" in x.summary()
    with pytest.raises(ValueError, match="model must stay 'fitted-from-private'"):
        bare.with_sources(model="public")
