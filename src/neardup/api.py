"""What users call. What they passed is guessed here, and nowhere else."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from neardup.candidates.plan import Plan, make_plan
from neardup.config import MinHash, Running, Sieve
from neardup.documents.batch import Part
from neardup.documents.columns import choose_columns
from neardup.documents.input_file import format_of
from neardup.documents.inputs import list_inputs
from neardup.documents.tables import TablePart
from neardup.engines import compare as comparing
from neardup.engines import local, write
from neardup.engines.describe import Corpus, Task
from neardup.engines.ids import find_repeated_id
from neardup.engines.report import build_report
from neardup.engines.resume import prepare
from neardup.engines.scratch import Scratch
from neardup.engines.stages import Nobody, Stages, Watcher
from neardup.engines.tell import Places, pair_batches, removed_batches
from neardup.errors import InputError, NeardupError, OutputError, SettingError
from neardup.formats import FILE_FORMATS
from neardup.output.directory import OutputDirectory
from neardup.output.report_html import Example
from neardup.results import Comparison, Deduplication, DuplicatePairs
from neardup.schemas import PAIRS, REMOVED

Source = Any  # a path, a glob, an address, a list of these or of texts, or what speaks Arrow's PyCapsule stream


def dedup(
    source: Source,
    *,
    method: MinHash = MinHash(),  # noqa: B008 - frozen
    against: Source | None = None,
    output: str | os.PathLike[str] | None = None,
    keep: str = "first",
    clusters: str = "sieve",
    max_bucket: int = 1000,
    audit: int = 0,
    text_column: str | None = None,
    id_column: str | None = None,
    text_unit: str = "auto",
    out_format: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    threads: int | None = None,
    batch_rows: int | None = None,
    on_error: str = "reject",
    watcher: Watcher | None = None,
) -> Deduplication:
    """Remove the near-duplicates of a collection, keep one of each, and say why.

    Parameters
    ----------
    source : a path, a glob, an address (`s3://...`), or a list of them; a list of texts; or anything that speaks
        Arrow's PyCapsule stream (pyarrow, polars, pandas, duckdb, Hugging Face datasets). A str is a path, and a
        list of str is a list of paths if each of them exists, has a known suffix, or is a pattern or an address, else a
        list of texts.
    method : how texts are compared, and from when two are duplicates.
    against : an earlier collection, read the same way. Its documents are never removed, and come before all others.
    output : a folder to write kept/, removed.parquet, rejected.jsonl, report.json and report.html to; None to only
        return the result.
    keep : which document of several alike stays: first, last, longest, shortest, max:COLUMN or min:COLUMN.
    clusters : sieve, or connected for chains of resemblances.
    max_bucket : kept documents that one bucket lists at most.
    audit : documents to compare with all others exactly, to measure the recall.
    text_column, id_column : columns; guessed when obvious.
    text_unit : for text files, whether a document is a line or a file; auto: lines when one file is named.
    out_format : format of the kept files; default: that of each input.
    overwrite : replace the output folder, if it exists, once the new result is whole.
    resume : go on where an interrupted run with the same inputs, settings and output stopped.
    threads : worker threads; default: all processors of this process.
    batch_rows : documents worked on at once; default: by their size. Changes no answer.
    on_error : reject a document that cannot be read, or stop.
    watcher : told of the progress.

    Returns
    -------
    Deduplication

    Raises
    ------
    NeardupError
        Of the kind that fits; see neardup.errors.

    Examples
    --------
    >>> import neardup
    >>> texts = ["the quick brown fox jumps over it", "The quick brown fox jumps over it!", "another text"]
    >>> result = neardup.dedup(texts)
    >>> result.kept["text"].to_pylist()
    ['the quick brown fox jumps over it', 'another text']
    >>> result.removed.select(["id", "kept_id", "similarity"]).to_pylist()
    [{'id': '1', 'kept_id': '0', 'similarity': 1.0}]
    """
    return run_dedup(
        Inputs(source, against, text_column, id_column, text_unit),
        method,
        Sieve(keep=keep, clusters=clusters, max_bucket=max_bucket, audit=audit),
        Running(threads=threads, batch_rows=batch_rows, on_error=on_error),
        None if output is None else OutputDirectory(output, overwrite=overwrite, resume=resume),
        out_format=out_format,
        resume=resume,
        watcher=watcher,
        with_tables=True,
    )


class Inputs(NamedTuple):
    """What is to be read, and how; as in `dedup`."""

    source: Source
    against: Source | None = None
    text_column: str | None = None
    id_column: str | None = None
    text_unit: str = "auto"


def run_dedup(
    inputs: Inputs,
    method: MinHash,
    sieve: Sieve,
    running: Running,
    folder: OutputDirectory | None,
    *,
    out_format: str | None,
    resume: bool,
    watcher: Watcher | None,
    with_tables: bool,
) -> Deduplication:
    """Do what `dedup` does; without tables `removed` and `pairs` stay empty, as they may not fit into memory."""
    stages = Stages(watcher or Nobody())
    if sieve.audit and method.similarity == "containment":
        raise SettingError(
            f"audit measures the recall of jaccard similarity: got audit={sieve.audit} with similarity='containment'. "
            "Leave audit (--audit) at 0; the run estimates its recall all the same."
        )
    with (
        tempfile.TemporaryDirectory(prefix="neardup-") if folder is None else _Folder(folder) as scratch_path,
        Scratch(Path(scratch_path)) as scratch,
    ):
        if folder is not None:
            folder.refuse_inputs_inside(_named_paths(inputs.source) + _named_paths(inputs.against))
            _check_format(out_format)
        tasks = _tasks(inputs, sieve.keep)
        identities = [task.part.identity() for task in tasks]
        resuming = prepare(scratch, identities, method, sieve, resume)
        outcome = local.run(tasks, method, sieve, running, scratch, stages, resume=resuming)
        places = Places(tasks, outcome.corpus, scratch)
        warnings = _check_ids(scratch, outcome.corpus, places, inputs.id_column)
        if folder is not None:
            shown = _write(folder, tasks, identities, method, outcome, places, out_format, stages)
        report = build_report("dedup", tasks, method, sieve, outcome, stages, warnings)
        if folder is not None:
            write.write_report(report, shown, folder.result)
        removed = write.to_table(removed_batches(outcome.removals, places) if with_tables else (), REMOVED)
        pairs = write.to_table(_pairs(outcome, places) if with_tables else (), PAIRS)
        if folder is not None:
            folder.finish()
    kept = outcome.kept
    return Deduplication(
        removed, pairs, report, None if folder is None else folder.path, lambda: write.kept_table(tasks, kept)
    )


def _write(
    folder: OutputDirectory,
    tasks: list[Task],
    identities: list[tuple[str, int, float]],
    method: MinHash,
    outcome: local.Outcome,
    places: Places,
    out_format: str | None,
    stages: Stages,
) -> list[Example]:
    """Write everything but the reports; return the removals that the page shows."""
    shown = write.pick_examples(outcome.removals)
    with stages.stage("write", outcome.corpus.num_documents) as watcher:
        write.write_removed(outcome.removals, places, folder.result / "removed.parquet")
        write.write_rejected(folder.scratch, folder.result / "rejected.jsonl")
        write.write_kept(tasks, identities, outcome, folder.result / "kept", out_format, shown, watcher)
    with stages.stage("report"):
        return write.examples(shown, places, method)


def _check_ids(scratch: Scratch, corpus: Corpus, places: Places, id_column: str | None) -> list[str]:
    """Return a warning if ids repeat; raise InputError if the user named the column."""
    repeated = find_repeated_id(scratch, corpus, places)
    if repeated is None:
        return []
    if id_column is not None:
        raise InputError(
            f"{repeated} Ids in the column {id_column!r} must differ. Name another id_column (--id-column), or none: "
            "documents are then known by their running number."
        )
    return [f"{repeated} removed.parquet tells them apart by source_file and row."]


def _check_format(out_format: str | None) -> None:
    """Raise OutputError if there is no such format, before hours of work, not after."""
    if out_format is not None and out_format not in FILE_FORMATS:
        raise OutputError(
            f"Unknown output format {out_format!r}. Known are {', '.join(FILE_FORMATS)}. Leave out_format "
            "(--out-format) unset to keep each file's own format."
        )


class _Folder:
    """Turns what goes wrong while a folder is written into an error that says what is left and what to do."""

    def __init__(self, folder: OutputDirectory) -> None:
        self.folder = folder

    def __enter__(self) -> Path:
        return self.folder.scratch

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is None:
            return
        self.folder.discard_result()
        if isinstance(error, OSError) and not isinstance(error, NeardupError):
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise OutputError(
                    f"The disk is full: {self.folder.partial} could not grow. Nothing was written to "
                    f"{self.folder.path}. Free some space and run again with resume=True (--resume), or delete "
                    f"{self.folder.partial}."
                ) from error
            raise OutputError(
                f"{error.strerror or error}: {error.filename or self.folder.partial}. Nothing was written to "
                f"{self.folder.path}. Run again with resume=True (--resume) once this is mended."
            ) from error
        if isinstance(error, NeardupError) and not (self.folder.scratch / "checkpoint.json").exists():
            self.folder.discard()


def find_pairs(
    source: Source,
    *,
    method: MinHash = MinHash(),  # noqa: B008 - frozen
    max_bucket: int = 1000,
    text_column: str | None = None,
    id_column: str | None = None,
    text_unit: str = "auto",
    threads: int | None = None,
    batch_rows: int | None = None,
    on_error: str = "reject",
    watcher: Watcher | None = None,
) -> DuplicatePairs:
    """Find all pairs of duplicates of a collection, with their exact similarity.

    Parameters
    ----------
    source, method, text_column, id_column, text_unit, threads, batch_rows, on_error, watcher : as in `dedup`.
    max_bucket : documents of one bucket that each other one is compared with at most, the earliest.

    Returns
    -------
    DuplicatePairs

    Examples
    --------
    >>> import neardup
    >>> neardup.find_pairs(["a b c d e f", "x y z", "A b c d e f."]).pairs.to_pylist()
    [{'left_id': '0', 'right_id': '2', 'similarity': 1.0, 'exact': True}]
    """
    collected: list[pa.RecordBatch] = []
    report = run_pairs(
        Inputs(source, None, text_column, id_column, text_unit),
        method,
        Sieve(max_bucket=max_bucket),
        Running(threads=threads, batch_rows=batch_rows, on_error=on_error),
        collected.extend,
        watcher=watcher,
    )
    return DuplicatePairs(write.to_table(collected, PAIRS), report)


def run_pairs(
    inputs: Inputs,
    method: MinHash,
    sieve: Sieve,
    running: Running,
    take: Callable[[Iterator[pa.RecordBatch]], None],
    *,
    watcher: Watcher | None,
) -> dict[str, Any]:
    """Do what `find_pairs` does, but hand the pairs to `take`, batch by batch; return the report."""
    stages = Stages(watcher or Nobody())
    with tempfile.TemporaryDirectory(prefix="neardup-") as directory, Scratch(Path(directory)) as scratch:
        tasks = _tasks(inputs, sieve.keep)
        outcome = local.run(tasks, method, sieve, running, scratch, stages, all_pairs=True)
        places = Places(tasks, outcome.corpus, scratch)
        with stages.stage("write"):
            take(_pairs(outcome, places))
        report = build_report("pairs", tasks, method, sieve, outcome, stages)
        report["rejected"] = write.read_rejected(scratch.directory)
    return report


def _pairs(outcome: local.Outcome, places: Places) -> Iterator[pa.RecordBatch]:
    return pair_batches(outcome.left, outcome.right, outcome.similarity, outcome.exact, places)


def compare(left: str, right: str, *, method: MinHash = MinHash()) -> Comparison:  # noqa: B008 - frozen
    """Compare two texts: how alike they are, and where.

    Parameters
    ----------
    left, right : the texts themselves.
    method : how they are compared; `containment` asks how much of `left` is in `right`.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import neardup
    >>> method = neardup.MinHash(ngram=2)
    >>> neardup.compare("a rose is a rose", "a rose is a tulip", method=method).similarity
    0.75
    """
    bands = local.bands_of(method)
    measures = comparing.measure(left, right, method, bands)
    similarity = measures.left_in_right if method.similarity == "containment" else measures.jaccard
    marked = comparing.mark(left, right, method)
    return Comparison(
        left, right, measures, similarity, method.threshold, bands, similarity >= method.threshold, *marked
    )


def plan(*, documents: float, document_bytes: float = 4000, method: MinHash = MinHash()) -> Plan:  # noqa: B008
    """Foresee a run: its bands, what it compares, the memory and disk it takes, the S-curve.

    Parameters
    ----------
    documents : how many there are.
    document_bytes : the average size of a text in bytes of UTF-8.
    method : threshold and recall, or bands and rows.

    Returns
    -------
    Plan
    """
    for name, value in (("documents", documents), ("document_bytes", document_bytes)):
        if isinstance(value, bool) or not (isinstance(value, (int, float)) and 1 <= value <= 1e15):
            raise InputError(f"{name} must be a number from 1 to 1e15: got {value!r}. Give a number such as 1e8.")
    return make_plan(int(documents), document_bytes, method.threshold, method.recall, local.bands_of(method))


def _tasks(inputs: Inputs, keep: str) -> list[Task]:
    """Return the parts to read, those of the earlier collection first."""
    rank = keep.partition(":")[2] or None
    tasks = []
    if inputs.against is not None:
        parts = _parts(inputs.against, inputs.text_unit, "against")
        columns = choose_columns(parts, inputs.text_column, inputs.id_column, None)
        tasks += [Task(part, columns, True) for part in parts]
    parts = _parts(inputs.source, inputs.text_unit, "source")
    columns = choose_columns(parts, inputs.text_column, inputs.id_column, rank)
    return tasks + [Task(part, columns, False) for part in parts]


def _parts(source: Source, text_unit: str, name: str) -> Sequence[Part]:
    paths = _named_paths(source)
    if paths:
        return list_inputs(paths, unit=text_unit)
    return [TablePart(source, name)]


def _named_paths(source: Source) -> list[str]:
    """Return the paths that a source names; none if it is texts or a table."""
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    if not isinstance(source, (list, tuple)) or not all(isinstance(one, (str, os.PathLike)) for one in source):
        return []
    named = [isinstance(one, os.PathLike) or _looks_like_path(one) for one in source]
    return [os.fspath(one) for one in source] if source and all(named) else []


def _looks_like_path(text: str) -> bool:
    """Return whether a string is a path that exists or has a known suffix, a pattern, an address, or standard input."""
    if text == "-":
        return True
    if len(text) > 4096 or "\n" in text or "\0" in text or not text.strip():
        return False
    if os.path.exists(text):
        return True
    is_pattern = "/" in text and any(mark in text for mark in "*?[")
    return " " not in text and ("://" in text or is_pattern or format_of(text)[0] is not None)
