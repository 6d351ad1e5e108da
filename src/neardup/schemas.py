"""The Arrow schema of every table that leaves neardup, with a sentence for each column."""

from __future__ import annotations

import pyarrow as pa


def _field(name: str, kind: pa.DataType, meaning: str) -> pa.Field:
    return pa.field(name, kind, nullable=False, metadata={"meaning": meaning})


_MEASURES = {
    "similarity": _field("similarity", pa.float64(), "Their similarity, computed exactly; 1 for an exact copy."),
    "distance": _field("distance", pa.uint16(), "The Hamming distance of their fingerprints: how many bits differ."),
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
