"""The Arrow schema of every table that leaves neardup, with a sentence for each column."""

from __future__ import annotations

import pyarrow as pa


def _field(name: str, kind: pa.DataType, meaning: str) -> pa.Field:
    return pa.field(name, kind, nullable=False, metadata={"meaning": meaning})


_MEASURES = {
    "similarity": _field("similarity", pa.float64(), "Their similarity, computed exactly; 1 for an exact copy."),
    "distance": _field("distance", pa.uint16(), "The Hamming distance of their fingerprints: how many bits differ."),
    "structure": _field("structure", pa.float64(), "How alike the structure of the two pages is; 1 for an exact copy."),
    "exact": _field("exact", pa.bool_(), "Whether both are the same text after normalisation."),
}


def removed_schema(measures: tuple[str, ...]) -> pa.Schema:
    """Return the schema of the table of removed documents; `measures` are those of the method's settings."""
    return pa.schema(
        [
            _field("id", pa.string(), "The removed document: its id column as text, else its running number."),
            _field("source_file", pa.string(), "The input it came from, as it was named."),
            _field("row", pa.int64(), "Its row in that input, from 0; for lines of text, the line from 0."),
            _field("kept_id", pa.string(), "The kept document that removed it: the most similar, ties to the earlier."),
            _field("kept_source_file", pa.string(), "The input that the kept document came from, as it was named."),
            _field("kept_row", pa.int64(), "The row of the kept document in that input, from 0."),
            _field("kept_role", pa.string(), "source, or against for a document of the earlier collection."),
            *(_MEASURES[name] for name in measures),
            _field("cluster", pa.int64(), "The running number of the kept document; equal within a cluster."),
        ]
    )


def pairs_schema(measures: tuple[str, ...]) -> pa.Schema:
    """Return the schema of the table of duplicate pairs."""
    return pa.schema(
        [
            _field("left_id", pa.string(), "The earlier document of the pair."),
            _field("right_id", pa.string(), "The later document of the pair."),
            *(_MEASURES[name] for name in measures),
        ]
    )


def clusters_schema(measures: tuple[str, ...]) -> pa.Schema:
    """Return the schema of the table of every document with its cluster."""
    return pa.schema(
        [
            _field("id", pa.string(), "The document: its id column as text, else its running number."),
            _field("source_file", pa.string(), "The input it came from, as it was named."),
            _field("row", pa.int64(), "Its row in that input, from 0; for lines of text, the line from 0."),
            _field("cluster", pa.int64(), "Its cluster; 0 is the largest, ties by the first document."),
            _field("size", pa.int64(), "The number of documents in the cluster; 1 for a document like no other."),
            _field("is_first", pa.bool_(), "Whether it is the first document of its cluster."),
            *(_MEASURES[name].with_metadata({"meaning": _TO_FIRST[name]}) for name in measures),
        ]
    )


_TO_FIRST = {
    "similarity": "The similarity to the first document of the cluster, computed exactly; 1 for itself.",
    "distance": "The Hamming distance to the fingerprint of the first document: how many bits differ.",
    "exact": "Whether it is the same text as the first document after normalisation.",
}


def cluster_summary_schema() -> pa.Schema:
    """Return the schema of the table of clusters of two documents or more: size, name, examples."""
    return pa.schema(
        [
            _field("cluster", pa.int64(), "The cluster, as in the table of documents; rising, the largest first."),
            _field("size", pa.int64(), "The number of documents in it."),
            _field(
                "name", pa.string(), "What its documents share, in a line; null behind the 1,000 largest."
            ).with_nullable(True),
            _field("first_id", pa.string(), "The first document, to which the others are similar."),
            _field("example_ids", pa.list_(pa.string()), "Up to five others, evenly from the second to the last."),
        ]
    )


_SCORES = (
    _field("found", pa.int64(), "Pairs that were found, of those of which it is known what they are."),
    _field("correct", pa.int64(), "Found pairs that are duplicates."),
    _field("positives", pa.int64(), "All pairs that are duplicates, found or not."),
    _field("precision", pa.float64(), "correct / found; null if nothing was found.").with_nullable(True),
    _field("recall", pa.float64(), "correct / positives; null if there is nothing to find.").with_nullable(True),
    _field("f1", pa.float64(), "2 correct / (found + positives); null if both are 0.").with_nullable(True),
)


def curve_schema(limit: str) -> pa.Schema:
    """Return the schema of the scores over a method's limit, threshold or max_distance."""
    kind = pa.float64() if limit == "threshold" else pa.int64()
    return pa.schema([_field(limit, kind, "From where on, or up to where, a pair counts as found."), *_SCORES])


def length_schema() -> pa.Schema:
    """Return the schema of the scores by length of text."""
    return pa.schema(
        [
            _field("characters_from", pa.int64(), "The least number of characters of the shorter text of a pair."),
            _field("characters_to", pa.int64(), "The greatest."),
            _field("documents", pa.int64(), "Documents of that length of which something is known."),
            *_SCORES,
        ]
    )
