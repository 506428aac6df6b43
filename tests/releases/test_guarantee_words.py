"""The words and letters of a guarantee are explained, and its odds are those of Bayes' rule."""

import math
import re

import pytest

import dpfast as dp
from dpfast.releases.guarantee_words import say_odds


def test_every_letter_and_term_of_the_lines_is_explained():
    """Whoever meets a letter finds it below; a guarantee without it does not explain it."""
    plan = dp.exact(dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6)), dp.Inputs(0, 20, unit=0.5))
    text, words = str(plan.guarantee), " ".join(f"{x} {y}" for x, y in plan.guarantee.words().items())
    for letter in re.findall("[α-ωΑ-Ω]²?", "\n".join(plan.guarantee.items().values())):
        assert letter in words
    assert {"zCDP", "sensitivity", "discrete Gaussian", "SHA-256"} <= set(
        re.findall(r"zCDP|SHA-256|sensitivity|discrete Gaussian", words)
    )
    assert not re.search(r"\b[uv]\b", text)
    assert "lattice" not in text
    pure = dp.exact(dp.input_perturbation(dp.Filter([1]), dp.Privacy(1), noise="geometric"), dp.Inputs(0, 20)).guarantee
    assert not {"μ", "Δ²", "taps, SHA-256"} & set(pure.words())
    assert "without exception (δ is 0)" in pure.sentence


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_odds_are_those_of_bayes(delta):
    low, high = (float(x) / 100 for x in re.findall(r"([\d.]+)\s%", say_odds(2.0, delta))[1:])
    assert low == pytest.approx(1 / (1 + math.exp(2)), rel=5e-3)
    assert high == pytest.approx(1 / (1 + math.exp(-2)), rel=5e-3)
    assert low + high == pytest.approx(1, abs=1e-9)
