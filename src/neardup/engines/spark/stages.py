"""The functions that run in workers: Arrow in, Arrow out. Each hands over to the stages of the method."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import Accumulator, Broadcast

from neardup.arrays import arrow_of, flatten_strings
from neardup.candidates.block_levels import to_words
from neardup.candidates.blocks import Radius, cut_blocks
from neardup.candidates.hamming_join import join_block
from neardup.candidates.sorted_members import Members, pair_members
from neardup.engines.spark.source import Batches, Read
from neardup.features.binary import binary_lists, binary_rows, lists_of, rows_of
from neardup.features.described import Features, Keys
from neardup.features.shingles import Workspace, shingle_documents
from neardup.features.weights import distinct_features, distinct_lists
from neardup.methods.base import Described, Method
from neardup.progress import compile_seconds
from neardup.schemas import SIMILARITY, Measures
from neardup.settings.shingling import Shingling
from neardup.verify.similarity import Rule, can_reach

DOCUMENT_KEYS = (
    "against boolean, id string, row long, value double, rejected string, bytes long, content binary, size int, "
    "distinct int, keys binary"
)
"""A document without its text and features, besides its key: `size` and `distinct` count its features; `content` is the
hash of all of them, `keys` the keys of the method's search."""
DOCUMENT_FEATURES = (
    "position long, last long, distinct int, content binary, keys binary, features binary, structure binary"
)
"""What pairs are measured by."""
BUCKET_MEMBERS = "bucket long, position long, last long, size int, needed int"
"""A member of a bucket, for each copy up to the position `last`. needed : the common buckets that make a pair a
candidate; 0 if the document is listed only."""
PAIR = "left long, right long, needed int"
"""A pair of a bucket, see candidates/sorted_members.py."""
BLOCK, NEAR_PAIRS = "block int, bits binary, leader long, keys binary", "left long, right long"
"""A fingerprint, for each block in which it may first agree with another; and the pairs within the distance, in both
orders. It is known by the first document that has it."""
_TYPES = {
    "long": pa.int64(), "int": pa.int32(), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string(),
    "binary": pa.binary(),
}  # fmt: skip
_MIX = np.uint64(0x9E3779B97F4A7C15)
_PAIRS_AT_ONCE = 1 << 18


def duplicate_schema(measures: Measures) -> str:
    """Return the schema of duplicate pairs. expected : the similarity by which the chance to be proposed is known."""
    words = {kind: word for word, kind in _TYPES.items()}  # Spark has no unsigned numbers: int
    columns = (f"{measure.name} {words.get(measure.type, 'int')}" for measure in measures)
    return ", ".join(["left long", "right long", "strength double", "expected double", *columns])


@contextmanager
def timing(seconds: Accumulator[float]) -> Iterator[None]:
    """Add the time in which a worker compiles kernels."""
    before = compile_seconds()
    try:
        yield
    finally:
        seconds.add(compile_seconds() - before)


def timed(batches: Batches, function: Read, seconds: Accumulator[float]) -> Iterator[pa.RecordBatch]:
    """Run a function of this module on batches."""
    with timing(seconds):
        yield from function(batches)


def describe_light(batches: Batches, read: Read, method: Broadcast[Method], schema: str) -> Iterator[pa.RecordBatch]:
    """Describe documents; return their hashes of content and keys."""
    workspace = Workspace()
    for texts in read(batches):
        features = method.value.describe(texts["text"], workspace)
        keys = method.value.summarise(features)
        yield batch_of(
            schema, *(texts[name] for name in ("document", "against", "id", "row", "value", "rejected")),
            np.diff(flatten_strings(texts["text"])[1]), binary_rows(features.content), features.sets.sizes,
            distinct_lists(features.sets).sizes, binary_rows(keys.values),
        )  # fmt: skip


def describe_heavy(batches: Batches, read: Read, method: Broadcast[Method]) -> Iterator[pa.RecordBatch]:
    """Describe documents; return their distinct features."""
    workspace = Workspace()
    for texts in read(batches):
        features = method.value.describe(texts["text"], workspace)
        keys = method.value.summarise(features) if isinstance(method.value.search, Radius) else None
        sets, none = distinct_lists(features.sets), pa.nulls(len(texts), pa.binary())
        yield batch_of(
            DOCUMENT_FEATURES, texts["position"], texts["last"], sets.sizes, binary_rows(features.content),
            none if keys is None else binary_rows(keys.values), binary_lists(sets),
            none if features.structure is None else binary_lists(distinct_lists(features.structure)),
        )  # fmt: skip


def count_documents(batches: Batches, read: Read, counted: Shingling) -> Iterator[pa.RecordBatch]:
    """Return how many documents hold each feature; under 0, which is no hash, how many documents there are."""
    for texts in read(batches):
        shingles = shingle_documents(texts["text"], counted)
        found, counts = np.unique(distinct_features(shingles.hashes, shingles.offsets).hashes, return_counts=True)
        found, counts = np.append(found, np.uint64(0)), np.append(counts, texts["rejected"].null_count)
        yield batch_of("feature long, documents long", found.view(np.int64), counts)


def list_members(batches: Batches, method: Broadcast[Method]) -> Iterator[pa.RecordBatch]:
    """Return a row for each bucket of each document: of each band, or each feature, of which the sampled ones query."""
    lookup = method.value.lookup
    assert lookup is not None
    for batch in batches:
        keys = _keys(batch)
        entries, sizes = lookup.entries(keys), np.bincount(lookup.probes(keys).document, minlength=len(batch))
        # The number of the table is mixed into the key.
        bucket = entries.key ^ (entries.table.astype(np.uint64) + np.uint64(1)) * _MIX
        rank = np.arange(len(bucket)) - np.searchsorted(entries.document, entries.document)
        needed = np.array(lookup.needed)[np.minimum(sizes, len(lookup.needed) - 1)]
        rows = arrow_of(entries.document)
        queries = np.where(rank < sizes[entries.document], needed[entries.document], 0)
        columns = (batch[name].take(rows) for name in ("position", "last", "distinct"))
        yield batch_of(BUCKET_MEMBERS, bucket.view(np.int64), *columns, queries)


def pair_sorted(batches: Batches, most: int, rule: Rule | None) -> Iterator[pa.RecordBatch]:
    """Pair the members of buckets. Requires: rows sorted by bucket and position."""
    members = (Members(*(column.to_numpy() for column in batch.columns)) for batch in batches)
    for pairs in pair_members(members, most, partial(can_reach, rule)):
        yield batch_of(PAIR, *pairs)


def list_blocks(batches: Batches, radius: Radius, num_blocks: int) -> Iterator[pa.RecordBatch]:
    """Return a row for each block in which a fingerprint may first agree with another."""
    blocks = cut_blocks(0, radius.bits, num_blocks)[: radius.max_distance + 1]
    for batch in batches:
        words = rows_of(batch["keys"])
        for block, mask in enumerate(blocks):
            bits = binary_rows(words & np.array(to_words(mask, radius.bits), np.uint64))
            yield batch_of(BLOCK, np.full(len(words), block), bits, batch["leader"], batch["keys"])


def join_blocks(key: tuple[Any, ...], rows: pa.Table, radius: Radius, num_blocks: int) -> pa.Table:
    """Return the pairs of fingerprints within the distance, of those that may first agree in the block key[0]."""
    first, words = rows["leader"].to_numpy(), rows_of(rows["keys"].combine_chunks())
    near = [
        batch_of(NEAR_PAIRS, np.append(first[left], first[right]), np.append(first[right], first[left]))
        for left, right, _ in join_block(words, radius.bits, radius.max_distance, num_blocks, key[0].as_py())
    ]
    return pa.Table.from_batches(near, pa.schema([("left", pa.int64()), ("right", pa.int64())]))


def measure_cell(heavy: pa.Table, pairs: pa.Table, method: Broadcast[Method], every: bool) -> pa.Table:
    """Measure the pairs of a cell; return those that are duplicates, or all if `every` is true.

    heavy : the documents of all its pairs. pairs : the positions.
    """
    chosen = method.value
    rows = heavy.combine_chunks().to_batches()[0]
    keys, sets = _keys(rows), lists_of(rows["features"])
    structure = None if rows["structure"].null_count else lists_of(rows["structure"])
    documents = Described(Features(keys.content, sets, structure), keys)
    position = rows["position"].to_numpy()
    order = np.argsort(position)
    found = []
    for start in range(0, len(pairs), _PAIRS_AT_ONCE):
        ends = [pairs[name][start : start + _PAIRS_AT_ONCE].to_numpy() for name in ("left", "right")]
        left, right = (order[np.searchsorted(position, end, sorter=order)] for end in ends)
        measured = chosen.measure(documents, documents, left, right)
        similarity = measured.columns.get(SIMILARITY.name, np.zeros(len(left)))
        sizes = (sets.sizes[end].astype(np.float64) for end in (left, right))
        columns = [
            *ends, chosen.strength(measured), chosen.proposed_similarity(similarity, *sizes),
            *(measured[measure.name] for measure in chosen.measures),
        ]  # fmt: skip
        wanted = arrow_of(chosen.is_duplicate(measured) | measured.exact | every)
        found.append(batch_of(duplicate_schema(chosen.measures), *columns).filter(wanted))
    return pa.Table.from_batches(found)


def _keys(rows: pa.RecordBatch) -> Keys:
    """Return the keys of documents; and their sets, if they are among the columns."""
    sets = lists_of(rows["features"]) if "features" in rows.schema.names else None
    return Keys(rows_of(rows["keys"]), rows_of(rows["content"]), np.ones(len(rows), np.bool_), sets)


def batch_of(schema: str, *columns: Any) -> pa.RecordBatch:
    """Return columns, arrays of NumPy or of Arrow, under the names and types of a schema in Spark's words."""
    arrays, names = [], []
    for column, field in zip(columns, schema.split(", "), strict=True):
        name, kind = field.split(" ", 1)
        array = arrow_of(column) if isinstance(column, np.ndarray) else column
        arrays.append(array.cast(_TYPES.get(kind, array.type)))
        names.append(name)
    return pa.RecordBatch.from_arrays(arrays, names)
