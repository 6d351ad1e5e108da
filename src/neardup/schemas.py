"""The schemas of all tables, scratch columns included, with a sentence for each column."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import NamedTuple

import pyarrow as pa


def _field(
    name: str, dtype: pa.DataType | str, meaning: str, *, nullable: bool = False
) -> pa.Field:
    return pa.field(name, dtype, nullable=nullable, metadata={"meaning": meaning})


_nullable = partial(_field, nullable=True)
_STRINGS = pa.list_(pa.string())
_INT32S = pa.list_(pa.int32())
_INT64S = pa.list_(pa.int64())


def _schema(*fields: pa.Field) -> pa.Schema:
    return pa.schema(fields)


class Measure(NamedTuple):
    """A measure of a pair of documents: a column of every table of pairs.

    of_first : its meaning in the table of clusters, where the pair is a document and the first of
    its cluster. of_itself : the value of a document and its copy.
    """

    name: str
    type: pa.DataType
    meaning: str
    of_first: str
    of_itself: float | bool

    @property
    def field(self) -> pa.Field:
        """Return the column of a table of pairs."""
        return _field(self.name, self.type, self.meaning)

    @property
    def field_of_first(self) -> pa.Field:
        """Return the column of the table of clusters."""
        return _field(self.name, self.type, self.of_first)


SIMILARITY = Measure(
    "similarity",
    pa.float64(),
    "Their similarity, computed exactly; 1 for a copy.",
    "Its similarity to the first document; 1 for itself.",
    1.0,
)
DISTANCE = Measure(
    "distance",
    pa.uint16(),
    "The Hamming distance of their fingerprints.",
    "Its Hamming distance to the first document.",
    0,
)
STRUCTURE = Measure(
    "structure",
    pa.float64(),
    "The similarity of their structure; 1 for a copy.",
    "The similarity of its structure to the first document; 1 for itself.",
    1.0,
)
EXACT = Measure(
    "exact",
    pa.bool_(),
    "Whether both have the same tokens in the same order.",
    "Whether it has the tokens of the first document in the same order.",
    True,
)
Measures = Sequence[Measure]
_DOCUMENT_ID = _field("id", "string", "The id column as text, else the running number.")
_PLACE = (
    _field("source_file", "string", "The input, as it was named."),
    _field("row", "int64", "The row or line of text in that input, from 0."),
)
_ITEM = (
    _field("item_id", "string", "The id of the item."),
    _field("benchmark", "string", "Its benchmark."),
)


def removed_schema(measures: Measures) -> pa.Schema:
    """Return the schema of the table of removed documents.

    measures : the measures of the method.
    """
    return _schema(
        _DOCUMENT_ID,
        *_PLACE,
        _field(
            "kept_id",
            "string",
            "The most similar kept document; of equals a copy, then the earlier.",
        ),
        _field("kept_source_file", "string", "The input of the kept document."),
        _field("kept_row", "int64", "The row of the kept document in its input."),
        _field("kept_role", "string", "source, or against for a document of --against."),
        *(measure.field for measure in measures),
        _field(
            "cluster", "int64", "The running number of the kept document; equal within a cluster."
        ),
    )


def least_similar_schema(removed: pa.Schema) -> pa.Schema:
    """Return the schema of the table of the least similar removals.

    removed : the schema of the table of removed documents.
    """
    return _schema(
        *removed,
        _nullable(
            "text", "string", "The text of the removed document; null if it cannot be read again."
        ),
        _nullable(
            "kept_text", "string", "The text of the kept document; null if it cannot be read again."
        ),
    )


def mask_schema() -> pa.Schema:
    """Return the schema of the table of all rows of the inputs, and whether each is kept."""
    return _schema(
        *_PLACE,
        _field("kept", "bool", "Whether the row is kept; a rejected row is not."),
    )


def ids_schema() -> pa.Schema:
    """Return the schema of the table of kept documents without their texts."""
    return _schema(_DOCUMENT_ID, *_PLACE)


def groups_schema() -> pa.Schema:
    """Return the schema of the table of groups that were kept or removed as a whole."""
    return _schema(
        _field(
            "group",
            "string",
            "The shared value; empty for documents without one.",
        ),
        _field("documents", "int64", "The number of its documents."),
        _field(
            "near_duplicates",
            "int64",
            "Its documents that are similar to a document of a kept group with higher priority.",
        ),
        _field("share", "float64", "near_duplicates / documents."),
        _field("removed", "bool", "Whether all of its documents were removed."),
    )


def sweep_schema() -> pa.Schema:
    """Return the schema of the counts of several thresholds."""
    return _schema(
        _field("threshold", "float64", "The threshold."),
        _field("kept", "int64", "The documents that dedup keeps at it."),
        _field("removed", "int64", "The documents that it removes."),
        _field(
            "removed_exact",
            "int64",
            "Those of them that are copies: the same tokens in the same order.",
        ),
    )


def annotation_schema(measures: Measures) -> pa.Schema:
    """Return the schema of the columns that are added to the documents of an input."""
    return _schema(
        _nullable(
            "duplicate_of", "string", "The kept document that removed it; null if it is kept."
        ),
        *(measure.field.with_nullable(True) for measure in measures),
        _field(
            "cluster", "int64", "The running number of its kept document; equal within a cluster."
        ),
        _nullable(
            "duplicates",
            "int64",
            "The number of documents that were removed for it; null if it is removed.",
        ),
    )


def pairs_schema(measures: Measures) -> pa.Schema:
    """Return the schema of the table of duplicate pairs."""
    return _schema(
        _field("left_id", "string", "The earlier document."),
        _field("right_id", "string", "The later document."),
        *(measure.field for measure in measures),
    )


def judged_schema() -> pa.Schema:
    """Return the schema of the removed documents of an audit, with a verdict about each."""
    return _schema(
        _DOCUMENT_ID,
        *_PLACE,
        _field(
            "verdict",
            "string",
            "copy or near, if a kept document has the same tokens or reaches the threshold; chain "
            "or group, if similar documents lead to a kept one or to removed ones only; alone; or "
            "empty, without features.",
        ),
        _field("checked", "bool", "Whether it was compared with all kept documents."),
        _nullable("similarity", "float64", "To the nearest kept document; null if not compared."),
        _nullable("kept_id", "string", "The nearest kept document, if one is known."),
        _nullable("kept_file", "string", "The input, as it was named."),
        _nullable("kept_row", "int64", "Its row in that input."),
    )


def unmatched_schema() -> pa.Schema:
    """Return the schema of kept documents that are not in the original of an audit."""
    return _schema(*_PLACE)


_CLUSTER = _field("cluster", "int64", "The cluster; 0 is the largest, ties by the first document.")
_SIZE = _field("size", "int64", "The number of documents in the cluster.")
_FIRST_ID = _field("first_id", "string", "The first document of the cluster.")
_FIRST_ROLE = _field("first_role", "string", "source, or against for a document of --against.")


def clusters_schema(measures: Measures) -> pa.Schema:
    """Return the schema of the table of every document with its cluster."""
    return _schema(
        _DOCUMENT_ID,
        *_PLACE,
        _CLUSTER,
        _SIZE,
        _field("is_first", "bool", "Whether the document is the first."),
        _FIRST_ID,
        _FIRST_ROLE,
        *(measure.field_of_first for measure in measures),
    )


def cluster_summary_schema() -> pa.Schema:
    """Return the schema of the table of clusters of two documents or more: size, name, examples."""
    return _schema(
        _CLUSTER,
        _SIZE,
        _nullable(
            "name",
            "string",
            (
                "The common part of its documents, and the first id if several clusters have it; "
                "null after the 1,000 largest."
            ),
        ),
        _FIRST_ID,
        _FIRST_ROLE,
        _field("example_ids", _STRINGS, "Up to five others, evenly from the second to the last."),
    )


ANNOTATIONS = (
    "duplicate_of",
    SIMILARITY.name,
    DISTANCE.name,
    STRUCTURE.name,
    "cluster",
    "duplicates",
)
"""The names of columns that may be added to the documents of an input."""

# The states of a document of an index.
KEPT = 1
REMOVED = 2

TIME = pa.timestamp("us", tz="UTC")


def passages_schema() -> pa.Schema:
    """Return the schema of the table of passages that were cut."""
    return _schema(
        _DOCUMENT_ID,
        *_PLACE,
        _field("start", "int64", "The start of the passage in the text, in characters from 0."),
        _field("end", "int64", "Its end, exclusive."),
        _field("start_byte", "int64", "Its start in bytes of UTF-8."),
        _field("end_byte", "int64", "Its end in bytes."),
        _nullable(
            "kept_id",
            "string",
            "The document that keeps it; null with --keep none, and for a bridge.",
        ),
        _nullable("kept_source_file", "string", "The input of the kept document."),
        _nullable("kept_row", "int64", "The row of the kept document in its input."),
        _nullable("kept_role", "string", "source, or against for a document of --against."),
        _nullable("kept_start", "int64", "The start of the passage in the text that keeps it."),
        _nullable("kept_start_byte", "int64", "The same in bytes."),
        _field(
            "occurrences",
            "int64",
            (
                "How often its beginning was found, the kept one included; with --keep none, the "
                "number of documents that have it; 1 for a bridge."
            ),
        ),
    )


@cache
def indexed_schema(measures: tuple[Measure, ...], *, tracks_sources: bool = False) -> pa.Schema:
    """Return the schema of the documents of an index, as a store has them."""
    source = _nullable(
        "source", "large_string", "Where the document came from; with dates, its origin."
    )
    return _schema(
        _field("row", "uint32", "The number of the document in the order of arrival, from 0."),
        _field("id", "large_string", "The id of the document."),
        _field("state", "uint8", "1 if the document was kept, 2 if it was removed as a duplicate."),
        _field("member", "bool", "Whether buckets list the document."),
        _field("featured", "bool", "Whether the document has features."),
        _field("truncated", "bool", "Whether a bucket had more documents than were compared."),
        _field("content", pa.binary(16), "128-bit hash of the tokens, equal for copies."),
        _field(
            "sketch",
            "large_binary",
            "Its signature, uint32, or fingerprint, uint64 words; little-endian.",
        ),
        _field("first_seen", TIME, "When the document was added."),
        _field("last_seen", TIME, "When it was added, or last found as a duplicate or sent again."),
        _nullable(
            "features",
            "large_binary",
            "The distinct hashes of its features, rising, uint64 little-endian.",
        ),
        _nullable("tags", "large_binary", "The same of the structure of a page."),
        _nullable("text", "large_binary", "The text or page, compressed with zstd."),
        _nullable("payload", "large_string", "What the caller stored with the document."),
        _nullable("import_name", "large_string", "The import that brought the document."),
        _nullable("kept_row", "uint32", "The row of the kept document that removed it."),
        _nullable("kept_id", "large_string", "The id of the kept document that removed it."),
        *(measure.field.with_nullable(True) for measure in measures),
        *([source] if tracks_sources else []),
    )


SOURCE_COLUMNS = {"sources": pa.list_(pa.string()), "num_sources": pa.int64()}
"""The columns of the sources of a kept document."""

DATE_COLUMNS = {"first_date": pa.string(), "last_date": pa.string()}
"""The columns of the dates of a kept document, in an index that tracks dates."""

_TRACKED = {
    "sources": "The sources of the kept document, and of the documents removed for it up to this "
    "one.",
    "num_sources": "The number of these sources.",
    "first_date": "The least date of the kept document, and of the documents removed for it up to "
    "this one.",
    "last_date": "The greatest of these dates.",
}


@cache
def answers_schema(measures: tuple[Measure, ...], *, tracked: tuple[str, ...] = ()) -> pa.Schema:
    """Return the schema of the answers of an index about documents that were added.

    tracked : the columns of sources and of dates.
    """
    kinds = SOURCE_COLUMNS | DATE_COLUMNS
    return _schema(
        _field("id", "large_string", "The id of the document."),
        _field("kept", "bool", "Whether the document was kept."),
        _field(
            "repeated",
            "bool",
            "Whether the index had the document before; this is its first answer.",
        ),
        _nullable("kept_id", "large_string", "The most similar kept document, which removed it."),
        *(measure.field.with_nullable(True) for measure in measures),
        _field("truncated", "bool", "Whether a bucket had more documents than were compared."),
        *_MOMENTS,
        *(_nullable(name, kinds[name], _TRACKED[name]) for name in tracked),
    )


@cache
def hits_schema(measures: tuple[Measure, ...]) -> pa.Schema:
    """Return the schema of the kept documents that a query finds."""
    return _schema(
        _field("query", "int64", "The position of the query, from 0."),
        _field("id", "large_string", "The id of the document."),
        *(measure.field for measure in measures),
        *_MOMENTS,
    )


_MOMENTS = (
    _nullable("first_seen", TIME, "When the kept document was added."),
    _nullable("last_seen", TIME, "When it was last added, found as a duplicate, or sent again."),
    _nullable("payload", "large_string", "What the caller stored with the kept document."),
)
_SCORES = (
    _field("found", "int64", "Pairs that were found, of those of which it is known what they are."),
    _field("correct", "int64", "Found pairs that are duplicates."),
    _field("positives", "int64", "All pairs that are duplicates, found or not."),
    _nullable("precision", "float64", "correct / found; null if nothing was found."),
    _nullable("recall", "float64", "correct / positives; null if there is nothing to find."),
    _nullable("f1", "float64", "2 correct / (found + positives); null if both are 0."),
)


def curve_schema(limit: str) -> pa.Schema:
    """Return the schema of the scores over a method's limit, threshold or max_distance."""
    dtype = "float64" if limit == "threshold" else "int64"
    return _schema(_field(limit, dtype, "The limit at which a pair counts as found."), *_SCORES)


def length_schema() -> pa.Schema:
    """Return the schema of the scores by length of text."""
    return _schema(
        _field(
            "characters_from",
            "int64",
            "The minimum number of characters of the shorter text of a pair.",
        ),
        _field("characters_to", "int64", "The maximum."),
        _field("documents", "int64", "Documents of that length of which something is known."),
        *_SCORES,
    )


# The tables between stages, in batches of rows. Their numbers are signed, because Spark has no
# others.
_AGAINST = _field(
    "against", "bool", "Whether the document is of the earlier collection, which is always kept."
)
_ID = _nullable("id", "string", "The id of the document; null without an id column.")
_ROW = _nullable("row", "int64", "Its row in its input, from 0.")
_RANKS = _nullable(
    "ranks", pa.list_(pa.float64()), "By key of `keep`: its value and the rest of it; nan is last."
)
_WITHIN = _nullable(
    "within", "string", "The value within which documents are compared; null if all are."
)
_COUNT_BY = _nullable(
    "count_by", "string", "The value by which removals are counted; null if they are not."
)
_DESCRIBED = _nullable(
    "described", _STRINGS, "The values that describe it in the output, by column."
)
_UNREAD = _nullable(
    "rejected", "string", "A line of JSON that says why a row could not be read; null if it was."
)
_KEYS = _nullable(
    "keys", "binary", "The keys of the search, uint64: of bands, or the words of a fingerprint."
)
_SETS = _nullable(
    "features", "binary", "The distinct hashes of its features, uint64 little-endian."
)
_TAGS = _nullable(
    "structure", "binary", "The same of the structure of a page, where that is compared."
)
_HASH = _field("content", "binary", "128-bit hash of the tokens, equal for copies.")
_POSITION = _field(
    "position", "int64", "The document: its number in the order of priority, which may have gaps."
)
_FIRST = _field("first", "int64", "The position of the first document of the same content.")
_LAST = _field("last", "int64", "The position of the last document of the same content.")
_DISTINCT = _field("distinct", "int32", "The number of its distinct features.")
_CELLS = _nullable("cells", _INT64S, "The cells in which pairs of the document are measured.")
_LEFT = _field("left", "int64", "The position of the earlier document; of the left side of a pair.")
_RIGHT = _field(
    "right",
    "int64",
    "The position of the later document, which the other may remove, or a copy of it.",
)

READ = _schema(
    _field(
        "document",
        "int64",
        "The number of the input, shifted by 32 bits, and that of the document in it.",
    ),
    _AGAINST,
    _nullable("text", "large_string", "The text or page."),
    _ID,
    _ROW,
    _RANKS,
    _WITHIN,
    _COUNT_BY,
    _DESCRIBED,
    _UNREAD,
)
"""Documents and rejected rows as they are read."""
DESCRIBED = _schema(
    _AGAINST,
    _ID,
    _ROW,
    _RANKS,
    _COUNT_BY,
    _DESCRIBED,
    _UNREAD,
    _field("bytes", "int64", "The bytes of its text."),
    _HASH,
    _field("size", "int32", "The number of its features; 0 of a rejected row."),
    _DISTINCT,
    _KEYS,
)
"""Documents and rejected rows, after a first column `document`, of any type."""
SIGNED = _schema(
    _field("document", "int64", "The document, as in READ."),
    _ID,
    _UNREAD,
    _field("bytes", "int64", "The bytes of its text."),
    _field(
        "short",
        "int64",
        "The number of short documents of its batch, at the first of them; else 0.",
    ),
    _field("empty", "bool", "Whether the document has no features."),
    _field(
        "sketch", "binary", "Its signature, uint32, or fingerprint, uint64 words; little-endian."
    ),
)
"""Documents and rejected rows, with their sketches."""
SEARCHED = _schema(
    _field("document", "int64", "The first document of a batch of one input, as in READ."),
    _field("documents", "int64", "The number of its documents."),
    _field("bytes", "int64", "The bytes of their texts."),
    _field("without_features", "int64", "The number of documents without text."),
    _field("unread", _STRINGS, "Its lines of rejected.jsonl."),
    _field("keys", _INT32S, "A sequence around items, once for each document."),
    _field("items", _INT32S, "An item that a document has enough of."),
    _field("states", _INT32S, "Its state; see decide.items."),
    _field("found", _INT64S, "By match: the number of the document in the batch."),
    _field("entries", _INT32S, "By match: the entry of the items."),
    _field("tokens", _INT32S, "By match: the token in the document."),
    _field("begins", _INT64S, "By match: its first character."),
    _field("ends", _INT64S, "By match: the end of its characters."),
    _field("excerpts", _STRINGS, "By document and item with matches: a text."),
    _field("ids", _STRINGS, "By match: the id of the document, null without one."),
    _field("rows", _INT64S, "By match: the row of the document."),
)
"""Items that were found in documents: a row for each batch of them, or of rejected rows."""
PLACED = _schema(*DESCRIBED, _POSITION, _FIRST, _LAST)
"""Documents with features, in the order of priority."""
CONTENTS = _schema(_HASH, _POSITION)
"""Documents with features, by which copies are found."""
COPIES = _schema(_POSITION, _FIRST, _LAST)
"""Documents that share their content with others."""
SETS = _schema(_POSITION, _LAST, _DISTINCT, _HASH, _KEYS, _SETS, _TAGS, _CELLS)
"""The features of documents, by which pairs are measured."""
SAMPLED = _schema(_field("document", "int64", "The document, as in READ."), _HASH, _KEYS, _SETS)
"""Sampled documents, which are compared with all others."""
SAMPLE_COUNTS = _schema(
    _field("sample", "int64", "The number of a sampled document."),
    _field("found", "int64", "Its pairs that have a key in common."),
    _field("true", "int64", "All its pairs at or above the threshold."),
)
"""The pairs of sampled documents with some of all documents."""
ENTRIES = _schema(
    _field(
        "bucket",
        "int64",
        "The bucket: the hash of a table and a key; or the first of equal fingerprints.",
    ),
    _POSITION,
    _LAST,
    _field("size", "int32", "The number of distinct features of the document."),
    _field("needed", "int32", "The common buckets that make a candidate."),
    _field("listed", "bool", "Whether the bucket lists the document."),
    _field("queries", "bool", "Whether the document is paired with the listed ones."),
)
"""The members of buckets: see candidates/sorted_members.py."""
CANDIDATES = _schema(
    _LEFT,
    _RIGHT,
    _field("listed", "bool", "Whether the buckets list the left document."),
    _field("needed", "int32", "The common buckets that make the pair a candidate."),
    _field("hits", "int32", "The buckets in which the pair was found."),
)
"""Pairs of buckets. An unlisted `left` is the first document that a bucket leaves out."""
NEEDED = _schema(
    _POSITION, _field("cell", "int64", "A cell in which a pair of the document is measured.")
)
"""Documents in candidate pairs."""
BLOCKS = _schema(
    _field("cell", "int32", "Where the rows go: all blocks of a cell are read by one task."),
    _field("count", "int64", "The number of rows."),
    _field(
        "rows",
        "binary",
        "Rows of another of these tables, a stream of Arrow: see engines/spark/blocks.py.",
    ),
)
"""Rows of other tables, many in one."""
FINGERPRINTS = _schema(
    _field(
        "block", "int32", "The first block of bits in which the fingerprint may agree with another."
    ),
    _field("bits", "binary", "The bits of this block."),
    _field("leader", "int64", "The position of the first document of this fingerprint."),
    _KEYS,
)
"""Distinct fingerprints, for each block in which they may agree with others."""
NEAR = _schema(_LEFT, _RIGHT)
"""Leaders of fingerprints within the distance, in both orders."""
NUM_DOCUMENTS = _schema(_field("documents", "int64", "A number of documents, to be added up."))
"""The documents of a batch."""
COUNTS = _schema(
    _field("feature", "int64", "The hash of a feature; 0, which is no hash, for all documents."),
    _field("documents", "int64", "The number of documents that contain it."),
    _nullable("document", "int64", "Of a rejected row its input, as in READ; else null."),
    _UNREAD,
)
"""Document frequencies, and rejected rows."""


@cache
def confirmed_schema(measures: tuple[Measure, ...]) -> pa.Schema:
    """Return the schema of duplicate pairs, and of decisions: of each removed document, `right`,
    with its remover.
    """
    signed = [
        measure.field.with_type(_SIGNED.get(measure.type, measure.type)) for measure in measures
    ]
    return _schema(
        _LEFT,
        _RIGHT,
        _field(
            "strength",
            "float64",
            "Of several kept documents, the one of greatest strength removes.",
        ),
        _field(
            "expected", "float64", "The similarity by which the chance to be proposed is known."
        ),
        *signed,
    )


_SIGNED = {pa.uint16(): pa.int32()}


class Column(NamedTuple):
    """A column of numbers in a scratch folder. `at(part)` is the column of one band, or of one word
    of a fingerprint.

    width : numbers for each row.
    """

    name: str
    dtype: str
    meaning: str
    width: int = 1

    def at(self, part: int) -> Column:
        """Return the column of one of several parts."""
        return self._replace(name=f"{self.name}-{part}")

    def of(self, prefix: str) -> Column:
        """Return the column of another table of the same kind."""
        return self._replace(name=f"{prefix}-{self.name}")


# By document, in input order.
ROWS = Column("rows", "int64", "The row of the document in its input.")
CONTENT = Column("content", "uint64", "128-bit hash of the tokens, equal for copies.", 2)
SHINGLES = Column(
    "shingles", "uint64", "The shingle hashes of all documents, one document after the other."
)
SHINGLE_STARTS = Column(
    "shingle-starts", "int64", "The start of the shingles of the document in `shingles`."
)
TAGS = Column(
    "structure",
    "uint64",
    "The hashes of runs of tags of all pages, if structure is compared too.",
)
TAG_STARTS = Column(
    "structure-starts", "int64", "The start of the hashes of the document in `structure`."
)
KEYS = Column(
    "keys",
    "uint64",
    "By part: the key of the document in one band, or one word of its fingerprint.",
)
SALTS = Column(
    "salts",
    "uint64",
    "The hash of the group of the document, 0 without groups, if keys are made after reading.",
)
IDS = Column("ids", "uint8", "The ids of all documents in UTF-8, one after the other.")
ID_OFFSETS = Column(
    "id_offsets", "int64", "The start of each id in `ids`, and the end of the last."
)
ID_HASHES = Column("id_hashes", "uint64", "The hash of the id; all ones if it is null.")
LENGTHS = Column("lengths", "int64", "The bytes of the text in UTF-8.")
RANKS = Column(
    "ranks",
    "float64",
    "By key of `keep`: the value that it orders by, and its rest; nan comes last.",
    2,
)
VALUES = Column(
    "values",
    "uint64",
    "The hash of the value by which removals are counted; 0 in the earlier corpus.",
)
DESCRIBED_VALUES = Column(
    "described-values",
    "uint64",
    "The hash of the value that describes it; 0 in the earlier corpus.",
)
# By value of these columns; a value may have several rows.
NAME_HASHES = Column("name-hashes", "uint64", "The hash of the value.")
NAME_LENGTHS = Column("name-lengths", "int64", "The bytes of the value in UTF-8.")
NAMES = Column("names", "uint8", "The values in UTF-8, one after the other.")
# By document of a run on top of an index.
INDEX_ROWS = Column(
    "index-rows", "int64", "The row of the document in the index, which it has or will have."
)
# By input.
PART_ENDS = Column("part-ends", "int64", "The number of documents up to the end of the input.")
PART_REJECTED = Column("part-rejected", "int64", "The rows of the input that could not be read.")
REJECTED = Column(
    "rejected.jsonl", "uint8", "Lines of JSON, one for each row that could not be read."
)
# By item, shingle or text that is found in a document.
NUM_TEXTLESS = Column("num-textless", "int64", "The documents of a batch that have no text.")
FOUND_KEYS = Column(
    "found-keys", "int32", "A shingle of items that a document has, once for each document."
)
FOUND_ITEMS = Column(
    "found-items",
    "int32",
    "An item that a document has enough of, and its state; see decide.items.",
    2,
)
FURTHER = Column(
    "further", "int64", "A document that has all of an item and is not listed, and the item.", 2
)
MATCHES = Column(
    "matches",
    "int64",
    "By shingle: document, place in the items, token, first and last character.",
    5,
)
EXCERPTS = Column(
    "excerpts.jsonl",
    "uint8",
    "Lines of JSON, for the report: document, item, and the text around it.",
)
# By anchor of a passage, by piece of a document around anchors, and by document.
ANCHOR_HASHES = Column("anchor-hashes", "uint32", "The hashes of all anchors, which are counted.")
PIECES = Column("pieces", "int64", "By piece: see candidates/passages.Selected.", 6)
PIECE_TEXTS = Column(
    "piece-texts", "uint8", "The text of documents around anchors that may repeat, in UTF-8."
)
PIECE_ANCHORS = Column("piece-anchors", "int64", "By anchor: its last byte in `piece-texts`.")
PIECE_HASHES = Column("piece-hashes", "uint32", "By anchor: its hash.")
CHARACTERS = Column("characters", "int64", "By document: its characters.")
# By position in the order of priority, and by entry of a bucket.
BUCKETS = Column(
    "buckets", "uint32", "Band after band: the first entry of the document's bucket in `members`."
)
MEMBERS = Column("members", "uint32", "The earliest positions of each bucket, band after band.")
# By document: the sets that are compared. Several kinds of sets have columns, each with a prefix.
SET_HASHES = Column(
    "hashes", "uint64", "Sorted sets, each after its sketch: see kernels/sorted_sets.py."
)
SET_STARTS = Column("starts", "int64", "The start of the set of the document in `hashes`.")
# By pair of fingerprints within the distance.
NEAR_LEFT = Column("near-left", "uint32", "A distinct fingerprint.")
NEAR_RIGHT = Column("near-right", "uint32", "The other fingerprint of the pair.")
NEAR_DISTANCE = Column("near-distance", "uint8", "The number of bits in which they differ.")
# By confirmed pair.
PAIR_LEFT = Column("pair-left", "uint32", "The position of the earlier document.")
PAIR_RIGHT = Column("pair-right", "uint32", "The position of the later document.")
PAIR_SIMILARITY = Column("pair-similarity", "float64", SIMILARITY.meaning)
PAIR_DISTANCE = Column("pair-distance", "uint16", DISTANCE.meaning)
PAIR_STRUCTURE = Column("pair-structure", "float64", STRUCTURE.meaning)
PAIR_EXACT = Column("pair-exact", "uint8", EXACT.meaning)
PAIR_BEST = Column("pair-best", "uint8", "1 on the pair that removed the later document.")
PAIR = (
    PAIR_LEFT,
    PAIR_RIGHT,
    PAIR_SIMILARITY,
    PAIR_DISTANCE,
    PAIR_STRUCTURE,
    PAIR_EXACT,
    PAIR_BEST,
)


def found_items_schema() -> pa.Schema:
    """Return the schema of the items that were found: hits.parquet."""
    return _schema(
        *_ITEM,
        _field("document_id", "string", "A document that contains it."),
        *_PLACE,
        _field("start", "int64", "The start of the passage there, in characters."),
        _field("end", "int64", "Its end, exclusive."),
        _field("containment", "float64", "The share of the item's counted shingles found there."),
        _field("rule", "string", "containment, whole, perfect, answer or structure."),
        _field(
            "num_documents",
            "int64",
            (
                "The documents that have the words found, this one included: the median over its "
                "shingles."
            ),
        ),
        _field("grade", "string", "clear, or possible."),
        _field("missing", "string", "Words of the item that are not there."),
    )


def items_schema() -> pa.Schema:
    """Return the schema of the items: items.parquet."""
    return _schema(
        *_ITEM,
        *_PLACE,
        _field(
            "status",
            "string",
            (
                "clean, contaminated, boilerplate (nothing else was found) or short (too short to "
                "be found)."
            ),
        ),
        _nullable("grade", "string", "The best of its hits; null without hits."),
        _field("containment", "float64", "The greatest of its hits; 0 without hits."),
        _field("documents", "int64", "The documents that contain it."),
        _field("shingles", "int64", "Its distinct shingles."),
        _field("common", "int64", "Its boilerplate shingles."),
    )


def boilerplate_schema() -> pa.Schema:
    """Return the schema of the table of boilerplate, which did not count: boilerplate.parquet."""
    return _schema(
        *_ITEM,
        _field("text", "string", "Words of it that do not count."),
        _nullable(
            "documents",
            "int64",
            "The documents that have a sequence around it, at least; null if it has items.",
        ),
        _nullable(
            "items",
            "int64",
            "The items that have its rarest shingle; null if it has documents.",
        ),
    )
