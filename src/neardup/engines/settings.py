"""Write settings down as plain values, for reports and for whoever resumes a run."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from neardup.config import IdfSource, Jieba, Method, MinHash, Shingling, Sieve

_TEXT = tuple(field.name for field in fields(Shingling))
_FINGERPRINT = ("seed", "bits", "weights", "idf", "top", "levels", "hash", "scheme")


def scheme_settings(method: Method) -> dict[str, Any]:
    """Return the settings that change a document's features or its fingerprint."""
    own = ("seed",) if isinstance(method, MinHash) else _FINGERPRINT[1:]
    return {name: _plain(getattr(method, name)) for name in (*_TEXT, *own)}


def other_settings(method: Method, sieve: Sieve) -> dict[str, Any]:
    """Return the settings that say which documents are compared and which of them stays."""
    named = (*_TEXT, *_FINGERPRINT)
    own = {field.name: getattr(method, field.name) for field in fields(method) if field.name not in named}
    return own | {field.name: getattr(sieve, field.name) for field in fields(sieve)}


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it: a callable by its name, a dictionary by what is in it."""
    if value == "jieba":
        value = Jieba()
    if isinstance(value, Jieba):
        from neardup.features.segmenters import describe_segmenter

        return describe_segmenter(value)
    if isinstance(value, IdfSource):
        return str(value)
    return getattr(value, "__qualname__", repr(value)) if callable(value) else value
