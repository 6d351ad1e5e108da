"""Mail: a message in a file (.eml) is a document, and so is each message of a mailbox (.mbox)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from neardup.arrays import arrow_of_strings, arrow_of_utf8, offsets_from_lengths
from neardup.documents.batch import (
    BLOCK_BYTES,
    Columns,
    DocumentBatch,
    RawLines,
    Reject,
    Rejected,
    lost_file,
)
from neardup.documents.lines import BYTE_ORDER_MARK, STREAM_ERRORS
from neardup.documents.sinks import sink_of_lines
from neardup.documents.sources import Source
from neardup.formats.message_text import BadMessage, text_of_message
from neardup.formats.registry import Handler

MAX_MESSAGE_BYTES = 64 << 20
"""A longer message is rejected. Providers of mail accept 25 to 50 MiB."""

_FROM = b"From "  # begins the first line of each message of a mailbox
_MESSAGE_END = re.compile(rb"\n\r?\n(?=From )")
_END_BYTES = 8  # at most, with the mark that follows
_BEFORE_FIELDS = BYTE_ORDER_MARK + b"\r\n"  # of single messages that an editor has saved
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)


class _Message(NamedTuple):
    """A message of a file.

    row, byte : its position. data : its bytes, in a mailbox with the line that begins it and the
    empty line at its end; of a message that is too long, perhaps only the last bytes. num_bytes :
    of the whole message.
    """

    row: int
    byte: int
    data: bytes
    num_bytes: int


def read(
    source: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the messages of a file. The id of a message, if wanted, is the path of its file; in a
    mailbox, the path, a colon and the row.
    """
    for messages in _messages_of(source, reject):
        texts = [_text_of(message, source, reject) for message in messages]
        pairs = zip(messages, texts, strict=True)
        readable = [message for message, text in pairs if text is not None]
        if not readable:
            continue
        data = [message.data for message in readable]
        offsets = offsets_from_lengths([len(each) for each in data])
        ids = [_id(source, message) for message in readable]
        yield DocumentBatch(
            text=arrow_of_utf8([text for text in texts if text is not None]),
            rows=np.array([message.row for message in readable], np.int64),
            ids=None if columns.id is None else arrow_of_strings(ids),
            payload=RawLines(b"".join(data), offsets) if with_payload else None,
        )


def _is_single(source: Source) -> bool:
    """Return whether a file is one message, not a mailbox."""
    return source.unit == "file"


def _id(source: Source, message: _Message) -> str:
    return source.name if _is_single(source) else f"{source.name}:{message.row}"


def _text_of(message: _Message, source: Source, reject: Reject) -> bytes | None:
    """Return the text of a message in UTF-8; reject it and return None if it cannot be read."""
    if message.num_bytes > MAX_MESSAGE_BYTES:
        reason = f"the message is longer than {MAX_MESSAGE_BYTES} bytes, the longest that is read"
        reject(_rejected(message, source, reason, too_long=True))
        return None
    data = message.data.lstrip(_BEFORE_FIELDS)
    if not _is_single(source):
        data = _QUOTED_FROM.sub(rb"\1", data)
    # Some programs also write the first line of a mailbox to the files of single messages.
    if data.startswith(_FROM):
        data = data[data.find(b"\n") + 1 :]
    try:
        return text_of_message(data).encode("utf-8", "replace")
    except BadMessage as error:
        reject(_rejected(message, source, f"the message cannot be read: {error}"))
        return None


def _rejected(
    message: _Message, source: Source, reason: str, *, too_long: bool = False
) -> Rejected:
    return Rejected(
        file=source.name,
        row=message.row,
        line=None,
        byte=None if _is_single(source) else message.byte,
        reason=reason,
        excluded=too_long,
        too_long=too_long,
    )


def _messages_of(source: Source, reject: Reject) -> Iterator[list[_Message]]:
    """Yield the messages of a file to its end, or until it cannot be read further."""
    try:
        if _is_single(source):
            data = source.read_bytes(MAX_MESSAGE_BYTES + 1)
            yield [_Message(row=0, byte=0, data=data, num_bytes=len(data))]
            return
        with source.open_stream() as stream:
            head = bytes(stream.read(len(BYTE_ORDER_MARK) + len(_FROM)))
            if head and not head.removeprefix(BYTE_ORDER_MARK).startswith(_FROM):
                reason = "the file is no mailbox: its first line does not begin with 'From '"
                reject(lost_file(source.name, reason))
                return
            yield from _messages_in(stream, head)
    except STREAM_ERRORS as error:
        row = 0 if _is_single(source) else None
        reject(lost_file(source.name, f"the rest of the file cannot be read: {error}", row))


def _messages_in(stream: Any, head: bytes) -> Iterator[list[_Message]]:
    """Yield the messages of a mailbox, some at a time. head : the bytes that were read before.

    A message ends with an empty line before a line that begins with "From ", or with the file; in
    a message, such a line is quoted by a `>` (RFC 4155, appendix A).
    """
    waiting = head  # from the begin of a message
    row = 0
    byte = 0
    num_dropped = 0  # bytes of a message that is too long
    searched = 0
    while block := stream.read(BLOCK_BYTES):
        waiting += block
        messages = []
        begin = 0
        for end in _MESSAGE_END.finditer(waiting, searched):
            data = waiting[begin : end.end()]
            num_bytes = num_dropped + len(data)
            messages.append(_Message(row=row, byte=byte, data=data, num_bytes=num_bytes))
            row += 1
            byte += num_bytes
            begin = end.end()
            num_dropped = 0
        yield messages
        waiting = waiting[begin:]
        if num_dropped + len(waiting) > MAX_MESSAGE_BYTES:
            num_dropped += max(0, len(waiting) - _END_BYTES)
            waiting = waiting[-_END_BYTES:]
        # An end may be split between two blocks.
        searched = max(0, len(waiting) - _END_BYTES)
    if waiting:
        num_bytes = num_dropped + len(waiting)
        yield [_Message(row=row, byte=byte, data=waiting, num_bytes=num_bytes)]


HANDLER = Handler(read, sink_of_lines)
