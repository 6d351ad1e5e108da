"""Documents on their way into an index, or asked of it, and the columns in which a store keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import arrow_of
from neardup.errors import StoreError
from neardup.features.binary import binary_rows, flat_numbers, lists_of
from neardup.features.described import Features, Keys, Lists
from neardup.methods.base import Described, Method
from neardup.verify.similarity import sort_sets

FINGERPRINTS, FEATURES, TEXT = "fingerprints", "features", "text"
_SKETCHED = ("content", "featured", "sketch")
DESCRIBED_COLUMNS = {FINGERPRINTS: _SKETCHED, FEATURES: (*_SKETCHED, "features", "tags"), TEXT: (*_SKETCHED, "text")}
"""The columns that documents are compared by, for each choice of storage."""
KEY_COLUMNS = (*_SKETCHED, "features", "tags")
"""The columns that have the keys by which documents are found."""
_CODEC = "zstd"
_LENGTH_BYTES = 4

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Incoming:
    """A batch of documents.

    ids, texts, payloads : large_string arrays of shape (num_documents,); payloads may have nulls. described : their
    features and keys. sketch : what the method stores of each, (num_documents, width).
    """

    ids: pa.Array
    texts: pa.Array
    payloads: pa.Array
    described: Described
    sketch: npt.NDArray[Any]

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.texts)

    @property
    def content(self) -> npt.NDArray[np.uint64]:
        """The hash of each content, uint64 (num_documents, 2)."""
        return self.described.features.content

    @property
    def featured(self) -> npt.NDArray[np.bool_]:
        """Whether each document has features."""
        return self.described.keys.featured

    def numbered(self, first: int) -> Incoming:
        """Return the documents with ids made of the numbers of their rows, of which `first` is the first."""
        ids = pa.array([f"#{first + position}" for position in range(len(self))], pa.large_string())
        return replace(self, ids=ids)

    def take(self, rows: Rows) -> Incoming:
        """Return some of the documents."""
        if len(rows) == len(self) and bool((rows == np.arange(len(self))).all()):
            return self
        chosen = arrow_of(rows)
        ids, texts, payloads = (column.take(chosen) for column in (self.ids, self.texts, self.payloads))
        return Incoming(ids, texts, payloads, self.described.take(rows), self.sketch[rows])


def describe(method: Method, texts: pa.Array, ids: pa.Array, payloads: pa.Array) -> Incoming:
    """Return documents with their features and keys."""
    features = method.describe(texts)
    sketch = method.sketch(features)
    return Incoming(ids, texts, payloads, Described(features, method.keys_of(sketch, features)), sketch)


def stored_columns(incoming: Incoming, storage: str, kept: npt.NDArray[np.bool_]) -> dict[str, pa.Array]:
    """Return the columns of documents that depend on their text alone: content, sketch, features, structure, text.

    Parameters
    ----------
    storage : FINGERPRINTS, FEATURES or TEXT.
    kept : bool (num_documents,); features and texts of the others are never compared, and are not stored. Where samples
        of features find documents, the features of all are stored.
    """
    features, none = incoming.described.features, pa.nulls(len(incoming), pa.large_binary())
    columns = {
        "content": fixed_binary(features.content),
        "featured": arrow_of(incoming.featured),
        "sketch": binary_rows(incoming.sketch),
        "features": none,
        "tags": none,
        "text": none,
    }
    by_samples = incoming.described.keys.samples is not None
    if storage == FEATURES or by_samples:
        wanted = np.ones_like(kept) if by_samples else kept
        columns["features"] = _binary_lists(features.sets, wanted)
        if features.structure is not None:
            columns["tags"] = _binary_lists(features.structure, wanted)
    if storage == TEXT:
        columns["text"] = compress(incoming.texts, kept)
    return columns


def stored_described(table: pa.Table, method: Method) -> Described:
    """Return stored documents as input of `Method.measure`; their keys are their sketches.

    table : with DESCRIBED_COLUMNS of the storage.
    """
    features, sketch, featured = _stored_features(table, method)
    return Described(features, Keys(sketch, features.content, featured))


def stored_keys(table: pa.Table, method: Method) -> Keys:
    """Return the keys by which stored documents, with KEY_COLUMNS, are found."""
    features, sketch, featured = _stored_features(table, method)
    return method.keys_of(sketch, features)._replace(featured=featured)


def stored_sketches(table: pa.Table, method: Method) -> npt.NDArray[Any]:
    """Return the column `sketch` as numbers: signatures, or the words of fingerprints."""
    sketch = flat_numbers(_array(table["sketch"]), method.sketch_type)
    return sketch.reshape(len(table), -1) if len(sketch) else sketch.reshape(len(table), 0)


def _stored_features(table: pa.Table, method: Method) -> tuple[Features, npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the features of stored documents, what the method stored of each, and whether they have features."""
    featured = np.asarray(_array(table["featured"]).to_numpy(zero_copy_only=False), np.bool_)
    sketch, content = stored_sketches(table, method), contents_of(table["content"])
    if "text" in table.column_names:
        texts = pa.array(decompress(table["text"].to_pylist()), pa.large_string())
        return method.describe(texts), sketch, featured
    if "features" not in table.column_names:
        return Features(content, Lists(np.empty(0, np.uint64), np.zeros(len(content) + 1, np.int64))), sketch, featured
    tags = _array(table["tags"])
    structure = lists_of(tags) if tags.null_count < len(tags) else None
    return Features(content, lists_of(_array(table["features"])), structure), sketch, featured


def fixed_binary(content: npt.NDArray[np.uint64]) -> pa.Array:
    """Return hashes of 128 bits, uint64 (n, 2), as binary(16)."""
    data = np.ascontiguousarray(content, "<u8")
    return pa.Array.from_buffers(pa.binary(16), len(data), [None, pa.py_buffer(data)])


def contents_of(column: pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    """Return a column of binary(16) as uint64 (n, 2)."""
    return flat_numbers(_array(column), np.uint64).reshape(-1, 2)


def compress(texts: pa.Array, wanted: npt.NDArray[np.bool_]) -> pa.Array:
    """Return texts compressed with zstd, each after its length in four bytes; null where not wanted."""
    codec, rows = pa.Codec(_CODEC), []
    for text, is_wanted in zip(texts.to_pylist(), wanted.tolist(), strict=True):
        data = (text or "").encode()
        rows.append(
            len(data).to_bytes(_LENGTH_BYTES, "little") + codec.compress(data, asbytes=True) if is_wanted else None
        )
    return pa.array(rows, pa.large_binary())


def decompress(rows: Sequence[bytes | None]) -> list[str | None]:
    """Return the texts that `compress` compressed.

    Raises
    ------
    StoreError
        If one is damaged.
    """
    codec = pa.Codec(_CODEC)
    try:
        return [None if row is None else _decompress(codec, row) for row in rows]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise StoreError(f"A stored text is damaged: {error}. Restore the index from a backup.") from error


def _decompress(codec: pa.Codec, row: bytes) -> str:
    length = int.from_bytes(row[:_LENGTH_BYTES], "little")
    return bytes(codec.decompress(row[_LENGTH_BYTES:], length, asbytes=True)).decode()


def _binary_lists(lists: Lists, wanted: npt.NDArray[np.bool_]) -> pa.Array:
    """Return the distinct hashes of each wanted list, rising; null for the others."""
    sets = sort_sets(lists)
    sizes = np.where(wanted, sets.sizes, 0).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    rows = np.repeat(sets.starts - offsets[:-1], sizes) + np.arange(offsets[-1])
    data = np.ascontiguousarray(sets.hashes[rows], "<u8")
    valid = np.packbits(wanted, bitorder="little")
    buffers = [pa.py_buffer(valid), pa.py_buffer(offsets * 8), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), len(wanted), buffers)


def _array(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
