"""Convert the columns of a record batch to texts, ids and ranks that kernels can trust."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import (
    Floats,
    Integers,
    Ints,
    arrow_of,
    arrow_of_bytes,
    offsets_from_lengths,
)
from neardup.documents import ranks
from neardup.documents.batch import Columns, DocumentBatch, Payload, Reject, Rejected
from neardup.documents.nested import column_of, element_offsets, is_list, with_column
from neardup.documents.turns import Turns, turns_of
from neardup.documents.views import num_bytes, without_views
from neardup.errors import ColumnError, InputError

T = TypeVar("T")
_STRINGS = (pa.string(), pa.large_string(), pa.string_view())
_BINARY = (pa.binary(), pa.large_binary(), pa.binary_view())
Bad = dict[int, str]
"""Row of a batch -> the reason why its value cannot be used."""


def storage_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values, without dictionaries, runs and extensions."""
    if isinstance(kind, pa.BaseExtensionType):
        return storage_type(kind.storage_type)
    is_encoded = pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind)
    return storage_type(kind.value_type) if is_encoded else kind


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type can be read as text."""
    return storage_type(kind) in (*_STRINGS, *_BINARY, pa.null())


def is_turns(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains lists of texts; not a dictionary of lists."""
    return is_list(kind) and is_text(kind.value_type) and not pa.types.is_null(kind.value_type)


def is_vector(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains vectors: lists of numbers. A JSON column of
    nulls counts, as it has no type yet.
    """
    kind = storage_type(kind)
    return bool(is_number(kind.value_type) if is_list(kind) else pa.types.is_null(kind))


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains numbers."""
    kind = storage_type(kind)
    t = pa.types
    checks = (t.is_integer, t.is_floating, t.is_decimal, t.is_boolean, t.is_null)
    return any(is_kind(kind) for is_kind in checks)


def is_rank(kind: pa.DataType) -> bool:
    """Return whether a column of this type can rank documents: numbers, dates and times, or strings
    of them.
    """
    kind = storage_type(kind)
    is_time = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    return is_number(kind) or bool(is_time) or kind in _STRINGS


def is_identifier(kind: pa.DataType) -> bool:
    """Return whether a column of this type can be written as an id."""
    kind = storage_type(kind)
    return is_text(kind) or not pa.types.is_nested(kind)


def invalid_utf8_rows(array: pa.StringArray | pa.LargeStringArray) -> list[int]:
    """Return the rows that are not UTF-8, rising. Takes O(bad rows x log rows) validations."""
    bad: list[int] = []
    ranges = [(0, len(array))]
    while ranges:
        begin, end = ranges.pop()
        try:
            array.slice(begin, end - begin).validate(full=True)
        except (pa.ArrowInvalid, ValueError):
            if end - begin == 1:
                bad.append(begin)
            else:
                middle = (begin + end) // 2
                # The first half is popped first, so rows rise.
                ranges += [(middle, end), (begin, middle)]
    return bad


def _plain(array: pa.Array) -> pa.Array:
    """Resolve extensions, dictionaries and runs."""
    while storage_type(array.type) != array.type:
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        elif pa.types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        else:
            values = array.dictionary
            if pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type):
                values = _through_binary(values)  # Arrow has no `take` for views
            array = values.take(array.indices)
    return array


def as_text(array: pa.Array, what: str) -> tuple[pa.LargeStringArray, Bad]:
    """Return a text column as large_string, with the rows that are not UTF-8.

    Arrow does not validate the strings of a Parquet file, and kernels trust them: they are
    validated here, at 7 GB/s.
    """
    array = _plain(array)
    if array.null_count == len(array):
        return pa.nulls(len(array), "large_string"), {}
    if not is_text(array.type):
        raise ColumnError(
            f"Column {what} contains {array.type}, not text. Name a column of strings."
        )
    # A cast from binary or views to strings would stop at the first bad row.
    text = array.cast("large_string") if pa.types.is_string(array.type) else _through_binary(array)
    bad = dict.fromkeys(invalid_utf8_rows(text), f"{what} is not valid UTF-8")
    return text, bad


def as_vectors(array: pa.Array, length: int) -> tuple[pa.LargeBinaryArray, Bad]:
    """Return a column of lists of numbers as bytes, float32 little-endian, with the rows that
    cannot be compared.

    length : the length of each list, 0 for any length. A null and an empty list have no bytes.
    """
    array = _plain(array)
    if not is_vector(array.type):
        raise ColumnError(
            f"A column of {array.type} has no vectors. Name a column of lists of numbers."
        )
    if array.null_count == len(array):
        return pa.nulls(len(array), "large_binary"), {}
    # `flatten` leaves out the numbers in null rows, so these have no size.
    sizes = pc.list_value_length(array).fill_null(0).to_numpy().astype(np.int64)
    offsets = offsets_from_lengths(sizes)
    with np.errstate(over="ignore"):  # a number beyond float32 becomes infinite
        numbers = array.flatten().to_numpy(zero_copy_only=False).astype("<f4", copy=False)

    bad: Bad = {}
    if length > 0:
        # An empty vector is no error, but a document without features.
        for row in np.flatnonzero((sizes != length) & (sizes > 0)).tolist():
            bad[row] = f"the vector has {sizes[row]} numbers, and others have {length}"
    positions = np.flatnonzero(~np.isfinite(numbers))
    # Empty rows share their offset with the next row; "right" finds the last of them, which has the
    # number.
    undefined = np.unique(np.searchsorted(offsets, positions, "right") - 1)
    reason = "the vector has a number that is null, NaN or infinite in 32 bits"
    bad |= dict.fromkeys(undefined.tolist(), reason)
    return arrow_of_bytes(numbers, 4 * offsets), bad


def as_documents(array: pa.Array, vector_length: int | None) -> tuple[pa.Array, Bad]:
    """Return a column of documents: texts, or vectors of a length."""
    if vector_length is None:
        return as_text(array, "the text")
    return as_vectors(array, vector_length)


def _through_binary(array: pa.Array) -> pa.LargeStringArray:
    if pa.types.is_large_string(array.type):
        return array
    return array.cast("large_binary").view(pa.large_string())


def as_ids(array: pa.Array, what: str = "the id") -> tuple[pa.LargeStringArray, Bad]:
    """Return ids as string or large_string, and the rows that are not UTF-8.

    Numbers and times are written in Arrow's notation, fixed-size bytes in hexadecimal digits.
    """
    array = _plain(array)
    if pa.types.is_string(array.type) and not invalid_utf8_rows(array):
        return array, {}  # the usual column is not copied
    if is_text(array.type):
        return as_text(array, what)
    if pa.types.is_fixed_size_binary(array.type):
        # Bytes of a fixed size, such as a UUID, are no text: their id is hexadecimal.
        values = [None if value is None else value.hex() for value in array.to_pylist()]
        return pa.array(values, "large_string"), {}
    try:
        return array.cast("large_string"), {}
    except pa.ArrowException as error:
        raise ColumnError(
            f"A column of {array.type} cannot be {what}: {error}. Name another column."
        ) from error


def as_rank(array: pa.Array) -> tuple[Floats, Bad]:
    """Return the ranks of a column, in the form of neardup.documents.ranks, with the rows that are
    no rank.
    """
    array = _plain(array)
    kind = array.type
    # A column of nulls is a text by `is_text`, but here numbers without values.
    if is_text(kind) and not pa.types.is_null(kind):
        return _ranks_of_texts(array)
    if not is_rank(kind):
        raise ColumnError(
            f"A column of {kind} cannot rank documents. Name a column of numbers or dates."
        )
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return ranks.ranks_of_times(array), {}
    if pa.types.is_integer(kind):
        return ranks.ranks_of_integers(array), {}
    if pa.types.is_decimal(kind):
        return ranks.ranks_of_decimals(array)
    values = array.cast("float64").fill_null(float("nan"))
    return ranks.ranks_of_floats(values.to_numpy(zero_copy_only=False)), {}


def _ranks_of_texts(array: pa.Array) -> tuple[Floats, Bad]:
    text, not_utf8 = as_text(array, "the rank")
    if not not_utf8:
        return ranks.ranks_of_texts(text)
    values = text.cast("large_binary").to_pylist()
    # A row that is not UTF-8 gets any rank here, and is left out by `not_utf8`.
    found, bad = ranks.ranks_of_each(value and value.decode("utf-8", "replace") for value in values)
    return found, bad | not_utf8


def documents_of(
    batch: pa.RecordBatch,
    rows: Ints,
    columns: Columns,
    file: str,
    reject: Reject,
    *,
    payload: Payload | None = None,
    valid_text: pa.LargeStringArray | None = None,
) -> DocumentBatch:
    """Return the documents of a record batch; rows that cannot be used are rejected and left out.

    valid_text : the text, if it is known to be UTF-8; None to read it from its column.
    """
    found = _Values(batch, file)
    text = valid_text
    if text is None:
        text = found.document(columns)
    more_text = [found.text(name, columns.roles) for name in columns.more_text]
    ids = [found.take(name, as_ids) for name in columns.ids]
    ranks_of_documents = tuple(found.take(name, as_rank) for name in columns.ranks)
    values = [
        found.take(name, partial(as_ids, what=f"the value of {name}")) for name in columns.values
    ]
    documents = DocumentBatch(
        text=join_texts([text, *more_text]) if more_text else text,
        rows=rows,
        ids=join_ids(ids) if ids else None,
        ranks=ranks_of_documents,
        payload=payload,
        values=tuple(values),
    )
    return _without(documents, found.bad, file, reject)


def _without(documents: DocumentBatch, bad: Bad, file: str, reject: Reject) -> DocumentBatch:
    """Reject the bad rows; return the other documents."""
    if not bad:
        return documents
    for row in sorted(bad):
        position = int(documents.rows[row])
        reject(Rejected(file=file, row=position, line=None, byte=None, reason=bad[row]))
    is_good = np.ones(len(documents.rows), np.bool_)
    is_good[list(bad)] = False
    return documents.filter(is_good)


class _Values:
    """The values of the columns of a batch. bad : the rows without a value, by their first
    reason.
    """

    def __init__(self, batch: pa.RecordBatch, file: str) -> None:
        self._batch = batch
        self._file = file
        self.bad: Bad = {}

    def take(self, name: str, convert: Callable[[pa.Array], tuple[T, Bad]]) -> T:
        """Return the values of a column, and note its bad rows."""
        values, bad = convert(_column(self._batch, name, self._file))
        self._note(bad)
        return values

    def document(self, columns: Columns) -> pa.Array:
        """Return the first column of the text, or the vectors."""
        if columns.vector_length is None:
            return self.text(columns.text, columns.roles)
        return self.take(columns.text, partial(as_vectors, length=columns.vector_length))

    def text(self, name: str, roles: Sequence[str]) -> pa.LargeStringArray:
        """Return the texts of a column, of turns joined, and note its bad rows.

        roles : see `turns_of`.
        """
        turns = turns_of(self._batch, name, roles)
        if turns is None:
            return self.take(name, partial(as_text, what="the text"))
        text, bad = join_turns(turns)
        self._note(bad)
        return text

    def _note(self, bad: Bad) -> None:
        for row, reason in bad.items():
            self.bad.setdefault(row, reason)


def with_keys(
    batch: DocumentBatch, columns: Columns, keys: Mapping[str, str | None], file: str
) -> DocumentBatch:
    """Return a batch with the values and ranks that are keys of the folders of its file, in the
    order of `columns`.
    """
    count = len(batch.rows)
    # The batch has only the columns of the file, in their order.
    values_of_file = iter(batch.values)
    ranks_of_file = iter(batch.ranks)
    all_values = []
    for name in columns.values:
        if name in keys:
            all_values.append(pa.repeat(pa.scalar(keys[name], "string"), count))
        else:
            all_values.append(next(values_of_file))
    all_ranks = []
    for name in columns.ranks:
        if name in keys:
            all_ranks.append(np.full((count, 2), _rank_of_key(name, keys[name], file)))
        else:
            all_ranks.append(next(ranks_of_file))
    return replace(batch, values=tuple(all_values), ranks=tuple(all_ranks))


def _rank_of_key(name: str, value: str | None, file: str) -> tuple[float, float]:
    # A key without a value, as Hive writes null, has no rank.
    rank = ranks.rank_of(value or "nan")
    if rank is None:
        raise ColumnError(
            f"The folder {name}={value} of {file} cannot rank documents: its value is neither a "
            "number nor a date. Name another column (keep='max:COLUMN', --keep max:COLUMN)."
        )
    return rank


def join_turns(turns: Turns) -> tuple[pa.LargeStringArray, Bad]:
    """Return the text of each row, its turns joined by line ends, with the rows that are not
    UTF-8. A row without a list is null.
    """
    values = _plain(turns.values)
    if not is_text(values.type):
        raise ColumnError(f"The turns of a text contain {values.type}. Name a column of strings.")
    # As binary: a join of strings that are not UTF-8 is not UTF-8, which `as_text` finds by row.
    values = values.cast(pa.large_binary())
    offsets = turns.offsets
    if not turns.is_text.all():
        offsets = offsets_from_lengths(turns.is_text)[offsets]
        values = values.filter(arrow_of(turns.is_text))
    is_null = arrow_of(turns.is_null) if turns.is_null.any() else None
    lists = pa.LargeListArray.from_arrays(arrow_of(offsets), values, mask=is_null)
    return as_text(pc.binary_join(lists, pa.scalar(b"\n", pa.large_binary())), "the text")


def join_texts(columns: list[pa.LargeStringArray]) -> pa.LargeStringArray:
    """Return the texts of several columns, each on lines of its own; a null is left out."""
    line_end = pa.scalar("\n", "large_string")
    nothing = pa.scalar("", "large_string")
    # Arrow would return null for a row of nulls: its first text becomes empty.
    first = pc.if_else(pc.is_null(pc.coalesce(*columns)), nothing, columns[0])
    return pc.binary_join_element_wise(first, *columns[1:], line_end, null_handling="skip")


def join_ids(columns: list[pa.Array]) -> pa.Array:
    """Join several columns of strings by colons to one id; null if one of them is null.

    Percent signs and colons of the values are percent-encoded, so that rows of different values
    have different ids.
    """
    if len(columns) == 1:
        return columns[0]
    parts = [column.cast("large_binary") for column in columns]  # a rejected row is not UTF-8
    # The percent sign first, because the code of a colon contains one.
    for mark, code in ((b"%", b"%25"), (b":", b"%3A")):
        parts = [pc.replace_substring(part, mark, code) for part in parts]
    joined = pc.binary_join_element_wise(*parts, pa.scalar(b":", "large_binary"))
    return joined.view(pa.large_string())


def replace_column(
    batch: DocumentBatch, name: str, _: Integers, texts: pa.LargeStringArray | Turns
) -> pa.RecordBatch:
    """Return the rows of a batch with other texts, in a column of the same type; see
    `InputFile.replace_texts`.
    """
    table = batch.payload
    assert isinstance(table, pa.RecordBatch)  # the payload of a table
    before = column_of(table, name)
    assert before is not None
    if isinstance(texts, Turns):
        return with_column(table, name, _cast_texts(texts.values, before.type.value_type))
    return with_column(table, name, _cast_texts(texts, before.type))


def _cast_texts(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_run_end_encoded(kind):  # Arrow has no cast to this type
        values = texts.cast(kind.value_type)
        return pc.run_end_encode(values, run_end_type=kind.run_end_type)
    return texts.cast(kind)


def _column(batch: pa.RecordBatch, name: str, file: str) -> pa.Array:
    column = column_of(batch, name)
    if column is None:
        raise ColumnError(
            f"No single column '{name}' in {file}: it has {', '.join(batch.schema.names)}."
        )
    return column


def text_bytes(array: pa.Array) -> int:
    """Return the bytes of a column with resolved dictionaries and runs, which can be far more than
    the memory of the column.
    """
    if is_turns(array.type):
        return text_bytes(array.flatten())
    is_encoded = storage_type(array.type) != array.type
    if is_encoded and is_text(array.type):
        return int(pc.sum(_lengths(array)).as_py() or 0)
    return num_bytes(array)


def _lengths(texts: pa.Array) -> pa.Array:
    """Return the bytes of each text of a column, without resolving dictionaries and runs."""
    if isinstance(texts, pa.ExtensionArray):
        return _lengths(texts.storage)
    if pa.types.is_dictionary(texts.type):
        return _lengths(texts.dictionary).take(texts.indices)
    if pa.types.is_run_end_encoded(texts.type):
        # A slice has the runs of the whole column, and begins at an offset.
        rows = texts.offset + np.arange(len(texts))
        runs = np.searchsorted(texts.run_ends, rows, "right")
        return _lengths(texts.values).take(arrow_of(runs))
    return pc.binary_length(_through_binary(texts).cast("large_binary"))


def slices_of(
    batch: pa.RecordBatch, text_column: str, target_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Cut a batch into slices of about `target_bytes` of text. Only columns of views are copied,
    to plain columns.
    """
    column = column_of(batch, text_column)
    if column is None or batch.num_rows == 0:
        yield without_views(batch)
        return
    if is_turns(column.type):
        _refuse_long_turns(column, text_column)
    # An average: texts of very different lengths give slices of other sizes.
    bytes_per_row = max(1, text_bytes(column) // batch.num_rows)
    step = max(1, target_bytes // bytes_per_row)
    for begin in range(0, batch.num_rows, step):
        yield without_views(batch.slice(begin, step))


MAX_JOINED_BYTES = 1 << 28
"""Largest text of turns in a dictionary, which a small file can make as long as it likes."""


def _refuse_long_turns(column: pa.Array, name: str) -> None:
    """Raise InputError if the turns of a row are longer than MAX_JOINED_BYTES.

    Turns without a dictionary or runs are as long as their column, which is in memory.
    """
    values = column.flatten()
    if storage_type(values.type) == values.type:
        return
    sizes = _lengths(values).fill_null(0).to_numpy(zero_copy_only=False)
    num_bytes = np.diff(offsets_from_lengths(sizes)[element_offsets(column)])
    longest = int(num_bytes.max(initial=0))
    if longest > MAX_JOINED_BYTES:
        raise InputError(
            f"The turns of a row in column '{name}' have {longest:,} bytes together, more than the "
            f"{MAX_JOINED_BYTES:,} that are joined: they repeat a dictionary. Leave such rows out."
        )
