"""Make the files of this folder, with the version of dpfast that is to be remembered: see README.md."""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

import dpfast as dp

TARGET, PRIVACY = dp.Filter([1, 0.5], [1, -0.8]), dp.Privacy(1.0, 0.05)
G = dp.Filter([1, -0.2], [1, -0.6])
CHAIN = dp.MarkovChain([[0.8, 0.2], [0.4, 0.6]], [0.0, 1.0], source="public")
LEVELS = dp.IndependentLevels([2, 0, 5], [0.3, 0.3, 0.4])


def feedback(decision, model=CHAIN, **options):
    sizes = {"n_forward": 6, "n_feedback": 2} | options
    return dp.decision_feedback(TARGET, PRIVACY, model, prefilter=G, decision=decision, **sizes)


def mechanisms():
    """One of every kind, by the names of their files."""
    fitted = dp.ARMA.fit(np.random.default_rng(1).normal(5, 1, 99), 3)
    rounded = dp.ARMA([0.3, 0.1], [1.0, -0.5], mean=0.25, levels=[-1.0, 0.0, 1.0])
    return {
        "linear": dp.lmmse(TARGET, PRIVACY, CHAIN, lag=2, prefilter=G),
        "linear-fitted": dp.lmmse(TARGET, PRIVACY, fitted, lag=0, prefilter=G),
        "linear-rounded": dp.lmmse(TARGET, PRIVACY, rounded, lag=1, prefilter=G),
        "linear-without-model": dp.zero_forcing(TARGET, PRIVACY),
        "linear-robust": dp.robust(TARGET, PRIVACY, mean_square=2.0, lag=1),
        "smoother": dp.lmmse(TARGET, PRIVACY, LEVELS, prefilter=G),
        "smoother-robust": dp.robust(TARGET, PRIVACY, mean_square=2.0),
        "feedback-soft": feedback("soft"),
        "feedback-sign": feedback("sign", lag=1),
        "feedback-quantizer": feedback("quantizer", LEVELS, n_feedback=0),
        "input-perturbation": dp.input_perturbation(TARGET, PRIVACY),
        "declared": dp.output_perturbation(TARGET, PRIVACY).with_sources(
            epsilon="public", target="fitted-from-private"
        ),
        "convolution": dp.square_root(TARGET, PRIVACY, horizon=9),
        "buffered": dp.buffered_toeplitz(TARGET, PRIVACY, horizon=9, n_buffers=2),
        "tree-laplace": dp.binary_tree(dp.running_sum(9), PRIVACY, noise="laplace"),
        "tree-plain": dp.binary_tree(dp.running_sum(8), PRIVACY, estimator="plain"),
        "fourier": dp.fourier_perturbation(dp.running_sum(6), PRIVACY, n_coefficients=3),
        "compressive": dp.compressive(dp.running_sum(8), PRIVACY, n_measurements=4, basis="haar"),
        "decayed": dp.decayed_sum(dp.polynomial_decay(1, 8), PRIVACY),
        "factorization": dp.optimal_factorization(TARGET, PRIVACY, CHAIN, horizon=6, lag=1),
        "horizon-linear": dp.square_root(TARGET, PRIVACY, horizon=7).with_receiver(CHAIN, lag="smoother"),
    }


ROWS = {"target": "exponential:0.8", "stream": "levels:0,1@0.75,0.25", "epsilon": 2.0, "delta": 0.01}
STEPS = {**ROWS, "horizon": 8}
GRID = [
    {**ROWS, "mechanism": ["input_perturbation", "zero_forcing"]},
    {**ROWS, "mechanism": "lmmse", "model": "levels:0,1@0.75,0.25", "lag": [1, None]},
    {**ROWS, "mechanism": "robust", "mean_square": 1.0, "lag": 0},
    {
        **ROWS,
        "mechanism": "decision_feedback",
        "model": "levels:0,1@0.75,0.25",
        "decision": ["soft", "quantizer"],
        "n_forward": 4,
    },
    {**STEPS, "mechanism": ["square_root", "optimal_factorization", "decayed_sum"]},
    {**STEPS, "mechanism": "buffered_toeplitz", "n_buffers": 2},
    {**STEPS, "mechanism": "fourier_perturbation", "n_coefficients": 3},
    {**STEPS, "target": "exponential:0.8", "mechanism": "compressive", "n_measurements": 4},
    {**STEPS, "target": dp.running_sum(8), "mechanism": "binary_tree", "estimator": ["honaker", "plain"]},
]
OPTIONS = {"seed": 3, "budget": 128 * 8, "n_samples": 8, "width": None, "n_threads": 1}


def digest(x):
    """Of the bits of an array; equal for equal arrays alone."""
    return hashlib.sha256(np.ascontiguousarray(x)).hexdigest()[:16]


def inputs(mechanism):
    """Two streams: as long as the horizon, or of 60 samples."""
    return np.random.default_rng(5).uniform(0, 2, size=(2, getattr(mechanism, "horizon", None) or 60))


def paths(mechanism):
    """What a simulation gives, as numbers over a horizon, where sums depend on a machine's libraries, else as bits."""
    found = mechanism.simulate(inputs(mechanism), seed=7)[:3]
    over_horizon = getattr(mechanism, "horizon", None) is not None
    return [None if x is None else x.tolist() if over_horizon else digest(x) for x in found]


def figures(mechanism):
    """Errors and noise, as they are predicted."""
    names = ("noise_std", "predicted_mse", "ideal_mse", "lower_bound_mse", "lag")
    return {name: getattr(mechanism, name) for name in names}


def exact_form(mechanism):
    """The integers of a release, their digest, and the bits of estimates from integers."""
    made = dp.exact(mechanism, dp.Inputs(0, 20, n_streams=2))
    v = np.random.default_rng(6).integers(-9999, 9999, size=(2, 60))
    return {"configuration": made.configuration, "digest": made.digest, "estimate": digest(made.estimate(v))}


def rows(found):
    """What a sweep says of its rows."""
    return [
        {
            "mechanism": x.mechanism_name,
            "settings": {name: str(value) for name, value in x.settings.items()},
            "noise_std": None if x.error else x.noise_std,
            "predicted_mse": x.predicted_mse,
            "n_samples": x.n_samples,
            "batch_means": digest(x.batch_means),
            "error": x.error,
        }
        for x in found
    ]


def make(folder):
    folder.mkdir(exist_ok=True)
    made, computed = mechanisms(), {}
    for name, mechanism in made.items():
        dp.save(mechanism, folder / f"{name}.json")
        computed[name] = {"paths": paths(mechanism), **figures(mechanism)}
    names = ("linear", "smoother", "feedback-soft", "linear-without-model", "linear-robust")
    exact_forms = {name: exact_form(made[name]) for name in names}
    (folder / "sweep.db").unlink(missing_ok=True)
    found = dp.sweep(GRID, store=folder / "sweep.db", **OPTIONS)
    document = {"mechanisms": computed, "exact": exact_forms, "sweep": rows(found)}
    (folder / "computed.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
