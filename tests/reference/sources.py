"""The modules of neardup as syntax trees, each parsed once for all tests."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import neardup

SOURCE = Path(neardup.__file__).parent
MODULES = {
    file.relative_to(SOURCE).as_posix().removesuffix(".py"): file
    for file in sorted(SOURCE.rglob("*.py"))
}
"""The files of all modules, by their paths without the suffix."""


def unit_of(module: str) -> str:
    """Return the package or top-level module that a module belongs to."""
    return module.split("/")[0]


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def nodes_of(path: Path, *kinds: type[ast.AST]) -> list[Any]:
    """Return the nodes of these kinds, wherever they are in a module."""
    return [node for kind in kinds for node in _nodes_by_kind(path)[kind]]


@cache
def _nodes_by_kind(path: Path) -> dict[type[ast.AST], list[ast.AST]]:
    nodes = defaultdict(list)
    for node in ast.walk(tree_of(path)):
        nodes[type(node)].append(node)
    return nodes
