"""Write the table of pairs to a file, aside and then in place."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from neardup.errors import OutputError


class _JsonLines(AbstractContextManager["_JsonLines"]):
    """Writes a JSON object a line."""

    def __init__(self, path: Path, _: pa.Schema) -> None:
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - closed on exit

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a line for each row."""
        self._file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())

    def __exit__(self, *_: object) -> None:
        self._file.close()


_WRITERS: dict[str, Callable[[Path, pa.Schema], Any]] = {
    ".parquet": lambda path, schema: pq.ParquetWriter(path, schema, compression="zstd"),
    ".jsonl": _JsonLines,
    ".csv": lambda path, schema: pc_csv.CSVWriter(path, schema),
}


class PairsFile:
    """A file of pairs that appears only when it is whole; its suffix says the format.

    Attributes
    ----------
    num_pairs, num_exact : what was written, once it is.

    Raises
    ------
    OutputError
        If the file exists and is not to be replaced, its suffix is unknown, or its folder cannot be written to.
    """

    def __init__(self, path: Path, *, overwrite: bool) -> None:
        self.path = path
        self.partial = path.with_name(path.name + ".partial")
        self.num_pairs = self.num_exact = 0
        if path.suffix.lower() not in _WRITERS:
            raise OutputError(
                f"The output {path} must end in one of {', '.join(_WRITERS)}: got {path.suffix or 'no suffix'!r}. "
                "Name for example pairs.parquet."
            )
        if path.exists() and not overwrite:
            raise OutputError(f"The output {path} exists already. Name another file, or pass --overwrite.")
        if path.is_dir() or not os.access(path.parent, os.W_OK):
            raise OutputError(f"The output {path} cannot be written. Name a file in a folder that you may write to.")

    def write(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        """Write all pairs, then move the file into place."""
        with self._aside(), _WRITERS[self.path.suffix.lower()](self.partial, schema) as writer:
            for batch in batches:
                writer.write(batch)
                self.num_pairs += batch.num_rows
                self.num_exact += pc.sum(batch.column("exact")).as_py() or 0

    @contextmanager
    def _aside(self) -> Iterator[None]:
        try:
            yield
            os.replace(self.partial, self.path)
        except OSError as error:
            raise OutputError(
                f"{error.strerror or error}: {self.partial}. Nothing was written to {self.path}. Run again once this "
                "is mended."
            ) from error
        finally:
            self.partial.unlink(missing_ok=True)
