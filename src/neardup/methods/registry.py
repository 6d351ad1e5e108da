"""Which method goes with which settings: one line for each method."""

from __future__ import annotations

from typing import Any

from neardup.errors import SettingError
from neardup.methods.base import Method
from neardup.methods.minhash import MinHashMethod
from neardup.methods.simhash import SimHashMethod
from neardup.settings.methods import MinHash, SimHash

_METHODS: dict[type, type[Method]] = {}


def register(settings: type, method: type[Method]) -> None:
    """Let `method` answer for settings of a type; user code registers its own methods here."""
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
    if type(settings) not in _METHODS:
        known = " or ".join(sorted(kind.__name__ for kind in _METHODS))
        raise SettingError(f"method must be {known}: got {settings!r:.80}. Use MinHash(threshold=0.8), say.")
    return _METHODS[type(settings)](settings)


register(MinHash, MinHashMethod)
register(SimHash, SimHashMethod)
