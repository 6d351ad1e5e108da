"""Warn about inputs that could not be read to their end."""

from __future__ import annotations

import warnings
from typing import Any

from neardup.errors import IncompleteWarning


def warn_if_incomplete(report: dict[str, Any], on_error: str) -> None:
    """Warn the caller of the public function that calls this, unless lost files were declared to be no error."""
    if report["incomplete"] is not None and on_error != "skip":
        warnings.warn(report["incomplete"]["message"], IncompleteWarning, stacklevel=3)
