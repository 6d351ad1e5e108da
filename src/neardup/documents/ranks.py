"""Ranks for `keep="max:COLUMN"`: numbers in the order of the exact values.

A rank is a row of two float64 with the value as their exact sum: the nearest double, and the rest.
106 bits are exact for every integer of 64 bits and for times in nanoseconds, and distinguish
decimals of 31 digits; rows compare by the first number, then by the second. So a rank of an
integer, a time or a double depends on its value alone, not on the type of its column: integers of
one file and floating point of another compare exactly. A decimal fraction in a text is the nearest
double. A missing value is nan, which comes last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Floats, Integers

Rank = tuple[float, float]
"""The nearest double of a value, and the rest."""

MAX_DIGITS = 31
TOO_PRECISE = f"the rank has more than {MAX_DIGITS} digits"
EXACT_BELOW = 2.0**53  # float64 represents all integers below it
_MISSING: Rank = (float("nan"), 0.0)
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}  # in a unit of Arrow timestamps
_WHOLE = re.compile(rf"[+-]?[0-9]{{1,{MAX_DIGITS}}}")
_DATE = r"([1-9]\d{3}|0[1-9]\d\d|00[1-9]\d|000[1-9])-(\d\d)-(\d\d)"
_CLOCK = r"(\d\d)(?::(\d\d)(?::(\d\d)(?:\.(\d{1,9})\d*)?)?)?"
_ZONE = r"(Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)"
_TIME = re.compile(rf"{_DATE}(?:[T ]{_CLOCK}{_ZONE}?)?", re.ASCII)
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_FORMS = rf"^(?:{_NUMBER}|{_TIME.pattern})$"
"""The strings that Arrow and this module read as the same rank; others are read one by one."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_DECIMALS = Context(prec=100)  # more digits than decimal256 has, 76


def ranks_of_floats(values: Floats) -> Floats:
    """Return the ranks of float64 numbers: float64 (n, 2)."""
    return np.stack([values, np.zeros_like(values)], axis=1)


def ranks_of_integers(array: pa.Array, scale: int = 1) -> Floats:
    """Return the ranks of integers times a scale, a power of ten up to 10^9: float64 (n, 2)."""
    # A cast of uint64 to int64 would refuse numbers from 2**63.
    if not pa.types.is_uint64(array.type):
        array = array.cast("int64")
    integers = array.fill_null(0).to_numpy(zero_copy_only=False)
    is_missing = array.is_null().to_numpy(zero_copy_only=False)
    ranks = _multiply(integers, scale)
    ranks[is_missing] = _MISSING
    return ranks


def _multiply(integers: Integers, scale: int) -> Floats:
    """Return integers times a scale as the nearest double and the rest.

    A half of 32 bits times 10^9, which is 2^9 times a number of 21 bits, has at most 53 bits, so it
    is exact. The rest of a sum with the larger summand first is exact, too (Dekker 1971).
    """
    # The sign is in the high part; the low one is 0 to 2**32 - 1.
    high = (integers >> 32).astype(np.float64) * (2.0**32 * scale)
    low = (integers & 0xFFFFFFFF).astype(np.float64) * scale
    nearest = high + low
    return np.stack([nearest, low - (nearest - high)], axis=1)


def ranks_of_times(array: pa.Array) -> Floats:
    """Return the ranks of dates or timestamps, in nanoseconds since 1970, UTC: float64 (n, 2)."""
    kind = array.type
    if pa.types.is_date32(kind):
        array = array.cast(pa.timestamp("s"))
    elif pa.types.is_date64(kind):
        array = array.cast(pa.timestamp("ms"))
    return ranks_of_integers(array.cast("int64"), _NANOSECONDS[array.type.unit])


def ranks_of_decimals(array: pa.Array) -> tuple[Floats, dict[int, str]]:
    """Return the ranks of decimals, and the rows that have too many digits."""
    values = array.to_pylist()
    found: dict[Decimal | None, Rank | str | None] = {}
    # Each distinct value once: decimals are slow.
    for value in set(values):
        found[value] = None if value is None else rank_of_decimal(value) or TOO_PRECISE
    return _collect(found[value] for value in values)


def ranks_of_texts(texts: pa.LargeStringArray) -> tuple[Floats, dict[int, str]]:
    """Return the ranks of strings, and the rows that are no ranks; an empty string has no value."""
    stripped = pc.utf8_trim_whitespace(texts)
    stripped = pc.if_else(pc.equal(stripped, ""), pa.scalar(None, stripped.type), stripped)
    has_other_form = pc.all(pc.match_substring_regex(stripped, _FORMS)).as_py() is False
    if not has_other_form:
        # Arrow converts a column of one form; mixed columns are read row by row.
        for read in (_ranks_of_numbers, _ranks_of_local_times, _ranks_of_zoned_times):
            with suppress(pa.ArrowInvalid):
                return read(stripped), {}
    return ranks_of_each(texts.to_pylist())


def _ranks_of_numbers(texts: pa.LargeStringArray) -> Floats:
    """Return the ranks of strings that all are numbers; raise ArrowInvalid if one is not."""
    values = texts.cast("float64").fill_null(_MISSING[0]).to_numpy(zero_copy_only=False)
    ranks = ranks_of_floats(values)
    # From EXACT_BELOW on, a whole number may need the second double.
    for row in np.flatnonzero(np.abs(values) >= EXACT_BELOW).tolist():
        ranks[row] = rank_of(texts[row].as_py())
    return ranks


def _ranks_of_local_times(texts: pa.LargeStringArray) -> Floats:
    return ranks_of_times(texts.cast(pa.timestamp("us")))


def _ranks_of_zoned_times(texts: pa.LargeStringArray) -> Floats:
    return ranks_of_times(texts.cast(pa.timestamp("us", "UTC")))


def ranks_of_each(texts: Iterable[str | None]) -> tuple[Floats, dict[int, str]]:
    """Return the same as `ranks_of_texts`, row by row."""
    return _collect(
        rank_of(text) or no_rank(text) if text and text.strip() else None for text in texts
    )


def no_rank(text: str) -> str:
    """Return the reason why a text has no rank."""
    return (
        f"the rank {text.strip()!r:.60} is neither a number nor a date such as 2026-01-31 or "
        "2026-01-31T12:00:00Z"
    )


def _collect(found: Iterable[Rank | str | None]) -> tuple[Floats, dict[int, str]]:
    """Return ranks as an array, and the reasons of rows without one.

    found : for each row its rank, the reason why it has none, or None for a missing value.
    """
    ranks: list[Rank] = []
    bad: dict[int, str] = {}
    for row, rank in enumerate(found):
        if isinstance(rank, str):
            bad[row] = rank
            rank = None
        ranks.append(rank or _MISSING)
    return np.array(ranks, np.float64).reshape(-1, 2), bad


def rank_of(text: str) -> Rank | None:
    """Return the rank of a number, or of a time as nanoseconds since 1970; None if the text is
    neither.

    A whole number of up to MAX_DIGITS digits is exact; any other number is the nearest float64.
    """
    text = text.strip()
    # Before `float`, which would round a whole number above 2**53.
    if _WHOLE.fullmatch(text):
        return _rank_of_integer(int(text))
    try:
        return float(text), 0.0
    except ValueError:
        return _rank_of_time(text)


def _rank_of_integer(value: int) -> Rank:
    """Return the rank of an integer of up to MAX_DIGITS digits."""
    nearest = float(value)
    # Exact: of 31 digits, 103 bits, the rest has no more than 50.
    return nearest, float(value - int(nearest))


def _rank_of_time(text: str) -> Rank | None:
    """Return the rank of a time as nanoseconds since 1970, UTC; None if the text is no time."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    # The groups of _TIME: year, month, day, hour, minute, second, fraction, zone.
    fraction = match[7] or ""
    zone = (match[8] or "Z").replace(":", "")
    nanoseconds = int(fraction.ljust(9, "0"))
    # Nanoseconds and the zone are added in integers: datetime has microseconds only.
    try:
        year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
        moment = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    except ValueError:
        return None
    seconds = (moment - _EPOCH) // timedelta(seconds=1)
    if zone != "Z":
        offset = 3600 * int(zone[1:3]) + 60 * int(zone[3:5] or 0)
        seconds += offset if zone[0] == "-" else -offset
    return _rank_of_integer(10**9 * seconds + nanoseconds)


def rank_of_decimal(value: Decimal) -> Rank | None:
    """Return the rank of a decimal; None if it has more than MAX_DIGITS digits."""
    # Python's default precision, 28 digits, would round.
    digits = value.normalize(_DECIMALS).as_tuple().digits
    if len(digits) > MAX_DIGITS:
        return None
    nearest = float(value)
    rest = _DECIMALS.subtract(value, Decimal(nearest))
    return nearest, float(rest)
