"""Many 32-bit integers at once, as registers hold them: load, raise, store.

LLVM, left to itself, stays with registers of 256 bits and reads every hash anew for a few
permutations at a time. 128 lanes are eight registers of 512 bits, which hold the values of a usual
signature while each hash passes once. On processors with registers of 256 bits half of them are
written to the stack, which costs nothing: fewer are no faster.

Each is a plain Python function, which is also its specification; compiled callers get the
instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import models, register_model

from neardup.kernels.intrinsics import address_at, compile_as

LANES = 128


def load(array: np.ndarray, index: int) -> np.ndarray:
    """Return the LANES integers of a uint32 array from `index` on."""
    return array[index : index + LANES].copy()


def raise_lanes(maxima: np.ndarray, a: np.ndarray, x: np.uint64) -> np.ndarray:
    """Return the greater of `maxima` and a x in each lane, halves of 16 bits multiplied by halves.

    In the first half of the lanes, x is the upper half of the integer given, in the others its
    lower half.
    """
    words = np.repeat(
        np.array([x >> np.uint64(32), x & np.uint64(0xFFFFFFFF)], np.uint32), LANES // 2
    )
    products = (a.view(np.uint16) * words.view(np.uint16)).view(np.uint32)
    return np.asarray(np.maximum(maxima, products))


def store(array: np.ndarray, index: int, lanes: np.ndarray) -> None:
    """Write lanes to a uint32 array from `index` on."""
    array[index : index + LANES] = lanes


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__("lanes")


_LANES = _Lanes()
_VECTOR = ir.VectorType(ir.IntType(32), LANES)
_HALVES = ir.VectorType(ir.IntType(16), 2 * LANES)


@register_model(_Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _spread(builder: ir.IRBuilder, word: ir.Value) -> ir.Value:
    """Return half as many lanes that all hold one word."""
    half = ir.VectorType(ir.IntType(32), LANES // 2)
    nothing = ir.Constant(half, ir.Undefined)
    first = builder.insert_element(nothing, word, ir.IntType(32)(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(half, [0] * (LANES // 2)))


def _build_raise(builder: ir.IRBuilder, maxima: ir.Value, a: ir.Value, x: ir.Value) -> ir.Value:
    upper = builder.trunc(builder.lshr(x, ir.Constant(ir.IntType(64), 32)), ir.IntType(32))
    words = [_spread(builder, word) for word in (upper, builder.trunc(x, ir.IntType(32)))]
    everywhere = builder.shuffle_vector(*words, ir.Constant(_VECTOR, list(range(LANES))))
    # One instruction multiplies all halves of 16 bits, and keeps the lower halves of the products.
    halves = builder.mul(*(builder.bitcast(lanes, _HALVES) for lanes in (a, everywhere)))
    value = builder.bitcast(halves, _VECTOR)
    return builder.select(builder.icmp_unsigned(">", value, maxima), value, maxima)


def _build_store(builder: ir.IRBuilder, array: ir.Value, index: ir.Value, lanes: ir.Value) -> None:
    builder.store(lanes, address_at(builder, array, index, _VECTOR), align=4)


compile_as(
    load,
    lambda array, index: _LANES(array, types.intp),
    lambda builder, array, index: builder.load(address_at(builder, array, index, _VECTOR), align=4),
)
compile_as(
    raise_lanes,
    lambda maxima, a, x: _LANES(_LANES, _LANES, types.uint64),
    _build_raise,
)
compile_as(
    store,
    lambda array, index, lanes: types.void(array, types.intp, _LANES),
    _build_store,
)
