"""Noise of the laws that are drawn exactly, by their stated probabilities alone, and what is published with it."""

import numpy as np


def drawn(plan, rng, shape):
    """Noise of the law that is stated, by probabilities alone."""
    if hasattr(plan.noise, "probabilities"):
        return rng.choice(plan.noise.values, shape, p=[float(x) for x in plan.noise.probabilities])
    each = rng.exponential(1 / float(plan.noise.per_step), (2, *shape))  # floors of these are geometric
    return np.floor(each[0]).astype(np.int64) - np.floor(each[1]).astype(np.int64)


def published(plan, u, rng):
    """v of integers u, where each is published by itself."""
    x = np.asarray(u, np.int64) - int(plan.inputs.centre)
    return plan.privatize(x[:, :0], x, drawn(plan, rng, x.shape))
