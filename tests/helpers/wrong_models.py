"""Inputs that a model of mean 2, variance 4/3 and pole .5 describes, or not, and what is published of them."""

import numpy as np
from scipy import signal

import dpfast as dp

MEAN, POLE = 2.0, 0.5
VARIANCE = 1 / (1 - POLE**2)
TARGET = dp.Filter(np.ones(12) / 12)
MODEL = dp.ARMA([1], [1, -POLE], mean=MEAN)


def correlated(rng, shape, pole=POLE, variance=VARIANCE):
    """A normal autoregression of one pole, settled."""
    n_streams, time = shape
    white = rng.normal(size=(n_streams, time + 300)) * (variance * (1 - pole**2)) ** 0.5
    return signal.lfilter([1], [1, -pole], white)[:, 300:]


INPUTS = {
    "poisson": lambda rng, shape: rng.poisson(5.9, shape),
    "wrong mean": lambda rng, shape: 6 + correlated(rng, shape),
    "variance": lambda rng, shape: MEAN + correlated(rng, shape, variance=4 * VARIANCE),
    "correlation": lambda rng, shape: MEAN + correlated(rng, shape, pole=POLE**0.2),
    "daily cycle": lambda rng, shape: (
        MEAN
        + correlated(rng, shape)
        + 3 * np.sin(2 * np.pi * (np.arange(shape[1]) + rng.integers(48, size=(shape[0], 1))) / 48)
    ),
    "level shift": lambda rng, shape: MEAN + correlated(rng, shape) + 4 * (np.arange(shape[1]) >= shape[1] // 2),
    "heavy tails": lambda rng, shape: MEAN + 1.2 * rng.standard_t(2.5, shape),
}


def true_model(rng, shape):
    """What the model says."""
    return MEAN + correlated(rng, shape)


def recipe(n_streams=1, lag=5):
    """The design of the README for these streams."""
    mechanism = dp.optimal(TARGET, dp.Privacy(1, 1e-6), MODEL, lag=lag, tolerance=0.05)
    return dp.exact(mechanism, dp.Inputs(-400, 400, centre=2, n_streams=n_streams))


def published(plan, u, rng, unit=1):
    """v of u, rounded to the unit, and of the zeros behind it; the noise is normal, rounded, right within 2e-5."""
    assert plan.inputs.unit == unit  # given by hand: integers of the unit, which nothing clamps
    x = np.rint(u / unit).astype(np.int64) - round(float(plan.inputs.centre) / unit)
    x = np.concatenate([x, np.zeros((len(x), plan.lag or 0), np.int64)], axis=1)
    noise = np.rint(rng.normal(0, plan.sigma.std, x.shape)).astype(np.int64)
    return plan.privatize(np.zeros((len(x), plan.memory), np.int64), x, noise)


def true_errors(plan, v, u):
    """The errors of the estimates of integers of u: only a test can know them."""
    return plan.estimate(v)[:, plan.lag or 0 :] - signal.lfilter(np.ones(12) / 12, [1], np.rint(u))


def block_recipe(n_streams=1, lag=5, **options):
    """The design of block sums for these streams: blocks of 5, where no other length is asked for."""
    mechanism = dp.block_sums(TARGET, dp.Privacy(1), MODEL, lag=lag, **options)
    return dp.exact(mechanism, dp.Inputs(-400, 400, centre=2, n_streams=n_streams))


def published_sums(plan, u, rng):
    """v of u, rounded: two-sided geometric noise of the plan's variance, a difference of two one-sided draws."""
    x = np.rint(u).astype(np.int64) - round(float(plan.inputs.centre))
    x = np.concatenate([x, np.zeros((len(x), plan.lag), np.int64)], axis=1)
    n_draws = plan.n_draws(0, x.shape[1], u.shape[1])
    noise = []
    for law, n in zip(plan.drawn_laws, n_draws, strict=True):
        variance = float(law.variance)
        q = (1 + variance - (1 + 2 * variance) ** 0.5) / variance  # 2 q / (1 - q)² is the variance
        draws = rng.geometric(1 - q, (2, len(x), n))
        noise.append(draws[0] - draws[1])
    none = np.zeros((len(x), 0), np.int64)
    return plan.privatize(none, x, np.concatenate(noise, axis=1), end=u.shape[1])


# --- several streams ------------------------------------------------------------------------------

SLOW, QUICK = dp.Filter([0.05], [1, -0.95]), dp.Filter([0.2], [1, -0.8])
CHANNELS = dp.FilterMatrix([[SLOW, SLOW, SLOW], [QUICK, -1 * QUICK, 0]])  # three inputs, two outputs
POLES, DEVIATIONS, MEANS = (0.5, 0.5, 0.8), (1.0, 1.0, 0.6), (2.0, 1.0, 3.0)
APART = [
    dp.ARMA([1], [1, -pole], innovation_std=size, mean=mean)
    for pole, size, mean in zip(POLES, DEVIATIONS, MEANS, strict=True)
]


def together(correlation):
    """A model of the same streams, whose innovations have this correlation."""
    sizes = np.diag(DEVIATIONS)
    covariance = sizes @ ((1 - correlation) * np.eye(3) + correlation) @ sizes
    return dp.VectorARMA([np.diag(POLES)], innovation_covariance=covariance, mean=MEANS)


def published_channels(plan, u, rng):
    """v of u (m, time), rounded to the unit, and of the zeros behind it; the noise is normal, rounded."""
    unit, centre = float(plan.inputs.unit), float(plan.inputs.centre)
    x = np.rint((u - centre) / unit).astype(np.int64)
    x = np.concatenate([x, np.zeros((len(x), plan.lag), np.int64)], axis=1)
    noise = np.rint(rng.normal(0, plan.sigma.std, (len(plan.taps), x.shape[1]))).astype(np.int64)
    return plan.privatize(np.zeros((len(x), 0), np.int64), x, noise)


def published_channel_sums(plan, u, rng):
    """v of the sums of blocks of u (m, time): two-sided geometric noise of the plan's variances."""
    x, noise = np.rint(u).astype(np.int64) - round(float(plan.inputs.centre)), []
    for law, n in zip(plan.drawn_laws, plan.n_draws(0, x.shape[1]), strict=True):
        variance = float(law.variance)
        q = (1 + variance - (1 + 2 * variance) ** 0.5) / variance  # 2 q / (1 - q)² is the variance
        draws = rng.geometric(1 - q, (2, 1, n))
        noise.append(draws[0] - draws[1])
    return plan.privatize(np.zeros((len(x), 0), np.int64), x, np.concatenate(noise, axis=1))
