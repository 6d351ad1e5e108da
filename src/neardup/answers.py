"""What an index answers, in the library and over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Hit:
    """A kept document that is similar to a query.

    id : of the document. similarity, distance, structure, exact : the measures of the method, None for others.
    first_seen, last_seen : when it was added, and last found or sent. payload : the data stored with it.
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

    id : of the document. kept : whether it was kept. repeated : whether the index had it before. kept_id : the document
    that removed it, None if it was kept; so are the measures. truncated : whether a bucket had more documents than
    were compared. first_seen, last_seen, payload : of the kept document, None if that is gone.
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
