"""Machine instructions that NumPy does not name: loads and stores at any address, wide products,
counts of bits.

Each is a plain Python function, which is also its specification; compiled callers get the single
instruction.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, type_callable


def load_u64(data: np.ndarray, index: int) -> np.uint64:
    """Return bytes `index` to `index + 7` of a uint8 array as one little-endian integer.

    Requires: 0 <= index <= len(data) - 8.
    """
    return np.uint64(int.from_bytes(data[index : index + 8].tobytes(), "little"))


def store_u64(data: np.ndarray, index: int, value: np.uint64) -> None:
    """Write an integer to bytes `index` to `index + 7` of a uint8 array, the lowest byte first.

    Requires: 0 <= index <= len(data) - 8.
    """
    data[index : index + 8] = np.frombuffer(int(value).to_bytes(8, "little"), np.uint8)


def filled_bytes(data: np.ndarray, index: int) -> np.uint64:
    """Return a bit for each of 64 bytes of a uint8 array from `index` on, the lowest first: 1 where
    it is not zero.

    Requires: 0 <= index <= len(data) - 64.
    """
    bits = np.packbits(data[index : index + 64] != 0, bitorder="little")
    return np.uint64(int.from_bytes(bits.tobytes(), "little"))


def count_trailing_zeros(value: np.uint64) -> np.int64:
    """Return the position of the lowest bit set in a uint64; 64 if none is."""
    number = int(value)
    return np.int64((number & -number).bit_length() - 1 if number else 64)


def count_ones(value: np.uint64) -> np.int64:
    """Return how many bits of a uint64 are set."""
    return np.int64(int(value).bit_count())


def address_of(array: np.ndarray) -> int:
    """Return the address of the first element of an array."""
    return int(array.ctypes.data)


def load_at(address: int) -> np.uint64:
    """Return the 8 bytes at an address as one little-endian integer. Requires: they may be read."""
    return np.uint64(int.from_bytes(ctypes.string_at(int(address), 8), "little"))


def load_half_at(address: int) -> np.uint64:
    """Return the 4 bytes at an address as one little-endian integer. Requires: they may be read."""
    return np.uint64(int.from_bytes(ctypes.string_at(int(address), 4), "little"))


def load_byte_at(address: int) -> np.uint64:
    """Return the byte at an address. Requires: it may be read."""
    return np.uint64(ctypes.string_at(int(address), 1)[0])


def prefetch(address: int) -> None:
    """Prefetch the byte at an address, even of memory that does not exist."""


def fold_product(x: np.uint64, y: np.uint64) -> np.uint64:
    """Return the lower half of the product of two uint64, in 128 bits, xor its upper half."""
    product = int(x) * int(y)
    return np.uint64((product ^ product >> 64) & 0xFFFFFFFFFFFFFFFF)


def compile_as(
    function: Callable[..., Any],
    sign: Callable[..., Any],
    build: Callable[..., ir.Value | None],
) -> None:
    """Replace calls of a function, in compiled code, by the code of `build`.

    sign : from the Numba types of the arguments to the signature. build : from the builder and the
    arguments as LLVM has them, an array as the address of its first element, to the result, None
    for none.
    """

    def generate(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        arguments = [
            context.make_array(kind)(context, builder, value).data
            if isinstance(kind, types.Array)
            else value
            for kind, value in zip(signature.args, values, strict=True)
        ]
        result = build(builder, *arguments)
        return context.get_dummy_value() if result is None else result

    # Not an overload, which Numba compiles as a function of its own, in five times the time.
    type_callable(function)(lambda context: sign)
    lower_builtin(function, types.VarArg(types.Any))(generate)


_BYTE = ir.IntType(8)
_HALF = ir.IntType(32)
_WORD = ir.IntType(64)
_BLOCK = ir.VectorType(ir.IntType(8), 64)


def address_at(builder: ir.IRBuilder, array: ir.Value, index: ir.Value, kind: ir.Type) -> ir.Value:
    """Return the address of array[index] as a pointer to another type."""
    return builder.bitcast(builder.gep(array, [index], inbounds=True), kind.as_pointer())


def _load(kind: ir.Type) -> Callable[..., ir.Value]:
    """Return an intrinsic that loads an integer from an address."""

    def build(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
        # align=1: an address need not be a multiple of the size.
        value = builder.load(builder.inttoptr(address, kind.as_pointer()), align=1)
        return value if kind is _WORD else builder.zext(value, _WORD)

    return build


def _build_store_u64(
    builder: ir.IRBuilder, data: ir.Value, index: ir.Value, value: ir.Value
) -> None:
    builder.store(value, address_at(builder, data, index, _WORD), align=1)


def _build_filled_bytes(builder: ir.IRBuilder, data: ir.Value, index: ir.Value) -> ir.Value:
    block = builder.load(address_at(builder, data, index, _BLOCK), align=1)
    return builder.bitcast(builder.icmp_unsigned("!=", block, ir.Constant(_BLOCK, [0] * 64)), _WORD)


def _build_prefetch(builder: ir.IRBuilder, address: ir.Value) -> None:
    # llvm.prefetch(address, 0 for a read, 0 to 3 for locality, 1 for data)
    target = builder.inttoptr(address, _BYTE.as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [target.type, _HALF, _HALF, _HALF])
    function = builder.module.declare_intrinsic("llvm.prefetch", [target.type], kind)
    builder.call(function, [target, _HALF(0), _HALF(3), _HALF(1)])


def _build_fold_product(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    whole = ir.IntType(128)
    product = builder.mul(builder.zext(x, whole), builder.zext(y, whole))
    upper = builder.trunc(builder.lshr(product, ir.Constant(whole, 64)), _WORD)
    return builder.xor(builder.trunc(product, _WORD), upper)


compile_as(
    load_u64,
    lambda data, index: types.uint64(data, types.intp),
    lambda builder, data, index: builder.load(address_at(builder, data, index, _WORD), align=1),
)
compile_as(
    store_u64,
    lambda data, index, value: types.void(data, types.intp, types.uint64),
    _build_store_u64,
)
compile_as(filled_bytes, lambda data, index: types.uint64(data, types.intp), _build_filled_bytes)
compile_as(
    address_of,
    lambda array: types.int64(array),
    lambda builder, array: builder.ptrtoint(array, _WORD),
)
for _function, _kind in ((load_at, _WORD), (load_half_at, _HALF), (load_byte_at, _BYTE)):
    compile_as(_function, lambda address: types.uint64(types.int64), _load(_kind))
compile_as(prefetch, lambda address: types.void(types.int64), _build_prefetch)
compile_as(fold_product, lambda x, y: types.uint64(types.uint64, types.uint64), _build_fold_product)
compile_as(
    count_trailing_zeros,
    lambda value: types.int64(types.uint64),
    lambda builder, value: builder.cttz(value, ir.IntType(1)(0)),
)
compile_as(
    count_ones, lambda value: types.int64(types.uint64), lambda builder, value: builder.ctpop(value)
)
