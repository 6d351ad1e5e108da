"""The log of the service on standard error: its own events, and the messages of libraries."""

from __future__ import annotations

import asyncio
import logging
import sys
import traceback
from datetime import datetime, timezone
from threading import Lock
from typing import Any

import msgspec


class Log:
    """Writes events, all of one turn of the event loop together; libraries may log in any thread.

    format : json, text or none.
    """

    def __init__(self, format: str) -> None:
        self._format = format
        self._encoder = msgspec.json.Encoder()
        self._lines: list[bytes] = []
        # Without it, a line that is appended while others are written is lost.
        self._lock = Lock()

    def event(
        self, event: str, *, level: str = "info", error: BaseException | None = None, **values: Any
    ) -> None:
        """Write an event with its values; of an error with its traceback."""
        if self._format == "none":
            return
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if error is not None:
            values["traceback"] = "".join(traceback.format_exception(error))
        if self._format == "json":
            line = self._encoder.encode({"time": now, "level": level, "event": event, **values})
        else:
            # For people: no quotes. Lines for programs are JSON.
            shown = " ".join(
                f"{name}={value}" for name, value in values.items() if value is not None
            )
            line = f"{now} {level} {event} {shown}".encode(errors="replace")
        with self._lock:
            self._lines.append(line)
            is_first = len(self._lines) == 1
        if is_first:
            # The rest of the turn of the event loop adds its lines: one system call writes all of
            # them.
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:  # before and after the event loop
                self.flush()

    def flush(self) -> None:
        """Write the lines that wait."""
        with self._lock:
            lines = self._lines
            self._lines = []
        if lines:
            sys.stderr.buffer.write(b"\n".join(lines) + b"\n")
            sys.stderr.buffer.flush()


class LibraryHandler(logging.Handler):
    """Writes the log messages of libraries, warnings and worse, as events."""

    def __init__(self, log: Log) -> None:
        # Below are the notes of uvicorn about its start and end.
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        error = record.exc_info[1] if record.exc_info else None
        try:
            message = record.getMessage()
        except Exception:
            # As in the handlers of `logging`: a bad call of a library must not fail its request.
            message = str(record.msg)
        self._log.event("library", level=record.levelname.lower(), error=error, message=message)
