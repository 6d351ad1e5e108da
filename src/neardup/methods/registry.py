"""The registry of methods, and their settings as indexes and reports store them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from neardup.errors import InputError, SettingError, StoreError
from neardup.features.idf import IdfTable
from neardup.files import JsonObject
from neardup.methods.base import Method
from neardup.methods.minhash import MinHashMethod
from neardup.methods.simhash import SimHashMethod
from neardup.methods.vectors import VectorsMethod
from neardup.settings.methods import METHODS, Jieba, MethodSettings, MinHash, SimHash, Vectors

IDF = "idf.parquet"
"""The name of a table of document frequencies that is stored beside the settings."""


def settings_to_json(settings: Any) -> JsonObject:
    """Return the settings of a method as values for JSON.

    Raises
    ------
    SettingError
        If a setting is a Python function, which an index cannot store.
    """
    values: JsonObject = {"method": type(settings).__name__}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        # JSON has no dataclass: its fields, below its name.
        if isinstance(value, Jieba):
            value = {"jieba": dataclasses.asdict(value)}
        # The table is a file beside the settings.
        if isinstance(value, IdfTable):
            value = IDF
        if callable(value):
            raise SettingError(
                f"An index stores its settings, and {field.name} is a Python function: got "
                f"{value!r:.80}. Use one of the named choices, or HammingIndex or LSHIndex with "
                "fingerprints or signatures of your own."
            )
        values[field.name] = value
    return dict(json.loads(json.dumps(values)))  # tuples as lists


def settings_or_none(settings: Any) -> JsonObject | None:
    """Return the settings of a method as values for JSON; None if one is a Python function."""
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
    kinds = {kind.__name__: kind for kind in _METHODS}
    for key, value in rest.items():
        if isinstance(value, dict) and "jieba" in value:
            fields: dict[str, Any] = {
                # JSON has lists only.
                name: tuple(field) if isinstance(field, list) else field
                for name, field in value["jieba"].items()
            }
            rest[key] = Jieba(**fields)
    try:
        return kinds[str(name)](**rest)
    # A setting of a newer version, or of a method that is not registered here.
    except (KeyError, TypeError, InputError, SettingError) as error:
        raise StoreError(
            f"The index was created with settings that this version does not have: {name} {error}. "
            "Use the version of neardup that created it."
        ) from error


_METHODS: dict[type, type[Method]] = {}


def register(
    settings: type[MethodSettings],
    method: type[Method],
    names: Mapping[str, MethodSettings] | None = None,
) -> None:
    """Register a method, which then works like MinHash and SimHash.

    Parameters
    ----------
    settings : the type of its settings, a frozen dataclass.
    method : its stages.
    names : the names of the method in functions and the command line, each with its settings.

    Raises
    ------
    SettingError
        If another method has one of the names.
    """
    for name, named in (names or {}).items():
        # The same registration twice, as when a module is loaded again, is fine.
        if name in METHODS and type(METHODS[name]) is not settings:
            raise SettingError(
                f"The name {name!r} belongs to {type(METHODS[name]).__name__}: got it for "
                f"{settings.__name__}. Use another name."
            )
        METHODS[name] = named
    _METHODS[settings] = method


def method_of(settings: Any) -> Method:
    """Return the method of settings; a method is returned as it is.

    Raises
    ------
    SettingError
        If no method is registered for settings of this type.
    """
    if isinstance(settings, Method):
        return settings
    # The exact type: a subclass needs a method of its own.
    if type(settings) not in _METHODS:
        known = " or ".join(sorted(settings_type.__name__ for settings_type in _METHODS))
        raise SettingError(
            f"method must be {known}: got {settings!r:.80}. Use MinHash(threshold=0.8), for "
            "example."
        )
    return _METHODS[type(settings)](settings)


register(MinHash, MinHashMethod)
register(SimHash, SimHashMethod)
register(Vectors, VectorsMethod)
