"""Small releases, of one cheap mechanism for each demand."""

import functools

import dpfast as dp


@functools.cache
def plan_of(privacy, n_streams=1, lag=2):
    """A mechanism in integers: a short moving average of counts up to 20."""
    model = dp.ARMA([1], [1, -0.5], mean=2.0)
    mechanism = dp.lmmse(dp.Filter([0.5, 0.5]), privacy, model, lag=lag, prefilter=dp.Filter([1, 0.5]))
    return dp.exact(mechanism, dp.Inputs(0, 20, n_streams=n_streams))


def release_of(store, counts, privacy=None, **options):
    """Release counts (streams, time)."""
    return dp.release(plan_of(privacy or dp.Privacy(5, 1e-6), len(counts)), counts, store, **options)
