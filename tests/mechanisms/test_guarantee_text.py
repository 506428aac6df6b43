import numpy as np
import pytest

import dpfast as dp
from dpfast.mechanisms.guarantee_text import describe

TARGET = dp.Filter([1, 1])


def test_a_mechanism_in_words():
    mechanism = dp.input_perturbation(TARGET, dp.Privacy(0.5, 1e-6, max_change=2)).with_sources(target="public")
    text = describe(mechanism)
    assert text.startswith(mechanism.summary())
    assert "  public              target\n" in text
    assert "  assumed             epsilon, delta, max_change, " in text
    assert "\n  fitted-from-private" not in text
    words = " ".join(text.split())
    assert "differ by one event of size at most 2 are told apart" in words
    assert "(0.5, 1e-06)-differential privacy" in words
    assert f"standard deviation {mechanism.noise_std:.6g}" in words
    assert "nothing is guaranteed" not in words


def test_several_events_and_private_data_change_the_guarantee():
    model = dp.ARMA.fit(np.arange(9) % 4, 1)
    privacy = dp.Privacy(1, 1e-6, max_events=3, min_separation=12)
    mechanism = dp.lmmse(TARGET, privacy, model, lag=0, prefilter=dp.Filter([1]))
    words = " ".join(describe(mechanism).split())
    assert "at most 3 events of size at most 1, at least 12 samples apart, are told apart" in words
    assert "fitted-from-private model, mean guarantee" in words
    assert "It does depend on private data (model, mean): for those data nothing is guaranteed." in words


CHAIN = dp.MarkovChain([[0.8, 0.2], [0.4, 0.6]], [-0.5, 0.5])


@pytest.mark.parametrize(
    ("mechanism", "ends"),
    [
        (dp.input_perturbation(TARGET, dp.Privacy(1), noise="geometric"), "It holds for inputs that are integers."),
        (dp.input_perturbation(TARGET, dp.Privacy(1), noise="geometric", unit=0.5), "depend on the data."),
        (dp.input_perturbation(TARGET, dp.Privacy(1), noise="laplace"), "depend on the data."),
        (dp.randomized_response(TARGET, dp.Privacy(1), CHAIN), "depend on the data."),
        (dp.block_sums(TARGET, dp.Privacy(1), CHAIN, length=2), "inputs that are -0.5 plus multiples of 1."),
        (
            dp.block_sums(TARGET, dp.Privacy(1, max_change=3), dp.IndependentLevels([0, 3], [0.5, 0.5]), length=2),
            "inputs that are multiples of 3.",
        ),
        (
            dp.block_sums(
                TARGET, dp.Privacy(1, max_change=0.1), dp.IndependentLevels([0.1, 0.2, 0.3], [0.5, 0.3, 0.2]), length=2
            ),
            "inputs that are multiples of 0.1.",
        ),
        (
            dp.input_perturbation(dp.running_sum(8), dp.Privacy(1), noise="geometric"),
            (
                "It holds for inputs that are integers. It holds also for inputs that react to what was published "
                "before, if each step is published and used when all of its inputs are there. It ends with these "
                "steps: who is in a further run of it pays again. Its simulation is for studies; there is no exact "
                "release of it."
            ),
        ),
    ],
    ids=lambda x: x.full_name if hasattr(x, "full_name") else "",
)
def test_the_guarantee_of_noise_on_a_lattice_says_for_which_inputs_it_holds(mechanism, ends):
    assert " ".join(describe(mechanism).split()).endswith(ends)


@pytest.mark.parametrize(
    ("delta", "events", "shown"), [(0, 1, ""), (0.06, 2, " (shown to be true with probability 0.03)")]
)
def test_a_response_tells_the_truth_with_a_probability_and_adds_no_noise(delta, events, shown):
    """ε/m and δ/m an event: the truth is told with probability δ, and of the rest e^ε times as often as the lie."""
    mechanism = dp.randomized_response(TARGET, dp.Privacy(1.5 * events, delta, max_events=events), CHAIN)
    each = delta / events
    truth = each + (1 - each) * np.exp(1.5) / (1 + np.exp(1.5))
    words = " ".join(describe(mechanism).split())
    assert (
        "in exact arithmetic, with randomised response: of each input the nearer of two levels is told truly with "
        f"probability {truth:.6g}{shown}, and else the other one, by a draw that is made anew at every step, once, and "
        "kept secret, if the design does not depend on the data."
    ) in words
    assert "standard deviation" not in words.partition(" guarantee ")[2]


def test_block_sums_in_words():
    nested = dp.block_sums(TARGET, dp.Privacy(1), CHAIN, lag=2, length=(2, 6), shares=(0.75, 0.25), phase=1)
    first, second = (x.variance**0.5 for x in nested.noise)
    text = nested.summary()
    assert "sums of 2 and 6 steps, the first one 1, of shares 0.75 and 0.25\n" in text
    assert f"geometric, standard deviation {first:.6g} and {second:.6g}\n" in text
    assert f"(worst step {nested.phase_mse.max() ** 0.5:.6g})" in text
    assert (
        f"geometric noise of standard deviation {second:.6g} on sums of 6 steps and geometric noise on sums of 2 steps "
        f"of standard deviation {first:.6g} that is drawn anew"
    ) in " ".join(describe(nested).split())
    summed = dp.block_sums(dp.running_sum(12), dp.Privacy(1), CHAIN, length=3)
    assert "\n  horizon         12 steps\n" in summed.summary()
    assert "Two streams of 12 steps that differ" in " ".join(describe(summed).split())
    assert summed.full_name == "the BlockMechanism 'block sums lag 0' over a horizon of 12 steps"


def test_noise_on_the_inputs_is_a_choice_with_a_source():
    for target in (TARGET, dp.running_sum(8)):
        made = dp.input_perturbation(target, dp.Privacy(1), noise="best", unit=0.5)
        assert dict(made.options) == {"noise": "best", "unit": 0.5}
        assert made.with_sources(noise="fitted-from-private").sources["noise"] == "fitted-from-private"
        assert dp.input_perturbation(target, dp.Privacy(1, 1e-6)).options == ()
