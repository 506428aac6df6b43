"""Simulations of the cells of the mathematics' table, and of real inputs that are rounded to a lattice."""

import math

import pytest
from helpers.noise_tables import CHAIN, TABLE, TARGETS
from scipy import stats

from dpfast import ARMA, Privacy, block_sums, monte_carlo, randomized_response

ALARM = 1e-6  # of a run, over all that is compared with a simulation
LONG = pytest.mark.long
DEMANDS = list(dict.fromkeys((row[2], row[0], row[1]) for row in TABLE))
N_CELLS = 3 * len(TABLE)


def mechanisms_of(demand):
    """The mechanisms of the cells of a target and a privacy, at both lags: B = 1, the best B, randomised response."""
    found = []
    for epsilon, delta, target, lag, _, _, length, *_ in TABLE:
        if (target, epsilon, delta) == demand:
            asked = TARGETS[target], Privacy(epsilon, delta), CHAIN
            found += [
                block_sums(*asked, lag=lag, length=1, name=f"B = 1, lag {lag}"),
                block_sums(*asked, lag=lag, length=length, name=f"best B = {length}, lag {lag}"),
                randomized_response(*asked, lag=lag, name=f"RR, lag {lag}"),
            ]
    return found


def z_values(demand, n_streams, n_samples, seed):
    """How many standard errors the simulated MSE is above the predicted one, which rounds to what is printed."""
    made = mechanisms_of(demand)
    cycle = math.lcm(*(x.lengths[-1] for x in made if hasattr(x, "lengths")))
    n_samples = cycle * -(-n_samples // cycle)
    study = monte_carlo(made, CHAIN, n_streams=n_streams, n_samples=n_samples, seed=seed)
    return {x.name: z_value(study[x.name].stream_mse, x.predicted_mse) for x in made}


def z_value(errors, expected):
    """How many standard errors a mean over streams is above what is expected."""
    return (errors.mean() - expected) / (errors.std(ddof=1) / math.sqrt(len(errors)))


SIZES = [((1_000, 2_500), x) for x in (DEMANDS[1], DEMANDS[13])]
SIZES += [pytest.param((20_000, 5_000), x, marks=LONG) for x in DEMANDS]


@pytest.mark.slow_nojit
@pytest.mark.parametrize(("size", "demand"), SIZES)
def test_cells_of_the_table_are_what_is_simulated(size, demand):
    """Sampling makes any cell of the table seem wrong with a probability of ALARM, over all of it.

    Errors are means over thousands of samples of thousands of streams, and normal.
    """
    bound = stats.norm.isf(ALARM / (2 * N_CELLS))
    assert {name: z for name, z in z_values(demand, *size, seed=1).items() if abs(z) > bound} == {}


# --- real inputs ----------------------------------------------------------------------------------

NEARLY_WHITE = 0.003  # of the RMSE: what the error of rounding changes by not being white noise that is independent
REAL_INPUTS = [  # standard deviation in units, pole, epsilon, target, lag
    (3.0, 0.9, 1, "exp .9", 5),
    (3.0, 0.9, 3, "MA12", 0),
    (1.5, 0.9, 3, "exp .9", 5),
    (0.8, 0.5, 1, "MA12", 5),
    (0.5, 0.5, 1, "exp .9", 0),
    (0.5, 0.0, 3, "1-2z", 0),
]


@pytest.mark.slow_nojit
@pytest.mark.filterwarnings("ignore:the prediction takes .* for white noise:dpfast.AccuracyWarning")  # it is here
@pytest.mark.parametrize(("std", "pole", "epsilon", "target", "lag"), REAL_INPUTS)
def test_rounding_errs_as_predicted_and_more_than_without(std, pole, epsilon, target, lag):
    """With a false-alarm rate of ALARM over all cases; `without` are counts behind the same noise on the same sums."""
    unit, drive = 0.25, std * math.sqrt(1 - pole**2)
    model, counts = (ARMA([x * drive], [1, -pole], mean=1.2 * x) for x in (unit, 1))
    rounded = block_sums(TARGETS[target], Privacy(epsilon, max_change=0.9 * unit), model, lag=lag, unit=unit)
    without = block_sums(TARGETS[target], Privacy(epsilon), counts, lag=lag, length=rounded.lengths[0])
    assert [x.variance for x in without.noise] == [x.variance for x in rounded.noise]
    cycle = rounded.lengths[0]
    study = monte_carlo(rounded, model, n_streams=2_000, n_samples=cycle * (2_000 // cycle), seed=1)
    errors = study[rounded.name].stream_mse
    bound = stats.norm.isf(ALARM / (4 * len(REAL_INPUTS)))
    slack = 2 * NEARLY_WHITE * rounded.predicted_mse / (errors.std(ddof=1) / math.sqrt(len(errors)))
    assert abs(z_value(errors, rounded.predicted_mse)) < bound + slack
    assert z_value(errors, unit**2 * without.predicted_mse) > bound + slack
