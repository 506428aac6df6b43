"""Numbers below 1e-308 count as zero inside a kernel: arithmetic on them is a hundred times slower.

They appear wherever a signal stops and a recursion decays. The processor has a switch (x86: bits 15 and 6 of MXCSR, for
results and operands); the caller's setting is put back at the end of a kernel. On other processors nothing is changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from dpfast._kernels._jit import DISABLE_JIT

_FLUSH = 0x8040


def _access(context: Any, builder: Any, name: str, word: Any) -> Any:
    """Let an instruction of the control register read or write a word in memory; the word afterwards."""
    place = cgutils.alloca_once_value(builder, word)
    if context.codegen().magic_tuple()[0].startswith(("x86_64", "i686", "i386")):
        address = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [address])
        instruction = cgutils.get_or_insert_function(builder.module, kind, f"llvm.x86.sse.{name}")
        builder.call(instruction, [builder.bitcast(place, address)])
    return builder.load(place)


@intrinsic
def _flush(typing_context: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        before = _access(context, builder, "stmxcsr", ir.IntType(32)(0))
        _access(context, builder, "ldmxcsr", builder.or_(before, ir.IntType(32)(_FLUSH)))
        return before

    return types.uint32(), generate


@intrinsic
def _restore(typing_context: Any, before: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _access(context, builder, "ldmxcsr", values[0])
        return context.get_dummy_value()

    return types.void(types.uint32), generate


def _do_nothing(*before: Any) -> np.uint32:
    """Leave NumPy's arithmetic as it is, where there is no compiler."""
    return np.uint32(0)


flush: Any
restore: Any
flush, restore = (_do_nothing, _do_nothing) if DISABLE_JIT else (_flush, _restore)
