"""Many 32-bit integers at once, as registers hold them: load, raise, store.

LLVM, left to itself, stays with registers of 256 bits and reads every hash anew for a few permutations at a time. 128
lanes are eight registers of 512 bits, which hold the values of a usual signature while each hash passes once. On
processors with registers of 256 bits half of them are written to the stack, which costs nothing: fewer are no faster.

Each is a plain Python function, which is also its specification; compiled callers get the instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

LANES = 128


def load(array: np.ndarray, index: int) -> np.ndarray:
    """Return the LANES integers of a uint32 array from `index` on."""
    return array[index : index + LANES].copy()


def raise_lanes(most: np.ndarray, a: np.ndarray, x: np.uint64) -> np.ndarray:
    """Return the greater of `most` and a x in each lane, halves of 16 bits multiplied by halves.

    In the first half of the lanes, x is the upper half of the integer given, in the others its lower half.
    """
    words = np.repeat(np.array([x >> np.uint64(32), x & np.uint64(0xFFFFFFFF)], np.uint32), LANES // 2)
    return np.asarray(np.maximum(most, (a.view(np.uint16) * words.view(np.uint16)).view(np.uint32)))


def store(array: np.ndarray, index: int, one: np.ndarray) -> None:
    """Write lanes to a uint32 array from `index` on."""
    array[index : index + LANES] = one


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__("lanes")


_LANES = _Lanes()
_VECTOR, _HALVES = ir.VectorType(ir.IntType(32), LANES), ir.VectorType(ir.IntType(16), 2 * LANES)


@register_model(_Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _place(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
    """Return the address of the lanes at args[0][args[1]]."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.bitcast(builder.gep(array.data, [args[1]], inbounds=True), _VECTOR.as_pointer())


@intrinsic
def _load(typing_context: Any, array: types.Array, index: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        return builder.load(_place(context, builder, signature, args), align=4)

    return _LANES(array, types.intp), generate


def _spread(builder: ir.IRBuilder, word: ir.Value) -> ir.Value:
    """Return half as many lanes that all hold one word."""
    half = ir.VectorType(ir.IntType(32), LANES // 2)
    nothing = ir.Constant(half, ir.Undefined)
    first = builder.insert_element(nothing, word, ir.IntType(32)(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(half, [0] * (LANES // 2)))


@intrinsic
def _raise(typing_context: Any, most: Any, a: Any, x: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        most, a, x = args
        upper = builder.trunc(builder.lshr(x, ir.Constant(ir.IntType(64), 32)), ir.IntType(32))
        words = [_spread(builder, word) for word in (upper, builder.trunc(x, ir.IntType(32)))]
        everywhere = builder.shuffle_vector(*words, ir.Constant(_VECTOR, list(range(LANES))))
        halves = builder.mul(*(builder.bitcast(one, _HALVES) for one in (a, everywhere)))
        value = builder.bitcast(halves, _VECTOR)
        return builder.select(builder.icmp_unsigned(">", value, most), value, most)

    return _LANES(_LANES, _LANES, types.uint64), generate


@intrinsic
def _store(typing_context: Any, array: types.Array, index: types.Integer, one: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        builder.store(args[2], _place(context, builder, signature, args), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, _LANES), generate


overload(load)(lambda array, index: lambda array, index: _load(array, index))  # type: ignore[call-arg]
overload(raise_lanes)(lambda most, a, x: lambda most, a, x: _raise(most, a, x))  # type: ignore[call-arg]
overload(store)(lambda array, index, one: lambda array, index, one: _store(array, index, one))  # type: ignore[call-arg]
