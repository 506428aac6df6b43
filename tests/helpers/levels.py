"""Levels of columns of a product behind prefilters for each input."""

import numpy as np


def levels_of(problem, k):
    """How long columns of half the slope of γ² may be where K is best: d_i <d_i|K_i|₂>, or the sum of all means."""
    means = problem.changes * problem.mean(np.linalg.norm(k, axis=1))
    return problem.changes * (means if problem.adjacency == "one_input" else means.sum())
