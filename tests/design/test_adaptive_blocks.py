"""Designs of blocks that react to what was published: what is refused, and which threshold is found."""

import numpy as np
import pytest

import dpfast as dp
from dpfast.design.adaptive_blocks import THRESHOLDS
from dpfast.mechanisms.adaptive_mechanism import AdaptiveBlockMechanism
from dpfast.mechanisms.posterior_blocks import PosteriorBlockMechanism

SLOW = dp.MarkovChain([[0.99, 0.01], [0.01, 0.99]], [0, 1])
TARGET = dp.Filter([0.1], [1, -0.9])


def test_the_threshold_is_that_of_least_error():
    """Against a simulation on other inputs: none errs 2 % less in the MSE, and fixed blocks err more."""
    chosen = dp.adaptive_blocks(TARGET, dp.Privacy(3), SLOW)
    some = (THRESHOLDS[0], chosen.threshold, *THRESHOLDS[4::3])
    others = [dp.adaptive_blocks(TARGET, dp.Privacy(3), SLOW, threshold=x, name=str(x)) for x in some]
    fixed = dp.block_sums(TARGET, dp.Privacy(3), SLOW, length=1, receiver="bayes", name="fixed")
    study = dp.monte_carlo([*others, fixed], SLOW, n_streams=64, n_samples=2000, seed=1)
    errors = {x.threshold: study[x.name].stream_mse.mean() for x in others}
    assert errors[chosen.threshold] < 1.02 * min(errors.values())
    assert errors[chosen.threshold] < 0.95 * study["fixed"].stream_mse.mean()  # 10 % less MSE was seen
    assert dict(chosen.options) == {"lag": 0, "noise": "best"}
    assert (chosen.threshold, chosen.longest) == (0.1, 16)


def test_arguments_are_options():
    made = dp.adaptive_blocks(TARGET, dp.Privacy(1), SLOW, lag="smoother", threshold=0.5, longest=9, noise="geometric")
    assert dict(made.options) == {"lag": None, "noise": "geometric", "threshold": 0.5, "longest": 9}
    linear = dp.block_sums(TARGET, dp.Privacy(1), SLOW, lag="smoother")
    assert (made.lag, made.name) == (linear.lag, "block sums adaptive smoother")


def test_over_a_horizon_blocks_are_no_longer_than_it():
    made = dp.adaptive_blocks(dp.running_sum(6), dp.Privacy(0.1), SLOW, threshold=5.0)
    assert (made.horizon, made.longest) == (6, 6)
    u = SLOW.sample(4, 6, seed=1)
    ends = ~np.isnan(made.simulate(u, seed=1).privatized)
    assert ends.sum() <= 4


CHAIN_OF_MANY = dp.MarkovChain(np.full((60, 60), 1 / 60) * 0.5 + np.eye(60) * 0.5, np.arange(60.0))


@pytest.mark.parametrize(
    ("target", "model", "given", "error", "message"),
    [
        (TARGET, dp.ARMA([1], [1, -0.9], mean=5), {}, dp.DesignError, "model must be a MarkovChain or Independent"),
        (TARGET, SLOW, {"threshold": 0.0}, ValueError, "threshold must be .*above 0, got 0"),
        (TARGET, SLOW, {"threshold": float("nan")}, ValueError, "threshold must be "),
        (TARGET, SLOW, {"longest": 0}, ValueError, "longest must be an integer, at least 1 and at most"),
        (TARGET, SLOW, {"longest": 10**5}, ValueError, "longest must be an integer, at least 1 and at most"),
        (TARGET, SLOW, {"lag": -1}, ValueError, "lag must be"),
        (TARGET, SLOW, {"noise": "canonical"}, ValueError, "noise must be|delta"),
        (TARGET, SLOW, {"noise": "gaussian"}, ValueError, "noise must be one of"),
        (TARGET, dp.MarkovChain([[0.9, 0.1], [0.1, 0.9]], [0, 2]), {}, ValueError, "max_change must be a multiple"),
        (TARGET, CHAIN_OF_MANY, {"threshold": 1, "longest": 50}, ValueError, "longest must be smaller here, got 50"),
        (dp.Toeplitz([1, 0.3, 0.2]), SLOW, {}, dp.DesignError, "target must have a recursion"),
        ("sum", SLOW, {}, ValueError, "target must be"),
    ],
)
def test_what_cannot_be_designed_is_refused(target, model, given, error, message):
    with pytest.raises(error, match=message):
        dp.adaptive_blocks(target, dp.Privacy(1), model, **given)


def test_of_an_input_that_is_no_chain_it_says_what_serves():
    counts = dp.ARMA([1.2], [1, -0.9], mean=5)
    for privacy in (dp.Privacy(1), dp.Privacy(1, max_change=1.3)):
        with pytest.raises(
            dp.DesignError, match=r"^model must be a MarkovChain .*, got ARMA, .*: take block_sums, whose"
        ):
            dp.adaptive_blocks(TARGET, privacy, counts)


@pytest.mark.parametrize(("lag", "most"), [(1000, 400), (3, 3)])
def test_trials_wait_no_longer_than_that_gains(monkeypatch, lag, most):
    """Estimates of a longer lag cost more and err no less, so that what is chosen is the same."""
    tried = []
    for kind in (PosteriorBlockMechanism, AdaptiveBlockMechanism):

        def compiled(mechanism, run=kind.compiled):
            tried.append(mechanism.lag)
            return run(mechanism)

        monkeypatch.setattr(kind, "compiled", compiled)
    blocks = dp.block_sums(TARGET, dp.Privacy(1), SLOW, lag=lag, receiver="bayes")
    adaptive = dp.adaptive_blocks(TARGET, dp.Privacy(1), SLOW, lag=lag, longest=16)
    assert (blocks.lag, adaptive.lag) == (lag, lag)
    assert len(tried) > 12
    assert max(tried) <= most
