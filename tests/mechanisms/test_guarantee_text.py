import numpy as np

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
