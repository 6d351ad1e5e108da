"""Cluster similar documents: their number, sizes, names and common parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from neardup.decide.clusters import Clusters, cluster_documents
from neardup.decide.rules import rule_of
from neardup.engines.base import Decided, findings_of
from neardup.engines.capabilities import INDEX
from neardup.engines.choose import open_engine
from neardup.files import JsonObject, Output
from neardup.output import write
from neardup.output.cluster_names import MAX_NAMED, distinct_names, name_clusters
from neardup.output.clusters import cluster_batches, cluster_summary_batches, first_rows
from neardup.output.job import Job, Product, Table, open_job
from neardup.report.clusters_html import MAX_SHOWN, links_to_files, render_clusters
from neardup.report.contents import cluster_report
from neardup.report.record import ClusterReport
from neardup.report.wording import visible
from neardup.results import Clustering
from neardup.runs.run import SelectionOptions, Source, Unpack, run_of, selection_of, spelled_out
from neardup.schemas import cluster_summary_schema, clusters_schema
from neardup.settings.methods import MethodSettings, method_named
from neardup.settings.run import Language, OutputSettings


@spelled_out(SelectionOptions, is_reported=True)
def cluster(
    source: Source,
    *,
    against: Source | None = None,
    method: MethodSettings | str = "minhash",
    threshold: float | None = None,
    max_distance: int | None = None,
    lang: Language = "en",
    tables: bool = True,
    **options: Unpack[SelectionOptions],
) -> Clustering:
    """Group the similar documents of a collection into clusters, with their sizes, names and common
    parts.

    Parameters
    ----------
    source, method, threshold, max_distance, keep, within, lang, max_bucket_size, recall_sample : as
        in `dedup`.
    tables, overwrite, scratch, resume, engine, master : as in `dedup`.
    against : known documents, each the first of a cluster, which have no row in the result. A
        document joins the most similar of all first documents, known or new.
    output : a folder for clusters.parquet, cluster_summary.parquet and the report.
    linkage : sieve, where a cluster is a document and the documents that `dedup` would remove
        because of it; or connected, for chains of similar documents.
    text_column, roles, id_column, text_unit, in_format, quote, max_document_bytes : as in `dedup`.
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
    >>> fox = "the quick brown fox jumps over it"
    >>> texts = [fox, "another text", fox.capitalize() + "!"]
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
    selection = selection_of(options)
    selection.refuse_copies("cluster")
    run = run_of(
        "cluster",
        source,
        options,
        against=against,
        method=method_named(method, threshold, max_distance),
        selection=selection,
        rule=rule_of(selection),
    )
    with (
        open_engine(run) as performer,
        open_job(run, performer.paths()) as job,
    ):
        decided = performer.decide(job)
        return job.finish(_Clusters.of(job, decided, lang=output_settings.lang, tables=tables))


@dataclass
class _Clusters(Product[Clustering]):
    """The product of `cluster`.

    names : the name of each of the largest clusters. fills_tables : whether the result has its
    tables in memory.
    """

    job: Job
    decided: Decided
    clusters: Clusters
    names: list[str]
    lang: Language
    fills_tables: bool

    @classmethod
    def of(cls, job: Job, decided: Decided, *, lang: Language, tables: bool) -> _Clusters:
        """Return the clusters of the documents that a run decided about."""
        removals = decided.outcome.removals
        clusters = cluster_documents(
            decided.outcome.corpus.num_documents, removals.documents, removals.kept
        )
        with job.stages.stage("name"):
            names = _names(decided, clusters)
        return cls(
            job=job,
            decided=decided,
            clusters=clusters,
            names=names,
            lang=lang,
            fills_tables=tables,
        )

    def tables(self) -> Sequence[Table]:
        """Return clusters.parquet and cluster_summary.parquet."""
        decided = self.decided
        measures = decided.method.measures
        documents = partial(
            cluster_batches, self.clusters, decided.outcome.removals, decided.locations, measures
        )
        summary = partial(cluster_summary_batches, self.clusters, self.names, decided.locations)
        return [
            Table(name="clusters", schema=clusters_schema(measures), batches=documents),
            Table(name="cluster_summary", schema=cluster_summary_schema(), batches=summary),
        ]

    def report(self) -> ClusterReport:
        """Return the report, with the largest clusters."""
        found = findings_of(self.decided, self.job.run, self.job.stages)
        return cluster_report(found, self.clusters, self._largest(), self.lang)

    def _largest(self) -> list[JsonObject]:
        """Return the rows of the largest clusters, for the report and its page."""
        return first_rows(self.clusters, self.names, self.decided.locations, MAX_SHOWN)

    def pages(self, report: JsonObject, output: Output) -> dict[str, str]:
        """Return the page of the largest clusters."""
        rows = self._largest()
        links = links_to_files(self.decided.tasks, rows, output)
        return {"report.html": render_clusters(report, rows, links)}

    def result(self, report: JsonObject, output: Output) -> Clustering:
        """Return the result."""
        if not self.fills_tables:
            return Clustering(None, None, report, output)
        documents, summary = self.tables()
        return Clustering(documents.read(), summary.read(), report, output)


def _names(decided: Decided, clusters: Clusters) -> list[str]:
    """Return the names of the largest clusters: common parts, or ids if documents are vectors."""
    num_named = min(clusters.num_clusters, MAX_NAMED)
    first_members = clusters.members[clusters.offsets[:num_named]].astype(np.uint32)
    ids = decided.locations.ids(first_members).to_pylist()
    settings = decided.method.settings
    if settings.vector_length is not None:
        return list(map(visible, ids))
    read = partial(write.read_texts, decided.tasks, decided.outcome.corpus.part_ends)
    return distinct_names(name_clusters(clusters, settings.shingling, read), ids)
