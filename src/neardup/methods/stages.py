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
from neardup.arrays import Integers, Words, arrow_of, begins_run, flatten_strings, writable
from neardup.candidates.blocks import Radius, cut_blocks
from neardup.candidates.hamming_join import join_block, to_words
from neardup.candidates.sorted_members import BucketPairs, Members, list_members, pair_members
from neardup.features.binary import binary_lists, binary_rows, lists_of, rows_of
from neardup.features.described import Features, Keys, distinct_features, distinct_lists
from neardup.features.grouping import hash_values, partition_by_group
from neardup.features.shingles import Workspace, shingle_documents
from neardup.methods.base import Described, Method
from neardup.schemas import SIMILARITY
from neardup.verify.audit import Audit, Audited
from neardup.verify.measured import can_reach

Batches = Iterable[pa.RecordBatch]
Read = Callable[[Batches], Iterator[pa.RecordBatch]]
"""Reads documents: the columns of schemas.READ, and those by which documents were chosen."""
_PAIRS_AT_ONCE, _KEYS_AT_ONCE = 1 << 18, 1 << 23
_HALF = np.uint64(32)


def describe_documents(batches: Batches, method: Method, read: Read) -> Iterator[pa.RecordBatch]:
    """Return documents as schemas.DESCRIBED: their hashes of content and keys."""
    workspace = Workspace()
    for texts in read(batches):
        features = method.describe(texts["text"], workspace)
        features, keys = set_apart(method, features, method.summarise(features), texts["within"])
        yield batch_of(
            schemas.DESCRIBED.insert(0, pa.field("document", texts["document"].type)),
            *(
                texts[name]
                for name in ("document", "against", "id", "row", "ranks", "count_by", "rejected")
            ),
            np.diff(flatten_strings(texts["text"])[1]),
            binary_rows(features.content),
            features.sets.sizes,
            method.compact(features.sets).sizes,
            binary_rows(keys.values),
        )


def describe_sets(batches: Batches, method: Method, read: Read) -> Iterator[pa.RecordBatch]:
    """Return documents as schemas.SETS: their distinct features."""
    workspace = Workspace()
    for texts in read(batches):
        features = method.describe(texts["text"], workspace)
        empty = np.empty((len(texts), 0), np.uint64)
        keys = Keys(empty, features.content, np.ones(len(texts), np.bool_))
        if method.lookup.radius is not None:
            keys = method.summarise(features)
        features, keys = set_apart(method, features, keys, texts["within"])
        sets, none = method.compact(features.sets), pa.nulls(len(texts), "binary")
        yield batch_of(
            schemas.SETS,
            texts["position"],
            texts["last"],
            sets.sizes,
            binary_rows(features.content),
            binary_rows(keys.values),
            binary_lists(sets),
            none
            if features.structure is None
            else binary_lists(distinct_lists(features.structure)),
            texts["cells"]
            if "cells" in texts.schema.names
            else pa.nulls(len(texts), pa.list_(pa.int64())),
        )


def describe_sample(batches: Batches, method: Method, read: Read) -> Iterator[pa.RecordBatch]:
    """Return documents as schemas.AUDITED."""
    workspace = Workspace()
    for texts in read(batches):
        features = method.describe(texts["text"], workspace)
        features, keys = set_apart(method, features, method.summarise(features), texts["within"])
        hashes = binary_rows(features.content), binary_rows(keys.values)
        yield batch_of(
            schemas.AUDITED, texts["document"], *hashes, binary_lists(method.compact(features.sets))
        )


def audit_documents(
    batches: Batches, method: Method, read: Read, sample: Sequence[pa.RecordBatch], threshold: float
) -> Iterator[pa.RecordBatch]:
    """Compare documents with a sample, schemas.AUDITED; return schemas.AUDIT_COUNTS."""
    audits = [Audit(_audited(part), np.arange(len(part)), threshold) for part in sample]
    for rows in describe_sample(batches, method, read):
        for audit in audits:
            audit.compare(_audited(rows))
    first = 0
    for audit in audits:
        numbers = np.arange(first, first + len(audit.true))
        first += len(numbers)
        yield batch_of(schemas.AUDIT_COUNTS, numbers, audit.found, audit.true).filter(
            arrow_of(audit.true > 0)
        )


def _audited(rows: pa.RecordBatch) -> Audited:
    lists = lists_of(rows["features"])
    starts = np.ascontiguousarray(lists.offsets[:-1])
    sets = kernels.sorted_sets.Sets(writable(lists.hashes), starts, lists.sizes.astype(np.uint32))
    keys = np.array(rows_of(rows["keys"]).T, order="C")
    return Audited(writable(rows_of(rows["content"])), keys, sets)


def set_apart(
    method: Method, features: Features, keys: Keys, groups: pa.Array
) -> tuple[Features, Keys]:
    """Return features and keys of which those of different groups have nothing in common.

    groups : the value of each document, within which it is compared; nulls if all are compared.
    """
    if groups.null_count:
        return features, keys
    mixes = {"mixes_keys": method.lookup.radius is None, "mixes_sets": not method.ordered}
    return partition_by_group(features, keys, hash_values(groups), **mixes)


def sign_documents(batches: Batches, method: Method, read: Read) -> Iterator[pa.RecordBatch]:
    """Return the sketches of documents, as schemas.SIGNED."""
    sketcher = method.sketcher
    for texts in read(batches):
        out, short = sketcher.allocate(len(texts)), np.zeros(len(texts), np.int64)
        short[:1] = sketcher.sign_texts(texts["text"], out)
        named = (texts[name] for name in ("document", "id", "rejected"))
        num_bytes = np.diff(flatten_strings(texts["text"])[1])
        yield batch_of(schemas.SIGNED, *named, num_bytes, short, out.empty, binary_rows(out.values))


def count_documents(batches: Batches, method: Method, read: Read) -> Iterator[pa.RecordBatch]:
    """Return the number of documents of each feature, as schemas.COUNTS."""
    counted = method.counted
    assert counted is not None
    for texts in read(batches):
        shingles = shingle_documents(texts["text"], counted)
        found, counts = np.unique(
            distinct_features(shingles.hashes, shingles.offsets).hashes, return_counts=True
        )
        found, counts = (
            np.append(found, np.uint64(0)),
            np.append(counts, texts["rejected"].null_count),
        )
        yield batch_of(schemas.COUNTS, found.view(np.int64), counts)


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
    numbers = np.cumsum(is_first) - 1
    last = numbers.copy()
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
    order = np.lexsort((pairs["left"], pairs["listed"], pairs["right"]))
    pairs = {name: column[order] for name, column in pairs.items()}
    first = np.flatnonzero(begins_run(pairs["right"], pairs["listed"], pairs["left"]))
    if not len(first):
        return
    hits = np.add.reduceat(pairs.pop("hits"), first, dtype=np.int64)
    merged = {name: column[first] for name, column in pairs.items()}
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
    """Return fingerprints, once for each block in which they may first agree with others, as
    schemas.FINGERPRINTS.
    """
    radius = method.lookup.radius
    assert radius is not None
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
    """Return the pairs within the distance, as schemas.NEAR, of fingerprints that may first agree
    in a block.
    """
    first, words = rows["leader"].to_numpy(), rows_of(rows["keys"].combine_chunks())
    near = [
        batch_of(
            schemas.NEAR, np.append(first[left], first[right]), np.append(first[right], first[left])
        )
        for left, right, _ in join_block(words, radius.bits, radius.max_distance, num_blocks, block)
    ]
    return pa.Table.from_batches(near, schemas.NEAR)


def measure_pairs(batches: Batches, method: Method, every: bool) -> Iterator[pa.RecordBatch]:
    """Measure pairs; return those that are duplicates, or all if `every` is true, as
    schemas.confirmed_schema.

    batches : in any order, the documents of all pairs, schemas.SETS, and the pairs,
    schemas.CANDIDATES.
    """
    tables: dict[str, list[pa.RecordBatch]] = {"position": [], "left": []}
    for batch in batches:
        tables[batch.schema.names[0]].append(batch)
    if not tables["left"]:
        return
    rows = pa.Table.from_batches(tables["position"]).combine_chunks().to_batches()[0]
    keys, sets = _keys(rows), lists_of(rows["features"])
    structure = None if rows["structure"].null_count else lists_of(rows["structure"])
    described = Described(Features(keys.content, sets, structure), keys)
    position = rows["position"].to_numpy()
    order = np.argsort(position)
    schema = schemas.confirmed_schema(method.measures)
    for pairs in pa.Table.from_batches(tables["left"]).to_batches(_PAIRS_AT_ONCE):
        ends = [pairs[name].to_numpy() for name in ("left", "right")]
        left, right = (order[np.searchsorted(position, end, sorter=order)] for end in ends)
        measured = method.measure(described, described, left, right)
        similarity = measured.columns.get(SIMILARITY.name, np.zeros(len(left)))
        sizes = (sets.sizes[end].astype(np.float64) for end in (left, right))
        columns = [
            *ends,
            method.strength(measured),
            method.proposed_similarity(similarity, *sizes),
            *(measured[measure.name] for measure in method.measures),
        ]
        wanted = arrow_of(method.is_duplicate(measured) | measured.exact | every)
        yield batch_of(schema, *columns).filter(wanted)


def _keys(rows: pa.RecordBatch) -> Keys:
    """Return the keys of documents; and their sets, if they are among the columns."""
    sets = lists_of(rows["features"]) if "features" in rows.schema.names else None
    return Keys(rows_of(rows["keys"]), rows_of(rows["content"]), np.ones(len(rows), np.bool_), sets)


def batch_of(schema: pa.Schema, *columns: Any) -> pa.RecordBatch:
    """Return columns, arrays of NumPy or of Arrow, under the names and types of a schema."""
    arrays = (arrow_of(column) if isinstance(column, np.ndarray) else column for column in columns)
    cast = [array.cast(field.type) for array, field in zip(arrays, schema, strict=True)]
    return pa.RecordBatch.from_arrays(cast, schema=schema)
