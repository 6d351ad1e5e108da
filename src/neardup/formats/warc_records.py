"""Cut a WARC file into records (ISO 28500), even if it is damaged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from neardup.documents.pages import MAX_PAGE_BYTES
from neardup.formats.http_response import MAX_HEADER_BYTES, fields_of, header_end
from neardup.formats.warc_bytes import MAX_SKIPPED_BYTES, RECORD_MAGIC, Damage, WarcBytes

MAX_RECORD_BYTES = MAX_PAGE_BYTES + (1 << 20)
"""A longer record is not read: the longest page, its HTTP header, and the overhead of chunks."""

MAX_DAMAGES = 1000
"""Damages of a file, after which its rest is not read: each costs a search for the next record."""

_MAX_BLANK_BYTES = 1 << 20  # line ends skipped between two records
# 0.17 and 0.18 were drafts with the same syntax, which crawlers wrote for years.
_VERSION = re.compile(rb"WARC/(?:0\.1[78]|\d\.\d)[ \t]*\Z")
_LENGTH = re.compile(r"[0-9]{1,18}")  # below 2^63
_LINE_END = re.compile(rb"\r?\n")

Fields = dict[str, str]


class Record(NamedTuple):
    """A record of a WARC file, or a damaged place.

    Attributes
    ----------
    row : the number of the record in the file, from 0.
    byte : the offset in the file, of the record or of its gzip member.
    fields : the header, names in lower case.
    block : the content; None unless it was wanted.
    source : the bytes in the file, compressed if they are a gzip member of their own; None unless
        requested.
    problem : the reason why the record cannot be read; None if it can.
    is_last : whether the rest of the file cannot be read.
    is_too_long : whether the problem is the length of the record.
    """

    row: int
    byte: int
    fields: Fields
    block: bytes | None = None
    source: bytes | None = None
    problem: str | None = None
    is_last: bool = False
    is_too_long: bool = False


def read_records(
    data: WarcBytes, wanted: Callable[[Fields], bool], *, with_source: bool = False
) -> Iterator[Record]:
    """Yield the records of a file in order; for each damaged place, a record with the problem.

    Parameters
    ----------
    data : the file, or a stretch, from its beginning.
    wanted : whether to read the content of a record with this header; other records are skipped.
    with_source : whether to add the bytes of the wanted records.
    """
    row = 0
    num_damages = 0
    while True:
        try:
            # After a damage, continue with the next record that can be found.
            if num_damages and not data.resume():
                return
            # A damage after a record does not lose the record: it is raised after the yield.
            while (found := _next_record(data, row, wanted, with_source)) is not None:
                yield found.record
                row += 1
                if found.damage is not None:
                    raise found.damage
            return
        except Damage as error:
            damage = error
        num_damages += 1
        is_last = damage.is_final or num_damages > MAX_DAMAGES
        problem = _problem_of(damage, num_damages)
        yield Record(row=row, byte=damage.byte, fields={}, problem=problem, is_last=is_last)
        row += 1  # a damage has a row number of its own
        if is_last:
            return


def _problem_of(damage: Damage, num_damages: int) -> str:
    """Return the text of a damage, and its consequence for the rest of the file."""
    if num_damages > MAX_DAMAGES:
        return (
            f"{damage.reason}; the file has more than {MAX_DAMAGES} such places; the rest is not "
            "read"
        )
    if damage.is_final:
        return damage.reason
    return f"{damage.reason}; the bytes up to the next record are skipped"


class _Found(NamedTuple):
    """A record, and the damage right after it, if any."""

    record: Record
    damage: Damage | None


def _next_record(
    data: WarcBytes, row: int, wanted: Callable[[Fields], bool], with_source: bool
) -> _Found | None:
    """Return the next record, None at the end. Raises Damage if the record itself is damaged."""
    data.skip_blank(_MAX_BLANK_BYTES)
    if not data.data and not data.more():
        return None
    if data.ends_stretch():
        return None
    data.begin_record()
    byte = data.byte
    header = _read_header(data, byte)
    record = Record(row=row, byte=byte, fields=header.fields)
    if not wanted(header.fields):
        return _skip_block(data, record, header.length)
    if header.length > MAX_RECORD_BYTES:
        problem = f"the record has {header.length} bytes; at most {MAX_RECORD_BYTES} are read"
        record = record._replace(problem=problem, is_too_long=True)
        return _skip_block(data, record, header.length)

    block = data.take(header.length)
    _check_length(data, byte, len(block), header.length)
    damage = _skip_end(data)
    source = None
    if with_source:
        # Without a gzip member of its own, the record is put together again: two line ends follow
        # each block (ISO 28500, section 4).
        source = data.member() or header.data + block + b"\r\n\r\n"
    return _Found(record._replace(block=block, source=source), damage)


def _skip_block(data: WarcBytes, record: Record, length: int) -> _Found:
    """Skip the block of a record that is not read."""
    if data.max_skipped_bytes is not None and length > data.max_skipped_bytes:
        return _skip_to_next_member(data, record, length)
    _check_length(data, record.byte, data.skip(length), length)
    return _Found(record, _skip_end(data))


def _check_length(data: WarcBytes, byte: int, num_bytes: int, length: int) -> None:
    """Raise Damage if a block has fewer bytes than its header declares."""
    if num_bytes < length:
        reason = f"the file is cut short inside this record: it has {num_bytes} of {length} bytes"
        raise Damage(byte, reason, data.position, is_final=True)


class _Header(NamedTuple):
    """The bytes of a header, its fields, and the length of the block after it."""

    data: bytes
    fields: Fields
    length: int


def _read_header(data: WarcBytes, byte: int) -> _Header:
    """Return the next header, and skip it.

    It is checked before it is skipped: after a damage, the search for the next record begins with
    the bytes that are not consumed.
    """
    header = _peek_header(data, byte)
    fields = fields_of(_LINE_END.split(header)[1:])
    declared = fields.get("content-length", "")
    if not _LENGTH.fullmatch(declared):
        reason = f"the record has no valid Content-Length: {declared[:30]!r}"
        raise Damage(byte, reason, data.position)
    data.skip(len(header))
    return _Header(data=header, fields=fields, length=int(declared))


def _peek_header(data: WarcBytes, byte: int) -> bytes:
    """Return the next header, its empty line included, without consuming it."""
    while len(data.data) < len(RECORD_MAGIC) and data.more():
        pass
    if not data.data.startswith(RECORD_MAGIC):
        # The file ends inside the first letters of a record.
        if data.data and RECORD_MAGIC.startswith(data.data):
            raise _cut_short(data, byte)
        raise _no_record(data, byte, bytes(data.data[:20]))
    end = header_end(data.data)
    while end is None and len(data.data) < MAX_HEADER_BYTES and data.more():
        end = header_end(data.data)
    if end is None and len(data.data) < MAX_HEADER_BYTES:
        raise _cut_short(data, byte)
    if end is None or end.block_start > MAX_HEADER_BYTES:
        reason = f"the header of the record does not end within {MAX_HEADER_BYTES} bytes"
        raise Damage(byte, reason, data.position)
    header = bytes(data.data[: end.block_start])
    first_line = _LINE_END.split(header, maxsplit=1)[0]
    if not _VERSION.match(first_line):
        raise _no_record(data, byte, header[:20])
    return header


def _cut_short(data: WarcBytes, byte: int) -> Damage:
    num_bytes = len(data.data)
    reason = f"the file is cut short inside the header of this record: it has {num_bytes} bytes"
    return Damage(byte, reason, data.position, is_final=True)


def _no_record(data: WarcBytes, byte: int, found: bytes) -> Damage:
    return Damage(byte, f"no WARC record begins here, but {found!r}", data.position)


def _skip_end(data: WarcBytes) -> Damage | None:
    """Skip the blank lines after a record; return the damage after them. Raises Damage if it began
    inside the record.
    """
    end = data.position
    try:
        data.skip_blank(_MAX_BLANK_BYTES)
        if not data.data:
            data.more()  # the checksum of a gzip member is read with its last bytes
    except Damage as damage:
        if damage.start < end:
            raise
        return damage
    return None


def _skip_to_next_member(data: WarcBytes, record: Record, length: int) -> _Found:
    """Skip a record that is too long to be inflated, up to the next gzip member that begins with a
    record.
    """
    if data.resume():
        return _Found(record, damage=None)
    reason = (
        f"the record would inflate to {length} bytes, more than the {MAX_SKIPPED_BYTES} that can "
        "be skipped, and no record was found after it"
    )
    return _Found(record, Damage(record.byte, reason, data.position, is_final=True))
