"""The server of an index: it runs until a signal and finishes queued requests before it ends."""

from __future__ import annotations

import gc
import logging
import socket
import sys
from types import FrameType

import uvicorn

import neardup
from neardup.errors import OutputError
from neardup.service.app import Service
from neardup.service.connections import guarded
from neardup.service.library import Library
from neardup.service.log import LibraryHandler, Log
from neardup.service.security import HEADERS, Tokens, check_exposure
from neardup.settings.service import ServiceSettings

# The longest wait of a worker thread for the interpreter lock while the event loop is busy; a batch
# takes the lock again after each kernel. At Python's default of 5 ms, a batch of few documents took
# 20 ms.
_SWITCH_INTERVAL_S = 0.0002
_H11_BYTES = 1 << 20  # more than one read, so that this limit is never met: `guarded` has its own


def serve(address: str, settings: ServiceSettings, tokens: Tokens) -> None:
    """Serve an index until SIGTERM or SIGINT.

    Parameters
    ----------
    address : the address of the index: a folder, or the URL of a store.
    settings : the address of the service, and its limits.
    tokens : who may read and write; without tokens, the host must be a loopback address.

    Raises
    ------
    SettingError
        If other hosts reach the service and there are no tokens.
    StoreError
        If the index cannot be opened for writing.
    OutputError
        If the port is in use.
    """
    check_exposure(settings.host, tokens)
    log = Log(settings.log)
    logger = logging.getLogger("uvicorn.error")
    logger.addHandler(LibraryHandler(log))
    # The handlers of the root would print the messages a second time, in another form.
    logger.propagate = False
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    # The port before the index: opening a large index takes long, and the port may be in use.
    with _listen(settings) as listener:
        index = neardup.Index.open(address)
        server = _Server(Library(index), settings, tokens, log)
        server.run(sockets=[listener])


def _listen(settings: ServiceSettings) -> socket.socket:
    """Return a socket that is bound to the address of the service."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    # A service can start again at once after it was stopped, while the system still keeps the
    # addresses of its last connections.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise OutputError(
            f"{settings.host}:{settings.port} cannot be listened on: {error.strerror}. Choose "
            "another --port or --host."
        ) from error
    return listener


class _Server(uvicorn.Server):
    """A server of uvicorn that makes the application inside its event loop, and closes it after the
    last answer.
    """

    def __init__(
        self, library: Library, settings: ServiceSettings, tokens: Tokens, log: Log
    ) -> None:
        super().__init__(
            uvicorn.Config(
                # The service is made later, in the event loop.
                lambda scope, receive, send: self._service(scope, receive, send),
                http=guarded(
                    settings, lambda problem, client: self._service.refuse(problem, client)
                ),
                # Named: uvicorn would otherwise inspect the application, which is a lambda.
                interface="asgi3",
                ws="none",
                # `startup` and `shutdown` below take the place of lifespan events.
                lifespan="off",
                # The logging of uvicorn stays as `serve` has set it.
                log_config=None,
                access_log=False,
                server_header=False,
                # Clients could give themselves any address in the log.
                proxy_headers=False,
                headers=HEADERS,
                timeout_keep_alive=settings.idle_timeout_s,  # type: ignore[arg-type]
                timeout_graceful_shutdown=settings.stop_timeout_s,  # type: ignore[arg-type]
                h11_max_incomplete_event_size=_H11_BYTES,
            )
        )
        self._library = library
        self._settings = settings
        self._tokens = tokens
        self._log = log
        self._service: Service  # set by `startup`

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Make the application, and accept connections."""
        self._service = Service(self._library, self._settings, self._tokens, self._log)
        # Load the compiled code in the threads that answer, before a request can come.
        for lane in (self._service.analyses, self._service.reads):
            await lane.call(self._library.warm)
        gc.collect()
        # The compiler has a million objects: a collection that visits them stops all threads for
        # 0.3 s.
        gc.freeze()
        self._service.num_connections = lambda: len(self.server_state.connections)
        await super().startup(sockets)
        assert sockets is not None
        host, port = sockets[0].getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        self._log.event(
            "listening", address=f"http://{shown}:{port}", index=str(self._library.index.address)
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, answer the requests under way, close the index."""
        # Before uvicorn closes the socket, so that /readyz answers 503.
        self._service.is_stopping = True
        self._log.event(
            "stopping", queued={lane.name: lane.num_queued for lane in self._service.lanes}
        )
        try:
            await super().shutdown(sockets)
        # An answer that takes too long must not keep the index from being closed.
        finally:
            await self._service.close()
        self._log.event("stopped", requests=self._service.metrics.num_requests)
        self._log.flush()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop after the requests under way at the first signal, and at once at the second."""
        # The method of uvicorn records the signal to raise it again at the end: the process would
        # then not exit with status 0.
        self.force_exit = self.should_exit
        self.should_exit = True
