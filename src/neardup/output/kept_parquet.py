"""Writing Parquet as the source was written: codec, dictionaries, statistics, row groups, metadata."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from neardup.output.kept_sinks import SourcePart

# A row group is held in memory until it is written; a source with larger ones is written in smaller ones.
_MAX_GROUP_BYTES = 128 << 20
_DEFAULT_GROUP_ROWS = 1 << 20
_CODECS = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4", "LZO": "SNAPPY"}
# Indices into a dictionary and their run lengths need no more; text stored plainly needs more.
_MAX_INDEX_BYTES_PER_VALUE = 4
# Arrow looks how large a page has become, and ends it at 1 MiB, only after so many values.
_MAX_VALUES, _MIN_VALUES, _BYTES_BETWEEN_LOOKS = 1024, 16, 1 << 19


@dataclass(frozen=True)
class ParquetLayout:
    """How a Parquet file is laid out; by column path where it differs between columns."""

    schema: pa.Schema
    group_rows: int = _DEFAULT_GROUP_ROWS
    values_between_looks: int = _MAX_VALUES
    codecs: dict[str, str] = field(default_factory=dict)
    dictionaries: list[str] = field(default_factory=list)
    statistics: list[str] = field(default_factory=list)
    has_int96: bool = False


def parquet_layout(part: SourcePart) -> ParquetLayout:
    """Return the layout of a Parquet file, from its footer."""
    with part.open_file() as handle:
        file = pq.ParquetFile(handle)
        metadata, schema = file.metadata, file.schema_arrow
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    if not groups:
        return ParquetLayout(schema)
    chunks = [groups[0].column(index) for index in range(groups[0].num_columns)]
    dictionaries = [
        chunks[index].path_in_schema
        for index in range(len(chunks))
        if all(_stayed_dictionary(group.column(index)) for group in groups)
    ]
    return ParquetLayout(
        schema,
        max(1, max(group.num_rows for group in groups)),
        _values_between_looks(groups),
        {chunk.path_in_schema: _CODECS.get(chunk.compression, chunk.compression) for chunk in chunks},
        dictionaries,
        [chunk.path_in_schema for chunk in chunks if chunk.is_stats_set],
        any(chunk.physical_type == "INT96" for chunk in chunks),
    )


def _stayed_dictionary(chunk: Any) -> bool:
    """Whether all pages of a chunk are dictionary indices; writers fall back to plain pages halfway.

    The encodings listed in the footer do not tell: PLAIN stands there for the dictionary page too. The size
    of what follows the dictionary does.
    """
    start = chunk.dictionary_page_offset
    if not chunk.has_dictionary_page or start is None:
        return False
    data_bytes = chunk.total_compressed_size - (chunk.data_page_offset - start)
    return bool(data_bytes <= 64 + _MAX_INDEX_BYTES_PER_VALUE * chunk.num_values)


def _values_between_looks(groups: list[Any]) -> int:
    """Return how many values of the widest column make half a page.

    With Arrow's 1,024, pages of texts grow to several MiB, which costs fresh memory and leaves the cache: writing
    520 MB of text took 1.2 x as long.
    """
    chunks = [group.column(index) for group in groups for index in range(group.num_columns)]
    widest = max((chunk.total_uncompressed_size / max(1, chunk.num_values) for chunk in chunks), default=0.0)
    return int(min(_MAX_VALUES, max(_MIN_VALUES, _BYTES_BETWEEN_LOOKS / max(1.0, widest))))


class ParquetSink:
    """A Parquet file; rows are gathered into row groups."""

    def __init__(self, path: str, layout: ParquetLayout | None = None, schema: pa.Schema | None = None) -> None:
        if layout is None:
            assert schema is not None
            layout = ParquetLayout(schema)
        self._layout = layout
        self._writer = pq.ParquetWriter(
            path,
            layout.schema,
            compression=layout.codecs or "SNAPPY",
            use_dictionary=layout.dictionaries if layout.codecs else True,
            write_statistics=layout.statistics if layout.codecs else True,
            use_deprecated_int96_timestamps=layout.has_int96,
            write_batch_size=layout.values_between_looks,
        )
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = self._waiting_bytes = 0

    def write(self, rows: Any) -> None:
        """Take a RecordBatch; write a row group when there are rows enough."""
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += rows.nbytes
        while self._waiting_rows >= self._layout.group_rows:
            self._write_group()
        if self._waiting_bytes >= _MAX_GROUP_BYTES:
            self._write_group()

    def _write_group(self) -> None:
        table = pa.Table.from_batches(self._waiting, self._waiting[0].schema)
        group = table.slice(0, self._layout.group_rows)
        if group.schema != self._layout.schema:
            group = group.cast(self._layout.schema)
        self._writer.write_table(group, row_group_size=self._layout.group_rows)
        rest = table.slice(group.num_rows)
        self._waiting = rest.to_batches()
        self._waiting_rows, self._waiting_bytes = rest.num_rows, rest.nbytes

    def close(self) -> None:
        """Write the last row group, then the footer."""
        if self._waiting_rows:
            self._write_group()
        self._writer.close()

    def discard(self) -> None:
        """Let go of the file."""
        self._waiting = []
        self._writer.close()
