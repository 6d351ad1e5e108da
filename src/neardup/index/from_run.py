"""Make an index of the documents that a run of dedup kept."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup.arrays import arrow_file
from neardup.documents.batch import Rejected, describe_rejected
from neardup.errors import InputError, SettingError
from neardup.executor import count_threads
from neardup.features.idf import IdfTable
from neardup.files import AnyPath, JsonObject, read_json
from neardup.formats.reading import Task
from neardup.formats.registry import UNQUOTED
from neardup.index import meta
from neardup.index.documents import find, joined_batches, read_batches
from neardup.index.incoming import new_prefix
from neardup.index.open_index import Batch, OpenIndex
from neardup.methods.registry import IDF, settings_from_json
from neardup.report.contents import MAX_INPUTS
from neardup.runs.columns import FILE_COLUMN
from neardup.runs.run import Inputs, Run
from neardup.settings.constraints import ColumnNames
from neardup.settings.methods import MethodSettings
from neardup.settings.run import MAX_DOCUMENT_BYTES, IndexSettings

_WithIds = Callable[[Task, Batch], Batch]


def make_index(
    address: str,
    folder: Path,
    idf: IdfTable | AnyPath | None,
    payload_column: ColumnNames,
    settings: dict[str, Any],
) -> OpenIndex:
    """Return an open index of the documents that a run kept; parameters as in `Index.from_run`.

    Raises
    ------
    InputError
        If the folder has no run of dedup.
    SettingError
        If the run used a Python function, or counted the words of its documents and `idf` is None.
    """
    report = _report_of(folder)
    method = _method_of(folder, report)
    if settings.get("max_bucket_size") is None:
        settings = settings | {"max_bucket_size": report["settings"]["max_bucket_size"]}
    tasks = _kept_tasks(folder, report, method)
    with_ids = _naming(folder, report)
    # The length of the first kept vector: an index needs it.
    if method.vector_length == 0 and tasks:
        length: dict[str, Any] = {"dimensions": tasks[0].columns.vector_length or None}
        method = replace(method, **length)
    index_settings = IndexSettings(**settings)
    prepared = meta.prepare(method, index_settings, idf)

    def fill(index: OpenIndex) -> None:
        pieces = read_batches(tasks, payload_column, _raise, count_threads(None))
        named = (with_ids(piece.task, piece.batch) for piece in pieces if piece.batch is not None)
        for batch in joined_batches(named):
            # The run has decided already.
            index.add(batch, if_new=False)

    return OpenIndex.create(address, prepared, index_settings, fill)


def _report_of(folder: Path) -> JsonObject:
    try:
        report: JsonObject = read_json(folder / "report.json")
    except (OSError, ValueError) as error:
        raise InputError(
            f"{folder} has no report of a run: {error}. Pass the output folder of `neardup dedup`."
        ) from error
    if report.get("command") != "dedup" or "method" not in report:
        raise InputError(
            f"{folder} is of neardup {report.get('command')} {report.get('version')}: an index is "
            "created from the output of `neardup dedup` of the installed version. Run dedup again."
        )
    return report


def _method_of(folder: Path, report: JsonObject) -> MethodSettings:
    if report["method"] is None:
        raise SettingError(
            f"The run in {folder} used a Python function, which its report cannot name. Use "
            f"Index.create with the method, and add_many({str(folder / 'kept')!r})."
        )
    method: MethodSettings = settings_from_json(report["method"])
    # The table itself is not in the folder of the run: `idf` brings it.
    counted: dict[str, Any] = {"idf": "corpus"} if getattr(method, "idf", None) == IDF else {}
    return replace(method, **counted)


def _kept_tasks(folder: Path, report: JsonObject, method: MethodSettings) -> list[Task]:
    """Return the kept files in the order in which the run read them."""
    if report.get("write", "kept") != "kept":
        raise InputError(
            f"The run {folder} has no kept documents: it was written with "
            f"write={report['write']!r}. Run dedup again with write='kept' (--write kept)."
        )
    kept = folder / "kept"
    sources = [part for part in report["inputs"] if part["role"] == "source"]
    paths = [kept / part["kept"] for part in sources]
    if report["num_inputs"] > MAX_INPUTS:  # the report does not list the others
        paths += sorted(path for path in kept.rglob("*") if path.is_file())
    # A document that is a file has no output if it is not kept.
    files = [path for path in dict.fromkeys(paths) if path.exists()]
    if not files:
        return []
    return find(Run(_kept_inputs(files, sources, report), method)).tasks


def _kept_inputs(files: list[Path], sources: list[JsonObject], report: JsonObject) -> Inputs:
    """Return the kept files with the options by which they are read as their inputs were."""
    formats = {part["format"] for part in sources}
    units = {part["unit"] for part in sources if part["format"] == "text"}
    return Inputs(
        source=files,
        text_column=report["columns"]["text"],
        roles=(report.get("options") or {}).get("roles"),
        max_document_bytes=report["max_document_bytes"] or MAX_DOCUMENT_BYTES,
        id_column=report["columns"]["id"],
        # Fewer files are kept than were read: their number tells nothing.
        text_unit=units.pop() if len(units) == 1 else "auto",
        quote="none" if formats & set(UNQUOTED.values()) else "double",
        # Files of several formats have their own suffixes.
        in_format=formats.pop() if len(formats) == 1 and formats != {"table"} else None,
    )


def _naming(folder: Path, report: JsonObject) -> _WithIds:
    """Return a function that gives a batch the ids of its documents in the run."""
    if report["columns"]["id"] == FILE_COLUMN:
        return _naming_by_paths(folder, report)
    if report["columns"]["id"] is not None or report["num_inputs"] > MAX_INPUTS:
        return lambda _, batch: batch
    _refuse_groups(folder, report)
    numbers = _kept_numbers(folder, report)
    prefix = new_prefix()

    def number(_: Task, batch: Batch) -> Batch:
        ids = [f"{prefix}{next(numbers)}" for _ in range(len(batch.texts))]
        return batch._replace(ids=pa.array(ids, "large_string"), is_unnamed=False)

    return number


def _refuse_groups(folder: Path, report: JsonObject) -> None:
    """Raise InputError if the run removed groups: their documents cannot be counted."""
    if report.get("groups"):
        raise InputError(
            f"The documents of the run in {folder} have no ids, and the numbers of those that were "
            "removed with their group are not stored. Run dedup with ids (--id-column), or use "
            "Index.create and add_many."
        )


def _kept_numbers(folder: Path, report: JsonObject) -> Iterator[int]:
    """Yield the running numbers of the documents that a run kept, which has no column of ids."""
    with arrow_file(folder / "removed.parquet") as file:
        removed = pq.read_table(file, columns=["id"])["id"].cast("int64").to_numpy()
    # The earlier collection was read first, and its documents have the first numbers.
    against = [part for part in report["inputs"] if part["role"] == "against"]
    # An index is no collection that the run reads: its documents have no numbers.
    first = sum(part["documents"] for part in against if part["format"] != "index")
    kept = np.ones(report["counts"]["read"], np.bool_)
    kept[removed - first] = False
    yield from (np.flatnonzero(kept) + first).tolist()
    # Only if the kept files got more documents since the run:
    yield from count(first + len(kept))  # pragma: no cover


def _naming_by_paths(folder: Path, report: JsonObject) -> _WithIds:
    """Return a function that gives the documents of a file the path of the file in the run; in a
    mailbox, with the row that they had.
    """
    kept = folder / "kept"
    rows: dict[str, Iterator[int]] = {}  # that are left of each mailbox
    names = {part["kept"]: part["name"] for part in report["inputs"] if part["kept"] is not None}
    root = _root_of(names)

    def rename(task: Task, batch: Batch) -> Batch:
        part = os.path.relpath(task.part.name, kept).replace(os.sep, "/")
        name = names.get(part, root + part)
        ids = [name] * len(batch.texts)
        if task.part.unit == "message":
            _refuse_groups(folder, report)
            if name not in rows:
                rows[name] = _rows_left(folder, name)
            ids = [f"{name}:{next(rows[name])}" for _ in ids]
        return batch._replace(ids=pa.array(ids, "large_string"))

    return rename


def _root_of(names: dict[str, str]) -> str:
    """Return the folder of the files of the report, and of the files that it does not list."""
    roots = {name[: -len(part)] for part, name in names.items() if part and name.endswith(part)}
    return roots.pop() if len(roots) == 1 else ""


def _rows_left(folder: Path, name: str) -> Iterator[int]:
    """Yield the rows of a file that a run neither removed nor rejected, without an end."""
    with arrow_file(folder / "removed.parquet") as file:
        removed = pq.read_table(file, columns=["source_file", "row"])
    gone = set(removed.filter(pc.equal(removed["source_file"], name))["row"].to_pylist())
    with open(folder / "rejected.jsonl", encoding="utf-8") as lines:
        for rejected in map(json.loads, lines):
            if rejected["file"] == name:
                gone.add(rejected["row"])
    yield from (row for row in count() if row not in gone)


def _raise(row: Rejected) -> None:
    raise InputError(
        f"{describe_rejected(row)}. The kept files changed since the run. Run dedup again."
    )
