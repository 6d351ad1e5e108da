"""The registry of methods: one line for each type of settings."""

from __future__ import annotations

from typing import Any

from neardup.errors import SettingError
from neardup.methods.base import Method
from neardup.methods.minhash import MinHashMethod
from neardup.methods.simhash import SimHashMethod
from neardup.settings.methods import MinHash, SimHash

_METHODS: dict[type, type[Method]] = {}


def register(settings: type, method: type[Method]) -> None:
    """Register the method of a type of settings; user code registers other methods here."""
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
