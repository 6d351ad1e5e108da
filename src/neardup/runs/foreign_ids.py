"""Read the decisions of other tools: lists of removed documents, and clusters.

Documents are named by the id column of the original, or by their numbers in the order of input.
datatrove names them by the number of a file and a number in it (`MinhashDedupCluster`): a file
`000002.remove` has little-endian 32-bit numbers of documents of the third input, `000002.clusters`
pairs of a document and its cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Integers, Ints, Mask, Words, arrow_of, find_in
from neardup.documents.batch import Columns, Rejected
from neardup.documents.lines import STREAM_ERRORS
from neardup.documents.nested import column_of
from neardup.documents.texts import as_ids
from neardup.errors import ColumnError, InputError
from neardup.features.grouping import NO_ID, hash_ids, hash_values
from neardup.files import reason_of
from neardup.formats.reading import InputFile, Task, UnreachableInput
from neardup.formats.registry import FORMATS
from neardup.runs.columns import ID_NAMES
from neardup.runs.find import Skip, shown
from neardup.runs.input_files import list_inputs
from neardup.runs.kept_rows import Rows

_NUMBERS = ("_curator_dedup_id", "__INDEX__")
"""Columns of numbers that tools give to rows in order, unless the original has the column."""
_IDS = (*ID_NAMES, *_NUMBERS, "idx", "index")
_CLUSTERS = (
    "cluster",
    "cluster_id",
    "__CLUSTER__",
    "_duplicate_group_id",
    "minhash_cluster_id",
    "metadata.minhash_cluster_id",
    "metadata.minhash.cc_id",
    "minhash.cc_id",
    "cc_id",
    "group",
)
_RANKS = ("metadata.minhash.cc_idx", "minhash.cc_idx", "cc_idx")
"""Numbers of documents in their cluster, as duplodocus annotates them: all but 0 are removed."""
_OF_DATATROVE = re.compile(r"\d{1,9}\.(remove|clusters|sizes)")
NOT_OF_DATATROVE = "other than lists of datatrove"


class Named(NamedTuple):
    """Documents of the original that a list names.

    documents : int64, rising, each once. num_unknown : the names that are not in the original.
    """

    documents: Ints
    num_unknown: int


class Clustered(NamedTuple):
    """Documents of the original with their clusters.

    documents : int64 (num_documents,). clusters : int64 or uint64, numbered from 0 once the files
    are joined. num_unknown : as in `Named`.
    """

    documents: Ints
    clusters: Integers
    num_unknown: int


class Original(NamedTuple):
    """The original, to which lists refer. id_column : its id column; None without one."""

    rows: Rows
    id_column: str | None

    def named(self, table: _Listing) -> tuple[Ints, Mask]:
        """Return the document of each row of a listing, and whether there is one."""
        known = self._names(table)
        order = np.argsort(known, kind="stable")
        index, is_known = find_in(known[order], table.ids)
        return order[index], is_known & (table.ids != NO_ID)

    def removed(self, table: _Listing) -> Named:
        """Return the documents that a listing removes: all that have an id of it."""
        known = self._names(table)
        is_unknown = ~np.isin(table.ids, known) | (table.ids == NO_ID)
        is_removed = np.isin(known, table.ids[table.is_removed & ~is_unknown])
        return Named(np.flatnonzero(is_removed), int(np.count_nonzero(is_unknown)))

    def _names(self, table: _Listing) -> Words:
        """Return the hash of the name that a listing has for each document."""
        by_number = table.id_column in _NUMBERS and table.id_column != self.id_column
        if not by_number and len(self.rows.ids):
            return self.rows.ids
        return hash_values(arrow_of(np.arange(len(self.rows.texts))).cast(pa.string()))

    def document_at(self, part: int, numbers: Ints, name: str) -> Ints:
        """Return documents by their numbers in a part, as datatrove counts them.

        Its readers leave out documents without text.
        """
        ends = self.rows.part_ends
        if part >= len(ends):
            raise InputError(
                f"{name} is about input {part}, and the original has {len(ends):,}. datatrove "
                "numbers its tasks: run it with one task for each file, and give the same files."
            )
        start = int(ends[part - 1]) if part else 0
        has_text = self.rows.texts[start : ends[part]] != hash_values(pa.array([""]))[0]
        documents = start + np.flatnonzero(has_text)
        if len(numbers) and int(numbers.max()) >= len(documents):
            raise InputError(
                f"{name} names document {int(numbers.max()):,}, and the input has "
                f"{len(documents):,} with text. Give the files that datatrove has read, in its "
                "order."
            )
        return documents[numbers]


def read_removed(path: str, original: Original, skip: Skip) -> Named:
    """Return the documents that a list removes. skip : as in `list_inputs`."""
    parts = _datatrove_files(path, "remove", skip)
    found = [np.empty(0, np.int64)]
    num_unknown = 0
    for part, file in parts:
        found.append(original.document_at(part, _numbers(file, 1)[:, 0], file.name))
    for table in () if parts else _listings(path, (), skip):
        documents, unknown = original.removed(table)
        found.append(documents)
        num_unknown += unknown
    return Named(np.unique(np.concatenate(found)), num_unknown)


def read_clusters(path: str, column: str | None, original: Original, skip: Skip) -> Clustered:
    """Return the clusters of another tool. column : the name of their column, if it is not known.
    skip : as in `list_inputs`.

    Raises
    ------
    ColumnError
        If a table has no column of clusters.
    """
    no_documents = np.empty(0, np.int64)
    found = [Clustered(no_documents, clusters=np.empty(0, np.uint64), num_unknown=0)]
    parts = _datatrove_files(path, "clusters", skip)
    for part, file in parts:
        pairs = _numbers(file, 2)
        documents = original.document_at(part, pairs[:, 0], file.name)
        clusters = pairs[:, 1].astype(np.uint64)
        found.append(Clustered(documents, clusters=clusters, num_unknown=0))
    names = (column,) if column else _CLUSTERS
    for table in () if parts else _listings(path, names, skip):
        documents, is_known = original.named(table)
        has_cluster = is_known & table.has_cluster
        found.append(
            Clustered(
                documents=documents[has_cluster],
                clusters=table.clusters[has_cluster],
                num_unknown=int(np.count_nonzero(~is_known)),
            )
        )
    return _joined(found)


def _joined(parts: Sequence[Clustered]) -> Clustered:
    """Return the clusters of several files, numbered from 0."""
    names = np.concatenate([part.clusters for part in parts])
    _, clusters = np.unique(names, return_inverse=True)
    return Clustered(
        documents=np.concatenate([part.documents for part in parts]),
        clusters=clusters.astype(np.int64),
        num_unknown=sum(part.num_unknown for part in parts),
    )


def _datatrove_files(path: str, suffix: str, skip: Skip) -> list[tuple[int, Path]]:
    """Return the files of datatrove in a folder, each with the number of its task.

    skip : called for each other file in such a folder, but for the other lists of datatrove.
    """
    folder = Path(path)
    # Of a folder that cannot be listed, `glob` returns nothing; the search for lists then names it.
    entries = sorted(folder.glob("*")) if folder.is_dir() else []
    parts = []
    others = []
    for entry in entries:
        if not _OF_DATATROVE.fullmatch(entry.name):
            others.append(entry)
        elif entry.suffix == f".{suffix}":
            parts.append((int(entry.stem), entry))
    for entry in others if parts else ():
        skip(shown(str(entry)), NOT_OF_DATATROVE)
    return parts


def _numbers(file: Path, width: int) -> Ints:
    """Return the numbers in a file of datatrove, int64 (num_rows, width)."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise _unreadable(shown(str(file)), reason_of(error)) from error
    if len(data) % (4 * width):
        raise InputError(
            f"{file} is cut off: got {len(data):,} bytes, and a row has {4 * width}. Copy it again."
        )
    return np.frombuffer(data, "<u4").astype(np.int64).reshape(-1, width)


class _Listing(NamedTuple):
    """Rows of a list or of a table.

    id_column : "" for lines of text. ids : uint64, the hash of each id. is_removed : bool, false
    for the document that an annotation keeps. clusters : uint64, the hash of each cluster; empty if
    they are not read. has_cluster : bool.
    """

    id_column: str
    ids: Words
    is_removed: Mask
    clusters: Words
    has_cluster: Mask


def _listings(path: str, cluster_names: Sequence[str], skip: Skip) -> Iterator[_Listing]:
    """Yield the rows of each file.

    cluster_names : the names of a column of clusters; the first that exists is read. skip : as in
    `list_inputs`.

    Raises
    ------
    InputError
        If a file or a line cannot be read: the documents that it names would count as kept.
    """
    for part in list_inputs([path], unit="line", skip=skip):
        if isinstance(part, UnreachableInput):
            raise _unreadable(part.name, part.reason)
        if FORMATS[part.format].handler.read_table is not None:
            for batch in _batches(part):
                yield _listing(batch, part.name, cluster_names)
        elif cluster_names:
            raise ColumnError(
                f"{part.name} is a {part.format} file, not a table of ids and clusters. Give "
                "Parquet, Arrow, JSON lines, CSV or TSV."
            )
        else:

            def refuse(row: Rejected, name: str = part.name) -> None:
                # The rest of a damaged file is rejected without a row.
                where = "" if row.row is None else f"row {row.row}: "
                raise _unreadable(name, where + row.reason)

            for lines in Task(part, Columns("text"), against=False).read(refuse):
                is_removed = np.ones(len(lines.rows), np.bool_)
                yield _Listing(
                    id_column="",
                    ids=hash_values(lines.text),
                    is_removed=is_removed,
                    clusters=np.empty(0, np.uint64),
                    has_cluster=~is_removed,
                )


def _batches(part: InputFile) -> list[pa.RecordBatch]:
    """Return the rows of a table. Ids of text formats are read as strings."""
    read_table = FORMATS[part.format].handler.read_table
    assert read_table is not None  # a table
    try:
        batches: list[pa.RecordBatch] = read_table(part, _IDS).combine_chunks().to_batches()
    # Arrow raises UnicodeDecodeError for names of columns that are not UTF-8.
    except (*STREAM_ERRORS, UnicodeDecodeError) as error:
        raise _unreadable(part.name, str(error).partition("\n")[0]) from error
    return batches


def _unreadable(name: str, reason: str) -> InputError:
    return InputError(
        f"{name} cannot be read as a list of ids: {reason}. Fix the file, or name another."
    )


def _listing(rows: pa.RecordBatch, name: str, cluster_names: Sequence[str]) -> _Listing:
    id_column, ids = _first_of(rows, _IDS, name, "ids")
    is_removed = np.ones(len(rows), np.bool_)
    ranks = next(filter(None, (column_of(rows, rank) for rank in _RANKS)), None)
    if ranks is not None:
        is_removed = _positive(ranks, name)
    elif id_column == "__INDEX__" and "__CLUSTER__" in rows.schema.names:
        # text-dedup names a cluster by the number of the document that it keeps. As numbers of one
        # type: ids of text formats are read as strings, and clusters are not.
        numbers = _as_numbers(rows["__INDEX__"], name)
        is_kept = pc.equal(_as_numbers(rows["__CLUSTER__"], name), numbers)
        is_removed = ~pc.fill_null(is_kept, False).to_numpy(zero_copy_only=False)
    clusters = np.empty(0, np.uint64)
    has_cluster = np.zeros(len(rows), np.bool_)
    if cluster_names:
        _, values = _first_of(rows, cluster_names, name, "clusters", "a cluster")
        clusters = hash_ids(values)
        has_cluster = values.is_valid().to_numpy(zero_copy_only=False)
    return _Listing(
        id_column=id_column,
        ids=hash_ids(ids),
        is_removed=is_removed,
        clusters=clusters,
        has_cluster=has_cluster,
    )


def _positive(ranks: pa.Array, name: str) -> Mask:
    """Return which numbers are above 0; a document without an annotation has null."""
    numbers = pc.fill_null(_as_numbers(ranks, name), 0)
    positive: Mask = numbers.to_numpy(zero_copy_only=False) > 0
    return positive


def _as_numbers(column: pa.Array, name: str) -> pa.Array:
    """Return a column of whole numbers as int64. Raises ColumnError."""
    try:
        return pc.cast(column, pa.int64())
    except pa.ArrowException as error:
        raise ColumnError(
            f"The column of numbers in clusters of {name} contains {column.type}: {error}. Convert "
            "it to whole numbers."
        ) from error


def _first_of(
    rows: pa.RecordBatch, names: Sequence[str], source: str, kind: str, role: str = "the id"
) -> tuple[str, pa.Array]:
    """Return the first of some columns that exists, as strings, with its name."""
    for name in names:
        column = column_of(rows, name)
        if column is not None:
            return name, as_ids(column, role)[0]
    raise ColumnError(
        f"No column of {kind} in {source}: it has {', '.join(rows.schema.names)}. Known names are "
        f"{', '.join(names)}. Rename the column, or name it (cluster_column, --cluster-column)."
    )
