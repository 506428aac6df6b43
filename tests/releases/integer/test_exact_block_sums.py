"""Block sums in integers: what is released, with what law, error and promise."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.signal import lfilter as signal_filter

import dpfast as dp
from dpfast.privacy.geometric_rate import GeometricRate
from dpfast.releases.integer.exact_forms import load_exact
from dpfast.releases.noise import NoiseOfLaws

TARGET = dp.Filter([0.1], [1, -0.9])
COUNTS = dp.ARMA([1.2], [1, -0.9], mean=5)
CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
INPUTS = dp.Inputs(0, 20)
SIGNS = [[1, 0], [0, 1], [-1, 0], [0, -1]]


def kinds():
    blocks, privacy = dp.block_sums, dp.Privacy(1)
    over = dp.Toeplitz.of(dp.Filter([1], [1, -0.999]), 50)
    return {
        "one level": (blocks(TARGET, privacy, COUNTS, length=3, lag=2), INPUTS),
        "two levels": (blocks(TARGET, privacy, COUNTS, length=(2, 6)), INPUTS),
        "shares": (blocks(TARGET, privacy, COUNTS, length=(2, 6), shares=(0.75, 0.25), phase=1), INPUTS),
        "tables": (blocks(TARGET, dp.Privacy(1, 0.1), COUNTS, length=(2, 6), shares=(0.995, 0.005), lag=1), INPUTS),
        "signed": (blocks(TARGET, privacy, COUNTS, weights=SIGNS, releases=[2, 4], lag=1), INPUTS),
        "phase": (blocks(TARGET, privacy, COUNTS, length=5, phase=2, lag=7), replace(INPUTS, centre=5)),
        "levels": (blocks(TARGET, privacy, CHAIN), dp.Inputs(-0.5, 0.5, centre=-0.5, missing=-0.5)),
        "horizon": (blocks(over, privacy, COUNTS, length=4, lag=2), INPUTS),
        "canonical": (blocks(TARGET, dp.Privacy(1, 0.05), COUNTS, length=2), INPUTS),
        "unit": (
            blocks(TARGET, privacy, COUNTS, unit=0.25, noise="geometric", length=2),
            dp.Inputs(0, 20, unit=0.25, multiples=False),
        ),
    }


@pytest.fixture(scope="module")
def designs():
    return {name: (mechanism, dp.exact(mechanism, inputs)) for name, (mechanism, inputs) in kinds().items()}


NAMES = list(kinds())


def signal(name, n):
    rng = np.random.default_rng(7)
    return rng.integers(0, 2, (1, n)) - 0.5 if name == "levels" else rng.integers(-3, 24, (1, n))


@pytest.mark.parametrize("name", NAMES)
def test_estimates_are_those_of_the_mechanism_behind_the_same_sums(designs, name):
    """The simulation of the mechanism, by other code, of the sums that it has published itself."""
    mechanism, plan = designs[name]
    u = np.clip(signal(name, mechanism.horizon or 60), float(plan.inputs.low), float(plan.inputs.high))
    paths = mechanism.simulate(u, seed=3)
    sums = np.nan_to_num(paths.privatized).reshape(plan.per_step, 1, -1).swapaxes(0, 1)
    n = u.shape[1]
    shift = (mechanism.receiver.mean - float(plan.inputs.centre)) / float(plan.inputs.unit)
    due = plan.schedule.due(0, n)
    v = np.where(due, sums / float(plan.inputs.unit) + shift * plan.schedule.weighed(0, n), 0.0)
    assert np.abs(v - np.rint(v)).max() < 1e-9  # they were integers
    found = replace(plan, receiver=mechanism.receiver).estimate(
        plan.shaped(np.rint(v).astype(np.int64)[:, 0]) if plan.per_step == 1 else np.rint(v).astype(np.int64)
    )
    np.testing.assert_allclose(found, paths.estimate, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("name", NAMES)
def test_pieces_are_the_whole(designs, name):
    _, plan = designs[name]
    n, lag = plan.mechanism.horizon or 33, plan.lag
    x = plan.inputs.integers(signal(name, n))
    noise = [1000 * i + np.arange(k)[None] for i, k in enumerate(plan.n_draws(0, n))]
    zeros = np.zeros((1, lag), np.int64)
    whole = plan.privatize(x[:, :0], np.concatenate([x, zeros], axis=1), np.concatenate(noise, axis=1), 0, n)
    live, position, used, history, pieces, estimates = plan.live(), 0, [0] * len(noise), x[:, :0], [], []
    pushes = [x[:, i : i + size] for i, size in zip(range(0, n, 3), [3] * n, strict=False)]
    for piece in [pushes[0][:, :1], pushes[0][:, 1:], *pushes[1:], zeros]:
        end = None if position < n else n
        k = plan.n_draws(position, piece.shape[1], end)
        drawn = [x[:, i : i + j] for x, i, j in zip(noise, used, k, strict=True)]
        v = plan.privatize(history, piece, np.concatenate(drawn, axis=1), position, end)
        again = plan.live()
        again.restore(live.state())
        live = again
        pieces.append(v)
        estimates.append(live.push(v, end))
        position, used = position + piece.shape[1], np.add(used, k)
        seen = np.concatenate([history, piece], axis=1)
        history = seen[:, seen.shape[1] - plan.needed(position) :]
    assert position == n + lag
    assert used.tolist() == [x.shape[1] for x in noise]
    assert (np.concatenate(pieces, axis=-1) == whole).all()
    assert (np.concatenate(estimates, axis=1) == plan.estimate(whole, n)).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_configuration_makes_the_same_mechanism(designs, name):
    _, plan = designs[name]
    again = load_exact(json.loads(json.dumps(plan.configuration)))
    assert again.digest == plan.digest
    assert again.guarantee == plan.guarantee
    v = np.zeros((1, plan.per_step, 9), np.int64) + 7
    v = v if plan.per_step > 1 else v[:, 0]
    assert (again.estimate(v) == plan.estimate(v)).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_promise_is_what_the_noise_gives(designs, name):
    mechanism, plan = designs[name]
    guarantee, demanded = plan.guarantee, mechanism.privacy
    said = " ".join(str(guarantee).split())
    steps = plan.inputs.change(1.0)
    touched = 1 if name == "signed" else plan.per_step
    if len(plan.drawn_laws) > 1:
        return  # test_unequal_shares.py
    if name == "canonical":
        assert guarantee.loss.approximate == ((plan.noise[0].epsilon, plan.noise[0].delta),)
        assert guarantee.loss.approximate[0][1] <= Fraction(0.05)
    else:
        assert guarantee.loss.pure == (touched * steps * Fraction(plan.noise[0].s, 2 ** plan.noise[0].j),)
        assert guarantee.loss.pure[0] <= Fraction(demanded.epsilon)
        assert guarantee.delta == 0
        assert f"ε = {guarantee.loss.pure[0]} exactly" in said
        rate = f"{plan.noise[0].s}/2^{plan.noise[0].j}"
        q = np.exp(-plan.noise[0].s / 2.0 ** plan.noise[0].j)
        deviation = np.sqrt(2 * q) / (1 - q)  # of P(n) ∝ q^|n|
        law = f"two-sided geometric, rate {rate} (standard deviation about {deviation:.4g} units)"
        assert f"{law}, drawn exactly, once for every block" in said
    assert 0.999999 * demanded.epsilon < guarantee.epsilon <= demanded.epsilon
    assert "Gaussian" not in said
    assert json.loads(guarantee.to_json())["gdp_mu"] is None


def test_events_and_streams_of_a_person_are_paid_for():
    mechanism = dp.block_sums(TARGET, dp.Privacy(1, max_change=2, max_events=3), COUNTS, length=2, noise="geometric")
    plan = dp.exact(mechanism, dp.Inputs(0, 20, n_streams=4, streams_per_person=2))
    assert plan.guarantee.loss.pure[0] == 12 * plan.noise[0].per_step
    assert plan.guarantee.epsilon <= 1
    clamped = dp.exact(mechanism, dp.Inputs(0, 1))
    assert clamped.guarantee.loss.pure[0] == 3 * clamped.noise[0].per_step  # a change is at most that of the range


def test_a_release_is_close_to_its_neighbours_by_enumeration():
    """All of the law of two numbers, the second input chosen by the first number: every ratio is at most e^ε."""
    plan = dp.exact(dp.block_sums(TARGET, dp.Privacy(1), COUNTS, length=2), INPUTS)
    rate, reach = float(plan.noise[0].per_step), 40
    values = np.arange(-reach, reach + 1)

    def law(n):
        return (1 - math.exp(-rate)) / (1 + math.exp(-rate)) * np.exp(-rate * np.abs(n))

    def joint(x):
        """P(v_1, v_2) where the third input is 1 if v_1 is odd."""
        found = np.empty((len(values), len(values)))
        for i, first in enumerate(values):
            inputs = np.array([[*x[:2], first % 2, x[3]]])
            sums = plan.privatize(inputs[:, :0], inputs, np.zeros((1, 2), np.int64))[0, 1::2]
            found[i] = law(first - sums[0]) * law(values - sums[1])
        return found

    base = joint([1, 2, 0, 3])
    for place in (0, 1, 3):
        changed = [1, 2, 0, 3]
        changed[place] += 1
        assert np.abs(np.log(joint(changed) / base)).max() <= plan.guarantee.epsilon + 1e-12


@pytest.mark.parametrize(
    "options",
    [
        {"length": 3, "lag": 2},
        {"length": (2, 6)},
        {"length": (2, 6), "shares": (0.9, 0.1)},
        {"weights": SIGNS, "releases": [2, 4], "lag": 1},
        {"length": 4},
    ],
)
def test_the_prediction_is_what_the_exact_path_errs_by(options):
    """Within 5 standard errors; noise of the operating system, so a false alarm comes once in 1.7 million runs."""
    horizon = 50 if options == {"length": 4} else None
    target = TARGET if horizon is None else dp.Toeplitz.of(dp.Filter([1], [1, -0.999]), horizon)
    chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[2, 3])
    streams, n = 400, horizon or 240
    plan = dp.exact(dp.block_sums(target, dp.Privacy(1), chain, **options), dp.Inputs(0, 5, n_streams=streams))
    rng, lag = np.random.default_rng(11), plan.lag
    flips = rng.random((streams, n)) < np.where(np.arange(n) == 0, 0.5, 0.25)
    x = 2 + np.cumsum(flips, axis=1) % 2
    noise, k = NoiseOfLaws.of(plan.drawn_laws), plan.n_draws(0, n + lag, n)
    noise.ready(streams, k)
    padded = np.concatenate([x, np.zeros((streams, lag), np.int64)], axis=1)
    v = plan.privatize(x[:, :0], padded, noise.take(streams, k), 0, n)
    coefficients = ([0.1], [1, -0.9]) if horizon is None else ([1], [1, -0.999])
    squares = (plan.estimate(v, n)[:, lag:] - signal_filter(*coefficients, x)) ** 2
    # over cycles, behind the rest, and before the last one, which may have waited for blocks that never came
    kept = slice(None) if horizon is not None else slice(120, 216)
    means = squares[:, kept].mean(axis=1)
    assert abs(means.mean() - plan.predicted_mse) < 5 * means.std(ddof=1) / math.sqrt(streams)


def test_noise_that_a_person_in_several_streams_takes_has_a_receiver_of_its_own(designs):
    mechanism, alone = designs["one level"]
    both = dp.exact(mechanism, dp.Inputs(0, 20, n_streams=2, streams_per_person=2))
    assert alone.receiver is mechanism.receiver
    assert both.predicted_mse > alone.predicted_mse
    variance = float(both.noise[0].variance)
    assert both.predicted_mse < mechanism.mse_behind((variance,), mechanism.receiver)


def test_canonical_noise_of_a_small_delta_is_geometric():
    mechanism = dp.block_sums(TARGET, dp.Privacy(1, 1e-6), COUNTS, length=2)
    assert mechanism.noise_kinds == ("canonical",)
    plan = dp.exact(mechanism, INPUTS)
    assert isinstance(plan.noise[0], GeometricRate)
    assert plan.guarantee.delta == 0
    assert plan.predicted_mse == pytest.approx(mechanism.predicted_mse, rel=3e-4)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (dp.Inputs(0, 20, unit=2), r"the units of the design, multiples of 1, got the unit 2 .* unit=1\)"),
        (dp.Inputs(0.5, 20.5, centre=0.5), "got the unit 1 and the centre 1/2"),
        (dp.Inputs(0, 20, multiples=False), "multiples=True, as the design takes values for multiples of its unit"),
    ],
)
def test_other_lattices_are_refused(designs, inputs, message):
    with pytest.raises(dp.DesignError, match=message):
        dp.exact(designs["one level"][0], inputs)


def test_less_noise_is_refused(designs):
    _, plan = designs["one level"]
    with pytest.raises(dp.DesignError, match="at most epsilon 1, got 1"):
        replace(plan, noise=(plan.noise[0]._replace(s=plan.noise[0].s + 1),))


def test_sums_must_fit():
    mechanism = dp.block_sums(TARGET, dp.Privacy(1), COUNTS, length=2)
    plan = dp.exact(mechanism, dp.Inputs(0, 2**40))
    assert plan.memory == 1
    receiver = replace(plan.receiver, lengths=(2**23,))
    with pytest.raises(dp.DesignError, match=r"below 2\*\*62"):
        replace(plan, mechanism=replace(mechanism, receiver=receiver))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 8, "group": 2}, "noise that several sums share cannot be drawn exactly .* without a group"),
        ({"length": 2, "noise": "staircase"}, 'staircase noise cannot be drawn exactly .* noise="geometric"'),
    ],
)
def test_what_has_no_exact_form_is_refused_with_what_to_do(options, message):
    if "group" in options:
        options = {**options, "slack": 1}
    mechanism = dp.block_sums(TARGET, dp.Privacy(3, max_change=1), CHAIN, **options)
    with pytest.raises(dp.ReleaseError, match=f"must be one that has an exact form, got .*: {message}"):
        dp.exact(mechanism, dp.Inputs(-0.5, 0.5, centre=-0.5))


def test_it_is_shown():
    plan = dp.exact(dp.block_sums(TARGET, dp.Privacy(1), COUNTS, length=2), INPUTS)
    assert repr(plan).startswith("<ExactBlockSums 'block sums lag 0': predicted RMSE 0.")
    assert "sums of 2 steps" in plan._repr_html_()
    assert plan.released(0, 4).tolist() == [False, True, False, True]
