"""What an audit says first, from findings that are given."""

import dataclasses

from dpfast.releases.audit.findings import Audit, Finding

SHOWN = Finding(target="release", attack="a", trials=9, quantity="ε at least", found=0.25, claim=1.0)
MORE = dataclasses.replace(SHOWN, attack="b", found=0.5)
TOGETHER = dataclasses.replace(SHOWN, attack="several releases", found=2.0, claim=3.0, delta=1e-5)
BROKEN = Finding(target="simulate", attack="c", trials=9, hits=5, quantity="δ at least", found=0.5)


def test_the_verdict_stands_first_with_the_most_that_was_shown_beside_the_claim():
    made = Audit("x", 1e-6, 0.99, (BROKEN, SHOWN, MORE, TOGETHER))
    first, last = made.sentences
    assert first.startswith(
        "Nothing that was tried contradicts what a release claims. The most that was shown of ε is 0.5, and 1 is "
        "claimed (δ = 1e-06)."
    )
    assert last.startswith("simulate claims nothing, and keeps nothing: in 5 of 9 runs")
    text = " ".join(str(made).split())
    assert text.index(first) < text.index(last) < text.index("target attack")
    shown = made._repr_html_()
    assert shown.index("Nothing that was tried") < shown.index("<table>")


def test_without_a_bound_of_epsilon_none_is_said_to_be_shown():
    assert "most that was shown" not in Audit("x", 1e-6, 0.99, (BROKEN,)).sentences[0]


def test_a_contradiction_stands_before_what_was_expected():
    worse = dataclasses.replace(SHOWN, found=1.5)
    first, last = Audit("x", 1e-6, 0.99, (BROKEN, worse)).sentences
    assert first.startswith("The claim ε = 1 is VIOLATED: a: ε ≥ 1.5 at δ = 1e-06, with confidence 0.99.")
    assert last.startswith("simulate claims nothing")
