"""The calls of the library that the service makes: lists of messages in, lists of messages out, in worker threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

import neardup
from neardup.service.messages import (
    Answer,
    Committed,
    Compared,
    CompareRequest,
    Document,
    Growth,
    Hit,
    Kept,
    Passage,
    Run,
    Stretch,
)
from neardup.settings.shingling import PAGE_TOKENS
from neardup.verify.alignment import align

_ANSWER = Answer.__struct_fields__
_HIT = Hit.__struct_fields__


class Query(NamedTuple):
    """A text to look up, and how many hits are wanted."""

    text: str
    limit: int


class Numbers(NamedTuple):
    """The numbers of an index: as `Index.info` returns them, and its documents over time."""

    info: dict[str, Any]
    growth: list[Growth]


class Library:
    """The operations of the service on an index. Each takes and returns one list, as a `Lane` wants it."""

    def __init__(self, index: Any) -> None:
        self.index = index

    def add(self, documents: list[Document]) -> list[Answer]:
        """Add documents, similar ones too; return the decision about each."""
        return _answers(self.index.add_many(_table(documents)))

    def add_if_new(self, documents: list[Document]) -> list[Answer]:
        """Add the documents that are similar to no kept one; return the decision about each."""
        return _answers(self.index.add_many_if_new(_table(documents)))

    def query(self, queries: list[Query]) -> list[list[Hit]]:
        """Return the hits of each text, the most similar first."""
        texts = pa.table({"text": pa.array([query.text for query in queries], pa.large_string())})
        table = self.index.query_many(texts, limit=max(query.limit for query in queries))
        found: list[list[Hit]] = [[] for _ in queries]
        for query, *values in _rows(table, ("query", *_HIT)):
            if len(found[query]) < queries[query].limit:
                found[query].append(Hit(*values))
        return found

    def get(self, ids: list[str]) -> list[Kept | None]:
        """Return the document of each id, or None."""
        return [_kept(self.index.get(id)) for id in ids]

    def remove(self, ids: list[str]) -> list[int]:
        """Remove documents; return for each id the number of documents removed, 0 or 1."""
        return [self.index.remove([id]) for id in ids]

    def compare(self, pairs: list[CompareRequest]) -> list[Compared]:
        """Compare pairs of texts by the method of the index."""
        return [self._compare(pair.left, pair.right) for pair in pairs]

    def _compare(self, left: str, right: str) -> Compared:
        method = self.index.method
        found = neardup.compare(left, right, method=method)
        sides = None if method.tokens in PAGE_TOKENS else (found.left_passages, found.right_passages)
        stretches = sides and align(found.left, sides[0], found.right, sides[1])
        has_bits = found.measures.distance is not None
        fingerprints = [_fingerprint(text, method) if has_bits else None for text in (left, right)]
        return Compared(
            found.duplicate,
            found.similarity,
            found.threshold,
            {name: value for name, value in found.measures._asdict().items() if value is not None},
            [Stretch(*stretch) for stretch in stretches] if stretches else None,
            _passages(found.left, sides[0]) if sides else None,
            _passages(found.right, sides[1]) if sides else None,
            *fingerprints,
        )

    def open_run(self, names: list[str]) -> list[None]:
        """Open runs."""
        return [self.index.open_run(name) for name in names]

    def commit_run(self, names: list[str]) -> list[Committed]:
        """Commit runs; return the number of decisions of each kind."""
        return [_committed(self.index.commit_run(name)) for name in names]

    def cancel_run(self, names: list[str]) -> list[None]:
        """Drop the staged documents of runs."""
        return [self.index.cancel_run(name) for name in names]

    def remove_run(self, names: list[str]) -> list[int]:
        """Remove the documents that committed runs added; return the number of each."""
        return [self.index.remove_run(name) for name in names]

    def stage(self, name: str, documents: list[Document]) -> list[None]:
        """Stage documents in a run."""
        self.index.stage(name, _table(documents))
        return [None] * len(documents)

    def runs(self) -> list[Run]:
        """Return the open runs."""
        return [Run(run.name, run.opened, run.num_documents) for run in self.index.runs()]

    def stats(self, questions: list[None]) -> list[Numbers]:
        """Return the numbers of the index, once for each question."""
        return [Numbers(self.index.info(), [])] * len(questions)

    def count(self, questions: list[None]) -> list[dict[str, int]]:
        """Return the number of documents by decision, once for each question."""
        info = self.index.info()
        return [{"kept": info["kept"], "removed": info["removed"]}] * len(questions)


def _table(documents: Sequence[Document]) -> pa.Table:
    """Return documents as a table; payloads are JSON texts."""
    payloads = [None if d.payload is None else msgspec.json.encode(d.payload).decode() for d in documents]
    return pa.table(
        {
            "id": pa.array([document.id for document in documents], pa.large_string()),
            "text": pa.array([document.text for document in documents], pa.large_string()),
            "payload": pa.array(payloads, pa.large_string()),
        }
    )


def _rows(table: pa.Table, names: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    """Return columns as rows; a column that is missing is null."""
    columns = [
        table[name].to_pylist() if name in table.column_names else [None] * table.num_rows
        for name in names
        if name != "payload"
    ]
    if "payload" in names:
        payloads = [_payload(text) for text in table["payload"].to_pylist()]
        columns.insert(names.index("payload"), payloads)
    return zip(*columns, strict=True)


def _payload(text: str | None) -> Any:
    """Return the JSON of a payload as it is; as a string, if it came from elsewhere and is no JSON."""
    if text is None:
        return None
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return msgspec.Raw(text.encode())


def _answers(table: pa.Table) -> list[Answer]:
    return [Answer(*row) for row in _rows(table, _ANSWER)]


def _kept(document: Any) -> Kept | None:
    if document is None:
        return None
    return Kept(
        document.id,
        document.kept,
        document.kept_id,
        document.first_seen,
        document.last_seen,
        _payload(document.payload),
        document.run,
        document.text,
        None if document.fingerprint is None else document.fingerprint.hex(),
    )


def _committed(table: pa.Table) -> Committed:
    kept, repeated = table["kept"].to_numpy(), table["repeated"].to_numpy()
    return Committed(int((kept & ~repeated).sum()), int((~kept & ~repeated).sum()), int(repeated.sum()))


def _fingerprint(text: str, method: neardup.SimHash) -> str | None:
    """Return the fingerprint of a text in hexadecimal digits; None if it has no features."""
    try:
        return f"{neardup.simhash(text, method=method):0{method.bits // 4}x}"
    except neardup.InputError:
        return None


def _passages(text: str, passages: Iterable[tuple[int, int, bool]]) -> list[Passage]:
    return [Passage(text[start:end], shared) for start, end, shared in passages]
