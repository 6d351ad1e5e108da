"""The settings of a method as values for JSON, in an index and in the report of a run."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from neardup.errors import InputError, SettingError, StoreError
from neardup.features.idf import IdfTable
from neardup.methods.registry import settings_types
from neardup.settings.shingling import Jieba

IDF = "idf.parquet"
"""The name of a table of document frequencies that is stored beside the settings."""


def settings_to_json(settings: Any) -> dict[str, Any]:
    """Return the settings of a method as values for JSON.

    Raises
    ------
    SettingError
        If a setting is a Python function, which an index cannot store.
    """
    values: dict[str, Any] = {"method": type(settings).__name__}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, Jieba):
            value = {"jieba": dataclasses.asdict(value)}
        if isinstance(value, IdfTable):
            value = IDF
        if callable(value):
            raise SettingError(
                f"An index stores its settings, and {field.name} is a Python function: got {value!r:.80}. Use one of "
                "the named choices, or HammingIndex or LSHIndex with fingerprints or signatures of your own."
            )
        values[field.name] = value
    return dict(json.loads(json.dumps(values)))  # tuples as lists


def settings_or_none(settings: Any) -> dict[str, Any] | None:
    """Return the settings of a method as values for JSON; None if one of them is a Python function."""
    try:
        return settings_to_json(settings)
    except SettingError:
        return None


def settings_from_json(values: Mapping[str, Any]) -> Any:
    """Return the settings of a method that `settings_to_json` wrote.

    Raises
    ------
    StoreError
        If the method or a setting is unknown.
    """
    rest = dict(values)
    name = rest.pop("method", None)
    kinds = {kind.__name__: kind for kind in settings_types()}
    for key, value in rest.items():
        if isinstance(value, dict) and "jieba" in value:
            words: Any = {
                part: tuple(word) if isinstance(word, list) else word for part, word in value["jieba"].items()
            }
            rest[key] = Jieba(**words)
    try:
        return kinds[str(name)](**rest)
    except (KeyError, TypeError, InputError, SettingError) as error:
        raise StoreError(
            f"The index was created with settings that this version does not have: {name} {error}. Use the version of "
            "neardup that created it."
        ) from error
