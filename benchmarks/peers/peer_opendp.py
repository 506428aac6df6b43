"""OpenDP on the targets: noise on the input or on the output, and its tree, at scales that its own accounting gives.

    python -m benchmarks.peers.peer_opendp TASK.json ROWS.json

It has no filters: noise on the input is filtered here, as its user would. Errors do not depend on u, which is 0.
"""

import sys

import numpy as np
import opendp.prelude as dp

from benchmarks.peers.targets import PURE, Released, Row, Task, floats, no_model, timed, write

BY = "opendp"
N_STREAMS = 64  # a draw takes from 10 µs to 0.3 ms
PILOT = 24  # trees, to choose the branching
BRANCHINGS = 2, 4, 8, 16
SINGLE = "for one number: an event is in one step; its variance as measured on all draws"
CRASH = "without a δ, its canonical noise ends the process (segmentation fault)"
LOOSE = "its zCDP accounting asks for {:.4f} of noise a unit of sensitivity"


def space(n, metric):
    return dp.vector_domain(dp.atom_domain(T=float, nan=False), size=n), metric(T=float)


def integers(n):
    return dp.vector_domain(dp.atom_domain(T=int), size=n), dp.l1_distance(T=int)


def gaussian(n, sensitivity, level):
    """Gaussian noise on n numbers by its accounting: zCDP, turned into (ε, δ)."""

    def make(scale):
        measurement = dp.m.make_gaussian(*space(n, dp.l2_distance), scale=scale)
        return dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(measurement), level.delta)

    goal = (level.epsilon, level.delta)
    scale = dp.binary_search_param(make, d_in=float(sensitivity), d_out=goal, T=float)
    return scale, make(scale)


def laplace(n, sensitivity, level):
    def make(scale):
        return dp.m.make_laplace(*space(n, dp.l1_distance), scale=scale)

    scale = dp.binary_search_param(make, d_in=float(sensitivity), d_out=level.epsilon, T=float)
    return scale * np.sqrt(2), make(scale)


def geometric(n, level):
    """Laplace noise on the integers, the levels of u being 1 apart."""

    def make(scale):
        return dp.m.make_laplace(*integers(n), scale=scale)

    scale = dp.binary_search_param(make, d_in=1, d_out=level.epsilon, T=float)
    return 0.5 / np.sinh(0.5 / scale) ** 2, make(scale)


def draws(measurement, task, kind=float):
    zero = [kind(0)] * task.horizon
    return np.array([measurement(zero) for _ in range(N_STREAMS)])


def canonical(task, level):
    """Canonical noise (Awan and Vadhan) on each step alone: an event is in one of them."""
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    one = dp.m.make_canonical_noise(*space, d_in=1.0, d_out=(level.epsilon, level.delta))
    return np.array([[one(0.0) for _ in range(task.horizon)] for _ in range(N_STREAMS)])


def filtered(noise, f):
    """Convolution along the last axis, cut to its length."""
    n = noise.shape[-1]
    size = 2 * n
    return np.fft.irfft(np.fft.rfft(noise, size) * np.fft.rfft(f, size), size)[..., :n]


def row(target, mechanism, error, variance=None, **fields):
    """`variance`, where it is known, is that of the noise at every step."""
    predicted = None if variance is None else floats(np.broadcast_to(variance, error.shape[-1]))
    simulated = floats((error**2).mean(axis=-1))
    return Row(BY, mechanism, target.name, step_mse=predicted, stream_mse=simulated, **fields)


def rows(task, released):
    """Also what is known of the noise, into a list."""
    for level in task.levels:
        yield from (x._replace(level=level.name) for x in at(level, task, released))


def noise_on_u(task, level):
    """Of every kind: a function that makes it, draws it, and tells draws (streams, time), variance and a note."""
    n = task.horizon

    def normal():
        scale, measurement = gaussian(n, 1, level)
        return draws(measurement, task), scale**2, LOOSE.format(scale)

    def double_exponential():
        std, measurement = laplace(n, 1, level)
        return draws(measurement, task), std**2, "δ = 0"

    def on_integers():
        variance, measurement = geometric(n, level)
        return draws(measurement, task, int), variance, "δ = 0; u on integers"

    def single():
        noise = canonical(task, level)
        return noise, noise.var(), SINGLE

    kinds = {"Laplace noise on u": double_exponential, "geometric noise on u": on_integers}
    if level.delta:
        kinds |= {"Gaussian noise on u": normal, "canonical noise on u": single}
    return kinds


def at(level, task, released):
    noise = {mechanism: timed(make) for mechanism, make in noise_on_u(task, level).items()}
    for target in task.targets:
        f = target.coefficients(task.horizon)
        for mechanism, ((draw, variance, note), seconds) in noise.items():
            released.append(Released(BY, mechanism, target.name, "input", {level.name: float(np.sqrt(variance))}))
            error, predicted = filtered(draw, f), variance * np.cumsum(f**2)
            yield row(target, mechanism, error, predicted, note=note, seconds=seconds)
        yield from on_the_output(target, f, task, level, released)
        if (f == 1).all():
            yield tree(target, task, level)
        else:
            yield Row(BY, "consistent tree", target.name, missing="only prefix sums")
        yield no_model(BY, target)


def on_the_output(target, f, task, level, released):
    n = task.horizon
    if level.delta:
        scale, measurement = gaussian(n, np.linalg.norm(f), level)
        note = LOOSE.format(scale / np.linalg.norm(f))
        released.append(Released(BY, "Gaussian noise on y", target.name, "output", {level.name: float(scale)}))
        yield row(target, "Gaussian noise on y", draws(measurement, task), scale**2, note=note)
    else:
        reasons = {"Gaussian noise on u": PURE, "canonical noise on u": CRASH, "Gaussian noise on y": PURE}
        yield from (Row(BY, mechanism, target.name, missing=why) for mechanism, why in reasons.items())
    std, measurement = laplace(n, np.abs(f).sum(), level)
    released.append(Released(BY, "Laplace noise on y", target.name, "output", {level.name: float(std)}))
    yield row(target, "Laplace noise on y", draws(measurement, task), std**2, note="δ = 0")


def tree(target, task, level):
    """Its b-ary tree with Laplace noise, made consistent, and its leaves summed up.

    Its map of ℓ₂ distances multiplies them by the number of levels, not by its root, so that Gaussian noise is worse.
    """

    def error(branching, n_streams):
        leaves = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
        expand = dp.t.make_b_ary_tree(*leaves, leaf_count=task.horizon, branching_factor=branching)

        def make(scale):
            return expand >> dp.m.then_laplace(scale)

        measurement = make(dp.binary_search_param(make, d_in=1, d_out=level.epsilon))
        consistent, zero = dp.t.make_consistent_b_ary_tree(branching), [0] * task.horizon
        return np.cumsum([consistent(measurement(zero))[: task.horizon] for _ in range(n_streams)], axis=-1)

    choices = sorted({*BRANCHINGS, dp.t.choose_branching_factor(task.horizon)})
    best = min(choices, key=lambda branching: (error(branching, PILOT) ** 2).mean())
    note = f"{best} branches, the best of {', '.join(map(str, choices))}; δ = 0"
    whole = "the whole horizon"
    return row(target, "consistent tree", error(best, 4 * N_STREAMS), needs=whole, note=note)


def main(task_path, path):
    dp.enable_features("contrib")
    task = Task.read(task_path)
    scales = {x.name: gaussian(task.horizon, 1, x)[0] for x in task.levels if x.delta}
    released = []
    write(path, rows(task, released), ("opendp", "numpy"), released=released, noise_multiplier=scales)


if __name__ == "__main__":
    main(*sys.argv[1:])
