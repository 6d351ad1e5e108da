"""Documents to add to an index or to look up in it, and the columns in which a store keeps them."""

from __future__ import annotations

import base64
import itertools
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.arrays import (
    Array,
    Mask,
    Rows,
    Words,
    arrow_of,
    arrow_of_strings,
    offsets_from_lengths,
    ranges,
)
from neardup.errors import StoreError
from neardup.features.binary import binary_lists, binary_rows
from neardup.features.described import Features, Keys, Lists, distinct_lists
from neardup.features.vectors import texts_of
from neardup.methods.base import Described, Method
from neardup.schemas import indexed_schema
from neardup.stores.base import StoreSettings
from neardup.stores.documents import Binaries, Sketched

FINGERPRINTS = "fingerprints"
FEATURES = "features"
TEXT = "text"
SETS = ("features", "tags")
DETAILS: dict[str, tuple[str, ...]] = {FINGERPRINTS: (), FEATURES: SETS, TEXT: ("text",)}
"""The columns that comparisons read besides `Sketched`, for each choice of storage."""
_BINARY = pa.large_binary()
_CODEC = "zstd"
# A stored text: its length in bytes, little-endian, then its compressed bytes.
_LENGTH_BYTES = 4
_HASH_BYTES = 8


@dataclass(frozen=True)
class Incoming:
    """A batch of documents.

    ids, texts, payloads : large_string arrays of shape (num_documents,); payloads may have nulls.
    described : features and keys. sketch : (num_documents, width), the signature or fingerprint
    that the method stores. sources : large_string, null for documents without a source.
    has_new_ids : whether the index made the ids, so that no stored document can have one of them.
    """

    ids: pa.Array
    texts: pa.Array
    payloads: pa.Array
    described: Described
    sketch: Array
    sources: pa.Array
    has_new_ids: bool = False

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.texts)

    @property
    def content(self) -> Words:
        """The hash of each content, uint64 (num_documents, 2)."""
        return self.described.features.content

    @property
    def featured(self) -> Mask:
        """The documents with features: bool (num_documents,)."""
        return self.described.keys.featured

    def numbered(self, prefix: str, first: int, *, are_new: bool = True) -> Incoming:
        """Return the documents with ids made of a prefix and consecutive numbers from `first`.

        are_new : whether no stored document can have such an id.
        """
        ids = [f"{prefix}{first + position}" for position in range(len(self))]
        return replace(self, ids=arrow_of_strings(ids), has_new_ids=are_new)

    def take(self, rows: Rows) -> Incoming:
        """Return some of the documents."""
        # The usual case: nothing was left out.
        if len(rows) == len(self) and bool((rows == np.arange(len(self))).all()):
            return self
        index = arrow_of(rows)
        return Incoming(
            ids=self.ids.take(index),
            texts=self.texts.take(index),
            payloads=self.payloads.take(index),
            described=self.described.take(rows),
            sketch=self.sketch[rows],
            sources=self.sources.take(index),
            has_new_ids=self.has_new_ids,
        )


def new_prefix() -> str:
    """Return a new prefix of ids for documents without ids: "#", 12 letters and digits, and "-".

    It has 60 random bits, so that no index and no caller uses it again: documents may move to
    another index, and a copy, an import or a caller may bring ids that another index made.
    """
    # 60 bits in 12 letters: two openings of an index do not get the same prefix.
    return f"#{base64.b32encode(secrets.token_bytes(8))[:12].decode().lower()}-"


def describe(
    method: Method,
    texts: pa.Array,
    ids: pa.Array,
    payloads: pa.Array,
    sources: pa.Array | None = None,
) -> Incoming:
    """Return documents with their features and keys. sources : None if no document has one."""
    features = method.describe(texts)
    sketch = method.sketch(features)
    return Incoming(
        ids=ids,
        texts=texts,
        payloads=payloads,
        described=Described(features, method.keys_of(sketch, features)),
        sketch=sketch,
        sources=pa.nulls(len(ids), "large_string") if sources is None else sources,
    )


def store_settings(
    meta: Mapping[str, Any],
    method: Method,
    attachments: Mapping[str, bytes] | None = None,
    *,
    tracks_sources: bool = False,
) -> StoreSettings:
    """Return the settings of a store of documents that a method compares."""
    layout = method.lookup.layout
    if tracks_sources:  # in a further table, of equal keys
        layout = layout._replace(prefix_bits=(*layout.prefix_bits, 64))
    schema = indexed_schema(method.measures, tracks_sources=tracks_sources)
    return StoreSettings(meta, layout, schema, attachments or {})


def stored_columns(
    incoming: Incoming, method: Method, storage: str, kept: Mask
) -> dict[str, pa.Array]:
    """Return the columns that depend on the text alone: content, sketch, features, tags, text.

    Parameters
    ----------
    storage : FINGERPRINTS, FEATURES or TEXT.
    kept : bool (num_documents,). Features and texts of removed documents are never compared, and
        are not stored; but if samples of features find documents, the features of all are stored.
    """
    features = incoming.described.features
    none = pa.nulls(len(incoming), _BINARY)
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
        # Keys by samples are made from the stored features, also the keys of removed documents.
        wanted = np.ones_like(kept) if by_samples else kept
        columns["features"] = _binary_lists(method.compact(features.sets), wanted)
        if features.structure is not None:
            columns["tags"] = _binary_lists(distinct_lists(features.structure), wanted)
    if storage == TEXT:
        columns["text"] = compress(texts_of(incoming.texts), kept)
    return columns


def replace_column(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    """Return a table of stored documents with other values of a column."""
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), values)


def stored_described(sketched: Sketched, method: Method) -> Described:
    """Return stored documents as input of `Method.measure`; their keys are their sketches.

    Requires: `sketched` has the DETAILS of the storage.
    """
    features = _stored_features(sketched, method)
    sketches = stored_sketches(sketched, method)
    return Described(features, Keys(sketches, features.content, sketched.featured))


def stored_keys(sketched: Sketched, method: Method) -> Keys:
    """Return the keys by which stored documents are found. Requires: `sketched` has SETS."""
    features = _stored_features(sketched, method)
    keys = method.keys_of(stored_sketches(sketched, method), features)
    return keys._replace(featured=sketched.featured)


def stored_sketches(sketched: Sketched, method: Method) -> Array:
    """Return sketches as numbers: signatures, or the words of fingerprints."""
    kind = np.dtype(method.sketches.dtype)
    # Stored numbers are little-endian on every machine.
    return sketched.sketch.view(kind.newbyteorder("<")).astype(kind, copy=False)


def _stored_features(sketched: Sketched, method: Method) -> Features:
    content = sketched.content
    details = sketched.details
    if "text" in details:
        texts = decompress(_rows_of(details["text"]))
        return method.describe(pa.array(texts, "large_string"))
    if "features" not in details:
        no_hashes = np.empty(0, np.uint64)
        return Features(content, Lists(no_hashes, np.zeros(len(content) + 1, np.int64)))
    structure = _lists_of(details["tags"]) if "tags" in details else None
    return Features(content, _lists_of(details["features"]), structure)


def _lists_of(binaries: Binaries) -> Lists:
    hashes = binaries.data.view("<u8").astype(np.uint64, copy=False)
    return Lists(hashes, binaries.offsets // _HASH_BYTES)


def _rows_of(binaries: Binaries) -> list[bytes | None]:
    """Return bytes row by row, None for an empty row."""
    data = binaries.data.tobytes()
    offsets = binaries.offsets.tolist()
    return [data[start:stop] or None for start, stop in itertools.pairwise(offsets)]


def fixed_binary(content: Words) -> pa.Array:
    """Return hashes of 128 bits, uint64 (n, 2), as binary(16)."""
    data = np.ascontiguousarray(content, "<u8")
    return pa.Array.from_buffers(pa.binary(16), len(data), [None, pa.py_buffer(data)])


def compress(texts: pa.Array, wanted: Mask) -> pa.Array:
    """Return texts compressed with zstd, each after its length in four bytes.

    A text that is not wanted is null.
    """
    codec = pa.Codec(_CODEC)
    rows: list[bytes | None] = []
    for text, is_wanted in zip(texts.to_pylist(), wanted.tolist(), strict=True):
        if not is_wanted:
            rows.append(None)
            continue
        data = (text or "").encode()
        length = len(data).to_bytes(_LENGTH_BYTES, "little")
        rows.append(length + codec.compress(data, asbytes=True))
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
    # Arrow needs the size before it decompresses.
    return bytes(codec.decompress(row[_LENGTH_BYTES:], length, asbytes=True)).decode()


def _binary_lists(lists: Lists, wanted: Mask) -> pa.Array:
    """Return the bytes of each wanted list, large_binary; null for the others."""
    if wanted.all():
        return binary_lists(lists)
    sizes = np.where(wanted, lists.sizes, 0)
    hashes = lists.hashes[ranges(lists.offsets[:-1], sizes)]
    buffers = [
        # The bitmap of valid rows, as Arrow has it: the lowest bit is the first row.
        np.packbits(wanted, bitorder="little"),
        offsets_from_lengths(sizes) * _HASH_BYTES,
        np.ascontiguousarray(hashes, "<u8"),
    ]
    return pa.Array.from_buffers(pa.large_binary(), len(wanted), list(map(pa.py_buffer, buffers)))
