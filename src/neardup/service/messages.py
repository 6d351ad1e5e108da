"""The bodies of requests and responses."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from neardup.answers import Answer, Hit

Id = Annotated[str, Meta(description="Any text.")]
Text = Annotated[
    str | list[float],
    Meta(description="A text; an HTML page or a list of numbers if the index compares these."),
]
Time = Annotated[datetime, Meta(tz=True)]  # with a zone, as date-time of JSON Schema has
Name = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        # In Python, $ also matches before a line end.
        pattern=r"^[^/\x00-\x1f]+$(?!\n)",
        description="The name of an import, without /.",
    ),
]


class NewDocument(Struct, forbid_unknown_fields=True):
    """A document to add."""

    id: Id
    text: Text
    payload: Annotated[
        Any, Meta(description="Returned with answers: a URL, a date, an object.")
    ] = None
    source: Annotated[
        str | None,
        Meta(description="The place it comes from, if the index tracks sources."),
    ] = None
    date: Annotated[
        str | None,
        Meta(description="Its date, time or number, if the index tracks dates."),
    ] = None


class AddRequest(Struct, forbid_unknown_fields=True):
    """Documents to add, in this order."""

    documents: Annotated[list[NewDocument], Meta(min_length=1)]
    mode: Annotated[
        Literal["add-if-new", "add"],
        Meta(
            description=(
                "Keep a document only if no kept one is similar (add-if-new), or always (add)."
            )
        ),
    ] = "add-if-new"


class StageRequest(Struct, forbid_unknown_fields=True):
    """Documents of an import; they are decided when the import is committed."""

    documents: Annotated[list[NewDocument], Meta(min_length=1)]


class Answers(Struct):
    """The decisions, in the order of the documents."""

    answers: list[Answer]


class QueryRequest(Struct, forbid_unknown_fields=True):
    """Texts to look up. Nothing is added."""

    texts: Annotated[list[Text], Meta(min_length=1)]
    limit: Annotated[int, Meta(ge=1, description="The maximum number of hits for a text.")] = 10


class Hits(Struct):
    """The hits of each text, the most similar first."""

    results: list[list[Hit]]


class CompareRequest(Struct, forbid_unknown_fields=True):
    """Two texts to compare by the method of the index."""

    left: Text
    right: Text


class Stretch(Struct):
    """A passage of both texts: shared, or the differing part of each, which may be empty."""

    left: str
    right: str
    shared: bool


class Passage(Struct):
    """A passage of one text, and whether the other text contains it."""

    text: str
    shared: bool


Passages = Annotated[
    list[Passage] | None, Meta(description="Each text by itself, if `stretches` is null.")
]
Fingerprint = Annotated[
    str | None, Meta(description="The SimHash fingerprint in hexadecimal digits.")
]


class Compared(Struct):
    """The similarity of two texts, and their differences."""

    duplicate: Annotated[bool, Meta(description="Whether the two are duplicates.")]
    similarity: float
    threshold: float
    is_outline: Annotated[
        bool,
        Meta(
            description=(
                "Whether pages are compared by their tags; the texts below are their outlines."
            )
        ),
    ]
    measures: Annotated[dict[str, Any], Meta(description="Every measure of the pair, by name.")]
    stretches: Annotated[
        list[Stretch] | None,
        Meta(
            description=(
                "Both texts side by side; null if long texts share passages in a different order."
            )
        ),
    ]
    left_passages: Passages
    right_passages: Passages
    left_fingerprint: Fingerprint
    right_fingerprint: Fingerprint


class Removed(Struct):
    """The number of documents that were removed."""

    removed: int


class ImportRequest(Struct, forbid_unknown_fields=True):
    """The name of a new import."""

    name: Name


class Import(Struct):
    """An open import."""

    name: str
    opened: Time | None
    documents: Annotated[int, Meta(description="The number of staged documents.")]


class Staged(Struct):
    """The number of documents of the request that were staged."""

    staged: int


class Cancelled(Struct):
    """The import that was cancelled."""

    name: str


class Imports(Struct):
    """The open imports."""

    imports: list[Import]


class Growth(Struct):
    """The number of documents that were added up to a time."""

    time: Time
    documents: int


class Stats(Struct):
    """The index and the service."""

    index: Annotated[dict[str, Any], Meta(description="As `neardup.Index.info` returns it.")]
    growth: Annotated[list[Growth], Meta(description="The documents of the index over time.")]
    uptime_s: float
    queued: Annotated[dict[str, int], Meta(description="The documents that wait, by queue.")]
    requests: Annotated[int, Meta(description="The requests that were answered since the start.")]


class State(Struct):
    """The readiness of the service."""

    status: Literal["ok", "starting", "stopping"]


class ProblemDetails(Struct, omit_defaults=True):
    """A problem (RFC 9457)."""

    title: str
    status: int
    detail: Annotated[str, Meta(description="The problem, the accepted values, and the next step.")]
    request_id: Annotated[str, Meta(description="Also in the header X-Request-ID and in the log.")]
    type: str = field(default="about:blank")
    setting: Annotated[
        str | None, Meta(description="The limit that was exceeded: a setting of the service.")
    ] = None
