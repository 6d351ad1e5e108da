"""`neardup index add-if-new --stream`: an answer for each line of standard input, as soon as it is stored."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from queue import Queue
from threading import Thread
from typing import IO, Any

from neardup.cli.index_options import opened
from neardup.errors import SettingError

_READ_BYTES, _CHUNKS_AHEAD = 1 << 20, 64
_OPTIONS = ("text_column", "id_column", "payload_column", "import_name", "max_document_bytes", "on_error")
_UNUSED = ("output", "answers", "in_format", "threads")


def answer_stream(
    address: str, inputs: tuple[str, ...], *, stream: bool, print_kept: bool, only_new: bool, **values: Any
) -> None:
    """Answer the lines of standard input until it ends; documents that have arrived together are decided together."""
    _refuse_others(inputs, stream, values)
    from neardup.output.table_file import json_line

    with opened(address, "Every line that was answered is stored.") as index:
        output, counts = sys.stdout.buffer, Counter[str]()
        options = {name: values[name] for name in _OPTIONS}
        for answered in index.answer_lines(arriving_lines(sys.stdin.buffer), **options):
            for line, answer in answered:
                if not print_kept:
                    output.write(json_line(answer).encode())
                elif answer.get("kept") and not (only_new and answer["repeated"]):
                    output.write(line + b"\n")
                if "error" in answer and (print_kept or values["on_error"] == "stop"):
                    _tell(counts.total() + 1, answer["error"], values["on_error"])
                counts[_kind(answer)] += 1
            output.flush()
    if not values["quiet"]:
        kinds = ", ".join(f"{counts[kind]:,} {kind}" for kind in ("kept", "removed", "repeated", "rejected"))
        print(f"neardup: {counts.total():,} lines: {kinds}", file=sys.stderr)


def _kind(answer: dict[str, Any]) -> str:
    if "error" in answer:
        return "rejected"
    return "repeated" if answer["repeated"] else "kept" if answer["kept"] else "removed"


def arriving_lines(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines of a stream in groups: all that have arrived, one at least. Never waits for more.

    Of a line that is too long to be read, only as much is kept as shows that.
    """
    from neardup.api.index_lines import MAX_LINE_BYTES

    chunks: Queue[bytes] = Queue(_CHUNKS_AHEAD)
    Thread(target=_read, args=(stream, chunks), daemon=True, name="neardup-standard-input").start()
    pending, size = list[bytes](), 0
    while chunk := chunks.get():
        arrived = [chunk]
        while arrived[-1] and not chunks.empty():
            arrived.append(chunks.get())
        data = b"".join(arrived)
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join([*pending, lines[0]])
            pending = []
            yield lines
            size = 0
        pending.append(rest[: max(0, MAX_LINE_BYTES + 1 - size)])
        size += len(rest)
        if not arrived[-1]:
            break
    if any(pending):
        yield [b"".join(pending)]


def _read(stream: IO[bytes], chunks: Queue[bytes]) -> None:
    """Pass on what arrives, and an empty chunk at the end."""
    while True:
        try:
            chunk = os.read(stream.fileno(), _READ_BYTES)
        except OSError:
            chunk = b""
        chunks.put(chunk)
        if not chunk:
            return


def _tell(number: int, error: str, on_error: str) -> None:
    if on_error == "stop":
        raise SettingError(
            f"Line {number:,} cannot be read: {error}. Lines before it are stored. Use --on-error reject to continue."
        )
    print(f"neardup: rejected line {number:,}: {error}", file=sys.stderr, flush=True)


def _refuse_others(inputs: tuple[str, ...], stream: bool, values: dict[str, Any]) -> None:
    """Raise SettingError if an option has no effect beside --stream."""
    if not stream:
        raise SettingError("--print-kept requires --stream: got it without. Add --stream, or use -o FILE.")
    if inputs != ("-",):
        raise SettingError(f"--stream reads standard input: got {' '.join(inputs)}. Name - as the only input.")
    for name in _UNUSED:
        if values[name] is not None:
            flag = "--" + name.replace("_", "-")
            raise SettingError(f"{flag} does not go with --stream, which prints its answers: got it. Leave it out.")
