"""Near-duplicates of Spark DataFrames, on the cluster: the same decisions as on one machine.

Row for row the result of `neardup.dedup` on the same documents. `pip install neardup[spark]`.
"""

from __future__ import annotations

from neardup.engines.choose import require_spark
from neardup.settings.constraints import ColumnNames, check_columns, check_text

require_spark()

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from neardup.api.sign import counted_settings
from neardup.arrays import arrow_of
from neardup.decide.priority import rank_columns
from neardup.decide.rules import rule_of
from neardup.engines.capabilities import FRAMES
from neardup.engines.spark.found import decide_rows
from neardup.engines.spark.pipeline import BROADCAST_ROWS, Outcome, Run, Search
from neardup.engines.spark.session import first_line, translated
from neardup.engines.spark.source import Frame
from neardup.errors import ColumnError, InputError, SettingError
from neardup.features.idf import IdfTable
from neardup.methods.base import Method
from neardup.methods.registry import method_of
from neardup.methods.sketcher import Sketcher
from neardup.methods.stages import Read
from neardup.progress import Stages
from neardup.runs.columns import listed
from neardup.runs.refusals import refuse_together
from neardup.settings.methods import (
    DocumentSettings,
    MethodSettings,
    MinHash,
    SimHash,
    method_named,
)
from neardup.settings.run import Keep, Linkage, OutputSettings, SelectionSettings, split_copies

__all__ = [
    "Clustering",
    "Deduplication",
    "cluster",
    "dedup",
    "document_frequencies",
    "find_pairs",
    "sign",
]

# Types of columns, by the names of Spark.
_TEXTS = ("string", "char", "varchar", "binary")
_DATES = ("date", "timestamp", "timestamp_ntz")
_WHOLE = ("byte", "short", "integer", "long")
_NUMBERS = (*_WHOLE, "float", "double", "decimal")


@dataclass(frozen=True)
class Deduplication:
    """The result of `dedup`.

    Attributes
    ----------
    kept : the rows of the source that are kept, with all their columns.
    removed : id, kept_id, kept_role (source or against), and the measures of the method, such as
        similarity. Spark stores it until `unpersist`.
    rounds : the number of rounds of the sieve on the cluster; 0 if the driver decided.
    """

    kept: DataFrame
    removed: DataFrame
    rounds: int

    def unpersist(self) -> None:
        """Drop the stored rows of `removed`. Spark computes them again if they are used, but not
        after `rounds` without a checkpoint folder (`SparkContext.setCheckpointDir`).
        """
        self.removed.unpersist()


@dataclass(frozen=True)
class Clustering:
    """The result of `cluster`.

    Attributes
    ----------
    documents : id, size (of its cluster), is_first, first_id (the first document of the cluster)
        and the measures of the document and the first one, such as similarity.
    clusters : first_id and size of each cluster of two documents or more, the largest first.
    rounds : the number of rounds of the sieve on the cluster; 0 if the driver decided.
    """

    documents: DataFrame
    clusters: DataFrame
    rounds: int
    _removed: DataFrame = field(repr=False)

    def unpersist(self) -> None:
        """Drop the removed documents, which Spark stores; see `Deduplication.unpersist`."""
        self._removed.unpersist()


def dedup(
    df: DataFrame,
    *,
    text_column: str = "text",
    id_column: ColumnNames = None,
    method: MethodSettings | str = "minhash",
    threshold: float | None = None,
    max_distance: int | None = None,
    keep: Keep = "first",
    within: str | None = None,
    against: DataFrame | None = None,
    linkage: Linkage = "sieve",
    max_bucket_size: int | None = None,
    sources: str | None = None,
    dates: str | None = None,
) -> Deduplication:
    """Remove the near-duplicates of a DataFrame.

    Parameters
    ----------
    df : the documents. Workers read it twice, or three times if rare features count more: cache it
        if it is expensive.
    text_column : the column of texts or pages.
    id_column : the column of ids, which must differ; documents are in their order. Or several
        columns, of strings or whole numbers, which are joined as in `neardup.dedup`. Default: None,
        for a DataFrame that is read from Parquet files; documents are then in the order of file and
        row.
    method, threshold, max_distance, keep, within, linkage, max_bucket_size : as in `neardup.dedup`.
    against : an earlier collection with the same columns. Its documents are never removed, and come
        before all others.
    sources, dates : as in `neardup.dedup`; columns of strings or numbers, and of numbers or dates.

    Returns
    -------
    Deduplication

    Raises
    ------
    ColumnError
        If a column is missing.
    InputError
        If ids repeat, or rows have none.
    SettingError
        If a value is outside its limits.
    ClusterError
        If the run failed on the cluster.
    """
    selection = SelectionSettings(
        keep=keep, within=within, linkage=linkage, max_bucket_size=max_bucket_size
    )
    added = _added_columns(df, sources, dates)
    chosen = _method(method_named(method, threshold, max_distance), text_column)
    return _dedup(df, text_column, id_column, chosen, selection, against=against, added=added)


def _dedup(
    df: DataFrame,
    text_column: str,
    id_column: ColumnNames,
    chosen: Method,
    selection: SelectionSettings,
    *,
    against: DataFrame | None = None,
    added: Mapping[str, Column] = MappingProxyType({}),
) -> Deduplication:
    """Remove the near-duplicates of a DataFrame by a method. added : see `_added_columns`."""
    FRAMES.refuse("dedup", {"keep": split_copies(selection.keep)[0]})
    if not chosen.keeps_groups_apart:
        refuse_together("fingerprints", within=selection.within)
    decided = _run(df, text_column, id_column, chosen, selection, against=against)
    removed = decided.with_ids(decided.outcome.removed)
    is_few = decided.store(removed) < BROADCAST_ROWS
    kept = _kept(df, id_column, removed, is_few, added)
    return Deduplication(kept, removed, decided.outcome.rounds)


def find_pairs(
    df: DataFrame,
    *,
    text_column: str = "text",
    id_column: ColumnNames = None,
    method: MethodSettings | str = "minhash",
    threshold: float | None = None,
    max_distance: int | None = None,
    max_bucket_size: int | None = None,
) -> DataFrame:
    """Find all pairs of duplicates of a DataFrame.

    Parameters
    ----------
    df, text_column, id_column : as in `dedup`.
    method, threshold, max_distance, max_bucket_size : as in `neardup.find_pairs`.

    Returns
    -------
    DataFrame of left_id, right_id and the measures of the method; `left` is the earlier document.
    Spark stores it until its `unpersist`.
    """
    chosen = _method(method_named(method, threshold, max_distance), text_column)
    selection = chosen.in_all_pairs(SelectionSettings(max_bucket_size=max_bucket_size))
    decided = _run(df, text_column, id_column, chosen, selection, all_pairs=True)
    found = decided.with_ids(decided.outcome.found)
    left_id = F.least("id", "kept_id").alias("left_id")
    right_id = F.greatest("id", "kept_id").alias("right_id")
    measures = [measure.name for measure in chosen.measures]
    pairs = found.select(left_id, right_id, *measures)
    decided.store(pairs)
    return pairs


def cluster(
    df: DataFrame,
    *,
    text_column: str = "text",
    id_column: ColumnNames = None,
    method: MethodSettings | str = "minhash",
    threshold: float | None = None,
    max_distance: int | None = None,
    keep: Keep = "first",
    within: str | None = None,
    linkage: Linkage = "sieve",
    max_bucket_size: int | None = None,
) -> Clustering:
    """Cluster the similar documents of a DataFrame.

    Parameters
    ----------
    df, text_column, id_column : as in `dedup`.
    method, threshold, max_distance, keep, within, linkage, max_bucket_size : as in
        `neardup.cluster`.

    Returns
    -------
    Clustering
    """
    selection = SelectionSettings(
        keep=keep, within=within, linkage=linkage, max_bucket_size=max_bucket_size
    )
    selection.refuse_copies("cluster")
    chosen = _method(method_named(method, threshold, max_distance), text_column)
    result = _dedup(df, text_column, id_column, chosen, selection)
    rows = df.select(_key(df, id_column).alias("id")).join(result.removed, "id", "left")
    rows = rows.withColumns(
        {"is_first": F.isnull("kept_id"), "first_id": F.coalesce("kept_id", "id")}
    )
    rows = rows.withColumn("size", F.count("*").over(Window.partitionBy("first_id")))
    measures = [
        F.coalesce(F.col(measure.name), F.lit(measure.of_itself)).alias(measure.name)
        for measure in chosen.measures
    ]
    documents = rows.select("id", "size", "is_first", "first_id", *measures)
    clusters = rows.filter("is_first and size > 1").select("first_id", "size")
    clusters = clusters.orderBy(F.desc("size"), "first_id")
    return Clustering(documents, clusters, result.rounds, result.removed)


def sign(
    df: DataFrame,
    *,
    text_column: str = "text",
    id_column: ColumnNames = None,
    method: MethodSettings | str = "simhash",
) -> DataFrame:
    """Return the fingerprint or signature of each document.

    Parameters
    ----------
    df, text_column, id_column : as in `dedup`.
    method : as in `neardup.sign`.

    Returns
    -------
    DataFrame of id and values, an array of long: the words of a SimHash fingerprint, the lowest
    first, as signed numbers; or the hashes of a MinHash signature.
    """
    chosen = _method(method_named(method, None, None), text_column)
    length = chosen.settings.vector_length
    frame = _frame(df, text_column, id_column, SelectionSettings(), length, against=False)
    documents = Frame(frame, length)
    # Settings without a sketch are refused by `sketcher`, below.
    if chosen.counted is not None and chosen.settings.has_sketch:
        raise SettingError(
            "sign on Spark does not count the documents of each feature, by which the method "
            f"weighs features: got {chosen.settings!r:.80}. Use neardup.sign, or pass the table of "
            "neardup.document_frequencies as idf."
        )
    shared = frame.sparkSession.sparkContext.broadcast(chosen.sketcher)
    function = partial(_sign, read=documents.read, sketcher=shared)
    columns = f"id {documents.key_type}, values array<long>"
    return documents.all().mapInArrow(function, columns)


def document_frequencies(
    df: DataFrame,
    *,
    text_column: str = "text",
    method: DocumentSettings | str = SimHash(),  # noqa: B008 - frozen
) -> IdfTable:
    """Count the documents of a DataFrame that contain each feature.

    Parameters
    ----------
    df, text_column : as in `dedup`.
    method : as in `neardup.document_frequencies`.

    Returns
    -------
    IdfTable, which the driver collects: 12 bytes for each distinct feature.
    """
    settings = counted_settings(method)
    if _has_pages(text_column):
        settings = settings.of_pages()
    _refuse_frame(df)
    _refuse_type(df, text_column, "the text", _TEXTS)
    none = F.lit(None).cast("string")  # documents are counted, and have no ids
    frame = df.select(
        none.alias("document"),
        F.lit(False).alias("against"),
        _column(text_column).alias("text"),
        none.alias("within"),
    )
    method_of_run = method_of(MinHash())  # no document is compared
    documents = Frame(frame)
    spark = df.sparkSession
    with (
        translated(),
        Run(spark, documents, method_of_run, SelectionSettings(), Stages()) as run,
    ):
        return run.count(settings.shingling).frequencies


def _sign(
    batches: Iterable[pa.RecordBatch], read: Read, sketcher: Broadcast[Sketcher]
) -> Iterator[pa.RecordBatch]:
    """Return the sketches of documents; in a worker."""
    for texts in read(batches):
        sketches = sketcher.value.allocate(len(texts))
        sketcher.value.sign_texts(texts["text"], sketches)
        num_documents, width = sketches.values.shape
        numbers = sketches.values.astype(np.uint64).view(np.int64).reshape(-1)
        offsets = np.arange(num_documents + 1, dtype=np.int32) * width
        lists = pa.ListArray.from_arrays(arrow_of(offsets), arrow_of(numbers))
        yield pa.RecordBatch.from_arrays([texts["document"], lists], ["id", "values"])


def _method(settings: MethodSettings, text_column: str) -> Method:
    """Return the method; it compares the main text of pages, as `neardup.dedup` does."""
    return method_of(settings.of_pages() if _has_pages(text_column) else settings).resolve()


def _has_pages(text_column: str) -> bool:
    """Return whether the texts of a column are web pages, by its name. Raises InputError."""
    return check_text("text_column", text_column, " Name a column.").casefold() == "html"


class _Decided(NamedTuple):
    """A run that has ended: its documents are in `search`, its decisions in `outcome`."""

    run: Run
    search: Search
    outcome: Outcome

    def store(self, rows: DataFrame) -> int:
        """Let Spark store rows of the result, and drop all other frames of the run; return the
        number of rows.
        """
        rows.persist()
        try:
            with self.run.named("result"):
                return int(rows.count())
        except BaseException:
            rows.unpersist()
            raise
        finally:
            self.run.release()

    def with_ids(self, pairs: DataFrame) -> DataFrame:
        """Return pairs with the ids of the documents."""
        documents = self.search.documents
        right = documents.selectExpr("position as right", "document as id")
        role = F.when(F.col("against"), "against").otherwise("source").alias("kept_role")
        left = documents.select(
            F.col("position").alias("left"), F.col("document").alias("kept_id"), role
        )
        measures = [measure.name for measure in self.run.method.value.measures]
        located = pairs.join(right, "right").join(left, "left")
        return located.select("id", "kept_id", "kept_role", *measures)


def _run(
    df: DataFrame,
    text_column: str,
    id_column: ColumnNames,
    method: Method,
    selection: SelectionSettings,
    *,
    against: DataFrame | None = None,
    all_pairs: bool = False,
) -> _Decided:
    """Search the documents of a DataFrame, and decide about them."""
    rule = rule_of(selection)
    rule.refuse(method)
    length = method.settings.vector_length
    frame = _frame(df, text_column, id_column, selection, length, against=False)
    if against is not None:
        # `keep` orders the source alone, so its columns are missing here.
        within = SelectionSettings(within=selection.within)
        earlier = _frame(against, text_column, id_column, within, length, against=True)
        frame = frame.unionByName(earlier, allowMissingColumns=True)
    corpus = Frame(frame, _first_length(frame) if length == 0 else length)
    with (
        translated(),
        Run(
            df.sparkSession,
            corpus,
            method,
            selection,
            Stages(),
            all_pairs=all_pairs,
            distinct=rule.pairs == "distinct",
        ) as run,
    ):
        search = run.search()
        # Workers perform the sieve and the chains, and keep one document of each cluster.
        by_driver = selection.copies != 1 or selection.linkage not in ("sieve", "connected")
        outcome = decide_rows(run, search, rule) if by_driver else run.decide(search)
        with run.named("ids"):
            _refuse_repeated(search.described, id_column)
    return _Decided(run, search, outcome)


def _frame(
    df: DataFrame,
    text_column: str,
    id_column: ColumnNames,
    selection: SelectionSettings,
    vector_length: int | None,
    *,
    against: bool,
) -> DataFrame:
    """Return the columns of engines.spark.source.Frame.

    Raises
    ------
    InputError or ColumnError
        If they cannot be read.
    """
    _refuse_frame(df)
    if vector_length is None:
        _refuse_type(df, text_column, "the text", _TEXTS)
    else:
        _refuse_type(df, text_column, "a vector", ("array",))
    _refuse_ids(df, id_column)
    ranks = []
    for number, name in enumerate(rank_columns(selection.keep)):
        _refuse_type(df, name, "the rank", (*_NUMBERS, *_DATES))
        ranks.append(_column(name).alias(f"rank_{number}"))
    group = F.lit(None).cast("string")
    if selection.within is not None:
        _refuse_type(df, selection.within, "a value", (*_TEXTS, *_NUMBERS))
        group = F.coalesce(_column(selection.within).cast("string"), F.lit(""))
    columns = [
        _key(df, id_column).alias("document"),
        F.lit(against).alias("against"),
        _column(text_column).alias("text"),
        group.alias("within"),
    ]
    try:
        return df.select(*columns, *ranks)
    except AnalysisException as error:
        raise ColumnError(
            f"Spark cannot read a column of the DataFrame: {first_line(error)}. Rename its columns "
            "so that they differ."
        ) from error


def _refuse_frame(df: DataFrame) -> None:
    """Raise InputError unless a DataFrame is of Spark, not of Spark Connect, and has an end."""
    if not isinstance(df, ClassicDataFrame):
        raise InputError(
            "neardup.spark reads a DataFrame of Spark, but not of Spark Connect: got "
            f"{type(df).__module__}.{type(df).__name__}. Create it in a session without `remote`, "
            "or write it to files and use neardup.dedup(engine='spark')."
        )
    if df.isStreaming:
        raise InputError(
            "neardup.spark reads a DataFrame with an end: got a streaming one (isStreaming). Pass "
            "the batches of foreachBatch, or what spark.read reads; neardup.Index decides about "
            "documents as they come."
        )


def _refuse_ids(df: DataFrame, id_column: ColumnNames) -> None:
    """Raise ColumnError if a column of ids is missing, or of a type that makes no id."""
    names = _several(id_column)
    types: tuple[str, ...] = (*_TEXTS, *_WHOLE)
    if len(names) == 1:
        # As a part of a joined id, these would be written differently than by the other engines.
        types = (*_TEXTS, *_NUMBERS, *_DATES, "boolean")
    for name in names:
        _refuse_type(df, name, "the id", types)


def _first_length(frame: DataFrame) -> int:
    """Return the length of one of the vectors, which all others must have; 0 without vectors."""
    found = frame.select(F.size("text").alias("length")).filter("length > 0").first()
    return 0 if found is None else int(found["length"])


def _refuse_type(df: DataFrame, name: str, role: str, kinds: tuple[str, ...]) -> None:
    """Raise ColumnError if there is no such column, or one of another type."""
    if name not in df.columns:
        raise ColumnError(
            f"No column '{name}' in the DataFrame: it has {listed(df.columns)}. Name one of these."
        )
    kind = df.schema[name].dataType
    if kind.typeName() not in kinds:
        raise ColumnError(
            f"Column '{name}' in the DataFrame holds {kind.simpleString()}, which cannot be "
            f"{role}. Cast it to one of {', '.join(kinds)}, or name another column."
        )


def _column(name: str) -> Column:
    """Return the column of a name, in which a dot does not mean a field of a struct."""
    return F.col("`" + name.replace("`", "``") + "`")


def _several(names: ColumnNames) -> list[str]:
    """Return one name, several or none as a list. Raises ColumnError for other values."""
    return [] if names is None else check_columns(names)


def _key(df: DataFrame, id_column: ColumnNames) -> Column:
    """Return the column that identifies a row, and orders rows."""
    names = _several(id_column)
    if not names:
        return _file_and_row(df)
    return _column(names[0]) if len(names) == 1 else _join_ids(names)


def _join_ids(names: list[str]) -> Column:
    """Return one id of several columns, as neardup.documents.texts.join_ids does."""
    parts = [_column(name).cast("string") for name in names]
    for mark, code in (("%", "%25"), (":", "%3A")):
        parts = [F.replace(part, F.lit(mark), F.lit(code)) for part in parts]
    return F.concat(parts[0], *(F.concat(F.lit(":"), part) for part in parts[1:]))


def _file_and_row(df: DataFrame) -> Column:
    """Return the file and the row number of rows of Parquet files. Raises InputError for others."""
    try:
        file = df.metadataColumn("_metadata")
        # Spark encodes some characters of paths, which would change their order; a plus stands for
        # itself.
        path = F.url_decode(F.replace(file["file_path"], F.lit("+"), F.lit("%2B")))
        key = F.struct(path.alias("file"), file["row_index"].alias("row"))
        _ = df.select(key).schema  # raises unless the rows have these columns
    except AnalysisException as error:
        raise InputError(
            "The rows of this DataFrame have no order: it is not read from Parquet files, and "
            "id_column=None. Name a column of ids, in whose order documents are kept (id_column)."
        ) from error
    return key


def _refuse_repeated(documents: DataFrame, id_column: ColumnNames) -> None:
    """Raise InputError if an id is null, or in several rows of one collection."""
    counts = documents.groupBy("document", "against").count()
    repeated = counts.filter((F.col("count") > 1) | F.isnull("document")).first()
    if repeated is not None:
        raise InputError(
            f"Ids in the column {id_column!r} must differ, and not be null: "
            f"{repeated['document']!r} is in {repeated['count']:,} rows. Name another id_column."
        )


def _kept(
    df: DataFrame,
    id_column: ColumnNames,
    removed: DataFrame,
    is_few: bool,
    added: Mapping[str, Column],
) -> DataFrame:
    """Return the rows that are not removed, with further columns.

    is_few : whether to broadcast the ids of removed rows, so that texts are not shuffled. added :
    see `_added_columns`.
    """
    key = f"_neardup_{uuid4().hex}"  # a name that no column of the user has
    gone = removed.select(F.col("id").alias(key))
    rows = df.withColumn(key, _key(df, id_column))
    kept = rows.join(F.broadcast(gone) if is_few else gone, key, "left_anti")
    if added:
        kept = kept.join(_aggregates(rows, key, removed, added), key, "left")
    return kept.drop(key)


def _aggregates(
    rows: DataFrame, key: str, removed: DataFrame, added: Mapping[str, Column]
) -> DataFrame:
    """Return the columns of kept rows about themselves and the rows that were removed for them.

    key : the column of `rows` that identifies a row.
    """
    keeper = f"{key}_keeper"
    # Documents of the earlier collection, which are not kept, may have the ids of new ones.
    pairs = removed.filter("kept_role = 'source'")
    keepers = pairs.select(F.col("id").alias(key), F.col("kept_id").alias(keeper))
    # A row that one of them removed is its own keeper here, but no kept row.
    members = rows.join(keepers, key, "left").withColumn(keeper, F.coalesce(keeper, key))
    aggregates = [column.alias(name) for name, column in added.items()]
    return members.groupBy(F.col(keeper).alias(key)).agg(*aggregates)


def _added_columns(df: DataFrame, sources: str | None, dates: str | None) -> dict[str, Column]:
    """Return the columns of `sources` and `dates`, as aggregates over the rows for which a kept row
    stands; none without these options.
    """
    _refuse_frame(df)
    added = {}
    if sources is not None:
        OutputSettings(sources=sources)
        _refuse_type(df, sources, "a value", (*_TEXTS, *_NUMBERS))
        value = F.nullif(_column(sources).cast("string"), F.lit(""))
        added["sources"] = F.array_sort(F.collect_set(value))
        added["num_sources"] = F.count_distinct(value)
    if dates is not None:
        value = _dates_of(df, dates)
        added["first_seen"] = F.min(value)
        added["last_seen"] = F.max(value)
    # Spark ignores case: no query could name either of "Sources" and "sources".
    taken = next((name for name in df.columns if name.lower() in added), None)
    if taken is not None:
        raise ColumnError(
            f"The DataFrame has a column '{taken}', and sources and dates add columns with these "
            f"names: {', '.join(added)}. Rename the column."
        )
    return added


def _dates_of(df: DataFrame, dates: str) -> Column:
    """Return the column of dates, in which NaN is null."""
    OutputSettings(dates=dates)
    _refuse_type(df, dates, "a date", (*_NUMBERS, *_DATES))
    value = _column(dates)
    if df.schema[dates].dataType.typeName() not in ("float", "double"):
        return value
    return F.when(~F.isnan(value), value)
