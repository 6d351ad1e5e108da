"""Numba counts the references to arrays in the kernels that make or return some, and in no other.

Where it does not, a kernel that makes an array does not compile; but one that returned an array, or
was given one by a kernel that it calls, would free it too early, or never.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from numba.core.dispatcher import Dispatcher

from neardup import kernels
from neardup.kernels import compiled
from reference.checks import for_every

MODULES = [
    importlib.import_module(f"{kernels.__name__}.{found.name}")
    for found in pkgutil.iter_modules(kernels.__path__)
]
KERNELS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value
    for module in MODULES
    for name, value in vars(module).items()
    if isinstance(value, Dispatcher) and value.py_func.__module__ == module.__name__
}
MAKERS = {"empty", "empty_like", "zeros", "ones", "full", "copy", "astype", "sort"}
pytestmark = pytest.mark.skipif(
    bool(compiled.config.DISABLE_JIT), reason="kernels are not compiled"
)


def is_counted(kernel: Any) -> bool:
    return bool(kernel.targetoptions.get("_nrt", True))


@cache
def tree_of(kernel: Any) -> ast.Module:
    return ast.parse(inspect.getsource(kernel.py_func))


def calls(kernel: Any) -> Iterator[ast.expr]:
    for node in ast.walk(tree_of(kernel)):
        if isinstance(node, ast.Call):
            yield node.func


def writes_tuple(node: ast.AST) -> bool:
    """Whether a tuple becomes a row of an array, for which some versions of Numba make an array."""
    is_tuple = isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple)
    return is_tuple and any(isinstance(target, ast.Subscript) for target in node.targets)


@for_every(KERNELS)
def test_references_are_counted_where_arrays_are_made(name):
    kernel = KERNELS[name]
    makes = any(
        isinstance(called, ast.Attribute) and called.attr in MAKERS for called in calls(kernel)
    )
    makes = makes or any(map(writes_tuple, ast.walk(tree_of(kernel))))
    named = [
        kernel.py_func.__globals__.get(called.id)
        for called in calls(kernel)
        if isinstance(called, ast.Name)
    ]
    makes = makes or any(is_counted(each) for each in named if isinstance(each, Dispatcher))
    assert is_counted(kernel) == makes


def is_slice(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)


def makes_record(node: ast.AST) -> bool:
    """Whether a value is a call of a class, which by the names of classes here is a record."""
    is_named = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return is_named and node.func.id.lstrip("_")[0].isupper()


@for_every([name for name, kernel in KERNELS.items() if not is_counted(kernel)])
def test_where_they_are_not_counted_no_array_is_returned(name):
    tree = tree_of(KERNELS[name])
    arrays = {
        node.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Return) and node.value is not None:
            returned = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            assert not any(isinstance(each, ast.Name) and each.id in arrays for each in returned)
            assert not any(map(is_slice, returned))
            for record in filter(makes_record, returned):
                fields = [*record.args, *(keyword.value for keyword in record.keywords)]
                assert not any(map(is_slice, fields))


def test_all_kernels_are_looked_at():
    assert len(KERNELS) > 250
