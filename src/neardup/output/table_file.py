"""Write a table to a file in the format of its suffix."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from neardup.atomic import AtomicFile
from neardup.errors import OutputError
from neardup.output.directory import refuse_address


def json_line(row: dict[str, Any]) -> str:
    """Return a row as a line of JSON; times as in ISO 8601, bytes in hexadecimal digits."""
    return json.dumps(row, ensure_ascii=False, default=_json_value) + "\n"


def _json_value(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else value.isoformat() if hasattr(value, "isoformat") else str(value)


class _JsonLines(AbstractContextManager["_JsonLines"]):
    """Writes one JSON object per line."""

    def __init__(self, path: Path, _: pa.Schema) -> None:
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - closed on exit

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a line for each row."""
        self._file.writelines(json_line(row) for row in batch.to_pylist())

    def __exit__(self, *_: object) -> None:
        self._file.close()


_WRITERS: dict[str, Callable[[Path, pa.Schema], Any]] = {
    ".parquet": lambda path, schema: pq.ParquetWriter(path, schema, compression="zstd"),
    ".jsonl": _JsonLines,
    ".csv": lambda path, schema: pc_csv.CSVWriter(path, schema),
}


SUFFIXES = tuple(_WRITERS)


def check_output(output: str | os.PathLike[str], suffixes: tuple[str, ...], *, overwrite: bool) -> Path:
    """Return the path of a file that may be written.

    Raises
    ------
    OutputError
        If it is no path, the file exists without `overwrite`, its suffix is not one of `suffixes`, or its folder cannot
        be written to.
    """
    refuse_address(output, "file")
    path = Path(output)
    if path.suffix.lower() not in suffixes:
        raise OutputError(
            f"The output {path} must end in {'one of ' * (len(suffixes) > 1)}{', '.join(suffixes)}: got "
            f"{path.suffix or 'no suffix'!r}. Use {path.stem.strip('-.') or 'out'}{suffixes[0]}, for example."
        )
    if path.exists() and not overwrite:
        raise OutputError(f"The output {path} already exists. Use another file, or pass --overwrite.")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise OutputError(f"The output {path} cannot be written. Use a file in a folder with write permission.")
    return path


class TableFile:
    """A file of rows that appears only when it is complete; its suffix sets the format. Raises as `check_output` does.

    Attributes
    ----------
    num_rows : the number of rows written.
    """

    def __init__(self, output: str | os.PathLike[str], *, overwrite: bool) -> None:
        self.path = check_output(output, SUFFIXES, overwrite=overwrite)
        self.num_rows = 0

    @property
    def is_text(self) -> bool:
        """Whether the format has text and no bytes."""
        return self.path.suffix.lower() != ".parquet"

    def write(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        """Write all rows, then move the file into place."""
        with AtomicFile(self.path) as partial, _WRITERS[self.path.suffix.lower()](partial, schema) as writer:
            for batch in batches:
                writer.write(batch)
                self.num_rows += batch.num_rows
