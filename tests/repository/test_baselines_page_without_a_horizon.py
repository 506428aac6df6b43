"""The table of running sums without a horizon in docs/explanation/baselines.md."""

from pathlib import Path

import numpy as np
import pytest
from helpers import unbounded

import dpfast as dp

PAGE = (Path(__file__).parents[2] / "docs/explanation/baselines.md").read_text(encoding="utf-8")
LINES = PAGE.split("<!-- without a horizon -->\n")[1].split("\n\n")[0].splitlines()[2:]
ROWS = {first.strip(): [float(x) for x in cells] for first, *cells in (line.strip("| ").split("|") for line in LINES)}
STEPS = 2 ** np.arange(0, 25, 4)
MECHANISM = dp.unbounded_sum(dp.Privacy.from_gdp(1, 1e-6))
EXPONENTS = [(-1.42, 1.55), (-2.03, 3.19), (-0.51, 0.0)]


def relative(variances, steps):
    """What a cell has: in units of the variance of the square root for that horizon."""
    return np.array(variances) / unbounded.square_root_energies(int(steps[-1]))[steps - 1] ** 2


def jacobsen_fawaz_name(gamma, delta):
    return f"Jacobsen and Fawaz, γ = −{-gamma:g}, δ = {delta:g}"


def check(steps):
    found = {
        "`unbounded_sum`": [MECHANISM.mse_at(int(n) - 1) / MECHANISM.noise_std**2 for n in steps],
        "a new square root whenever n has doubled": [unbounded.fresh_square_roots(int(n)) for n in steps],
        "hybrid of Chan, Shi and Song, 35 % for the sums of blocks": [unbounded.hybrid(int(n), 0.35) for n in steps],
        "no factorization for n steps is below": [unbounded.trace_norm_bound(int(n)) for n in steps],
    }
    for exponents in EXPONENTS:
        found[jacobsen_fawaz_name(*exponents)] = unbounded.jacobsen_fawaz(int(steps[-1]), *exponents)[steps - 1]
    assert ROWS.keys() == found.keys()
    for name, variances in found.items():
        np.testing.assert_allclose(ROWS[name][: len(steps)], relative(variances, steps), atol=6e-4, err_msg=name)


def test_the_first_columns_are_what_this_version_gives():
    check(STEPS[:5])


@pytest.mark.long
def test_all_columns_are_what_this_version_gives():
    """Series of 2²⁴ terms, by FFTs of 2²⁶, in 4 GB."""
    check(STEPS)
