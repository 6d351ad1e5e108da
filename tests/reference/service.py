"""A service in a process of its own, on a free port."""

from __future__ import annotations

import http.client
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

import neardup

SOURCE = Path(neardup.__file__).parent.parent
METHOD = neardup.SimHash(max_distance=12)  # of the index that the tests share


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


class RunningService:
    """`neardup serve` on a free port; its log is read as it comes."""

    def __init__(self, index: str | Path, *options: str) -> None:
        command = [sys.executable, "-m", "neardup", "serve", str(index), "--port", "0", *options]
        paths = [str(SOURCE), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        self.log: list[dict[str, Any]] = []
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.url = self.wait("listening")["address"]
        except BaseException:
            self.__exit__()
            raise
        self.host, _, port = self.url.removeprefix("http://").rpartition(":")
        self.port = int(port)

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                event = (
                    json.loads(line) if line.startswith("{") else {"event": "text", "line": line}
                )
                self.log.append(event)
                self._events.put(event)
        self._events.put(None)

    def wait(self, event: str, **values: Any) -> dict[str, Any]:
        """Return the next line of the log with this event and these values."""
        seen = []
        while True:
            found = self._events.get(timeout=60)
            seen.append(found)
            assert found is not None, f"the service has ended: {seen}"
            if found["event"] == event and values.items() <= found.items():
                return found

    def request(
        self,
        method: str,
        path: str,
        message: Any = None,
        *,
        body: bytes | None = None,
        **headers: str,
    ) -> Response:
        """Send one request on a connection of its own. headers : with `_` for `-`; an empty one is
        left out.
        """
        if message is not None:
            body = json.dumps(message).encode()
        sent = {"Content-Type": "application/json"} if body is not None else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            connection.request(
                method, path, body, {name: value for name, value in sent.items() if value}
            )
            response = connection.getresponse()
            names = {name.lower(): value for name, value in response.getheaders()}
            return Response(response.status, names, response.read())
        finally:
            connection.close()

    def stop(self) -> int:
        """Send SIGTERM; return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> int:
        """Return the exit code, when the process has ended."""
        code = self.process.wait(timeout=60)
        self._reader.join(timeout=60)
        return code

    def __enter__(self) -> RunningService:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.ended()
