"""The language of the page and of a comparison: each sentence is written in English and in Chinese, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_LANGUAGE = ContextVar("language", default="en")


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Set the language of the sentences that are written inside: en, or zh."""
    before = _LANGUAGE.set(language)
    try:
        yield
    finally:
        _LANGUAGE.reset(before)


def say(english: str, chinese: str) -> str:
    """Return a sentence in the language of the page."""
    return chinese if _LANGUAGE.get() == "zh" else english
