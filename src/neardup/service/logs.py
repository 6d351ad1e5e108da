"""The log: one line for each request and event on standard error, as JSON or text."""

from __future__ import annotations

import asyncio
import logging
import sys
import traceback
from datetime import datetime, timezone
from typing import Any

import msgspec


class Log:
    """Writes events; those of one turn of the event loop together. format : json, text or none."""

    def __init__(self, format: str) -> None:
        self._format = format
        self._encoder = msgspec.json.Encoder()
        self._lines: list[bytes] = []

    def event(self, event: str, *, level: str = "info", error: BaseException | None = None, **values: Any) -> None:
        """Write an event with its values; of an error with its traceback."""
        if self._format == "none":
            return
        time = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if error is not None:
            values["traceback"] = "".join(traceback.format_exception(error))
        if self._format == "json":
            line = self._encoder.encode({"time": time, "level": level, "event": event, **values})
        else:
            shown = " ".join(f"{name}={value}" for name, value in values.items() if value is not None)
            line = f"{time} {level} {event} {shown}".encode(errors="replace")
        self._lines.append(line)
        if len(self._lines) == 1:
            try:
                asyncio.get_running_loop().call_soon(self.flush)
            except RuntimeError:  # before and after the event loop
                self.flush()

    def flush(self) -> None:
        """Write the lines that wait."""
        lines, self._lines = self._lines, []
        if lines:
            sys.stderr.buffer.write(b"\n".join(lines) + b"\n")
            sys.stderr.buffer.flush()


class LibraryHandler(logging.Handler):
    """Writes what libraries log, warnings and worse, as events."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        error = record.exc_info[1] if record.exc_info else None
        self._log.event("library", level=record.levelname.lower(), error=error, message=record.getMessage())
