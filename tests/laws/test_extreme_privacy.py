"""Very much privacy and hardly any: designs, and studies of them, take little time and memory, and no number overflows.

Errors have closed forms at both ends: all that is known is the mean where noise is without bounds, and where there is
none what is known of a block is its sum. Seeds are fixed; a study raises a false alarm once in 1e8.
"""

import numpy as np
import pytest

import dpfast as dp

ALARM = 1e-8
STAY = 0.75
CHAIN = dp.MarkovChain([[STAY, 1 - STAY], [1 - STAY, STAY]], levels=[-0.5, 0.5])
TARGET, LONG = dp.Filter([1.0, 0.5], [1.0, -0.9]), dp.Filter([1, 0.995], [1, -0.995])
MUCH = [dp.Privacy(1e-4, 1e-6), dp.Privacy(1e-6), dp.Privacy(1e-9), dp.Privacy(1.0, max_change=1e6)]
LITTLE = [dp.Privacy(50), dp.Privacy(700, 1e-6), dp.Privacy(745), dp.Privacy(1e4, 0.1)]
IDS = {"ids": lambda x: f"{x.epsilon:g}, {x.delta:g}, {x.max_change:g}"}


def study(mechanism):
    options = {"n_streams": 64, "n_samples": 2000, "confidence": 1 - ALARM}
    return dp.monte_carlo(mechanism, CHAIN, **options, seed=3)[mechanism.name]


def agrees(mechanism):
    low, high = study(mechanism).interval
    return low <= mechanism.predicted_rmse <= high


def output_variance(target):
    """Of the target's output: the sum over lags of what the chain and the target remember."""
    h = target.filter(np.append(1.0, np.zeros(999)))[0]
    shared = np.correlate(h, h, "full")[len(h) - 1 :]
    return 0.25 * (shared[0] + 2 * shared[1:] @ (2 * STAY - 1) ** np.arange(1, len(h)))


@pytest.mark.parametrize("privacy", MUCH, **IDS)
@pytest.mark.parametrize("options", [{"length": 5}, {"length": 5, "lag": 7}, {"length": (2, 8), "shares": (0.5, 0.5)}])
def test_where_noise_has_no_bounds_block_sums_tell_the_mean(privacy, options):
    mechanism = dp.block_sums(TARGET, privacy, CHAIN, **options)
    assert mechanism.predicted_mse == pytest.approx(output_variance(TARGET), rel=1e-4)
    assert agrees(mechanism)


@pytest.mark.parametrize("privacy", MUCH, **IDS)
def test_where_noise_has_no_bounds_an_input_has_what_is_predicted(privacy):
    for noise in ("geometric", "staircase", *["canonical"] * (privacy.delta > 0)):
        assert agrees(dp.input_perturbation(TARGET, privacy, noise=noise))


@pytest.mark.parametrize("privacy", LITTLE, **IDS)
@pytest.mark.parametrize("lag", [0, 4])
def test_without_noise_every_input_is_known(privacy, lag):
    inputs = dp.input_perturbation(TARGET, privacy, noise="geometric")
    assert inputs.predicted_rmse < 1e-5
    for blocks in (dp.block_sums(TARGET, privacy, CHAIN, lag=lag), dp.block_sums(TARGET, privacy, CHAIN, length=1)):
        assert blocks.predicted_rmse is None  # hidden by rounding, and said to be so
        assert blocks.linear_mse == pytest.approx(0, abs=1e-13 * output_variance(TARGET))
        assert study(blocks).rmse < 1e-5
    assert study(inputs).rmse < 1e-5


@pytest.mark.parametrize("privacy", LITTLE, **IDS)
@pytest.mark.parametrize("options", [{"length": 3}, {"length": (2, 8), "shares": (0.5, 0.5)}, {"length": 4, "lag": 5}])
def test_without_noise_what_is_known_of_a_block_is_its_sum(privacy, options):
    """Shorter blocks say all that longer ones do, and a little noise makes no difference."""
    first = options["length"] if isinstance(options["length"], int) else options["length"][0]
    for target in (TARGET, LONG):
        mechanism = dp.block_sums(target, privacy, CHAIN, **options)
        alone = dp.block_sums(target, dp.Privacy(35), CHAIN, **(options | {"length": first, "shares": None}))
        assert mechanism.predicted_mse == pytest.approx(alone.predicted_mse, rel=1e-6)
        assert target is LONG or agrees(mechanism)
