"""Noise with a fault, planted where all releases draw it: what finds it, and how small a one."""

import numpy as np
import pytest
from helpers.designs import designed
from helpers.noise_faults import Seeded, Stuck, halves, made, plant, repeated, scaled, some_zeros

import dpfast as dp
from dpfast.releases.audit import known_zeros
from dpfast.releases.integer.exact_mechanism import ExactMechanism
from dpfast.releases.noise import Noise

COUNTS, WIDE = dp.Inputs(0, 20), dp.Inputs(0, 2**26)
PRIVACY, LARGE = dp.Privacy(1, 1e-6), dp.Privacy(1, 1e-6, max_change=2.0**24)
TARGET = dp.Filter([1], [1, -0.7])
ALONE, PUSHES, RELEASES = "canary, all steps", "opposite canaries, two pushes", "opposite canaries, two releases"
SIGMA, RESIDUES, SILENT, SHAPE, STEPS, STREAMS, TWICE = (
    f"known zeros, {x}"
    for x in (
        *("second moment", "residues", "published without noise", "shape"),
        *(f"correlation between {x}" for x in ("steps", "streams", "releases")),
    )
)
ZEROS = {SIGMA, RESIDUES, SILENT, SHAPE, STEPS, STREAMS, TWICE}
GRID, INTEGERS = "floating-point grid, one value", "no integers"


def found(monkeypatch, fault, *, privacy=PRIVACY, inputs=COUNTS, n_runs=1000, target=TARGET, n_values=None):
    """What is VIOLATED where every sampler has this fault, at a false-alarm rate below 1e-9.

    What is plain to see is seen in few values, too.
    """
    if n_values is not None:
        monkeypatch.setattr(known_zeros, "_VALUES", n_values)
    plant(monkeypatch, fault)
    plan = designed(dp.exact, designed(dp.zero_forcing, target, privacy), inputs)
    result = dp.audit(plan, n_runs=n_runs, confidence=1 - 1e-9, seed=5)
    assert result.violated
    text = " ".join(str(result).split())
    assert "Do not publish with this version" in text
    assert "Nothing that was tried" not in text
    return {x.attack for x in result.findings if x.violated}


FAULTS = {
    "sigma times .9": (scaled(0.9), {SIGMA, SHAPE}),
    "sigma times .98": (scaled(0.98), {SIGMA}),
    "half of it": (made(lambda self, z: z // 2), {SIGMA, SHAPE}),
    "every sample twice": (repeated(1), {STEPS}),
    "again after 700 steps": (repeated(700), {STEPS}),
    "the same in every push": (Stuck, {STEPS}),
    "the same in two streams": (made(halves), {STREAMS}),
    "the same in two releases": (Seeded, {TWICE}),
    "even values only": (made(lambda self, z: 2 * (z // 2)), {RESIDUES}),
    "no multiples of 7": (made(lambda self, z: z + (z % 7 == 0)), {RESIDUES}),
    "1 % zeros": (made(some_zeros), {SILENT}),
    "no sign": (made(lambda self, z: np.abs(z)), {SHAPE}),
    "no tails": (made(lambda self, z: np.clip(z, -round(2.5 * self.std), round(2.5 * self.std))), {SIGMA}),
    "a mean": (made(lambda self, z: z + round(self.std / 30)), {SHAPE}),
}


SUBTLE = {"sigma times .98", "a mean"}  # what takes as many values as an audit publishes
# larger than others, which the same tests see
LARGER = {"sigma times .9", "half of it", "every sample twice", "even values only", "no sign", "no tails"}


@pytest.mark.parametrize(
    ("fault", "by", "n_values"),
    [
        *(
            pytest.param(*x, None if name in SUBTLE else 2**15, id=name)
            for name, x in FAULTS.items()
            if name not in LARGER
        ),
        *(pytest.param(*x, None, id=f"{name}, whole", marks=pytest.mark.long) for name, x in FAULTS.items()),
    ],
)
def test_faults_of_the_noise_are_found_with_few_runs(monkeypatch, fault, by, n_values):
    seen = found(monkeypatch, fault, n_values=n_values)
    assert by <= seen


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_noise_in_floating_point_is_found(monkeypatch, kind):
    """No integers; and of float32 numbers a single value tells the input."""
    fault = made(lambda self, z: self.std * self.rng.normal(size=len(z)).astype(kind).astype(float))
    seen = found(monkeypatch, fault)
    assert INTEGERS in seen
    assert (GRID in seen) == (kind is np.float32)


def test_noise_of_float32_numbers_that_is_rounded_is_found_where_it_is_coarse(monkeypatch):
    fault = made(
        lambda self, z: np.rint(self.std * self.rng.normal(size=len(z)).astype(np.float32).astype(float)).astype(int)
    )
    assert GRID in found(monkeypatch, fault, privacy=LARGE, inputs=WIDE)


def test_a_prefilter_that_takes_its_noise_twice_is_found(monkeypatch):
    """The fault may be anywhere in what a release runs."""
    honest = ExactMechanism.privatize

    def privatize(self, history, x, noise, *place, **end):
        noise[:, 1::2] = noise[:, : 2 * (noise.shape[1] // 2) : 2]
        return honest(self, history, x, noise, *place, **end)

    monkeypatch.setattr(ExactMechanism, "privatize", privatize)
    assert STEPS in found(monkeypatch, Noise)


def test_faults_of_the_noise_are_found_by_canaries_too(monkeypatch):
    few = {"privacy": dp.Privacy(1, 5e-2), "n_values": 2**13}
    assert {ALONE, PUSHES, RELEASES} <= found(monkeypatch, FAULTS["half of it"][0], n_runs=20_000, **few)
    assert RELEASES in found(monkeypatch, Seeded, n_runs=5000, **few)
    assert PUSHES in found(monkeypatch, Stuck, n_runs=5000, **few)


@pytest.mark.parametrize(("factor", "n_runs"), [(0.8, 150_000), pytest.param(0.9, 600_000, marks=pytest.mark.long)])
def test_a_tenth_of_sigma_is_found_by_canaries_alone(monkeypatch, factor, n_runs):
    """By μ, with fewer runs than the default has; ε at the claimed δ shows nothing. A fifth takes a quarter of them."""
    plant(monkeypatch, scaled(factor), only=("audit.canary", "audit.all_attacks"))
    mechanism = dp.input_perturbation(dp.Filter([1]), dp.Privacy(1, 1e-6))
    result = dp.audit(mechanism, COUNTS, n_runs=n_runs, confidence=1 - 1e-6, seed=5)
    by = {x.quantity for x in result.findings if x.violated}
    assert by == {"μ at least"}


def test_one_value_that_is_no_integer_is_found(monkeypatch):
    honest = ExactMechanism.privatize

    def privatize(self, history, x, noise, *place, **end):
        v = honest(self, history, x, noise, *place, **end).astype(float)
        v[0, 0] += 0.5
        return v

    monkeypatch.setattr(ExactMechanism, "privatize", privatize)
    assert INTEGERS in found(monkeypatch, Noise)
