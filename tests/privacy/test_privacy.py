"""What Privacy takes, and what it refuses by name."""

import dataclasses
import math

import numpy as np
import pytest

from dpfast import Filter, Privacy


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "1", None, True, np.True_, 1j, [1.0], np.array([1.0])])
@pytest.mark.parametrize("name", ["epsilon", "delta", "max_change"])
def test_numbers_out_of_range_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be a .*number.*, got "):
        Privacy(**{"epsilon": 1, "delta": 0.05, name: value})


@pytest.mark.parametrize("name", ["epsilon", "max_change"])
def test_epsilon_and_changes_are_above_zero(name):
    with pytest.raises(ValueError, match=rf"^{name} must be a number strictly between .*, got 0$"):
        Privacy(**{"epsilon": 1, name: 0})


@pytest.mark.parametrize("delta", [1, 1.5, -0.1, "0", False, [0.0]])
def test_delta_is_at_least_0_and_below_1(delta):
    with pytest.raises(ValueError, match=r"^delta must be a number, at least 0 and below 1, got "):
        Privacy(1, delta)


@pytest.mark.parametrize("value", [0, -1, 1.5, 2.0, "2", None, True, math.nan])
@pytest.mark.parametrize("name", ["max_events", "min_separation"])
def test_counts_are_integers_of_at_least_one(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be an integer, at least 1( and at most 1000000000)?, got "):
        Privacy(1, 0.05, **{name: value})


@pytest.mark.parametrize("value", ["Exact", "papr", "", None, 1])
def test_calibration_is_one_of_two_words(value):
    with pytest.raises(ValueError, match=f"^calibration must be one of 'exact', 'paper', got {value!r}"):
        Privacy(1, 0.05, calibration=value)


@pytest.mark.parametrize("delta", [0.5, 0.7])
def test_paper_calibration_ends_at_one_half(delta):
    with pytest.raises(ValueError, match=rf"^delta must be below 0\.5 with calibration='paper', got {delta}"):
        Privacy(1, delta, calibration="paper")


@pytest.mark.parametrize("make", [Privacy.from_gdp, Privacy.from_zcdp])
@pytest.mark.parametrize("arguments", [(0, 0.05), (-1, 0.05), (math.nan, 0.05), (1, 0), (1, 1), ("1", 0.05)])
def test_named_constructors_check_too(make, arguments):
    with pytest.raises(ValueError, match=r"^(mu|rho|delta) must be"):
        make(*arguments)


@pytest.mark.parametrize("prefilter", [[1, 2], None, 1.0])
def test_a_prefilter_that_is_no_filter_is_refused_by_name(prefilter):
    with pytest.raises((TypeError, ValueError), match="prefilter must be"):
        Privacy(1, 0.05).sensitivity(prefilter)


def test_frozen_hashable_and_equal():
    privacy = Privacy(1, 0.05)
    assert privacy.noise_multiplier > 0
    assert privacy == Privacy(1.0, np.float64(0.05))
    assert hash(privacy) == hash(Privacy(np.int64(1), 0.05))
    assert privacy != Privacy(1, 0.05, calibration="paper")
    with pytest.raises(dataclasses.FrozenInstanceError):
        privacy.epsilon = 2


# --- without a delta ------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0, 0.0, -0.0, np.float64(0)])
def test_pure_epsilon_is_what_is_asked_for_without_a_delta(delta):
    assert Privacy(1) == Privacy(1, delta)
    assert hash(Privacy(1)) == hash(Privacy(1, delta))
    assert math.copysign(1, Privacy(1, delta).delta) == 1
    assert Privacy(1) != Privacy(1, 1e-300)


@pytest.mark.parametrize("calibration", ["exact", "paper"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda privacy: privacy.noise_multiplier,
        lambda privacy: privacy.zcdp_rho,
        lambda privacy: privacy.gdp_mu,
        lambda privacy: privacy.noise_std(Filter([1.0])),
    ],
)
def test_no_gaussian_noise_gives_pure_epsilon(ask, calibration):
    message = (
        "^delta must be above 0 for Gaussian noise, which gives no pure ε: give a delta, or take block_sums, "
        "randomized_response"
    )
    with pytest.raises(ValueError, match=message):
        ask(Privacy(1, calibration=calibration))


def test_sensitivities_need_no_delta():
    assert Privacy(1, max_change=2).sensitivity(Filter([3, 4])) == pytest.approx(10)


def test_a_notebook_shows_no_multiplier_without_a_delta():
    assert "noise multiplier" not in Privacy(1)._repr_html_()
    assert "noise multiplier" in Privacy(1, 1e-6)._repr_html_()
