"""Guarantees: every number in words and in JSON, recomputed from outside the package."""

import hashlib
import json
import math
import platform
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from helpers import fakes
from hypothesis import given
from hypothesis import strategies as st

import dpfast as dp
from dpfast.privacy.discrete_gaussian_accounting import Shift, Sigma
from dpfast.releases.guarantee import Guarantee
from dpfast.releases.guarantee_terms import gaussian_terms
from dpfast.releases.rounded_numbers import format_rounded_up

mpmath.mp.dps = 80
ETA = mpmath.mpf("2.01") * mpmath.exp(-8 * mpmath.pi**2)


def exactly(x):
    """A decimal, a float or a fraction as it is."""
    x = Fraction(x)
    return mpmath.mpf(x.numerator) / x.denominator


def true_delta(epsilon, shifts):
    """Of the lemma of the accountant, by Balle and Wang (2018), in 80 digits."""
    mu = mpmath.sqrt(exactly(sum(Fraction(square) / (variance - 4) for square, variance, _ in shifts)))
    n = sum(n for *_, n in shifts)
    level = exactly(epsilon) - n * mpmath.log((1 + 3 * ETA) / (1 - 3 * ETA))

    def tail(x):
        return mpmath.erfc(x / mpmath.sqrt(2)) / 2

    continuous = tail(level / mu - mu / 2) - mpmath.exp(level) * tail(level / mu + mu / 2)
    return continuous * (1 + 3 * ETA) ** n


def concentrated_delta(epsilon, shifts):
    """Of ρ-zCDP, by Corollary 13 of Canonne, Kamath and Steinke (2020), at the best α, in 80 digits."""
    rho, level = exactly(sum(Fraction(square) / variance / 2 for square, variance, _ in shifts)), exactly(epsilon)

    def log_delta(a):
        return (a - 1) * (a * rho - level) - mpmath.log(a - 1) + a * mpmath.log(1 - 1 / a)

    low, high = mpmath.mpf(1) + mpmath.mpf(10) ** -20, 2 + level / rho
    for _ in range(200):  # it is convex
        first, second = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, second) if log_delta(first) < log_delta(second) else (first, high)
    return mpmath.exp(log_delta(low))


def proven(epsilon, delta, shifts):
    """That the pair is promised truly, by the lemma or by zCDP, and not much too much."""
    by_lemma = true_delta(epsilon, shifts) <= exactly(delta)
    assert by_lemma or concentrated_delta(epsilon, shifts) <= exactly(delta)
    assert true_delta(Fraction(epsilon) * (1 - Fraction(1, 10**3)), shifts) > exactly(delta) or epsilon == 0


def parts(text):
    """The lines by their names, those of what is not covered, and the versions; words are explained in between."""
    text = re.sub(r"\n {4,}", " ", text)  # of lines that are broken
    sentence, body, words, rest = text.split("\n\n", 3)
    sentence = sentence.replace("\n", " ")
    assert words.startswith("What these words mean:\n")
    uncovered, versions = rest.removeprefix("Not covered:\n").split("\n\n")
    lines = dict(re.match(r"  (.{20}) (.*)", line).groups() for line in body.splitlines())
    return sentence, {name.rstrip(): value for name, value in lines.items()}, uncovered.splitlines(), versions


TAPS = st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=6).filter(any)
SIGMAS = st.tuples(st.integers(2**23, 2**24), st.integers(0, 19)).filter(lambda x: x[0] >= 2 ** (x[1] + 2))


@st.composite
def releases(draw):
    """A promise of any numbers, and what it is of as plain numbers."""
    privacy = dp.Privacy(
        draw(st.floats(0.01, 20)),
        draw(st.sampled_from([1e-12, 1e-6, 0.05, 1 / 3])),
        max_change=draw(st.sampled_from([1, 0.5, 1234567.0, 3.3333333333333335])),
        max_events=draw(st.integers(1, 3)),
        min_separation=draw(st.integers(1, 5)),
    )
    streams = draw(st.integers(1, 4))
    inputs = dp.Inputs(
        *(-2, 10**7),
        unit=draw(st.sampled_from([0.5, Fraction(1, 3)])),
        centre=draw(st.integers(-2, 10**7)),
        n_streams=streams,
        streams_per_person=draw(st.integers(1, streams)),
        multiples=draw(st.booleans()),
        missing=draw(st.sampled_from([None, 2])),
    )
    taps = np.array(draw(TAPS))
    moved = []
    for a, j in draw(st.lists(SIGMAS, min_size=1, max_size=3)):
        variance = Fraction(a * a, 4**j)
        mu_squared = draw(st.floats(1e-4, 100))
        moved.append((max(1, math.floor(mu_squared * (variance - 4))), variance, draw(st.integers(1, 10**6)), a, j))
    shifts = [Shift(square, Sigma(a, j), n) for square, _, n, a, j in moved]
    own, *others = (gaussian_terms(taps, x) for x in shifts)
    guarantee = Guarantee.of(privacy, inputs, own, [x.loss for x in others])
    return guarantee, [x[:3] for x in moved], taps.tolist()


@given(releases())
def test_every_number_in_words(release):
    guarantee, shifts, taps = release
    privacy, inputs = guarantee.privacy, guarantee.inputs
    sentence, lines, _, _ = parts(str(guarantee))

    together = ", of all of them together, rounded up; of this one" * (len(shifts) > 1)
    epsilon, delta = re.match(rf"\((\S+), (\S+)\){together or ','} computed", lines["(ε, δ)"]).groups()
    proven(Decimal(epsilon), Decimal(delta), shifts)
    assert Decimal(delta) == Decimal(repr(privacy.delta))
    demanded = re.search(r"demanded: \((.*), (.*)\)", lines["(ε, δ)"]).groups()
    assert tuple(map(float, demanded)) == (privacy.epsilon, privacy.delta)

    rho, above = re.fullmatch(r"ρ = (\S+) \(at most (\S+)\)", lines["zCDP"]).groups()
    assert Fraction(rho) == sum(Fraction(square) / variance / 2 for square, variance, _ in shifts)
    assert 0 <= Fraction(above) - Fraction(rho) <= Fraction(rho) * Fraction(11, 10**6)

    mu = Fraction(lines["Gaussian DP"].removeprefix("μ = "))
    mu_squared = sum(Fraction(square) / (variance - 4) for square, variance, _ in shifts)
    assert mu_squared <= mu**2 <= mu_squared * (1 + Fraction(3, 10**5))

    groups = re.findall(r"(\d+) people: ε = (\S+?)(?:;|$)", lines["groups"])
    assert [int(size) for size, _ in groups] == [2, 5, 10]
    for size, value in groups:
        proven(Decimal(value), Decimal(delta), [(int(size) ** 2 * x, y, int(size) * n) for x, y, n in shifts])

    square, variance, _ = shifts[0]
    assert lines["squared sensitivity"] == f"Δ² = {square}"
    a, j = map(int, re.search(r"σ = (\d+)/2\^(\d+) ", lines["noise"]).groups())
    assert Fraction(a, 2**j) ** 2 == variance
    about = float(re.search(r"\(about (\S+)\)", lines["noise"])[1])
    assert about == pytest.approx(a / 2**j, rel=1e-3)
    others = re.findall(r"Δ² = (\d+) and σ = (\d+)/2\^(\d+)", lines.get("composed", ""))
    assert [(int(x), Fraction(int(a), 2 ** int(j)) ** 2) for x, a, j in others] == [x[:2] for x in shifts[1:]]

    content = b"".join(x.to_bytes(8, "little", signed=True) for x in taps)
    assert lines["prefilter"] == f"{len(taps)} integer taps, SHA-256 {hashlib.sha256(content).hexdigest()}"

    size, units = re.fullmatch(r"(\S+); after rounding (\d+) units?", lines["largest change"]).groups()
    assert float(size) == privacy.max_change
    steps = Fraction(repr(privacy.max_change)) / inputs.unit
    assert int(units) == math.floor(steps) + (not inputs.multiples)
    assert re.search(rf"size at most {re.escape(size)}[ ,]", sentence)
    low, high = re.search(r"in units from (\S+) to (\S+)$", lines["centre"]).groups()
    assert Fraction(lines["centre"].split(",")[0]) == inputs.centre
    assert (int(low), int(high)) == ((-2 - inputs.centre) / inputs.unit, (10**7 - inputs.centre) / inputs.unit)


@given(releases())
def test_every_number_in_json(release):
    guarantee, shifts, taps = release
    privacy = guarantee.privacy
    content = json.loads(guarantee.to_json(), parse_constant=pytest.fail)
    assert content["delta"] == content["demanded"]["delta"] == privacy.delta
    assert content["demanded"]["epsilon"] == privacy.epsilon
    proven(content["epsilon"], content["delta"], shifts)
    for size, value in content["groups"].items():
        proven(value, content["delta"], [(int(size) ** 2 * x, y, int(size) * n) for x, y, n in shifts])
    assert Fraction(content["zcdp_rho"]) == sum(Fraction(square) / variance / 2 for square, variance, _ in shifts)
    mu_squared = sum(Fraction(square) / (variance - 4) for square, variance, _ in shifts)
    assert mu_squared <= Fraction(content["gdp_mu"]) ** 2 <= mu_squared * (1 + Fraction(1, 10**15))
    said = [(int(x["squared_sensitivity"]), *x["sigma"], x["numbers"]) for x in content["releases"]]
    assert [(square, Fraction(a, 2**j) ** 2, n) for square, a, j, n in said] == shifts
    assert content["prefilter"] == {"taps": len(taps), "sha256": guarantee.prefilter}
    assert dp.Inputs.from_public(content["inputs"]) == guarantee.inputs
    who = ("max_change", "max_events", "min_separation")
    assert [content[name] for name in who] == [getattr(privacy, name) for name in who]
    assert f"after rounding {content['change_on_lattice']} unit" in guarantee.items()["largest change"]
    assert parts(str(guarantee))[0] == content["sentence"]
    assert guarantee.to_json() == guarantee.to_json()
    json.dumps(content, allow_nan=False)


# --- the sentence ---------------------------------------------------------------------------------


def promise(mu_squared=Fraction(1), delta=1e-6, **options):
    variance = Fraction(10**6)
    privacy = dp.Privacy(1, delta, **options)
    shift = Shift(math.ceil(mu_squared * (variance - 4)), Sigma(1000, 0), 3)
    return Guarantee.of(privacy, dp.Inputs(0, 20, n_streams=3), gaussian_terms(np.array([1, 2]), shift))


def test_the_sentence_of_one_event():
    guarantee = promise(Fraction(1, 16))
    factor = mpmath.nstr(mpmath.exp(guarantee.epsilon), 3)
    assert guarantee.sentence == (
        "This guarantee is per event: it is about whether one event of size at most 1 was in the data or not. Anyone "
        "who sees all published values, "
        f"whatever else they know, comes to any conclusion with a probability that is at most {factor} times (e^ε) "
        "what it is in the other case, plus 1e-06 (δ). Somebody with 10 events is protected less, as a group of 10 (ε "
        f"= {format_rounded_up(guarantee.groups[10], 4)}); with more, less."
    ) or Decimal(factor) < Decimal(math.exp(guarantee.epsilon))


def test_the_sentence_is_no_more_than_is_true():
    """One event behind no filter: no set of values breaks it, and the odds of more than δ of them change by more."""
    guarantee = dp.exact(dp.input_perturbation(dp.Filter([1]), dp.Privacy(1, 1e-6)), dp.Inputs(0, 20)).guarantee
    shift, std = math.isqrt(guarantee.squared_sensitivity), guarantee.sigma.std
    k = np.arange(-round(40 * std), round(40 * std))
    without, with_ = (np.exp(-0.5 * ((k - x) / std) ** 2) for x in (0, shift))
    without, with_ = without / without.sum(), with_ / with_.sum()
    factor = math.exp(guarantee.epsilon)
    for p, q in ((with_, without), (without, with_)):
        assert 0.98e-6 < np.maximum(p - factor * q, 0).sum() <= 1e-6  # over the worst conclusion
        assert p[p > factor * q].sum() > 1e-5


def test_the_sentence_of_several_events():
    guarantee = promise(max_events=3, min_separation=4, max_change=2.5)
    assert guarantee.sentence.startswith(
        "This guarantee is per event: it is about whether the at most 3 events of one person, each of size at most "
        "2.5, were in the data or not."
    )
    assert "Nothing makes sure that nobody has more" in guarantee.sentence
    lines = guarantee.items()
    assert lines["events"] == "3, at least 4 steps apart"
    assert lines["protected"] == "the at most 3 events of one person, each of size at most 2.5"


@given(st.fractions(Fraction(1, 1000), 20), st.sampled_from([1e-9, 1e-3, 0.3]))
def test_the_factor_is_above_that_of_epsilon(mu_squared, delta):
    guarantee = promise(mu_squared, delta)
    factor = re.search(r"at most (\S+) times \(e\^ε\)", guarantee.sentence)[1]
    if factor.startswith("e^"):
        assert guarantee.epsilon > 100
        assert guarantee.epsilon <= Fraction(factor[2:]) <= 1.02 * guarantee.epsilon
    else:
        true = mpmath.exp(exactly(guarantee.epsilon))
        assert true <= exactly(Decimal(factor)) <= true * 1.011


@pytest.mark.parametrize(
    ("epsilon", "factor"),
    [
        (0.0, "1"),
        (1e-300, "1.01"),
        (math.nextafter(math.log(3), 0), "3"),
        (math.log(3), "3.01"),  # that float is above
        (99.0, "9.89e+42"),
        (101.0, "e^101"),
        (123456.0, "e^1.24e+05"),
    ],
)
def test_factors(epsilon, factor):
    guarantee = promise()
    changed = replace(guarantee, epsilon=epsilon)
    assert f"at most {factor} times (e^ε)" in changed.sentence


# --- what must be in it ---------------------------------------------------------------------------

ASKED_FOR = {
    "protected": "one event of size at most 1$",
    "in odds": r"somebody who thought this 50 % likely can think it [\d.]+\s% to [\d.]+\s% likely .*, but",
    "compared": r"the data with those events, and the same data without them \(such .*; moving .* two changes$",
    "largest change": "1; after rounding 2 units$",
    "events": "1$",
    "streams per person": "2 of 3",
    "rounding": "values are multiples of the unit 1/2; others are rounded",
    "range": r"0 to 20; values outside are set to its nearer end \(clamped\), never refused; what is no .* as 4",
    "centre": "5, which is public",
    "squared sensitivity": r"Δ² = \d+$",
    "noise": r"discrete Gaussian, σ = \d+/2\^\d+ \(about [\d.]+\), drawn exactly",
    "(ε, δ)": r"\(\S+, 1e-06\), computed from this σ and rounded up; demanded: \(1, 1e-06\)",
    "zCDP": r"ρ = \d+/\d+ ",
    "Gaussian DP": r"μ = \d",
    "groups": "2 people: .*; 5 people: .*; 10 people: ",
    "prefilter": r"\d+ integer taps, SHA-256 [0-9a-f]{64}$",
}
NOT_COVERED = ["other releases", "time of publication", "the computer", "restored from a backup", "looking at the data"]
INPUTS = dp.Inputs(0, 20, unit=0.5, centre=5, n_streams=3, streams_per_person=2, missing=4)


@pytest.fixture(scope="module")
def plan():
    return dp.exact(dp.zero_forcing(dp.Filter([1], [1, -0.9]), dp.Privacy(1, 1e-6)), INPUTS)


def test_all_that_a_reader_needs_is_there(plan):
    sentence, lines, uncovered, versions = parts(str(plan.guarantee))
    assert "in the data or not. Anyone who sees all published values" in sentence
    assert lines.keys() == ASKED_FOR.keys()
    for name, pattern in ASKED_FOR.items():
        assert re.match(pattern, lines[name]), name
    for what in NOT_COVERED:
        assert any(what in line for line in uncovered)
    assert f"dpfast {dp.__version__}, Python {platform.python_version()}, numpy {np.__version__}" in versions
    content = json.loads(plan.guarantee.to_json())
    assert [f"  - {x}" for x in content["not_covered"]] == uncovered
    assert f"Versions: {content['versions']}" == versions
    assert content["adjacency"] == lines["compared"]


def test_sensitivities_are_those_of_an_integer_twin(plan):
    taps = plan.taps.tolist()
    assert plan.guarantee.squared_sensitivity == 2**2 * 2 * sum(x * x for x in taps)
    clamped = dp.Inputs(0, 3, n_streams=2, multiples=False)
    privacy = dp.Privacy(2, 1e-6, max_change=7, max_events=3, min_separation=2)
    plan = dp.exact(dp.zero_forcing(dp.Filter([1], [1, -0.9]), privacy, tolerance=0.1), clamped)
    taps = plan.taps.tolist()
    r = [sum(x * y for x, y in zip(taps, taps[lag:], strict=False)) for lag in range(len(taps))]
    together = 3 * r[0] + 2 * (2 * max(map(abs, r[2:])) + max(map(abs, r[4:])))
    square = plan.guarantee.squared_sensitivity
    assert square <= 3**2 * together  # the range is 3 wide
    peak = max(abs(np.polyval(taps, np.exp(1j * w))) ** 2 for w in np.linspace(0, np.pi, 4001))
    assert square >= 3**2 * min(together, 3 * peak)


def test_a_design_gives_what_was_demanded_and_little_more(plan):
    guarantee = plan.guarantee
    assert 0.9999 < guarantee.epsilon <= 1
    variance = Fraction(guarantee.sigma.a, 2**guarantee.sigma.j) ** 2
    proven(guarantee.epsilon, guarantee.delta, [(guarantee.squared_sensitivity, variance, 2 * len(plan.taps))])


def test_composed_guarantees_are_of_all_releases():
    one = promise(Fraction(1, 4))
    three = Guarantee.of(one.privacy, one.inputs, one.terms, (one.loss, one.loss))
    assert three.zcdp_rho == 3 * one.zcdp_rho
    assert three.epsilon > one.epsilon
    assert "composed" not in one.items()
    assert three.items()["composed"].startswith("with 2 other releases of the same data (Δ² = ")
    assert three.items()["squared sensitivity"] == one.items()["squared sensitivity"]


def test_nothing_in_it_depends_on_data(plan, tmp_path):
    said = set()
    for i, values in enumerate((np.zeros((3, 4), int), np.full((3, 4), 777))):
        result = dp.release(plan, values, tmp_path / f"{i}")
        said.add((str(result.guarantee), result.guarantee.to_json()))
        said.add(tuple((fakes.beside(tmp_path / f"{i}") / f"guarantee.{x}").read_bytes() for x in ("txt", "json")))
    stated = (str(plan.guarantee), plan.guarantee.to_json())
    assert len(said) == 2
    assert stated in said
    assert "777" not in stated[1].replace(plan.guarantee.prefilter, "")
