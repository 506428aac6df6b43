"""Posterior means behind exact sums and answers: the estimates of studies, and of a recursion in plain NumPy."""

import json
from dataclasses import replace

import numpy as np
import pytest
from helpers.chain_posterior import means_by_recursion
from scipy.signal import lfilter

import dpfast as dp
from dpfast.privacy.canonical_table import CanonicalTable
from dpfast.releases.integer.exact_forms import load_exact
from dpfast.releases.integer.live_posterior import FOR_EVER
from dpfast.releases.noise import NoiseOfLaws

TWO = [[0.75, 0.25], [0.25, 0.75]]
THREE = [[0.7, 0.2, 0.1], [0.15, 0.7, 0.15], [0.05, 0.25, 0.7]]
SLOW = [0.1], [1, -0.9]
CHAIN = dp.MarkovChain(TWO, levels=[-0.5, 0.5])
HORIZON, HALVES = 50, dp.Inputs(-0.5, 0.5, centre=-0.5, missing=-0.5)
# transition, levels, inputs, target, privacy, options
BLOCKS = {
    "every step": (TWO, [0, 1], dp.Inputs(0, 1), SLOW, dp.Privacy(3), {"length": 1, "lag": 2}),
    "blocks": (TWO, [0, 1], dp.Inputs(0, 4), SLOW, dp.Privacy(1), {"length": 4}),
    "late": (TWO, [-0.5, 0.5], HALVES, SLOW, dp.Privacy(2), {"length": 3, "lag": 7}),
    "phase": (THREE, [2, 3, 5], dp.Inputs(0, 9, centre=4), ([1, 0.5], [1]), dp.Privacy(1.3), {"length": 5, "phase": 2}),
    "canonical": (TWO, [0, 1], dp.Inputs(0, 1), SLOW, dp.Privacy(1, 0.05), {"length": 2, "lag": 1}),
    "horizon": (TWO, [0, 1], dp.Inputs(0, 1), ([1], [1, -0.999]), dp.Privacy(1), {"length": 4, "lag": 2}),
}


def designed(name):
    transition, levels, inputs, (b, a), privacy, options = BLOCKS[name]
    target = dp.Toeplitz.of(dp.Filter(b, a), HORIZON) if name == "horizon" else dp.Filter(b, a)
    chain = dp.MarkovChain(transition, levels=levels)
    mechanism = dp.block_sums(target, privacy, chain, receiver="bayes", **options)
    return mechanism, dp.exact(mechanism, inputs)


@pytest.fixture(scope="module")
def designs():
    return {name: designed(name) for name in BLOCKS}


@pytest.fixture(scope="module")
def answers():
    made = {}
    for delta in (0.0, 0.05):
        mechanism = dp.randomized_response(dp.Filter(*SLOW), dp.Privacy(1, delta), CHAIN, receiver="bayes", lag=2)
        made[delta] = mechanism, dp.exact(mechanism, HALVES)
    return made


def sums_of(name, plan, n, seed=4):
    """v of a signal on the levels, with noise that is drawn exactly; none at the declared zeros behind it."""
    x = plan.inputs.integers(np.random.default_rng(seed).choice(BLOCKS[name][1], (1, n)))
    noise, counts = NoiseOfLaws.of(plan.drawn_laws), plan.n_draws(0, n + plan.lag, n)
    noise.ready(1, counts)
    padded = np.concatenate([x, np.zeros((1, plan.lag), np.int64)], axis=1)
    return plan.privatize(x[:, :0], padded, noise.take(1, counts), 0, n)


def probability(law, n):
    """P(N = n) of integers, by its definition and up to a constant."""
    if isinstance(law, CanonicalTable):
        known = dict(zip(law.values, law.probabilities, strict=True))
        return np.array([float(known.get(int(k), 0)) for k in n])
    return np.exp(-float(law.per_step) * np.abs(n))


def expected_of(name, plan, v, end):
    """The estimates by the recursion of the formula; from the end on a sum tells nothing."""
    transition, levels, inputs, (b, a), _, options = BLOCKS[name]
    transition, levels = np.array(transition), np.array(levels, float)
    start = np.linalg.matrix_power(transition, 500)[0]
    mean, low = start @ levels, levels.min()
    length, phase, lag = plan.receiver.lengths[0], options.get("phase", 0), plan.lag
    t = np.arange(v.shape[1])
    taken = np.where(t < length - phase, length - phase, length)
    above = v[0] - taken * round((low - float(inputs.centre)) / float(inputs.unit))
    left = (end + phase) // length

    def likely(n):
        nonlocal left
        left -= 1
        return probability(plan.noise[0], n) if left >= 0 else np.ones(len(n))

    steps = np.rint(levels - low).astype(int)
    centred = means_by_recursion(transition, start, steps, levels - mean, b, a, lag, length, phase, likely, above)
    return centred + lfilter(b, a, np.where(t >= lag, mean, 0.0))


@pytest.mark.parametrize("name", BLOCKS)
def test_estimates_are_those_of_the_recursion(designs, name):
    _, plan = designs[name]
    n = plan.mechanism.horizon or 57
    v = sums_of(name, plan, n)
    np.testing.assert_allclose(plan.estimate(v, n)[0], expected_of(name, plan, v, n), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", BLOCKS)
def test_estimates_are_those_of_a_simulation_of_the_same_sums(designs, name):
    """Of the simulation's own sums, with the tables of the noise that it draws."""
    mechanism, plan = designs[name]
    n = mechanism.horizon or 60
    paths = mechanism.simulate(np.random.default_rng(1).choice(BLOCKS[name][1], (1, n)), seed=3)
    shift = (mechanism.receiver.mean - float(plan.inputs.centre)) / float(plan.inputs.unit)
    due = plan.schedule.due(0, n)
    v = np.where(due, np.nan_to_num(paths.privatized) + shift * plan.schedule.weighed(0, n), 0.0)
    assert np.abs(v - np.rint(v)).max() < 1e-9  # they were integers
    same = replace(plan)
    object.__setattr__(same, "_posterior", mechanism.receiver_behind(mechanism.noise[0], mechanism.horizon or FOR_EVER))
    found = same.estimate(np.rint(v).astype(np.int64))
    np.testing.assert_allclose(found, paths.estimate, rtol=0, atol=1e-10)
    # the noise that is drawn exactly is that of the design, but for the rounding of its rate
    np.testing.assert_allclose(plan.estimate(np.rint(v).astype(np.int64)), found, rtol=0, atol=1e-6)


def check_pieces(plan, v, n):
    """However it is cut, through a state that is stored each time; behind the end too."""
    whole = plan.estimate(v, n)
    for cuts in (range(1, n), [1, 2, 9], [n // 2]):
        live, found = plan.live(), []
        for piece in np.split(v[:, :n], list(cuts), axis=1):
            again = plan.live()
            again.restore(live.state())
            assert again.position == live.position
            live = again
            found.append(live.push(piece))
        found.append(live.push(v[:, n:], n))
        assert (np.concatenate(found, axis=1) == whole).all()
    return whole


@pytest.mark.parametrize("name", BLOCKS)
def test_pieces_are_the_whole(designs, name):
    _, plan = designs[name]
    n = plan.mechanism.horizon or 41
    v = sums_of(name, plan, n)
    whole = check_pieces(plan, v, n)
    beyond = v.copy()
    beyond[:, n:] = 1000
    assert (plan.estimate(beyond, n) == whole).all()  # nothing is released there


def test_many_streams_are_each_alone():
    transition, levels, inputs, target, privacy, options = BLOCKS["late"]
    chain = dp.MarkovChain(transition, levels=levels)
    mechanism = dp.block_sums(dp.Filter(*target), privacy, chain, receiver="bayes", **options)
    plan, alone = (dp.exact(mechanism, replace(inputs, n_streams=n)) for n in (19, 1))
    v = np.random.default_rng(1).integers(-9, 12, (19, 500)) * plan.released(0, 500)
    each = np.concatenate([alone.estimate(row[None]) for row in v])
    assert (plan.estimate(v) == each).all()
    live = plan.live()
    pushed = [live.push(np.ascontiguousarray(x)) for x in np.split(v, [7, 480, 481], axis=1)]
    assert (np.concatenate(pushed, axis=1) == each).all()


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_answers_are_weighed_by_the_table_that_is_drawn(answers, delta):
    _, plan = answers[delta]
    n, lag = 40, plan.lag
    x = np.random.default_rng(3).integers(0, 2, (1, n + lag))
    noise = NoiseOfLaws.of(plan.drawn_laws)
    noise.ready(1, (n + lag,))
    v = plan.privatize(x[:, :0], x, noise.take(1, (n + lag,)), 0, n)
    certain, truly, falsely = (float(p) for p in plan.noise.probabilities)
    of_low, t = {-2: certain, -1: truly, 1: falsely, 2: 0.0}, iter(range(n + lag))

    def likely(_):
        step = next(t)
        return np.array([of_low[int(v[0, step])], of_low[-int(v[0, step])]]) if step < n else np.ones(2)

    transition, start = np.array(TWO), np.array([0.5, 0.5])
    expected = means_by_recursion(
        transition, start, np.array([0, 1]), np.array([-0.5, 0.5]), *SLOW, lag, 1, 0, likely, v[0] * 0
    )
    np.testing.assert_allclose(plan.estimate(v, n)[0], expected, rtol=0, atol=1e-12)
    check_pieces(plan, v, n)


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_estimates_behind_answers_are_those_of_a_simulation(answers, delta):
    mechanism, plan = answers[delta]
    paths = mechanism.simulate(np.random.default_rng(1).choice([-0.5, 0.5], (1, 60)), seed=3)
    size = np.abs(paths.privatized)
    v = (np.sign(paths.privatized) * np.where(size > 0.999999 * size.max() if delta else size < 0, 2, 1)).astype(int)
    assert set(np.abs(v).ravel()) == ({1, 2} if delta else {1})
    np.testing.assert_allclose(plan.estimate(v), paths.estimate, rtol=0, atol=1e-10)


def test_v_and_guarantee_are_those_of_the_linear_receiver(designs, answers):
    transition, levels, inputs, target, privacy, options = BLOCKS["late"]
    chain = dp.MarkovChain(transition, levels=levels)
    linear = dp.exact(dp.block_sums(dp.Filter(*target), privacy, chain, **options), inputs)
    _, plan = designs["late"]
    assert plan.guarantee.loss == linear.guarantee.loss
    assert plan.noise == linear.noise
    assert plan.linear_mse == linear.predicted_mse
    assert plan.predicted_mse is plan.step_mse(3) is plan.predicted_rmse_if_model_holds is None
    bound = f"only simulation tells; at most {linear.predicted_mse**0.5:.6g}, that of the linear receiver"
    assert bound in repr(plan)
    assert bound in plan._repr_html_()
    mechanism, response = answers[0.05]
    assert response.linear_mse == pytest.approx(mechanism.linear_mse, rel=1e-6)
    assert "only simulation tells; at most" in repr(response)
    assert response.predicted_mse is None


def test_it_errs_less_than_the_linear_receiver():
    """By 5 standard errors: less by chance once in 3.5 million runs."""
    chain = dp.MarkovChain([[0.9, 0.1], [0.1, 0.9]], levels=[0, 1])
    mechanism = dp.block_sums(dp.Filter([1]), dp.Privacy(2), chain, length=2, receiver="bayes")
    plan, n = dp.exact(mechanism, dp.Inputs(0, 1, n_streams=400)), 200
    x = chain.sample(400, n, seed=5).astype(np.int64)
    noise, counts = NoiseOfLaws.of(plan.drawn_laws), plan.n_draws(0, n)
    noise.ready(400, counts)
    errors = ((plan.estimate(plan.privatize(x[:, :0], x, noise.take(400, counts))) - x) ** 2)[:, 50:].mean(axis=1)
    assert errors.mean() < 0.97 * plan.linear_mse - 5 * errors.std() / 20


@pytest.mark.parametrize("name", ["late", "canonical", "horizon"])
def test_a_configuration_makes_the_same_mechanism(designs, name):
    _, plan = designs[name]
    again = load_exact(json.loads(json.dumps(plan.configuration)))
    assert type(again) is type(plan)
    assert again.digest == plan.digest
    assert again.guarantee == plan.guarantee
    v = sums_of(name, plan, plan.mechanism.horizon or 30)
    assert (again.estimate(v) == plan.estimate(v)).all()


def test_states_of_others_are_refused(designs):
    live, other = (designs[name][1].live() for name in ("late", "blocks"))
    with pytest.raises(ValueError, match="state must be one of this receiver"):
        live.restore(other.state())
    with pytest.raises(ValueError, match="bytes of the numbers"):
        live.restore(live.state()[:-8])
    with pytest.raises(ValueError, match="finite numbers"):
        live.restore(live.state()[:-8] + np.array([np.nan]).tobytes())
    with pytest.raises(ValueError, match="v must be an array of int64"):
        live.push(np.zeros((1, 3)))


@pytest.mark.parametrize("kind", ["sums", "answers"])
def test_nothing_is_said_of_an_error_and_no_linear_receiver_takes_its_place(designs, answers, kind, tmp_path):
    plan = designs["late"][1] if kind == "sums" else answers[0.05][1]
    u = CHAIN.sample(1, 1000, seed=1)
    result = dp.release(plan, u, tmp_path / "store")
    assert result.model_check.estimated_mse is None
    assert "the receiver is not linear" in str(result.model_check)
    with pytest.raises(dp.DesignError):
        dp.release(plan, u, tmp_path / "other", adapt=True)


def test_an_unfinished_block_is_not_published(designs):
    mechanism, _ = designs["late"]
    with pytest.raises(dp.ReleaseError, match="last_block must be 'drop' with a posterior mean, got 'publish'"):
        dp.exact(mechanism, BLOCKS["late"][2], last_block="publish", n_steps=20)
    assert dp.exact(mechanism, BLOCKS["late"][2], last_block="drop").n_steps is None


@pytest.mark.parametrize("name", ["late", "horizon"])
def test_streams_and_batches_publish_what_is_estimated_from_v(designs, name, tmp_path):
    _, plan = designs[name]
    n = plan.mechanism.horizon or 23
    u = np.random.default_rng(6).choice(BLOCKS[name][1], (1, n))
    batch = dp.release(plan, u, tmp_path / "batch")
    np.testing.assert_array_equal(batch.estimate, plan.estimate(batch.privatized, n)[:, plan.lag :])
    assert batch.predicted_rmse_if_model_holds is None
    for cut in (5, 11):
        with dp.open_stream(plan, tmp_path / "live") as stream:
            stream.push(u[:, stream.position : cut])
    with dp.open_stream(plan, tmp_path / "live") as stream:
        stream.push(u[:, stream.position :])
        stream.close()
        published = stream.read(0, stream.position)
    np.testing.assert_array_equal(published.estimate, plan.estimate(published.privatized, n))
    read = dp.read_release(tmp_path / "live")
    np.testing.assert_array_equal(read.estimate, published.estimate[:, plan.lag :])
