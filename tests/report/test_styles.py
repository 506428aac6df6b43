import itertools

import pytest

from dpfast.report.styles import FAMILIES, GREY, family, label, lighter, styles
from dpfast.studies.values import DESIGNS


def test_every_design_has_a_style_of_its_own():
    assert set(FAMILIES) == set(DESIGNS)
    looks = [x.style for x in FAMILIES.values()]
    for part in ("colour", "line", "marker"):  # the last two are for those who see grey
        assert len({getattr(x, part) for x in looks}) == len(looks)


def test_names_tell_families():
    assert family("LMMSE lag 5") == family("saved: LMMSE smoother") == family("lmmse") == "lmmse"
    assert family("LMMSEx") is None
    assert (label("zero_forcing"), label("mine")) == ("LZF", "mine")


def test_others_of_a_family_have_its_colour_and_another_line_and_marker():
    looks = styles(["LMMSE lag 0", "LZF", "LMMSE lag 5", "LMMSE smoother"])
    mine = [looks[x] for x in looks if x.startswith("LMMSE")]
    assert mine[0] == FAMILIES["lmmse"].style
    assert {x.colour for x in mine} == {FAMILIES["lmmse"].style.colour}
    for one, other in itertools.combinations(mine, 2):
        assert one.line != other.line
        assert one.marker != other.marker
    assert looks["LZF"] == FAMILIES["zero_forcing"].style


def test_families_can_be_said():
    assert styles({"mine": "lmmse"})["mine"] == FAMILIES["lmmse"].style


def test_unknown_mechanisms_get_colours_that_are_free():
    looks = styles(["LZF", "mine", "yours"])
    assert len({x.colour for x in looks.values()}) == 3
    assert styles([*FAMILIES, "mine"])["mine"].colour == GREY


def grey(colour):
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue


@pytest.mark.parametrize("colour", [x.style.colour for x in FAMILIES.values()])
def test_lines_are_seen_on_white_and_text_on_lighter_ones(colour):
    assert grey(colour) < 180
    assert sum(lighter(colour, 0.5)) / 3 > 0.5
    assert lighter(colour, 1) == (1, 1, 1)
