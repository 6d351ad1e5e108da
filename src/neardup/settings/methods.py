"""The settings of each method, by name, and of how it cuts texts: frozen, each declared once with
its constraint.

The command line uses the same declarations, and a test passes invalid values to every parameter.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar, overload

from neardup.errors import SettingError
from neardup.settings.constraints import (
    Validated,
    constraints_of,
    parameter,
    shown,
    suggestion,
    without_none,
)
from neardup.settings.folds import FOLD
from neardup.settings.jieba import Jieba as Jieba
from neardup.settings.presets import preset_settings

Tokenizer = Callable[[str], Iterable[Any]]
"""Returns the strings of a text; for SimHash(weights="given"), (string, weight) pairs."""
S = TypeVar("S", bound="DocumentSettings")
T = TypeVar("T", bound="Shingling")
PAGE_TOKENS = ("tags", "elements", "paths")
"""Tokens of the structure of HTML pages; all others are tokens of texts."""
CODE_TOKENS = ("code", "uncommented")
"""Tokens of source code, with its comments and without."""


class DocumentSettings(Validated):
    """The documents of a method: texts, pages or vectors."""

    @property
    def shingling(self) -> Shingling:
        """The cuts of documents, as texts, that show the parts shared by two of them."""
        return Shingling()

    @property
    def vector_length(self) -> int | None:
        """The numbers in a document that is a vector, 0 for as many as the first has; None if
        documents are texts.
        """
        return None

    def of_pages(self: S) -> S:
        """Return the settings for web pages."""
        return self


@dataclass(frozen=True, kw_only=True)
class Shingling(DocumentSettings):
    """The steps from a text to a set of shingles.

    A text is normalised (Unicode NFKC, then case folding), cut into tokens, and each run of `ngram`
    tokens is a shingle. A text of fewer tokens is one shingle; a text of none has no features and
    equals nothing. HTML pages are compared by the text that `html` names, or by their tags as
    tokens.
    """

    tokens: str | Jieba | Tokenizer = parameter(
        "words",
        "The tokens of a text: Unicode words, and single Chinese, Japanese and Thai characters "
        "(words); code points, a run of white space as one (chars); words between white space; "
        "Chinese words (jieba, extra zh); letters and digits, with 0 as o and 1 as l "
        "(letters); source code with comments (code) or without (uncommented). Of an HTML "
        "page: start tags; with SimHash also elements or tag paths. In Python also a callable "
        "that returns strings.",
        choices=("words", "chars", "whitespace", "jieba", "letters", "code", "uncommented", "tags"),
        or_callable=True,
        also_accepts=Jieba,
    )
    ngram: int = parameter(5, "Tokens in a shingle.", low=1, high=64)
    nfkc: bool = parameter(
        True, "Normalise to NFKC, so that full-width letters and ligatures match."
    )
    case_fold: bool = parameter(True, "Fold case, so that Straße matches STRASSE.")
    fold: Sequence[str] = parameter((), FOLD)
    html: str | None = parameter(
        None,
        "Read documents as HTML pages: compare their main text (extra web) or all visible text.",
        str,
        choices=("main", "all"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, plain in (
            ("nfkc", True),
            ("case_fold", True),
            ("fold", ()),
            ("html", None),
        ):
            value = getattr(self, name)
            # Tags are compared as they are written: these settings are for texts, and would do
            # nothing.
            if self.tokens in PAGE_TOKENS and value != plain:
                raise SettingError(
                    f"tokens={self.tokens!r} reads the tags of a page, and {name} is for texts: "
                    f"got {name}={value!r}. Leave {name} unset, or take tokens of texts."
                )

    @property
    def shingling(self) -> Shingling:
        return self

    def of_pages(self: T) -> T:
        """Return the settings for web pages: they compare the main text unless they set another
        part.
        """
        return (
            self
            if self.html is not None or self.tokens in PAGE_TOKENS
            else replace(self, html="main")
        )


FeatureHash = Callable[[bytes], int]
MAX_HAMMING_DISTANCE = 16
MAX_HASHES = 65_536
_DEFAULT_HASHES = 128


class IdfSource:
    """Base of the table of document frequencies in features/idf.py, a value of the setting
    `idf`.
    """


@dataclass(frozen=True, kw_only=True)
class MethodSettings(DocumentSettings):
    """Base of the settings of every method: the kind of document, and the limit of a duplicate."""

    sketch_options: ClassVar[tuple[str, ...]] = ()
    """The settings, besides those of the text, that change the sketches of `sign`."""
    stored_options: ClassVar[tuple[str, ...]] = ()
    """Those of them that change nothing but what `sign` and an index store."""

    threshold: float = parameter(
        0.8, "The minimum similarity of two duplicates.", exclusive_min=0.0, high=1.0
    )

    @property
    def has_sketch(self) -> bool:
        """True if `sign` can summarise a document by these settings."""
        return True


@dataclass(frozen=True, kw_only=True)
class TextSettings(MethodSettings, Shingling):
    """Base of the settings of a method that cuts texts into shingles."""


@dataclass(frozen=True, kw_only=True)
class VectorSettings(MethodSettings):
    """Base of the settings of a method that reads vectors: a column of lists of numbers."""

    dimensions: int | None = parameter(
        None,
        "Numbers in a vector. Default: as many as the first has; an index needs it.",
        int,
        low=1,
        high=1_000_000,
    )

    @property
    def shingling(self) -> Shingling:
        return Shingling(tokens="whitespace", ngram=1)  # each number of the JSON

    @property
    def vector_length(self) -> int:
        return self.dimensions or 0


@dataclass(frozen=True, kw_only=True)
class MinHash(TextSettings):
    """MinHash signatures cut into bands, which propose pairs, and the similarity that confirms
    them.

    Examples
    --------
    >>> MinHash(threshold=0.7, ngram=3).threshold
    0.7
    """

    sketch_options = ("num_hashes", "seed")
    stored_options = ("num_hashes",)

    recall: float = parameter(
        0.99,
        "The share of the pairs at the threshold to find; more similar pairs are found more often.",
        exclusive_min=0.0,
        high=0.999999,
    )
    similarity: str = parameter(
        "jaccard",
        "The shared shingles of two documents, divided by all (jaccard), by those of the "
        "document that may be removed, in pairs of the smaller one (containment; removes "
        "excerpts with keep=longest), or by the geometric mean of both numbers (cosine).",
        choices=("jaccard", "containment", "cosine"),
    )
    boost_rare: bool = parameter(
        False,
        "Count a shingle of several documents twice if at most the square root of all "
        "documents have it, three times if at most the fourth root. Takes one more pass.",
    )
    above_chance: bool = parameter(
        False,
        "Require more shared shingles than unrelated texts share by chance.",
    )
    num_bands: int | None = parameter(
        None,
        "Bands per signature. Default: from threshold and recall.",
        int,
        low=1,
        high=1024,
    )
    rows_per_band: int | None = parameter(
        None, "Hashes per band. Default: from threshold and recall.", int, low=1, high=64
    )
    num_hashes: int | None = parameter(
        None,
        "Hashes per signature of `sign`. Default: num_bands x rows_per_band if set, else 128.",
        int,
        low=1,
        high=MAX_HASHES,
    )
    min_structure: float | None = parameter(
        None,
        (
            "The minimum structural similarity of two duplicates, for pages that are also compared "
            "by their text."
        ),
        exclusive_min=0.0,
        high=1.0,
    )
    seed: int = parameter(
        1, "Seed of the permutations, or hyperplanes; part of the scheme.", low=0, high=2**32 - 1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_bands is not None and self.rows_per_band is None:
            raise SettingError(
                f"num_bands requires rows_per_band: got num_bands={self.num_bands}, "
                "rows_per_band=None. Give both, rows_per_band alone, or neither, to have the "
                "others chosen."
            )
        if self.num_hashes is not None and self.num_hashes < (self.num_bands or 1) * (
            self.rows_per_band or 1
        ):
            raise SettingError(
                f"Bands need num_bands x rows_per_band hashes: got {self.num_bands or 1} x "
                f"{self.rows_per_band} with num_hashes={self.num_hashes}. Use fewer bands or rows, "
                "or longer signatures."
            )
        if self.rows_per_band is not None and self.similarity == "containment":
            raise SettingError(
                "Containment finds pairs by samples and has no bands: got "
                f"rows_per_band={self.rows_per_band} with similarity='containment'. Leave "
                "num_bands and rows_per_band unset."
            )

        if self.min_structure is not None and (
            self.html is None or self.boost_rare or self.above_chance
        ):
            raise SettingError(
                "min_structure requires web pages that are compared by their text, without "
                f"boost_rare and above_chance: got min_structure={self.min_structure!r} with "
                f"html={self.html!r}, boost_rare={self.boost_rare}, "
                f"above_chance={self.above_chance}. Use html='main', or method='structure' "
                "(--method structure) for the structure alone."
            )

    @property
    def has_sketch(self) -> bool:
        return self.min_structure is None

    @property
    def signature_length(self) -> int:
        """Return the number of hashes in a signature of `sign`."""
        if self.num_hashes is not None:
            return self.num_hashes
        # 0 if one of both is missing.
        return (self.num_bands or 0) * (self.rows_per_band or 0) or _DEFAULT_HASHES

    @property
    def of_structure(self) -> MinHash | None:
        """Return the settings that compare the structure of pages, or None if `min_structure` is
        unset.
        """
        if self.min_structure is None:
            return None
        return replace(_STRUCTURE, threshold=self.min_structure)

    @property
    def jaccard_threshold(self) -> float:
        """Return the Jaccard similarity of two sets of equal size at the threshold: s / (2 - s) for
        a cosine s.

        Sets of unequal size with the same cosine have a lower Jaccard similarity.
        """
        return (
            self.threshold / (2.0 - self.threshold)
            if self.similarity == "cosine"
            else self.threshold
        )


_HASH_BITS = {"fnv1": 64, "fnv1a": 64, "md5": 128}
"""The bits of hashes that have fewer than a fingerprint may have."""


@dataclass(frozen=True, kw_only=True)
class SimHash(TextSettings):
    """SimHash fingerprints: the weights of features, and the Hamming distance of duplicates.

    A scheme other than "native" reproduces the fingerprints of another program, bit for bit. It
    fixes features, hashes and weights, so none of these can be set with it. With `weights="given"`,
    the callable `tokens` returns pairs of a feature and its weight.

    Examples
    --------
    >>> SimHash(weights="tfidf").num_features
    20
    """

    sketch_options = (
        "bits",
        "weights",
        "decay",
        "idf",
        "max_features",
        "weight_levels",
        "hash",
        "scheme",
    )

    tokens: str | Jieba | Tokenizer = parameter(
        "words",
        # Like the tokens of all methods, and two kinds of pages.
        replace(
            constraints_of(Shingling)["tokens"],
            choices=(*constraints_of(Shingling)["tokens"].choices, "elements", "paths"),
        ),
    )
    ngram: int = parameter(1, "Tokens in a feature.", low=1, high=64)
    bits: int = parameter(64, "Bits of a fingerprint.", numbers=(32, 64, 128, 256))
    max_distance: int = parameter(
        3,
        "The maximum number of differing bits of two duplicates.",
        low=0,
        high=MAX_HAMMING_DISTANCE,
    )
    weights: str = parameter(
        "tf",
        "The weight of a feature: 1 (one), its frequency in the document (tf), that times its "
        "inverse document frequency (tfidf), or of elements and paths of a page by depth "
        "(depth). In Python also given, by a callable.",
        choices=("one", "tf", "tfidf", "depth"),
        python_only=("given",),
    )
    decay: float = parameter(
        0.45,
        "With weights=depth, the weight of an element relative to its parent.",
        exclusive_min=0.0,
        high=1.0,
    )
    idf: str | IdfSource = parameter(
        "corpus",
        "The document frequencies: of the corpus, of the lines of each document, or a table of "
        "`neardup document-frequencies`.",
        sentinels=("corpus", "lines"),
        also_accepts=IdfSource,
    )
    max_features: int | None = parameter(
        None,
        (
            "Use only the N features of the highest weights; 0 for all. Default: 20 with "
            "tfidf, else 0."
        ),
        int,
        low=0,
        high=1_000_000,
    )
    weight_levels: bool = parameter(
        False,
        "Replace weights by levels 1 to 5, their quintiles in the document.",
    )
    hash: str | FeatureHash = parameter(
        "native",
        "The hash of a feature: neardup's own, or FNV-1, FNV-1a (64 bits) or MD5 (128 bits) of "
        "its UTF-8 bytes; in Python also a callable.",
        choices=("native", "fnv1", "fnv1a", "md5"),
        or_callable=True,
    )
    scheme: str = parameter(
        "native",
        (
            "Compute the fingerprints of neardup, of mfonda/simhash in Go (its WordFeatureSet "
            "or UnicodeWordFeatureSet), or of the Python package simhash."
        ),
        choices=("native", "mfonda", "mfonda-unicode", "simhash"),
    )
    confirm: str | None = parameter(
        None,
        "What decides: the distance of fingerprints alone (hamming), or also the exact Jaccard "
        "similarity of the features, as fingerprints of unrelated texts can collide (jaccard). "
        "Default: jaccard; hamming without texts.",
        str,
        choices=("jaccard", "hamming"),
    )
    threshold: float = parameter(
        0.5,
        "With confirm=jaccard, the minimum similarity of two duplicates.",
        exclusive_min=0.0,
        high=1.0,
    )
    num_blocks: int | None = parameter(
        None,
        "Blocks per fingerprint in the search; they do not change the result. Default: from "
        "the number of fingerprints.",
        int,
        low=1,
        high=64,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scheme != "native":
            self._refuse_settings_of_the_scheme()
        # With one block more than differing bits, one block at least is equal.
        if self.num_blocks is not None and not self.max_distance < self.num_blocks <= self.bits:
            raise SettingError(
                "num_blocks must be above max_distance and at most bits: got "
                f"num_blocks={self.num_blocks} with max_distance={self.max_distance} and "
                f"bits={self.bits}. Leave num_blocks unset to have it chosen."
            )
        # A callable returns as many bits as the fingerprint needs.
        hash_bits = _HASH_BITS.get(self.hash if isinstance(self.hash, str) else "", 256)
        if self.bits > hash_bits:
            raise SettingError(
                f"hash={self.hash!r} has {hash_bits} bits: got bits={self.bits}. Use hash='native' "
                f"or bits={hash_bits} or fewer."
            )
        # A threshold that was given as 0.5 cannot be told from the default, and means the same.
        if self.confirm == "hamming" and self.threshold != 0.5:
            raise SettingError(
                f"threshold requires confirm='jaccard': got threshold={self.threshold!r} with "
                "confirm='hamming'. Leave one of the two out."
            )
        self._refuse_given_weights()
        self._refuse_weights_by_depth()

    def _refuse_given_weights(self) -> None:
        if self.weights != "given":
            return
        if not callable(self.tokens):
            raise SettingError(
                "weights='given' takes (feature, weight) pairs from a callable: got "
                f"tokens={self.tokens!r}. Give a callable as tokens, or other weights."
            )
        if self.ngram != 1:
            raise SettingError(
                f"weights='given' weighs single features: got ngram={self.ngram}. Use ngram=1, and "
                "let the callable return n-grams with their weights."
            )

    def _refuse_weights_by_depth(self) -> None:
        by_depth = self.weights == "depth"
        # Each needs the other: depth is known of elements and paths alone.
        if by_depth != (self.tokens in ("elements", "paths")):
            raise SettingError(
                "weights='depth' requires tokens='elements' or 'paths', which have no other "
                f"weights: got weights={self.weights!r} with tokens={self.tokens!r}. Change one of "
                "the two."
            )
        if by_depth and self.ngram != 1:
            raise SettingError(
                f"weights='depth' weighs single elements: got ngram={self.ngram}. Leave it unset."
            )
        if self.tokens == "paths" and self.hash != "native":
            raise SettingError(
                f"tokens='paths' has neardup's own hash: got hash={self.hash!r}. Leave it unset, "
                "or use tokens='elements'."
            )
        if not by_depth and self.decay != 0.45:
            raise SettingError(
                f"decay requires weights='depth': got decay={self.decay!r} with "
                f"weights={self.weights!r}. Leave it unset."
            )

    def _refuse_settings_of_the_scheme(self) -> None:
        # They change the search, not the fingerprints.
        free = ("max_distance", "scheme", "confirm", "threshold", "num_blocks")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.name not in free and value != field.default:
                raise SettingError(
                    f"scheme={self.scheme!r} sets {field.name} itself: got {field.name}={value!r}. "
                    f"Leave {field.name} unset, or use scheme='native'."
                )

    @property
    def num_features(self) -> int:
        """Return the maximum number of features used per document; 0 for all."""
        if self.max_features is not None:
            return self.max_features
        return 20 if self.weights == "tfidf" else 0


@dataclass(frozen=True, kw_only=True)
class Vectors(VectorSettings):
    """Vectors such as embeddings: bands of the sides of random hyperplanes propose pairs, and the
    cosine confirms them.

    Examples
    --------
    >>> Vectors(threshold=0.95).recall
    0.99
    """

    sketch_options = ("dimensions", "planes", "seed")

    threshold: float = parameter(
        0.9, "The minimum cosine of two duplicates.", exclusive_min=0.0, high=1.0
    )
    recall: float = parameter(0.99, constraints_of(MinHash)["recall"])
    planes: int | None = parameter(
        None,
        "Hyperplanes per band. Default: chosen from threshold, recall and the number of vectors.",
        int,
        low=1,
        high=31,
    )
    seed: int = parameter(1, constraints_of(MinHash)["seed"])


AnyMethod = TypeVar("AnyMethod", bound=MethodSettings)

_STRUCTURE = MinHash(
    tokens="tags", ngram=3, threshold=0.4, similarity="cosine", boost_rare=True, rows_per_band=2
)
METHODS: dict[str, MethodSettings] = {
    "minhash": MinHash(),
    "simhash": SimHash(),
    "structure": _STRUCTURE,
    "content": MinHash(html="main"),
    "page": MinHash(html="main", min_structure=0.4),
    "tags": SimHash(tokens="tags", ngram=3, weights="one"),
    "decay": SimHash(tokens="elements", weights="depth", confirm="hamming", max_distance=5),
    "paths": SimHash(tokens="paths", weights="depth", confirm="hamming", max_distance=5),
    "vectors": Vectors(),
}
"""The settings of each method name; from structure to paths for web pages.
`neardup.methods.register` adds others.
"""


def name_of(settings: str) -> str:
    """Return the first method name with settings of a type, given by its name; SettingError if
    there is none.
    """
    for name, named in METHODS.items():
        if type(named).__name__ == settings:
            return name
    raise SettingError(
        f"No method has settings of the type {settings}: import the module that registers it."
    )


@overload
def method(
    name: Literal["minhash", "structure", "content", "page"] = "minhash", **settings: Any
) -> MinHash: ...
@overload
def method(name: Literal["simhash", "tags", "decay", "paths"], **settings: Any) -> SimHash: ...
@overload
def method(name: Literal["vectors"], **settings: Any) -> Vectors: ...
@overload
def method(name: str, **settings: Any) -> MethodSettings: ...
def method(
    name: str = "minhash",
    *,
    preset: str | None = None,
    noise: float | str | None = None,
    **settings: Any,
) -> MethodSettings:
    """Return the settings of a method name, with other values for some of them.

    Parameters
    ----------
    name : of texts: minhash, simhash. Of web pages: structure (runs of 3 start tags with their
        attributes), content (the main text), page (both), tags (fingerprints of the runs), and two
        methods of the literature, decay and paths. Of lists of numbers: vectors. Or a name that
        `neardup.methods.register` added.
    preset : "code", for source code: its tokens as they are written, and a threshold of 0.7.
    noise : the share of wrong characters in each text, 0.05 or "5%", and half of it where the other
        text is clean: compares runs of 5 letters, and sets the threshold.
    settings : the settings of `MinHash`, `SimHash` or `Vectors`, by name, which replace the
        settings of a preset.

    Raises
    ------
    SettingError
        If the name is unknown, the method has no such setting, or a value is outside its limits.

    Examples
    --------
    >>> method("structure", threshold=0.6).tokens
    'tags'
    >>> method("paths", decay=0.85).max_distance
    5
    >>> method(preset="code").tokens
    'code'
    """
    if not isinstance(name, str) or name not in METHODS:
        raise SettingError(
            f"method must be one of {', '.join(METHODS)}, or settings such as "
            f"MinHash(threshold=0.7): got {shown(name)}.{suggestion(name, METHODS)} Change method."
        )
    known = constraints_of(type(METHODS[name]))
    for setting, value in settings.items():
        # `replace` would raise a TypeError, without the names that are accepted.
        if setting not in known:
            raise SettingError(
                f"{setting} does not go with method={name!r}: got {setting}={shown(value)}. Its "
                f"settings are {', '.join(known)}."
            )
    # The given settings are checked alone first: an error is about them, not about the preset.
    chosen = replace(METHODS[name], **settings)
    if preset is None and noise is None:
        return chosen
    return replace(METHODS[name], **_preset(name, preset, noise, settings))


def _preset(
    name: str, preset: str | None, noise: float | str | None, given: dict[str, Any]
) -> dict[str, Any]:
    """Return the settings of a preset, replaced by the given ones. Raises SettingError if the
    preset is not for a method.

    The threshold of a preset is for sets: with SimHash the caller sets it.
    """
    settings = preset_settings(preset, noise, given)
    # The thresholds of presets are of MinHash.
    if name == "simhash" and noise is None:
        return {key: value for key, value in settings.items() if key != "threshold" or key in given}
    if name != "minhash":
        shown = f"preset={preset!r}" if noise is None else f"noise={noise!r}"
        accepted = "minhash or simhash" if noise is None else "minhash"
        raise SettingError(
            f"{shown} goes with method {accepted}: got {name!r}. Leave one of the two out."
        )
    return settings


def method_named(
    chosen: MethodSettings | str, threshold: float | None = None, max_distance: int | None = None
) -> MethodSettings:
    """Return settings unchanged, or by name, with another limit if one is given.

    Raises
    ------
    SettingError
        If the name is unknown, it is neither a name nor settings, or a limit is given beside
        settings or to a method that does not have it.
    """
    limits = {"threshold": threshold, "max_distance": max_distance}
    given = without_none(limits)
    # Not both: settings name their limit.
    if isinstance(chosen, MethodSettings):
        if given:
            name, value = next(iter(given.items()))
            raise SettingError(
                f"{name} goes with the name of a method: got {name}={value!r} beside "
                f"{type(chosen).__name__}(...). Set it there: "
                f"{type(chosen).__name__}({name}={value!r})."
            )
        return chosen
    return method(chosen, **given)


def named_as(
    kind: type[AnyMethod], chosen: MethodSettings | str, threshold: float | None = None
) -> AnyMethod:
    """Return settings of one type unchanged, or by name, with another threshold if one is given.

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
        f"method must be one of {', '.join(names)}, or {kind.__name__}(...): got {given}. Use "
        f"method={names[0]!r} (--method {names[0]}), for example."
    )
