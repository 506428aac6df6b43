import colorsys
import inspect

import pytest

import dpfast as dp
from dpfast.design import catalogue
from dpfast.design.catalogue import family_label, family_of
from dpfast.reports.mechanism_styles import BOUND, FAMILIES, choose_styles

PUBLIC = {name: getattr(dp, name) for name in dp.__all__}
DESIGNS = {
    name
    for name, x in PUBLIC.items()
    if inspect.isfunction(x) and {"target", "privacy", "name"} <= set(inspect.signature(x).parameters)
}


def test_every_design_function_has_a_label_and_a_style():
    assert DESIGNS == FAMILIES.keys()
    assert family_label("decision_feedback") == "DFE"
    assert family_label("of my own") == "of my own"


def test_families_are_told_apart_with_and_without_colours():
    looks = list(FAMILIES.values())
    for kind in ("line", "marker"):
        assert len({str(getattr(x, kind)) for x in looks}) == len(FAMILIES)
    for_filters = {name for name, x in catalogue.FAMILIES.items() if "filter" in x.serves}
    for names in (for_filters, FAMILIES.keys() - for_filters):
        assert len({FAMILIES[x].colour for x in names}) == len(names)
    assert BOUND.width > 3 * max(x.width for x in looks)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("optimal smoother", "optimal"),
        ("LMMSE, lag 5", "lmmse"),
        ("LMMSE", "lmmse"),
        ("DFE soft lag 5 (own prefilter)", "decision_feedback"),
        ("saved 2: input perturbation (epsilon 1, delta 0.1)", "input_perturbation"),
        ("exact, any: LZF, F", "zero_forcing"),
        ("output_perturbation", "output_perturbation"),
        ("optimal factorization lag 2", "optimal_factorization"),
        ("binary tree (plain)", "binary_tree"),
        ("optimally mine", None),
        ("my LZF", None),
    ],
)
def test_names_tell_families(name, expected):
    assert family_of(name) == expected


def hue(colour):
    return colorsys.rgb_to_hsv(*(int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)))[0]


def test_the_same_family_has_shades_of_one_colour_and_other_lines_and_markers():
    looks = choose_styles(["LMMSE", "LMMSE smoother", "LZF", "LMMSE lag 5"])
    assert looks["LZF"] == FAMILIES["zero_forcing"]
    several = [looks[x] for x in ("LMMSE", "LMMSE smoother", "LMMSE lag 5")]
    assert several[0] == FAMILIES["lmmse"]
    assert len({x.colour for x in several}) == 3
    assert [hue(x.colour) for x in several] == pytest.approx([hue(FAMILIES["lmmse"].colour)] * 3, abs=0.01)
    assert len({str(x.line) for x in several}) == len({x.marker for x in several}) == 3


def test_mechanisms_of_no_family_get_colours_that_are_free():
    looks = choose_styles(["mine", "optimal lag 2", "yours"])
    assert len({x.colour for x in looks.values()}) == 3
    assert looks["optimal lag 2"] == FAMILIES["optimal"]
    assert len(choose_styles([*FAMILIES, *(f"mine {i}" for i in range(20))])) == len(FAMILIES) + 20
