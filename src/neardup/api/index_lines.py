"""Answer lines of JSON by an index, as they come: for programs that write a line for each page they
fetch.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypedDict

import pyarrow as pa

from neardup.documents.lines import BYTE_ORDER_MARK
from neardup.documents.nested import value_of
from neardup.documents.texts import join_ids
from neardup.errors import InputError, SettingError
from neardup.features.vectors import array_of_documents, texts_of
from neardup.files import JsonObject
from neardup.formats.json_paths import kind_of
from neardup.formats.jsonl import why_no_object
from neardup.index.documents import Origin, payload_of
from neardup.index.open_index import Batch, OpenIndex
from neardup.runs.columns import ID_NAMES, names_of
from neardup.runs.run import names_of_roles
from neardup.settings.constraints import ColumnNames, check_columns, check_kind, check_limit
from neardup.settings.run import INPUT, MAX_DOCUMENT_BYTES

MAX_LINE_BYTES = 256 << 20


class _Line(NamedTuple):
    """A document of a line, with the parts of its id; or the reason why there is none."""

    text: str = ""
    ids: tuple[str, ...] = ()
    payload: str | None = None
    source: str | None = None
    date: str | None = None
    error: str | None = None


class LineOptions(TypedDict, total=False):
    """The fields of lines, and the limit of their documents, as in `Index.answer_lines`."""

    text_column: ColumnNames
    roles: ColumnNames
    id_column: ColumnNames
    payload_column: ColumnNames
    sources: str | None
    dates: str | None
    import_name: str | None
    max_document_bytes: int


class LineAnswers:
    """Add the documents of lines of JSON to an index, and answer each line.

    Keeps the names of the fields that it chose for the first line: a later line without them is
    refused.

    Parameters
    ----------
    index : to add to.
    options : as in `Index.answer_lines`.
    """

    def __init__(self, index: OpenIndex, options: LineOptions) -> None:
        self._index = index
        self._import_name = options.get("import_name")
        limit = options.get("max_document_bytes", MAX_DOCUMENT_BYTES)
        self._max_bytes = check_limit(limit, "max_document_bytes", option="--max-document-bytes")
        self._text_names = _names(options.get("text_column"))
        self._roles = names_of_roles(options.get("roles"))
        self._id_names = _names(options.get("id_column"))
        self._payload_names = _names(options.get("payload_column"))
        self._origin = self._checked_origin(Origin.of(options))
        self._has_chosen = False

    def _checked_origin(self, origin: Origin) -> Origin:
        """Return the fields of sources and dates, or raise SettingError."""
        origin.refuse_untracked(self._index)
        if origin.sources == INPUT:
            raise SettingError(
                "sources (--sources) names a field of lines that are answered as they arrive: got "
                f"{INPUT!r}, which stands for the names of several inputs. Name a field."
            )
        return origin

    def answer(
        self, lines: Sequence[bytes], *, stop_at_error: bool = False
    ) -> list[tuple[bytes, JsonObject]]:
        """Add the new documents of some lines in one change; return each line with its answer.

        Parameters
        ----------
        lines : lines of JSON, each an object.
        stop_at_error : whether to leave out the lines after one that has no document.
        """
        check_kind("A group of lines", lines, Iterable, "a list of bytes")
        # A list, because a group that can be read once only would have no lines left for answers.
        lines = list(lines)
        documents: list[_Line] = []
        for line in lines:
            documents.append(self._read(line))
            if stop_at_error and documents[-1].error is not None:
                break
        good = [document for document in documents if document.error is None]
        added = iter(self._add(good))
        answers = [
            next(added) if document.error is None else {"error": document.error}
            for document in documents
        ]
        # With `stop_at_error`, lines after the bad one have no answer.
        return list(zip(lines, answers, strict=False))

    def _add(self, documents: Sequence[_Line]) -> list[JsonObject]:
        """Add documents to the index; return the answer to each."""
        if not documents:
            return []
        # Without an id field, one part of nulls.
        id_parts = zip(*(document.ids or (None,) for document in documents), strict=True)
        sources = [document.source for document in documents]
        dates = [document.date for document in documents]
        batch = Batch(
            texts=_strings([document.text for document in documents]),
            ids=join_ids([_strings(part) for part in id_parts]),
            payloads=_strings([document.payload for document in documents]),
            is_unnamed=not self._id_names,
            sources=None if self._origin.sources is None else _strings(sources),
            dates=None if self._origin.dates is None else _strings(dates),
        )
        rows: list[JsonObject] = self._index.add(batch, import_name=self._import_name).to_pylist()
        return rows

    def _read(self, line: bytes) -> _Line:
        """Return the document of a line, or the reason why there is none."""
        check_kind("A line", line, bytes, "bytes")
        if len(line) > MAX_LINE_BYTES:
            return _Line(
                error=f"the line has more than {MAX_LINE_BYTES} bytes, the longest that is read"
            )
        # A program may write a byte order mark first.
        line = line.removeprefix(BYTE_ORDER_MARK)
        try:
            record = json.loads(line.decode())
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            return _Line(error=why_no_object(line) if line.strip() else "the line is empty")
        self._choose_fields(record)
        try:
            text = self._text_of(record)
            ids = self._ids_of(record)
            source = _optional(record, self._origin.sources)
            date = _optional(record, self._origin.dates)
        except InputError as error:
            return _Line(error=str(error))
        document = _Line(
            text=text,
            ids=ids,
            payload=payload_of(record, self._payload_names),
            source=source,
            date=date,
        )
        return self._checked(document)

    def _choose_fields(self, record: JsonObject) -> None:
        """Choose the fields of the text and the id that were not named, by the first object with a
        text.
        """
        if self._has_chosen:
            return
        if not self._text_names:
            usual = names_of(self._index.method.vector_length)
            self._text_names = tuple(name for name in usual if name in record)[:1]
        # The first lines may be other objects, such as a header: an id is not chosen from them.
        if all(value_of(record, name, self._roles) is None for name in self._text_names):
            return
        self._id_names = self._id_names or tuple(name for name in ID_NAMES if name in record)[:1]
        self._has_chosen = True

    def _text_of(self, record: JsonObject) -> str:
        """Return the text of an object. Raise InputError if a field is no string."""
        length = self._index.method.vector_length
        if not self._text_names:
            raise InputError(
                f"the line has no field {', '.join(names_of(length))}: name the text field "
                "(--text-column)"
            )
        found = [(name, self._value_of(record, name)) for name in self._text_names]
        # Nothing but nulls: the error is about the first field.
        texts = [(name, value) for name, value in found if value is not None] or found[:1]
        if length is not None and len(found) == 1:
            name, vector = texts[0]
            texts = [(name, texts_of(array_of_documents([vector], length))[0].as_py())]
        for name, text in texts:
            if not isinstance(text, str):
                raise InputError(f"'{name}' is {_kind(text)}, not a string")
        return "\n".join(text for _, text in texts)

    def _value_of(self, record: JsonObject, name: str) -> Any:
        """Return the value of a text field, of turns joined by line ends."""
        value = value_of(record, name, self._roles)
        if not isinstance(value, list) or self._index.method.vector_length is not None:
            return value
        turns = [turn for turn in value if turn is not None]
        for turn in turns:
            if not isinstance(turn, str):
                raise InputError(f"an element of '{name}' is {_kind(turn)}, not a string")
        return "\n".join(turns)

    def _ids_of(self, record: JsonObject) -> tuple[str, ...]:
        """Return the parts of the id of an object. Raise InputError if one is no string or
        number.
        """
        return tuple(_scalar(name, value_of(record, name)) for name in self._id_names)

    def _checked(self, document: _Line) -> _Line:
        try:
            size = len(document.text.encode())
            for value in (*document.ids, document.payload, document.source, document.date):
                # Only to find lone surrogates, which Arrow would refuse for the whole batch.
                (value or "").encode()
        except UnicodeEncodeError:
            return _Line(error="the line contains a lone surrogate, which is not valid text")
        if size > self._max_bytes:
            return _Line(
                error=(
                    f"the document has {size} bytes, more than {self._max_bytes} "
                    "(--max-document-bytes)"
                )
            )
        return document


def _strings(values: Sequence[str | None]) -> pa.Array:
    return pa.array(values, pa.large_string())


def _names(names: ColumnNames) -> tuple[str, ...]:
    """Return the names of one field or several; none if the user named none."""
    return () if names is None else tuple(check_columns(names))


def _optional(record: JsonObject, name: str | None) -> str | None:
    """Return a field of an object, None without one. Raise InputError if it is no string or
    number.
    """
    value = None if name is None else value_of(record, name)
    if value is None or value == "":
        return None
    return _scalar(str(name), value)


def _scalar(name: str, value: Any) -> str:
    """Return a string or a number as a string; raise InputError for any other value."""
    # True is an integer in Python.
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InputError(f"'{name}' is {_kind(value)}, not a string or a number")
    return str(value)


def _kind(value: Any) -> str:
    return "missing or null" if value is None else kind_of(value)
