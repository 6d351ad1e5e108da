"""Estimate the size of an index in a folder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from neardup.index import meta
from neardup.index.incoming import FEATURES, FINGERPRINTS, TEXT
from neardup.methods.base import Method
from neardup.settings.index import IndexSettings

# Bytes a document in the files of docs/index-format.md; tests/test_index_plan.py compares them with indexes.
_ENTRY, _STARTS = 8 + 4, 1.07  # a key with its row; the array of starts beside them
_FIXED = 4 + 1 + 16 + 8 + 0.4  # offset of the id, state, content, first_seen, bits
_OFFSET, _HASH = 4, 8
_COMPRESSED = 0.41  # of English text, by zstd
_BYTES_PER_TOKEN = 6.6  # of English text in UTF-8, a word and its separator


@dataclass(frozen=True)
class IndexPlan:
    """The estimate of an index in a folder, after compaction.

    documents : kept ones. storage : fingerprints, features or text. num_tables : of keys, without ids and contents.
    num_blocks : of SimHash, else None. key_bytes, fingerprint_bytes, feature_bytes, text_bytes : of a document on disk;
    fingerprint_bytes also counts its id and times. document_bytes : their sum. disk_bytes : of all documents.
    """

    documents: int
    storage: str
    num_tables: int
    num_blocks: int | None
    key_bytes: float
    fingerprint_bytes: float
    feature_bytes: float
    text_bytes: float

    @property
    def document_bytes(self) -> float:
        return self.key_bytes + self.fingerprint_bytes + self.feature_bytes + self.text_bytes

    @property
    def disk_bytes(self) -> float:
        return self.document_bytes * self.documents


def storages_of(method: Method) -> tuple[str, ...]:
    """Return the storage levels that go with a method."""
    return (FEATURES, TEXT) if method.confirms_sets else (FINGERPRINTS, FEATURES, TEXT)


def make_plan(
    method: Method, storage: str, documents: int, text_bytes: float, id_bytes: float, num_features: float | None
) -> IndexPlan:
    """Return the estimate of an index.

    Parameters
    ----------
    text_bytes, id_bytes : of a document, on average, in UTF-8.
    num_features : the distinct features of a document; None estimates them for English text.
    """
    settings = IndexSettings(storage=storage, expected_documents=min(documents, 2**32 - 1))
    method = meta.fixed(method, settings)
    assert method.lookup is not None
    features = method.describe(pa.array([""], pa.large_string()))
    sketch = method.sketch(features)
    ngram = method.settings.ngram
    count = _distinct(text_bytes / _BYTES_PER_TOKEN, ngram) if num_features is None else num_features
    num_tables = len(method.lookup.layout.prefix_bits)
    by_samples = method.keys_of(sketch, features).samples is not None
    entries = (count if by_samples else num_tables) + 2  # the tables of ids and contents
    return IndexPlan(
        documents=documents,
        storage=storage,
        num_tables=num_tables,
        num_blocks=getattr(method.settings, "num_blocks", None),
        key_bytes=_STARTS * _ENTRY * entries,
        fingerprint_bytes=_FIXED + id_bytes + sketch.itemsize * int(np.prod(sketch.shape[1:])),
        feature_bytes=_OFFSET + _HASH * count if storage == FEATURES or by_samples else 0.0,
        text_bytes=_OFFSET + _COMPRESSED * text_bytes if storage == TEXT else 0.0,
    )


def _distinct(tokens: float, ngram: int) -> float:
    """Return the number of distinct n-grams of an English text: of words by Heaps' law; nearly all longer ones."""
    return min(tokens, 4.0 * tokens**0.62) if ngram == 1 else {2: 0.9}.get(ngram, 1.0) * tokens
