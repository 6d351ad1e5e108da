"""Print the results of the commands: their reports, and a module for each command with other
results.

They load Rich, so each is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

# ruff: noqa: F401, I001 - for type checkers; several are on a line
if TYPE_CHECKING:
    from neardup.cli.render import audit, compare, evaluate, explain, index
    from neardup.cli.render import outlines, plan, reports, suggestion


def __getattr__(name: str) -> ModuleType:
    """Import a module of this package."""
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from error
