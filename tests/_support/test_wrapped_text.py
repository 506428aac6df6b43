"""Lines for a terminal: no word is lost, none is too long, names stand before what is said of them."""

from hypothesis import given
from hypothesis import strategies as st

from dpfast._support.wrapped_text import wrap_facts, wrap_items, wrap_paragraph

WORDS = st.lists(st.text("abcε-é0", min_size=1, max_size=30), min_size=1, max_size=60).map(" ".join)


@given(WORDS, st.integers(0, 30))
def test_a_paragraph_has_the_same_words_in_lines_that_are_not_wider(text, indent):
    lines = wrap_paragraph(text, indent).split("\n")
    assert " ".join(lines).split() == text.split()
    assert all(len(x) <= 100 and x.startswith(" " * indent) for x in lines)


def test_a_line_has_100_characters_and_no_more():
    assert wrap_paragraph(f"{'x' * 49} {'y' * 50}").count("\n") == 0
    assert wrap_paragraph(f"{'x' * 50} {'y' * 50}").count("\n") == 1


def test_a_word_that_is_too_long_stays_whole():
    assert "x" * 200 in wrap_paragraph(f"a {'x' * 200} b")


@given(st.dictionaries(st.text("abc ε", min_size=1, max_size=20).filter(str.strip), WORDS, max_size=4))
def test_facts_stand_behind_their_names(facts):
    found = {}
    for line in wrap_facts(facts).splitlines():
        if line[:23].strip():
            name, value = line[2:22].rstrip(), line[23:]
            found[name] = value
        else:
            found[name] += line[22:]
    assert found == {name.rstrip(): value for name, value in facts.items()}


def test_items_stand_behind_dashes():
    text = wrap_items(["long " * 36, "short"])
    assert [x[:4] for x in text.splitlines()] == ["  - ", "    ", "  - "]
