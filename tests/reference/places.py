"""The folders of the tests and of the repository."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
REPOSITORY = TESTS.parent
SHARED_DATA = REPOSITORY.parent / "shared" / "data"
