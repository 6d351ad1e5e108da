"""Print what the commands return: a module for each command, named after it, and the parts they share.

They load Rich, so each is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neardup.cli.render import (
        compare,
        contamination,
        evaluate,
        explain,
        index,
        outlines,
        passages,
        plan,
        reports,
        suggestion,
    )

__all__ = [
    "compare",
    "contamination",
    "evaluate",
    "explain",
    "index",
    "outlines",
    "passages",
    "plan",
    "reports",
    "suggestion",
]


def __getattr__(name: str) -> ModuleType:
    """Import a module of this package."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
