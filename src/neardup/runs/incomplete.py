"""Warn about inputs that could not be read to their end."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from neardup.errors import IncompleteWarning


def warn_if_incomplete(report: dict[str, Any], on_error: str) -> None:
    """Warn whoever called neardup, unless lost files were declared to be no error."""
    if report["incomplete"] is None or on_error == "skip":
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("neardup."):
        level, frame = level + 1, frame.f_back
    warnings.warn(report["incomplete"]["message"], IncompleteWarning, stacklevel=level)
