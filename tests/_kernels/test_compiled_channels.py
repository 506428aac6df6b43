"""Mechanisms of several streams as chains, against scipy and the naive Kalman filter on the same inputs and noise."""

import numpy as np
import pytest
from helpers import reference
from helpers.chains import FACTORS, LANES, scipys, unit_normals

from dpfast import MarkovChain
from dpfast._kernels import simulation
from dpfast._kernels.compiled_channels import CompiledBlockChannels, CompiledChannels
from dpfast._kernels.compiled_mechanisms import CompiledBlock, CompiledBlockMechanism, CompiledMechanism
from dpfast._kernels.compiled_receivers import CompiledLinearReceiver, CompiledPeriodicKalman
from dpfast._kernels.signal_sources import CorrelatedSource, IndependentSources
from dpfast._kernels.simulated_noise import INPUT, NOISE, RELEASE, START, of_channel, seed_generators
from dpfast._kernels.state_space_pass import StateSpace

G, H, F = FACTORS["section"], FACTORS["delay and section"], FACTORS["gain and sections"]
UNEQUAL = MarkovChain([[0.8, 0.2], [0.4, 0.6]], [0.0, 1.0]).compiled()
CENTRES = (0.25, 0.0, -1.0)


def channels(centres=CENTRES):
    """Two channels behind three inputs, of which the first alone is filtered; two outputs, one of nothing."""
    prefilter, receiver = ((G, None, None), (F, None, G)), ((H, F), (None, None))
    return CompiledChannels(centres, prefilter, 0.5, receiver, ((F, G, None), (None, None, None)), 3)


def sources():
    a, b = np.array([[0.5, 0.1], [0.0, -0.3]]), np.array([[1.0], [0.5]])
    c, d = np.array([[1.0, 0.0], [0.3, 1.0], [0.0, 2.0]]), np.array([[0.1], [0.2], [0.3]])
    return CorrelatedSource(StateSpace(a, b, c, d), np.array([[1.0, 0.2], [0.0, 0.7]]), (0.0, 1.0, -2.0))


def drawn(source, n_streams, n, seed=4, first=0):
    out = np.empty((3, n_streams, n))
    simulation.sample_channels(source, seed, out, 2, first)
    return out


def filtered(rows, x):
    """Σ_j F_ij x_j by scipy."""
    nothing = np.zeros_like(x[0])
    found = []
    for row in rows:
        parts = [scipys(f, x_j) for f, x_j in zip(row, x, strict=True) if f is not None]
        found.append(sum(parts, nothing))
    return np.array(found)


@pytest.mark.parametrize("centres", [CENTRES, (0.0, 0.0, 0.0)])
def test_paths_are_those_of_scipy(centres):
    mechanism, u = channels(centres), drawn(sources(), LANES + 3, 100)
    *v, first, second = simulation.simulate_channels(mechanism, u, 9, 2)
    noise = [unit_normals(9, LANES + 3, 100, of_channel(NOISE, q)) for q in range(2)]
    centred = u - np.array(centres)[:, None, None]
    np.testing.assert_allclose(v, filtered(mechanism.prefilter, centred) + 0.5 * np.array(noise), atol=1e-12)
    means = np.broadcast_to(np.array(centres)[:, None, None] * (np.arange(100) >= 3), u.shape)
    offset = filtered(mechanism.target, means)
    np.testing.assert_allclose([first, second], filtered(mechanism.receiver, np.array(v)) + offset, atol=1e-11)
    assert not second.any()


def shared(n_inputs, n_outputs, seed):
    rng = np.random.default_rng(seed)
    shapes = (2, 2), (2, n_inputs), (n_outputs, 2), (n_outputs, n_inputs)
    return StateSpace(*(0.4 * rng.normal(size=shape) for shape in shapes))


def run_shared(system, x):
    """Outputs (p, streams, time) by a loop over time."""
    state, y = np.zeros((2, x.shape[1])), np.empty((len(system.d), *x.shape[1:]))
    for t in range(x.shape[-1]):
        y[..., t] = system.c @ state + system.d @ x[..., t]
        state = system.a @ state + system.b @ x[..., t]
    return y


@pytest.mark.parametrize("centres", [CENTRES, (0.0, 0.0, 0.0)])
def test_systems_of_one_state_for_all_outputs(centres):
    """G, H and F in state space: paths and squared errors by loops over time."""
    mechanism = CompiledChannels(centres, shared(3, 2, 1), 0.5, shared(2, 2, 2), shared(3, 2, 3), 3)
    n, burn_in = 60, 7
    u = drawn(sources(), LANES + 3, burn_in + n + 3)
    v, estimate = np.split(simulation.simulate_channels(mechanism, u, 4, 2), 2)
    level = np.array(centres)[:, None, None]
    noise = [unit_normals(4, LANES + 3, u.shape[-1], of_channel(NOISE, q)) for q in range(2)]
    np.testing.assert_allclose(v, run_shared(mechanism.prefilter, u - level) + 0.5 * np.array(noise), atol=1e-12)
    offset = run_shared(mechanism.target, np.broadcast_to(level * (np.arange(u.shape[-1]) >= 3), u.shape))
    np.testing.assert_allclose(estimate, run_shared(mechanism.receiver, v) + offset, atol=1e-12)
    if not any(centres):  # the start of a known mean is in the paths, and not in the errors
        study = simulation.CompiledChannelsStudy(sources(), (mechanism, mechanism), burn_in, n)
        expected = squared(estimate, run_shared(mechanism.target, u), 3, burn_in, n)
        found = simulation.squared_errors(study, LANES + 3, 4, 2)
        np.testing.assert_allclose(found, np.concatenate([expected] * 2).T, rtol=1e-10)


def squared(estimate, y, lag, burn_in, n):
    return ((estimate[..., burn_in + lag :][..., :n] - y[..., burn_in:][..., :n]) ** 2).mean(axis=-1)


@pytest.mark.parametrize("several", [False, True])
def test_squared_errors_are_those_of_paths(several):
    mechanism, n, burn_in = channels(), 60, 7
    u = drawn(sources(), LANES + 3, burn_in + n + 3)
    estimate = simulation.simulate_channels(mechanism, u, 4, 1)[2:]
    expected = squared(estimate, filtered(mechanism.target, u), 3, burn_in, n)
    run = (mechanism,) * (1 + several)
    study = simulation.CompiledChannelsStudy(sources(), run, burn_in, n)
    found = simulation.squared_errors(study, LANES + 3, 4, 2)
    assert study.build_chain().length == burn_in + n + 3
    np.testing.assert_allclose(found, np.concatenate([expected] * (1 + several)).T, rtol=1e-10)


def test_channels_have_generators_of_their_own_and_the_first_that_of_one_stream():
    source = IndependentSources((UNEQUAL,) * 3)
    u, alone = drawn(source, 5, 200), np.empty((5, 200))
    simulation.sample(UNEQUAL, 4, alone, 1)
    np.testing.assert_array_equal(u[0], alone)
    assert len(np.unique(u.reshape(3, -1), axis=0)) == 3
    np.testing.assert_array_equal(drawn(source, 2, 200, first=3), u[:, 3:])
    purposes = [of_channel(x, i) for x in (INPUT, NOISE, START, RELEASE, RELEASE + 1) for i in range(4)]
    assert len({x.tobytes() for x in seed_generators(1, 0, 3, tuple(purposes))}) == len(purposes)


def test_one_channel_has_the_bits_of_one_stream():
    receiver = CompiledLinearReceiver(H, F, 0.25, 3)
    one = CompiledMechanism(0.25, G, 0.5, receiver)
    several = CompiledChannels((0.25,), ((G,),), 0.5, ((H,),), ((F,),), 3)
    u = drawn(sources(), 5, 90)[0]
    for x, y in zip(
        simulation.simulate(one, u, 3, 1), simulation.simulate_channels(several, u[None], 3, 1), strict=True
    ):
        np.testing.assert_array_equal(x, y)
    scalar = simulation.squared_errors(simulation.CompiledStudy(UNEQUAL, (one,), 5, 50), 6, 3, 1)
    study = simulation.CompiledChannelsStudy(IndependentSources((UNEQUAL,)), (several,), 5, 50)
    np.testing.assert_array_equal(simulation.squared_errors(study, 6, 3, 1), scalar)


# --- block sums -----------------------------------------------------------------------------------


def kalman(length, phase, n_states, lag):
    """A receiver of random numbers for sums of a length."""
    rng = np.random.default_rng(length)
    n = n_states + 1
    advance, gains = 0.3 * rng.normal(size=(n, n)), rng.normal(size=(1, 1, n))
    weights = rng.normal(size=(length, n + -(-lag // length)))
    until_first = length - np.arange(length) % length
    late = until_first[:, None] + length * np.arange(-(-lag // length)) > lag
    weights[:, n:] *= ~late
    return CompiledPeriodicKalman(advance, gains, weights, (length,), phase, F, 0.0, lag)


def blocks(centres=CENTRES):
    """Sums of three and of two steps, and an input that is not published; an output that sees that one alone."""
    receivers = [kalman(3, 1, 2, 2), kalman(2, 0, 1, 2)]
    tails = np.array([0.3, 0.1, 0.02])
    columns = [
        CompiledBlockMechanism(centre, (CompiledBlock(x.lengths[0], tails, 1.0),), 0.0, 0.5, False, x, None)
        for centre, x in zip(centres, receivers, strict=False)
    ]
    target = ((F, F, G), (None, None, G))
    return CompiledBlockChannels(centres, (*columns, None), ((*receivers, None), (None,) * 3), target, 2)


@pytest.mark.parametrize("centres", [CENTRES, (0.0, 0.0, 0.0)])
def test_paths_of_block_sums_are_those_of_each_input(centres):
    mechanism, u = blocks(centres), np.rint(2 * drawn(sources(), LANES + 1, 100)) / 2
    *v, first, second = simulation.simulate_channels(mechanism, u, 9, 2)
    assert len(v) == 2
    total, noises = np.zeros_like(first), []
    for i, (released, phase) in enumerate(zip(v, (1, 0), strict=True)):
        receiver, length = mechanism.receivers[0][i], (3, 2)[i]
        ends = (np.arange(100) + 1 + phase) % length == 0
        sums = np.add.reduceat(u[i] - centres[i], [0, *(np.flatnonzero(ends)[:-1] + 1)], axis=1)[:, : ends.sum()]
        noises.append((released[:, ends] - sums) / 0.5)
        np.testing.assert_allclose(noises[i], np.rint(noises[i]), atol=1e-9)
        assert 0.2 < (np.rint(noises[i]) != 0).mean() < 0.9
        assert not released[:, ~ends].any()
        total += np.array(
            [reference.periodic_kalman(*receiver[:3], [length], phase, 2, [0], x[None]) for x in released]
        )
    assert not np.array_equal(*(x[:, :30] for x in noises))
    means = np.broadcast_to(np.array(centres)[:, None, None] * (np.arange(100) >= 2), u.shape)
    offset = filtered(mechanism.target, means)
    np.testing.assert_allclose([first, second], [total + offset[0], offset[1]], atol=1e-10)


def test_squared_errors_of_block_sums_are_those_of_paths():
    mechanism, n, burn_in = blocks(), 60, 7
    u = drawn(sources(), LANES + 1, burn_in + n + 2)
    estimate = simulation.simulate_channels(mechanism, u, 4, 1)[2:]
    expected = squared(estimate, filtered(mechanism.target, u), 2, burn_in, n)
    for run in ((mechanism,), (mechanism, channels())):
        found = simulation.squared_errors(simulation.CompiledChannelsStudy(sources(), run, burn_in, n), LANES + 1, 4, 2)
        np.testing.assert_allclose(found[:, :2], expected.T, rtol=1e-9)


def test_the_cost_of_channels_is_that_of_all_their_filters():
    mechanism, nothing = channels(), ((None,),)
    of_one = {id(x): mechanism._replace(prefilter=((x,),), receiver=nothing, target=nothing).cost for x in (F, G, H)}
    every = [x for part in mechanism[1:2] + mechanism[3:5] for row in part for x in row if x is not None]
    assert len(every) == 7
    assert mechanism.cost == sum(of_one[id(x)] for x in every) > 0
    system = shared(3, 2, 1)
    by_hand = 2 * 2 + 2 * 3 + 2 * 2 + 2 * 3
    assert mechanism._replace(prefilter=system, receiver=nothing, target=nothing).cost == by_hand
    diagonal = system._replace(a=np.diag([0.5, 0.2]))
    assert mechanism._replace(prefilter=diagonal, receiver=nothing, target=nothing).cost == by_hand - 2


def test_the_cost_of_block_sums_is_that_of_their_receivers_and_of_the_target():
    mechanism = blocks()
    receivers = [x.cost for x in mechanism.receivers[0][:2]]
    target = channels()._replace(prefilter=mechanism.target, receiver=((None,),), target=((None,),)).cost
    assert mechanism.cost == sum(receivers) + target
