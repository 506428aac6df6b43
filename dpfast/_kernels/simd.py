"""SIMD for Numba in the vocabulary of NumPy.

A *row* is one instant of a bundle of streams: a short NumPy vector, one lane a stream. A function marked ``@traced``
is ordinary Python over rows. When a kernel that calls it is compiled, Python runs it once with symbols in place of the
numbers, and every operation that it performs becomes an LLVM instruction on whole rows: its loops are thereby unrolled,
its tuples live in registers, and its Python objects (a decision rule, a dict of rows) cost nothing at run time. With
NUMBA_DISABLE_JIT=1 the same function simply runs, on NumPy arrays.

Inside: arithmetic, comparisons, ``np.where``, ``np.sqrt``, ..., ``.astype``, ``.view``, and the functions of this
module. Numbers are weak: the row decides the type. A loop has a length that is known at compile time, or is a
:func:`repeat`; loops over time belong to the kernel.

The file is longer than others because it is one thing: what may be called, the symbols that record the calls, and the
decorator are each of no use, and not to be understood, without the other two.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import typeof, types
from numba.core import cgutils, errors
from numba.core.datamodel import models
from numba.core.registry import cpu_target
from numba.extending import intrinsic, register_model
from numba.np.numpy_support import as_dtype, from_dtype
from numpy.typing import DTypeLike

from dpfast._kernels._jit import DISABLE_JIT

REGISTERS_PER_ROW = 2
_INDEX = ir.IntType(32)
_LINE = 64  # bytes of the cache, and of the largest register

Row = Any  # a NumPy vector, or the symbol of one


@functools.cache
def register_bytes() -> int:
    """Return the size of the widest vector register of the CPU that Numba compiles for.

    LLVM is asked for bits, not for the name of the CPU.
    """
    if DISABLE_JIT:
        return 64
    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    machine = binding.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    double = "define <8 x double> @f(<8 x double> %x) { %y = fadd <8 x double> %x, %x\n ret <8 x double> %y }"
    assembly = machine.emit_assembly(binding.parse_assembly(double))
    return 64 if "zmm" in assembly else 32 if "ymm" in assembly else 16


def lanes(dtype: DTypeLike) -> int:
    """Count the streams in a row of this type: what fills two registers, 16 float64 or 32 float32 with AVX-512."""
    return REGISTERS_PER_ROW * register_bytes() // np.dtype(dtype).itemsize


# --- what a traced function may call --------------------------------------------------------------


def load(array: Any, row: Any, like: Row = None) -> Row:
    """Load a row of a C-contiguous array (rows, lanes); `like` says how many lanes where the type does not."""
    if isinstance(array, ArraySymbol):
        return array.load_row(row, lanes(array.dtype) if like is None else width(like))
    return array[row].copy()


def store(array: Any, row: Any, value: Row) -> None:
    """Write a row, converted to the type of the array."""
    if isinstance(array, ArraySymbol):
        array.store_row(row, value)
    else:
        array[row] = value


def load_run(array: Any, place: tuple[Any, ...], axis: int, n: int) -> Row:
    """Load the n elements from a place on along a contiguous axis; of axes that are not given, the first."""
    if isinstance(array, ArraySymbol):
        return array.load(array.pointer(*place), n)
    return _run(array, place, axis, n).copy()


def store_run(array: Any, place: tuple[Any, ...], axis: int, value: Row) -> None:
    """Write the elements from a place on."""
    if isinstance(array, ArraySymbol):
        array.store(array.pointer(*place), value)
    else:
        _run(array, place, axis, len(value))[...] = value


def _run(array: Any, place: tuple[Any, ...], axis: int, n: int) -> Any:
    index: list[Any] = list(map(int, place))  # indexed by an array, if of no axes, it would be a copy
    index[axis] = slice(index[axis], index[axis] + n)
    run = array[tuple(index)]
    return run if run.ndim == 1 else run[:, 0]


def load_each(array: Any, places: Sequence[tuple[Any, ...]]) -> Row:
    """Load one element from each place; of axes that are not given, the first."""
    if not isinstance(array, ArraySymbol):
        return np.array([array[(*map(int, place), ...)].flat[0] for place in places])
    value = ir.Constant(_llvm_type(array.dtype, len(places)), ir.Undefined)
    for lane, place in enumerate(places):
        value = array.builder.insert_element(value, array[place].value, _INDEX(lane))
    return Symbol(array.builder, value, array.dtype, len(places))


def store_each(array: Any, places: Sequence[tuple[Any, ...]], value: Row) -> None:
    """Write one element to each place, the last one first."""
    for lane, place in reversed(list(enumerate(places))):
        if isinstance(array, ArraySymbol):
            array.store(array.pointer(*place), value.lane(lane))
        else:
            array[(*map(int, place), ...)].flat[0] = value[lane]


def gather(array: Any, indices: Row, start: Any = 0) -> Row:
    """Load array[start + indices] from a 1-D array."""
    if not isinstance(array, ArraySymbol):
        return array[int(start) + indices.astype(np.int64)]
    return load_each(array, [(indices.lane(lane).astype(np.int64) + start,) for lane in range(indices.n_lanes)])


def width(x: Row) -> int:
    """Count the lanes of a row."""
    return x.n_lanes if isinstance(x, Symbol) else len(x)


def fma(a: Any, b: Any, c: Any) -> Row:
    """Compute a b + c, rounded once where the CPU can (NumPy cannot)."""
    first = _widest(a, b, c)
    return a * b + c if first is None or first.dtype.kind != "f" else first.call("fmuladd", a, b, c)


def rotate_left(x: Row, n_bits: int) -> Row:
    """Rotate the bits of unsigned integers."""
    if isinstance(x, Symbol):
        return x.call("fshl", x, x, n_bits)
    return (x << n_bits) | (x >> (8 * x.dtype.itemsize - n_bits))


def transpose(rows: Sequence[Row]) -> list[Row]:
    """Turn a square of rows into its columns, by exchanging ever smaller blocks."""
    square = list(rows)
    if not isinstance(square[0], Symbol):
        return list(np.stack(square).T)
    n = len(square)
    size = n // 2
    while size:
        low = [column if not column & size else n + (column ^ size) for column in range(n)]
        high = [column | size if not column & size else n + column for column in range(n)]
        for i in (i for i in range(n) if not i & size):
            first, second = square[i], square[i | size]
            square[i], square[i | size] = first.shuffle(second, low), first.shuffle(second, high)
        size //= 2
    return square


def separate(a: Row, b: Row) -> tuple[Row, Row]:
    """Take every other number of two rows that follow one another, and those between."""
    n = width(a)
    return choose(a, b, list(range(0, 2 * n, 2))), choose(a, b, list(range(1, 2 * n, 2)))


def interleave(a: Row, b: Row) -> tuple[Row, Row]:
    """Return the two rows of which :func:`separate` makes these."""
    n = width(a)
    order = [i // 2 + n * (i % 2) for i in range(2 * n)]
    return choose(a, b, order[:n]), choose(a, b, order[n:])


def choose(a: Row, b: Row, lanes: list[int]) -> Row:
    return a.shuffle(b, lanes) if isinstance(a, Symbol) else np.concatenate([a, b])[lanes]


def permute(x: Row, lanes: list[int]) -> Row:
    """Take the numbers of these lanes, in this order."""
    return choose(x, x, lanes)


def repeat(count: Any, step: Callable[..., tuple[Any, ...]], *values: Any) -> tuple[Any, ...]:
    """Return the values after ``values = step(i, *values)`` for i < `count`.

    The count is a number or a truth that may be known at run time only.
    """
    if not isinstance(count, Symbol):
        for i in range(int(count)):
            values = step(i, *values)
        return values
    count = count.astype(np.int64)
    builder, zero = count.builder, count.coerce(0)
    before, body, after = builder.block, *(builder.append_basic_block(name) for name in ("repeat", "repeated"))
    builder.cbranch(builder.icmp_signed(">", count.value, zero), body, after)
    builder.position_at_end(body)
    i, *now = phis = [x.like(builder.phi(x.value.type)) for x in (count, *values)]
    following = [x.coerce(again) for x, again in zip(values, step(i, *now), strict=True)]
    i_next, end = i + 1, builder.block
    for phi, first, again in zip(phis, (zero, *(x.value for x in values)), (i_next.value, *following), strict=True):
        phi.value.add_incoming(first, before)
        phi.value.add_incoming(again, end)
    builder.cbranch(builder.icmp_signed("<", i_next.value, count.value), body, after)
    builder.position_at_end(after)
    result = [x.like(builder.phi(x.value.type)) for x in values]
    for phi, first, last in zip(result, values, following, strict=True):
        phi.value.add_incoming(first.value, before)
        phi.value.add_incoming(last, end)
    return tuple(result)


# --- symbols: what stands for numbers, rows and arrays while a function is traced -----------------

_KINDS = "fiub"
_OPERATIONS: dict[np.ufunc, tuple[str | None, ...]] = {  # instruction for floats, signed, unsigned integers, truths
    np.add: ("fadd", "add", "add", None),
    np.subtract: ("fsub", "sub", "sub", None),
    np.multiply: ("fmul", "mul", "mul", None),
    np.divide: ("fdiv", None, None, None),
    np.negative: ("fneg", "neg", "neg", None),
    np.bitwise_and: (None, "and_", "and_", "and_"),
    np.bitwise_or: (None, "or_", "or_", "or_"),
    np.bitwise_xor: (None, "xor", "xor", "xor"),
    np.left_shift: (None, "shl", "shl", None),
    np.right_shift: (None, "ashr", "lshr", None),
}
_COMPARISONS = {np.less: "<", np.less_equal: "<=", np.greater: ">", np.greater_equal: ">="}
_CALLS = {np.sqrt: "sqrt", np.rint: "rint", np.copysign: "copysign", np.fmin: "minnum", np.fmax: "maxnum"}


class Symbol(np.lib.mixins.NDArrayOperatorsMixin):
    """A number (n_lanes = 0) or a row, of which every operator and ufunc emits an instruction."""

    def __init__(self, builder: Any, value: Any, dtype: DTypeLike, n_lanes: int = 0) -> None:
        self.builder, self.value, self.dtype, self.n_lanes = builder, value, np.dtype(dtype), n_lanes

    def like(self, value: Any, dtype: Any = None) -> Symbol:
        """Make another value of this shape, and of this type unless one is given."""
        return Symbol(self.builder, value, self.dtype if dtype is None else dtype, self.n_lanes)

    def coerce(self, other: Any) -> Any:
        """Return the LLVM value of `other` as one of the type and width of this symbol."""
        llvm = _llvm_type(self.dtype, self.n_lanes)
        if not isinstance(other, Symbol):
            if np.result_type(self.dtype, other) != self.dtype:
                raise TypeError(f"{self} meets {other!r}: convert one with astype")
            number = self.dtype.type(other).item()
            return ir.Constant(llvm, [number] * self.n_lanes if self.n_lanes else number)
        if other.n_lanes == 0 and other.dtype.kind == self.dtype.kind:
            other = other.astype(self.dtype)
        if other.dtype != self.dtype or other.n_lanes not in (0, self.n_lanes):
            raise TypeError(f"{self} meets {other}: convert one with astype")
        if other.n_lanes == self.n_lanes:
            return other.value
        nothing = ir.Constant(llvm, ir.Undefined)
        first = self.builder.insert_element(nothing, other.value, _INDEX(0))
        everywhere = ir.Constant(ir.VectorType(_INDEX, self.n_lanes), None)
        return self.builder.shuffle_vector(first, nothing, everywhere)

    def lane(self, lane: int) -> Symbol:
        """Take the number in a lane."""
        return Symbol(self.builder, self.builder.extract_element(self.value, _INDEX(lane)), self.dtype)

    def shuffle(self, other: Symbol, lanes: list[int]) -> Symbol:
        """Choose lanes from this row and, counted on, the other."""
        chosen = ir.Constant(ir.VectorType(_INDEX, len(lanes)), lanes)
        return self.like(self.builder.shuffle_vector(self.value, other.value, chosen))

    def call(self, name: str, *operands: Any) -> Symbol:
        """Call an LLVM intrinsic on values of the type of this symbol."""
        llvm = _llvm_type(self.dtype, self.n_lanes)
        suffix = f"{'f' if self.dtype.kind == 'f' else 'i'}{8 * self.dtype.itemsize}"
        name = f"llvm.{name}.v{self.n_lanes}{suffix}" if self.n_lanes else f"llvm.{name}.{suffix}"
        kind = ir.FunctionType(llvm, [llvm] * len(operands))
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.like(self.builder.call(function, [self.coerce(x) for x in operands]))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
        first = _widest(*operands)
        if method != "__call__" or options or first is None:
            return NotImplemented
        if ufunc in _CALLS and first.dtype.kind == "f":
            return first.call(_CALLS[ufunc], *operands)
        kind = _KINDS.index(first.dtype.kind)
        values = [first.coerce(x) for x in operands]
        if ufunc in _COMPARISONS:
            compare = (self.builder.fcmp_ordered, self.builder.icmp_signed, *[self.builder.icmp_unsigned] * 2)[kind]
            return first.like(compare(_COMPARISONS[ufunc], *values), bool)
        instruction = _OPERATIONS.get(ufunc, (None,) * len(_KINDS))[kind]
        return first.like(getattr(self.builder, instruction)(*values)) if instruction else NotImplemented

    def __array_function__(self, function: Any, types_: Any, args: Any, options: Any) -> Any:
        if function is np.where:
            mask, a, b = args
            first = _widest(a, b)
            if first is None:
                raise TypeError("np.where must choose between values of which one is a row, got two numbers")
            truth = first.like(None, bool).coerce(mask)
            return first.like(self.builder.select(truth, first.coerce(a), first.coerce(b)))
        if function is np.full_like and not options:
            return self.like(self.coerce(args[1]))
        if function is np.any and not options and self.dtype.kind == "b":
            lanes_as_bits = self.builder.bitcast(self.value, ir.IntType(self.n_lanes))
            return Symbol(self.builder, self.builder.icmp_unsigned("!=", lanes_as_bits, lanes_as_bits.type(0)), bool)
        return NotImplemented

    def view(self, dtype: DTypeLike) -> Symbol:
        """Take the same bits as another type."""
        return self.like(self.builder.bitcast(self.value, _llvm_type(np.dtype(dtype), self.n_lanes)), dtype)

    def astype(self, dtype: DTypeLike) -> Symbol:
        """Convert to another type."""
        dtype = np.dtype(dtype)
        llvm = _llvm_type(dtype, self.n_lanes)
        old, new, grows = self.dtype.kind, dtype.kind, dtype.itemsize - self.dtype.itemsize
        if old != new == "b":
            raise TypeError(f"{self} is not a truth: compare it with a number")
        if old == new == "f":
            step = "fpext" if grows > 0 else "fptrunc"
        elif "f" in (old, new):
            step = {"if": "sitofp", "uf": "uitofp", "bf": "uitofp", "fi": "fptosi", "fu": "fptoui"}[old + new]
        else:
            step = "trunc" if grows < 0 else "sext" if old == "i" else "zext"
        if dtype == self.dtype or (new != "f" != old and old != "b" and grows == 0):
            step = "bitcast"
        return self.like(getattr(self.builder, step)(self.value, llvm), dtype)

    def __repr__(self) -> str:
        return f"{self.dtype} x {self.n_lanes}" if self.n_lanes else f"{self.dtype} number"


class ArraySymbol:
    """An array while a function is traced: elements by index; rows and runs of a contiguous one by load and store."""

    def __init__(self, builder: Any, data: Any, shape: Sequence[Symbol], strides: Sequence[Symbol], dtype: Any) -> None:
        self.builder, self.data, self.shape, self.strides, self.dtype = builder, data, shape, strides, dtype

    def pointer(self, *index: Any) -> Any:
        """Point to an element, in any memory order; indices that are not given are zero."""
        number = Symbol(self.builder, None, np.int64)
        places = [number.like(number.coerce(i)) for i in index]
        offset = functools.reduce(lambda a, b: a + b, [i * s for i, s in zip(places, self.strides, strict=False)])
        data = self.builder.bitcast(self.data, ir.IntType(8).as_pointer())
        return self.builder.bitcast(self.builder.gep(data, [offset.value]), _llvm_type(self.dtype, 0).as_pointer())

    def __getitem__(self, index: Any) -> Symbol:
        index = index if isinstance(index, tuple) else (index,)
        return Symbol(self.builder, self.builder.load(self.pointer(*index)), self.dtype)

    def load(self, pointer: Any, n_lanes: int) -> Symbol:
        """Load the elements from a pointer on."""
        pointer = self.builder.bitcast(pointer, _llvm_type(self.dtype, n_lanes).as_pointer())
        return Symbol(self.builder, self.builder.load(pointer, align=self.dtype.itemsize), self.dtype, n_lanes)

    def store(self, pointer: Any, value: Symbol) -> None:
        """Write the elements from a pointer on."""
        value = value.astype(self.dtype)
        pointer = self.builder.bitcast(pointer, _llvm_type(self.dtype, value.n_lanes).as_pointer())
        self.builder.store(value.value, pointer, align=self.dtype.itemsize)

    def _row(self, row: Any, n_lanes: int) -> Any:
        """Point to a row: by the number of lanes, which the compiler knows, not by the stride, which it does not."""
        number = Symbol(self.builder, None, np.int64)
        return self.builder.gep(self.data, [(number.like(number.coerce(row)) * n_lanes).value])

    def load_row(self, row: Any, n_lanes: int) -> Symbol:
        """Load a row of a C-contiguous array (rows, lanes)."""
        return self.load(self._row(row, n_lanes), n_lanes)

    def store_row(self, row: Any, value: Symbol) -> None:
        """Write a row of a C-contiguous array (rows, lanes)."""
        self.store(self._row(row, value.n_lanes), value)


def _widest(*operands: Any) -> Symbol | None:
    return max((x for x in operands if isinstance(x, Symbol)), key=lambda x: x.n_lanes, default=None)


_ELEMENTS = {
    np.dtype(bool): ir.IntType(1),
    np.dtype(np.float32): ir.FloatType(),
    np.dtype(np.float64): ir.DoubleType(),
    **{np.dtype(f"{kind}{size}"): ir.IntType(8 * size) for kind in "iu" for size in (1, 2, 4, 8)},
}


def _llvm_type(dtype: Any, n_lanes: int) -> Any:
    if dtype not in _ELEMENTS:
        raise TypeError(f"a row holds float32, float64, integers or truths, got {dtype}")
    return ir.VectorType(_ELEMENTS[dtype], n_lanes) if n_lanes else _ELEMENTS[dtype]


# --- Numba: the type of a row, and the decorator --------------------------------------------------


class RowType(types.Type):
    """Numba's type of a row."""

    def __init__(self, dtype: DTypeLike, n_lanes: int) -> None:
        self.dtype, self.n_lanes = np.dtype(dtype), n_lanes
        super().__init__(name=f"Row({self.dtype}, {n_lanes})")


@register_model(RowType)
class _RowModel(models.PrimitiveModel):
    def __init__(self, manager: Any, row: Any) -> None:
        super().__init__(manager, row, _llvm_type(row.dtype, row.n_lanes))


def traced(function: Any) -> Any:
    """Make a Python function over rows callable from a kernel (see the module's docstring).

    Traced functions call plain helpers; only kernels call traced functions. Arguments: numbers, arrays, rows, (named)
    tuples of them; literal arguments arrive as Python values. ``.python`` is the function itself.
    """
    if DISABLE_JIT:
        function.python = function
        return function

    def define(typing_context: Any, *kinds: Any) -> Any:
        kind = types.void if gives_nothing else _result_type(function, kinds)

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            _align_stack(builder.function)
            symbols = [_unpack(context, builder, k, v) for k, v in zip(kinds, values, strict=True)]
            return _pack(context, builder, kind, function(*symbols))

        return kind(*kinds), generate

    signature = inspect.signature(function)
    gives_nothing = signature.return_annotation in (None, "None")
    first = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [x.replace(annotation=x.empty) for x in signature.parameters.values()]
    define.__signature__ = inspect.Signature([first, *parameters])  # type: ignore[attr-defined]
    define.__name__, define.__doc__ = function.__name__, function.__doc__
    result: Any = intrinsic(prefer_literal=True)(define)
    result.python = function
    return result


def _result_type(function: Any, kinds: Sequence[Any]) -> Any:
    """Find the type of a result, which Numba wants before there is anything to compute: trace into a scratch module."""
    scratch = ir.Function(ir.Module(), ir.FunctionType(ir.VoidType(), []), "scratch")
    builder = ir.IRBuilder(scratch.append_basic_block())
    return _type_of(function(*(_unpack(None, builder, k, None) for k in kinds)))


def _align_stack(function: Any) -> None:
    """Let rows that do not fit into registers begin with a cache line, or a kernel's speed hangs on its caller."""
    function.attributes.add("nounwind")  # nothing is thrown; alone, llvmlite does not write the other
    function.attributes.alignstack = _LINE


def _unpack(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Make the Python object that stands for a Numba value; value None: only its type matters."""
    if isinstance(kind, types.Literal):
        return kind.literal_value
    if isinstance(kind, types.BaseTuple):
        return _unpack_tuple(context, builder, kind, value)
    if isinstance(kind, types.Array):
        return _unpack_array(context, builder, kind, value)
    dtype, n_lanes = (kind.dtype, kind.n_lanes) if isinstance(kind, RowType) else (as_dtype(kind), 0)
    if value is None:
        value = ir.Constant(_llvm_type(dtype, n_lanes), ir.Undefined)
    return Symbol(builder, value, dtype, n_lanes)


def _unpack_tuple(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    values = [None] * len(kind) if value is None else cgutils.unpack_tuple(builder, value, len(kind))
    parts = [_unpack(context, builder, k, v) for k, v in zip(kind, values, strict=True)]
    return getattr(kind, "instance_class", _tuple_of)(*parts)


def _tuple_of(*parts: Any) -> tuple[Any, ...]:
    return parts


def _unpack_array(context: Any, builder: Any, kind: Any, value: Any) -> ArraySymbol:
    dtype = as_dtype(kind.dtype)
    if kind.layout == "F" or kind.dtype == types.boolean:  # truths are bits in a row, bytes in an array
        raise errors.TypingError(f"a traced function takes arrays of numbers, of layout C or A, got {kind}")
    if value is None:
        data = ir.Constant(_llvm_type(dtype, 0).as_pointer(), ir.Undefined)
        shape = strides = [ir.Constant(ir.IntType(64), ir.Undefined)] * kind.ndim
    else:
        array = context.make_array(kind)(context, builder, value)
        data = array.data
        shape, strides = (cgutils.unpack_tuple(builder, x, kind.ndim) for x in (array.shape, array.strides))
    sizes, steps = ([Symbol(builder, n, np.int64) for n in x] for x in (shape, strides))
    if kind.layout == "C":
        steps[-1] = Symbol(builder, ir.IntType(64)(dtype.itemsize), np.int64)
    return ArraySymbol(builder, data, sizes, steps, dtype)


def _type_of(result: Any) -> Any:
    if result is None:
        return types.void
    if isinstance(result, tuple):
        return types.BaseTuple.from_types([_type_of(x) for x in result], type(result))
    if not isinstance(result, Symbol):
        return typeof(result)
    return RowType(result.dtype, result.n_lanes) if result.n_lanes else from_dtype(result.dtype)


def _pack(context: Any, builder: Any, kind: Any, result: Any) -> Any:
    if result is None:
        return context.get_dummy_value()
    if isinstance(result, tuple):
        parts = [_pack(context, builder, k, x) for k, x in zip(kind, result, strict=True)]
        return context.make_tuple(builder, kind, parts)
    return result.value if isinstance(result, Symbol) else context.get_constant(kind, result)
