"""The application: an ASGI callable that checks a request, runs its operation, and answers, counts
and logs it.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from functools import cache, partial
from importlib.resources import files
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from neardup.errors import NeardupError
from neardup.files import read_text
from neardup.service.connections import write_response
from neardup.service.deadlines import Deadline
from neardup.service.lanes import Lane
from neardup.service.library import Library
from neardup.service.log import Log
from neardup.service.messages import ProblemDetails
from neardup.service.metrics import Metrics
from neardup.service.operations import OPERATIONS, Operation, Reply
from neardup.service.problems import Problem, busy, check_head, check_size, problem_of
from neardup.service.security import Gate, Tokens
from neardup.settings.service import ServiceSettings

_FILES = (
    ("neardup.report", "report.css", "text/css; charset=utf-8"),
    ("neardup.service", "page.css", "text/css; charset=utf-8"),
    ("neardup.service", "page.js", "text/javascript; charset=utf-8"),
)


class Assets:
    """The replies with the page, and with the files that it needs, by path.

    A path has a digest of its file, so a browser may keep it for ever: another version has another
    path.
    """

    def __init__(self) -> None:
        page = read_text(files("neardup.service").joinpath("page.html"))
        self.files: dict[str, Reply] = {}
        lasting = {"cache-control": "public, max-age=31536000, immutable"}
        for package, name, media_type in _FILES:
            content = files(package).joinpath(name).read_bytes()
            stem, _, suffix = name.rpartition(".")
            path = f"/static/{stem}.{hashlib.sha256(content).hexdigest()[:16]}.{suffix}"
            self.files[path] = Reply(content, media_type, headers=lasting)
            # The page refers to the files by their plain names; the service knows only the names
            # with digests.
            page = page.replace(f"/static/{name}", path)
        self.tag = f'"{hashlib.sha256(page.encode()).hexdigest()[:16]}"'
        # A browser keeps the page, and asks each time whether it is still current.
        checked = {"cache-control": "no-cache", "etag": self.tag}
        self.page = Reply(page.encode(), "text/html; charset=utf-8", headers=checked)


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
# A client that still sends does not read: with the connection closed at once, it would see a reset,
# not the answer.
_DRAIN_S = 2.0
# msgspec compiles a decoder for each type of message; one is enough for all requests.
_decoder = cache(msgspec.json.Decoder)


class Disconnected(Exception):
    """The client has closed the connection before its request arrived."""


class Call:
    """A request: its headers, the argument in its path, and its body.

    argument : the id or name in the path. num_documents : for the log. is_read : whether no part of
    the body is left.
    """

    def __init__(self, service: Service, scope: Message, receive: Receive) -> None:
        self.service = service
        # The server leaves out the body of the answer to HEAD.
        self.method: str = "GET" if scope["method"] == "HEAD" else scope["method"]
        # Not the decoded path, in which a %2F of a name would be a separator.
        self.raw_path: bytes = scope["raw_path"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.scope = scope
        self.argument = ""
        self.num_documents: int | None = None
        self.num_bytes = 0
        self._receive = receive
        self._pending = 0
        # Without one of these headers, a request of HTTP/1.1 has no body.
        self.is_read = not (
            b"content-length" in self.headers or b"transfer-encoding" in self.headers
        )

    async def body(self, kind: type) -> Any:
        """Read the body, and return it as a message.

        Raises
        ------
        Problem
            If the body is larger or slower than the limits, no JSON, or of another form.
        """
        content_type = self.headers.get(b"content-type", b"").split(b";")[0].strip().lower()
        # JSON alone also protects against pages of other sites, whose forms cannot send it: see
        # `Gate.check`.
        if (
            content_type != b"application/json"
            or self.headers.get(b"content-encoding", b"identity") != b"identity"
        ):
            raise Problem(
                415,
                (
                    "The body must be JSON, not compressed: send it with the header `Content-Type: "
                    "application/json`."
                ),
            )
        content = await self._read()
        try:
            return _decoder(kind).decode(content)
        except msgspec.ValidationError as error:
            raise Problem(
                422, f"The body does not have the expected form: {error}. See /openapi.json."
            ) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            # msgspec says "truncated" for a lone surrogate.
            hint = ""
            if "truncated" in str(error):
                hint = ", which a lone surrogate such as \\ud800 causes, too"
            raise Problem(
                400, f"The body is not valid JSON in UTF-8: {error}{hint}. Send one JSON object."
            ) from error
        # Deeply nested JSON.
        except RecursionError as error:
            raise Problem(
                400, "The body has too many levels of nested JSON. Send a flatter payload."
            ) from error

    async def _read(self) -> bytes:
        length = self.headers.get(b"content-length", b"")
        # A body that names its length is refused before it arrives; otherwise its bytes are
        # counted.
        if length.isdigit():
            self._check_size(int(length))
        parts: list[bytes] = []
        with self.service.reading.block():
            while not self.is_read:
                part = await self._part()
                self._check_size(self.num_bytes)
                self._reserve(len(part))
                parts.append(part)
        return b"".join(parts)

    def _check_size(self, size: int) -> None:
        subject = "The bytes of the body are"
        advice = "Send fewer documents at a time"
        for setting in ("max_body_bytes", "max_pending_bytes"):
            check_size(self.service.settings, setting, size, subject, advice, status=413)

    def _reserve(self, size: int) -> None:
        service = self.service
        if (
            # Others have reserved, too: a body alone may fill the whole limit, which `_check_size`
            # has checked. Otherwise it could never be read.
            service.pending_bytes > self._pending
            and service.pending_bytes + size > service.settings.max_pending_bytes
        ):
            raise busy(
                f"Requests of {service.pending_bytes:,} bytes are in progress, and "
                f"max_pending_bytes={service.settings.max_pending_bytes:,}. Repeat the request "
                "later, with fewer clients at a time.",
                "max_pending_bytes",
            )
        service.pending_bytes += size
        self._pending += size

    async def _part(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        # In ASGI both keys may be missing.
        part: bytes = message.get("body", b"")
        self.num_bytes += len(part)
        self.is_read = not message.get("more_body", False)
        return part

    async def drain(self) -> None:
        """Read and drop the rest of the body for a while, so that the client is there to read the
        answer.
        """
        # A client that sent `Expect: 100-continue` waits for a go-ahead, and sends no body after an
        # error.
        if self.is_read or b"expect" in self.headers:
            return
        # Four times the largest request: a client that sends more is cut off.
        limit = self.num_bytes + 4 * self.service.settings.max_body_bytes
        with suppress(Problem), self.service.draining.block():
            while not self.is_read and self.num_bytes < limit:
                await self._part()

    def release(self) -> None:
        """Give back the memory that was reserved for the body."""
        self.service.pending_bytes -= self._pending
        self._pending = 0


class Service:
    """The application. Made inside a running event loop.

    Attributes
    ----------
    library : the operations on the index.
    writes, reads, analyses : the queues, together `lanes`; the last one has comparisons and
        statistics, which may take long.
    pending_bytes : the bodies of the requests under way.
    reading, draining : the limits of time for the bodies of requests.
    """

    def __init__(
        self, library: Library, settings: ServiceSettings, tokens: Tokens, log: Log
    ) -> None:
        self.library = library
        self.settings = settings
        self.metrics = Metrics()
        self.assets = Assets()
        self.started = time.monotonic()
        self.is_stopping = False
        self.pending_bytes = 0
        # The server sets it once it listens.
        self.num_connections: Callable[[], int] = lambda: 0
        limit_s = settings.answer_timeout_s + settings.read_timeout_s
        self._answering = Deadline(limit_s, self._late)
        self.reading = Deadline(settings.read_timeout_s, self._slow)
        self.draining = Deadline(min(_DRAIN_S, settings.read_timeout_s), self._slow)
        self._gate = Gate(settings.host, tokens)
        self._log = log
        # Ids of requests differ between two runs of the service, although numbers begin at 1.
        self._boot = secrets.token_hex(4)
        self._numbers = itertools.count(1)
        self.lanes = tuple(self._lane(name) for name in ("writes", "reads", "analyses"))
        self.writes, self.reads, self.analyses = self.lanes

    def _lane(self, name: str) -> Lane:
        settings = self.settings
        count = partial(self.metrics.batches.add, name)
        return Lane(
            name,
            max_items=settings.max_queued_documents,
            max_batch=settings.max_documents,
            wait_s=settings.batch_wait_ms / 1000,
            on_batch=count,
        )

    async def close(self) -> None:
        """Finish the jobs in the queues, and close the index."""
        self.is_stopping = True
        for lane in self.lanes:
            await lane.close()
        # Closing waits for the store, and would stop the event loop.
        await asyncio.get_running_loop().run_in_executor(None, self.library.index.close)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request (ASGI)."""
        begun = time.perf_counter()
        call = Call(self, scope, receive)
        given = call.headers.get(b"x-request-id", b"")
        # A given id is written to the log and to headers: others than plain ones could forge a
        # line.
        request_id = given.decode() if _REQUEST_ID.fullmatch(given) else self._new_id()
        name = "unknown"
        error: BaseException | None = None
        try:
            operation = self._route(call)
            name = operation.name
            self._gate.check(call.method, call.headers, operation.role)
            with self._answering.block():
                reply = await operation.answer(self, call)
        except Disconnected:
            # Nobody reads this reply; it is counted and logged.
            reply = Reply(b"", "", 400)
        except Exception as raised:
            # Anything: a fault of one request must not stop the service.
            error = raised
            reply = self._refuse(raised, request_id)
        finally:
            # Before the reply is sent: a slow reader holds no memory that others wait for.
            call.release()
        await self._send_or_wait(call, reply, request_id, receive, send)
        seconds = time.perf_counter() - begun
        self.metrics.answered(name, reply.status, seconds)
        self._write_log(call, reply, request_id, seconds, error)

    async def _send_or_wait(
        self, call: Call, reply: Reply, request_id: str, receive: Receive, send: Send
    ) -> None:
        """Send a reply; if the connection is closed, wait until the server reports it."""
        try:
            with suppress(Disconnected):
                await self._send(call, reply, request_id, send)
        except RuntimeError as error:
            # uvloop closes a transport before uvicorn knows of it. Only the message tells this
            # error from others.
            if "closed" not in str(error):
                raise
            while (await receive())["type"] != "http.disconnect":
                pass

    def _new_id(self) -> str:
        return f"{self._boot}-{next(self._numbers):x}"

    def refuse(self, problem: Problem, client: str) -> tuple[bytes, str]:
        """Count and log a problem that a connection had before there was a request; return its body
        and request id.
        """
        request_id = self._new_id()
        reply = self._refuse(problem, request_id)
        self.metrics.answered("unknown", reply.status, 0.0)
        self._log.event(
            "request",
            level="warning",
            request_id=request_id,
            client=client,
            status=reply.status,
            bytes_out=len(reply.body),
        )
        return reply.body, request_id

    def _route(self, call: Call) -> Operation:
        """Return the operation of a request, and set the argument of the call from its path."""
        size = len(call.raw_path) + len(call.scope["query_string"])
        size += sum(len(name) + len(value) + 4 for name, value in call.scope["headers"])
        # Here, too: `Guarded` sees only heads that arrive in pieces.
        check_head(self.settings, size)
        methods, argument = _operations_at(call.raw_path)
        if not methods:
            raise Problem(
                404,
                "There is nothing at this path. See /openapi.json for the paths of this service.",
            )
        if call.method not in methods:
            allowed = ", ".join(sorted(methods))
            detail = f"The method {call.method} is not allowed here. Use {allowed}."
            raise Problem(405, detail, headers={"allow": allowed})
        try:
            call.argument = unquote_to_bytes(argument).decode()
        except UnicodeDecodeError as error:
            raise Problem(
                400, "The path is not UTF-8. Percent-encode the UTF-8 bytes of the id."
            ) from error
        return methods[call.method]

    def _late(self) -> Problem:
        limit = self.settings.answer_timeout_s
        return busy(
            f"The request was not answered within answer_timeout_s={limit:g}; its work may still "
            "complete. Repeat it: documents with the same ids and texts change nothing. Or raise "
            "--answer-timeout-s.",
            "answer_timeout_s",
            status=503,
        )

    def _slow(self) -> Problem:
        limit = self.settings.read_timeout_s
        return Problem(
            408,
            f"The request did not arrive within read_timeout_s={limit:g}. Send it faster, or raise "
            "--read-timeout-s.",
            setting="read_timeout_s",
        )

    def _refuse(self, error: Exception, request_id: str) -> Reply:
        """Return an error as problem details; without its text, if it is ours to fix."""
        if isinstance(error, Problem):
            problem = error
        # Errors of the library tell the caller about its own request; others may show internals.
        elif isinstance(error, NeardupError):
            problem = problem_of(error)
        else:
            problem = Problem(
                500, f"The service failed. Its log contains the reason, at request_id {request_id}."
            )
        details = ProblemDetails(
            problem.title, problem.status, problem.args[0], request_id, setting=problem.setting
        )
        return Reply(
            msgspec.json.encode(details),
            "application/problem+json",
            problem.status,
            problem.headers,
        )

    async def _send(self, call: Call, reply: Reply, request_id: str, send: Send) -> None:
        # A client that was too slow once is not waited for again.
        if reply.status != 408:
            await call.drain()
        headers = [
            (b"content-length", b"%d" % len(reply.body)),
            (b"x-request-id", request_id.encode()),
        ]
        if reply.media_type:
            headers.append((b"content-type", reply.media_type.encode()))
        if "cache-control" not in reply.headers:
            headers.append((b"cache-control", b"no-store"))
        # The rest of the body would be taken for the next request.
        if not call.is_read:
            headers.append((b"connection", b"close"))
        headers += [(name.encode(), value.encode()) for name, value in reply.headers.items()]
        if reply.status == 200 and call.is_read and write_response(send, headers, reply.body):
            return
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})

    def _write_log(
        self, call: Call, reply: Reply, request_id: str, seconds: float, error: BaseException | None
    ) -> None:
        level = "warning" if reply.status >= 400 else "info"
        # Only our own faults have a traceback: others would fill the log.
        is_ours = reply.status == 500 and error is not None
        self._log.event(
            "request",
            level="error" if is_ours else level,
            error=error if is_ours else None,
            request_id=request_id,
            client=(call.scope.get("client") or ("",))[0],
            method=call.scope["method"],
            # Any byte is a character of it, so that no path can break the log.
            path=call.raw_path[:200].decode("latin-1"),
            status=reply.status,
            ms=round(seconds * 1000, 3),
            bytes_in=call.num_bytes,
            bytes_out=len(reply.body),
            documents=call.num_documents,
        )


_ROUTES: dict[re.Pattern[bytes], dict[str, Operation]] = {}
# The id of a document is the rest of the path, slashes included; a name is one segment.
for _operation in OPERATIONS:
    _path = re.escape(_operation.path).replace(r"\{id\}", "(.*)").replace(r"\{name\}", "([^/]+)")
    _ROUTES.setdefault(re.compile(_path.encode(), re.DOTALL), {})[_operation.method] = _operation


def _operations_at(raw_path: bytes) -> tuple[dict[str, Operation], bytes]:
    """Return the operations of a path by their methods, and the argument in it, percent-encoded."""
    for pattern, methods in _ROUTES.items():
        if found := pattern.fullmatch(raw_path):
            return methods, found[1] if found.groups() else b""
    return {}, b""
