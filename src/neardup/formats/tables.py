"""Read tables in memory: objects that export Arrow data, and iterables of strings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.arrays import Integers
from neardup.documents.added_columns import append_columns
from neardup.documents.batch import BLOCK_BYTES, Columns, DocumentBatch, Reject
from neardup.documents.nested import ColumnTypes, nested_types, outer_names
from neardup.documents.sources import Identity
from neardup.documents.texts import documents_of, is_text, is_vector, replace_column, slices_of
from neardup.documents.turns import Turns, turns_of_rows
from neardup.documents.views import check_memory, plain_schema
from neardup.errors import ColumnError, InputError
from neardup.formats.parquet import ParquetLayout, ParquetSink
from neardup.settings.constraints import iterates_over_names, shown

_BLOCK_ROWS = 8192  # strings that are converted together; an error names the rows of a block


def as_table(source: Any) -> pa.Table:
    """Return an object's rows as an Arrow table, without a copy of Arrow data.

    Parameters
    ----------
    source : a pyarrow table, batch or reader; anything with `__arrow_c_stream__` (polars, pandas,
        DuckDB); a Hugging Face dataset; or an iterable of str and None, which becomes the column
        `text`.

    Raises
    ------
    InputError
        If it is none of these, or a value of the iterable is not a string.

    Notes
    -----
    A reader or query is read once, here: documents are read several times, and a query may change
    their order.
    """
    # From the most exact type to the most general: nearly everything is iterable.
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    if isinstance(source, (pa.Array, pa.ChunkedArray)):
        return _column_table(source)
    if hasattr(source, "__arrow_c_stream__"):
        return _from_stream(source)
    if is_hugging_face(source):
        return _hugging_face_table(source)
    exported = export_of(source)
    if exported is not None:
        return as_table(exported)
    is_single_or_unordered = isinstance(source, (str, bytes, Set))
    is_iterable = isinstance(source, Iterable) and not iterates_over_names(source)
    if is_single_or_unordered or not is_iterable:
        raise _unknown(source)
    return _string_table(source)


def rereadable(source: Any) -> Any:
    """Return a source that can be read again: an iterator, such as a reader, as its table."""
    return as_table(source) if isinstance(source, Iterator) else source


def export_of(source: Any) -> pa.Table | pa.Array | pa.ChunkedArray | None:
    """Return the table or column of an object without `__arrow_c_stream__`; None for other objects.

    Such objects are of pandas < 2.2, polars < 1.3 and DuckDB < 1.1.
    """
    if hasattr(source, "__arrow_c_stream__"):
        return None
    try:
        if hasattr(source, "iloc"):  # pandas: a DataFrame has columns, a Series has none
            is_data_frame = hasattr(source, "columns")
            return pa.Table.from_pandas(source) if is_data_frame else pa.Array.from_pandas(source)
        export = getattr(source, "to_arrow", None) or getattr(source, "to_arrow_table", None)
        return None if export is None else export()
    except Exception as error:
        raise _cannot_read(source, error) from error


def _column_table(column: pa.Array | pa.ChunkedArray) -> pa.Table:
    """Return a column as a table: of strings as `text`, of vectors as `vector`, of structs as their
    fields.
    """
    if pa.types.is_struct(column.type):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        # Without rows, an empty batch has the names and types of the columns.
        chunks = chunks or [pa.array([], column.type)]
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(chunk) for chunk in chunks])
    is_vectors = is_vector(column.type) and not is_text(column.type)
    return pa.table({"vector" if is_vectors else "text": column})


def _from_stream(source: Any) -> pa.Table:
    """Return the table of an object that exports one, or its column, such as a Series."""
    try:
        # A column of structs looks the same as a table, and may be read as a table.
        return pa.RecordBatchReader.from_stream(source).read_all()
    except pa.ArrowInvalid as error:
        # Arrow names a stream of one column in the message only, not by a type of its own.
        if "non-struct" not in str(error):
            raise _cannot_read(source, error) from error
    except Exception as error:  # any type, from the library that exports
        raise _cannot_read(source, error) from error
    return _column_table(pa.chunked_array(source))


def _cannot_read(source: object, error: Exception) -> InputError:
    return InputError(
        f"Cannot read {type(source).__name__} as a table: {str(error).rstrip('.')}. Convert its "
        "columns to plain strings and numbers first, or pass a pyarrow table."
    )


def splits_of(source: Any) -> dict[str, Any] | None:
    """Return the splits of a Hugging Face DatasetDict by name, in their order; None for other
    objects.
    """
    if isinstance(source, Mapping) and source and all(map(is_hugging_face, source.values())):
        return dict(source)
    return None


def is_hugging_face(source: Any) -> bool:
    """Return whether an object is a Hugging Face Dataset, or a streaming one."""
    return hasattr(source, "with_format") and hasattr(source, "features")


def _hugging_face_table(dataset: Any) -> pa.Table:
    """Return the rows of a datasets.Dataset; its own table ignores select, filter and shuffle."""
    if not hasattr(dataset, "num_rows"):
        raise InputError(
            f"A streaming dataset cannot be read twice: got {type(dataset).__name__}. Load it "
            "without streaming=True, or save it to files and pass their paths."
        )
    return dataset.with_format("arrow")[:]


def _string_table(strings: Iterable[Any]) -> pa.Table:
    """Return the table of strings, or of vectors if the first value is a list."""
    try:
        iterator = iter(strings)
    except TypeError as error:  # an array of numpy without a dimension, for example
        raise _unknown(strings) from error
    begin = 0
    chunks: list[pa.Array] = []
    kind: pa.DataType | None = None  # until there is a document
    while block := list(islice(iterator, _BLOCK_ROWS)):
        try:
            if kind is None:
                kind = _kind_of(block)
            chunks.append(pa.array(block, kind or pa.null()))
        except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError) as error:
            raise _not_strings(block, begin, error) from error
        begin += len(block)
    kind = kind or pa.large_string()
    return _column_table(pa.chunked_array([chunk.cast(kind) for chunk in chunks], kind))


def _kind_of(block: list[Any]) -> pa.DataType | None:
    """Return the type of documents by the first one: strings, or vectors; None without any."""
    document = next((value for value in block if value is not None), None)
    if document is None:
        return None
    is_vector = pa.types.is_list(pa.array([document]).type)
    return pa.large_list(pa.float64()) if is_vector else pa.large_string()


def _not_strings(block: list[Any], begin: int, error: Exception) -> InputError:
    """Return the error for a block of documents that are not all strings.

    begin : the number of the first document of the block.
    """
    for index, value in enumerate(block):
        if value is not None and not isinstance(value, str):
            advice = "Pass an iterable of strings, or a table that has a column of text."
            if isinstance(value, Mapping):
                advice = "Make a table of rows first: pyarrow.Table.from_pylist(rows)."
            return InputError(
                f"Document {begin + index} is {type(value).__name__}, not a string: {value!r:.80}. "
                f"{advice}"
            )
    return InputError(
        f"Documents {begin} to {begin + len(block) - 1} contain a string that is not Unicode text: "
        f"{error}. Replace lone surrogates, for example with text.encode('utf-8', "
        "'replace').decode()."
    )


def _unknown(source: object) -> InputError:
    """Return the error for an object that is no table, with advice for its type."""
    advice = "Put a single text in a list."
    if hasattr(source, "to_table"):
        advice = "Call its to_table() first."
    elif hasattr(source, "collect"):
        advice = "Call its collect() first."
    elif isinstance(source, (Mapping, Set)):
        advice = "Pass a list: documents have an order."
    elif iterates_over_names(source):
        advice = "Convert it to a pyarrow table first."
    return InputError(
        f"Cannot read {type(source).__name__} as documents: {shown(source)}. Accepted are paths, a "
        f"list of strings, or a table (pyarrow, polars, pandas, DuckDB, Hugging Face). {advice}"
    )


class TablePart:
    """A table in memory as one input; it is converted once, then read as often as needed.

    Attributes
    ----------
    name : the value of the column `source_file`.
    format, unit : "table" and "row".
    is_pages : False, as the text is not HTML.
    relative_name : the Parquet file of its kept rows, below the output folder.
    """

    format = "table"
    unit = "row"
    is_pages = False
    takes_columns = True
    stretch = None
    keys = MappingProxyType[str, str | None]({})

    def __init__(self, source: Any, name: str = "table") -> None:
        self.table = as_table(source)
        self.name = name
        self.relative_name = f"{name}.parquet"
        check_memory(self.table, name)

    def folder_values(self, names: Sequence[str]) -> dict[str, str | None]:
        """Return no value: a table in memory is in no folder."""
        return {}

    def identity(self) -> Identity:
        """Return name and size; a table in memory has no time of last change."""
        num_bytes = int(self.table.get_total_buffer_size())
        return Identity(name=self.name, num_bytes=num_bytes, changed_at=0.0)

    def column_types(self) -> ColumnTypes:
        """Return name and type of each column.

        The type of a column without values is null: pandas makes it a double.
        """
        columns = zip(self.table.schema.names, self.table.columns, strict=True)
        types = {
            name: pa.null() if column.null_count == len(column) else column.type
            for name, column in columns
        }
        return nested_types(types)

    def num_rows(self) -> int:
        """Return the number of rows."""
        return int(self.table.num_rows)

    def is_bare(self) -> bool:
        """Return whether the table has no columns."""
        return bool(self.table.num_columns == 0)

    def stretches(self) -> list[TablePart]:
        """Return the only stretch, the whole table."""
        return [self]

    def read(
        self, columns: Columns, reject: Reject, *, with_payload: bool = False
    ) -> Iterator[DocumentBatch]:
        """Yield the rows in order, about `BLOCK_BYTES` of text at a time."""
        schema = self.table.schema
        for name in columns.names:
            if schema.names.count(name) > 1:
                raise ColumnError(
                    f"Which column is '{name}'? {self.name} has several. Rename all but one."
                )
        names = None if with_payload else outer_names(schema, columns.names)
        first_row = 0
        for batch in self.batches(names):
            for piece in slices_of(batch, columns.sliced_by, BLOCK_BYTES):
                if piece.num_rows == 0:
                    continue
                rows = np.arange(first_row, first_row + piece.num_rows, dtype=np.int64)
                first_row += piece.num_rows
                payload = piece if with_payload else None
                yield documents_of(piece, rows, columns, self.name, reject, payload=payload)

    def batches(self, names: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches. names : the columns; None for all."""
        table = self.table if names is None else self.table.select(names)
        yield from table.to_batches()

    replace_texts = staticmethod(replace_column)

    def turns_of(self, batch: DocumentBatch, columns: Columns, _: Integers) -> Turns | None:
        """Return the turns of the texts of a batch; see `InputFile.turns_of`."""
        return turns_of_rows(batch, columns)

    append_columns = staticmethod(append_columns)

    def make_sink(self, added: pa.Schema | None = None) -> Callable[[str], ParquetSink]:
        """Return the function that opens a Parquet file to write rows, with the added columns."""
        layout = ParquetLayout(plain_schema(self.table.schema))
        return partial(ParquetSink, layout=layout if added is None else layout.widened(added))
