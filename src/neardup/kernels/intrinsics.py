"""Machine instructions that NumPy does not name: loads and stores at any place, wide products, counts of bits.

Each is a plain Python function, which is also its specification; compiled callers get the single instruction.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload


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
    """Return a bit for each of 64 bytes of a uint8 array from `index` on, the lowest first: 1 where it is not zero.

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
    """Return where the first element of an array lies in memory."""
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
    """Ask for the byte at an address to be brought into the cache; there need not be any memory."""


def fold_product(x: np.uint64, y: np.uint64) -> np.uint64:
    """Return the lower half of the product of two uint64, in 128 bits, xor its upper half."""
    product = int(x) * int(y)
    return np.uint64((product ^ product >> 64) & 0xFFFFFFFFFFFFFFFF)


@intrinsic
def _load_u64(typing_context: Any, data: types.Array, index: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        first = builder.gep(array.data, [args[1]], inbounds=True)
        word = builder.bitcast(first, ir.IntType(64).as_pointer())
        return builder.load(word, align=1)

    return types.uint64(data, types.intp), generate


@intrinsic
def _store_u64(typing_context: Any, data: types.Array, index: types.Integer, value: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        first = builder.gep(array.data, [args[1]], inbounds=True)
        builder.store(args[2], builder.bitcast(first, ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(data, types.intp, types.uint64), generate


@intrinsic
def _filled_bytes(typing_context: Any, data: types.Array, index: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        block = ir.VectorType(ir.IntType(8), 64)
        first = builder.bitcast(builder.gep(array.data, [args[1]], inbounds=True), block.as_pointer())
        filled = builder.icmp_unsigned("!=", builder.load(first, align=1), ir.Constant(block, [0] * 64))
        return builder.bitcast(filled, ir.IntType(64))

    return types.uint64(data, types.intp), generate


@intrinsic
def _address_of(typing_context: Any, array: types.Array) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.ptrtoint(context.make_array(signature.args[0])(context, builder, args[0]).data, ir.IntType(64))

    return types.int64(array), generate


@intrinsic
def _load_at(typing_context: Any, address: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()), align=1)

    return types.uint64(types.int64), generate


@intrinsic
def _load_half_at(typing_context: Any, address: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        half = builder.load(builder.inttoptr(args[0], ir.IntType(32).as_pointer()), align=1)
        return builder.zext(half, ir.IntType(64))

    return types.uint64(types.int64), generate


@intrinsic
def _load_byte_at(typing_context: Any, address: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        byte = builder.load(builder.inttoptr(args[0], ir.IntType(8).as_pointer()))
        return builder.zext(byte, ir.IntType(64))

    return types.uint64(types.int64), generate


@intrinsic
def _prefetch(typing_context: Any, address: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        place, number = builder.inttoptr(args[0], ir.IntType(8).as_pointer()), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(function, [place, number(0), number(3), number(1)])  # to be read, soon, as data
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def _fold_product(typing_context: Any, x: types.Integer, y: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        half, whole = ir.IntType(64), ir.IntType(128)
        product = builder.mul(*(builder.zext(one, whole) for one in args))
        upper = builder.trunc(builder.lshr(product, ir.Constant(whole, 64)), half)
        return builder.xor(builder.trunc(product, half), upper)

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def _count_trailing_zeros(typing_context: Any, value: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic
def _count_ones(typing_context: Any, value: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


# Numba inlines them where they are called.
overload(load_u64, inline="always")(lambda data, index: lambda data, index: _load_u64(data, index))  # type: ignore[call-arg]
overload(store_u64, inline="always")(
    lambda data, index, value: lambda data, index, value: _store_u64(data, index, value)  # type: ignore[call-arg]
)
overload(filled_bytes, inline="always")(lambda data, index: lambda data, index: _filled_bytes(data, index))  # type: ignore[call-arg]
overload(address_of, inline="always")(lambda array: lambda array: _address_of(array))  # type: ignore[call-arg]
overload(load_at, inline="always")(lambda address: lambda address: _load_at(address))  # type: ignore[call-arg]
overload(load_half_at, inline="always")(lambda address: lambda address: _load_half_at(address))  # type: ignore[call-arg]
overload(load_byte_at, inline="always")(lambda address: lambda address: _load_byte_at(address))  # type: ignore[call-arg]
overload(prefetch, inline="always")(lambda address: lambda address: _prefetch(address))  # type: ignore[call-arg]
overload(fold_product, inline="always")(lambda x, y: lambda x, y: _fold_product(x, y))  # type: ignore[call-arg]
overload(count_trailing_zeros, inline="always")(lambda value: lambda value: _count_trailing_zeros(value))  # type: ignore[call-arg]
overload(count_ones, inline="always")(lambda value: lambda value: _count_ones(value))  # type: ignore[call-arg]
