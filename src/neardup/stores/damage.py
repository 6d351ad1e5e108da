"""The error of a damaged file."""

from __future__ import annotations

from pathlib import Path

from neardup.errors import StoreError


def damaged(file: Path | str, what: str) -> StoreError:
    """Return the error of a damaged file."""
    return StoreError(
        f"The file {file} is damaged: {what}. Restore the index from a backup; `neardup index "
        "verify` names all damaged files."
    )
