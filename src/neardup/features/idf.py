"""Document frequencies for TF-IDF weights: a table that is counted, saved, versioned and bound to
its features.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from inspect import unwrap
from numbers import Integral
from pathlib import Path
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
_MAX_COUNT = 2**32 - 1  # of the documents of a feature: a count is a uint32


class _Table(NamedTuple):
    """Open addressing: hashes uint64, counts uint32 (0: free), misses uint32, all of shape (a power
    of two,).
    """

    hashes: Words
    counts: Uint32s
    misses: Uint32s


class DocumentCounts:
    """Count the documents of each feature in a stream of documents.

    Parameters
    ----------
    max_features : features to remember at most; 10 million take 256 MB, and as much again while the
        rarest are dropped.

    Notes
    -----
    Lossy counting (Manku and Motwani, VLDB 2002), with a given bound on space: when a document
    leaves more features than `max_features`, the rarest are dropped, and `max_undercount` is the
    largest error of a count since. A dropped feature counts 0, which is at most as wrong. The
    result depends on the documents and their order, not on their batches; and not on their order if
    nothing was dropped.
    """

    def __init__(self, max_features: int = MAX_FEATURES) -> None:
        self.max_features = max_features
        self.num_documents = 0
        self.max_undercount = 0
        self._size = 0  # features in the table
        self._table = _empty_table(_FIRST_SLOTS)

    def add(self, features: DistinctFeatures) -> None:
        """Add the next documents, as the features of `distinct_features`."""
        offsets = features.offsets
        num_documents = len(offsets) - 1
        document = 0
        while document < num_documents:
            # The kernel stops when the table has too many features, or no room for a document.
            document, self._size = kernels.weights.add_documents(
                features.hashes,
                offsets,
                document,
                self.max_features,
                self.max_undercount,
                self._table,
                self._size,
            )
            if self._size > self.max_features:
                self._drop_the_rarest()
            elif document < num_documents:
                self._grow(int(offsets[document + 1] - offsets[document]))
        self.num_documents += num_documents

    def _grow(self, num_more: int) -> None:
        """Make room for more features: at most two thirds of the slots are used."""
        slots = len(self._table.hashes)
        while 3 * (self._size + num_more) > 2 * slots:
            slots *= 2
        self._rebuild(slots)

    def _drop_the_rarest(self) -> None:
        """Drop the rarest features until a quarter of the room is free, so that the next time is
        far off.
        """
        while self._size > self.max_features - self.max_features // 4:
            self.max_undercount += 1
            self._rebuild(len(self._table.hashes))

    def _rebuild(self, num_slots: int) -> None:
        target = _empty_table(num_slots)
        self._size = kernels.weights.move_entries(self._table, self.max_undercount, target)
        self._table = target

    def table(self, shingling: Shingling) -> IdfTable:
        """Return the counts as a table. shingling : the settings that made the features."""
        used = np.flatnonzero(self._table.counts)
        by_hash = used[np.argsort(self._table.hashes[used])]
        return IdfTable(
            num_documents=self.num_documents,
            hashes=self._table.hashes[by_hash],
            counts=self._table.counts[by_hash],
            scheme=describe_features(shingling),
            max_undercount=self.max_undercount,
        )


def _empty_table(num_slots: int) -> _Table:
    return _Table(
        hashes=np.empty(num_slots, np.uint64),
        counts=np.zeros(num_slots, np.uint32),
        misses=np.zeros(num_slots, np.uint32),
    )


FEATURES_VERSION = 3
"""Version of the features of texts: of their tokens, and of the hashes of `shingle_documents`."""
LEAST_IDF = 0.01
_GRAIN = 2.0**32  # weights are multiples of 1 / _GRAIN
_METADATA_KEY = b"neardup"
_FORMAT = "neardup-idf"
_FORMAT_VERSION = 1


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
        "fold": list(shingling.fold),
        "version": FEATURES_VERSION,
        **({} if shingling.html is None else {"html": shingling.html}),
    }


def name_callable(function: Callable[..., Any]) -> str:
    """Return the module and the name of a callable; a lambda has its line in addition."""
    name = getattr(function, "__qualname__", type(function).__qualname__)
    # A wrapper, such as one of functools.cache, has the name of the function and no code.
    code = getattr(unwrap(function), "__code__", None)
    line = f":{code.co_firstlineno}" if code and name.endswith("<lambda>") else ""
    return f"{getattr(function, '__module__', '')}.{name}{line}"


def inverse_frequencies(document_counts: Ints, num_documents: Ints | int) -> Floats:
    """Return log(N / (df + 1)), at least 0.01.

    Parameters
    ----------
    document_counts : int64 array, the documents that contain each feature.
    num_documents : int, or int64 array as long: all documents.

    Notes
    -----
    Two deviations from the formula. In a small corpus it is 0 or less for features of most
    documents; with at least 0.01, no text loses all its weight, or votes against its own words. And
    the logarithm is rounded to 2^-32, so that sums of weights are exact: they depend neither on
    their order nor on the last bit of a library's logarithm.
    """
    totals = np.maximum(np.asarray(num_documents, np.float64), 1)
    values = np.log(totals / (document_counts.astype(np.float64) + 1))
    return np.rint(np.maximum(values, LEAST_IDF) * _GRAIN) / _GRAIN


@dataclass(frozen=True, eq=False)
class IdfTable(IdfSource):
    """The number of documents of a corpus that contain each feature.

    num_documents : int, the documents of the corpus. hashes : uint64, rising: the native hashes of
    the features. counts : uint32, the documents that contain each. scheme : the settings that
    determine features. max_undercount : int, by how much a count may be too low, if the corpus had
    more features than can be counted at once. rejected : the documents that could not be read;
    warnings : remarks about the inputs; neither is saved with the table.

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
    warnings: tuple[str, ...] = ()

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
        # Sorted, since the order of the settings must not change the digest.
        scheme = json.dumps(dict(self.scheme), sort_keys=True)
        digest = hashlib.sha256(f"{self.num_documents} {scheme}".encode())
        digest.update(self.hashes.astype("<u8").tobytes())
        digest.update(self.counts.astype("<u4").tobytes())
        return digest.hexdigest()[:12]

    @cached_property
    def _starts(self) -> Ints:
        """Index of the first hash with each value of the leading bits; about two hashes share a
        value.
        """
        bits = max(1, len(self.hashes).bit_length() - 1)
        leading = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
        starts = np.searchsorted(self.hashes, leading)
        return np.append(starts, len(self.hashes)).astype(np.int64)

    def document_counts(self, hashes: Words) -> Ints:
        """Return the number of documents that contain each feature, 0 for an unknown feature."""
        found = np.empty(len(hashes), np.int64)
        kernels.weights.look_up(hashes, self.hashes, self._starts, self.counts, found)
        return found

    def lookup(self, hashes: Words) -> Floats:
        """Return the inverse document frequency of each feature: see `inverse_frequencies`."""
        return inverse_frequencies(self.document_counts(hashes), self.num_documents)

    def require(self, shingling: Shingling) -> None:
        """Raise SchemeError unless the table counts the features that `shingling` makes."""
        expected = describe_features(shingling)
        different = [name for name in expected if self.scheme.get(name) != expected[name]]
        if different:
            theirs = ", ".join(f"{name}={self.scheme.get(name)!r}" for name in different)
            ours = ", ".join(f"{name}={expected[name]!r}" for name in different)
            raise SchemeError(
                f"The table of document frequencies counts other features: it has {theirs}, the "
                f"method {ours}. Use a table made with the method's settings (neardup "
                "document-frequencies), or the settings of the table."
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
        target = AtomicFile(Path(check_path("path", path, OutputError)))
        with target as partial, arrow_file(partial, "wb") as file:
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
            loaded = cls(
                num_documents=about["num_documents"],
                hashes=table["hash"].to_numpy(),
                counts=table["documents"].to_numpy(),
                scheme=about["scheme"],
                max_undercount=about["max_undercount"],
            )
            if loaded.version != about["version"]:
                raise ValueError("its content differs from the one that was written")
        # AttributeError: the metadata are JSON, and no object.
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            pa.ArrowException,
        ) as error:
            reason = "there is no such file" if isinstance(error, FileNotFoundError) else error
            raise InputError(
                f"{path} is not a table of document frequencies in format {_FORMAT} "
                f"{_FORMAT_VERSION}: {reason}. Create one with neardup document-frequencies."
            ) from error
        return loaded

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, int], *, num_documents: int, method: Shingling | None = None
    ) -> IdfTable:
        """Make a table from words and the number of documents that contain each.

        Parameters
        ----------
        counts : words with their document counts. A word is normalised as the method does; words
            that become equal are added up.
        num_documents : all documents of the corpus.
        method : the settings that texts will be described with; None for `SimHash()`.

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
        for word, count in counts.items():
            _check_count(word, count, num_documents)
        all_hashes, has_feature = _word_hashes(list(counts), method)
        # The weight of a feature of more documents is low, whatever their number.
        capped = [min(count, _MAX_COUNT) for count in counts.values()]
        counts_of_hashes = np.array(capped, np.int64)[has_feature]
        hashes, indices = np.unique(all_hashes, return_inverse=True)
        totals = np.zeros(len(hashes), np.int64)
        # Words that are equal once they are normalised share a hash.
        np.add.at(totals, indices, counts_of_hashes)
        # Documents with two of such words are counted twice, so a sum may be too large.
        totals = np.minimum(totals, min(num_documents, _MAX_COUNT))
        return cls(
            num_documents=num_documents,
            hashes=hashes,
            counts=totals.astype(np.uint32),
            scheme=describe_features(method),
        )


def _check_count(word: Any, count: Any, num_documents: int) -> None:
    check_text("A word of counts", word)
    is_whole = isinstance(count, Integral) and not isinstance(count, bool)
    if not is_whole or not 0 <= count <= num_documents:
        raise InputError(
            f"A document count must be a whole number from 0 to num_documents={num_documents}: got "
            f"{count!r} for {word!r}. Count each document once, or correct num_documents."
        )


def _word_hashes(words: list[str], method: Shingling) -> tuple[Words, Mask]:
    """Return the hashes of the words that are features, and which words are: "..." is none."""
    if cutter_of(method) is not None:
        # Words are not cut again: out of context, a segmenter might take a word apart.
        normalised = [normalise(word, method) for word in words]
        lists = [word.split(" ") if method.ngram > 1 else [word] for word in normalised]
        shingles = shingle_strings(pack_tokens(lists), method.ngram)
    else:
        shingles = shingle_documents(pa.array(words, "large_string"), method)
    num_features = np.diff(shingles.offsets)
    if num_features.max(initial=0) > 1:
        word = words[int(np.argmax(num_features > 1))]
        raise InputError(
            f"A word must be one feature: got {word!r}, which is several with "
            f"tokens={method.tokens!r} and ngram={method.ngram}. Leave it out, or use the tokens "
            "with which the words were counted."
        )
    return shingles.hashes, num_features > 0


def resolve_idf(method: SimHash) -> IdfTable | None:
    """Return the table that a method names, or None if it names none.

    Raises
    ------
    SettingError
        If frequencies of a corpus are requested: there is no corpus to count.
    """
    if method.weights != "tfidf" or method.idf == "lines":
        return None
    if method.idf == "corpus":
        raise SettingError(
            "weights='tfidf' takes document frequencies from a corpus, which single texts do not "
            "have: got idf='corpus'. Pass a table as idf (--idf TABLE, made by neardup "
            "document-frequencies), or idf='lines' to count lines of the text itself."
        )
    table = method.idf if isinstance(method.idf, IdfTable) else IdfTable.open(str(method.idf))
    table.require(method)
    return table
