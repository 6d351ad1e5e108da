"""Methods by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeVar, overload

from neardup.errors import SettingError
from neardup.settings.constraints import constraints_of, suggestion
from neardup.settings.methods import MethodSettings, MinHash, SimHash

T = TypeVar("T", bound=MethodSettings)

METHODS: dict[str, MethodSettings] = {
    "minhash": MinHash(),
    "simhash": SimHash(),
    "structure": MinHash(tokens="tags", ngram=3, threshold=0.4, similarity="cosine", boost_rare=True, rows_per_band=2),
    "content": MinHash(html="main"),
    "page": MinHash(html="main", min_structure=0.4),
    "tags": SimHash(tokens="tags", ngram=3, weights="one"),
    "decay": SimHash(tokens="elements", weights="depth", confirm="hamming", max_distance=5),
    "paths": SimHash(tokens="paths", weights="depth", confirm="hamming", max_distance=5),
}
"""The settings of each method name; from the third on for web pages. `neardup.methods.register` adds others."""


def name_of(settings: str) -> str:
    """Return the first method name with settings of a type, given by its name; SettingError if there is none."""
    for name, named in METHODS.items():
        if type(named).__name__ == settings:
            return name
    raise SettingError(f"No method has settings of the type {settings}: import the module that registers it.")


@overload
def method(name: Literal["minhash", "structure", "content", "page"], **settings: Any) -> MinHash: ...
@overload
def method(name: Literal["simhash", "tags", "decay", "paths"], **settings: Any) -> SimHash: ...
@overload
def method(name: str, **settings: Any) -> MethodSettings: ...
def method(name: str, **settings: Any) -> MethodSettings:
    """Return the settings of a method name, with other values for some of them.

    Parameters
    ----------
    name : minhash and simhash, of texts. Of web pages: structure, the set of runs of 3 start tags with their
        attributes, of which those that few pages share count up to three times; content, the main text; page, both, the
        similarity of the structure from `min_structure`; tags, fingerprints of the runs of tags; and two methods of the
        literature, decay and paths, fingerprints of elements or tag paths weighted by depth, to compare with other
        programs: `structure` is more accurate on every labelled set of docs/accuracy.md. Or a name that
        `neardup.methods.register` added.
    settings : those of `MinHash` or `SimHash`, by their names.

    Raises
    ------
    SettingError
        If the name is unknown, or the method has no such setting, or the value is outside its limits.

    Examples
    --------
    >>> method("structure", threshold=0.6).tokens
    'tags'
    >>> method("paths", decay=0.85).max_distance
    5
    """
    if not isinstance(name, str) or name not in METHODS:
        raise SettingError(
            f"method must be one of {', '.join(METHODS)}, or settings such as MinHash(threshold=0.7): got {name!r}."
            f"{suggestion(name, METHODS)} Change method."
        )
    known = constraints_of(type(METHODS[name]))
    for setting, value in settings.items():
        if setting not in known:
            raise SettingError(
                f"{setting} does not go with method={name!r}: got {setting}={value!r}. Its settings are "
                f"{', '.join(known)}."
            )
    return replace(METHODS[name], **settings)


def method_named(
    chosen: MethodSettings | str, threshold: float | None = None, max_distance: int | None = None
) -> MethodSettings:
    """Return settings unchanged, or those of a name, with another limit if one is given.

    Raises
    ------
    SettingError
        If the name is unknown, it is neither a name nor settings, or a limit is given beside settings or to a method
        that does not have it.
    """
    limits = {"threshold": threshold, "max_distance": max_distance}
    given: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    if isinstance(chosen, MethodSettings):
        if given:
            name, value = next(iter(given.items()))
            raise SettingError(
                f"{name} goes with the name of a method: got {name}={value!r} beside {type(chosen).__name__}(...). "
                f"Set it there: {type(chosen).__name__}({name}={value!r})."
            )
        return chosen
    return method(chosen, **given)


def named_as(kind: type[T], chosen: MethodSettings | str, threshold: float | None = None) -> T:
    """Return settings of one type unchanged, or those of a name, with another threshold if one is given.

    Raises
    ------
    SettingError
        As `method_named`; or if the settings are of another type.
    """
    settings = method_named(chosen, threshold)
    if isinstance(settings, kind):
        return settings
    names = [name for name, named in METHODS.items() if isinstance(named, kind)]
    given = chosen if isinstance(chosen, str) else type(chosen).__name__
    raise SettingError(
        f"method must be of {kind.__name__}: got {given}. Use {kind.__name__}(...), or one of {', '.join(names)} "
        f"(--method {names[0]})."
    )
