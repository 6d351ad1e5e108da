"""Processes that work for a thread: byte strings go in and come out through pipes.

A process has the interpreter's lock to itself, and its limits and its crashes are its own. Only the
standard library is imported here, so that it starts in 30 milliseconds:
docs/decisions/0033-processes-for-pages.md.
"""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

# Linux allows no more. A transfer then takes the interpreter's lock once, not sixteen times.
_PIPE_BYTES = 1 << 20
_PREFIX = "import sys; sys.path[:] = sys.argv[1:]; "


class ChildProcess:
    """A process that answers requests. It ends with this object, or with its standard input.

    code : the statements that it runs. They read requests by `receive`, and answer by `send`.
    """

    def __init__(self, code: str) -> None:
        folders = [folder for folder in sys.path if folder]  # not the working directory
        # A session of its own keeps Ctrl-C from the process.
        self._process = subprocess.Popen(
            # -I ignores the environment and the working directory, so the folders are arguments.
            [sys.executable, "-I", "-c", _PREFIX + code, *folders],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input = self._process.stdin
        self._output = self._process.stdout
        # Not on other systems than Linux, nor beyond the limit for the pipes of a user.
        with suppress(ImportError, OSError):
            from fcntl import F_SETPIPE_SZ, fcntl

            for pipe in (self._input, self._output):
                fcntl(pipe, F_SETPIPE_SZ, _PIPE_BYTES)

    def ask(
        self, parts: Sequence[bytes], *, num_answers: int, timeout_s: float | None = None
    ) -> list[bytes]:
        """Return the answer to a request. Raises OSError or EOFError if the process has ended.

        timeout_s : the time after which the process is killed.
        """
        watch = threading.Timer(timeout_s or 0, self._process.kill)
        if timeout_s is not None:
            watch.start()
        try:
            # The process reads a whole request before it answers, so the pipes cannot block each
            # other.
            send(self._input, parts)
            return receive(self._output, num_answers)
        finally:
            watch.cancel()

    def __del__(self) -> None:
        # The attribute is missing if the process did not start.
        # In a forked process, `kill` sends nothing: the process is no child of the fork.
        with suppress(AttributeError, OSError), self._process:
            self._process.kill()


def send(stream: IO[bytes], parts: Sequence[bytes]) -> None:
    """Write byte strings after their lengths."""
    stream.write(struct.pack(f"{len(parts)}q", *map(len, parts)))
    for part in parts:
        stream.write(part)
    stream.flush()


def receive(stream: IO[bytes], count: int) -> list[bytes]:
    """Read the byte strings that `send` wrote. Raises EOFError if the stream ends."""
    lengths = struct.unpack(f"{count}q", _read(stream, 8 * count))
    return [_read(stream, length) for length in lengths]


def _read(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
