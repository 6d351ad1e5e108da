"""Machine instructions that NumPy does not name: unaligned 64-bit loads and stores, a fetch ahead, counts of bits.

Each is a plain Python function, which is also its specification; compiled callers get the single instruction.
"""

from __future__ import annotations

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


def count_trailing_zeros(value: np.uint64) -> np.int64:
    """Return the position of the lowest bit set in a uint64. Requires: value != 0."""
    number = int(value)
    return np.int64((number & -number).bit_length() - 1)


def count_ones(value: np.uint64) -> np.int64:
    """Return how many bits of a uint64 are set."""
    return np.int64(int(value).bit_count())


def store_u64(data: np.ndarray, index: int, value: np.uint64) -> None:
    """Write an integer to bytes `index` to `index + 7` of a uint8 array, the lowest byte first.

    Requires: 0 <= index <= len(data) - 8.
    """
    data[index : index + 8] = np.frombuffer(int(value).to_bytes(8, "little"), np.uint8)


def prefetch(data: np.ndarray, index: int) -> None:
    """Ask for byte `index` of a uint8 array to be brought into the cache; it may lie behind the end."""


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
def _prefetch(typing_context: Any, data: types.Array, index: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = builder.gep(array.data, [args[1]])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], kind)
        builder.call(function, [place, number(0), number(3), number(1)])  # to be read, soon, as data
        return context.get_dummy_value()

    return types.void(data, types.intp), generate


@intrinsic
def _count_trailing_zeros(typing_context: Any, value: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), generate


@intrinsic
def _count_ones(typing_context: Any, value: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


@overload(load_u64, inline="always")
def _compiled_load(data: Any, index: Any) -> Any:
    def load(data: Any, index: Any) -> Any:
        return _load_u64(data, index)  # type: ignore[call-arg]

    return load


@overload(store_u64, inline="always")
def _compiled_store(data: Any, index: Any, value: Any) -> Any:
    def store(data: Any, index: Any, value: Any) -> Any:
        return _store_u64(data, index, value)  # type: ignore[call-arg]

    return store


@overload(prefetch, inline="always")
def _compiled_prefetch(data: Any, index: Any) -> Any:
    def fetch(data: Any, index: Any) -> Any:
        return _prefetch(data, index)  # type: ignore[call-arg]

    return fetch


@overload(count_trailing_zeros, inline="always")
def _compiled_count(value: Any) -> Any:
    def count(value: Any) -> Any:
        return _count_trailing_zeros(value)  # type: ignore[call-arg]

    return count


@overload(count_ones, inline="always")
def _compiled_ones(value: Any) -> Any:
    def count(value: Any) -> Any:
        return _count_ones(value)  # type: ignore[call-arg]

    return count
