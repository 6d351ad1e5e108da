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
"""After this many damaged places the rest of a file is not read: each costs a search for the next
record.
"""

_MAX_BLANK_BYTES = 1 << 20
_VERSION = re.compile(rb"WARC/\d\.\d[ \t]*\Z")
_LENGTH = re.compile(r"[0-9]{1,18}")
_LINE_END = re.compile(rb"\r?\n")
_CUT = "the file is cut short inside the header of this record: it has {} bytes"

Fields = dict[str, str]


class Record(NamedTuple):
    """A record of a WARC file, or a damaged place.

    row : its number in the file, from 0; byte : its position in the file, or that of its gzip
    member. fields : its header, names in lower case; block : its content, None unless it was
    wanted. source : its bytes in the file, decompressed unless it has a gzip member to itself; None
    unless requested. problem : why it cannot be read, else None. is_last : whether the rest of the
    file cannot be read. is_too_long : whether the problem is its length.
    """

    row: int
    byte: int
    fields: Fields
    block: bytes | None
    source: bytes | None
    problem: str | None
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
    row = num_damages = 0
    while True:
        try:
            if num_damages and not data.resume():
                return
            while (found := _next_record(data, row, wanted, with_source)) is not None:
                record, damage = found
                yield record
                row += 1
                if damage is not None:
                    raise damage
            return
        except Damage as found_damage:
            damage = found_damage
        num_damages += 1
        is_last = damage.is_final or num_damages > MAX_DAMAGES
        yield Record(row, damage.byte, {}, None, None, _what_is_lost(damage, num_damages), is_last)
        row += 1
        if is_last:
            return


def _what_is_lost(damage: Damage, num_damages: int) -> str:
    if num_damages > MAX_DAMAGES:
        return (
            f"{damage.reason}; the file has more than {MAX_DAMAGES} such places; the rest is not "
            "read"
        )
    return (
        damage.reason
        if damage.is_final
        else f"{damage.reason}; the bytes up to the next record are skipped"
    )


def _next_record(
    data: WarcBytes, row: int, wanted: Callable[[Fields], bool], with_source: bool
) -> tuple[Record, Damage | None] | None:
    """Return the next record, and the damage behind it; None at the end. Raises Damage if the
    record is damaged.
    """
    data.skip_blank(_MAX_BLANK_BYTES)
    if not data.data and not data.more():
        return None
    if data.ends_stretch():
        return None
    data.begin_record()
    byte = data.byte
    header = _header(data, byte)
    fields = fields_of(_LINE_END.split(header)[1:])
    declared = fields.get("content-length", "")
    if not _LENGTH.fullmatch(declared):
        raise Damage(
            byte, f"the record has no valid Content-Length: {declared[:30]!r}", data.position
        )
    # Only now: a search for the next record begins at the bytes that are not consumed.
    data.skip(len(header))
    is_wanted, length = wanted(fields), int(declared)
    problem = block = source = None
    if is_wanted and length <= MAX_RECORD_BYTES:
        block = data.take(length)
        passed = len(block)
    else:
        if is_wanted:
            problem = f"the record has {length} bytes; at most {MAX_RECORD_BYTES} are read"
        if data.max_skipped_bytes is not None and length > data.max_skipped_bytes:
            record = Record(row, byte, fields, None, None, problem, is_too_long=problem is not None)
            return _abandoned(data, record, length)
        passed = data.skip(length)
    if passed < length:
        reason = f"the file is cut short inside this record: it has {passed} of {length} bytes"
        raise Damage(byte, reason, data.position, is_final=True)
    damage = _skip_end(data)
    if with_source and block is not None:
        source = data.member() or header + block + b"\r\n\r\n"
    record = Record(row, byte, fields, block, source, problem, is_too_long=problem is not None)
    return record, damage


def _header(data: WarcBytes, byte: int) -> bytes:
    """Return the next header, its empty line included, without consuming it."""
    while len(data.data) < len(RECORD_MAGIC) and data.more():
        pass
    if 0 < len(data.data) < len(RECORD_MAGIC) and RECORD_MAGIC.startswith(data.data):
        raise Damage(byte, _CUT.format(len(data.data)), data.position, is_final=True)
    if not data.data.startswith(RECORD_MAGIC):
        raise Damage(
            byte, f"no WARC record begins here, but {bytes(data.data[:20])!r}", data.position
        )
    while (
        (end := header_end(data.data)) is None and len(data.data) < MAX_HEADER_BYTES and data.more()
    ):
        pass
    if end is None and len(data.data) < MAX_HEADER_BYTES:
        raise Damage(byte, _CUT.format(len(data.data)), data.position, is_final=True)
    if end is None or end[1] > MAX_HEADER_BYTES:
        reason = f"the header of the record does not end within {MAX_HEADER_BYTES} bytes"
        raise Damage(byte, reason, data.position)
    header = bytes(data.data[: end[1]])
    if not _VERSION.match(_LINE_END.split(header, maxsplit=1)[0]):
        raise Damage(byte, f"no WARC record begins here, but {header[:20]!r}", data.position)
    return header


def _skip_end(data: WarcBytes) -> Damage | None:
    """Skip the end of a record; return the damage behind it. Raises Damage if the record is damaged
    too.
    """
    end = data.position
    try:
        data.skip_blank(_MAX_BLANK_BYTES)
        if not data.data:
            data.more()
    except Damage as damage:
        if damage.start < end:
            raise
        return damage
    return None


def _abandoned(data: WarcBytes, record: Record, length: int) -> tuple[Record, Damage | None]:
    """Skip a record that is too long to be inflated, up to the next gzip member that begins with a
    record.
    """
    if data.resume():
        return record, None
    reason = (
        f"the record would inflate to {length} bytes, more than the {MAX_SKIPPED_BYTES} that "
        "can be skipped, and no "
        "record was found after it"
    )
    return record, Damage(record.byte, reason, data.position, is_final=True)
