"""The operations of the service: each with its path, role, messages and function. The OpenAPI document lists them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from neardup.answers import Committed, Document
from neardup.service import messages
from neardup.service.library import Query
from neardup.service.problems import Problem, busy, exceeded
from neardup.version import __version__

if TYPE_CHECKING:
    from neardup.service.app import Call, Service

_ENCODER = msgspec.json.Encoder()
_JSON = "application/json"


class Reply(NamedTuple):
    """A response."""

    body: bytes
    media_type: str = _JSON
    status: int = 200
    headers: Mapping[str, str] = {}


class Operation(NamedTuple):
    """What the service does at a path.

    role : open to everybody, or read or write. request : the message of the body, or None. response : the message of
    the answer, or its media type. errors : the statuses of problems that callers should expect, beside the common ones.
    """

    method: str
    path: str
    name: str
    role: str
    summary: str
    run: Callable[[Service, Call], Awaitable[Reply]]
    response: type | str
    request: type | None = None
    status: int = 200
    errors: tuple[int, ...] = ()


def _reply(message: Any, status: int = 200) -> Reply:
    return Reply(_ENCODER.encode(message), status=status)


# Documents.


async def add_documents(service: Service, call: Call) -> Reply:
    """Decide about documents."""
    request = await call.body(messages.AddRequest)
    check_documents(service, call, request.documents)
    library = service.library
    function = library.add if request.mode == "add" else library.add_if_new
    answers = await service.writes.run(function, request.documents)
    for answer in answers:
        decision = "repeated" if answer.repeated else "kept" if answer.kept else "removed"
        service.metrics.decisions[decision] += 1
    return _reply(messages.Answers(list(answers)))


def check_documents(service: Service, call: Call, documents: Sequence[messages.NewDocument]) -> None:
    """Raise Problem if documents exceed the limits of the settings; note their number for the log."""
    settings = service.settings
    _check_number(service, call, "documents", len(documents))
    for position, document in enumerate(documents):
        place = f"of documents[{position}]"
        _check_text(service, f"text {place}", document.text)
        size = _size(f"id {place}", document.id)
        if size > settings.max_id_bytes:
            raise exceeded(
                422, f"The bytes of the id {place} are", size, "max_id_bytes", settings.max_id_bytes, "Shorten it"
            )
        if document.payload is not None:
            size = len(_ENCODER.encode(document.payload))
            if size > settings.max_payload_bytes:
                raise exceeded(
                    422,
                    f"The bytes of the payload {place} are",
                    size,
                    "max_payload_bytes",
                    settings.max_payload_bytes,
                    "Send a smaller one",
                )


def _check_number(service: Service, call: Call, noun: str, number: int) -> None:
    call.num_documents = number
    limit = service.settings.max_documents
    if number > limit:
        raise exceeded(422, f"The {noun} of the request are", number, "max_documents", limit, "Send several requests")


def _check_text(service: Service, name: str, text: str) -> None:
    limit = service.settings.max_text_bytes
    size = _size(name, text)
    if size > limit:
        raise exceeded(422, f"The bytes of the {name} are", size, "max_text_bytes", limit, "Send a part of it")


def _size(name: str, text: str) -> int:
    try:
        return len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        raise Problem(422, f"The {name} has a lone surrogate at character {error.start}. Send Unicode text.") from error


async def get_document(service: Service, call: Call) -> Reply:
    """Return a document."""
    [document] = await service.reads.run(service.library.get, [call.argument])
    if document is None:
        raise _unknown(call)
    return _reply(document)


async def remove_document(service: Service, call: Call) -> Reply:
    """Remove a document."""
    [removed] = await service.writes.run(service.library.remove, [call.argument])
    if not removed:
        raise _unknown(call)
    return _reply(messages.Removed(removed))


def _unknown(call: Call) -> Problem:
    return Problem(404, f"No document of the index has the id {call.argument!r:.200}. Ids are case-sensitive.")


# Questions.


async def query(service: Service, call: Call) -> Reply:
    """Look up texts."""
    request = await call.body(messages.QueryRequest)
    _check_number(service, call, "texts", len(request.texts))
    limit = service.settings.max_hits
    wanted = request.limit * len(request.texts)
    if wanted > limit:
        raise exceeded(422, "The hits of all texts may be", wanted, "max_hits", limit, "Send fewer texts")
    for position, text in enumerate(request.texts):
        _check_text(service, f"text texts[{position}]", text)
    found = await service.reads.run(service.library.query, [Query(text, request.limit) for text in request.texts])
    return _reply(messages.Hits(list(found)))


async def compare(service: Service, call: Call) -> Reply:
    """Compare two texts."""
    request = await call.body(messages.CompareRequest)
    _check_text(service, "text left", request.left)
    _check_text(service, "text right", request.right)
    [found] = await service.analyses.run(service.library.compare, [request])
    return _reply(found)


# Imports.


async def open_import(service: Service, call: Call) -> Reply:
    """Open an import."""
    request = await call.body(messages.ImportRequest)
    await service.writes.run(service.library.open_import, [request.name])
    return _reply(messages.Import(request.name, None, 0), 201)


async def list_imports(service: Service, call: Call) -> Reply:
    """List the open imports."""
    [imports] = await service.reads.run(service.library.imports, [None])
    return _reply(messages.Imports(imports))


async def stage_documents(service: Service, call: Call) -> Reply:
    """Stage documents in an import."""
    request = await call.body(messages.StageRequest)
    check_documents(service, call, request.documents)
    await service.writes.run(partial(service.library.stage, call.argument), request.documents)
    return _reply(messages.Staged(len(request.documents)))


async def commit_import(service: Service, call: Call) -> Reply:
    """Decide about the documents of an import."""
    [committed] = await service.writes.run(service.library.commit_import, [call.argument])
    for decision in ("kept", "removed", "repeated"):
        service.metrics.decisions[decision] += getattr(committed, decision)
    return _reply(committed)


async def cancel_import(service: Service, call: Call) -> Reply:
    """Drop the staged documents of an import."""
    await service.writes.run(service.library.cancel_import, [call.argument])
    return _reply(messages.Cancelled(call.argument))


async def remove_import(service: Service, call: Call) -> Reply:
    """Remove the documents of a committed import."""
    [removed] = await service.writes.run(service.library.remove_import, [call.argument])
    if not removed:
        raise Problem(
            404, f"No document of the index is of the import {call.argument!r:.200}. Names are case-sensitive."
        )
    return _reply(messages.Removed(removed))


# The state of the service.


async def stats(service: Service, call: Call) -> Reply:
    """Return the numbers of the index and of the service."""
    [found] = await service.analyses.run(service.library.stats, [None])
    return _reply(
        messages.Stats(
            found.info,
            found.growth,
            round(time.monotonic() - service.started, 3),
            {lane.name: lane.num_queued for lane in service.lanes},
            service.metrics.num_requests,
        )
    )


async def healthz(service: Service, call: Call) -> Reply:
    """Return that the process answers."""
    return _reply(messages.State("ok"))


async def readyz(service: Service, call: Call) -> Reply:
    """Return whether the index answers."""
    if service.is_stopping:
        raise busy("The service stops. Send requests to another one.", "stop_timeout_s", status=503)
    await service.reads.run(service.library.count, [None])
    return _reply(messages.State("ok"))


async def metrics(service: Service, call: Call) -> Reply:
    """Return the counters, for Prometheus."""
    [counts] = await service.reads.run(service.library.count, [None])
    usage = os.times()
    page = service.metrics.render(
        {
            "neardup_documents": (
                "Documents of the index.",
                [((("decision", name),), count) for name, count in counts.items()],
            ),
            "neardup_queued_documents": (
                "Documents that wait, by queue.",
                [((("queue", lane.name),), lane.num_queued) for lane in service.lanes],
            ),
            "neardup_pending_bytes": ("Bytes of the request bodies in memory.", [((), service.pending_bytes)]),
            "neardup_connections": ("Open connections.", [((), service.num_connections())]),
            "process_cpu_seconds_total": ("Processor time.", [((), usage.user + usage.system)]),
            "process_resident_memory_bytes": ("Resident memory.", [((), resident_bytes())]),
        }
    )
    return Reply(page.encode(), "text/plain; version=0.0.4; charset=utf-8")


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 where the system does not show it."""
    if sys.platform != "linux":
        return 0
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def openapi(service: Service, call: Call) -> Reply:
    """Return the OpenAPI document."""
    from neardup.service.openapi import document

    return _reply(document(OPERATIONS, __version__, service.settings))


# The page.


async def page(service: Service, call: Call) -> Reply:
    """Return the page."""
    headers = {"cache-control": "no-cache", "etag": service.assets.tag}
    if call.headers.get(b"if-none-match") == service.assets.tag.encode():
        return Reply(b"", "", 304, headers)
    return Reply(*service.assets.page, headers=headers)


async def static_file(service: Service, call: Call) -> Reply:
    """Return a file of the page."""
    asset = service.assets.files.get(f"/static/{call.argument}")
    if asset is None:
        raise Problem(404, "There is no such file. Load the page again: a newer version has other files.")
    return Reply(*asset, headers={"cache-control": "public, max-age=31536000, immutable"})


_M = messages
OPERATIONS = (
    Operation(
        "POST",
        "/v1/documents",
        "add_documents",
        "write",
        "Add documents: all of them, or only the new ones. They are decided in order of arrival.",
        add_documents,
        _M.Answers,
        _M.AddRequest,
        errors=(413, 429),
    ),
    Operation(
        "GET",
        "/v1/documents/{id}",
        "get_document",
        "read",
        "Return a document by its id, which may have slashes and any other character, percent-encoded.",
        get_document,
        Document,
        errors=(404,),
    ),
    Operation(
        "DELETE",
        "/v1/documents/{id}",
        "remove_document",
        "write",
        "Remove a document from the index.",
        remove_document,
        _M.Removed,
        errors=(404,),
    ),
    Operation(
        "POST",
        "/v1/query",
        "query",
        "read",
        "Return the near-duplicates of texts. Nothing is added.",
        query,
        _M.Hits,
        _M.QueryRequest,
        errors=(413, 429),
    ),
    Operation(
        "POST",
        "/v1/compare",
        "compare",
        "read",
        "Compare two texts by the method of the index: how similar they are, and where they differ.",
        compare,
        _M.Compared,
        _M.CompareRequest,
        errors=(413, 429),
    ),
    Operation("GET", "/v1/imports", "list_imports", "read", "Return the open imports.", list_imports, _M.Imports),
    Operation(
        "POST",
        "/v1/imports",
        "open_import",
        "write",
        "Open an import, whose documents are staged until it is committed.",
        open_import,
        _M.Import,
        _M.ImportRequest,
        status=201,
    ),
    Operation(
        "DELETE",
        "/v1/imports/{name}",
        "remove_import",
        "write",
        "Remove all documents of a committed import.",
        remove_import,
        _M.Removed,
        errors=(404,),
    ),
    Operation(
        "POST",
        "/v1/imports/{name}/documents",
        "stage_documents",
        "write",
        "Stage documents in an open import.",
        stage_documents,
        _M.Staged,
        _M.StageRequest,
        errors=(404, 413, 429),
    ),
    Operation(
        "POST",
        "/v1/imports/{name}/commit",
        "commit_import",
        "write",
        "Add the new documents of an import, and close the import.",
        commit_import,
        Committed,
        errors=(404,),
    ),
    Operation(
        "POST",
        "/v1/imports/{name}/cancel",
        "cancel_import",
        "write",
        "Drop the staged documents of an import, and close the import.",
        cancel_import,
        _M.Cancelled,
        errors=(404,),
    ),
    Operation(
        "GET", "/v1/stats", "stats", "read", "Return statistics of the index and of the service.", stats, _M.Stats
    ),
    Operation("GET", "/healthz", "healthz", "open", "Return 200 while the process responds.", healthz, _M.State),
    Operation(
        "GET",
        "/readyz",
        "readyz",
        "open",
        "Return 200 if the index responds, 503 while the service is stopping.",
        readyz,
        _M.State,
    ),
    Operation(
        "GET", "/metrics", "metrics", "read", "Return counters in the text format of Prometheus.", metrics, "text/plain"
    ),
    Operation(
        "GET", "/openapi.json", "openapi", "open", "Return the OpenAPI document of this service.", openapi, _JSON
    ),
    Operation("GET", "/", "page", "open", "Return the page for looking up texts in a browser.", page, "text/html"),
    Operation(
        "GET", "/static/{name}", "static_file", "open", "Return a file of the page.", static_file, "*/*", errors=(404,)
    ),
)
