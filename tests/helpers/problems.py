"""Problems of design that are unlike each other."""

import numpy as np
import pytest

from dpfast import ARMA, Filter, MarkovChain
from dpfast.design.prefilter.design_problem import Problem

CHAIN = MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])
NARROW = ARMA([0.4], [1, -1.2, 0.72])
NOTCHED = ARMA([1, 0.3, 0.99**2], [1, -0.4])  # zeros at modulus .99
COST = 1.75633987311476**2

PROBLEMS = {
    "example": Problem(Filter([1, 0.995], [1, -0.995]), CHAIN, COST),
    "pole .9": Problem(Filter([1], [1, -0.9]), CHAIN, COST),
    "resonator": Problem(Filter([1, 0.2], [1, -1.140303389447398, 0.9409]), NARROW, COST),
    "difference": Problem(Filter([1, -1]), CHAIN, COST),
    "moving average": Problem(Filter(np.full(10, 0.1)), NARROW, COST),
    "outside zero, notched signal": Problem(Filter([1, -2]), NOTCHED, 0.3),
    "weak privacy": Problem(Filter([1], [1, -0.9]), NARROW, 1e-3),
    "strong privacy": Problem(Filter([1], [1, -0.9]), NARROW, 1e2),
}

each_problem = pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
