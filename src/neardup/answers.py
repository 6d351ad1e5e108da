"""The answers of an index: records of the library, the service and its client."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Hit:
    """A kept document that is similar to a query.

    id : of the document. similarity, distance, structure, exact : a measure, None if the method does not have it.
    first_seen : when it was added. last_seen : when it or a duplicate of it was last sent. payload : the data stored
    with it.
    """

    id: str
    similarity: float | None
    distance: int | None
    structure: float | None
    exact: bool | None
    first_seen: datetime | None
    last_seen: datetime | None
    payload: Any


@dataclass(frozen=True)
class Answer:
    """The answer of an index about one document.

    id : of the document. kept : whether it was kept. repeated : whether the index had the same id and content before.
    kept_id : the document that removed it, None if it was kept. similarity, distance, structure, exact : a measure of
    the two, None if it was kept. truncated : whether a bucket had more documents than were compared, so that a
    duplicate may have been missed. first_seen, last_seen, payload : of the kept document, None if that is gone.
    """

    id: str
    kept: bool
    repeated: bool
    kept_id: str | None
    similarity: float | None
    distance: int | None
    structure: float | None
    exact: bool | None
    truncated: bool
    first_seen: datetime | None
    last_seen: datetime | None
    payload: Any


@dataclass(frozen=True)
class Document:
    """A document of an index.

    id : of the document. kept : whether it was kept. kept_id : the document that removed it. first_seen : when it was
    added. last_seen : when it or a duplicate of it was last sent. payload : the data stored with it. import_name : the
    import that brought it. text : if texts are stored and it was kept. sketch : the signature, a uint32 array of shape
    (num_hashes,), or the words of the fingerprint, uint64 (num_words,), the lowest first; over HTTP hexadecimal digits.
    """

    id: str
    kept: bool
    kept_id: str | None
    first_seen: datetime | None
    last_seen: datetime | None
    payload: Any
    import_name: str | None
    text: str | None
    sketch: Any


@dataclass(frozen=True)
class Committed:
    """The numbers of documents of an import, by decision.

    kept : documents that were kept. removed : duplicates of kept ones. repeated : documents that the index had before.
    """

    kept: int
    removed: int
    repeated: int
