"""Fingerprint the documents of a collection."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from neardup.api.incomplete import warn_if_incomplete
from neardup.api.inputs import Inputs, Source, for_pages, tasks_of
from neardup.api.runs import open_stages
from neardup.decide.outcome import SHORT
from neardup.documents.batch import Rejected
from neardup.documents.corpus import describe_rejected
from neardup.documents.reading import MAX_DOCUMENT_BYTES, known_total
from neardup.engines.local.document_frequencies import count_or_open
from neardup.engines.local.fingerprint import Counts, fingerprint_corpus
from neardup.engines.local.scratch import Scratch
from neardup.errors import InputError
from neardup.executor import count_threads
from neardup.features.idf import given_idf
from neardup.fingerprints.files import fingerprint_schema
from neardup.fingerprints.simhash_documents import scheme_of
from neardup.methods.registry import method_of
from neardup.methods.simhash import warn_of_short
from neardup.output.report import incomplete_by, peak_memory
from neardup.progress import Progress, Stages
from neardup.settings.methods import SimHash
from neardup.settings.presets import simhash_named
from neardup.settings.running import Running
from neardup.version import __version__

Take = Callable[[Iterator[pa.RecordBatch], pa.Schema], None]


def fingerprint(
    source: Source,
    *,
    method: SimHash | str = "simhash",
    text_column: str | None = None,
    id_column: str | None = None,
    text_unit: str = "auto",
    in_format: str | None = None,
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    threads: int | None = None,
    on_error: str = "reject",
    progress: bool | Progress = False,
) -> pa.Table:
    """Fingerprint every document of a collection.

    Parameters
    ----------
    source, text_column, id_column, text_unit, in_format, max_document_bytes : as in `dedup`.
    threads, on_error, progress : as in `dedup`.
    method : how texts become fingerprints.

    Returns
    -------
    Arrow table of `id`, a string, and `fingerprint`, fixed-size binary, the most significant byte first; null for a
    document without features. The scheme lies in the metadata of the schema.

    Examples
    --------
    >>> import neardup
    >>> table = neardup.fingerprint(["foo bar"], method=neardup.SimHash(scheme="mfonda"))
    >>> table["fingerprint"][0].as_py().hex()
    'd8dbe7186bad3db3'
    """
    tables: list[pa.Table] = []
    report = run_fingerprint(
        Inputs(source, None, text_column, id_column, text_unit, in_format, max_document_bytes),
        simhash_named(method),
        Running(threads=threads, on_error=on_error),
        lambda batches, schema: tables.append(pa.Table.from_batches(batches, schema)),
        progress=progress,
    )
    warn_if_incomplete(report, on_error)
    return tables[0]


def run_fingerprint(
    inputs: Inputs,
    method: SimHash,
    running: Running,
    take: Take,
    *,
    columns: tuple[str, ...] = ("fingerprint",),
    progress: bool | Progress,
) -> dict[str, Any]:
    """Do what `fingerprint` does, but hand the rows to `take`, batch by batch; return the report.

    columns : beside the id, of `fingerprint` in bytes and `hex` in digits.
    """
    counts = Counts()
    tasks = tasks_of(inputs, "first")
    method = for_pages(method, tasks)
    threads, total = count_threads(running.threads), known_total(tasks)

    def reject(row: Rejected) -> None:
        if running.on_error == "stop":
            raise InputError(f"{describe_rejected(row)} The run stops at the first such document, as asked.")
        counts.rejected.append(row)

    with (
        open_stages(progress) as stages,
        tempfile.TemporaryDirectory(prefix="neardup-") as directory,
        Scratch(Path(directory)) as scratch,
    ):
        counted = method_of(method).counted
        if counted is None:
            idf = given_idf(method)
        else:
            with stages.stage("count", total) as counting:
                idf = count_or_open(counted, tasks, scratch, threads, counting)
        scheme = scheme_of(method, getattr(idf, "version", None))
        schema = fingerprint_schema(scheme, columns)
        with stages.stage("fingerprint", total) as reading:
            take(fingerprint_corpus(tasks, method, idf, schema, threads, SHORT, counts, reading, reject), schema)
    return _report(scheme, counts, stages)


def _report(scheme: dict[str, Any], counts: Counts, stages: Stages) -> dict[str, Any]:
    seconds = sum(stages.seconds.values())
    return {
        "version": __version__,
        "command": "fingerprint",
        "scheme": scheme,
        "counts": {
            "read": counts.read,
            "fingerprints": counts.read - counts.without_features,
            "without_features": counts.without_features,
            "short": counts.short,
            "rejected": sum(not row.rest_of_file for row in counts.rejected),
        },
        "incomplete": incomplete_by(counts.rejected),
        "timings": [{"stage": name, "seconds": round(value, 4)} for name, value in stages.seconds.items()],
        "seconds": round(seconds, 4),
        "compile_seconds": round(stages.compile_seconds, 4),
        "bytes": counts.text_bytes,
        "megabytes_per_second": round(counts.text_bytes / 1e6 / max(seconds, 1e-9), 1),
        "documents_per_second": round(counts.read / max(seconds, 1e-9)),
        "peak_memory_bytes": peak_memory(),
        "warnings": warn_of_short(counts.short),
        "rejected": [row._asdict() for row in counts.rejected],
    }
