"""Sixteen 32-bit integers at once, as a register holds them: load, spread, lower, store.

LLVM, left to itself, stays with registers of 256 bits, and for a least value it walks along the shingles, so that
lanes must be compared in the end. Sixteen lanes side by side make full use of 512 bits and are two registers of 256.

Each is a plain Python function, which is also its specification; compiled callers get the instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, overload, register_model

LANES = 16


def load(array: np.ndarray, index: int) -> np.ndarray:
    """Return the LANES integers of a uint32 array from `index` on."""
    return array[index : index + LANES]


def spread(array: np.ndarray, index: int) -> np.ndarray:
    """Return one integer of a uint32 array in every lane."""
    return np.full(LANES, array[index])


def lower(least: np.ndarray, a: np.ndarray, x: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the lesser of `least` and (a x + b) mod 2^32 in each lane."""
    return np.asarray(np.minimum(least, a * x + b))


def store(array: np.ndarray, index: int, one: np.ndarray) -> None:
    """Write lanes to a uint32 array from `index` on."""
    array[index : index + LANES] = one


class _Lanes(types.Type):
    def __init__(self) -> None:
        super().__init__("lanes")


_LANES, _VECTOR = _Lanes(), ir.VectorType(ir.IntType(32), LANES)


@register_model(_Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call]


def _place(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
    """Return the address of args[0][args[1]]."""
    array = context.make_array(signature.args[0])(context, builder, args[0])
    return builder.gep(array.data, [args[1]], inbounds=True)


@intrinsic
def _load(typing_context: Any, array: types.Array, index: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        first = _place(context, builder, signature, args)
        return builder.load(builder.bitcast(first, _VECTOR.as_pointer()), align=4)

    return _LANES(array, types.intp), generate


@intrinsic
def _spread(typing_context: Any, array: types.Array, index: types.Integer) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        one, nothing = builder.load(_place(context, builder, signature, args)), ir.Constant(_VECTOR, ir.Undefined)
        filled = builder.insert_element(nothing, one, ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(filled, nothing, ir.Constant(_VECTOR, [0] * LANES))

    return _LANES(array, types.intp), generate


@intrinsic
def _lower(typing_context: Any, least: Any, a: Any, x: Any, b: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        least, a, x, b = args
        value = builder.add(builder.mul(a, x), b)
        return builder.select(builder.icmp_unsigned("<", value, least), value, least)

    return _LANES(_LANES, _LANES, _LANES, _LANES), generate


@intrinsic
def _store(typing_context: Any, array: types.Array, index: types.Integer, one: Any) -> Any:
    def generate(context: Any, builder: ir.IRBuilder, signature: Any, args: Any) -> ir.Value:
        first = _place(context, builder, signature, args)
        builder.store(args[2], builder.bitcast(first, _VECTOR.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, _LANES), generate


overload(load)(lambda array, index: lambda array, index: _load(array, index))  # type: ignore[call-arg]
overload(spread)(lambda array, index: lambda array, index: _spread(array, index))  # type: ignore[call-arg]
overload(lower)(lambda least, a, x, b: lambda least, a, x, b: _lower(least, a, x, b))  # type: ignore[call-arg]
overload(store)(lambda array, index, one: lambda array, index, one: _store(array, index, one))  # type: ignore[call-arg]
