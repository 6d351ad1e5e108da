"""Limits on the size of an input: its expansion, its columns."""

from __future__ import annotations

MAX_EXPANSION = 200
"""Largest factor by which a compressed file may expand beyond FREE_BYTES; text expands by 3 to 20.
"""

FREE_BYTES = 64 << 20
"""Decompressed bytes that are never too many."""

FREE_BYTES_OF_TABLE = 4 << 30
"""FREE_BYTES for files that are compressed inside, such as Parquet: one text may be in all rows."""


def check_expansion(
    num_bytes: int,
    compressed_bytes: int,
    free_bytes: int = FREE_BYTES,
    *,
    advice: str = "Decompress it yourself if you trust it",
) -> None:
    """Raise OSError if the decompressed bytes are too many for the compressed bytes."""
    if num_bytes > max(free_bytes, MAX_EXPANSION * compressed_bytes):
        raise OSError(f"it expands to more than {MAX_EXPANSION} times its size. {advice}")


MAX_COLUMNS = 10_000
"""Largest number of columns of a table: each costs time and memory in every batch, read or not."""


def check_columns(num_columns: int) -> None:
    """Raise OSError if a table has more than MAX_COLUMNS columns."""
    if num_columns > MAX_COLUMNS:
        raise OSError(
            f"it has {num_columns:,} columns, more than the {MAX_COLUMNS:,} that are read. Write "
            "the columns that are needed to another file"
        )
