"""Settings for web pages: same structure, same content."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from neardup.errors import SettingError
from neardup.settings.limits import limits_of
from neardup.settings.methods import Method, MinHash, SimHash

PAGE = MinHash(html="main", structure=0.4)
"""What `page` starts from: same content in the same structure."""

_SHINGLES = PAGE.of_structure
assert _SHINGLES is not None
_ELEMENTS = SimHash(tokens="elements", weights="depth", max_distance=5, confirm="hamming")
_WEIGHED = {"decay": _ELEMENTS, "paths": replace(_ELEMENTS, tokens="paths")}
STRUCTURE: dict[str, Method] = {"shingles": _SHINGLES, **_WEIGHED}
"""What `structure` starts from; docs/accuracy.md has the figures that the limits follow from."""

STRUCTURE_FINGERPRINTS = {"shingles": SimHash(tokens="tags", ngram=3, weights="one"), **_WEIGHED}
"""The same features as fingerprints, each page by itself."""

CONTENT = MinHash(html="main")
"""What `content` starts from."""


METHODS: dict[str, Method] = {
    "minhash": MinHash(),
    "simhash": SimHash(),
    "structure": STRUCTURE["shingles"],
    "content": CONTENT,
    "page": PAGE,
}
"""What each method starts from, by the name that stands for it. The last three are for web pages."""


def method_named(method: Method | str, threshold: float | None = None, max_distance: int | None = None) -> Method:
    """Return settings as they are, or those that a name stands for, with another limit if one is given.

    Raises
    ------
    SettingError
        If the name is unknown, it is neither a name nor settings, or a limit is given beside settings or to a method
        that does not have it.
    """
    limits = {"threshold": threshold, "max_distance": max_distance}
    given: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    if isinstance(method, (MinHash, SimHash)):
        if given:
            name, value = next(iter(given.items()))
            raise SettingError(
                f"{name} goes with the name of a method: got {name}={value!r} beside {type(method).__name__}(...). "
                f"Set it there: {type(method).__name__}({name}={value!r})."
            )
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise SettingError(
            f"method must be one of {', '.join(METHODS)}, or settings such as MinHash(threshold=0.7): got {method!r}. "
            "Change method."
        )
    start = METHODS[method]
    for name, value in given.items():
        if name not in limits_of(type(start)):
            raise SettingError(
                f"{name} does not go with method={method!r}: got {name}={value!r}. Use method='simhash', or threshold."
            )
    return replace(start, **given)


def structure(features: str = "shingles", **settings: Any) -> Method:
    """Return the settings under which pages of one template are alike, whatever they say.

    Parameters
    ----------
    features : "shingles", runs of three start tags with their attributes, compared as sets in which those that few
        pages share count up to thrice; "decay", each tag weighed by 0.45 ** depth, summed up to a SimHash fingerprint,
        alike within 5 bits; "paths", the same of each element's tag path.
    settings : of MinHash for shingles, else of SimHash, in place of those that stand for the features.

    Raises
    ------
    SettingError
        If the features are unknown, or a value is outside of its limits.

    Examples
    --------
    >>> structure().threshold, structure("decay").max_distance
    (0.4, 5)
    """
    if features not in STRUCTURE:
        raise SettingError(f"features must be one of {', '.join(STRUCTURE)}: got {features!r}. Change features.")
    return replace(STRUCTURE[features], **settings)


def content(**settings: Any) -> MinHash:
    """Return the settings under which pages of one article are alike, whatever the template around it.

    Parameters
    ----------
    settings : of MinHash, in place of the defaults. Other methods take `html="main"` themselves.

    Examples
    --------
    >>> content(threshold=0.9).html
    'main'
    """
    return replace(CONTENT, **settings)


def page(**settings: Any) -> MinHash:
    """Return the settings under which pages are alike that say the same in the same template.

    Both are measured of each pair: `similarity`, of the main text, and `structure`.

    Parameters
    ----------
    settings : of MinHash, in place of the defaults: `threshold` for the text, `structure` for the template.

    Examples
    --------
    >>> page(structure=0.6).measures
    ('similarity', 'structure', 'exact')
    """
    return replace(PAGE, **settings)
