"""Methods by name, and the settings for web pages: same structure, same content."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Any, NamedTuple

from neardup.errors import SettingError
from neardup.settings.constraints import constraints_of
from neardup.settings.methods import MethodSettings, MinHash, SimHash
from neardup.settings.shingling import Jieba, Shingling, Tokenizer


def structure(
    *,
    threshold: float = 0.4,
    recall: float = 0.99,
    ngram: int = 3,
    similarity: str = "cosine",
    boost_rare: bool = True,
    num_bands: int | None = None,
    rows_per_band: int | None = 2,
    seed: int = 1,
) -> MinHash:
    """Return the settings under which pages with the same template are duplicates, regardless of their text.

    A page is the set of its runs of `ngram` start tags with their attributes. Runs that few pages share count up to
    three times.

    Parameters
    ----------
    threshold, recall, ngram, similarity, boost_rare, num_bands, rows_per_band, seed : as in `MinHash`.

    Raises
    ------
    SettingError
        If a value is outside its limits.

    Examples
    --------
    >>> structure(threshold=0.6).tokens
    'tags'
    """
    return MinHash(
        tokens="tags", ngram=ngram, threshold=threshold, recall=recall, similarity=similarity, boost_rare=boost_rare,
        num_bands=num_bands, rows_per_band=rows_per_band, seed=seed,
    )  # fmt: skip


def tag_weights(
    kind: str = "elements",
    *,
    decay: float = 0.45,
    bits: int = 64,
    max_distance: int = 5,
    max_features: int | None = None,
    weight_levels: bool = False,
    num_blocks: int | None = None,
) -> SimHash:
    """Return the settings of two methods of the literature: SimHash fingerprints of a page's tags, weighted by depth.

    `structure` is more accurate on every labelled set of docs/accuracy.md. Use these to compare with other programs.

    Parameters
    ----------
    kind : "elements", each tag with its attributes; or "paths", the tag path of each element.
    decay : the weight of an element relative to its parent.
    bits, max_distance, max_features, weight_levels, num_blocks : as in `SimHash`.

    Raises
    ------
    SettingError
        If a value is outside its limits.

    Examples
    --------
    >>> tag_weights().max_distance, tag_weights("paths", decay=0.85).decay
    (5, 0.85)
    """
    if kind not in ("elements", "paths"):
        raise SettingError(f"kind must be one of 'elements', 'paths': got {kind!r}. Change kind.")
    return SimHash(
        tokens=kind, weights="depth", confirm="hamming", decay=decay, bits=bits, max_distance=max_distance,
        max_features=max_features, weight_levels=weight_levels, num_blocks=num_blocks,
    )  # fmt: skip


def content(
    *,
    threshold: float = 0.8,
    recall: float = 0.99,
    tokens: str | Jieba | Tokenizer = "words",
    ngram: int = 5,
    nfkc: bool = True,
    case_fold: bool = True,
    fold_chinese: bool = False,
    similarity: str = "jaccard",
    boost_rare: bool = False,
    num_bands: int | None = None,
    rows_per_band: int | None = None,
    num_hashes: int | None = None,
    seed: int = 1,
) -> MinHash:
    """Return the settings under which pages with the same main text are duplicates, in any template.

    Parameters
    ----------
    threshold, recall, tokens, ngram, nfkc, case_fold, fold_chinese, similarity, boost_rare : as in `MinHash`.
    num_bands, rows_per_band, num_hashes, seed : as in `MinHash`.

    Raises
    ------
    SettingError
        If a value is outside its limits.

    Examples
    --------
    >>> content(threshold=0.9).html
    'main'
    """
    return MinHash(
        html="main", threshold=threshold, recall=recall, tokens=tokens, ngram=ngram, nfkc=nfkc, case_fold=case_fold,
        fold_chinese=fold_chinese, similarity=similarity, boost_rare=boost_rare, num_bands=num_bands,
        rows_per_band=rows_per_band, num_hashes=num_hashes, seed=seed,
    )  # fmt: skip


def page(
    *,
    threshold: float = 0.8,
    min_structure: float = 0.4,
    recall: float = 0.99,
    tokens: str | Jieba | Tokenizer = "words",
    ngram: int = 5,
    nfkc: bool = True,
    case_fold: bool = True,
    fold_chinese: bool = False,
    similarity: str = "jaccard",
    num_bands: int | None = None,
    rows_per_band: int | None = None,
    seed: int = 1,
) -> MinHash:
    """Return the settings under which pages with the same main text and the same template are duplicates.

    Both are measured for each pair: `similarity`, of the main text, and `structure`, of the template.

    Parameters
    ----------
    threshold : the minimum similarity of the main texts.
    min_structure : the minimum similarity of the templates, as `structure()` measures it.
    recall, tokens, ngram, nfkc, case_fold, fold_chinese, similarity, num_bands, rows_per_band, seed : as in `MinHash`.

    Raises
    ------
    SettingError
        If a value is outside its limits.

    Examples
    --------
    >>> page(min_structure=0.6).min_structure
    0.6
    """
    return MinHash(
        html="main", min_structure=min_structure, threshold=threshold, recall=recall, tokens=tokens, ngram=ngram,
        nfkc=nfkc, case_fold=case_fold, fold_chinese=fold_chinese, similarity=similarity, num_bands=num_bands,
        rows_per_band=rows_per_band, seed=seed,
    )  # fmt: skip


METHODS: dict[str, MethodSettings] = {
    "minhash": MinHash(),
    "simhash": SimHash(),
    "structure": structure(),
    "content": content(),
    "page": page(),
    "decay": tag_weights("elements"),
    "paths": tag_weights("paths"),
}
"""The settings of each method name; from the third on for web pages."""


def _suggestion(method: object) -> str:
    """Return the name that is closest to a misspelt one."""
    near = difflib.get_close_matches(method.lower(), METHODS, 1) if isinstance(method, str) else []
    return f" Did you mean {near[0]!r}?" if near else ""


class Preset(NamedTuple):
    """Settings of a run by one name: the method, and `keep`."""

    method: MinHash
    keep: str


PRESETS: dict[str, Preset] = {
    "lossless": Preset(MinHash(similarity="containment", threshold=0.95), "longest"),
}
"""The presets by name."""

FINGERPRINTS: dict[str, SimHash] = {
    "simhash": SimHash(),
    "structure": SimHash(tokens="tags", ngram=3, weights="one"),
    "decay": tag_weights("elements"),
    "paths": tag_weights("paths"),
}
"""The settings of fingerprints by the same names; that of a page's structure has the features of `structure`."""


SKETCHES: dict[str, MethodSettings] = {"minhash": METHODS["minhash"], "content": METHODS["content"], **FINGERPRINTS}
"""The settings of signatures and fingerprints by the same names."""


def method_named(
    method: MethodSettings | str, threshold: float | None = None, max_distance: int | None = None
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
    if isinstance(method, Shingling):
        if given:
            name, value = next(iter(given.items()))
            raise SettingError(
                f"{name} goes with the name of a method: got {name}={value!r} beside {type(method).__name__}(...). "
                f"Set it there: {type(method).__name__}({name}={value!r})."
            )
        return method
    if not isinstance(method, str) or method not in METHODS:
        raise SettingError(
            f"method must be one of {', '.join(METHODS)}, or settings such as MinHash(threshold=0.7): got {method!r}."
            f"{_suggestion(method)} Change method."
        )
    start = METHODS[method]
    for name, value in given.items():
        if name not in constraints_of(type(start)):
            raise SettingError(
                f"{name} does not go with method={method!r}: got {name}={value!r}. Use method='simhash', or threshold."
            )
    return replace(start, **given)


def with_preset(
    preset: str | None, method: MethodSettings | str | None, threshold: float | None, keep: str
) -> tuple[MethodSettings | str | None, float | None, str]:
    """Return method, threshold and keep of a run: as they are without a preset; else its own, unless they are given.

    Raises
    ------
    SettingError
        If the preset is unknown, or a method is given beside it.
    """
    if preset is None:
        return method, threshold, keep
    if not isinstance(preset, str) or preset not in PRESETS:
        raise SettingError(f"preset must be one of {', '.join(PRESETS)}: got {preset!r}. Change preset (--preset).")
    if method is not None:
        raise SettingError(
            f"preset={preset!r} sets the method: got method={method!r:.80} beside it. Leave one of them out."
        )
    chosen = PRESETS[preset]
    settings = chosen.method if threshold is None else replace(chosen.method, threshold=threshold)
    return settings, None, chosen.keep if keep == "first" else keep


def minhash_named(method: MethodSettings | str, threshold: float | None = None) -> MinHash:
    """Return settings of MinHash unchanged, or those of a name, with another threshold if one is given.

    Raises
    ------
    SettingError
        As `method_named`; or if the settings are not of MinHash.
    """
    settings = method_named(method, threshold)
    if isinstance(settings, MinHash):
        return settings
    raise SettingError(
        f"method must be of MinHash: got {method if isinstance(method, str) else type(method).__name__}. Use "
        "MinHash(...), 'minhash' or 'content'."
    )


def sketch_named(method: MethodSettings | str) -> MethodSettings:
    """Return settings of signatures or fingerprints unchanged, or those of a name of SKETCHES.

    Raises
    ------
    SettingError
        If the name is unknown, or the settings compare by more than one document has.
    """
    found = SKETCHES[method] if isinstance(method, str) and method in SKETCHES else method
    if not isinstance(found, (MinHash, SimHash)):
        raise SettingError(
            f"method must be one of {', '.join(SKETCHES)}, or settings such as MinHash(ngram=5): got {method!r:.80}. "
            "Change method."
        )
    if isinstance(found, MinHash) and (found.boost_rare or found.min_structure is not None):
        raise SettingError(
            "A signature depends on one document only; boost_rare and min_structure need a collection: got "
            f"boost_rare={found.boost_rare}, min_structure={found.min_structure!r}. Leave both unset, or use dedup or "
            "find_pairs."
        )
    return found


def simhash_named(method: MethodSettings | str) -> SimHash:
    """Return settings of fingerprints unchanged, or those of a name: simhash, structure, decay, paths.

    Raises
    ------
    SettingError
        If the name is unknown, or the settings are of another method.
    """
    if isinstance(method, SimHash):
        return method
    if isinstance(method, str) and method in FINGERPRINTS:
        return FINGERPRINTS[method]
    given = repr(method) if isinstance(method, str) else type(method).__name__
    raise SettingError(
        f"method must make SimHash fingerprints: got {given}. Use SimHash(...), or one of {', '.join(FINGERPRINTS)} "
        "(--method simhash)."
    )
