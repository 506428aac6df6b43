"""What a release says of its design, from the design alone, also when it is read again and on its page."""

import numpy as np
import pytest

import dpfast as dp
from dpfast.releases.integer.design_words import describe_design

MODEL = dp.ARMA([1], [1, -0.5], mean=2.0)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (dp.Filter([0.25] * 4), "the mean of the last 4 steps"),
        (dp.Filter([1.0]), "the value of each step"),
        (dp.Filter([2.5]), "2.5 times the value of each step"),
        (dp.Filter([0.25] * 3), "the output of the filter with b = [0.25, 0.25, 0.25] and a = [1]"),
        (dp.Filter([0.1], [1, -0.9]), "the output of the filter with b = [0.1] and a = [1, -0.9]"),
        (dp.Filter(np.arange(1.0, 10)), "the output of the filter with b = [1, 2, 3, 4, 5, 6, 7, 8, …] and a = [1]"),
    ],
)
def test_targets_are_said_in_words(target, words):
    mechanism = dp.input_perturbation(target, dp.Privacy(1, 1e-6))
    assert describe_design(mechanism)["what is estimated"] == words
    assert describe_design(mechanism)["assumed of the data"] == "nothing"


def test_several_streams_and_horizons_are_said_in_words():
    privacy = dp.Privacy(1, adjacency="one_input")
    several = dp.block_sums(dp.total(2), privacy, [MODEL, dp.ARMA([2], mean=7.0)], lag=1)
    told = describe_design(several)
    assert told["what is estimated"] == "1 output of 2 groups together"
    assert told["mechanism"] == (
        "block sums lag 1; an estimate takes in what is published until its step and the one after it"
    )
    assert told["assumed of the data"] == (
        "a mean of 2 and a standard deviation of 1.155 (ARMA); a mean of 7 and a standard deviation of 2 (ARMA)"
    )
    unknown = dp.zero_forcing(dp.total(2), dp.Privacy(1, 0.1, adjacency="one_input"))
    assert describe_design(unknown)["assumed of the data"] == "nothing"
    bounded = dp.robust(dp.Filter([0.1], [1, -0.9]), dp.Privacy(1, 1e-6), mean_square=2.0, lag=0, tolerance=0.1)
    assert describe_design(bounded)["assumed of the data"] == "a mean square of at most 2"
    counter = dp.block_sums(dp.running_sum(64), dp.Privacy(1), MODEL)
    assert "horizon=64" in describe_design(counter)["what is estimated"]
    depend = dp.lmmse(dp.total(2), dp.Privacy(1, 0.1, adjacency="one_input"), dp.VectorARMA([np.eye(2) / 2]), lag=0)
    assert describe_design(depend)["assumed of the data"].endswith("depend on one another (VectorARMA)")


def test_a_release_and_its_page_say_what_is_estimated_and_what_may_not_be_done(tmp_path):
    mechanism = dp.block_sums(dp.Filter([0.25] * 4), dp.Privacy(1), MODEL, lag=2)
    counts = np.random.default_rng(1).poisson(2, (1, 40))
    result = dp.release(mechanism, counts, tmp_path / "store", dp.Inputs(0, 20))
    assert result.design == describe_design(mechanism) == dp.read_release(tmp_path / "store").design
    dp.report(result, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for words in ("the mean of the last 4 steps", "a mean of 2 and a standard deviation", "to put an old copy of the"):
        assert words in page
