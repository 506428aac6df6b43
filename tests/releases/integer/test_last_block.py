"""A block that the last step leaves unfinished: what is published of it, what it tells, and what it costs."""

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.dense_last_block import best_estimates, sum_rows

import dpfast as dp
from dpfast.releases.integer.exact_forms import load_exact

N, FADES = 23, 0.9
TARGET = dp.Filter([0.1], [1, -FADES])
COUNTS = dp.ARMA([1.2], [1, -0.7], mean=5)
COVARIANCE = 1.44 / (1 - 0.49) * 0.7 ** np.abs(np.subtract.outer(np.arange(400), np.arange(400)))
INPUTS = dp.Inputs(0, 20, centre=3)
SIGNS = [[1, 0], [0, 1], [-1, 0], [0, -1]]
KINDS = {
    "one level": {"length": 5, "lag": 3},
    "no lag": {"length": 5},
    "long lag": {"length": 4, "lag": 14},
    "two levels": {"length": (2, 6), "lag": 1},
    "second level alone": {"length": (1, 4), "lag": 2},
    "unequal shares": {"length": (2, 6), "shares": (0.75, 0.25), "lag": 1},
    "signed": {"weights": SIGNS, "lag": 5},
    "in turn": {"weights": SIGNS, "releases": [2, 4], "lag": 4},
}


def design(name, target=TARGET, **options):
    return dp.block_sums(target, dp.Privacy(1), COUNTS, **KINDS[name], **options)


def over(n):
    return dp.Toeplitz.of(dp.Filter([0.1], [1, -0.999]), n)


def variances_of(plan):
    """Of the noise of each level."""
    return [float(x.variance) for x in plan.noise] * (plan.per_step if len(plan.noise) == 1 else 1)


def dense(plan, n, response, *, publish=True, first=0):
    receiver, weights = plan.receiver, plan.mechanism.weights
    lates = receiver.offsets or (0,) * len(receiver.lengths)
    rows = sum_rows(receiver.lengths, lates, receiver.phase, weights, n, publish=publish)
    return rows, *best_estimates(rows, variances_of(plan), COVARIANCE[:n, :n], response, plan.lag, first)


def estimates_of(plan, rows, v, n):
    """What the receiver makes of numbers in the order of `rows`."""
    shaped = np.zeros((1, plan.per_step, n + plan.lag), np.int64)
    for (t, level, _), value in zip(rows, v, strict=True):
        shaped[0, level, t] = value
    assert (np.atleast_2d(plan.released(0, n + plan.lag, n)) == np.isin(shaped[0], v)).all()
    return plan.estimate(shaped if plan.per_step > 1 else shaped[:, 0], n)[0, plan.lag :]


@pytest.mark.parametrize("n", [N, 22])
@pytest.mark.parametrize("name", KINDS)
def test_over_a_horizon_estimates_are_the_best_linear_ones_and_err_as_predicted(name, n):
    plan = dp.exact(design(name, over(n)), INPUTS, last_block="publish")
    response = 0.1 * 0.999 ** np.arange(n)
    rows, weights, errors = dense(plan, n, response)
    np.testing.assert_allclose(plan.step_mse(), errors, rtol=1e-7, atol=1e-12)
    assert plan.predicted_mse == pytest.approx(errors.mean(), rel=1e-8)
    v = np.random.default_rng(3).permutation(len(rows)) * 7 + 1
    mean = np.array([2 * row.sum() for _, _, row in rows])  # of the inputs about the centre
    expected = weights @ (v - mean) + 5 * np.cumsum(response)
    np.testing.assert_allclose(estimates_of(plan, rows, v, n), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", KINDS)
def test_a_dropped_block_errs_as_predicted_over_a_horizon(name):
    plan = dp.exact(design(name, over(N)), INPUTS, last_block="drop")
    _, _, errors = dense(plan, N, 0.1 * 0.999 ** np.arange(N), publish=False)
    np.testing.assert_allclose(plan.step_mse(), errors, rtol=1e-7, atol=1e-12)
    published = dp.exact(design(name, over(N)), INPUTS, last_block="publish")
    assert (published.step_mse() <= plan.step_mse() * (1 + 1e-12)).all()
    assert published.predicted_mse < plan.predicted_mse


@pytest.mark.parametrize("n", [300, 301, 302, 303])
@pytest.mark.parametrize("name", KINDS)
def test_behind_a_long_stream_the_last_estimates_are_the_best_linear_ones(name, n):
    """The receiver of blocks for ever has forgotten the start, to .9^200 in the errors and .7^200 in the gains."""
    phase = 2 if name == "one level" else 0
    plan = dp.exact(design(name, phase=phase), INPUTS, last_block="publish", n_steps=n)
    response = 0.1 * FADES ** np.arange(n)
    last = slice(n - 1 - plan.lag, n)
    rows, weights, errors = dense(plan, n, response, first=last.start)
    np.testing.assert_allclose(plan.step_mse()[last], errors[last], rtol=1e-7)
    v = np.random.default_rng(3).permutation(len(rows)) + 1
    mean = np.array([2 * row.sum() for _, _, row in rows])
    expected = weights @ (v - mean) + 5 * np.cumsum(response)
    np.testing.assert_allclose(estimates_of(plan, rows, v, n)[last], expected[last], rtol=1e-7)
    dropped = dp.exact(design(name, phase=phase), INPUTS)
    assert plan.predicted_mse == dropped.predicted_mse  # of a cycle for ever
    assert (plan.step_mse()[last] <= dropped.step_mse(n)[last] * (1 + 1e-12)).all()


def test_the_page_says_what_the_last_estimates_gain():
    page = (Path(__file__).parents[3] / "docs/guides/release.md").read_text(encoding="utf-8")
    chain = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
    mechanism = dp.block_sums(dp.Filter([1, 0.995], [1, -0.995]), dp.Privacy(1), chain, lag=5, length=23)
    inputs = dp.Inputs(-0.5, 0.5, centre=-0.5)
    for last_block, words in (
        ("drop", "their RMSE is {} to {} when the"),
        ("publish", "{} to {} when it is published"),
    ):
        end = {"last_block": last_block, "n_steps": 1011 if last_block == "publish" else None}
        rmse = np.sqrt(dp.exact(mechanism, inputs, **end).step_mse(1011)[[-6, -1]])
        assert words.format(*(f"{x:.2f}" for x in rmse)) in " ".join(page.split())


@pytest.mark.parametrize("last_block", ["publish", "drop"])
@pytest.mark.parametrize("name", KINDS)
def test_short_streams_err_as_predicted(name, last_block):
    """The errors of the matrix that the receiver is, from what it makes of each number alone."""
    for n in (1, 2, 3, 5, 7, 12):
        end = {"last_block": last_block, "n_steps": n if last_block == "publish" else None}
        plan = dp.exact(design(name, phase=1 if name == "signed" else 0), replace(INPUTS, centre=5), **end)
        response = 0.1 * FADES ** np.arange(n)
        rows, _, best = dense(plan, n, response, publish=last_block == "publish")
        found = np.zeros((n, len(rows)))
        for i, (t, level, _) in enumerate(rows):
            v = np.zeros((1, plan.per_step, n + plan.lag), np.int64)
            v[0, level, t] = 1
            found[:, i] = plan.estimate(v if plan.per_step > 1 else v[:, 0], n)[0, plan.lag :] - 5 * np.cumsum(response)
        output = sum(np.diag(np.full(n - k, response[k]), -k) for k in range(n))
        of_inputs = found @ np.array([row for _, _, row in rows]).reshape(-1, n) - output
        noise = found**2 @ np.array([variances_of(plan)[level] for _, level, _ in rows])
        errors = np.einsum("ij,jk,ik->i", of_inputs, COVARIANCE[:n, :n], of_inputs) + noise
        np.testing.assert_allclose(plan.step_mse(n), errors, rtol=1e-9, atol=1e-13)
        assert (errors >= best * (1 - 1e-9)).all()


@pytest.mark.parametrize("name", KINDS)
def test_pieces_are_the_whole_wherever_they_are_cut(name):
    plan = dp.exact(design(name), INPUTS, last_block="publish", n_steps=N)
    x = np.random.default_rng(2).integers(-3, 18, (1, N + plan.lag)) * (np.arange(N + plan.lag) < N)
    drawn = [1000 * i + np.arange(n)[None] for i, n in enumerate(plan.n_draws(0, N), 1)]  # of each law
    whole = plan.privatize(x[:, :0], x, np.concatenate(drawn, axis=1), 0, N)
    rng, estimates = np.random.default_rng(8), plan.estimate(whole, N)
    for _ in range(12):
        cuts = [0, *sorted({N, *rng.integers(1, N + plan.lag + 1, 5).tolist()} - {N + plan.lag}), N + plan.lag]
        live, history, left, found = plan.live(), x[:, :0], drawn, []
        for a, b in itertools.pairwise(cuts):
            end = None if b <= N else N
            counts = plan.n_draws(a, b - a, end)
            noise = np.concatenate([y[:, :k] for y, k in zip(left, counts, strict=True)], axis=1)
            v = plan.privatize(history, x[:, a:b], noise, a, end)
            assert (v == whole[..., a:b]).all()
            again = plan.live()
            again.restore(live.state())
            live, left = again, [y[:, k:] for y, k in zip(left, counts, strict=True)]
            found.append(live.push(v, end))
            history = x[:, b - plan.needed(b) : b]
        assert (np.concatenate(found, axis=1) == estimates).all()
        assert plan.needed(N) == 0


def test_estimates_of_a_stream_do_not_depend_on_those_beside_it():
    plan = dp.exact(design("two levels"), INPUTS, last_block="publish", n_steps=N)
    many = dp.exact(design("two levels"), replace(INPUTS, n_streams=37), last_block="publish", n_steps=N)
    v = np.random.default_rng(2).integers(-30, 30, (37, 2, N + 1))
    each = np.concatenate([plan.estimate(x[np.newaxis], N) for x in v])
    assert (many.estimate(v, N) == each).all()


def test_closing_before_the_last_step_publishes_nothing_of_it():
    plan = dp.exact(design("long lag"), INPUTS, last_block="publish", n_steps=N)
    dropped = dp.exact(design("long lag"), INPUTS)
    for end in range(N - 14, N):
        x = np.full((1, end + 14), 7)
        assert plan.n_draws(0, end + 14, end) == dropped.n_draws(0, end + 14, end)
        noise = np.zeros((1, sum(plan.n_draws(0, end + 14, end))), np.int64)
        v = plan.privatize(x[:, :0], x, noise, 0, end)
        assert (v == dropped.privatize(x[:, :0], x, noise, 0, end)).all()
        assert (plan.estimate(v, end) == dropped.estimate(v, end)).all()


def test_the_model_is_compared_with_whole_blocks_alone():
    """What is published of an unfinished block has another law, and is not taken for a whole one."""
    n = 5 * 400 + 3
    plan, dropped = (dp.exact(design("one level"), INPUTS, **x) for x in ({"last_block": "publish", "n_steps": n}, {}))
    v = np.where(dropped.released(0, n), np.random.default_rng(5).integers(0, 20, n), 0)[None]
    beside = v.copy()
    beside[0, n - 1] = 10**6
    judged = [x.evidence(y, n).judge(1e-3) for x, y in ((dropped, v), (plan, v), (plan, beside))]
    assert judged[0] == judged[1] == judged[2]
    assert judged[0].p_values


def joint_law(plan, x, reach, n_values):
    """The law of all that is published of integers x, on a grid about nothing: (values, ...) in the order of draws."""
    rate = float(plan.noise[0].per_step)
    sums = plan.privatize(x[:, :0], x, np.zeros((1, n_values), np.int64), 0, x.shape[1])[0]
    sums = np.atleast_2d(sums).T[np.atleast_2d(plan.released(0, x.shape[1], x.shape[1])).T]
    axes = [np.exp(-rate * np.abs(np.arange(-reach, reach + 1) - s)) for s in sums]
    return np.log(np.einsum(",".join("abcdefgh"[:n_values]) + "->" + "abcdefgh"[:n_values], *axes))


@pytest.mark.parametrize("name", ["no lag", "two levels", "signed", "in turn"])
def test_what_is_published_is_close_to_that_of_neighbours_by_enumeration(name):
    """Of every small log and every event in it: no value of v is more than e^ε times as likely without the event.

    The grid reaches beyond all sums: where it ends the ratio is as large as it is anywhere behind.
    """
    n = {"no lag": 7, "two levels": 3, "signed": 5, "in turn": 3}[name]
    plan = dp.exact(design(name), dp.Inputs(0, 2), last_block="publish", n_steps=n)
    n_values = sum(plan.n_draws(0, n, n))
    reach = 2 * n + 1
    for log in itertools.islice(itertools.product([0, 1], repeat=n), 0, None, 3):
        base = joint_law(plan, np.array([log]), reach, n_values)
        for place in range(n):
            beside = np.array([log])
            beside[0, place] += 1
            change = np.abs(joint_law(plan, beside, reach, n_values) - base).max()
            assert change <= float(plan.guarantee.loss.pure[0]) + 1e-9


@pytest.mark.parametrize("name", KINDS)
def test_a_configuration_makes_the_same_to_the_bit_and_says_what_was_declared(name):
    plan = dp.exact(design(name), INPUTS, last_block="publish", n_steps=N)
    again = load_exact(json.loads(json.dumps(plan.configuration)))
    assert again.digest == plan.digest
    assert again.n_steps == N
    assert again.guarantee == plan.guarantee
    v = np.random.default_rng(2).integers(-30, 30, (1, plan.per_step, N + plan.lag))
    v = v if plan.per_step > 1 else v[:, 0]
    assert (again.estimate(v, N) == plan.estimate(v, N)).all()
    other = dp.exact(design(name), INPUTS)
    assert "last_block" not in other.configuration
    assert plan.demand == {**other.demand, "last_block": "publish", "n_steps": N}
    assert (
        "a block that the last of 23 steps leaves unfinished is published there" in plan.guarantee.items()["published"]
    )
    assert plan.guarantee.loss == other.guarantee.loss


def test_where_all_blocks_end_nothing_is_left():
    plan, dropped = (dp.exact(design("one level"), INPUTS, **x) for x in ({"last_block": "publish", "n_steps": 20}, {}))
    assert plan.last_block.levels == ()
    v = np.arange(23)[None]
    assert (plan.estimate(v, 20) == dropped.estimate(v, 20)).all()
    assert load_exact(json.loads(json.dumps(plan.configuration))).digest == plan.digest


def test_far_from_the_start_an_end_is_found_at_once_and_is_that_for_ever():
    ends = [
        dp.exact(design("two levels"), INPUTS, last_block="publish", n_steps=n) for n in (6 * 200 + 3, 6 * 10**12 + 3)
    ]
    np.testing.assert_allclose(ends[0].last_block.weights, ends[1].last_block.weights, rtol=1e-9)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"last_block": "keep"}, "last_block must be one of 'drop', 'publish', got 'keep'"),
        ({"last_block": "publish"}, "n_steps must be given with last_block='publish', got None: .* how many steps"),
        ({"last_block": "publish", "n_steps": 0}, "n_steps must be an integer, at least 1 and at most .*, got 0"),
        ({"last_block": "publish", "n_steps": 2.5}, "n_steps must be an integer"),
        ({"last_block": "drop", "n_steps": 9}, "n_steps must come with last_block='publish', got 9"),
        ({"n_steps": 9}, "n_steps must come with last_block='publish', got 9"),
    ],
)
def test_bad_declarations_are_refused(words, message):
    with pytest.raises(ValueError, match=message):
        dp.exact(design("one level"), INPUTS, **words)


@pytest.mark.parametrize(
    "mechanism",
    [
        dp.input_perturbation(TARGET, dp.Privacy(1), noise="geometric"),
        dp.zero_forcing(TARGET, dp.Privacy(1, 1e-6)),
        dp.randomized_response(TARGET, dp.Privacy(1), dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[0, 1])),
    ],
    ids=["inputs", "filter", "responses"],
)
@pytest.mark.parametrize("last_block", ["drop", "publish"])
def test_mechanisms_without_blocks_have_no_last_block(mechanism, last_block):
    with pytest.raises(
        ValueError, match=f"last_block must be left out for a mechanism without blocks, got '{last_block}'"
    ):
        dp.exact(mechanism, dp.Inputs(0, 1), last_block=last_block)
    plan = dp.exact(mechanism, dp.Inputs(0, 1))
    assert plan.n_steps is None
    with pytest.raises(ValueError, match="last_block must be left out for a mechanism without blocks"):
        plan.ending_after(3)


def test_steps_beyond_the_declared_ones_are_refused():
    plan = dp.exact(design("one level"), INPUTS, last_block="publish", n_steps=N)
    with pytest.raises(ValueError, match="after 23 steps, as n_steps declared, got steps up to 24: close the"):
        plan.check_steps(N + 1)
    with pytest.raises(ValueError, match="got a signal of 22: declare as many as there are"):
        plan.check_steps(N - 1, whole=True)
    with pytest.raises(ValueError, match="got a signal of 22"):
        plan.step_mse(N - 1)
    plan.check_steps(N, whole=True)
    with pytest.raises(ValueError, match="made for 20 steps, got a signal of 19"):
        dp.exact(design("one level", over(20)), INPUTS, last_block="publish", n_steps=19)
    assert math.isclose(plan.step_mse().mean(), plan.step_mse(N).mean())
