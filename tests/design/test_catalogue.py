"""The catalogue says of each family what its design function says, and is the only list of families."""

import ast
import dataclasses
import functools
import inspect
import typing
from pathlib import Path

import numpy as np
import pytest

import dpfast as dp
from dpfast.design.catalogue import FAMILIES, family_label, family_of, redesign_receiver

PACKAGE = Path(dp.__file__).parent
DOCS = PACKAGE.parent / "docs"
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
        if inspect.isfunction(x) and {"privacy", "name"} <= {*inspect.signature(x).parameters}
    }
    assert designs == FAMILIES.keys() == {x.design.__name__ for x in FAMILIES.values()}


def test_needs_are_the_parameters_of_the_design_functions():
    for name, family in FAMILIES.items():
        for need in ("model", "mean_square"):
            required = need in parameters(family) and parameters(family)[need].default is inspect.Parameter.empty
            assert (need in family.needs) == required, (name, need)
        assert ("lag" in family.needs) == ("lag" in parameters(family) and name not in BY_LAG), name


def test_pure_guarantees_are_those_of_laplace_noise():
    for name, family in FAMILIES.items():
        hints = typing.get_type_hints(family.design)
        assert ("pure" in family.serves) == ("laplace" in typing.get_args(hints.get("noise"))), name


@pytest.mark.parametrize("kind", TARGETS)
def test_families_design_for_what_they_serve_and_refuse_the_rest(kind):
    for name, family in FAMILIES.items():
        if kind in family.serves:
            assert isinstance(made(name, kind), dp.Mechanism | dp.MatrixMechanism), name
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
        if "levels" in family.needs:
            with pytest.raises(dp.DesignError, match="levels"):
                family.make(TARGETS["filter"], dp.Privacy(1, 0.01), **(GIVEN | {"model": plain}))
        else:
            assert family.make(TARGETS["filter"], dp.Privacy(1, 0.01), **(GIVEN | {"model": plain})), name


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


def test_a_family_with_a_redesign_is_one_of_filters():
    for name, family in FAMILIES.items():
        assert (family.redesign is not None) == bool(family.redesigned) == ("filter" in family.serves), name


def test_every_family_is_in_the_docs():
    text = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
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
    assert lists.keys() - {"simulation/paper_example.py", "__init__.py"} == {"design/catalogue.py"}
