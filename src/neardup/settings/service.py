"""The settings of the HTTP service: its address, and its limits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from neardup.settings.constraints import Validated, parameter

_bytes = partial(parameter, high=64 << 30)
_count = partial(parameter, low=1)
_seconds = partial(parameter, exclusive_min=0, high=86_400)


@dataclass(frozen=True, kw_only=True)
class ServiceSettings(Validated):
    """The address of the service, and its limits of requests, connections and waiting; each is
    named in its error.
    """

    host: str = parameter(
        "127.0.0.1",
        "The address to listen on; if other hosts can reach it, it requires a token file.",
        sentinels=("ADDRESS",),
    )
    port: int = parameter(8765, "The TCP port; 0 chooses a free one.", low=0, high=65_535)
    log: str = parameter(
        "json", "The format of the log on standard error.", choices=("json", "text", "none")
    )
    max_body_bytes: int = _bytes(16 << 20, "The largest request body.", low=1024)
    max_text_bytes: int = _bytes(4 << 20, "The largest text or page, in UTF-8.", low=1)
    max_payload_bytes: int = _bytes(64 << 10, "The largest payload of a document, as JSON.", low=2)
    max_id_bytes: int = _bytes(2048, "The longest id or source of a document, in UTF-8.", low=1)
    max_header_bytes: int = _bytes(16 << 10, "The longest request line and headers.", low=512)
    max_documents: int = _count(1000, "The most documents or texts in a request.", high=100_000)
    max_hits: int = parameter(
        10_000, "The most hits in an answer, for all texts.", low=10, high=1_000_000
    )
    max_connections: int = _count(512, "The most open connections.", high=65_536)
    max_queued_documents: int = _count(
        10_000,
        "The most documents that wait for the index; then the answer is 429.",
        high=10_000_000,
    )
    max_pending_bytes: int = _bytes(
        256 << 20,
        "The most bytes of request bodies in memory; then the answer is 429.",
        low=1024,
    )
    batch_wait_ms: float = parameter(
        1.0,
        "The time that a request waits to share a batch.",
        low=0,
        high=1000,
    )
    read_timeout_s: float = _seconds(30.0, "The time for a request to arrive.")
    answer_timeout_s: float = _seconds(30.0, "The time to answer a request.")
    idle_timeout_s: float = _seconds(60.0, "The time after which an idle connection is closed.")
    stop_timeout_s: float = _seconds(
        30.0,
        "The time for open requests when the service stops.",
    )
