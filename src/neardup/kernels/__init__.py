"""The only compiled code: arrays in, arrays out.

A module loads when it is first used, as in `kernels.weights.choose(...)`: Numba takes half a second
to load.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


def __getattr__(name: str) -> Any:
    if name.startswith("_") or find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
