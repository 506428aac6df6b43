import contextlib
import functools
import importlib
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.designs import designed

import dpfast as dp
from dpfast.privacy.discrete_gaussian_accounting import smallest_sigma
from dpfast.releases.audit import known_zeros
from dpfast.releases.integer import noise_calibration
from dpfast.releases.integer.exact_forms import exact
from dpfast.releases.integer.exact_mechanism import ExactMechanism
from dpfast.releases.integer.inputs import Inputs

# δ that few runs can see; with 1e-6 it takes hundreds of thousands
PRIVACY = dp.Privacy(1, 5e-2)
TARGET = dp.Filter([1], [1, -0.7])
COUNTS = dp.Inputs(0, 20)
RUNS = 20_000
ALONE, PUSHES, RELEASES = "canary, all steps", "opposite canaries, two pushes", "opposite canaries, two releases"


@contextlib.contextmanager
def few_zeros():
    """Of known zeros few are published, and in memory where the system can: where other attacks are looked at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known_zeros, "_VALUES", 2**13)
        patch.setattr(tempfile, "tempdir", "/dev/shm" if Path("/dev/shm").is_dir() else None)
        yield


def attacked(privacy=PRIVACY, inputs=COUNTS, target=TARGET):
    return violated(designed(dp.zero_forcing, target, privacy), inputs)


def violated(mechanism, inputs=None):
    """What is VIOLATED, at a false-alarm rate below 1e-9 an audit."""
    with few_zeros():
        result = dp.audit(mechanism, inputs, n_runs=RUNS, confidence=1 - 1e-9, seed=5)
    assert result.violated == any(x.violated for x in result.findings)
    return {x.attack for x in result.findings if x.violated}


PEOPLE = [
    (dp.Privacy(1, 5e-2, max_events=2), dp.Inputs(0, 20, unit=0.5, centre=3.5, n_streams=4, streams_per_person=3)),
    (dp.Privacy(4, 1e-6, max_change=1.5), dp.Inputs(-1, 20, unit=0.5, multiples=False, missing=0)),
]
ONE_BY_ONE = [
    (PRIVACY, COUNTS),
    (dp.Privacy(1, 5e-2, max_change=1e6), COUNTS),
    (PRIVACY, dp.Inputs(0, 20, n_streams=4, streams_per_person=3)),
    (dp.Privacy(1, 5e-2, max_events=2), dp.Inputs(0, 20, unit=0.5, centre=3.5)),
]


@pytest.mark.parametrize(
    ("privacy", "inputs"), [*PEOPLE, *(pytest.param(*x, marks=pytest.mark.long) for x in ONE_BY_ONE)]
)
def test_a_release_keeps_its_claim(privacy, inputs):
    assert attacked(privacy, inputs) == set()


def test_a_sound_release_shows_much_of_its_epsilon_and_nearly_all_of_its_mu():
    """Not below half, so that twice the privacy loss would be seen; with 60,000 runs 0.8 are expected."""
    with few_zeros():
        plan = designed(dp.exact, designed(dp.zero_forcing, TARGET, PRIVACY), COUNTS)
        result = dp.audit(plan, n_runs=60_000, confidence=1 - 1e-9, seed=1)
    canaries = [x for x in result.findings if x.reachable and x.quantity != "σ at most"]
    assert [x.quantity for x in canaries] == ["ε at least", "μ at least"] * 3
    for x in canaries:
        least, close = (0.5, 0.35) if x.quantity == "ε at least" else (0.75, 0.06)  # seven sigma
        assert least * x.claim < x.found < x.claim
        assert x.found == pytest.approx(x.reachable, abs=close)


def test_a_range_that_is_not_kept_is_found(monkeypatch):
    monkeypatch.setattr(Inputs, "_scale_integers", lambda self, x: x.astype(np.int64))
    monkeypatch.setattr(importlib.import_module("dpfast.releases.integer.inputs").np, "clip", lambda x, low, high: x)
    assert attacked(dp.Privacy(1, 5e-2, max_change=1e6), COUNTS, dp.Filter([1])) == {ALONE, PUSHES, RELEASES}


def test_streams_of_a_person_that_are_not_counted_are_found(monkeypatch):
    def forgetful(privacy, inputs, taps, sigma):
        return honest(privacy, Inputs(inputs.low, inputs.high), taps, sigma)

    honest = noise_calibration.privacy_shift
    for module in (noise_calibration, importlib.import_module("dpfast.releases.integer.exact_mechanism")):
        monkeypatch.setattr(module, "privacy_shift", forgetful)
    inputs = dp.Inputs(0, 20, n_streams=3, streams_per_person=3)
    assert attacked(inputs=inputs) == {ALONE, PUSHES, RELEASES}


def test_autocorrelations_with_their_sign_are_found(monkeypatch):
    """Events of either sign add up where the taps alternate."""

    def signed(taps, max_events, min_separation):
        r = np.correlate(taps, taps, "full")[len(taps) - 1 :]
        lags = range(1, min(max_events, len(r)))
        return int(max_events * r[0] + 2 * sum((max_events - k) * int(r[k]) for k in lags))

    monkeypatch.setattr(noise_calibration, "squared_sensitivity", signed)
    privacy, taps = dp.Privacy(1, 5e-2, max_events=2), np.array([90, -80, 72, -64, 58, -52])
    sigma = smallest_sigma(privacy.noise_multiplier, signed(taps, 2, 1))
    plan = replace(exact(dp.input_perturbation(dp.Filter([1]), privacy), COUNTS), taps=taps, sigma=sigma)
    assert violated(plan) == {ALONE, PUSHES, RELEASES}
    monkeypatch.undo()
    honest = smallest_sigma(privacy.noise_multiplier, noise_calibration.squared_sensitivity(taps, 2, 1))
    assert violated(replace(plan, sigma=honest)) == set()


def test_inputs_that_count_twice_are_found(monkeypatch):
    def twice(self, history, x, noise, *place, **end):
        return honest(self, 2 * history, 2 * x, noise, *place, **end)

    honest = ExactMechanism.privatize
    monkeypatch.setattr(ExactMechanism, "privatize", twice)
    assert attacked() == {ALONE, PUSHES, RELEASES}


def test_the_sign_of_an_input_does_not_matter(monkeypatch):
    """It is just as private: no false alarm."""
    honest = ExactMechanism.privatize
    monkeypatch.setattr(
        ExactMechanism, "privatize", lambda self, h, x, noise, *at, **end: honest(self, -h, -x, noise, *at, **end)
    )
    assert attacked() == set()


# --- what is printed ------------------------------------------------------------------------------


SURE = 1 - 1e-9  # as the noise is another one each time


@functools.cache
def small():
    return dp.audit(dp.zero_forcing(TARGET, dp.Privacy(1, 1e-6), name="sums"), COUNTS, n_runs=1000, confidence=SURE)


ZEROS = [
    "known zeros, second moment",
    "known zeros, residues",
    "known zeros, published without noise",
    "known zeros, shape",
    "known zeros, correlation between steps",
    "known zeros, correlation between streams",
    "known zeros, correlation between releases",
]


def test_a_simulation_is_broken_and_a_release_is_not():
    simulated, integers, value, *rest = small().findings
    assert (simulated.target, simulated.verdict, simulated.violated) == ("simulate", "broken, as expected", False)
    assert simulated.hits == simulated.trials == 20_000
    assert simulated.false_alarms == 0
    assert (simulated.quantity, simulated.claim) == ("δ at least", None)
    assert simulated.found > 0.998
    assert (integers.quantity, integers.found, integers.claim) == ("share", 0, 0)
    assert value.found == 0
    assert {x.verdict for x in (integers, value, *rest)} == {"no contradiction"}
    assert [x.attack for x in rest] == [ALONE] * 2 + [PUSHES] * 2 + [RELEASES] * 2 + ZEROS
    assert [x.claim == pytest.approx(1) for x in (value, *rest[:6:2])] == [True, True, False, False]
    assert [x.quantity for x in rest[6:]] == ["σ at most"] + ["p-value"] * 6


def test_what_is_claimed_is_what_the_guarantee_says():
    plan = exact(dp.zero_forcing(TARGET, dp.Privacy(1, 1e-6)), COUNTS)
    claims = {(x.attack, x.quantity): x.claim for x in small().findings}
    assert claims[ALONE, "μ at least"] == plan.guarantee.gdp_mu
    assert claims[PUSHES, "μ at least"] == pytest.approx(plan.guarantee.gdp_mu * np.sqrt(2), rel=1e-12)
    assert claims[ALONE, "ε at least"] == plan.guarantee.epsilon
    assert claims[ZEROS[0], "σ at most"] == plan.sigma.std
    assert all(claims[name, "p-value"] == pytest.approx((1 - SURE) / 15) for name in ZEROS[1:])


def test_a_smoother_is_audited_too():
    """It cannot run as a stream."""
    mechanism = dp.lmmse(TARGET, PRIVACY, dp.ARMA([1], [1, -0.5]), tolerance=0.1)
    result = dp.audit(mechanism, COUNTS, n_runs=1000, confidence=1 - 1e-9)
    assert not result.violated
    assert [x.trials for x in result.findings[-7:]] == [2 * 2**17] * 7


def test_all_of_it_is_printed():
    text = str(small())
    assert text.startswith("audit of 'sums': δ = 1e-06, all attacks together with confidence 0.999999999\n")
    assert "simulate claims nothing, and keeps nothing: in 20,000 of 20,000 runs" in text
    assert "No (ε, δ) with δ below 0.9988" in text.replace("\n", " ")
    assert "Nothing that was tried contradicts" in text
    assert "A σ that is 0.98% too small is found with a probability of 99%." in text.replace("\n", " ")
    assert text.count("\nrelease   ") == 15


def test_an_exact_mechanism_brings_its_inputs():
    plan = designed(dp.exact, designed(dp.zero_forcing, TARGET, PRIVACY), COUNTS)
    with few_zeros():
        assert not dp.audit(plan, n_runs=1000, confidence=SURE).violated
    with pytest.raises(ValueError, match="inputs must be those of the ExactMechanism"):
        dp.audit(plan, dp.Inputs(0, 3))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_runs": 999}, "n_runs must be an integer, at least 1000"),
        ({"confidence": 1}, "confidence must be a number strictly between 0 and 1"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_arguments_are_checked(wrong, message):
    with pytest.raises(ValueError, match=message):
        dp.audit(designed(dp.zero_forcing, TARGET, PRIVACY), COUNTS, **wrong)


def test_designs_from_private_data_are_refused():
    mechanism = designed(dp.zero_forcing, TARGET, PRIVACY).with_sources(target="fitted-from-private")
    with pytest.raises(dp.ReleaseError, match="must not depend on private data"):
        dp.audit(mechanism, COUNTS)


def test_a_bar_is_shown_on_demand(capsys):
    with few_zeros():
        dp.audit(designed(dp.zero_forcing, TARGET, PRIVACY), COUNTS, n_runs=1000, progress=True)
    assert "auditing: 100%" in capsys.readouterr().err
