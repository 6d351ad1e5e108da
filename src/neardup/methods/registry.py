"""The registry of methods: one line for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neardup.errors import SettingError
from neardup.methods.base import Method
from neardup.methods.minhash import MinHashMethod
from neardup.methods.simhash import SimHashMethod
from neardup.settings.methods import MethodSettings, MinHash, SimHash
from neardup.settings.presets import METHODS

_METHODS: dict[type, type[Method]] = {}


def register(
    settings: type[MethodSettings], method: type[Method], names: Mapping[str, MethodSettings] | None = None
) -> None:
    """Register a method, which then works like MinHash and SimHash.

    Parameters
    ----------
    settings : the type of its settings, a frozen dataclass.
    method : its stages.
    names : the names by which functions and the command line know it, each with its settings.

    Raises
    ------
    SettingError
        If another method has one of the names.
    """
    for name, named in (names or {}).items():
        if name in METHODS and type(METHODS[name]) is not settings:
            raise SettingError(
                f"The name {name!r} belongs to {type(METHODS[name]).__name__}: got it for {settings.__name__}. Use "
                "another name."
            )
        METHODS[name] = named
    _METHODS[settings] = method


def settings_types() -> tuple[type, ...]:
    """Return the types of settings that have a method."""
    return tuple(_METHODS)


def method_of(settings: Any) -> Method:
    """Return the method of settings; a method is returned as it is.

    Raises
    ------
    SettingError
        If no method is registered for settings of this type.
    """
    if isinstance(settings, Method):
        return settings
    if type(settings) not in _METHODS:
        known = " or ".join(sorted(settings_type.__name__ for settings_type in _METHODS))
        raise SettingError(f"method must be {known}: got {settings!r:.80}. Use MinHash(threshold=0.8), for example.")
    return _METHODS[type(settings)](settings)


register(MinHash, MinHashMethod)
register(SimHash, SimHashMethod)
