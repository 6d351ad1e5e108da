"""The operations of the service: each with its path, role, messages and function."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

import msgspec

from neardup.answers import Committed, Document
from neardup.index.sources import check_date, refuse_untracked_source
from neardup.service import messages
from neardup.service.library import Query
from neardup.service.metrics import Family, Labels
from neardup.service.openapi import openapi_document
from neardup.service.problems import Problem, busy, check_size
from neardup.version import __version__

if TYPE_CHECKING:
    from neardup.service.app import Call, Service

_JSON = "application/json"
_ENCODER = msgspec.json.Encoder()


class Reply(NamedTuple):
    """A response."""

    body: bytes
    media_type: str = _JSON
    status: int = 200
    headers: Mapping[str, str] = {}


class Operation(NamedTuple):
    """An operation of the service: a method on a path.

    role : open to everybody, or read or write. run : returns the message of the answer, or a reply.
    response : the message of the answer, or its media type. request : the message of the body, or
    None.
    """

    method: str
    path: str
    role: str
    run: Callable[..., Awaitable[Any]]
    response: type | str
    request: type | None
    status: int

    async def answer(self, service: Service, call: Call) -> Reply:
        """Run the function on a request and its message; return the reply."""
        arguments = () if self.request is None else (await call.body(self.request),)
        answer = await self.run(service, call, *arguments)
        if isinstance(answer, Reply):
            return answer
        return Reply(_ENCODER.encode(answer), status=self.status)

    @property
    def name(self) -> str:
        """The name of its function."""
        return self.run.__name__

    @property
    def summary(self) -> str:
        """The docstring of its function."""
        return " ".join((self.run.__doc__ or "").split())


OPERATIONS: list[Operation] = []
_Run = Callable[..., Awaitable[Any]]


def _at(
    method: str, path: str, role: str, media_type: str = _JSON, status: int = 200
) -> Callable[[_Run], _Run]:
    """Add a function to the operations; its annotations are the types of the messages."""

    def add(run: _Run) -> _Run:
        # With postponed annotations the types are strings; these two names exist for type checkers
        # only.
        types = get_type_hints(run, localns={"Service": Any, "Call": Any})
        response = media_type if types["return"] is Reply else types["return"]
        operation = Operation(
            method=method,
            path=path,
            role=role,
            run=run,
            response=response,
            request=types.get("request"),
            status=status,
        )
        OPERATIONS.append(operation)
        return run

    return add


# Documents.


@_at("POST", "/v1/documents", "write")
async def add_documents(
    service: Service, call: Call, request: messages.AddRequest
) -> messages.Answers:
    """Add documents: all of them, or only the new ones. They are decided in order of arrival."""
    check_documents(service, call, request.documents)
    library = service.library
    function = library.add if request.mode == "add" else library.add_if_new
    answers = await service.writes.run(function, request.documents)
    for answer in answers:
        decision = "kept" if answer.kept else "removed"
        service.metrics.decisions["repeated" if answer.repeated else decision] += 1
    return messages.Answers(list(answers))


def check_documents(
    service: Service, call: Call, documents: Sequence[messages.NewDocument]
) -> None:
    """Raise Problem if documents exceed the limits of the settings; note their number for the
    log.
    """
    index = service.library.index
    # The cheap check first: the texts of an excess of documents are not looked at.
    _check_number(service, call, "documents", len(documents))
    for position, document in enumerate(documents):
        place = f"of documents[{position}]"
        _check_text(service, f"text {place}", document.text)
        _check_name(service, f"id {place}", document.id)
        if document.payload is not None:
            size = len(_ENCODER.encode(document.payload))
            subject = f"The bytes of the payload {place} are"
            check_size(service.settings, "max_payload_bytes", size, subject, "Send a smaller one")
        if document.source is not None:
            name = f"source {place}"
            tracks = index.settings.track_sources
            refuse_untracked_source(name, document.source, index.address, tracks=tracks)
            _check_name(service, name, document.source)
        if document.date is not None:
            name = f"date {place}"
            _check_name(service, name, document.date)
            check_date(name, document.date, index.address, tracks=index.settings.track_dates)


def _check_number(service: Service, call: Call, noun: str, number: int) -> None:
    call.num_documents = number
    subject = f"The {noun} of the request are"
    check_size(service.settings, "max_documents", number, subject, "Send several requests")


def _check_name(service: Service, name: str, value: str) -> None:
    """Raise Problem if an id, a source or a date is too long."""
    subject = f"The bytes of the {name} are"
    check_size(service.settings, "max_id_bytes", _size(name, value), subject, "Shorten it")


def _check_text(service: Service, name: str, text: messages.Text) -> None:
    subject = f"The bytes of the {name} are"
    size = _size(name, text)
    check_size(service.settings, "max_text_bytes", size, subject, "Send a part of it")


def _size(name: str, text: messages.Text) -> int:
    if not isinstance(text, str):
        # A vector counts as doubles.
        return 8 * len(text)
    try:
        # Most texts: no copy is needed to know their size.
        return len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        raise Problem(
            422, f"The {name} has a lone surrogate at character {error.start}. Send Unicode text."
        ) from error


@_at("GET", "/v1/documents/{id}", "read")
async def get_document(service: Service, call: Call) -> Document:
    """Return a document by its id, which may have slashes and any other character,
    percent-encoded.
    """
    document: Document | None = await service.reads.call(service.library.get, call.argument)
    if document is None:
        raise _unknown(call)
    return document


@_at("DELETE", "/v1/documents/{id}", "write")
async def remove_document(service: Service, call: Call) -> messages.Removed:
    """Remove a document from the index."""
    removed = await service.writes.call(service.library.index.remove, [call.argument])
    if not removed:
        raise _unknown(call)
    return messages.Removed(removed)


def _unknown(call: Call) -> Problem:
    return Problem(
        404, f"No document of the index has the id {call.argument!r:.200}. Ids are case-sensitive."
    )


# Questions.


@_at("POST", "/v1/query", "read")
async def query(service: Service, call: Call, request: messages.QueryRequest) -> messages.Hits:
    """Return the near-duplicates of texts. Nothing is added."""
    _check_number(service, call, "texts", len(request.texts))
    # The hits of all texts together are in memory at once.
    wanted = request.limit * len(request.texts)
    check_size(
        service.settings, "max_hits", wanted, "The hits of all texts may be", "Send fewer texts"
    )
    for position, text in enumerate(request.texts):
        _check_text(service, f"text texts[{position}]", text)
    found = await service.reads.run(
        service.library.query, [Query(text, request.limit) for text in request.texts]
    )
    return messages.Hits(list(found))


@_at("POST", "/v1/compare", "read")
async def compare(
    service: Service, call: Call, request: messages.CompareRequest
) -> messages.Compared:
    """Compare two texts by the method of the index: their similarity, and their differences."""
    _check_text(service, "text left", request.left)
    _check_text(service, "text right", request.right)
    return await service.analyses.call(service.library.compare, request.left, request.right)


# Imports.


@_at("GET", "/v1/imports", "read")
async def list_imports(service: Service, call: Call) -> messages.Imports:
    """Return the open imports."""
    return messages.Imports(await service.reads.call(service.library.imports))


@_at("POST", "/v1/imports", "write", status=201)
async def open_import(
    service: Service, call: Call, request: messages.ImportRequest
) -> messages.Import:
    """Open an import, whose documents are staged until it is committed."""
    await service.writes.call(service.library.index.open_import, request.name)
    # The time is known only to the index; `list_imports` returns it.
    return messages.Import(name=request.name, opened=None, documents=0)


@_at("DELETE", "/v1/imports/{name}", "write")
async def remove_import(service: Service, call: Call) -> messages.Removed:
    """Remove all documents of a committed import."""
    removed = await service.writes.call(service.library.index.remove_import, call.argument)
    if not removed:
        raise Problem(
            404,
            f"No document of the index is of the import {call.argument!r:.200}. Names are "
            "case-sensitive.",
        )
    return messages.Removed(removed)


@_at("POST", "/v1/imports/{name}/documents", "write")
async def stage_documents(
    service: Service, call: Call, request: messages.StageRequest
) -> messages.Staged:
    """Stage documents in an open import."""
    check_documents(service, call, request.documents)
    # Partials are never equal, so that documents for one import are not joined with others.
    await service.writes.run(partial(service.library.stage, call.argument), request.documents)
    return messages.Staged(len(request.documents))


@_at("POST", "/v1/imports/{name}/commit", "write")
async def commit_import(service: Service, call: Call) -> Committed:
    """Add the new documents of an import, and close the import."""
    committed: Committed = await service.writes.call(service.library.commit_import, call.argument)
    for decision in ("kept", "removed", "repeated"):
        service.metrics.decisions[decision] += getattr(committed, decision)
    return committed


@_at("POST", "/v1/imports/{name}/cancel", "write")
async def cancel_import(service: Service, call: Call) -> messages.Cancelled:
    """Drop the staged documents of an import, and close the import."""
    await service.writes.call(service.library.index.cancel_import, call.argument)
    return messages.Cancelled(call.argument)


# The state of the service.


@_at("GET", "/v1/stats", "read")
async def stats(service: Service, call: Call) -> messages.Stats:
    """Return statistics of the index and of the service."""
    info, growth = await service.analyses.call(service.library.stats)
    # The clock of the system may be set while the service runs; this one is not.
    uptime_s = round(time.monotonic() - service.started, 3)
    queued = {lane.name: lane.num_queued for lane in service.lanes}
    return messages.Stats(
        index=info,
        growth=growth,
        uptime_s=uptime_s,
        queued=queued,
        requests=service.metrics.num_requests,
    )


@_at("GET", "/healthz", "open")
async def healthz(service: Service, call: Call) -> messages.State:
    """Return 200 while the process responds."""
    return messages.State("ok")


@_at("GET", "/readyz", "open")
async def readyz(service: Service, call: Call) -> messages.State:
    """Return 200 if the index responds, 503 while the service is stopping."""
    # A load balancer takes the service out before its connections close.
    if service.is_stopping:
        raise busy(
            "The service is stopping. Send requests to another instance.",
            "stop_timeout_s",
            status=503,
        )
    # Through the lane: a service whose look-ups hang is not ready.
    await service.reads.call(service.library.count)
    return messages.State("ok")


@_at("GET", "/metrics", "read", "text/plain")
async def metrics(service: Service, call: Call) -> Reply:
    """Return counters in the text format of Prometheus."""
    counts = await service.reads.call(service.library.count)
    documents: dict[Labels, float] = {(("decision", name),): counts[name] for name in counts}
    queued: dict[Labels, float] = {
        (("queue", lane.name),): lane.num_queued for lane in service.lanes
    }
    usage = os.times()
    page = service.metrics.render(
        Family("neardup_documents", "Documents of the index.", documents),
        Family("neardup_queued_documents", "Documents that wait, by queue.", queued),
        Family(
            "neardup_pending_bytes",
            "Bytes of the request bodies in memory.",
            {(): service.pending_bytes},
        ),
        Family("neardup_connections", "Open connections.", {(): service.num_connections()}),
        Family("process_cpu_seconds_total", "Processor time.", {(): usage.user + usage.system}),
        Family("process_resident_memory_bytes", "Resident memory.", {(): resident_bytes()}),
    )
    return Reply(page.encode(), "text/plain; version=0.0.4; charset=utf-8")


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 where the system does not show it."""
    if sys.platform != "linux":
        return 0
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@_at("GET", "/openapi.json", "open")
async def openapi(service: Service, call: Call) -> Reply:
    """Return the OpenAPI document of this service."""
    return Reply(_ENCODER.encode(openapi_document(OPERATIONS, __version__, service.settings)))


# The page.


@_at("GET", "/", "open", "text/html")
async def page(service: Service, call: Call) -> Reply:
    """Return the page for looking up texts in a browser."""
    whole = service.assets.page
    is_known = call.headers.get(b"if-none-match") == service.assets.tag.encode()
    return Reply(b"", "", 304, whole.headers) if is_known else whole


@_at("GET", "/static/{name}", "open", "*/*")
async def static_file(service: Service, call: Call) -> Reply:
    """Return a file of the page."""
    file = service.assets.files.get(f"/static/{call.argument}")
    if file is None:
        raise Problem(
            404, "There is no such file. Load the page again: a newer version has other files."
        )
    return file
