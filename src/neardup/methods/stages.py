"""The stages of a method on Arrow batches: tables of schemas.py in, tables out.

An engine reads the documents and moves the rows. These functions open no file, start no thread and
keep no state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels, schemas
from neardup.arrays import Floats, Integers, Words, arrow_of, begins_run, flatten_strings, writable
from neardup.candidates.blocks import Radius, cut_blocks
from neardup.candidates.hamming_join import join_block, to_words
from neardup.candidates.sorted_members import BucketPairs, Members, list_members, pair_members
from neardup.features.binary import binary_lists, binary_rows, lists_of, rows_of
from neardup.features.described import Features, Keys, Lists, distinct_features, distinct_lists
from neardup.features.grouping import hash_values, partition_by_group
from neardup.features.shingles import shingle_documents
from neardup.features.workspaces import Workspace
from neardup.methods.base import Described, Method
from neardup.schemas import SIMILARITY
from neardup.settings.methods import Shingling
from neardup.verify.measured import Measured, can_reach
from neardup.verify.recall_sample import ComparedDocuments, RecallSample

Batches = Iterable[pa.RecordBatch]
Read = Callable[[Batches], Iterator[pa.RecordBatch]]
"""Reads documents: the columns of schemas.READ, and the columns that chose the documents."""
# The measures of a quarter of a million pairs are some megabytes.
_PAIRS_AT_ONCE = 1 << 18
# 64 MiB of keys: sorting fewer at a time would find fewer repeats.
_KEYS_AT_ONCE = 1 << 23
_VALUES = ("count_by", "described")
_HALF = np.uint64(32)


def describe_documents(batches: Batches, method: Method, read: Read) -> Iterator[pa.RecordBatch]:
    """Return documents as schemas.DESCRIBED: their hashes of content and keys."""
    for texts, features, keys in _described_batches(batches, method, read):
        read_names = ("document", "against", "id", "row", "ranks", *_VALUES, "rejected")
        yield batch_of(
            schemas.DESCRIBED.insert(0, pa.field("document", texts["document"].type)),
            *(texts[name] for name in read_names),
            np.diff(flatten_strings(texts["text"])[1]),
            binary_rows(features.content),
            features.sets.sizes,
            method.compact(features.sets).sizes,
            binary_rows(keys.values),
        )


def _described_batches(
    batches: Batches, method: Method, read: Read
) -> Iterator[tuple[pa.RecordBatch, Features, Keys]]:
    """Yield batches of documents with their features and keys, which are valid until the next."""
    # One for all batches: the kernels reuse its memory.
    workspace = Workspace()
    for texts in read(batches):
        features = method.describe(texts["text"], workspace)
        # Before sizes and keys are written: documents of different groups must not meet anywhere.
        yield texts, *set_apart(method, features, method.summarise(features), texts["within"])


def describe_sets(batches: Batches, method: Method, read: Read) -> Iterator[pa.RecordBatch]:
    """Return documents as schemas.SETS: their distinct features."""
    workspace = Workspace()
    for texts in read(batches):
        features = method.describe(texts["text"], workspace)
        if method.lookup.radius is not None:
            keys = method.summarise(features)
        else:  # keys are no longer needed
            no_keys = np.empty((len(texts), 0), np.uint64)
            keys = Keys(no_keys, features.content, np.ones(len(texts), np.bool_))
        features, keys = set_apart(method, features, keys, texts["within"])
        sets = method.compact(features.sets)
        # Nulls in all rows, or in none: see `_described`.
        structure = pa.nulls(len(texts), "binary")
        if features.structure is not None:
            structure = binary_lists(distinct_lists(features.structure))
        yield batch_of(
            schemas.SETS,
            texts["position"],
            texts["last"],
            sets.sizes,
            binary_rows(features.content),
            binary_rows(keys.values),
            binary_lists(sets),
            structure,
            texts["cells"]
            if "cells" in texts.schema.names
            else pa.nulls(len(texts), pa.list_(pa.int64())),
        )


def describe_sample(batches: Batches, method: Method, read: Read) -> Iterator[pa.RecordBatch]:
    """Return documents as schemas.SAMPLED."""
    for texts, features, keys in _described_batches(batches, method, read):
        yield batch_of(
            schemas.SAMPLED,
            texts["document"],
            binary_rows(features.content),
            binary_rows(keys.values),
            binary_lists(method.compact(features.sets)),
        )


def compare_with_sample(
    batches: Batches, method: Method, read: Read, sample: Sequence[pa.RecordBatch], threshold: float
) -> Iterator[pa.RecordBatch]:
    """Compare documents with a sample, schemas.SAMPLED; return schemas.SAMPLE_COUNTS."""
    samples = [RecallSample(_compared(part), np.arange(len(part)), threshold) for part in sample]
    for rows in describe_sample(batches, method, read):
        # Each batch is described once and compared with every part of the sample.
        for part in samples:
            part.compare(_compared(rows))
    first = 0
    for part in samples:
        numbers = np.arange(first, first + len(part.true))
        first += len(numbers)
        counts = batch_of(schemas.SAMPLE_COUNTS, numbers, part.found, part.true)
        # A document without true pairs says nothing about recall.
        yield counts.filter(arrow_of(part.true > 0))


def _compared(rows: pa.RecordBatch) -> ComparedDocuments:
    lists = lists_of(rows["features"])
    starts = np.ascontiguousarray(lists.offsets[:-1])
    sets = kernels.sorted_sets.Sets(writable(lists.hashes), starts, lists.sizes.astype(np.uint32))
    # The kernel reads the keys of a band one after the other.
    keys = np.array(rows_of(rows["keys"]).T, order="C")
    return ComparedDocuments(writable(rows_of(rows["content"])), keys, sets)


def set_apart(
    method: Method, features: Features, keys: Keys, groups: pa.Array
) -> tuple[Features, Keys]:
    """Salt features and keys with the group, so that groups never match.

    groups : the value of each document, within which it is compared; nulls if all are compared.
    """
    if groups.null_count:
        return features, keys
    return partition_by_group(
        features,
        keys,
        hash_values(groups),
        mixes_keys=method.lookup.radius is None,
        mixes_sets=not method.ordered,
    )


def sign_documents(batches: Batches, method: Method, read: Read) -> Iterator[pa.RecordBatch]:
    """Return the sketches of documents, as schemas.SIGNED."""
    sketcher = method.sketcher
    for texts in read(batches):
        out = sketcher.allocate(len(texts))
        num_short = np.zeros(len(texts), np.int64)
        num_short[:1] = sketcher.sign_texts(texts["text"], out)  # the first row has the sum
        yield batch_of(
            schemas.SIGNED,
            texts["document"],
            texts["id"],
            texts["rejected"],
            np.diff(flatten_strings(texts["text"])[1]),
            num_short,
            out.empty,
            binary_rows(out.values),
        )


def count_rows(batches: Batches, method: Method, read: Read) -> Iterator[pa.RecordBatch]:
    """Return the number of documents that can be read, as schemas.NUM_DOCUMENTS."""
    for texts in read(batches):
        yield batch_of(schemas.NUM_DOCUMENTS, np.array([texts["rejected"].null_count]))


def count_documents(
    batches: Batches, method: Method, read: Read, counted: Shingling
) -> Iterator[pa.RecordBatch]:
    """Return the number of documents of each feature, and rejected rows, as schemas.COUNTS.

    counted : the settings that make the features.
    """
    for texts in read(batches):
        if not texts["rejected"].null_count:  # a batch has rejected rows or none
            zeros = np.zeros(len(texts), np.int64)
            keys = texts["document"].cast("int64")
            yield batch_of(schemas.COUNTS, zeros, zeros, keys, texts["rejected"])
            continue
        shingles = shingle_documents(texts["text"], counted)
        distinct = distinct_features(shingles.hashes, shingles.offsets)
        # Each feature once a batch: fewer rows to move.
        hashes, counts = np.unique(distinct.hashes, return_counts=True)
        # 0, which is no hash, for all documents.
        hashes = np.append(hashes, np.uint64(0))
        counts = np.append(counts, len(texts))
        none = pa.nulls(len(hashes))
        # Spark has no unsigned integers: the bits stay.
        yield batch_of(schemas.COUNTS, hashes.view(np.int64), counts, none, none)


def list_entries(batches: Batches, method: Method) -> Iterator[pa.RecordBatch]:
    """Return the buckets of documents, of schemas.DESCRIBED or SETS, as schemas.ENTRIES."""
    for batch in batches:
        documents = (batch[name].to_numpy() for name in ("position", "last", "distinct"))
        yield batch_of(schemas.ENTRIES, *list_members(method.lookup, _keys(batch), *documents))


def pair_entries(batches: Batches, method: Method, most: int) -> Iterator[pa.RecordBatch]:
    """Pair the members of whole buckets, schemas.ENTRIES; return schemas.CANDIDATES.

    A pair is returned once in some millions of pairs found.
    """
    rows = pa.Table.from_batches(batches, schemas.ENTRIES)
    numbered = _number_members(Members(*(rows[name].to_numpy() for name in Members._fields)))
    possible = partial(can_reach, None if method.lookup.radius else method.rule)
    keys: list[Words] = []
    num_waiting = 0
    for pairs in pair_members([numbered.members], most, possible):
        # Keys of pairs, not pairs: 8 bytes each, which one sort brings together.
        keys.append(_keys_of_pairs(pairs))
        num_waiting += len(pairs.left)
        if num_waiting >= _KEYS_AT_ONCE:
            yield _count_hits(np.concatenate(keys), numbered)
            keys = []
            num_waiting = 0
    if num_waiting:
        yield _count_hits(np.concatenate(keys), numbered)


class _Numbered(NamedTuple):
    """Members of buckets whose positions are numbers of 31 bits, in the same order.

    members : sorted as `pair_members` requires. positions, needed : integers by number, the
    document's position, and the common buckets that make a pair with it a candidate.
    """

    members: Members
    positions: Integers
    needed: Integers


def _number_members(members: Members) -> _Numbered:
    """Number the documents of members: two numbers fit into one key."""
    members = members.take(np.argsort(members.position, kind="stable"))
    is_first = begins_run(members.position)
    positions = members.position[is_first]
    # A position may occur in several buckets: it gets one number.
    numbers = np.cumsum(is_first) - 1
    last = numbers.copy()
    # The last document of a content may be in no bucket: the next position that is in one stands
    # for it.
    copied = np.flatnonzero(members.last != members.position)
    last[copied] = np.searchsorted(positions, members.last[copied])
    needed = members.needed[is_first]
    members = members._replace(position=numbers, last=last)

    # Stable sorts, the most significant key last.
    if not members.listed.all():
        members = members.take(np.argsort(~members.listed, kind="stable"))
    members = members.take(np.argsort(members.bucket, kind="stable"))
    return _Numbered(members, positions, needed)


# The key of a pair of numbers: the right one in bits 32 to 63, whether its bucket does not list the
# left one in bit 31, and the left one in bits 0 to 30.
_UNLISTED = np.uint64(1 << 31)
_LEFT_BITS = _UNLISTED - np.uint64(1)


def _keys_of_pairs(pairs: BucketPairs) -> Words:
    keys: Words = pairs.right.astype(np.uint64) << _HALF | pairs.left.astype(np.uint64)
    if not pairs.listed:
        keys |= _UNLISTED
    return keys


def _count_hits(keys: Words, numbered: _Numbered) -> pa.RecordBatch:
    """Return each pair once, as schemas.CANDIDATES, with the number of its keys."""
    # Sorted by the right document, as the high bits are its number.
    keys, hits = np.unique(keys, return_counts=True)
    left = (keys & _LEFT_BITS).astype(np.int64)
    right = (keys >> _HALF).astype(np.int64)
    return batch_of(
        schemas.CANDIDATES,
        numbered.positions[left],
        numbered.positions[right],
        (keys & _UNLISTED) == 0,
        numbered.needed[right],
        hits,
    )


def merge_pairs(batches: Batches, method: Method) -> Iterator[pa.RecordBatch]:
    """Return the candidates of all tasks, schemas.CANDIDATES, each once, by the later document."""
    rows = pa.Table.from_batches(batches, schemas.CANDIDATES)
    pairs = {name: rows[name].to_numpy() for name in rows.column_names}
    # `lexsort` sorts by its last key first.
    order = np.lexsort((pairs["left"], pairs["listed"], pairs["right"]))
    pairs = {name: column[order] for name, column in pairs.items()}
    first = np.flatnonzero(begins_run(pairs["right"], pairs["listed"], pairs["left"]))
    if not len(first):
        return
    # The parts of a pair from different tasks follow each other.
    hits = np.add.reduceat(pairs.pop("hits"), first, dtype=np.int64)
    merged = {name: column[first] for name, column in pairs.items()}
    # An unlisted pair tells that a bucket leaves out documents: one bucket is enough.
    is_candidate = (hits >= merged["needed"]) | ~merged["listed"]
    columns = [*merged.values(), hits]
    yield batch_of(schemas.CANDIDATES, *(column[is_candidate] for column in columns))


def earliest_candidates(batches: Batches, method: Method) -> Iterator[pa.RecordBatch]:
    """Return each later document of pairs, schemas.CANDIDATES, with its earliest candidate, as
    schemas.NEAR.
    """
    for pairs in batches:
        is_first = arrow_of(begins_run(pairs["right"].to_numpy()))
        yield pa.RecordBatch.from_arrays(
            [pairs["left"], pairs["right"]], schema=schemas.NEAR
        ).filter(is_first)


def list_blocks(batches: Batches, method: Method, num_blocks: int) -> Iterator[pa.RecordBatch]:
    """Return fingerprints, as schemas.FINGERPRINTS, once for each block that may be the first one
    in which they agree with others.
    """
    radius = method.lookup.radius
    assert radius is not None
    # Two fingerprints within the distance agree in a block, and the first one that agrees is one of
    # these.
    blocks = cut_blocks(0, radius.bits, num_blocks)[: radius.max_distance + 1]
    for batch in batches:
        words = rows_of(batch["keys"])
        for block, mask in enumerate(blocks):
            bits = binary_rows(words & np.array(to_words(mask, radius.bits), np.uint64))
            yield batch_of(
                schemas.FINGERPRINTS,
                np.full(len(words), block),
                bits,
                batch["leader"],
                batch["keys"],
            )


def join_blocks(block: int, rows: pa.Table, radius: Radius, num_blocks: int) -> pa.Table:
    """Return the pairs of fingerprints within the distance whose first agreeing block is `block`.

    rows : schemas.FINGERPRINTS of the block. The pairs are schemas.NEAR.
    """
    leaders = rows["leader"].to_numpy()
    words = rows_of(rows["keys"].combine_chunks())
    near = []
    for pairs in join_block(words, radius.bits, radius.max_distance, num_blocks, block):
        left = leaders[pairs.left]
        right = leaders[pairs.right]
        # Both directions: either document may come first.
        near.append(batch_of(schemas.NEAR, np.append(left, right), np.append(right, left)))
    return pa.Table.from_batches(near, schemas.NEAR)


def measure_pairs(batches: Batches, method: Method, every: bool) -> Iterator[pa.RecordBatch]:
    """Measure pairs; return the duplicates, or all if `every` is true.

    The rows are schemas.confirmed_schema. batches : in any order, the documents of all pairs,
    schemas.SETS, and the pairs, schemas.CANDIDATES.
    """
    documents, candidates = _documents_and_pairs(batches)
    if not candidates:
        return
    # One batch: rows of pairs refer to all documents.
    rows = _joined(documents).to_batches()[0]
    described = _described(rows)
    position = rows["position"].to_numpy()
    # Documents come in blocks of several tasks, in no order.
    order = np.argsort(position)
    # `to_batches` does not join chunks, and each call of `measure` sorts the features anew.
    for pairs in _joined(candidates).to_batches(_PAIRS_AT_ONCE):
        left = order[np.searchsorted(position, pairs["left"].to_numpy(), sorter=order)]
        right = order[np.searchsorted(position, pairs["right"].to_numpy(), sorter=order)]
        measured = method.measure(described, described, left, right)
        is_returned = method.is_duplicate(measured) | measured.exact | every
        yield batch_of(
            schemas.confirmed_schema(method.measures),
            pairs["left"],
            pairs["right"],
            method.strength(measured),
            _proposed_similarity(method, measured, described.features.sets, left, right),
            *(measured[measure.name] for measure in method.measures),
        ).filter(arrow_of(is_returned))


def _joined(batches: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches).combine_chunks()


def _documents_and_pairs(
    batches: Batches,
) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
    """Return the batches of schemas.SETS, and the batches of schemas.CANDIDATES."""
    documents: list[pa.RecordBatch] = []
    pairs: list[pa.RecordBatch] = []
    for batch in batches:
        # Both kinds arrive in one stream, since a task of Spark has one input.
        is_pairs = batch.schema.names[0] == "left"
        (pairs if is_pairs else documents).append(batch)
    return documents, pairs


def _described(rows: pa.RecordBatch) -> Described:
    """Return the documents of schemas.SETS."""
    keys = _keys(rows)
    sets = lists_of(rows["features"])
    # All or none: one method describes all documents.
    structure = None if rows["structure"].null_count else lists_of(rows["structure"])
    return Described(Features(keys.content, sets, structure), keys)


def _proposed_similarity(
    method: Method, measured: Measured, sets: Lists, left: Integers, right: Integers
) -> Floats:
    """Return the similarity to pass to `hit_probability`, 0 if the method measures none."""
    similarity = measured.columns.get(SIMILARITY.name, np.zeros(len(left)))
    left_sizes = sets.sizes[left].astype(np.float64)
    right_sizes = sets.sizes[right].astype(np.float64)
    return method.proposed_similarity(similarity, left_sizes, right_sizes)


def _keys(rows: pa.RecordBatch) -> Keys:
    """Return the keys of documents, with their sets if these are among the columns."""
    sets = lists_of(rows["features"]) if "features" in rows.schema.names else None
    return Keys(rows_of(rows["keys"]), rows_of(rows["content"]), np.ones(len(rows), np.bool_), sets)


def batch_of(schema: pa.Schema, *columns: Any) -> pa.RecordBatch:
    """Return columns, arrays of NumPy or of Arrow, under the names and types of a schema."""
    arrays = (arrow_of(column) if isinstance(column, np.ndarray) else column for column in columns)
    # Arrow refuses a value that does not fit: a wrong size is noticed here.
    cast = [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)]
    return pa.RecordBatch.from_arrays(cast, schema=schema)
