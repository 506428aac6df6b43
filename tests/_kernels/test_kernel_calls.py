"""Kernels that are called by their address."""

import numpy as np

from dpfast._kernels._jit import part, stage
from dpfast._kernels.kernel_calls import call, find_address, list_addresses, type_like


@stage
def double(x, i, by):
    x[i] *= 2


@stage
def add(x, i, by):
    x[i] += by


@part  # in no cache: that calls are compiled is to be seen every time
def call_each(addresses, x, by):
    for i in range(len(addresses)):
        call(addresses[i], (x, i, by))


def test_a_loop_calls_what_its_addresses_say():
    x = np.array([1.0, 10.0, 100.0])
    kinds = type_like(x), type_like(0), type_like(0.5)
    addresses = list_addresses([find_address(each, *kinds) for each in (double, add, double)])
    call_each(addresses, x, 0.5)
    assert x.tolist() == [2.0, 10.5, 200.0]
    call_each(addresses[::-1][:2], x, 0.25)  # the same loop, other kernels
    assert x.tolist() == [4.0, 10.75, 200.0]
