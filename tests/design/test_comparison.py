import dataclasses

import numpy as np
import pytest

import dpfast as dp
from dpfast._support.errors import ConvergenceWarning, warn
from dpfast.design import comparison
from dpfast.design.best_demand import Demand

CHAIN = dp.MarkovChain([[0.75, 0.25], [0.25, 0.75]], [-0.5, 0.5])
TASK = Demand(dp.Filter([1], [1, -0.8]), dp.Privacy(1, 1e-3), CHAIN, 2, 0.01)


def test_a_certificate_bounds_all_that_are_no_later():
    mechanism = dp.input_perturbation(TASK.target, TASK.privacy)
    late = dp.lmmse(TASK.target, TASK.privacy, CHAIN, lag=3, prefilter=dp.Filter([1]))
    later = dataclasses.replace(late, lower_bound_mse=4.0)
    assert comparison.lower_bound(mechanism, {"a": mechanism, "b": later}) == 2
    early = dataclasses.replace(late, receiver=dataclasses.replace(late.receiver, lag=0), lower_bound_mse=9.0)
    assert comparison.lower_bound(later, {"a": early, "b": later}) == 2
    assert comparison.lower_bound(early, {"a": early, "b": later}) == 3
    assert comparison.lower_bound(mechanism, {"a": mechanism, "b": late}) is None
    forced = dp.zero_forcing(TASK.target, TASK.privacy)  # its bound is for mechanisms without distortion
    assert forced.lower_bound_mse is not None
    assert comparison.lower_bound(mechanism, {"a": mechanism, "b": forced}) is None


@pytest.mark.parametrize("lag", [0, 1, 5, 13, 300, 10_000])
def test_lags_are_about_ten_from_0_on_with_the_given_one(lag):
    found = comparison.lags_around(lag)
    assert found == sorted(set(found))
    assert found[0] == 0
    assert found[-1] == min(max(20, 4 * lag), 10_000)
    assert lag in found
    assert 8 <= len(found) <= 10


def test_epsilons_are_two_decades_around_the_given_one():
    found = comparison.epsilons_around(0.7)
    assert len(found) == 9
    assert found[4] == 0.7
    np.testing.assert_allclose([found[0], found[-1]], [0.07, 7])
    assert all(dp.Privacy(x, 1e-6) for x in comparison.epsilons_around(9e8))


def test_curves_of_several_events_have_every_second_point_and_the_one_that_was_asked_for():
    def points(**privacy):
        return comparison.curve_points(Demand(TASK.target, dp.Privacy(1, **privacy), CHAIN, 2, 0.01))

    whole = points(delta=1e-6)
    assert whole == (comparison.lags_around(2), comparison.epsilons_around(1))
    assert points(max_events=4) == whole  # without a δ there is nothing to search for
    at_lags, at_epsilons = points(delta=1e-6, max_events=4)
    assert {0, 2} < {*at_lags} < {*whole[0]}
    assert max(at_lags) == 4
    assert 1 in at_epsilons
    assert {*at_epsilons} <= {*whole[1]}
    assert len(at_lags) + len(at_epsilons) <= 0.6 * (len(whole[0]) + len(whole[1]))


def test_warnings_of_designs_of_curves_are_notes_with_their_place():
    """They would not say which design they are of, and none of these is the one that is saved."""
    mechanism = dp.input_perturbation(TASK.target, TASK.privacy)

    def design(task):
        warn("it is loose", ConvergenceWarning)
        return mechanism

    (candidate, *_) = comparison.curve_candidates(TASK)
    doubtful = candidate._replace(label="loose", design=design, needs=frozenset({"lag"}))
    designs = comparison.ComparedDesigns(lambda n: None)
    designs.design(doubtful, dataclasses.replace(TASK, lag=7))  # a warning would be an error here
    assert designs.warnings() == ["loose at lag 7, epsilon 1: it is loose."]
