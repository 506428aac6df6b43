"""Kernels are called by their address here, so that a loop can be compiled without what it calls.

A call in the ordinary way compiles the whole kernel into its caller; where a loop may call any of many kernels, all of
them would have to be compiled before the first one runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import typeof, types
from numba.core import cgutils
from numba.extending import intrinsic

from dpfast._kernels._jit import DISABLE_JIT


def type_like(example: Any) -> Any:
    """Return the type that Numba has for an argument like this one."""
    return None if DISABLE_JIT else typeof(example)


def type_of_record(records: Any) -> Any:
    """Return the type that Numba has for one of these records."""
    return None if DISABLE_JIT else typeof(records).dtype


def find_address(kernel: Any, *kinds: Any) -> Any:
    """Compile a kernel for arguments of these types, or load it from the cache; return the address of its code.

    The address is good for this process, and those that it forks, as long as the kernel is there.
    """
    if DISABLE_JIT:
        return kernel
    compiled = kernel.get_compile_result(types.void(*kinds))
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def list_addresses(addresses: list[Any]) -> Any:
    """Make an array of addresses, for a kernel that calls them."""
    return addresses if DISABLE_JIT else np.array(addresses, dtype=np.uintp)


@intrinsic
def _call(typing_context: Any, address: Any, arguments: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        convention, kinds = context.call_conv, tuple(arguments)
        function = convention.get_function_type(types.none, kinds).as_pointer()
        pointer = builder.inttoptr(values[0], function)
        parts = cgutils.unpack_tuple(builder, values[1], len(kinds))
        status, _ = convention.call_function(builder, pointer, types.none, kinds, parts)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.void(address, arguments), generate


def _call_python(kernel: Any, arguments: tuple[Any, ...]) -> None:
    """Call what is no address, where there is no compiler."""
    kernel(*arguments)


call: Any = _call_python if DISABLE_JIT else _call
