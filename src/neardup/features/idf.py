"""The table of document frequencies that TF-IDF weights come from: counted, saved, versioned, bound
to its features.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup import kernels
from neardup.arrays import Floats, Ints, Mask, Uint32s, Words, arrow_file, arrow_of
from neardup.documents.batch import Rejected
from neardup.errors import InputError, OutputError, SchemeError, SettingError
from neardup.features.described import DistinctFeatures
from neardup.features.normalise import normalise
from neardup.features.segmenters import cutter_of, describe_segmenter
from neardup.features.shingles import shingle_documents
from neardup.features.token_lists import pack_tokens, shingle_strings
from neardup.files import AnyPath, AtomicFile, JsonObject
from neardup.settings.constraints import check_kind, check_limit, check_path, check_text, shown
from neardup.settings.methods import IdfSource, Jieba, Shingling, SimHash

MAX_FEATURES = 10_000_000
_FIRST_SLOTS = 1 << 16


class _Table(NamedTuple):
    """Open addressing: hashes uint64, counts uint32 (0: free), misses uint32, all of shape (a power
    of two,).
    """

    hashes: Words
    counts: Uint32s
    misses: Uint32s


class DocumentCounts:
    """Document counts of features while documents go by.

    Parameters
    ----------
    max_features : features to remember at most; 10 million take 256 MB, and as much again while the
        rarest are dropped.

    Notes
    -----
    Lossy counting (Manku and Motwani, VLDB 2002) with its bound on space for a given: when a
    document leaves more features than `max_features`, those that occurred least are dropped, and
    `max_undercount` says by how much a count can be too low since. A feature that was dropped
    counts 0, which is at most as wrong. The result depends on the documents and their order, not on
    how they are batched; and not on their order if nothing was dropped.
    """

    def __init__(self, max_features: int = MAX_FEATURES) -> None:
        self.max_features = max_features
        self.num_documents = self.max_undercount = self._size = 0
        self._table = _empty_table(_FIRST_SLOTS)

    def add(self, features: DistinctFeatures) -> None:
        """Add the distinct features of the next documents, as of `distinct_features`."""
        offsets = features.offsets
        document = 0
        while document < len(offsets) - 1:
            state = self.max_features, self.max_undercount, self._table, self._size
            document, self._size = kernels.weights.add_documents(
                features.hashes, offsets, document, *state
            )
            if self._size > self.max_features:
                self._drop_the_rarest()
            elif document < len(offsets) - 1:
                self._grow(int(offsets[document + 1] - offsets[document]))
        self.num_documents += len(offsets) - 1

    def _grow(self, num_more: int) -> None:
        slots = len(self._table.hashes)
        while 3 * (self._size + num_more) > 2 * slots:
            slots *= 2
        self._rebuild(slots)

    def _drop_the_rarest(self) -> None:
        """Drop the rarest until a quarter of the room is free again, so that the next time is not
        soon.
        """
        while self._size > self.max_features - self.max_features // 4:
            self.max_undercount += 1
            self._rebuild(len(self._table.hashes))

    def _rebuild(self, num_slots: int) -> None:
        target = _empty_table(num_slots)
        self._size = kernels.weights.move_entries(self._table, self.max_undercount, target)
        self._table = target

    def table(self, shingling: Shingling) -> IdfTable:
        """Return the counts as a table; shingling : the settings that the documents were described
        with.
        """
        used = np.flatnonzero(self._table.counts)
        hashes = self._table.hashes[used]
        order = np.argsort(hashes)
        scheme: JsonObject = describe_features(shingling)
        return IdfTable(
            self.num_documents,
            hashes[order],
            self._table.counts[used][order],
            scheme,
            self.max_undercount,
        )


def _empty_table(num_slots: int) -> _Table:
    return _Table(
        np.empty(num_slots, np.uint64),
        np.zeros(num_slots, np.uint32),
        np.zeros(num_slots, np.uint32),
    )


FEATURES_VERSION = 2
"""Version of the native feature hashes, those of `shingle_documents`."""
LEAST_IDF = 0.01
_GRAIN = 2.0**32
_METADATA_KEY = b"neardup"
_FORMAT, _FORMAT_VERSION = "neardup-idf", 1


def describe_features(shingling: Shingling) -> JsonObject:
    """Return the settings that affect the features of a text, as values for JSON."""
    tokens: Any = shingling.tokens
    if tokens == "jieba" or isinstance(tokens, Jieba):
        tokens = describe_segmenter(tokens if isinstance(tokens, Jieba) else Jieba())
    elif callable(tokens):
        tokens = name_callable(tokens)
    return {
        "tokens": tokens,
        "ngram": shingling.ngram,
        "nfkc": shingling.nfkc,
        "case_fold": shingling.case_fold,
        "fold_chinese": shingling.fold_chinese,
        "version": FEATURES_VERSION,
        **({} if shingling.html is None else {"html": shingling.html}),
    }


def name_callable(function: Callable[..., Any]) -> str:
    """Return the name of a callable with that of its module; with the line where a lambda begins,
    which has no name.
    """
    name = getattr(function, "__qualname__", type(function).__qualname__)
    line = f":{function.__code__.co_firstlineno}" if name.endswith("<lambda>") else ""
    return f"{getattr(function, '__module__', '')}.{name}{line}"


def inverse_frequencies(document_counts: Ints, num_documents: Ints | int) -> Floats:
    """Return log(N / (df + 1)), at least 0.01.

    Parameters
    ----------
    document_counts : int64 array, the documents that hold each feature.
    num_documents : int, or int64 array as long: all documents.

    Notes
    -----
    Two deviations from the formula. In a small corpus it comes to 0 or less for features of most
    documents; with 0.01 no text loses all its weight, or votes against its own words. And the
    logarithm is rounded to 2^-32, so that sums of weights are exact: they depend neither on their
    order nor on the last bit of a library's logarithm.
    """
    values = np.log(np.maximum(num_documents, 1) / (document_counts.astype(np.float64) + 1))
    return np.rint(np.maximum(values, LEAST_IDF) * _GRAIN) / _GRAIN


@dataclass(frozen=True, eq=False)
class IdfTable(IdfSource):
    """The number of documents of a corpus that contain each feature.

    num_documents : int, the documents of the corpus. hashes : uint64, rising: the native hashes of
    the features. counts : uint32, the documents that contain each. scheme : the settings that
    determine features. max_undercount : int, by how much a count may be too low, if the corpus had
    more features than can be counted at once. rejected : the documents that could not be read and
    are not counted; not saved with the table.

    Examples
    --------
    >>> table = IdfTable.from_counts({"the": 999, "aardvark": 1}, num_documents=1000)
    >>> table.counts.tolist()
    [1, 999]
    """

    num_documents: int
    hashes: Words
    counts: Uint32s
    scheme: Mapping[str, Any] = field(default_factory=dict)
    max_undercount: int = 0
    rejected: tuple[Rejected, ...] = ()

    def describe(self) -> JsonObject:
        """Return the numbers of documents and features, the version and the scheme, as values for
        JSON.
        """
        return {
            "documents": self.num_documents,
            "features": len(self.hashes),
            "max_undercount": self.max_undercount,
            "version": self.version,
            "scheme": dict(self.scheme),
        }

    def __repr__(self) -> str:
        """Return the numbers of documents and features."""
        return f"IdfTable({self.num_documents:,} documents, {len(self.hashes):,} features)"

    @cached_property
    def version(self) -> str:
        """A short digest of the content, which fingerprints made with the table carry."""
        digest = hashlib.sha256(
            f"{self.num_documents} {json.dumps(dict(self.scheme), sort_keys=True)}".encode()
        )
        digest.update(self.hashes.astype("<u8").tobytes())
        digest.update(self.counts.astype("<u4").tobytes())
        return digest.hexdigest()[:12]

    @cached_property
    def _starts(self) -> Ints:
        """Where the hashes of each value of their leading bits begin: about two hashes for one
        value.
        """
        bits = max(1, len(self.hashes).bit_length() - 1)
        leading = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
        return np.append(np.searchsorted(self.hashes, leading), len(self.hashes)).astype(np.int64)

    def document_counts(self, hashes: Words) -> Ints:
        """Return the documents that hold each feature, 0 for one that is not in the table."""
        found = np.empty(len(hashes), np.int64)
        kernels.weights.look_up(hashes, self.hashes, self._starts, self.counts, found)
        return found

    def lookup(self, hashes: Words) -> Floats:
        """Return the inverse document frequency of each feature, as `inverse_frequencies` has
        it.
        """
        return inverse_frequencies(self.document_counts(hashes), self.num_documents)

    def require(self, shingling: Shingling) -> None:
        """Raise SchemeError unless the table counts the features that `shingling` makes."""
        expected = describe_features(shingling)
        different = [name for name in expected if self.scheme.get(name) != expected[name]]
        if different:
            theirs = ", ".join(f"{name}={self.scheme.get(name)!r}" for name in different)
            ours = ", ".join(f"{name}={expected[name]!r}" for name in different)
            raise SchemeError(
                f"The table of document frequencies counts other features: it has {theirs}, "
                f"the method {ours}. Use a "
                "table made with the method's settings (neardup document-frequencies), or the "
                "settings of the table."
            )

    def save(self, path: AnyPath) -> None:
        """Write the table as a Parquet file. Raises OutputError if it cannot be written."""
        about = {
            "format": _FORMAT,
            "format_version": _FORMAT_VERSION,
            "num_documents": self.num_documents,
            "scheme": dict(self.scheme),
            "max_undercount": self.max_undercount,
            "version": self.version,
        }
        fields = [
            pa.field("hash", "uint64", nullable=False),
            pa.field("documents", "uint32", nullable=False),
        ]
        schema = pa.schema(fields, {_METADATA_KEY: json.dumps(about).encode()})
        table = pa.table([arrow_of(self.hashes), arrow_of(self.counts)], schema=schema)
        with (
            AtomicFile(check_path("path", path, OutputError)) as partial,
            arrow_file(partial, "wb") as file,
        ):
            pq.write_table(table, file, compression="zstd")

    @classmethod
    def open(cls, path: AnyPath) -> IdfTable:
        """Read a table that `save` wrote.

        Raises
        ------
        InputError
            If there is no such file, or it is not such a table, or a later format, or damaged.
        """
        path = check_path("path", path)
        try:
            with arrow_file(path) as file:
                table = pq.read_table(file)
            about = json.loads((table.schema.metadata or {}).get(_METADATA_KEY, b"{}"))
            if about.get("format") != _FORMAT or about.get("format_version") != _FORMAT_VERSION:
                raise ValueError(
                    f"its metadata has format {about.get('format')} {about.get('format_version')}"
                )
            hashes, counts = table["hash"].to_numpy(), table["documents"].to_numpy()
            loaded = cls(
                about["num_documents"], hashes, counts, about["scheme"], about["max_undercount"]
            )
            if loaded.version != about["version"]:
                raise ValueError("its content differs from the one that was written")
        except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            reason = "there is no such file" if isinstance(error, FileNotFoundError) else error
            raise InputError(
                f"{path} is not a table of document frequencies in format {_FORMAT} "
                f"{_FORMAT_VERSION}: "
                f"{reason}. Create one with neardup document-frequencies."
            ) from error
        return loaded

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, int], *, num_documents: int, method: Shingling | None = None
    ) -> IdfTable:
        """Make a table from words and how many documents hold each.

        Parameters
        ----------
        counts : words with their document counts. A word is normalised as the method does; words
            that become equal are added up.
        num_documents : all documents of the corpus.
        method : the settings that texts will be described with; those of `SimHash()` when None.

        Raises
        ------
        InputError
            If a word is no string or several features, or a count is no whole number from 0 to
            num_documents.
        SettingError
            If num_documents is no whole number of 0 or more.
        """
        method = SimHash() if method is None else method
        check_kind("method", method, Shingling, "settings such as SimHash(), or None")
        num_documents = check_limit(num_documents, "num_documents", least=0)
        if not isinstance(counts, Mapping):
            raise InputError(
                f"counts maps words to document counts: got {type(counts).__name__} "
                f"{shown(counts)}."
            )
        given: Mapping[Any, Any] = counts
        for word, count in given.items():
            check_text("A word of counts", word)
            is_whole = isinstance(count, Integral) and not isinstance(count, bool)
            if not is_whole or not 0 <= count <= num_documents:
                raise InputError(
                    "A document count must be a whole number from 0 to "
                    f"num_documents={num_documents}: got {count!r} "
                    f"for {word!r}. Count each document once, or correct num_documents."
                )
        all_hashes, has_feature = _word_hashes(list(counts), method)
        hashes, indices = np.unique(all_hashes, return_inverse=True)
        totals = np.zeros(len(hashes), np.int64)
        np.add.at(totals, indices, np.array(list(counts.values()), np.int64)[has_feature])
        capped = np.minimum(totals, num_documents).astype(np.uint32)
        return cls(num_documents, hashes, capped, describe_features(method))


def _word_hashes(words: list[str], method: Shingling) -> tuple[Words, Mask]:
    """Return the hash of each word that is a feature, and which words are: "..." is none."""
    if cutter_of(method) is not None:
        # A dictionary's word stands for itself: cutting it again might take it apart.
        normal = [normalise(word, method) for word in words]
        lists = [word.split(" ") if method.ngram > 1 else [word] for word in normal]
        shingles = shingle_strings(pack_tokens(lists), method.ngram)
    else:
        shingles = shingle_documents(pa.array(words, "large_string"), method)
    num_features = np.diff(shingles.offsets)
    if num_features.max(initial=0) > 1:
        word = words[int(np.argmax(num_features > 1))]
        raise InputError(
            f"A word must be one feature: got {word!r}, which is several with "
            f"tokens={method.tokens!r} and "
            f"ngram={method.ngram}. Leave it out, or use the tokens with which the words were "
            "counted."
        )
    return shingles.hashes, num_features > 0


def resolve_idf(method: SimHash) -> IdfTable | None:
    """Return the table that a method names, or None if it names none: rarity counts where there is
    a corpus only.

    Raises
    ------
    SettingError
        If frequencies of a corpus are requested: there is no corpus to count.
    """
    if method.weights != "tfidf" or method.idf == "lines":
        return None
    if method.idf == "corpus":
        raise SettingError(
            "weights='tfidf' takes document frequencies from a corpus, which single texts do "
            "not have: got "
            "idf='corpus'. Pass a table as idf (--idf TABLE, made by neardup "
            "document-frequencies), or idf='lines' to "
            "count lines of the text itself."
        )
    table = method.idf if isinstance(method.idf, IdfTable) else IdfTable.open(str(method.idf))
    table.require(method)
    return table
