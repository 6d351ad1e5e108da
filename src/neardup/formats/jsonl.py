"""JSON lines: Arrow's parser for whole blocks, the standard library's for the lines it refuses.

The result of a line depends on that line alone: it is accepted if either parser accepts it, and where both do, they
agree. Arrow's parser (26.0) has two traps: a top-level `null` on the first line ends the process (apache/arrow#47409),
and several values on a line count as several rows. So only lines that begin with `{` and end with `}` reach it, and its
row count must match. A value cannot span lines then: JSON allows nothing between the `}` of one line and the `{` of the
next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.json as pa_json

from neardup.documents.batch import Columns, DocumentBatch, Rejected
from neardup.documents.lines import BYTE_ORDER_MARK, LineBlock, read_line_blocks
from neardup.documents.payload import RawLines, replace_lines, select_lines
from neardup.documents.sinks import sink_of_lines
from neardup.documents.sources import CannotOpen, Source
from neardup.documents.texts import NO_RANK, as_ids, as_rank, as_text, join_texts, rank_of
from neardup.formats.registry import Handler

SAMPLE_LINES = 100
"""The columns of a file are the keys of this many lines at its beginning."""

_BLANKS = b" \t\r\n"
# Below this, one line after the other costs less than halving again.
_LEAF_LINES = 16


class _Wanted(NamedTuple):
    """The columns to read from each line, and their types for Arrow."""

    columns: Columns
    schema: pa.Schema


class _ParsedLines(NamedTuple):
    """The result of consecutive lines: text, ids, ranks and values by line; and the refused lines, with the reason."""

    text: pa.LargeStringArray
    ids: pa.StringArray | None
    ranks: tuple[np.ndarray, ...]
    bad: dict[int, str]
    values: tuple[pa.Array, ...] = ()


def column_types(source: Source) -> dict[str, pa.DataType]:
    """Return the keys of the first lines, each with the type that its values suggest."""
    kinds: dict[str, set[str]] = {}
    ignored: list[Rejected] = []
    try:
        for line in islice(_sample(source, ignored.append), SAMPLE_LINES):
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                for key, value in record.items():
                    kinds.setdefault(key, set()).add(type(value).__name__)
    except CannotOpen:  # which `read` will report
        return {}
    return {key: _arrow_type(seen - {"NoneType"}) for key, seen in kinds.items()}


def _sample(source: Source, reject: Callable[[Rejected], None]) -> Iterator[str]:
    for block in read_line_blocks(source, reject):
        for index in range(block.num_lines):
            line = block.line(index).strip(_BLANKS)
            if line:
                yield line.decode("utf-8-sig", "replace")


def _arrow_type(seen: set[str]) -> pa.DataType:
    if not seen:
        return pa.null()
    if "str" in seen:
        return pa.large_string()
    if seen <= {"int", "bool", "float"}:
        return pa.int64() if seen == {"int"} else pa.bool_() if seen == {"bool"} else pa.float64()
    return pa.list_(pa.null()) if seen == {"list"} else pa.struct([])


def read(
    source: Source, columns: Columns, reject: Callable[[Rejected], None], *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the documents of a file of JSON lines; blank lines are no documents."""
    wanted = _Wanted(columns, _schema(source, columns))
    for block in read_line_blocks(source, reject):
        batch = _documents(block, wanted, source, reject, with_payload)
        if len(batch.rows):
            yield batch


def _schema(source: Source, columns: Columns) -> pa.Schema:
    fields: dict[str, pa.DataType] = {}
    types = column_types(source) if len(columns.names) > len(columns.texts) else {}
    for name in columns.ranks:
        is_text = pa.types.is_large_string(types.get(name, pa.null()))
        fields[name] = pa.large_string() if is_text else pa.float64()
    for name in (*columns.values, *([] if columns.id is None else [columns.id])):
        whole = pa.types.is_int64(types.get(name, pa.null()))
        fields[name] = pa.int64() if whole else pa.string()
    fields |= dict.fromkeys(columns.texts, pa.large_string())
    return pa.schema(list(fields.items()))


def _documents(
    block: LineBlock, wanted: _Wanted, source: Source, reject: Callable[[Rejected], None], with_payload: bool
) -> DocumentBatch:
    candidate, bad = _looks_like_objects(block)
    lines = np.flatnonzero(candidate)
    data, offsets = select_lines(block.data, block.offsets, candidate)
    found = _parse(data, offsets, wanted)
    bad.update({int(lines[row]): reason for row, reason in found.bad.items()})
    for index in sorted(bad):
        reject(block.rejected(source, index, bad[index]))
    good = np.ones(len(lines), dtype=bool)
    good[list(found.bad)] = False
    payload = RawLines(data, offsets) if with_payload else None
    batch = DocumentBatch(found.text, lines + block.first_line, found.ids, found.ranks, payload, found.values)
    return batch.filter(good) if found.bad else batch


def _looks_like_objects(block: LineBlock) -> tuple[np.ndarray, dict[int, str]]:
    """Return which lines begin with `{` and end with `}`, and the others that are not blank."""
    data = np.frombuffer(block.data, dtype=np.uint8)
    begins, ends = block.offsets[:-1], block.offsets[1:]
    closing = ends - 1
    closing = closing - (data[closing] == ord("\n"))
    candidate = (data[begins] == ord("{")) & (data[np.maximum(closing, begins)] == ord("}"))
    bad: dict[int, str] = {}
    for index in np.flatnonzero(~candidate).tolist():
        line = _bare(block.line(index), block.first_byte == 0 and index == 0)
        if line.startswith(b"{") and line.endswith(b"}"):
            candidate[index] = True
        elif line:
            bad[index] = _reason(line)
    return candidate, bad


def _bare(line: bytes, is_first: bool) -> bytes:
    if is_first and line.startswith(BYTE_ORDER_MARK):
        line = line[len(BYTE_ORDER_MARK) :]
    return line.strip(_BLANKS)


def _reason(line: bytes) -> str:
    """Return the reason why a line that is not an object cannot be read."""
    try:
        value = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return f"the line is not valid UTF-8: {error.reason} at byte {error.start} of the line"
    except (ValueError, RecursionError) as error:
        return _not_json(error)
    return f"the line is {_kind(value)}, not an object"


def _not_json(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"the line is not JSON: {error.msg} at column {error.colno}"
    return f"the line is not JSON: {error}"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def _parse(data: pa.Buffer, offsets: np.ndarray, wanted: _Wanted) -> _ParsedLines:
    """Parse lines that look like objects; a range that Arrow refuses is halved, then read line by line."""
    if len(offsets) < 2:
        return _from_lines([], {}, wanted)
    pieces: list[_ParsedLines] = []
    ranges = [(0, len(offsets) - 1)]
    while ranges:
        begin, end = ranges.pop()
        piece = _parse_fast(data, offsets, begin, end, wanted)
        if piece is None and end - begin > _LEAF_LINES:
            middle = (begin + end) // 2
            ranges += [(middle, end), (begin, middle)]
        else:
            pieces.append(piece or _parse_slowly(data, offsets, begin, end, wanted))
    return pieces[0] if len(pieces) == 1 else _joined(pieces)


def _parse_fast(data: pa.Buffer, offsets: np.ndarray, begin: int, end: int, wanted: _Wanted) -> _ParsedLines | None:
    """Return the lines of a range as Arrow parses them; None if it does not parse all of them."""
    start, stop = int(offsets[begin]), int(offsets[end])
    try:
        table = pa_json.read_json(
            pa.BufferReader(data.slice(start, stop - start)),
            read_options=pa_json.ReadOptions(use_threads=False, block_size=stop - start + 1),
            parse_options=pa_json.ParseOptions(explicit_schema=wanted.schema, unexpected_field_behavior="ignore"),
        )
    except (pa.ArrowException, UnicodeDecodeError):
        return None
    if table.num_rows != end - begin:
        return None
    batch = table.combine_chunks().to_batches()[0]
    columns = wanted.columns
    texts, bad_texts = zip(*(as_text(batch.column(name), "the text") for name in columns.texts), strict=True)
    if any(bad_texts):
        return None
    ids, bad = (None, None) if columns.id is None else as_ids(batch.column(columns.id))
    ranks = [as_rank(batch.column(name)) for name in columns.ranks]
    values = [as_ids(batch.column(name), "the value") for name in columns.values]
    if bad or any(bad_here for _, bad_here in (*ranks, *values)):
        return None
    text = join_texts(list(texts)) if columns.more_text else texts[0]
    return _ParsedLines(text, ids, tuple(rank for rank, _ in ranks), {}, tuple(value for value, _ in values))


def _parse_slowly(data: pa.Buffer, offsets: np.ndarray, begin: int, end: int, wanted: _Wanted) -> _ParsedLines:
    # A rank that is a string here may be a number there, which Arrow reads if it expects one.
    columns = wanted.columns
    kinds = [
        pa.field(name, pa.float64()) if name in columns.ranks else wanted.schema.field(name)
        for name in wanted.schema.names
    ]
    pieces, numeric = [], wanted._replace(schema=pa.schema(kinds))
    for index in range(begin, end):
        line = data.slice(int(offsets[index]), int(offsets[index + 1] - offsets[index])).to_pybytes()
        try:
            pieces.append(_from_lines([_judge(line, columns)], {}, wanted))
        except TypeError as error:
            # Deep nesting and the literal Inf: Arrow reads them, the standard library does not.
            piece = _parse_fast(data, offsets, index, index + 1, numeric)
            pieces.append(piece or _from_lines([_NOTHING], {0: str(error)}, wanted))
    return _joined(pieces)


class _Line(NamedTuple):
    """One line: its text, id, ranks and values by name."""

    text: str | None
    id: str | None
    ranks: dict[str, float | None]
    values: dict[str, str | None]


_NOTHING = _Line(None, None, {}, {})


def _judge(line: bytes, columns: Columns) -> _Line:
    """Return the columns of one line. Raises TypeError with the reason if it cannot be read."""
    try:
        bare = line.removeprefix(BYTE_ORDER_MARK).strip(_BLANKS)
        record = json.loads(bare.decode("utf-8", "surrogateescape"))
        if not isinstance(record, dict):
            raise TypeError(f"the line is {_kind(record)}, not an object")
        texts = {name: record.get(name) for name in columns.texts}
        identifier = None if columns.id is None else _id_text(record.get(columns.id))
        ranks = {name: _rank_value(record.get(name)) for name in columns.ranks}
        values = {name: _id_text(record.get(name), f"'{name}'") for name in columns.values}
    except RecursionError as error:
        raise TypeError("the line is nested too deeply") from error
    except (ValueError, OverflowError) as error:
        raise TypeError(_not_json(error)) from error
    for name, text in texts.items():
        if text is not None and not isinstance(text, str):
            raise TypeError(f"'{name}' is {_kind(text)}, not a string")
    for name, value in (*texts.items(), (str(columns.id), identifier), *values.items()):
        if value is not None and not _is_unicode(value):
            raise TypeError(_why_not_unicode(line, name))
    known = [text for text in texts.values() if text is not None]
    joined = "\n".join(known) if known or columns.more_text else None
    return _Line(joined, identifier, ranks, values)


def _id_text(value: Any, what: str = "the id") -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    raise TypeError(f"{what} is {_kind(value)}, not a string or a number")


def _rank_value(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        rank = rank_of(value)
        if rank is None and value.strip():
            raise TypeError(NO_RANK)
        return rank
    raise TypeError(f"the rank is {_kind(value)}, not a number or a date")


def _is_unicode(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _why_not_unicode(line: bytes, name: str) -> str:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"'{name}' is not valid UTF-8: {error.reason} at byte {error.start} of the line"
    return f"'{name}' contains a lone surrogate (\\ud800 to \\udfff without its partner), which is not text"


def _from_lines(lines: list[_Line], bad: dict[int, str], wanted: _Wanted) -> _ParsedLines:
    columns = wanted.columns
    ranks = ([line.ranks.get(name) for line in lines] for name in columns.ranks)
    values = ([line.values.get(name) for line in lines] for name in columns.values)
    return _ParsedLines(
        pa.array([line.text for line in lines], pa.large_string()),
        None if columns.id is None else pa.array([line.id for line in lines], pa.string()),
        tuple(as_rank(pa.array(rank, pa.float64()))[0] for rank in ranks),
        bad,
        tuple(pa.array(value, pa.string()) for value in values),
    )


def _joined(pieces: list[_ParsedLines]) -> _ParsedLines:
    bad: dict[int, str] = {}
    begin = 0
    for piece in pieces:
        bad.update({begin + row: reason for row, reason in piece.bad.items()})
        begin += len(piece.text)
    first = pieces[0]
    return _ParsedLines(
        pa.concat_arrays([piece.text for piece in pieces]),
        None if first.ids is None else pa.concat_arrays([piece.ids for piece in pieces]),
        tuple(np.concatenate(ranks) for ranks in zip(*(piece.ranks for piece in pieces), strict=True)),
        bad,
        tuple(pa.concat_arrays(values) for values in zip(*(piece.values for piece in pieces), strict=True)),
    )


_MARK = re.compile(r'["{}\[\],]')
_STRINGS = json.JSONDecoder(strict=False)


def _replace_texts(batch: DocumentBatch, column: str, rows: np.ndarray, texts: pa.LargeStringArray) -> RawLines:
    """Return lines with other texts; the bytes outside of the string of the text stay.

    A string of ASCII alone stays so, by escapes.
    """
    lines, others = batch.payload, []
    assert isinstance(lines, RawLines)
    for row in rows.tolist():
        data = bytes(memoryview(lines.data)[int(lines.offsets[row]) : int(lines.offsets[row + 1])])
        line = data.decode("utf-8", "surrogateescape")
        begin, end = _find_value(line, column)
        value = json.dumps(texts[row].as_py(), ensure_ascii=line[begin:end].isascii())
        others.append((line[:begin] + value + line[end:]).encode("utf-8", "surrogateescape"))
    return replace_lines(lines, rows, others)


def _find_value(line: str, key: str) -> tuple[int, int]:
    """Return the range of the last string that is the value of a key of an object; others may be nested in it."""
    found = 0, 0
    position = depth = 0
    name, is_key = None, False
    while match := _MARK.search(line, position):
        begin, position, mark = match.start(), match.end(), match[0]
        if mark == '"':
            value, position = _STRINGS.raw_decode(line, begin)
            if depth == 1 and is_key:
                name = value
            elif depth == 1 and name == key:
                found = begin, position
        depth += (mark in "{[") - (mark in "}]")
        is_key = mark in "{,"
    return found


def _read_table(source: Source, _: Sequence[str]) -> pa.Table:
    with source.open_stream() as stream:
        return pa_json.read_json(stream)


HANDLER = Handler(read, sink_of_lines, column_types, read_table=_read_table, replace_texts=_replace_texts)
