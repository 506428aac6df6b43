"""Integers in as few bytes as they take, beside Python's own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpfast.releases.store.packed_integers import pack, unpack

WORDS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(st.one_of(st.integers(-300, 300), WORDS), max_size=20))
def test_they_are_the_twos_complement_of_the_least_width(values):
    width = 1
    while any(not -(1 << 8 * width - 1) <= x < 1 << 8 * width - 1 for x in values):
        width += 1
    content = pack(np.array(values, np.int64))
    assert content == bytes([width]) + b"".join(x.to_bytes(width, "little", signed=True) for x in values)
    assert unpack(content).tolist() == values


@pytest.mark.parametrize("content", [b"", b"\0", b"\x09" + bytes(9), b"\x02\x01", b"\x08" + bytes(7)])
def test_other_bytes_are_refused(content):
    with pytest.raises(ValueError, match="content must be integers that pack gave"):
        unpack(content)


def test_any_layout_in_memory_is_packed_by_rows():
    x = np.arange(12).reshape(3, 4)
    assert unpack(pack(x.T)).tolist() == x.T.ravel().tolist()
    assert unpack(pack(x[:, ::2])).tolist() == [0, 2, 4, 6, 8, 10]
