"""What is ideal for block sums whose privacy was replaced."""

import pytest

import dpfast as dp

CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], levels=[-0.5, 0.5])


@pytest.mark.parametrize("target", [dp.Filter([1], [1, -0.9]), dp.running_sum(60)], ids=["for ever", "horizon"])
def test_the_ideal_is_that_of_the_filter_for_the_noise_that_there_is(target):
    weak, strong = (dp.block_sums(target, dp.Privacy(x), CHAIN, length=4, lag=3) for x in (1, 2))
    assert weak.ideal_mse == pytest.approx(weak.predicted_mse, rel=1e-9)
    replaced = weak.under(dp.Privacy(2))
    assert replaced.ideal_mse == pytest.approx(strong.predicted_mse, rel=1e-9)
    assert replaced.predicted_mse > replaced.ideal_mse * 1.01


def test_a_length_whose_errors_would_not_fit_into_memory_is_refused_at_design():
    long = dp.Filter([1 / 400] * 400)
    with pytest.raises(
        ValueError, match=r"length must be at most 206 for a model and a target of 402 states .* got 240"
    ):
        dp.block_sums(long, dp.Privacy(0.05), CHAIN, length=240)
