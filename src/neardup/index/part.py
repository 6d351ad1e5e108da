"""The documents of an index as an input of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from neardup.documents.pages import TEXT_COLUMN
from neardup.documents.sources import Identity
from neardup.errors import SettingError
from neardup.formats.tables import TablePart
from neardup.index import maintenance
from neardup.index.incoming import TEXT
from neardup.index.open_index import OpenIndex


class IndexPart(TablePart):
    """The kept documents of an index that stores texts, as one input, in the order in which they
    were added.

    Its columns are the id and the text, or the html of pages.
    """

    def __init__(self, index: OpenIndex) -> None:
        storage, method = index.rules.storage, index.method
        if storage != TEXT or method.vector_length is not None:
            kind = f"storage={storage!r}" if method.vector_length is None else "vectors"
            raise SettingError(
                f"An index is searched if it stores texts: got {index.address} with {kind}. "
                "Pass the files that it was "
                "made of, or create it with storage='text' (--storage text)."
            )
        columns = ("id", TEXT_COLUMN if method.of_pages() is method else "text")
        super().__init__(
            pa.table(dict.fromkeys(columns, pa.array([], "large_string"))), index.address
        )
        self.format, self.relative_name, self._store = "index", "index.parquet", index.store

    def identity(self) -> Identity:
        """Return the name with the time when the index was made; its documents; and how many were
        ever added.
        """
        created = self._store.settings.meta["created"]
        with self._store.reading() as snapshot:
            return Identity(
                name=f"{self.name} {created}",
                num_bytes=snapshot.count().kept,  # of documents, not of bytes
                changed_at=float(snapshot.num_rows),
            )

    def num_rows(self) -> int:
        """Return the number of documents."""
        return self.identity().num_bytes

    def batches(self, names: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """Yield columns of all documents, of one state of the index; names : None for all."""
        with self._store.reading() as snapshot:
            for columns in maintenance.kept_texts(snapshot):
                table = pa.table(columns, schema=self.table.schema)
                yield from table.select(names or table.schema.names).to_batches()
