"""Whether imitated values have the moments of published ones, over many streams of few steps."""

import numpy as np


def check_moments(published, imitated):
    """Compare (streams, ...) within 5 standard errors: at each place, and of all places and neighbours together."""
    streams = len(published)
    for power in (1, 2, 4):
        for each in (lambda x: x, lambda x: x.reshape(streams, -1).mean(axis=1)):
            a, b = each(published**power), each(imitated**power)
            error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / streams)
            assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) <= 5 * error + 1e-9).all()
    a, b = ((x[..., 1:] * x[..., :-1]).reshape(streams, -1).mean(axis=1) for x in (published, imitated))
    assert abs(a.mean() - b.mean()) <= 5 * np.sqrt((a.var() + b.var()) / streams) + 1e-9
