"""JSON lines: Arrow's parser for whole blocks, the standard library's for the lines it refuses.

The result of a line depends on that line alone: it is accepted if either parser accepts it, and
where both do, they agree. Arrow's parser (26.0) has two traps: a top-level `null` on the first line
ends the process (apache/arrow#47409), and several values on a line count as several rows. So only
lines that begin with `{` and end with `}` reach it, and its row count must match. A value cannot
span lines then: JSON allows nothing between the `}` of one line and the `{` of the next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json

from neardup.arrays import Bytes, Integers, Ints, Mask
from neardup.documents.batch import (
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
from neardup.documents.nested import ColumnTypes, nested_types, path_of
from neardup.documents.ranks import EXACT_BELOW, rank_of
from neardup.documents.sinks import sink_of_lines
from neardup.documents.sources import Source
from neardup.documents.stretches import stretches_of_lines
from neardup.documents.texts import documents_of
from neardup.files import JsonObject
from neardup.formats.registry import Handler

SAMPLE_LINES = 100
"""The columns of a file are the keys of this many lines at its beginning."""

_BLANKS = b" \t\r\n"
_IS_BLANK = np.isin(np.arange(256), list(_BLANKS))
# Below this, one line after the other costs less than halving again.
_LEAF_LINES = 16
_LINES_AT_ONCE = 256  # of a sample, which ends soon in most files
_MAX_DEPTH = 8  # of objects whose keys are columns
_SURROGATE = re.compile("[\ud800-\udfff]")  # what is not UTF-8 is decoded to these
_TOO_DEEP = "the line is nested too deeply"


class _Wanted(NamedTuple):
    """The columns to read from each line, the keys that lead to each, and their types for Arrow."""

    columns: Columns
    keys: dict[str, tuple[str, ...]]
    kinds: ColumnTypes

    @property
    def schema(self) -> pa.Schema:
        """The columns in the objects that contain them."""
        return pa.schema(_fields({self.keys[name]: kind for name, kind in self.kinds.items()}))

    def with_ranks_as(self, kind: pa.DataType) -> _Wanted:
        """Return the same with another type of all ranks."""
        return self._replace(kinds=self.kinds | dict.fromkeys(self.columns.ranks, kind))


def _fields(kinds: dict[tuple[str, ...], pa.DataType]) -> list[pa.Field]:
    """Return keys as fields, those inside an object as fields of a struct; kinds : by the keys that
    lead there.
    """
    outer: dict[str, dict[tuple[str, ...], pa.DataType]] = {}
    for (key, *inner), kind in kinds.items():
        below = outer.setdefault(key, {})
        if inner:
            below[tuple(inner)] = kind
    return [
        pa.field(key, pa.struct(_fields(below)) if below else kinds[key,])
        for key, below in outer.items()
    ]


def column_types(source: Source) -> ColumnTypes:
    """Return the keys of the first lines, each with the type that its values suggest."""
    kinds: dict[tuple[str, ...], set[str]] = {}
    ignored: list[Rejected] = []
    for line in islice(_sample(source, ignored.append), SAMPLE_LINES):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        waiting: list[tuple[tuple[str, ...], Any]] = (
            [((), record)] if isinstance(record, dict) else []
        )
        for path, value in waiting:
            if path:
                kinds.setdefault(path, set()).add(type(value).__name__)
            if isinstance(value, dict) and len(path) < _MAX_DEPTH:
                waiting += [((*path, key), inner) for key, inner in value.items()]
    types = {path: _arrow_type(seen - {"NoneType"}) for path, seen in kinds.items()}
    objects: dict[tuple[str, ...], pa.DataType] = {(): pa.struct([])}
    for path in sorted(types, key=len):
        if pa.types.is_struct(objects.get(path[:-1], pa.null())):
            objects[path] = types[path]
    del objects[()]
    return {field.name: field.type for field in _fields(objects)}


@lru_cache(maxsize=64)
def _types_of(source: Source, _: tuple[int, float]) -> ColumnTypes:
    """Return the types of a file of this size and time of last change, which all of its stretches
    need.
    """
    return column_types(replace(source, stretch=None))


def _sample(source: Source, reject: Reject) -> Iterator[str]:
    for block in read_line_blocks(source, reject):
        for begin in range(0, block.num_lines, _LINES_AT_ONCE):
            filled = _has_text(block.data, block.offsets[begin : begin + _LINES_AT_ONCE + 1])
            for index in (begin + np.flatnonzero(filled)).tolist():
                yield block.line(index).strip(_BLANKS).decode("utf-8-sig", "replace")


def _arrow_type(seen: set[str]) -> pa.DataType:
    if not seen:
        return pa.null()
    seen = (
        seen & {"str", "int", "bool", "float"} or seen
    )  # rows with a list or an object are rejected
    if "str" in seen:
        return pa.large_string()
    if seen <= {"int", "bool", "float"}:
        return pa.int64() if seen == {"int"} else pa.bool_() if seen == {"bool"} else pa.float64()
    return pa.list_(pa.null()) if seen == {"list"} else pa.struct([])


def read(
    source: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the documents of a file of JSON lines; blank lines are no documents."""
    is_plain = len(columns.names) == len(columns.texts) and not any(
        "." in name for name in columns.names
    )
    types = {} if is_plain else _types_of(source, source.stat())
    wanted = _Wanted(
        columns, {name: _keys_of(types, name) for name in columns.names}, _kinds(types, columns)
    )
    for block in read_line_blocks(source, reject):
        yield from _documents(block, wanted, source, reject, with_payload)


def _keys_of(types: ColumnTypes, name: str) -> tuple[str, ...]:
    """Return the keys that lead to a column; types : those of the file, where they are known."""
    fields: Any = pa.schema(types)
    keys = []
    for place in path_of(fields, name) or ():
        field = fields.field(place)
        keys.append(field.name)
        fields = field.type
    return tuple(keys) or (name,)


def _kinds(types: ColumnTypes, columns: Columns) -> ColumnTypes:
    """Return the types to read columns as; types : those of the file, where they are known."""
    types = nested_types(types)
    fields: ColumnTypes = {}
    for name in columns.ranks:
        kind = types.get(name, pa.null())
        fields[name] = kind if kind in (pa.large_string(), pa.int64()) else pa.float64()
    for name in (*columns.values, *columns.ids):
        whole = pa.types.is_int64(types.get(name, pa.null()))
        fields[name] = pa.int64() if whole else pa.string()
    kind = pa.large_string() if columns.vector_length is None else pa.list_(pa.float64())
    fields |= dict.fromkeys(columns.texts, kind)
    return fields


def _documents(
    block: LineBlock, wanted: _Wanted, source: Source, reject: Reject, with_payload: bool
) -> Iterator[DocumentBatch]:
    """Yield the documents of a block as a batch, if there are any."""
    candidate, bad = _looks_like_objects(block)
    lines = np.flatnonzero(candidate)
    data, offsets = select_lines(block.data, block.offsets, candidate)
    pieces, refused = _parse(data, offsets, wanted)
    bad |= {int(lines[row]): reason for row, reason in refused.items()}
    for index in sorted(bad):
        row = block.rejected(source, index, bad[index])
        line = block.line(index).strip(_BLANKS)
        if (
            block.ends_in_line(index)
            and line.startswith(b"{")
            and not line.endswith((b"}", b"]", b","))
        ):
            row = row._replace(
                reason=f"the file is cut short inside this line: {row.reason}", rest_of_file=True
            )
        reject(row)
    if pieces:
        found = concatenate(pieces)
        good = np.zeros(len(lines), np.bool_)
        good[found.rows] = True
        payload = RawLines(*select_lines(data, offsets, good)) if with_payload else None
        yield replace(found, rows=lines[found.rows] + block.first_line, payload=payload)
    # an empty batch: its reader passes on the rejected rows before it, and need not hold those of a
    # file
    elif bad:
        none = pa.RecordBatch.from_pylist([], pa.schema(_kinds({}, wanted.columns)))
        payload = RawLines(pa.py_buffer(b""), np.zeros(1, np.int64)) if with_payload else None
        yield replace(documents_of(none, lines[:0], wanted.columns, "", reject), payload=payload)


def _looks_like_objects(block: LineBlock) -> tuple[Mask, dict[int, str]]:
    """Return which lines begin with `{` and end with `}`, and the others that are not blank."""
    data = block.data
    begins, ends = block.offsets[:-1], block.offsets[1:]
    closing = ends - 1
    closing = closing - (data[closing] == ord("\n"))
    candidate = (data[begins] == ord("{")) & (data[np.maximum(closing, begins)] == ord("}"))
    bad: dict[int, str] = {}
    others = np.flatnonzero(~candidate)
    selected, offsets = select_lines(data, block.offsets, ~candidate)
    for index in others[_has_text(np.frombuffer(selected, np.uint8), offsets)].tolist():
        mark = BYTE_ORDER_MARK if block.begins_file and index == 0 else b""
        line = block.line(index).removeprefix(mark).strip(_BLANKS)
        if line.startswith(b"{") and line.endswith(b"}"):
            candidate[index] = True
        elif line:
            bad[index] = why_no_object(line)
    return candidate, bad


def _has_text(data: Bytes, offsets: Ints) -> Mask:
    """Return whether each line of some bytes, which begins at its offset, has more than blanks.

    All lines are looked at together: a small compressed file may have millions that are blank.
    """
    if len(offsets) < 2:
        return np.zeros(0, np.bool_)
    is_text = ~_IS_BLANK[data[offsets[0] : offsets[-1]]]
    # A line is never empty, which `reduceat` requires: it has a line end, or it is the last.
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
    return f"the line is {_kind(value)}, not an object"


def _not_json(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"the line is not JSON: {error.msg} at column {error.colno}"
    return f"the line is not JSON: {error}"


def _kind(value: Any) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "a string",
        bool: "a boolean",
        type(None): "null",
    }
    return names.get(type(value), "a number")


def _parse(
    data: pa.Buffer, offsets: Ints, wanted: _Wanted
) -> tuple[list[DocumentBatch], dict[int, str]]:
    """Parse lines that look like objects; a range that Arrow refuses is halved, then read line by
    line.

    Returns
    -------
    documents, bad : the rows of documents are numbers of lines, as are the keys of the reasons why
        others are refused.
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
            ranges += [(middle, end), (begin, middle)]
        else:
            pieces += _parse_slowly(data, offsets, begin, end, wanted, bad)
    return pieces, bad


def _parse_fast(
    data: pa.Buffer, offsets: Ints, begin: int, end: int, wanted: _Wanted
) -> DocumentBatch | None:
    """Return the lines of a range as Arrow parses them; None if it does not parse all of them."""
    start, stop = int(offsets[begin]), int(offsets[end])
    try:
        table = pa_json.read_json(
            pa.BufferReader(data.slice(start, stop - start)),
            read_options=pa_json.ReadOptions(use_threads=False, block_size=stop - start + 1),
            parse_options=pa_json.ParseOptions(
                explicit_schema=wanted.schema, unexpected_field_behavior="ignore"
            ),
        )
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    if table.num_rows != end - begin:
        return None
    refused: list[Rejected] = []
    batch = table.combine_chunks().to_batches()[0]
    found = documents_of(batch, np.arange(begin, end), wanted.columns, "", refused.append)
    if refused:
        return None
    _correct_ranks(found, data, offsets, wanted)
    return found


def _correct_ranks(found: DocumentBatch, data: pa.Buffer, offsets: Ints, wanted: _Wanted) -> None:
    """Read ranks of lines again that Arrow read as floating point, and that may be integers without
    an equal.
    """
    for name, rank in zip(wanted.columns.ranks, found.ranks, strict=True):
        if not pa.types.is_floating(wanted.kinds[name]):
            continue
        size = np.abs(rank[:, 0])
        for row in np.flatnonzero((size >= EXACT_BELOW) & (size < np.inf)).tolist():
            with suppress(TypeError):  # of a line that Arrow alone reads
                rank[row] = rank_of(
                    _judge(_line(data, offsets, int(found.rows[row])), wanted)[name]
                )


def _line(data: pa.Buffer, offsets: Ints, row: int) -> bytes:
    return bytes(data.slice(int(offsets[row]), int(offsets[row + 1] - offsets[row])).to_pybytes())


def _parse_slowly(
    data: pa.Buffer, offsets: Ints, begin: int, end: int, wanted: _Wanted, bad: dict[int, str]
) -> Iterator[DocumentBatch]:
    """Yield the lines of a range one by one; add the reasons why others are refused to `bad`."""
    columns = wanted.columns
    plain = pa.schema(_kinds({}, columns) | dict.fromkeys(columns.ranks, pa.large_string()))
    # A rank that is a string here may be a number there, which Arrow reads if it expects one.
    numeric = wanted.with_ranks_as(pa.float64())
    for index in range(begin, end):
        line = _line(data, offsets, index)
        try:
            row = pa.RecordBatch.from_pylist([_judge(line, wanted)], plain)
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


def _judge(line: bytes, wanted: _Wanted) -> JsonObject:
    """Return the columns of one line, as `_kinds` has them. Raises TypeError with the reason if it
    cannot be read.
    """
    columns = wanted.columns
    try:
        bare = line.removeprefix(BYTE_ORDER_MARK).strip(_BLANKS)
        record = json.loads(bare.decode("utf-8", "surrogateescape"))
        if not isinstance(record, dict):
            raise TypeError(f"the line is {_kind(record)}, not an object")
        record = {name: _value_of(record, keys) for name, keys in wanted.keys.items()}
        identifier = {name: _text_of(record[name]) for name in columns.ids}
        ranks = {name: _rank_text(record[name]) for name in columns.ranks}
        values = {name: _text_of(record[name], f"'{name}'") for name in columns.values}
    except RecursionError as error:
        raise TypeError(_TOO_DEEP) from error
    except (ValueError, OverflowError) as error:
        raise TypeError(_not_json(error)) from error
    row: JsonObject = ranks | values | identifier | {name: record[name] for name in columns.texts}
    for name in columns.texts:
        if not isinstance(row[name], (str if columns.vector_length is None else list) | None):
            needed = "a string" if columns.vector_length is None else "a list of numbers"
            raise TypeError(f"'{name}' is {_kind(row[name])}, not {needed}")
    for name in columns.names:
        if isinstance(row[name], str) and _SURROGATE.search(row[name]):
            raise TypeError(_why_not_unicode(line, name))
    return row


def _value_of(value: Any, keys: tuple[str, ...]) -> Any:
    """Return the value to which keys of objects lead; None where one is missing."""
    for place, key in enumerate(keys):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise TypeError(f"'{keys[place - 1]}' is {_kind(value)}, not an object")
        value = value.get(key)
    return value


def _text_of(value: Any, what: str = "the id") -> str | None:
    """Return an id or a value as a string."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    raise TypeError(f"{what} is {_kind(value)}, not a string or a number")


def _rank_text(value: Any) -> str | None:
    """Return a rank as a string, from which `as_rank` reads the same value."""
    if isinstance(value, (bool, list, dict)):
        raise TypeError(f"the rank is {_kind(value)}, not a number or a date")
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


_MARK = re.compile(r'["{}\[\],]')
_STRINGS = json.JSONDecoder(strict=False)


def _replace_texts(
    batch: DocumentBatch, column: str, rows: Integers, texts: pa.LargeStringArray
) -> RawLines:
    """Return lines with other texts; the bytes outside of the string of the text stay.

    A string of ASCII alone stays so, by escapes.
    """

    def change(row: int, data: bytes) -> bytes:
        line = data.decode("utf-8", "surrogateescape")
        begin, end = _find_value(line, column)
        value = json.dumps(texts[row].as_py(), ensure_ascii=line[begin:end].isascii())
        return (line[:begin] + value + line[end:]).encode("utf-8", "surrogateescape")

    return replace_lines(batch, rows, change)


def _find_value(line: str, key: str) -> tuple[int, int]:
    """Return the range of the last string that is the value of a key, or of keys of objects joined
    by dots.

    One that more objects are around is the value only if there is no other.
    """
    found, fewest = (0, 0), len(line)
    position, is_key = 0, False
    names: list[str | None] = []  # the latest key of each object that is open
    while match := _MARK.search(line, position):
        begin, position, mark = match.start(), match.end(), match[0]
        if mark == '"':
            value, position = _STRINGS.raw_decode(line, begin)
            if is_key:
                names[-1] = value
            elif len(names) <= fewest and None not in names and ".".join(map(str, names)) == key:
                found, fewest = (begin, position), len(names)
        elif mark in "{[":
            names.append(None)
        elif mark != ",":
            names.pop()
        is_key = mark in "{,"
    return found


def _read_table(source: Source, _: Sequence[str]) -> pa.Table:
    with source.open_stream() as stream:
        return pa_json.read_json(stream)


HANDLER = Handler(
    read,
    sink_of_lines,
    column_types,
    read_table=_read_table,
    replace_texts=_replace_texts,
    stretches=stretches_of_lines,
)
