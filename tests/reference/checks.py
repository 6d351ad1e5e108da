"""Checks of many values in one test."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def for_every(values: Iterable[Any]) -> Callable[[Callable[[Any], None]], Callable[[], None]]:
    """Make one test of a check of many values, which lists all that fail."""

    def decorate(check: Callable[[Any], None]) -> Callable[[], None]:
        def test() -> None:
            failed = []
            for value in values:
                try:
                    check(value)
                except (AssertionError, pytest.fail.Exception) as error:  # noqa: PERF203 - a check takes longer
                    failed.append(f"{value}: {error}")
            assert not failed, "\n".join(failed)

        test.__name__ = check.__name__
        return test

    return decorate
