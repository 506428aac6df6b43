"""Noise of block sums and of G = 1 with a fault: what finds it in a default run."""

import time

import numpy as np
import pytest
from helpers.designs import designed
from helpers.noise_faults import Faster, SeededGeometric, Stuck, halves, made, plant, repeated, some_zeros

import dpfast as dp
from dpfast.releases.audit import known_zeros

CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])
TARGET = dp.Filter([0.1], [1, -0.9])
ALONE, PUSHES, RELEASES = "canary, all steps", "opposite canaries, two pushes", "opposite canaries, two releases"
SIGMA, RESIDUES, SILENT, SHAPE, STEPS, STREAMS, TWICE = (
    f"known zeros, {x}"
    for x in (
        *("second moment", "residues", "published without noise", "shape"),
        *(f"correlation between {x}" for x in ("steps", "streams", "releases")),
    )
)
INTEGERS = "no integers"


def block_sums(**privacy):
    return designed(dp.block_sums, TARGET, dp.Privacy(1, **privacy), CHAIN), dp.Inputs(0, 1)


def g_of_one(epsilon=1):
    mechanism = designed(dp.input_perturbation, TARGET, dp.Privacy(epsilon), noise="geometric")
    return mechanism, dp.Inputs(0, 20, n_streams=2)


def horizon():
    target = dp.Toeplitz.of(dp.Filter([1], [1, -0.99]), 50)
    return designed(dp.block_sums, target, dp.Privacy(1), CHAIN, length=4, lag=1), dp.Inputs(0, 1)


def last_block():
    mechanism = designed(dp.block_sums, TARGET, dp.Privacy(1), CHAIN, length=4, lag=1)
    return (dp.exact(mechanism, dp.Inputs(0, 1), last_block="publish", n_steps=27),)


def answers(delta=0.05):
    mechanism = designed(dp.randomized_response, TARGET, dp.Privacy(1, delta), CHAIN)
    return mechanism, dp.Inputs(0, 1, n_streams=2)


def found(monkeypatch, fault, design, **options):
    """What is VIOLATED where every sampler has this fault."""
    plant(monkeypatch, fault)
    result = dp.audit(*design, seed=5, **options)
    return {x.attack for x in result.findings if x.violated}


def floats(self, z):
    return self.std * self.rng.normal(size=len(z))


FAULTS = {
    "rate times 1/.9": (Faster, {SIGMA, SHAPE}),
    "every sample twice": (repeated(1), {STEPS}),
    "again after 700 steps": (repeated(700), {STEPS}),
    "the same in every push": (Stuck, {STEPS}),
    "the same in two streams": (made(halves), {STREAMS}),
    "the same in two releases": (SeededGeometric, {TWICE}),
    "even values only": (made(lambda self, z: 2 * (z // 2)), {RESIDUES}),
    "1 % zeros": (made(some_zeros), {SILENT}),
    "no sign": (made(lambda self, z: np.abs(z)), {SHAPE}),
    "a mean": (made(lambda self, z: z + (self.rng.random(len(z)) < 0.02)), {SHAPE}),
}
SUBTLE = {"1 % zeros", "a mean"}  # what takes as many values as an audit publishes
FLOATS = {"float64": float, "float32": np.float32}


@pytest.mark.parametrize("design", [block_sums, g_of_one])
@pytest.mark.parametrize(("fault", "by", "subtle"), [(*x, name in SUBTLE) for name, x in FAULTS.items()], ids=FAULTS)
def test_faults_of_the_noise_are_found_with_few_runs(monkeypatch, design, fault, by, subtle):
    if not subtle:
        monkeypatch.setattr(known_zeros, "_VALUES", 2**14)
    # at 0.99 the zeros go by once in 5,000 times, at 0.5 once in two millions
    confidence = 0.5 if subtle else 1 - 1e-9
    assert by <= found(monkeypatch, fault, design(), n_runs=1000, confidence=confidence)


@pytest.mark.parametrize("name", ["rate times 1/.9", "every sample twice", "even values only", "no sign"])
def test_faults_of_the_noise_of_unequal_levels_are_found(monkeypatch, name):
    monkeypatch.setattr(known_zeros, "_VALUES", 2**15)
    fault, by = FAULTS[name]
    mechanism = designed(dp.block_sums, TARGET, dp.Privacy(1), CHAIN, length=(2, 6), shares=(0.7, 0.3))
    assert by <= found(monkeypatch, fault, (mechanism, dp.Inputs(0, 1)), n_runs=1000, confidence=1 - 1e-9)


@pytest.mark.parametrize("kind", FLOATS.values(), ids=FLOATS)
def test_noise_in_floating_point_is_found_or_cannot_be_added_at_all(monkeypatch, kind):
    fault = made(lambda self, z: floats(self, z).astype(kind))
    assert INTEGERS in found(monkeypatch, fault, g_of_one(), n_runs=1000)
    with pytest.raises(TypeError, match="Cannot cast"):
        found(monkeypatch, fault, block_sums(), n_runs=1000)


def fewer_lies(self, z):
    return z - ((z == 2) & (self.rng.random(len(z)) < 0.1))


FAULTS_OF_ANSWERS = {
    "a tenth of the lies are true": (
        made(lambda self, z: z - ((z == 2) & (self.rng.random(len(z)) < 0.1))),
        {SIGMA, SHAPE},
    ),
    "1 % more is certain": (made(lambda self, z: z * (self.rng.random(len(z)) > 0.01)), {SILENT}),
    "every answer twice": (repeated(1), {STEPS}),
    "again after 700 steps": (repeated(700), {STEPS}),
    "the same in every push": (Stuck, {STEPS}),
    "the same in two streams": (made(halves), {STREAMS}),
    "never false": (made(lambda self, z: np.minimum(z, 1)), {SIGMA, SHAPE, ALONE}),
}


@pytest.mark.parametrize("design", [horizon, last_block])
@pytest.mark.parametrize("name", ["rate times 1/.9", "every sample twice", "the same in two streams", "no sign"])
def test_faults_of_noise_over_fixed_steps_are_found(monkeypatch, name, design):
    fault, by = FAULTS[name]
    monkeypatch.setattr(known_zeros, "_VALUES", 2**15)
    assert by <= found(monkeypatch, fault, design(), n_runs=1000, confidence=1 - 1e-9)


@pytest.mark.parametrize(("fault", "by"), FAULTS_OF_ANSWERS.values(), ids=FAULTS_OF_ANSWERS)
def test_faults_of_answers_are_found_with_few_runs(monkeypatch, fault, by):
    monkeypatch.setattr(known_zeros, "_VALUES", 2**15)
    assert by <= found(monkeypatch, fault, answers(), n_runs=5000, confidence=1 - 1e-6)


@pytest.mark.long
@pytest.mark.parametrize("design", [block_sums, g_of_one])
@pytest.mark.parametrize(("fault", "by"), FAULTS.values(), ids=FAULTS)
def test_faults_of_the_noise_are_found_by_the_default_run_in_a_minute(monkeypatch, design, fault, by):
    start = time.process_time()
    seen = found(monkeypatch, fault, design())
    assert time.process_time() - start < 60
    # the zeros go by once in 5,000 times
    assert by <= seen or by <= found(monkeypatch, fault, design())


@pytest.mark.parametrize("design", [block_sums, g_of_one])
@pytest.mark.parametrize(
    ("fault", "by"),
    [(Faster, ALONE), (Stuck, PUSHES), (SeededGeometric, RELEASES)],
    ids=["rate times 1/.9", "the same in every push", "the same in two releases"],
)
def test_faults_of_the_noise_are_found_by_canaries_too(monkeypatch, design, fault, by):
    monkeypatch.setattr(known_zeros, "_VALUES", 2**12)
    assert by in found(monkeypatch, fault, design(), n_runs=200_000, confidence=1 - 1e-9)


@pytest.mark.parametrize(
    "design",
    [
        block_sums(),
        block_sums(delta=0.05),
        block_sums(max_events=3, min_separation=2),
        (
            designed(dp.block_sums, TARGET, dp.Privacy(1), CHAIN, lag=2),
            dp.Inputs(0, 1, n_streams=3, streams_per_person=2),
        ),
        g_of_one(3),
        (designed(dp.input_perturbation, TARGET, dp.Privacy(1, 0.05), noise="canonical"), dp.Inputs(0, 20)),
        (designed(dp.block_sums, TARGET, dp.Privacy(1), CHAIN, length=(2, 6)), dp.Inputs(0, 1)),
        (designed(dp.block_sums, TARGET, dp.Privacy(1), CHAIN, length=(2, 6), shares=(0.7, 0.3)), dp.Inputs(0, 1)),
        horizon(),
        last_block(),
        answers(),
        answers(0),
    ],
    ids=[
        "blocks",
        "canonical blocks",
        "three events",
        "two of three streams",
        "epsilon of 3",
        "canonical",
        "two levels",
        "unequal shares",
        "horizon",
        "last block",
        "answers",
        "pure answers",
    ],
)
def test_sound_mechanisms_are_not_contradicted_and_show_nearly_all_of_their_epsilon(design):
    result = dp.audit(*design, n_runs=20_000, confidence=1 - 1e-9, seed=1)
    assert not result.violated
    alone = next(x for x in result.findings if x.attack == ALONE)
    assert alone.found > 0.5 * alone.claim
    assert alone.found == pytest.approx(alone.reachable, abs=0.35)
