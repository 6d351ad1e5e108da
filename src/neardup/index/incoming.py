"""Documents on their way into an index, or asked of it, and the columns in which a store keeps
them.
"""

from __future__ import annotations

import base64
import itertools
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.arrays import Array, Mask, Rows, Words, arrow_of, offsets_from_lengths, ranges
from neardup.errors import StoreError
from neardup.features.binary import binary_rows
from neardup.features.described import Features, Keys, Lists, distinct_lists
from neardup.features.vectors import texts_of
from neardup.methods.base import Described, Method
from neardup.schemas import indexed_schema
from neardup.stores.base import StoreSettings
from neardup.stores.documents import Binaries, Sketched

FINGERPRINTS, FEATURES, TEXT = "fingerprints", "features", "text"
SETS = ("features", "tags")
DETAILS: dict[str, tuple[str, ...]] = {FINGERPRINTS: (), FEATURES: SETS, TEXT: ("text",)}
"""The columns that documents are compared by besides `Sketched`, for each choice of storage."""
_CODEC = "zstd"
_LENGTH_BYTES, _HASH_BYTES = 4, 8


@dataclass(frozen=True)
class Incoming:
    """A batch of documents.

    ids, texts, payloads : large_string arrays of shape (num_documents,); payloads may have nulls.
    described : their features and keys. sketch : what the method stores of each, (num_documents,
    width).
    """

    ids: pa.Array
    texts: pa.Array
    payloads: pa.Array
    described: Described
    sketch: Array

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.texts)

    @property
    def content(self) -> Words:
        """The hash of each content, uint64 (num_documents, 2)."""
        return self.described.features.content

    @property
    def featured(self) -> Mask:
        """Whether each document has features."""
        return self.described.keys.featured

    def numbered(self, prefix: str, first: int) -> Incoming:
        """Return the documents with ids made of a prefix and numbers, of which `first` is the
        first.
        """
        ids = pa.array(
            [f"{prefix}{first + position}" for position in range(len(self))], "large_string"
        )
        return replace(self, ids=ids)

    def take(self, rows: Rows) -> Incoming:
        """Return some of the documents."""
        if len(rows) == len(self) and bool((rows == np.arange(len(self))).all()):
            return self
        chosen = arrow_of(rows)
        ids, texts, payloads = (
            column.take(chosen) for column in (self.ids, self.texts, self.payloads)
        )
        return Incoming(ids, texts, payloads, self.described.take(rows), self.sketch[rows])


def new_prefix() -> str:
    """Return the beginning of ids for documents that have none: "#", 12 random letters and digits,
    and "-".

    It has 60 random bits, so that no index and no caller uses it again: documents may move to any
    other index. Nothing else distinguishes an id that a copy, an import or a caller brings from one
    that this index gave.
    """
    return f"#{base64.b32encode(secrets.token_bytes(8))[:12].decode().lower()}-"


def describe(method: Method, texts: pa.Array, ids: pa.Array, payloads: pa.Array) -> Incoming:
    """Return documents with their features and keys."""
    features = method.describe(texts)
    sketch = method.sketch(features)
    return Incoming(
        ids, texts, payloads, Described(features, method.keys_of(sketch, features)), sketch
    )


def store_settings(
    meta: Mapping[str, Any], method: Method, attachments: Mapping[str, bytes] | None = None
) -> StoreSettings:
    """Return the settings of a store of documents that a method compares."""
    return StoreSettings(
        meta, method.lookup.layout, indexed_schema(method.measures), attachments or {}
    )


def stored_columns(
    incoming: Incoming, method: Method, storage: str, kept: Mask
) -> dict[str, pa.Array]:
    """Return the columns of documents that depend on their text alone: content, sketch, features,
    structure, text.

    Parameters
    ----------
    storage : FINGERPRINTS, FEATURES or TEXT.
    kept : bool (num_documents,); features and texts of the others are never compared, and are not
        stored. Where samples of features find documents, the features of all are stored.
    """
    features, none = incoming.described.features, pa.nulls(len(incoming), "large_binary")
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
        columns["features"] = _binary_lists(method.compact(features.sets), wanted)
        if features.structure is not None:
            columns["tags"] = _binary_lists(distinct_lists(features.structure), wanted)
    if storage == TEXT:
        columns["text"] = compress(texts_of(incoming.texts), kept)
    return columns


def stored_described(sketched: Sketched, method: Method) -> Described:
    """Return stored documents as input of `Method.measure`; their keys are their sketches.

    sketched : with the DETAILS of the storage.
    """
    features = _stored_features(sketched, method)
    return Described(
        features, Keys(stored_sketches(sketched, method), features.content, sketched.featured)
    )


def stored_keys(sketched: Sketched, method: Method) -> Keys:
    """Return the keys by which stored documents are found. sketched : with SETS."""
    features = _stored_features(sketched, method)
    return method.keys_of(stored_sketches(sketched, method), features)._replace(
        featured=sketched.featured
    )


def stored_sketches(sketched: Sketched, method: Method) -> Array:
    """Return sketches as numbers: signatures, or the words of fingerprints."""
    kind = np.dtype(method.sketches.dtype)
    return sketched.sketch.view(kind.newbyteorder("<")).astype(kind, copy=False)


def _stored_features(sketched: Sketched, method: Method) -> Features:
    content, details = sketched.content, sketched.details
    if "text" in details:
        return method.describe(pa.array(decompress(_rows_of(details["text"])), "large_string"))
    if "features" not in details:
        return Features(
            content, Lists(np.empty(0, np.uint64), np.zeros(len(content) + 1, np.int64))
        )
    return Features(
        content,
        _lists_of(details["features"]),
        _lists_of(details["tags"]) if "tags" in details else None,
    )


def _lists_of(binaries: Binaries) -> Lists:
    return Lists(
        binaries.data.view("<u8").astype(np.uint64, copy=False), binaries.offsets // _HASH_BYTES
    )


def _rows_of(binaries: Binaries) -> list[bytes | None]:
    """Return bytes row by row, None for none."""
    data, ends = binaries.data.tobytes(), binaries.offsets.tolist()
    return [data[begin:end] or None for begin, end in itertools.pairwise(ends)]


def fixed_binary(content: Words) -> pa.Array:
    """Return hashes of 128 bits, uint64 (n, 2), as binary(16)."""
    data = np.ascontiguousarray(content, "<u8")
    return pa.Array.from_buffers(pa.binary(16), len(data), [None, pa.py_buffer(data)])


def compress(texts: pa.Array, wanted: Mask) -> pa.Array:
    """Return texts compressed with zstd, each after its length in four bytes; null where not
    wanted.
    """
    codec, rows = pa.Codec(_CODEC), []
    for text, is_wanted in zip(texts.to_pylist(), wanted.tolist(), strict=True):
        data = (text or "").encode()
        head = len(data).to_bytes(_LENGTH_BYTES, "little")
        rows.append(head + codec.compress(data, asbytes=True) if is_wanted else None)
    return pa.array(rows, "large_binary")


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
    except (pa.ArrowException, OSError, ValueError) as error:
        raise StoreError(
            f"A stored text is damaged: {error}. Restore the index from a backup."
        ) from error


def _decompress(codec: pa.Codec, row: bytes) -> str:
    length = int.from_bytes(row[:_LENGTH_BYTES], "little")
    return bytes(codec.decompress(row[_LENGTH_BYTES:], length, asbytes=True)).decode()


def _binary_lists(lists: Lists, wanted: Mask) -> pa.Array:
    """Return each wanted list; null for the others."""
    sizes = np.where(wanted, lists.sizes, 0)
    data = np.ascontiguousarray(lists.hashes[ranges(lists.offsets[:-1], sizes)], "<u8")
    buffers = [np.packbits(wanted, bitorder="little"), offsets_from_lengths(sizes) * 8, data]
    return pa.Array.from_buffers(pa.large_binary(), len(wanted), list(map(pa.py_buffer, buffers)))
