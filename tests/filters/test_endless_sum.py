import pickle

import numpy as np
import pytest

from dpfast.filters.endless_sum import EndlessSum


def test_it_is_a_running_sum_of_any_length():
    target = EndlessSum()
    assert (target.impulse(5) == 1).all()
    np.testing.assert_array_equal(target.apply([[1, 2, 3], [4, 5, 6]]), [[1, 3, 6], [4, 9, 15]])
    assert (target.horizon, target.as_filter(), repr(target)) == (None, None, "EndlessSum()")


def test_all_of_them_are_equal():
    again = pickle.loads(pickle.dumps(EndlessSum()))
    assert again == EndlessSum()
    assert hash(again) == hash(EndlessSum())
    assert EndlessSum() != "EndlessSum()"


def test_what_is_no_input_is_refused_by_name():
    with pytest.raises(ValueError, match="u must"):
        EndlessSum().checked([1.0, np.nan])
