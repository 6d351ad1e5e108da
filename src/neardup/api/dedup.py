"""Remove near-duplicates: the call that does the main job."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import asdict, replace

from neardup.api.removal import needs_of, removal_of
from neardup.decide.rules import rule_of
from neardup.engines.base import Engine
from neardup.engines.capabilities import SPARK
from neardup.engines.choose import is_spark, open_engine
from neardup.output.job import open_job
from neardup.results import Deduplication
from neardup.runs.refusals import refuse_together
from neardup.runs.run import (
    Run,
    SelectionOptions,
    Source,
    Unpack,
    run_of,
    selection_of,
    spelled_out,
)
from neardup.settings.constraints import Options
from neardup.settings.methods import MethodSettings, method_named
from neardup.settings.run import (
    GroupSettings,
    Language,
    OutputKind,
    OutputSettings,
)


@spelled_out(SelectionOptions, is_reported=True)
def dedup(
    source: Source,
    *,
    method: MethodSettings | str | None = None,
    threshold: float | None = None,
    max_distance: int | None = None,
    against: Source | None = None,
    update: bool = False,
    write: OutputKind = "kept",
    passages: int | None = None,
    count_by: str | None = None,
    sources: str | None = None,
    dates: str | None = None,
    group_by: str | None = None,
    group_share: float = 0.5,
    lang: Language = "en",
    tables: bool = True,
    rethreshold: bool = False,
    **options: Unpack[SelectionOptions],
) -> Deduplication:
    """Remove the near-duplicates of a collection, keep one of each, and show why.

    Parameters
    ----------
    source : a path, a glob, an address (`s3://...`), or a list of them; a list of texts; an object
        with Arrow's PyCapsule interface (pyarrow, polars, pandas, duckdb, Hugging Face Dataset); or
        a DatasetDict, whose splits are inputs. A str is a path. A list of str is a list of paths if
        each of them exists, has a known suffix, or is a pattern or an address.
    method : settings, such as MinHash(boost_rare=True), or their name: minhash, simhash, structure,
        content, page. Default: minhash, or the method of the index passed as `against`.
    threshold, max_distance : the minimum similarity, or the maximum number of differing bits
        (SimHash), of duplicates, in place of the limit of the named method.
    against : an earlier collection whose documents are always kept, read as `source` is; by its
        default text column if it has none of the named ones. Or an Index, or its address: documents
        are decided one after the other, as by `Index.add_if_new`; `pairs` contains the pairs that
        removed a document.
    update : add the documents, which need ids, to the index of `against` once the output is
        complete. A repeated run writes the same output.
    output : the folder to write, or its address on remote storage, such as s3://bucket/out, with
        rejected.jsonl, report.json and report.html. It appears once it is complete. It gets kept/
        and removed.parquet. Default: the result is only returned.
    write : the output besides removed.parquet: the kept documents in the format of the input
        (kept), true or false for each input row (mask), the kept ids (ids), all documents with the
        columns duplicate_of, similarity, cluster and duplicates (annotated), or nothing (removed).
    passages : the fewest characters of a passage: passages that kept documents repeat are then cut,
        as by `remove_passages`, and passages.parquet and passages.html are written.
    keep : the document of a cluster to keep: by position, length in UTF-8 bytes, a column of
        numbers or dates, or the order of the inputs (source). Later ones, after commas, decide
        ties. longest:3 keeps three of a cluster; none keeps no document that has a near-duplicate.
        "none" implies linkage="connected".
    within : compare only documents with the same value in this column, such as a language or a
        site.
    count_by : count removed documents by the values of this column, such as a source. Default: the
        column of within.
    sources : add the columns sources and num_sources to kept rows: the values of this column
        (input: the names of the inputs) in the row and in the rows removed for it.
    dates : add the columns first_seen and last_seen to kept rows: the least and the greatest value
        of this column, of dates or numbers, in the row and in the rows removed for it.
    group_by : keep or remove all documents with the same value in this column together, such as the
        files of a repository; folder:1 is the first folder below the input. Writes groups.parquet.
    group_share : remove a group if at least this share of its documents are near-duplicates of
        documents in kept groups. Groups come in the order of `keep`, by their first document.
    lang : the language of output: English, or simplified Chinese, the default of commands in a
        Chinese locale.
    linkage : remove each document that is similar to a kept one (sieve), or all but one of each
        chain of similar documents (connected).
    max_bucket_size : the maximum number of documents in a bucket; later ones are left out, which
        keeps the work linear on boilerplate. Default: 64 in a band (1,000 in a search for all
        pairs), 1,000 with one fingerprint, 10,000 with containment.
    recall_sample : compare this number of sampled documents exactly with all others, to measure the
        recall.
    text_column : the column of the text, or several, which are joined by line ends. Default: the
        first of text, content, body, raw_content and html. A dot leads into a struct, as in
        doc.body; brackets lead into a list, as in messages[].content, whose values are joined by
        line ends.
    roles : of a text of turns, such as messages[].content, the roles to compare, separated by
        commas: values of the field role or from. Default: all.
    text_unit : a document of a text file: a line, the whole file, or a line if the input is a
        single file (auto).
    in_format : the format of all inputs. Default: detected from the suffix, or from the first bytes
        of standard input.
    quote : the quotes of CSV and TSV: double, which may enclose delimiters and line ends, or none,
        where each line is a row.
    max_document_bytes : longer documents are rejected.
    tables : fill the tables of the result. With False and `output` they do not take memory;
        accessing them raises SettingError.
    rethreshold : keep all pairs, also of removed documents, in memory, for `result.rethreshold` at
        stricter limits. Not with an index, linkage="connected", keep="none", passages, group_by or
        containment.
    overwrite : replace an existing output once the new one is complete. A folder without
        report.json, and remote storage, are not replaced.
    scratch : the folder for temporary files; use a fast local disk. Default: next to the output;
        for remote output the temporary folder of the system. Resuming an interrupted run needs the
        same folder.
    resume : continue an interrupted run. It needs the same inputs, settings and output.
    threads : worker threads. Default: one per available processor.
    batch_rows : documents per batch, which do not change the result. Default: chosen from their
        size.
    cache_bytes : bytes of memory for caching input documents; inputs that do not fit are read again
        when needed. Default: a quarter of the memory.
    on_error : documents that cannot be read: reject lists them, and warns with IncompleteWarning
        (with `update`, raises InputError) if a file cannot be read to its end; skip only lists
        them; stop ends the run at the first.
    max_unreadable : the share of unreadable rows above which a file counts as not read to its end.
    progress : True for progress bars on stderr (plain lines if it is no terminal), or an object
        with the methods of neardup.Progress.
    engine : run on this machine, or with the same result on Spark (pip install 'neardup[spark]').
        docs/what-works-where.md lists the options of each.
    master : the cluster, such as spark://host:7077. Default: the active session, the cluster of
        spark-submit, or this machine.
    id_column : the column of the id, or several, such as ["repo", "path"], which are joined by
        colons, with percent signs and colons of their values as %25 and %3A. Default: the first of
        id, doc_id, document_id, _id and url.

    Returns
    -------
    Deduplication

    Raises
    ------
    SettingError
        If a value is outside its limits, or does not apply to the method.
    InputError, ColumnError
        If an input cannot be read, or has no such column.
    OutputError
        If the output exists, or cannot be written.
    MissingExtraError
        If remote storage needs a package that is not installed.
    ResumeError
        If the interrupted run had other inputs or settings.

    Examples
    --------
    >>> import neardup
    >>> fox = "the quick brown fox jumps over it"
    >>> texts = [fox, fox.capitalize() + "!", "another text"]
    >>> result = neardup.dedup(texts)
    >>> result.kept["text"].to_pylist()
    ['the quick brown fox jumps over it', 'another text']
    >>> result.removed.select(["id", "kept_id", "similarity"]).to_pylist()
    [{'id': '1', 'kept_id': '0', 'similarity': 1.0}]
    """
    selection = selection_of(options)
    groups = GroupSettings(group_by=group_by, group_share=group_share)
    settings = OutputSettings(
        write=write, passages=passages, count_by=count_by, sources=sources, dates=dates, lang=lang
    )
    groups.refuse(selection, settings)
    refuse_together(
        "dedup",
        **asdict(selection) | asdict(groups) | asdict(settings),
        output=options.get("output"),
        rethreshold=rethreshold,
    )
    run = run_of(
        "dedup",
        source,
        options,
        against=against,
        selection=selection,
        rule=rule_of(selection, groups, keeps_pairs=rethreshold),
        count_by=group_by or count_by,
        **needs_of(settings, options.get("output")),
    )
    limits = {"threshold": threshold, "max_distance": max_distance}
    with (
        _open_engine(run, method, limits, settings, update=update) as performer,
        open_job(performer.run, performer.paths()) as job,
        removal_of(performer, job, settings, tables=tables) as removal,
    ):
        return job.finish(removal, performer)


def _open_engine(
    run: Run,
    method: MethodSettings | str | None,
    limits: Options,
    settings: OutputSettings,
    *,
    update: bool,
) -> AbstractContextManager[Engine]:
    """Open the index that `against` is, otherwise the named engine, for the named method."""
    index = None
    if run.inputs.against is not None:
        from neardup.api.index_sources import index_in  # loads addresses of stores

        index = index_in(run.inputs.against)
    if index is None:
        named = method_named("minhash" if method is None else method, **limits)
        if named.vector_length is not None:
            passages = run.options.get("passages")
            refuse_together("vectors", passages=passages, method=type(named).__name__)
        return open_engine(replace(run, method=named))
    # Refused here: the engine of an index cannot refuse it.
    if is_spark(run):
        SPARK.refuse("dedup", run.options | {"against": "an index"})
    from neardup.api import against_index  # loads the stores

    # The engine reads the index itself: it is no collection of the run.
    run = replace(run, inputs=run.inputs._replace(against=None))
    return against_index.open_engine(
        index,
        run,
        method,
        limits,
        update=update,
        sources=settings.sources,
        dates=settings.dates,
    )
