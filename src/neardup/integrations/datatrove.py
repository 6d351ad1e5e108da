"""A datatrove filter: keep the documents that are new to an index, drop near-duplicates.

::

    pipeline = [
        JsonlReader("raw/"),
        SeenBeforeFilter("pages.index", exclusion_writer=JsonlWriter("removed/")),
        JsonlWriter("clean/"),
    ]
    LocalPipelineExecutor(pipeline, tasks=1).run()
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from neardup.api.index import Index
from neardup.errors import MissingExtraError

try:
    from datatrove.data import Document, DocumentsPipeline
    from datatrove.pipeline.filters.base_filter import BaseFilter
except ImportError as error:
    raise MissingExtraError(
        f"SeenBeforeFilter is a step of datatrove, and {error.name} is not installed. Run `pip "
        "install datatrove regex`."
    ) from error


class SeenBeforeFilter(BaseFilter):  # type: ignore[misc]
    """Adds each document to an index if it is new; drops it if a kept document is similar to it.

    Documents are decided in the order in which they come, as `dedup` decides them. An index
    remembers its answers by the id of the document: one that was kept passes again, so that a task
    that is killed and runs again loses none.

    Parameters
    ----------
    index : an index that exists: a folder, or the address of a database. One process at a time
        writes to a folder, so use it with `tasks=1`; PostgreSQL and Redis take any number of tasks.
    batch_size : documents that are looked up together.
    only_new : whether to drop also a document that the index has already, with the same id and
        content. Documents that a killed task added to the index then stay out of its output when it
        runs again.
    exclusion_writer : a writer of datatrove for the dropped documents. Their metadata have
        `filter_reason`, and the `kept_id` and the `similarity` (or `distance`) of the document that
        removed them.
    """

    name = "neardup: seen before?"

    def __init__(
        self,
        index: str,
        batch_size: int = 1000,
        exclusion_writer: Any = None,
        *,
        only_new: bool = False,
    ) -> None:
        """Keep the settings; `run` opens the index."""
        super().__init__(exclusion_writer, batch_size)
        self.index = index
        self.only_new = only_new
        self._opened: Index | None = None

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        """Yield the documents that are new.

        Raises
        ------
        StoreError
            If the index does not exist, or another process writes to it.
        """
        with Index.open(self.index) as self._opened:
            yield from super().run(data, rank, world_size)
        self._opened = None

    def filter(self, doc: Document) -> bool | tuple[bool, str]:
        """Return whether a document is new, or why it is dropped."""
        return self.filter_batch([doc])[0]

    def filter_batch(self, batch: list[Document]) -> list[bool | tuple[bool, str]]:
        """Return for each document whether it is new, or why it is dropped."""
        assert self._opened is not None
        table = pa.table(
            {
                "id": [doc.id for doc in batch],
                "text": pa.array([doc.text for doc in batch], "large_string"),
            }
        )
        answers = self._opened.add_many_if_new(table, text_column="text", id_column="id")
        results: list[bool | tuple[bool, str]] = []
        for doc, answer in zip(batch, answers.to_pylist(), strict=True):
            if answer["kept"]:
                results.append(
                    (False, "repeated") if self.only_new and answer["repeated"] else True
                )
                continue
            found = {
                name: answer[name]
                for name in ("kept_id", "similarity", "distance")
                if answer.get(name) is not None
            }
            doc.metadata.update(found)
            results.append((False, "exact_copy" if answer["exact"] else "near_duplicate"))
        return results
