"""Cluster similar documents: their number, sizes, names and common parts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.api.incomplete import warn_if_incomplete
from neardup.api.inputs import Inputs, Source
from neardup.api.runs import Run, decide, open_cache, open_stages, workspace
from neardup.decide.clusters import Clusters, cluster_documents
from neardup.documents.reading import MAX_DOCUMENT_BYTES
from neardup.output import write
from neardup.output.cluster_names import distinct_names, name_clusters
from neardup.output.clusters import cluster_batches, cluster_summary_batches, describe_clusters, first_rows
from neardup.output.clusters_html import MAX_SHOWN, links_to_files, render_clusters
from neardup.output.directory import OutputDirectory
from neardup.output.report import build_report
from neardup.progress import Progress
from neardup.results import Clustering
from neardup.schemas import cluster_summary_schema, clusters_schema
from neardup.settings.methods import MethodSettings
from neardup.settings.presets import method_named
from neardup.settings.run import OutputSettings, RunSettings, SelectionSettings


def cluster(
    source: Source,
    *,
    against: Source | None = None,
    method: MethodSettings | str = "minhash",
    threshold: float | None = None,
    max_distance: int | None = None,
    output: str | os.PathLike[str] | None = None,
    keep: str = "first",
    within: str | None = None,
    lang: str = "en",
    linkage: str = "sieve",
    max_bucket_size: int | None = None,
    audit_sample: int = 0,
    text_column: str | Sequence[str] | None = None,
    id_column: str | None = None,
    text_unit: str = "auto",
    in_format: str | None = None,
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    tables: bool = True,
    overwrite: bool = False,
    resume: bool = False,
    threads: int | None = None,
    batch_rows: int | None = None,
    cache_bytes: int | None = None,
    on_error: str = "reject",
    progress: bool | Progress = False,
) -> Clustering:
    """Group the similar documents of a collection into clusters, with their sizes, names and common parts.

    Parameters
    ----------
    source, method, threshold, max_distance, keep, within, lang, max_bucket_size, audit_sample : as in `dedup`.
    text_column, id_column, text_unit, in_format, max_document_bytes : as in `dedup`.
    overwrite, resume, threads, batch_rows, cache_bytes, on_error, progress : as in `dedup`.
    against : known documents, each the first of a cluster. A document joins the most similar of all first documents,
        known or new. Known documents are not compared with each other, and have no row in the result. Default: None.
    output : a folder to write clusters.parquet, cluster_summary.parquet, rejected.jsonl, report.json and report.html
        to; or an address, as in `dedup`. Default: None, which only returns the result.
    linkage : sieve, where a cluster is a document and those that `dedup` would remove because of it; or connected, for
        chains of similar documents.
    tables : fill the tables of the result. Use False with `output` if they do not fit into memory; accessing them then
        raises SettingError.

    Returns
    -------
    Clustering

    Raises
    ------
    SettingError, InputError, ColumnError, OutputError, ResumeError
        As in `dedup`.

    Examples
    --------
    >>> import neardup
    >>> texts = ["the quick brown fox jumps over it", "another text", "The quick brown fox jumps over it!"]
    >>> result = neardup.cluster(texts)
    >>> result.documents["cluster"].to_pylist()
    [0, 1, 0]
    >>> result.clusters.select(["size", "name", "example_ids"]).to_pylist()
    [{'size': 2, 'name': 'the quick brown fox jumps over it', 'example_ids': ['2']}]
    """
    method, output_settings = method_named(method, threshold, max_distance), OutputSettings(lang=lang)
    selection = SelectionSettings(
        keep=keep, within=within, linkage=linkage, max_bucket_size=max_bucket_size, audit_sample=audit_sample
    )
    run_settings = RunSettings(threads=threads, batch_rows=batch_rows, cache_bytes=cache_bytes, on_error=on_error)
    inputs = Inputs(source, against, text_column, id_column, text_unit, in_format, max_document_bytes)
    folder = None if output is None else OutputDirectory(output, overwrite=overwrite, resume=resume)
    cached = open_cache(run_settings, with_payload=False)
    with open_stages(progress) as stages, workspace(folder) as scratch, cached as cache:
        run = decide(
            inputs, method, selection, run_settings, folder, scratch, stages, cache, resume=resume,
            table="clusters.parquet",
        )  # fmt: skip
        removals = run.outcome.removals
        clusters = cluster_documents(run.outcome.corpus.num_documents, removals.documents, removals.kept)
        with stages.stage("name"):
            names = _names(run, clusters)
        if folder is not None:
            with stages.stage("write"):
                _write(folder, run, clusters, names)
        report = build_report("cluster", run.tasks, run.method, selection, run.outcome, stages, run.warnings)
        rows = first_rows(clusters, names, run.locations, MAX_SHOWN)
        report = describe_clusters(report, clusters, rows)
        report["lang"] = output_settings.lang
        if folder is not None:
            links = links_to_files(run.tasks, rows, folder.path)
            write.write_report(report, render_clusters(report, rows, links), folder.result)
        found = [write.to_table(*table) if tables else None for table in _tables(run, clusters, names)]
        if folder is not None:
            folder.finish()
    warn_if_incomplete(report, on_error)
    return Clustering(found[0], found[1], report, None if folder is None else folder.path)


def _names(run: Run, clusters: Clusters) -> list[str]:
    def read(documents: npt.NDArray[np.uint32]) -> Iterator[tuple[int, str]]:
        return write.read_texts(run.tasks, run.identities, run.outcome.corpus.part_ends, documents)

    names = name_clusters(clusters, run.method.settings, read)
    firsts = clusters.members[clusters.offsets[: len(names)]].astype(np.uint32)
    return distinct_names(names, run.locations.ids(firsts).to_pylist())


def _write(folder: OutputDirectory, run: Run, clusters: Clusters, names: list[str]) -> None:
    """Write everything but the reports."""
    documents, named = _tables(run, clusters, names)
    write.write_parquet(*documents, folder.result / "clusters.parquet")
    write.write_parquet(*named, folder.result / "cluster_summary.parquet")
    write.write_rejected(folder.scratch, folder.result / "rejected.jsonl")


def _tables(run: Run, clusters: Clusters, names: list[str]) -> list[tuple[Iterator[pa.RecordBatch], pa.Schema]]:
    """Return the batches and the schema of both tables."""
    measures = run.method.measures
    documents = cluster_batches(clusters, run.outcome.removals, run.locations, measures)
    return [
        (documents, clusters_schema(measures)),
        (cluster_summary_batches(clusters, names, run.locations), cluster_summary_schema()),
    ]
