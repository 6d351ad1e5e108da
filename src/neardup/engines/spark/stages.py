"""The functions that run in workers: Arrow in, Arrow out. Each hands over to the stages of the method."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark import Broadcast

from neardup.arrays import arrow_of, flatten_strings
from neardup.candidates.blocks import Radius, cut_blocks
from neardup.candidates.hamming_join import join_block
from neardup.candidates.samples import Samples, needed_by_size
from neardup.candidates.sorted_members import Members, pair_members
from neardup.engines.spark.source import PART_SHIFT, Read, Texts
from neardup.features.described import Features, Keys, Lists
from neardup.features.idf import IdfTable
from neardup.features.shingles import Workspace, shingle_documents
from neardup.features.weights import distinct_features
from neardup.methods.base import Described, Method
from neardup.settings.shingling import Shingling
from neardup.verify.similarity import Rule, can_reach

LIGHT = (
    "against boolean, id string, row long, value double, bytes long, content long, content2 long, size int, "
    "distinct int, keys binary, rejected string"
)
"""A document without its text and features, besides its key: `size` and `distinct` count its features; `content` is the
hash of all of them, `keys` the keys of the method's search."""
HEAVY = "position long, last long, content long, content2 long, keys binary, features binary, structure binary"
"""What pairs are measured by."""
QUERY = "key long, position long, last long, size int, needed int"
"""A member of a bucket, for each copy up to the position `last`. needed : the common buckets that make a pair a
candidate; 0 if the document is listed only."""
PAIR = "left long, right long, needed int"
"""A pair of a bucket, see candidates/sorted_members.py."""
BLOCK = "block int, bits long, leader long, keys binary"
"""A fingerprint, for each block in which it may first agree with another."""
NEAR = "left long, right long"
"""Fingerprints within the distance, each pair in both orders; each is known by the first document that has it."""
SPARK_TYPES = {pa.int64(): "long", pa.int32(): "int", pa.float64(): "double", pa.bool_(): "boolean"}
Batches = Iterable[pa.RecordBatch]
_KEYS_AT_ONCE = 1 << 20
_PAIRS_AT_ONCE = 1 << 18


def describe_light(batches: Batches, read: Read, method: Broadcast[Method]) -> Iterator[pa.RecordBatch]:
    """Describe documents; return their hashes of content and keys."""
    workspace = Workspace()
    for texts in read(batches):
        features = method.value.describe(texts.text, workspace)
        keys = method.value.summarise(features)
        distinct = distinct_features(*features.sets)
        lengths = np.diff(flatten_strings(texts.text.cast(pa.large_string()))[1])
        content = features.content.view(np.int64)
        columns = [
            texts.document, texts.against, texts.id, texts.row, texts.value, arrow_of(lengths),
            arrow_of(content[:, 0]), arrow_of(content[:, 1]), arrow_of(features.sets.sizes.astype(np.int32)),
            arrow_of(np.diff(distinct.offsets).astype(np.int32)), _rows_of_words(keys.values),
            pa.nulls(len(texts.text), pa.string()),
        ]  # fmt: skip
        yield _batch(columns, "document long, " + LIGHT)
        if texts.rejected:
            yield _rejected_rows(texts)


def _rejected_rows(texts: Texts) -> pa.RecordBatch:
    parts, lines = zip(*texts.rejected, strict=True)
    count = len(lines)
    types = (pa.bool_(), pa.string(), pa.int64(), pa.float64(), *[pa.int64()] * 3, *[pa.int32()] * 2, pa.binary())
    document = arrow_of(np.array(parts, np.int64) << PART_SHIFT)
    columns = [document, *(pa.nulls(count, dtype) for dtype in types), pa.array(lines, pa.string())]
    return _batch(columns, "document long, " + LIGHT)


def describe_heavy(batches: Batches, read: Read, method: Broadcast[Method]) -> Iterator[pa.RecordBatch]:
    """Describe documents; return their distinct features."""
    workspace = Workspace()
    for texts in read(batches):
        features = method.value.describe(texts.text, workspace)
        keys = np.empty((len(features.content), 0), np.uint64)
        if isinstance(method.value.search, Radius):
            keys = method.value.summarise(features).values
        content = features.content.view(np.int64)
        assert texts.position is not None  # chosen by position
        assert texts.last is not None
        yield _batch(
            [
                texts.position, texts.last, arrow_of(content[:, 0]), arrow_of(content[:, 1]), _rows_of_words(keys),
                _binary_of(_distinct(features.sets)),
                pa.nulls(len(content), pa.binary()) if features.structure is None
                else _binary_of(_distinct(features.structure)),
            ],
            HEAVY,
        )  # fmt: skip


def read_text(batches: Batches, read: Read) -> Iterator[pa.RecordBatch]:
    """Return the texts of documents."""
    for texts in read(batches):
        yield pa.RecordBatch.from_arrays([texts.document, texts.text.cast(pa.string())], ["document", "text"])


def sign_documents(batches: Batches, read: Read, method: Broadcast[Method]) -> Iterator[pa.RecordBatch]:
    """Return the sketches of documents."""
    workspace = Workspace()
    for texts in read(batches):
        sketch = method.value.sketch(method.value.describe(texts.text, workspace))
        count, width = sketch.shape
        values = arrow_of(sketch.astype(np.uint64).view(np.int64).reshape(-1))
        offsets = arrow_of(np.arange(count + 1, dtype=np.int32) * width)
        yield pa.RecordBatch.from_arrays([texts.document, pa.ListArray.from_arrays(offsets, values)], ["id", "values"])


def count_documents(batches: Batches, read: Read, counted: Broadcast[Shingling]) -> Iterator[pa.RecordBatch]:
    """Return each distinct feature of each document; and 0, which is no hash, for the document itself."""
    for texts in read(batches):
        shingles = shingle_documents(texts.text, counted.value)
        hashes = distinct_features(shingles.hashes, shingles.offsets).hashes
        found, counts = np.unique(hashes, return_counts=True)
        found, counts = np.append(found, np.uint64(0)), np.append(counts, len(texts.text))
        yield _batch([arrow_of(found.view(np.int64)), arrow_of(counts)], "feature long, documents long")


def idf_table(counts: pa.Table, scheme: dict[str, Any]) -> IdfTable:
    """Return the table of document frequencies from the sums of `count_documents`."""
    feature, documents = (column.to_numpy() for column in counts.columns)
    hashes = feature.astype(np.int64).view(np.uint64)
    order = np.argsort(hashes)
    hashes, documents = hashes[order], documents[order]
    return IdfTable(
        int(documents[hashes == 0].sum()), hashes[hashes != 0], documents[hashes != 0].astype(np.uint32), scheme
    )


def list_bands(batches: Batches, count: int) -> Iterator[pa.RecordBatch]:
    """Return a row for each band of each document. The number of the band is mixed into the key."""
    mix = (np.arange(count, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for batch in batches:
        keys = _words(batch.column("keys"), count) ^ mix
        for band in range(count):
            columns = [batch.column(name) for name in ("position", "last", "distinct")]
            needed = arrow_of(np.ones(len(keys), np.int32))
            yield _batch([arrow_of(keys[:, band].copy().view(np.int64)), *columns, needed], QUERY)


def list_samples(batches: Batches, method: Broadcast[Method]) -> Iterator[pa.RecordBatch]:
    """Return a row for each feature of each document; the sampled ones query."""
    samples, settings = method.value.search, method.value.settings
    assert isinstance(samples, Samples)
    needed = needed_by_size(settings.threshold, settings.recall, samples)
    for batch in batches:
        lists = _lists(batch.column("features"))
        owner = np.repeat(np.arange(len(lists.sizes)), lists.sizes)
        rank = np.arange(len(owner)) - lists.offsets[owner]
        hits = np.where(rank < samples.num_samples, needed[np.minimum(lists.sizes, samples.num_samples)][owner], 0)
        hits[lists.hashes == 0] = 0
        columns = [batch.column(name).take(arrow_of(owner)) for name in ("position", "last")]
        sizes = [lists.sizes[owner].astype(np.int32), hits.astype(np.int32)]
        yield _batch([arrow_of(lists.hashes.view(np.int64)), *columns, *map(arrow_of, sizes)], QUERY)


def pair_sorted(batches: Batches, most: int, rule: Rule | None) -> Iterator[pa.RecordBatch]:
    """Pair the members of buckets. Requires: rows sorted by key and position."""
    members = (Members(*(column.to_numpy() for column in batch.columns)) for batch in batches)
    for pairs in pair_members(members, most, partial(can_reach, rule)):
        columns = (column.astype(dtype, copy=False) for column, dtype in zip(pairs, ("i8", "i8", "i4"), strict=True))
        yield _batch([arrow_of(column) for column in columns], PAIR)


def list_blocks(batches: Batches, radius: Radius, num_blocks: int) -> Iterator[pa.RecordBatch]:
    """Return a row for each block in which a fingerprint may first agree with another, with the bits of the block."""
    blocks = cut_blocks(0, radius.bits, num_blocks)[: radius.max_distance + 1]
    width = -(-radius.bits // 64)
    for batch in batches:
        words = _words(batch.column("keys"), width)
        for number, mask in enumerate(blocks):
            bits = np.zeros(len(words), np.uint64)
            for word in range(width):
                part = np.uint64(mask >> 64 * word & 0xFFFFFFFFFFFFFFFF)
                bits = bits * np.uint64(0x9E3779B97F4A7C15) + (words[:, word] & part)
            block = arrow_of(np.full(len(words), number, np.int32))
            yield _batch([block, arrow_of(bits.view(np.int64)), batch.column("leader"), batch.column("keys")], BLOCK)


def join_blocks(batches: Batches, radius: Radius, num_blocks: int) -> Iterator[pa.RecordBatch]:
    """Return the pairs of fingerprints within the distance. Requires: rows sorted by block and bits."""
    width = -(-radius.bits // 64)
    for rows in _whole_groups(batches, ("block", "bits")):
        blocks = rows.column("block").to_numpy()
        for block in np.unique(blocks).tolist():
            low, high = np.searchsorted(blocks, [block, block + 1])
            first = rows.column("leader").to_numpy()[low:high]
            words = np.ascontiguousarray(_words(rows.column("keys"), width)[low:high])
            for pairs in join_block(words, radius.bits, radius.max_distance, num_blocks, block):
                left, right = first[pairs.left], first[pairs.right]
                yield _batch([arrow_of(np.append(left, right)), arrow_of(np.append(right, left))], NEAR)


def _whole_groups(batches: Batches, keys: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
    """Put sorted batches together and cut them where a group ends, at a million rows or as soon after as possible."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(len(piece) for piece in waiting) < _KEYS_AT_ONCE:
            continue
        rows = _merge(waiting)
        columns = [rows.column(key).to_numpy() for key in keys]
        differs = np.any([column[1:] != column[:-1] for column in columns], axis=0)
        ends = np.flatnonzero(differs) + 1
        if len(ends):
            yield rows.slice(0, ends[-1])
            rows = rows.slice(ends[-1])
        waiting = [rows]
    if waiting:
        yield _merge(waiting)


def measure_cell(heavy: pa.Table, pairs: pa.Table, method: Broadcast[Method], every: bool) -> pa.Table:
    """Measure the pairs of a cell; return those that are duplicates, or all if `every` is true.

    heavy : the documents of all its pairs. pairs : the positions.
    """
    measures = method.value.measures
    rows = _merge(heavy.to_batches())
    position = rows.column("position").to_numpy()
    order = np.argsort(position)
    left, right = (pairs.column(name).to_numpy() for name in ("left", "right"))
    sides = [order[np.searchsorted(position, side, sorter=order)] for side in (left, right)]
    documents = _described(rows)
    found = []
    for start in range(0, len(left), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        measured = method.value.measure(documents, documents, sides[0][part], sides[1][part])
        duplicate = method.value.is_duplicate(measured) | measured.exact | every
        columns = [left[part][duplicate], right[part][duplicate]]
        columns.append(method.value.strength(measured)[duplicate])
        columns += [measured[measure.name][duplicate] for measure in measures]
        found.append(pa.Table.from_arrays([arrow_of(column) for column in columns], duplicate_names(measures)))
    table = pa.concat_tables(found)
    return table.cast(pa.schema(list(zip(table.column_names, duplicate_types(measures), strict=True))))


def duplicate_names(measures: Any) -> list[str]:
    """Return the columns of the table of duplicate pairs."""
    return ["left", "right", "strength", *(measure.name for measure in measures)]


def duplicate_types(measures: Any) -> list[pa.DataType]:
    """Return their types. Spark has no unsigned numbers."""
    types = [pa.int32() if pa.types.is_unsigned_integer(measure.type) else measure.type for measure in measures]
    return [pa.int64(), pa.int64(), pa.float64(), *types]


def _described(rows: pa.RecordBatch) -> Described:
    count = rows.num_rows
    content = np.stack([rows.column(name).to_numpy() for name in ("content", "content2")], axis=1).view(np.uint64)
    sets = _lists(rows.column("features"))
    structure = None if rows.column("structure").null_count else _lists(rows.column("structure"))
    lengths = np.diff(flatten_strings(rows.column("keys"))[1])
    words = _words(rows.column("keys"), int(lengths.max(initial=0)) // 8)
    return Described(Features(content, sets, structure), Keys(words, content, np.ones(count, np.bool_), sets))


def _distinct(lists: Lists) -> Lists:
    found = distinct_features(*lists)
    return Lists(found.hashes, found.offsets)


def _binary_of(lists: Lists) -> pa.Array:
    """Return lists of hashes as a binary column."""
    offsets = (lists.offsets * 8).astype(np.int32)
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(lists.sizes), [None, *map(pa.py_buffer, (offsets, np.ascontiguousarray(lists.hashes)))]
    )


def _rows_of_words(values: npt.NDArray[np.uint64]) -> pa.Array:
    """Return an array of shape (num_rows, width) as a binary column."""
    count, width = values.shape
    return _binary_of(Lists(np.ascontiguousarray(values).reshape(-1), np.arange(count + 1, dtype=np.int64) * width))


def _lists(column: pa.Array) -> Lists:
    data, offsets = flatten_strings(column)
    return Lists(data.copy().view(np.uint64), offsets // 8)  # a copy: kernels are compiled for writable arrays


def _words(column: pa.Array, width: int) -> npt.NDArray[np.uint64]:
    return _lists(column).hashes.reshape(len(column), width)


def _merge(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _batch(columns: list[pa.Array], schema: str) -> pa.RecordBatch:
    """Return columns under the names of a schema in Spark's words."""
    return pa.RecordBatch.from_arrays(columns, [field.split()[0] for field in schema.split(", ")])
