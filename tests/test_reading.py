"""What a reader of the source meets at once: sizes in syntax nodes, values without names, and words
that name nothing.

A line is no measure of code, because a line can be packed. A node of the syntax tree is.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from functools import cache

import pytest

from reference.checks import for_every
from reference.sources import MODULES, nodes_of, tree_of, unit_of

MAX_MODULE_NODES = 6000
MAX_FUNCTION_NODES = 250
"""Nodes of the body of a function without its docstring: about 35 plain lines."""
MAX_BY_PLACE = 5
MAX_BY_PLACE_IN_KERNELS = 8
"""Parameters that may be passed by place; a kernel has no keywords."""

VAGUE = re.compile(
    r"\b(those|what|that of|of which|so many|where (?:it|they|there)|behind|else)\b", re.IGNORECASE
)
"""Words that stand where a noun is missing."""

NO_NOUN = {"And", "As", "How", "If", "It", "Of", "Say", "So", "That", "There", "These", "They"} | {
    *("This", "Those", "What", "When", "Where", "Whether", "Which", "Who", "Why", "With"),
}
"""First words of a docstring that are neither a verb nor a noun."""

# Rule -> room -> the number of places that break the rule. A number may only get smaller, and a
# room without a number has none.
EXCEPTIONS: dict[str, dict[str, int]] = {
    "large functions": {
        "api": 1,
        "candidates": 1,
        "cli": 5,
        "engines": 1,
        "kernels": 11,
        "output": 2,
        "report": 1,
        "service": 1,
    },
    "parameters by place": {
        "cli": 2,
        "compat": 3,
        "service": 1,
    },
    "vague words": {
        "api": 1,
        "cli": 3,
    },
}


@cache
def function_nodes() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Return all functions, each after the name of its module."""
    return [
        (module, node)
        for module, file in MODULES.items()
        for node in nodes_of(file, ast.FunctionDef, ast.AsyncFunctionDef)
    ]


def body_nodes(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of syntax nodes in the body of a function, without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return sum(1 for statement in body for _ in ast.walk(statement))


def large_functions() -> list[tuple[str, str]]:
    return [
        (module, f"{node.lineno} {node.name}: {body_nodes(node)} nodes")
        for module, node in function_nodes()
        if body_nodes(node) > MAX_FUNCTION_NODES
    ]


def parameters_by_place() -> list[tuple[str, str]]:
    found = []
    for module, node in function_nodes():
        names = [argument.arg for argument in node.args.posonlyargs + node.args.args]
        count = len([name for name in names if name not in ("self", "cls")])
        in_kernels = unit_of(module) == "kernels"
        if count > (MAX_BY_PLACE_IN_KERNELS if in_kernels else MAX_BY_PLACE):
            found.append((module, f"{node.lineno} {node.name}: {count} parameters by place"))
    return found


def bare_tuples() -> list[tuple[str, str]]:
    """Return the functions that return a tuple of three values or more without names."""
    found = []
    for module, node in function_nodes():
        returns = node.returns
        if not isinstance(returns, ast.Subscript) or not isinstance(returns.slice, ast.Tuple):
            continue
        is_tuple = isinstance(returns.value, ast.Name) and returns.value.id == "tuple"
        if is_tuple and len(returns.slice.elts) > 2:
            found.append((module, f"{node.lineno} {node.name} returns {ast.unparse(returns)}"))
    return found


def values_assigned_together() -> list[tuple[str, str]]:
    """Return the assignments of several values at once: `a, b = x, y`."""
    return [
        (module, f"{node.lineno} {ast.unparse(node)}")
        for module, file in MODULES.items()
        for node in nodes_of(file, ast.Assign)
        if isinstance(node.value, ast.Tuple) and isinstance(node.targets[0], ast.Tuple)
    ]


def docstrings_of(module: str) -> list[tuple[int, str]]:
    """Return the docstrings of a module with their lines."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    documented = [tree_of(MODULES[module]), *nodes_of(MODULES[module], *kinds)]
    texts = [(node.body[0].lineno, ast.get_docstring(node)) for node in documented if node.body]
    return [(line, text) for line, text in texts if text]


def comments_of(module: str) -> list[tuple[int, str]]:
    source = MODULES[module].read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [(t.start[0], t.string.lstrip("#: ")) for t in tokens if t.type == tokenize.COMMENT]


def vague_words() -> list[tuple[str, str]]:
    return [
        (module, f"{line} {word}")
        for module in MODULES
        for line, text in docstrings_of(module) + comments_of(module)
        for word in VAGUE.findall(text)
    ]


def docstrings_without_a_noun() -> list[tuple[str, str]]:
    return [
        (module, f"{line} {text.splitlines()[0]}")
        for module in MODULES
        for line, text in docstrings_of(module)
        if text.split()[0] in NO_NOUN
    ]


RULES = {
    "large functions": large_functions,
    "parameters by place": parameters_by_place,
    "bare tuples": bare_tuples,
    "values assigned together": values_assigned_together,
    "vague words": vague_words,
    "docstrings without a noun": docstrings_without_a_noun,
}


@pytest.mark.parametrize("rule", RULES)
def test_places_that_break_a_rule_get_fewer(rule):
    places = defaultdict(list)
    for module, place in RULES[rule]():
        places[unit_of(module)].append(f"{MODULES[module]}:{place}")
    counts = {room: len(found) for room, found in places.items()}
    allowed = EXCEPTIONS.get(rule, {})
    changed = [room for room in {*counts, *allowed} if counts.get(room) != allowed.get(room)]
    shown = {room: [f"{counts.get(room, 0)} places", *places[room][:20]] for room in changed}
    assert not changed, f"{rule}: mend the new places, or lower the numbers of EXCEPTIONS: {shown}"


@for_every(MODULES)
def test_no_module_has_more_than_6000_nodes(module):
    assert sum(1 for _ in ast.walk(tree_of(MODULES[module]))) <= MAX_MODULE_NODES
