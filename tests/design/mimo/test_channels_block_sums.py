"""Block sums of several streams, against dense estimates, scalar designs, searches, enumeration and simulation."""

import itertools
import math

import numpy as np
import pytest
from scipy import signal

import dpfast as dp

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
TARGET = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])
STREAMS = [(0.5, 4.0), (0.5, 9.0), (0.8, 16.0)]  # pole and variance of each


def stream(pole, variance, mean=0.0):
    return dp.ARMA([1], [1, -pole], innovation_std=math.sqrt(variance * (1 - pole * pole)), mean=mean)


MODELS = [stream(*x) for x in STREAMS]


def demand(adjacency, epsilon=1.0, **more):
    return dp.Privacy(epsilon, adjacency=adjacency, **more)


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("lag", [0, 3])
def test_one_input_and_output_are_the_scalar_design(lag):
    model, privacy = stream(0.8, 16.0, mean=3.0), dp.Privacy(1, max_change=2, max_events=2)
    scalar = dp.block_sums(QUICK, privacy, model, lag=lag, phase=1)
    several = dp.block_sums(dp.FilterMatrix([[QUICK]]), privacy, [model], lag=lag, phase=1)
    assert several.lengths == scalar.lengths
    assert several.predicted_mse == pytest.approx(scalar.predicted_mse, rel=1e-10)
    assert several.ideal_mse == pytest.approx(scalar.ideal_mse, rel=1e-10)
    u = np.rint(np.random.default_rng(0).normal(3, 4, (1, 60)))
    paths = several.simulate(u, seed=1)
    np.testing.assert_array_equal(paths.estimate[0], scalar.simulate(u[0], seed=1).estimate)


def dense_mse(n_past, lengths, variances, lag):
    """Best linear estimates from the last sums of all streams, by covariances; the mean over a cycle, by outputs."""
    cycle = math.lcm(*lengths)
    f = TARGET.impulse(n_past)  # of y at t, by the inputs t, t - 1, ...
    n = n_past + cycle
    found = np.zeros(len(f))
    for i, (pole, variance) in enumerate(STREAMS):
        r = variance * pole ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        ends = np.arange(lengths[i], n + 1, lengths[i])  # a sum is of the inputs before its end
        sums = np.array([(np.arange(n) < e) & (np.arange(n) >= e - lengths[i]) for e in ends], dtype=float)
        for t in range(n - cycle, n):
            there = ends <= t + 1
            s = sums[there]
            cov = s @ r @ s.T + variances[i] * np.eye(len(s))
            for a in range(len(f)):
                g = np.zeros(n)
                last = t - lag
                g[: last + 1] = f[a, i][np.minimum(np.arange(last, -1, -1), n_past - 1)]
                g[: max(0, last + 1 - n_past)] = 0.0
                cross = s @ r @ g
                found[a] += (g @ r @ g - cross @ np.linalg.solve(cov, cross)) / cycle
    return found


@pytest.mark.parametrize("lag", [0, 4])
def test_the_error_of_each_output_is_that_of_the_best_linear_estimate_by_dense_covariances(lag):
    made = dp.block_sums(TARGET, demand("one_input", 0.7), MODELS, length=[2, 3, 1], lag=lag, noise="geometric")
    q = math.exp(-0.7)
    variance = 2 * q / (1 - q) ** 2
    np.testing.assert_allclose(made.output_mse, dense_mse(400, [2, 3, 1], [variance] * 3, lag), rtol=1e-8)


def test_prediction_and_simulation_agree_output_by_output_with_what_is_not_published_too():
    models = [stream(0.5, 4.0, mean=7.0), stream(0.5, 9.0), stream(0.8, 16.0, mean=-2.0)]
    made = dp.block_sums(TARGET, demand("each_input", 0.5), models, lag=2, shares=None, unit=0.25)
    assert None in made.lengths
    n_streams, n, burn = 400, 400, 150
    seeds = 11, 12, 13
    u = np.stack([m.sample(n_streams, n, seed=s) for m, s in zip(models, seeds, strict=True)], axis=1)
    y = np.stack(
        [sum(signal.lfilter(f.b, f.a, u[:, i]) for i, f in enumerate(row) if f.b.any()) for row in TARGET.rows],
        axis=1,
    )
    error = made.simulate(u, seed=3).estimate[..., burn:] - y[..., burn - 2 : -2]
    means = (error**2).mean(axis=-1)
    standard = means.std(axis=0, ddof=1) / math.sqrt(n_streams)
    assert (np.abs(means.mean(axis=0) - made.output_mse) <= 5 * standard).all()
    assert (standard < 0.05 * made.output_mse).all()


def test_all_outputs_are_estimated_from_the_same_published_sums_with_noise_of_its_own_for_each_input():
    made = dp.block_sums(TARGET, demand("one_input"), MODELS, length=[2, 3, 2])
    u = np.zeros((3, 30))
    v = made.simulate(u, seed=4).privatized
    for i in range(3):
        own = {tuple(np.nan_to_num(row[i].simulate(u[i], seed=9).privatized)) for row in made.entries if row[i]}
        assert len(own) == 1
    np.testing.assert_array_equal(np.isnan(v[0]), np.arange(1, 31) % 2 != 0)
    np.testing.assert_array_equal(np.isnan(v[1]), np.arange(1, 31) % 3 != 0)
    assert not np.array_equal(v[0], v[2], equal_nan=True)


# --- lengths and shares ---------------------------------------------------------------------------


def test_the_best_lengths_of_one_input_are_those_of_a_search_over_all():
    made = dp.block_sums(TARGET, demand("one_input"), MODELS)
    for i in range(3):
        errors = {}
        for n in range(1, 13):
            lengths = list(made.lengths)
            lengths[i] = n
            errors[n] = dp.block_sums(TARGET, demand("one_input"), MODELS, length=lengths).predicted_mse
        assert min(errors, key=errors.__getitem__) == made.lengths[i]


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_shares_of_epsilon_err_no_more_than_any_of_a_numerical_search(epsilon):
    target, models = dp.FilterMatrix([[SLOW, SLOW], [QUICK, 0]]), MODELS[1:]
    privacy = demand("each_input", epsilon)
    made = dp.block_sums(target, privacy, models)
    searched = [
        dp.block_sums(target, privacy, models, shares=[x, 1 - x]).predicted_mse for x in np.linspace(0.02, 0.98, 25)
    ]
    alone = []
    for i, j in (0, 1), (1, 0):  # or all of it for one input, and the whole variance of what the other one adds
        column = dp.FilterMatrix([[row[i]] for row in target.rows if row[i].b.any()])
        published = dp.block_sums(column, dp.Privacy(epsilon), [models[i]]).predicted_mse
        pole, variance = STREAMS[1:][j]
        r = variance * pole ** np.abs(np.subtract.outer(np.arange(400), np.arange(400)))
        alone.append(published + sum(f @ r @ f for f in target.impulse(400)[:, j]))
    assert made.predicted_mse <= min(*searched, *alone) * (1 + 1e-6)


@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
def test_permuting_inputs_permutes_the_design_and_scaling_outputs_scales_it(adjacency):
    made = dp.block_sums(TARGET, demand(adjacency, 3.0), MODELS, lag=1)
    order = [2, 0, 1]
    turned = dp.FilterMatrix([[row[i] for i in order] for row in TARGET.rows[::-1]])
    other = dp.block_sums(turned, demand(adjacency, 3.0), [MODELS[i] for i in order], lag=1)
    assert other.lengths == tuple(made.lengths[i] for i in order)
    np.testing.assert_allclose(other.epsilons, [made.epsilons[i] for i in order], rtol=1e-3)
    np.testing.assert_allclose(other.output_mse[::-1], made.output_mse, rtol=1e-3)
    assert other.predicted_mse == pytest.approx(made.predicted_mse, rel=1e-6)
    louder = dp.block_sums(3 * TARGET, demand(adjacency, 3.0), MODELS, lag=1)
    assert louder.predicted_mse == pytest.approx(9 * made.predicted_mse, rel=1e-6)


# --- privacy --------------------------------------------------------------------------------------


def changes_of_a_person(adjacency, m, n, sizes):
    """List what one event may add to the inputs (m, n): every pattern, of every size up to the largest."""
    if adjacency == "one_input":
        for i, t in itertools.product(range(m), range(n)):
            for k in range(-sizes[i], sizes[i] + 1):
                x = np.zeros((m, n), dtype=int)
                x[i, t] = k
                yield x
        return
    same = adjacency == "each_input_same_time"
    times = [(t,) * m for t in range(n)] if same else itertools.product(range(n), repeat=m)
    for at in times:
        for ks in itertools.product(*(range(-d, d + 1) for d in sizes)):
            x = np.zeros((m, n), dtype=int)
            x[np.arange(m), list(at)] = ks
            yield x


def sums_of(x, lengths, phases):
    """Sum blocks, each for itself."""
    for row, length, phase in zip(x, lengths, phases, strict=True):
        ends = [t for t in range(1, len(row) + 1) if (t + phase) % length == 0]
        yield [sum(row[max(0, e - length) : e]) for e in ends]


@pytest.mark.parametrize("events", [1, 2])
@pytest.mark.parametrize("adjacency", ["one_input", "each_input_same_time", "each_input"])
def test_no_pattern_of_one_person_costs_more_than_epsilon_and_some_cost_all_of_it(adjacency, events):
    sizes = (1, 2)
    target = dp.FilterMatrix([[QUICK, SLOW], [SLOW, QUICK]])
    privacy = demand(adjacency, 2.0, max_change=sizes, max_events=events)
    made = dp.block_sums(target, privacy, MODELS[1:], noise="geometric", length=[2, 3], phase=[1, 0])
    assert made.phases == (1, 0)
    rates = []
    for std in made.noise_stds:  # q of two-sided geometric noise with that deviation
        variance = std**2
        q = (variance + 1 - math.sqrt(2 * variance + 1)) / variance
        rates.append(-math.log(q))
    patterns = list(changes_of_a_person(adjacency, 2, 6, sizes))
    changed = {tuple(tuple(s) for s in sums_of(x, made.lengths, made.phases)) for x in patterns}
    several = {
        tuple(tuple(sum(k) for k in zip(*rows, strict=True)) for rows in zip(*those, strict=True))
        for those in itertools.product(changed, repeat=events)
    }
    worst = max(sum(r * sum(abs(k) for k in s) for r, s in zip(rates, x, strict=True)) for x in several)
    assert worst == pytest.approx(2.0, rel=1e-9)


@pytest.mark.parametrize("adjacency", ["one_input", "each_input"])
def test_the_hockey_stick_of_both_streams_together_is_at_most_delta(adjacency):
    epsilon, delta = 1.0, 0.05
    target = dp.FilterMatrix([[QUICK, SLOW]])
    made = dp.block_sums(target, dp.Privacy(epsilon, delta, adjacency=adjacency), MODELS[1:], noise="canonical")
    laws = []
    for entry in made.entries[0]:
        (law,) = entry.noise
        t = (1 - entry.privacy.delta) / (1 + math.exp(entry.privacy.epsilon))
        tails = [t]
        while tails[-1] > 0:
            tails.append(max(0.0, math.exp(-entry.privacy.epsilon) * (tails[-1] - entry.privacy.delta)))
        one_side = -np.diff(tails)
        p = np.concatenate([one_side[::-1], [1 - 2 * t], one_side])
        k = np.arange(len(p)) - len(one_side)
        assert law.variance == pytest.approx(float(p @ k**2), rel=1e-9)
        laws.append(np.pad(p, 1))
    shifts = [(1, 0), (0, 1)] if adjacency == "one_input" else itertools.product((-1, 0, 1), repeat=2)
    sticks = []
    for shift in shifts:
        p, moved = np.outer(*laws), np.outer(*(np.roll(x, s) for x, s in zip(laws, shift, strict=True)))
        sticks.append(np.maximum(moved - math.exp(epsilon) * p, 0).sum())
    assert max(sticks) <= delta * (1 + 1e-9)
    assert max(sticks) > delta / 2


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 1 / 3, 7.7])
def test_shares_as_rounded_sum_to_no_more_than_there_is(epsilon):
    privacy = dp.Privacy(epsilon, 1e-6, adjacency="each_input_same_time")
    made = dp.block_sums(dp.total(3) * QUICK, privacy, MODELS)
    assert math.fsum(made.epsilons) <= epsilon
    assert math.fsum(made.epsilons) == pytest.approx(epsilon, rel=1e-12)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weights": [[1]]}, "weights must not be given for a FilterMatrix"),
        ({"group": 2}, "group must not be given for a FilterMatrix"),
        ({"receiver": "bayes"}, "receiver must be 'linear' for a FilterMatrix"),
        ({"lag": "smoother"}, "lag must be a number of samples for a FilterMatrix"),
        ({"length": [1, 2]}, "length must be one for all inputs, or one for each of the 3"),
        ({"shares": [0.5, 0.25, 0.25]}, "shares must not be given where one event is at one input"),
        ({"phase": [0, 0, 9], "length": 2}, "phase must be"),
        ({"model": MODELS[:2]}, "model must be a sequence of 3 models"),
        ({"privacy": dp.Privacy(1)}, "adjacency must be said for 3 inputs"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(given, message):
    arguments = {"privacy": demand("one_input"), "model": MODELS} | given
    with pytest.raises(ValueError, match=message):
        dp.block_sums(TARGET, arguments.pop("privacy"), arguments.pop("model"), **arguments)


def test_entries_that_spend_more_than_there_is_are_refused():
    made = dp.block_sums(TARGET, demand("one_input"), MODELS)
    given = made.name, made.target, demand("each_input"), made.models, made.entries, 0
    with pytest.raises(ValueError, match="entries must spend at most epsilon 1 and delta 0"):
        dp.BlockChannelsMechanism(*given)


def test_one_input_takes_its_model_alone_and_names_the_error_of_each_output():
    model = dp.ARMA([1], [1, -0.5], mean=2.0)
    target = dp.FilterMatrix([[dp.Filter([0.5, 0.5])], [dp.Filter([0, 0, 1])]])
    alone, listed = (dp.block_sums(target, dp.Privacy(1), x) for x in (model, [model]))
    assert alone.models == (model,)
    assert alone.predicted_mse == listed.predicted_mse
    each = ", ".join(f"{x:.4g}" for x in np.sqrt(alone.output_mse))
    assert f"each output     RMSE {each}" in alone.summary()
    with pytest.raises(ValueError, match="model must be a sequence of 2 models"):
        dp.block_sums(dp.total(2), dp.Privacy(1, adjacency="one_input"), model)
