"""The calls of the library that the service makes: messages in, messages out, in worker threads."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
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
from neardup.index.open_index import PAYLOAD, Batch
from neardup.index.records import ANSWER_COLUMNS, HIT_COLUMNS, columns_of, rows_of, time_of
from neardup.results import Comparison
from neardup.service.messages import Compared, Growth, Import, NewDocument, Passage, Stretch, Text
from neardup.settings.constraints import without_none
from neardup.verify import alignment
from neardup.verify.alignment import Outlines

# The growth reads all documents. It is computed again after _MIN_GROWTH_AGE_S, or after
# _GROWTH_AGE_RATIO times the seconds that it took, if that is longer: 2 % of the time at most.
_MIN_GROWTH_AGE_S = 5.0
_GROWTH_AGE_RATIO = 50.0


class Query(NamedTuple):
    """A text to look up, and its maximum number of hits."""

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
        # Vectors become lists of numbers, texts strings, by the method of the index.
        texts = array_of_documents(
            [document.text for document in documents], self.index.method.vector_length
        )
        ids = arrow_of_strings([document.id for document in documents])
        payloads = pa.array(
            [_encode_payload(document.payload) for document in documents], "large_string"
        )
        return Batch(
            texts=texts,
            ids=ids,
            payloads=payloads,
            sources=_strings_or_none([document.source for document in documents]),
            dates=_strings_or_none([document.date for document in documents]),
        )

    def query(self, queries: list[Query]) -> list[list[Hit]]:
        """Return the hits of each text, the most similar first.

        The queries of several requests are looked up together, so their limits may differ.
        """
        index = self.index.opened
        texts = array_of_documents([query.text for query in queries], index.method.vector_length)
        nulls = pa.nulls(len(queries), "large_string")
        batch = Batch(texts=texts, ids=nulls, payloads=nulls)
        # One look-up for all queries; each then takes as many hits as it asked for.
        max_limit = max(query.limit for query in queries)
        found = index.hits(index.describe(batch), max_limit)
        hits: list[list[Hit]] = [[] for _ in queries]
        for query_index, *row in rows_of(found, ("query", *HIT_COLUMNS)):
            if len(hits[query_index]) < queries[query_index].limit:
                hits[query_index].append(Hit(*_with_json(row, HIT_COLUMNS)))
        return hits

    def get(self, id: str) -> Document | None:
        """Return the document of an id, or None."""
        document = self.index.get(id)
        if document is None:
            return None
        return replace(
            document,
            payload=_decode_payload(document.payload),
            sketch=_hexadecimal(document.sketch),
        )

    def compare(self, left: Text, right: Text) -> Compared:
        """Compare two texts by the method of the index."""
        method = self.index.method
        compared = neardup.compare(left, right, method=method)
        measures = compared.measures._asdict()
        # As digits: JSON numbers of other programs are exact up to 2^53 only.
        left_fingerprint, right_fingerprint = measures.pop("fingerprints") or (None, None)
        # Only SimHash has fingerprints of other lengths than 64 bits.
        num_bits = getattr(method, "bits", 64)
        stretches = _stretches_of(compared)
        left_passages = None
        right_passages = None
        # The texts share passages in a different order: each text is shown by itself.
        if stretches is None:
            left_passages = _passages(compared.left, compared.left_passages)
            right_passages = _passages(compared.right, compared.right_passages)
        return Compared(
            duplicate=compared.duplicate,
            similarity=compared.similarity,
            threshold=compared.threshold,
            is_outline=compared.outlines is not None,
            measures=without_none(measures),
            stretches=stretches,
            left_passages=left_passages,
            right_passages=right_passages,
            left_fingerprint=_fingerprint_digits(left_fingerprint, num_bits),
            right_fingerprint=_fingerprint_digits(right_fingerprint, num_bits),
        )

    def commit_import(self, name: str) -> Committed:
        """Commit an import; return the number of decisions of each kind."""
        return Committed.of(self.index.commit_import(name))

    def stage(self, name: str, documents: list[NewDocument]) -> list[None]:
        """Stage documents in an import."""
        self.index.opened.stage(name, [self._batch(documents)])
        return [None] * len(documents)

    def imports(self) -> list[Import]:
        """Return the open imports."""
        return [
            Import(
                name=staged.name,
                opened=time_of(staged.opened),
                documents=staged.num_documents,
            )
            for staged in self.index.imports()
        ]

    def stats(self) -> tuple[JsonObject, list[Growth]]:
        """Return the numbers of the index, and its growth, which may be some time old."""
        started = time.monotonic()
        # No lock: the service calls this in its queue of analyses, which runs one call at a time.
        if not self._growth or started >= self._growth_until:
            self._growth = [
                Growth(time=moment, documents=count) for moment, count in self.index.growth()
            ]
            ended = time.monotonic()
            max_age_s = max(_MIN_GROWTH_AGE_S, _GROWTH_AGE_RATIO * (ended - started))
            self._growth_until = ended + max_age_s
        return self.index.info(), self._growth

    def count(self) -> dict[str, int]:
        """Return the number of documents by decision."""
        return dict(self.index.info()["documents"])

    def warm(self) -> None:
        """Load the compiled code, so that no request waits for it.

        Documents are added to an index in memory of the same method: nothing is written.
        """
        index = self.index
        method = self.index.opened.rules.method
        texts = method.examples
        storage = index.settings.storage
        with neardup.Index.create(
            "memory:", method=index.method, storage=storage, idf=method.idf
        ) as other:
            documents = [NewDocument(id=text, text=text) for text in texts]
            Library(other).add_if_new(documents)
            Library(other).add_if_new(documents)  # finds both in the store, by other code
        # On the index itself, to open its files, too.
        self.query([Query(texts[0], 1)])
        self.compare(*texts)
        self.stats()


def _encode_payload(payload: Any) -> str | None:
    """Return a payload as text, from which `_decode_payload` returns an equal value.

    A string is stored unchanged, unless it is valid JSON itself: the string "7" is stored as
    '"7"', because '7' is the number. Other values are stored as JSON.
    """
    if payload is None:
        return None
    # A string that is no JSON is decoded to itself.
    if isinstance(payload, str) and isinstance(_decode_payload(payload), str):
        return payload
    return msgspec.json.encode(payload).decode()


def _decode_payload(text: str | None) -> Any:
    """Return a stored payload: its JSON, to be sent unchanged, or a string that is no JSON."""
    if text is None:
        return None
    try:
        msgspec.json.decode(text)
    # A text from Python may be JSON that is nested too deeply for msgspec: it is sent as a string.
    except (msgspec.DecodeError, RecursionError):
        return text
    # Written into the answer as it is, without decoding and encoding.
    return msgspec.Raw(text.encode())


def _answers(table: pa.Table) -> list[Answer]:
    rows = rows_of(columns_of(table), ANSWER_COLUMNS)
    return [Answer(*_with_json(row, ANSWER_COLUMNS)) for row in rows]


def _with_json(row: Sequence[Any], names: Sequence[str]) -> list[Any]:
    """Return a row whose payload is a value of JSON. names : of its columns."""
    values = list(row)
    position = names.index(PAYLOAD)
    values[position] = _decode_payload(values[position])
    return values


def _fingerprint_digits(fingerprint: int | None, num_bits: int) -> str | None:
    """Return a fingerprint as hexadecimal digits, with leading zeros."""
    return None if fingerprint is None else f"{fingerprint:0{num_bits // 4}x}"


def _hexadecimal(sketch: Array) -> str:
    """Return a signature value by value, or a fingerprint from its highest word."""
    # The words of a fingerprint are stored lowest first.
    values = sketch if sketch.dtype == np.uint32 else sketch[::-1]
    return "".join(f"{value:0{2 * values.itemsize}x}" for value in values.tolist())


def _stretches_of(compared: Comparison) -> list[Stretch] | None:
    """Return the stretches of both texts; None if they share passages in a different order."""
    if compared.outlines is not None:
        stretches: list[alignment.Stretch] | None = _outline_stretches(compared.outlines)
    else:
        stretches = alignment.align(
            compared.left,
            compared.left_passages,
            compared.right,
            compared.right_passages,
        )
    if stretches is None:
        return None
    return [Stretch(left=left, right=right, shared=shared) for left, right, shared in stretches]


def _outline_stretches(outlines: Outlines) -> list[alignment.Stretch]:
    """Return the runs of shared lines and of other lines of two pages, in turn."""
    stretches = []
    for shared, run in groupby(outlines.pairs, key=lambda pair: pair.shared):
        pairs = list(run)
        left = "".join(_line(pair.left) for pair in pairs)
        right = "".join(_line(pair.right) for pair in pairs)
        stretches.append(alignment.Stretch(left=left, right=right, shared=shared))
    return stretches


def _line(line: Line | None) -> str:
    """Return a line of an outline, indented by its depth; an empty string if a page lacks it."""
    if line is None:
        return ""
    repeats = f" x{line.repeats}" if line.repeats > 1 else ""
    return f"{'  ' * line.depth}{line.label}{repeats}\n"


def _passages(text: str, passages: Iterable[tuple[int, int, bool]]) -> list[Passage]:
    return [Passage(text=text[start:end], shared=shared) for start, end, shared in passages]


def _strings_or_none(values: Sequence[str | None]) -> pa.Array | None:
    """Return strings as an array, null for an empty one; None if there are none."""
    if not any(values):
        return None
    return pa.array([value or None for value in values], "large_string")
