"""The error of what estimates from sums of blocks, told by what was published of them."""

from __future__ import annotations

import math

import numpy as np

from dpfast.design.adaptive.published_sums import PublishedSums
from dpfast.design.adaptive.sum_errors import ErrorResponses
from dpfast.releases.model_check.error_from_v import ErrorFromV, draw_together
from dpfast.signals.model import Model


def estimate_from_sums(
    sums: PublishedSums, responses: ErrorResponses, model: Model, *, contradicted: bool
) -> ErrorFromV:
    """Estimate the error; under a fitted spectrum where v contradicts the model."""
    (data,) = sums.in_time(1)
    circle = sums.circle(data.length)
    errors = sums.errors(circle, sums.foresee(circle, data, None if contradicted else model, model))
    found, weights = errors.estimate(responses, data)
    foreseen = responses.noise + errors.foresee(responses.distortion(circle.n_angles))
    alone = (sums._replace(values=x[np.newaxis]).in_time(1)[0] for x in sums.values)
    each = np.array([foreseen + errors.correct(weights, x) for x in alone])
    of_streams = np.maximum(draw_together(each, found.variance * len(each)), found.least)
    return ErrorFromV(found.mse, math.sqrt(found.variance), responses.noise, found.hidden, of_streams)
