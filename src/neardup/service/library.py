"""The calls of the library that the service makes: messages in, messages out, in worker threads."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta, timezone
from itertools import groupby
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

import neardup
from neardup.answers import Answer, Committed, Document, Hit
from neardup.arrays import Array, arrow_of_strings
from neardup.features.outline import Line
from neardup.features.vectors import array_of_documents
from neardup.files import JsonObject
from neardup.index.open_index import Batch
from neardup.schemas import TIME
from neardup.service.messages import Compared, Growth, Import, NewDocument, Passage, Stretch, Text
from neardup.stores.documents import array_of
from neardup.verify import alignment
from neardup.verify.alignment import Outlines

_ANSWER, _HIT = ([field.name for field in fields(kind)] for kind in (Answer, Hit))
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# the growth is computed again after this many seconds, or times its own time
_GROWTH_S = 5.0
_GROWTH_SHARE = 50.0


class Query(NamedTuple):
    """A text to look up, and how many hits are wanted."""

    text: Text
    limit: int


class Library:
    """The operations of the service on an index."""

    def __init__(self, index: neardup.Index) -> None:
        self.index = index
        self._growth: list[Growth] = []
        self._growth_until = 0.0

    def add(self, documents: list[NewDocument]) -> list[Answer]:
        """Add documents, similar ones too; return the decision about each."""
        return _answers(self.index.opened.add(self._batch(documents), if_new=False))

    def add_if_new(self, documents: list[NewDocument]) -> list[Answer]:
        """Add the documents that are similar to no kept one; return the decision about each."""
        return _answers(self.index.opened.add(self._batch(documents)))

    def _batch(self, documents: Sequence[NewDocument]) -> Batch:
        """Return documents, whose texts and ids are Unicode, as a batch."""
        texts = array_of_documents(
            [document.text for document in documents], self.index.method.vector_length
        )
        ids = arrow_of_strings([document.id for document in documents])
        payloads = pa.array([_stored(document.payload) for document in documents], "large_string")
        return Batch(texts, ids, payloads)

    def query(self, queries: list[Query]) -> list[list[Hit]]:
        """Return the hits of each text, the most similar first."""
        index = self.index.opened
        none = pa.nulls(len(queries), "large_string")
        texts = array_of_documents([query.text for query in queries], index.method.vector_length)
        table = index.query(
            index.describe(Batch(texts, none, none)), max(query.limit for query in queries)
        )
        found: list[list[Hit]] = [[] for _ in queries]
        for query, *values in _rows(table, ("query", *_HIT)):
            if len(found[query]) < queries[query].limit:
                found[query].append(Hit(*values))
        return found

    def get(self, id: str) -> Document | None:
        """Return the document of an id, or None."""
        document = self.index.get(id)
        if document is None:
            return None
        return replace(
            document, payload=_payload(document.payload), sketch=_hexadecimal(document.sketch)
        )

    def compare(self, left: Text, right: Text) -> Compared:
        """Compare two texts by the method of the index."""
        method = self.index.method
        found = neardup.compare(left, right, method=method)
        measures = found.measures._asdict()
        fingerprints = measures.pop("fingerprints") or (None, None)
        if found.outlines is not None:
            stretches: list[alignment.Stretch] | None = _outline_stretches(found.outlines)
        else:
            stretches = alignment.align(
                found.left, found.left_passages, found.right, found.right_passages
            )
        return Compared(
            found.duplicate,
            found.similarity,
            found.threshold,
            found.outlines is not None,
            {name: value for name, value in measures.items() if value is not None},
            None if stretches is None else [Stretch(*stretch) for stretch in stretches],
            None if stretches is not None else _passages(found.left, found.left_passages),
            None if stretches is not None else _passages(found.right, found.right_passages),
            *(
                value if value is None else f"{value:0{getattr(method, 'bits', 64) // 4}x}"
                for value in fingerprints
            ),
        )

    def commit_import(self, name: str) -> Committed:
        """Commit an import; return the number of decisions of each kind."""
        table = self.index.commit_import(name)
        kept = table["kept"].to_numpy()
        repeated = table["repeated"].to_numpy()
        return Committed(
            int((kept & ~repeated).sum()), int((~kept & ~repeated).sum()), int(repeated.sum())
        )

    def stage(self, name: str, documents: list[NewDocument]) -> list[None]:
        """Stage documents in an import."""
        self.index.opened.stage(name, [self._batch(documents)])
        return [None] * len(documents)

    def imports(self) -> list[Import]:
        """Return the open imports."""
        return [
            Import(staged.name, _time(staged.opened), staged.num_documents)
            for staged in self.index.imports()
        ]

    def stats(self) -> tuple[JsonObject, list[Growth]]:
        """Return the numbers of the index, and its documents over time, which may be some time
        old.
        """
        begun = time.monotonic()
        if not self._growth or begun >= self._growth_until:
            self._growth = [Growth(*point) for point in self.index.growth()]
            ended = time.monotonic()
            self._growth_until = ended + max(_GROWTH_S, _GROWTH_SHARE * (ended - begun))
        return self.index.info(), self._growth

    def count(self) -> dict[str, int]:
        """Return the number of documents by decision."""
        return dict(self.index.info()["documents"])

    def warm(self) -> None:
        """Load the compiled code, for which the first request would wait."""
        index = self.index
        method = self.index.opened.rules.method
        texts = method.examples
        storage = index.settings.storage
        with neardup.Index.create(
            "memory:", method=index.method, storage=storage, idf=method.idf
        ) as other:
            for _ in range(2):  # the second time, both are there
                Library(other).add_if_new([NewDocument(id=text, text=text) for text in texts])
        self.query([Query(texts[0], 1)])
        self.compare(*texts)
        self.stats()


def _rows(table: pa.Table, names: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    """Return columns as rows; a column that is missing is null."""
    columns = dict(zip(table.column_names, table.columns, strict=True))
    values = (
        _values(name, columns[name]) if name in columns else [None] * len(table) for name in names
    )
    return zip(*values, strict=True)


def _values(name: str, column: pa.ChunkedArray) -> list[Any]:
    """Return a column; times as datetime, which Arrow does ten times as slowly, and payloads as
    JSON.
    """
    if column.null_count == len(column):
        return [None] * len(column)
    array = array_of(column)
    if column.type == TIME:
        return [
            None if value is None else _time(value) for value in array.view(pa.int64()).to_pylist()
        ]
    if not array.null_count and column.type != pa.large_string():
        numbers: list[Any] = array.to_numpy(zero_copy_only=False).tolist()
        return numbers
    values: list[Any] = array.to_pylist()
    return [_payload(text) for text in values] if name == "payload" else values


def _stored(payload: Any) -> str | None:
    """Return a payload as text: a string as it is, unless it reads as JSON; any other value as
    JSON.
    """
    if payload is None or (isinstance(payload, str) and isinstance(_payload(payload), str)):
        return payload
    return msgspec.json.encode(payload).decode()


def _payload(text: str | None) -> Any:
    """Return a stored payload: the value of its JSON, or a string if it is none."""
    if text is None:
        return None
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return msgspec.Raw(text.encode())


def _answers(table: pa.Table) -> list[Answer]:
    return [Answer(*row) for row in _rows(table, _ANSWER)]


def _hexadecimal(sketch: Array) -> str:
    """Return a signature value by value, or a fingerprint from its highest word."""
    values = sketch if sketch.dtype == np.uint32 else sketch[::-1]
    return "".join(f"{value:0{2 * values.itemsize}x}" for value in values.tolist())


def _time(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _outline_stretches(outlines: Outlines) -> list[alignment.Stretch]:
    """Return runs of lines that both pages have, and of lines that one has, by turns."""
    stretches = []
    for shared, run in groupby(outlines.pairs, key=lambda pair: pair.shared):
        pairs = list(run)
        left, right = ("".join(_line(pair[side]) for pair in pairs) for side in (0, 1))
        stretches.append(alignment.Stretch(left, right, shared))
    return stretches


def _line(line: Line | None) -> str:
    if line is None:
        return ""
    return f"{'  ' * line.depth}{line.label}{f' x{line.repeats}' if line.repeats > 1 else ''}\n"


def _passages(text: str, passages: Iterable[tuple[int, int, bool]]) -> list[Passage]:
    return [Passage(text[start:end], shared) for start, end, shared in passages]
