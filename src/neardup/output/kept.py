"""Write the kept documents of one input in its format."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Mask, arrow_of, mask_of
from neardup.decide.outcome import Added, Edits, cut_texts, cut_turns
from neardup.documents.batch import DocumentBatch, Pages, Payload, select_payload
from neardup.documents.sinks import ParallelSink, Sink
from neardup.errors import OutputError
from neardup.executor import Encoders, InOrder
from neardup.files import AnyPath, AtomicFile, reason_of
from neardup.formats.reading import Part, Task, UnreachableInput
from neardup.runs.run import Inputs, has_pages

_FILE_ERRORS = (pa.ArrowException, OSError)
_SELECTED_SHARE = 1 / 32  # of the memory of a writer, for documents that are selected ahead
_KINDS_WITH_MARKUP = {
    "notebook": "notebooks, whose text is in cells",
    **dict.fromkeys(("docx", "odt", "epub"), "files of an office program, whose text is in XML"),
    "pdf": "PDF files, whose text is drawn",
    **dict.fromkeys(("eml", "mbox"), "messages, whose text is encoded"),
}
"""The formats whose texts cannot be replaced, and their documents."""
_PARQUET_FORMATS = ("parquet", "table")
"""The formats that are written as Parquet, which lacks some types and codecs of Arrow."""


def refuse_cuts(task: Task) -> None:
    """Raise OutputError if parts of the texts of an input cannot be cut."""
    if task.columns.more_text:
        raise OutputError(
            "Parts of a text cannot be cut where it is of several columns: got "
            f"{', '.join(task.columns.texts)} of {task.part.name}. Name one text column "
            "(--text-column)."
        )
    kind = _KINDS_WITH_MARKUP.get(task.part.format)
    if has_pages(task):
        kind = "web pages, whose text is that of their HTML"
    if kind is not None:
        raise OutputError(
            f"Parts of a text cannot be cut from {task.part.name}: its documents are {kind}. Pass "
            "output and write='removed' (--write removed), or read a table of their texts."
        )


def refuse_unwritable(tasks: Sequence[Task], inputs: Inputs) -> None:
    """Raise OutputError if the inputs cannot be written as a run will write them, before it reads
    them.
    """
    if inputs.cuts:
        for task in tasks:
            if not task.against:
                refuse_cuts(task)
    if inputs.adds and inputs.copies:
        refuse_columns(tasks, " and ".join(dict.fromkeys(inputs.reserved.values())))
    if inputs.copies:
        try_sinks(tasks)


def refuse_columns(tasks: Iterable[Task], option: str) -> None:
    """Raise OutputError if columns cannot be added to the rows of an input. option : adds them."""
    # An earlier collection is not written, and an unreachable input has no rows.
    parts = [task.part for task in tasks if not task.against]
    for part in parts:
        if part.takes_columns or isinstance(part, UnreachableInput):
            continue
        raise OutputError(
            f"{option} adds columns to rows of Parquet, Arrow, JSON lines, CSV or TSV: got "
            f"{part.name}, whose format is {part.format}. Read a table of its texts, leave the "
            "option out, or use kept of the result (Python) without output."
        )


def try_sinks(tasks: Iterable[Task]) -> None:
    """Raise OutputError if the rows of an input cannot be written, before any is read."""
    for task in tasks:
        # Other formats copy the bytes of rows, whatever their types.
        if task.against or task.part.format not in _PARQUET_FORMATS:
            continue
        try:
            make_sink = task.part.make_sink()
        except _FILE_ERRORS:  # the part is damaged; reading it reports this
            continue
        try:
            make_sink(os.devnull).discard()  # a Parquet writer checks its schema when it is opened
        except pa.ArrowException as error:
            raise OutputError(
                f"The rows of {task.part.name} cannot be written: {reason_of(error)}. Convert the "
                "column or the file first, or pass write='removed' (--write removed), which "
                "copies no rows."
            ) from error


def apply_edits(task: Task, batch: DocumentBatch, edits: Edits) -> tuple[DocumentBatch, Mask]:
    """Return a batch whose texts and payload are cut, and the mask of its documents that stay.

    Parameters
    ----------
    batch : a batch of the task, with its payload.
    edits : the edits of its documents. A document that loses all of its text does not stay.

    Raises
    ------
    OutputError
        If the text of a document with cuts is of several columns, or is not part of its file, as
        with web pages.
    ValueError
        If a cut is no range of characters of its document.
    """
    if edits.cuts is None:
        return batch, edits.kept
    refuse_cuts(task)
    rows, texts = cut_texts(batch.text, edits.cuts, marked=edits.marked)
    is_cut = mask_of(rows, len(batch.rows))
    kept = edits.kept.copy()
    kept[rows] &= pc.binary_length(texts).to_numpy() > 0
    text = pc.replace_with_mask(batch.text, arrow_of(is_cut), texts)
    turns = task.part.turns_of(batch, task.columns, rows)
    changed = text if turns is None else cut_turns(turns, edits.cuts, marked=edits.marked)
    payload = task.part.replace_texts(batch, task.columns.text, rows, changed)
    return replace(batch, text=text, payload=payload), kept


class KeptWriter(AbstractContextManager["KeptWriter"]):
    """Writes the kept documents of one input: `write` for each batch in order, then `close`.

    The file has the `relative_name`, format, compression, schema and layout of the part; lines and
    pages are copied byte for byte. It has a temporary name until it is complete. As a context
    manager, the writer closes the file, or discards it after an exception.

    Parameters
    ----------
    part : the input.
    directory : the folder of the file.
    name : the name of the file. Default: `relative_name`.
    overwrite : whether the file may replace an existing one.
    encoders : the threads that encode the file, besides the caller's. Default: none.
    added : columns like the ones that `write` adds. Default: none.

    Raises
    ------
    OutputError
        If the file already exists, or cannot be written.
    """

    def __init__(
        self,
        part: Part,
        directory: AnyPath,
        *,
        name: str | None = None,
        overwrite: bool = False,
        encoders: Encoders | None = None,
        added: Added | None = None,
    ) -> None:
        self._part = part
        self._path = os.path.join(directory, name or part.relative_name)
        self._file = AtomicFile(self._path)
        self._sink: Sink | None = None
        self._encoders = encoders
        self._selected = InOrder[Payload](self._write_selected, _SELECTED_SHARE)
        self._selected.encoders = encoders
        if not overwrite and os.path.exists(self._path):
            raise OutputError(
                f"The output file {self._path} already exists. Use another folder, or delete the "
                "file."
            )
        try:
            self._make_sink = part.make_sink(None if added is None else added.schema)
        except _FILE_ERRORS:  # a damaged part yields no document, so `write` is not called
            return
        if part.unit != "file":  # a table or a list has a file even if no document is kept
            self._open()

    @property
    def path(self) -> Path:
        """The path of the file."""
        return Path(self._path)

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            self.close()
        else:
            self.discard()

    def write(
        self,
        payload: Payload,
        keep_mask: Mask,
        num_bytes: int = 0,
        added: Added | None = None,
    ) -> None:
        """Write rows of the payload of a batch.

        Parameters
        ----------
        keep_mask : bool (num_rows,), the rows to write.
        num_bytes : the size of the payload in memory.
        added : the columns to add to all rows of the batch, if the file has them.
        """
        # The records about a WARC file are copied even if none of its pages is.
        has_metadata = isinstance(payload, Pages) and bool(payload.metadata_records)
        if not keep_mask.any() and not has_metadata:
            return
        try:
            self._open()
            self._selected.put(partial(self._select, payload, keep_mask, added), num_bytes)
        except _FILE_ERRORS as error:
            self.discard()
            raise self._file.cannot_write(error) from error

    def _select(self, payload: Payload, keep_mask: Mask, added: Added | None) -> Payload:
        """Return the rows to write, with the added columns."""
        selected = select_payload(payload, keep_mask)
        if added is None:
            return selected
        columns: pa.RecordBatch = added.rows().filter(arrow_of(keep_mask))
        return self._part.append_columns(selected, columns)

    def _write_selected(self, payload: Payload) -> None:
        self._open().write(payload)

    def close(self) -> None:
        """Finish the file and rename it. If each document is a file, a removed document leaves no
        file.
        """
        if self._sink is None:
            return
        try:
            self._selected.finish()
            self._sink.close()
            self._file.commit()
        except _FILE_ERRORS as error:
            self.discard()
            raise self._file.cannot_write(error) from error
        self._sink = None

    def discard(self) -> None:
        """Delete the unfinished file."""
        if self._sink is not None:
            # The first error is the one to report.
            with suppress(Exception):
                self._sink.discard()
            with suppress(OSError):
                self._file.discard()
            self._sink = None

    def _open(self) -> Sink:
        """Return the open file, which is opened by the first call."""
        if self._sink is None:
            try:
                self._sink = self._create()
                if self._encoders is not None and isinstance(self._sink, ParallelSink):
                    self._sink.encode_on(self._encoders)
            except _FILE_ERRORS as error:
                raise self._file.cannot_write(error) from error
        return self._sink

    def _create(self) -> Sink:
        """Create the file under its temporary name, and its folder if it is missing."""
        try:
            return self._make_sink(self._file.partial)
        except FileNotFoundError:
            # Folders may have thousands of files: `mkdir` for each file would take longer.
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
            return self._make_sink(self._file.partial)
