"""Turning kept rows into another format's: lines to tables, tables to lines."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from neardup.errors import OutputError
from neardup.formats import Pages, lines_array
from neardup.output.kept_sinks import Sink, remove_quietly

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
ChosenLines = tuple[pa.Buffer, np.ndarray]


def unchanged(chosen: Any) -> Any:
    """Return what it is given: the format stays."""
    return chosen


def bytes_of(chosen: ChosenLines) -> pa.Buffer:
    """Return the bytes of lines."""
    return chosen[0]


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with dictionaries resolved: an Arrow file allows one for each column, no more."""
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in schema
    ]
    return pa.schema(fields, schema.metadata)


def plain_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch in its `plain_schema`."""
    columns = [
        column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in batch.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=plain_schema(batch.schema))


def rows_of_lines(chosen: ChosenLines) -> pa.RecordBatch:
    """Return lines of text as a column `text`, without line ends."""
    text = lines_array(*chosen).view(pa.large_string())
    bare = pc.replace_substring_regex(text, pattern=r"\r?\n\z", replacement="")
    return pa.record_batch([bare], names=["text"])


def rows_of_file(chosen: ChosenLines) -> pa.RecordBatch:
    """Return a file of text as one row of a column `text`."""
    text = chosen[0].to_pybytes().removeprefix(_BYTE_ORDER_MARK).decode("utf-8")
    return pa.record_batch([pa.array([text], pa.large_string())], names=["text"])


def rows_of_pages(pages: Pages) -> pa.RecordBatch:
    """Return pages as rows."""
    return pages.rows()


def joined_pages(pages: Pages) -> bytes:
    """Return the bytes of pages, one after the other."""
    return b"".join(pages.records)


def text_lines_of(batch: pa.RecordBatch, text_column: str) -> bytes:
    """Return a column as lines; line breaks inside a text become blanks, a null an empty line."""
    text = batch.column(batch.schema.get_field_index(text_column)).cast(pa.large_string()).fill_null("")
    one_line = pc.replace_substring_regex(text, pattern=r"[\r\n]+", replacement=" ")
    return "".join(line + "\n" for line in one_line.to_pylist()).encode("utf-8")


def text_lines_of_json(chosen: ChosenLines, text_column: str) -> bytes:
    """Return one key of JSON lines as lines of text."""
    records = (json.loads(line) for line in _json_lines(chosen))
    texts = pa.array([record.get(text_column) for record in records], pa.large_string())
    return text_lines_of(pa.record_batch([texts], names=[text_column]), text_column)


def _json_lines(chosen: ChosenLines) -> Iterator[str]:
    for line in lines_array(*chosen).to_pylist():
        yield line.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "replace")


def json_lines_of(batch: pa.RecordBatch) -> bytes:
    """Return rows as JSON lines; times as ISO 8601, bytes as base64, decimals as strings, nan as null."""
    return "".join(_json_line(row) + "\n" for row in batch.to_pylist()).encode("utf-8")


def _json_line(row: dict[str, Any]) -> str:
    try:
        return json.dumps(row, ensure_ascii=False, allow_nan=False, default=_json_value)
    except ValueError:
        return json.dumps(_finite(row), ensure_ascii=False, default=_json_value)


def _json_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class JsonLinesToTable:
    """JSON lines on their way into a table, whose columns are known only once all lines have been seen.

    The lines wait in a file beside the output; `close` reads them with the columns and types of all.
    """

    def __init__(self, path: str, make_sink: Callable[[pa.Schema], Callable[[str], Sink]], name: str) -> None:
        self._path, self._make_sink, self._name = path, make_sink, name
        self._spool_path = path + ".lines"
        self._spool = open(self._spool_path, "wb")  # noqa: SIM115
        self._sizes: list[int] = []
        self._schema = pa.schema([])

    def write(self, rows: Any) -> None:
        """Take whole lines."""
        rows = memoryview(rows)
        data = bytes(rows) if bytes(rows[-1:]) == b"\n" else bytes(rows) + b"\n"
        try:
            seen = _read_json(data, None).schema
            self._schema = pa.unify_schemas([self._schema, seen], promote_options="permissive")
        except (pa.ArrowException, UnicodeDecodeError) as error:
            raise _no_table(self._name, error) from error
        self._spool.write(data)
        self._sizes.append(len(data))

    def close(self) -> None:
        """Write the table."""
        self._spool.close()
        sink = self._make_sink(self._schema)(self._path)
        try:
            with open(self._spool_path, "rb") as lines:
                for size in self._sizes:
                    for batch in _read_json(lines.read(size), self._schema).to_batches():
                        sink.write(batch)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            sink.discard()
            raise _no_table(self._name, error) from error
        finally:
            remove_quietly(self._spool_path)
        sink.close()

    def discard(self) -> None:
        """Remove the waiting lines."""
        self._spool.close()
        remove_quietly(self._spool_path)


def _read_json(data: bytes, schema: pa.Schema | None) -> pa.Table:
    table = pa_json.read_json(
        pa.BufferReader(data),
        read_options=pa_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=pa_json.ParseOptions(explicit_schema=schema),
    )
    if schema is not None:
        # Inference leaves broken lists where the first element is null (apache/arrow#51305).
        table = table.select(schema.names).cast(schema)
        table.validate(full=True)
    return table


def _no_table(name: str, error: Exception) -> OutputError:
    return OutputError(
        f"The lines of {name} do not fit one table: {error}. In a table each column has one type. "
        "Leave the output format unset, or use 'jsonl', to keep the lines as they are."
    )
