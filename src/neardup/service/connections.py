"""Connections: uvicorn's protocols with limits on their number, on the size of headers, and on slow
clients.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from neardup.errors import MissingExtraError
from neardup.service.problems import Problem, busy, check_head
from neardup.service.security import HEADERS
from neardup.settings.service import ServiceSettings

Refuse = Callable[[Problem, str], tuple[bytes, str]]

if TYPE_CHECKING:
    # The class is mixed into a protocol that is known only when the service starts, so no base has
    # its attributes for a type checker.
    _Base = Any
else:
    _Base = object


class Guarded(_Base):  # type: ignore[misc]
    """Mixed into a protocol of uvicorn, which limits none of this.

    settings, refuse : set by `guarded`.

    Notes
    -----
    The head of a request is its request line with its headers. uvicorn makes a new `cycle` when a
    head is complete, so bytes that arrive without a new cycle, while none is under way, belong to a
    head.
    """

    settings: ServiceSettings
    refuse: Refuse

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Refuse a connection too many; begin to wait for a request."""
        super().connection_made(transport)
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        limit = self.settings.max_connections
        # uvicorn has added this connection already.
        if len(self.connections) > limit:
            detail = f"More than max_connections={limit:,} are open. Connect later."
            self._refuse(busy(detail, "max_connections", status=503))
        else:
            self._start_head_timer()

    def data_received(self, data: bytes) -> None:
        """Pass bytes on; count them as long as they complete no head."""
        before = self.cycle
        # A request under way whose body is still expected: these bytes are not of a head.
        is_head = before is None or before.response_complete or not before.more_body
        super().data_received(data)
        # The bytes were refused, see `send_400_response`.
        if self.transport.is_closing():
            return
        if self.cycle is not before:
            self._stop_head_timer()
            self._head_bytes = 0
        # No head is complete: another part of it has arrived. Its time runs from the first part.
        elif is_head:
            self._head_bytes += len(data)
            self._start_head_timer()
            try:
                check_head(self.settings, self._head_bytes)
            except Problem as problem:
                self._refuse(problem)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._stop_head_timer()
        if self._write_timer is not None:
            self._write_timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to wait for a client that does not read."""
        super().pause_writing()
        # A client that does not read would hold the answer in memory for ever.
        self._write_timer = self.loop.call_later(self.settings.read_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the client reads."""
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, although its client may not have read all."""
        if self.transport.get_write_buffer_size():
            # `close` would first wait until the buffer is sent.
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are no HTTP."""
        self._refuse(
            Problem(400, "The request is not valid HTTP/1.1. Send it with an HTTP client.")
        )

    def _start_head_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.settings.read_timeout_s, self._too_slow)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _too_slow(self) -> None:
        limit = self.settings.read_timeout_s
        if self._head_bytes:
            detail = (
                f"The headers did not arrive within read_timeout_s={limit:g}. Send them faster."
            )
            self._refuse(Problem(408, detail, setting="read_timeout_s"))
        else:
            # Nothing was sent: an idle connection, such as the spare one of a browser, needs no
            # answer.
            self.transport.close()

    def _refuse(self, problem: Problem) -> None:
        """Answer a problem and close; without an answer if another one is under way."""
        # The refusal would be mixed with the answer under way.
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()
            return
        body, request_id = self.refuse(
            problem, (self.transport.get_extra_info("peername") or ("",))[0]
        )
        headers = [
            *HEADERS,
            *problem.headers.items(),
            ("content-type", "application/problem+json"),
            ("content-length", str(len(body))),
            ("x-request-id", request_id),
            ("connection", "close"),
        ]
        head = f"HTTP/1.1 {problem.status} {problem.title}\r\n" + "".join(
            f"{k}: {v}\r\n" for k, v in headers
        )
        # Without uvicorn, which answers only requests whose head it has read.
        self.transport.write(head.encode() + b"\r\n" + body)
        self.transport.close()


_OK = b"HTTP/1.1 200 OK\r\n"


@lru_cache(maxsize=2)
def _lines_of(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


def write_response(send: Any, headers: list[tuple[bytes, bytes]], body: bytes) -> bool:
    """Write a whole response with status 200 at once; return False if `send` must send it.

    uvicorn's `send` matches each header with two regular expressions, and writes the head and the
    body one after the other: 25 microseconds.

    Parameters
    ----------
    send : of the request.
    headers : valid ones, with the length of the body and without `connection`.
    """
    cycle: Any = getattr(send, "__self__", None)
    if not _is_writable(cast(Any, type(cycle))):
        return False
    is_plain = cycle.keep_alive and cycle.scope["method"] != "HEAD" and not cycle.response_started
    if not is_plain or cycle.disconnected or cycle.flow.write_paused:
        return False
    lines = b"".join([b"%b: %b\r\n" % header for header in headers])
    default_lines = _lines_of(tuple(cycle.default_headers))
    cycle.response_started = True
    cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    cycle.transport.write(b"".join([_OK, default_lines, lines, b"\r\n", body]))
    cycle.message_event.set()
    cycle.on_response()
    return True


@cache
def _is_writable(kind: Any) -> bool:
    """Return whether a request is one of uvicorn's for httptools, with all that is used here."""
    if kind.__module__ != "uvicorn.protocols.http.httptools_impl":
        return False
    return all(name in kind.__init__.__code__.co_names for name in _OF_RESPONSE)


_OF_RESPONSE = (
    "default_headers",
    "disconnected",
    "flow",
    "keep_alive",
    "message_event",
    "on_response",
    "response_complete",
    "response_started",
    "scope",
    "transport",
    "waiting_for_100_continue",
)


# The parts of uvicorn's protocol, and of its request, that `Guarded` uses; none of it is
# public.
_METHODS = [name for name in vars(Guarded) if not name.startswith("_")]
_ATTRIBUTES = ("connections", "cycle", "loop", "transport")
_OF_CYCLE = ("more_body", "response_complete")


def guarded(settings: ServiceSettings, refuse: Refuse) -> type[asyncio.Protocol]:
    """Return a protocol of uvicorn with limits: httptools if it is installed, otherwise h11.

    refuse : returns the body and the request id of a problem of a client.

    Raises
    ------
    MissingExtraError
        If this uvicorn has no protocol that can be limited.
    """
    lacking = ""
    for module, name in (("httptools_impl", "HttpToolsProtocol"), ("h11_impl", "H11Protocol")):
        try:
            protocol = getattr(import_module(f"uvicorn.protocols.http.{module}"), name)
        except ImportError:
            continue
        lacking = _lacking(protocol)
        if not lacking:
            # Before the protocol in the order of classes, so that `super()` in `Guarded` is the
            # protocol.
            return type(
                "GuardedProtocol",
                (Guarded, protocol),
                # A plain function in a class would get the connection as its first argument.
                {"settings": settings, "refuse": staticmethod(refuse)},
            )
        warnings.warn(
            f"uvicorn's {name} lacks {lacking}, so it is not used.", RuntimeWarning, stacklevel=2
        )
    raise MissingExtraError(
        f"The service cannot limit the connections of uvicorn {uvicorn.__version__}, which lacks "
        f"{lacking}. Install an earlier uvicorn, or a later neardup."
    )


def _lacking(protocol: Any) -> str:
    """Return the names that a protocol lacks, by its classes and the attributes that they set."""
    cycle = sys.modules[protocol.__module__].RequestResponseCycle
    missing = [name for name in _METHODS if not hasattr(protocol, name)]
    for kind, names in ((protocol, _ATTRIBUTES), (cycle, _OF_CYCLE)):
        # The attributes are set in __init__, so that the class does not have them; its code names
        # them.
        missing += [name for name in names if name not in kind.__init__.__code__.co_names]
    return ", ".join(missing)
