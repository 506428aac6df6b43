import platform
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from llvmlite import ir
from scipy import signal

from dpfast._kernels import chain_execute, denormals
from dpfast._kernels._jit import DISABLE_JIT, OPTIONS
from dpfast._kernels.chain_builder import Chain
from dpfast._kernels.chain_parts import CHUNK
from dpfast._kernels.denormals import flush, restore
from dpfast._kernels.factors import Factors

FLUSHES = not DISABLE_JIT and platform.machine().lower() in {"x86_64", "amd64"}
SWITCH = pytest.mark.skipif(not FLUSHES, reason="needs the compiler and the switch of an x86 processor")
ONE, NO_SECTIONS = np.ones(1), np.empty((0, 6))
NORMAL = np.finfo(np.float64).smallest_normal
SMALLEST = np.full((1, 2), NORMAL)
RECURSIONS = {
    "section": Factors(ONE, np.array([[1, 0, 0, 1, -0.9, 0]]), ONE),
    "recursion": Factors(ONE, NO_SECTIONS, np.array([1, -0.9])),
}


@numba.njit(**OPTIONS)
def control():
    """The control register, left as it is, without the exceptions that it remembers."""
    before = flush()
    restore(before)
    return before & 0xFFC0


@numba.njit(**OPTIONS)
def switch_on():
    return flush()


@numba.njit(**OPTIONS)
def switch_back(before):
    restore(before)


def run(factors, x, advance=None):
    """Outputs and states of a filter."""
    chain, out = Chain(x.dtype), np.empty((1, *x.shape), x.dtype)
    chain.write(chain.filter(factors, chain.read(), states=True))
    result = chain_execute.execute(chain, *x.shape, x=x, out=out, n_threads=1, advance=advance)
    return out[0], result.states


def gain(factor):
    return Factors(np.array([factor]), NO_SECTIONS, ONE)


def numpy_keeps_small_numbers():
    return (SMALLEST / 2 > 0).all() and (SMALLEST / 2 * 4 > SMALLEST).all()


@SWITCH
def test_small_results_and_operands_count_as_zero_inside():
    assert np.array_equal(run(gain(1.0), SMALLEST)[0], SMALLEST)
    assert not run(gain(0.5), SMALLEST)[0].any()
    assert not run(gain(4.0), SMALLEST / 2)[0].any()


def test_numpy_keeps_them_before_and_after():
    before = control()
    assert numpy_keeps_small_numbers()
    run(gain(0.5), SMALLEST)
    assert numpy_keeps_small_numbers()
    assert control() == before


def test_numpy_keeps_them_between_slices(monkeypatch):
    monkeypatch.setattr(chain_execute, "_SLICE", 1)
    seen = []
    run(gain(0.5), np.ones((2, 2 * CHUNK + 5)), lambda _: seen.append(numpy_keeps_small_numbers()))
    assert seen == [True] * 3


@SWITCH
def test_a_caller_who_had_switched_it_on_finds_it_on():
    before = switch_on()
    try:
        run(gain(0.5), SMALLEST)
        left = control()
    finally:
        switch_back(before)
    assert left == before & 0xFFC0 | 0x8040
    assert control() == before & 0xFFC0


@pytest.mark.parametrize(("processor", "changes"), [("x86_64-unknown-linux-gnu", True), ("arm64-apple-darwin", False)])
def test_processors_without_the_switch_are_left_alone(processor, changes):
    function = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), []), "f")
    codegen = SimpleNamespace(magic_tuple=lambda: (processor, "", ""))
    word = ir.IntType(32)(0)
    denormals._access(
        SimpleNamespace(codegen=lambda: codegen), ir.IRBuilder(function.append_basic_block()), "ldmxcsr", word
    )
    assert ("ldmxcsr" in str(function)) == changes


@SWITCH
@pytest.mark.parametrize("name", RECURSIONS)
def test_a_recursion_decays_to_exactly_zero(name):
    x = np.eye(1, 8000)
    y, states = run(RECURSIONS[name], x)
    assert 0 < signal.lfilter([1], [1, -0.9], x)[0, -1] < NORMAL  # for ever
    last = np.flatnonzero(y)[-1]
    assert y[0, last] >= NORMAL
    assert not y[0, last + 1 :].any()
    assert not states.any()
