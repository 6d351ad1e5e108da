"""Cluster similar documents: their number, sizes, names and common parts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.decide.clusters import Clusters, cluster_documents
from neardup.engines.base import Decided
from neardup.engines.capabilities import INDEX
from neardup.engines.choose import open_engine
from neardup.output import write
from neardup.output.cluster_names import MAX_NAMED, distinct_names, name_clusters
from neardup.output.clusters import cluster_batches, cluster_summary_batches, describe_clusters, first_rows
from neardup.report.clusters_html import MAX_SHOWN, links_to_files, render_clusters
from neardup.report.contents import build_report, warn_if_incomplete
from neardup.report.stages import open_stages
from neardup.report.wording import visible
from neardup.results import Clustering
from neardup.runs.directory import OutputDirectory
from neardup.runs.run import CacheOptions, Source, Unpack, run_of, spelled_out
from neardup.runs.scratch import workspace
from neardup.schemas import cluster_summary_schema, clusters_schema
from neardup.settings.methods import MethodSettings, method_named
from neardup.settings.run import Keep, Language, Linkage, OutputSettings, SelectionSettings


@spelled_out(CacheOptions, is_reported=True)
def cluster(
    source: Source,
    *,
    against: Source | None = None,
    method: MethodSettings | str = "minhash",
    threshold: float | None = None,
    max_distance: int | None = None,
    output: str | os.PathLike[str] | None = None,
    keep: Keep = "first",
    within: str | None = None,
    lang: Language = "en",
    linkage: Linkage = "sieve",
    max_bucket_size: int | None = None,
    audit_sample: int = 0,
    tables: bool = True,
    overwrite: bool = False,
    resume: bool = False,
    engine: Literal["local", "spark"] = "local",
    master: str | None = None,
    **options: Unpack[CacheOptions],
) -> Clustering:
    """Group the similar documents of a collection into clusters, with their sizes, names and common parts.

    Parameters
    ----------
    source, method, threshold, max_distance, keep, within, lang, max_bucket_size, audit_sample : as in `dedup`.
    overwrite, resume, engine, master : as in `dedup`.
    against : known documents, each the first of a cluster. A document joins the most similar of all first documents,
        known or new. Known documents are not compared with each other, and have no row in the result. Default: None.
    output : a folder to write clusters.parquet, cluster_summary.parquet, rejected.jsonl, report.json and report.html
        to; or an address, as in `dedup`. Default: None, which only returns the result.
    linkage : sieve, where a cluster is a document and those that `dedup` would remove because of it; or connected, for
        chains of similar documents.
    tables : fill the tables of the result. Use False with `output` if they do not fit into memory; accessing them then
        raises SettingError.
    text_column, id_column, text_unit, in_format, max_document_bytes : as in `dedup`.
    threads, batch_rows, cache_bytes, on_error, max_unreadable, progress : as in `dedup`.

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
    if against is not None:
        from neardup.api.index_sources import index_in  # loads addresses of stores

        if index_in(against) is not None:
            INDEX.refuse("cluster", {})
    output_settings = OutputSettings(lang=lang)
    selection = SelectionSettings(
        keep=keep, within=within, linkage=linkage, max_bucket_size=max_bucket_size, audit_sample=audit_sample
    )
    selection.refuse_copies("cluster")
    chosen = method_named(method, threshold, max_distance)
    table = "clusters.parquet"
    wanted = run_of(
        source,
        options,
        against=against,
        method=chosen,
        selection=selection,
        resume=resume,
        table=table,
        outputs=() if output is None else (output,),
    )
    with open_engine(engine, master, "cluster", wanted) as performer:
        folder = None if output is None else OutputDirectory(output, overwrite=overwrite, resume=resume)
        with open_stages(wanted.progress) as stages, workspace(folder) as scratch:
            run = performer.decide(folder, scratch, stages)
            removals = run.outcome.removals
            clusters = cluster_documents(run.outcome.corpus.num_documents, removals.documents, removals.kept)
            with stages.stage("name"):
                names = _names(run, clusters)
            if folder is not None:
                with stages.stage("write"):
                    _write(folder, run, clusters, names)
            of_run = run.tasks, run.method, selection, run.outcome, stages, run.warnings
            report = build_report("cluster", *of_run, options=wanted.given)
            rows = first_rows(clusters, names, run.locations, MAX_SHOWN)
            report = describe_clusters(report, clusters, rows)
            report["lang"] = output_settings.lang
            performer.complete(report)
            if folder is not None:
                links = links_to_files(run.tasks, rows, folder.path)
                write.write_report(report, render_clusters(report, rows, links), folder.result)
            found = [pa.Table.from_batches(*table) if tables else None for table in _tables(run, clusters, names)]
            if folder is not None:
                folder.finish()
    warn_if_incomplete(report, wanted.settings.on_error)
    return Clustering(found[0], found[1], report, None if folder is None else folder.path)


def _names(run: Decided, clusters: Clusters) -> list[str]:
    def read(documents: npt.NDArray[np.uint32]) -> Iterator[tuple[int, str]]:
        return write.read_texts(run.tasks, run.outcome.corpus.part_ends, documents)

    firsts = clusters.members[clusters.offsets[: min(clusters.num_clusters, MAX_NAMED)]].astype(np.uint32)
    ids = run.locations.ids(firsts).to_pylist()
    if run.method.settings.vector_length is not None:
        return list(map(visible, ids))
    return distinct_names(name_clusters(clusters, run.method.settings.shingling, read), ids)


def _write(folder: OutputDirectory, run: Decided, clusters: Clusters, names: list[str]) -> None:
    """Write everything but the reports."""
    documents, named = _tables(run, clusters, names)
    write.write_parquet(*documents, folder.result / "clusters.parquet")
    write.write_parquet(*named, folder.result / "cluster_summary.parquet")
    write.write_rejected(folder.scratch, folder.result / "rejected.jsonl")


def _tables(run: Decided, clusters: Clusters, names: list[str]) -> list[tuple[Iterator[pa.RecordBatch], pa.Schema]]:
    """Return the batches and the schema of both tables."""
    measures = run.method.measures
    documents = cluster_batches(clusters, run.outcome.removals, run.locations, measures)
    named = cluster_summary_batches(clusters, names, run.locations)
    return [(documents, clusters_schema(measures)), (named, cluster_summary_schema())]
