"""Ours on the targets: the mechanisms of this package, and those of the literature as it has them.

    python -m benchmarks.peers.ours TASK.json ROWS.json

Predicted are the errors of every step from t = 0 on; simulated, `monte_carlo` over the horizon on streams of the model.
"""

import functools
import sys
from collections.abc import Callable
from typing import NamedTuple

import dpfast as dp
from benchmarks.peers.targets import HORIZON, LEVELS, TRANSITION, Row, Task, floats, timed, write

OURS, LITERATURE = "dpfast", "literature, in dpfast"
MODEL = dp.MarkovChain(TRANSITION, LEVELS)
LAG = 5
PILOT = 32  # streams
SHORT = 256  # steps, as many as jax-privacy's dense optimiser has here
COEFFICIENTS = 4, 16, 64, 256  # Fourier coefficients, measurements: the best is taken
CHOSEN = "n_coefficients", "n_measurements", "n_buffers", "branching"
MODELLED, LATER, WHOLE = "model", f"lag {LAG}", "the whole horizon"


class Entry(NamedTuple):
    """A design as the table has it.

    `steady`: it is for a filter that has a steady state; `only_sums`: why it is not tried on one.
    """

    by: str
    name: str
    make: Callable
    needs: str = ""
    steady: bool = False
    only_sums: str = ""
    horizon: int = HORIZON


def least(design, option):
    """The best of several values of an option for the model, by predicted error or else by simulation."""

    def make(target, privacy):
        found = [design(target, privacy, **{option: x}) for x in COEFFICIENTS]
        return min(found, key=mean_square)

    return make


def mean_square(mechanism):
    predicted = mechanism.predict(MODEL)
    return simulated(mechanism, HORIZON, PILOT, 1).mse if predicted is None else predicted


def with_model(design, **options):
    return lambda target, privacy: design(target, privacy, MODEL, **options)


def with_options(design, **options):
    return lambda target, privacy: design(target, privacy, **options)


def laplace_and_lmmse(lag):
    """Pure ε: where δ is small, Laplace noise on u is far less than Gaussian."""
    return lambda target, privacy: dp.input_perturbation(target, privacy, noise="laplace").with_receiver(MODEL, lag=lag)


def at_lags(name, design, **fields):
    """Entries of a design for the model, now and some steps later."""
    return (
        Entry(OURS, name, with_model(design, lag=0), MODELLED, **fields),
        Entry(OURS, f"{name}, lag {LAG}", with_model(design, lag=LAG), f"{MODELLED}, {LATER}", **fields),
    )


def mean_alone(target, privacy):
    """What has to be beaten; it takes no privacy."""
    return dp.constant(target, MODEL)


ENTRIES = (
    Entry(OURS, "constant", mean_alone, MODELLED),
    Entry(OURS, "optimal lag 0", with_model(dp.optimal, lag=0), MODELLED, steady=True),
    Entry(OURS, f"optimal lag {LAG}", with_model(dp.optimal, lag=LAG), f"{MODELLED}, {LATER}", steady=True),
    Entry(OURS, "optimal factorization", dp.optimal_factorization),
    Entry(OURS, f"optimal factorization, {SHORT} steps", dp.optimal_factorization, horizon=SHORT),
    Entry(
        OURS,
        "optimal factorization, model",
        with_model(dp.optimal_factorization),
        MODELLED,
        only_sums="tends to optimal lag 0",
    ),
    Entry(
        OURS,
        f"optimal factorization, model, lag {LAG}",
        with_model(dp.optimal_factorization, lag=LAG),
        f"{MODELLED}, {LATER}",
        only_sums=f"tends to optimal lag {LAG}",
    ),
    Entry(OURS, "shared noise", dp.shared_noise),
    Entry(OURS, "integer noise on u", with_options(dp.input_perturbation, noise="best")),
    Entry(OURS, "Laplace factorization", with_options(dp.optimal_factorization, noise="laplace")),
    Entry(
        OURS,
        "Laplace factorization, dense",
        with_options(dp.optimal_factorization, noise="laplace", strategy="dense"),
        WHOLE,
        only_sums="takes minutes a target, as that of jax-privacy; it had them on the running sum",
    ),
    *at_lags("block sums", dp.block_sums),
    *at_lags("block sums, signed", functools.partial(dp.block_sums, weights="best")),
    *at_lags("block sums, shared noise", functools.partial(dp.block_sums, group="best")),
    *at_lags("block sums, posterior mean", functools.partial(dp.block_sums, receiver="bayes")),
    *at_lags("integer noise on u, LMMSE", functools.partial(dp.block_sums, length=1)),
    *at_lags("blocks that react, posterior mean", dp.adaptive_blocks),
    *at_lags("randomised response", dp.randomized_response, steady=True),
    *at_lags(
        "randomised response, posterior mean",
        functools.partial(dp.randomized_response, receiver="bayes"),
        steady=True,
    ),
    Entry(OURS, "LZF", dp.zero_forcing, steady=True),
    Entry(OURS, "LMMSE lag 0", with_model(dp.lmmse, lag=0), MODELLED, steady=True),
    Entry(OURS, f"LMMSE lag {LAG}", with_model(dp.lmmse, lag=LAG), f"{MODELLED}, {LATER}", steady=True),
    Entry(OURS, "LMMSE smoother", with_model(dp.lmmse), f"{MODELLED}, {WHOLE}", steady=True),
    Entry(OURS, "DFE soft", with_model(dp.decision_feedback, lag=LAG), f"{MODELLED}, {LATER}", steady=True),
    Entry(OURS, "Laplace noise on u, LMMSE", laplace_and_lmmse(0), MODELLED),
    Entry(OURS, f"Laplace noise on u, LMMSE lag {LAG}", laplace_and_lmmse(LAG), f"{MODELLED}, {LATER}"),
    Entry(LITERATURE, "input perturbation", dp.input_perturbation),
    Entry(LITERATURE, "input perturbation, Laplace", with_options(dp.input_perturbation, noise="laplace")),
    Entry(LITERATURE, "output perturbation", dp.output_perturbation),
    Entry(LITERATURE, "square root", dp.square_root),
    Entry(LITERATURE, "BLT, mean", with_options(dp.buffered_toeplitz, error="mean")),
    Entry(LITERATURE, "BLT, max", with_options(dp.buffered_toeplitz, error="max")),
    Entry(LITERATURE, "tree, plain", with_options(dp.binary_tree, estimator="plain")),
    Entry(LITERATURE, "tree, Honaker", with_options(dp.binary_tree, estimator="honaker")),
    Entry(LITERATURE, "tree, Honaker, Laplace", with_options(dp.binary_tree, estimator="honaker", noise="laplace")),
    Entry(LITERATURE, "tree of k branches, Laplace", dp.tree),
    Entry(LITERATURE, "tree with subtraction, Laplace", with_options(dp.tree, subtraction=True), WHOLE),
    Entry(LITERATURE, "decayed sum", dp.decayed_sum),
    Entry(LITERATURE, "FPA", least(dp.fourier_perturbation, "n_coefficients"), f"{MODELLED}, {WHOLE}"),
    Entry(
        LITERATURE,
        "FPA, Gaussian",
        least(functools.partial(dp.fourier_perturbation, noise="gaussian"), "n_coefficients"),
        f"{MODELLED}, {WHOLE}",
    ),
    Entry(LITERATURE, "compressive", least(dp.compressive, "n_measurements"), f"{MODELLED}, {WHOLE}"),
)


def simulated(mechanism, n_samples, n_streams, seed):
    (result,) = dp.monte_carlo(mechanism, MODEL, n_streams=n_streams, n_samples=n_samples, seed=seed, burn_in=0)
    return result


def predicted(mechanism):
    over_horizon = isinstance(mechanism, dp.MatrixMechanism)
    steps = mechanism.step_mse(MODEL) if over_horizon else mechanism.step_mse(HORIZON, MODEL)  # the constant's too
    return None if steps is None else floats(steps)


def chosen(mechanism):
    """What an option came out as."""
    options = () if isinstance(mechanism, dp.Constant) else mechanism.options
    found = {name[2:]: value for name, value in options if name in CHOSEN and value}
    return ", ".join(f"{value} {name}" for name, value in found.items())


def over(target, horizon):
    """The target over a horizon, with its recursion, which block sums need."""
    return dp.Toeplitz.of(dp.Filter(target.b, target.a), horizon) if target.is_stable else dp.running_sum(horizon)


def rows(task):
    for target in task.targets:  # one after the other, as searches for one are kept from level to level
        for level in task.levels:
            privacy = dp.Privacy(level.epsilon, level.delta)
            for entry in ENTRIES:
                yield run(entry, target, privacy, task)._replace(level=level.name)


def run(entry, target, privacy, task):
    row = Row(entry.by, entry.name, target.name, entry.needs)
    if entry.steady and not target.is_stable:
        return row._replace(missing="no steady state")
    if entry.only_sums and target.is_stable:
        return row._replace(missing=entry.only_sums)
    f = dp.Filter(target.b, target.a) if entry.steady else over(target, entry.horizon)
    try:
        mechanism, seconds = timed(lambda: entry.make(f, privacy))
    except (ValueError, dp.DesignError) as error:
        return row._replace(missing=str(error).split(",")[0])
    result = simulated(mechanism, entry.horizon, task.n_streams, task.seed)
    return row._replace(
        note=chosen(mechanism),
        seconds=seconds,
        step_mse=predicted(mechanism),
        stream_mse=floats(result.stream_mse),
    )


def main(task_path, path):
    task = Task.read(task_path)
    stds = {x.name: dp.Privacy(x.epsilon, x.delta).noise_multiplier for x in task.levels if x.delta}
    write(path, rows(task), ("dpfast", "numpy", "scipy", "numba"), noise_multiplier=stds)


if __name__ == "__main__":
    main(*sys.argv[1:])
