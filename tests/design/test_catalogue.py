"""The catalogue says of each family what its design function says, and is the only list of families."""

import ast
import dataclasses
import functools
import inspect
from pathlib import Path

import numpy as np
import pytest

import dpfast as dp
from dpfast.design.catalogue import FAMILIES, can_design, family_label, family_of, redesign_receiver
from dpfast.mechanisms.mechanism_kinds import AnyMechanism

PACKAGE = Path(dp.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"  # beside the tests, also where the package is installed
EVENTS = dp.Privacy(1, 0.01, max_events=2)
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5])
GIVEN = {"model": CHAIN, "lag": 2, "mean_square": 1.0, "n_coefficients": 4, "n_measurements": 8, "tolerance": 0.1}
TARGETS = {"filter": dp.Filter([1], [1, -0.5]), "horizon": dp.running_sum(16)}
BY_LAG = {"optimal_factorization"}  # whose model is optional, and with it the lag


@functools.cache
def made(name, kind):
    """Return the design of a family for two events, where the family serves several."""
    privacy = EVENTS if "several_events" in FAMILIES[name].serves else dp.Privacy(1, 0.01)
    return FAMILIES[name].make(TARGETS[kind], privacy, **GIVEN)


def parameters(family):
    return inspect.signature(family.design).parameters


def test_families_are_the_design_functions_of_the_package():
    public = (getattr(dp, name) for name in dp.__all__)
    designs = {
        x.__name__
        for x in public
        if inspect.isfunction(x) and {"target", "privacy", "name"} <= {*inspect.signature(x).parameters}
    }
    assert designs == FAMILIES.keys() == {x.design.__name__ for x in FAMILIES.values()}


def test_needs_are_the_parameters_of_the_design_functions():
    for name, family in FAMILIES.items():
        for need in ("model", "mean_square"):
            required = need in parameters(family) and parameters(family)[need].default is inspect.Parameter.empty
            assert (need in family.needs) == required, (name, need)
        assert ("lag" in family.needs) == ("lag" in parameters(family) and name not in BY_LAG), name


def designs_without_delta(family, kind, noise):
    try:
        mechanism = family.make(TARGETS[kind], dp.Privacy(1), **GIVEN, **noise)
        return mechanism.guarantee_terms().delta == 0 and mechanism.noise_std > 0
    except ValueError:
        return False


def test_pure_guarantees_are_those_that_can_be_designed_without_delta():
    for name, family in FAMILIES.items():
        kinds = [x for x in TARGETS if x in family.serves]
        tries = [designs_without_delta(family, x, noise) for x in kinds for noise in ({}, {"noise": "laplace"})]
        assert ("pure" in family.serves) == any(tries), name


def test_families_with_a_noise_for_no_delta_take_it_by_themselves():
    asked = {name for name, x in FAMILIES.items() if x.pure_noise is not None}
    assert asked == {"input_perturbation", "optimal_factorization"}
    made_pure = FAMILIES["input_perturbation"].make(TARGETS["filter"], dp.Privacy(2))
    assert made_pure.noise_std == pytest.approx(2**0.5 / 2)  # of Laplace noise of scale 1/ε
    assert made("input_perturbation", "filter").noise is None


def test_a_smoother_may_be_asked_for_by_name_of_all_that_design_one():
    """By types too: where a lag of None makes a smoother, its name does."""
    lags = {name: inspect.signature(x.design).parameters.get("lag") for name, x in FAMILIES.items()}
    known = {name: lag.annotation for name, lag in lags.items() if lag is not None}
    assert {"optimal", "block_sums", "randomized_response"} < set(known)
    assert {name: x for name, x in known.items() if x != "Lag"} == {"decision_feedback": "int"}  # which has no smoother


def test_a_unit_is_for_noise_on_the_integers():
    perturbed = FAMILIES["input_perturbation"]
    for privacy, noise in ((dp.Privacy(1, 1e-6), {}), (dp.Privacy(1), {}), (dp.Privacy(1), {"noise": "laplace"})):
        assert perturbed.make(TARGETS["filter"], privacy, unit=0.5, **noise) is not None
    rounded = perturbed.make(TARGETS["filter"], dp.Privacy(1), unit=0.5, noise="geometric")
    assert rounded.noise.unit == 0.5
    assert FAMILIES["block_sums"].make(TARGETS["filter"], dp.Privacy(1), unit=0.5, model=dp.ARMA([1])).unit == 0.5


def test_families_that_serve_a_release_are_those_that_the_exact_path_takes():
    for name, family in FAMILIES.items():
        kind = next(x for x in TARGETS if x in family.serves)
        assert ("release" in family.serves) == (made(name, kind).release_hindrance() == ""), name


@pytest.mark.parametrize("kind", TARGETS)
def test_families_design_for_what_they_serve_and_refuse_the_rest(kind):
    for name, family in FAMILIES.items():
        if kind in family.serves:
            assert isinstance(made(name, kind), AnyMechanism), name
        else:
            with pytest.raises(ValueError, match=r"target|horizon"):
                family.make(TARGETS[kind], dp.Privacy(1, 0.01), **GIVEN)


def test_several_events_are_refused_by_families_that_do_not_serve_them():
    kept = {name for name, x in FAMILIES.items() if "several_events" not in x.serves}
    assert kept == {"robust"}
    for name in kept:
        with pytest.raises(dp.DesignError, match="max_events"):
            FAMILIES[name].make(TARGETS["filter"], EVENTS, **GIVEN)


def test_levels_are_needed_where_they_are_said_to_be():
    plain = dp.ARMA([1.0], [1, -0.5])
    for name, family in FAMILIES.items():
        if "filter" not in family.serves or "model" not in parameters(family):
            continue  # a model that is not given needs no levels
        assert can_design(family, CHAIN.levels), name
        assert can_design(family, None) == (not family.needs & {"levels", "two_levels"}), name
        if not can_design(family, None):
            with pytest.raises(dp.DesignError, match="levels"):
                family.make(TARGETS["filter"], dp.Privacy(1, 0.01), **(GIVEN | {"model": plain}))
        else:
            assert family.make(TARGETS["filter"], dp.Privacy(1, 0.01), **(GIVEN | {"model": plain})), name


def test_two_levels_are_needed_where_they_are_said_to_be():
    three = dp.IndependentLevels([0, 1, 2], [0.25, 0.5, 0.25])
    for name, family in FAMILIES.items():
        if "filter" not in family.serves or not family.needs & {"levels", "two_levels"}:
            continue
        assert can_design(family, three.levels) == ("two_levels" not in family.needs), name
        if not can_design(family, three.levels):
            with pytest.raises(dp.DesignError, match="two levels"):
                family.make(TARGETS["filter"], dp.Privacy(1, 0.01), **(GIVEN | {"model": three}))


def test_names_of_mechanisms_tell_their_families():
    for name, family in FAMILIES.items():
        kind = next(x for x in TARGETS if x in family.serves)
        assert family_of(made(name, kind).name) == name
        assert family_label(name) == family.label


@pytest.mark.parametrize("name", [name for name, x in FAMILIES.items() if x.redesign is not None])
def test_a_receiver_that_is_redesigned_behind_the_same_prefilter_errs_as_much(name):
    mechanism = made(name, "filter")
    for gain in (1.0, 4.0):  # a prefilter and noise that are larger by a factor
        receiver = redesign_receiver(mechanism, mechanism.prefilter * gain, mechanism.noise_std * gain).scaled(gain)
        if mechanism.predicted_mse is None:
            np.testing.assert_allclose(receiver.forward, mechanism.receiver.forward, rtol=1e-6, atol=1e-9)
        else:
            found = dataclasses.replace(mechanism, receiver=receiver).predicted_mse
            assert found == pytest.approx(mechanism.predicted_mse, rel=1e-6)


def test_a_family_with_a_redesign_is_one_that_can_be_released():
    for name, family in FAMILIES.items():
        filters = "release" in family.serves and name not in ("block_sums", "randomized_response")  # G = 1
        assert (family.redesign is not None) == bool(family.redesigned) == filters, name


def test_every_family_is_in_the_docs():
    text = "".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))
    assert [name for name in FAMILIES if f"`{name}" not in text and f"dp.{name}" not in text] == []


def test_no_other_module_lists_families():
    """Names or labels of four families in one module are a list; the paper's example shows what the paper shows."""
    words = {*FAMILIES} | {x.label for x in FAMILIES.values()} - {"optimal", "robust"}
    lists = {}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if sum(word in text for word in words) < 4:
            continue
        tree = ast.parse(text)
        texts = {x.value for x in ast.walk(tree) if isinstance(x, ast.Constant) and isinstance(x.value, str)}
        if len(found := words & texts) >= 4:
            lists[str(path.relative_to(PACKAGE))] = found
    later = {"simulation/sweep/parameters.py"}  # which options designs have that stores from before do not know
    assert lists.keys() - {"simulation/paper_example.py", "__init__.py"} - later == {"design/catalogue.py"}
