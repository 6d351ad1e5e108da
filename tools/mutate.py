"""Change single operators of modules, and list the changes that no test notices.

    python tools/mutate.py src/neardup/decide tests/decide tests/engines/test_sieve.py

The sources are copied first, so the tree stays as it is. The tests of a change run in a fork, so
this needs Linux or macOS. Kernels are not worth a run: each change would compile all of them again.
"""

from __future__ import annotations

import argparse
import ast
import copy
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
OPERATORS: list[tuple[type[ast.AST], type[ast.AST]]] = [
    (ast.Lt, ast.LtE),
    (ast.Gt, ast.GtE),
    (ast.Eq, ast.NotEq),
    (ast.Is, ast.IsNot),
    (ast.In, ast.NotIn),
    (ast.Add, ast.Sub),
    (ast.Mult, ast.FloorDiv),
    (ast.BitAnd, ast.BitOr),
    (ast.LShift, ast.RShift),
    (ast.And, ast.Or),
]
NAMES = [("min", "max"), ("minimum", "maximum"), ("any", "all"), ("ceil", "floor")]
NAMES += [("zeros", "ones"), ("left", "right"), ("argmin", "argmax"), ("append", "union1d")]
SWAPS = {**dict(OPERATORS), **{second: first for first, second in OPERATORS}}
SWAPS |= {ast.Div: ast.Mult, ast.Mod: ast.FloorDiv}
OTHER_NAME = {**dict(NAMES), **{second: first for first, second in NAMES}}


class Mutant(NamedTuple):
    """One change of a module. source : the changed module."""

    line: int
    before: str
    after: str
    source: str


def mutants_of(source: str) -> list[Mutant]:
    """Return every change of a module, in the order of its lines."""
    lines = source.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    text = source.encode()
    mutants = []
    for node in _code(ast.parse(source)):
        # Of a statement with a body, the condition alone is changed.
        part = node.test if isinstance(node, ast.If | ast.While) else node
        start = starts[part.lineno - 1] + part.col_offset
        stop = starts[part.end_lineno - 1] + part.end_col_offset
        before = text[start:stop].decode()
        for changed in _changes(node):
            after = ast.unparse(changed)
            after = f"({after})" if isinstance(part, ast.expr) else after
            mutated = text[:start] + after.encode() + text[stop:]
            mutants.append(Mutant(node.lineno, before, after, mutated.decode()))
    return sorted(mutants, key=lambda mutant: mutant.line)


def _code(node: ast.AST) -> Iterator[Any]:
    """Yield the statements and expressions of functions, without types and messages."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "exc"):
            continue
        for child in value if isinstance(value, list) else [value]:
            is_text = isinstance(child, ast.JoinedStr | ast.Import | ast.ImportFrom)
            if isinstance(child, ast.AST) and not is_text:
                if isinstance(child, ast.stmt | ast.expr):
                    yield child
                yield from _code(child)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the changed versions of a node."""
    match node:
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in SWAPS:
            yield _replaced(node, op=SWAPS[type(op)]())
        case ast.Compare(ops=[op]):
            yield _replaced(node, ops=[SWAPS[type(op)]()])
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(value * 1.25)
        case ast.Constant(value="left" | "right" as value):
            yield ast.Constant(OTHER_NAME[value])
        case ast.Call(func=ast.Name(id=name) as function) if name in OTHER_NAME:
            yield _replaced(node, func=_replaced(function, id=OTHER_NAME[name]))
        case ast.Call(func=ast.Attribute(attr=name) as function) if name in OTHER_NAME:
            yield _replaced(node, func=_replaced(function, attr=OTHER_NAME[name]))
        case ast.IfExp(test=test, body=body, orelse=otherwise):
            yield _replaced(node, body=otherwise, orelse=body)
        case ast.If(test=test) | ast.While(test=test) if ast.unparse(test) != "TYPE_CHECKING":
            yield ast.UnaryOp(ast.Not(), test)
        case ast.Expr(value=ast.Call() | ast.Yield()) | ast.AugAssign() | ast.Raise():
            yield ast.Pass()
        case ast.Continue() | ast.Break():
            yield ast.Pass()
        case ast.Assign(targets=[ast.Subscript()]):
            yield ast.Pass()
        case ast.Assign(
            targets=[ast.Name(id=name)], value=ast.Subscript(value=ast.Name(id=source))
        ):
            if name == source:
                yield ast.Pass()


def _replaced(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def sample(mutants: list[Mutant], size: int, seed: str) -> list[Mutant]:
    """Return some of the changes; at most a third of them change a number alone."""
    shuffled = random.Random(seed).sample(mutants, len(mutants))
    numbers = [mutant for mutant in shuffled if mutant.before[0].isdecimal()]
    logic = [mutant for mutant in shuffled if not mutant.before[0].isdecimal()]
    chosen = logic[: size - min(len(numbers), size // 3)]
    return sorted(chosen + numbers[: size - len(chosen)], key=lambda mutant: mutant.line)


def run_tests(tree: Path, tests: list[str], timeout_s: float) -> str:
    """Return "passed", "failed" or "timeout" for tests in a tree, run by a fork of this process,
    which has loaded the libraries already.
    """
    process = os.fork()
    if process == 0:
        os.setsid()
        os.chdir(tree)
        os.environ["PYTHONPATH"] = str(tree / "src")
        # Options of the caller's own tests may leave out the tests that are named here.
        os.environ.pop("PYTEST_ADDOPTS", None)
        sys.path.insert(0, str(tree / "src"))
        sys.dont_write_bytecode = True
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        import pytest

        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            code = pytest.main(["-x", "-p", "no:cacheprovider", *tests])
        os._exit(0 if code == 0 else 1)
    limit = time.monotonic() + timeout_s
    while time.monotonic() < limit:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return "failed" if status else "passed"
        time.sleep(0.02)
    os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return "timeout"


def copy_tree(folder: Path) -> Path:
    """Copy the sources, with the compiled kernels, and the tests with their data."""
    left_out = shutil.ignore_patterns(".git", ".venv", ".hypothesis", ".*_cache", "out", "results")
    return shutil.copytree(ROOT, folder / "tree", ignore=left_out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", type=Path, help="a module or a folder of modules")
    parser.add_argument("tests", nargs="+", help="files of tests, the cheapest first")
    parser.add_argument("--mutants", type=int, default=20, help="how many of each module")
    parser.add_argument("--seed", default="0", help="selects other changes")
    parser.add_argument("--timeout-s", type=float, default=120, help="of the tests of a change")
    options = parser.parse_args()
    for name in ("numba", "pyarrow.parquet", "pyarrow.dataset", "pytest"):
        __import__(name)
    files = sorted(options.modules.glob("*.py")) if options.modules.is_dir() else [options.modules]
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_tree(Path(folder))
        if (answer := run_tests(tree, options.tests, options.timeout_s)) != "passed":
            parser.error(f"The tests of the unchanged tree: {answer}. They must pass first.")
        for file in files:
            relative = file.resolve().relative_to(ROOT)
            source = file.read_text("utf-8")
            chosen = sample(mutants_of(source), options.mutants, f"{options.seed} {relative}")
            alive = 0
            for mutant in chosen:
                (tree / relative).write_text(mutant.source, "utf-8")
                if run_tests(tree, options.tests, options.timeout_s) == "passed":
                    alive += 1
                    print(f"{relative}:{mutant.line}: {mutant.before} -> {mutant.after}")
            (tree / relative).write_text(source, "utf-8")
            print(f"{relative}: {len(chosen)} changes, {alive} not noticed", flush=True)


if __name__ == "__main__":
    main()
