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
    """The kept documents of an index that stores texts, as one input, in the order of their rows.

    Its columns are the id and the text, or the html of pages.
    """

    def __init__(self, index: OpenIndex) -> None:
        storage = index.rules.storage
        method = index.method
        if storage != TEXT or method.vector_length is not None:
            kind = f"storage={storage!r}" if method.vector_length is None else "vectors"
            raise SettingError(
                f"An index is searched if it stores texts: got {index.address} with {kind}. Pass "
                "the files that it was made of, or create it with storage='text' (--storage text)."
            )
        # Pages are stored as HTML: the column tells that the text is to be found in it.
        text_column = TEXT_COLUMN if method.of_pages() is method else "text"
        none = pa.array([], "large_string")
        super().__init__(pa.table({"id": none, text_column: none}), index.address)
        self.format = "index"
        self.relative_name = "index.parquet"
        self._store = index.store

    def identity(self) -> Identity:
        """Return the name and time of creation, the number of documents, and of rows ever added."""
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
        """Yield columns of all documents, from one state of the index; names : None for all."""
        with self._store.reading() as snapshot:
            for columns in maintenance.kept_texts(snapshot):
                table = pa.table(columns, schema=self.table.schema)
                yield from table.select(names or table.schema.names).to_batches()
