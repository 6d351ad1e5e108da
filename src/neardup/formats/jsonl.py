"""JSON lines: Arrow's parser for whole blocks, the standard library's for the lines it refuses.

The result of a line depends on that line alone: it is accepted if either parser accepts it, and
parsers that both accept it agree. Arrow's parser (26.0) has two traps: a top-level `null` on the
first line ends the process (apache/arrow#47409), and several values on a line count as several
rows. So only lines that begin with `{` and end with `}` reach it, and its row count must match. A
value cannot span lines then: JSON allows nothing between the `}` of one line and the `{` of the
next.

A line may also begin with the record separator of JSON text sequences (RFC 7464, `jq --seq -c`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json

from neardup.arrays import Bytes, Integers, Ints, Mask, offsets_from_lengths
from neardup.documents.added_columns import append_keys
from neardup.documents.batch import (
    BLOCK_BYTES,
    Columns,
    DocumentBatch,
    RawLines,
    Reject,
    Rejected,
    concatenate,
    replace_lines,
    select_lines,
)
from neardup.documents.lines import BYTE_ORDER_MARK, LineBlock, read_line_blocks
from neardup.documents.nested import (
    ELEMENTS,
    ColumnTypes,
    is_list,
    nested_types,
    path_of,
)
from neardup.documents.ranks import EXACT_BELOW, rank_of
from neardup.documents.sinks import sink_of_lines
from neardup.documents.sources import Source
from neardup.documents.stretches import stretches_of_lines
from neardup.documents.texts import documents_of
from neardup.documents.turns import Turns, role_columns
from neardup.files import JsonObject
from neardup.formats.json_paths import (
    Path,
    Turn,
    find_strings,
    join_turns,
    kind_of,
    turns_in,
    value_at,
)
from neardup.formats.registry import Handler, Widening

SAMPLE_LINES = 100
"""The columns of a file are the keys of this many lines at its beginning."""

_SEPARATOR = 0x1E  # before each record of a JSON text sequence
_BLANKS = b" \t\r\n" + bytes([_SEPARATOR])
_IS_BLANK = np.isin(np.arange(256), list(_BLANKS))
_LEAF_LINES = 16  # a refused range of no more lines is read line by line, not halved again
_LINES_AT_ONCE = 256  # of a sample, which ends soon in most files
_MAX_DEPTH = 8  # of objects whose keys are columns
_SURROGATE = re.compile("[\ud800-\udfff]")  # bytes that are not UTF-8 are decoded to these
_TOO_DEEP = "the line is nested too deeply"


class _Wanted(NamedTuple):
    """The columns to read from each line, the keys that lead to each, and their types for Arrow."""

    columns: Columns
    keys: dict[str, Path]  # of the columns, and of the roles of turns
    kinds: ColumnTypes

    @property
    def schema(self) -> pa.Schema:
        """The columns in the objects that contain them."""
        return pa.schema(_fields({self.keys[name]: kind for name, kind in self.kinds.items()}))

    def with_ranks_as(self, kind: pa.DataType) -> _Wanted:
        """Return the same columns, with another type of all ranks."""
        return self._replace(kinds=self.kinds | dict.fromkeys(self.columns.ranks, kind))


def _fields(kinds: dict[Path, pa.DataType]) -> list[pa.Field]:
    """Return paths as fields; a path with several keys is a field of a struct or a list."""
    inside: dict[str, dict[Path, pa.DataType]] = {}  # by outermost key: the paths after it
    for (key, *inner), kind in kinds.items():
        below = inside.setdefault(str(key), {})
        if inner:
            below[tuple(inner)] = kind
    return [
        pa.field(key, _type_around(below) if below else kinds[key,])
        for key, below in inside.items()
    ]


def _type_around(kinds: dict[Path, pa.DataType]) -> pa.DataType:
    """Return the struct or the list that contains some paths."""
    below = {path[1:]: kind for path, kind in kinds.items() if path[0] is None}
    if not below:
        return pa.struct(_fields(kinds))
    elements = below.pop((), None)
    return pa.list_(_type_around(below) if below else elements)


def column_types(source: Source) -> ColumnTypes:
    """Return the keys of the first lines, each with the type that its values suggest."""
    records = []
    ignored: list[Rejected] = []
    for line in islice(_sample(source, ignored.append), SAMPLE_LINES):
        with suppress(ValueError, RecursionError):
            records.append(json.loads(line))
    return _types_of_records(records)


def _types_of_records(records: Sequence[Any]) -> ColumnTypes:
    """Return the keys of objects, each with the type that its values suggest."""
    # The Python types of the values of each path, with their numbers.
    kinds: dict[Path, Counter[str]] = {}
    for record in records:
        if isinstance(record, dict):
            _collect_kinds(record, (), kinds)
    types = {
        path: _arrow_type(_usual(seen, is_element=path[-1] is None)) for path, seen in kinds.items()
    }
    # A key that is an object in some lines only may be read as a string: nothing is inside it then.
    columns: dict[Path, pa.DataType] = {}
    # An object comes before the keys inside it.
    for path in sorted(types, key=len):
        *outer, key = path
        around = columns.get(tuple(outer), pa.null())
        if not outer or (is_list(around) if key is None else pa.types.is_struct(around)):
            columns[path] = types[path]
    return {field.name: field.type for field in _fields(columns)}


def _collect_kinds(
    record: JsonObject | list[Any], path: Path, kinds: dict[Path, Counter[str]]
) -> None:
    """Add the types of the values of an object or a list, and of the values inside them, to
    `kinds`.
    """
    items = (
        list(record.items()) if isinstance(record, dict) else [(None, value) for value in record]
    )
    for key, value in items:
        kinds.setdefault((*path, key), Counter())[type(value).__name__] += 1
    if len(path) + 1 == _MAX_DEPTH:
        return
    for key, value in items:
        if isinstance(value, (dict, list)):
            _collect_kinds(value, (*path, key), kinds)


@lru_cache(maxsize=64)
def _types_of(source: Source, _: tuple[int, float]) -> ColumnTypes:
    """Return the types of a file; cached for its stretches, by its size and time of last change."""
    # The whole file: its types must not depend on the stretch that asks first.
    return column_types(replace(source, stretch=None))


def _sample(source: Source, reject: Reject) -> Iterator[str]:
    """Yield the lines with text, decoded."""
    for block in read_line_blocks(source, reject):
        for begin in range(0, block.num_lines, _LINES_AT_ONCE):
            filled = _has_text(block.data, block.offsets[begin : begin + _LINES_AT_ONCE + 1])
            for index in (begin + np.flatnonzero(filled)).tolist():
                yield block.line(index).strip(_BLANKS).decode("utf-8-sig", "replace")


def _usual(seen: Counter[str], *, is_element: bool) -> set[str]:
    """Return the types of the values of a path, without strings if most values are lists, or
    numbers in a list; objects alone if most values in a list are objects.

    One bad line neither hides the turns of chats nor turns vectors into lists of texts: it is
    rejected later. Numbers beside strings outside lists are both fine, as identifiers.
    """
    del seen["NoneType"]
    usual = max(seen, key=seen.__getitem__, default="")
    types = set(seen)
    if usual == "list" or (is_element and usual == "dict"):
        return {usual}
    return types - {"str"} if is_element and usual in ("int", "float") else types


def _arrow_type(seen: set[str]) -> pa.DataType:
    """Return the type of a column from the names of the Python types of its values."""
    if not seen:
        return pa.null()
    scalars = seen & {"str", "int", "bool", "float"}
    if not scalars:
        return pa.list_(pa.null()) if seen == {"list"} else pa.struct([])
    # Lines with a list or an object among scalars are rejected later.
    if "str" in scalars:
        return pa.large_string()
    if scalars == {"int"}:
        return pa.int64()
    return pa.bool_() if scalars == {"bool"} else pa.float64()


def read(
    source: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the documents of a file of JSON lines; blank lines are no documents."""
    # The types of texts are known; a dot may be in a key, or lead into an object.
    only_texts = len(columns.names) == len(columns.texts)
    has_paths = any("." in name or ELEMENTS in name for name in columns.names)
    types = _types_of(source, source.stat()) if has_paths or not only_texts else {}
    kinds = _kinds(types, columns)
    wanted = _Wanted(
        columns=columns, keys={name: _keys_of(types, name) for name in kinds}, kinds=kinds
    )
    for block in read_line_blocks(source, reject):
        yield from _documents(block, wanted, source, reject, with_payload)


def _keys_of(types: ColumnTypes, name: str) -> Path:
    """Return the keys that lead to a column. types : the known types of the file."""
    fields: Any = pa.schema(types)
    keys: list[str | None] = []
    for index in path_of(fields, name) or ():
        field = fields.field(index)
        keys.append(None if isinstance(fields, pa.DataType) and is_list(fields) else field.name)
        fields = field.type
    # A name that the first lines do not have is a key of later lines.
    return tuple(keys) or (name,)


def _kinds(types: ColumnTypes, columns: Columns) -> ColumnTypes:
    """Return the types to read columns as. types : the known types of the file."""
    types = nested_types(types)
    fields: ColumnTypes = {}
    for name in columns.texts if columns.roles else ():
        fields |= {role: pa.string() for role in role_columns(name) if role in types}
    for name in columns.ranks:
        kind = types.get(name, pa.null())
        fields[name] = kind if kind in (pa.large_string(), pa.int64()) else pa.float64()
    for name in (*columns.values, *columns.ids):
        is_whole = pa.types.is_int64(types.get(name, pa.null()))
        fields[name] = pa.int64() if is_whole else pa.string()
    kind = pa.large_string() if columns.vector_length is None else pa.list_(pa.float64())
    fields |= dict.fromkeys(columns.texts, kind)
    return fields


def _documents(
    block: LineBlock, wanted: _Wanted, source: Source, reject: Reject, with_payload: bool
) -> Iterator[DocumentBatch]:
    """Yield the documents of a block as a batch, if there are any; reject its other lines."""
    is_object, bad = _looks_like_objects(block)
    lines = np.flatnonzero(is_object)
    data, offsets = select_lines(block.data, block.offsets, is_object)
    pieces, refused = _parse(_without_separators(data, offsets), offsets, wanted)
    bad |= {int(lines[row]): reason for row, reason in refused.items()}
    for index in sorted(bad):
        reject(_rejected(block, source, index, bad[index]))
    if pieces:
        found = concatenate(pieces)
        payload = None
        if with_payload:
            is_read = np.zeros(len(lines), np.bool_)
            is_read[found.rows] = True
            payload = RawLines(*select_lines(data, offsets, is_read))
        yield replace(found, rows=lines[found.rows] + block.first_line, payload=payload)
    elif bad:
        yield _empty_batch(wanted.columns, reject, with_payload)


def _without_separators(data: pa.Buffer, offsets: Ints) -> pa.Buffer:
    """Return lines with a blank for the record separator that begins them, which is no JSON."""
    values = np.frombuffer(data, np.uint8)
    begins = offsets[:-1]
    separators = begins[values[begins] == _SEPARATOR]
    if not len(separators):
        return data
    blanked = values.copy()
    blanked[separators] = ord(" ")
    return pa.py_buffer(blanked)


def _rejected(block: LineBlock, source: Source, index: int, reason: str) -> Rejected:
    """Return a line of a block as a rejected row; the last line of a file may be cut short."""
    row = block.rejected(source, index, reason)
    line = block.line(index).strip(_BLANKS)
    is_complete = line.endswith((b"}", b"]", b","))
    if block.is_unfinished(index) and line.startswith(b"{") and not is_complete:
        reason = f"the file is cut short inside this line: {row.reason}"
        return row._replace(reason=reason, rest_of_file=True)
    return row


def _empty_batch(columns: Columns, reject: Reject, with_payload: bool) -> DocumentBatch:
    """Return a batch without documents.

    After it, the reader passes on the rejected rows; without it, it would collect the rejected rows
    of a whole file.
    """
    no_rows = pa.RecordBatch.from_pylist([], pa.schema(_kinds({}, columns)))
    batch = documents_of(no_rows, np.zeros(0, np.int64), columns, "", reject)
    payload = RawLines(pa.py_buffer(b""), np.zeros(1, np.int64)) if with_payload else None
    return replace(batch, payload=payload)


def _looks_like_objects(block: LineBlock) -> tuple[Mask, dict[int, str]]:
    """Return which lines begin with `{` and end with `}`, and the reasons against the other lines
    that are not blank.
    """
    data = block.data
    begins = block.offsets[:-1]
    lasts = block.offsets[1:] - 1
    lasts = lasts - (data[lasts] == ord("\n"))  # the last byte before the line end
    # Without the limit, a separator as the last byte of a file would have no byte after it.
    firsts = np.minimum(begins + (data[begins] == _SEPARATOR), len(data) - 1)
    begins_object = data[firsts] == ord("{")
    # The last byte of an empty line would be one of the line before.
    ends_object = data[np.maximum(lasts, begins)] == ord("}")
    is_object = begins_object & ends_object

    # Blanks around an object, and the mark of the file, are seen line by line.
    bad: dict[int, str] = {}
    for index in _lines_with_text(block, ~is_object):
        mark = BYTE_ORDER_MARK if block.begins_file and index == 0 else b""
        line = block.line(index).removeprefix(mark).strip(_BLANKS)
        if line.startswith(b"{") and line.endswith(b"}"):
            is_object[index] = True
        elif line:
            bad[index] = why_no_object(line)
    return is_object, bad


def _lines_with_text(block: LineBlock, mask: Mask) -> list[int]:
    """Return the lines of a block that are in a mask and have more than blanks."""
    selected, offsets = select_lines(block.data, block.offsets, mask)
    has_text = _has_text(np.frombuffer(selected, np.uint8), offsets)
    lines: list[int] = np.flatnonzero(mask)[has_text].tolist()
    return lines


def _has_text(data: Bytes, offsets: Ints) -> Mask:
    """Return whether each line has more than blanks. offsets : of the lines in `data`.

    All lines are looked at together: a small compressed file may have millions of blank lines.
    """
    if len(offsets) < 2:
        return np.zeros(0, np.bool_)
    is_text = ~_IS_BLANK[data[offsets[0] : offsets[-1]]]
    # `reduceat` requires that no line is empty: each has a line end, or is the last.
    has_text: Mask = np.logical_or.reduceat(is_text, offsets[:-1] - offsets[0])
    return has_text


def why_no_object(line: bytes) -> str:
    """Return the reason why a line that is not an object cannot be read."""
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return f"the line is not valid UTF-8: {error.reason} at byte {error.start} of the line"
    except RecursionError:
        return _TOO_DEEP
    except ValueError as error:
        return _not_json(error)
    return f"the line is {kind_of(value)}, not an object"


def _not_json(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        # Python's "Invalid control character at" has no place in its message.
        problem = error.msg.removesuffix(" at")
        return f"the line is not JSON: {problem} at column {error.colno}"
    return f"the line is not JSON: {error}"


def _parse(
    data: pa.Buffer, offsets: Ints, wanted: _Wanted
) -> tuple[list[DocumentBatch], dict[int, str]]:
    """Parse lines that look like objects. A range that Arrow refuses is halved, then read line by
    line.

    Returns
    -------
    documents : their rows are numbers of lines.
    bad : the reasons why lines are refused, by their numbers.
    """
    pieces: list[DocumentBatch] = []
    bad: dict[int, str] = {}
    # Ranks that are whole numbers in the first lines may have a fraction in later ones.
    has_whole_ranks = any(pa.types.is_int64(wanted.kinds[name]) for name in wanted.columns.ranks)
    ranges = [(0, len(offsets) - 1)] if len(offsets) > 1 else []
    while ranges:
        begin, end = ranges.pop()
        piece = _parse_fast(data, offsets, begin, end, wanted)
        if piece is None and has_whole_ranks:
            piece = _parse_fast(data, offsets, begin, end, wanted.with_ranks_as(pa.float64()))
        if piece is not None:
            pieces.append(piece)
        elif end - begin > _LEAF_LINES:
            middle = (begin + end) // 2
            ranges += [(middle, end), (begin, middle)]  # the first half is popped first
        else:
            pieces += _parse_slowly(data, offsets, range(begin, end), wanted, bad)
    return pieces, bad


def _parse_fast(
    data: pa.Buffer, offsets: Ints, begin: int, end: int, wanted: _Wanted
) -> DocumentBatch | None:
    """Return the lines of a range as Arrow parses them; None if it does not parse all of them."""
    start = int(offsets[begin])
    size = int(offsets[end]) - start
    parse_options = pa_json.ParseOptions(
        explicit_schema=wanted.schema, unexpected_field_behavior="ignore"
    )
    try:
        # One block, larger than the lines, so that no line straddles two blocks.
        table = pa_json.read_json(
            pa.BufferReader(data.slice(start, size)),
            read_options=pa_json.ReadOptions(use_threads=False, block_size=size + 1),
            parse_options=parse_options,
        )
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    if table.num_rows != end - begin:  # a line with several values
        return None
    refused: list[Rejected] = []
    batch = table.combine_chunks().to_batches()[0]
    found = documents_of(batch, np.arange(begin, end), wanted.columns, "", refused.append)
    # The caller then halves the range, so that a bad line gets a reason of its own.
    if refused:
        return None
    _correct_ranks(found, data, offsets, wanted)
    return found


def _correct_ranks(found: DocumentBatch, data: pa.Buffer, offsets: Ints, wanted: _Wanted) -> None:
    """Read ranks again that Arrow rounded: integers that float64 cannot represent."""
    for name, rank in zip(wanted.columns.ranks, found.ranks, strict=True):
        if not pa.types.is_floating(wanted.kinds[name]):
            continue
        size = np.abs(rank[:, 0])
        is_rounded = (size >= EXACT_BELOW) & (size < np.inf)
        for row in np.flatnonzero(is_rounded).tolist():
            line = _line(data, offsets, int(found.rows[row]))
            with suppress(TypeError):  # a line that Arrow alone reads
                rank[row] = rank_of(_read_line(line, wanted)[name])


def _line(data: pa.Buffer, offsets: Ints, row: int) -> bytes:
    start = int(offsets[row])
    return bytes(data.slice(start, int(offsets[row + 1]) - start).to_pybytes())


def _parse_slowly(
    data: pa.Buffer, offsets: Ints, lines: range, wanted: _Wanted, bad: dict[int, str]
) -> Iterator[DocumentBatch]:
    """Yield lines one by one; add the reasons against refused lines to `bad`."""
    columns = wanted.columns
    # As in `_parse_fast`, where `as_ids` returns whole numbers as large_string.
    numbers = [name for name, kind in wanted.kinds.items() if pa.types.is_int64(kind)]
    types = _kinds({}, columns) | dict.fromkeys((*numbers, *columns.ranks), pa.large_string())
    schema = pa.schema(types)
    # A rank that is a string elsewhere may be a number here, which Arrow reads if it expects one.
    numeric = wanted.with_ranks_as(pa.float64())
    for index in lines:
        line = _line(data, offsets, index)
        try:
            row = pa.RecordBatch.from_pylist([_read_line(line, wanted)], schema)
            yield documents_of(row, np.array([index]), columns, "", _refuse)
        except (TypeError, pa.ArrowInvalid) as error:
            # Deep nesting and the literal Inf: Arrow reads them, the standard library does not.
            piece = _parse_fast(data, offsets, index, index + 1, numeric)
            if piece is None:
                bad[index] = str(error)
            else:
                yield piece


def _refuse(row: Rejected) -> None:
    raise TypeError(row.reason)


def _read_line(line: bytes, wanted: _Wanted) -> JsonObject:
    """Return the columns of one line, with the types of `_kinds`. Raises TypeError with the reason
    if it cannot be read.
    """
    columns = wanted.columns
    try:
        found = _values_of(line, wanted)
        ids = {name: _text_of(found[name]) for name in columns.ids}
        ranks = {name: _rank_text(found[name]) for name in columns.ranks}
        values = {name: _text_of(found[name], f"'{name}'") for name in columns.values}
    except RecursionError as error:
        raise TypeError(_TOO_DEEP) from error
    except (ValueError, OverflowError) as error:
        raise TypeError(_not_json(error)) from error
    # A column may have several uses: as a text it must be a string, as an id it may be a number.
    texts = {name: found[name] for name in columns.texts}
    row: JsonObject = ranks | values | ids | texts
    _check_texts(texts, is_text=columns.vector_length is None)
    for name in columns.names:
        if isinstance(row[name], str) and _SURROGATE.search(row[name]):
            raise TypeError(_why_not_unicode(line, name))
    return row


def _values_of(line: bytes, wanted: _Wanted) -> JsonObject:
    """Return the values of the columns, as the line has them."""
    record = _value_of(line)
    if not isinstance(record, dict):
        raise TypeError(f"the line is {kind_of(record)}, not an object")
    columns = wanted.columns
    values = {}
    for name in columns.names:
        keys = wanted.keys[name]
        if None in keys:
            values[name] = join_turns(turns_in(record, keys), columns.roles)
        else:
            values[name] = value_at(record, keys)
    return values


def _value_of(line: bytes) -> Any:
    bare = line.removeprefix(BYTE_ORDER_MARK).strip(_BLANKS)
    # Invalid bytes become surrogates, which matter only in the columns that are read.
    return json.loads(bare.decode("utf-8", "surrogateescape"))


def _check_texts(texts: JsonObject, *, is_text: bool) -> None:
    for name, value in texts.items():
        if value is not None and not isinstance(value, str if is_text else list):
            needed = "a string" if is_text else "a list of numbers"
            raise TypeError(f"'{name}' is {kind_of(value)}, not {needed}")


def _text_of(value: Any, what: str = "the id") -> str | None:
    """Return an id or a value as a string."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    raise TypeError(f"{what} is {kind_of(value)}, not a string or a number")


def _rank_text(value: Any) -> str | None:
    """Return a rank as a string, from which `as_rank` reads the same value."""
    if isinstance(value, (bool, list, dict)):
        raise TypeError(f"the rank is {kind_of(value)}, not a number or a date")
    return _text_of(value)


def _why_not_unicode(line: bytes, name: str) -> str:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"'{name}' is not valid UTF-8: {error.reason} at byte {error.start} of the line"
    return (
        f"'{name}' contains a lone surrogate (\\ud800 to \\udfff without its partner), which is "
        "not text"
    )


def _turns_of(
    batch: DocumentBatch, column: str, roles: Sequence[str], rows: Integers
) -> Turns | None:
    """Return the turns of some lines; the other lines have none. None if the text is not of
    turns.
    """
    if ELEMENTS not in column:
        return None
    sizes = np.zeros(len(batch.rows), np.int64)
    found: list[Turn] = []
    for row in rows.tolist():
        turns = _turns_of_line(_line_of(batch, row), column)
        sizes[row] = len(turns)
        found += turns
    return Turns(
        values=pa.array([turn.text for turn in found], pa.large_string()),
        offsets=offsets_from_lengths(sizes),
        is_text=np.array([turn.is_text(roles) for turn in found], np.bool_),
        is_null=np.zeros(len(sizes), np.bool_),
    )


def _line_of(batch: DocumentBatch, row: int) -> bytes:
    lines = batch.payload
    assert isinstance(lines, RawLines)
    return bytes(memoryview(lines.data)[int(lines.offsets[row]) : int(lines.offsets[row + 1])])


def _turns_of_line(line: bytes, column: str) -> list[Turn]:
    """Return the turns of a line that was read. column : with lists in its path."""
    record = _value_of(line)
    return turns_in(record, _keys_of(_types_of_records([record]), column)) or []


def _replace_texts(
    batch: DocumentBatch, column: str, rows: Integers, texts: pa.LargeStringArray | Turns
) -> RawLines:
    """Return lines with other texts; the bytes outside the strings of the text do not change.

    A string of ASCII characters alone has ASCII characters alone again, by escapes.
    """

    def change(row: int, data: bytes) -> bytes:
        line = data.decode("utf-8", "surrogateescape")
        strings = find_strings(line, column)
        if isinstance(texts, Turns):
            old = _turns_of_line(data, column)
            new = texts.values.slice(texts.offsets[row], len(old)).to_pylist()
            pairs = zip(old, new, strict=True)
            changes = [(strings[turn.position], text) for turn, text in pairs if turn.text != text]
        else:
            changes = [(strings[()], texts[row].as_py())]
        # From the end, so that the positions before it stay as they are.
        for (begin, end), text in sorted(changes, reverse=True):
            # A string that was in ASCII, with escapes, stays so.
            value = json.dumps(text, ensure_ascii=line[begin:end].isascii())
            line = line[:begin] + value + line[end:]
        return line.encode("utf-8", "surrogateescape")

    return replace_lines(batch, rows, change)


def _read_table(source: Source, text_columns: Sequence[str]) -> pa.Table:
    max_line_bytes = _check_lines(source)
    if not max_line_bytes:
        # Arrow refuses an empty file, such as the part of a worker that removed nothing.
        return pa.table({})
    # Arrow refuses a line that is longer than a block.
    read_options = pa_json.ReadOptions(block_size=max(BLOCK_BYTES, max_line_bytes))
    with source.open_stream() as stream:
        table = pa_json.read_json(stream, read_options)
    # Arrow takes strings such as "2024-01-31" for times, and would write them in another form.
    times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
    strings = pa.schema([(name, pa.string()) for name in times if name in text_columns])
    if not len(strings):
        return table
    with source.open_stream() as stream:
        options = pa_json.ParseOptions(explicit_schema=strings)
        return pa_json.read_json(stream, read_options, options)


def _check_lines(source: Source) -> int:
    """Return the size of the longest line; 0 for an empty file.

    Raises ArrowInvalid at a line that is no object: Arrow's parser would end the process at a
    `null`.
    """
    max_line_bytes = 0
    ignored: list[Rejected] = []  # Arrow meets the end of a damaged stream, too
    for block in read_line_blocks(source, ignored.append):
        _, bad = _looks_like_objects(block)
        for index in sorted(bad):
            raise pa.ArrowInvalid(f"line {block.first_line + index + 1}: {bad[index]}")
        max_line_bytes = max(max_line_bytes, int(np.diff(block.offsets).max()))
    return max_line_bytes


HANDLER = Handler(
    read,
    sink_of_lines,
    column_types,
    read_table=_read_table,
    replace_texts=_replace_texts,
    turns_of=_turns_of,
    stretches=stretches_of_lines,
    widening=Widening(lambda source, _: sink_of_lines(source), append_keys),
)
